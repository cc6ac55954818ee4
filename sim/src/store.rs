//! A table in memory, reached by processes that may die on the way, with a log of every write.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use journal::clock::Stamp;
use journal::item::{Item, Value};
use journal::key;
use journal::store::{Condition, Cursor, Error, Key, Page, Partition, Query, Store, Written};
use tokio::sync::Notify;

use crate::faults::{Chance, Faults};
use crate::process::Process;
use crate::tasks::Tasks;

/// Most items on a page: small, so that paging happens.
const PAGE_ITEMS_MAX: usize = 40;

/// How long a write of unknown outcome may stay on its way.
const LATE: Duration = Duration::from_secs(120);

/// How long a slow operation takes at most.
const SLOW: Duration = Duration::from_secs(15);

/// The table, its log, and what was found wrong while it was written.
#[derive(Debug, Default)]
pub struct Table {
    items: BTreeMap<(String, String), Item>,
    log: Vec<Write>,
    broken: Vec<String>,
}

/// One write that landed or was refused by its condition.
#[derive(Clone, Debug)]
pub struct Write {
    /// When, by the one true clock.
    pub at: Stamp,
    /// Who.
    pub process: String,
    /// What.
    pub item: Item,
    /// Whether the condition held.
    pub landed: bool,
}

/// The table and what it needs to be slow and wrong; shared by all processes.
#[derive(Debug)]
pub struct Disk {
    table: Mutex<Table>,
    changed: Notify,
    chance: Arc<Chance>,
    faults: Faults,
    tasks: Tasks,
    clock: journal::clock::Clock,
}

/// The table as one process reaches it.
#[derive(Clone, Debug)]
pub struct SimStore {
    disk: Arc<Disk>,
    process: Arc<Process>,
}

/// What becomes of one operation.
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

impl Table {
    /// The items of all keys in order, the writes in order of landing, and what was found wrong.
    pub fn copies(&self) -> (Vec<Item>, Vec<Write>, Vec<String>) {
        (self.items.values().cloned().collect(), self.log.clone(), self.broken.clone())
    }

    fn get(&self, key: &Key) -> Option<&Item> {
        self.items.get(&(key.pk.clone(), key.sk.clone()))
    }

    fn write(
        &mut self,
        at: Stamp,
        process: &Process,
        item: Item,
        condition: &Condition,
    ) -> Written {
        let place = (item.pk.clone(), item.sk.clone());
        let there = self.items.get(&place).cloned();
        let landed = condition.holds(there.as_ref());
        self.log.push(Write { at, process: process.name.clone(), item: item.clone(), landed });
        if !landed {
            return Written::Refused(there);
        }
        if let Some(there) = there
            && there != item
            && !matches!(item.sk.as_str(), key::LEASE | key::WAIT)
        {
            self.broken
                .push(format!("{} {} was overwritten by {}", item.pk, item.sk, process.name));
        }
        self.check_order(&item);
        if item.text_opt("Kind") == Some("claim") {
            process.claimed(item.text_opt("Runner").unwrap_or_default());
        }
        self.items.insert(place, item);
        Written::Done
    }

    /// A step comes right after the newest one, and never after an end.
    fn check_order(&mut self, item: &Item) {
        if !item.sk.starts_with(key::STEP_PREFIX) {
            return;
        }
        let from = (item.pk.clone(), key::STEP_PREFIX.to_owned());
        let to = (item.pk.clone(), format!("{}~", key::STEP_PREFIX));
        let newest = self.items.range(from..to).next_back().map(|(_, newest)| newest);
        let seq = |item: &Item| item.number("Seq").unwrap_or(0);
        if newest.map_or(0, seq) + 1 != seq(item) {
            self.broken.push(format!("{} does not follow the newest step", item.sk));
        }
        if newest.is_some_and(|newest| newest.text_opt("Kind") == Some("end")) {
            self.broken.push(format!("{} was written after the end", item.sk));
        }
    }

