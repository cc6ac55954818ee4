//! What the driver does next, with the bodies of the steps to journal.

use std::time::Duration;

use journal::clock::Stamp;
use journal::step::{EffectRef, StepBody, Usage};
use serde::Serialize;
use serde_json::{Value, json};

use crate::definition::Finish;
use crate::effect::{Author, Chat, Reply, ToolCall, ToolOffer};
use crate::outcome::{Brought, Failure, FailureKind};
use crate::program::Probe;
use crate::question::{Decision, OpenQuestion, Question, SCHEMA_UNKNOWN};

/// Default time until a question expires.
pub const QUESTION_OPEN: Duration = Duration::from_secs(7 * 86_400);

/// Longest sleep that the runner waits for. For a longer one the session is suspended, which costs
/// the steps of a question and another invocation.
pub const SLEPT_BY_RUNNER: Duration = Duration::from_secs(60);

/// What the driver does next. It folds each step that it journals before it calls `next` again.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Journal a claim: no step has been folded yet.
    Claim,
    /// Perform these, in parallel if there are several, and journal each outcome as it arrives. A
    /// request stays in the list until its outcome is folded; the driver tracks requests in
    /// progress by `effect.call`.
    Perform(Vec<Request>),
    /// Journal this note before continuing.
    Note(Note),
    /// Journal this question, then stop: the session waits for a person or a distant time.
    Ask(Ask),
    /// A question is open and journaled: stop.
    Wait(OpenQuestion),
    /// Wait until this time, which is near, then journal [`Sleep::body`].
    Sleep(Sleep),
    /// The agent is a program, and the program is computing: wait for its next frame.
    Idle,
    /// Journal the end, [`Finish::body`].
    End(Finish),
    /// The end is journaled: nothing to do.
    Closed,
}

/// An effect to perform.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The effect as its steps name it.
    pub effect: EffectRef,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Earliest start; `None` for immediately.
    pub not_before: Option<Stamp>,
    pub work: Work,
    /// Tokens of earlier attempts with a lost outcome; [`Self::outcome`] records them.
    pub unsettled_tokens: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// A chat with the model of this name, within the chat's or the driver's timeout.
    Model { model: String, chat: Chat },
    /// A chat with the agent's policy: call [`Run::policy`](crate::run::Run::policy).
    Policy { chat: Chat },
    Tool {
        call: ToolCall,
        /// Whether to journal an intent first.
        intent: Intent,
        /// Hash of the tool that a person approved: if the server offers another one, the call fails.
        schema: Option<String>,
    },
    /// A step that the program performs itself.
    Local { call: ToolCall, intent: Intent },
    /// A short sleep.
    Sleep { until: Stamp },
    /// A value that the host supplies.
    Probe(Probe),
}

/// Whether a tool call needs an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// No: the tool changes nothing.
    NotNeeded,
    /// Yes: journal [`Request::intent`], fold it, and call `next` again.
    Needed,
    /// The intent is journaled in this epoch: make the call.
    Written,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// [`NOTE_BUDGET`], [`NOTE_FALLBACK`], or the graph's own.
    pub subject: String,
    pub payload: Value,
}

/// A limit was reached: `{"limit", "used", "allowed", "node"}`.
pub const NOTE_BUDGET: &str = "budget";

/// The policy replaces the model: `{"model", "category", "message"}`.
pub const NOTE_FALLBACK: &str = journal::step::NOTE_FALLBACK;

#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The effect as the step names it.
    pub effect: EffectRef,
    pub question: Question,
    /// When it should expire. The driver may shorten it to the session's deadline.
    pub expires_at: Stamp,
    /// The step's payload: `{"question", "about": "graph" | "approval" | "doubt" | "sleep",
    /// "binds"?, "origins"?, "snapshot"}`, where `binds` is the digest of the call that an approval
    /// allows, and `origins` says where its arguments came from ([`crate::origin::Traced`]).
    pub payload: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sleep {
    /// The effect as the step names it.
    pub effect: EffectRef,
    pub until: Stamp,
}

impl Request {
    /// The call, if this is a tool call.
    pub fn call(&self) -> Option<&ToolCall> {
        match &self.work {
            Work::Tool { call, .. } => Some(call),
            Work::Local { call, .. } => Some(call),
            _ => None,
        }
    }

