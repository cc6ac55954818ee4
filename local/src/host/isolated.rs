//! Each session's agent in a process of its own, as `AgentCore` has it in a container.
//!
//! A session has a *place*: a task that starts the process, waits for its first `/ping`, and from
//! then on asks every two seconds. It ends the process when it is idle, when its time is up, when it
//! no longer answers, or when it is told to; then the place is free and the next invocation starts
//! another.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent::progress::Broadcast;
use axum::body::Bytes;
use journal::clock::{Clock, Stamp};
use journal::id::SessionId;
use serde::Deserialize;
use tokio::process::Child;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use workflow::env;

use super::{Answer, Unanswered, process, told};

/// Most processes at once.
const SESSIONS_MAX: usize = 64;

/// How long a process may take to answer its first ping, by the machine's clock.
const START_WITHIN: Duration = Duration::from_secs(30);

/// How often a starting process is asked, by the machine's clock.
const START_POLL: Duration = Duration::from_millis(20);

/// How often a process is asked how it is. Source: `notes/agentcore.md`.
const PING_EVERY: Duration = Duration::from_secs(2);

/// However fast the clock runs, a process is not asked more often than this, by the machine's clock.
const PING_EVERY_MIN: Duration = Duration::from_millis(50);

/// How long one ping may take, by the machine's clock.
const PING_WITHIN: Duration = Duration::from_secs(2);

/// So many pings without an answer in a row, and the process is given up.
const SILENT_PINGS_MAX: u32 = 15;

/// How long a process that is not busy is kept. Source: AWS, idle timeout, default.
const IDLE_MAX: Duration = Duration::from_secs(900);

/// How long a process is kept in all. Source: AWS, maximum lifetime.
const LIFETIME_MAX: Duration = Duration::from_secs(8 * 3_600);

/// How long one invocation may take, by the machine's clock. Source: AWS, synchronous request.
const INVOCATION_WITHIN: Duration = Duration::from_secs(15 * 60);

/// Largest answer of an invocation, in bytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// What an isolated agent is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The binary `agent`.
    pub program: PathBuf,
    /// Its environment, beside what the host sets.
    pub environment: Vec<(String, String)>,
    /// The stack's clock.
    pub clock: Clock,
    /// How many times as fast as the machine's it runs.
    pub time_scale: u32,
    /// Where the progress of their tools is told.
    pub progress: Broadcast,
}

/// The processes.
#[derive(Clone, Debug)]
pub struct Isolated {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    http: reqwest::Client,
    places: Mutex<BTreeMap<SessionId, Place>>,
    keepers: Mutex<JoinSet<()>>,
    stopping: CancellationToken,
}

#[derive(Clone, Debug)]
struct Place {
    state: watch::Receiver<State>,
    stop: CancellationToken,
    activity: Arc<Activity>,
}

/// What keeps a process from being idle beside its own word.
#[derive(Debug)]
struct Activity {
    /// Invocations that have not been answered.
    open: AtomicUsize,
    /// Nanoseconds since 1970 of the newest begin or end of one.
    at: AtomicI64,
}

/// An invocation that has not been answered, however its answer is lost.
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
    /// Why, if somebody should know.
    Gone(String),
}

#[derive(Deserialize)]
struct Ping {
    status: String,
    time_of_last_update: i64,
}

