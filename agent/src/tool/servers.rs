//! Which MCP servers there are: the file that `DAYBOOK_MCP_SERVERS` names, and the bundled ones.

mod file;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use graph::agent::Settings;
use serde_json::Value;
use workflow::env::OTEL_EXPORTER_OTLP_ENDPOINT;

pub use self::file::Error;
use self::file::File;
use super::in_process::{InProcess, Serve};
use super::launch::{Launch, Program};
use super::parameters::{self, ParameterStore, Parameters};
use super::remote::Remote;
use super::text::Text;

/// The bundled server that looks at a failing function.
pub const AWS_DIAGNOSTICS: &str = "aws-diagnostics";

/// The bundled server of simulations.
pub const PK_SIM: &str = "pk-sim";

/// The bundled server that looks at a described network.
pub const NETWORK_INVENTORY: &str = "network-inventory";

/// The bundled server that looks at a card payment.
pub const CARD_TRANSACTIONS: &str = "card-transactions";

/// What says where our own account is, and who we are there.
///
/// Source: AWS SDKs and Tools Reference Guide, "Environment variables"; rustls-native-certs.
const ACCOUNT: [&str; 10] = [
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_EC2_METADATA_DISABLED",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "SSL_CERT_FILE",
];

/// Of the same, what nobody else is to read.
const CREDENTIALS: [&str; 4] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
];

/// The MCP servers that an agent may use, by name.
///
/// Its `Debug` shows references such as `${env:TOKEN}` as they were written, and of the values of
/// `env` only the names.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    entries: BTreeMap<String, Entry>,
    gates: BTreeMap<String, Gates>,
}

/// What configuration says of a server's tools, by their names.
#[derive(Clone, Debug, Default)]
struct Gates {
    /// A person must approve each call.
    critical: Vec<String>,
    /// They change the world: no call is made a second time unless the first provably was not.
    at_most_once: Vec<String>,
}

/// Why the servers of a file cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is not usable.
    #[error(transparent)]
    File(#[from] Error),
    /// A secret that it refers to cannot be read.
    #[error(transparent)]
    Parameter(#[from] parameters::Error),
}

#[derive(Clone)]
enum Entry {
    /// A command, from the file.
    Command(Program),
    /// An address, from the file.
    Remote(Remote),
    /// Ours, which this program is itself, started for an input.
    Bundled(PathBuf, fn(&Path, &Value) -> Program),
    /// The one that looks at a failing function, and how it gets to the account of our own.
    Diagnostics { program: PathBuf, account: BTreeMap<String, Text> },
    /// Simulations, which this program is itself, and where they are kept.
    Simulations { program: PathBuf, state: Option<PathBuf> },
    /// A part of this program.
    InProcess(Arc<Serve>),
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(program) => f.debug_tuple("Command").field(program).finish(),
            Self::Remote(remote) => f.debug_tuple("Remote").field(remote).finish(),
            Self::Bundled(path, _) => f.debug_tuple("Bundled").field(path).finish(),
            Self::Diagnostics { program, .. } => {
                f.debug_tuple("Diagnostics").field(program).finish()
            }
            Self::Simulations { program, state } => {
                f.debug_tuple("Simulations").field(program).field(state).finish()
            }
            Self::InProcess(_) => f.debug_tuple("InProcess").finish_non_exhaustive(),
        }
    }
}

impl Servers {
    /// The servers that ship: `program mcp NAME`, over what the session's input names. Of our
    /// environment they get the collector's address at most.
    pub fn bundled(program: PathBuf) -> Self {
        let entries = BTreeMap::from([
            (AWS_DIAGNOSTICS.to_owned(), Entry::Bundled(program.clone(), diagnostics)),
            (NETWORK_INVENTORY.to_owned(), Entry::Bundled(program.clone(), inventory)),
            (CARD_TRANSACTIONS.to_owned(), Entry::Bundled(program, transactions)),
        ]);
        Self { entries, ..Self::default() }
    }

