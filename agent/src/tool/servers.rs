//! The configured MCP servers: those of the file that `DAYBOOK_MCP_SERVERS` names, and those of packs.

mod file;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use files::Roots;
use graph::agent::{Agent, Settings};
use graph::origin::Rule;
use graph::profile;
use journal::id::SessionId;
use serde_json::Value;
use workflow::env::{DAYBOOK_ALLOWED_PATHS, DAYBOOK_GRANTS_FOLDER, OTEL_EXPORTER_OTLP_ENDPOINT};
use workflow::limits::TTL_DAYS;

pub use self::file::Error;
use self::file::File;
use super::catalogue::Readers;
use super::in_process::{InProcess, Serve};
use super::launch::{Launch, Program};
use super::parameters::{self, ParameterStore, Parameters};
use super::pool::Pool;
use super::remote::Remote;
use super::text::Text;

/// Environment variables that lead to the host's AWS account.
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

/// The secret ones of these variables.
const CREDENTIALS: [&str; 4] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
];

/// The MCP servers that an agent may use, by name.
///
/// `Debug` shows references such as `${env:TOKEN}` as written, and only the names of `env`.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    entries: BTreeMap<String, Entry>,
    gates: BTreeMap<String, Gates>,
    pool: Pool,
}

/// The configured gates of a server's tools, by tool name.
#[derive(Clone, Debug, Default)]
struct Gates {
    /// A person must approve each call.
    critical: Vec<String>,
    /// Tools with side effects: a call is repeated only if the first one provably was not sent.
    at_most_once: Vec<String>,
    /// Tools that only read, provided that the server's annotations say so too.
    reads: Vec<String>,
    /// What may feed the arguments of its tools.
    origins: Vec<Rule>,
}

/// Why a servers file cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is invalid.
    #[error(transparent)]
    File(#[from] Error),
    /// A parameter cannot be read.
    #[error(transparent)]
    Parameter(#[from] parameters::Error),
}

#[derive(Clone)]
enum Entry {
    /// A command, from the file.
    Command(Program),
    /// An address, from the file.
    Remote(Remote),
    /// A pack's server, which the program `daybook` contains.
    Bundled(Bundled),
    /// A server inside this program.
    InProcess(Arc<Serve>),
}

/// A pack's server with this host's settings for it.
#[derive(Clone)]
struct Bundled {
    program: PathBuf,
    server: &'static profile::Server,
    /// The environment for the host's own account, for a server that may use it.
    account: Option<BTreeMap<String, Text>>,
    /// The folder of its state.
    state: Option<PathBuf>,
    /// The paths that a session's input may name.
    roots: Roots,
    is_shared: bool,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(program) => f.debug_tuple("Command").field(program).finish(),
            Self::Remote(remote) => f.debug_tuple("Remote").field(remote).finish(),
            Self::Bundled(bundled) => {
                let Bundled { program, state, .. } = bundled;
                f.debug_tuple("Bundled").field(program).field(state).finish()
            }
            Self::InProcess(_) => f.debug_tuple("InProcess").finish_non_exhaustive(),
        }
    }
}

