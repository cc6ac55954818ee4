//! The simulated cloud: its processes, and the routing of messages between them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent::host::{Config, Host};
use agent::model::Models;
use agent::settings::Defaults;
use agent::tool::{Servers, Timeouts};
use graph::profile::Limits;
use invoker::Invoker;
use invoker::admission::Rules;
use journal::clock::{Clock, Stamp};
use journal::id::SessionId;
use poller::Poller;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use watchdog::Watchdog;
use workflow::limits::{HAND_OVER_AFTER, HOST_LIFETIME_MAX};

use crate::backing_store::BackingStore;
use crate::crash_points::Disturbance;
use crate::execution::Command;
use crate::faults::{Chance, Faults};
use crate::functions::{Container, Function};
use crate::network::{Answer, Message, Network};
use crate::process::Process;
use crate::scenario::Scenario;
use crate::store::{Disk, SimStore};
use crate::tasks::Tasks;

/// Start of the simulation: 2026-11-21T10:30:00Z.
pub const ORIGIN: Stamp = Stamp::from_millis(1_795_257_000_000);

/// Largest deviation of a clock from the true one.
const SKEW: Duration = Duration::from_secs(300);

/// How long a container may run after SIGTERM.
///
/// Source: AWS, "AgentCore Runtime", session lifecycle: SIGTERM, then SIGKILL.
const TERM: Duration = Duration::from_secs(15);

/// Longest start of an agent's process.
const COLD: Duration = Duration::from_secs(120);

/// The parameters of a world.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    pub(crate) faults: Faults,
    pub(crate) scenario: Scenario,
    /// Start of the true clock.
    pub(crate) begins_at: Stamp,
    pub(crate) backing_store: BackingStore,
    /// The single fault in addition to the random ones.
    pub(crate) disturbance: Option<Disturbance>,
}

impl Setup {
    pub(crate) fn new(seed: u64, faults: Faults, scenario: Scenario) -> Self {
        let (backing_store, disturbance) = (BackingStore::memory(), None);
        Self { seed, faults, scenario, begins_at: ORIGIN, backing_store, disturbance }
    }
}

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct World(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    faults: Faults,
    scenario: Scenario,
    restart_after: Option<usize>,
    chance: Arc<Chance>,
    clock: Clock,
    disk: Arc<Disk>,
    tasks: Tasks,
    state: Mutex<State>,
    processes: AtomicU32,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Container>,
    agents: BTreeMap<SessionId, Agent>,
    executions: BTreeMap<String, mpsc::UnboundedSender<Command>>,
    /// Stopped executions, with the time.
    stopped: BTreeMap<String, Stamp>,
}

/// An agent's container; `AgentCore` keeps one per runtime session.
#[derive(Clone, Debug)]
struct Agent {
    process: Arc<Process>,
    host: Host<SimStore>,
    ready_at: Instant,
}

