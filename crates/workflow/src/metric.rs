//! Names of metrics, shared by the programs that record them and the stack that defines alarms.
//!
//! CloudWatch uses the names in this module. Prometheus uses the names that
//! [`telemetry::metrics::on_the_page`] derives: `SessionsEnded` is `daybook_sessions_ended_total`.
//! Agents add metrics in their profiles. Label values are from a closed set: constants, the names of
//! registered agents, and a bounded number of tools that servers offer; never input. A session id is never a label.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

pub const NAMESPACE: &str = "Daybook";

/// The dimension of all metrics of the functions: the stage, so that several share an account.
pub const STAGE: &str = "stage";

/// Sessions sealed. Labels: `status`, the verdict; `agent`, `none` if it never started. Counted once
/// per seal, so a repeated seal counts twice.
pub const SESSIONS_ENDED: &str = "SessionsEnded";

/// Seconds from a session's first record to its verdict, waiting included. Label: `status`.
pub const SESSION_SECONDS: &str = "SessionSeconds";

/// Sessions judged by admission. Label: `outcome`, one of `admitted`, `duplicate`, `breaker_open`.
pub const ADMISSIONS: &str = "Admissions";

/// Sessions refused by the hourly breaker. Label: `agent`, one that has a breaker.
pub const BREAKER_OPEN: &str = "BreakerOpen";

pub const AGENTS_LOST: &str = "AgentsLost";

/// Events about sessions that could not be put on the bus.
pub const NOTICES_UNDELIVERED: &str = "NoticesUndelivered";

/// Invocations that the agent runtime did not take, because it had no place or throttled. Their sessions wait.
pub const INVOCATIONS_WITHOUT_CAPACITY: &str = "InvocationsWithoutCapacity";
/// Sessions that have waited for a place in the agent runtime for ten minutes or longer, at the watchdog's last sweep.
pub const SESSIONS_WAITING_FOR_CAPACITY: &str = "SessionsWaitingForCapacity";
/// Requests to the poller. Label: `status`, the judgement or `error`.
pub const POLLS: &str = "Polls";

/// Sessions that the watchdog closed.
pub const WATCHDOG_CLOSED: &str = "WatchdogClosed";

/// Calls of a model or of the policy. Labels: `agent`; `by`, one of `policy`, `bedrock`, `openai`,
/// `transcript`; `outcome`, one of `ok`, `not_sent`, `refused`, `unknown`.
pub const MODEL_CALLS: &str = "ModelCalls";

/// Seconds of a model's call. Label: `by`.
pub const MODEL_SECONDS: &str = "ModelSeconds";

/// Calls of a model that wait because its provider has as many as it may. Label: `by`.
pub const MODEL_CALLS_WAITING: &str = "ModelCallsWaiting";

/// Seconds that such a call waited. Label: `by`.
pub const MODEL_WAIT_SECONDS: &str = "ModelWaitSeconds";

/// Tokens. Labels: `agent`; `direction`, one of `input`, `output`, `unsettled`.
pub const TOKENS: &str = "Tokens";

/// Millionths of a dollar spent on models. Label: `agent`.
pub const MICRO_USD: &str = "SpentMicroUsd";

/// Calls of tools. Labels: `agent`; `tool`, one that a server offers, or `other`; `outcome`, one of `ok`, `error`, `not_sent`, `refused`, `unknown`.
pub const TOOL_CALLS: &str = "ToolCalls";

/// Seconds of a tool's call. Labels: `tool`, `outcome`.
pub const TOOL_SECONDS: &str = "ToolSeconds";

/// Attempts after the first. Label: `effect`, `chat` or `tool`.
pub const RETRIES: &str = "Retries";

/// Seconds that a runner waited for a step's append.
pub const APPEND_SECONDS: &str = "AppendSeconds";

/// Describes every metric to the program's recorder.
pub fn describe() {
    describe_counter!(SESSIONS_ENDED, Unit::Count, "Sessions sealed, by verdict and agent.");
    describe_histogram!(SESSION_SECONDS, Unit::Seconds, "From the first record to the verdict.");
    describe_counter!(ADMISSIONS, Unit::Count, "Sessions judged by admission.");
    describe_counter!(BREAKER_OPEN, Unit::Count, "Sessions refused by the hourly breaker.");
    describe_counter!(AGENTS_LOST, Unit::Count, "Agents that stopped responding.");
    describe_counter!(NOTICES_UNDELIVERED, Unit::Count, "Events about sessions given up.");
    describe_counter!(INVOCATIONS_WITHOUT_CAPACITY, Unit::Count, "Invocations not taken.");
    describe_gauge!(
        SESSIONS_WAITING_FOR_CAPACITY,
        Unit::Count,
        "Sessions that have waited for a place for ten minutes or longer."
    );
    describe_counter!(POLLS, Unit::Count, "Requests to the poller, by judgement.");
    describe_counter!(WATCHDOG_CLOSED, Unit::Count, "Sessions that the watchdog closed.");
    describe_counter!(MODEL_CALLS, Unit::Count, "Calls of a model or of the policy.");
    describe_histogram!(MODEL_SECONDS, Unit::Seconds, "A model's call.");
    describe_gauge!(MODEL_CALLS_WAITING, Unit::Count, "Calls that wait for their provider.");
    describe_histogram!(MODEL_WAIT_SECONDS, Unit::Seconds, "The wait of a call for its provider.");
    describe_counter!(TOKENS, Unit::Count, "Tokens, by direction.");
    describe_counter!(MICRO_USD, Unit::Count, "Millionths of a dollar spent on models.");
    describe_counter!(TOOL_CALLS, Unit::Count, "Calls of tools.");
    describe_histogram!(TOOL_SECONDS, Unit::Seconds, "A tool's call.");
    describe_counter!(RETRIES, Unit::Count, "Attempts after the first.");
    describe_histogram!(APPEND_SECONDS, Unit::Seconds, "Until a step was in the journal.");
}
