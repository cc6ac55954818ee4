//! MCP servers of packs, run by `daybook mcp`.

use std::io::{self, Write as _};
use std::net::SocketAddr;

use clap::ArgMatches;
use futures_util::future::LocalBoxFuture;
use mcp::ServerInfo;
use mcp::http::{self, Listening};
use mcp::stdio;
use rmcp::ServerHandler;
use tokio::signal::unix::{SignalKind, signal};

use crate::command::Surroundings;
use crate::failure::Failure;

/// An example address, for hints.
const ADDRESS_EXAMPLE: &str = "127.0.0.1:4700";

/// A pack's MCP server.
pub trait Server: Send + Sync {
    /// Its name, description and tools.
    fn info(&self) -> ServerInfo;

    /// Its options of `daybook mcp`. All servers share the command, so option names are unique.
    fn options(&self) -> Vec<clap::Arg>;

    /// A paragraph for the help of `daybook mcp`.
    fn help(&self) -> &'static str;

    /// Arguments with which it lists its tools without any data.
    fn listing_options(&self) -> &'static [&'static str] {
        &[]
    }

    /// Serves until the client disconnects.
    fn serve<'a>(
        &'a self,
        options: &'a ArgMatches,
        surroundings: &'a Surroundings,
        transport: Transport,
    ) -> LocalBoxFuture<'a, Result<(), Failure>>;
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub struct Transport {
    /// The HTTP address; stdio if absent.
    pub http: Option<String>,
    /// The bearer token of HTTP clients.
    pub token: Option<String>,
}

impl Transport {
    /// Serves until the client disconnects, or over HTTP until Ctrl-C or SIGTERM.
    ///
    /// # Errors
    /// When it cannot listen on the address, or the client violates MCP.
    pub async fn serve<S>(self, server: S) -> Result<(), Failure>
    where
        S: ServerHandler + Clone + Send + Sync + 'static,
    {
        let Some(address) = &self.http else { return Ok(stdio::serve(server).await?) };
        // Registered before `ready` is printed: a reader may send a signal at once.
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let address = socket_address(address, ADDRESS_EXAMPLE).await?;
        let listening = Listening::on(address, self.token.as_deref()).await;
        let listening = listening.map_err(|error| {
            let hint = match &error {
                http::Error::Token(_) => "set DAYBOOK_TOKEN, or listen on 127.0.0.1",
                _ => "choose another port with --http",
            };
            Failure::from(error).hint(hint)
        })?;
        writeln!(io::stdout(), "ready {}", listening.url()).and_then(|()| io::stdout().flush())?;
        let stop = async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        listening.serve(server, stop).await;
        Ok(())
    }
}

/// Resolves `HOST:PORT`.
///
/// # Errors
/// When it is invalid; the hint shows the example.
pub async fn socket_address(listen: &str, example: &str) -> Result<SocketAddr, Failure> {
    let looked_up = tokio::net::lookup_host(listen).await.ok().and_then(|mut found| found.next());
    looked_up.ok_or_else(|| {
        Failure::usage(format!("cannot listen on `{listen}`, expected HOST:PORT"))
            .hint(format!("such as {example}"))
    })
}
