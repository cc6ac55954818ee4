//! JSON shapes of a session for the command line and the API, built from its records.
//!
//! Pure: `now` is an argument. [`Session`] is the whole session in one object; [`Event`] and [`Step`]
//! are one record each; [`Record`] tags an object with its type. A tool's outcome does not repeat its
//! call; [`Calls`] finds it again.

mod bounded;
mod calls;
mod erased;
mod fallback;
mod origins;
mod principal;
mod request;
mod version;

use graph::agent::Agent;
use graph::conclusion::{Conclusion, Tone};
use graph::digest;
use graph::effect::ToolCall;
use graph::origin::Traced;
use graph::presentation::{Presentation, Standing, TITLE_CHARS_MAX};
use graph::question::{Decision, Question};
use journal::clock::Stamp;
use journal::event::EventStatus;
use journal::id::SessionId;
use journal::status::Status;
use journal::step::{AnsweredBy, EffectKind, StepBody, StepKind};
use journal::tally::{Asked, Ended, Reported, Spent, Tally};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use views::text::clip;

use bounded::asked;
pub use calls::Calls;
pub use erased::Erased;
pub use fallback::Fallback;
use origins::traced;
pub use principal::Principal;
pub use request::ModelRequest;
pub use version::NeedsVersion;

/// Longest summary of a conclusion in a list, in characters.
const SUMMARY_CHARS: usize = 600;

/// One line of output: a shape, with its name in `type`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Record {
    Session(Box<Session>),
    Event(Box<Event>),
    Step(Box<Step>),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Session {
    pub session_id: SessionId,
    /// What the session is about, as its agent words it.
    pub title: Option<String>,
    pub status: Status,
    /// The agent's verdict, one or two words.
    pub verdict: Option<String>,
    /// How the agent assesses that verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict_tone: Option<Tone>,
    /// The agent, if known.
    pub agent: Option<String>,
    /// The version of the agent's graph, from the newest claim.
    pub version: Option<String>,
    /// Who replied to its chats; `None` if there was no reply.
    pub answered_by: Option<AnsweredBy>,
    /// Why the policy replaced the model, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Fallback>,
    pub initiated_at: Option<Stamp>,
    pub ended_at: Option<Stamp>,
    /// From begin to end, or to now, in milliseconds.
    pub elapsed_ms: Option<u64>,
    /// As `Type: Code - message`.
    pub error: Option<String>,
    /// One word.
    pub error_category: Option<String>,
    pub result: Option<Value>,
    /// When, by whom and why its contents were erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erased: Option<Erased>,
    /// The result's size in bytes, if a list omits the result because it is large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<usize>,
    /// The agent's conclusion, in a few sentences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The agent's whole conclusion.
    #[serde(skip)]
    pub conclusion: Option<Conclusion>,
    /// The agent's own status field.
    #[serde(flatten)]
    pub agent_state: Option<AgentState>,
    pub open_question: Option<OpenQuestion>,
    /// The version of its agent that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs_version: Option<NeedsVersion>,
    /// The end of its sleep, if it sleeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asleep_until: Option<Stamp>,
    pub steps: u32,
    /// Model tokens used.
    pub tokens: Tokens,
    /// Their cost, in dollars.
    pub usd: f64,
}

/// A session's status in the agent's own words: one field of the session's JSON and of its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentState {
    pub field: &'static str,
    pub word: &'static str,
}

