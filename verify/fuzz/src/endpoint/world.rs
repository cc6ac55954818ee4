//! The journal and the routes that serve the requests.

use std::cell::RefCell;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request};
use graph::profile::Limits;
use journal::clock::{Clock, Stamp};
use journal::export;
use journal::item::Item;
use journal::lease::Lease;
use journal::sqlite::{Durability, SqliteStore};
use journal::store::{Condition, Store as _};
use stack::bus::Bus;
use stack::endpoint::{Aws, Callers, Endpoint, Guard, Reader, Running, Streams, of_agents};
use stack::executions::{self, Executions};
use stack::functions::Functions;
use stack::host::{Agents, Isolated, Settings};
use stack::store::Journal;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

/// The golden session, and the one execution.
pub(super) const SESSION: &str = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f";

const JOURNAL: &str = "journal.db";

/// A journal with the endpoint's routes.
pub(super) struct World {
    store: SqliteStore,
    router: Router,
    /// The routes of isolated agents, where the table is written.
    of_agents: Router,
    runtime: Runtime,
    /// Whether something was or may have been written.
    pub(super) is_changed: bool,
    _folder: TempDir,
}

/// A reply.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) error_type: String,
    pub(super) request_id: String,
    pub(super) body: Vec<u8>,
}

/// Runs the requests of one input, then checks that no record was changed.
pub(super) fn with_world(requests: impl FnOnce(&mut World)) {
    thread_local! {
        static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
    }
    WORLD.with_borrow_mut(|kept| {
        let world = kept.get_or_insert_with(World::fresh);
        requests(world);
        if world.is_changed {
            world.check_records();
            *kept = None;
        }
    });
}

impl World {
    fn fresh() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(JOURNAL);
        // Copying a prepared journal is several times as fast as writing one.
        fs::write(&path, template()).expect("a temporary folder can be written");
        let (store, runtime) = (open(&path), runtime());
        let (router, of_agents) = runtime.block_on(routers(&store, folder.path()));
        Self { store, router, of_agents, runtime, is_changed: false, _folder: folder }
    }

    /// Sends a request; `None` if it is not a valid HTTP request.
    pub(super) fn send(
        &self,
        method: Method,
        path: &str,
        target: &str,
        body: &str,
    ) -> Option<Answer> {
        let content_type = ["application/x-amz-json-1.0", "application/x-amz-json-1.1"];
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("content-type", content_type[target.len() % 2])
            .header("x-amz-target", target)
            .body(Body::from(body.to_owned()))
            .ok()?;
        if !request.uri().path().starts_with('/') {
            return None;
        }
        let is_write = target.ends_with("PutItem") || target.ends_with("UpdateItem");
        let router = if is_write { &self.of_agents } else { &self.router };
        self.runtime.block_on(async {
            let response = router.clone().oneshot(request).await.expect("routes always answer");
            let (head, body) = response.into_parts();
            let body = to_bytes(body, usize::MAX).await.expect("an answer in memory can be read");
            Some(Answer {
                status: head.status.as_u16(),
                content_type: text(&head.headers, "content-type"),
                error_type: text(&head.headers, "x-amzn-errortype"),
                request_id: text(&head.headers, "x-amzn-requestid"),
                body: body.to_vec(),
            })
        })
    }

    /// Every golden record is unchanged, except the one that its execution may write again.
    fn check_records(&self) {
        let session = SESSION.parse().expect("a session id");
        let stored = self.runtime.block_on(export::records(&self.store, &session));
        let stored = stored.expect("the store can be read");
        for item in golden().iter().filter(|item| item.text_opt("ExecutionArn").is_none()) {
            assert!(stored.contains(item), "{} was changed or removed", item.sk);
        }
    }
}

fn text(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, Durability::Relaxed).expect("a journal")
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn clock() -> Clock {
    Clock::fixed(Stamp::parse("2026-11-21T10:31:00Z").expect("a time"))
}

fn golden() -> &'static [Item] {
    static GOLDEN: OnceLock<Vec<Item>> = OnceLock::new();
    GOLDEN.get_or_init(|| {
        let file = export::read(crate::SESSION.as_bytes()).expect("a golden file can be read");
        file.records
    })
}

/// The bytes of a journal with the golden session, a lease and an execution.
fn template() -> &'static [u8] {
    static TEMPLATE: OnceLock<Vec<u8>> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(JOURNAL);
        let store = open(&path);
        let runtime = runtime();
        runtime.block_on(async {
            let session = SESSION.parse().expect("a session id");
            let lease = Lease::unclaimed(5, clock().now()).to_item(&session, 1_803_033_000);
            for item in golden().iter().chain([&lease]) {
                store
                    .put(item.clone(), Condition::Absent)
                    .await
                    .expect("a golden record is written");
            }
            let executions = executions(&store).await;
            let (name, input) = (SESSION.to_owned(), "{}".to_owned());
            let request = executions::Request { name, input };
            executions.start(request).await.expect("an execution is started");
        });
        // The file contains all writes once no process has it open.
        drop(runtime);
        drop(store);
        fs::read(&path).expect("the journal can be read")
    })
}

/// Executions without a runner, which report so at once. What they would do does not matter.
async fn executions(store: &SqliteStore) -> Executions {
    const TEXT: &str = r#"{"QueryLanguage": "JSONata", "StartAt": "End",
        "States": {"End": {"Type": "Succeed"}}}"#;
    let executions = Executions::open(store.clone(), clock(), TEXT, Functions::default()).await;
    let executions = executions.expect("the text is a definition");
    executions.begin_stop();
    executions
}

/// A host that cannot start agents; created once, because creating its client is slow.
fn agents() -> Agents {
    static AGENTS: OnceLock<Agents> = OnceLock::new();
    let make = || {
        let program = PathBuf::from("/nonexistent");
        let settings = Settings {
            program,
            arguments: Vec::new(),
            environment: Vec::new(),
            token: guard::Secret::new("unused"),
            clock: clock(),
            time_scale: 1,
            progress: Default::default(),
            exits: None,
        };
        Agents::Isolated(Isolated::new(settings).expect("a client"))
    };
    AGENTS.get_or_init(make).clone()
}

async fn routers(store: &SqliteStore, data: &Path) -> (Router, Router) {
    let executions = executions(store).await;
    let reader = Reader {
        store: Journal::Here(store.clone()),
        clock: clock(),
        graphs: std::sync::Arc::new([]),
        summary_cache: Default::default(),
        slots: Default::default(),
        keys: None,
        stack: Some(Running {
            executions: executions.clone(),
            admission: Limits::default(),
            signing: Default::default(),
            clock_steps: Default::default(),
            settings: Default::default(),
            notices: Default::default(),
        }),
    };
    let streams = Streams {
        reader: reader.clone(),
        executions: executions.clone(),
        progress: Default::default(),
        stopping: Default::default(),
    };
    let bus = Bus::new(executions.clone(), Functions::default(), clock())
        .expect("the workflow's own rule");
    let aws = Aws { executions, bus, agents: agents(), load: Default::default() };
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let guard = Guard::new(loopback, None).expect("loopback needs no token");
    let of_agents = of_agents(aws.clone(), guard.clone());
    let endpoint = Endpoint { reader, streams, aws, data: data.to_owned() };
    (endpoint.router(guard, Callers::Stated), of_agents)
}
