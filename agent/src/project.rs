//! `daybook.toml`: agents that are programs or files, MCP servers, and settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agentfile::file::Checked;
use graph::agent::Agent;
use graph::check::nearest;
use graph::program::{Description, IDLE_S, Launch};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::http_agent::{self, HttpTable};
use crate::program::describe::{self, describe};

/// The file's name.
pub const FILE: &str = "daybook.toml";

/// Largest file, in bytes.
const FILE_BYTES_MAX: usize = 1024 * 1024;

/// The file.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct File {
    /// The agents by name: each has `command`, `url`, `http_command`, `file`, or `prompt` with the other keys of an agent's
    /// file.
    #[serde(default)]
    agents: BTreeMap<String, AgentTable>,
    /// The MCP servers by name, with the keys of the servers file. A `command` may be a list.
    #[serde(default)]
    mcp: BTreeMap<String, Map<String, Value>>,
    /// What environment variables set: a key is the variable's name in lower case, without `daybook_`.
    /// A variable that is set takes precedence.
    #[serde(default)]
    settings: BTreeMap<String, Setting>,
}

/// `[agents.NAME]`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "Map<String, Value>")]
#[schemars(untagged, !try_from)]
enum AgentTable {
    Program(ProgramTable),
    File(FileTable),
    Http(Box<HttpTable>),
    /// An agent's file without its name.
    Inline(Map<String, Value>),
}

/// What an agent is follows from its key: each table has one of these.
const KINDS: [&str; 5] = ["command", "file", "url", "http_command", "prompt"];

impl TryFrom<Map<String, Value>> for AgentTable {
    type Error = String;

    /// An error names the key whose value is wrong.
    fn try_from(table: Map<String, Value>) -> Result<Self, String> {
        let kind = KINDS.into_iter().find(|kind| table.contains_key(*kind));
        let value = Value::Object(table.clone());
        match kind {
            Some("command") => typed(&value).map(Self::Program),
            Some("file") => typed(&value).map(Self::File),
            Some("url" | "http_command") => typed(&value).map(|http| Self::Http(Box::new(http))),
            _ => Ok(Self::Inline(table)),
        }
    }
}

fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value)
        .map_err(|error| format!("{}: {}", error.path(), error.inner()))
}

/// An agent that is a program.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProgramTable {
    /// The program and its arguments. It runs in the folder of this file.
    command: Vec<String>,
    /// MCP servers, in addition to those that the program names.
    #[serde(default)]
    servers: Vec<String>,
    /// Tools that need a person's approval, in addition to those that the program names.
    #[serde(default)]
    critical: Vec<String>,
    /// Variables of the program's environment.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Seconds without a frame and without an open effect after which the program counts as hanging.
    #[serde(default)]
    idle_seconds: Option<u32>,
}

/// An agent that is a file.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileTable {
    /// The path of the agent's YAML file, relative to this file.
    file: PathBuf,
}

/// The value of a setting.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Setting {
    /// `on` or `off`.
    Switch(bool),
    Number(i64),
    Text(String),
    /// Written as the variable's list.
    List(Vec<String>),
}

/// The keys of `[agents.NAME]` with a `command`.
const PROGRAM_KEYS: [&str; 5] = ["command", "servers", "critical", "env", "idle_seconds"];

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{}: {problem}", path.display())]
    Invalid { path: PathBuf, problem: String },
    #[error("agent `{name}`: {problem}")]
    Agent { name: String, problem: String },
    #[error("agent `{name}`")]
    Program {
        name: String,
        #[source]
        source: describe::Error,
    },
}

/// What the file configures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Project {
    /// The file; `None` without one.
    pub path: Option<PathBuf>,
    folder: PathBuf,
    agents: BTreeMap<String, AgentTable>,
    /// The MCP servers, in the form of the servers file.
    pub servers: Option<String>,
    /// The settings as written: key and value.
    pub settings: BTreeMap<String, String>,
}

