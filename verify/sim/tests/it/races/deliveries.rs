//! Duplicate deliveries, and functions that die after a write and are called again.

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
    a_duplicate_invocation_claims_once,
    a_duplicate_trigger_event_is_one_session,
    a_restarted_invoker_announces_nothing_twice,
    an_invoker_retried_by_the_workflow_claims_once,
    a_restarted_poller_reaches_the_same_decision,
);

/// Adds a call of the invoker; its retry number may depend on how often it was started.
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

fn a_duplicate_invocation_claims_once<S: Store>(bench: &Bench<S>) {
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

/// Lambda calls the function again with the same request.
fn a_restarted_invoker_announces_nothing_twice<S: Store>(bench: &Bench<S>) {
    dying_invoker(bench, || || 0);
}

/// The workflow retries, so that the second call is another attempt.
fn an_invoker_retried_by_the_workflow_claims_once<S: Store>(bench: &Bench<S>) {
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

/// The poller is called for the verdict, to close the session, and when a question has expired.
fn a_restarted_poller_reaches_the_same_decision<S: Store>(bench: &Bench<S>) {
    for case in ["verdict", "close", "expiry"] {
        bench.race(
            at_least(2, Limits::NONE.faulty(2)),
            at_least(2, Limits::NONE.faulty(1)),
            async |race| {
                let (stage, request) = waiting_for_its_verdict(race, case).await;
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
                // If the first call closed the question, the second has nothing to expire. The
                // session must still be resumed, because no runner works on the answered question.
                if said != [expected] {
                    broken.push(format!("the poller replied {said:?}, not {expected}"));
                }
                broken
            },
        );
    }
}

async fn waiting_for_its_verdict<S: Store>(race: &Race<S>, case: &str) -> (Stage<S>, CheckRequest) {
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

/// Both deliveries start an execution of the real workflow.
fn a_duplicate_trigger_event_is_one_session<S: Store>(bench: &Bench<S>) {
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
