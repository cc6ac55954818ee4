//! The environment, read once.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent::config::{named_model, on_model_failure};
use agent::investigation;
use agent::model::settings::{Settings, Unusable};
use agent::network;
use agent::settings::{Defaults, incident_budget};
use agent::tool::Timeouts;
use graph::agent::Agent;
use workflow::admission::Limits;
use workflow::env::{self, Invalid};

/// How long connecting to an MCP server and its handshake may take unless the environment says.
const MCP_TIMEOUT: Duration = Duration::from_secs(10);

/// What an isolated agent is given of this program's environment: what says how agents work.
const HANDED_ON: [&str; 31] = [
    env::DAYBOOK_MODEL,
    env::DAYBOOK_ON_MODEL_FAILURE,
    env::DAYBOOK_PRICES,
    env::DAYBOOK_RECORD,
    env::OPENAI_BASE_URL,
    env::OPENAI_API_KEY,
    env::MAX_TOKENS_PER_INCIDENT,
    env::INCIDENT_RECURSION_LIMIT,
    env::INCIDENT_DEADLINE_BUFFER_SECONDS,
    env::LANGGRAPH_MAX_STEPS,
    env::LANGGRAPH_INVESTIGATION_TIMEOUT_SECONDS,
    env::LANGGRAPH_TOOL_TIMEOUT_SECONDS,
    env::LANGGRAPH_ENABLE_PLANNER_FALLBACK,
    env::PLANNER_LLM_ENABLED,
    env::PLANNER_MODEL_NAME,
    env::PLANNER_TEMPERATURE,
    env::PLANNER_MAX_TOKENS,
    env::PLANNER_TIMEOUT_SECONDS,
    env::PLANNER_PROMPT_GUARD_ENABLED,
    env::PLANNER_FALLBACK_SEQUENCE,
    env::NETWORK_MAX_RETRIES,
    env::NETWORK_PLANS,
    "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
    env::DAYBOOK_MCP_SERVERS,
    env::MCP_CONNECT_TIMEOUT,
    env::MCP_INIT_TIMEOUT,
    env::MCP_API_KEY_PARAMETER,
    AWS_ENDPOINT_URL_SSM,
    env::OTEL_EXPORTER_OTLP_ENDPOINT,
    env::OTEL_EXPORTER_OTLP_HEADERS,
    env::OTEL_RESOURCE_ATTRIBUTES,
];

/// What the command line takes from its surroundings: the environment, and the agents that the program
/// was built with. Values are checked where they are used, so that
/// a variable that a command does not need cannot stop it.
#[derive(Clone, Debug)]
pub struct Config {
    /// `DAYBOOK_TARGET`.
    pub target: Option<String>,
    /// `DAYBOOK_TOKEN`.
    pub token: Option<String>,
    /// `DAYBOOK_STAGE`.
    #[cfg(feature = "live")]
    pub stage: Option<String>,
    /// `STATE_MACHINE_ARN`.
    pub state_machine_arn: Option<String>,
    /// `EVENT_BUS_NAME`.
    pub event_bus_name: Option<String>,
    /// `JOURNAL_TABLE_NAME`.
    pub table: Option<String>,
    /// `AGENT_RUNTIME_ARN`.
    #[cfg(feature = "live")]
    pub runtime_arn: Option<String>,
    /// `AWS_ENDPOINT_URL`, the AWS SDK's own.
    pub aws_endpoint_url: Option<String>,
    /// This binary.
    pub binary: PathBuf,
    /// The agents that it knows.
    pub agents: Arc<[Agent]>,
}

/// The AWS SDK's own variable for where all services are.
///
/// Source: AWS SDKs and Tools Reference Guide, "Service-specific endpoints".
pub const AWS_ENDPOINT_URL: &str = "AWS_ENDPOINT_URL";

/// The same for SSM alone, which the local stack does not stand in for.
const AWS_ENDPOINT_URL_SSM: &str = "AWS_ENDPOINT_URL_SSM";

/// What a stack takes from the environment.
#[derive(Clone, Debug)]
pub struct StackEnvironment {
    /// What a trigger that says nothing gets.
    pub defaults: Defaults,
    /// What models are asked with.
    pub models: Settings,
    /// Which MCP servers there are.
    pub servers: ServersEnvironment,
    /// How many days records are kept.
    pub ttl_days: u32,
    /// How many sessions are admitted.
    pub admission: Limits,
    /// What isolated agents are given.
    pub handed_on: Vec<(String, String)>,
}