    /// The server that looks at a failing function, in the account that `environment` leads to unless a
    /// session's input names a folder. It is ours, so that it gets our credentials.
    pub fn of_account(program: PathBuf, environment: impl Fn(&str) -> Option<String>) -> Self {
        let plain =
            ACCOUNT.iter().filter_map(|name| Some((*name, Text::plain(environment(name)?))));
        let secret = CREDENTIALS.iter().filter_map(|name| {
            let value = environment(name)?;
            let shown = format!("${{env:{name}}}");
            Some((*name, Text { shown, secrets: vec![value.clone()], value }))
        });
        let account = plain.chain(secret).map(|(name, text)| (name.to_owned(), text)).collect();
        let entry = Entry::Diagnostics { program, account };
        Self { entries: BTreeMap::from([(AWS_DIAGNOSTICS.to_owned(), entry)]), ..Self::default() }
    }

    /// The simulations that ship: `program mcp pk-sim`, kept in the folder `state`. Without one they
    /// end with the server, and so with each question that the session asks. Its environment is as theirs.
    pub fn simulations(program: PathBuf, state: Option<PathBuf>) -> Self {
        let entry = Entry::Simulations { program, state };
        let entries = BTreeMap::from([(PK_SIM.to_owned(), entry)]);
        Self { entries, ..Self::default() }
    }

    /// A server of this name that is a part of this program: `serve` is given a session's input and
    /// speaks MCP over the stream, once for each time that the server would be started.
    pub fn in_process(name: &str, serve: Arc<Serve>) -> Self {
        let entries = BTreeMap::from([(name.to_owned(), Entry::InProcess(serve))]);
        Self { entries, ..Self::default() }
    }

    /// Reads `{"mcpServers": {NAME: {"command", "args"?, "env"?} or {"url", "transport"?,
    /// "headers"?}}}`, each with `"critical"?` and `"at_most_once"?`, lists of its tools. Values may
    /// hold `${env:NAME}`, which `environment` resolves, now and once.
    ///
    /// # Errors
    /// [`Error`], which names server and field and never quotes a value; also for a value that refers
    /// to a parameter: those are read by [`Servers::load`].
    pub fn parse(text: &str, environment: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        File::read(text)?.servers(&environment, &Parameters::new())
    }

    /// Reads the same, and the parameters that values refer to as `${ssm:NAME}`, or as
    /// `${mcp-api-key}`: the one that `MCP_API_KEY_PARAMETER` names.
    ///
    /// # Errors
    /// [`LoadError`], in which there is no value either.
    pub async fn load(
        text: &str,
        environment: impl Fn(&str) -> Option<String>,
        store: &ParameterStore,
    ) -> Result<Self, LoadError> {
        let file = File::read(text)?;
        let parameters = store.read(&file.parameters(&environment)).await?;
        Ok(file.servers(&environment, &parameters)?)
    }

    /// These servers and `configured`, of which those win that have the same name.
    #[must_use]
    pub fn with(mut self, configured: Self) -> Self {
        self.entries.extend(configured.entries);
        self.gates.extend(configured.gates);
        self
    }

    /// A session's settings with what is configured besides of tools that a person must approve or that
    /// are called at most once. It is added to what there is; nothing can be taken away.
    #[must_use]
    pub fn guard(&self, mut settings: Settings) -> Settings {
        for (server, gates) in &self.gates {
            let of_server = |tool: &String| format!("{server}.{tool}");
            settings.critical.extend(gates.critical.iter().map(of_server));
            settings.at_most_once.extend(gates.at_most_once.iter().map(of_server));
        }
        settings
    }

