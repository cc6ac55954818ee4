//! Answers, cancels and resumes a session through every kind of port.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use control::{
    Action, AsVersion, Control, Done, Error, Execution, Executions, Forwarded, Refused, Workflow,
};
use journal::announce::Announcer;
use journal::chain::{Author, Head, append};
use journal::clock::{Clock, Hlc};
use journal::event::{About, Draft, EventStatus, Writer};
use journal::id::{Runner, SessionId};
use journal::item::Hash;
use journal::principal::Principal;
use journal::read;
use journal::sqlite::{Durability, SqliteStore};
use journal::step::{EffectKind, EffectRef, StepBody};
use journal::version;
use journal::wait::{Turn, Wait};
use serde_json::{Value, json};
use tempfile::TempDir;

fn by() -> Principal {
    "os-user:alice".parse().unwrap()
}

const HOUR: Duration = Duration::from_secs(3_600);

/// A journal with one session that asks, and fake executions that record their calls.
#[derive(Clone)]
struct World {
    store: SqliteStore,
    session: SessionId,
    calls: Arc<Mutex<Vec<String>>>,
    /// The names of executions that were started.
    started: Arc<Mutex<Vec<String>>>,
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
            started: Arc::default(),
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
        let turn = Turn { resumes: 0, checks: 1, retry: 0 };
        Wait::write(&world.store, &world.session, "parked", turn, 0).await.unwrap();
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
        self.control(port).act(&self.session, &Action::Answer(said), &by()).await
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

impl Workflow for Port {
    async fn wake(&self, token: &str) -> Result<bool, Error> {
        self.log(format!("wake {token}"));
        Ok(true)
    }

    async fn forward(&self, session: &SessionId, action: &Action) -> Result<Forwarded, Error> {
        if !self.is_account {
            return Ok(Forwarded::No);
        }
        self.log("event".to_owned());
        let poller = self.world.control(Poller(self.clone()));
        poller.act(session, action, &Principal::Unknown).await?;
        Ok(Forwarded::Accepted)
    }
}

/// The account's poller, which performs what is forwarded to it.
struct Poller(Port);

impl Workflow for Poller {
    async fn wake(&self, token: &str) -> Result<bool, Error> {
        self.0.wake(token).await
    }
}

impl Executions for Poller {
    fn arn(&self, name: &str) -> Result<String, Error> {
        self.0.arn(name)
    }

    async fn describe(&self, arn: &str) -> Result<Option<Execution>, Error> {
        self.0.describe(arn).await
    }

    async fn start(&self, name: &str, input: &str) -> Result<String, Error> {
        self.0.start(name, input).await
    }
}

impl Executions for Port {
    fn arn(&self, name: &str) -> Result<String, Error> {
        Ok(format!("arn:{name}"))
    }

    async fn describe(&self, arn: &str) -> Result<Option<Execution>, Error> {
        let is_first = arn == format!("arn:{}", self.world.session);
        let name = arn.trim_start_matches("arn:");
        let has_started = self.world.started.lock().unwrap().iter().any(|it| it == name);
        Ok(self.execution.clone().filter(|_| is_first || has_started))
    }

