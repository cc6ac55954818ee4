//! Tells the targets of the notify file what became of sessions: at least once, over crashes, too.
//!
//! The journal is the outbox: what a target is told are events that are durable anyway. For each target there is a task,
//! so that one that does not reply delays no other, and a durable cursor: the position in the order of writing up to which
//! it has been told. Each attempt is journaled after it ([`notify::delivery`]). After a crash the task reads on from its
//! cursor, and skips what a record says was delivered.

mod send;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use graph::agent::Agent;
use journal::clock::{Clock, Hlc, Stamp};
use journal::event::{Event, EventStatus};
use journal::item::Value as Stored;
use journal::key::{NOTICE_PREFIX, OUTBOX};
use journal::read;
use journal::store::{Condition, Error, Key, Store as _};
use notify::delivery::{self, Delivery, NEWS_FOR, Next, Outcome};
use notify::notice::{Notice, Why, Worded};
use notify::target::{Settings, Target};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use workflow::execution;

use crate::bus::Bus;
use crate::executions::Executions;
use crate::names;
use crate::restart::after_panics;
use crate::store::Database;
use send::Sender;

/// Rows that are examined at once.
const ROWS: u32 = 2_000;

/// Most notices of one target that wait for an attempt. While there are as many, its task reads no further.
const WAITING_MAX: usize = 1_000;

/// Concurrent attempts for one target.
const AT_ONCE: usize = 4;

/// Shortest time between two looks at the journal, which a busy stack changes all the time.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Longest time between two looks.
const LOOK_AT_LAST: Duration = Duration::from_secs(60);

/// The pause after the journal could not be read or written.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// How far the cursor moves before it is written, if nothing was told: each write is a commit.
const ROWS_UNTOLD_MAX: i64 = 10_000;

/// Most undelivered notices that are kept for `doctor`.
const UNDELIVERED_MAX: usize = 100;

/// How long one of them is a problem.
const UNDELIVERED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

const POSITION: &str = "Pos";

/// What is known of notices, for `doctor` and the page.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    targets: Vec<String>,
    /// By target, the notices that failed and are tried again, and why.
    failing: BTreeMap<String, (usize, String)>,
    /// The newest first.
    undelivered: VecDeque<Delivery>,
}

