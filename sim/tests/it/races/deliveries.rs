//! The same thing delivered twice, and functions that die after a write and are called again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agent::host::Host;
use journal::store::Store;
use sim::interleave::{Frailty, Gate, Limits, Race};
use workflow::contract::{CheckRequest, Mode};

use super::bench::{Bench, at_least};
use super::execution::{Functions, execute};
use super::questions::{AFTER_EXPIRY, waiting};
use super::stage::{Stage, spelled};

on_both_stores!(
    the_same_invocation_twice_is_one_claim_and_each_event_is_shown_once,
    the_same_trigger_event_twice_is_one_session_and_one_duplicate,
    an_invoker_that_dies_after_a_write_and_is_called_again_tells_nothing_twice,
    an_invoker_that_dies_and_is_retried_by_the_workflow_claims_once,
    a_poller_that_dies_after_a_write_and_is_called_again_judges_the_same,
);

/// Has the invoker called with a retry number, which may depend on how often it was begun.
fn invoker<S: Store>(
    race: &mut Race<S>,
    stage: &Stage<S>,
    host: &Host<Gate<S>>,
    (name, frailty): (&'static str, Frailty),
    retry: impl Fn() -> u32 + Send + 'static,
) {
    let (stage, host) = (stage.clone(), host.clone());
    race.enter(name, frailty, move |gate| {
        let (stage, host, retry) = (stage.clone(), host.clone(), retry());
        async move {
            let invoker = stage.invoker(gate, host.clone(), 0);
            let called = Box::pin(invoker.handle(stage.invoke_request(1, retry, 0))).await;
            match called {
                Ok(reply) => stage.answer(name, &format!("{:?}", reply.outcome)),
                Err(error) => stage.answer(name, error.name()),
            }
            stage.idle(&host).await;
        }
    });
}

fn the_same_invocation_twice_is_one_claim_and_each_event_is_shown_once<S: Store>(bench: &Bench<S>) {
    bench.race(
        at_least(60, Limits::NONE.interrupted(1)),
        at_least(60, Limits::NONE.interrupted(1)),
        async |race| {
            let stage = Stage::begun(race).await;
            for name in ["first", "second"] {
                let stage = stage.clone();
                race.enter(name, Frailty::Sound, move |gate| {
                    let stage = stage.clone();
                    async move {
                        let host = stage.host(gate.clone());
                        let invoker = stage.invoker(gate, host.clone(), 0);
                        let request = stage.invoke_request(1, 0, 0);
                        let reply = Box::pin(invoker.handle(request)).await.unwrap();
                        stage.answer(name, &format!("{:?}", reply.outcome));
                        stage.idle(&host).await;
                    }
                });
            }
            stage
        },
        async |race, stage| {
            let mut broken = stage.judge(race).await;
            let turned_away = stage.answered("AlreadyRunning") + stage.answered("Ended");
            if (stage.answered("Accepted"), turned_away) != (1, 1) {
                broken.push("not one was accepted and one turned away".to_owned());
            }
            broken
        },
    );
}

/// The function's own service calls it again with the same request.
fn an_invoker_that_dies_after_a_write_and_is_called_again_tells_nothing_twice<S: Store>(
    bench: &Bench<S>,
) {
    dying_invoker(bench, || || 0);
}

/// The workflow's retry counts, so that the second call is another attempt.
fn an_invoker_that_dies_and_is_retried_by_the_workflow_claims_once<S: Store>(bench: &Bench<S>) {
    dying_invoker(bench, || {
        let begun = Arc::new(AtomicU32::new(0));
        move || begun.fetch_add(1, Ordering::Relaxed)
    });
}

fn dying_invoker<S: Store, R: Fn() -> u32 + Send + 'static>(
    bench: &Bench<S>,
    retry: impl Fn() -> R,
) {
    bench.race(
        at_least(4, Limits::NONE.interrupted(0).faulty(1)),
        at_least(4, Limits::NONE.interrupted(0).faulty(1)),
        async |race| {
            let stage = Stage::begun(race).await;
            let host = stage.host(race.process("agent"));
            invoker(race, &stage, &host, ("invoker", Frailty::Dies), retry());
            stage
        },
        async |race, stage| {
            let mut broken = stage.judge(race).await;
            let [answer] = stage.answers("invoker").try_into().unwrap_or_default();
            if !["Accepted", "AlreadyRunning", "Ended"].contains(&answer.as_str()) {
                broken.push(format!("the invoker was answered {answer}"));
            }
            broken
        },
    );
}

