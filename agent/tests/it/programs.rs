//! Agents that are programs, over a real journal: the suite that every kit passes.

mod hosted;
mod long;
mod world;

use graph::question::{Answer, Decision};
use journal::dynamo::DynamoStore;
use journal::sqlite::SqliteStore;
use journal::step::{EffectKind, Step, StepBody};
use serde_json::{Value, json};

use self::world::{Kit, Suite, World, is_gone, outcomes};

macro_rules! on_both_hosts {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name::<super::SqliteStore>().await;
            })+
        }
        mod container {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                if super::hosted::dynamodb().is_some() {
                    super::$name::<super::DynamoStore>().await;
                }
            })+
        }
    };
}
use on_both_hosts;

on_both_hosts!(
    a_program_resumes_from_every_prefix_and_repeats_nothing,
    a_recorded_outcome_that_cannot_be_read_ends_the_session,
    a_critical_step_has_an_intent_and_a_question_after_a_crash,
    a_program_that_misbehaves_fails_with_a_reason,
    a_program_that_asks_for_another_effect_diverges,
    a_program_whose_session_was_claimed_again_is_stopped,
    a_stop_waits_for_a_critical_step,
    a_critical_step_of_a_killed_program_is_a_question,
    a_killed_program_is_started_again,
    a_program_whose_session_was_cancelled_is_stopped,
    a_cancelled_session_performs_nothing_more,
    a_program_stays_within_its_budget,
    effects_at_once_have_the_order_of_the_program,
);

/// What the program does for an effect, as its log names it.
fn work_of(node: &str) -> Option<&'static str> {
    match node {
        "first" => Some("work 1"),
        "second" => Some("work 2"),
        "third" => Some("work 3"),
        "fails" => Some("fail"),
        "last" => Some("work 4"),
        _ => None,
    }
}

/// A runner that dies between any two records loses nothing: this is each crash point of the journal.
async fn a_program_resumes_from_every_prefix_and_repeats_nothing<S: Suite>() {
    for kit in Kit::all() {
        let whole = World::<S>::of(kit).await;
        let result = whole.completed("everything", 0).await;
        // One language writes a whole fraction as `1.0`, another as `1`.
        let alike = |value: &Value| value.to_string().replace(".0", "");
        let said = json!([
            { "n": 1, "half": 0.5 },
            [{ "n": 2, "half": 1 }, { "n": 3, "half": 1.5 }],
            "ValueError: no such thing",
            "hello",
            "approve",
            { "n": 4, "half": 2 },
        ]);
        assert_eq!(alike(&result["said"]), alike(&said), "{kit:?}");
        let steps = whole.steps().await;
        for cut in 1..steps.len() {
            let world = whole.cut(cut).await;
            // The input is that of the claim, so both write to one log.
            let before = whole.did().len();
            let resumed = world.completed("everything", 0).await;
            assert_eq!(alike(&resumed["said"]), alike(&said), "{kit:?}, cut after {cut}");
            let learned = outcomes(&world.steps().await);
            assert_eq!(learned, outcomes(&steps), "{kit:?}, cut after {cut}");
            let journaled = outcomes(&steps[..cut]);
            let missing = learned.iter().filter(|effect| !journaled.contains(effect));
            let mut expected: Vec<_> = missing.filter_map(|(node, _)| work_of(node)).collect();
            let mut did = whole.did().split_off(before);
            expected.sort_unstable();
            did.sort_unstable();
            assert_eq!(did, expected, "{kit:?}, cut after {cut}: nothing is performed twice");
        }
    }
}

/// Whether the effect was performed is unknown then, so it must not be performed again.
async fn a_recorded_outcome_that_cannot_be_read_ends_the_session<S: Suite>() {
    let whole = World::<S>::of(Kit::Python).await;
    whole.completed("everything", 0).await;
    let steps = whole.steps().await;
    let is_first = |step: &Step<Value>| {
        step.body.effect().is_some_and(|effect| effect.node == "first")
            && matches!(step.body, StepBody::Outcome { .. })
    };
    let at = steps.iter().position(is_first).unwrap();
    for other in [json!({ "nonsense": 1 }), json!({ "woke": {} })] {
        let world = whole.cut(at).await;
        let before = whole.did();
        let mut body = steps[at].body.clone();
        if let StepBody::Outcome { payload, .. } = &mut body {
            *payload = other;
        }
        world.append(|epoch| epoch, body).await;
        world.failed("everything", 0, json!({})).await;
        assert_eq!(whole.did(), before, "nothing is performed again");
    }
}

