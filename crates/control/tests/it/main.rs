//! Answers, cancels and resumes a session through every kind of port.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use control::{Action, Control, Done, Error, Execution, Executions, Refused, Workflow};
use journal::announce::Announcer;
use journal::chain::{Author, Head, append};
use journal::clock::{Clock, Hlc};
use journal::event::{About, Draft, EventStatus, Writer};
use journal::id::{Runner, SessionId};
use journal::item::Hash;
use journal::read;
use journal::sqlite::{Durability, SqliteStore};
use journal::step::{EffectKind, EffectRef, StepBody};
use journal::wait::Wait;
use serde_json::{Value, json};
use tempfile::TempDir;

const HOUR: Duration = Duration::from_secs(3_600);

/// A journal with one session that asks, and fake executions that record their calls.
#[derive(Clone)]
struct World {
    store: SqliteStore,
    session: SessionId,
    calls: Arc<Mutex<Vec<String>>>,
    _folder: Arc<TempDir>,
}

impl World {
    async fn asking() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store =
            SqliteStore::open(&folder.path().join("journal.db"), Durability::Relaxed).unwrap();
        let world = Self {
            store,
            session: SessionId::fresh(),
            calls: Arc::default(),
            _folder: Arc::new(folder),
        };
        let hlc = Hlc::new(Clock::system(), Clock::system().now());
        let author = Author {
            session: world.session.clone(),
            runner: Runner::fresh(Writer::Agent.as_str()),
            expires_at: 0,
        };
        let claim = StepBody::Claim {
            supersedes: 0,
            agent: "asker".to_owned(),
            graph_version: "1".to_owned(),
            input: None,
        };
        let head = Head::genesis();
        let claim = append(&world.store, &hlc, &author, &head, 1, claim).await.unwrap();
        let question = json!({ "prompt": "Go on?", "choices": ["approve", "reject"] });
        let effect = EffectRef {
            kind: EffectKind::Ask,
            digest: Hash::genesis(),
            node: "asks".to_owned(),
            call: 0,
        };
        let ask = StepBody::Ask {
            effect,
            payload: json!({ "question": question }),
            expires_at: Clock::system().now().after(HOUR),
        };
        append(&world.store, &hlc, &author, &Head::after(&claim), 1, ask).await.unwrap();
        world.announce(EventStatus::SessionInitiated).await;
        let wait = Wait { token: "parked".to_owned(), parked_at: Clock::system().now() };
        wait.write(&world.store, &world.session, 0).await.unwrap();
        world
    }

    async fn announce(&self, status: EventStatus) {
        let announcer = Announcer {
            store: &self.store,
            hlc: &Hlc::new(Clock::system(), Clock::system().now()),
            session: &self.session,
            writer: Writer::StateMachine,
            expires_at: 0,
        };
        announcer.announce_once(&Draft::new(status, About::Session)).await.unwrap();
    }

    fn control<E>(&self, executions: E) -> Control<SqliteStore, E> {
        Control { store: self.store.clone(), clock: Clock::system(), executions }
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    async fn answer(&self, port: Port, decision: &str) -> Result<Done, Error> {
        let said = json!({ "question_id": 2, "decision": decision });
        self.control(port).act(&self.session, &Action::Answer(said)).await
    }

    /// The kinds of runner and event that an answer leaves.
    async fn answered(&self) -> (String, Vec<EventStatus>) {
        let step = read::newest_step(&self.store, &self.session).await.unwrap().unwrap();
        assert!(matches!(step.body, StepBody::Answer { question: 2, .. }), "{step:?}");
        let events = read::events(&self.store, &self.session).await.unwrap();
        let runner = step.runner.as_str().split(':').next().unwrap_or_default().to_owned();
        (runner, events.iter().map(|event| event.status).collect())
    }
}

/// A port: to a stack's own executions, or to an account, whose poller writes answers.
#[derive(Clone)]
struct Port {
    world: World,
    is_account: bool,
    execution: Option<Execution>,
}

impl Port {
    fn here(world: &World) -> Self {
        Self { world: world.clone(), is_account: false, execution: None }
    }

    fn account(world: &World) -> Self {
        Self { is_account: true, ..Self::here(world) }
    }

    fn log(&self, call: String) {
        self.world.calls.lock().unwrap().push(call);
    }
}

/// The poller's port, which only sends callbacks.
struct Callbacks(World);

impl Workflow for Callbacks {
    async fn wake(&self, token: &str) -> Result<bool, Error> {
        self.0.calls.lock().unwrap().push(format!("wake {token}"));
        Ok(true)
    }
}

impl Workflow for Port {
    async fn wake(&self, token: &str) -> Result<bool, Error> {
        self.log(format!("wake {token}"));
        Ok(true)
    }

