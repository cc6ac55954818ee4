//! A session for a race: its start, its participants, its end, and the invariants afterwards.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use agent::host::{Config, Host};
use agent::model::Models;
use agent::settings::Defaults;
use agent::tool::{Servers, Timeouts};
use agentcore::Runtime;
use graph::profile::Limits;
use invoker::Invoker;
use invoker::admission::Rules;
use journal::announce::Announcer;
use journal::chain::{Author, Head, append};
use journal::clock::{Clock, Hlc, Stamp};
use journal::event::{About, Draft, Event, EventStatus, Writer};
use journal::id::{Runner, SessionId};
use journal::item::Item;
use journal::key;
use journal::read;
use journal::sqlite::SqliteStore;
use journal::step::{Ending, Step, StepBody};
use journal::store::{Query, Store, query_all};
use journal::verify::{Anchors, Damage, State, verify};
use poller::Poller;
use serde_json::{Value, json};
use sim::check;
use sim::interleave::{Cloud, Gate, Race};
use workflow::contract::{
    AgentRequest, CheckReply, CheckRequest, InvokeRequest, Judgement, Mode, Watch, Woken,
};
use workflow::trigger::Trigger;

/// Invocations after which a session counts as endless.
const ROUNDS_MAX: u32 = 8;

const RETENTION: Duration = Duration::from_secs(90 * 86_400);

pub const EXECUTION_ARN: &str = "arn:aws:states:us-east-1:000000000000:execution:sim:one";

