//! `daybook.toml` in the working directory: agents that are programs, and their MCP servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent::program::describe::describe;
use anyhow::{Context as _, anyhow};
use graph::agent::Agent;
use graph::program::{Description, IDLE_S, Launch};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::failure::Failure;

/// The file's name.
pub const FILE: &str = "daybook.toml";

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    agents: BTreeMap<String, AgentTable>,
    #[serde(default)]
    mcp: BTreeMap<String, Value>,
}

/// `[agents.NAME]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentTable {
    command: Vec<String>,
    #[serde(default)]
    servers: Vec<String>,
    #[serde(default)]
    critical: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    idle_seconds: Option<u32>,
}

/// A project: what the file configures.
#[derive(Debug, Default)]
pub struct Project {
    folder: PathBuf,
    agents: BTreeMap<String, AgentTable>,
    /// The MCP servers, in the form of the servers file.
    pub servers: Option<String>,
}

impl Project {
    /// Reads the file; without `path` the one in the working directory, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or is invalid.
    pub fn read(path: Option<&Path>) -> Result<Self, Failure> {
        let default = Path::new(FILE);
        let path = match path {
            Some(path) => path,
            None if default.is_file() => default,
            None => return Ok(Self::default()),
        };
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let folder = path.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned));
        Self::parse(&text, folder.unwrap_or_default())
            .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
    }

    fn parse(text: &str, folder: PathBuf) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        for (name, agent) in &file.agents {
            if agent.command.is_empty() {
                return Err(format!("agents.{name}: `command` is empty"));
            }
        }
        let servers: Map<_, _> =
            file.mcp.into_iter().map(|(name, table)| (name, server(table))).collect();
        let servers = (!servers.is_empty()).then(|| json!({ "mcpServers": servers }).to_string());
        Ok(Self { folder, agents: file.agents, servers })
    }

    /// Whether it has agents.
    pub fn has_agents(&self) -> bool {
        !self.agents.is_empty()
    }

    /// Starts each program to read its description.
    ///
    /// # Errors
    /// A program does not describe itself, or has another name.
    pub async fn agents(&self) -> Result<Vec<Agent>, Failure> {
        let mut agents = Vec::new();
        for (name, table) in &self.agents {
            agents.push(self.agent(name, table).await?);
        }
        Ok(agents)
    }

    async fn agent(&self, name: &str, table: &AgentTable) -> Result<Agent, Failure> {
        let launch = Launch {
            command: table.command.clone(),
            folder: self.folder.clone(),
            environment: table.env.clone(),
            idle: Duration::from_secs(table.idle_seconds.unwrap_or(IDLE_S).into()),
        };
        let described = describe(&launch).await.with_context(|| format!("agent `{name}`"));
        let mut described: Description = described.map_err(|error| {
            let command = table.command.join(" ");
            Failure::usage(format!("{error:#}"))
                .hint(format!("run `{command}` by hand; it should wait for its host"))
        })?;
        if described.name != name {
            let text = format!("agent `{name}`: its program calls itself `{}`", described.name);
            return Err(
                Failure::usage(text).hint("use one name in the program and in daybook.toml")
            );
        }
        described.critical.extend(table.critical.iter().cloned());
        described.servers.extend(table.servers.iter().cloned());
        described.servers.sort();
        described.servers.dedup();
        Agent::program(described, launch)
            .map_err(|error| anyhow!("agent `{name}`: its schema is not valid: {error}").into())
    }
}

/// An entry of the servers file. A command that is a list is split into program and arguments.
fn server(mut table: Value) -> Value {
    let command = table.get("command").and_then(Value::as_array).cloned();
    if let (Some(command), Some(fields)) = (command, table.as_object_mut()) {
        let mut command = command.into_iter();
        fields.insert("command".to_owned(), command.next().unwrap_or_default());
        fields.insert("args".to_owned(), command.collect());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_lists_agents_and_servers() {
        let text = "[agents.notes]\ncommand = [\"python3\", \"notes.py\"]\ncritical = [\"fs.write\"]\n\
                    [mcp.repo]\ncommand = [\"python3\", \"repo.py\"]\n";
        let project = Project::parse(text, PathBuf::from("/here")).unwrap();
        assert_eq!(project.agents["notes"].critical, ["fs.write"]);
        let servers: Value = serde_json::from_str(&project.servers.unwrap()).unwrap();
        let repo = json!({"command": "python3", "args": ["repo.py"]});
        assert_eq!(servers["mcpServers"]["repo"], repo);
    }

    #[test]
    fn an_unknown_key_of_the_file_is_an_error() {
        let problem = |text| Project::parse(text, PathBuf::new()).unwrap_err();
        assert!(problem("[agents.a]\ncommand = [\"x\"]\nservrs = []\n").contains("servrs"));
        assert!(problem("[agent.a]\n").contains("agent"));
        assert!(problem("[agents.a]\ncommand = []\n").contains("`command` is empty"));
    }
}
