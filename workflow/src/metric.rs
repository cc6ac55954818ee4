//! The names of metrics, shared by those who emit them and those who raise alarms on them.
//!
//! They are Prometheus' names, and CloudWatch's as well. A label's values are from a closed set, whatever
//! the input says: words of ours, and the names of registered agents. No session is ever a label.

use metrics::{Unit, describe_counter, describe_histogram};

/// The namespace in CloudWatch.
pub const NAMESPACE: &str = "Daybook";

/// Sessions sealed. Labels: `status`, the verdict; `agent`, `none` if it never began. Counted once a
/// seal, so twice where a sealing had to be repeated.
pub const SESSIONS_ENDED: &str = "daybook_sessions_ended_total";

/// Seconds from a session's first record to its verdict, waiting included. Label: `status`.
pub const SESSION_SECONDS: &str = "daybook_session_seconds";

/// Sessions judged by admission. Label: `outcome`, one of `admitted`, `duplicate`, `breaker_open`.
pub const ADMISSIONS: &str = "daybook_admissions_total";

/// Sessions refused by the hourly breaker.
pub const BREAKER_OPEN: &str = "daybook_breaker_open_total";

/// Agents that fell silent.
pub const AGENTS_LOST: &str = "daybook_agents_lost_total";

/// Requests to the poller. Label: `status`, what it judged, or `error`.
pub const POLLS: &str = "daybook_polls_total";

/// Sessions that the watchdog closed.
pub const WATCHDOG_CLOSED: &str = "daybook_watchdog_closed_total";

/// Calls of a model, or of the policy in its place. Labels: `by`, one of `policy`, `bedrock`, `openai`,
/// `transcript`; `outcome`, one of `ok`, `not_sent`, `refused`, `unknown`.
pub const MODEL_CALLS: &str = "daybook_model_calls_total";

/// Seconds of a model's call. Label: `by`.
pub const MODEL_SECONDS: &str = "daybook_model_seconds";

/// Tokens. Label: `direction`, one of `input`, `output`, `unsettled`.
pub const TOKENS: &str = "daybook_tokens_total";

/// Millionths of a dollar spent on models.
pub const MICRO_USD: &str = "daybook_spent_micro_usd_total";

/// Calls of tools. Label: `outcome`, one of `ok`, `error`, `not_sent`, `refused`, `unknown`.
pub const TOOL_CALLS: &str = "daybook_tool_calls_total";

/// Seconds of a tool's call. Label: `outcome`.
pub const TOOL_SECONDS: &str = "daybook_tool_seconds";

/// Attempts after the first. Label: `effect`, `chat` or `tool`.
pub const RETRIES: &str = "daybook_retries_total";

/// Seconds until a step was in the journal, as its runner waited for it.
pub const APPEND_SECONDS: &str = "daybook_append_seconds";

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
}