    /// The names of all servers, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The names of those that somebody configured, in order: not the bundled ones, which work for
    /// what the session's input names.
    pub fn configured(&self) -> impl Iterator<Item = &str> {
        let configured = |entry: &Entry| matches!(entry, Entry::Command(_) | Entry::Remote(_));
        self.entries
            .iter()
            .filter(move |(_, entry)| configured(entry))
            .map(|(name, _)| name.as_str())
    }

    /// How each server is started for a session with this input.
    pub(super) fn launches(&self, input: &Value) -> Vec<(String, Launch)> {
        let launch = |entry: &Entry| match entry {
            Entry::Command(program) => Launch::Program(program.clone()),
            Entry::Remote(remote) => Launch::Remote(remote.clone()),
            Entry::Bundled(path, program) => Launch::Program(program(path, input)),
            Entry::Diagnostics { program, account } => {
                let mut program = diagnostics(program, input);
                if input.get("snapshot").is_none() {
                    program.args.push(Text::plain("--target=aws"));
                    program.env.extend(account.clone());
                }
                Launch::Program(program)
            }
            Entry::Simulations { program, state } => {
                Launch::Program(simulations(program, state.as_deref()))
            }
            Entry::InProcess(serve) => {
                Launch::InProcess(InProcess { input: input.clone(), serve: Arc::clone(serve) })
            }
        };
        self.entries.iter().map(|(name, entry)| (name.clone(), launch(entry))).collect()
    }
}

/// A server of ours: the one kind that is trusted with where our own spans go.
fn ours(path: &Path, server: &str) -> Program {
    let mut program = Program::new(Text::plain(path.to_string_lossy()));
    program.args.extend(["mcp", server].map(Text::plain));
    if let Some(endpoint) = telemetry::export::endpoint() {
        program.env.insert(OTEL_EXPORTER_OTLP_ENDPOINT.to_owned(), Text::plain(endpoint));
    }
    program
}

fn simulations(path: &Path, state: Option<&Path>) -> Program {
    let mut program = ours(path, PK_SIM);
    program.args.extend(state.map(|state| Text::plain(format!("--state={}", state.display()))));
    program
}

fn diagnostics(path: &Path, input: &Value) -> Program {
    let mut program = ours(path, AWS_DIAGNOSTICS);
    if let Some(folder) = input.get("snapshot").and_then(Value::as_str) {
        // One argument, so that a folder whose name begins with a hyphen is no option.
        program.args.push(Text::plain(format!("--snapshot={folder}")));
    }
    program
}

fn inventory(path: &Path, input: &Value) -> Program {
    let mut program = ours(path, NETWORK_INVENTORY);
    if let Some(file) = input.get("inventory").and_then(Value::as_str) {
        program.args.push(Text::plain(format!("--inventory={file}")));
    }
    program
}

