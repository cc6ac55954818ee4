//! The table as used by processes that may die at each operation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use journal::clock::{Clock, Stamp};
use journal::item::{Item, Value};
use journal::store::{Condition, Error, Key, Page, Partition, Query, Store, Written};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::backing_store::BackingStore;
use crate::crash_points::{Mode, Point};
use crate::executions::Executions;
use crate::faults::{Chance, Faults};
use crate::process::Process;
pub use crate::table::{Call, Request, Table, Write};
use crate::tasks::Tasks;

/// Shortest delay of a write with unknown result.
const SOON: Duration = Duration::from_millis(10);

/// Longest delay of a write with unknown result.
const LATE: Duration = Duration::from_secs(120);

/// Longest duration of a slow operation.
const SLOW: Duration = Duration::from_secs(15);

/// The table with its faults, shared by all processes.
#[derive(Debug)]
pub struct Disk {
    table: Mutex<Table>,
    executions: Mutex<Executions>,
    changed: Notify,
    chance: Arc<Chance>,
    faults: Faults,
    tasks: Tasks,
    clock: Clock,
    /// Number of attempted writes.
    tried: AtomicUsize,
    /// The only write with a fault.
    point: Option<Point>,
}

/// The table as one process uses it.
#[derive(Clone, Debug)]
pub struct SimStore {
    disk: Arc<Disk>,
    process: Arc<Process>,
}

/// The fate of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Served,
    Unavailable,
    Lost,
    Unanswered,
    Late,
    CrashBefore,
    CrashAfter,
}

impl Disk {
    pub fn new(chance: Arc<Chance>, faults: Faults, clock: Clock, tasks: Tasks) -> Self {
        Self {
            table: Mutex::default(),
            executions: Mutex::default(),
            changed: Notify::new(),
            chance,
            faults,
            tasks,
            clock,
            tried: AtomicUsize::new(0),
            point: None,
        }
    }

    /// Sets the real store, and the only write with a fault.
    pub(crate) fn with(self, backing_store: BackingStore, point: Option<Point>) -> Self {
        Self { table: Mutex::new(Table::over(backing_store)), point, ..self }
    }

    /// Access to the table itself.
    pub fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn executions(&self) -> MutexGuard<'_, Executions> {
        self.executions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The true time.
    pub(crate) fn now(&self) -> Stamp {
        self.clock.now()
    }

    /// Resolves at the next write.
    pub(crate) fn change(&self) -> Notified<'_> {
        self.changed.notified()
    }

    fn write(
        &self,
        process: &Process,
        number: usize,
        item: Item,
        condition: &Condition,
    ) -> Written {
        let written = self.table().write(self.clock.now(), process, number, item, condition);
        self.changed.notify_waiters();
        written
    }

    /// The fate of the write with this index.
    fn fate_of_write(&self, number: usize, process: &Process) -> Fate {
        let Some(point) = self.point.filter(|point| point.write == number) else {
            return self.fate(process);
        };
        match point.mode {
            Mode::DiesBefore => Fate::CrashBefore,
            Mode::DiesAfter => Fate::CrashAfter,
            Mode::ReplyLost => Fate::Unanswered,
            Mode::Lost => Fate::Lost,
        }
    }

    fn fate(&self, process: &Process) -> Fate {
        let Faults { store_unavailable, store_lost, store_unanswered, store_late, crash, .. } =
            self.faults;
        for (fate, thousandths) in [
            (Fate::Unavailable, store_unavailable),
            (Fate::Lost, store_lost),
            (Fate::Unanswered, store_unanswered),
            (Fate::Late, store_late),
            (Fate::CrashBefore, crash),
            (Fate::CrashAfter, crash),
        ] {
            if matches!(fate, Fate::CrashBefore | Fate::CrashAfter) && process.is_a_service() {
                continue;
            }
            if self.chance.happens(thousandths) {
                return fate;
            }
        }
        Fate::Served
    }

    /// Waits as long as an operation takes.
    pub(crate) async fn pass_time(&self) {
        let most = if self.chance.happens(self.faults.store_slow) {
            SLOW
        } else {
            Duration::from_millis(9)
        };
        tokio::time::sleep(self.chance.between(Duration::from_millis(1), most)).await;
    }
}

impl SimStore {
    pub fn new(disk: Arc<Disk>, process: Arc<Process>) -> Self {
        Self { disk, process }
    }

    fn asked(&self, action: &'static str, about: &str) {
        self.disk.table().asked(&self.process, action, about);
    }

