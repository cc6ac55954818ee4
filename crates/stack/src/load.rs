//! How much work a stack takes: caps on the sessions at work with a queue behind them (`turn`), bounds on new
//! sessions and on the disk (`disk`), and the drain before a stop (`drain`). `questions` knows the oldest open question.
//!
//! A session is at work from its invocation until the poller finds that it has ended or waits. The caps, and who is at
//! work, are only in the memory of the stack. Each queued session says so in its lease, so a restart loses none: its
//! workflow asks again.

pub mod disk;
mod drain;
mod ledger;
mod questions;
mod turn;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use journal::clock::{Clock, Stamp};
use journal::id::SessionId;
use journal::store::Error;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use crate::executions::{ExecutionStore, Executions};
use ledger::{Ledger, Queued};
use questions::Waits;

use disk::{Budget, Used};
use drain::Draining;
pub(crate) use turn::{Turn, request_of};

/// The default of [`Limits::at_work`]: what one process hosts.
pub const AT_WORK_MAX: usize = agent::host::SESSIONS_MAX;

/// The default of [`Limits::queue`].
pub const QUEUE_MAX: usize = 10_000;

/// The default of [`Limits::executions`].
pub const EXECUTIONS_MAX: usize = 100_000;

/// How long a count of the running executions is used, by the stack's clock.
const COUNT_FOR: Duration = Duration::from_secs(1);

/// The limits of a stack's load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most sessions at work at once. Further ones wait in the queue.
    pub at_work: usize,
    /// The same for single agents, by name.
    pub by_agent: BTreeMap<String, usize>,
    /// Most sessions in the queue. Then new ones are throttled.
    pub queue: usize,
    /// Most executions under way, waiting ones included. Then new sessions are throttled.
    pub executions: usize,
    /// The disk budget of the data folder, in bytes. Near it, new sessions are throttled.
    pub disk_bytes: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            at_work: AT_WORK_MAX,
            by_agent: BTreeMap::new(),
            queue: QUEUE_MAX,
            executions: EXECUTIONS_MAX,
            disk_bytes: None,
        }
    }
}

/// A session that is to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct New {
    /// Its id, or the name of its execution.
    pub(crate) name: String,
    /// The agent that its trigger names.
    pub(crate) agent: Option<String>,
}

impl New {
    /// The session of an execution's input.
    pub(crate) fn of(name: &str, input: &str) -> Self {
        let input: Value = serde_json::from_str(input).unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            name: text(&input["session_id"]).unwrap_or_else(|| name.to_owned()),
            agent: text(&input["detail"]["agent"]),
        }
    }
}

/// Why a new session is not admitted. The sender may try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    #[error("Rate exceeded: {0} sessions wait for their turn, and no more may")]
    Queue(usize),
    #[error("Rate exceeded: {0} executions are under way, and no more may be")]
    Executions(usize),
    #[error(
        "Rate exceeded: the data folder uses {bytes} bytes of its budget of {bytes_max} (--disk-max), which keeps room \
         for the {under_way} sessions under way; prune ended sessions, or raise the budget"
    )]
    Disk { bytes: u64, bytes_max: u64, under_way: usize },
    #[error(
        "the stack is draining and admits no new sessions; try again when it has started again"
    )]
    Draining,
}

impl NotAdmitted {
    /// Of a single entry of `PutEvents`; clients may send it again.
    ///
    /// Source: AWS, `PutEventsResultEntry`, `ErrorCode`.
    pub const CODE: &str = "ThrottlingException";

    /// The status and the error code of a whole request. AWS's clients retry both.
    pub const fn http(self) -> (u16, &'static str) {
        match self {
            Self::Queue(_) | Self::Executions(_) | Self::Disk { .. } => (400, Self::CODE),
            Self::Draining => (503, "ServiceUnavailable"),
        }
    }
}

/// The load of a stack. Clones share it.
#[derive(Clone, Debug)]
pub struct Load(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: Limits,
    budget: Option<Budget>,
    clock: Clock,
    ledger: Mutex<Ledger>,
    /// Sessions whose turn has come, and whose workflows are to be woken.
    released: Mutex<Vec<Queued>>,
    has_released: Notify,
    /// Changes with the number of sessions at work and with the drain.
    changes: watch::Sender<()>,
    drain: Mutex<Option<Draining>>,
    /// The sessions that wait, for a person or otherwise.
    waiting: Mutex<BTreeMap<SessionId, Waits>>,
    /// The running executions, as of a time.
    running: Mutex<Option<(Stamp, usize)>>,
}

impl Default for Load {
    fn default() -> Self {
        Self::new(Limits::default(), &Clock::system(), None)
    }
}

impl Load {
    /// `budget` is that of the limits, if they have one.
    pub fn new(limits: Limits, clock: &Clock, budget: Option<Budget>) -> Self {
        Self(Arc::new(Shared {
            limits,
            budget,
            clock: clock.even(),
            ledger: Mutex::default(),
            released: Mutex::default(),
            has_released: Notify::new(),
            changes: watch::channel(()).0,
            drain: Mutex::default(),
            waiting: Mutex::default(),
            running: Mutex::default(),
        }))
    }

