//! The store as a participant of a race uses it: each operation waits for its turn.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::time::Duration;

use journal::clock::{Clock, Stamp};
use journal::item::{Item, Value};
use journal::key;
use journal::store::{Condition, Error, Key, Page, Partition, Query, Store, Written};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::process::Process;

/// A runtime for the real store, with real time.
#[derive(Clone, Debug)]
pub struct Io(Arc<Runtime>);

/// The part of the store that an operation touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Access {
    partition: String,
    from: String,
    to: String,
    writes: bool,
}

/// The fate of an operation after its turn. It always reaches the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The participant gets the reply.
    Served,
    /// The participant gets the error that the result is unknown.
    Unanswered,
    /// The participant dies before the reply arrives.
    Dies,
}

/// A write that reached the store.
#[derive(Clone, Debug)]
pub struct Write {
    /// The participant.
    pub by: String,
    pub item: Item,
    pub landed: bool,
}

/// State that all gates of a schedule share.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The waiting operations, in order of arrival.
    pub(super) waiting: Vec<Waiting>,
    /// Number of operations per participant.
    asked: BTreeMap<usize, u32>,
    /// All writes that reached the store, in order.
    pub(super) log: Vec<Write>,
    /// Violations visible at a single write.
    pub(super) broken: Vec<String>,
}

/// An operation that waits for its turn.
pub(super) struct Waiting {
    pub(super) participant: usize,
    /// Index among its participant's operations.
    pub(super) number: u32,
    pub(super) access: Access,
    pub(super) perform: Box<dyn FnOnce(Fate) -> Option<Write> + Send>,
    /// Dead once the caller is gone.
    pub(super) wanted: Weak<()>,
}

/// A store whose operations wait for their turn in the schedule, or, before and after the race, do
/// not wait.
///
/// The real operation runs on [`Io`] while this thread blocks, so that no simulated time passes.
#[derive(Clone, Debug)]
pub struct Gate<S> {
    store: S,
    io: Io,
    queue: Arc<Mutex<Queue>>,
    process: Arc<Process>,
    /// The participant; `None` outside the race.
    participant: Option<usize>,
}

impl Io {
    /// A runtime for a store.
    ///
    /// # Panics
    /// No thread can be started.
    pub fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Self(Arc::new(runtime.unwrap_or_else(|error| panic!("no runtime: {error}"))))
    }

    /// Blocks this thread until the store replies.
    ///
    /// # Panics
    /// The store panics.
    pub fn wait<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let (done, result) = mpsc::sync_channel(1);
        self.0.spawn(async move {
            // The receiver waits below.
            let _ = done.send(work.await);
        });
        result.recv().unwrap_or_else(|_| panic!("the store panicked"))
    }
}

impl Access {
    fn write(key: &Key) -> Self {
        Self { writes: true, ..Self::read(&key.pk, &key.sk, &key.sk) }
    }

    fn read(partition: &str, from: &str, to: &str) -> Self {
        let (partition, from, to) = (partition.to_owned(), from.to_owned(), to.to_owned());
        Self { partition, from, to, writes: false }
    }

    fn query(query: &Query) -> Self {
        let (Partition::Table(name) | Partition::Day(name) | Partition::Open(name)) =
            &query.partition;
        let (from, to) = (query.from.as_deref(), query.to.as_deref());
        Self::read(name, from.unwrap_or_default(), to.unwrap_or("\u{10ffff}"))
    }

    /// Whether the order of two operations matters.
    pub(super) fn conflicts(&self, other: &Self) -> bool {
        (self.writes || other.writes)
            && self.partition == other.partition
            && self.from <= other.to
            && other.from <= self.to
    }

    pub(super) fn is_write(&self) -> bool {
        self.writes
    }

    /// A short form of the operation, equal in all sessions.
    pub(super) fn label(&self) -> String {
        let what = if self.writes { "writes" } else { "reads" };
        let kind = self.partition.split('#').next().unwrap_or_default();
        if self.from == self.to {
            format!("{what} {kind} {}", self.from)
        } else {
            format!("{what} {kind} {}…", self.from)
        }
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{} {}", self.participant, self.number, self.access.label())
    }
}

impl<S: Store> Gate<S> {
    /// A gate at which no operation waits.
    pub(super) fn open(store: S, io: Io, queue: Arc<Mutex<Queue>>) -> Self {
        let process = Process::new("nobody".to_owned(), Clock::fixed(Stamp::default()));
        Self { store, io, queue, process: Arc::new(process), participant: None }
    }

