//! What a runner writes, and when, if something comes between it and its journal.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::host::{Config, Host};
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
use journal::step::{Ending, StepBody};
use journal::store::{Condition, Error, Key, Page, Query, Store, Written};
use serde_json::json;
use workflow::contract::AgentRequest;
use workflow::trigger::Trigger;

/// Nothing takes longer, however loaded the machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// When the records expire, in seconds since 1970: after every test.
const EXPIRES_AT: i64 = 4_000_000_000;

/// How many times as fast as ours the session's clock runs: it pauses often while it cannot write.
const SCALE: u32 = 50;

/// A journal in which something comes between a runner and its first outcome.
#[derive(Clone)]
struct Disturbed {
    store: SqliteStore,
    /// How often the outcome is refused as if the journal were out of reach.
    refusals: Arc<AtomicU32>,
    /// Whether another runner claims the session just before the outcome is written.
    claimed: Arc<AtomicBool>,
    /// The key of each record that was sent, and whether it went through.
    sent: Arc<Mutex<Vec<(String, bool)>>>,
}

impl Disturbed {
    fn new(folder: &Path, refusals: u32, claimed: bool) -> Self {
        let store = SqliteStore::open(&folder.join("journal.db"), Durability::Relaxed).unwrap();
        Self {
            store,
            refusals: Arc::new(AtomicU32::new(refusals)),
            claimed: Arc::new(AtomicBool::new(claimed)),
            sent: Arc::default(),
        }
    }

    fn sent(&self) -> Vec<(String, bool)> {
        self.sent.lock().unwrap().clone()
    }

    /// Claims the session over the first epoch, as an invocation elsewhere does.
    async fn claim(&self, session: SessionId) {
        let newest = read::newest_step(&self.store, &session).await.unwrap().unwrap();
        let hlc = Hlc::new(Clock::system(), newest.stamp);
        let author = Author { session, runner: Runner::fresh("agent"), expires_at: EXPIRES_AT };
        let claim = StepBody::Claim {
            supersedes: 1,
            agent: "checkup".to_owned(),
            graph_version: "1".to_owned(),
            input: None,
        };
        append(&self.store, &hlc, &author, &Head::after(&newest), 2, claim).await.unwrap();
    }
}

impl Store for Disturbed {
    async fn put(&self, item: Item, condition: Condition) -> Result<Written, Error> {
        let is_outcome = item.text_opt("Kind") == Some("outcome");
        let one_less = |left: u32| left.checked_sub(1);
        let refused = is_outcome
            && self.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok();
        self.sent.lock().unwrap().push((item.sk.clone(), !refused));
        if refused {
            return Err(Error::Unavailable("out of reach".into()));
        }
        if is_outcome && self.claimed.swap(false, Ordering::SeqCst) {
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

    async fn changed(&self, patience: Duration) {
        self.store.changed(patience).await;
    }
}

/// Runs a checkup until its runner has nothing more to do.
async fn run(store: &Disturbed) -> SessionId {
    let config = Config {
        callbacks: crate::host::callbacks(),
        clock: Clock::scaled(Clock::system().now(), SCALE),
        servers: Servers::bundled("/nonexistent".into()),
        timeouts: Timeouts { connect: DEADLINE, init: DEADLINE },
        defaults: Defaults::default(),
    };
    let host = Host::new(store.clone(), config);
    let request = AgentRequest {
        session_id: SessionId::fresh(),
        invocation_id: "1".to_owned(),
        attempt: 10,
        supersedes: 0,
        trigger: Trigger::parse(&json!({})).unwrap(),
        expires_at: EXPIRES_AT,
        seen: Stamp::default(),
    };
    let answer = host.invoke(&serde_json::to_vec(&request).unwrap()).await;
    assert_eq!(answer.body["outcome"], "accepted", "{answer:?}");
    let done = async {
        while host.has(&request.session_id) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DEADLINE, done).await.unwrap();
    request.session_id
}

#[tokio::test]
async fn nothing_is_done_with_an_outcome_before_it_is_durable() {
    let folder = tempfile::tempdir().unwrap();
    // So often that a write is given up twice and the driver has to begin it again.
    let store = Disturbed::new(folder.path(), 2 * WRITE_ATTEMPTS_MAX + 1, false);
    let session = run(&store).await;
    let sent = store.sent();
    assert!(sent.iter().any(|(_, landed)| !landed), "the journal was never out of reach");
    let mut landed = 0;
    for (place, has_landed) in sent.iter().filter(|(sk, _)| sk.starts_with(key::STEP_PREFIX)) {
        assert_eq!(*place, key::step(landed + 1), "a step was built on one that is not durable");
        landed += u32::from(*has_landed);
    }
    let steps = read::resolved_steps(&store, &session).await.unwrap();
    assert_eq!(u32::try_from(steps.len()).unwrap(), landed);
    let end = &steps.last().unwrap().body;
    assert!(matches!(end, StepBody::End { ending: Ending::Completed, .. }), "{end:?}");
}

/// The other runner has only claimed so far: there is no end that the fenced one could run into.
#[tokio::test]
async fn a_runner_that_runs_into_another_s_claim_sends_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let store = Disturbed::new(folder.path(), 0, true);
    let session = run(&store).await;
    let steps = read::resolved_steps(&store, &session).await.unwrap();
    let last = steps.last().unwrap();
    assert!(matches!(last.body, StepBody::Claim { supersedes: 1, .. }), "{last:?}");
    assert_eq!(store.sent(), [], "after the outcome that collided with the claim");
}
