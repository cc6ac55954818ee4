//! Random graphs, orders, failures and crashes.

use std::cell::Cell;

use graph::agent::Settings;
use graph::budget::Budget;
use graph::effect::Reply;
use graph::next::Next;
use graph::outcome::{Brought, Failure};
use graph::question::Answer;
use graph::testing::{TestSession, World};
use journal::step::{EffectKind, StepBody, Usage};
use proptest::prelude::*;
use serde_json::json;

use crate::listed::*;

fn any_op() -> impl Strategy<Value = Op> {
    let small = || (0..3_u32).prop_map(|n| json!({"x": n}));
    prop_oneof![
        Just(Op::Chat),
        prop::collection::vec(small(), 0..4).prop_map(Op::Look),
        small().prop_map(Op::Change),
        small().prop_map(Op::Critical),
        small().prop_map(Op::Confirm),
        Just(Op::Say),
        (0..90_u64).prop_map(Op::Nap),
        Just(Op::Remark),
        Just(Op::Nothing),
    ]
}

/// Drives a session with random orders of parallel requests, failures and lost runners.
fn drive_at_random(session: &mut TestSession, mut dice: impl FnMut(usize) -> usize) {
    let failures = Cell::new(0);
    while session.run().seq() < 400 {
        let ill = dice(4) == 0;
        let mut world = World::new(|call| match (ill, failures.replace(failures.get() + 1) % 3) {
            (true, 0) => Brought::Failure(Failure::not_sent("c", "not sent")),
            (true, 1) => Brought::Failure(Failure::unknown("c", "unknown")),
            (true, _) => Brought::Error("error".to_owned()),
            (false, _) => echo(call),
        })
        .models(|_| match ill {
            true => (Brought::Failure(Failure::unknown("c", "unknown")), Usage::default()),
            false => (Brought::Reply(Reply::says("m")), tokens(20, 20)),
        });
        match session.run().next() {
            Next::Perform(requests) => {
                let request = &requests[dice(requests.len())];
                session.perform(request, &mut world);
            }
            Next::Note(note) => session.append(note.body()),
            Next::Ask(ask) => session.append(ask.body()),
            Next::Wait(open) if open.question.is_sleep() => {
                session.append(Answer::expired(open.question_id).body());
            }
            Next::Wait(open) => {
                let text = ["yes", "no", "something else"][dice(3)];
                session.append(open.question.read(open.question_id, text).body());
            }
            Next::Sleep(sleep) => session.append(sleep.body(session.now())),
            Next::End(finish) => session.append(finish.body()),
            Next::Claim | Next::Idle | Next::Closed => return,
        }
        if dice(5) == 0 && !matches!(session.run().next(), Next::Wait(_) | Next::Closed) {
            session.claim(None);
        }
    }
    panic!("no end after 400 steps");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn folding_the_same_steps_again_gives_the_same_run(
        list in prop::collection::vec(any_op(), 1..7),
        seed in any::<u64>(),
        model in any::<bool>(),
        tokens in prop::option::of(0..300_u64),
    ) {
        let settings = Settings {
            model: model.then(|| "big".to_owned()),
            budget: Budget { tokens, visits: Some(5), ..Budget::default() },
            ..Settings::default()
        };
        let mut session = TestSession::start(&agent(), ops(&list), settings.clone()).unwrap();
        let mut state = seed;
        drive_at_random(&mut session, |sides| {
            // A linear congruential generator, so that a failing case is reproducible from its
            // seed.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % sides
        });
        // After each step the run folded from the start equals the run resumed from snapshots.
        let mut refolded = agent().start(&ops(&list), &settings).unwrap();
        for (index, step) in session.steps().iter().enumerate() {
            refolded.fold(step).unwrap();
            let resumed = agent().resume(&session.steps()[..=index]).unwrap();
            prop_assert_eq!(resumed.next(), refolded.next());
            prop_assert_eq!(resumed.usage(), refolded.usage());
            prop_assert_eq!(resumed.state_json().unwrap(), refolded.state_json().unwrap());
        }
        // No at-most-once call has more outcomes than intents, and between two intents there is an
        // outcome or a person's answer.
        let mut intended = false;
        for step in session.steps() {
            match &step.body {
                StepBody::Intent { .. } => {
                    prop_assert!(!intended);
                    intended = true;
                }
                StepBody::Answer { .. } => intended = false,
                StepBody::Outcome { effect, .. } if effect.kind == EffectKind::Tools => intended = false,
                _ => {}
            }
        }
    }
}
