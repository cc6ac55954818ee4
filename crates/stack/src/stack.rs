//! The whole stack: starts its parts in order and shuts them down in order.
//!
//! The parts call one another through SDK clients, as in the cloud; only the address differs. Isolated
//! agents use a second, loopback port with a token of this run. Only there may the table be written.

mod agents;
mod data;
mod lambdas;
mod load;
mod serving;
mod settings;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent::model::Models;
use agent::progress::Broadcast;
use agent::settings::Defaults;
use agent::tool::{Servers, Timeouts};
use aws_config::SdkConfig;
use axum::Router;
use graph::agent::Agent;
use graph::profile::Limits;
use guard::TokenMissing;
use invoker::admission::Rules;
use journal::clock::Clock;
use journal::principal::Name;
use journal::sqlite::{Durability, OpenError};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use workflow::{metric, state_machine};

use crate::buckets::Buckets;
use crate::bus::{Bus, RuleError};
use crate::catch_up::catch_up;
use crate::checkpoints::{Signer, Signing, Witness};
use crate::clients::Wire;
use crate::dynamodb;
use crate::endpoint::{Aws, Callers, Endpoint, Guard, Reader, Running, Slots, Streams};
use crate::executions::{self, Executions};
use crate::folder::Missing;
use crate::functions;
use crate::host::Agents;
use crate::keeping::{self, Keeper};
use crate::keys::Keys;
use crate::load::{Limits as LoadLimits, Load};
use crate::memory;
use crate::names;
use crate::notices::{Notices, Outbox};
use crate::recover::end_former_runners;
use crate::restart::after_panics;
use crate::services::Services;
use crate::steps::{self, ClockSteps};
use crate::store::{Database, Journal};
use crate::watch;
use agents::{Inside, agents};
use data::Data;
use lambdas::{functions, watchdog};
use serving::serve;
use settings::running;

/// The journal's file in the data folder.
pub const JOURNAL_FILE: &str = "journal.db";

/// How long open requests may take to finish on shutdown, by the machine's clock.
const REQUESTS_TIMEOUT: Duration = Duration::from_secs(3);

/// The settings of a stack.
#[derive(Debug)]
pub struct Config {
    /// The listen address; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The folder of the journal; created if absent.
    pub data: PathBuf,
    /// Whether to start although the journal, or the end of it, is missing.
    pub accepts_loss: bool,
    /// What a commit waits for.
    pub durability: Durability,
    /// Whether the contents of new sessions are encrypted, each under a key of its own.
    pub encrypt: bool,
    /// The speed of the stack's clock, as a multiple of the machine's.
    pub time_scale: u32,
    /// The stack's clock, if it is not the machine's at that speed.
    pub clock: Option<Clock>,
    /// The folder of all journals' keys; without it, the log of sessions is not signed.
    pub keys: Option<PathBuf>,
    /// Witnesses that cosign its checkpoints.
    pub witnesses: Vec<Witness>,
    /// The bearer token; required to listen beyond loopback.
    pub token: Option<String>,
    /// The name of its holder; [`TOKEN_NAME`](crate::endpoint::TOKEN_NAME) if absent.
    pub token_name: Option<Name>,
    /// Days until records expire.
    pub ttl_days: u32,
    /// A state machine's definition that replaces the workflow's.
    pub workflow: Option<String>,
    /// Functions that its tasks may call besides the workflow's own.
    pub functions: functions::File,
    pub isolation: Isolation,
    /// MCP servers of agents that run in this process.
    pub servers: Servers,
    /// Timeouts of those servers.
    pub timeouts: Timeouts,
    /// Models of agents that run in this process.
    pub models: Models,
    /// Defaults for triggers.
    pub defaults: Defaults,
    /// Admission limits.
    pub admission: Limits,
    /// Who is told what became of sessions.
    pub notify: Option<notify::Settings>,
    /// Limits of the load.
    pub load: LoadLimits,
    /// The agents that triggers may name. Their graphs also name the tool calls of recorded sessions.
    pub agents: Arc<[Agent]>,
}

