//! A host with several versions of an agent, or without the one that a session needs.

use std::path::Path;

use agent::host::{Config, Host};
use agent::model::Models;
use agent::settings::Defaults;
use agent::tool::{Servers, Timeouts};
use graph::agent::{Agent, Opening, Settings};
use graph::definition::{Finish, Graph, Node, Route};
use graph::effect::{Effect, Reply};
use journal::chain::{Author, Head, append};
use journal::clock::{Clock, Hlc, Stamp};
use journal::event::EventStatus;
use journal::id::{Runner, SessionId};
use journal::read;
use journal::sqlite::{Durability, SqliteStore};
use journal::step::{Ending, Step, StepBody};
use journal::store::Store;
use journal::version::{self, Missing, NOTE_VERSION};
use serde_json::{Value, json};
use std::time::Duration;
use workflow::contract::AgentRequest;
use workflow::trigger::Trigger;

use crate::host::callbacks;
use crate::receipts::Receipted;

static ONE: Graph<String> = Graph {
    version: "1",
    ..Graph::new("counter", "Counts.", NODES, |_, _| Ok(String::new()), |_, _| Reply::says(""))
};

static TWO: Graph<String> = Graph {
    version: "2",
    ..Graph::new("counter", "Counts.", LATER, |_, _| Ok(String::new()), |_, _| Reply::says(""))
};

const NODES: &[Node<String>] = &[Node {
    name: "end",
    to: &[],
    ask: |_, _| Effect::Nothing,
    fold: |_, _| Route::End(Finish::Completed(json!("one"))),
}];

const LATER: &[Node<String>] = &[Node {
    name: "end",
    to: &[],
    ask: |_, _| Effect::Nothing,
    fold: |_, _| Route::End(Finish::Completed(json!("two"))),
}];

struct World {
    store: SqliteStore,
    session: SessionId,
    _folder: tempfile::TempDir,
}

impl World {
    /// A session of version 1 whose runner was killed after its claim.
    async fn killed() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let world = Self { store, session: SessionId::fresh(), _folder: folder };
        let opening = Opening { input: json!({}), settings: Settings::default() };
        let claim = StepBody::Claim {
            supersedes: 0,
            agent: "counter".to_owned(),
            graph_version: "1".to_owned(),
            input: Some(opening.payload()),
        };
        world.append(claim).await;
        world
    }

    async fn append(&self, body: StepBody<Value>) {
        self.append_to(&self.store, body).await;
    }

    async fn append_to<S: Store>(&self, store: &S, body: StepBody<Value>) {
        let steps = self.steps().await;
        let head = steps.last().map_or_else(Head::genesis, Head::after);
        let author = Author {
            session: self.session.clone(),
            runner: Runner::fresh("test"),
            expires_at: 4_000_000_000,
        };
        let hlc = Hlc::new(Clock::system(), Stamp::default());
        append(store, &hlc, &author, &head, 1, body).await.unwrap();
    }

    async fn steps(&self) -> Vec<Step<Value>> {
        read::resolved_steps(&self.store, &self.session).await.unwrap()
    }

    /// Invokes a host with this agent; returns the outcome.
    async fn invoke(&self, agent: Agent, attempt: u32) -> Value {
        let (status, body) = self.invoke_over(self.store.clone(), agent, attempt).await;
        assert_eq!(status, 200, "{body}");
        body["outcome"].clone()
    }

    async fn invoke_over<S: Store>(&self, store: S, agent: Agent, attempt: u32) -> (u16, Value) {
        let config = Config {
            agents: [agent].into(),
            callbacks: callbacks(),
            progress: Default::default(),
            clock: Clock::system(),
            servers: Servers::default(),
            timeouts: Timeouts { connect: Duration::from_secs(1), init: Duration::from_secs(1) },
            models: Models::default(),
            defaults: Defaults::default(),
        };
        let host = Host::new(store, config);
        let request = AgentRequest {
            session_id: self.session.clone(),
            invocation_id: attempt.to_string(),
            attempt,
            supersedes: 1,
            trigger: Trigger::parse(&json!({ "agent": "counter" })).unwrap(),
            expires_at: 4_000_000_000,
            seen: Stamp::default(),
        };
        let response = host.invoke(&serde_json::to_vec(&request).unwrap()).await;
        while host.has(&self.session) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        (response.status, response.body)
    }

    async fn result(&self) -> Value {
        match &self.steps().await.last().unwrap().body {
            StepBody::End { ending: Ending::Completed, payload, .. } => payload.clone(),
            other => panic!("{other:?}"),
        }
    }
}

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(&folder.join("journal.db"), Durability::Relaxed).unwrap()
}

