//! The conformance suite of [`ExecutionStore`], which every implementation runs.
//!
//! Each case starts its own executions, so all of them can share one store. A case panics if the store
//! does not conform.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and says where")]

use asl::execution::Outcome;
use asl::history::{Event, EventKind, Failure};
use asl::time::Timestamp;
use uuid::Uuid;

use super::redrives::Redriven;
use super::store::{ExecutionStore, Inserted, MachineRow, NewExecution, RUNNING, Record};

const MACHINE_ARN: &str = "arn:aws:states:us-east-1:000000000000:stateMachine:conformance";
const STARTED_AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);

pub async fn all<S: ExecutionStore>(store: S) {
    nothing_is_recorded_before_the_first_execution(&store).await;
    each_text_of_a_machine_has_one_row(&store).await;
    an_execution_is_read_as_it_was_started(&store).await;
    a_start_may_be_repeated_and_its_name_is_taken(&store).await;
    executions_are_listed_in_the_order_of_starting(&store).await;
    an_append_may_be_repeated(&store).await;
    an_end_closes_the_execution_with_its_history(&store).await;
    a_closed_execution_stays_as_it_is(&store).await;
    an_execution_without_success_is_opened_again(&store).await;
    a_history_is_read_in_parts_and_both_directions(&store).await;
    executions_are_counted_by_status(&store).await;
    the_newest_time_is_the_newest_of_all_that_is_recorded(&store).await;
}

fn at(millis: i64) -> Timestamp {
    STARTED_AT.plus_millis(millis)
}

fn new(input: &str) -> NewExecution {
    let name = Uuid::new_v4().to_string();
    NewExecution {
        arn: format!("arn:aws:states:us-east-1:000000000000:execution:conformance:{name}"),
        name,
        input: input.to_owned(),
        started_at: STARTED_AT,
        token_seed: "seed".to_owned(),
    }
}

fn events(ids: std::ops::RangeInclusive<u64>) -> Vec<Event> {
    let event = |id| Event {
        id,
        previous_event_id: id - 1,
        timestamp: at(i64::try_from(id).unwrap()),
        kind: EventKind::ParallelStateStarted,
    };
    ids.map(event).collect()
}

async fn machine<S: ExecutionStore>(store: &S) -> MachineRow {
    store.open_machine(MACHINE_ARN, "{}", STARTED_AT).await.unwrap()
}

async fn start<S: ExecutionStore>(store: &S, executions: Vec<NewExecution>) -> Vec<Record> {
    let machine = machine(store).await.id;
    let started = store.start_all(machine, executions.clone()).await.unwrap();
    assert!(started.iter().all(|one| matches!(one, Inserted::Started(_))), "{started:?}");
    let mut records = Vec::new();
    for execution in executions {
        records.push(store.find(&execution.arn).await.unwrap().unwrap());
    }
    records
}

async fn start_one<S: ExecutionStore>(store: &S) -> Record {
    start(store, vec![new("{}")]).await.pop().unwrap()
}

async fn whole_history<S: ExecutionStore>(store: &S, execution: i64) -> Vec<Event> {
    let bodies = store.history(execution, 0, false, usize::MAX).await.unwrap();
    bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect()
}

/// Reads work on a store that was never opened for executions.
pub async fn nothing_is_recorded_before_the_first_execution<S: ExecutionStore>(store: &S) {
    assert_eq!(store.newest_time().await.unwrap(), None);
    machine(store).await;
    assert_eq!(store.newest_time().await.unwrap(), None);
    assert_eq!(store.counts().await.unwrap(), []);
}

/// A definition that is used again keeps its row and its creation time.
pub async fn each_text_of_a_machine_has_one_row<S: ExecutionStore>(store: &S) {
    let first = machine(store).await;
    assert_eq!(first.created_at, STARTED_AT);
    assert_eq!(store.open_machine(MACHINE_ARN, "{}", at(1)).await.unwrap(), first);
    let other = store.open_machine(MACHINE_ARN, "{ }", at(2)).await.unwrap();
    assert_ne!(other.id, first.id);
    assert_eq!(other.created_at, at(2));
    assert_eq!(store.definition(first.id).await.unwrap(), "{}");
    assert_eq!(store.definition(other.id).await.unwrap(), "{ }");
    assert!(store.definition(i64::MAX).await.is_err());
}

