//! The program of the container: the agent host with the `AgentCore` HTTP contract and a `DynamoDB`
//! journal.

use std::collections::BTreeSet;
use std::fmt;
use std::net::TcpListener;
use std::sync::Arc;

use aws_config::{BehaviorVersion, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use graph::agent::Agent;
use guard::{Guard, Secret};
use journal::dynamo::DynamoStore;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::Subscriber;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use workflow::env::{self, Invalid};

use crate::config::{Config, bundled_program};
use crate::host::{self, Host};
use crate::model::Models;
use crate::progress::Broadcast;
use crate::project::Project;
use crate::tool::parameters::{self, ParameterStore};
use crate::tool::{Servers, Timeouts};
use crate::{health, http, http_agent, measure, trace};

/// The argument with which a host starts a program that is not `agent` as this one.
pub const COMMAND: &str = "agent-process";

/// Why the container stopped. `main` prints an error's `Debug`, so this is a readable message.
pub struct Error(Box<dyn std::error::Error + Send + Sync>);

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// Runs the program with these agents until a signal stops it. With `--healthy` it is the image's health
/// check, and pings the running program instead.
///
/// # Errors
/// If the environment is invalid, or the container does not start or stop cleanly.
pub fn main_with(agents: Arc<[Agent]>) -> Result<(), Error> {
    if std::env::args().nth(1).as_deref() == Some("--healthy") {
        return Ok(health::ping(&environment)?);
    }
    if http_agent::is_asked() {
        http_agent::main();
    }
    start_logging();
    let project = project()?;
    let agents = with_agents_of(&project, agents)?;
    exporters::export_spans(&environment, "daybook-agent")?;
    exporters::metrics::keep(&measure::buckets(&agents));
    workflow::metric::describe();
    measure::describe(&agents);
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run(agents, project))
}

/// Whether this process was started as an agent's.
pub fn is_asked() -> bool {
    std::env::args().nth(1).as_deref() == Some(COMMAND)
}

fn start_logging() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(
        |_| // The MCP client logs what servers send, and logs must not contain payloads.
        tracing_subscriber::EnvFilter::new("info,rmcp=off"),
    );
    let is_summary = |metadata: &tracing::Metadata<'_>| metadata.target() == measure::LOG_TARGET;
    let summaries = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .event_format(BareMessage)
        .with_writer(std::io::stderr)
        .log_internal_errors(false)
        .with_filter(filter_fn(is_summary));
    let rest = tracing_subscriber::fmt::layer()
        .json()
        .with_writer(std::io::stderr)
        // Either would panic when it cannot write a line.
        .log_internal_errors(false)
        .with_filter(filter_fn(move |metadata| !is_summary(metadata)));
    tracing_subscriber::registry().with(filter).with(rest).with(summaries).init();
}

/// Writes only the message, without time, level or span. A summary line is a JSON object, and log queries
/// find its fields only if the line has nothing else.
struct BareMessage;

