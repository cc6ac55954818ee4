//! The environment variables of hosts, as constants, and how their values are read. An agent's own
//! are in its pack.
//!
//! Programs read each variable once, at their start, into a struct of their own; a wrong value stops
//! them before the first request.

use std::time::Duration;

use crate::limits::{TTL_DAYS, TTL_DAYS_MIN};

/// The journal's table. Set by the stack.
pub const JOURNAL_TABLE_NAME: &str = "JOURNAL_TABLE_NAME";

/// The state machine. Set by the stack.
pub const STATE_MACHINE_ARN: &str = "STATE_MACHINE_ARN";

/// The agent runtime. Set by the stack.
pub const AGENT_RUNTIME_ARN: &str = "AGENT_RUNTIME_ARN";

/// The agent runtime's endpoint, if not the default one.
pub const AGENT_RUNTIME_QUALIFIER: &str = "AGENT_RUNTIME_QUALIFIER";

/// The event bus. Set by the stack.
pub const EVENT_BUS_NAME: &str = "EVENT_BUS_NAME";

/// How many days records are kept.
pub const JOURNAL_TTL_DAYS: &str = "JOURNAL_TTL_DAYS";

/// Where spans go: an OTLP collector's address. Without it none are made. What else the exporter reads,
/// such as `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, is
/// OpenTelemetry's own.
///
/// Source: OpenTelemetry, "OTLP exporter configuration".
pub const OTEL_EXPORTER_OTLP_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// What a collector wants to be shown, such as a key. Never logged, never journaled.
pub const OTEL_EXPORTER_OTLP_HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// More about the program in its spans.
pub const OTEL_RESOURCE_ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";

/// `local` or `aws`.
pub const DAYBOOK_TARGET: &str = "DAYBOOK_TARGET";

/// Which stage of an account `--target aws` is about, where the names above are not set.
pub const DAYBOOK_STAGE: &str = "DAYBOOK_STAGE";

/// The model that a trigger without one gets.
pub const DAYBOOK_MODEL: &str = "DAYBOOK_MODEL";

/// What happens when the model stays down: `policy` or `fail`.
pub const DAYBOOK_ON_MODEL_FAILURE: &str = "DAYBOOK_ON_MODEL_FAILURE";

/// The base of an OpenAI-compatible server's addresses.
pub const OPENAI_BASE_URL: &str = "OPENAI_BASE_URL";

/// The key of an OpenAI-compatible server. Never logged, never journaled.
pub const OPENAI_API_KEY: &str = "OPENAI_API_KEY";

/// A file with prices that stand over those that ship.
pub const DAYBOOK_PRICES: &str = "DAYBOOK_PRICES";

/// The file to which every reply of a model is appended, as a transcript to be replayed.
pub const DAYBOOK_RECORD: &str = "DAYBOOK_RECORD";

/// The bearer token without which a stack listens on loopback only.
pub const DAYBOOK_TOKEN: &str = "DAYBOOK_TOKEN";

/// A JSON file that names MCP servers.
pub const DAYBOOK_MCP_SERVERS: &str = "DAYBOOK_MCP_SERVERS";

/// The SSM parameter that holds the bearer token for MCP servers whose file refers to it as
/// `${mcp-api-key}`.
pub const MCP_API_KEY_PARAMETER: &str = "MCP_API_KEY_PARAMETER";

/// How long connecting to an MCP server may take, in seconds.
pub const MCP_CONNECT_TIMEOUT: &str = "MCP_CONNECT_TIMEOUT";

/// How long an MCP server's handshake may take, in seconds.
pub const MCP_INIT_TIMEOUT: &str = "MCP_INIT_TIMEOUT";

/// Where an isolated agent listens. Set by its host; 8080 in the cloud.
pub const DAYBOOK_AGENT_PORT: &str = "DAYBOOK_AGENT_PORT";

