//! The environment variables of hosts, and functions that read their values. An agent's own variables
//! are in its pack.
//!
//! A program reads each variable once, at startup, into its own struct. An invalid value stops it before
//! the first request.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::limits::{TTL_DAYS, TTL_DAYS_MIN};

/// The region of the AWS clients. Lambda sets it for the functions, and the stack for the agent.
///
/// Source: AWS SDKs and Tools Reference Guide, "AWS Region".
pub const AWS_REGION: &str = "AWS_REGION";

/// The journal's table. Set by the stack.
pub const JOURNAL_TABLE_NAME: &str = "JOURNAL_TABLE_NAME";

/// `on` if the functions keep a log of sessions, and receipts of people's steps, in the journal's table. Set by the stack.
pub const JOURNAL_LOG: &str = "JOURNAL_LOG";

/// The key of AWS KMS that signs the log of sessions: an alias or an ARN. Set by the stack.
pub const JOURNAL_LOG_KEY: &str = "JOURNAL_LOG_KEY";

/// The state machine. Set by the stack.
pub const STATE_MACHINE_ARN: &str = "STATE_MACHINE_ARN";

/// The agent runtime. Set by the stack.
pub const AGENT_RUNTIME_ARN: &str = "AGENT_RUNTIME_ARN";

/// The agent runtime's endpoint, if not the default one.
pub const AGENT_RUNTIME_QUALIFIER: &str = "AGENT_RUNTIME_QUALIFIER";

/// The event bus. Set by the stack.
pub const EVENT_BUS_NAME: &str = "EVENT_BUS_NAME";

/// The URL of the poller's function, for a person's actions on sessions in AWS.
pub const ACTIONS_URL: &str = "ACTIONS_URL";

/// The event bus for a person's actions on sessions in AWS.
pub const ACTIONS_BUS_NAME: &str = "ACTIONS_BUS_NAME";

/// The bus on which the poller puts events about sessions; none if it is not set. Set by the stack.
pub const NOTIFY_BUS_NAME: &str = "NOTIFY_BUS_NAME";

/// The base of the links to sessions in those events. Set by the stack.
pub const NOTIFY_LINK: &str = "NOTIFY_LINK";

/// Retention of records, in days.
pub const JOURNAL_TTL_DAYS: &str = "JOURNAL_TTL_DAYS";

/// The address of the OTLP collector. If it is not set, no spans are created. The exporter also reads
/// OpenTelemetry's standard variables, such as `OTEL_SERVICE_NAME`.
///
/// Source: OpenTelemetry, "OTLP exporter configuration".
pub const OTEL_EXPORTER_OTLP_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Headers for the collector, such as an API key. Never logged, never journaled.
pub const OTEL_EXPORTER_OTLP_HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// Additional resource attributes of spans.
pub const OTEL_RESOURCE_ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";

/// `local` or `aws`.
pub const DAYBOOK_TARGET: &str = "DAYBOOK_TARGET";

/// The URL of the local stack that commands use without `--endpoint`.
pub const DAYBOOK_ENDPOINT: &str = "DAYBOOK_ENDPOINT";

/// The stage that `--target aws` uses if the resource names above are not set, and the dimension of the functions'
/// metrics.
pub const DAYBOOK_STAGE: &str = "DAYBOOK_STAGE";

/// The default model.
pub const DAYBOOK_MODEL: &str = "DAYBOOK_MODEL";

/// The default reaction to an unavailable model: `policy` or `fail`.
pub const DAYBOOK_ON_MODEL_FAILURE: &str = "DAYBOOK_ON_MODEL_FAILURE";

/// The base URL of an OpenAI-compatible server.
pub const OPENAI_BASE_URL: &str = "OPENAI_BASE_URL";

/// The API key of an OpenAI-compatible server. Never logged, never journaled.
pub const OPENAI_API_KEY: &str = "OPENAI_API_KEY";

/// A file with prices that override the shipped ones.
pub const DAYBOOK_PRICES: &str = "DAYBOOK_PRICES";

/// The file to which model replies are recorded as a transcript.
pub const DAYBOOK_RECORD: &str = "DAYBOOK_RECORD";

/// Most concurrent calls of one provider of models.
pub const DAYBOOK_MODEL_CALLS_MAX: &str = "DAYBOOK_MODEL_CALLS_MAX";

/// Most sessions at work at once on a local stack.
pub const DAYBOOK_AGENTS_MAX: &str = "DAYBOOK_AGENTS_MAX";

/// The same for single agents: `NAME=N`, separated by commas.
pub const DAYBOOK_AGENT_MAX: &str = "DAYBOOK_AGENT_MAX";

/// Most sessions that wait for their turn on a local stack.
pub const DAYBOOK_QUEUE_MAX: &str = "DAYBOOK_QUEUE_MAX";

/// Most executions under way on a local stack.
pub const DAYBOOK_EXECUTIONS_MAX: &str = "DAYBOOK_EXECUTIONS_MAX";

/// The disk budget of a local stack's data folder, such as `20GiB`.
pub const DAYBOOK_DISK_MAX: &str = "DAYBOOK_DISK_MAX";

/// The notify file of a local stack: the targets for notices about sessions.
pub const DAYBOOK_NOTIFY: &str = "DAYBOOK_NOTIFY";

/// Folders and files that triggers may name, separated as in `PATH`.
pub const DAYBOOK_ALLOWED_PATHS: &str = "DAYBOOK_ALLOWED_PATHS";
/// The folder of the grants of paths that a person named, which the host of an agent's process sets.
pub const DAYBOOK_GRANTS_FOLDER: &str = "DAYBOOK_GRANTS_FOLDER";

