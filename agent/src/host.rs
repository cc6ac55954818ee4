//! The entrypoint: journals a request, validates it, and claims the session or declines with a reason.

mod aging;
mod halts;
mod responses;
mod version_of;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_sdk_sfn::Client;
use graph::agent::{Agent, Opening};
use graph::request::Log;
use graph::run::Run;
use journal::announce::Announcer;
use journal::chain::{AppendError, Author, Head, append};
use journal::clock::{Clock, Hlc};
use journal::error_message::ErrorMessage;
use journal::event::{About, Draft, EventStatus, Writer};
use journal::id::{Runner, SessionId};
use journal::lease::{Holder, Lease};
use journal::limits::END_COLLISIONS_MAX;
use journal::read::resolved_steps;
use journal::receipt;
use journal::step::{Step, StepBody};
use journal::store::Store;
use journal::version;
use serde::Serialize;
use serde_json::{Value, json};
use telemetry::export;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use workflow::contract::{AgentRequest, InvokeOutcome};
use workflow::trace::Trace;

use responses::{declined, full, no_receipt, outcome, refusal, unclear};

use crate::driver::Driver;
use crate::model::Models;
use crate::progress::Broadcast;
use crate::session::ClaimedSession;
use crate::settings::{Defaults, settings};
use crate::task::work;
use crate::tool::{Servers, Timeouts, Toolbox};
use crate::trace::{Spans, log_span};

/// Most concurrent sessions of one host; it answers further requests with status 503.
pub const SESSIONS_MAX: usize = 10_000;

/// Dependencies of a host besides its store.
#[derive(Clone, Debug)]
pub struct Config {
    /// The agents that triggers may name.
    pub agents: Arc<[Agent]>,
    /// The client of the state machine's callbacks.
    pub callbacks: Client,
    pub clock: Clock,
    pub servers: Servers,
    /// For connecting to the servers.
    pub timeouts: Timeouts,
    pub models: Models,
    /// Settings that apply when a trigger sets none.
    pub defaults: Defaults,
    /// The channel of the tool calls' progress.
    pub progress: Broadcast,
}

/// The host of the agents' sessions. Clones share its state.
#[derive(Clone, Debug)]
pub struct Host<S> {
    shared: Arc<Shared<S>>,
}

#[derive(Debug)]
struct Shared<S> {
    store: S,
    config: Config,
    tasks: Mutex<Tasks>,
    pulse: Arc<Pulse>,
    /// Set before its sessions are handed over.
    hands_over: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Tasks {
    set: JoinSet<()>,
    running: BTreeMap<SessionId, (Runner, CancellationToken)>,
    closed: bool,
}

/// The answer to `/ping`, kept outside the sessions' runtime, which may be blocked.
#[derive(Debug, Default)]
pub struct Pulse {
    /// When the status last changed, in seconds since 1970: negative while healthy, positive while busy,
    /// so that one atomic holds both.
    changed_at: AtomicI64,
}

/// The `AgentCore` health contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Ping {
    /// `Healthy` while idle, `HealthyBusy` while a session runs.
    pub status: &'static str,
    /// When the status last changed, in whole seconds since 1970. The runtime measures idle time with
    /// it, so it must not change while the status stays the same.
    pub time_of_last_update: i64,
}

/// A response of `/invocations`.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    pub status: u16,
    pub body: Value,
}

impl Pulse {
    fn set(&self, busy: bool, seconds: i64) {
        let before = self.changed_at.load(Ordering::Acquire);
        if (before > 0) != busy || before == 0 {
            self.changed_at.store(if busy { seconds } else { -seconds }, Ordering::Release);
        }
    }

    /// The current answer to `/ping`.
    pub fn ping(&self) -> Ping {
        let changed_at = self.changed_at.load(Ordering::Acquire);
        let status = if changed_at > 0 { "HealthyBusy" } else { "Healthy" };
        Ping { status, time_of_last_update: changed_at.abs() }
    }
}

/// Why an invocation did not lead to a claim.
enum Declined {
    /// An outcome that is not an error.
    As(InvokeOutcome),
    /// The request can never be served.
    Refused(ErrorMessage),
    /// The journal did not answer: a claim may or may not exist.
    Unclear(journal::store::Error),
    /// The host is full. The state machine tries again when no heartbeat appears.
    Full,
}