    fn query(&self, query: &Query) -> Page {
        let Partition::Table(pk) = &query.partition else { return Page::default() };
        let bound = |sk: &str| (pk.clone(), sk.to_owned());
        let from = Bound::Included(bound(query.from.as_deref().unwrap_or("")));
        let to = Bound::Included(bound(query.to.as_deref().unwrap_or("\u{10ffff}")));
        let limit = query.limit.unwrap_or(usize::MAX).min(PAGE_ITEMS_MAX);
        let after = query.after.as_ref().map(|cursor| cursor.key.sk.as_str());
        let is_new = |item: &&Item| match after {
            Some(after) if query.reverse => item.sk.as_str() < after,
            Some(after) => item.sk.as_str() > after,
            None => true,
        };
        let range = self.items.range((from, to)).map(|(_, item)| item);
        let mut items: Vec<Item> = if query.reverse {
            range.rev().filter(is_new).take(limit + 1).cloned().collect()
        } else {
            range.filter(is_new).take(limit + 1).cloned().collect()
        };
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items
            .last()
            .filter(|_| more)
            .map(|last| Cursor { key: Key::new(last.pk.as_str(), last.sk.as_str()), at: None });
        Page { items, next }
    }
}

impl Disk {
    /// An empty table.
    pub fn new(
        chance: Arc<Chance>,
        faults: Faults,
        clock: journal::clock::Clock,
        tasks: Tasks,
    ) -> Self {
        Self { table: Mutex::default(), changed: Notify::new(), chance, faults, tasks, clock }
    }

    /// The table, to be looked at.
    pub fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, process: &Process, item: Item, condition: &Condition) -> Written {
        let written = self.table().write(self.clock.now(), process, item, condition);
        self.changed.notify_waiters();
        written
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

    async fn pass_time(&self) {
        let most = if self.chance.happens(self.faults.store_slow) {
            SLOW
        } else {
            Duration::from_millis(9)
        };
        tokio::time::sleep(self.chance.between(Duration::from_millis(1), most)).await;
    }
}

impl SimStore {
    /// The table as this process reaches it.
    pub fn new(disk: Arc<Disk>, process: Arc<Process>) -> Self {
        Self { disk, process }
    }

    async fn write(&self, item: Item, condition: Condition) -> Result<Written, Error> {
        let disk = &self.disk;
        self.process.reach().await;
        if let Some(runner) = self.process.writes_although_fenced(&item) {
            let broken = format!("{runner} is fenced, knows it, and writes {}", item.sk);
            disk.table().broken.push(broken);
        }
        let fate = disk.fate(&self.process);
        disk.pass_time().await;
        self.process.reach().await;
        match fate {
            Fate::Unavailable => return Err(Error::Unavailable("simulated".into())),
            Fate::Lost => return Err(Error::Unknown("simulated, lost".into())),
            Fate::Late => {
                self.write_later(item, condition);
                return Err(Error::Unknown("simulated, late".into()));
            }
            Fate::CrashBefore => {
                self.process.kill();
                self.process.reach().await;
            }
            Fate::Served | Fate::Unanswered | Fate::CrashAfter => {}
        }
        let written = disk.write(&self.process, item.clone(), &condition);
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

    /// The request is on its way whatever becomes of who sent it.
    fn write_later(&self, item: Item, condition: Condition) {
        let (disk, process) = (Arc::clone(&self.disk), Arc::clone(&self.process));
        let delay = disk.chance.between(Duration::from_millis(10), LATE);
        self.disk.tasks.spawn(async move {
            tokio::time::sleep(delay).await;
            disk.write(&process, item, &condition);
        });
    }

    async fn read<T>(&self, read: impl FnOnce(&Table) -> T + Send) -> Result<T, Error>
    where
        T: Send,
    {
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
        Ok(read(&self.disk.table()))
    }
}

impl Store for SimStore {
    async fn put(&self, item: Item, condition: Condition) -> Result<Written, Error> {
        self.write(item, condition).await
    }

    async fn update(
        &self,
        key: Key,
        set: BTreeMap<String, Value>,
        condition: Condition,
    ) -> Result<Written, Error> {
        let there = self.disk.table().get(&key).cloned();
        let mut item = there.unwrap_or_else(|| Item::new(key.pk, key.sk));
        item.attributes.extend(set);
        self.write(item, condition).await
    }

    async fn get(&self, key: Key) -> Result<Option<Item>, Error> {
        self.read(|table| table.get(&key).cloned()).await
    }

    async fn query(&self, query: Query) -> Result<Page, Error> {
        self.read(|table| table.query(&query)).await
    }

    async fn changed(&self, patience: Duration) {
        let changed = self.disk.changed.notified();
        let _ = self.process.clock.timeout(patience, changed).await;
    }
}
