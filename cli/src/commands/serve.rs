//! `mcp`: running one of our MCP servers.

use std::path::{Path, PathBuf};
#[cfg(feature = "embeddings")]
use std::sync::Arc;

use rmcp::ServerHandler;
use tokio::signal::unix::{SignalKind, signal};
use tools::aws_diagnostics::{self, Error};
use tools::http::{self, Listening};
use tools::place::Place;
use tools::{card_transactions, network_inventory, pk_sim, stdio};

use crate::commands::stack;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::resolve::{Context, Served, Serving, ToolSource};

/// What an address to serve at looks like.
const ADDRESS_EXAMPLE: &str = "127.0.0.1:4600";

/// Runs a server until its client leaves, or over HTTP until Ctrl-C or SIGTERM.
///
/// # Errors
/// When a folder cannot be used, the address cannot be listened on, or the client speaks no MCP.
pub async fn mcp(context: &Context, serving: Serving) -> Result<Exit, Failure> {
    let http = serving.http;
    match serving.server {
        Served::AwsDiagnostics(source) => serve(context, diagnostics(source).await?, http).await?,
        Served::NetworkInventory(file) => {
            let server = network_inventory::server(file.as_deref()).map_err(|error| {
                Failure::from(error).hint("--inventory names a file; see networks/README.md")
            })?;
            serve(context, server, http).await?;
        }
        Served::PkSim { models, state } => {
            let server = pk_sim::server(models.as_deref(), state.as_deref()).map_err(|error| {
                let hint = match &error {
                    pk_sim::Error::Models(_) => "--models names a folder of model files",
                    pk_sim::Error::State { .. } => "--state names a folder that may be written to",
                };
                Failure::from(error).hint(hint)
            })?;
            serve(context, server, http).await?;
        }
        Served::CardTransactions { data, remote, embeddings } => {
            let server = card_transactions::server(&data, remote)?;
            let server = match embeddings {
                None => server,
                Some(folder) => comparing_texts(server, &folder)?,
            };
            serve(context, server, http).await?;
        }
    }
    Ok(Exit::Succeeded)
}

async fn diagnostics(source: ToolSource) -> Result<aws_diagnostics::Server, Failure> {
    match source {
        ToolSource::Snapshot(folder) => aws_diagnostics::server(folder).map_err(|error| {
            of_folder(error, "--snapshot names an incident folder; see incidents/README.md")
        }),
        ToolSource::Account(place, record) => account(place, record).await,
    }
}

async fn serve<S>(context: &Context, server: S, http: Option<String>) -> Result<(), Failure>
where
    S: ServerHandler + Clone + Send + Sync + 'static,
{
    match http {
        None => Ok(stdio::serve(server).await?),
        Some(address) => over_http(context, server, &address).await,
    }
}

async fn over_http<S>(context: &Context, server: S, address: &str) -> Result<(), Failure>
where
    S: ServerHandler + Clone + Send + Sync + 'static,
{
    // Before the first word, so that whoever reads it may stop us at once.
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let address = stack::address(address, ADDRESS_EXAMPLE).await?;
    let listening = Listening::on(address, context.token.as_deref()).await;
    let listening = listening.map_err(|error| {
        let hint = match &error {
            http::Error::Token(_) => "set DAYBOOK_TOKEN, or listen on 127.0.0.1",
            _ => "choose another port with --http",
        };
        Failure::from(error).hint(hint)
    })?;
    output::line(&format!("ready {}", listening.url()))?;
    let stop = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    Ok(listening.serve(server, stop).await?)
}

fn of_folder(error: Error, hint: &str) -> Failure {
    let is_folder = matches!(error, Error::Folder { .. });
    let failure = Failure::from(error);
    if is_folder { failure.hint(hint) } else { failure }
}

#[cfg(feature = "embeddings")]
fn comparing_texts(
    server: card_transactions::Server,
    folder: &Path,
) -> Result<card_transactions::Server, Failure> {
    let embedder = card_transactions::embedder::Embedder::open(folder).map_err(|error| {
        Failure::from(error)
            .hint("--embeddings names a folder with config.json, tokenizer.json, model.safetensors")
    })?;
    Ok(server.comparing_texts(Arc::new(embedder)))
}

#[cfg(not(feature = "embeddings"))]
fn comparing_texts(
    _: card_transactions::Server,
    _: &Path,
) -> Result<card_transactions::Server, Failure> {
    Err(Failure::unknown("this build does not compare texts")
        .hint("build it with: cargo build -p cli --profile local --features embeddings"))
}

#[cfg(feature = "live")]
async fn account(
    place: Place,
    record: Option<PathBuf>,
) -> Result<aws_diagnostics::Server, Failure> {
    let account = tools::account::Account::open(place).await;
    match record {
        None => Ok(aws_diagnostics::live(&account)),
        Some(folder) => aws_diagnostics::recording(&account, folder).map_err(|error| {
            of_folder(error, "--record names a new folder, or one that is nothing but an incident")
        }),
    }
}

#[cfg(not(feature = "live"))]
async fn account(_: Place, _: Option<PathBuf>) -> Result<aws_diagnostics::Server, Failure> {
    Err(crate::failure::not_live("AWS accounts"))
}