async fn a_critical_step_has_an_intent_and_a_question_after_a_crash<S: Suite>() {
    for kit in Kit::all() {
        let whole = World::<S>::of(kit).await;
        whole.completed("everything", 0).await;
        let steps = whole.steps().await;
        let intents: Vec<_> = (0..steps.len())
            .filter(|index| matches!(steps[*index].body, StepBody::Intent { .. }))
            .collect();
        assert_eq!(intents.len(), 1, "{kit:?}");
        let world = whole.cut(intents[0] + 1).await;
        let before = whole.did();
        world.begin("everything", 0, json!({})).await;
        world.done().await;
        let resumed = world.steps().await;
        let StepBody::Ask { payload, .. } = &resumed.last().unwrap().body else {
            panic!("{:?}", resumed.last())
        };
        let prompt = payload["question"]["prompt"].as_str().unwrap();
        assert!(prompt.starts_with("Step: last") && prompt.contains("is not known"), "{prompt}");
        assert_eq!(whole.did(), before, "{kit:?}: it is not performed before the answer");
        let said = Answer {
            text: Some("paid".to_owned()),
            ..Answer::new(resumed.last().unwrap().seq, Decision::Say)
        };
        world.append(|epoch| epoch, said.body()).await;
        let result = world.completed("everything", 0).await;
        assert_eq!(result["said"][5], "paid", "{kit:?}");
        assert_eq!(whole.did(), before, "{kit:?}");
    }
}

async fn a_program_that_misbehaves_fails_with_a_reason<S: Suite>() {
    for kit in Kit::all() {
        for (case, error) in [
            ("exit", "ProgramError: Exited - the program exited without `end`: exit status: 3"),
            ("hang", "ProgramError: Idle - the program asked for nothing in 6 s"),
            ("garbage", "ProgramError: Malformed - stdout has a line that is no frame, `hello`"),
            ("flood", "ProgramError: FrameTooLarge"),
            ("fork", "ProgramError: Exited - the program exited without `end`: exit status: 4"),
            ("nonsense", "ProgramError: "),
        ] {
            let world = World::<S>::of(kit).await;
            let found = world.failed(case, 0, json!({})).await;
            assert!(found.starts_with(error), "{kit:?}, {case}: {found}");
            match case {
                "exit" => assert!(found.contains("the end is near"), "{kit:?}: {found}"),
                "fork" => assert!(is_gone(world.pid().await).await, "{kit:?}: its child is left"),
                // A Rust error has no line.
                "nonsense" if kit == Kit::Rust => {
                    assert!(found.contains("Error - no such case: nonsense"), "{found}");
                }
                "nonsense" => assert!(found.contains("no such case: nonsense (it."), "{found}"),
                _ => {}
            }
        }
    }
}

async fn a_program_that_asks_for_another_effect_diverges<S: Suite>() {
    for kit in Kit::all() {
        let whole = World::<S>::of(kit).await;
        whole.completed("count", 3).await;
        // Another program's first effect: the second of this one.
        let mut body = whole.steps().await[2].body.clone();
        let StepBody::Outcome { effect, .. } = &mut body else { panic!("{body:?}") };
        assert_eq!((effect.node.as_str(), effect.kind, effect.call), ("n", EffectKind::Tools, 2));
        effect.call = 1;
        let other = whole.cut(1).await;
        other.append(|epoch| epoch, body).await;
        let found = other.failed("count", 3, json!({})).await;
        let start = "ReplayError: Diverged - step 2 recorded effect 1, tools `n` digest ";
        assert!(found.starts_with(start), "{kit:?}: {found}");
        assert!(
            found.contains("under version 1; the program, version 1, asks for tools `n`"),
            "{found}"
        );
        let line = if kit == Kit::Rust { " at sdk/rust/examples/it.rs:" } else { " at it." };
        assert!(found.contains(line), "{kit:?}: {found}");
    }
}

async fn a_program_whose_session_was_claimed_again_is_stopped<S: Suite>() {
    for kit in Kit::all() {
        let world = World::<S>::of(kit).await;
        world.begin("hang in a step", 3, json!({})).await;
        let pid = world.pid().await;
        let claim = StepBody::Claim {
            supersedes: 1,
            agent: "it".to_owned(),
            graph_version: "1".to_owned(),
            input: None,
        };
        world.append(|epoch| epoch + 1, claim).await;
        world.done().await;
        let steps = world.steps().await;
        assert!(matches!(steps.last().unwrap().body, StepBody::Claim { .. }), "{steps:?}");
        assert!(is_gone(pid).await, "{kit:?}: the program still runs");
    }
}

