//! The open effect: which parts are done and which are pending.

use std::time::Duration;

use journal::clock::Stamp;
use journal::item::Hash;
use journal::step::{EffectKind, EffectRef, Step};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest;
use crate::effect::{Chat, Effect, ToolCall};
use crate::next::Intent;
use crate::outcome::{
    CATEGORY_EXPIRED, CATEGORY_REJECTED, Failure, FailureKind, ToolOutcome, ToolResult,
};
use crate::question::{Answer, Decision, Question};

/// The longest delay between two attempts is two to this power, in seconds.
const BACKOFF_EXPONENT_MAX: u32 = 6;

/// The effect that a run waits for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Open {
    pub(crate) node: String,
    pub(crate) digest: String,
    pub(crate) pending: Pending,
    /// The journaled question without an answer.
    #[serde(skip)]
    pub(crate) asked: Option<Asked>,
}

/// The pending part.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Pending {
    Chat(ChatWork),
    Tools(Vec<CallWork>),
    Ask(Question),
    Sleep(Stamp),
    Note { subject: String, payload: Value },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ChatWork {
    pub(crate) chat: Chat,
    pub(crate) failed: u32,
    /// The newest attempt's failure, and when it was journaled.
    pub(crate) failure: Option<(Failure, Stamp)>,
    /// Tokens of attempts with a lost outcome, already counted in the meter.
    pub(crate) unsettled_tokens: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CallWork {
    pub(crate) call: ToolCall,
    pub(crate) at_most_once: bool,
    pub(crate) failed: u32,
    pub(crate) state: CallState,
    /// Hash of the tool that a person approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) schema: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallState {
    /// Critical, and not approved yet.
    Unapproved,
    /// Pending.
    Ready {
        not_before: Option<Stamp>,
    },
    /// At-most-once, with an intent in this epoch.
    Intended,
    /// At-most-once, and it is unknown whether the call was made, for this reason.
    Doubtful(String),
    Done(Box<ToolResult>),
}

#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) seq: u32,
    pub(crate) expires_at: Stamp,
    pub(crate) about: About,
    pub(crate) question: Question,
    /// What the digest of its answer may be.
    pub(crate) digests: [Hash; 2],
}

/// The subject of a question: the graph's own, one about the call with this index, or a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    Graph,
    Approval(usize),
    Doubt(usize),
    Sleep,
}

impl About {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Graph => "graph",
            Self::Approval(_) => "approval",
            Self::Doubt(_) => "doubt",
            Self::Sleep => "sleep",
        }
    }

    fn call(self) -> usize {
        match self {
            Self::Graph | Self::Sleep => 0,
            Self::Approval(call) | Self::Doubt(call) => call,
        }
    }
}

impl Open {
    /// Opens an effect; `None` if there is nothing to perform.
    pub(crate) fn new(
        node: &str,
        effect: Effect,
        mut call: impl FnMut(ToolCall) -> CallWork,
    ) -> Option<Self> {
        let digest = digest::effect(node, &effect).as_str().to_owned();
        let pending = match effect {
            Effect::Chat(chat) => {
                Pending::Chat(ChatWork { chat, failed: 0, failure: None, unsettled_tokens: 0 })
            }
            Effect::Tools(calls) if calls.is_empty() => return None,
            Effect::Tools(calls) => Pending::Tools(calls.into_iter().map(&mut call).collect()),
            Effect::Ask(question) => Pending::Ask(question),
            Effect::Sleep(until) => Pending::Sleep(until),
            Effect::Note { subject, payload } => Pending::Note { subject, payload },
            Effect::Nothing => return None,
        };
        Some(Self { node: node.to_owned(), digest, pending, asked: None })
    }

    /// Whether a tool call was started: then the effect must complete, or its results would be
    /// lost.
    pub(crate) fn begun(&self) -> bool {
        let untouched = |work: &CallWork| {
            let fresh = CallState::Ready { not_before: None };
            work.failed == 0 && (work.state == fresh || work.state == CallState::Unapproved)
        };
        match &self.pending {
            Pending::Tools(calls) => !calls.iter().all(untouched),
            Pending::Chat(_) | Pending::Ask(_) | Pending::Sleep(_) | Pending::Note { .. } => false,
        }
    }