impl Project {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or is invalid.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
        let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = whole.parent().map(Path::to_owned).unwrap_or_default();
        let parsed = Self::parse(&text, folder)
            .map_err(|problem| Error::Invalid { path: path.to_owned(), problem })?;
        Ok(Self { path: Some(whole), ..parsed })
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str, folder: PathBuf) -> Result<Self, String> {
        if text.len() > FILE_BYTES_MAX {
            return Err(format!("the file has more than {FILE_BYTES_MAX} bytes"));
        }
        let table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
        known("", table.keys(), &["agents", "mcp", "settings"])?;
        for (name, agent) in
            table.get("agents").and_then(toml::Value::as_table).into_iter().flatten()
        {
            check_agent(name, agent)?;
        }
        let File { agents, mcp, settings } =
            table.try_into().map_err(|error: toml::de::Error| error.to_string())?;
        let servers: Map<_, _> =
            mcp.into_iter().map(|(name, table)| (name, server(table))).collect();
        let servers = (!servers.is_empty()).then(|| json!({ "mcpServers": servers }).to_string());
        let settings = settings.into_iter().map(|(key, value)| {
            let value = value.written(&key);
            (key, value)
        });
        Ok(Self { path: None, folder, agents, servers, settings: settings.collect() })
    }

    /// The value of a variable in the settings.
    pub fn setting(&self, variable: &str) -> Option<String> {
        let key = variable.to_ascii_lowercase();
        let short = key.strip_prefix("daybook_").and_then(|short| self.settings.get(short));
        short.or_else(|| self.settings.get(&key)).cloned()
    }

    /// Whether it has agents.
    pub fn has_agents(&self) -> bool {
        !self.agents.is_empty()
    }

    /// The files that decide what this is: its own, its agents' files, and the files that their commands name.
    pub fn files(&self) -> Vec<PathBuf> {
        let in_folder = |path: &Path| self.folder.join(path);
        let of_agents = self.agents.values().flat_map(|agent| match agent {
            AgentTable::File(FileTable { file }) => vec![in_folder(file)],
            AgentTable::Program(table) => {
                let named = table.command.iter().map(|word| in_folder(word.as_ref()));
                named.filter(|path| path.is_file()).collect()
            }
            AgentTable::Http(_) | AgentTable::Inline(_) => Vec::new(),
        });
        self.path.iter().cloned().chain(of_agents).collect()
    }

    /// The names of the agents.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.agents.keys().map(String::as_str)
    }

    /// All agents. Each program is started to read its description.
    ///
    /// # Errors
    /// As [`Self::agent`].
    pub async fn agents(&self) -> Result<Vec<Agent>, Error> {
        let mut agents = Vec::new();
        for name in self.agents.keys() {
            agents.push(self.agent(name).await?);
        }
        Ok(agents)
    }

    /// The agent of this name.
    ///
    /// # Errors
    /// Its program does not describe itself, or its file is invalid.
    pub async fn agent(&self, name: &str) -> Result<Agent, Error> {
        let invalid = |problem: String| Error::Agent { name: name.to_owned(), problem };
        let checked = match self.agents.get(name) {
            None => return Err(invalid("daybook.toml does not name it".to_owned())),
            Some(AgentTable::Program(table)) => return self.program(name, table).await,
            Some(AgentTable::Http(table)) => return self.http(name, table).await,
            Some(AgentTable::File(FileTable { file })) => {
                let path = self.folder.join(file);
                let text = std::fs::read_to_string(&path)
                    .map_err(|source| Error::Unreadable { path: path.clone(), source })?;
                Checked::of_yaml(&text)
                    .map_err(|error| invalid(format!("{}: {error}", file.display())))?
            }
            Some(AgentTable::Inline(table)) => {
                let mut table = table.clone();
                table.insert("name".to_owned(), json!(name));
                Checked::of_value(Value::Object(table))
                    .map_err(|error| invalid(error.to_string()))?
            }
        };
        if checked.file.name != name {
            return Err(invalid(format!("its file calls it `{}`", checked.file.name)));
        }
        Ok(checked.agent())
    }

    async fn program(&self, name: &str, table: &ProgramTable) -> Result<Agent, Error> {
        let launch = Launch {
            command: table.command.clone(),
            folder: self.folder.clone(),
            environment: table.env.clone(),
            idle: Duration::from_secs(table.idle_seconds.unwrap_or(IDLE_S).into()),
        };
        let mut described = described(name, &launch).await?;
        let invalid = |problem: String| Error::Agent { name: name.to_owned(), problem };
        if described.name != name {
            return Err(invalid(format!("its program calls itself `{}`", described.name)));
        }
        described.critical.extend(table.critical.iter().cloned());
        described.servers.extend(table.servers.iter().cloned());
        described.servers.sort();
        described.servers.dedup();
        Agent::program(described, launch)
            .map_err(|error| invalid(format!("its schema is not valid: {error}")))
    }

    async fn http(&self, name: &str, table: &HttpTable) -> Result<Agent, Error> {
        let invalid = |problem: String| Error::Agent { name: name.to_owned(), problem };
        let host = std::env::current_exe().map_err(|error| invalid(error.to_string()))?;
        let launch = table.launch(name, &host, &self.folder, variable).map_err(invalid)?;
        let described = described(name, &launch).await?;
        Agent::program(described, launch).map_err(|error| invalid(error.to_string()))
    }
}

