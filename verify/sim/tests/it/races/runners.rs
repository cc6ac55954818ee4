//! Concurrent runners.

use journal::event::{About, EventStatus, Writer};
use journal::key;
use journal::store::Store;
use sim::interleave::{Frailty, Limits, Race};

use super::bench::{Bench, at_least};
use super::stage::Stage;

on_both_stores!(
    one_of_two_runners_claims,
    a_claim_and_a_pending_outcome_lose_nothing,
    a_claim_and_an_end_leave_one_end,
    a_runner_that_loses_replies_repeats_nothing,
);

/// The step after which checkup has all outcomes and is about to end.
pub const LEARNED_ALL: u32 = 4;

/// Adds an invocation of an agent's container.
pub fn runner<S: Store>(race: &mut Race<S>, stage: &Stage<S>, name: &'static str, at: (u32, u32)) {
    race.enter(name, Frailty::Sound, invoked(stage, name, at));
}

/// Adds an invocation of an agent's container once a step exists.
fn runner_after<S: Store>(race: &mut Race<S>, stage: &Stage<S>, step: u32, name: &'static str) {
    let sk = key::step(step);
    let action = invoked(stage, name, (20, 1));
    race.enter_after(move |item| item.sk == sk, name, Frailty::Sound, action);
}

/// The action of a container invoked with (attempt, superseded epoch).
pub fn invoked<S: Store>(
    stage: &Stage<S>,
    name: &'static str,
    (attempt, supersedes): (u32, u32),
) -> impl Fn(sim::interleave::Gate<S>) -> futures_util::future::BoxFuture<'static, ()> + Send + 'static
{
    let stage = stage.clone();
    move |gate| {
        let stage = stage.clone();
        Box::pin(async move {
            let host = stage.host(gate);
            stage.invoke(name, &host, attempt, supersedes).await;
        })
    }
}

/// Two containers are invoked for an unclaimed session.
fn one_of_two_runners_claims<S: Store>(bench: &Bench<S>) {
    bench.race(
        at_least(310, Limits::NONE.interrupted(2)),
        at_least(42, Limits::NONE.interrupted(1)),
        async |race| {
            let stage = Stage::begun(race).await;
            for (name, attempt) in [("one", 10), ("two", 11)] {
                let about = About::Attempt(attempt);
                stage.announce(Writer::Invoker, EventStatus::AgentInvocationStarted, about).await;
                runner(race, &stage, name, (attempt, 0));
            }
            stage
        },
        async |race, stage| {
            let mut broken = stage.judge(race).await;
            let turned_away = stage.answered("already_running") + stage.answered("ended");
            if (stage.answered("accepted"), turned_away) != (1, 1) {
                broken.push("not one was accepted and one turned away".to_owned());
            }
            broken
        },
    );
}

/// A runner that was taken for lost works while another claims its session.
fn a_claim_and_a_pending_outcome_lose_nothing<S: Store>(bench: &Bench<S>) {
    superseded_after(bench, 1, Limits::NONE.interrupted(2), 280, 18);
}

/// The same when the first has all outcomes and is about to write its end.
fn a_claim_and_an_end_leave_one_end<S: Store>(bench: &Bench<S>) {
    superseded_after(bench, LEARNED_ALL, Limits::NONE, 30, 9);
}

fn superseded_after<S: Store>(
    bench: &Bench<S>,
    step: u32,
    limits: Limits,
    sqlite_min: usize,
    dynamo_min: usize,
) {
    bench.race(
        at_least(sqlite_min, limits),
        at_least(dynamo_min, Limits::NONE.interrupted(1)),
        async |race| {
            let stage = Stage::begun(race).await;
            runner(race, &stage, "slow", (10, 0));
            runner_after(race, &stage, step, "next");
            stage
        },
        async |race, stage| stage.judge(race).await,
    );
}

/// The reply of every write is lost once.
fn a_runner_that_loses_replies_repeats_nothing<S: Store>(bench: &Bench<S>) {
    bench.race(
        at_least(73, Limits::NONE.faulty(1)),
        at_least(73, Limits::NONE.faulty(1)),
        async |race| {
            let stage = Stage::begun(race).await;
            race.enter("agent", Frailty::LosesAnswers, invoked(&stage, "agent", (10, 0)));
            stage
        },
        async |race, stage| {
            let mut broken = stage.judge(race).await;
            if stage.answers("agent") != ["accepted"] {
                broken.push(format!("it was answered {:?}", stage.answers("agent")));
            }
            broken
        },
    );
}
