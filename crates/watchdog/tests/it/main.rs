//! The watchdog over both stores, with a fake of Step Functions and the agent runtime on loopback.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentcore::Runtime;
use aws_credential_types::Credentials;
use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use journal::announce::Announcer;
use journal::chain::{Author, Head, append};
use journal::clock::{Clock, Hlc, Stamp};
use journal::dynamo::DynamoStore;
use journal::event::{About, Draft, EventStatus, Writer};
use journal::id::{Runner, SessionId};
use journal::item::{Hash, Item};
use journal::key;
use journal::lease::{self, Hold, Lease, WhyHeld};
use journal::read;
use journal::sqlite::{Durability, SqliteStore};
use journal::step::{EffectKind, EffectRef, Ending, StepBody};
use journal::store::{Condition, Query, Store, query_all};
use serde_json::{Value, json};
use watchdog::judge::{Decision, Execution, How, Observed, judge};
use watchdog::{Cloud, Event, Report, Watchdog};

macro_rules! on_both_stores {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("journal.db");
                let store = super::SqliteStore::open(&path, super::Durability::Relaxed).unwrap();
                super::$name(super::world(store).await).await;
            })+
        }
        mod dynamodb {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                let Some(store) = super::dynamodb().await else { return };
                super::$name(super::world(store).await).await;
            })+
        }
    };
}

on_both_stores!(
    a_session_whose_execution_failed_gets_its_verdict_once,
    a_session_whose_execution_ran_out_of_time_is_timed_out,
    a_session_is_left_alone_while_any_of_its_executions_runs,
    a_stopped_execution_can_be_resumed_for_ten_minutes,
    a_session_that_never_began_is_ended_at_once,
    a_session_with_an_end_step_gets_its_verdict,
    a_session_that_waits_for_a_person_is_spared_and_forgotten,
    a_session_that_waits_for_its_version_is_spared,
    a_cancelled_session_is_ended_as_cancelled,
    a_sweep_finds_unannounced_ends_and_closes_leases,
    a_sweep_looks_at_no_more_than_its_limit,
    sessions_that_wait_for_a_place_do_not_hide_a_lost_one,
    an_unreadable_execution_does_not_block_the_sweep,
);

#[expect(
    clippy::disallowed_methods,
    reason = "the environment of the test run names the DynamoDB endpoint"
)]
async fn dynamodb() -> Option<DynamoStore> {
    let Ok(endpoint) = std::env::var("DAYBOOK_TEST_DYNAMODB") else {
        println!("skipped: DAYBOOK_TEST_DYNAMODB names no DynamoDB endpoint");
        return None;
    };
    Some(DynamoStore::fresh_for_tests(&endpoint).await.unwrap())
}

fn began() -> Stamp {
    Stamp::parse("2026-11-21T10:00:00Z").unwrap()
}

/// The time of the watchdog's check, long after all records.
fn now() -> Stamp {
    began().after(Duration::from_secs(3_600))
}

fn expires_at() -> i64 {
    began().after(Duration::from_secs(90 * 86_400)).seconds()
}