/// What the environment says of MCP servers.
#[derive(Clone, Debug)]
pub struct ServersEnvironment {
    /// The file that names them.
    pub file: Option<PathBuf>,
    /// How long connecting to them may take.
    pub timeouts: Timeouts,
    /// Where the parameters are that the file refers to, if the environment says so.
    #[cfg_attr(not(feature = "live"), expect(dead_code, reason = "other builds read them"))]
    pub ssm_endpoint: Option<String>,
}

impl Config {
    /// Reads the environment.
    pub fn from_environment(agents: Arc<[Agent]>) -> Self {
        let lookup = |name: &str| read(name);
        Self {
            target: env::text(&lookup, env::DAYBOOK_TARGET),
            token: env::text(&lookup, env::DAYBOOK_TOKEN),
            #[cfg(feature = "live")]
            stage: env::text(&lookup, env::DAYBOOK_STAGE),
            state_machine_arn: env::text(&lookup, env::STATE_MACHINE_ARN),
            event_bus_name: env::text(&lookup, env::EVENT_BUS_NAME),
            table: env::text(&lookup, env::JOURNAL_TABLE_NAME),
            #[cfg(feature = "live")]
            runtime_arn: env::text(&lookup, env::AGENT_RUNTIME_ARN),
            aws_endpoint_url: env::text(&lookup, AWS_ENDPOINT_URL),
            binary: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("daybook")),
            agents,
        }
    }

    /// Reads what a stack needs besides.
    ///
    /// # Errors
    /// When a variable is set to what it does not take; the program stops before its first request.
    pub fn stack(&self) -> Result<StackEnvironment, Unusable> {
        let lookup = |name: &str| read(name);
        let defaults = Defaults::default();
        let ttl_days = env::ttl_days(&lookup)?;
        let handed_on = HANDED_ON
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), env::text(&lookup, name)?)));
        Ok(StackEnvironment {
            defaults: Defaults {
                model: named_model(&lookup)?.unwrap_or(defaults.model),
                on_model_failure: on_model_failure(&lookup)?.unwrap_or(defaults.on_model_failure),
                incident_budget: incident_budget(&lookup)?,
                network: network::Defaults::read(&lookup)?,
                investigation: investigation::Defaults::read(&lookup)?,
            },
            models: Settings::read(&lookup)?,
            servers: self.servers()?,
            ttl_days,
            admission: Limits::read(&lookup)?,
            handed_on: handed_on.collect(),
        })
    }

    /// Reads what is said of MCP servers.
    ///
    /// # Errors
    /// When a variable is set to what it does not take.
    pub fn servers(&self) -> Result<ServersEnvironment, Invalid> {
        let lookup = |name: &str| read(name);
        let of_ssm = env::text(&lookup, AWS_ENDPOINT_URL_SSM);
        Ok(ServersEnvironment {
            file: env::text(&lookup, env::DAYBOOK_MCP_SERVERS).map(PathBuf::from),
            timeouts: Timeouts {
                connect: env::seconds(&lookup, env::MCP_CONNECT_TIMEOUT, MCP_TIMEOUT)?,
                init: env::seconds(&lookup, env::MCP_INIT_TIMEOUT, MCP_TIMEOUT)?,
            },
            ssm_endpoint: of_ssm.or_else(|| self.aws_endpoint_url.clone()),
        })
    }
}

/// Has this program's spans exported if the environment names a collector.
///
/// # Errors
/// When what it names is none.
pub fn export_spans(service: &'static str) -> Result<(), env::Invalid> {
    env::export_spans(&read, service)
}

/// Whether the environment asks for output without colour.
///
/// Source: no-color.org; any value that is not empty counts.
pub fn no_colour() -> bool {
    let set = |name: &str| read(name).filter(|value| !value.is_empty());
    set("NO_COLOR").is_some() || set("TERM").is_some_and(|terminal| terminal == "dumb")
}

/// The person's editor, as a command line; `None` if they named none.
///
/// Source: POSIX, "Environment Variables", `VISUAL` and `EDITOR`.
pub fn editor() -> Option<String> {
    let set = |name: &str| read(name).filter(|value| !value.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR"))
}

/// A variable of the process, for a file that refers to variables by names of its own.
pub fn variable(name: &str) -> Option<String> {
    read(name)
}

#[expect(clippy::disallowed_methods, reason = "the one place where the environment is read")]
fn read(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