/// How many times as fast as the machine's an isolated agent's clock runs. Set by its host.
pub const DAYBOOK_TIME_SCALE: &str = "DAYBOOK_TIME_SCALE";

/// What an isolated agent's clock shows at its start. Set by its host together with the scale.
pub const DAYBOOK_TIME_ORIGIN: &str = "DAYBOOK_TIME_ORIGIN";

/// Why a variable's value cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// It must be set and is not.
    #[error("{name} is not set, expected {expected}")]
    Missing {
        /// The variable.
        name: &'static str,
        /// The accepted form.
        expected: &'static str,
    },
    /// It is set to something else than it takes.
    #[error("{name} is `{value}`, expected {expected}")]
    Malformed {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// The accepted form.
        expected: &'static str,
    },
}

/// Where values come from: the process environment in programs, a table in tests.
pub trait Lookup: Fn(&str) -> Option<String> {}

impl<F: Fn(&str) -> Option<String>> Lookup for F {}

/// A text, if it is set and not empty.
pub fn text(lookup: &impl Lookup, name: &str) -> Option<String> {
    lookup(name).filter(|value| !value.is_empty())
}

/// A text that must be set.
///
/// # Errors
/// When it is not.
pub fn required(
    lookup: &impl Lookup,
    name: &'static str,
    expected: &'static str,
) -> Result<String, Invalid> {
    text(lookup, name).ok_or(Invalid::Missing { name, expected })
}

/// A value that parses, or its default.
///
/// # Errors
/// When it is set to something that does not parse.
pub fn parsed<T: std::str::FromStr>(
    lookup: &impl Lookup,
    name: &'static str,
    default: T,
    expected: &'static str,
) -> Result<T, Invalid> {
    match text(lookup, name) {
        None => Ok(default),
        Some(value) => value.parse().map_err(|_| Invalid::Malformed { name, value, expected }),
    }
}

/// A duration in whole seconds, from 1, or its default.
///
/// # Errors
/// When it is set to something else.
pub fn seconds(
    lookup: &impl Lookup,
    name: &'static str,
    default: Duration,
) -> Result<Duration, Invalid> {
    let expected = "a whole number of seconds, at least 1";
    let seconds: u32 =
        parsed(lookup, name, u32::try_from(default.as_secs()).unwrap_or(u32::MAX), expected)?;
    if seconds == 0 {
        return Err(Invalid::Malformed { name, value: "0".to_owned(), expected });
    }
    Ok(Duration::from_secs(u64::from(seconds)))
}

/// How many days records are kept, or the default.
///
/// # Errors
/// When it is set to fewer than [`TTL_DAYS_MIN`] or to no number.
pub fn ttl_days(lookup: &impl Lookup) -> Result<u32, Invalid> {
    let (name, expected) = (JOURNAL_TTL_DAYS, "a whole number of days, at least 3");
    let days = parsed(lookup, name, TTL_DAYS, expected)?;
    if days < TTL_DAYS_MIN {
        return Err(Invalid::Malformed { name, value: days.to_string(), expected });
    }
    Ok(days)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_names_the_variable_the_value_and_the_accepted_form() {
        let lookup = |name: &str| (name == MCP_INIT_TIMEOUT).then(|| "soon".to_owned());
        let refusal = seconds(&lookup, MCP_INIT_TIMEOUT, Duration::from_secs(10)).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "MCP_INIT_TIMEOUT is `soon`, expected a whole number of seconds, at least 1"
        );
        let default = seconds(&lookup, MCP_CONNECT_TIMEOUT, Duration::from_secs(10));
        assert_eq!(default, Ok(Duration::from_secs(10)));
        let short = |name: &str| (name == JOURNAL_TTL_DAYS).then(|| "2".to_owned());
        assert!(ttl_days(&short).is_err());
        let missing = required(&lookup, AGENT_RUNTIME_ARN, "an ARN").unwrap_err();
        assert_eq!(missing.to_string(), "AGENT_RUNTIME_ARN is not set, expected an ARN");
    }
}