impl World {
    /// A world with these faults and this seed. Its time is tokio's, which must be paused.
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self::of(Setup::new(seed, faults, Scenario::of_detail(json!({}))))
    }

    pub(crate) fn of(setup: Setup) -> Self {
        let Setup { seed, faults, scenario, begins_at, backing_store, disturbance } = setup;
        let chance = Arc::new(Chance::new(seed));
        let clock = Clock::scaled(begins_at, 1);
        let tasks = Tasks::default();
        let (point, restart_after) = match disturbance {
            None => (None, None),
            Some(Disturbance::Write(point)) => (Some(point), None),
            Some(Disturbance::Restart { after }) => (None, Some(after)),
        };
        let disk = Disk::new(Arc::clone(&chance), faults, clock.clone(), tasks.clone());
        let disk = disk.with(backing_store, point);
        Self(Arc::new(Inner {
            faults,
            scenario,
            restart_after,
            chance,
            clock,
            disk: Arc::new(disk),
            tasks,
            state: Mutex::default(),
            processes: AtomicU32::new(0),
        }))
    }

    pub fn faults(&self) -> Faults {
        self.0.faults
    }

    /// The addition to the history after which the state machine's process dies.
    pub(crate) fn restart_after(&self) -> Option<usize> {
        self.0.restart_after
    }

    pub fn chance(&self) -> &Chance {
        &self.0.chance
    }

    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub fn disk(&self) -> &Arc<Disk> {
        &self.0.disk
    }

    pub fn tasks(&self) -> &Tasks {
        &self.0.tasks
    }

    /// A new process on a machine whose clock may be wrong.
    pub fn process(&self, role: &str) -> Arc<Process> {
        let number = self.0.processes.fetch_add(1, Ordering::Relaxed);
        Arc::new(Process::new(format!("{role}-{number}"), self.skewed_clock()))
    }

    pub fn skewed_clock(&self) -> Clock {
        if !self.chance().happens(self.faults().skew) {
            return self.0.clock.clone();
        }
        let skew = self.chance().between(Duration::ZERO, SKEW * 2).as_nanos();
        let skew = i64::try_from(skew).unwrap_or(0) - i64::try_from(SKEW.as_nanos()).unwrap_or(0);
        self.0.clock.ahead_by(skew)
    }

    /// An idle container of a function, or a new one.
    pub(crate) fn container(&self, function: Function) -> Container {
        let idle = {
            let mut state = self.state();
            let place = state.idle.iter().position(|c| c.function == function);
            place.map(|place| state.idle.remove(place))
        };
        idle.unwrap_or_else(|| self.start_function(function))
    }

    /// Keeps a container for the next call.
    pub(crate) fn give_back(&self, container: Container) {
        if !container.process.is_dead() {
            self.state().idle.push(container);
        }
    }

    fn start_function(&self, function: Function) -> Container {
        let process = self.process(function.name());
        let store = SimStore::new(Arc::clone(self.disk()), Arc::clone(&process));
        let network = Network::new(self.clone(), Arc::clone(&process));
        let (clock, runtime) = (process.clock.clone(), network.runtime());
        match function {
            Function::Invoker => {
                let agents = Arc::clone(&self.0.scenario.agents);
                let rules = Rules { agents, limits: Limits::default() };
                let invoker = Invoker::new(store, runtime, clock).with_rules(rules);
                Container::invoker(process, invoker)
            }
            Function::Poller => {
                let poller = Poller::new(store, network.callbacks(), runtime, clock);
                Container::poller(process, poller)
            }
        }
    }

    pub(crate) fn watchdog(&self, process: &Arc<Process>) -> Watchdog<SimStore> {
        let store = SimStore::new(Arc::clone(self.disk()), Arc::clone(process));
        let network = Network::new(self.clone(), Arc::clone(process));
        let cloud = watchdog::Cloud { executions: network.callbacks(), runtime: network.runtime() };
        Watchdog::new(store, cloud, process.clock.clone())
    }

    /// The reply of a message's receiver.
    pub(crate) async fn serve(&self, message: Message) -> Answer {
        match message {
            Message::Invoke { session, body } => self.invoke(session, body).await,
            Message::Stop { session } => self.stop(&session),
            Message::Callback { token, output } => self.callback(token, output).await,
            Message::Describe { arn } => self.describe(&arn),
        }
    }

    /// Records that an execution was stopped: it receives no more callbacks.
    pub(crate) fn stopped(&self, arn: &str) {
        let now = self.0.clock.now();
        let mut state = self.state();
        state.executions.remove(arn);
        state.stopped.insert(arn.to_owned(), now);
    }

    pub(crate) fn was_stopped(&self) -> bool {
        !self.state().stopped.is_empty()
    }

    fn describe(&self, arn: &str) -> Answer {
        let state = self.state();
        let (status, stopped_at) = match state.stopped.get(arn) {
            Some(at) => ("ABORTED", Some(at.seconds())),
            None if state.executions.contains_key(arn) => ("RUNNING", None),
            None => return Answer::error(400, "ExecutionDoesNotExist", "no such execution"),
        };
        let mut answer = json!({
            "executionArn": arn, "stateMachineArn": "sim", "status": status,
            "startDate": ORIGIN.seconds(),
        });
        if let Some(at) = stopped_at {
            answer["stopDate"] = json!(at);
        }
        Answer::ok(answer)
    }

    async fn invoke(&self, session: SessionId, body: Vec<u8>) -> Answer {
        let agent = self.agent(&session);
        let served = async {
            tokio::time::sleep_until(agent.ready_at).await;
            agent.host.invoke(&body).await
        };
        // A process that dies sends no reply; its work is dropped with it.
        let response = tokio::select! {
            biased;
            () = agent.process.death() => None,
            response = served => Some(response),
        };
        match response {
            Some(response) if response.status == 200 => Answer::ok(response.body),
            Some(response) => {
                let text =
                    format!("Received error ({}) from runtime: {}", response.status, response.body);
                Answer::error(424, "RuntimeClientError", &text)
            }
            None => Answer::error(424, "RuntimeClientError", "the container ended"),
        }
    }

    fn agent(&self, session: &SessionId) -> Agent {
        let running = self.state().agents.get(session).cloned();
        if let Some(agent) = running.filter(|agent| !agent.process.is_dead()) {
            return agent;
        }
        let process = self.process("agent");
        let store = SimStore::new(Arc::clone(self.disk()), Arc::clone(&process));
        let network = Network::new(self.clone(), Arc::clone(&process));
        let scenario = &self.0.scenario;
        let servers = scenario.servers.iter().map(|server| server.of(&process, self.disk()));
        let config = Config {
            agents: Arc::clone(&scenario.agents),
            callbacks: network.callbacks(),
            progress: Default::default(),
            clock: process.clock.clone(),
            servers: servers.fold(Servers::default(), Servers::with),
            timeouts: Timeouts { connect: COLD, init: COLD },
            models: Models::default(),
            defaults: Defaults::default(),
        };
        let cold =
            if self.chance().happens(self.faults().cold) { COLD } else { Duration::from_secs(3) };
        let agent = Agent {
            host: Host::new(store, config),
            process,
            ready_at: Instant::now() + self.chance().between(Duration::ZERO, cold),
        };
        self.trouble(&agent.process);
        self.age(&agent);
        self.state().agents.insert(session.clone(), agent.clone());
        agent
    }

    /// Ends an agent's process at the end of its lifetime. It hands its session over before.
    fn age(&self, agent: &Agent) {
        let agent = agent.clone();
        self.tasks().spawn(async move {
            let living = async {
                agent.host.outlives().await;
                agent.host.hand_over().await;
                tokio::time::sleep(HOST_LIFETIME_MAX - HAND_OVER_AFTER).await;
                agent.process.kill();
            };
            tokio::select! {
                () = living => {}
                () = agent.process.death() => {}
            }
        });
    }

    /// Decides the faults of an agent's process.
    fn trouble(&self, process: &Arc<Process>) {
        let chance = self.chance();
        if chance.happens(self.faults().kill) {
            let after = chance.between(Duration::ZERO, Duration::from_secs(30));
            let process = Arc::clone(process);
            self.tasks().spawn(async move {
                tokio::time::sleep(after).await;
                process.kill();
            });
        }
        if chance.happens(self.faults().stall) {
            let after = chance.between(Duration::ZERO, Duration::from_secs(6));
            let by = chance.between(Duration::from_secs(5), Duration::from_secs(240));
            let process = Arc::clone(process);
            self.tasks().spawn(async move {
                tokio::time::sleep(after).await;
                process.stall(by);
            });
        }
    }

    fn stop(&self, session: &SessionId) -> Answer {
        let agent = self.state().agents.remove(session);
        let Some(agent) = agent.filter(|agent| !agent.process.is_dead()) else {
            return Answer::error(404, "ResourceNotFoundException", "no such runtime session");
        };
        agent.host.stop_session(session);
        self.tasks().spawn(async move {
            tokio::time::sleep(TERM).await;
            agent.process.kill();
        });
        Answer::ok(json!({ "runtimeSessionId": session, "statusCode": 200 }))
    }

    pub(crate) async fn callback(&self, token: String, output: Option<Value>) -> Answer {
        let gone = || Answer::error(400, "TaskTimedOut", "the task has ended or timed out");
        let Some(locator) = asl::token::locate(&token) else {
            return Answer::error(400, "InvalidToken", "not a token");
        };
        let inbox = self.state().executions.get(&locator.execution_arn).cloned();
        let Some(inbox) = inbox else { return gone() };
        let (reply, answered) = oneshot::channel();
        if inbox.send(Command { token, output, reply }).is_err() {
            return gone();
        }
        match answered.await {
            Ok(Ok(())) => Answer::ok(json!({})),
            _ => gone(),
        }
    }

    /// The channel for an execution's callbacks.
    pub(crate) fn inbox(&self, arn: &str) -> mpsc::UnboundedReceiver<Command> {
        let (sender, inbox) = mpsc::unbounded_channel();
        self.state().executions.insert(arn.to_owned(), sender);
        inbox
    }

    /// Ends and drops everything.
    pub(crate) fn end(&self) {
        self.tasks().abort();
        let state = std::mem::take(&mut *self.state());
        drop(state);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