    /// The intent to journal before an at-most-once call: `{"call", "attempt"}`.
    pub fn intent(&self) -> StepBody<Value> {
        let payload = json!({"call": self.call(), "attempt": self.attempt});
        StepBody::Intent { effect: self.effect.clone(), payload }
    }

    /// The outcome to journal. A reply is marked as the model's or the policy's, and its calls get
    /// missing servers, from the chat's offer, and ids.
    ///
    /// `usage` is this attempt's. Tokens of lost attempts are added. If a model's reply was lost
    /// and `usage` has no tokens, its maximum is added. A model's failure gets the model's name.
    pub fn outcome(&self, brought: Brought, started_at: Stamp, usage: Usage) -> StepBody<Value> {
        let unsettled = match (&brought, &self.work) {
            (Brought::Failure(failure), Work::Model { chat, .. })
                if failure.kind == FailureKind::Unknown && has_no_tokens(usage) =>
            {
                chat.tokens_max()
            }
            _ => usage.unsettled_tokens,
        };
        let brought = match brought {
            Brought::Reply(mut reply) => {
                self.complete(&mut reply.calls);
                Brought::Reply(Reply { by: self.author(), ..reply })
            }
            Brought::Failure(failure) => match &self.work {
                Work::Model { model, .. } => {
                    Brought::Failure(Failure { model: Some(model.clone()), ..failure })
                }
                _ => Brought::Failure(failure),
            },
            other => other,
        };
        let unsettled_tokens = self.unsettled_tokens.saturating_add(unsettled);
        StepBody::Outcome {
            effect: self.effect.clone(),
            started_at,
            usage: Usage { unsettled_tokens, ..usage },
            request: None,
            payload: json_of(&brought),
        }
    }

    fn author(&self) -> Author {
        match &self.work {
            Work::Model { model, .. } => Author::Model(model.clone()),
            _ => Author::Policy,
        }
    }

    fn complete(&self, calls: &mut [ToolCall]) {
        let offered = match &self.work {
            Work::Model { chat, .. } | Work::Policy { chat } => chat.tools.as_slice(),
            _ => &[],
        };
        let prefix: String = self.effect.digest.as_str().chars().take(8).collect();
        for (index, call) in calls.iter_mut().enumerate() {
            let spec = offered.iter().find(|spec| spec.name == call.tool);
            if call.server.is_none() {
                call.server = spec.and_then(|spec| spec.server.clone());
            }
            call.id.get_or_insert_with(|| format!("{prefix}-{index}"));
        }
    }
}

fn has_no_tokens(usage: Usage) -> bool {
    usage.input_tokens == 0 && usage.output_tokens == 0 && usage.unsettled_tokens == 0
}

impl Note {
    pub fn body(self) -> StepBody<Value> {
        StepBody::Note { subject: self.subject, principal: None, payload: self.payload }
    }
}

impl Ask {
    /// Adds the tool as its server offers it now, which the person is shown and which an approval covers.
    /// Without it the question says so, and an approval covers no tool at all: the call would fail.
    #[must_use]
    pub fn about(mut self, tool: Option<ToolOffer>) -> Self {
        let question = &mut self.question;
        let hash = tool.as_ref().map_or(SCHEMA_UNKNOWN, |tool| tool.schema_hash.as_str());
        question.tool_schema = Some(hash.to_owned());
        let Some(tool) = tool else { return self };
        if question.choices.contains(&Decision::Edit) {
            question.arguments_schema.get_or_insert(tool.input_schema);
        }
        self
    }

    /// The question's step, with its expiry as requested. It offers an edit only if that can be checked.
    pub fn body(mut self) -> StepBody<Value> {
        self.question.choices = self.question.offered();
        self.payload["question"] = json_of(&self.question);
        StepBody::Ask { effect: self.effect, expires_at: self.expires_at, payload: self.payload }
    }
}

impl Sleep {
    /// The step that records the end of the sleep.
    pub fn body(self, started_at: Stamp) -> StepBody<Value> {
        StepBody::Outcome {
            effect: self.effect,
            started_at,
            usage: Usage::default(),
            request: None,
            payload: json_of(&Brought::Woke {}),
        }
    }
}

/// The JSON of one of this crate's own types.
///
/// # Panics
/// Serialisation fails, which is impossible for these types: their keys are strings.
pub(crate) fn json_of(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_else(|error| panic!("own types serialise: {error}"))
}