/// A question that waits for an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpenQuestion {
    /// The number of the question's step; an answer names it.
    pub question_id: u32,
    /// Digest of everything that is shown; an answer carries it, and is refused if it differs.
    pub digest: String,
    pub prompt: String,
    /// The tool's server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Hash of the tool as its server offered it when the question was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_schema: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The arguments as indented JSON, for readers that round numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_text: Option<String>,
    /// Why the agent needs the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// The valid decisions.
    pub choices: Vec<Decision>,
    pub expires_at: Stamp,
    /// Where each argument came from; `None` for a question without a call, and in a list if it was
    /// journaled without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origins: Option<Vec<Traced>>,
    /// Whether the record has no origins, and they were computed for this view.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub origins_computed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// Sent to a model.
    pub input: u64,
    /// Received from a model.
    pub output: u64,
    /// Of calls whose outcome was lost; each counts at its maximum.
    pub unsettled: u64,
    /// Input tokens that the model read from its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    /// Input tokens that the model wrote to its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// Tokens without a known price.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    pub session_id: SessionId,
    pub sk: String,
    pub status: EventStatus,
    pub timestamp: Stamp,
    pub writer: &'static str,
    /// The same for every copy of the event.
    pub event_id: String,
    pub error_message: Option<String>,
    pub detail: Option<Value>,
    /// Who triggered, cancelled or resumed; absent in other events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    pub hash: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    pub session_id: SessionId,
    pub sk: String,
    pub seq: u32,
    /// The epoch of the claim that it was written under.
    pub epoch: u32,
    pub kind: StepKind,
    /// The graph version of a claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The graph node that requested the effect.
    pub node: Option<String>,
    /// The kind of that effect.
    pub effect: Option<EffectKind>,
    /// The call that a tool's outcome answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<ToolCall>,
    /// The payload: an effect's outcome, a claim's input, a question, an answer, a result.
    pub outcome: Option<Value>,
    /// What the model was sent, of a chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<ModelRequest>,
    /// Who answered, or moved the session to another version; absent in other steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// The error of an end step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// When the effect began; for other steps, when the step was written.
    pub started_at: Stamp,
    pub finished_at: Stamp,
    /// Model tokens used.
    pub tokens: Tokens,
    /// Their cost, in dollars.
    pub usd: f64,
    pub hash: String,
}

type RecordedEvent = journal::event::Event;
type RecordedStep = journal::step::Step<Value>;

impl Session {
    /// A session at `now`, from its `events` in time order and its `steps` in sequence. Its agent, if it
    /// is among `agents`, says how to present it.
    pub fn of(
        id: &SessionId,
        events: &[RecordedEvent],
        steps: &[RecordedStep],
        agents: &[Agent],
        now: Stamp,
    ) -> Self {
        let tally = Tally::of(steps);
        let reported = Reported::of(events).corrected_by(&tally);
        let mut session = Self::adding_up(id, &reported, &tally, agents, now);
        if let Some(open) = &mut session.open_question {
            open.trace(steps);
        }
        session
    }

    /// The same, from tallied records. The status is that of `reported`, corrected by the tally.
    pub fn adding_up(
        id: &SessionId,
        reported: &Reported,
        tally: &Tally<Value>,
        agents: &[Agent],
        now: Stamp,
    ) -> Self {
        let agent = tally.agent.clone().or_else(|| reported.agent.clone());
        let presentation = Presentation::among(agents, agent.as_deref());
        let (error, error_category) = error(reported, tally);
        let (stage, category) = (reported.status.into(), error_category.as_deref());
        let standing = Standing { stage, category, has_run: reported.has_run };
        let agent_state =
            presentation.state_of(&standing).map(|(field, word)| AgentState { field, word });
        let input = tally.opening.as_ref().and_then(|opening| opening.get("input"));
        let result = tally.end.as_ref().and_then(Ended::result);
        let (own_title, conclusion) = asked(
            presentation,
            agent.as_deref(),
            input.filter(|_| reported.title.is_none()),
            result,
        );
        let verdict = conclusion.as_ref().and_then(|found| found.verdict.as_ref());
        let summary = conclusion.as_ref().map(|found| clip(&found.summary, SUMMARY_CHARS));
        let end = reported.ended_at.unwrap_or(now);
        Self {
            session_id: id.clone(),
            title: title(reported).or(own_title),
            status: reported.status,
            verdict: match verdict {
                _ if reported.is_damaged => Some("damaged".to_owned()),
                verdict => verdict.map(|verdict| verdict.word.clone()),
            },
            verdict_tone: match verdict {
                _ if reported.is_damaged => Some(Tone::Bad),
                verdict => verdict.map(|verdict| verdict.tone),
            },
            agent,
            answered_by: tally.answered_by,
            fallback: tally.fallback.as_ref().map(|note| Fallback::of(note, tally.answered_by)),
            initiated_at: reported.initiated_at,
            ended_at: reported.ended_at,
            elapsed_ms: reported.begun_at.map(|at| millis(end.since(at))),
            error,
            error_category,
            result: self::result(tally, agent_state).filter(|_| reported.erased.is_none()),
            erased: reported.erased.as_ref().map(Erased::of),
            result_bytes: None,
            summary: summary.filter(|summary| !summary.is_empty()),
            conclusion,
            agent_state,
            open_question: waits_for(reported.status, tally).and_then(Result::ok),
            needs_version: NeedsVersion::of(reported, tally),
            version: tally.version.clone(),
            asleep_until: waits_for(reported.status, tally).and_then(Result::err),
            steps: tally.steps,
            tokens: Tokens::of(&tally.spent),
            usd: usd(&tally.spent),
        }
    }
}

