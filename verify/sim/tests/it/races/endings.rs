//! Concurrent ends, and verdicts concurrent with announcements.

use journal::event::EventStatus;
use journal::item::Item;
use journal::key;
use journal::step::Ending;
use journal::store::Store;
use sim::interleave::{Frailty, Limits, Race};
use workflow::contract::Mode;

use super::bench::{Bench, at_least};
use super::person::cancel;
use super::runners::{LEARNED_ALL, runner};
use super::stage::{Skews, Stage, ending, spelled};

on_both_stores!(
    cancelling_and_completing_leave_one_end_and_one_verdict,
    a_claim_and_its_workflows_end_leave_one_end,
    two_pollers_and_the_agents_end_seal_one_verdict,
);

pub fn is_cancel(item: &Item) -> bool {
    item.text_opt("Status") == Some(EventStatus::CancelRequested.as_str())
}

fn is_end(item: &Item) -> bool {
    item.text_opt("Kind") == Some("end")
}

/// Adds a poller that checks once such a record exists.
pub fn poller_after<S: Store>(
    race: &mut Race<S>,
    stage: &Stage<S>,
    cue: fn(&Item) -> bool,
    name: &'static str,
    frailty: Frailty,
    ahead_ns: i64,
) {
    let stage = stage.clone();
    race.enter_after(cue, name, frailty, move |gate| {
        let stage = stage.clone();
        async move {
            let poller = stage.poller_ahead(gate, ahead_ns);
            let reply = Box::pin(poller.handle(stage.check_request(Mode::Check))).await.unwrap();
            stage.answer(name, &spelled(reply.status));
        }
    });
}

/// An agent that is about to end, a person who cancels, and the poller that acts on it.
pub async fn cancelling<S: Store>(race: &mut Race<S>, skews: Skews) -> Stage<S> {
    let stage = Stage::begun(race).await;
    let agent = stage.clone();
    race.enter("agent", Frailty::Sound, move |gate| {
        let stage = agent.clone();
        async move {
            let host = stage.host_ahead(gate, skews.agent_ns);
            stage.invoke("agent", &host, 10, 0).await;
        }
    });
    let (person, learned_all) = (stage.clone(), key::step(LEARNED_ALL));
    let cue = move |item: &Item| item.sk == learned_all;
    race.enter_after(cue, "person", Frailty::Sound, move |gate| {
        let stage = person.clone();
        async move { cancel(&stage, &gate, "person", skews.person_ns).await }
    });
    poller_after(race, &stage, is_cancel, "poller", Frailty::Sound, skews.poller_ns);
    stage
}

/// The writer that gets the number decides, and all report the same.
pub async fn judge_cancelling<S: Store>(
    race: &Race<S>,
    stage: Stage<S>,
    skewed: bool,
) -> Vec<String> {
    let mut broken = stage.judge(race).await;
    let ended = ending(&stage.steps().await);
    let expected = match ended {
        Some(Ending::Completed) => "COMPLETED",
        Some(Ending::Cancelled) => "CANCELLED",
        // Checkup reports that its clock differs too much from the others'.
        Some(Ending::Failed) if skewed => "FAILED",
        _ => "neither",
    };
    let said = stage.answers("poller");
    if expected == "neither" || said.iter().any(|said| said != expected) {
        broken.push(format!("it ended as {ended:?}, the poller replied {said:?}"));
    }
    if said.is_empty() && stage.answers("person") == ["asked"] {
        broken.push("no poller acted on the cancellation".to_owned());
    }
    broken
}

fn cancelling_and_completing_leave_one_end_and_one_verdict<S: Store>(bench: &Bench<S>) {
    bench.race(
        at_least(128, Limits::NONE.interrupted(2)),
        at_least(15, Limits::NONE.interrupted(1)),
        async |race| cancelling(race, Skews::default()).await,
        async |race, stage| judge_cancelling(race, stage, false).await,
    );
}

/// The state machine gives up while the invoked agent is about to claim.
fn a_claim_and_its_workflows_end_leave_one_end<S: Store>(bench: &Bench<S>) {
    bench.race(
        at_least(160, Limits::NONE.interrupted(2)),
        at_least(26, Limits::NONE.interrupted(1)),
        async |race| {
            let stage = Stage::begun(race).await;
            runner(race, &stage, "agent", (10, 0));
            let closing = stage.clone();
            race.enter("poller", Frailty::Sound, move |gate| {
                let stage = closing.clone();
                async move {
                    let poller = stage.poller(gate);
                    let request = stage.check_request(Mode::Close);
                    let reply = Box::pin(poller.handle(request)).await.unwrap();
                    stage.answer("poller", &spelled(reply.status));
                }
            });
            stage
        },
        async |race, stage| {
            let mut broken = stage.judge(race).await;
            let said = stage.answers("poller");
            let ended = ending(&stage.steps().await);
            let expected = if ended == Some(Ending::Completed) { "COMPLETED" } else { "FAILED" };
            if said != [expected] {
                broken.push(format!("it ended as {ended:?}, the poller replied {said:?}"));
            }
            broken
        },
    );
}

/// The poller is called twice for one check.
fn two_pollers_and_the_agents_end_seal_one_verdict<S: Store>(bench: &Bench<S>) {
    bench.race(
        at_least(34, Limits::NONE.interrupted(1)),
        at_least(34, Limits::NONE.interrupted(1)),
        async |race| {
            let stage = Stage::begun(race).await;
            runner(race, &stage, "agent", (10, 0));
            poller_after(race, &stage, is_end, "poller", Frailty::Sound, 0);
            poller_after(race, &stage, is_end, "double", Frailty::Sound, 0);
            stage
        },
        async |race, stage| stage.judge(race).await,
    );
}