/// A start stores all fields; an unknown ARN finds nothing.
pub async fn an_execution_is_read_as_it_was_started<S: ExecutionStore>(store: &S) {
    let NewExecution { arn, name, input, started_at, token_seed } = new(r#"{"a":"ü"}"#);
    assert_eq!(store.find(&arn).await.unwrap(), None);
    let execution = NewExecution {
        arn: arn.clone(),
        name: name.clone(),
        input: input.clone(),
        started_at,
        token_seed: token_seed.clone(),
    };
    let found = start(store, vec![execution]).await.pop().unwrap();
    let expected = Record {
        id: found.id,
        arn,
        name,
        machine: machine(store).await.id,
        machine_arn: MACHINE_ARN.to_owned(),
        status: RUNNING.to_owned(),
        input,
        output: None,
        error: None,
        cause: None,
        started_at,
        stopped_at: None,
        redriven: None,
        token_seed,
    };
    assert_eq!(found, expected);
}

/// Repeating a start returns the first one. The name is taken for another input, and after the execution
/// has ended. A refusal does not keep the others of its transaction from starting.
pub async fn a_start_may_be_repeated_and_its_name_is_taken<S: ExecutionStore>(store: &S) {
    let machine = machine(store).await.id;
    let first = new("1");
    let start = async |executions| store.start_all(machine, executions).await.unwrap();
    assert_eq!(start(vec![first.clone()]).await, [Inserted::Started(STARTED_AT)]);
    let later = NewExecution { started_at: at(5), token_seed: "x".to_owned(), ..first.clone() };
    let other = NewExecution { input: "2".to_owned(), ..first.clone() };
    let fresh = new("3");
    assert_eq!(
        start(vec![later, other, fresh.clone()]).await,
        [Inserted::Started(STARTED_AT), Inserted::Taken, Inserted::Started(STARTED_AT)]
    );
    let record = store.find(&first.arn).await.unwrap().unwrap();
    assert_eq!((record.started_at, &*record.token_seed), (STARTED_AT, "seed"));
    assert!(store.find(&fresh.arn).await.unwrap().is_some());
    let ended = (Outcome::TimedOut, at(9));
    store.append(record.id, &events(1..=1), Some(&ended)).await.unwrap();
    assert_eq!(start(vec![first]).await, [Inserted::Taken]);
}

/// Running executions list upwards, in pages or by id; all executions list downwards, or by status.
pub async fn executions_are_listed_in_the_order_of_starting<S: ExecutionStore>(store: &S) {
    let started = start(store, (0..5).map(|_| new("{}")).collect()).await;
    let ids: Vec<i64> = started.iter().map(|record| record.id).collect();
    assert!(ids.is_sorted() && ids[0] > 0, "{ids:?}");
    store.append(ids[2], &events(1..=1), Some(&(Outcome::TimedOut, at(9)))).await.unwrap();
    let of = |records: Vec<Record>| records.iter().map(|record| record.id).collect::<Vec<_>>();
    let running = [ids[0], ids[1], ids[3], ids[4]];
    assert_eq!(of(store.running_after(ids[0] - 1, 9).await.unwrap()), running);
    assert_eq!(of(store.running_after(ids[0] - 1, 2).await.unwrap()), running[..2]);
    assert_eq!(of(store.running_after(ids[1], 9).await.unwrap()), running[2..]);
    assert_eq!(of(store.running(&[ids[4], ids[2], ids[0]]).await.unwrap()), [ids[0], ids[4]]);
    assert!(store.running(&[]).await.unwrap().is_empty());
    let listed =
        async |status, before, limit| of(store.newest_first(status, before, limit).await.unwrap());
    assert_eq!(listed(None, i64::MAX, 2).await, [ids[4], ids[3]]);
    assert_eq!(listed(None, ids[3], 3).await, [ids[2], ids[1], ids[0]]);
    assert_eq!(listed(Some(RUNNING), ids[4], 2).await, [ids[3], ids[1]]);
    assert_eq!(listed(Some("TIMED_OUT"), i64::MAX, 1).await, [ids[2]]);
    assert!(listed(Some("NONE"), i64::MAX, 1).await.is_empty());
}

/// Repeating an append, whole or with further events, leaves existing events unchanged.
pub async fn an_append_may_be_repeated<S: ExecutionStore>(store: &S) {
    let id = start_one(store).await.id;
    store.append(id, &events(1..=2), None).await.unwrap();
    store.append(id, &events(1..=2), None).await.unwrap();
    let mut changed = events(1..=3);
    changed[0].kind = EventKind::ForkSucceeded(asl::definition::StateType::Map);
    store.append(id, &changed, None).await.unwrap();
    assert_eq!(whole_history(store, id).await, events(1..=3));
    // Another execution's history uses the same event ids.
    let other = start_one(store).await.id;
    store.append(other, &events(1..=1), None).await.unwrap();
    assert_eq!(whole_history(store, other).await, events(1..=1));
}

/// Each outcome is stored as `DescribeExecution` answers it.
pub async fn an_end_closes_the_execution_with_its_history<S: ExecutionStore>(store: &S) {
    let failure = Failure::new("E", Some("why".to_owned()));
    let nameless = Failure { error: None, cause: None };
    for (outcome, status, output, error, cause) in [
        (Outcome::Succeeded("7".to_owned()), "SUCCEEDED", Some("7"), None, None),
        (Outcome::Failed(failure.clone()), "FAILED", None, Some("E"), Some("why")),
        (Outcome::Failed(nameless), "FAILED", None, None, None),
        (Outcome::TimedOut, "TIMED_OUT", None, None, None),
        (Outcome::Aborted(failure), "ABORTED", None, Some("E"), Some("why")),
    ] {
        let started = start_one(store).await;
        store.append(started.id, &events(1..=2), Some(&(outcome, at(2)))).await.unwrap();
        let found = store.find(&started.arn).await.unwrap().unwrap();
        let text = |text: Option<&str>| text.map(str::to_owned);
        let expected = Record {
            status: status.to_owned(),
            output: text(output),
            error: text(error),
            cause: text(cause),
            stopped_at: Some(at(2)),
            ..started
        };
        assert_eq!(found, expected);
        assert_eq!(whole_history(store, found.id).await, events(1..=2));
    }
}

/// A late write of unknown outcome does not replace the first end.
pub async fn a_closed_execution_stays_as_it_is<S: ExecutionStore>(store: &S) {
    let Record { id, arn, .. } = start_one(store).await;
    let first = (Outcome::Succeeded("1".to_owned()), at(2));
    store.append(id, &events(1..=2), Some(&first)).await.unwrap();
    let closed = store.find(&arn).await.unwrap();
    let second = (Outcome::TimedOut, at(3));
    store.append(id, &events(1..=2), Some(&second)).await.unwrap();
    assert_eq!(store.find(&arn).await.unwrap(), closed);
}

/// A redrive appends its event, clears the end and counts. It follows the last event, and neither repeats nor takes a
/// success back. An end that is written late again does not close what was redriven.
pub async fn an_execution_without_success_is_opened_again<S: ExecutionStore>(store: &S) {
    let started = start_one(store).await;
    let (id, arn) = (started.id, started.arn.clone());
    let redriven = |id: u64, millis| Event {
        kind: EventKind::ExecutionRedriven { redrive_count: 1 },
        timestamp: at(millis),
        ..events(id..=id).remove(0)
    };
    let redrive = async |event, token| store.redrive(id, &event, token).await.unwrap();
    assert!(!redrive(redriven(1, 1), None).await, "it runs");
    let failed = (Outcome::Failed(Failure::new("E", None)), at(2));
    store.append(id, &events(1..=2), Some(&failed)).await.unwrap();
    assert!(!redrive(redriven(2, 9), None).await && !redrive(redriven(4, 9), None).await);
    for _ in 0..2 {
        assert!(redrive(redriven(3, 9), Some("once")).await);
        store.append(id, &events(1..=2), Some(&failed)).await.unwrap();
    }
    let token = Some("once".to_owned());
    let expected = Record { redriven: Some(Redriven { count: 1, at: at(9), token }), ..started };
    assert_eq!(store.find(&arn).await.unwrap(), Some(expected));
    assert_eq!(whole_history(store, id).await, [events(1..=2), vec![redriven(3, 9)]].concat());
    assert!(!redrive(redriven(4, 10), None).await, "it runs again");
    store.append(id, &events(4..=4), Some(&(Outcome::TimedOut, at(11)))).await.unwrap();
    assert!(redrive(redriven(5, 12), None).await);
    let found = store.find(&arn).await.unwrap().unwrap();
    assert_eq!(found.redriven, Some(Redriven { count: 2, at: at(12), token: None }));
    let succeeded = (Outcome::Succeeded("1".to_owned()), at(13));
    store.append(id, &events(6..=6), Some(&succeeded)).await.unwrap();
    assert!(!redrive(redriven(7, 14), None).await, "it succeeded");
}

/// Both bounds are exclusive; the limit counts from the bound.
pub async fn a_history_is_read_in_parts_and_both_directions<S: ExecutionStore>(store: &S) {
    let id = start_one(store).await.id;
    assert_eq!(whole_history(store, id).await, []);
    store.append(id, &events(1..=12), None).await.unwrap();
    let read = async |after, reverse, limit| {
        let bodies = store.history(id, after, reverse, limit).await.unwrap();
        bodies.iter().map(|b| serde_json::from_str::<Event>(b).unwrap().id).collect::<Vec<_>>()
    };
    assert_eq!(read(0, false, 3).await, [1, 2, 3]);
    assert_eq!(read(9, false, 9).await, [10, 11, 12]);
    assert!(read(12, false, 9).await.is_empty());
    assert_eq!(read(i64::MAX, true, 3).await, [12, 11, 10]);
    assert_eq!(read(3, true, 9).await, [2, 1]);
}

/// The counts omit a status without executions.
pub async fn executions_are_counted_by_status<S: ExecutionStore>(store: &S) {
    let count = async |status: &str| {
        let counts = store.counts().await.unwrap();
        assert!(counts.is_sorted(), "{counts:?}");
        counts.iter().find(|(name, _)| name == status).map_or(0, |(_, count)| *count)
    };
    let before = (count(RUNNING).await, count("ABORTED").await);
    let started = start(store, vec![new("{}"), new("{}")]).await;
    assert_eq!(count(RUNNING).await, before.0 + 2);
    let ended = (Outcome::Aborted(Failure::default()), at(1));
    store.append(started[0].id, &events(1..=1), Some(&ended)).await.unwrap();
    assert_eq!((count(RUNNING).await, count("ABORTED").await), (before.0 + 1, before.1 + 1));
}

/// The newest time covers a start, an end, and an event of a running execution.
pub async fn the_newest_time_is_the_newest_of_all_that_is_recorded<S: ExecutionStore>(store: &S) {
    let newest = async || store.newest_time().await.unwrap();
    let started = NewExecution { started_at: at(1_000), ..new("{}") };
    let id = start(store, vec![started]).await[0].id;
    assert_eq!(newest().await, Some(at(1_000)));
    store.append(id, &events(2_000..=2_000), None).await.unwrap();
    assert_eq!(newest().await, Some(at(2_000)));
    store.append(id, &events(2_500..=2_500), Some(&(Outcome::TimedOut, at(3_000)))).await.unwrap();
    assert_eq!(newest().await, Some(at(3_000)));
}
