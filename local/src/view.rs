//! What the command line and the API show of a session: plain JSON shapes, made from its records.
//!
//! Pure: events and steps go in, shapes come out, and `now` is an argument. [`Session`] is the whole
//! in one object, [`Event`] and [`Step`] are one record each, [`Record`] marks which of them an
//! object is. A tool's outcome does not repeat its call; [`Calls`] finds it again.

use std::sync::Arc;

use graph::agent::{Agent, Opening};
use graph::digest;
use graph::effect::{Effect, ToolCall};
use graph::next::Next;
use graph::outcome::Brought;
use graph::question::{Decision, Question};
use graph::run::Run;
use journal::clock::Stamp;
use journal::event::EventStatus;
use journal::id::SessionId;
use journal::status::Status;
use journal::step::{EffectKind, StepBody, StepKind};
use journal::tally::{Asked, Spent, Tally, Told};
use serde::Serialize;
use serde_json::Value;

/// The agent whose sessions also show an [`IncidentState`].
pub const INCIDENT_AGENT: &str = "incident";

/// Categories of errors that kept an incident's agent from running.
const ERROR_CATEGORIES: [&str; 9] = [
    "mcp_connection",
    "mcp_init",
    "bedrock_auth",
    "bedrock_transient",
    "openai_auth",
    "openai_transient",
    "model_unavailable",
    "transcript_miss",
    "unknown",
];

/// One line of output: a shape and, in `type`, which one it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Record {
    /// A session.
    Session(Session),
    /// An event.
    Event(Event),
    /// A step.
    Step(Step),
}

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Session {
    /// Its id.
    pub session_id: SessionId,
    /// Where it stands.
    pub status: Status,
    /// The agent, once one is known.
    pub agent: Option<String>,
    /// When it began.
    pub initiated_at: Option<Stamp>,
    /// When it ended.
    pub ended_at: Option<Stamp>,
    /// From its begin to its end, or to now, in milliseconds.
    pub elapsed_ms: Option<u64>,
    /// What went wrong, `Type: Code - message`.
    pub error: Option<String>,
    /// The error's category, one word.
    pub error_category: Option<String>,
    /// What the agent brought.
    pub result: Option<Value>,
    /// How many bytes the result has, where it is left out of a list because they are many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<usize>,
    /// Where the incident stands, in sessions of the incident agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incident_state: Option<IncidentState>,
    /// The question that waits for an answer.
    pub open_question: Option<OpenQuestion>,
    /// When it goes on by itself, if it sleeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asleep_until: Option<Stamp>,
    /// How many steps it has.
    pub steps: u32,
    /// What it used of a model.
    pub tokens: Tokens,
    /// What that cost, in dollars.
    pub usd: f64,
}

/// Where an incident stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum IncidentState {
    /// The session began.
    Received,
    /// The agent works on it.
    Investigating,
    /// The agent found out.
    Diagnosed,
    /// The agent ran and did not find out, or was not let in.
    Failed,
    /// Something kept the agent from running.
    Error,
}

/// A question that waits for an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpenQuestion {
    /// The number of its step; an answer names it.
    pub question_id: u32,
    /// The text.
    pub prompt: String,
    /// The tool that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The tool's arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// Why the call is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// The decisions that can be taken.
    pub choices: Vec<Decision>,
    /// When it expires.
    pub expires_at: Stamp,
}

/// Tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// Sent to a model.
    pub input: u64,
    /// Received from it.
    pub output: u64,
    /// Of calls whose outcome was lost, counted at their maximum.
    pub unsettled: u64,
    /// Of those sent, the ones that the model had in its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    /// Of those sent, the ones that the model put into its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// Of all of them, the ones for which no price was known.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced: u64,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// The session.
    pub session_id: SessionId,
    /// Its sort key.
    pub sk: String,
    /// What happened.
    pub status: EventStatus,
    /// When.
    pub timestamp: Stamp,
    /// Who wrote it.
    pub writer: &'static str,
    /// What it is, however often it was written.
    pub event_id: String,
    /// What went wrong.
    pub error_message: Option<String>,
    /// More about it.
    pub detail: Option<Value>,
    /// The hash of the record.
    pub hash: String,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// The session.
    pub session_id: SessionId,
    /// Its sort key.
    pub sk: String,
    /// Its number.
    pub seq: u32,
    /// The claim that it was written under.
    pub epoch: u32,
    /// What it decides.
    pub kind: StepKind,
    /// The graph node that asked for its effect.
    pub node: Option<String>,
    /// What that effect asks of the world.
    pub effect: Option<EffectKind>,
    /// The call, in a tool's outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<ToolCall>,
    /// What it holds: an effect's outcome, a claim's input, a question, an answer, a result.
    pub outcome: Option<Value>,
    /// What went wrong, in an end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// When its effect was begun; for other steps, when it was written.
    pub started_at: Stamp,
    /// When it was written.
    pub finished_at: Stamp,
    /// What it used of a model.
    pub tokens: Tokens,
    /// What that cost, in dollars.
    pub usd: f64,
    /// The hash of the record.
    pub hash: String,
}