#[expect(clippy::disallowed_methods, reason = "the file names the variable")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

async fn described(name: &str, launch: &Launch) -> Result<Description, Error> {
    let described = describe(launch).await;
    described.map_err(|source| Error::Program { name: name.to_owned(), source })
}

impl Setting {
    /// The value as the variable has it.
    fn written(self, key: &str) -> String {
        match self {
            Self::Switch(true) => "on".to_owned(),
            Self::Switch(false) => "off".to_owned(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text,
            Self::List(items) => items.join(if key == "allowed_paths" { ":" } else { "," }),
        }
    }
}

/// The JSON schema of the file, for editors.
pub fn schema() -> Value {
    schemars::schema_for!(File).to_value()
}

fn known<'a>(
    place: &str,
    mut keys: impl Iterator<Item = &'a String>,
    known: &[&str],
) -> Result<(), String> {
    match keys.find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(match nearest(key, known.iter().copied()) {
            Some(near) => format!("unknown key `{place}{key}` (did you mean `{near}`?)"),
            None => format!("unknown key `{place}{key}`; there are {}", known.join(", ")),
        }),
    }
}

fn check_agent(name: &str, agent: &toml::Value) -> Result<(), String> {
    let Some(table) = agent.as_table() else {
        return Err(format!("agents.{name} is no table"));
    };
    let place = format!("agents.{name}.");
    let kinds: Vec<_> = KINDS.into_iter().filter(|kind| table.contains_key(*kind)).collect();
    match kinds.as_slice() {
        ["command"] => {
            known(&place, table.keys(), &PROGRAM_KEYS)?;
            is_command(&place, "command", &table["command"], name)
        }
        ["file"] => known(&place, table.keys(), &["file"]),
        ["url"] => known(&place, table.keys(), &http_agent::KEYS),
        ["http_command"] => {
            known(&place, table.keys(), &http_agent::KEYS)?;
            is_command(&place, "http_command", &table["http_command"], name)
        }
        // Its keys are checked with the agent.
        ["prompt"] => Ok(()),
        kinds => {
            let needs = format!(
                "agents.{name} needs one of `command`, `url`, `http_command`, `file` and `prompt`"
            );
            let similar = |key: &String| Some((key.clone(), nearest(key, KINDS)?));
            Err(match table.keys().find_map(similar).filter(|_| kinds.is_empty()) {
                Some((key, near)) => format!("{needs}; `{key}` is none (did you mean `{near}`?)"),
                None => needs,
            })
        }
    }
}

fn is_command(place: &str, key: &str, command: &toml::Value, name: &str) -> Result<(), String> {
    let is_text = |word: &toml::Value| word.is_str();
    match command.as_array() {
        Some(words) if !words.is_empty() && words.iter().all(is_text) => Ok(()),
        _ => Err(format!(
            "{place}{key} is {command}, expected a list of the program and its arguments, such as [\"python3\", \"{name}.py\"]"
        )),
    }
}