impl Serialize for AgentState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.field, self.word)?;
        map.end()
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
    /// The shape of a journaled event.
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
            principal: event.principal.as_ref().map(Principal::of),
            hash: event.hash.to_string(),
        }
    }
}

impl Step {
    /// The shape of a journaled step. `call` is the tool call that its outcome answers, as found by
    /// [`Calls`].
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
            version: match &step.body {
                StepBody::Claim { graph_version, .. } => Some(graph_version.clone()),
                _ => None,
            },
            node: effect.map(|effect| effect.node.clone()),
            effect: effect.map(|effect| effect.kind),
            call,
            outcome: step.body.payload().cloned(),
            request: None,
            principal: step.body.principal().map(Principal::of),
            error_message: error.map(ToString::to_string),
            started_at,
            finished_at: step.stamp,
            tokens: Tokens::of(&spent),
            usd: usd(&spent),
            hash: step.hash.to_string(),
        }
    }
}

impl Step {
    /// Adds the origins to a question about a call that was journaled without them. `steps` are the
    /// session's.
    #[must_use]
    pub fn traced(mut self, steps: &[RecordedStep]) -> Self {
        let payload = self.outcome.as_mut().filter(|_| self.kind == StepKind::Ask);
        let Some(payload) = payload.filter(|payload| Traced::recorded(payload).is_none()) else {
            return self;
        };
        if let Some(arguments) = payload.pointer("/question/arguments") {
            payload["origins"] = serde_json::json!(traced(steps, self.seq, arguments));
            payload["origins_computed"] = Value::from(true);
        }
        self
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

/// The error and its category: an unreadable record's, else those of the end step, else of the verdict, else of the last event that
/// reports an error, if the session did not succeed.
fn error(reported: &Reported, tally: &Tally<Value>) -> (Option<String>, Option<String>) {
    if reported.is_damaged {
        return (reported.error.as_ref().map(ToString::to_string), Some("damaged".to_owned()));
    }
    if reported.status == Status::Succeeded {
        return (None, None);
    }
    let end = tally.end.as_ref();
    let heard = reported.error.as_ref().filter(|_| reported.status.is_terminal());
    let error = end.and_then(|end| end.error.as_ref()).or(heard);
    let category = end.and_then(|end| end.error_category.clone());
    (error.map(ToString::to_string), category.or_else(|| reported.error_category.clone()))
}

/// The title that was journaled with the trigger.
fn title(reported: &Reported) -> Option<String> {
    reported.title.as_deref().map(|title| clip(title, TITLE_CHARS_MAX))
}

/// The end step's payload, with the agent's own status field.
fn result(tally: &Tally<Value>, agent_state: Option<AgentState>) -> Option<Value> {
    let mut result = tally.end.as_ref()?.result()?.clone();
    if result.is_null() {
        return None;
    }
    if let (Some(fields), Some(AgentState { field, word })) = (result.as_object_mut(), agent_state)
    {
        fields.insert(field.to_owned(), word.into());
    }
    Some(result)
}

/// What a session waits for: a question or the end of a sleep. A question is open while its step is the
/// newest.
fn waits_for(status: Status, tally: &Tally<Value>) -> Option<Result<OpenQuestion, Stamp>> {
    let Asked { seq, expires_at, payload } =
        tally.ask.as_ref().filter(|_| !status.is_terminal())?;
    // An unreadable question is still a question: a person can reject it.
    let shown = payload.get("question").cloned().unwrap_or_default();
    let digest = digest::question(*seq, &shown).as_str().to_owned();
    let question: Question = serde_json::from_value(shown)
        .unwrap_or_else(|_| Question::open("the question cannot be read"));
    if question.is_sleep() {
        return Some(Err(*expires_at));
    }
    Some(Ok(OpenQuestion {
        origins: Traced::recorded(payload),
        origins_computed: false,
        question_id: *seq,
        digest,
        choices: question.offered(),
        prompt: question.prompt,
        server: question.server,
        tool: question.tool,
        tool_schema: question.tool_schema,
        arguments_text: question.arguments.as_ref().map(|arguments| format!("{arguments:#}")),
        arguments: question.arguments,
        justification: question.justification,
        expires_at: *expires_at,
    }))
}

#[cfg(test)]
mod tests {
    use graph::definition::{Context, Graph, Node, Route};
    use graph::effect::{Author, Reply};
    use journal::event::{About, Writer};
    use journal::id::{EventId, Runner};
    use journal::item::Hash;
    use journal::step::{EffectRef, Ending, Usage};
    use serde_json::json;

    use std::sync::Arc;

    use graph::effect::Effect;
    use graph::outcome::Brought;

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
            principal: None,
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
            StepBody::End {
                ending,
                error,
                category: category.map(str::to_owned),
                answered_by: None,
                payload,
            },
        )
    }

