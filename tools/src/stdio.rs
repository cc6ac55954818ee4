//! Serving one of the servers on stdin and stdout.

use rmcp::service::ServerInitializeError;
use rmcp::{ServerHandler, ServiceExt};

/// Why a server could not be served on stdin and stdout.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The client spoke no MCP; nothing was served.
    #[error("the MCP handshake failed")]
    Handshake(#[source] Box<ServerInitializeError>),
    /// The server stopped by a bug of its own, not because the client left.
    #[error("the MCP server stopped")]
    Stopped(#[source] tokio::task::JoinError),
}

/// Serves until stdin closes.
///
/// # Errors
/// [`Error`], of which whoever started it can put right neither.
pub async fn serve(server: impl ServerHandler) -> Result<(), Error> {
    let running = match server.serve(rmcp::transport::stdio()).await {
        Ok(running) => running,
        // A client that leaves before its first word asked for nothing, so nothing went wrong.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(Error::Handshake(Box::new(error))),
    };
    running.waiting().await.map_err(Error::Stopped)?;
    tracing::debug!("The client has gone.");
    Ok(())
}