    async fn start(&self, name: &str, input: &str) -> Result<String, Error> {
        let input: Value = serde_json::from_str(input).unwrap();
        self.log(format!("start {name} {}", input["resume"]["status"].as_str().unwrap()));
        self.world.started.lock().unwrap().push(name.to_owned());
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

/// The bus does not pass on who answered, and a body that claims to know is not believed.
#[tokio::test]
async fn an_action_records_its_channels_principal() {
    for (is_account, expected) in [(false, "os-user:alice"), (true, "unknown")] {
        let world = World::asking().await;
        let port = if is_account { Port::account(&world) } else { Port::here(&world) };
        let said = json!({
            "question_id": 2, "decision": "approve",
            "principal": "aws-arn:arn:aws:iam::1:root", "by": "aws-arn:arn:aws:iam::1:root",
        });
        let control = world.control(port);
        control.answer(&world.session, &said, &by()).await.unwrap();
        let step = read::newest_step(&world.store, &world.session).await.unwrap().unwrap();
        let StepBody::Answer { principal: Some(principal), .. } = &step.body else {
            panic!("{step:?}")
        };
        assert_eq!(principal.to_string(), expected);
        assert_eq!(step.to_item().text_opt("Principal"), Some(expected), "it is hashed");
        assert_eq!(step.to_item().hash(), step.hash);
        let reason = Some("principal: aws-arn:arn:aws:iam::1:root");
        control.cancel(&world.session, reason, &by()).await.unwrap();
        let events = read::events(&world.store, &world.session).await.unwrap();
        let cancelled = events.iter().find(|it| it.status == EventStatus::CancelRequested).unwrap();
        let expected = if is_account { Principal::Unknown } else { by() };
        assert_eq!(cancelled.principal, Some(expected), "by the process that writes");
    }
}

/// The step of the move, and the request to resume. A port forwards both as one action.
#[tokio::test]
async fn a_move_records_its_channels_principal() {
    for (is_account, expected) in [(false, "os-user:alice"), (true, "unknown")] {
        let world = World::asking().await;
        world.answer(Port::here(&world), "approve").await.unwrap();
        let execution = Some(Execution { is_running: false, input: "{}".to_owned() });
        let port = if is_account { Port::account(&world) } else { Port::here(&world) };
        let control = world.control(Port { execution, ..port });
        let action = Action::Resume { as_version: Some(AsVersion { version: "2".to_owned() }) };
        let resumed = json!(control.act(&world.session, &action, &by()).await.unwrap());
        let name = format!("arn:{}-resume-1", world.session);
        assert_eq!((&resumed["step"], &resumed["execution_arn"]), (&json!(4), &json!(name)));
        let step = read::newest_step(&world.store, &world.session).await.unwrap().unwrap();
        assert!(version::is_move(&step), "{step:?}");
        assert_eq!(step.to_item().text_opt("Principal"), Some(expected), "it is hashed");
        let events = read::events(&world.store, &world.session).await.unwrap();
        let request = events.iter().find(|it| it.status == EventStatus::ResumeRequested).unwrap();
        let principal = request.principal.as_ref().unwrap().to_string();
        assert_eq!((request.about, principal.as_str()), (About::Step(4), expected));
        let again = control.act(&world.session, &action, &by()).await;
        assert!(matches!(again, Err(Error::Refused(Refused::SameVersion(_)))), "{again:?}");
    }
}

/// Of a person who may only read the journal.
#[tokio::test]
async fn a_person_in_an_account_writes_nothing() {
    let world = World::asking().await;
    let execution = Some(Execution { is_running: false, input: "{}".to_owned() });
    let control = world.control(Port { execution, ..Port::account(&world) });
    let resumed =
        control.act(&world.session, &Action::Resume { as_version: None }, &by()).await.unwrap();
    let name = format!("arn:{}-resume-1", world.session);
    assert_eq!(json!(resumed)["execution_arn"], name);
    let cancel = Action::Cancel { reason: None };
    control.act(&world.session, &cancel, &by()).await.unwrap();
    let calls = world.calls();
    assert_eq!(calls.iter().filter(|call| *call == "event").count(), 2, "{calls:?}");
    let events = read::events(&world.store, &world.session).await.unwrap();
    let by: Vec<_> = events.iter().filter_map(|event| event.principal.clone()).collect();
    assert_eq!(by, [Principal::Unknown, Principal::Unknown]);
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
    let none = other.cancel(&SessionId::fresh(), None, &by()).await;
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
    let done = control.act(&world.session, &cancel, &by()).await.unwrap();
    assert_eq!(json!(done), json!({ "session_id": world.session, "woken": true }));
    world.announce(EventStatus::SessionCancelled).await;
    for action in [cancel, Action::Resume { as_version: None }] {
        let refused = control.act(&world.session, &action, &by()).await;
        assert!(matches!(refused, Err(Error::Refused(Refused::Ended(_)))), "{refused:?}");
    }
}

#[tokio::test]
async fn a_resumed_session_is_woken_or_gets_one_more_execution() {
    let world = World::asking().await;
    let execution = |is_running| Some(Execution { is_running, input: "{}".to_owned() });
    let resumed = async |execution| {
        let port = Port { execution, ..Port::here(&world) };
        world.control(port).resume(&world.session, None, &by()).await
    };
    let unknown = resumed(None).await;
    assert!(matches!(unknown, Err(Error::Refused(Refused::NoExecution))), "{unknown:?}");
    assert!(resumed(execution(true)).await.unwrap().woken);
    let started = resumed(execution(false)).await.unwrap();
    let name = format!("{}-resume-1", world.session);
    assert_eq!(started.execution_arn, Some(format!("arn:{name}")));
    assert_eq!(world.calls(), ["wake parked".to_owned(), format!("start {name} BUSY")]);
    let events = read::events(&world.store, &world.session).await.unwrap();
    let requests = events.iter().filter(|event| event.status == EventStatus::ResumeRequested);
    let found: Vec<_> = requests.map(|event| (event.about, event.principal.clone())).collect();
    assert_eq!(found, [(About::Step(2), Some(by()))], "once for each step");
}
