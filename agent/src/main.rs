//! The agent host as a container: the `AgentCore` HTTP contract over a `DynamoDB` journal.

use std::error::Error;
use std::net::TcpListener;

use agent::config::{Config, bundled_program};
use agent::host::{self, Host};
use agent::model::Models;
use agent::progress::Broadcast;
use agent::tool::{Servers, Timeouts};
use agent::{http, summary, trace};
use aws_config::BehaviorVersion;
use journal::dynamo::DynamoStore;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
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
    #[expect(clippy::disallowed_methods, reason = "the program's one look at its environment")]
    let lookup = |name: &str| std::env::var(name).ok();
    workflow::env::export_spans(&lookup, "daybook-agent")?;
    telemetry::figures::keep();
    workflow::metric::describe();
    let config = Config::read(&lookup)?;
    let mut servers = Servers::bundled(bundled_program(&std::env::current_exe()?));
    if let Some(file) = &config.servers_file {
        servers = servers.with(Servers::parse(&std::fs::read_to_string(file)?, lookup)?);
    }
    let aws = aws_config::load_defaults(BehaviorVersion::latest()).await;
    let host = Host::new(
        DynamoStore::new(&aws, &config.table),
        host::Config {
            agents: agents::all().into(),
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
    trace::told().await;
    stop.cancel();
    server.join().map_err(|_| "the server's thread panicked")??;
    Ok(())
}
