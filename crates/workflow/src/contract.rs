//! The messages between the state machine, its functions and the agent.
//!
//! Every request and every reply carries the newest stamp that its sender has seen, so that the
//! journal's clock never runs backwards across a process boundary.

use journal::clock::Stamp;
use journal::id::SessionId;
use journal::status::Status;
use journal::step::AnsweredBy;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use telemetry::context::TraceParent;

use crate::trace;
use crate::trigger::Trigger;

/// The header in which a client states its OS user to a local stack. The name is lower-case, as in
/// HTTP/2.
pub const USER_HEADER: &str = "x-daybook-user";

/// State of a session without a running execution. It is the field `resume` in the input of the
/// execution that continues the session, beside `session_id` and `detail`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The first judgement: `RESUME` invokes the agent, `BUSY` only checks.
    pub status: Judgement,
    /// The number of the next or last invocation.
    pub invocation: u32,
    /// The epoch that it may supersede.
    pub epoch: u32,
    /// When the session's records expire, in seconds since 1970.
    pub expires_at: i64,
    pub seen: Stamp,
    /// The number of the session's resumes, this one included.
    #[serde(default)]
    pub resumes: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InvokeRequest {
    pub session_id: SessionId,
    pub execution_arn: String,
    /// The trigger's detail, unchecked.
    pub detail: Value,
    /// When the session's records expire, in seconds since 1970.
    pub expires_at: i64,
    pub seen: Stamp,
    /// When the state machine entered this invocation, by its own clock; equal in every retry.
    pub asked_at: Stamp,
    /// Counts the state machine's invocations, from 1.
    pub invocation: u32,
    /// Counts the retries of this invocation, from 0.
    pub retry: u32,
    /// The epoch that this invocation may supersede; 0 for the first.
    pub supersedes: u32,
}

impl InvokeRequest {
    /// The number of this attempt, unique and increasing in the session.
    pub fn attempt(&self) -> u32 {
        self.invocation.saturating_mul(crate::limits::RETRIES_MAX).saturating_add(self.retry)
    }

    /// The invocation of an attempt.
    pub const fn invocation_of(attempt: u32) -> u32 {
        attempt / crate::limits::RETRIES_MAX
    }
}

/// The outcome of an invocation. A check follows every outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvokeOutcome {
    Accepted,
    AlreadyRunning,
    /// The session is waiting for an answer.
    Waiting,
    Ended,
    Rejected,
    /// The agent lacks the session's graph version. The session waits for it.
    VersionMissing,
    /// The agent is halted. The session waits.
    Halted,
    /// As many agents are at work as may be, or the agent runtime has no place. The session waits for its turn.
    Queued,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InvokeReply {
    pub outcome: InvokeOutcome,
    pub seen: Stamp,
}

/// Invoker → agent: the body of `InvokeAgentRuntime`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentRequest {
    pub session_id: SessionId,
    /// Identifies the request: two with the same id are one request, sent twice.
    pub invocation_id: String,
    /// The number of this attempt.
    pub attempt: u32,
    /// The epoch that this invocation may supersede; 0 for the first.
    pub supersedes: u32,
    pub trigger: Trigger,
    /// When the session's records expire, in seconds since 1970.
    pub expires_at: i64,
    pub seen: Stamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentReply {
    /// The outcome of the request.
    pub outcome: InvokeOutcome,
    pub seen: Stamp,
}

/// Agent → invoker, if the agent cannot start: the body of a 4xx or 5xx response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRefusal {
    /// The error message, as journaled.
    pub error: String,
    pub seen: Stamp,
}

/// Why the poller is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Check,
    /// To park the workflow: write the token, then check again.
    Park,
    /// To end a session that the state machine cannot continue.
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Woken {
    Not,
    Callback,
    Silence,
    Timeout,
    Error,
}

