//! The whole stack: put together in order, taken down in order.
//!
//! Its parts reach one another the way they do in the cloud, through SDK clients; only the address
//! differs. Where the stack is reachable from outside, isolated agents use a second, loopback port that
//! asks for no token.

use std::fs::{File, TryLockError};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent::host::Host;
use agent::model::Models;
use agent::progress::Broadcast;
use agent::settings::Defaults;
use agent::tool::{Servers, Timeouts};
use aws_config::SdkConfig;
use axum::Router;
use graph::agent::Agent;
use invoker::Invoker;
use journal::clock::Clock;
use journal::sqlite::{Durability, OpenError, SqliteStore};
use poller::Poller;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use watchdog::Watchdog;
use workflow::admission::Limits;
use workflow::{env, metric, state_machine};

use crate::bus::{Bus, RuleError};
use crate::catch_up::catch_up;
use crate::clients::Wire;
use crate::dynamodb;
use crate::endpoint::{Endpoint, Guard, Streams, TokenMissing};
use crate::executions::{self, Executions};
use crate::functions::{self, FunctionError, Functions};
use crate::host::{Agents, Isolated, Settings};
use crate::memory;
use crate::names;
use crate::services::Services;
use crate::store::Journal;
use crate::watch;

/// The journal's file in the data folder.
pub const JOURNAL_FILE: &str = "journal.db";

/// Held for as long as a stack uses the folder.
const LOCK_FILE: &str = "lock";

/// How long open requests may take to finish when the stack stops, by the machine's clock.
const REQUESTS_FINISH_WITHIN: Duration = Duration::from_secs(3);

/// What a stack is started with.
#[derive(Debug)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The folder that holds the journal; made if it is absent.
    pub data: PathBuf,
    /// What a commit waits for.
    pub durability: Durability,
    /// How many times as fast as the machine's the stack's clock runs.
    pub time_scale: u32,
    /// The bearer token, without which a stack listens on loopback only.
    pub token: Option<String>,
    /// How many days records are kept.
    pub ttl_days: u32,
    /// A state machine's text in place of the workflow's own.
    pub workflow: Option<String>,
    /// What its tasks may call beside the workflow's own functions.
    pub functions: functions::File,
    /// Where agents run.
    pub isolation: Isolation,
    /// The MCP servers of agents in this process.
    pub servers: Servers,
    /// How long connecting to them may take.
    pub timeouts: Timeouts,
    /// The models of agents in this process.
    pub models: Models,
    /// What a trigger that says nothing gets.
    pub defaults: Defaults,
    /// How many sessions are admitted.
    pub admission: Limits,
    /// The agents that triggers may ask for, and whose graphs name the calls of recorded sessions.
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
        /// What they get in their environment beside what the stack sets.
        environment: Vec<(String, String)>,
    },
}