impl Servers {
    /// The servers of these agents: `program mcp NAME`, on the source that the session's input names. Their
    /// only variable from our environment is the address of the OpenTelemetry collector.
    pub fn bundled(program: &Path, agents: &[Agent]) -> Self {
        // Of two servers with one name, the one of the newer version counts: it comes last.
        let versions = agents.iter().flat_map(|agent| agent.versions().rev());
        let servers = versions.flat_map(|agent| agent.profile().servers);
        let entry = |server: &'static profile::Server| {
            let program = program.to_owned();
            let bundled = Bundled {
                program,
                server,
                account: None,
                state: None,
                roots: Roots::default(),
                is_shared: server.state_option.is_none(),
            };
            (server.name.to_owned(), Entry::Bundled(bundled))
        };
        Self { entries: servers.map(entry).collect(), ..Self::default() }
    }

    /// Gives the account of `environment` to each server that may use it. The server uses it unless a
    /// session's input names another source. These servers are ours, so they get our credentials.
    #[must_use]
    pub fn in_account(mut self, environment: impl Fn(&str) -> Option<String>) -> Self {
        let plain =
            ACCOUNT.iter().filter_map(|name| Some((*name, Text::plain(environment(name)?))));
        let secret = CREDENTIALS.iter().filter_map(|name| {
            let value = environment(name)?;
            let shown = format!("${{env:{name}}}");
            Some((*name, Text { shown, secrets: vec![value.clone()], value }))
        });
        let account: BTreeMap<_, _> =
            plain.chain(secret).map(|(name, text)| (name.to_owned(), text)).collect();
        for bundled in self.bundled_mut().filter(|bundled| bundled.server.in_account.is_some()) {
            bundled.account = Some(account.clone());
        }
        self
    }

    /// Gives each bundled server with state a folder in this one for each session, so that no session reaches
    /// another's state. Without a folder the state is lost when the server stops, which happens whenever the
    /// session asks a question. Removes the state of sessions that have expired.
    #[must_use]
    pub fn with_state_folder(mut self, folder: &Path) -> Self {
        for bundled in self.bundled_mut() {
            let folder = folder.join(bundled.server.name);
            if bundled.server.state_option.is_some() {
                remove_expired(&folder);
            }
            bundled.state = Some(folder);
        }
        self
    }

    /// Allows sessions' inputs to name paths below these roots. Without roots they may name none.
    #[must_use]
    pub fn with_roots(mut self, roots: &Roots) -> Self {
        for bundled in self.bundled_mut() {
            bundled.roots = roots.clone();
        }
        self
    }

    fn bundled_mut(&mut self) -> impl Iterator<Item = &mut Bundled> {
        self.entries.values_mut().filter_map(|entry| match entry {
            Entry::Bundled(bundled) => Some(bundled),
            Entry::Command(_) | Entry::Remote(_) | Entry::InProcess(_) => None,
        })
    }

    /// A server of this name inside this program. Each start of the server calls `serve` with the session's
    /// input and a stream for MCP.
    pub fn in_process(name: &str, serve: Arc<Serve>) -> Self {
        let entries = BTreeMap::from([(name.to_owned(), Entry::InProcess(serve))]);
        Self { entries, ..Self::default() }
    }

    /// Parses `{"mcpServers": {NAME: {"command", "args"?, "env"?} or {"url", "transport"?,
    /// "headers"?}}}`, each with `"critical"?`, `"at_most_once"?` and `"reads"?`, lists of its tools, and
    /// `"origins"?: {TOOL: {ARGUMENT: [ORIGIN…]}}`. Resolves `${env:NAME}` in values with `environment`.
    ///
    /// # Errors
    /// [`Error`], which names server and field and never quotes a value. References to parameters are an
    /// error here: use [`Servers::load`].
    pub fn parse(text: &str, environment: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        File::read(text)?.servers(&environment, &Parameters::new())
    }

    /// Like [`Servers::parse`], and resolves parameters: `${ssm:NAME}`, and `${mcp-api-key}` for the one
    /// that `MCP_API_KEY_PARAMETER` names.
    ///
    /// # Errors
    /// [`LoadError`], which never quotes a value.
    pub async fn load(
        text: &str,
        environment: impl Fn(&str) -> Option<String>,
        store: &ParameterStore,
    ) -> Result<Self, LoadError> {
        let file = File::read(text)?;
        let parameters = store.read(&file.parameters(&environment)).await?;
        Ok(file.servers(&environment, &parameters)?)
    }

    /// Adds the servers of `configured`, which override servers of the same name.
    #[must_use]
    pub fn with(mut self, configured: Self) -> Self {
        self.entries.extend(configured.entries);
        self.gates.extend(configured.gates);
        self
    }

    /// Adds the configured gates to a session's settings: tools that need approval, tools that are called
    /// at most once, and what may feed their arguments. Configuration cannot remove a gate.
    #[must_use]
    pub fn guard(&self, mut settings: Settings) -> Settings {
        for (server, gates) in &self.gates {
            let of_server = |tool: &String| format!("{server}.{tool}");
            settings.critical.extend(gates.critical.iter().map(of_server));
            settings.at_most_once.extend(gates.at_most_once.iter().map(of_server));
            settings.origins.extend(gates.origins.iter().cloned());
        }
        settings
    }

    /// Which tools of this server may be taken as reading if their annotations say so: of our own servers
    /// each, of a server from the file those that the file lists.
    pub(super) fn readers(&self, name: &str) -> Readers {
        match self.entries.get(name) {
            Some(Entry::Bundled(_) | Entry::InProcess(_)) => Readers::Annotated,
            Some(Entry::Command(_) | Entry::Remote(_)) | None => {
                let gates = self.gates.get(name);
                Readers::Listed(gates.map(|gates| gates.reads.clone()).unwrap_or_default())
            }
        }
    }

    /// The servers that run for several sessions.
    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The same servers, each for one session alone.
    #[must_use]
    pub(super) fn unshared(mut self) -> Self {
        for entry in self.entries.values_mut() {
            match entry {
                Entry::Command(program) => program.is_shared = false,
                Entry::Bundled(bundled) => bundled.is_shared = false,
                Entry::Remote(_) | Entry::InProcess(_) => {}
            }
        }
        self
    }

    /// The names of all servers, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The names of the servers from the file, in order, without the bundled ones.
    pub fn configured(&self) -> impl Iterator<Item = &str> {
        let configured = |entry: &Entry| matches!(entry, Entry::Command(_) | Entry::Remote(_));
        self.entries
            .iter()
            .filter(move |(_, entry)| configured(entry))
            .map(|(name, _)| name.as_str())
    }

    /// How to start each server for this session, which has this input.
    pub(super) fn launches(&self, session: &SessionId, input: &Value) -> Vec<(String, Launch)> {
        let launch = |entry: &Entry| match entry {
            Entry::Command(program) => Launch::Program(program.clone()),
            Entry::Remote(remote) => Launch::Remote(remote.clone()),
            Entry::Bundled(bundled) => Launch::Program(bundled.program(session, input)),
            Entry::InProcess(serve) => {
                Launch::InProcess(InProcess { input: input.clone(), serve: Arc::clone(serve) })
            }
        };
        self.entries.iter().map(|(name, entry)| (name.clone(), launch(entry))).collect()
    }
}

