//! A session of a program: its kit, its journal and its host.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent::host::{Config, Host};
use agent::model::Models;
use agent::program::describe::describe;
use agent::settings::Defaults;
use agent::tool::{Servers, Timeouts};
use graph::agent::Agent;
use graph::program::Launch;
use graph::question::{Answer, Decision};
use journal::chain::{Author, End, Head, append, end_session};
use journal::clock::{Clock, Hlc, Stamp};
use journal::id::{Runner, SessionId};
use journal::item::Item;
use journal::sqlite::{Durability, SqliteStore};
use journal::step::{Ending, Step, StepBody};
use journal::store::{Condition, Query, Store, query_all};
use journal::{key, read};
use serde_json::{Value, json};
use workflow::contract::AgentRequest;
use workflow::trigger::Trigger;

use crate::host::callbacks;

/// Generous timeout for a loaded machine.
pub const DEADLINE: Duration = Duration::from_secs(100);

/// A kit: the program of the suite in its language.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kit {
    Python,
    TypeScript,
    Rust,
}

impl Kit {
    /// The kits whose language is installed.
    pub fn all() -> Vec<Self> {
        let mut kits = vec![Self::Python];
        kits.extend(node().map(|_| Self::TypeScript));
        if rust().exists() {
            kits.push(Self::Rust);
        } else {
            eprintln!("skipped: build it with `cargo build -p daybook-kit --examples`");
        }
        kits
    }

    pub fn launch(self) -> Launch {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let kit = |name: &str| here.join("../sdk").join(name).to_string_lossy().into_owned();
        let (command, environment) = match self {
            Self::Python => {
                let environment =
                    [("PYTHONPATH", kit("python")), ("PYTHONDONTWRITEBYTECODE", "1".to_owned())];
                (["python3", "it.py"].map(str::to_owned).to_vec(), environment.to_vec())
            }
            Self::TypeScript => {
                let node = node().unwrap().to_string_lossy().into_owned();
                (vec![node, "it.mjs".to_owned()], vec![("KIT", kit("typescript"))])
            }
            Self::Rust => (vec![rust().to_string_lossy().into_owned()], Vec::new()),
        };
        let environment = environment.into_iter().map(|(name, value)| (name.to_owned(), value));
        Launch {
            command,
            folder: here.join("tests/it/programs"),
            environment: environment.collect(),
            idle: Duration::from_secs(6),
        }
    }

    /// Whether the installed interpreter is a script that starts the real one, and so hides how that ends.
    pub fn is_wrapped(self) -> bool {
        let command = self.launch().command.remove(0);
        std::fs::read(command).is_ok_and(|bytes| bytes.starts_with(b"#!"))
    }

    async fn agent(self) -> Agent {
        let launch = self.launch();
        Agent::program(describe(&launch).await.unwrap(), launch).unwrap()
    }
}

#[expect(clippy::disallowed_methods, reason = "how the harness names Node")]
fn node() -> Option<PathBuf> {
    std::env::var_os("DAYBOOK_TEST_NODE").map(PathBuf::from)
}

/// The example of the Rust kit; cargo builds it with the tests.
fn rust() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join("examples/it")
}

/// A journal with what hosts its programs.
pub trait Suite: Store {
    type Host: Hosts;

    /// The kits of a test that takes minutes.
    fn kits_at_length() -> Vec<Kit> {
        Kit::all()
    }

    /// An empty journal, and a host of the kit's program.
    async fn fresh(folder: &Path, kit: Kit, agent: &Agent) -> (Self, Self::Host);
}

pub trait Hosts {
    /// Sends a request of the invoker: the status and the answer.
    async fn invoke(&self, request: &AgentRequest) -> (u16, Value);

    /// Whether it works on the session.
    async fn has(&self, session: &SessionId) -> bool;

    /// Stops it as its platform does.
    async fn stop(&self);
}

/// As `daybook dev` hosts them.
impl Suite for SqliteStore {
    type Host = Host<Self>;

    async fn fresh(folder: &Path, _: Kit, agent: &Agent) -> (Self, Host<Self>) {
        let store = Self::open(&folder.join("journal.db"), Durability::Relaxed).unwrap();
        let config = Config {
            agents: [agent.clone()].into(),
            callbacks: callbacks(),
            progress: Default::default(),
            clock: Clock::system(),
            servers: Servers::default(),
            timeouts: Timeouts { connect: DEADLINE, init: DEADLINE },
            models: Models::default(),
            defaults: Defaults::default(),
        };
        let host = Host::new(store.clone(), config);
        (store, host)
    }
}

impl Hosts for Host<SqliteStore> {
    async fn invoke(&self, request: &AgentRequest) -> (u16, Value) {
        let answer = Host::invoke(self, &serde_json::to_vec(request).unwrap()).await;
        (answer.status, answer.body)
    }

    async fn has(&self, session: &SessionId) -> bool {
        Host::has(self, session)
    }

    async fn stop(&self) {
        self.shutdown().await;
    }
}

/// A session of a program.
pub struct World<S: Suite> {
    folder: tempfile::TempDir,
    store: S,
    host: S::Host,
    session: SessionId,
    kit: Kit,
    agent: Agent,
}

