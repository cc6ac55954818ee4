//! The poller's writes.

use std::time::Duration;

use agentcore::Runtime;
use aws_credential_types::Credentials;
use journal::announce::Announcer;
use journal::chain::{Author, Head, append};
use journal::clock::{Clock, Hlc, Stamp};
use journal::event::{About, Draft, EventStatus, Writer};
use journal::id::{Runner, SessionId};
use journal::item::Hash;
use journal::read;
use journal::sqlite::{Durability, SqliteStore};
use journal::step::{AnsweredBy, EffectKind, EffectRef, Ending, StepBody};
use poller::Poller;
use serde_json::{Value, json};
use workflow::contract::{CheckReply, CheckRequest, Failure, Judgement, Mode, Watch, Woken};

/// No server listens there: a verdict needs only the journal.
const NOWHERE: &str = "http://127.0.0.1:9";

pub struct World {
    _folder: tempfile::TempDir,
    pub store: SqliteStore,
    pub poller: Poller<SqliteStore>,
    hlc: Hlc,
    pub session: SessionId,
}

fn now() -> Stamp {
    Stamp::parse("2026-11-21T10:00:00Z").unwrap()
}

pub fn world() -> World {
    world_at(NOWHERE)
}

/// A world whose callbacks go to an endpoint.
pub fn world_at(endpoint: &str) -> World {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("journal.db"), Durability::Relaxed).unwrap();
    let clock = Clock::fixed(now());
    let credentials = Credentials::from_keys("local", "local", None);
    let callbacks = aws_sdk_sfn::Client::from_conf(
        aws_sdk_sfn::Config::builder()
            .behavior_version_latest()
            .region(aws_sdk_sfn::config::Region::new("us-east-1"))
            .credentials_provider(credentials.clone())
            .endpoint_url(endpoint)
            .build(),
    );
    let client = aws_sdk_bedrockagentcore::Client::from_conf(
        aws_sdk_bedrockagentcore::Config::builder()
            .behavior_version_latest()
            .region(aws_sdk_bedrockagentcore::config::Region::new("us-east-1"))
            .credentials_provider(credentials)
            .endpoint_url(NOWHERE)
            .build(),
    );
    let runtime = Runtime { client, arn: "arn".to_owned(), qualifier: None };
    World {
        _folder: folder,
        poller: Poller::new(store.clone(), callbacks, runtime, clock.clone()),
        store,
        hlc: Hlc::new(clock, now()),
        session: "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap(),
    }
}

impl World {
    async fn announce(&self, writer: Writer, draft: Draft) {
        let (store, hlc, session) = (&self.store, &self.hlc, &self.session);
        let announcer = Announcer { store, hlc, session, writer, expires_at: self.expires_at() };
        announcer.announce(&draft).await.unwrap();
    }

    pub async fn agent_ends(&self, ending: Ending) {
        self.agent_ends_by(ending, None).await;
    }

    async fn agent_ends_by(&self, ending: Ending, answered_by: Option<AnsweredBy>) {
        let author = Author {
            session: self.session.clone(),
            runner: Runner::fresh("agent"),
            expires_at: self.expires_at(),
        };
        let end = StepBody::End {
            ending,
            error: None,
            category: None,
            answered_by,
            payload: json!({ "answer": 42 }),
        };
        append(&self.store, &self.hlc, &author, &Head::genesis(), 1, end).await.unwrap();
    }

    /// Journals the session's first record and a question, the second step.
    pub async fn agent_asks(&self) {
        let initiated = Draft::new(EventStatus::SessionInitiated, About::Session);
        self.announce(Writer::StateMachine, initiated).await;
        let author = Author {
            session: self.session.clone(),
            runner: Runner::fresh("agent"),
            expires_at: self.expires_at(),
        };
        let (agent, graph_version) = ("asker".to_owned(), "1".to_owned());
        let claim = StepBody::Claim { supersedes: 0, agent, graph_version, input: None };
        let claim = append(&self.store, &self.hlc, &author, &Head::genesis(), 1, claim).await;
        let effect = EffectRef {
            kind: EffectKind::Ask,
            digest: Hash::genesis(),
            node: "asks".to_owned(),
            call: 0,
        };
        let question = json!({ "prompt": "Go on?", "choices": ["approve", "reject"] });
        let expires_at = now().after(Duration::from_secs(3_600));
        let ask = StepBody::Ask { effect, payload: json!({ "question": question }), expires_at };
        let head = Head::after(&claim.unwrap());
        append(&self.store, &self.hlc, &author, &head, 1, ask).await.unwrap();
    }