impl From<journal::store::Error> for Declined {
    fn from(error: journal::store::Error) -> Self {
        Self::Unclear(error)
    }
}

impl<S: Store> Host<S> {
    /// Creates a host that journals to this store.
    pub fn new(store: S, config: Config) -> Self {
        let pulse = Arc::new(Pulse::default());
        pulse.set(false, config.clock.now().seconds());
        let (tasks, hands_over) = (Mutex::default(), Arc::default());
        Self { shared: Arc::new(Shared { store, config, tasks, pulse, hands_over }) }
    }

    /// The pulse, for the server of `/ping`.
    pub fn pulse(&self) -> Arc<Pulse> {
        Arc::clone(&self.shared.pulse)
    }

    /// The channel of the tool calls' progress.
    pub fn progress(&self) -> &Broadcast {
        &self.shared.config.progress
    }

    /// Serves one invocation. Returns once the session is claimed or the claim is declined.
    pub async fn invoke(&self, body: &[u8]) -> Response {
        let request: AgentRequest = match serde_json::from_slice(body) {
            Ok(request) => request,
            Err(error) => {
                let message =
                    ErrorMessage::new("EntrypointError", "InvalidRequest", &error.to_string());
                return refusal(
                    &message,
                    &Hlc::new(self.shared.config.clock.clone(), Default::default()),
                );
            }
        };
        let hlc = Arc::new(Hlc::new(self.shared.config.clock.clone(), request.seen));
        let announcer = Announcer {
            store: &self.shared.store,
            hlc: &hlc,
            session: &request.session_id,
            writer: Writer::Agent,
            expires_at: request.expires_at,
        };
        let about = About::Attempt(request.attempt);
        // Durable before the claim, so that every claim in the journal has its cause.
        if let Err(error) =
            announcer.announce_once(&Draft::new(EventStatus::AgentEntrypointStarted, about)).await
        {
            return unclear(&error);
        }
        let trace = Trace::of(&request.session_id, request.trigger.traceparent);
        let begun_at = hlc.clock().now();
        let claimed = self.claim(&request, &hlc, &announcer).instrument(log_span(&trace)).await;
        if export::is_on() {
            let parent = trace.invocation(request.attempt);
            let span = trace.leaf("agent.entrypoint", begun_at.nanos(), parent);
            let span = span.lasting(begun_at.nanos(), hlc.clock().now().nanos());
            export::record(match &claimed {
                Err(Declined::Refused(_) | Declined::Unclear(_)) => span.failing("declined"),
                _ => span,
            });
        }
        match claimed {
            Ok(()) => outcome(InvokeOutcome::Accepted, &hlc),
            Err(Declined::As(other)) => outcome(other, &hlc),
            Err(Declined::Unclear(error)) => unclear(&error),
            Err(Declined::Full) => full(),
            Err(Declined::Refused(message)) => {
                let failed = Draft::new(EventStatus::AgentEntrypointFailed, about);
                if let Err(error) =
                    announcer.announce_once(&failed.with_error(Some(message.clone()))).await
                {
                    tracing::warn!(session_id = %request.session_id, %error, "Cannot journal a refusal.");
                }
                refusal(&message, &hlc)
            }
        }
    }

    async fn claim(
        &self,
        request: &AgentRequest,
        hlc: &Arc<Hlc>,
        announcer: &Announcer<'_, S>,
    ) -> Result<(), Declined> {
        let steps = resolved_steps(&self.shared.store, &request.session_id).await?;
        may_claim(steps.last(), request.supersedes)?;
        let forged = receipt::missing(&self.shared.store, &request.session_id, &steps).await?;
        forged.map_or(Ok(()), |step| Err(no_receipt(step)))?;
        let agent = self.agent(request, &steps, announcer).await?;
        let mut opening = Opening {
            input: request.trigger.input.clone(),
            settings: self.shared.config.servers.guard(settings(
                &request.session_id,
                &request.trigger,
                agent,
                &self.shared.config.defaults,
            )),
        };
        (agent.profile().mask)(&opening.settings.options, &mut opening.input);
        if steps.is_empty() {
            agent.start(&opening.input, &opening.settings).map_err(|error| declined(&error))?;
        }
        self.decline_if_halted(request, agent, hlc).await?;
        // Does not wait for an older task of this session that is still stopping: the claim fences it.
        if self.takes_no_more() {
            return Err(Declined::Full);
        }
        let author = Author {
            session: request.session_id.clone(),
            runner: Runner::fresh(Writer::Agent.as_str()),
            expires_at: request.expires_at,
        };
        let session = ClaimedSession {
            store: self.shared.store.clone(),
            hlc: Arc::clone(hlc),
            author,
            epoch: request.supersedes + 1,
            agent: agent.name(),
        };
        let steps = self.write_claim(&session, request, agent, &opening, steps).await?;
        let trace = Trace::of(&request.session_id, request.trigger.traceparent);
        self.begin(session, agent, &opening, &steps, trace).await
    }

