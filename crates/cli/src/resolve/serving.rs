//! `mcp`: which server to run. Commands of packs.

use agent::model::settings::Unusable;
use clap::ArgMatches;
use clap::parser::ValueSource;
use extension::Extension;
use extension::server::{Server, Transport};

use super::Context;
use crate::args;
use crate::config::StackEnvironment;
use crate::failure::Failure;

/// A server to run.
#[derive(Debug)]
pub struct Serving {
    pub server: &'static str,
    pub options: ArgMatches,
    pub transport: Transport,
}

/// A command of a pack.
#[derive(Debug)]
pub struct PackCommand {
    pub name: String,
    pub options: ArgMatches,
    /// Whether it starts sessions.
    pub starts_sessions: bool,
    /// Settings for a stack, if it starts one.
    pub environment: Result<StackEnvironment, Unusable>,
}

/// Resolves `mcp`, and refuses options of other servers.
pub(super) fn serving(mcp: args::Mcp, context: &Context) -> Result<Serving, Failure> {
    let name = server(&context.extensions, &mcp.server)
        .ok_or_else(|| no_such_server(&context.extensions, &mcp.server, &[]))?
        .info()
        .name;
    for other in servers(&context.extensions).filter(|other| other.info().name != name) {
        let is_given = |id: &str| mcp.of_packs.value_source(id) == Some(ValueSource::CommandLine);
        if let Some(option) = other.options().iter().find(|o| is_given(o.get_id().as_str())) {
            let (option, owner) = (option.get_long().unwrap_or_default(), other.info().name);
            let problem = format!("--{option} is an option of {owner}, not of {name}");
            return Err(Failure::usage(problem));
        }
    }
    let transport = Transport { http: mcp.http, token: context.token.clone() };
    Ok(Serving { server: name, options: mcp.of_packs, transport })
}

/// The servers of all packs.
pub fn servers(extensions: &[Extension]) -> impl Iterator<Item = &dyn Server> {
    extensions.iter().flat_map(|extension| &extension.servers).map(AsRef::as_ref)
}

/// Finds a pack's server by name.
pub fn server<'a>(extensions: &'a [Extension], name: &str) -> Option<&'a dyn Server> {
    servers(extensions).find(|server| server.info().name == name)
}

/// The failure for an unknown server name; lists the bundled and configured servers.
pub fn no_such_server(extensions: &[Extension], name: &str, configured: &[&str]) -> Failure {
    let ours = servers(extensions).map(|server| server.info().name);
    let names: Vec<_> = ours.chain(configured.iter().copied()).collect();
    Failure::usage(format!("unknown MCP server `{name}`"))
        .hint(format!("available servers: {}", names.join(", ")))
}
