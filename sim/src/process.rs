//! A process: what it does outside itself it does through this, until it is killed.
//!
//! Nobody can take a future's next step away from it, but everything that it reaches can fail to
//! answer for ever: to the outside that is a killed process, and a stalled one goes on later.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use journal::clock::Clock;
use journal::item::Item;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// One simulated process.
#[derive(Debug)]
pub struct Process {
    /// What it is called in a trace.
    pub name: String,
    /// Its machine's clock.
    pub clock: Clock,
    killed: CancellationToken,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    stalled_until: Option<Instant>,
    /// The runners that have claimed from here.
    runners: BTreeSet<String>,
    /// The runner that was told of another's claim.
    fenced: Option<String>,
}

impl Process {
    /// A process that runs.
    pub fn new(name: String, clock: Clock) -> Self {
        Self { name, clock, killed: CancellationToken::new(), state: Mutex::default() }
    }

    /// Kills it.
    pub fn kill(&self) {
        self.killed.cancel();
    }

    /// Whether it was killed.
    pub fn is_dead(&self) -> bool {
        self.killed.is_cancelled()
    }

    /// Whether it stands for a service of the cloud, which does not die of one request.
    pub(crate) fn is_a_service(&self) -> bool {
        self.name.starts_with("state-machine")
    }

    /// Returns when it was killed.
    pub async fn death(&self) {
        self.killed.cancelled().await;
    }

    /// Cuts it off for so long.
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

    /// Takes note of a claim that was made from here.
    pub(crate) fn claimed(&self, runner: &str) {
        self.state().runners.insert(runner.to_owned());
    }

    /// Takes note of a refusal: a runner that learns of another's claim is fenced from here on.
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

    /// The runner that knows that it is fenced and writes this all the same. A process with several
    /// runners is not judged by its announcements, which do not say whose they are.
    pub(crate) fn writes_although_fenced(&self, item: &Item) -> Option<String> {
        let state = self.state();
        let fenced = state.fenced.clone()?;
        let own = item.text_opt("Runner").or(item.text_opt("Probe")) == Some(fenced.as_str());
        let told = item.text_opt("Status").is_some_and(|s| s.starts_with("AGENT_BACKGROUND"));
        (own || (told && state.runners.len() == 1)).then_some(fenced)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