/// Where agents run.
#[derive(Clone, Debug)]
pub enum Isolation {
    /// In this process.
    None,
    /// Each session in a process of its own.
    Processes {
        /// The binary `agent`; beside the current program if absent.
        program: Option<PathBuf>,
        /// The arguments that make the program an agent's; none for the binary `agent`.
        arguments: Vec<String>,
        /// Environment variables, besides those that the stack sets.
        environment: Vec<(String, String)>,
    },
}

/// Why a stack did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot use the folder {}", path.display())]
    Folder {
        /// The folder or the file in it.
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Another stack uses it.
    #[error("another stack uses the folder {}", .0.display())]
    InUse(PathBuf),
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// The journal, or the end of it, is missing.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// Agents in processes of their own have no keys of sessions.
    #[error("agents in processes of their own cannot read or write encrypted sessions")]
    EncryptedIsolation,
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    /// The address is beyond loopback and there is no token.
    #[error(transparent)]
    Token(#[from] TokenMissing),
    /// The state machine's definition is invalid, or the file cannot be read or written.
    #[error(transparent)]
    Executions(#[from] executions::OpenError),
    #[error(transparent)]
    Store(#[from] journal::store::Error),
    /// The bus does not support the workflow's rule.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The HTTP client for isolated agents cannot be created.
    #[error("cannot create an HTTP client")]
    Http(#[from] reqwest::Error),
}

/// A running stack. Dropping it is like killing it; [`Stack::shutdown`] stops it cleanly.
#[derive(Debug)]
pub struct Stack {
    address: SocketAddr,
    store: Database,
    clock: Clock,
    executions: Executions,
    load: Load,
    agents: Agents,
    supervisor: JoinSet<()>,
    servers: JoinSet<()>,
    signer: Signer,
    stop_watching: CancellationToken,
    stop_serving: CancellationToken,
    /// Keeps the routes that the stack's own clients call.
    _routes: Arc<Router>,
    data: Data,
}

impl Stack {
    /// Starts a stack. When this returns, it accepts requests, and the executions of an earlier stack
    /// continue.
    ///
    /// # Errors
    /// See [`StartError`]. Then nothing is left running.
    pub async fn start(mut config: Config) -> Result<Self, StartError> {
        keep_metrics(&config.agents);
        let guard = Guard::new(config.listen.ip(), config.token.as_deref())?;
        let callers = Callers::new(config.token.as_deref(), config.token_name.clone());
        let signing = Signing::default();
        let (data, store, keys) = Data::open(&config, &signing).await?;
        let (clock, steps) = clock(&config, &store).await?;
        data.finish_erasures(&store, &clock).await?;
        let (listener, address) = listen(config.listen).await?;
        let inside = Inside::listen(&config).await?;
        let wire = Wire::default();
        let aws = wire.config();
        let progress = Broadcast::default();
        let agents =
            agents(&config, &progress, &store, &clock, &aws, &data.folder, inside.as_ref())?;
        let rules = Rules { agents: Arc::clone(&config.agents), limits: config.admission.clone() };
        let load = load::of(&config, &store, &clock, &data);
        let of_file = std::mem::take(&mut config.functions);
        let functions = load.noting(functions(&store, &clock, &aws, rules)).with_file(of_file);
        let agent_core = Some(aws_sdk_bedrockagentcore::Client::new(&aws));
        let buckets = Some(Buckets::of_stack(&data.folder));
        let services =
            Services { functions: functions.clone(), agent_core, load: load.clone(), buckets };
        let executions = executions(&config, &store, &clock, services).await?;
        let stop_serving = CancellationToken::new();
        let notices = Notices::default();
        let running = running(&config, &executions, &signing, &steps, &notices);
        let reader = reader(&config, &store, &clock, keys.clone(), running);
        let streams = Streams {
            reader: reader.clone(),
            executions: executions.clone(),
            progress,
            stopping: stop_serving.clone(),
        };
        let bus = Bus::new(executions.clone(), functions, clock.clone())?.with_load(load.clone());
        let endpoint_bus = bus.clone();
        let services =
            Aws { executions: executions.clone(), bus, agents: agents.clone(), load: load.clone() };
        let endpoint = Endpoint { reader, streams, aws: services, data: data.folder.clone() };
        let (servers, routes) =
            serve(&endpoint, &wire, listener, (guard, callers), inside, &stop_serving)?;
        let stop_watching = CancellationToken::new();
        let mut supervisor =
            supervisor(&executions, &load, &clock, steps, &aws, &config, &stop_watching);
        supervisor.spawn(data.noting(&store, &stop_watching));
        supervisor.spawn(expiring(&store, keys.clone(), &clock, &stop_watching));
        supervisor.spawn(load.kept(&executions, &stop_watching));
        let outbox = outbox(&config, &executions, endpoint_bus, &clock, address, notices);
        if let Some(settings) = config.notify.take() {
            outbox.start(&settings, &mut supervisor, &stop_watching)?;
        }
        let signer = Signer::start(&store, keys, signing, std::mem::take(&mut config.witnesses));
        Ok(Self {
            address,
            store,
            clock,
            executions,
            load,
            agents,
            supervisor,
            servers,
            signer,
            stop_watching,
            stop_serving,
            _routes: routes,
            data,
        })
    }

    /// The listen address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL, such as `http://127.0.0.1:4599`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn store(&self) -> &Database {
        &self.store
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    pub fn executions(&self) -> &Executions {
        &self.executions
    }

    pub fn load(&self) -> &Load {
        &self.load
    }

    pub fn agents(&self) -> &Agents {
        &self.agents
    }

    /// Stops executions first, so that nothing new is called; then agents, which still need the endpoint;
    /// then the endpoint.
    pub async fn shutdown(mut self) {
        self.stop_watching.cancel();
        self.executions.begin_stop();
        while self.supervisor.join_next().await.is_some() {}
        self.agents.shutdown().await;
        self.stop_serving.cancel();
        let served = async { while self.servers.join_next().await.is_some() {} };
        if tokio::time::timeout(REQUESTS_TIMEOUT, served).await.is_err() {
            tracing::warn!("Some requests did not finish in time and were cut off.");
            self.servers.shutdown().await;
        }
        // After all that writes, so that every leaf is signed.
        self.signer.finish().await;
        self.data.close(&self.store).await;
    }
}

/// The executions, with those to be woken that a former stack has left.
async fn executions(
    config: &Config,
    store: &Database,
    clock: &Clock,
    services: Services,
) -> Result<Executions, StartError> {
    let text = workflow_text(config);
    let executions = Executions::open(store.clone(), clock.clone(), &text, services).await?;
    executions.wake_when_taken_up(end_former_runners(store, clock.now()).await);
    Ok(executions)
}

fn outbox(
    config: &Config,
    executions: &Executions,
    bus: Bus,
    clock: &Clock,
    address: SocketAddr,
    notices: Notices,
) -> Outbox {
    Outbox {
        store: executions.store().clone(),
        executions: executions.clone(),
        bus,
        clock: clock.clone(),
        agents: Arc::clone(&config.agents),
        link: format!("http://{address}"),
        notices,
    }
}

fn keep_metrics(agents: &[Agent]) {
    exporters::metrics::keep(&agent::measure::buckets(agents));
    metric::describe();
    agent::measure::describe(agents);
}

/// Starts what keeps sessions going.
fn supervisor(
    executions: &Executions,
    load: &Load,
    clock: &Clock,
    steps: ClockSteps,
    aws: &SdkConfig,
    config: &Config,
    stop: &CancellationToken,
) -> JoinSet<()> {
    let (store, watchdog) = (executions.store().clone(), watchdog(executions.store(), clock, aws));
    let watching_clock = steps::watch(clock.clone(), steps, executions.clone(), stop.clone());
    let (clock, stopping, ended) = (clock.clone(), stop.clone(), executions.clone());
    // The sweep finds ends that were announced between two runs.
    let watching =
        move || watch::watch(watchdog.clone(), ended.ends(), clock.clone(), stopping.clone());
    let watched = after_panics("the watchdog", stop.clone(), watching);
    let mut supervisor = JoinSet::from_iter([watched]);
    supervisor.spawn(watching_clock);
    let stopping = stop.clone();
    let giving_back = move || memory::give_back(store.clone(), stopping.clone());
    supervisor.spawn(after_panics("giving back memory", stop.clone(), giving_back));
    let supervised = executions.clone();
    let supervising = move || {
        let supervised = supervised.clone();
        async move { supervised.supervise().await }
    };
    supervisor.spawn(after_panics("the supervision of executions", stop.clone(), supervising));
    let (caught_up, agents, load) = (executions.clone(), Arc::clone(&config.agents), load.clone());
    let catching_up = move || catch_up(caught_up.clone(), Arc::clone(&agents), load.clone());
    let caught_up = after_panics("catching up", stop.clone(), catching_up);
    let stopping = stop.clone();
    supervisor.spawn(async move {
        // If the stack stops first, the next start catches up.
        let _ = stopping.run_until_cancelled_owned(caught_up).await;
    });
    supervisor
}

/// Removes what has expired.
fn expiring(
    store: &Database,
    keys: Option<Keys>,
    clock: &Clock,
    stop: &CancellationToken,
) -> impl Future<Output = ()> + use<> {
    let keeper = Keeper { store: store.clone(), keys, clock: clock.clone() };
    let stopping = stop.clone();
    let expiring = move || keeping::expire(keeper.clone(), stopping.clone());
    after_panics("the expiry", stop.clone(), expiring)
}

/// The stack's clock. A scaled one goes on after the newest recorded time, which the machine's clock has
/// not reached. Otherwise times in the future are those of a wrong clock: each session and execution
/// goes on after its own, and new ones get the machine's time.
async fn clock(config: &Config, store: &Database) -> Result<(Clock, ClockSteps), StartError> {
    let newest = executions::newest_time(store).await?;
    let system = Clock::system();
    let now = system.now();
    let clock = match (&config.clock, config.time_scale) {
        (Some(clock), _) => clock.clone(),
        (None, ..=1) => system,
        (None, scale) => Clock::scaled(newest.map_or(now, |newest| newest.max(now)), scale),
    };
    let steps = ClockSteps::since(newest, clock.now());
    Ok((clock, steps))
}

pub(crate) async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let fail = |source| StartError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(fail)?;
    let bound = listener.local_addr().map_err(fail)?;
    Ok((listener, bound))
}

/// The reader of the stack's sessions.
fn reader(
    config: &Config,
    store: &Database,
    clock: &Clock,
    keys: Option<Keys>,
    stack: Running,
) -> Reader {
    Reader {
        store: Journal::Here(store.clone()),
        clock: clock.clone(),
        graphs: Arc::clone(&config.agents),
        summary_cache: Arc::default(),
        slots: Slots::default(),
        keys,
        stack: Some(stack),
    }
}

pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

fn workflow_text(config: &Config) -> String {
    let ttl_days = config.ttl_days.to_string();
    let values = [
        ("JOURNAL_TABLE_NAME", dynamodb::TABLE_NAME),
        ("JOURNAL_TTL_DAYS", ttl_days.as_str()),
        ("INVOKER_FUNCTION_ARN", names::INVOKER_ARN),
        ("POLLER_FUNCTION_ARN", names::POLLER_ARN),
        (state_machine::TRIGGER_PRINCIPAL, state_machine::PRINCIPAL_OF_INPUT),
    ];
    match &config.workflow {
        None => state_machine::with_substitutions(&values),
        Some(text) => values
            .iter()
            .fold(text.clone(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value)),
    }
}
