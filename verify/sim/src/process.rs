//! A process: all its external actions go through this until it is killed.
//!
//! A future cannot be stopped from outside, but everything that it calls can fail to reply: from
//! outside that is a killed process. A stalled one continues later.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use journal::clock::Clock;
use journal::item::Item;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub struct Process {
    /// Its name in a trace.
    pub name: String,
    pub clock: Clock,
    killed: CancellationToken,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    stalled_until: Option<Instant>,
    /// The runners that claimed from this process.
    runners: BTreeSet<String>,
    /// The runner that learned of another's claim.
    fenced: Option<String>,
}

impl Process {
    pub fn new(name: String, clock: Clock) -> Self {
        Self { name, clock, killed: CancellationToken::new(), state: Mutex::default() }
    }

    pub fn kill(&self) {
        self.killed.cancel();
    }

    pub fn is_dead(&self) -> bool {
        self.killed.is_cancelled()
    }

    /// Whether it represents a cloud service, which does not die from one request.
    pub(crate) fn is_a_service(&self) -> bool {
        self.name.starts_with("state-machine")
    }

    pub async fn death(&self) {
        self.killed.cancelled().await;
    }

    /// Disconnects it for this long.
    pub fn stall(&self, by: Duration) {
        self.state().stalled_until = Some(Instant::now() + by);
    }

    /// Returns when the process can reach something; never if it was killed.
    pub async fn reach(&self) {
        let until = self.state().stalled_until;
        if let Some(until) = until {
            tokio::time::sleep_until(until).await;
        }
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
    }

    /// Records a claim made from this process.
    pub(crate) fn claimed(&self, runner: &str) {
        self.state().runners.insert(runner.to_owned());
    }

    /// Records a rejection: a runner that learns of another's claim is fenced.
    pub(crate) fn refused(&self, tried: &Item, there: Option<&Item>) {
        let kind = |item: &Item| item.text_opt("Kind").map(str::to_owned);
        let by_claim = tried.sk.starts_with("STEP#")
            && kind(tried).as_deref() != Some("claim")
            && there.is_some_and(|there| kind(there).as_deref() == Some("claim"));
        let by_lease = tried.sk == "LEASE";
        let mut state = self.state();
        if let Some(runner) = tried.text_opt("Runner")
            && (by_claim || by_lease)
            && state.runners.contains(runner)
        {
            state.fenced = Some(runner.to_owned());
        }
    }

    /// The runner that knows that it is fenced and still writes this. Announcements do not name
    /// their runner, so they are not checked if the process has several.
    pub(crate) fn writes_although_fenced(&self, item: &Item) -> Option<String> {
        let state = self.state();
        let fenced = state.fenced.clone()?;
        let own = item.text_opt("Runner").or(item.text_opt("Probe")) == Some(fenced.as_str());
        let announces = item.text_opt("Status").is_some_and(|s| s.starts_with("AGENT_BACKGROUND"));
        (own || (announces && state.runners.len() == 1)).then_some(fenced)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
