//! What the driver is to do next, with the bodies of the steps to journal.

use std::time::Duration;

use journal::clock::Stamp;
use journal::step::{EffectRef, StepBody, Usage};
use serde::Serialize;
use serde_json::{Value, json};

use crate::definition::Finish;
use crate::effect::{Author, Chat, Reply, ToolCall};
use crate::outcome::{Brought, Failure, FailureKind};
use crate::question::{OpenQuestion, Question};

/// How long a question stays open when its author says nothing else.
pub const QUESTION_OPEN: Duration = Duration::from_secs(7 * 86_400);

/// A sleep of at most so long is slept by the runner; for a longer one the session is suspended, which
/// costs a question's steps and another invocation.
pub const SLEPT_BY_RUNNER: Duration = Duration::from_secs(60);

/// What the driver is to do next. Whatever it journals, it folds before it asks again.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Journal a claim: no step was folded yet.
    Claim,
    /// Perform these, in parallel if there are several, and journal each outcome as it comes.
    /// A request stays in the list until its outcome is folded: the driver keeps track by
    /// `effect.call` of what is under way.
    Perform(Vec<Request>),
    /// Journal this note before going on.
    Note(Note),
    /// Journal this question, then stop: the session waits for a person, or for a distant time.
    Ask(Ask),
    /// A question is open and journaled: stop.
    Wait(OpenQuestion),
    /// Wait until a time that is near, then journal [`Sleep::body`].
    Sleep(Sleep),
    /// Journal the end, [`Finish::body`].
    End(Finish),
    /// The end is journaled: nothing more.
    Closed,
}

/// One thing to perform.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The effect, as its steps name it.
    pub effect: EffectRef,
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// Not to be begun before this time; `None` for at once.
    pub not_before: Option<Stamp>,
    /// What to perform.
    pub work: Work,
    /// Tokens of earlier attempts whose outcome was lost; [`Self::outcome`] writes them.
    pub unsettled_tokens: u32,
}

/// What to perform.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// A chat with the model of this name, within the chat's or the driver's timeout.
    Model {
        /// The model.
        model: String,
        /// The chat.
        chat: Chat,
    },
    /// A chat with the agent's policy: ask [`Run::policy`](crate::run::Run::policy).
    Policy {
        /// The chat.
        chat: Chat,
    },
    /// A tool call.
    Tool {
        /// The call.
        call: ToolCall,
        /// Whether an intent must be journaled first.
        intent: Intent,
    },
}

/// Whether a tool call needs an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// No: the tool changes nothing.
    NotNeeded,
    /// Yes: journal [`Request::intent`], fold it, and ask again.
    Needed,
    /// It is journaled, in this epoch: make the call.
    Written,
}

/// A note to journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// [`NOTE_BUDGET`], [`NOTE_FALLBACK`], or the graph's own.
    pub subject: String,
    /// The note.
    pub payload: Value,
}

/// A limit was reached: `{"limit", "used", "allowed", "node"}`.
pub const NOTE_BUDGET: &str = "budget";

/// The policy takes over from the model: `{"model", "category", "message"}`.
pub const NOTE_FALLBACK: &str = "fallback";

/// A question to journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The effect, as the step names it.
    pub effect: EffectRef,
    /// The question.
    pub question: Question,
    /// When it should expire. The driver may shorten it to what the session allows.
    pub expires_at: Stamp,
    /// The step's payload: `{"question", "about": "graph" | "approval" | "doubt" | "sleep", "binds"?,
    /// "snapshot"}`, where `binds` is the digest of the call that approving allows.
    pub payload: Value,
}

/// A time to wait for.
#[derive(Clone, Debug, PartialEq)]
pub struct Sleep {
    /// The effect, as the step names it.
    pub effect: EffectRef,
    /// The time.
    pub until: Stamp,
}

impl Request {
    /// The call, if it is a tool's.
    pub fn call(&self) -> Option<&ToolCall> {
        match &self.work {
            Work::Tool { call, .. } => Some(call),
            Work::Model { .. } | Work::Policy { .. } => None,
        }
    }

    /// The intent to journal before an at-most-once call: `{"call", "attempt"}`.
    pub fn intent(&self) -> StepBody<Value> {
        let payload = json!({"call": self.call(), "attempt": self.attempt});
        StepBody::Intent { effect: self.effect.clone(), payload }
    }

    /// The outcome to journal. A reply is marked as the model's or the policy's, and its calls get
    /// what they lack: the server from the chat's offer, and an id.
    ///
    /// `usage` is this attempt's. The tokens of lost attempts are added; so is this one's maximum when
    /// a model's answer was lost and `usage` has no tokens. A model's failure gets the model's name.
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
                Work::Policy { .. } | Work::Tool { .. } => Brought::Failure(failure),
            },
            other => other,
        };
        let unsettled_tokens = self.unsettled_tokens.saturating_add(unsettled);
        StepBody::Outcome {
            effect: self.effect.clone(),
            started_at,
            usage: Usage { unsettled_tokens, ..usage },
            payload: json_of(&brought),
        }
    }

    fn author(&self) -> Author {
        match &self.work {
            Work::Model { model, .. } => Author::Model(model.clone()),
            Work::Policy { .. } | Work::Tool { .. } => Author::Policy,
        }
    }

    fn complete(&self, calls: &mut [ToolCall]) {
        let offered = match &self.work {
            Work::Model { chat, .. } | Work::Policy { chat } => chat.tools.as_slice(),
            Work::Tool { .. } => &[],
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
    /// The note's step.
    pub fn body(self) -> StepBody<Value> {
        StepBody::Note { subject: self.subject, payload: self.payload }
    }
}

impl Ask {
    /// The question's step, expiring as asked for.
    pub fn body(self) -> StepBody<Value> {
        StepBody::Ask { effect: self.effect, expires_at: self.expires_at, payload: self.payload }
    }
}

impl Sleep {
    /// The step that says that the time has come.
    pub fn body(self, started_at: Stamp) -> StepBody<Value> {
        StepBody::Outcome {
            effect: self.effect,
            started_at,
            usage: Usage::default(),
            payload: json_of(&Brought::Woke {}),
        }
    }
}

/// The JSON of one of this crate's own types.
///
/// # Panics
/// When serialising fails, which these types cannot: their keys are strings.
pub(crate) fn json_of(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_else(|error| panic!("own types serialise: {error}"))
}