/// Removes the folders that no session has changed for as long as records are kept. What cannot be removed stays.
fn remove_expired(folder: &Path) {
    let kept = Duration::from_secs(u64::from(TTL_DAYS) * 86_400);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|metadata| metadata.modified()).map(|at| at.elapsed());
        if age.is_ok_and(|age| age.is_ok_and(|age| age > kept)) {
            drop(std::fs::remove_dir_all(entry.path()));
        }
    }
}

impl Bundled {
    /// The command for a session with this input. Only these servers, which are ours, get the collector's
    /// address.
    fn program(&self, session: &SessionId, input: &Value) -> Program {
        let Self { program, server, account, state, roots, is_shared } = self;
        let mut program = Program::new(Text::plain(program.to_string_lossy()));
        program.args.extend(["mcp", server.name].map(Text::plain));
        if let Some(endpoint) = telemetry::export::endpoint() {
            program.env.insert(OTEL_EXPORTER_OTLP_ENDPOINT.to_owned(), Text::plain(endpoint));
        }
        let mut paths = Vec::new();
        // One argument each, so that a value that begins with a hyphen is not parsed as an option.
        let mut option = |name: &str, value: &str| {
            program.args.push(Text::plain(format!("{name}={value}")));
        };
        for (field, name) in server.options {
            match input.get(field).and_then(Value::as_str) {
                // A server decides which addresses it may call.
                Some(url) if is_url(url) => option(name, url),
                Some(path) => paths.push((*name, path.to_owned())),
                None => {}
            }
        }
        if let (Some(name), Some(state)) = (server.state_option, state) {
            option(name, &state.join(session.as_str()).to_string_lossy());
        }
        if let (Some(in_account), Some(account)) = (&server.in_account, account)
            && input.get(in_account.unless).is_none()
        {
            program.args.push(Text::plain(in_account.argument));
            program.env.extend(account.clone());
        }
        if !paths.is_empty() {
            // The server checks the files that the named one refers to.
            let allowed = roots.variable().unwrap_or_default();
            let grants = roots.grants().unwrap_or(Path::new(""));
            for (name, value) in [
                (DAYBOOK_ALLOWED_PATHS, allowed.to_string_lossy()),
                (DAYBOOK_GRANTS_FOLDER, grants.to_string_lossy()),
            ] {
                program.env.insert(name.to_owned(), Text::plain(value));
            }
        }
        program.paths = paths;
        program.roots = roots.clone();
        program.is_own = true;
        program.is_shared = *is_shared;
        program
    }
}

