//! Each session's agent in a process of its own, as `AgentCore` runs it in a container.
//!
//! A session has a *slot*: a task that starts the process, waits for its first `/ping`, and then pings
//! it every two seconds. The task ends the process when it is idle, at the end of its lifetime, when it
//! stops responding, or on request. Then the slot is free, and the next invocation starts a new process.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent::progress::Broadcast;
use axum::body::Bytes;
use guard::Secret;
use journal::clock::{Clock, Stamp};
use journal::id::SessionId;
use serde::Deserialize;
use tokio::process::Child;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use workflow::env;
use workflow::limits::HOST_LIFETIME_MAX;

use super::{Answer, Unanswered, process, progress};
use crate::recover::Exits;
use crate::restart::contained;

/// Most processes at once.
pub const PROCESSES_MAX: usize = 64;

/// How long a process may take to answer its first ping, by the machine's clock.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Ping interval while a process starts, by the machine's clock.
const START_PING_INTERVAL: Duration = Duration::from_millis(20);

/// Ping interval. Source: `notes/agentcore.md`.
const PING_INTERVAL: Duration = Duration::from_secs(2);

/// Shortest ping interval, however fast the stack's clock runs, by the machine's clock.
const PING_INTERVAL_MIN: Duration = Duration::from_millis(50);

/// Timeout of one ping, by the machine's clock.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Unanswered pings in a row after which a process is ended.
const SILENT_PINGS_MAX: u32 = 15;

/// Idle timeout of a process. Source: AWS, idle timeout, default.
const IDLE_MAX: Duration = Duration::from_secs(900);

/// Timeout of one invocation, by the machine's clock. Source: AWS, synchronous request.
const INVOCATION_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Largest answer of an invocation, in bytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Settings of isolated agents.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The binary `agent`, or another with the same program.
    pub program: PathBuf,
    /// The arguments with which it is that program.
    pub arguments: Vec<String>,
    /// The environment, besides what the host sets.
    pub environment: Vec<(String, String)>,
    /// The token between the stack and its agents' processes; not a part of `environment`, which may be
    /// logged.
    pub token: Secret,
    pub clock: Clock,
    /// The speed of the stack's clock, as a multiple of the machine's.
    pub time_scale: u32,
    /// Receives the progress of their tools.
    pub progress: Broadcast,
    /// Takes the sessions of exited processes from them; `None` if the runtime does not know the journal.
    pub exits: Option<Exits>,
}

#[derive(Clone, Debug)]
pub struct Isolated {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    http: reqwest::Client,
    slots: Mutex<BTreeMap<SessionId, Slot>>,
    keepers: Mutex<JoinSet<()>>,
    stopping: CancellationToken,
}

#[derive(Clone, Debug)]
struct Slot {
    state: watch::Receiver<State>,
    stop: CancellationToken,
    activity: Arc<Activity>,
}

/// What keeps a process busy, besides its own status.
#[derive(Debug)]
struct Activity {
    /// Invocations without an answer yet.
    open: AtomicUsize,
    /// When the newest invocation began or ended, in nanoseconds since 1970.
    at: AtomicI64,
}

/// RAII guard of an open invocation; counts it down on drop.
struct Invocation {
    activity: Arc<Activity>,
    clock: Clock,
}

impl Activity {
    fn mark(&self, clock: &Clock) {
        self.at.store(clock.now().nanos(), Ordering::Release);
    }
}

impl Invocation {
    fn begin(activity: &Arc<Activity>, clock: &Clock) -> Self {
        activity.open.fetch_add(1, Ordering::AcqRel);
        activity.mark(clock);
        Self { activity: Arc::clone(activity), clock: clock.clone() }
    }
}

impl Drop for Invocation {
    fn drop(&mut self) {
        self.activity.mark(&self.clock);
        self.activity.open.fetch_sub(1, Ordering::AcqRel);
    }
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    Starting,
    Ready(u16),
    /// The reason, if it is worth reporting.
    Gone(String),
}

#[derive(Deserialize)]
struct Ping {
    status: String,
    time_of_last_update: i64,
}