    async fn forward(&self, detail: &Value) -> Result<bool, Error> {
        if self.is_account {
            let session: SessionId = serde_json::from_value(detail["session_id"].clone()).unwrap();
            self.log("event".to_owned());
            let poller = self.world.control(Callbacks(self.world.clone()));
            poller.answer(&session, detail).await?;
        }
        Ok(self.is_account)
    }
}

impl Executions for Port {
    fn arn(&self, name: &str) -> Result<String, Error> {
        Ok(format!("arn:{name}"))
    }

    async fn describe(&self, arn: &str) -> Result<Option<Execution>, Error> {
        let is_first = arn == format!("arn:{}", self.world.session);
        Ok(self.execution.clone().filter(|_| is_first))
    }

    async fn start(&self, name: &str, input: &str) -> Result<String, Error> {
        let input: Value = serde_json::from_str(input).unwrap();
        self.log(format!("start {name} {}", input["resume"]["status"].as_str().unwrap()));
        self.arn(name)
    }
}

#[tokio::test]
async fn an_answer_is_the_same_here_and_over_the_event_bus() {
    for (is_account, calls, woken) in
        [(false, &["wake parked"][..], Some(true)), (true, &["event", "wake parked"], None)]
    {
        let world = World::asking().await;
        let port = if is_account { Port::account(&world) } else { Port::here(&world) };
        let done = world.answer(port, "approve").await.unwrap();
        let Done::Answered(answered) = &done else { panic!("{done:?}") };
        assert_eq!((answered.step, answered.woken), (3, woken));
        assert_eq!(world.calls(), calls);
        let events = vec![EventStatus::SessionInitiated, EventStatus::InputReceived];
        assert_eq!(world.answered().await, ("person".to_owned(), events));
    }
}

#[tokio::test]
async fn a_refused_answer_reaches_no_workflow_and_no_bus() {
    let world = World::asking().await;
    for (port, decision, reason) in [
        (Port::here(&world), "edit", "the question does not offer `edit`"),
        (Port::account(&world), "edit", "the question does not offer `edit`"),
        (Port::account(&world), "perhaps", "invalid answer: unknown variant"),
    ] {
        let refused = world.answer(port, decision).await.unwrap_err().to_string();
        assert!(refused.starts_with(reason), "{refused}");
    }
    assert_eq!(world.calls(), [""; 0]);
    let other = world.control(Port::here(&world));
    let none = other.cancel(&SessionId::fresh(), None).await;
    assert!(matches!(none, Err(Error::Refused(Refused::NoSession(_)))), "{none:?}");
}

/// The process that answered may have died before it woke the workflow.
#[tokio::test]
async fn a_second_answer_is_refused_and_wakes_the_workflow() {
    let world = World::asking().await;
    world.answer(Port::here(&world), "approve").await.unwrap();
    world.calls();
    let late = world.answer(Port::here(&world), "reject").await;
    assert!(matches!(late, Err(Error::Refused(Refused::NoQuestion))), "{late:?}");
    assert_eq!(world.calls(), ["wake parked"]);
}

#[tokio::test]
async fn an_ended_session_is_neither_cancelled_nor_resumed() {
    let world = World::asking().await;
    let control = world.control(Port::here(&world));
    let cancel = Action::Cancel { reason: Some("enough".to_owned()) };
    let done = control.act(&world.session, &cancel).await.unwrap();
    assert_eq!(json!(done), json!({ "session_id": world.session, "woken": true }));
    world.announce(EventStatus::SessionCancelled).await;
    for action in [cancel, Action::Resume { as_version: None }] {
        let refused = control.act(&world.session, &action).await;
        assert!(matches!(refused, Err(Error::Refused(Refused::Ended(_)))), "{refused:?}");
    }
}

#[tokio::test]
async fn a_resumed_session_is_woken_or_gets_one_more_execution() {
    let world = World::asking().await;
    let execution = |is_running| Some(Execution { is_running, input: "{}".to_owned() });
    let resumed = async |execution| {
        let port = Port { execution, ..Port::here(&world) };
        world.control(port).resume(&world.session).await
    };
    let unknown = resumed(None).await;
    assert!(matches!(unknown, Err(Error::Refused(Refused::NoExecution))), "{unknown:?}");
    assert!(resumed(execution(true)).await.unwrap().woken);
    let started = resumed(execution(false)).await.unwrap();
    let name = format!("{}-resume-1", world.session);
    assert_eq!(started.execution_arn, Some(format!("arn:{name}")));
    assert_eq!(world.calls(), ["wake parked".to_owned(), format!("start {name} BUSY")]);
}