impl<S: Suite> World<S> {
    async fn new(kit: Kit, agent: Agent, session: SessionId) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (store, host) = S::fresh(folder.path(), kit, &agent).await;
        Self { folder, store, host, session, kit, agent }
    }

    pub async fn of(kit: Kit) -> Self {
        Self::new(kit, kit.agent().await, SessionId::fresh()).await
    }

    /// Another journal with the first records of this one.
    pub async fn cut(&self, after: usize) -> Self {
        let world = Self::new(self.kit, self.agent.clone(), self.session.clone()).await;
        let pk = key::session(&self.session);
        let items = query_all(&self.store, Query::prefix(pk, key::STEP_PREFIX)).await.unwrap();
        for item in &items[..after] {
            world.store.put(Item::clone(item), Condition::Absent).await.unwrap();
        }
        world
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("done.log")
    }

    /// What the program did itself.
    pub fn did(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The process that the program named.
    pub async fn pid(&self) -> u32 {
        let waiting = async {
            loop {
                let did = self.did();
                if let Some(pid) = did.iter().find_map(|line| line.strip_prefix("pid ")) {
                    return pid.parse().unwrap();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(DEADLINE, waiting).await.unwrap()
    }

    pub async fn steps(&self) -> Vec<Step<Value>> {
        read::resolved_steps(&self.store, &self.session).await.unwrap()
    }

    /// Appends a step as another process would.
    pub async fn append(&self, epoch: impl FnOnce(u32) -> u32, body: StepBody<Value>) {
        let steps = self.steps().await;
        let newest = steps.last().unwrap();
        let hlc = Hlc::new(Clock::system(), newest.stamp);
        let (head, epoch) = (Head::after(newest), epoch(newest.epoch));
        append(&self.store, &hlc, &self.author(), &head, epoch, body).await.unwrap();
    }

    /// Stops the host.
    pub async fn stop(&self) {
        self.host.stop().await;
    }

    /// Ends the session as the poller does when a person cancels it.
    pub async fn cancel(&self) {
        let end =
            End { ending: Ending::Cancelled, error: None, category: None, result: Value::Null };
        let hlc = Hlc::new(Clock::system(), Stamp::default());
        end_session(&self.store, &hlc, &self.author(), &end).await.unwrap();
    }

    /// Its last step is the cancellation.
    pub async fn is_cancelled(&self, kit: Kit) {
        let steps = self.steps().await;
        let last = &steps.last().unwrap().body;
        assert!(
            matches!(last, StepBody::End { ending: Ending::Cancelled, .. }),
            "{kit:?}: {last:?}"
        );
    }

    fn author(&self) -> Author {
        Author {
            session: self.session.clone(),
            runner: Runner::fresh("test"),
            expires_at: 4_000_000_000,
        }
    }

    pub async fn begin(&self, case: &str, count: u32, budget: Value) {
        let (status, answer) = self.invoke(case, count, budget).await;
        assert_eq!((status, &answer["outcome"]), (200, &json!("accepted")), "{answer}");
    }

    /// Sends what the invoker sends: the status and the answer.
    pub async fn invoke(&self, case: &str, count: u32, budget: Value) -> (u16, Value) {
        let input = json!({ "case": case, "count": count, "log": self.log() });
        let detail = json!({ "agent": "it", "input": input, "budget": budget });
        let supersedes = self.steps().await.last().map_or(0, |step| step.epoch);
        let request = AgentRequest {
            session_id: self.session.clone(),
            invocation_id: "1".to_owned(),
            attempt: 10 * (supersedes + 1),
            supersedes,
            trigger: Trigger::parse(&detail).unwrap(),
            expires_at: 4_000_000_000,
            seen: Stamp::default(),
        };
        self.host.invoke(&request).await
    }

    pub async fn done(&self) {
        let waiting = async {
            while self.host.has(&self.session).await {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(DEADLINE, waiting).await.unwrap();
    }

    /// Runs the session to its end. A person approves everything.
    pub async fn ended(
        &self,
        case: &str,
        count: u32,
        budget: Value,
    ) -> (Ending, Option<String>, Value) {
        loop {
            let steps = self.steps().await;
            match steps.last().map(|step| (step.seq, &step.body)) {
                Some((_, StepBody::End { ending, error, payload, .. })) => {
                    let error = error.as_ref().map(ToString::to_string);
                    return (*ending, error, payload.clone());
                }
                Some((seq, StepBody::Ask { .. })) => {
                    let answer = Answer::new(seq, Decision::Approve);
                    self.append(|epoch| epoch, answer.body()).await;
                }
                _ => {}
            }
            self.begin(case, count, budget.clone()).await;
            self.done().await;
        }
    }

    pub async fn completed(&self, case: &str, count: u32) -> Value {
        let (ending, error, result) = self.ended(case, count, json!({})).await;
        assert_eq!((ending, error), (Ending::Completed, None), "{case}");
        result
    }

    pub async fn failed(&self, case: &str, count: u32, budget: Value) -> String {
        let (ending, error, _) = self.ended(case, count, budget).await;
        assert_eq!(ending, Ending::Failed, "{case}");
        error.unwrap()
    }
}

pub fn outcomes(steps: &[Step<Value>]) -> Vec<(String, u32)> {
    let effects = steps.iter().filter(|step| matches!(step.body, StepBody::Outcome { .. }));
    let effects = effects.filter_map(|step| step.body.effect());
    let mut names: Vec<_> = effects.map(|effect| (effect.node.clone(), effect.call)).collect();
    names.sort_by_key(|(_, ordinal)| *ordinal);
    names
}

/// Waits until a process that was killed is gone.
pub async fn is_gone(pid: u32) -> bool {
    for _ in 0..200 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        // Its new parent may not have reaped it yet.
        if stat.map_or(true, |stat| stat.contains(") Z ")) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}