/// Executions by name: their status, and when they ended.
type Executions = Arc<Mutex<BTreeMap<String, (&'static str, Stamp)>>>;

struct World<S> {
    store: S,
    watchdog: Watchdog<S>,
    executions: Executions,
    stopped: Arc<Mutex<Vec<String>>>,
}

async fn world<S: Store>(store: S) -> World<S> {
    let executions = Executions::default();
    let stopped = Arc::<Mutex<Vec<String>>>::default();
    let (known, seen) = (Arc::clone(&executions), Arc::clone(&stopped));
    let describe = move |body: Bytes| {
        let answer = described(&known, &body);
        async move { answer }
    };
    let stop = move |headers: axum::http::HeaderMap| {
        let id = headers["x-amzn-bedrock-agentcore-runtime-session-id"].to_str().unwrap();
        seen.lock().unwrap().push(id.to_owned());
        async { (StatusCode::NOT_FOUND, [("x-amzn-errortype", "ResourceNotFoundException")], "{}") }
    };
    let router = Router::new()
        .route("/", post(describe))
        .route("/runtimes/{arn}/stopruntimesession", post(stop));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let credentials = Credentials::from_keys("local", "local", None);
    let client = aws_sdk_bedrockagentcore::Client::from_conf(
        aws_sdk_bedrockagentcore::Config::builder()
            .behavior_version_latest()
            .region(aws_sdk_bedrockagentcore::config::Region::new("us-east-1"))
            .credentials_provider(credentials.clone())
            .endpoint_url(&endpoint)
            .build(),
    );
    let cloud = Cloud {
        executions: aws_sdk_sfn::Client::from_conf(
            aws_sdk_sfn::Config::builder()
                .behavior_version_latest()
                .region(aws_sdk_sfn::config::Region::new("us-east-1"))
                .credentials_provider(credentials)
                .endpoint_url(&endpoint)
                .build(),
        ),
        runtime: Runtime { client, arn: "arn".to_owned(), qualifier: None },
    };
    let watchdog = Watchdog::new(store.clone(), cloud, Clock::fixed(now()));
    World { store, watchdog, executions, stopped }
}

fn described(known: &Executions, body: &[u8]) -> (StatusCode, String) {
    let request: Value = serde_json::from_slice(body).unwrap();
    let arn = request["executionArn"].as_str().unwrap();
    let name = arn.rsplit(':').next().unwrap();
    match known.lock().unwrap().get(name) {
        None => {
            let error = json!({ "__type": "ExecutionDoesNotExist", "message": arn });
            (StatusCode::BAD_REQUEST, error.to_string())
        }
        Some(("BROKEN", _)) => {
            let error = json!({ "__type": "AccessDeniedException", "message": "no" });
            (StatusCode::BAD_REQUEST, error.to_string())
        }
        Some((status, ended)) => {
            let mut answer = json!({
                "executionArn": arn, "stateMachineArn": "arn", "name": name, "status": status,
                "startDate": began().seconds(),
            });
            if *status != "RUNNING" {
                answer["stopDate"] = json!(ended.seconds());
            }
            (StatusCode::OK, answer.to_string())
        }
    }
}

impl<S: Store> World<S> {
    /// A session whose first execution got this status, this long before the watchdog's check.
    async fn session(&self, status: &'static str, before: Duration) -> SessionId {
        let id = SessionId::fresh();
        let arn = format!("arn:aws:states:us-east-1:000000000000:execution:daybook:{id}");
        let item = Item::new(key::session(&id), key::event(began()))
            .with("V", 1_u32)
            .with("Status", "SESSION_INITIATED")
            .with("Timestamp", began().to_string())
            .with("EventId", "initiated")
            .with("Writer", "state-machine")
            .with("ExecutionArn", arn)
            .with("ExpiresAt", expires_at());
        self.store.put(item, Condition::Absent).await.unwrap();
        self.execution(id.as_str(), status, before);
        id
    }

    fn execution(&self, name: &str, status: &'static str, before: Duration) {
        self.executions.lock().unwrap().insert(name.to_owned(), (status, now().before(before)));
    }

    async fn invoked(&self, id: &SessionId) {
        let lease = Lease::unclaimed(0, began());
        assert!(lease.create(&self.store, id, expires_at()).await.unwrap());
    }

    async fn step(&self, id: &SessionId, body: StepBody<Value>) {
        let hlc = Hlc::new(Clock::fixed(began()), began());
        let author = Author {
            session: id.clone(),
            runner: Runner::fresh("agent"),
            expires_at: expires_at(),
        };
        append(&self.store, &hlc, &author, &Head::genesis(), 1, body).await.unwrap();
    }

    async fn announced(&self, id: &SessionId, writer: Writer, draft: Draft) {
        let hlc = Hlc::new(Clock::fixed(began()), began());
        let (store, hlc, session) = (&self.store, &hlc, id);
        let announcer = Announcer { store, hlc, session, writer, expires_at: expires_at() };
        announcer.announce(&draft).await.unwrap();
    }

    async fn told_of(&self, id: &SessionId) -> Report {
        self.watchdog.handle(&Event::Ended { session: id.clone() }).await.unwrap()
    }

    async fn sweep(&self) -> Report {
        self.watchdog.handle(&Event::Sweep).await.unwrap()
    }

    async fn verdict(&self, id: &SessionId) -> Option<(EventStatus, String)> {
        let events = read::events(&self.store, id).await.unwrap();
        let verdict = events.into_iter().find(|event| event.status.is_verdict())?;
        Some((verdict.status, verdict.error.map_or_else(String::new, |error| error.to_string())))
    }

    async fn open_leases(&self) -> usize {
        let mut open = 0;
        for digit in key::SHARDS.chars() {
            let found = query_all(&self.store, Query::open(lease::shard(digit))).await.unwrap();
            open += found.len();
        }
        open
    }
}

const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);

async fn a_session_whose_execution_failed_gets_its_verdict_once<S: Store>(world: World<S>) {
    let id = world.session("FAILED", MINUTE).await;
    world.invoked(&id).await;
    assert_eq!(world.told_of(&id).await.closed, std::slice::from_ref(&id));
    let error = "Unwatched: ExecutionFailed - stale watchdog timeout".to_owned();
    assert_eq!(world.verdict(&id).await, Some((EventStatus::SessionFailed, error)));
    assert_eq!(*world.stopped.lock().unwrap(), [id.to_string()]);
    assert_eq!(world.open_leases().await, 0);
    let before = query_all(&world.store, Query::all(key::session(&id))).await.unwrap();
    assert!(world.told_of(&id).await.closed.is_empty());
    let after = query_all(&world.store, Query::all(key::session(&id))).await.unwrap();
    assert_eq!(before, after, "a second check changes nothing");
}