    /// The effect as its steps name it; `None` for a note.
    pub(crate) fn reference(&self, call: usize) -> Option<EffectRef> {
        let kind = match &self.pending {
            Pending::Chat(_) => EffectKind::Chat,
            Pending::Tools(_) => EffectKind::Tools,
            Pending::Ask(_) => EffectKind::Ask,
            Pending::Sleep(_) => EffectKind::Sleep,
            Pending::Note { .. } => return None,
        };
        Some(self.reference_as(kind, call))
    }

    /// The effect as the question about it names it.
    pub(crate) fn question_reference(&self, about: About) -> EffectRef {
        let kind = if about == About::Sleep { EffectKind::Sleep } else { EffectKind::Ask };
        self.reference_as(kind, about.call())
    }

    /// The effect as its steps of this kind name it.
    pub(crate) fn reference_as(&self, kind: EffectKind, call: usize) -> EffectRef {
        EffectRef {
            node: self.node.clone(),
            kind,
            digest: Hash::from_record(&self.digest),
            call: u32::try_from(call).unwrap_or(u32::MAX),
        }
    }

    /// The question to ask next: the graph's, or, when no other call is pending, one about the
    /// first call that needs a person.
    pub(crate) fn question(&self) -> Option<(About, Question)> {
        match &self.pending {
            Pending::Ask(question) => Some((About::Graph, question.clone())),
            Pending::Sleep(until) => Some((About::Sleep, Question::asleep(*until))),
            Pending::Tools(calls) if !calls.iter().any(CallWork::can_be_made) => {
                calls.iter().enumerate().find_map(|(index, work)| match &work.state {
                    CallState::Unapproved => {
                        Some((About::Approval(index), approval_question(&work.call)))
                    }
                    CallState::Doubtful(reason) => {
                        Some((About::Doubt(index), doubt_question(&work.call, reason)))
                    }
                    _ => None,
                })
            }
            _ => None,
        }
    }
}

/// The last line of the prompt for an approval.
const APPROVE: &str = "Approve? (yes/no)";

impl Question {
    /// Adds lines to the prompt for an approval, before its last line.
    pub(crate) fn warn(&mut self, lines: &[String]) {
        if let Some(about) = self.prompt.strip_suffix(APPROVE).filter(|_| !lines.is_empty()) {
            self.prompt = format!("{about}{}\n{APPROVE}", lines.join("\n"));
        }
    }
}

/// Neither question offers an edit: other arguments are a new call, which the graph must request.
pub(crate) fn approval_question(call: &ToolCall) -> Question {
    let prompt = format!("{}\n{APPROVE}", describe(call));
    Question {
        choices: vec![Decision::Approve, Decision::Reject],
        ..Question::approval(call, prompt)
    }
}

pub(crate) fn doubt_question(call: &ToolCall, reason: &str) -> Question {
    let prompt = format!(
        "{}\nIt is not known whether this call was made: {reason}.\n\
         Approve to make it again, reject to go on without it, or say what it returned.",
        describe(call)
    );
    let choices = vec![Decision::Approve, Decision::Reject, Decision::Say];
    Question { choices, ..Question::approval(call, prompt) }
}

fn describe(call: &ToolCall) -> String {
    let server = call.server.as_ref().map(|server| format!("Server: {server}\n"));
    let arguments = digest::canonical(&call.arguments);
    format!("{}Tool: {}\nArguments: {arguments}", server.unwrap_or_default(), call.tool)
}

impl ChatWork {
    pub(crate) fn fail(&mut self, failure: Failure, at: Stamp) {
        self.failed += 1;
        self.failure = Some((failure, at));
    }

    /// Whether a retry may succeed.
    pub(crate) fn may_retry(&self, attempts: u32) -> bool {
        let passing = |(failure, _): &(Failure, Stamp)| failure.kind != FailureKind::Refused;
        self.failed < attempts && self.failure.as_ref().is_none_or(passing)
    }

    pub(crate) fn not_before(&self) -> Option<Stamp> {
        self.failure.as_ref().map(|(_, at)| backoff(*at, self.failed))
    }
}

