//! Serves an MCP server on stdin and stdout.

use rmcp::service::ServerInitializeError;
use rmcp::{ServerHandler, ServiceExt};

/// Why a server could not be served on stdin and stdout.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The client does not speak MCP.
    #[error("the MCP handshake failed")]
    Handshake(#[source] Box<ServerInitializeError>),
    /// The server failed by itself, not because the client disconnected.
    #[error("the MCP server stopped")]
    Stopped(#[source] tokio::task::JoinError),
}

/// Serves until stdin closes.
///
/// # Errors
/// See [`Error`].
pub async fn serve(server: impl ServerHandler) -> Result<(), Error> {
    let running = match server.serve(rmcp::transport::stdio()).await {
        Ok(running) => running,
        // A client that disconnects before the handshake is not an error.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(Error::Handshake(Box::new(error))),
    };
    running.waiting().await.map_err(Error::Stopped)?;
    tracing::debug!("The client disconnected.");
    Ok(())
}