type RecordedEvent = journal::event::Event;
type RecordedStep = journal::step::Step<Value>;

impl Session {
    /// What `events`, in order of time, and `steps`, in sequence, say of a session at `now`.
    pub fn of(
        id: &SessionId,
        events: &[RecordedEvent],
        steps: &[RecordedStep],
        now: Stamp,
    ) -> Self {
        Self::adding_up(id, &Told::of(events), &Tally::of(steps), now)
    }

    /// The same, of records that were added up before.
    pub fn adding_up(id: &SessionId, told: &Told, tally: &Tally<Value>, now: Stamp) -> Self {
        let agent = tally.agent.clone().or_else(|| told.agent.clone());
        let (error, error_category) = error(told, tally);
        let incident_state = (agent.as_deref() == Some(INCIDENT_AGENT))
            .then(|| incident_state(told, error_category.as_deref()));
        let end = told.ended_at.unwrap_or(now);
        Self {
            session_id: id.clone(),
            status: told.status,
            agent,
            initiated_at: told.initiated_at,
            ended_at: told.ended_at,
            elapsed_ms: told.initiated_at.map(|at| millis(end.since(at))),
            error,
            error_category,
            result: result(tally, incident_state),
            result_bytes: None,
            incident_state,
            open_question: waits_for(told.status, tally).and_then(Result::ok),
            asleep_until: waits_for(told.status, tally).and_then(Result::err),
            steps: tally.steps,
            tokens: Tokens::of(&tally.spent),
            usd: usd(&tally.spent),
        }
    }
}

impl Tokens {
    fn of(spent: &Spent) -> Self {
        Self {
            input: spent.input_tokens,
            output: spent.output_tokens,
            unsettled: spent.unsettled_tokens,
            cache_read: spent.cache_read_tokens,
            cache_write: spent.cache_write_tokens,
            unpriced: spent.unpriced_tokens,
        }
    }
}

impl Event {
    /// The shape of an event.
    pub fn of(event: &RecordedEvent) -> Self {
        Self {
            session_id: event.session.clone(),
            sk: event.sk.clone(),
            status: event.status,
            timestamp: event.stamp,
            writer: event.writer.as_str(),
            event_id: event.id.as_str().to_owned(),
            error_message: event.error.as_ref().map(ToString::to_string),
            detail: event.detail.clone(),
            hash: event.hash.to_string(),
        }
    }
}

