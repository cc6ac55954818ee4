//! Admission on both stores, with concurrent requests.

use std::time::Duration;

use graph::profile::Limits;
use invoker::admission::{Refusal, Rules, WINDOW, admit};
use journal::announce::Announcer;
use journal::chain::{Author, End, end_session};
use journal::clock::{Clock, Hlc, Stamp};
use journal::dynamo::DynamoStore;
use journal::event::Writer;
use journal::id::{Runner, SessionId};
use journal::key;
use journal::lease::Lease;
use journal::seal::seal;
use journal::sqlite::{Durability, SqliteStore};
use journal::step::Ending;
use journal::store::{Query, Store, query_all};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use workflow::contract::InvokeRequest;
use workflow::trigger::Trigger;

/// Number of concurrent requests.
const CROWD: usize = 50;

macro_rules! on_both_stores {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("journal.db");
                super::$name(super::SqliteStore::open(&path, super::Durability::Relaxed).unwrap()).await;
            })+
        }
        mod dynamodb {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                let Some(store) = super::dynamodb().await else { return };
                super::$name(store).await;
            })+
        }
    };
}

on_both_stores!(
    of_concurrent_sessions_with_one_key_one_is_admitted,
    concurrent_sessions_are_admitted_up_to_the_limit,
    a_slot_is_free_again_only_after_its_window,
    a_slot_of_a_clock_that_was_ahead_is_free,
    copies_of_one_request_take_one_slot,
    only_an_unsuccessful_session_releases_its_key,
    of_concurrent_takeovers_of_a_key_one_succeeds,
    a_session_past_its_deadline_releases_its_key,
    a_session_that_has_begun_is_never_refused,
    a_key_belongs_to_one_agent,
    repeats_about_one_function_attach_to_the_first,
);

#[expect(clippy::disallowed_methods, reason = "the test runner passes DynamoDB's address")]
async fn dynamodb() -> Option<DynamoStore> {
    let Ok(endpoint) = std::env::var("DAYBOOK_TEST_DYNAMODB") else {
        println!("skipped: DAYBOOK_TEST_DYNAMODB names no DynamoDB endpoint");
        return None;
    };
    Some(DynamoStore::fresh_for_tests(&endpoint).await.unwrap())
}

fn now() -> Stamp {
    Stamp::parse("2026-11-21T10:00:00Z").unwrap()
}

fn rules(per_hour: u32) -> Rules {
    Rules { agents: packs::all().into(), limits: Limits::of("incident", per_hour) }
}

fn incident(key: &str) -> Value {
    json!({ "agent": "incident", "dedupe_key": key })
}

fn request(detail: Value, asked_at: Stamp) -> InvokeRequest {
    InvokeRequest {
        session_id: SessionId::fresh(),
        execution_arn: "arn".to_owned(),
        detail,
        expires_at: now().after(Duration::from_secs(90 * 86_400)).seconds(),
        seen: asked_at,
        asked_at,
        invocation: 1,
        retry: 0,
        supersedes: 0,
    }
}

async fn apply<S: Store>(store: &S, limit: u32, request: &InvokeRequest) -> Result<(), Refusal> {
    let rules = rules(limit);
    let trigger = Trigger::parse_or(&request.detail, rules.default_agent()).unwrap();
    admit(store, &rules, request, &trigger).await.unwrap().map(|_| ())
}

/// Applies for all requests concurrently.
async fn crowd<S: Store>(
    store: &S,
    limit: u32,
    requests: Vec<InvokeRequest>,
) -> Vec<Result<(), Refusal>> {
    let mut set = JoinSet::new();
    for request in requests {
        let store = store.clone();
        set.spawn(async move { apply(&store, limit, &request).await });
    }
    set.join_all().await
}

fn admitted(answers: &[Result<(), Refusal>]) -> usize {
    answers.iter().filter(|answer| answer.is_ok()).count()
}

