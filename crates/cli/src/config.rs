//! The environment, read once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agent::model::settings::{Settings, Unusable};
use agent::program::INHERITED;
use agent::project::Project;
use agent::settings::Defaults;
use agent::tool::Timeouts;
use extension::Extension;
use files::Roots;
use graph::agent::Agent;
use graph::profile::{Environment, Limits};
use stack::checkpoints::Witness;
use workflow::env::{self, Invalid};

use crate::caps;

/// Default timeout of an MCP connection, and of its handshake.
const MCP_TIMEOUT: Duration = Duration::from_secs(10);

/// Environment variables that an isolated agent inherits, in addition to those of the agents.
const HANDED_ON: [&str; 16] = [
    env::DAYBOOK_MODEL,
    env::DAYBOOK_ON_MODEL_FAILURE,
    env::DAYBOOK_PRICES,
    env::DAYBOOK_RECORD,
    env::DAYBOOK_MODEL_CALLS_MAX,
    env::OPENAI_BASE_URL,
    env::OPENAI_API_KEY,
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

/// Variables that `daybook.toml` can set, in addition to those of the agents.
pub const VARIABLES: [&str; 38] = [
    env::DAYBOOK_TARGET,
    env::DAYBOOK_ENDPOINT,
    env::DAYBOOK_STAGE,
    env::DAYBOOK_TOKEN,
    env::DAYBOOK_TOKEN_NAME,
    env::DAYBOOK_KEYS,
    env::DAYBOOK_MODEL,
    env::DAYBOOK_ON_MODEL_FAILURE,
    env::DAYBOOK_PRICES,
    env::DAYBOOK_RECORD,
    env::DAYBOOK_MODEL_CALLS_MAX,
    env::OPENAI_BASE_URL,
    env::OPENAI_API_KEY,
    env::DAYBOOK_AGENTS_MAX,
    env::DAYBOOK_AGENT_MAX,
    env::DAYBOOK_QUEUE_MAX,
    env::DAYBOOK_EXECUTIONS_MAX,
    env::DAYBOOK_DISK_MAX,
    env::DAYBOOK_ALLOWED_PATHS,
    env::DAYBOOK_ENCRYPT,
    env::DAYBOOK_WITNESSES,
    env::JOURNAL_TTL_DAYS,
    env::DAYBOOK_MCP_SERVERS,
    env::MCP_API_KEY_PARAMETER,
    env::MCP_CONNECT_TIMEOUT,
    env::MCP_INIT_TIMEOUT,
    env::OTEL_EXPORTER_OTLP_ENDPOINT,
    env::OTEL_EXPORTER_OTLP_HEADERS,
    env::OTEL_RESOURCE_ATTRIBUTES,
    env::STATE_MACHINE_ARN,
    env::EVENT_BUS_NAME,
    env::ACTIONS_URL,
    env::ACTIONS_BUS_NAME,
    env::JOURNAL_TABLE_NAME,
    env::JOURNAL_LOG_KEY,
    env::AGENT_RUNTIME_ARN,
    AWS_ENDPOINT_URL,
    AWS_ENDPOINT_URL_SSM,
];

/// The environment, and the agents and extensions of this program.
///
/// Values are validated where they are used: an invalid variable fails only the commands that need it.
#[derive(Clone, Debug)]
pub struct Config {
    /// `DAYBOOK_TARGET`.
    pub target: Option<String>,
    /// `DAYBOOK_TOKEN`.
    pub token: Option<String>,
    /// `DAYBOOK_TOKEN_NAME`.
    pub token_name: Option<String>,
    /// `DAYBOOK_KEYS`, or else the folder for it in the user's configuration; `None` without a home.
    pub keys: Option<PathBuf>,
    /// `DAYBOOK_STAGE`.
    #[cfg(feature = "live")]
    pub stage: Option<String>,
    /// `STATE_MACHINE_ARN`.
    pub state_machine_arn: Option<String>,
    /// `EVENT_BUS_NAME`.
    pub event_bus_name: Option<String>,
    /// `ACTIONS_URL`.
    pub actions_url: Option<String>,
    /// `ACTIONS_BUS_NAME`.
    pub actions_bus: Option<String>,
    /// `JOURNAL_TABLE_NAME`.
    pub table: Option<String>,
    /// `JOURNAL_LOG_KEY`.
    #[cfg(feature = "live")]
    pub log_key: Option<String>,
    /// `AGENT_RUNTIME_ARN`.
    #[cfg(feature = "live")]
    pub runtime_arn: Option<String>,
    /// `DAYBOOK_ENDPOINT`.
    pub endpoint: Option<String>,
    /// `AWS_ENDPOINT_URL`, the AWS SDK's own.
    pub aws_endpoint_url: Option<String>,
    /// The path of this binary.
    pub binary: PathBuf,
    /// What `daybook.toml` configures.
    pub project: Arc<Project>,
    /// Why it cannot be used; only for `doctor`, other commands fail.
    pub project_problem: Option<String>,
    pub agents: Arc<[Agent]>,
    pub extensions: Arc<[Extension]>,
}

/// The AWS SDK's variable for the endpoint of all services.
///
/// Source: AWS SDKs and Tools Reference Guide, "Service-specific endpoints".
pub const AWS_ENDPOINT_URL: &str = "AWS_ENDPOINT_URL";

/// The same for SSM, which the local stack does not emulate.
const AWS_ENDPOINT_URL_SSM: &str = "AWS_ENDPOINT_URL_SSM";

/// Settings of a stack from the environment.
#[derive(Clone, Debug)]
pub struct StackEnvironment {
    /// Defaults for triggers.
    pub defaults: Defaults,
    /// Settings of models.
    pub models: Settings,
    pub servers: ServersEnvironment,
    /// Retention of records, in days.
    pub ttl_days: u32,
    /// Whether the contents of new sessions are encrypted.
    pub encrypt: bool,
    /// Admission limits.
    pub admission: Limits,
    /// Limits of the load.
    pub load: stack::load::Limits,
    /// `DAYBOOK_WITNESSES`.
    pub witnesses: Vec<Witness>,
    /// `DAYBOOK_NOTIFY`.
    pub notify: Option<PathBuf>,
    /// `DAYBOOK_ALLOWED_PATHS`.
    pub allowed: Vec<PathBuf>,
    /// The environment of isolated agents.
    pub handed_on: Vec<(String, String)>,
}

fn witnesses(lookup: &impl Fn(&str) -> Option<String>) -> Result<Vec<Witness>, Invalid> {
    let name = env::DAYBOOK_WITNESSES;
    let texts = env::text(lookup, name).unwrap_or_default();
    let witness = |text: &str| {
        let expected = "KEY URL, separated by commas; `daybook witness serve` prints both";
        text.parse().map_err(|_| Invalid::Malformed { name, value: text.to_owned(), expected })
    };
    texts.split(',').filter(|text| !text.trim().is_empty()).map(witness).collect()
}

/// The folder of keys.
///
/// Source: XDG Base Directory Specification, `XDG_CONFIG_HOME`: a relative path is ignored.
fn keys(lookup: &impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    if let Some(folder) = env::text(lookup, env::DAYBOOK_KEYS) {
        return Some(PathBuf::from(folder));
    }
    let named = |name: &str| lookup(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let configuration = named("XDG_CONFIG_HOME").or_else(|| Some(named("HOME")?.join(".config")));
    Some(configuration?.join("daybook").join("keys"))
}

/// Settings of MCP servers from the environment.
#[derive(Clone, Debug)]
pub struct ServersEnvironment {
    /// `DAYBOOK_MCP_SERVERS`.
    pub file: Option<PathBuf>,
    /// Those of `daybook.toml`, in the form of the file; the file takes precedence.
    pub project: Option<String>,
    pub timeouts: Timeouts,
    /// The SSM endpoint for parameters that the file refers to.
    #[cfg_attr(not(feature = "live"), expect(dead_code, reason = "other builds read them"))]
    pub ssm_endpoint: Option<String>,
}

impl Config {
    /// Reads the environment.
    pub fn from_environment(agents: Arc<[Agent]>, extensions: Arc<[Extension]>) -> Self {
        let lookup = |name: &str| read(name);
        Self {
            target: env::text(&lookup, env::DAYBOOK_TARGET),
            token: env::text(&lookup, env::DAYBOOK_TOKEN),
            token_name: env::text(&lookup, env::DAYBOOK_TOKEN_NAME),
            keys: keys(&lookup),
            #[cfg(feature = "live")]
            stage: env::text(&lookup, env::DAYBOOK_STAGE),
            state_machine_arn: env::text(&lookup, env::STATE_MACHINE_ARN),
            event_bus_name: env::text(&lookup, env::EVENT_BUS_NAME),
            actions_url: env::text(&lookup, env::ACTIONS_URL),
            actions_bus: env::text(&lookup, env::ACTIONS_BUS_NAME),
            table: env::text(&lookup, env::JOURNAL_TABLE_NAME),
            #[cfg(feature = "live")]
            log_key: env::text(&lookup, env::JOURNAL_LOG_KEY),
            #[cfg(feature = "live")]
            runtime_arn: env::text(&lookup, env::AGENT_RUNTIME_ARN),
            endpoint: env::text(&lookup, env::DAYBOOK_ENDPOINT),
            aws_endpoint_url: env::text(&lookup, AWS_ENDPOINT_URL),
            binary: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("daybook")),
            project: Arc::default(),
            project_problem: None,
            agents,
            extensions,
        }
    }

    /// Reads the settings of a stack. `set` takes precedence over the environment.
    ///
    /// # Errors
    /// When a variable is invalid.
    pub fn stack(&self, set: &[(&str, String)]) -> Result<StackEnvironment, Unusable> {
        let lookup = |name: &str| {
            let value = set.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
            value.cloned().or_else(|| read(name))
        };
        let of_agents = self
            .agents
            .iter()
            .flat_map(Agent::versions)
            .flat_map(|agent| agent.profile().variables);
        let handed_on = HANDED_ON
            .iter()
            .chain(of_agents)
            .filter_map(|name| Some(((*name).to_owned(), env::text(&lookup, name)?)));
        let mut handed_on: Vec<_> = handed_on.collect();
        // A process of its own registers the agents of the file, too.
        if let Some(path) = self.project.path.as_ref().filter(|_| self.project.has_agents()) {
            let path = path.to_string_lossy().into_owned();
            handed_on.push((env::DAYBOOK_CONFIG.to_owned(), path));
            let inherited = INHERITED.iter().filter_map(|name| Some((name, read(name)?)));
            handed_on.extend(inherited.map(|(name, value)| ((*name).to_owned(), value)));
        }
        Ok(StackEnvironment {
            defaults: Defaults::read(&self.agents, &lookup)?,
            models: Settings::read(&lookup)?,
            servers: self.servers()?,
            ttl_days: env::ttl_days(&lookup)?,
            encrypt: env::switch(&lookup, env::DAYBOOK_ENCRYPT)?,
            admission: Limits::read(&self.agents, &Environment::of(&lookup))?,
            load: caps::of_environment(&lookup)?,
            witnesses: witnesses(&lookup)?,
            notify: env::text(&lookup, env::DAYBOOK_NOTIFY).map(PathBuf::from),
            allowed: env::text(&lookup, env::DAYBOOK_ALLOWED_PATHS)
                .map(|paths| std::env::split_paths(&paths).collect())
                .unwrap_or_default(),
            handed_on,
        })
    }

    /// The paths that a server may read: any, unless a host started this process with paths of a trigger.
    pub fn roots(&self) -> Roots {
        let Some(grants) = read(env::DAYBOOK_GRANTS_FOLDER) else { return Roots::everything() };
        let allowed = read(env::DAYBOOK_ALLOWED_PATHS).unwrap_or_default();
        let roots = Roots::of_variable(allowed.as_ref());
        if grants.is_empty() { roots } else { roots.with_grants(Path::new(&grants)) }
    }

    /// Reads the settings of MCP servers.
    ///
    /// # Errors
    /// When a variable is invalid.
    pub fn servers(&self) -> Result<ServersEnvironment, Invalid> {
        let lookup = |name: &str| read(name);
        let of_ssm = env::text(&lookup, AWS_ENDPOINT_URL_SSM);
        Ok(ServersEnvironment {
            file: env::text(&lookup, env::DAYBOOK_MCP_SERVERS).map(PathBuf::from),
            project: self.project.servers.clone(),
            timeouts: Timeouts {
                connect: env::seconds(&lookup, env::MCP_CONNECT_TIMEOUT, MCP_TIMEOUT)?,
                init: env::seconds(&lookup, env::MCP_INIT_TIMEOUT, MCP_TIMEOUT)?,
            },
            ssm_endpoint: of_ssm.or_else(|| self.aws_endpoint_url.clone()),
        })
    }
}

/// Exports spans if the environment names a collector.
///
/// # Errors
/// When its address is invalid.
pub fn export_spans(service: &'static str) -> Result<(), env::Invalid> {
    exporters::export_spans(&read, service)
}

/// The working directory, as a default root. The root and home directories are none: they hold the secrets
/// of their owners.
pub fn working_folder() -> Option<PathBuf> {
    let folder = std::env::current_dir().and_then(|folder| folder.canonicalize()).ok()?;
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    let is_wide = folder.parent().is_none() || home.is_some_and(|home| home.starts_with(&folder));
    (!is_wide).then_some(folder)
}

/// Whether the environment disables colour.
///
/// Source: no-color.org; any non-empty value counts.
pub fn no_colour() -> bool {
    let set = |name: &str| read(name).filter(|value| !value.is_empty());
    set("NO_COLOR").is_some() || set("TERM").is_some_and(|terminal| terminal == "dumb")
}

/// The user's editor as a command line; `None` if unset.
///
/// Source: POSIX, "Environment Variables", `VISUAL` and `EDITOR`.
pub fn editor() -> Option<String> {
    let set = |name: &str| read(name).filter(|value| !value.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR"))
}

/// Reads a variable that a file refers to.
pub fn variable(name: &str) -> Option<String> {
    read(name)
}

/// What the settings of `daybook.toml` say, by variable. Set once, before anything is read.
static SETTINGS: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// Takes over the settings of `daybook.toml`.
pub fn take_over(settings: BTreeMap<String, String>) {
    let is_first = SETTINGS.set(settings).is_ok();
    debug_assert!(is_first, "settings are taken over once");
}

#[expect(clippy::disallowed_methods, reason = "the one place where the environment is read")]
fn read(name: &str) -> Option<String> {
    std::env::var(name).ok().or_else(|| SETTINGS.get()?.get(name).cloned())
}
