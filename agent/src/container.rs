//! All of the binary `agent`: the agent host as a container, the `AgentCore` HTTP contract over a
//! `DynamoDB` journal.

use std::net::TcpListener;
use std::sync::Arc;

use aws_config::BehaviorVersion;
use graph::agent::Agent;
use journal::dynamo::DynamoStore;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{Config, bundled_program};
use crate::host::{self, Host};
use crate::model::Models;
use crate::progress::Broadcast;
use crate::tool::parameters::ParameterStore;
use crate::tool::{Servers, Timeouts};
use crate::{health, http, summary};

/// Why the container stopped.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// The program `agent` with the agents that ship and these of one's own, until it is told to stop. With
/// `--healthy` it asks the one that runs beside it whether it answers, as the image's health check does.
///
/// # Errors
/// When two agents have one name, or the environment is not what the container needs.
pub fn main_with(own: Vec<Agent>) -> Result<(), Error> {
    if std::env::args().nth(1).as_deref() == Some("--healthy") {
        return Ok(health::ping(&lookup)?);
    }
    let agents = agents::all_and(own)?;
    start_logging();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run(agents))
}

fn start_logging() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(
        |_| // The MCP client logs what servers send; contents of messages do not belong into logs.
        tracing_subscriber::EnvFilter::new("info,rmcp=off"),
    );
    // The summary lines are objects already: they stand alone, so that a query finds their fields.
    let is_summary = |metadata: &tracing::Metadata<'_>| metadata.target() == summary::TARGET;
    let summaries = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .without_time()
        .with_level(false)
        .with_target(false)
        .with_ansi(false)
        .with_filter(filter_fn(is_summary));
    let rest = tracing_subscriber::fmt::layer()
        .json()
        .with_writer(std::io::stderr)
        .with_filter(filter_fn(move |metadata| !is_summary(metadata)));
    tracing_subscriber::registry().with(filter).with(rest).with(summaries).init();
}

#[expect(clippy::disallowed_methods, reason = "the program's one look at its environment")]
fn lookup(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

async fn run(agents: Arc<[Agent]>) -> Result<(), Error> {
    let config = Config::read(&lookup)?;
    let aws = aws_config::load_defaults(BehaviorVersion::latest()).await;
    let bundled = bundled_program(&std::env::current_exe()?);
    // A container's own files are all that it can keep simulations in; they are gone with it.
    let simulations = std::env::temp_dir().join("daybook-pk-sim");
    let mut servers =
        Servers::bundled(bundled.clone()).with(Servers::simulations(bundled, Some(simulations)));
    if let Some(file) = &config.servers_file {
        let store = ParameterStore::ssm(&aws, None);
        let text = std::fs::read_to_string(file)?;
        servers = servers.with(Servers::load(&text, lookup, &store).await?);
    }
    let host = Host::new(
        DynamoStore::new(&aws, &config.table),
        host::Config {
            agents,
            callbacks: aws_sdk_sfn::Client::new(&aws),
            clock: config.clock(),
            servers,
            timeouts: Timeouts { connect: config.connect_timeout, init: config.init_timeout },
            models: Models::new(config.models.clone()),
            defaults: config.defaults.clone(),
            progress: Broadcast::default(),
        },
    );
    let listener = TcpListener::bind(config.address())?;
    let stop = CancellationToken::new();
    let server = http::serve(host.clone(), listener, stop.clone())?;
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    host.shutdown().await;
    stop.cancel();
    server.join().map_err(|_| "the server's thread panicked")??;
    Ok(())
}
