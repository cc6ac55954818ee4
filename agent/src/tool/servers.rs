//! Which MCP servers there are: the file that `DAYBOOK_MCP_SERVERS` names, and the bundled ones.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use workflow::env::OTEL_EXPORTER_OTLP_ENDPOINT;

use super::BUILT_IN_SERVER;
use super::in_process::{InProcess, Serve};
use super::launch::{Launch, Program};

/// The bundled server that looks at a failing function.
pub const AWS_DIAGNOSTICS: &str = "aws-diagnostics";

/// The bundled server of simulations.
pub const PK_SIM: &str = "pk-sim";

/// The bundled server that looks at a described network.
pub const NETWORK_INVENTORY: &str = "network-inventory";

/// The bundled server that looks at a card payment.
pub const CARD_TRANSACTIONS: &str = "card-transactions";

/// What a server inherits of our environment. Everything else it has to be given by name: our
/// environment holds AWS credentials, and a server is somebody else's program.
const INHERITED: [&str; 2] = ["PATH", "HOME"];

/// The MCP servers that an agent may use, by name.
///
/// Its `Debug` shows references such as `${env:TOKEN}` as they were written, and of the values of
/// `env` only the names.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone)]
enum Entry {
    /// A command, from the file.
    Command(Program),
    /// Ours, which this program is itself, started for an input.
    Bundled(PathBuf, fn(&Path, &Value) -> Program),
    /// Simulations, which this program is itself, and where they are kept.
    Simulations { program: PathBuf, state: Option<PathBuf> },
    /// A part of this program.
    InProcess(Arc<Serve>),
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(program) => f.debug_tuple("Command").field(program).finish(),
            Self::Bundled(path, _) => f.debug_tuple("Bundled").field(path).finish(),
            Self::Simulations { program, state } => {
                f.debug_tuple("Simulations").field(program).field(state).finish()
            }
            Self::InProcess(_) => f.debug_tuple("InProcess").finish_non_exhaustive(),
        }
    }
}

