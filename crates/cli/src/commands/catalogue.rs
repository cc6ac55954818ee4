//! `agents` and `tools`: lists agents, and the tools of MCP servers. `completions` and `man`: the command line for a shell and for `man`.

use std::time::Duration;

use agent::tool::{Servers, offer};
use anyhow::{Context as _, anyhow};
use graph::agent::Agent;
use graph::effect::ToolSpec;
use graph::outcome::ToolOutcome;
use journal::clock::Clock;
use rmcp::ServiceExt as _;
use rmcp::model::Tool;
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};
use tokio::process::Command;

use super::servers;
use crate::args::packs::{write_completions, write_man};
use crate::config::ServersEnvironment;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::render::report;
use crate::render::text::clean;
use crate::resolve::server as server_of_pack;
use crate::resolve::{Context, no_such_server};

/// Timeout for an MCP server to list its tools.
const LISTING_TIMEOUT: Duration = Duration::from_secs(10);

/// Writes a shell's completions.
///
/// # Errors
/// When stdout is closed.
pub fn completions(context: &Context, shell: clap_complete::Shell) -> Result<Exit, Failure> {
    write_completions(&context.extensions, shell, &mut std::io::stdout())?;
    Ok(Exit::Succeeded)
}

/// Writes the manual page.
///
/// # Errors
/// When stdout is closed.
pub fn man(context: &Context) -> Result<Exit, Failure> {
    write_man(&context.extensions, &mut std::io::stdout())?;
    Ok(Exit::Succeeded)
}

/// An agent as `agents --json` lists it.
pub fn listing(agent: &Agent) -> Value {
    let versions: Vec<_> = agent.versions().map(Agent::version).collect();
    json!({
        "name": agent.name(), "version": agent.version(), "versions": versions,
        "summary": agent.summary(),
        "servers": agent.servers(), "critical": agent.critical(), "input_schema": agent.input_schema(),
    })
}

/// Lists the agents.
///
/// # Errors
/// When stdout is closed.
pub fn agents(context: &Context) -> Result<Exit, Failure> {
    if context.json {
        for agent in context.agents.iter() {
            output::json(&listing(agent))?;
        }
        return Ok(Exit::Succeeded);
    }
    let rows: Vec<_> = context
        .agents
        .iter()
        .map(|agent| {
            let servers = match agent.servers() {
                [] => String::new(),
                servers => format!("\nneeds {}", servers.join(", ")),
            };
            let earlier: Vec<_> = agent.versions().skip(1).map(Agent::version).collect();
            let earlier = match earlier.as_slice() {
                [] => String::new(),
                earlier => format!("\nversion {}, keeps {}", agent.version(), earlier.join(", ")),
            };
            (agent.name().to_owned(), format!("{}{earlier}{servers}", agent.summary()))
        })
        .collect();
    output::lines(report::pairs(context.look, &rows))?;
    Ok(Exit::Succeeded)
}

/// Lists a server's tools as a session sees them. Configured servers take precedence over bundled ones.
///
/// # Errors
/// When the server is unknown, cannot be started, or does not respond.
pub async fn tools(
    context: &Context,
    server: &str,
    environment: &ServersEnvironment,
) -> Result<Exit, Failure> {
    let configured = servers::configured(context, environment).await?;
    let names: Vec<&str> = configured.names().collect();
    let offered = if names.contains(&server) {
        offered_by(&configured, server, environment).await?
    } else if let Some(ours) = server_of_pack(&context.extensions, server) {
        let offered = offered(context, server, ours.listing_options());
        let offered = tokio::time::timeout(LISTING_TIMEOUT, offered).await;
        let offered = offered.map_err(|_| {
            anyhow!("{server} did not list its tools within {} s", LISTING_TIMEOUT.as_secs())
        })??;
        offered.iter().map(serde_json::to_value).collect::<Result<_, _>>()?
    } else {
        return Err(no_such_server(&context.extensions, server, &names));
    };
    if context.json {
        offered.iter().try_for_each(output::json)?;
    } else {
        let rows: Vec<_> = offered.iter().map(row).collect();
        output::lines(report::pairs(context.look, &rows))?;
    }
    Ok(Exit::Succeeded)
}

/// The tools of a configured server, listed with the agents' client.
async fn offered_by(
    configured: &Servers,
    server: &str,
    environment: &ServersEnvironment,
) -> Result<Vec<Value>, Failure> {
    let outcome =
        offer(configured, server, &Value::Null, environment.timeouts, &Clock::system()).await;
    let content = match outcome {
        ToolOutcome::Ok(content) => content,
        ToolOutcome::Error(error) => return Err(Failure::unknown(error)),
        ToolOutcome::Failed(failure) => return Err(Failure::unknown(failure.message)),
    };
    for unusable in content["unusable"].as_array().into_iter().flatten() {
        let text = |field: &str| unusable[field].as_str().map(clean).unwrap_or_default();
        output::say(&format!("unusable tool: {}: {}", text("name"), text("reason")));
    }
    let tools = ToolSpec::catalogue(&content).into_iter();
    let shown = |tool: ToolSpec| json!({"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema});
    Ok(tools.map(shown).collect())
}

/// A tool's row: name, and description with arguments.
fn row(tool: &Value) -> (String, String) {
    let text = |field: &str| tool[field].as_str().filter(|text| !text.is_empty());
    let description = text("description").unwrap_or("no description");
    let name = text("name").unwrap_or_default();
    (name.to_owned(), format!("{description}\n{}", arguments(&tool["inputSchema"])))
}

/// The tools of a bundled server, started as a child process.
async fn offered(context: &Context, server: &str, options: &[&str]) -> anyhow::Result<Vec<Tool>> {
    let mut command = Command::new(&context.binary);
    command.args(["mcp", server]).args(options).kill_on_drop(true);
    let transport = TokioChildProcess::new(command)
        .with_context(|| format!("cannot start {}", context.binary.display()))?;
    let client = ().serve(transport).await.context("the MCP handshake failed")?;
    let tools = client.list_all_tools().await.context("cannot list the server's tools")?;
    client.cancel().await.context("cannot stop the server")?;
    Ok(tools)
}

/// The names of a tool's arguments; optional ones have a question mark.
fn arguments(schema: &Value) -> String {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|n| n == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    let names: Vec<_> = properties
        .into_iter()
        .flat_map(serde_json::Map::keys)
        .map(|name| if is_required(name) { name.clone() } else { format!("{name}?") })
        .collect();
    if names.is_empty() {
        "no arguments".to_owned()
    } else {
        format!("arguments: {}", names.join(", "))
    }
}