impl Step {
    /// The shape of a step. `call` is the tool call that it brings the outcome of, as [`Calls`]
    /// found it.
    pub fn of(step: &RecordedStep, call: Option<ToolCall>) -> Self {
        let effect = step.body.effect();
        let spent = Tally::of([step]).spent;
        let (started_at, error) = match &step.body {
            StepBody::Outcome { started_at, .. } => (*started_at, None),
            StepBody::End { error, .. } => (step.stamp, error.as_ref()),
            _ => (step.stamp, None),
        };
        Self {
            session_id: step.session.clone(),
            sk: journal::key::step(step.seq),
            seq: step.seq,
            epoch: step.epoch,
            kind: step.body.kind(),
            node: effect.map(|effect| effect.node.clone()),
            effect: effect.map(|effect| effect.kind),
            call,
            outcome: step.body.payload().cloned(),
            error_message: error.map(ToString::to_string),
            started_at,
            finished_at: step.stamp,
            tokens: Tokens::of(&spent),
            usd: usd(&spent),
            hash: step.hash.to_string(),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::cast_precision_loss, reason = "2^53 millionths are nine billion dollars")]
fn usd(spent: &Spent) -> f64 {
    spent.micro_usd as f64 / 1e6
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What went wrong and its category: as the end step has it, else the verdict, else whatever event
/// of a session that did not succeed told of an error last.
fn error(told: &Told, tally: &Tally<Value>) -> (Option<String>, Option<String>) {
    if told.status == Status::Succeeded {
        return (None, None);
    }
    let end = tally.end.as_ref();
    let heard = told.error.as_ref().filter(|_| told.status.is_terminal());
    let error = end.and_then(|end| end.error.as_ref()).or(heard);
    let category = end.and_then(|end| end.error_category.clone());
    (error.map(ToString::to_string), category.or_else(|| told.error_category.clone()))
}

fn incident_state(told: &Told, category: Option<&str>) -> IncidentState {
    let ran = told.has_run;
    match told.status {
        Status::Succeeded => IncidentState::Diagnosed,
        Status::Rejected => IncidentState::Failed,
        Status::Failed | Status::TimedOut | Status::Cancelled => match category {
            Some(category) if ERROR_CATEGORIES.contains(&category) => IncidentState::Error,
            None if !ran && told.status == Status::Failed => IncidentState::Error,
            _ => IncidentState::Failed,
        },
        Status::Initiated | Status::Running | Status::Waiting if ran => {
            IncidentState::Investigating
        }
        Status::Initiated | Status::Running | Status::Waiting => IncidentState::Received,
    }
}

/// The end step's payload; an incident's also says where the incident stands.
fn result(tally: &Tally<Value>, incident_state: Option<IncidentState>) -> Option<Value> {
    let mut result = tally.end.as_ref()?.payload.clone();
    if result.is_null() {
        return None;
    }
    if let (Some(fields), Some(state)) = (result.as_object_mut(), incident_state) {
        fields.insert("incident_state".to_owned(), serde_json::json!(state));
    }
    Some(result)
}

/// What a session waits for: a question's answer, or else a time. A question is open while its step
/// is the newest one.
fn waits_for(status: Status, tally: &Tally<Value>) -> Option<Result<OpenQuestion, Stamp>> {
    let Asked { seq, expires_at, payload } =
        tally.ask.as_ref().filter(|_| !status.is_terminal())?;
    // An unreadable question is still a question: it can be rejected.
    let question = payload.get("question").cloned().unwrap_or_default();
    let question: Question = serde_json::from_value(question)
        .unwrap_or_else(|_| Question::open("the question cannot be read"));
    if question.is_sleep() {
        return Some(Err(*expires_at));
    }
    Some(Ok(OpenQuestion {
        question_id: *seq,
        prompt: question.prompt,
        tool: question.tool,
        arguments: question.arguments,
        justification: question.justification,
        choices: question.choices,
        expires_at: *expires_at,
    }))
}

/// Finds the call that a tool's outcome answers, step by step.
///
/// The session's own graph is asked, folded along; where it is not at hand or another version, the
/// calls of the newest reply count if their digest is the recorded one.
pub struct Calls {
    agents: Arc<[Agent]>,
    run: Option<Run>,
    replied: Vec<ToolCall>,
}

impl Calls {
    /// Before the first step. `agents` are those that are at hand.
    pub fn new(agents: Arc<[Agent]>) -> Self {
        Self { agents, run: None, replied: Vec::new() }
    }

    /// The call that the next step is about, if it is a tool's intent or outcome.
    pub fn of(&mut self, step: &RecordedStep) -> Option<ToolCall> {
        if step.seq == 1 {
            self.run = self.start(step);
        }
        let call = self.asked(step).or_else(|| self.replied(step));
        if self.run.as_mut().is_some_and(|run| run.fold(step).is_err()) {
            self.run = None;
        }
        if let StepBody::Outcome { payload, .. } = &step.body
            && let Ok(Brought::Reply(reply)) = serde_json::from_value(payload.clone())
        {
            self.replied = reply.calls;
        }
        call
    }

    fn start(&self, step: &RecordedStep) -> Option<Run> {
        let StepBody::Claim { agent, .. } = &step.body else { return None };
        let opening = Opening::of(step).ok()?;
        agents::named(&self.agents, agent)?.start(&opening.input, &opening.settings).ok()
    }

    fn asked(&self, step: &RecordedStep) -> Option<ToolCall> {
        let effect = step.body.effect()?;
        let Next::Perform(requests) = self.run.as_ref()?.next() else { return None };
        requests.iter().find(|request| request.effect == *effect)?.call().cloned()
    }

    fn replied(&self, step: &RecordedStep) -> Option<ToolCall> {
        let effect = step.body.effect().filter(|effect| effect.kind == EffectKind::Tools)?;
        let asked = digest::effect(&effect.node, &Effect::Tools(self.replied.clone()));
        let place = usize::try_from(effect.call).ok()?;
        self.replied.get(place).filter(|_| asked == effect.digest).cloned()
    }
}

#[cfg(test)]
mod tests {
    use graph::effect::{Author, Reply};
    use journal::event::{About, Writer};
    use journal::id::{EventId, Runner};
    use journal::item::Hash;
    use journal::step::{EffectRef, Ending, Usage};
    use serde_json::json;

    use super::*;

    fn id() -> SessionId {
        "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap()
    }

    fn at(ms: i64) -> Stamp {
        Stamp::from_millis(1_795_000_000_000 + ms)
    }

    fn event(ms: i64, status: EventStatus, about: About) -> RecordedEvent {
        let (session, writer) = (id(), Writer::Agent);
        RecordedEvent {
            id: EventId::of(&session, writer.as_str(), status.as_str(), 1),
            session,
            stamp: at(ms),
            sk: journal::key::event(at(ms)),
            status,
            about,
            writer,
            error: None,
            detail: None,
            wall: None,
            expires_at: 0,
            seal: None,
            execution_arn: None,
            hash: Hash::genesis(),
        }
    }

    fn step(ms: i64, seq: u32, body: StepBody<Value>) -> RecordedStep {
        RecordedStep {
            session: id(),
            seq,
            epoch: 1,
            runner: Runner::named("agent:test"),
            stamp: at(ms),
            expires_at: 0,
            prev_hash: Hash::genesis(),
            hash: Hash::genesis(),
            body,
        }
    }

    fn claim(agent: &str) -> RecordedStep {
        let (agent, graph_version) = (agent.to_owned(), "0".to_owned());
        step(2, 1, StepBody::Claim { supersedes: 0, agent, graph_version, input: Some(json!({})) })
    }

    fn end(
        ms: i64,
        seq: u32,
        ending: Ending,
        category: Option<&str>,
        payload: Value,
    ) -> RecordedStep {
        let error = category.map(|_| journal::error_message::ErrorMessage::new("A", "B", "c"));
        step(
            ms,
            seq,
            StepBody::End { ending, error, category: category.map(str::to_owned), payload },
        )
    }

    /// An incident that asked a model and a tool, and found out.
    fn incident() -> (Vec<RecordedEvent>, Vec<RecordedStep>) {
        use EventStatus as E;
        let events = vec![
            event(0, E::SessionInitiated, About::Session),
            event(1, E::AgentInvocationStarted, About::Attempt(10)),
            event(3, E::AgentBackgroundTaskStarted, About::Epoch(1)),
            event(900, E::AgentBackgroundTaskCompleted, About::Step(4)),
            event(950, E::SessionSucceeded, About::Step(4)),
        ];
        let call = ToolCall::new("aws-diagnostics", "get_iam_state", json!({"lambda_name": "f"}));
        let reply = Reply { calls: vec![call.clone()], ..Reply::says("Let me look.") };
        let reply = Reply { by: Author::Model("openai:m".to_owned()), ..reply };
        let effect = |node: &str, kind, effect: &Effect| EffectRef {
            node: node.to_owned(),
            kind,
            digest: digest::effect(node, effect),
            call: 0,
        };
        let usage = Usage {
            input_tokens: 1_200,
            output_tokens: 80,
            unsettled_tokens: 7,
            micro_usd: 4_800,
            ..Usage::default()
        };
        let steps = vec![
            claim(INCIDENT_AGENT),
            step(
                400,
                2,
                StepBody::Outcome {
                    effect: effect("reason", EffectKind::Chat, &Effect::Nothing),
                    started_at: at(5),
                    usage,
                    payload: json!(Brought::Reply(reply)),
                },
            ),
            step(
                450,
                3,
                StepBody::Outcome {
                    effect: effect("tools", EffectKind::Tools, &Effect::Tools(vec![call])),
                    started_at: at(401),
                    usage: Usage::default(),
                    payload: json!(Brought::Ok(json!({"role_name": "r"}))),
                },
            ),
            end(899, 4, Ending::Completed, None, json!({"root_cause": "gone"})),
        ];
        (events, steps)
    }

    #[test]
    fn the_shapes_are_stable() {
        let (events, steps) = incident();
        let mut records = vec![Record::Session(Session::of(&id(), &events, &steps, at(5_000)))];
        records.extend(events.iter().map(|event| Record::Event(Event::of(event))));
        let mut calls = Calls::new(Arc::new([]));
        records.extend(steps.iter().map(|step| Record::Step(Step::of(step, calls.of(step)))));
        insta::assert_json_snapshot!(records);
    }

    #[test]
    fn a_tools_outcome_is_told_with_its_call_only_if_the_digest_says_so() {
        let (_, mut steps) = incident();
        let named = |steps: &[RecordedStep]| {
            let mut calls = Calls::new(Arc::new([]));
            steps.iter().filter_map(|step| calls.of(step)).map(|call| call.tool).collect::<Vec<_>>()
        };
        assert_eq!(named(&steps), ["get_iam_state"]);
        if let StepBody::Outcome { effect, .. } = &mut steps[2].body {
            effect.digest = Hash::genesis();
        }
        assert_eq!(named(&steps), Vec::<String>::new());
    }

    #[test]
    fn a_session_without_records_is_only_initiated() {
        let session = Session::of(&id(), &[], &[], at(0));
        assert_eq!(session.status, Status::Initiated);
        assert_eq!((session.agent, session.elapsed_ms, session.result), (None, None, None));
    }

    #[test]
    fn an_incident_stands_where_its_journal_says() {
        use EventStatus as E;
        let running = [
            event(0, E::SessionInitiated, About::Session),
            event(1, E::AgentInvocationStarted, About::Attempt(10)),
        ];
        let started = event(3, E::AgentBackgroundTaskStarted, About::Epoch(1));
        let check = |more: &[RecordedEvent], steps: &[RecordedStep], expected| {
            let events = [&running[..], more].concat();
            let session = Session::of(&id(), &events, steps, at(9));
            assert_eq!(session.incident_state, expected, "{more:?}");
        };
        let claimed = [claim(INCIDENT_AGENT)];
        let verdict = |status| event(9, status, About::Step(2));
        let failed = |category| {
            [claim(INCIDENT_AGENT), end(8, 2, Ending::Failed, Some(category), Value::Null)]
        };
        check(&[], &claimed, Some(IncidentState::Received));
        check(std::slice::from_ref(&started), &claimed, Some(IncidentState::Investigating));
        check(
            &[started.clone(), verdict(E::SessionSucceeded)],
            &claimed,
            Some(IncidentState::Diagnosed),
        );
        check(&[verdict(E::SessionRejected)], &claimed, Some(IncidentState::Failed));
        check(&[verdict(E::SessionFailed)], &claimed, Some(IncidentState::Error));
        for category in ERROR_CATEGORIES {
            check(
                &[started.clone(), verdict(E::SessionFailed)],
                &failed(category),
                Some(IncidentState::Error),
            );
        }
        check(
            &[started.clone(), verdict(E::SessionFailed)],
            &failed("limit"),
            Some(IncidentState::Failed),
        );
        check(&[started, verdict(E::SessionCancelled)], &claimed, Some(IncidentState::Failed));
        check(&[], &[claim("checkup")], None);
    }

    #[test]
    fn a_question_is_open_while_its_step_is_the_newest() {
        let question = json!({"question": {"prompt": "Go?", "tool": "run", "arguments": {"dose": 2.5}, "choices": ["approve", "reject"]}});
        let effect = EffectRef {
            node: "act".to_owned(),
            kind: EffectKind::Ask,
            digest: Hash::genesis(),
            call: 0,
        };
        let ask = |payload| {
            step(5, 2, StepBody::Ask { effect: effect.clone(), expires_at: at(99), payload })
        };
        let asked = [
            event(0, EventStatus::SessionInitiated, About::Session),
            event(6, EventStatus::AgentBackgroundTaskSuspended, About::Step(2)),
        ];
        let open = |steps: &[RecordedStep]| Session::of(&id(), &asked, steps, at(7)).open_question;
        insta::assert_json_snapshot!(open(&[claim("assistant"), ask(question.clone())]));
        let unreadable = open(&[claim("assistant"), ask(json!(7))]).unwrap();
        assert_eq!(unreadable.question_id, 2);
        let answer = StepBody::Answer { question: 2, payload: json!({}) };
        assert_eq!(open(&[claim("assistant"), ask(question), step(8, 3, answer)]), None);
    }
}