async fn slots_taken<S: Store>(store: &S) -> usize {
    let slots = Query::prefix(key::admit("incident"), key::SLOT_PREFIX);
    query_all(store, slots).await.unwrap().len()
}

/// Ends and seals a session.
async fn end<S: Store>(store: &S, request: &InvokeRequest, ending: Ending) {
    let hlc = Hlc::new(Clock::fixed(now()), now());
    let author = Author {
        session: request.session_id.clone(),
        runner: Runner::fresh("poller"),
        expires_at: request.expires_at,
    };
    let end = End { ending, error: None, category: None, result: Value::Null };
    let step = end_session(store, &hlc, &author, &end).await.unwrap();
    let announcer = Announcer {
        store,
        hlc: &hlc,
        session: &request.session_id,
        writer: Writer::Poller,
        expires_at: request.expires_at,
    };
    seal(store, &announcer, &step).await.unwrap();
}

async fn of_concurrent_sessions_with_one_key_one_is_admitted<S: Store>(store: S) {
    let requests: Vec<_> = (0..CROWD).map(|_| request(incident("k"), now())).collect();
    let ids: Vec<String> = requests.iter().map(|r| r.session_id.to_string()).collect();
    let answers = crowd(&store, 20, requests).await;
    assert_eq!(admitted(&answers), 1);
    let mut holders: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    holders.dedup();
    let [Refusal::Duplicate { key, holder }] = holders.as_slice() else { panic!("{holders:?}") };
    assert!(key == "k" && ids.contains(holder), "all refusals name the same holder");
    assert_eq!(slots_taken(&store).await, 1, "a duplicate takes no slot");
}

async fn repeats_about_one_function_attach_to_the_first<S: Store>(store: S) {
    let report = |id: &str, function: &str, at: u64| {
        let dimensions = json!([{"name": "FunctionName", "value": function}]);
        let trigger =
            json!({"MetricName": "Errors", "Namespace": "AWS/Lambda", "Dimensions": dimensions});
        let input = json!({"AlarmName": id, "NewStateValue": "ALARM", "StateChangeTime": id, "Trigger": trigger});
        request(json!({"agent": "incident", "input": input}), now().after(Duration::from_secs(at)))
    };
    let first = report("a", "orders", 0);
    apply(&store, 20, &first).await.unwrap();
    apply(&store, 20, &first).await.unwrap();
    let Err(Refusal::Repeat { holder, subject, .. }) =
        apply(&store, 20, &report("b", "orders", 299)).await
    else {
        panic!("a repeat was admitted")
    };
    assert_eq!((holder.as_str(), subject.as_str()), (first.session_id.as_str(), "orders"));
    apply(&store, 20, &report("c", "carts", 1)).await.unwrap();
    let later = report("d", "orders", 301);
    apply(&store, 20, &later).await.unwrap();
    end(&store, &later, Ending::Failed).await;
    apply(&store, 20, &report("e", "orders", 302)).await.unwrap();
}

async fn concurrent_sessions_are_admitted_up_to_the_limit<S: Store>(store: S) {
    let requests = (0..CROWD).map(|n| request(incident(&n.to_string()), now())).collect();
    let answers = crowd(&store, 20, requests).await;
    assert_eq!(admitted(&answers), 20);
    let refused = answers.into_iter().find_map(Result::err).unwrap().to_string();
    assert!(refused.starts_with("circuit breaker: too many incidents in window"), "{refused}");
}

async fn a_slot_is_free_again_only_after_its_window<S: Store>(store: S) {
    apply(&store, 1, &request(incident("a"), now())).await.unwrap();
    let early = now().after(WINDOW - Duration::from_millis(1));
    assert!(apply(&store, 1, &request(incident("b"), early)).await.is_err());
    apply(&store, 1, &request(incident("c"), now().after(WINDOW))).await.unwrap();
}

