//! Questions concurrent with claims, answers concurrent with expiry.
//!
//! No shipped agent asks by itself. If the settings make one of checkup's tools critical, the run
//! asks before the first call. A trigger cannot set that, so the first claim is written here, as by
//! a runner that was lost.

use std::time::Duration;

use journal::key;
use journal::step::{Step, StepBody};
use journal::store::Store;
use serde_json::{Value, json};
use sim::interleave::{Frailty, Limits, Race};
use workflow::contract::Mode;

use super::bench::{Bench, at_least};
use super::person::approve;
use super::runners::{invoked, runner};
use super::stage::{Stage, spelled};

on_both_stores!(
    a_claim_and_a_question_leave_one_question,
    only_one_of_answer_expiry_and_end_closes_a_question,
    one_of_two_answers_counts,
);

/// Longer than a question stays open.
pub const AFTER_EXPIRY: Duration = Duration::from_secs(8 * 86_400);

/// A session that asks before its first call, claimed once by a lost runner.
async fn asking<S: Store>(race: &Race<S>) -> Stage<S> {
    let stage = Stage::begun(race).await;
    let settings = json!({ "critical": ["configured_servers"] });
    let claim = StepBody::Claim {
        supersedes: 0,
        agent: "checkup".to_owned(),
        graph_version: "1".to_owned(),
        input: Some(json!({ "input": {}, "settings": settings })),
    };
    stage.append("agent-lost", 1, claim).await;
    stage
}

/// A session with an open question.
pub async fn waiting<S: Store>(race: &Race<S>) -> (Stage<S>, u32) {
    let stage = asking(race).await;
    let host = stage.host(stage.store.clone());
    stage.invoke("asks", &host, 10, 1).await;
    let question = questions(&stage.steps().await)[0];
    (stage, question)
}

fn questions(steps: &[Step<Value>]) -> Vec<u32> {
    let asks = steps.iter().filter(|step| matches!(step.body, StepBody::Ask { .. }));
    asks.map(|step| step.seq).collect()
}

fn a_claim_and_a_question_leave_one_question<S: Store>(bench: &Bench<S>) {
    bench.race(
        at_least(21, Limits::NONE),
        at_least(9, Limits::NONE.interrupted(1)),
        async |race| {
            let stage = asking(race).await;
            runner(race, &stage, "slow", (10, 1));
            let claimed = key::step(2);
            let action = invoked(&stage, "next", (20, 2));
            race.enter_after(move |item| item.sk == claimed, "next", Frailty::Sound, action);
            stage
        },
        async |race, stage| {
            let steps = stage.steps().await;
            let asked = questions(&steps);
            let mut broken = Vec::new();
            if asked.len() != 1 || steps.last().map(|step| step.seq) != asked.last().copied() {
                broken.push(format!("{asked:?} questions in {} steps", steps.len()));
            }
            broken.extend(stage.judge(race).await);
            broken
        },
    );
}

/// By the person's clock the question is open, by the state machine's it has expired.
fn only_one_of_answer_expiry_and_end_closes_a_question<S: Store>(bench: &Bench<S>) {
    bench.race(
        at_least(480, Limits::NONE.interrupted(2)),
        at_least(67, Limits::NONE.interrupted(1)),
        async |race| {
            let (stage, question) = waiting(race).await;
            let answering = stage.clone();
            race.enter("person", Frailty::Sound, move |gate| {
                let stage = answering.clone();
                async move { approve(&stage, &gate, "person", question).await }
            });
            for (name, mode) in [("expiry", Mode::Check), ("end", Mode::Close)] {
                let judging = stage.clone();
                race.enter(name, Frailty::Sound, move |gate| {
                    let stage = judging.clone();
                    async move {
                        let poller = stage.poller(gate);
                        let mut request = stage.check_request(mode);
                        request.now = request.now.after(AFTER_EXPIRY);
                        let reply = Box::pin(poller.handle(request)).await.unwrap();
                        stage.answer(name, &spelled(reply.status));
                    }
                });
            }
            (stage, question)
        },
        async |race, (stage, question)| {
            let mut broken = stage.judge(race).await;
            let steps = stage.steps().await;
            let closed = steps.iter().find(|step| step.seq == question + 1);
            let counts = match closed.map(|step| &step.body) {
                Some(StepBody::Answer { payload, .. }) => payload["decision"] == "approve",
                Some(StepBody::End { .. }) => false,
                other => {
                    broken.push(format!("the question was followed by {other:?}"));
                    false
                }
            };
            if (stage.answers("person") == ["answered"]) != counts {
                let replies = stage.answers("person");
                broken.push(format!(
                    "the person's reply was {replies:?}; the answer counts: {counts}"
                ));
            }
            broken
        },
    );
}

fn one_of_two_answers_counts<S: Store>(bench: &Bench<S>) {
    bench.race(
        at_least(6, Limits::NONE),
        at_least(12, Limits::NONE.interrupted(1)),
        async |race| {
            let (stage, question) = waiting(race).await;
            for name in ["one", "two"] {
                let answering = stage.clone();
                race.enter(name, Frailty::Sound, move |gate| {
                    let stage = answering.clone();
                    async move { approve(&stage, &gate, name, question).await }
                });
            }
            (stage, question)
        },
        async |race, (stage, question)| {
            let mut broken = stage.judge(race).await;
            let steps = stage.steps().await;
            let winner = steps.iter().find(|step| step.seq == question + 1);
            let winner = winner.and_then(|step| step.body.payload()?["reason"].as_str());
            for name in ["one", "two"] {
                if (stage.answers(name) == ["answered"]) != (winner == Some(name)) {
                    broken.push(format!("{name}'s reply was {:?}", stage.answers(name)));
                }
            }
            broken
        },
    );
}