/// How far ahead the clocks of three writers are, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Skews {
    pub agent_ns: i64,
    pub person_ns: i64,
    pub poller_ns: i64,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Stage<S> {
    pub session: SessionId,
    pub store: Gate<S>,
    pub clock: Clock,
    pub expires_at: i64,
    pub began_at: Stamp,
    /// The participants' replies, with their names.
    answers: Arc<Mutex<Vec<(&'static str, String)>>>,
}

impl<S: Store> Stage<S> {
    /// A session without records.
    pub fn empty(race: &Race<S>) -> Self {
        let began_at = race.clock().now();
        Self {
            session: SessionId::fresh(),
            store: race.store(),
            clock: race.clock().clone(),
            expires_at: began_at.after(RETENTION).seconds(),
            began_at,
            answers: Arc::default(),
        }
    }

    /// A session that the state machine started.
    pub async fn begun(race: &Race<S>) -> Self {
        let stage = Self::empty(race);
        let stamp = stage.began_at;
        let initiated = Item::new(key::session(&stage.session), key::event(stamp))
            .with("V", 1_u32)
            .with("Status", EventStatus::SessionInitiated.as_str())
            .with("Timestamp", stamp.to_string())
            .with("EventId", "initiated")
            .with("Writer", Writer::StateMachine.as_str())
            .with("ExecutionArn", EXECUTION_ARN)
            .with("Day", key::day(stamp, &stage.session))
            .with("ExpiresAt", stage.expires_at);
        stage.store.put(initiated, journal::store::Condition::Absent).await.unwrap();
        stage
    }

    /// A clock that has seen the session's start.
    pub fn hlc(&self) -> Hlc {
        Hlc::new(self.clock.clone(), self.began_at)
    }

    /// Announces something before the race.
    pub async fn announce(&self, writer: Writer, status: EventStatus, about: About) {
        let (store, hlc, session) = (&self.store, &self.hlc(), &self.session);
        let announcer = Announcer { store, hlc, session, writer, expires_at: self.expires_at };
        announcer.announce_once(&Draft::new(status, about)).await.unwrap();
    }

    pub fn author(&self, runner: &str) -> Author {
        Author {
            session: self.session.clone(),
            runner: Runner::named(runner),
            expires_at: self.expires_at,
        }
    }

    /// Appends to the chain outside the race.
    pub async fn append(&self, runner: &str, epoch: u32, body: StepBody<Value>) -> Step<Value> {
        let newest = read::newest_step(&self.store, &self.session).await.unwrap();
        let head = newest.as_ref().map_or_else(Head::genesis, Head::after);
        let hlc = self.hlc();
        newest.iter().for_each(|step| hlc.observe(step.stamp));
        append(&self.store, &hlc, &self.author(runner), &head, epoch, body).await.unwrap()
    }

    /// An agent's container whose clock is this many nanoseconds ahead.
    pub fn host_ahead(&self, gate: Gate<S>, ahead_ns: i64) -> Host<Gate<S>> {
        let config = Config {
            agents: packs::all().into(),
            callbacks: nowhere().0.clone(),
            progress: Default::default(),
            clock: self.clock.ahead_by(ahead_ns),
            servers: Servers::parse(r#"{"mcpServers": {}}"#, |_| None).unwrap(),
            timeouts: Timeouts { connect: RETENTION, init: RETENTION },
            models: Models::default(),
            defaults: Defaults::default(),
        };
        Host::new(gate, config)
    }

    pub fn host(&self, gate: Gate<S>) -> Host<Gate<S>> {
        self.host_ahead(gate, 0)
    }

    /// Body of an invocation of the agent.
    pub fn invocation(&self, attempt: u32, supersedes: u32) -> Vec<u8> {
        let request = AgentRequest {
            session_id: self.session.clone(),
            invocation_id: format!("{}/{attempt}", self.session),
            attempt,
            supersedes,
            trigger: Trigger::parse(&json!({"agent": "checkup"})).unwrap(),
            expires_at: self.expires_at,
            seen: self.began_at,
        };
        serde_json::to_vec(&request).unwrap()
    }

    /// Invokes an agent and returns when it has finished.
    pub async fn invoke(
        &self,
        name: &'static str,
        host: &Host<Gate<S>>,
        attempt: u32,
        supersedes: u32,
    ) {
        let response = host.invoke(&self.invocation(attempt, supersedes)).await;
        let outcome = response.body["outcome"].as_str().unwrap_or("none");
        self.answer(name, outcome);
        self.idle(host).await;
    }

    /// Returns when an agent has finished.
    pub async fn idle(&self, host: &Host<Gate<S>>) {
        while host.has(&self.session) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Records a participant's reply.
    pub fn answer(&self, name: &'static str, answer: &str) {
        self.answers.lock().unwrap().push((name, answer.to_owned()));
    }

    /// A participant's replies, in order.
    pub fn answers(&self, name: &str) -> Vec<String> {
        let answers = self.answers.lock().unwrap();
        answers.iter().filter(|(who, _)| *who == name).map(|(_, answer)| answer.clone()).collect()
    }

    /// How many replies were equal to this.
    pub fn answered(&self, answer: &str) -> usize {
        self.answers.lock().unwrap().iter().filter(|(_, found)| found == answer).count()
    }

    /// A poller whose clock is this many nanoseconds ahead.
    pub fn poller_ahead(&self, gate: Gate<S>, ahead_ns: i64) -> Poller<Gate<S>> {
        let (callbacks, runtime) = nowhere().clone();
        Poller::new(gate, callbacks, runtime, self.clock.ahead_by(ahead_ns))
    }

    pub fn poller(&self, gate: Gate<S>) -> Poller<Gate<S>> {
        self.poller_ahead(gate, 0)
    }

    /// An invoker that invokes this agent, with a clock that is this many nanoseconds ahead.
    pub fn invoker(&self, gate: Gate<S>, host: Host<Gate<S>>, ahead_ns: i64) -> Invoker<Gate<S>> {
        let runtime = Cloud::empty().with(host).runtime();
        let rules = Rules { agents: packs::all().into(), limits: Limits::default() };
        Invoker::new(gate, runtime, self.clock.ahead_by(ahead_ns)).with_rules(rules)
    }

    /// The state machine's request to invoke the agent.
    pub fn invoke_request(&self, invocation: u32, retry: u32, supersedes: u32) -> InvokeRequest {
        InvokeRequest {
            session_id: self.session.clone(),
            execution_arn: EXECUTION_ARN.to_owned(),
            detail: json!({}),
            expires_at: self.expires_at,
            seen: self.began_at,
            asked_at: self.began_at,
            invocation,
            retry,
            supersedes,
        }
    }

    /// The state machine's request to check the session.
    pub fn check_request(&self, mode: Mode) -> CheckRequest {
        CheckRequest {
            mode,
            traceparent: None,
            session_id: self.session.clone(),
            execution_arn: EXECUTION_ARN.to_owned(),
            expires_at: self.expires_at,
            seen: self.began_at,
            now: self.clock.now(),
            watch: Watch { invocation: 1, ..Watch::default() },
            woken: Woken::Not,
            callback: Value::Null,
            retry: 0,
            token: None,
            failure: None,
        }
    }

    pub async fn steps(&self) -> Vec<Step<Value>> {
        read::resolved_steps(&self.store, &self.session).await.unwrap()
    }

    pub async fn events(&self) -> Vec<Event> {
        read::events(&self.store, &self.session).await.unwrap()
    }

    /// Brings the session to its verdict after the race, as the state machine would: checks, and
    /// invokes the agent again while there is no end. Approves an open question.
    pub async fn finish(&self) -> CheckReply {
        let poller = self.poller(self.store.clone());
        for round in 0..ROUNDS_MAX {
            let reply = poller.handle(self.check_request(Mode::Check)).await.unwrap();
            if reply.status.terminal().is_some() {
                return reply;
            }
            let steps = self.steps().await;
            let newest = steps.last();
            if let Some(StepBody::Ask { .. }) = newest.map(|step| &step.body) {
                let (question, epoch) = newest.map_or((0, 0), |step| (step.seq, step.epoch));
                let payload = json!({ "question_id": question, "decision": "approve" });
                self.append(
                    "person",
                    epoch,
                    StepBody::Answer { question, principal: None, payload },
                )
                .await;
            }
            let host = self.host(self.store.clone());
            let epoch = newest.map_or(0, |step| step.epoch);
            self.invoke("after the race", &host, 900 + round, epoch).await;
        }
        panic!("no end after {ROUNDS_MAX} invocations: {:#?}", self.steps().await);
    }

    /// Brings the session to its verdict and returns violations.
    pub async fn judge(&self, race: &Race<S>) -> Vec<String> {
        let reply = self.finish().await;
        let mut broken = Vec::new();
        let items = self.items().await;
        let steps: Vec<_> = self.steps_of(&items);
        let events = read::in_order(events_of(&items)).unwrap();
        check::chain(&steps, &mut broken);
        check::effects(&steps, &mut broken);
        check::order(&events, &mut broken);
        let verdict = check::verdict(&steps, &events, &mut broken);
        let head = reply.verdict.as_ref().map(|verdict| verdict.head.clone());
        if verdict.as_ref().map(|verdict| verdict.hash.as_str().to_owned()) != head {
            broken.push(format!("the poller's verdict is {head:?}, not {verdict:?}"));
        }
        shown_once(&events, &mut broken);
        causes_first(&steps, &events, &mut broken);
        let anchors = Anchors::of(verdict.map(|verdict| verdict.hash));
        let verified = verify(&self.session, &items, &anchors, self.clock.now());
        let late = after_the_end(race, &self.session);
        let honest = |damage: &&Damage| matches!(damage, Damage::Added { place, .. } if late.contains(place));
        let damage = verified.damage.iter().filter(|damage| !honest(damage));
        broken.extend(damage.map(|damage| format!("verifying: {damage}")));
        if !matches!(verified.state, State::Sealed { .. }) {
            broken.push(format!("verifying: {}", verified.state));
        }
        in_sequence(race, &self.session, &mut broken);
        broken
    }

    fn steps_of(&self, items: &[Item]) -> Vec<Step> {
        let partition = key::session(&self.session);
        let steps = items.iter().filter(|item| item.pk == partition);
        let steps = steps.filter(|item| item.sk.starts_with(key::STEP_PREFIX));
        steps.map(|item| Step::from_item(item).unwrap()).collect()
    }

    /// All records of the session, including parts of payloads.
    pub async fn items(&self) -> Vec<Item> {
        let mut items =
            query_all(&self.store, Query::all(key::session(&self.session))).await.unwrap();
        let mut blobs = BTreeSet::new();
        for item in &items {
            if let Ok(Some(journal::payload::Payload::Parts { sha256, .. })) =
                journal::payload::Payload::read_from(item)
            {
                blobs.insert(key::blob(&self.session, sha256.as_str()));
            }
        }
        for blob in blobs {
            items.extend(query_all(&self.store, Query::all(blob)).await.unwrap());
        }
        items
    }
}

/// Clients of an empty cloud, created once because that is slow.
fn nowhere() -> &'static (aws_sdk_sfn::Client, Runtime) {
    static CLIENTS: OnceLock<(aws_sdk_sfn::Client, Runtime)> = OnceLock::new();
    let empty = Cloud::<SqliteStore>::empty();
    CLIENTS.get_or_init(|| (empty.callbacks(), empty.runtime()))
}

pub fn events_of(items: &[Item]) -> impl Iterator<Item = &Item> {
    items.iter().filter(|item| item.sk.starts_with(key::EVENT_PREFIX))
}

/// Each fact is shown once, however often it was announced.
fn shown_once(events: &[Event], broken: &mut Vec<String>) {
    let mut shown = BTreeSet::new();
    for event in events {
        if !shown.insert((event.status, event.about)) {
            broken.push(format!("{} about {:?} is shown twice", event.status, event.about));
        }
    }
}

/// No step is older than its predecessor, and none is announced before it was written.
fn causes_first(steps: &[Step], events: &[Event], broken: &mut Vec<String>) {
    for pair in steps.windows(2) {
        if pair[1].stamp <= pair[0].stamp {
            let (later, earlier) = (pair[1].stamp, pair[0].stamp);
            broken.push(format!("step {} is of {later}, the one before of {earlier}", pair[1].seq));
        }
    }
    for event in events {
        let About::Step(seq) = event.about else { continue };
        let step = steps.iter().find(|step| step.seq == seq);
        if step.is_none_or(|step| step.stamp >= event.stamp) {
            broken.push(format!("{} is not later than step {seq}", event.status));
        }
    }
}

/// Events written after the end, when the sealer may have read what it seals.
///
/// If such an event has a timestamp before the verdict, verification reports it as added: the
/// journal cannot distinguish a slow honest writer from a forger. The test has seen the writes, so
/// it accepts exactly these.
fn after_the_end<S: Store>(race: &Race<S>, session: &SessionId) -> BTreeSet<String> {
    let log = race.log();
    let writes = log.iter().filter(|write| write.landed && write.item.pk == key::session(session));
    let after = writes.skip_while(|write| write.item.text_opt("Kind") != Some("end"));
    let events = after.filter_map(|write| Event::from_item(&write.item).ok());
    events.filter(|event| !event.status.announces_a_step()).map(|event| event.sk).collect()
}

/// Each step was written after its predecessor, and none after the end.
fn in_sequence<S: Store>(race: &Race<S>, session: &SessionId, broken: &mut Vec<String>) {
    let (mut newest, mut ended) = (0, false);
    for write in race.log().iter().filter(|write| write.landed) {
        let item = &write.item;
        if item.pk != key::session(session) || !item.sk.starts_with(key::STEP_PREFIX) {
            continue;
        }
        let seq = item.number("Seq").unwrap();
        if seq == newest {
            // It was sent again because its reply was lost, and the store recognised it.
            continue;
        }
        if seq != newest + 1 || ended {
            broken.push(format!("step {seq} was written after step {newest}, ended: {ended}"));
        }
        newest = seq;
        ended = item.text_opt("Kind") == Some("end");
    }
}

/// How a session ended, if it has.
pub fn ending(steps: &[Step<Value>]) -> Option<Ending> {
    steps.last().and_then(|step| match &step.body {
        StepBody::End { ending, .. } => Some(*ending),
        _ => None,
    })
}

/// The poller's judgement as the state machine reads it.
pub fn spelled(judgement: Judgement) -> String {
    serde_json::to_value(judgement).unwrap().as_str().unwrap().to_owned()
}