/// Why the file is not usable. The person who wrote it has to mend it: nothing was started.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is no JSON. What it holds may be secret, so only the place is told.
    #[error("the text is not JSON: line {line}, column {column}")]
    Json {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// The text is not `{"mcpServers": {NAME: {…}}}`.
    #[error("`{field}` {problem}")]
    Shape {
        /// The field.
        field: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// One server's entry is wrong.
    #[error("server `{server}`: `{field}` {problem}")]
    Entry {
        /// The server's name.
        server: String,
        /// The field, such as `args[1]` or `env.TOKEN`.
        field: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A value refers to an environment variable that is not set.
    #[error(
        "server `{server}`: `{field}` needs the environment variable `{variable}`, which is not set"
    )]
    VariableMissing {
        /// The server's name.
        server: String,
        /// The field.
        field: String,
        /// The variable.
        variable: String,
    },
    /// The entry asks for what this build does not have.
    #[error("server `{server}`: `{field}`: {what} not available in this build")]
    NotAvailable {
        /// The server's name.
        server: String,
        /// The field.
        field: String,
        /// What is missing.
        what: &'static str,
    },
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
        Self { entries }
    }

    /// The simulations that ship: `program mcp pk-sim`, kept in the folder `state`. Without one they
    /// end with the server, and so with each question that the session asks. Its environment is as theirs.
    pub fn simulations(program: PathBuf, state: Option<PathBuf>) -> Self {
        let entry = Entry::Simulations { program, state };
        Self { entries: BTreeMap::from([(PK_SIM.to_owned(), entry)]) }
    }

    /// A server of this name that is a part of this program: `serve` is given a session's input and
    /// speaks MCP over the stream, once for each time that the server would be started.
    pub fn in_process(name: &str, serve: Arc<Serve>) -> Self {
        Self { entries: BTreeMap::from([(name.to_owned(), Entry::InProcess(serve))]) }
    }

    /// Reads `{"mcpServers": {NAME: {"command", "args"?, "env"?}}}`. Values may hold
    /// `${env:NAME}`, which `environment` resolves, now and once.
    ///
    /// # Errors
    /// [`Error`], which names server and field and never quotes a value.
    pub fn parse(text: &str, environment: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let file: Value = serde_json::from_str(text)
            .map_err(|error| Error::Json { line: error.line(), column: error.column() })?;
        let mut servers = None;
        for (field, value) in file.as_object().ok_or_else(|| shape("the file", NOT_AN_OBJECT))? {
            match field.as_str() {
                "mcpServers" => servers = value.as_object(),
                _ => return Err(shape(field, UNKNOWN_FIELD)),
            }
        }
        let servers = servers.ok_or_else(|| shape("mcpServers", NOT_AN_OBJECT))?;
        let mut entries = BTreeMap::new();
        for (server, entry) in servers {
            let reader = Reader { server, environment: &environment };
            entries.insert(server.clone(), Entry::Command(reader.entry(entry)?));
        }
        Ok(Self { entries })
    }

    /// These servers and `configured`, of which those win that have the same name.
    #[must_use]
    pub fn with(mut self, configured: Self) -> Self {
        self.entries.extend(configured.entries);
        self
    }

    /// The names of all servers, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The names of those that somebody configured, in order: not the bundled ones, which work for
    /// what the session's input names.
    pub fn configured(&self) -> impl Iterator<Item = &str> {
        let configured = |entry: &Entry| matches!(entry, Entry::Command(_));
        self.entries
            .iter()
            .filter(move |(_, entry)| configured(entry))
            .map(|(name, _)| name.as_str())
    }

    /// How each server is started for a session with this input.
    pub(super) fn launches(&self, input: &Value) -> Vec<(String, Launch)> {
        let launch = |entry: &Entry| match entry {
            Entry::Command(program) => Launch::Program(program.clone()),
            Entry::Bundled(path, program) => Launch::Program(program(path, input)),
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

/// A text with its references as they were written, and with them resolved.
#[derive(Clone)]
pub(super) struct Text {
    /// As written: fit for messages.
    pub(super) shown: String,
    /// Resolved: perhaps secret.
    pub(super) value: String,
    /// What the references stand for.
    pub(super) secrets: Vec<String>,
}

impl Text {
    pub(super) fn plain(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { shown: text.clone(), value: text, secrets: Vec::new() }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown)
    }
}

const NOT_AN_OBJECT: &str = "must be an object";
const UNKNOWN_FIELD: &str = "is not a known field";

fn shape(field: &str, problem: &'static str) -> Error {
    Error::Shape { field: field.to_owned(), problem }
}

/// Reads one server's entry.
struct Reader<'a> {
    server: &'a str,
    environment: &'a dyn Fn(&str) -> Option<String>,
}

