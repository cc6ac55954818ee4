//! The names of figures, shared by those who count and those who raise alarms on them.
//!
//! CloudWatch knows a figure by the name that stands here, and Prometheus by what
//! [`telemetry::figures::on_the_page`] makes of it: `SessionsEnded` is `daybook_sessions_ended_total`
//! there. Names of investigations are fixed by their specification and the same on both sides. A label's
//! values are from a closed set, whatever the input says: words of ours, and the names of registered
//! agents. No session is ever a label.

use metrics::{Unit, describe_counter, describe_histogram};

/// The namespace in CloudWatch.
pub const NAMESPACE: &str = "Daybook";

/// Sessions sealed. Labels: `status`, the verdict; `agent`, `none` if it never began. Counted once a
/// seal, so twice where a sealing had to be repeated.
pub const SESSIONS_ENDED: &str = "SessionsEnded";

/// Seconds from a session's first record to its verdict, waiting included. Label: `status`.
pub const SESSION_SECONDS: &str = "SessionSeconds";

/// Sessions judged by admission. Label: `outcome`, one of `admitted`, `duplicate`, `breaker_open`.
pub const ADMISSIONS: &str = "Admissions";

/// Sessions refused by the hourly breaker. Label: `agent`, one that has a breaker.
pub const BREAKER_OPEN: &str = "BreakerOpen";

/// Agents that fell silent.
pub const AGENTS_LOST: &str = "AgentsLost";

/// Requests to the poller. Label: `status`, what it judged, or `error`.
pub const POLLS: &str = "Polls";

/// Sessions that the watchdog closed.
pub const WATCHDOG_CLOSED: &str = "WatchdogClosed";

/// Calls of a model, or of the policy in its place. Labels: `by`, one of `policy`, `bedrock`, `openai`,
/// `transcript`; `outcome`, one of `ok`, `not_sent`, `refused`, `unknown`.
pub const MODEL_CALLS: &str = "ModelCalls";

/// Seconds of a model's call. Label: `by`.
pub const MODEL_SECONDS: &str = "ModelSeconds";

/// Tokens. Label: `direction`, one of `input`, `output`, `unsettled`.
pub const TOKENS: &str = "Tokens";

/// Millionths of a dollar spent on models.
pub const MICRO_USD: &str = "SpentMicroUsd";

/// Calls of tools. Label: `outcome`, one of `ok`, `error`, `not_sent`, `refused`, `unknown`.
pub const TOOL_CALLS: &str = "ToolCalls";

/// Seconds of a tool's call. Label: `outcome`.
pub const TOOL_SECONDS: &str = "ToolSeconds";

/// Attempts after the first. Label: `effect`, `chat` or `tool`.
pub const RETRIES: &str = "Retries";

/// Seconds until a step was in the journal, as its runner waited for it.
pub const APPEND_SECONDS: &str = "AppendSeconds";

/// Decisions of fraud investigations' planners. Labels: `selected_tool`, `used_fallback`.
///
/// Source: the fraud specification, section 12, as the three below.
pub const PLANNER_DECISIONS: &str = "ops_agent_planner_decisions_total";

/// Seconds of a tool's call in a fraud investigation. Labels: `tool_name`, `status`.
pub const TOOL_EXECUTION_LATENCY: &str = "ops_agent_tool_execution_latency_seconds";

/// Decisions of one fraud investigation, in [`INVESTIGATION_STEPS_BUCKETS`].
pub const INVESTIGATION_STEPS: &str = "ops_agent_investigation_steps";

/// Fraud investigations that ended. Labels: `status`, `severity`.
pub const INVESTIGATIONS_COMPLETED: &str = "ops_agent_investigation_completed_total";

/// The upper bounds of the buckets of [`INVESTIGATION_STEPS`].
pub const INVESTIGATION_STEPS_BUCKETS: [f64; 20] = [
    1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0,
    18.0, 19.0, 20.0,
];

/// The upper bounds of the buckets of what is not measured in seconds.
pub const BUCKETS: [(&str, &[f64]); 1] = [(INVESTIGATION_STEPS, &INVESTIGATION_STEPS_BUCKETS)];

/// Tells the program's place for figures what they are.
pub fn describe() {
    describe_counter!(SESSIONS_ENDED, Unit::Count, "Sessions sealed, by verdict and agent.");
    describe_histogram!(SESSION_SECONDS, Unit::Seconds, "From the first record to the verdict.");
    describe_counter!(ADMISSIONS, Unit::Count, "Sessions judged by admission.");
    describe_counter!(BREAKER_OPEN, Unit::Count, "Sessions refused by the hourly breaker.");
    describe_counter!(AGENTS_LOST, Unit::Count, "Agents that fell silent.");
    describe_counter!(POLLS, Unit::Count, "Requests to the poller, by what it judged.");
    describe_counter!(WATCHDOG_CLOSED, Unit::Count, "Sessions that the watchdog closed.");
    describe_counter!(MODEL_CALLS, Unit::Count, "Calls of a model or of the policy.");
    describe_histogram!(MODEL_SECONDS, Unit::Seconds, "A model's call.");
    describe_counter!(TOKENS, Unit::Count, "Tokens, by direction.");
    describe_counter!(MICRO_USD, Unit::Count, "Millionths of a dollar spent on models.");
    describe_counter!(TOOL_CALLS, Unit::Count, "Calls of tools.");
    describe_histogram!(TOOL_SECONDS, Unit::Seconds, "A tool's call.");
    describe_counter!(RETRIES, Unit::Count, "Attempts after the first.");
    describe_histogram!(APPEND_SECONDS, Unit::Seconds, "Until a step was in the journal.");
    describe_counter!(PLANNER_DECISIONS, Unit::Count, "Choices of investigations' planners.");
    describe_histogram!(TOOL_EXECUTION_LATENCY, Unit::Seconds, "An investigation's tool call.");
    describe_histogram!(INVESTIGATION_STEPS, Unit::Count, "Choices of one investigation.");
    describe_counter!(INVESTIGATIONS_COMPLETED, Unit::Count, "Investigations that ended.");
}
