//! What a runner writes while its journal fails or another runner interferes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::host::{Config, Host};
use agent::model::Models;
use agent::settings::Defaults;
use agent::tool::{Servers, Timeouts};
use journal::chain::{Author, Head, append};
use journal::clock::{Clock, Hlc, Stamp};
use journal::id::{Runner, SessionId};
use journal::item::{Item, Value};
use journal::key;
use journal::limits::WRITE_ATTEMPTS_MAX;
use journal::read;
use journal::sqlite::{Durability, SqliteStore};
use journal::step::{Ending, StepBody, StepKind};
use journal::store::{Condition, Error, Key, Page, Query, Store, Written};
use serde_json::{Value as Json, json};
use workflow::contract::AgentRequest;
use workflow::trigger::Trigger;

/// Generous timeout for a loaded machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// In seconds since 1970, far in the future.
const EXPIRES_AT: i64 = 4_000_000_000;

/// The other runner.
const OTHER: &str = "agent:other";

/// Speed of the session's clock: the runner pauses often while it cannot write.
const SCALE: u32 = 50;

/// A store that interferes with one of a runner's first steps.
#[derive(Clone)]
struct Disturbed {
    store: SqliteStore,
    /// How often the write of the first outcome fails, as if the journal were unavailable.
    refusals: Arc<AtomicU32>,
    /// Another runner claims the session just before a step of this kind, once.
    claimed_before: Arc<Mutex<Option<StepKind>>>,
    /// The write of the first outcome panics.
    panics: Arc<AtomicBool>,
    /// The key of each record that was sent, and whether it was written.
    sent: Arc<Mutex<Vec<(String, bool)>>>,
}

impl Disturbed {
    fn new(folder: &Path, refusals: u32, claimed_before: Option<StepKind>) -> Self {
        let store = SqliteStore::open(&folder.join("journal.db"), Durability::Relaxed).unwrap();
        Self {
            store,
            refusals: Arc::new(AtomicU32::new(refusals)),
            claimed_before: Arc::new(Mutex::new(claimed_before)),
            panics: Arc::default(),
            sent: Arc::default(),
        }
    }

    fn sent(&self) -> Vec<(String, bool)> {
        self.sent.lock().unwrap().clone()
    }

    /// Claims the session over its current epoch, like an invocation elsewhere.
    async fn claim(&self, session: SessionId) {
        let newest = read::newest_step(&self.store, &session).await.unwrap();
        let (head, epoch) =
            newest.as_ref().map_or((Head::genesis(), 0), |step| (Head::after(step), step.epoch));
        let hlc = Hlc::new(Clock::system(), newest.map(|step| step.stamp).unwrap_or_default());
        let author = Author { session, runner: Runner::named(OTHER), expires_at: EXPIRES_AT };
        let claim = StepBody::Claim {
            supersedes: epoch,
            agent: "checkup".to_owned(),
            graph_version: "1".to_owned(),
            input: None,
        };
        append(&self.store, &hlc, &author, &head, epoch + 1, claim).await.unwrap();
    }

    /// Whether this is the step before which another runner claims.
    fn is_overtaken(&self, item: &Item) -> bool {
        let mut before = self.claimed_before.lock().unwrap();
        let is_it = before.is_some_and(|kind| item.text_opt("Kind") == Some(kind.as_str()));
        if is_it {
            *before = None;
        }
        is_it
    }
}

impl Store for Disturbed {
    async fn put(&self, item: Item, condition: Condition) -> Result<Written, Error> {
        let is_outcome = item.text_opt("Kind") == Some("outcome");
        assert!(!is_outcome || !self.panics.swap(false, Ordering::SeqCst), "a bug");
        let one_less = |left: u32| left.checked_sub(1);
        let refused = is_outcome
            && self.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok();
        self.sent.lock().unwrap().push((item.sk.clone(), !refused));
        if refused {
            return Err(Error::Unavailable("out of reach".into()));
        }
        if self.is_overtaken(&item) {
            self.claim(key::session_of(&item.pk).unwrap()).await;
            self.sent.lock().unwrap().clear();
        }
        self.store.put(item, condition).await
    }

    async fn update(
        &self,
        key: Key,
        set: BTreeMap<String, Value>,
        condition: Condition,
    ) -> Result<Written, Error> {
        self.store.update(key, set, condition).await
    }

    async fn get(&self, key: Key) -> Result<Option<Item>, Error> {
        self.store.get(key).await
    }