/// Why a stack did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data folder cannot be used.
    #[error("cannot use the folder {}", path.display())]
    Folder {
        /// The folder or the file in it.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Another stack has it.
    #[error("another stack uses the folder {}", .0.display())]
    InUse(PathBuf),
    /// The journal cannot be opened.
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The address is not loopback and there is no token.
    #[error(transparent)]
    Token(#[from] TokenMissing),
    /// The executions cannot be had: the state machine is wrong, or the file.
    #[error(transparent)]
    Executions(#[from] executions::OpenError),
    /// The journal cannot be read.
    #[error(transparent)]
    Store(#[from] journal::store::Error),
    /// The workflow's rule asks for more than the bus can do.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The clients of isolated agents cannot be had.
    #[error("no http client can be had")]
    Http(#[from] reqwest::Error),
}

/// A running stack. Dropping it is like killing it; [`Stack::shutdown`] stops it cleanly.
#[derive(Debug)]
pub struct Stack {
    address: SocketAddr,
    store: SqliteStore,
    clock: Clock,
    executions: Executions,
    agents: Agents,
    supervisor: JoinSet<()>,
    servers: JoinSet<()>,
    stop_watching: CancellationToken,
    stop_serving: CancellationToken,
    /// What the stack's own clients reach.
    _routes: Arc<Router>,
    _lock: FolderLock,
}

/// A data folder that no other stack may use. Given up by unlocking it, since a process that is just
/// being forked holds a copy of the file.
#[derive(Debug)]
struct FolderLock(File);

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Closing the file is the same, only later.
        let _ = self.0.unlock();
    }
}

impl Stack {
    /// Starts a stack. It accepts requests when this returns, and executions of an earlier one go
    /// on.
    ///
    /// # Errors
    /// See [`StartError`]. Nothing is left running then.
    pub async fn start(mut config: Config) -> Result<Self, StartError> {
        telemetry::figures::keep(&metric::BUCKETS);
        metric::describe();
        let guard = Guard::new(config.listen.ip(), config.token.as_deref())?;
        let (data, lock) = take_folder(&config.data)?;
        let store = SqliteStore::open(&data.join(JOURNAL_FILE), config.durability)?;
        let clock = clock(&store, config.time_scale).await?;
        let (listener, address) = listen(config.listen).await?;
        let inside = listen_inside(&config).await?;
        let agents_address = inside.as_ref().map_or(address, |(_, address)| *address);
        let wire = Wire::default();
        let aws = wire.config();
        let progress = Broadcast::default();
        let agents = agents(&config, &progress, &store, &clock, &aws, agents_address)?;
        let functions = functions(&store, &clock, &aws, config.admission);
        let functions = functions.with_file(std::mem::take(&mut config.functions));
        let text = workflow_text(&config);
        let agent_core = Some(aws_sdk_bedrockagentcore::Client::new(&aws));
        let services = Services { functions: functions.clone(), agent_core };
        let executions = Executions::open(store.clone(), clock.clone(), &text, services).await?;
        let stop_serving = CancellationToken::new();
        let endpoint = Endpoint {
            store: Journal::Here(store.clone()),
            clock: clock.clone(),
            bus: Bus::new(executions.clone(), functions, clock.clone())?,
            executions: executions.clone(),
            agents: agents.clone(),
            graphs: Arc::clone(&config.agents),
            admission: config.admission,
            streams: Streams::new(progress, stop_serving.clone()),
            shelf: Arc::default(),
            data,
        };
        let inside_guard = Guard::new(Ipv4Addr::LOCALHOST.into(), None)?;
        let routes = Arc::new(endpoint.clone().router(inside_guard));
        wire.lead_to(&routes);
        let mut servers = JoinSet::new();
        if let Some((listener, _)) = inside {
            servers.spawn(serve(listener, Router::clone(&routes), stop_serving.clone()));
        }
        servers.spawn(serve(listener, endpoint.router(guard), stop_serving.clone()));
        let stop_watching = CancellationToken::new();
        let watchdog = watchdog(&store, &clock, &aws);
        let watched =
            watch::watch(watchdog, executions.ends(), clock.clone(), stop_watching.clone());
        let mut supervisor = JoinSet::from_iter([watched]);
        supervisor.spawn(memory::give_back(store.clone(), stop_watching.clone()));
        let supervised = executions.clone();
        supervisor.spawn(async move { supervised.supervise().await });
        let (executing, stopping) = (executions.clone(), stop_watching.clone());
        let caught_up = catch_up(executing, store.clone());
        supervisor.spawn(async move {
            // What is cut off is caught up with after the next start.
            let _ = stopping.run_until_cancelled_owned(caught_up).await;
        });
        Ok(Self {
            address,
            store,
            clock,
            executions,
            agents,
            supervisor,
            servers,
            stop_watching,
            stop_serving,
            _routes: routes,
            _lock: lock,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base of its URLs, such as `http://127.0.0.1:4599`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The journal.
    pub fn store(&self) -> &SqliteStore {
        &self.store
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The executions.
    pub fn executions(&self) -> &Executions {
        &self.executions
    }

    /// Stops: executions first, so that nothing new is called; then agents, which still reach the
    /// endpoint; then the endpoint.
    pub async fn shutdown(mut self) {
        self.stop_watching.cancel();
        self.executions.begin_stop();
        while self.supervisor.join_next().await.is_some() {}
        self.agents.shutdown().await;
        self.stop_serving.cancel();
        let served = async { while self.servers.join_next().await.is_some() {} };
        if tokio::time::timeout(REQUESTS_FINISH_WITHIN, served).await.is_err() {
            tracing::warn!("Some requests were cut off.");
            self.servers.shutdown().await;
        }
    }
}

fn take_folder(data: &Path) -> Result<(PathBuf, FolderLock), StartError> {
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |source| StartError::Folder { path, source }
    };
    std::fs::create_dir_all(data).map_err(fail(data))?;
    let data = data.canonicalize().map_err(fail(data))?;
    let path = data.join(LOCK_FILE);
    let lock = File::create(&path).map_err(fail(&path))?;
    match lock.try_lock() {
        Ok(()) => Ok((data, FolderLock(lock))),
        Err(TryLockError::WouldBlock) => Err(StartError::InUse(data)),
        Err(TryLockError::Error(source)) => Err(StartError::Folder { path, source }),
    }
}

/// The stack's clock never starts before what it has recorded: one that ran fast left times that the
/// machine's has not reached.
async fn clock(store: &SqliteStore, scale: u32) -> Result<Clock, StartError> {
    let system = Clock::system();
    let now = system.now();
    let newest = executions::newest_time(store).await?.unwrap_or(now);
    Ok(if scale <= 1 && newest <= now { system } else { Clock::scaled(newest.max(now), scale) })
}

pub(crate) async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let fail = |source| StartError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(fail)?;
    let bound = listener.local_addr().map_err(fail)?;
    Ok((listener, bound))
}

/// A port without a token for isolated agents, where the stack's own asks for one.
async fn listen_inside(config: &Config) -> Result<Option<(TcpListener, SocketAddr)>, StartError> {
    match config.isolation {
        Isolation::Processes { .. } if !config.listen.ip().is_loopback() => {
            Ok(Some(listen((Ipv4Addr::LOCALHOST, 0).into()).await?))
        }
        _ => Ok(None),
    }
}

pub(crate) async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let served = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned());
    if let Err(error) = served.await {
        tracing::error!(%error, "The endpoint stopped serving.");
    }
}

fn agents(
    config: &Config,
    progress: &Broadcast,
    store: &SqliteStore,
    clock: &Clock,
    aws: &SdkConfig,
    address: SocketAddr,
) -> Result<Agents, StartError> {
    match &config.isolation {
        Isolation::None => {
            let host = agent::host::Config {
                agents: Arc::clone(&config.agents),
                callbacks: aws_sdk_sfn::Client::new(aws),
                clock: clock.clone(),
                servers: config.servers.clone(),
                timeouts: config.timeouts,
                models: config.models.clone(),
                defaults: config.defaults.clone(),
                progress: progress.clone(),
            };
            Ok(Agents::Here(Host::new(store.clone(), host)))
        }
        Isolation::Processes { program, environment } => {
            let program = match program {
                Some(program) => program.clone(),
                None => beside_this("agent")?,
            };
            let mut environment = environment.clone();
            environment.extend(agent_environment(address));
            let time_scale = config.time_scale.max(1);
            let (clock, progress) = (clock.clone(), progress.clone());
            let settings = Settings { program, environment, clock, time_scale, progress };
            Ok(Agents::Isolated(Isolated::new(settings)?))
        }
    }
}

fn beside_this(name: &str) -> Result<PathBuf, StartError> {
    let this = std::env::current_exe()
        .map_err(|source| StartError::Folder { path: PathBuf::from(name), source })?;
    Ok(this.with_file_name(name))
}

/// What an isolated agent finds where a container would.
fn agent_environment(address: SocketAddr) -> Vec<(String, String)> {
    [
        (env::JOURNAL_TABLE_NAME, dynamodb::TABLE_NAME),
        (env::STATE_MACHINE_ARN, names::STATE_MACHINE_ARN),
        (env::AGENT_RUNTIME_ARN, names::RUNTIME_ARN),
        ("AWS_ENDPOINT_URL", &format!("http://{address}")),
        ("AWS_REGION", names::REGION),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

/// The Lambda functions, in this process.
fn functions(store: &SqliteStore, clock: &Clock, aws: &SdkConfig, admission: Limits) -> Functions {
    let runtime = aws_sdk_bedrockagentcore::Client::new(aws);
    let arn = names::RUNTIME_ARN.to_owned();
    let invoker = Invoker::new(
        store.clone(),
        invoker::Runtime { client: runtime.clone(), arn: arn.clone(), qualifier: None },
        clock.clone(),
    )
    .with_limits(admission);
    let poller = Poller::new(
        store.clone(),
        aws_sdk_sfn::Client::new(aws),
        poller::Runtime { client: runtime, arn, qualifier: None },
        clock.clone(),
    );
    Functions::default()
        .with(names::INVOKER_ARN, move |payload| {
            let invoker = invoker.clone();
            async move {
                let reply = invoker.handle(functions::request(payload)?).await;
                functions::reply(&reply.map_err(|e| FunctionError::new(e.name(), chain(&e)))?)
            }
        })
        .with(names::POLLER_ARN, move |payload| {
            let poller = poller.clone();
            async move {
                let reply = poller.serve(payload).await;
                reply.map_err(|e| FunctionError::new(e.name(), chain(&e)))
            }
        })
}

fn watchdog(store: &SqliteStore, clock: &Clock, aws: &SdkConfig) -> Watchdog<SqliteStore> {
    let cloud = watchdog::Cloud {
        executions: aws_sdk_sfn::Client::new(aws),
        runtime: aws_sdk_bedrockagentcore::Client::new(aws),
        runtime_arn: names::RUNTIME_ARN.to_owned(),
        qualifier: None,
    };
    Watchdog::new(store.clone(), cloud, clock.clone())
}

fn chain(error: &dyn std::error::Error) -> String {
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
    ];
    match &config.workflow {
        None => state_machine::with_substitutions(&values),
        Some(text) => values
            .iter()
            .fold(text.clone(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value)),
    }
}