impl Notices {
    fn with<T>(&self, work: impl FnOnce(&mut Known) -> T) -> T {
        work(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Null without targets.
    pub fn to_json(&self, now: Stamp) -> Value {
        self.with(|known| {
            if known.targets.is_empty() {
                return Value::Null;
            }
            let is_recent = |it: &&Delivery| now.since(it.at) < UNDELIVERED_FOR;
            let undelivered: Vec<_> =
                known.undelivered.iter().filter(is_recent).map(Delivery::to_json).collect();
            let failing: Vec<_> = known
                .failing
                .iter()
                .map(|(target, (count, why))| json!({ "target": target, "notices": count, "reason": why }))
                .collect();
            json!({ "targets": known.targets, "failing": failing, "undelivered": undelivered })
        })
    }

    fn undelivered(&self, delivery: Delivery) {
        tracing::error!(
            session_id = %delivery.session, target_name = %delivery.target,
            reason = delivery.outcome.reason().unwrap_or_default(),
            "A notice could not be delivered and is given up."
        );
        self.keep(delivery);
    }

    fn keep(&self, delivery: Delivery) {
        self.with(|known| {
            known.undelivered.push_front(delivery);
            known.undelivered.truncate(UNDELIVERED_MAX);
        });
    }
}

/// What the tasks need.
#[derive(Clone)]
pub(crate) struct Outbox {
    pub(crate) store: Database,
    pub(crate) executions: Executions,
    pub(crate) bus: Bus,
    pub(crate) clock: Clock,
    pub(crate) agents: Arc<[Agent]>,
    /// The base of links to sessions.
    pub(crate) link: String,
    pub(crate) notices: Notices,
}

impl Outbox {
    /// Starts a task for each target.
    ///
    /// # Errors
    /// The HTTP client cannot be created.
    pub(crate) fn start(
        self,
        settings: &Settings,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> Result<(), reqwest::Error> {
        self.notices.with(|known| known.targets = settings.names().map(str::to_owned).collect());
        let sender = Sender::new(self.bus.clone(), self.clock.clone())?;
        let link = settings.link.clone().unwrap_or_else(|| self.link.clone());
        let outbox = Self { link, ..self };
        let (remembered, stopping) = (outbox.clone(), stop.clone());
        tasks.spawn(async move {
            let _ = stopping.run_until_cancelled(remembered.remember()).await;
        });
        for target in &settings.targets {
            let task =
                Task { outbox: outbox.clone(), sender: sender.clone(), target: target.clone() };
            let stopping = stop.clone();
            let telling = move || {
                let (task, stopping) = (task.clone(), stopping.clone());
                // What is cut off by a stop is told again at the next start.
                async move {
                    let _ = stopping.run_until_cancelled(task.run()).await;
                }
            };
            tasks.spawn(after_panics("telling of sessions", stop.clone(), telling));
        }
        Ok(())
    }

    /// Finds the notices that an earlier stack gave up.
    async fn remember(&self) {
        let items = match self.store.newest_of(NOTICE_PREFIX, UNDELIVERED_MAX).await {
            Ok(items) => items,
            Err(error) => {
                tracing::warn!(%error, "Notices that an earlier stack gave up cannot be read; doctor does not show them.");
                return;
            }
        };
        let read = items.iter().filter_map(|item| Delivery::from_item(item).ok());
        let given_up = |it: &Delivery| matches!(it.outcome, Outcome::Undelivered(_));
        let read: Vec<_> = read.filter(given_up).collect();
        read.into_iter().rev().for_each(|delivery| self.notices.keep(delivery));
    }
}

/// An event that a target has not been told of, and when the next attempt is due.
type Waiting = BTreeMap<i64, (Event, Stamp)>;

/// The task of one target.
#[derive(Clone)]
struct Task {
    outbox: Outbox,
    sender: Sender,
    target: Target,
}

impl Task {
    async fn run(&self) {
        let mut cursor = self.begun().await;
        let mut examined = cursor;
        let mut waiting = Waiting::new();
        let mut changes = self.outbox.store.changes();
        loop {
            // Before the look: a change after it ends the rest that follows.
            changes.mark_unchanged();
            let is_behind = match self.look(&mut examined, &mut waiting).await {
                Ok(is_behind) => is_behind,
                Err(error) => {
                    self.complain(&error).await;
                    continue;
                }
            };
            let told = self.attempt_all(&mut waiting).await;
            let done = waiting.keys().next().map_or(examined, |first| first - 1);
            if done > cursor && (told || done - cursor > ROWS_UNTOLD_MAX) {
                self.saved(done).await;
                cursor = done;
            }
            if !is_behind {
                self.rest(&waiting, &mut changes).await;
            }
        }
    }

    /// The cursor, once it can be read.
    async fn begun(&self) -> i64 {
        loop {
            match self.begin().await {
                Ok(cursor) => return cursor,
                Err(error) => self.complain(&error).await,
            }
        }
    }

    /// Moves the cursor, once it can be written.
    async fn saved(&self, cursor: i64) {
        while let Err(error) = self.save(cursor).await {
            self.complain(&error).await;
        }
    }

    async fn complain(&self, error: &Error) {
        tracing::warn!(%error, target_name = %self.target.name, "Cannot read or note what a target was told.");
        tokio::time::sleep(RETRY_DELAY).await;
    }

    fn key(&self) -> Key {
        Key::new(OUTBOX, self.target.name.as_str())
    }

    /// The cursor. A new target is told of what happens from now on.
    async fn begin(&self) -> Result<i64, Error> {
        let store = &self.outbox.store;
        let newest = store.newest_position().await?;
        let there = store.get(self.key()).await?;
        match there.and_then(|item| item.number(POSITION).ok()) {
            // The newest rows may have been removed; their positions are given again.
            Some(cursor) => Ok(cursor.min(newest)),
            None => {
                self.save(newest).await?;
                Ok(newest)
            }
        }
    }

    async fn save(&self, cursor: i64) -> Result<(), Error> {
        let set = BTreeMap::from([(POSITION.to_owned(), Stored::N(cursor))]);
        // No other stack has this folder.
        let any = Condition::Any(vec![Condition::Absent, Condition::at_most(POSITION, i64::MAX)]);
        self.outbox.store.update(self.key(), set, any).await.map(drop)
    }

    /// Reads on. Returns whether there may be more.
    async fn look(&self, examined: &mut i64, waiting: &mut Waiting) -> Result<bool, Error> {
        if waiting.len() >= WAITING_MAX {
            return Ok(false);
        }
        let (items, reached) = self.outbox.store.events_landed(*examined, ROWS).await?;
        for (position, item) in &items {
            let Ok(event) = Event::from_item(item) else { continue };
            let is_wanted = Why::of(event.status).is_some_and(|why| self.target.on.contains(&why));
            if is_wanted {
                let due = event.stamp;
                waiting.insert(*position, (event, due));
            }
        }
        let is_behind = reached > *examined;
        *examined = reached;
        Ok(is_behind)
    }

    /// Makes the attempts that are due. Returns whether a notice is done with.
    async fn attempt_all(&self, waiting: &mut Waiting) -> bool {
        let now = self.outbox.clock.now();
        let due = waiting.iter().filter(|(_, (_, due))| *due <= now);
        let due: Vec<_> = due.map(|(at, (event, _))| (*at, event.clone())).collect();
        let attempts = due.into_iter().map(|(at, event)| {
            let task = self.clone();
            async move { (at, task.attempt(&event).await) }
        });
        let made: Vec<_> = stream::iter(attempts).buffer_unordered(AT_ONCE).collect().await;
        let mut is_any_done = false;
        for (at, next) in made {
            match (next, waiting.get_mut(&at)) {
                (None, _) => {
                    waiting.remove(&at);
                    is_any_done = true;
                }
                (Some(later), Some((_, due))) => *due = later,
                (Some(_), None) => {}
            }
        }
        self.outbox.notices.with(|known| {
            if waiting.is_empty() {
                known.failing.remove(&self.target.name);
            } else if let Some(failing) = known.failing.get_mut(&self.target.name) {
                failing.0 = waiting.len();
            }
        });
        is_any_done
    }

    /// Tells the target of one event, if an attempt is due. Returns when the next one is.
    async fn attempt(&self, event: &Event) -> Option<Stamp> {
        let now = self.outbox.clock.now();
        match self.tell(event, now).await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(%error, session_id = %event.session, "Cannot read or write what a target is told.");
                Some(now.after(RETRY_DELAY))
            }
        }
    }

    async fn tell(&self, event: &Event, now: Stamp) -> Result<Option<Stamp>, Error> {
        let store = &self.outbox.store;
        let told = delivery::of_session(store, &event.session).await?;
        let attempt = match delivery::next(&told, event, &self.target.name) {
            Next::Nothing => return Ok(None),
            Next::Attempt(_, due) if due > now => return Ok(Some(due)),
            Next::Attempt(attempt, _) => attempt,
        };
        let outcome = match self.word(event).await {
            Ok(Worded::Nothing) => return Ok(None),
            Ok(Worded::Notice(notice)) if !self.is_wanted(&notice) => return Ok(None),
            Ok(Worded::Over) => Outcome::Over,
            Ok(Worded::Notice(_)) if attempt == 1 && now.since(event.stamp) > NEWS_FOR => {
                Outcome::Undelivered("it was a day old when the stack could send it".to_owned())
            }
            Ok(Worded::Notice(notice)) => self.sender.send(&self.target, &notice, attempt).await,
            Err(Error::Corrupt(why)) => {
                Outcome::Undelivered(format!("the session's records cannot be read: {why}"))
            }
            Err(error) => return Err(error),
        };
        let at = self.outbox.clock.now();
        let delivery = Delivery::of(event, &self.target.name, attempt, at, outcome);
        delivery.write(store, &Hlc::new(self.outbox.clock.clone(), event.stamp)).await?;
        let next = (!delivery.outcome.is_final()).then(|| at.after(delivery::pause(attempt)));
        self.note(delivery);
        Ok(next)
    }

    fn note(&self, delivery: Delivery) {
        match &delivery.outcome {
            Outcome::Undelivered(_) => self.outbox.notices.undelivered(delivery),
            Outcome::Failed(why) => {
                let (name, why) = (self.target.name.clone(), why.clone());
                self.outbox.notices.with(|known| known.failing.insert(name, (1, why)));
            }
            Outcome::Delivered | Outcome::Over => {}
        }
    }

    fn is_wanted(&self, notice: &Notice) -> bool {
        self.target.wants(notice.why, notice.agent.as_deref())
    }

    /// Words the notice of an event of a session that ran on this stack.
    async fn word(&self, event: &Event) -> Result<Worded, Error> {
        let (store, session) = (&self.outbox.store, &event.session);
        let events = read::events(store, session).await?;
        let of_first = |first: &Event| first.execution_arn.clone();
        let is_first = |event: &&Event| event.status == EventStatus::SessionInitiated;
        let arn = events.iter().find(is_first).and_then(of_first).unwrap_or_else(|| {
            names::execution_arn(names::STATE_MACHINE, &execution::name(session, 0))
        });
        if self.outbox.executions.describe(&arn).await?.is_none() {
            // Imported: its own stack has told of it.
            return Ok(Worded::Nothing);
        }
        let steps = read::shown_steps(store, session).await?;
        let link = |session: &_| Some(format!("{}/#/session/{session}", self.outbox.link));
        Ok(Notice::of(event, &events, &steps, &self.outbox.agents, &link))
    }

    /// Waits until an attempt is due, or the journal has changed.
    async fn rest(&self, waiting: &Waiting, changes: &mut watch::Receiver<u64>) {
        let clock = &self.outbox.clock;
        tokio::time::sleep(LOOK_EVERY).await;
        let due = waiting.values().map(|(_, due)| *due).min();
        // Cancel-safe: both only wait.
        tokio::select! {
            _ = tokio::time::timeout(LOOK_AT_LAST, changes.changed()) => {}
            () = async {
                match due {
                    Some(due) => clock.sleep(due.since(clock.now())).await,
                    None => std::future::pending().await,
                }
            } => {}
        }
    }
}