fn both() -> Agent {
    Agent::of(&TWO).with_earlier(Agent::of(&ONE))
}

#[tokio::test]
async fn a_killed_session_goes_on_with_its_own_version() {
    let world = World::killed().await;
    assert_eq!(world.invoke(both(), 20).await, "accepted");
    assert_eq!(world.result().await, "one");
    assert_eq!(version::of(&world.steps().await), Some("1"));
}

#[tokio::test]
async fn a_session_whose_version_is_missing_is_left_as_it_is() {
    let world = World::killed().await;
    for attempt in [20, 30] {
        assert_eq!(world.invoke(Agent::of(&TWO), attempt).await, "version_missing");
    }
    static OTHER: Graph<String> = Graph { name: "other", ..ONE_LIKE };
    assert_eq!(world.invoke(Agent::of(&OTHER), 40).await, "version_missing");
    assert_eq!(world.steps().await.len(), 1, "nothing was claimed");
    let events = read::events(&world.store, &world.session).await.unwrap();
    let failed = events.iter().filter(|event| event.status == EventStatus::AgentEntrypointFailed);
    assert_eq!(failed.count(), 0);
    let (agent, needs) = ("counter".to_owned(), "1".to_owned());
    let missing = Missing { agent, needs, registered: vec![], step: 1 };
    assert_eq!(version::missing(&events), Some(missing), "no version of the agent is left");
    assert_eq!(world.invoke(both(), 50).await, "accepted");
    let events = read::events(&world.store, &world.session).await.unwrap();
    assert_eq!(version::missing(&events), None);
    assert_eq!(world.result().await, "one");
}

const ONE_LIKE: Graph<String> =
    Graph::new("other", "Counts.", NODES, |_, _| Ok(String::new()), |_, _| Reply::says(""));

#[tokio::test]
async fn a_moved_session_goes_on_with_the_new_version() {
    let world = World::killed().await;
    let payload = json!({ "from": "1", "to": "2" });
    world
        .append(StepBody::Note { subject: NOTE_VERSION.to_owned(), principal: None, payload })
        .await;
    assert_eq!(world.invoke(Agent::of(&ONE), 20).await, "version_missing");
    assert_eq!(world.invoke(both(), 30).await, "accepted");
    assert_eq!(world.result().await, "two");
}

/// In an account the agents' role may write a step of any kind, but no receipt.
#[tokio::test]
async fn a_persons_step_without_a_receipt_is_not_followed() {
    let world = World::killed().await;
    let note = |version: &str| StepBody::Note {
        subject: NOTE_VERSION.to_owned(),
        principal: Some("os-user:ann".parse().unwrap()),
        payload: json!({ "agent": "counter", "from": "1", "to": version }),
    };
    world.append(note("2")).await;
    let receipted = Receipted(world.store.clone());
    let (status, body) = world.invoke_over(receipted.clone(), both(), 2).await;
    assert_eq!(status, 400, "{body}");
    assert!(body.to_string().contains("step 2 says what a person decided"), "{body}");
    assert_eq!(world.steps().await.len(), 2, "nothing was claimed");

    let honest = World::killed().await;
    let receipted = Receipted(honest.store.clone());
    honest.append_to(&receipted, note("2")).await;
    let (status, body) = honest.invoke_over(receipted, both(), 2).await;
    assert_eq!((status, honest.result().await), (200, json!("two")), "{body}");
}
