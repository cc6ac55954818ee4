//! The messages between the state machine, its functions and the agent.
//!
//! Every request carries the newest stamp that its sender has seen, every reply returns one, so that
//! the journal's clock never runs backwards across a boundary.

use journal::clock::Stamp;
use journal::id::SessionId;
use journal::status::Status;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use telemetry::context::TraceParent;

use crate::trace;
use crate::trigger::Trigger;

/// Where a session stands whose execution is gone: beside `session_id` and `detail`, the input of the
/// execution that carries it on, as `resume`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// What to begin with, in the poller's words: `RESUME` invokes the agent, `BUSY` only looks.
    pub status: Judgement,
    /// The number of the invocation to be made next, or made last.
    pub invocation: u32,
    /// The epoch that it may supersede.
    pub epoch: u32,
    /// When the session's records expire, in seconds since 1970.
    pub expires_at: i64,
    /// The newest stamp seen.
    pub seen: Stamp,
}

/// State machine → invoker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InvokeRequest {
    /// The session.
    pub session_id: SessionId,
    /// The execution that asks.
    pub execution_arn: String,
    /// The trigger's detail, as it came.
    pub detail: Value,
    /// When the session's records expire, in seconds since 1970.
    pub expires_at: i64,
    /// The newest stamp seen.
    pub seen: Stamp,
    /// When the state machine came to this invocation, by its own clock; the same in every retry.
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

    /// The invocation that an attempt belongs to.
    pub const fn invocation_of(attempt: u32) -> u32 {
        attempt / crate::limits::RETRIES_MAX
    }
}

/// What became of an invocation. All lead to a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvokeOutcome {
    /// The agent works.
    Accepted,
    /// It worked already.
    AlreadyRunning,
    /// The session waits for an answer.
    Waiting,
    /// The session has ended.
    Ended,
    /// Admission refused the session.
    Rejected,
}

/// Invoker → state machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InvokeReply {
    /// What became of it.
    pub outcome: InvokeOutcome,
    /// The newest stamp seen.
    pub seen: Stamp,
}

/// Invoker → agent: the body of `InvokeAgentRuntime`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentRequest {
    /// The session.
    pub session_id: SessionId,
    /// Tells a request that was sent twice from a second one.
    pub invocation_id: String,
    /// The number of this attempt.
    pub attempt: u32,
    /// The epoch that this invocation may supersede; 0 for the first.
    pub supersedes: u32,
    /// What was asked for.
    pub trigger: Trigger,
    /// When the session's records expire, in seconds since 1970.
    pub expires_at: i64,
    /// The newest stamp seen.
    pub seen: Stamp,
}

/// Agent → invoker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentReply {
    /// What became of the request.
    pub outcome: InvokeOutcome,
    /// The newest stamp seen.
    pub seen: Stamp,
}

/// Agent → invoker, when it cannot begin: the body of a 4xx or 5xx answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRefusal {
    /// The error message, as the journal has it.
    pub error: String,
    /// The newest stamp seen.
    pub seen: Stamp,
}

/// Why the poller is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// To judge.
    Check,
    /// To park the workflow: write the token, then look again.
    Park,
    /// To end a session that the state machine cannot carry on.
    Close,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Woken {
    /// There was none.
    Not,
    /// By the token.
    Callback,
    /// No heartbeat came.
    Silence,
    /// The time was up.
    Timeout,
    /// Something else failed.
    Error,
}

/// What the poller remembers from check to check; the state machine carries it and does not look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// The number of the invocation to be made next, or made last.
    pub invocation: u32,
    /// The epoch that it may supersede.
    pub epoch: u32,
    /// When it was made, by the state machine's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invoked_at: Option<String>,
    /// The newest step seen.
    pub seq: u32,
    /// Losses since the last new outcome.
    pub lost: u32,
    /// The newest outcome when the agent was last lost.
    pub lost_at_seq: u32,
    /// The beat as last seen.
    #[serde(default)]
    pub pulse: String,
    /// When it was first seen so, by the state machine's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pulse_at: Option<Stamp>,
    /// Whether the state machine itself has noticed a silence since.
    #[serde(default)]
    pub silent: bool,
    /// When the check before was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<Stamp>,
    /// Milliseconds of running so far.
    pub running_ms: u64,
    /// Whether the session was running at the check before.
    #[serde(default)]
    pub running: bool,
    /// The wait before this check, in milliseconds.
    pub poll_ms: u64,
    /// `TimeoutSeconds` of the next wait.
    pub timeout_s: u32,
    /// `HeartbeatSeconds` of the next wait; less than the timeout.
    pub heartbeat_s: u32,
}

/// State machine → poller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckRequest {
    /// Why it is called.
    pub mode: Mode,
    /// The session.
    pub session_id: SessionId,
    /// The execution that asks.
    pub execution_arn: String,
    /// When the session's records expire, in seconds since 1970.
    pub expires_at: i64,
    /// The newest stamp seen.
    pub seen: Stamp,
    /// The state machine's clock.
    pub now: Stamp,
    /// What the poller remembers.
    pub watch: Watch,
    /// How the wait before ended.
    #[serde(default = "not_woken")]
    pub woken: Woken,
    /// What the token was sent with.
    #[serde(default)]
    pub callback: Value,
    /// The task token, when parking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The span that the trigger came with.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "trace::read",
        serialize_with = "trace::write"
    )]
    pub traceparent: Option<TraceParent>,
    /// What failed in the state machine, if anything did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// The rule for answers → poller: what a person said to a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerRequest {
    /// The event's detail: the answer, with the `session_id`.
    pub answer: Value,
}

/// What became of it. Nobody waits for this reply; it stands in the function's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerReply {
    /// It is the answer.
    Taken {
        /// The number of its step.
        step: u32,
    },
    /// It is not.
    Refused {
        /// Why not.
        reason: String,
    },
}

/// An error as the state machine caught it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its name.
    #[serde(rename = "Error")]
    pub error: String,
    /// What is said about it.
    #[serde(rename = "Cause", default)]
    pub cause: String,
}

/// What the poller says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Judgement {
    /// The agent works.
    Busy,
    /// A person or a distant time is waited for.
    Waiting,
    /// The agent fell silent and is to be invoked again.
    Lost,
    /// What was waited for has come: the agent is to be invoked again.
    Resume,
    /// Ended with a result.
    Completed,
    /// Ended without one.
    Failed,
    /// Ended because its time was up.
    TimedOut,
    /// Ended because somebody asked.
    Cancelled,
    /// Refused by admission.
    Rejected,
}

impl Judgement {
    /// The judgement as messages spell it.
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

    /// The session's status that a terminal judgement stands for.
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

/// Poller → state machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckReply {
    /// What it says.
    pub status: Judgement,
    /// The newest stamp seen.
    pub seen: Stamp,
    /// What it remembers.
    pub watch: Watch,
    /// The verdict, when the session has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// How a session ended, as the execution's output or error shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The session.
    pub session_id: SessionId,
    /// Its status.
    pub status: Status,
    /// The hash of the verdict event: a witness of the journal outside it.
    pub head: String,
    /// The error's name, for a failed execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What is said about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

const fn not_woken() -> Woken {
    Woken::Not
}
