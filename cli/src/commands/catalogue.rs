//! `agents` and `tools`: what there is to run.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use rmcp::ServiceExt as _;
use rmcp::model::Tool;
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::failure::{Exit, Failure};
use crate::output;
use crate::render::report;
use crate::resolve::Context;

/// How long an MCP server may take to say what it offers.
const LISTING_TIMEOUT: Duration = Duration::from_secs(10);

/// Lists the agents.
///
/// # Errors
/// When stdout is closed.
pub fn agents(context: &Context) -> Result<Exit, Failure> {
    if context.json {
        for agent in context.agents.iter() {
            let schema = agent.input_schema().cloned().or_else(|| shipped_schema(agent.name()));
            output::json(&json!({
                "name": agent.name(), "version": agent.version(), "summary": agent.summary(),
                "servers": agent.servers(), "critical": agent.critical(), "input_schema": schema,
            }))?;
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
            (agent.name().to_owned(), format!("{}{servers}", agent.summary()))
        })
        .collect();
    output::lines(report::pairs(context.look, &rows))?;
    Ok(Exit::Succeeded)
}

fn shipped_schema(agent: &str) -> Option<Value> {
    agents::input_schema(agent).and_then(|text| serde_json::from_str(text).ok())
}

/// Lists what a server of ours offers, as any client would learn it: over MCP.
///
/// # Errors
/// When it does not start or does not answer.
pub async fn tools(context: &Context, server: &'static str) -> Result<Exit, Failure> {
    let offered = tokio::time::timeout(LISTING_TIMEOUT, offered(context, server)).await;
    let offered = offered.map_err(|_| {
        anyhow!("{server} did not say what it offers within {} s", LISTING_TIMEOUT.as_secs())
    })??;
    if context.json {
        for tool in &offered {
            output::json(tool)?;
        }
    } else {
        let rows: Vec<_> = offered
            .iter()
            .map(|tool| {
                let description = tool.description.as_deref().unwrap_or("no description");
                (tool.name.to_string(), format!("{description}\n{}", arguments(tool)))
            })
            .collect();
        output::lines(report::pairs(context.look, &rows))?;
    }
    Ok(Exit::Succeeded)
}

/// A server lists its tools over anything, so the least will do.
async fn offered(context: &Context, server: &'static str) -> anyhow::Result<Vec<Tool>> {
    let mut command = Command::new(&context.binary);
    command.args(["mcp", server]).kill_on_drop(true);
    if server == tools::aws_diagnostics::INFO.name {
        command.args(["--snapshot", "."]);
    }
    if server == tools::card_transactions::INFO.name {
        command.args(["--data", "."]);
    }
    let transport = TokioChildProcess::new(command)
        .with_context(|| format!("cannot start {}", context.binary.display()))?;
    let client = ().serve(transport).await.context("the MCP handshake failed")?;
    let tools = client.list_all_tools().await.context("the server does not list its tools")?;
    client.cancel().await.context("the server does not stop")?;
    Ok(tools)
}

/// The names of a tool's arguments; those that may be left out with a question mark.
fn arguments(tool: &Tool) -> String {
    let schema = tool.input_schema.as_ref();
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|n| n == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    let names: Vec<_> = properties
        .into_iter()
        .flat_map(serde_json::Map::keys)
        .map(|name| if is_required(name) { name.clone() } else { format!("{name}?") })
        .collect();
    if names.is_empty() {
        "takes nothing".to_owned()
    } else {
        format!("takes {}", names.join(", "))
    }
}