fn is_url(text: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use graph::origin::Origin;
    use serde_json::json;

    use super::*;

    fn parse(servers: Value) -> Servers {
        Servers::parse(&json!({ "mcpServers": servers }).to_string(), |_| None).unwrap()
    }

    const SESSION: &str = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f";

    fn launch(servers: &Servers, name: &str, input: Value) -> Launch {
        let mut launches = servers.launches(&SESSION.parse().unwrap(), &input).into_iter();
        launches.find(|(found, _)| found == name).unwrap().1
    }

    #[test]
    fn configuration_can_only_add_gates() {
        let servers = parse(json!({
            "till": {"command": "x", "critical": ["pay"], "at_most_once": ["post", "print"],
                "origins": {"pay": {"to": ["person", "input"], "/sum/value": ["person"]}}},
            "shop": {"url": "http://a/", "at_most_once": ["order"]},
            "none": {"command": "x", "critical": [], "at_most_once": []},
        }));
        let rule = Rule::new("till.pay", "to", &[Origin::Tool]);
        let own = Settings {
            critical: vec!["own".to_owned()],
            origins: vec![rule.clone()],
            ..Settings::default()
        };
        let settings = servers.guard(own);
        let added = Rule::new("till.pay", "to", &[Origin::Person, Origin::Input]);
        let sum = Rule::new("till.pay", "/sum/value", &[Origin::Person]);
        assert_eq!(settings.origins, [rule, added, sum]);
        assert_eq!(settings.critical, ["own", "till.pay"]);
        assert_eq!(settings.at_most_once, ["shop.order", "till.post", "till.print"]);
    }

    static OWN: profile::Profile = profile::Profile {
        servers: &[profile::Server {
            name: "own",
            options: &[("folder", "--folder")],
            in_account: Some(profile::InAccount { argument: "--here", unless: "folder" }),
            state_option: Some("--state"),
        }],
        ..profile::Profile::PLAIN
    };

    fn bundled() -> Servers {
        let agent = packs::find("checkup").unwrap().clone().with_profile(&OWN);
        Servers::bundled(Path::new("/bin/daybook"), &[agent])
    }

    #[test]
    fn the_input_names_the_source_of_a_bundled_server() {
        let servers = bundled();
        let command = |input| launch(&servers, "own", input).to_string();
        assert_eq!(command(json!({})), "/bin/daybook mcp own");
        assert_eq!(command(json!({"folder": 1})), "/bin/daybook mcp own");
        assert_eq!(command(json!({"folder": "-x y"})), "/bin/daybook mcp own --folder=-x y");
        assert_eq!(servers.configured().count(), 0);
    }

    #[tokio::test]
    async fn an_input_names_only_paths_below_the_roots() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = root.path().join("link");
        std::os::unix::fs::symlink(outside.path(), &link).unwrap();
        let roots = Roots::new([root.path().to_owned()]);
        let admitted = async |servers: Servers, folder: &Path| {
            let there = launch(&servers, "own", json!({ "folder": folder }));
            let Launch::Program(program) = there else { panic!("{there}") };
            program.admitted().await
        };
        let program = admitted(bundled().with_roots(&roots), root.path()).await.unwrap();
        let canonical = root.path().canonicalize().unwrap();
        let expected = format!("/bin/daybook mcp own --folder={}", canonical.display());
        assert_eq!(program.to_string(), expected);
        for path in [outside.path(), &link, &root.path().join(".."), Path::new("/etc")] {
            let refusal = admitted(bundled().with_roots(&roots), path).await.unwrap_err();
            assert!(
                refusal.contains("outside of the folders that a trigger may name"),
                "{refusal}"
            );
        }
        assert!(admitted(bundled(), root.path()).await.is_err(), "no roots admit nothing");
    }

    #[test]
    fn a_bundled_server_uses_the_account_unless_the_input_decides() {
        let environment = |name: &str| match name {
            "AWS_REGION" => Some("eu-west-1".to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some("a secret of ours".to_owned()),
            _ => None,
        };
        let servers = bundled().in_account(environment);
        let there = launch(&servers, "own", json!({"lambda_name": "orders"}));
        assert_eq!(there.to_string(), "/bin/daybook mcp own --here");
        let Launch::Program(program) = &there else { panic!("{there}") };
        let names: Vec<_> = program.env.keys().map(String::as_str).collect();
        assert_eq!(names, ["AWS_REGION", "AWS_SECRET_ACCESS_KEY"]);
        assert_eq!(there.redact("eu-west-1: a secret of ours"), "eu-west-1: ***");
        assert!(!format!("{servers:?} {there:?}").contains("secret of"));
        let saved = launch(&servers, "own", json!({"folder": "tonight"}));
        assert_eq!(saved.to_string(), "/bin/daybook mcp own --folder=tonight");
        let Launch::Program(saved) = &saved else { panic!("{saved}") };
        assert!(saved.env.keys().all(|name| name.starts_with("DAYBOOK_")), "{saved:?}");
    }

    #[test]
    fn each_session_has_its_own_state() {
        let servers = bundled().with_state_folder(Path::new("/-x y"));
        let command = launch(&servers, "own", json!({})).to_string();
        assert_eq!(command, format!("/bin/daybook mcp own --state=/-x y/own/{SESSION}"));
    }

    #[test]
    fn the_servers_that_ship_are_started_with_their_options() {
        let environment = |name: &str| (name == "AWS_REGION").then(|| "eu-west-1".to_owned());
        let servers = Servers::bundled(Path::new("/bin/daybook"), packs::all());
        let servers = servers.in_account(environment).with_state_folder(Path::new("/kept"));
        for (name, input, expected) in [
            ("aws-diagnostics", json!({}), "aws-diagnostics --target=aws"),
            ("aws-diagnostics", json!({"snapshot": "-x y"}), "aws-diagnostics --snapshot=-x y"),
            ("network-inventory", json!({"query": "q"}), "network-inventory"),
            ("network-inventory", json!({"inventory": "-n"}), "network-inventory --inventory=-n"),
            ("card-transactions", json!({"data": 1}), "card-transactions"),
            ("card-transactions", json!({"data": "--a"}), "card-transactions --data=--a"),
            (
                "pk-sim",
                json!({}),
                "pk-sim --state=/kept/pk-sim/0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f",
            ),
        ] {
            let command = launch(&servers, name, input).to_string();
            assert_eq!(command, format!("/bin/daybook mcp {expected}"));
        }
    }

    #[test]
    fn a_configured_server_reads_with_its_listed_tools_only() {
        assert_eq!(bundled().readers("own"), Readers::Annotated);
        let configured = parse(json!({
            "own": {"command": "x", "reads": ["look"]}, "none": {"url": "http://a/"},
        }));
        let servers = bundled().with(configured);
        assert_eq!(servers.readers("own"), Readers::Listed(vec!["look".to_owned()]));
        assert_eq!(servers.readers("none"), Readers::Listed(vec![]));
        assert_eq!(servers.readers("unknown"), Readers::Listed(vec![]));
    }

    #[test]
    fn a_configured_server_overrides_the_bundled_one() {
        let configured = parse(json!({"own": {"command": "x"}}));
        let servers = bundled().with(configured);
        assert_eq!(launch(&servers, "own", json!({"folder": "y"})).to_string(), "x");
        assert_eq!(servers.configured().collect::<Vec<_>>(), ["own"]);
    }
}
