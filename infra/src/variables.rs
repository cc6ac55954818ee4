//! The agent's environment variables that are settings of the same name: those of its host, and those that the shipped
//! agents' profiles list. An invalid value stops the synthesis, not the container.

use graph::profile::{Environment, FolderQuery, TextFile, Unreadable, Unusable};
use workflow::env;

use crate::config::{Invalid, VALUE_CHARS_MAX};

/// A variable of the host, whether a value fits, and the accepted form.
type Variable = (&'static str, fn(&str) -> bool, &'static str);

const PATH: &str = "an absolute path in the image";
const URL: &str = "a URL, such as https://example.com";
const SECONDS: &str = "a whole number of seconds, at least 1";

/// The variables that the agent's host or a library in it reads. The stack sets the others by itself, or they have no
/// meaning in an account.
const OF_THE_HOST: &[Variable] = &[
    (env::DAYBOOK_ON_MODEL_FAILURE, |it| ["policy", "fail"].contains(&it), "policy or fail"),
    (env::DAYBOOK_PRICES, is_path, PATH),
    (env::DAYBOOK_RECORD, is_path, PATH),
    (env::DAYBOOK_MCP_SERVERS, is_path, PATH),
    (env::DAYBOOK_MODEL_CALLS_MAX, is_number, "a whole number of at least 1"),
    (env::MCP_CONNECT_TIMEOUT, is_number, SECONDS),
    (env::MCP_INIT_TIMEOUT, is_number, SECONDS),
    (SERVER_URL, is_url, URL),
    (env::OPENAI_BASE_URL, is_url, URL),
    (BEDROCK_ENDPOINT, is_url, URL),
    (env::OTEL_EXPORTER_OTLP_ENDPOINT, is_url, URL),
    (env::OTEL_RESOURCE_ATTRIBUTES, |it| it.contains('='), "NAME=VALUE, with commas between them"),
    (LOG, |it| !it.is_empty(), "levels, such as info,agent=debug"),
];

/// A servers file refers to it as `${env:MCP_SERVER_URL}`.
///
/// Source: the incident specification, which names the variable.
const SERVER_URL: &str = "MCP_SERVER_URL";

/// Source: AWS SDKs and Tools Reference Guide, "Service-specific endpoints".
const BEDROCK_ENDPOINT: &str = "AWS_ENDPOINT_URL_BEDROCK_RUNTIME";

/// Source: the crate `tracing-subscriber`, `EnvFilter`.
const LOG: &str = "RUST_LOG";

/// The variables that the functions read, too.
const OF_THE_FUNCTIONS: &[&str] =
    &[env::OTEL_EXPORTER_OTLP_ENDPOINT, env::OTEL_RESOURCE_ATTRIBUTES];

/// The names of all.
pub fn names() -> impl Iterator<Item = &'static str> {
    let of_agents = packs::all().iter().flat_map(|agent| agent.profile().variables);
    OF_THE_HOST.iter().map(|(name, ..)| *name).chain(of_agents.copied())
}

/// Those that are set, in the order of [`names`].
pub(crate) fn read(
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<Vec<(&'static str, String)>, Invalid> {
    let set = |name: &str| lookup(name).filter(|value| !value.is_empty());
    for &(name, fits, expected) in OF_THE_HOST {
        if let Some(value) = set(name).filter(|value| !fits(value)) {
            return Err(Invalid::Value { name, value, expected: expected.to_owned() });
        }
    }
    let is_long = |value: &String| value.chars().count() > VALUE_CHARS_MAX;
    if let Some((name, value)) = names().find_map(|name| Some((name, set(name).filter(is_long)?))) {
        let expected = format!("at most {VALUE_CHARS_MAX} characters");
        return Err(Invalid::Value { name, value, expected });
    }
    let environment = Environment::of(&set).with_folders(&no_files);
    for agent in packs::all() {
        (agent.profile().defaults)(&environment).map_err(|problem| match problem {
            Unusable::Variable { name, value, expected } => {
                Invalid::Value { name, value, expected: expected.to_owned() }
            }
            other => Invalid::Agent { agent: agent.name(), why: other.to_string() },
        })?;
    }
    Ok(names().filter_map(|name| Some((name, set(name)?))).collect())
}

/// Those of them that the functions read.
pub(crate) fn of_functions(
    variables: &[(&'static str, String)],
) -> impl Iterator<Item = (&'static str, String)> {
    variables.iter().filter(|(name, _)| OF_THE_FUNCTIONS.contains(name)).cloned()
}

/// A folder is one in the image, which is read when the agent starts.
fn no_files(_: &FolderQuery<'_>) -> Result<Vec<TextFile>, Unreadable> {
    Ok(vec![])
}

fn is_path(value: &str) -> bool {
    value.starts_with('/')
}

fn is_number(value: &str) -> bool {
    value.parse::<u32>().is_ok_and(|number| number > 0)
}

fn is_url(value: &str) -> bool {
    let rest = value.strip_prefix("https://").or_else(|| value.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one(name: &str, value: &str) -> Result<Vec<(&'static str, String)>, Invalid> {
        read(&|asked: &str| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn each_variable_of_host_and_agents_is_a_setting() {
        let all = crate::config::names();
        let unique: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(unique.len(), all.len(), "{all:?}");
        for agent in packs::all() {
            let variables = agent.profile().variables;
            assert!(variables.iter().all(|name| unique.contains(name)), "{variables:?}");
        }
        let long = "x".repeat(VALUE_CHARS_MAX + 1);
        assert!(read_one("RUST_LOG", &long).unwrap_err().to_string().contains("at most 5000"));
        assert_eq!(
            read_one("NETWORK_MAX_RETRIES", "1"),
            Ok(vec![("NETWORK_MAX_RETRIES", "1".to_owned())])
        );
        assert_eq!(read_one("NETWORK_MAX_RETRIES", ""), Ok(vec![]));
    }

    #[test]
    fn an_agents_invalid_variable_stops_the_synthesis() {
        for (name, value) in [
            ("LANGGRAPH_MAX_STEPS", "many"),
            ("MCP_INIT_TIMEOUT", "0"),
            ("OPENAI_BASE_URL", "example.com"),
            ("DAYBOOK_ON_MODEL_FAILURE", "ask"),
        ] {
            let refusal = read_one(name, value).unwrap_err().to_string();
            let expected = format!("invalid context `{name}={value}`: expected ");
            assert!(refusal.starts_with(&expected), "{refusal}");
        }
    }
}