    async fn write(&self, item: Item, condition: Condition) -> Result<Written, Error> {
        let disk = &self.disk;
        self.process.reach().await;
        if let Some(runner) = self.process.writes_although_fenced(&item) {
            let broken = format!("{runner} is fenced, knows it, and writes {}", item.sk);
            disk.table().is_broken(broken);
        }
        let number = disk.tried.fetch_add(1, Ordering::Relaxed);
        let fate = disk.fate_of_write(number, &self.process);
        disk.pass_time().await;
        self.process.reach().await;
        match fate {
            Fate::Unavailable => return Err(Error::Unavailable("simulated".into())),
            Fate::Lost => return Err(Error::Unknown("simulated, lost".into())),
            Fate::Late => {
                self.write_later(number, item, condition);
                return Err(Error::Unknown("simulated, late".into()));
            }
            Fate::CrashBefore => {
                self.process.kill();
                self.process.reach().await;
            }
            Fate::Served | Fate::Unanswered | Fate::CrashAfter => {}
        }
        let written = disk.write(&self.process, number, item.clone(), &condition);
        if fate == Fate::CrashAfter {
            self.process.kill();
        }
        disk.pass_time().await;
        self.process.reach().await;
        if fate == Fate::Unanswered {
            return Err(Error::Unknown("simulated, unanswered".into()));
        }
        if let Written::Refused(there) = &written {
            self.process.refused(&item, there.as_ref());
        }
        Ok(written)
    }

    /// Performs the write later, whatever happens to the sender.
    fn write_later(&self, number: usize, item: Item, condition: Condition) {
        let (disk, process) = (Arc::clone(&self.disk), Arc::clone(&self.process));
        let delay = disk.chance.between(SOON, LATE);
        self.disk.tasks.spawn(async move {
            tokio::time::sleep(delay).await;
            disk.write(&process, number, item, &condition);
        });
    }

    async fn read<T>(&self, read: impl FnOnce(&mut Table) -> T + Send) -> Result<T, Error>
    where
        T: Send,
    {
        self.reach_to_read().await?;
        Ok(read(&mut self.disk.table()))
    }

    /// Reads the executions.
    pub(crate) async fn look<T: Send>(
        &self,
        read: impl FnOnce(&Executions) -> T + Send,
    ) -> Result<T, Error> {
        self.reach_to_read().await?;
        Ok(read(&self.disk.executions()))
    }

    /// Changes the executions, in one transaction.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Executions) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let disk = &self.disk;
        self.process.reach().await;
        let fate = disk.fate(&self.process);
        disk.pass_time().await;
        self.process.reach().await;
        match fate {
            Fate::Unavailable => return Err(Error::Unavailable("simulated".into())),
            Fate::Lost => return Err(Error::Unknown("simulated, lost".into())),
            Fate::Late => {
                let (later, delay) = (Arc::clone(disk), disk.chance.between(SOON, LATE));
                disk.tasks.spawn(async move {
                    tokio::time::sleep(delay).await;
                    change(&mut later.executions());
                });
                return Err(Error::Unknown("simulated, late".into()));
            }
            Fate::CrashBefore => {
                self.process.kill();
                self.process.reach().await;
            }
            Fate::Served | Fate::Unanswered | Fate::CrashAfter => {}
        }
        let answer = change(&mut disk.executions());
        if fate == Fate::CrashAfter {
            self.process.kill();
        }
        disk.pass_time().await;
        self.process.reach().await;
        if fate == Fate::Unanswered {
            return Err(Error::Unknown("simulated, unanswered".into()));
        }
        Ok(answer)
    }

    async fn reach_to_read(&self) -> Result<(), Error> {
        self.process.reach().await;
        let fate = self.disk.fate(&self.process);
        self.disk.pass_time().await;
        self.process.reach().await;
        match fate {
            Fate::Unavailable | Fate::Lost => return Err(Error::Unavailable("simulated".into())),
            Fate::CrashBefore | Fate::CrashAfter => {
                self.process.kill();
                self.process.reach().await;
            }
            Fate::Served | Fate::Unanswered | Fate::Late => {}
        }
        Ok(())
    }
}

impl Store for SimStore {
    async fn put(&self, item: Item, condition: Condition) -> Result<Written, Error> {
        self.asked("dynamodb:PutItem", kind_of(&item.pk));
        self.write(item, condition).await
    }

    async fn update(
        &self,
        key: Key,
        set: BTreeMap<String, Value>,
        condition: Condition,
    ) -> Result<Written, Error> {
        self.asked("dynamodb:UpdateItem", kind_of(&key.pk));
        let there = self.disk.table().get(&key);
        let mut item = there.unwrap_or_else(|| Item::new(key.pk, key.sk));
        item.attributes.extend(set);
        self.write(item, condition).await
    }

    async fn get(&self, key: Key) -> Result<Option<Item>, Error> {
        self.asked("dynamodb:GetItem", kind_of(&key.pk));
        self.read(|table| table.get(&key)).await
    }

    async fn query(&self, query: Query) -> Result<Page, Error> {
        let (Partition::Table(partition) | Partition::Day(partition) | Partition::Open(partition)) =
            &query.partition;
        self.asked("dynamodb:Query", kind_of(partition));
        self.read(|table| table.query(&query)).await
    }

    /// As in an account.
    fn has_receipts(&self) -> bool {
        true
    }

    async fn changed(&self, timeout: Duration) {
        let changed = self.disk.changed.notified();
        let _ = self.process.clock.timeout(timeout, changed).await;
    }
}

/// The prefix of a partition key that names its kind.
fn kind_of(partition: &str) -> &str {
    partition.find('#').map_or(partition, |end| &partition[..=end])
}