    /// Checks after a callback with this output.
    pub async fn called_back(&self, poller: &Poller<SqliteStore>, output: Value) {
        let request = json!({
            "mode": "check", "session_id": self.session, "execution_arn": "arn",
            "expires_at": self.expires_at(), "seen": now(), "now": now(), "woken": "callback",
            "watch": Watch { invocation: 1, ..Watch::default() }, "callback": output,
        });
        Box::pin(poller.serve(request)).await.unwrap();
    }

    pub fn now(&self) -> Stamp {
        now()
    }

    /// Checks once.
    pub async fn check(&self) -> CheckReply {
        self.ask(Mode::Check, None).await
    }

    pub fn expires_at(&self) -> i64 {
        now().after(Duration::from_secs(90 * 86_400)).seconds()
    }

    async fn ask(&self, mode: Mode, failure: Option<Failure>) -> CheckReply {
        self.handle(mode, failure, None).await
    }

    /// Parks the workflow, which waits for this token.
    pub async fn park(&self, token: &str) -> CheckReply {
        self.handle(Mode::Park, None, Some(token.to_owned())).await
    }

    async fn handle(
        &self,
        mode: Mode,
        failure: Option<Failure>,
        token: Option<String>,
    ) -> CheckReply {
        let request = CheckRequest {
            mode,
            traceparent: None,
            session_id: self.session.clone(),
            execution_arn: "arn".to_owned(),
            expires_at: self.expires_at(),
            seen: now(),
            now: now(),
            watch: Watch { invocation: 1, ..Watch::default() },
            woken: Woken::Not,
            callback: Value::Null,
            retry: 0,
            token,
            failure,
        };
        self.poller.handle(request).await.unwrap()
    }

    async fn statuses(&self) -> Vec<EventStatus> {
        let events = read::events(&self.store, &self.session).await.unwrap();
        events.iter().map(|event| event.status).collect()
    }
}

#[tokio::test]
async fn an_ended_session_gets_its_announcement_then_its_verdict() {
    let world = world();
    world
        .announce(
            Writer::Invoker,
            Draft::new(EventStatus::AgentInvocationStarted, About::Attempt(10)),
        )
        .await;
    world.agent_ends(Ending::Completed).await;
    let reply = world.ask(Mode::Check, None).await;
    assert_eq!(reply.status, Judgement::Completed);
    let told = [
        EventStatus::AgentInvocationStarted,
        EventStatus::AgentBackgroundTaskCompleted,
        EventStatus::SessionSucceeded,
    ];
    assert_eq!(world.statuses().await, told);
    let again = world.ask(Mode::Check, None).await;
    assert_eq!(again.verdict, reply.verdict, "a second check changes nothing");
    assert_eq!(world.statuses().await, told);
}

#[tokio::test]
async fn a_cancellation_request_is_seen_behind_many_events() {
    let world = world();
    let cancel = Draft::new(EventStatus::CancelRequested, About::Session);
    world.announce(Writer::Person, cancel).await;
    for attempt in 10..60 {
        let started = Draft::new(EventStatus::AgentInvocationStarted, About::Attempt(attempt));
        world.announce(Writer::Invoker, started).await;
    }
    assert_eq!(world.ask(Mode::Check, None).await.status, Judgement::Cancelled);
}

#[tokio::test]
async fn the_verdict_seals_every_event_before_it() {
    let world = world();
    world
        .announce(
            Writer::Invoker,
            Draft::new(EventStatus::AgentInvocationStarted, About::Attempt(10)),
        )
        .await;
    world.agent_ends(Ending::Failed).await;
    world.ask(Mode::Check, None).await;
    let events = read::events(&world.store, &world.session).await.unwrap();
    let (verdict, sealed) = events.split_last().unwrap();
    let seal = verdict.seal.as_ref().unwrap();
    let manifest = read::payload(&world.store, &world.session, &seal.manifest).await.unwrap();
    let expected: Value =
        sealed.iter().map(|event| json!([event.sk, event.hash.as_str()])).collect();
    assert_eq!(manifest, expected);
    assert_eq!(seal.end_seq, 1);
}