    /// Appends the claim after `steps`, unless the newest step forbids it. Returns all steps, the claim last.
    async fn write_claim(
        &self,
        session: &ClaimedSession<S>,
        request: &AgentRequest,
        agent: &Agent,
        opening: &Opening,
        mut steps: Vec<Step<Value>>,
    ) -> Result<Vec<Step<Value>>, Declined> {
        for _ in 0..END_COLLISIONS_MAX {
            let newest = steps.last();
            may_claim(newest, request.supersedes)?;
            let head = newest.map_or_else(Head::genesis, Head::after);
            let body = StepBody::Claim {
                supersedes: request.supersedes,
                agent: agent.name().to_owned(),
                graph_version: agent.version().to_owned(),
                input: newest.is_none().then(|| opening.payload()),
            };
            let claimed =
                append(&session.store, &session.hlc, &session.author, &head, session.epoch, body)
                    .await;
            match claimed {
                Ok(step) => {
                    steps.push(step);
                    return Ok(steps);
                }
                // The next invocation goes on with the other version.
                Err(AppendError::Collision(theirs)) if version::is_move(&theirs) => break,
                Err(AppendError::Collision(theirs)) => steps.push(*theirs),
                Err(AppendError::Store(error)) => return Err(Declined::Unclear(error)),
                Err(error) => {
                    let message = ErrorMessage::new("InputError", "TooLarge", &error.to_string());
                    return Err(Declined::Refused(message));
                }
            }
        }
        Err(Declined::As(InvokeOutcome::AlreadyRunning))
    }

    /// Announces the claim and starts the session's background task.
    async fn begin(
        &self,
        session: ClaimedSession<S>,
        agent: &Agent,
        opening: &Opening,
        steps: &[Step<Value>],
        trace: Trace,
    ) -> Result<(), Declined> {
        let claim = steps.last().map_or(1, |step| step.seq);
        let lease = Lease {
            epoch: session.epoch,
            holder: Holder::Runner(session.author.runner.clone()),
            heartbeat: 1,
            heartbeat_at: session.hlc.clock().wall(),
        };
        let (id, expires_at) = (&session.author.session, session.author.expires_at);
        match lease.write(&session.store, id, expires_at).await {
            Ok(true) => {}
            // Another runner claimed meanwhile, so this one writes nothing more.
            Ok(false) => return Err(Declined::As(InvokeOutcome::AlreadyRunning)),
            Err(error) => {
                tracing::warn!(session_id = %id, %error, "Cannot write the first heartbeat.");
            }
        }
        let resumed = steps.iter().any(|step| matches!(step.body, StepBody::Ask { .. }));
        let status = if resumed {
            EventStatus::AgentBackgroundTaskResumed
        } else {
            EventStatus::AgentBackgroundTaskStarted
        };
        let detail = json!({ "agent": agent.name(), "epoch": session.epoch, "runner": session.author.runner.as_str() });
        let draft = Draft::new(status, About::Step(claim)).with_detail(detail);
        if let Err(error) =
            session.announcer().announce_within(&draft, workflow::limits::ANNOUNCE_TIMEOUT).await
        {
            tracing::warn!(session_id = %session.author.session, %error, "Cannot journal the task's start.");
        }
        self.spawn(session, agent, opening, steps, lease, trace);
        Ok(())
    }