#[test]
fn a_session_of_a_broken_execution_ends_with_that_name() {
    let observed = Observed { events: &[], step: None, has_lease: true };
    let ended = Execution::Ended { how: How::Broken, at: now() };
    let Decision::End(end) = judge(&observed, &ended, now()) else { panic!("it has ended") };
    assert_eq!(end.category.as_deref(), Some("stale"));
    let error = end.error.unwrap();
    assert_eq!(error.as_str(), "Unwatched: ExecutionBroken - stale watchdog timeout");
}

async fn a_session_whose_execution_ran_out_of_time_is_timed_out<S: Store>(world: World<S>) {
    let id = world.session("TIMED_OUT", MINUTE).await;
    world.told_of(&id).await;
    assert_eq!(world.verdict(&id).await.unwrap().0, EventStatus::SessionTimedOut);
}

async fn a_session_is_left_alone_while_any_of_its_executions_runs<S: Store>(world: World<S>) {
    let id = world.session("FAILED", HOUR).await;
    world.invoked(&id).await;
    world.execution(&format!("{id}-resume-1"), "FAILED", HOUR);
    world.execution(&format!("{id}-resume-2"), "RUNNING", HOUR);
    assert!(world.told_of(&id).await.closed.is_empty());
    assert!(world.sweep().await.closed.is_empty());
    assert_eq!(world.verdict(&id).await, None);
    world.execution(&format!("{id}-resume-2"), "FAILED", HOUR);
    assert_eq!(world.sweep().await.closed, [id]);
}

async fn a_stopped_execution_can_be_resumed_for_ten_minutes<S: Store>(world: World<S>) {
    let id = world.session("ABORTED", 9 * MINUTE).await;
    world.invoked(&id).await;
    assert!(world.told_of(&id).await.closed.is_empty());
    assert_eq!(world.open_leases().await, 1, "a sweep will find it");
    world.execution(id.as_str(), "ABORTED", 10 * MINUTE);
    assert_eq!(world.sweep().await.closed, std::slice::from_ref(&id));
    let (verdict, error) = world.verdict(&id).await.unwrap();
    assert_eq!(verdict, EventStatus::SessionFailed);
    assert_eq!(error, "Unwatched: ExecutionStopped - stale watchdog timeout");
}

async fn a_session_that_never_began_is_ended_at_once<S: Store>(world: World<S>) {
    let id = world.session("ABORTED", MINUTE).await;
    assert_eq!(world.told_of(&id).await.closed, [id]);
}

async fn a_session_with_an_end_step_gets_its_verdict<S: Store>(world: World<S>) {
    let id = world.session("ABORTED", MINUTE).await;
    world.invoked(&id).await;
    let payload = json!({ "answer": 42 });
    let end = StepBody::End {
        ending: Ending::Completed,
        error: None,
        category: None,
        answered_by: None,
        payload,
    };
    world.step(&id, end).await;
    assert_eq!(world.told_of(&id).await.closed, std::slice::from_ref(&id));
    let events = read::events(&world.store, &id).await.unwrap();
    let statuses: Vec<_> = events.iter().map(|event| event.status).collect();
    assert_eq!(
        statuses,
        [
            EventStatus::SessionInitiated,
            EventStatus::AgentBackgroundTaskCompleted,
            EventStatus::SessionSucceeded,
        ]
    );
}

async fn a_session_that_waits_for_a_person_is_spared_and_forgotten<S: Store>(world: World<S>) {
    let id = world.session("FAILED", HOUR).await;
    world.invoked(&id).await;
    let expires_at = now().after(HOUR);
    let effect = EffectRef {
        node: "confirm".to_owned(),
        kind: EffectKind::Ask,
        digest: Hash::genesis(),
        call: 0,
    };
    let ask = StepBody::Ask { effect, expires_at, payload: json!({ "prompt": "Approve?" }) };
    world.step(&id, ask).await;
    let report = world.sweep().await;
    assert_eq!((report.looked_at, report.closed.len()), (1, 0));
    assert_eq!(world.verdict(&id).await, None);
    let events = read::events(&world.store, &id).await.unwrap();
    let announced = events.iter().any(|e| e.status == EventStatus::AgentBackgroundTaskSuspended);
    assert!(announced, "its announcement was missing");
    assert_eq!(world.sweep().await.looked_at, 0, "it is not checked again");
}