/// It is called for the verdict, to close the session, and when a question has expired.
fn a_poller_that_dies_after_a_write_and_is_called_again_judges_the_same<S: Store>(
    bench: &Bench<S>,
) {
    for case in ["verdict", "close", "expiry"] {
        bench.race(
            at_least(2, Limits::NONE.faulty(2)),
            at_least(2, Limits::NONE.faulty(1)),
            async |race| {
                let (stage, request) = about_to_be_judged(race, case).await;
                let judging = stage.clone();
                race.enter("poller", Frailty::Dies, move |gate| {
                    let (stage, request) = (judging.clone(), request.clone());
                    async move {
                        let poller = stage.poller(gate);
                        let reply = Box::pin(poller.handle(request)).await.unwrap();
                        stage.answer("poller", &spelled(reply.status));
                    }
                });
                stage
            },
            async |race, stage| {
                let expected = match case {
                    "verdict" => "COMPLETED",
                    "close" => "FAILED",
                    _ => "RESUME",
                };
                let mut broken = stage.judge(race).await;
                let said = stage.answers("poller");
                // Once the question is closed by a first call, a second one has nothing to expire:
                // an answered question that nobody works on is to be resumed all the same.
                if said != [expected] {
                    broken.push(format!("the poller said {said:?}, not {expected}"));
                }
                broken
            },
        );
    }
}

async fn about_to_be_judged<S: Store>(race: &Race<S>, case: &str) -> (Stage<S>, CheckRequest) {
    if case == "expiry" {
        let (stage, _) = waiting(race).await;
        let mut request = stage.check_request(Mode::Check);
        request.now = request.now.after(AFTER_EXPIRY);
        return (stage, request);
    }
    let stage = Stage::begun(race).await;
    if case == "close" {
        let request = stage.check_request(Mode::Close);
        return (stage, request);
    }
    let host = stage.host(stage.store.clone());
    stage.invoke("agent", &host, 10, 0).await;
    let request = stage.check_request(Mode::Check);
    (stage, request)
}

/// Both deliveries start an execution of the workflow's own text.
fn the_same_trigger_event_twice_is_one_session_and_one_duplicate<S: Store>(bench: &Bench<S>) {
    bench.race(
        at_least(98, Limits::NONE.interrupted(1)),
        at_least(98, Limits::NONE.interrupted(1)),
        async |race| {
            let stage = Stage::empty(race);
            for name in ["one", "two"] {
                let stage = stage.clone();
                race.enter(name, Frailty::Sound, move |gate| {
                    let stage = stage.clone();
                    async move {
                        let host = stage.host(gate.clone());
                        let functions = Functions {
                            invoker: stage.invoker(gate.clone(), host, 0),
                            poller: stage.poller(gate.clone()),
                        };
                        let output = Box::pin(execute(&stage, &gate, &functions, name)).await;
                        stage.answer(name, &output);
                    }
                });
            }
            stage
        },
        async |race, stage| {
            let mut broken = stage.judge(race).await;
            let outputs = [stage.answers("one"), stage.answers("two")].concat();
            let duplicates = outputs.iter().filter(|output| output.contains("duplicate_of"));
            let verdicts = outputs.iter().filter(|output| output.contains("\"SUCCEEDED\""));
            if (duplicates.count(), verdicts.count()) != (1, 1) {
                broken.push(format!("the executions ended with {outputs:?}"));
            }
            broken
        },
    );
}