    fn spawn(
        &self,
        session: ClaimedSession<S>,
        agent: &Agent,
        opening: &Opening,
        steps: &[Step<Value>],
        lease: Lease,
        trace: Trace,
    ) {
        let run = agent.resume(steps);
        let stop = CancellationToken::new();
        let config = &self.shared.config;
        let input = steps
            .first()
            .and_then(|step| Opening::of(step).ok())
            .map_or_else(|| opening.input.clone(), |first| first.input);
        let toolbox = Arc::new(
            Toolbox::new(
                session.clone(),
                config.servers.clone(),
                config.timeouts,
                config.models.clone(),
                &config.progress,
                &input,
            )
            .with_critical(agent.critical()),
        );
        let models = config.models.clone();
        let has_model = run.as_ref().is_ok_and(|run| run.named_model().is_some());
        let requests = has_model.then(|| Log::of(steps));
        let log = log_span(&trace);
        let (spans, profile) = (Spans::of(trace, agent, steps), agent.profile());
        let head = steps.last().map_or_else(Head::genesis, Head::after);
        let tool_timeout_s = run.as_ref().map_or(agent.tool_timeout_s(), Run::tool_timeout_s);
        let tool_timeout = Duration::from_secs(u64::from(tool_timeout_s));
        let id = session.author.session.clone();
        let runner = session.author.runner.clone();
        let callbacks = config.callbacks.clone();
        let host = self.clone();
        let task = {
            let (id, runner, stop) = (id.clone(), runner.clone(), stop.clone());
            let hands_over = Arc::clone(&self.shared.hands_over);
            async move {
                match run {
                    Ok(run) => {
                        let requests = requests.unwrap_or_default();
                        let driver = Driver {
                            session,
                            head,
                            run,
                            requests,
                            toolbox,
                            models,
                            tool_timeout,
                            stop,
                            hands_over,
                            spans,
                            profile,
                            local: crate::program::Local::default(),
                        };
                        work(driver, callbacks, lease).await;
                    }
                    Err(error) => crate::task::fail(session, error.finish(), callbacks).await,
                }
                host.finished(&id, &runner);
            }
        };
        let mut tasks = self.tasks();
        tasks.running.insert(id, (runner, stop));
        tasks.set.spawn(task.instrument(log));
        self.shared.pulse.set(true, config.clock.now().seconds());
    }

    fn finished(&self, session: &SessionId, runner: &Runner) {
        let mut tasks = self.tasks();
        // Frees the memory of finished tasks: after a burst the next task may start much later.
        while tasks.set.try_join_next().is_some() {}
        if tasks.running.get(session).is_some_and(|(current, _)| current == runner) {
            tasks.running.remove(session);
        }
        if tasks.running.is_empty() {
            self.shared.pulse.set(false, self.shared.config.clock.now().seconds());
        }
    }

    fn takes_no_more(&self) -> bool {
        let tasks = self.tasks();
        tasks.closed || tasks.running.len() >= SESSIONS_MAX
    }

    /// Whether this host runs the session.
    pub fn has(&self, session: &SessionId) -> bool {
        self.tasks().running.contains_key(session)
    }

    /// Asks a session's task to stop. Returns whether there was one.
    pub fn stop_session(&self, session: &SessionId) -> bool {
        let tasks = self.tasks();
        let found = tasks.running.get(session);
        if let Some((_, stop)) = found {
            stop.cancel();
        }
        found.is_some()
    }

    /// Declines new sessions, asks all tasks to stop, and waits for them.
    pub async fn shutdown(&self) {
        let mut set = {
            let mut tasks = self.tasks();
            tasks.closed = true;
            for (_, stop) in tasks.running.values() {
                stop.cancel();
            }
            std::mem::take(&mut tasks.set)
        };
        while set.join_next().await.is_some() {}
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.shared.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a runner may claim after the newest step.
fn may_claim(newest: Option<&Step<Value>>, supersedes: u32) -> Result<(), Declined> {
    let outcome = match newest {
        None if supersedes == 0 => return Ok(()),
        None => InvokeOutcome::AlreadyRunning,
        Some(step) => match &step.body {
            StepBody::End { .. } => InvokeOutcome::Ended,
            StepBody::Ask { .. } => InvokeOutcome::Waiting,
            _ if step.epoch == supersedes => return Ok(()),
            _ => InvokeOutcome::AlreadyRunning,
        },
    };
    Err(Declined::As(outcome))
}