#[tokio::test]
async fn a_workflow_that_cannot_go_on_closes_its_session() {
    let world = world();
    let failure =
        Failure { error: "States.Permissions".to_owned(), cause: "not allowed".to_owned() };
    let reply = world.ask(Mode::Close, Some(failure)).await;
    let verdict = reply.verdict.unwrap();
    assert_eq!(reply.status, Judgement::Failed);
    assert_eq!(verdict.error.as_deref(), Some("SessionFailed"));
    assert!(verdict.cause.unwrap().starts_with("WorkflowError: States.Permissions - not allowed"));
    assert_eq!(world.statuses().await, [EventStatus::SessionFailed]);
}

#[tokio::test]
async fn closing_a_session_that_has_ended_leaves_its_end_alone() {
    let world = world();
    world.agent_ends(Ending::Completed).await;
    let reply = world.ask(Mode::Close, None).await;
    assert_eq!(reply.status, Judgement::Completed);
}

#[tokio::test]
async fn a_verdict_seals_an_end_step_that_is_durable() {
    let world = world();
    world.ask(Mode::Close, None).await;
    let events = read::events(&world.store, &world.session).await.unwrap();
    let seal = events.last().unwrap().seal.as_ref().unwrap();
    let steps = read::steps(&world.store, &world.session).await.unwrap();
    let end = steps.last().expect("the end is a step");
    assert!(matches!(end.body, StepBody::End { ending: Ending::Failed, .. }));
    assert_eq!((seal.end_seq, &seal.end_hash), (end.seq, &end.hash));
}

fn asking(expires_at: Stamp) -> StepBody<Value> {
    let (node, digest) = ("confirm".to_owned(), Hash::genesis());
    let effect = EffectRef { node, kind: EffectKind::Ask, digest, call: 0 };
    StepBody::Ask { effect, expires_at, payload: json!({}) }
}

#[tokio::test]
async fn the_poller_writes_missing_announcements() {
    use EventStatus as E;
    for (is_answered, expected) in [
        (false, vec![E::AgentBackgroundTaskSuspended]),
        (true, vec![E::AgentBackgroundTaskSuspended, E::InputReceived]),
    ] {
        let world = world();
        let author = |writer: Writer| Author {
            session: world.session.clone(),
            runner: Runner::fresh(writer.as_str()),
            expires_at: world.expires_at(),
        };
        let (store, hlc) = (&world.store, &world.hlc);
        let agent = author(Writer::Agent);
        let ask = asking(now().after(Duration::from_secs(3_600)));
        let ask = append(store, hlc, &agent, &Head::genesis(), 1, ask).await.unwrap();
        if is_answered {
            let answer =
                StepBody::Answer { question: ask.seq, principal: None, payload: json!({}) };
            let head = Head::after(&ask);
            append(store, hlc, &author(Writer::Person), &head, 1, answer).await.unwrap();
        }
        world.ask(Mode::Check, None).await;
        assert_eq!(world.statuses().await, expected);
        world.ask(Mode::Check, None).await;
        assert_eq!(world.statuses().await, expected, "once");
    }
}

#[tokio::test]
async fn a_verdict_says_that_the_policy_stood_in() {
    for (by, expected) in [
        (None, None),
        (Some(AnsweredBy::Policy), Some(json!({ "answered_by": "policy" }))),
        (Some(AnsweredBy::Both), Some(json!({ "answered_by": "both" }))),
    ] {
        let world = world();
        world.agent_ends_by(Ending::Completed, by).await;
        let output = world.ask(Mode::Check, None).await.verdict.unwrap();
        let events = read::events(&world.store, &world.session).await.unwrap();
        let verdict = events.iter().find(|event| event.status.is_verdict()).unwrap();
        assert_eq!((&verdict.detail, output.answered_by), (&expected, by));
    }
}
