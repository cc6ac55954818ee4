//! `mcp`: runs a pack's MCP server.

use crate::failure::{Exit, Failure};
use crate::resolve::{Context, Serving, no_such_server, server};

/// Runs a server until its client disconnects, or over HTTP until Ctrl-C or SIGTERM.
///
/// # Errors
/// When its options are invalid, it cannot listen on the address, or the client violates MCP.
pub async fn mcp(context: &Context, serving: Serving) -> Result<Exit, Failure> {
    let extensions = &context.extensions;
    let server = server(extensions, serving.server)
        .ok_or_else(|| no_such_server(extensions, serving.server, &[]))?;
    server.serve(&serving.options, &context.surroundings, serving.transport).await?;
    Ok(Exit::Succeeded)
}