impl Reader<'_> {
    fn entry(&self, entry: &Value) -> Result<Program, Error> {
        if self.server.is_empty() || self.server == BUILT_IN_SERVER {
            return Err(self.wrong("name", "is taken or empty"));
        }
        let entry = entry.as_object().ok_or_else(|| self.wrong("entry", NOT_AN_OBJECT))?;
        let known = ["command", "args", "env", "url", "transport", "headers"];
        if let Some(field) = entry.keys().find(|field| !known.contains(&field.as_str())) {
            return Err(self.wrong(field, UNKNOWN_FIELD));
        }
        if entry.contains_key("url") {
            return Err(self.not_available("url", "servers over HTTP are"));
        }
        if let Some(field) = ["transport", "headers"].iter().find(|f| entry.contains_key(**f)) {
            return Err(self.wrong(field, "goes with `url`, which is missing"));
        }
        self.command(entry)
    }

    fn command(&self, entry: &Map<String, Value>) -> Result<Program, Error> {
        let command =
            entry.get("command").ok_or_else(|| self.wrong("command", "or `url` is missing"))?;
        let command = self.text("command", command)?;
        if command.value.is_empty() {
            return Err(self.wrong("command", "is empty"));
        }
        let mut program = Program::new(command);
        let args = entry.get("args").map(|args| args.as_array().ok_or(args));
        if let Some(args) = args {
            let args = args.map_err(|_| self.wrong("args", "must be a list of texts"))?;
            for (index, arg) in args.iter().enumerate() {
                program.args.push(self.text(&format!("args[{index}]"), arg)?);
            }
        }
        for name in INHERITED {
            if let Some(value) = (self.environment)(name) {
                program.env.insert(name.to_owned(), Text::plain(value));
            }
        }
        let env = entry.get("env").map(|env| env.as_object().ok_or(env));
        if let Some(env) = env {
            for (name, value) in env.map_err(|_| self.wrong("env", NOT_AN_OBJECT))? {
                // The operating system takes neither; it would panic or cut the name short.
                if name.is_empty() || name.contains(['=', '\0']) {
                    return Err(self.wrong("env", "holds a name that no variable can have"));
                }
                let value = self.text(&format!("env.{name}"), value)?;
                program.env.insert(name.clone(), value);
            }
        }
        Ok(program)
    }

    /// Resolves the references in a text.
    fn text(&self, field: &str, value: &Value) -> Result<Text, Error> {
        let shown = value.as_str().ok_or_else(|| self.wrong(field, "must be a text"))?;
        if shown.contains('\0') {
            return Err(self.wrong(field, "holds a zero character"));
        }
        let mut text = Text { shown: shown.to_owned(), value: String::new(), secrets: Vec::new() };
        let mut rest = shown;
        while let Some((before, reference)) = rest.split_once("${") {
            let (reference, after) = reference
                .split_once('}')
                .ok_or_else(|| self.wrong(field, "holds a `${` without a `}`"))?;
            let value = self.resolve(field, reference)?;
            text.value.push_str(before);
            text.value.push_str(&value);
            text.secrets.push(value);
            rest = after;
        }
        text.value.push_str(rest);
        Ok(text)
    }

    fn resolve(&self, field: &str, reference: &str) -> Result<String, Error> {
        match reference.split_once(':') {
            Some(("env", variable)) => {
                (self.environment)(variable).ok_or_else(|| Error::VariableMissing {
                    server: self.server.to_owned(),
                    field: field.to_owned(),
                    variable: variable.to_owned(),
                })
            }
            Some(("ssm", _)) => Err(self.not_available(field, "values from SSM are")),
            _ => Err(self.wrong(field, "holds a reference that is not `${env:NAME}`")),
        }
    }

    fn wrong(&self, field: &str, problem: &'static str) -> Error {
        Error::Entry { server: self.server.to_owned(), field: field.to_owned(), problem }
    }

    fn not_available(&self, field: &str, what: &'static str) -> Error {
        Error::NotAvailable { server: self.server.to_owned(), field: field.to_owned(), what }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "PATH" => Some("/usr/bin".to_owned()),
            "TOKEN" => Some("hunter2-hunter2".to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some("not for servers".to_owned()),
            _ => None,
        }
    }

    fn parse(servers: Value) -> Result<Servers, Error> {
        Servers::parse(&json!({ "mcpServers": servers }).to_string(), environment)
    }

    fn launch(servers: &Servers, name: &str, input: Value) -> Launch {
        let mut launches = servers.launches(&input).into_iter();
        launches.find(|(found, _)| found == name).unwrap().1
    }

    #[test]
    fn a_server_gets_what_is_configured_and_nothing_else_of_our_environment() {
        let servers = parse(json!({"a": {
            "command": "npx",
            "args": ["-y", "--token=${env:TOKEN}!"],
            "env": {"KEY": "${env:TOKEN}", "PLAIN": "x"},
        }}))
        .unwrap();
        let Launch::Program(launch) = launch(&servers, "a", json!({})) else { panic!("a program") };
        assert_eq!(launch.args[1].value, "--token=hunter2-hunter2!");
        let env: Vec<_> = launch.env.iter().map(|(k, v)| (k.as_str(), v.value.as_str())).collect();
        assert_eq!(env, [("KEY", "hunter2-hunter2"), ("PATH", "/usr/bin"), ("PLAIN", "x")]);
    }

    #[test]
    fn no_secret_shows() {
        let servers = parse(json!({"a": {
            "command": "npx", "args": ["${env:TOKEN}"],
            "env": {"KEY": "${env:TOKEN}", "LITERAL": "sesame"},
        }}))
        .unwrap();
        let shown = format!("{servers:?} {:#?}", launch(&servers, "a", json!({})));
        assert!(!shown.contains("hunter2") && !shown.contains("sesame"), "{shown}");
        assert!(shown.contains("${env:TOKEN}") && shown.contains("LITERAL"), "{shown}");
    }

    #[test]
    fn what_is_wrong_is_named_with_server_and_field_and_never_quoted() {
        let check = |entry: Value, expected: &str| {
            let error = parse(json!({ "a": entry })).unwrap_err().to_string();
            assert_eq!(error, expected);
            assert!(!error.contains("sesame"));
        };
        check(json!("sesame"), "server `a`: `entry` must be an object");
        check(json!({}), "server `a`: `command` or `url` is missing");
        check(json!({"command": ""}), "server `a`: `command` is empty");
        check(json!({"command": "x", "cwd": "sesame"}), "server `a`: `cwd` is not a known field");
        check(
            json!({"command": "x", "args": "sesame"}),
            "server `a`: `args` must be a list of texts",
        );
        check(json!({"command": "x", "args": ["y", 1]}), "server `a`: `args[1]` must be a text");
        check(json!({"command": "x", "env": ["sesame"]}), "server `a`: `env` must be an object");
        check(json!({"command": "x", "env": {"K": true}}), "server `a`: `env.K` must be a text");
        check(
            json!({"command": "x", "env": {"A=B": "sesame"}}),
            "server `a`: `env` holds a name that no variable can have",
        );
        check(
            json!({"command": "x", "headers": {}}),
            "server `a`: `headers` goes with `url`, which is missing",
        );
        check(
            json!({"command": "x", "env": {"K": "${env:GONE}"}}),
            "server `a`: `env.K` needs the environment variable `GONE`, which is not set",
        );
        check(
            json!({"command": "x", "args": ["${ssm:/key}"]}),
            "server `a`: `args[0]`: values from SSM are not available in this build",
        );
        check(
            json!({"url": "http://127.0.0.1/mcp"}),
            "server `a`: `url`: servers over HTTP are not available in this build",
        );
        check(
            json!({"command": "${env:TOKEN"}),
            "server `a`: `command` holds a `${` without a `}`",
        );
        check(
            json!({"command": "${sesame}"}),
            "server `a`: `command` holds a reference that is not `${env:NAME}`",
        );
    }

    #[test]
    fn the_file_has_one_form() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Servers::parse(text, environment).unwrap_err().to_string(), expected);
        };
        check("{\n \"sesame", "the text is not JSON: line 2, column 8");
        check("[]", "`the file` must be an object");
        check("{}", "`mcpServers` must be an object");
        check(r#"{"mcpServers": 1}"#, "`mcpServers` must be an object");
        check(r#"{"mcpServers": {}, "x": 1}"#, "`x` is not a known field");
        check(
            r#"{"mcpServers": {"daybook": {"command": "x"}}}"#,
            "server `daybook`: `name` is taken or empty",
        );
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
        let configured = parse(json!({AWS_DIAGNOSTICS: {"command": "x"}})).unwrap();
        let servers = Servers::bundled("/bin/daybook".into()).with(configured);
        assert_eq!(launch(&servers, AWS_DIAGNOSTICS, json!({"snapshot": "y"})).to_string(), "x");
        assert_eq!(servers.configured().collect::<Vec<_>>(), [AWS_DIAGNOSTICS]);
    }
}