async fn a_slot_of_a_clock_that_was_ahead_is_free<S: Store>(store: S) {
    let ahead = now().after(12 * WINDOW);
    apply(&store, 1, &request(incident("ahead"), ahead)).await.unwrap();
    assert!(apply(&store, 1, &request(incident("then"), ahead)).await.is_err());
    assert_eq!(invoker::admission::slots_taken(&store, "incident", now()).await.unwrap(), []);
    let requests = (0..CROWD).map(|n| request(incident(&n.to_string()), now())).collect();
    assert_eq!(admitted(&crowd(&store, 1, requests).await), 1);
}

async fn copies_of_one_request_take_one_slot<S: Store>(store: S) {
    // Other sessions hold slots that are about to become free.
    let others = (0..8).map(|n| request(incident(&format!("old {n}")), now().before(WINDOW)));
    crowd(&store, 20, others.collect()).await;
    let one = request(incident("k"), now());
    let answers = crowd(&store, 20, vec![one.clone(); CROWD]).await;
    assert_eq!(admitted(&answers), CROWD);
    let slots = Query::prefix(key::admit("incident"), key::SLOT_PREFIX);
    let slots = query_all(&store, slots).await.unwrap();
    let is_ours =
        |slot: &&journal::item::Item| slot.text_opt("Session") == Some(one.session_id.as_str());
    assert_eq!(slots.iter().filter(is_ours).count(), 1);
}

async fn only_an_unsuccessful_session_releases_its_key<S: Store>(store: S) {
    for (ending, given_up) in [
        (Ending::Completed, false),
        (Ending::Failed, true),
        (Ending::TimedOut, true),
        (Ending::Cancelled, true),
        (Ending::Rejected, true),
    ] {
        let key = format!("{ending:?}");
        let holder = request(incident(&key), now());
        apply(&store, 1_000, &holder).await.unwrap();
        assert!(apply(&store, 1_000, &request(incident(&key), now())).await.is_err(), "{key}");
        end(&store, &holder, ending).await;
        let next = apply(&store, 1_000, &request(incident(&key), now())).await;
        assert_eq!(next.is_ok(), given_up, "{key}");
    }
}

async fn of_concurrent_takeovers_of_a_key_one_succeeds<S: Store>(store: S) {
    let holder = request(incident("k"), now());
    apply(&store, 1_000, &holder).await.unwrap();
    end(&store, &holder, Ending::Failed).await;
    let requests = (0..CROWD).map(|_| request(incident("k"), now())).collect();
    assert_eq!(admitted(&crowd(&store, 1_000, requests).await), 1);
}

async fn a_session_past_its_deadline_releases_its_key<S: Store>(store: S) {
    apply(&store, 20, &request(incident("k"), now())).await.unwrap();
    let late = now().after(Duration::from_secs(88 * 86_400 + 1));
    apply(&store, 20, &request(incident("k"), late)).await.unwrap();
}

async fn a_session_that_has_begun_is_never_refused<S: Store>(store: S) {
    let first = request(incident("k"), now());
    apply(&store, 1, &first).await.unwrap();
    let lease = Lease::unclaimed(0, now());
    lease.create(&store, &first.session_id, first.expires_at).await.unwrap();
    // Meanwhile another session takes its slot.
    apply(&store, 1, &request(incident("other"), now().after(WINDOW))).await.unwrap();
    let again = InvokeRequest { asked_at: now().after(WINDOW), invocation: 2, ..first };
    apply(&store, 1, &again).await.unwrap();
}

async fn a_key_belongs_to_one_agent<S: Store>(store: S) {
    apply(&store, 20, &request(incident("k"), now())).await.unwrap();
    let other = request(json!({ "agent": "checkup", "dedupe_key": "k" }), now());
    apply(&store, 20, &other).await.unwrap();
    let unnamed = request(json!({}), now());
    apply(&store, 20, &unnamed).await.unwrap();
}