    /// The gate of a process that waits as this participant.
    pub(super) fn of(&self, process: Process, participant: usize) -> Self {
        Self { process: Arc::new(process), participant: Some(participant), ..self.clone() }
    }

    pub(super) fn process(&self) -> &Arc<Process> {
        &self.process
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    async fn read<T: Send + 'static>(
        &self,
        access: Access,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let io = self.io.clone();
        self.take_turn(access, move || (io.wait(work), None)).await
    }

    async fn write(
        &self,
        item: Item,
        work: impl Future<Output = Result<Written, Error>> + Send + 'static,
    ) -> Result<Written, Error> {
        if let Some(runner) = self.process.writes_although_fenced(&item) {
            let broken = format!("{runner} is fenced, knows it, and writes {}", item.sk);
            self.queue().broken.push(broken);
        }
        let access = Access::write(&Key::new(&item.pk, &item.sk));
        let (io, process, tried) = (self.io.clone(), Arc::clone(&self.process), item.clone());
        let answer = self.take_turn(access, move || {
            let answer = io.wait(work);
            let landed = matches!(answer, Ok(Written::Done));
            if landed && item.text_opt("Kind") == Some("claim") {
                process.claimed(item.text_opt("Runner").unwrap_or_default());
            }
            (answer, Some(Write { by: process.name.clone(), item, landed }))
        });
        let answer = answer.await;
        if let Ok(Written::Refused(there)) = &answer {
            self.process.refused(&tried, there.as_ref());
        }
        answer
    }

    /// Waits for the turn and the reply; forever if the process dies first.
    async fn take_turn<T: Send + 'static>(
        &self,
        access: Access,
        work: impl FnOnce() -> (Result<T, Error>, Option<Write>) + Send + 'static,
    ) -> Result<T, Error> {
        let Some(participant) = self.participant else {
            let (answer, write) = work();
            self.queue().log.extend(write);
            return answer;
        };
        self.process.reach().await;
        let (reply, answered) = oneshot::channel();
        let perform = move |fate| {
            let (answer, write) = work();
            match fate {
                // The caller may be gone.
                Fate::Served => drop(reply.send(answer)),
                Fate::Unanswered => {
                    drop(reply.send(Err(Error::Unknown("the answer was lost".into()))));
                }
                Fate::Dies => {}
            }
            write
        };
        let waits = Arc::new(());
        let wanted = Arc::downgrade(&waits);
        {
            let mut queue = self.queue();
            let asked = queue.asked.entry(participant).or_default();
            *asked += 1;
            let number = *asked;
            let perform = Box::new(perform);
            queue.waiting.push(Waiting { participant, number, access, perform, wanted });
        }
        match answered.await {
            Ok(answer) => answer,
            Err(_) => std::future::pending().await,
        }
    }
}

impl<S: Store> Store for Gate<S> {
    async fn put(&self, item: Item, condition: Condition) -> Result<Written, Error> {
        let (store, whole) = (self.store.clone(), item.clone());
        self.write(item, async move { store.put(whole, condition).await }).await
    }

    async fn update(
        &self,
        key: Key,
        set: BTreeMap<String, Value>,
        condition: Condition,
    ) -> Result<Written, Error> {
        let store = self.store.clone();
        let mut item = Item::new(&key.pk, &key.sk);
        item.attributes.clone_from(&set);
        self.write(item, async move { store.update(key, set, condition).await }).await
    }

    async fn get(&self, key: Key) -> Result<Option<Item>, Error> {
        let (store, access) = (self.store.clone(), Access::read(&key.pk, &key.sk, &key.sk));
        self.read(access, async move { store.get(key).await }).await
    }

    async fn query(&self, query: Query) -> Result<Page, Error> {
        let (store, access) = (self.store.clone(), Access::query(&query));
        self.read(access, async move { store.query(query).await }).await
    }

    async fn changed(&self, timeout: Duration) {
        tokio::time::sleep(timeout).await;
    }
}

/// Overwritten records: no condition of ours allows it.
pub(super) fn overwritten(log: &[Write]) -> Vec<String> {
    let mut there: BTreeMap<(&str, &str), &Write> = BTreeMap::new();
    let mut broken = Vec::new();
    let kept = |write: &&Write| !matches!(write.item.sk.as_str(), key::LEASE | key::WAIT);
    for write in log.iter().filter(|write| write.landed).filter(kept) {
        let before = there.insert((&write.item.pk, &write.item.sk), write);
        if before.is_some_and(|before| before.item != write.item) {
            broken.push(format!("{} was overwritten by {}", write.item.sk, write.by));
        }
    }
    broken
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