/// The bearer token; required to listen beyond loopback.
pub const DAYBOOK_TOKEN: &str = "DAYBOOK_TOKEN";

/// The name of the token's holder, which the journal records for the token's requests.
pub const DAYBOOK_TOKEN_NAME: &str = "DAYBOOK_TOKEN_NAME";
/// The folder of the keys that sign the logs of sessions.
pub const DAYBOOK_KEYS: &str = "DAYBOOK_KEYS";

/// `on` if a local stack encrypts the contents of new sessions, each under a key of its own.
pub const DAYBOOK_ENCRYPT: &str = "DAYBOOK_ENCRYPT";

/// Witnesses that cosign the log of sessions: `KEY URL`, separated by commas.
pub const DAYBOOK_WITNESSES: &str = "DAYBOOK_WITNESSES";

/// The path of `daybook.toml`.
pub const DAYBOOK_CONFIG: &str = "DAYBOOK_CONFIG";

/// The path of the servers file: the configured MCP servers, in JSON. For the agents' container also the JSON itself,
/// which a deployment sets without building an image.
pub const DAYBOOK_MCP_SERVERS: &str = "DAYBOOK_MCP_SERVERS";

/// The SSM parameter with the bearer token for MCP servers; the servers file refers to it as
/// `${mcp-api-key}`.
pub const MCP_API_KEY_PARAMETER: &str = "MCP_API_KEY_PARAMETER";

/// Timeout of connecting to an MCP server, in seconds.
pub const MCP_CONNECT_TIMEOUT: &str = "MCP_CONNECT_TIMEOUT";

/// Timeout of an MCP server's handshake, in seconds.
pub const MCP_INIT_TIMEOUT: &str = "MCP_INIT_TIMEOUT";

/// The port of an isolated agent. Set by its host; 8080 in the cloud.
pub const DAYBOOK_AGENT_PORT: &str = "DAYBOOK_AGENT_PORT";

/// The bearer token that callers of an agent's process need. Set by its host.
pub const DAYBOOK_AGENT_TOKEN: &str = "DAYBOOK_AGENT_TOKEN";

/// The token with which an agent's process calls the local stack. Set by the stack.
pub const DAYBOOK_JOURNAL_TOKEN: &str = "DAYBOOK_JOURNAL_TOKEN";

/// The folder for the state of an agent's MCP servers, which the host of an agent's process sets. Without
/// it, the state is in a temporary folder and ends with the process.
pub const DAYBOOK_STATE_FOLDER: &str = "DAYBOOK_STATE_FOLDER";

/// The speed of an isolated agent's clock, as a multiple of the machine's. Set by its host.
pub const DAYBOOK_TIME_SCALE: &str = "DAYBOOK_TIME_SCALE";

/// The start time of an isolated agent's clock. Set by its host together with the scale.
pub const DAYBOOK_TIME_ORIGIN: &str = "DAYBOOK_TIME_ORIGIN";

/// A required variable is missing, or a value is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("{name} is not set, expected {expected}")]
    Missing {
        name: &'static str,
        /// The accepted form.
        expected: &'static str,
    },
    #[error("{name} is `{value}`, expected {expected}")]
    Malformed {
        name: &'static str,
        value: String,
        /// The accepted form.
        expected: &'static str,
    },
}

/// The source of values: the process environment in programs, a table in tests.
pub trait Lookup: Fn(&str) -> Option<String> {}

impl<F: Fn(&str) -> Option<String>> Lookup for F {}

/// The variable's value, unless it is unset or empty.
pub fn text(lookup: &impl Lookup, name: &str) -> Option<String> {
    lookup(name).filter(|value| !value.is_empty())
}

/// A required value.
///
/// # Errors
/// If it is unset or empty.
pub fn required(
    lookup: &impl Lookup,
    name: &'static str,
    expected: &'static str,
) -> Result<String, Invalid> {
    text(lookup, name).ok_or(Invalid::Missing { name, expected })
}

/// Whether a switch is `on`; one that is not set is off.
///
/// # Errors
/// If the value is neither `on` nor `off`.
pub fn switch(lookup: &impl Lookup, name: &'static str) -> Result<bool, Invalid> {
    match text(lookup, name).as_deref() {
        Some("on") => Ok(true),
        None | Some("off") => Ok(false),
        Some(value) => {
            let value = value.to_owned();
            Err(Invalid::Malformed { name, value, expected: "`on` or `off`" })
        }
    }
}

/// A parsed value, or the default if it is not set.
///
/// # Errors
/// If the value does not parse.
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

/// A whole number of at least 1, if it is set.
///
/// # Errors
/// If the value is anything else.
pub fn at_least_one(
    lookup: &impl Lookup,
    name: &'static str,
) -> Result<Option<NonZeroU32>, Invalid> {
    let expected = "a whole number of at least 1";
    let parse =
        |value: String| value.parse().map_err(|_| Invalid::Malformed { name, value, expected });
    text(lookup, name).map(parse).transpose()
}

/// A duration in whole seconds, at least 1, or the default if it is not set.
///
/// # Errors
/// If the value is anything else.
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

/// The retention of records, in days, or the default if it is not set.
///
/// # Errors
/// If the value is not a number of at least [`TTL_DAYS_MIN`].
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
    fn an_error_names_the_variable_and_the_accepted_form() {
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