/// Cut off, it would be a question.
async fn a_stop_waits_for_a_critical_step<S: Suite>() {
    for kit in Kit::all() {
        let world = World::<S>::of(kit).await;
        world.begin("critical", 1, json!({})).await;
        world.pid().await;
        world.stop().await;
        let last = world.steps().await.pop().unwrap().body;
        let is_its_outcome =
            matches!(&last, StepBody::Outcome { effect, .. } if effect.node == "slow");
        assert!(is_its_outcome, "{kit:?}: {last:?}");
        let resumed = world.cut(world.steps().await.len()).await;
        let before = world.did();
        assert_eq!(resumed.completed("critical", 1).await["done"], "yes", "{kit:?}");
        assert_eq!(resumed.steps().await.iter().filter(|it| is_question(it)).count(), 0);
        assert_eq!(world.did(), before, "{kit:?}: it is not performed again");
    }
}

/// As the kernel ends it for want of memory.
async fn a_critical_step_of_a_killed_program_is_a_question<S: Suite>() {
    for kit in Kit::all() {
        let world = World::<S>::of(kit).await;
        world.begin("critical", 60, json!({})).await;
        kill(world.pid().await);
        world.done().await;
        let asked = world.steps().await.pop().unwrap();
        let StepBody::Ask { payload, .. } = &asked.body else { panic!("{kit:?}: {asked:?}") };
        let prompt = payload["question"]["prompt"].as_str().unwrap();
        assert!(prompt.starts_with("Step: slow") && prompt.contains("is not known"), "{prompt}");
        let said = Answer { text: Some("yes".to_owned()), ..Answer::new(asked.seq, Decision::Say) };
        world.append(|epoch| epoch, said.body()).await;
        assert_eq!(world.completed("critical", 60).await["done"], "yes", "{kit:?}");
        assert_eq!(world.did().len(), 1, "{kit:?}: it is performed once");
    }
}

async fn a_killed_program_is_started_again<S: Suite>() {
    for kit in Kit::all() {
        if kit.is_wrapped() {
            continue;
        }
        let world = World::<S>::of(kit).await;
        world.begin("hang in a step", 2, json!({})).await;
        kill(world.pid().await);
        world.done().await;
        let ended = world.steps().await.iter().any(|it| matches!(it.body, StepBody::End { .. }));
        assert!(!ended, "{kit:?}: its next run may do better");
        world.completed("hang in a step", 2).await;
    }
}

fn kill(pid: u32) {
    let killed = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    assert!(killed.unwrap().success());
}

fn is_question(step: &Step<Value>) -> bool {
    matches!(step.body, StepBody::Ask { .. })
}

async fn a_program_whose_session_was_cancelled_is_stopped<S: Suite>() {
    for kit in Kit::all() {
        let world = World::<S>::of(kit).await;
        world.begin("hang in a step", 3, json!({})).await;
        let pid = world.pid().await;
        world.cancel().await;
        world.done().await;
        assert!(is_gone(pid).await, "{kit:?}: the program still runs");
        assert_eq!(world.did().len(), 1, "{kit:?}: the step after it was performed");
        world.is_cancelled(kit).await;
    }
}

/// Also between two runners, and while a question is open.
async fn a_cancelled_session_performs_nothing_more<S: Suite>() {
    for kit in Kit::all() {
        let whole = World::<S>::of(kit).await;
        whole.completed("everything", 0).await;
        let steps = whole.steps().await;
        let before = whole.did();
        for cut in 1..steps.len() {
            let world = whole.cut(cut).await;
            world.cancel().await;
            let (_, answer) = world.invoke("everything", 0, json!({})).await;
            assert_eq!(answer["outcome"], "ended", "{kit:?}, cut after {cut}");
            world.is_cancelled(kit).await;
            assert_eq!(whole.did(), before, "{kit:?}, cut after {cut}");
        }
    }
}

async fn a_program_stays_within_its_budget<S: Suite>() {
    for kit in Kit::all() {
        let world = World::<S>::of(kit).await;
        let found = world.failed("chats", 5, json!({ "calls": 3 })).await;
        assert!(found.starts_with("BudgetError: "), "{kit:?}: {found}");
        assert_eq!(outcomes(&world.steps().await).len(), 3, "{kit:?}");
        let world = World::<S>::of(kit).await;
        let found = world.failed("hang in a step", 60, json!({ "seconds": 2 })).await;
        assert!(found.starts_with("BudgetError: "), "{kit:?}: {found}");
        assert!(is_gone(world.pid().await).await, "{kit:?}: the program still runs");
    }
}

async fn effects_at_once_have_the_order_of_the_program<S: Suite>() {
    for kit in Kit::all() {
        let world = World::<S>::of(kit).await;
        let found = world.completed("gather", 300).await["found"].clone();
        assert_eq!(found, json!((0..300).collect::<Vec<_>>()), "{kit:?}");
    }
}
