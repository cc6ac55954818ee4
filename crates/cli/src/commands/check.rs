//! `check`: checks an agent's file or `daybook.toml`, and prints their schemas for editors.

use std::path::Path;

use agent::project::Project;
use agent::tool::{self, Servers};
use agentfile::file::Checked;
use anyhow::Context as _;
use graph::agent::Agent;
use graph::outcome::ToolOutcome;
use journal::clock::Clock;
use serde_json::{Value, json};

use super::servers;
use crate::args::{Check, SchemaOf};
use crate::config::ServersEnvironment;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::project;
use crate::resolve::Context;

/// Checks a file, or prints a schema.
///
/// # Errors
/// The file cannot be read, or a run would refuse it.
pub async fn check(
    context: &Context,
    check: &Check,
    environment: &ServersEnvironment,
) -> Result<Exit, Failure> {
    if let Some(of) = check.schema {
        output::json(&schema(of))?;
        return Ok(Exit::Succeeded);
    }
    let Some(path) = &check.file else { return Ok(Exit::Succeeded) };
    let is_project = path.extension().is_some_and(|end| end == "toml");
    let (agents, own_servers) =
        if is_project { of_project(context, path).await? } else { (vec![of_file(path)?], None) };
    let servers = servers(context, environment, own_servers.as_deref()).await?;
    let mut problems = Vec::new();
    for agent in &agents {
        let mut of_agent = problems_of(agent, &servers, environment).await;
        if context.json {
            output::json(&json!({ "name": agent.name(), "version": agent.version(),
                "problems": of_agent }))?;
        } else {
            output::line(&format!("{} version {}", agent.name(), agent.version()))?;
        }
        problems.append(&mut of_agent);
    }
    if problems.is_empty() {
        return Ok(Exit::Succeeded);
    }
    let failure = Failure::unknown(problems.join("; "));
    if agents.iter().all(|agent| missing(agent, &servers).is_empty()) {
        return Err(failure.hint("`daybook tools SERVER` lists what a server offers"));
    }
    let names: Vec<_> = servers.names().collect();
    Err(failure.hint(format!(
        "name its command in daybook.toml under [mcp.NAME]; configured servers: {}",
        names.join(", ")
    )))
}

/// The JSON schema of a kind of files.
pub fn schema(of: SchemaOf) -> Value {
    match of {
        SchemaOf::Agent => agentfile::file::schema_of_files(),
        SchemaOf::Config => agent::project::schema(),
    }
}

async fn of_project(
    context: &Context,
    path: &Path,
) -> Result<(Vec<Agent>, Option<String>), Failure> {
    let project = Project::read(path).map_err(project::failure)?;
    project::settings(&project, &context.agents)?;
    let agents = project.agents().await.map_err(project::failure)?;
    Ok((agents, project.servers))
}

fn of_file(path: &Path) -> Result<Agent, Failure> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let checked = Checked::of_yaml(&text).map_err(|invalid| {
        let problems: Vec<_> = invalid.problems.iter().map(|it| format!("\n  {it}")).collect();
        Failure::usage(format!("{} cannot be used:{}", path.display(), problems.concat()))
            .hint("docs/agent-files.md lists all keys")
    })?;
    Ok(checked.agent())
}

/// The servers that a stack here would have.
async fn servers(
    context: &Context,
    environment: &ServersEnvironment,
    own: Option<&str>,
) -> Result<Servers, Failure> {
    let mut environment = environment.clone();
    environment.project = own.map(str::to_owned).or(environment.project);
    let bundled = Servers::bundled(&context.binary, &context.agents);
    Ok(bundled.with(servers::configured(context, &environment).await?))
}

/// What the configured servers lack for these agents.
///
/// # Errors
/// The servers' configuration is invalid.
pub async fn lacking(
    context: &Context,
    agents: &[Agent],
    environment: &ServersEnvironment,
) -> Result<Vec<String>, Failure> {
    let servers = servers(context, environment, None).await?;
    let mut problems = Vec::new();
    for agent in agents {
        problems.append(&mut problems_of(agent, &servers, environment).await);
    }
    Ok(problems)
}

async fn problems_of(
    agent: &Agent,
    servers: &Servers,
    environment: &ServersEnvironment,
) -> Vec<String> {
    let mut problems = missing(agent, servers);
    problems.append(&mut misspelt(agent, servers, environment).await);
    problems
}

/// The servers of an agent that are not configured.
fn missing(agent: &Agent, servers: &Servers) -> Vec<String> {
    let names: Vec<_> = servers.names().collect();
    let unknown = agent.servers().iter().filter(|server| !names.contains(*server));
    unknown
        .map(|server| {
            format!(
                "agent `{}` needs the MCP server `{server}`, which is not configured",
                agent.name()
            )
        })
        .collect()
}

/// The critical tools of an agent that their servers do not offer, and servers that cannot be asked.
async fn misspelt(
    agent: &Agent,
    servers: &Servers,
    environment: &ServersEnvironment,
) -> Vec<String> {
    let mut problems = Vec::new();
    let configured: Vec<_> = servers.names().collect();
    for server in agent.servers().iter().filter(|server| configured.contains(server)) {
        let mut critical = tool::critical_of(agent.critical(), server).peekable();
        if critical.peek().is_none() {
            continue;
        }
        let clock = Clock::system();
        let offer = tool::offer(servers, server, &Value::Null, environment.timeouts, &clock);
        match offer.await {
            ToolOutcome::Ok(catalogue) => {
                let offered = tool::offered(&catalogue);
                problems.extend(critical.filter_map(|name| tool::lacks(server, name, &offered)));
            }
            ToolOutcome::Error(error) => problems.push(format!("server `{server}`: {error}")),
            ToolOutcome::Failed(failure) => problems.push(format!("server `{server}`: {failure}")),
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schemas_are_those_of_this_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
        for (of, name) in [(SchemaOf::Agent, "agent.json"), (SchemaOf::Config, "daybook.json")] {
            let text = std::fs::read_to_string(folder.join(name)).unwrap();
            let committed: Value = serde_json::from_str(&text).unwrap();
            let kind = if of == SchemaOf::Agent { "agent" } else { "config" };
            assert_eq!(
                committed,
                schema(of),
                "write it again: daybook check --schema {kind} | jq --indent 4 . >docs/schemas/{name}"
            );
        }
    }
}