/// The poller's memory between checks. The state machine passes it on unread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// The number of the invocation to be made next, or made last.
    pub invocation: u32,
    /// The epoch that it may supersede.
    pub epoch: u32,
    /// The number of the session's resumes before this execution.
    #[serde(default)]
    pub resumes: u32,
    /// The number of checks in this execution; unlike a time, it only grows.
    #[serde(default)]
    pub checks: u32,
    /// When it was invoked, by the state machine's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invoked_at: Option<String>,
    pub seq: u32,
    /// Losses since the last new outcome.
    pub lost: u32,
    /// The newest outcome when the agent was last lost.
    pub lost_at_seq: u32,
    /// Restarts of the agent's host since the last new outcome.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarted: u32,
    /// Invocations after a restart of the agent's host, and after a halt or a queue held the session. They do not count
    /// towards the limit of invocations.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub after_restart: u32,
    /// The newest end of the agent's host that was taken into account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_ended_at: Option<Stamp>,
    /// Since when the session has waited for a place in the agent runtime, by the state machine's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_since: Option<Stamp>,
    /// How often it has asked for one again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub capacity_asks: u32,
    /// The last heartbeat seen.
    #[serde(default)]
    pub pulse: String,
    /// When it was first seen, by the state machine's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pulse_at: Option<Stamp>,
    /// The question whose agent stamps by a later clock than the state machine's: it was invoked after the clock was set
    /// forward. 0 if there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub asked_ahead: u32,
    /// Whether the state machine has missed a heartbeat since.
    #[serde(default)]
    pub silent: bool,
    /// The time of the previous check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<Stamp>,
    /// Milliseconds of running so far.
    pub running_ms: u64,
    /// Whether the session was running at the previous check.
    #[serde(default)]
    pub running: bool,
    /// The wait before this check, in milliseconds.
    pub poll_ms: u64,
    /// `TimeoutSeconds` of the next wait.
    pub timeout_s: u32,
    /// `HeartbeatSeconds` of the next wait; less than the timeout.
    pub heartbeat_s: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckRequest {
    pub mode: Mode,
    pub session_id: SessionId,
    pub execution_arn: String,
    /// When the session's records expire, in seconds since 1970.
    pub expires_at: i64,
    pub seen: Stamp,
    pub now: Stamp,
    pub watch: Watch,
    /// How the previous wait ended.
    #[serde(default = "not_woken")]
    pub woken: Woken,
    /// The output that the token was sent with.
    #[serde(default)]
    pub callback: Value,
    /// Counts the retries of this wait, from 0.
    #[serde(default)]
    pub retry: u32,
    /// The task token, when parking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The trigger's span.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "trace::read",
        serialize_with = "trace::write"
    )]
    pub traceparent: Option<TraceParent>,
    /// The state machine's failure, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// The rule for answers → poller: a person's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerRequest {
    /// The event's detail: the answer, with the `session_id`.
    pub answer: Value,
}

/// The rule for cancellations → poller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelRequest {
    /// The event's detail: the `session_id`, and a `reason` if there is one.
    pub cancel: Value,
}

/// The rule for resumptions → poller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResumeRequest {
    /// The event's detail: the `session_id`, and the version to go on with as `as_version` if there is
    /// one.
    pub resume: Value,
}

/// The outcome of a person's action. No caller reads this reply; it appears in the function's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionReply {
    Taken {
        /// The number of the answer's step.
        step: u32,
    },
    Cancelled {},
    Resumed {},
    Refused {
        reason: String,
    },
}

/// An error as the state machine caught it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    #[serde(rename = "Error")]
    pub error: String,
    /// The error's cause.
    #[serde(rename = "Cause", default)]
    pub cause: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Judgement {
    Busy,
    /// The session is waiting for a person or a distant time.
    Waiting,
    /// The agent stopped responding and is to be invoked again.
    Lost,
    /// The wait is over: the agent is to be invoked again.
    Resume,
    Completed,
    Failed,
    /// Timed out.
    TimedOut,
    Cancelled,
    Rejected,
}

impl Judgement {
    /// The judgement's name in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "BUSY",
            Self::Waiting => "WAITING",
            Self::Lost => "LOST",
            Self::Resume => "RESUME",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::TimedOut => "TIMED_OUT",
            Self::Cancelled => "CANCELLED",
            Self::Rejected => "REJECTED",
        }
    }

    /// The session status of a terminal judgement.
    pub const fn terminal(self) -> Option<Status> {
        match self {
            Self::Busy | Self::Waiting | Self::Lost | Self::Resume => None,
            Self::Completed => Some(Status::Succeeded),
            Self::Failed => Some(Status::Failed),
            Self::TimedOut => Some(Status::TimedOut),
            Self::Cancelled => Some(Status::Cancelled),
            Self::Rejected => Some(Status::Rejected),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckReply {
    pub status: Judgement,
    pub seen: Stamp,
    pub watch: Watch,
    /// The verdict, when the session has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// The end of a session, as the execution's output or error shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub session_id: SessionId,
    pub status: Status,
    /// The hash of the verdict event: evidence of the journal's content outside the journal.
    pub head: String,
    /// Who answered, if the policy replaced a model that had failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<AnsweredBy>,
    /// The error's name, for a failed execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The error's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

const fn not_woken() -> Woken {
    Woken::Not
}
