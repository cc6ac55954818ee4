//! The container's environment, read once.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use files::Roots;
use graph::agent::Agent;
use guard::Secret;
use journal::clock::{Clock, Stamp};
use workflow::env::{self, Invalid, Lookup};
use workflow::trigger::{Model, OnModelFailure};

use crate::model;
use crate::model::settings::Unusable;
use crate::settings::Defaults;

/// The port of the `AgentCore` HTTP contract.
///
/// Source: AWS, Bedrock `AgentCore` runtime service contract.
pub(crate) const PORT: u16 = 8080;

/// Default timeout of connecting to an MCP server, and of its handshake.
const MCP_TIMEOUT: Duration = Duration::from_secs(10);

/// The configuration from the environment, which the stack or the local host sets.
#[derive(Clone, Debug)]
pub struct Config {
    pub table: String,
    /// Whether the journal's table has a log and receipts, as in an account.
    pub is_logged: bool,
    /// Whether it runs in an AWS account, so that its tools may inspect that account.
    pub is_in_account: bool,
    /// The port, if a host on this machine set one.
    pub port: Option<u16>,
    pub defaults: Defaults,
    pub models: model::settings::Settings,
    /// The servers file.
    pub servers_file: Option<ServersFile>,
    /// Timeout of connecting to an MCP server.
    pub connect_timeout: Duration,
    /// Timeout of its handshake.
    pub init_timeout: Duration,
    /// The token that callers of this process need.
    pub token: Option<Secret>,
    /// The token of the stack on this machine, which its journal needs.
    pub journal_token: Option<Secret>,
    /// The folder for the state of MCP servers, if the host keeps it.
    pub state_folder: Option<PathBuf>,
    /// The files and folders that triggers may name.
    pub roots: Roots,
    /// The clock's speed, as a multiple of the machine's, and its start time.
    pub time: Option<(u32, Stamp)>,
}

impl Config {
    /// Reads the variables, including those of these agents.
    ///
    /// # Errors
    /// If one is missing or invalid.
    pub fn read(agents: &[Agent], lookup: &impl Lookup) -> Result<Self, Unusable> {
        let scale: u32 = env::parsed(lookup, env::DAYBOOK_TIME_SCALE, 1, "a whole number from 1")?;
        let origin =
            env::text(lookup, env::DAYBOOK_TIME_ORIGIN).map(|text| stamp(&text)).transpose()?;
        let defaults = Defaults::read(agents, lookup)?;
        Ok(Self {
            table: env::required(lookup, env::JOURNAL_TABLE_NAME, "the name of a table")?,
            is_logged: env::switch(lookup, env::JOURNAL_LOG)?,
            is_in_account: is_in_account(lookup)?,
            port: port(lookup)?,
            roots: roots(lookup).and(defaults.transcripts()),
            defaults,
            models: model::settings::Settings::read(lookup)?,
            servers_file: env::text(lookup, env::DAYBOOK_MCP_SERVERS).map(ServersFile::of),
            connect_timeout: env::seconds(lookup, env::MCP_CONNECT_TIMEOUT, MCP_TIMEOUT)?,
            init_timeout: env::seconds(lookup, env::MCP_INIT_TIMEOUT, MCP_TIMEOUT)?,
            token: env::text(lookup, env::DAYBOOK_AGENT_TOKEN).map(|text| Secret::new(&text)),
            journal_token: env::text(lookup, env::DAYBOOK_JOURNAL_TOKEN)
                .map(|text| Secret::new(&text)),
            state_folder: env::text(lookup, env::DAYBOOK_STATE_FOLDER).map(PathBuf::from),
            time: origin.map(|origin| (scale, origin)),
        })
    }

    /// The listen address: loopback if a host on this machine set a port, otherwise all interfaces of
    /// the container, whose network belongs to the runtime.
    pub fn address(&self) -> SocketAddr {
        match self.port {
            Some(port) => (Ipv4Addr::LOCALHOST, port).into(),
            None => (Ipv4Addr::UNSPECIFIED, PORT).into(),
        }
    }

    /// The clock that the variables describe.
    pub fn clock(&self) -> Clock {
        match self.time {
            Some((scale, origin)) if scale > 1 => Clock::scaled(origin, scale),
            _ => Clock::system(),
        }
    }
}

/// The servers file: where it is, or its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServersFile {
    At(PathBuf),
    Text(String),
}

impl ServersFile {
    /// A value of [`env::DAYBOOK_MCP_SERVERS`]. The file is a JSON object, and no path begins as one does.
    fn of(value: String) -> Self {
        if value.trim_start().starts_with('{') {
            return Self::Text(value);
        }
        Self::At(value.into())
    }