/// An entry of the servers file. A command that is a list is split into program and arguments.
fn server(mut table: Map<String, Value>) -> Value {
    if let Some(command) = table.get("command").and_then(Value::as_array).cloned() {
        let mut command = command.into_iter();
        table.insert("command".to_owned(), command.next().unwrap_or_default());
        table.insert("args".to_owned(), command.collect());
    }
    Value::Object(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Project {
        Project::parse(text, PathBuf::from("/here")).unwrap()
    }

    fn problem(text: &str) -> String {
        Project::parse(text, PathBuf::new()).unwrap_err()
    }

    #[test]
    fn a_file_lists_agents_servers_and_settings() {
        let text = "[agents.notes]\ncommand = [\"python3\", \"notes.py\"]\ncritical = [\"fs.write\"]\n\
                    [agents.tidy]\nfile = \"tidy.yaml\"\n[agents.words]\nprompt = \"Count.\"\n\
                    [mcp.repo]\ncommand = [\"python3\", \"repo.py\"]\n\
                    [settings]\nmodel = \"openai:m\"\nencrypt = true\nagents_max = 8\nagent_max = [\"a=1\", \"b=2\"]\n";
        let project = parsed(text);
        assert_eq!(project.names().collect::<Vec<_>>(), ["notes", "tidy", "words"]);
        let servers: Value = serde_json::from_str(project.servers.as_ref().unwrap()).unwrap();
        let repo = json!({"command": "python3", "args": ["repo.py"]});
        assert_eq!(servers["mcpServers"]["repo"], repo);
        let settings: Vec<_> = project.settings.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(settings, ["agent_max=a=1,b=2", "agents_max=8", "encrypt=on", "model=openai:m"]);
    }

    #[test]
    fn an_unknown_key_of_the_file_names_the_nearest() {
        for (text, expected) in [
            ("[agent.a]\n", "unknown key `agent` (did you mean `agents`?)"),
            (
                "[agents.a]\ncommand = [\"x\"]\nservrs = []\n",
                "unknown key `agents.a.servrs` (did you mean `servers`?)",
            ),
            (
                "[agents.a]\nfile = \"x\"\ncritical = []\n",
                "unknown key `agents.a.critical`; there are file",
            ),
            (
                "[agents.a]\ncomand = [\"x\"]\n",
                "agents.a needs one of `command`, `url`, `http_command`, `file` and `prompt`; `comand` is none (did you mean `command`?)",
            ),
            (
                "[agents.a]\n",
                "agents.a needs one of `command`, `url`, `http_command`, `file` and `prompt`",
            ),
            (
                "[agents.a]\nurl = \"http://h\"\ncritical = []\n",
                "unknown key `agents.a.critical`; there are url, http_command, env, headers, bearer_env, start_seconds, repeat, version, summary",
            ),
        ] {
            assert_eq!(problem(text), expected);
        }
        for command in ["[]", "\"python3 x.py\"", "[1]"] {
            let found = problem(&format!("[agents.a]\ncommand = {command}\n"));
            assert!(found.contains("expected a list of the program"), "{found}");
        }
    }

    #[test]
    fn a_value_of_another_type_is_named() {
        for (table, expected) in [
            ("url = 8080", "url: invalid type: integer `8080`, expected a string"),
            ("url = \"http://h\"\nstart_seconds = -1", "start_seconds: invalid value"),
            ("url = \"http://h\"\nrepeat = \"never\"", "repeat: unknown variant `never`"),
            ("command = [\"x\"]\nenv = 5", "env: invalid type: integer `5`, expected a map"),
            ("file = 5", "file: invalid type"),
        ] {
            let found = problem(&format!("[agents.a]\n{table}\n"));
            assert!(found.contains(expected), "{table}: {found}");
        }
    }

    #[tokio::test]
    async fn an_agent_in_the_file_is_checked_as_an_agents_file() {
        let project = parsed(
            "[agents.words]\nprompt = \"Count.\"\n[agents.bad]\nprompt = \"x\"\ncritcal = []\n",
        );
        assert_eq!(project.agent("words").await.unwrap().name(), "words");
        let error = project.agent("bad").await.unwrap_err().to_string();
        assert_eq!(error, "agent `bad`: unknown key `critcal` (did you mean `critical`?)");
    }
}