    async fn query(&self, query: Query) -> Result<Page, Error> {
        self.store.query(query).await
    }

    async fn changed(&self, timeout: Duration) {
        self.store.changed(timeout).await;
    }
}

/// Invokes a checkup and waits for its runner, if any. Returns the outcome of the invocation.
async fn run(store: &Disturbed) -> (SessionId, Json) {
    let config = Config {
        agents: packs::all().into(),
        models: Models::default(),
        callbacks: crate::host::callbacks(),
        progress: Default::default(),
        clock: Clock::scaled(Clock::system().now(), SCALE),
        servers: Servers::bundled("/nonexistent".as_ref(), packs::all()),
        timeouts: Timeouts { connect: DEADLINE, init: DEADLINE },
        defaults: Defaults::default(),
    };
    let host = Host::new(store.clone(), config);
    let request = AgentRequest {
        session_id: SessionId::fresh(),
        invocation_id: "1".to_owned(),
        attempt: 10,
        supersedes: 0,
        trigger: Trigger::parse(&json!({"agent": "checkup"})).unwrap(),
        expires_at: EXPIRES_AT,
        seen: Stamp::default(),
    };
    let answer = host.invoke(&serde_json::to_vec(&request).unwrap()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let done = async {
        while host.has(&request.session_id) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DEADLINE, done).await.unwrap();
    (request.session_id, answer.body["outcome"].clone())
}

#[tokio::test]
async fn no_outcome_is_used_before_it_is_durable() {
    let folder = tempfile::tempdir().unwrap();
    // Often enough that the store gives up twice and the driver has to retry.
    let store = Disturbed::new(folder.path(), 2 * WRITE_ATTEMPTS_MAX + 1, None);
    let (session, outcome) = run(&store).await;
    assert_eq!(outcome, "accepted");
    let sent = store.sent();
    assert!(sent.iter().any(|(_, landed)| !landed), "the journal was never unavailable");
    let mut landed = 0;
    for (place, has_landed) in sent.iter().filter(|(sk, _)| sk.starts_with(key::STEP_PREFIX)) {
        assert_eq!(*place, key::step(landed + 1), "a step follows one that is not durable");
        landed += u32::from(*has_landed);
    }
    let steps = read::resolved_steps(&store, &session).await.unwrap();
    assert_eq!(u32::try_from(steps.len()).unwrap(), landed);
    let end = &steps.last().unwrap().body;
    assert!(matches!(end, StepBody::End { ending: Ending::Completed, .. }), "{end:?}");
}

/// The other runner has only claimed so far, so the fenced one cannot collide with an end.
#[tokio::test]
async fn a_runner_fenced_by_another_claim_sends_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let store = Disturbed::new(folder.path(), 0, Some(StepKind::Outcome));
    let (session, outcome) = run(&store).await;
    assert_eq!(outcome, "accepted");
    let steps = read::resolved_steps(&store, &session).await.unwrap();
    let last = steps.last().unwrap();
    assert!(matches!(last.body, StepBody::Claim { supersedes: 1, .. }), "{last:?}");
    assert_eq!(store.sent(), [], "after the outcome that collided with the claim");
}

#[tokio::test]
async fn the_second_of_two_claims_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = Disturbed::new(folder.path(), 0, Some(StepKind::Claim));
    let (session, outcome) = run(&store).await;
    assert_eq!(outcome, "already_running");
    let steps = read::resolved_steps(&store, &session).await.unwrap();
    let runners: Vec<_> = steps.iter().map(|step| step.runner.as_str()).collect();
    assert_eq!(runners, [OTHER], "only the first claim is written");
    assert_eq!(store.sent(), [], "after the claim that collided");
}

#[tokio::test]
async fn a_panic_of_the_runner_ends_its_session() {
    let folder = tempfile::tempdir().unwrap();
    let store = Disturbed::new(folder.path(), 0, None);
    store.panics.store(true, Ordering::SeqCst);
    let (session, outcome) = run(&store).await;
    assert_eq!(outcome, "accepted");
    let steps = read::resolved_steps(&store, &session).await.unwrap();
    let StepBody::End { ending: Ending::Failed, error: Some(error), category, .. } =
        &steps.last().unwrap().body
    else {
        panic!("{steps:?}");
    };
    assert_eq!(error.as_str(), "GraphError: Panicked - the agent panicked: a bug");
    assert_eq!(category.as_deref(), Some("graph"));
}