async fn a_session_that_waits_for_its_version_is_spared<S: Store>(world: World<S>) {
    let id = world.session("FAILED", HOUR).await;
    world.invoked(&id).await;
    let answer = StepBody::Answer {
        question: 1,
        principal: None,
        payload: json!({ "decision": "approve" }),
    };
    world.step(&id, answer).await;
    let detail = json!({ "agent": "a", "needs": "1", "registered": ["2"], "step": 1 });
    let missing = Draft::new(EventStatus::AgentVersionMissing, About::Attempt(10));
    world.announced(&id, Writer::Agent, missing.with_detail(detail)).await;
    let report = world.sweep().await;
    assert_eq!((report.looked_at, report.closed.len()), (1, 0));
    assert_eq!(world.verdict(&id).await, None);
    let cancel = Draft::new(EventStatus::CancelRequested, About::Session);
    world.announced(&id, Writer::Person, cancel).await;
    world.told_of(&id).await;
    assert_eq!(world.verdict(&id).await.unwrap().0, EventStatus::SessionCancelled);
}

async fn a_cancelled_session_is_ended_as_cancelled<S: Store>(world: World<S>) {
    let id = world.session("FAILED", MINUTE).await;
    let cancel = Draft::new(EventStatus::CancelRequested, About::Session);
    let cancel = cancel.with_detail(json!({ "reason": "enough" }));
    world.announced(&id, Writer::Person, cancel).await;
    world.told_of(&id).await;
    let error = "Cancelled: CancelRequested - enough".to_owned();
    assert_eq!(world.verdict(&id).await, Some((EventStatus::SessionCancelled, error)));
}

async fn a_sweep_finds_unannounced_ends_and_closes_leases<S: Store>(world: World<S>) {
    let failed = world.session("FAILED", HOUR).await;
    let running = world.session("RUNNING", HOUR).await;
    let sealed = world.session("SUCCEEDED", HOUR).await;
    let fresh = world.session("FAILED", HOUR).await;
    for id in [&failed, &running, &sealed] {
        world.invoked(id).await;
    }
    let lease = Lease { heartbeat_at: now().before(MINUTE), ..Lease::unclaimed(0, began()) };
    lease.create(&world.store, &fresh, expires_at()).await.unwrap();
    let end = StepBody::End {
        answered_by: None,
        ending: Ending::Completed,
        error: None,
        category: None,
        payload: Value::Null,
    };
    world.step(&sealed, end).await;
    world.told_of(&sealed).await;
    assert!(Lease::unclaimed(1, began()).write(&world.store, &sealed, expires_at()).await.unwrap());
    let report = world.sweep().await;
    assert_eq!((report.looked_at, report.closed), (3, vec![failed]));
    assert_eq!(world.verdict(&fresh).await, None, "its lease was renewed a minute ago");
    assert_eq!(world.open_leases().await, 2, "those of the running and the fresh session");
}

async fn a_sweep_looks_at_no_more_than_its_limit<S: Store>(world: World<S>) {
    for _ in 0..watchdog::SESSIONS_PER_SWEEP_MAX + 5 {
        // Sessions without records cannot be closed, so their leases stay open.
        let id = SessionId::fresh();
        Lease::unclaimed(0, began()).create(&world.store, &id, expires_at()).await.unwrap();
    }
    assert_eq!(world.sweep().await.looked_at, watchdog::SESSIONS_PER_SWEEP_MAX);
}

async fn sessions_that_wait_for_a_place_do_not_hide_a_lost_one<S: Store>(world: World<S>) {
    let hold = Hold { why: WhyHeld::Capacity, agent: "a".to_owned(), invocation: Some(1) };
    for _ in 0..watchdog::SESSIONS_PER_SWEEP_MAX + 5 {
        let id = SessionId::fresh();
        let at = began().before(MINUTE);
        lease::hold(&world.store, &id, 0, hold.clone(), at, expires_at()).await.unwrap();
    }
    let lost = world.session("FAILED", HOUR).await;
    world.invoked(&lost).await;
    let report = world.sweep().await;
    assert_eq!((report.looked_at, report.closed), (watchdog::SESSIONS_PER_SWEEP_MAX, vec![lost]));
}

async fn an_unreadable_execution_does_not_block_the_sweep<S: Store>(world: World<S>) {
    let broken = world.session("BROKEN", HOUR).await;
    let failed = world.session("FAILED", HOUR).await;
    for id in [&broken, &failed] {
        world.invoked(id).await;
    }
    let report = world.sweep().await;
    assert_eq!((report.closed, report.failed), (vec![failed], vec![broken]));
}