impl CallWork {
    pub(crate) fn can_be_made(&self) -> bool {
        matches!(self.state, CallState::Ready { .. } | CallState::Intended)
    }

    pub(crate) fn result(&self) -> Option<ToolResult> {
        match &self.state {
            CallState::Done(result) => Some(result.as_ref().clone()),
            _ => None,
        }
    }

    /// Whether the next attempt needs an intent, and when it may be made; `None` if none may.
    pub(crate) fn due(&self) -> Option<(Intent, Option<Stamp>)> {
        match &self.state {
            CallState::Intended => Some((Intent::Written, None)),
            CallState::Ready { not_before } if self.at_most_once => {
                Some((Intent::Needed, *not_before))
            }
            CallState::Ready { not_before } => Some((Intent::NotNeeded, *not_before)),
            _ => None,
        }
    }

    /// The result of an attempt that a step records.
    pub(crate) fn result_in(
        &self,
        step: &Step<Value>,
        started_at: Stamp,
        outcome: ToolOutcome,
    ) -> ToolResult {
        let elapsed = step.stamp.since(started_at).as_millis();
        ToolResult {
            call: self.call.clone(),
            seq: step.seq,
            at: step.stamp,
            elapsed_ms: u64::try_from(elapsed).unwrap_or(u64::MAX),
            attempt: self.failed + 1,
            outcome,
        }
    }

    /// Records the result of a call. At-most-once calls are retried only if provably not sent; with
    /// an unknown outcome they wait for a person.
    pub(crate) fn take(&mut self, result: ToolResult, attempts: u32) {
        let failure = match &result.outcome {
            ToolOutcome::Failed(failure) => failure.clone(),
            ToolOutcome::Ok(_) | ToolOutcome::Error(_) => {
                self.state = CallState::Done(Box::new(result));
                return;
            }
        };
        self.failed += 1;
        let retry = self.failed < attempts;
        self.state = match failure.kind {
            FailureKind::Unknown if self.at_most_once => CallState::Doubtful(failure.to_string()),
            FailureKind::NotSent | FailureKind::Unknown if retry => {
                CallState::Ready { not_before: Some(backoff(result.at, self.failed)) }
            }
            _ => CallState::Done(Box::new(result)),
        };
    }

    /// Applies a person's answer to a question about the call.
    pub(crate) fn decide(&mut self, asked: &Question, answer: &Answer, seq: u32, at: Stamp) {
        let doubtful = matches!(self.state, CallState::Doubtful(_));
        let said = answer.reason.clone().or_else(|| answer.text.clone());
        let outcome = match answer.decision {
            Decision::Approve => {
                self.schema.clone_from(&asked.tool_schema);
                self.state = CallState::Ready { not_before: None };
                return;
            }
            Decision::Say if doubtful => {
                ToolOutcome::Ok(serde_json::Value::from(said.unwrap_or_default()))
            }
            Decision::Expired => ToolOutcome::Failed(self.undone(
                doubtful,
                CATEGORY_EXPIRED,
                "the question expired".to_owned(),
            )),
            Decision::Reject | Decision::Edit | Decision::Say => ToolOutcome::Failed(self.undone(
                doubtful,
                CATEGORY_REJECTED,
                said.unwrap_or_else(|| "a person rejected the call".to_owned()),
            )),
        };
        let (call, attempt) = (self.call.clone(), self.failed.max(1));
        self.state = CallState::Done(Box::new(ToolResult {
            call,
            seq,
            at,
            elapsed_ms: 0,
            attempt,
            outcome,
        }));
    }

    /// A call with an unknown outcome stays unknown if no person decides.
    fn undone(&self, doubtful: bool, category: &str, message: String) -> Failure {
        if doubtful {
            Failure::unknown(category, message)
        } else {
            Failure::refused(category, message)
        }
    }
}

/// When the retry after the `failed`th failure may begin: 1 s after the first, 2 s after the second. The
/// shell adds jitter to the pauses of models.
///
/// Source: the incident specification, section 7: `2^attempt` seconds, from attempt 0.
fn backoff(failed_at: Stamp, failed: u32) -> Stamp {
    let exponent = failed.saturating_sub(1).min(BACKOFF_EXPONENT_MAX);
    failed_at.after(Duration::from_secs(1 << exponent))
}