impl Isolated {
    /// Creates a host without processes.
    ///
    /// # Errors
    /// If no HTTP client can be created.
    pub fn new(settings: Settings) -> Result<Self, reqwest::Error> {
        // Loopback needs neither a proxy nor DNS.
        let http = reqwest::Client::builder().no_proxy().build()?;
        let shared = Shared {
            // A step of the wall clock makes no process idle or old.
            settings: Settings { clock: settings.clock.even(), ..settings },
            http,
            slots: Mutex::default(),
            keepers: Mutex::default(),
            stopping: CancellationToken::new(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Forwards an invocation to the session's process; starts a process if the session has none.
    pub(super) async fn invoke(
        &self,
        session: &SessionId,
        body: Bytes,
    ) -> Result<Answer, Unanswered> {
        let (port, _invocation) = self.ready(session).await?;
        let sent = self
            .shared
            .http
            .post(format!("http://127.0.0.1:{port}/invocations"))
            .bearer_auth(self.shared.settings.token.reveal())
            .header("content-type", "application/json")
            .header("x-amzn-bedrock-agentcore-runtime-session-id", session.as_str())
            .timeout(INVOCATION_TIMEOUT)
            .body(body)
            .send()
            .await;
        let response = match sent {
            Ok(response) => response,
            Err(error) if error.is_connect() => {
                return Err(Unanswered::NotStarted("the agent's process has exited".to_owned()));
            }
            Err(error) => return Err(Unanswered::Lost(error.to_string())),
        };
        let status = response.status().as_u16();
        let body = response.bytes().await.map_err(|error| Unanswered::Lost(error.to_string()))?;
        if body.len() > ANSWER_BYTES_MAX {
            return Err(Unanswered::Lost(format!(
                "its answer of {} bytes is too large",
                body.len()
            )));
        }
        Ok(Answer { status, body: body.to_vec() })
    }

    /// Whether a session has a process.
    pub(super) fn has(&self, session: &SessionId) -> bool {
        self.slots().contains_key(session)
    }

    /// Ends a session's process. Returns whether there was one.
    pub(super) async fn stop(&self, session: &SessionId) -> bool {
        let slot = self.slots().get(session).cloned();
        if let Some(slot) = &slot {
            slot.stop.cancel();
        }
        slot.is_some()
    }

    /// Ends the processes of sessions that are not at work. The poller would end them before they go on.
    pub(super) fn stop_idle(&self, is_at_work: impl Fn(&SessionId) -> bool) {
        for (session, slot) in self.slots().iter() {
            let is_idle = slot.activity.open.load(Ordering::Acquire) == 0;
            if is_idle && !is_at_work(session) {
                slot.stop.cancel();
            }
        }
    }

    /// Ends all processes and waits for them.
    pub(super) async fn shutdown(&self) {
        self.shared.stopping.cancel();
        let mut keepers = std::mem::take(&mut *self.keepers());
        while keepers.join_next().await.is_some() {}
    }

    /// Returns the port of the session's process once it answers, and a guard that keeps it alive.
    async fn ready(&self, session: &SessionId) -> Result<(u16, Invocation), Unanswered> {
        let waiting = async {
            loop {
                let mut slot = self.slot(session)?;
                let ended = slot.stop.is_cancelled();
                let invocation = Invocation::begin(&slot.activity, &self.shared.settings.clock);
                let wanted = |state: &State| match state {
                    State::Starting => false,
                    // Wait for a stopping process to exit, so that two never run side by side.
                    State::Ready(_) => !ended,
                    State::Gone(_) => true,
                };
                let state = slot.state.wait_for(wanted).await.map(|state| state.clone());
                match state {
                    Ok(State::Ready(port)) => return Ok((port, invocation)),
                    _ if ended => {}
                    Ok(State::Gone(why)) => return Err(Unanswered::NotStarted(why)),
                    _ => return Err(Unanswered::NotStarted("the host is stopping".to_owned())),
                }
            }
        };
        let late = || Err(Unanswered::NotStarted("the agent's process did not start".to_owned()));
        tokio::time::timeout(START_TIMEOUT + START_TIMEOUT, waiting)
            .await
            .unwrap_or_else(|_| late())
    }

    fn slot(&self, session: &SessionId) -> Result<Slot, Unanswered> {
        let mut slots = self.slots();
        if let Some(slot) = slots.get(session) {
            return Ok(slot.clone());
        }
        if self.shared.stopping.is_cancelled() {
            return Err(Unanswered::NotStarted("the host is stopping".to_owned()));
        }
        if slots.len() >= PROCESSES_MAX {
            return Err(Unanswered::Full(PROCESSES_MAX));
        }
        let (says, state) = watch::channel(State::Starting);
        let at = AtomicI64::new(self.shared.settings.clock.now().nanos());
        let activity = Arc::new(Activity { open: AtomicUsize::new(0), at });
        let slot = Slot { state, stop: self.shared.stopping.child_token(), activity };
        slots.insert(session.clone(), slot.clone());
        let (host, kept, session) = (self.clone(), slot.clone(), session.clone());
        let mut keepers = self.keepers();
        while keepers.try_join_next().is_some() {}
        keepers.spawn(async move {
            let why =
                contained("the host of an agent's process", host.keep(&session, &kept, &says));
            let why = why.await.unwrap_or_else(|panic| panic.to_string());
            tracing::info!(session_id = %session, why, "The agent's process ended.");
            // When the stack stops, its next start does this.
            if let Some(exits) = &host.shared.settings.exits
                && !host.shared.stopping.is_cancelled()
            {
                exits.record(&session).await;
            }
            host.slots().remove(&session);
            // The slot is free before a waiting caller resumes.
            says.send_replace(State::Gone(why));
        });
        Ok(slot)
    }

    /// Runs a process from start to end. Returns why it ended.
    async fn keep(&self, session: &SessionId, slot: &Slot, says: &watch::Sender<State>) -> String {
        let (mut child, port) = match self.start() {
            Ok(started) => started,
            Err(error) => {
                let program = self.shared.settings.program.display();
                return format!("cannot start the agent's program {program}: {error}");
            }
        };
        tracing::info!(session_id = %session, port, "Starting the agent's process.");
        let why = self.watch(&mut child, port, session, slot, says).await;
        // From here on, callers wait for the next process.
        slot.stop.cancel();
        process::terminate(&mut child).await;
        why
    }

    fn start(&self) -> std::io::Result<(Child, u16)> {
        // Another process may take the port before the agent listens on it. Then the agent exits, and
        // the invocation is retried.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let settings = &self.shared.settings;
        let mut environment = settings.environment.clone();
        environment.extend([
            (env::DAYBOOK_AGENT_PORT.to_owned(), port.to_string()),
            (env::DAYBOOK_AGENT_TOKEN.to_owned(), settings.token.reveal().to_owned()),
            (env::DAYBOOK_TIME_SCALE.to_owned(), settings.time_scale.to_string()),
            (env::DAYBOOK_TIME_ORIGIN.to_owned(), settings.clock.wall().to_string()),
        ]);
        Ok((process::start(&settings.program, &settings.arguments, &environment)?, port))
    }

    async fn watch(
        &self,
        child: &mut Child,
        port: u16,
        session: &SessionId,
        slot: &Slot,
        says: &watch::Sender<State>,
    ) -> String {
        // The losing branches only watch.
        tokio::select! {
            status = child.wait() => match status {
                Ok(status) => format!("it exited: {status}"),
                Err(error) => format!("cannot wait for it: {error}"),
            },
            () = slot.stop.cancelled() => "it was stopped".to_owned(),
            why = self.tend(port, session, slot, says) => why,
        }
    }

    async fn tend(
        &self,
        port: u16,
        session: &SessionId,
        slot: &Slot,
        says: &watch::Sender<State>,
    ) -> String {
        let begun = async {
            while self.ping(port).await.is_none() {
                tokio::time::sleep(START_PING_INTERVAL).await;
            }
        };
        if tokio::time::timeout(START_TIMEOUT, begun).await.is_err() {
            return "it did not answer its first ping".to_owned();
        }
        says.send_replace(State::Ready(port));
        let settings = &self.shared.settings;
        let reports = self.shared.http.get(format!("http://127.0.0.1:{port}/progress"));
        let reports = reports.bearer_auth(settings.token.reveal());
        // Reports end with the process.
        tokio::select! {
            never = progress::pass_on(reports, session, &settings.progress) => match never {},
            why = self.look_after(port, slot) => why,
        }
    }

    /// Pings a process until it must end. Returns the reason.
    async fn look_after(&self, port: u16, slot: &Slot) -> String {
        let clock = &self.shared.settings.clock;
        let born = clock.now();
        let (mut silent, mut updated) = (0, (0, born));
        loop {
            tokio::time::sleep(clock.real(PING_INTERVAL).max(PING_INTERVAL_MIN)).await;
            match self.ping(port).await {
                None if silent + 1 >= SILENT_PINGS_MAX => {
                    return "it stopped responding".to_owned();
                }
                None => silent += 1,
                Some(ping) => {
                    silent = 0;
                    // The process tells the time by its own clock: only a change counts.
                    if ping.time_of_last_update != updated.0 {
                        updated = (ping.time_of_last_update, clock.now());
                    }
                    let active_at = Stamp::from_nanos(slot.activity.at.load(Ordering::Acquire));
                    let called = slot.activity.open.load(Ordering::Acquire) > 0;
                    if !called && is_idle(&ping, active_at.max(updated.1), clock.now()) {
                        return "it was idle".to_owned();
                    }
                }
            }
            if clock.now().since(born) > HOST_LIFETIME_MAX {
                return "it reached its maximum lifetime".to_owned();
            }
        }
    }

    async fn ping(&self, port: u16) -> Option<Ping> {
        let url = format!("http://127.0.0.1:{port}/ping");
        let asking = self.shared.http.get(url).bearer_auth(self.shared.settings.token.reveal());
        let response = asking.timeout(PING_TIMEOUT).send().await.ok()?;
        response.json().await.ok()
    }

    fn slots(&self) -> MutexGuard<'_, BTreeMap<SessionId, Slot>> {
        self.shared.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keepers(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.shared.keepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_idle(ping: &Ping, active_at: Stamp, now: Stamp) -> bool {
    ping.status != "HealthyBusy" && now.since(active_at) > IDLE_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_healthy_process_without_recent_calls_is_idle() {
        let at = |seconds: i64| Stamp::from_millis(seconds * 1_000);
        for (status, active_s, now_s, expected) in [
            ("Healthy", 0, 900, false),
            ("Healthy", 0, 901, true),
            ("Healthy", 500, 901, false),
            ("HealthyBusy", 0, 28_000, false),
        ] {
            let ping = Ping { status: status.to_owned(), time_of_last_update: 0 };
            assert_eq!(is_idle(&ping, at(active_s), at(now_s)), expected, "{status} {now_s}");
        }
    }
}