fn transactions(path: &Path, input: &Value) -> Program {
    let mut program = ours(path, CARD_TRANSACTIONS);
    if let Some(data) = input.get("data").and_then(Value::as_str) {
        program.args.push(Text::plain(format!("--data={data}")));
    }
    program
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(servers: Value) -> Servers {
        Servers::parse(&json!({ "mcpServers": servers }).to_string(), |_| None).unwrap()
    }

    fn launch(servers: &Servers, name: &str, input: Value) -> Launch {
        let mut launches = servers.launches(&input).into_iter();
        launches.find(|(found, _)| found == name).unwrap().1
    }

    #[test]
    fn configuration_adds_gates_and_takes_none_away() {
        let servers = parse(json!({
            "till": {"command": "x", "critical": ["pay"], "at_most_once": ["post", "print"]},
            "shop": {"url": "http://a/", "at_most_once": ["order"]},
            "none": {"command": "x", "critical": [], "at_most_once": []},
        }));
        let own = Settings { critical: vec!["own".to_owned()], ..Settings::default() };
        let settings = servers.guard(own);
        assert_eq!(settings.critical, ["own", "till.pay"]);
        assert_eq!(settings.at_most_once, ["shop.order", "till.post", "till.print"]);
    }

    #[test]
    fn the_input_says_which_folder_the_bundled_server_reads() {
        let servers = Servers::bundled("/bin/daybook".into());
        let command = |input| launch(&servers, AWS_DIAGNOSTICS, input).to_string();
        assert_eq!(command(json!({})), "/bin/daybook mcp aws-diagnostics");
        assert_eq!(command(json!({"snapshot": 1})), "/bin/daybook mcp aws-diagnostics");
        assert_eq!(
            command(json!({"snapshot": "-x y"})),
            "/bin/daybook mcp aws-diagnostics --snapshot=-x y"
        );
        assert_eq!(servers.configured().count(), 0);
    }

    #[test]
    fn in_an_account_the_bundled_server_asks_it_unless_the_input_names_a_folder() {
        let environment = |name: &str| match name {
            "AWS_REGION" => Some("eu-west-1".to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some("a secret of ours".to_owned()),
            _ => None,
        };
        let servers = Servers::of_account("/bin/daybook".into(), environment);
        let of = |input| launch(&servers, AWS_DIAGNOSTICS, input);
        let there = of(json!({"lambda_name": "orders"}));
        assert_eq!(there.to_string(), "/bin/daybook mcp aws-diagnostics --target=aws");
        let Launch::Program(program) = &there else { panic!("{there}") };
        let names: Vec<_> = program.env.keys().map(String::as_str).collect();
        assert_eq!(names, ["AWS_REGION", "AWS_SECRET_ACCESS_KEY"]);
        assert_eq!(there.redact("eu-west-1: a secret of ours"), "eu-west-1: ***");
        assert!(!format!("{servers:?} {there:?}").contains("secret of"));
        let saved = of(json!({"snapshot": "tonight"}));
        assert_eq!(saved.to_string(), "/bin/daybook mcp aws-diagnostics --snapshot=tonight");
        assert!(matches!(saved, Launch::Program(program) if program.env.is_empty()));
    }

    #[test]
    fn simulations_are_kept_where_it_is_said() {
        let command = |state: Option<&str>| {
            let servers = Servers::simulations("/bin/daybook".into(), state.map(PathBuf::from));
            launch(&servers, PK_SIM, json!({})).to_string()
        };
        assert_eq!(command(None), "/bin/daybook mcp pk-sim");
        assert_eq!(command(Some("-x y")), "/bin/daybook mcp pk-sim --state=-x y");
    }

    #[test]
    fn the_input_says_which_network_the_bundled_server_reads() {
        let servers = Servers::bundled("/bin/daybook".into());
        let command = |input| launch(&servers, NETWORK_INVENTORY, input).to_string();
        assert_eq!(command(json!({"query": "q"})), "/bin/daybook mcp network-inventory");
        assert_eq!(
            command(json!({"inventory": "-n"})),
            "/bin/daybook mcp network-inventory --inventory=-n"
        );
    }

    #[test]
    fn the_input_says_which_transactions_the_bundled_server_reads() {
        let servers = Servers::bundled("/bin/daybook".into());
        let command = |input| launch(&servers, CARD_TRANSACTIONS, input).to_string();
        assert_eq!(command(json!({"data": 1})), "/bin/daybook mcp card-transactions");
        assert_eq!(
            command(json!({"data": "--allow-remote"})),
            "/bin/daybook mcp card-transactions --data=--allow-remote"
        );
    }

    #[test]
    fn a_configured_server_wins_over_the_bundled_one() {
        let configured = parse(json!({AWS_DIAGNOSTICS: {"command": "x"}}));
        let servers = Servers::bundled("/bin/daybook".into()).with(configured);
        assert_eq!(launch(&servers, AWS_DIAGNOSTICS, json!({"snapshot": "y"})).to_string(), "x");
        assert_eq!(servers.configured().collect::<Vec<_>>(), [AWS_DIAGNOSTICS]);
    }
}