    /// The text of the file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&self) -> std::io::Result<String> {
        match self {
            Self::At(path) => std::fs::read_to_string(path),
            Self::Text(text) => Ok(text.clone()),
        }
    }
}

/// The default model, if the environment sets one.
///
/// # Errors
/// If the value does not name a model.
pub fn named_model(lookup: &impl Lookup) -> Result<Option<Model>, Invalid> {
    let (name, expected) =
        (env::DAYBOOK_MODEL, "policy, bedrock:ID, openai:NAME or transcript:FILE");
    env::text(lookup, name)
        .map(|value| {
            Model::try_from(value.clone()).map_err(|_| Invalid::Malformed { name, value, expected })
        })
        .transpose()
}

/// The default reaction to an unavailable model, if the environment sets one.
///
/// # Errors
/// If the value is neither `policy` nor `fail`.
pub fn on_model_failure(lookup: &impl Lookup) -> Result<Option<OnModelFailure>, Invalid> {
    let (name, expected) = (env::DAYBOOK_ON_MODEL_FAILURE, "policy or fail");
    env::text(lookup, name)
        .map(|value| match value.as_str() {
            "policy" => Ok(OnModelFailure::Policy),
            "fail" => Ok(OnModelFailure::Fail),
            _ => Err(Invalid::Malformed { name, value, expected }),
        })
        .transpose()
}

/// The binary with the shipped MCP servers: `daybook`, in the same folder as this one.
pub fn bundled_program(this: &Path) -> PathBuf {
    this.with_file_name("daybook")
}

/// The files and folders that triggers may name, as the environment has them.
fn roots(lookup: &impl Lookup) -> Roots {
    let allowed = env::text(lookup, env::DAYBOOK_ALLOWED_PATHS).unwrap_or_default();
    let roots = Roots::of_variable(allowed.as_ref());
    match env::text(lookup, env::DAYBOOK_GRANTS_FOLDER) {
        Some(folder) => roots.with_grants(Path::new(&folder)),
        None => roots,
    }
}

fn is_in_account(lookup: &impl Lookup) -> Result<bool, Invalid> {
    let (name, expected) = (env::DAYBOOK_TARGET, "local or aws");
    match env::text(lookup, name).as_deref() {
        None | Some("local") => Ok(false),
        Some("aws") => Ok(true),
        Some(value) => Err(Invalid::Malformed { name, value: value.to_owned(), expected }),
    }
}

pub(crate) fn port(lookup: &impl Lookup) -> Result<Option<u16>, Invalid> {
    let (name, expected) = (env::DAYBOOK_AGENT_PORT, "a port number");
    env::text(lookup, name)
        .map(|value| value.parse().map_err(|_| Invalid::Malformed { name, value, expected }))
        .transpose()
}

fn stamp(text: &str) -> Result<Stamp, Invalid> {
    Stamp::parse(text).map_err(|_| Invalid::Malformed {
        name: env::DAYBOOK_TIME_ORIGIN,
        value: text.to_owned(),
        expected: "an RFC 3339 time",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Config, Unusable> {
        Config::read(packs::all(), &|name: &str| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_defaults_are_those_of_the_contract() {
        let config = read(&[("JOURNAL_TABLE_NAME", "t")]).unwrap();
        assert_eq!(config.address().to_string(), "0.0.0.0:8080");
        assert_eq!(config.connect_timeout, Duration::from_secs(10));
        assert_eq!(config.defaults.model, Model::Policy);
        assert!(!config.is_in_account);
    }

    #[test]
    fn an_invalid_value_stops_the_program() {
        let refusal = read(&[("JOURNAL_TABLE_NAME", "t"), ("DAYBOOK_MODEL", "gpt")]).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "DAYBOOK_MODEL is `gpt`, expected policy, bedrock:ID, openai:NAME or transcript:FILE"
        );
        assert!(matches!(read(&[]), Err(Unusable::Variable(Invalid::Missing { .. }))));
    }
    #[test]
    fn the_servers_file_is_a_path_or_its_text() {
        let of = |value: &str| {
            let config = read(&[("JOURNAL_TABLE_NAME", "t"), ("DAYBOOK_MCP_SERVERS", value)]);
            config.unwrap().servers_file.unwrap()
        };
        assert_eq!(of("/etc/servers.json"), ServersFile::At("/etc/servers.json".into()));
        let text = r#"{"servers": {}}"#;
        assert_eq!(of(text).read().unwrap(), text);
    }
}