impl Isolated {
    /// A host without processes yet.
    ///
    /// # Errors
    /// When no HTTP client can be had.
    pub fn new(settings: Settings) -> Result<Self, reqwest::Error> {
        // Loopback needs no proxy and has no names to look up.
        let http = reqwest::Client::builder().no_proxy().build()?;
        let shared = Shared {
            settings,
            http,
            places: Mutex::default(),
            keepers: Mutex::default(),
            stopping: CancellationToken::new(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Hands an invocation to the session's process, which is started if there is none.
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
            .header("content-type", "application/json")
            .header("x-amzn-bedrock-agentcore-runtime-session-id", session.as_str())
            .timeout(INVOCATION_WITHIN)
            .body(body)
            .send()
            .await;
        let response = match sent {
            Ok(response) => response,
            Err(error) if error.is_connect() => {
                return Err(Unanswered::NotStarted("the agent's process has gone".to_owned()));
            }
            Err(error) => return Err(Unanswered::Lost(error.to_string())),
        };
        let status = response.status().as_u16();
        let body = response.bytes().await.map_err(|error| Unanswered::Lost(error.to_string()))?;
        if body.len() > ANSWER_BYTES_MAX {
            return Err(Unanswered::Lost(format!("an answer of {} bytes", body.len())));
        }
        Ok(Answer { status, body: body.to_vec() })
    }

    /// Whether a session has a process.
    pub(super) fn has(&self, session: &SessionId) -> bool {
        self.places().contains_key(session)
    }

    /// Ends a session's process; says whether there was one.
    pub(super) async fn stop(&self, session: &SessionId) -> bool {
        let place = self.places().get(session).cloned();
        if let Some(place) = &place {
            place.stop.cancel();
        }
        place.is_some()
    }

    /// Ends all processes and waits until they have ended.
    pub(super) async fn shutdown(&self) {
        self.shared.stopping.cancel();
        let mut keepers = std::mem::take(&mut *self.keepers());
        while keepers.join_next().await.is_some() {}
    }

    /// The port of the session's process once it answers, and what keeps it from being ended.
    async fn ready(&self, session: &SessionId) -> Result<(u16, Invocation), Unanswered> {
        let waiting = async {
            loop {
                let mut place = self.place(session)?;
                let ended = place.stop.is_cancelled();
                let invocation = Invocation::begin(&place.activity, &self.shared.settings.clock);
                let wanted = |state: &State| match state {
                    State::Starting => false,
                    // One that is being stopped is waited out, so that two never run side by side.
                    State::Ready(_) => !ended,
                    State::Gone(_) => true,
                };
                let state = place.state.wait_for(wanted).await.map(|state| state.clone());
                match state {
                    Ok(State::Ready(port)) => return Ok((port, invocation)),
                    _ if ended => {}
                    Ok(State::Gone(why)) => return Err(Unanswered::NotStarted(why)),
                    _ => return Err(Unanswered::NotStarted("the host is stopping".to_owned())),
                }
            }
        };
        let late = || Err(Unanswered::NotStarted("the agent's process did not start".to_owned()));
        tokio::time::timeout(START_WITHIN + START_WITHIN, waiting).await.unwrap_or_else(|_| late())
    }

    fn place(&self, session: &SessionId) -> Result<Place, Unanswered> {
        let mut places = self.places();
        if let Some(place) = places.get(session) {
            return Ok(place.clone());
        }
        if self.shared.stopping.is_cancelled() {
            return Err(Unanswered::NotStarted("the host is stopping".to_owned()));
        }
        if places.len() >= SESSIONS_MAX {
            return Err(Unanswered::Full(SESSIONS_MAX));
        }
        let (says, state) = watch::channel(State::Starting);
        let at = AtomicI64::new(self.shared.settings.clock.now().nanos());
        let activity = Arc::new(Activity { open: AtomicUsize::new(0), at });
        let place = Place { state, stop: self.shared.stopping.child_token(), activity };
        places.insert(session.clone(), place.clone());
        let (host, kept, session) = (self.clone(), place.clone(), session.clone());
        let mut keepers = self.keepers();
        while keepers.try_join_next().is_some() {}
        keepers.spawn(async move {
            let why = host.keep(&session, &kept, &says).await;
            tracing::info!(session_id = %session, why, "An agent's process ended.");
            host.places().remove(&session);
            // The place is free before anybody hears of it.
            says.send_replace(State::Gone(why));
        });
        Ok(place)
    }

    /// Keeps a process from its start to its end; says why it ended.
    async fn keep(
        &self,
        session: &SessionId,
        place: &Place,
        says: &watch::Sender<State>,
    ) -> String {
        let (mut child, port) = match self.start() {
            Ok(started) => started,
            Err(error) => {
                let program = self.shared.settings.program.display();
                return format!("the agent's program {program} cannot be started: {error}");
            }
        };
        tracing::info!(session_id = %session, port, "An agent's process starts.");
        let why = self.watch(&mut child, port, session, place, says).await;
        // Whoever comes from now on waits for the next one.
        place.stop.cancel();
        process::terminate(&mut child).await;
        why
    }

    fn start(&self) -> std::io::Result<(Child, u16)> {
        // The number may be taken before the agent listens there; then it ends and the invocation
        // is tried again.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let settings = &self.shared.settings;
        let mut environment = settings.environment.clone();
        environment.extend([
            (env::DAYBOOK_AGENT_PORT.to_owned(), port.to_string()),
            (env::DAYBOOK_TIME_SCALE.to_owned(), settings.time_scale.to_string()),
            (env::DAYBOOK_TIME_ORIGIN.to_owned(), settings.clock.now().to_string()),
        ]);
        Ok((process::start(&settings.program, &environment)?, port))
    }

    async fn watch(
        &self,
        child: &mut Child,
        port: u16,
        session: &SessionId,
        place: &Place,
        says: &watch::Sender<State>,
    ) -> String {
        // The losers are only watching.
        tokio::select! {
            status = child.wait() => match status {
                Ok(status) => format!("it ended by itself: {status}"),
                Err(error) => format!("it could not be waited for: {error}"),
            },
            () = place.stop.cancelled() => "it was stopped".to_owned(),
            why = self.tend(port, session, place, says) => why,
        }
    }

    async fn tend(
        &self,
        port: u16,
        session: &SessionId,
        place: &Place,
        says: &watch::Sender<State>,
    ) -> String {
        let begun = async {
            while self.ping(port).await.is_none() {
                tokio::time::sleep(START_POLL).await;
            }
        };
        if tokio::time::timeout(START_WITHIN, begun).await.is_err() {
            return "it did not answer its first ping".to_owned();
        }
        says.send_replace(State::Ready(port));
        let (http, progress) = (&self.shared.http, &self.shared.settings.progress);
        // What is told is told to nobody once the process has ended.
        tokio::select! {
            never = told::pass_on(http, port, session, progress) => match never {},
            why = self.look_after(port, place) => why,
        }
    }

    /// Asks a process how it is until it is to be ended; says why.
    async fn look_after(&self, port: u16, place: &Place) -> String {
        let clock = &self.shared.settings.clock;
        let born = clock.now();
        let mut silent = 0;
        loop {
            tokio::time::sleep(clock.real(PING_EVERY).max(PING_EVERY_MIN)).await;
            match self.ping(port).await {
                None if silent + 1 >= SILENT_PINGS_MAX => return "it stopped answering".to_owned(),
                None => silent += 1,
                Some(ping) => {
                    silent = 0;
                    let active_at = Stamp::from_nanos(place.activity.at.load(Ordering::Acquire));
                    let called = place.activity.open.load(Ordering::Acquire) > 0;
                    if !called && is_idle(&ping, active_at, clock.now()) {
                        return "it was idle".to_owned();
                    }
                }
            }
            if clock.now().since(born) > LIFETIME_MAX {
                return "its time was up".to_owned();
            }
        }
    }

    async fn ping(&self, port: u16) -> Option<Ping> {
        let url = format!("http://127.0.0.1:{port}/ping");
        let response = self.shared.http.get(url).timeout(PING_WITHIN).send().await.ok()?;
        response.json().await.ok()
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<SessionId, Place>> {
        self.shared.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keepers(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.shared.keepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_idle(ping: &Ping, active_at: Stamp, now: Stamp) -> bool {
    let updated_at = Stamp::from_millis(ping.time_of_last_update.saturating_mul(1_000));
    ping.status != "HealthyBusy" && now.since(updated_at.max(active_at)) > IDLE_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_healthy_process_that_nobody_called_is_idle() {
        let at = |seconds: i64| Stamp::from_millis(seconds * 1_000);
        for (status, updated_s, invoked_s, now_s, expected) in [
            ("Healthy", 0, 0, 900, false),
            ("Healthy", 0, 0, 901, true),
            ("Healthy", 0, 500, 901, false),
            ("Healthy", 500, 0, 901, false),
            ("HealthyBusy", 0, 0, 28_000, false),
        ] {
            let ping = Ping { status: status.to_owned(), time_of_last_update: updated_s };
            assert_eq!(is_idle(&ping, at(invoked_s), at(now_s)), expected, "{status} {now_s}");
        }
    }
}