impl<S, N> FormatEvent<S, N> for BareMessage
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &tracing::Event<'_>,
    ) -> std::fmt::Result {
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

#[expect(clippy::disallowed_methods, reason = "the only place that reads the environment")]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The file that `DAYBOOK_CONFIG` names, for agents that are programs or files.
fn project() -> Result<Project, Error> {
    match environment(env::DAYBOOK_CONFIG).filter(|path| !path.is_empty()) {
        Some(path) => Ok(Project::read(path.as_ref())?),
        None => Ok(Project::default()),
    }
}

fn with_agents_of(project: &Project, agents: Arc<[Agent]>) -> Result<Arc<[Agent]>, Error> {
    if !project.has_agents() {
        return Ok(agents);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let own = runtime.block_on(project.agents())?;
    if let Some(taken) = own.iter().find(|own| agents.iter().any(|it| it.name() == own.name())) {
        let text = format!("daybook.toml: there is already an agent `{}`", taken.name());
        return Err(Error(text.into()));
    }
    Ok(agents.iter().cloned().chain(own).collect())
}

async fn run(agents: Arc<[Agent]>, project: Project) -> Result<(), Error> {
    let environment = |name: &str| environment(name).or_else(|| project.setting(name));
    let config = Config::read(&agents, &environment)?;
    let aws = aws_config::load_defaults(BehaviorVersion::latest()).await;
    let (name, expected) = (env::AWS_REGION, "a region, such as us-east-1");
    aws.region().ok_or(Invalid::Missing { name, expected })?;
    let config = match openai_key(&ParameterStore::ssm(&aws, None)).await? {
        None => config,
        Some(key) => Config::read(&agents, &|name: &str| {
            if name == env::OPENAI_API_KEY { Some(key.clone()) } else { environment(name) }
        })?,
    };
    let bundled = bundled_program(&std::env::current_exe()?);
    // Without a host that keeps it, the servers' state ends with the process.
    let own_folder = tempfile::Builder::new().prefix("daybook-").tempdir()?;
    let state = config.state_folder.as_deref().unwrap_or(own_folder.path());
    let roots = config.roots.clone();
    let mut servers =
        Servers::bundled(&bundled, &agents).with_state_folder(state).with_roots(&roots);
    if config.is_in_account {
        servers = servers.in_account(environment);
    }
    let store = ParameterStore::ssm(&aws, None);
    if let Some(text) = &project.servers {
        servers = servers.with(Servers::load(text, environment, &store).await?);
    }
    if let Some(file) = &config.servers_file {
        let text = file.read()?;
        servers = servers.with(Servers::load(&text, environment, &store).await?);
    }
    let journal = with_token(&aws, config.journal_token.as_ref());
    let store = DynamoStore::new(&journal, &config.table);
    let host = Host::new(
        if config.is_logged { store.with_log() } else { store },
        host::Config {
            agents,
            callbacks: aws_sdk_sfn::Client::new(&journal),
            clock: config.clock(),
            servers,
            timeouts: Timeouts { connect: config.connect_timeout, init: config.init_timeout },
            models: Models::new(config.models.clone()).with_roots(roots),
            defaults: config.defaults.clone(),
            progress: Broadcast::default(),
        },
    );
    let listener = TcpListener::bind(config.address())?;
    let stop = CancellationToken::new();
    let token = config.token.as_ref().map(Secret::reveal);
    let guard = token.map(|token| Guard::new(config.address().ip(), Some(token))).transpose()?;
    let server = http::serve(host.clone(), listener, guard, stop.clone())?;
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = host.outlives() => {
            // The platform ends it; until then it answers that it takes no session.
            tracing::info!("The host is near the end of its lifetime; its sessions go on in others.");
            host.hand_over().await;
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
    }
    host.shutdown().await;
    trace::flush().await;
    stop.cancel();
    server.join().map_err(|_| Error("the server's thread panicked".into()))??;
    Ok(())
}

/// The key of the OpenAI-compatible server, if its variable refers to a parameter: `${ssm:/name}`.
async fn openai_key(store: &ParameterStore) -> Result<Option<String>, parameters::Error> {
    let value = environment(env::OPENAI_API_KEY);
    let name = value.as_deref().and_then(|it| it.strip_prefix("${ssm:")?.strip_suffix('}'));
    let Some(name) = name else { return Ok(None) };
    let read = store.read(&BTreeSet::from([name.to_owned()])).await?;
    Ok(read.get(name).map(|key| key.reveal().to_owned()))
}

/// The configuration of the clients of the journal and the workflow. On the local stack they send the
/// token of its run as a session token. Other clients never do.
fn with_token(aws: &SdkConfig, token: Option<&Secret>) -> SdkConfig {
    let Some(token) = token else { return aws.clone() };
    let token = Some(token.reveal().to_owned());
    let credentials = Credentials::new("local", "local", token, None, "daybook");
    let provider = SharedCredentialsProvider::new(credentials);
    aws.clone().into_builder().credentials_provider(provider).build()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Mutex, PoisonError};

    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_summary_line_has_only_the_object_even_inside_a_span() {
        let log = Log::default();
        let kept = log.clone();
        let layer = tracing_subscriber::fmt::layer()
            .event_format(BareMessage)
            .with_writer(move || kept.clone());
        let line = serde_json::json!({"event": "agent_metrics", "llm_calls": 3});
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let session = tracing::error_span!("session", session_id = "s", trace_id = "t");
            session.in_scope(|| tracing::info!(target: measure::LOG_TARGET, "{line}"));
        });
        let written = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert_eq!(written, format!("{line}\n"));
    }
}