    /// Admits as many of these new sessions, in order, as may start now. If it is not all, also says why.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) async fn admit<S: ExecutionStore>(
        &self,
        new: &[New],
        executions: &Executions<S>,
    ) -> Result<(usize, Option<NotAdmitted>), Error> {
        let Shared { limits, .. } = &*self.0;
        self.count(executions).await?;
        let used = self.used().await?;
        let mut counted = self.counted();
        let (at, running) = counted.unwrap_or_else(|| (self.now(), 0));
        let on_disk = used.map_or(usize::MAX, |used| used.room(running));
        let room = limits.executions.saturating_sub(running).min(on_disk).min(new.len());
        let admitted = self.ledger().admit(limits, &new[..room], self.now());
        *counted = Some((at, running + admitted));
        drop(counted);
        let why = match admitted {
            all if all == new.len() => None,
            _ if self.ledger().is_draining => Some(NotAdmitted::Draining),
            by_disk if by_disk == on_disk => used.and_then(|it| it.refusal(running + admitted)),
            by_executions if by_executions == room => {
                Some(NotAdmitted::Executions(limits.executions))
            }
            _ => Some(NotAdmitted::Queue(limits.queue)),
        };
        Ok((admitted, why))
    }

    /// Forgets an admitted session that was not started.
    pub(crate) fn forget(&self, new: &New) {
        self.ledger().forget(&new.name);
    }

    /// Counts the running executions, at most once a second. Those that are admitted meanwhile are added.
    async fn count<S: ExecutionStore>(&self, executions: &Executions<S>) -> Result<(), Error> {
        let now = self.now();
        let is_new = |(at, _): (Stamp, usize)| now.since(at) < COUNT_FOR;
        if !self.counted().is_some_and(is_new) {
            let running = executions.store().running_count().await?;
            *self.counted() = Some((now, running));
        }
        Ok(())
    }

    /// How much of the disk budget is used; `None` without a budget.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub(crate) async fn used(&self) -> Result<Option<Used>, Error> {
        match &self.0.budget {
            Some(budget) => budget.used(self.now()).await.map(Some),
            None => Ok(None),
        }
    }

    /// Why the disk budget admits no new session now, if it does not.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) async fn disk_refusal<S: ExecutionStore>(
        &self,
        executions: &Executions<S>,
    ) -> Result<Option<NotAdmitted>, Error> {
        let Some(used) = self.used().await? else { return Ok(None) };
        self.count(executions).await?;
        let running = self.counted().map_or(0, |(_, running)| running);
        Ok(used.refusal(running))
    }

    /// The load as `/healthz` shows it.
    pub(crate) fn to_json(&self, agents: &[&str]) -> Value {
        let Shared { limits, .. } = &*self.0;
        let ledger = self.ledger();
        let of_agent = |agent: &&str| {
            let shown = json!({
                "at_work": ledger.at_work_of(agent), "queued": ledger.queued_of(agent),
                "at_work_max": limits.by_agent.get(*agent),
            });
            ((*agent).to_owned(), shown)
        };
        let agents: BTreeMap<String, Value> = agents.iter().map(of_agent).collect();
        json!({
            "at_work": ledger.at_work(), "at_work_max": limits.at_work,
            "queued": ledger.queued(), "queue_max": limits.queue,
            "executions_max": limits.executions, "draining": ledger.is_draining, "agents": agents,
        })
    }

    /// The load on the page of metrics, by registered agent.
    pub(crate) fn metrics(&self, agents: &[&str]) -> String {
        let ledger = self.ledger();
        let mut text = String::new();
        for (name, what, of) in [
            ("sessions_at_work", "Sessions at work.", Ledger::at_work_of as fn(&Ledger, &str) -> _),
            ("sessions_queued", "Sessions that wait for their turn.", Ledger::queued_of),
        ] {
            text.push_str(&format!("# HELP daybook_{name} {what}\n# TYPE daybook_{name} gauge\n"));
            for agent in agents {
                let number = of(&ledger, agent);
                text.push_str(&format!("daybook_{name}{{agent=\"{agent}\"}} {number}\n"));
            }
        }
        text
    }

    /// Lets those begin whose turn has come, and tells of the change.
    fn settle(&self, mut ledger: MutexGuard<'_, Ledger>) {
        let released = ledger.release(&self.0.limits, self.now());
        drop(ledger);
        if !released.is_empty() {
            self.released().extend(released);
            self.0.has_released.notify_one();
        }
        self.0.changes.send_replace(());
    }

    fn now(&self) -> Stamp {
        self.0.clock.now()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        unpoisoned(&self.0.ledger)
    }

    fn released(&self) -> MutexGuard<'_, Vec<Queued>> {
        unpoisoned(&self.0.released)
    }

    fn counted(&self) -> MutexGuard<'_, Option<(Stamp, usize)>> {
        unpoisoned(&self.0.running)
    }
}

fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