    /// A diagnosed incident, with one model call and one tool call.
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
            claim("incident"),
            step(
                400,
                2,
                StepBody::Outcome {
                    effect: effect("reason", EffectKind::Chat, &Effect::Nothing),
                    started_at: at(5),
                    usage,
                    request: None,
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
                    request: None,
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
        let mut records = vec![Record::Session(Box::new(Session::of(
            &id(),
            &events,
            &steps,
            packs::all(),
            at(5_000),
        )))];
        records.extend(events.iter().map(|event| Record::Event(Box::new(Event::of(event)))));
        let mut calls = Calls::new(Arc::new([]));
        records.extend(
            steps.iter().map(|step| Record::Step(Box::new(Step::of(step, calls.of(step))))),
        );
        insta::assert_json_snapshot!(records);
    }

    #[test]
    fn an_outcome_names_its_call_only_if_the_digest_matches() {
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

    static PANICKING: Graph<Value> = Graph::new(
        "panicking",
        "Panics.",
        &[Node { name: "do", to: &[], ask: panicking, fold: |_, _| Route::To("do") }],
        |_, _| Ok(Value::Null),
        |_, _| Reply::says(""),
    );

    fn panicking(_: &Value, _: &Context<'_>) -> Effect {
        panic!("no request")
    }

    #[test]
    fn a_panicking_agent_breaks_no_viewer() {
        let (_, mut steps) = incident();
        steps[0] = claim("panicking");
        if let StepBody::Claim { input, .. } = &mut steps[0].body {
            *input = Some(json!({"input": {}}));
        }
        let mut calls = Calls::new(Arc::new([Agent::of(&PANICKING)]));
        let named = steps.iter().filter_map(|step| calls.of(step)).map(|call| call.tool);
        assert_eq!(named.collect::<Vec<_>>(), ["get_iam_state"]);
    }

    #[test]
    fn a_policy_that_replaced_the_model_is_named() {
        let reply = |by: Author| json!(Brought::Reply(Reply { by, ..Reply::says("x") }));
        let chat = |seq, payload| {
            let (effect, started_at) = (EffectKind::Chat, at(5));
            let effect =
                EffectRef { node: "n".to_owned(), kind: effect, digest: Hash::genesis(), call: 0 };
            step(
                6,
                seq,
                StepBody::Outcome {
                    effect,
                    started_at,
                    usage: Usage::default(),
                    request: None,
                    payload,
                },
            )
        };
        let note = |seq| {
            let payload = json!({"model": "openai:m", "category": "timeout", "message": "x"});
            step(
                7,
                seq,
                StepBody::Note { subject: "fallback".to_owned(), principal: None, payload },
            )
        };
        let said = |steps: &[RecordedStep]| {
            let session = Session::of(&id(), &[], steps, &[], at(9));
            (session.answered_by, session.fallback.map(|fallback| fallback.message))
        };
        let (model, policy) = (Author::Model("openai:m".to_owned()), Author::Policy);
        let failure =
            json!({"failure": {"kind": "refused", "category": "timeout", "message": "no"}});
        assert_eq!(said(&[claim("a"), chat(2, failure)]), (None, None));
        assert_eq!(said(&[chat(1, reply(policy.clone()))]), (Some(AnsweredBy::Policy), None));
        let by_model = chat(1, reply(model));
        assert_eq!(said(std::slice::from_ref(&by_model)), (Some(AnsweredBy::Model), None));
        let (by, message) = said(&[by_model, note(2), chat(3, reply(policy.clone()))]);
        assert_eq!(by, Some(AnsweredBy::Both));
        let expected = "answered in part by the policy: openai:m failed (timeout)";
        assert_eq!(message.as_deref(), Some(expected));
        let (_, message) = said(&[note(1), chat(2, reply(policy))]);
        assert_eq!(message.as_deref(), Some("answered by the policy: openai:m failed (timeout)"));
        let (_, message) = said(&[note(1)]);
        assert_eq!(message.as_deref(), Some("the policy takes over: openai:m failed (timeout)"));
    }

    #[test]
    fn a_session_without_records_is_only_initiated() {
        let session = Session::of(&id(), &[], &[], packs::all(), at(0));
        assert_eq!(session.status, Status::Initiated);
        assert_eq!((session.agent, session.elapsed_ms, session.result), (None, None, None));
    }

    #[test]
    fn a_session_shows_its_agents_title_verdict_and_status() {
        let (events, steps) = incident();
        let session = Session::of(&id(), &events, &steps, packs::all(), at(9));
        assert_eq!(session.verdict.as_deref(), Some("unknown"), "no fault is named");
        assert_eq!(session.summary.as_deref(), Some("gone"));
        let json = serde_json::to_value(&session).unwrap();
        assert_eq!(
            (&json["incident_state"], &json["conclusion"]),
            (&json!("DIAGNOSED"), &json!(null))
        );
        let unknown = Session::of(&id(), &events, &steps, &[], at(9));
        assert_eq!((unknown.title, unknown.verdict, unknown.agent_state), (None, None, None));
        assert_eq!(unknown.result, Some(json!({"root_cause": "gone"})));
        let opening = json!({"input": {"lambda_name": "sync", "error_type": "ETIMEDOUT"}});
        let mut asked = claim("incident");
        if let StepBody::Claim { input, .. } = &mut asked.body {
            *input = Some(opening);
        }
        let titled = Session::of(&id(), &events[..1], &[asked], packs::all(), at(9));
        assert_eq!(titled.title.as_deref(), Some("sync · ETIMEDOUT"));
        assert_eq!((titled.verdict, titled.agent_state.unwrap().word), (None, "RECEIVED"));
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
        let open =
            |steps: &[RecordedStep]| Session::of(&id(), &asked, steps, &[], at(7)).open_question;
        insta::assert_json_snapshot!(open(&[claim("assistant"), ask(question.clone())]));
        let mut recorded = question.clone();
        recorded["origins"] = json!([{"pointer": "/dose", "origin": "person", "step": 1, "place": "/x", "match": "part"}]);
        let open_recorded = open(&[claim("assistant"), ask(recorded.clone())]).unwrap();
        assert!(!open_recorded.origins_computed);
        assert_eq!(json!(open_recorded.origins), recorded["origins"]);
        recorded["origins"] = json!([{"pointer": "/dose", "origin": "guessed"}]);
        assert!(open(&[claim("assistant"), ask(recorded)]).unwrap().origins_computed);
        let answered = [claim("assistant"), ask(question.clone())];
        let shown = Step::of(&answered[1], None).traced(&answered).outcome.unwrap();
        assert_eq!(shown["origins"][0]["origin"], "program");
        assert_eq!(
            (&shown["origins_computed"], &shown["question"]["prompt"]),
            (&json!(true), &json!("Go?"))
        );
        let unreadable = open(&[claim("assistant"), ask(json!(7))]).unwrap();
        assert_eq!(unreadable.question_id, 2);
        let answer = StepBody::Answer { question: 2, principal: None, payload: json!({}) };
        assert_eq!(open(&[claim("assistant"), ask(question), step(8, 3, answer)]), None);
    }
}
