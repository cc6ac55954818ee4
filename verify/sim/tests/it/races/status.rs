//! The same events in any order give one status.

use journal::clock::Stamp;
use journal::event::{About, Draft, Event, EventStatus, Writer};
use journal::id::SessionId;
use journal::item::Item;
use journal::read;
use journal::status::status;
use journal::store::{Condition, Store};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::bench::Bench;

on_both_stores!(events_stored_in_any_order_give_one_status_and_list);

/// Random events, some of them duplicated, and another order of them.
fn shuffled() -> impl Strategy<Value = (Vec<Sample>, Vec<Sample>)> {
    let announced = (0..EventStatus::ALL.len(), 0..Writer::ALL.len(), 0_u32..4, 0_i64..60);
    let events = prop::collection::btree_map(0_i64..60, announced, 1..24);
    let events = events.prop_map(|events| events.into_iter().collect::<Vec<_>>());
    events.prop_flat_map(|events| (Just(events.clone()), Just(events).prop_shuffle()))
}

/// A timestamp, and indexes of a status and a writer with a number.
type Sample = (i64, (usize, usize, u32, i64));

fn item(session: &SessionId, (at, (status, writer, number, _)): Sample) -> Item {
    let about = [About::Attempt, About::Epoch, About::Step][number as usize % 3](number);
    let stamp = Stamp::from_nanos(1_795_257_000_000_000_000 + at);
    let draft = Draft::new(EventStatus::ALL[status], about);
    draft.to_item(session, Writer::ALL[writer], stamp, None, 1_900_000_000)
}

#[test]
fn events_in_any_order_give_one_status() {
    proptest!(Config::with_cases(500), |((events, others) in shuffled())| {
        let session = SessionId::fresh();
        let read = |announced: &[Sample]| -> Vec<Event> {
            announced.iter().map(|announced| Event::from_item(&item(&session, *announced)).unwrap()).collect()
        };
        let (events, others) = (read(&events), read(&others));
        prop_assert_eq!(status(&events), status(&others));
        prop_assert_eq!(status(&events), status(events.iter().chain(&others)));
    });
}

/// Every order of a whole session's events.
#[test]
fn all_orders_of_a_sessions_events_give_one_status() {
    use EventStatus as E;
    let session = SessionId::fresh();
    let announced = [
        (E::SessionInitiated, About::Session),
        (E::AgentInvocationStarted, About::Attempt(10)),
        (E::AgentBackgroundTaskStarted, About::Step(1)),
        (E::AgentLost, About::Epoch(1)),
        (E::AgentBackgroundTaskSuspended, About::Step(4)),
        (E::InputReceived, About::Step(5)),
        (E::AgentBackgroundTaskResumed, About::Step(6)),
        (E::CancelRequested, About::Session),
    ];
    for length in 1..=announced.len() {
        let mut events: Vec<_> = (0_i64..)
            .zip(&announced[..length])
            .map(|(at, (status, about))| {
                let stamp = Stamp::from_millis(at);
                let item =
                    Draft::new(*status, *about).to_item(&session, Writer::Agent, stamp, None, 0);
                Event::from_item(&item).unwrap()
            })
            .collect();
        let expected = status(&events);
        let mut orders = 0;
        permute(&mut events, length, &mut |events| {
            orders += 1;
            assert_eq!(status(events), expected);
        });
        assert_eq!(orders, (1..=length).product::<usize>());
    }
}

fn permute<T>(items: &mut [T], length: usize, see: &mut impl FnMut(&[T])) {
    if length <= 1 {
        return see(items);
    }
    for place in 0..length {
        permute(items, length - 1, see);
        items.swap(if length.is_multiple_of(2) { place } else { 0 }, length - 1);
    }
}

fn events_stored_in_any_order_give_one_status_and_list<S: Store>(bench: &Bench<S>) {
    let mut runner =
        TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
    let ran = runner.run(&shuffled(), |(events, others)| {
        let lists = [events, others].map(|announced| {
            let (store, session) = (bench.store.clone(), SessionId::fresh());
            bench.io.wait(async move {
                for announced in announced {
                    let item = item(&session, announced);
                    store.put(item, Condition::Absent).await.unwrap();
                }
                let events = read::events(&store, &session).await.unwrap();
                let list: Vec<_> = events.iter().map(|e| (e.stamp, e.status, e.about)).collect();
                (status(&events), list)
            })
        });
        prop_assert_eq!(&lists[0], &lists[1]);
        Ok(())
    });
    ran.unwrap();
}
