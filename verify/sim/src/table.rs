//! The table, the violations found while it was written, and logs of all requests.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use graph::question::OpenQuestion;
use journal::clock::Stamp;
use journal::event::{Event, EventStatus};
use journal::id::SessionId;
use journal::item::Item;
use journal::key;
use journal::lease;
use journal::payload::DecodeError;
use journal::step::Step;
use journal::store::{Condition, Cursor, Key, Page, Partition, Query, Written};
use serde_json::Value;

use crate::backing_store::BackingStore;
use crate::process::Process;

/// Most items per page: few, so that paging happens.
const PAGE_ITEMS_MAX: usize = 40;

/// The table, its log, and the violations found at writes.
#[derive(Debug, Default)]
pub struct Table {
    items: BTreeMap<(String, String), Item>,
    backing_store: BackingStore,
    log: Vec<Write>,
    calls: Vec<Call>,
    broken: Vec<String>,
    requests: BTreeSet<Request>,
}

/// A kind of request, in IAM's terms.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// The program that made it.
    pub role: String,
    pub action: &'static str,
    /// The resource: for the table the kind of partition (`SESSION#`), else the kind of resource.
    pub about: String,
}

/// A write that succeeded, or whose condition failed.
#[derive(Clone, Debug)]
pub struct Write {
    /// By the true clock.
    pub at: Stamp,
    pub process: String,
    /// Index among all attempted writes, from 0.
    pub number: usize,
    pub item: Item,
    pub landed: bool,
}

/// A call of a server's tool, as the server performed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// By the true clock.
    pub at: Stamp,
    /// The calling process.
    pub process: String,
    /// Number of writes in the log at that time.
    pub after: usize,
    pub server: String,
    pub tool: String,
    pub arguments: Value,
}

impl Table {
    pub(crate) fn over(backing_store: BackingStore) -> Self {
        Self { backing_store, ..Self::default() }
    }

    /// The items in key order, the writes in order, and the violations.
    pub fn copies(&self) -> (Vec<Item>, Vec<Write>, Vec<String>) {
        (self.items.values().cloned().collect(), self.log.clone(), self.broken.clone())
    }

    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Restores the state of an earlier run after these writes and calls.
    pub(crate) fn restore(&mut self, log: &[Write], calls: &[Call]) {
        for write in log.iter().filter(|write| write.landed) {
            let place = (write.item.pk.clone(), write.item.sk.clone());
            self.items.insert(place, write.item.clone());
        }
        for item in self.items.values() {
            let written = self.backing_store.put(item, &Condition::Absent);
            assert!(written.is_none_or(|w| w == Ok(Written::Done)), "the store is not empty");
        }
        self.log = log.to_vec();
        self.calls = calls.to_vec();
    }

    /// Records a call that a server performs.
    pub(crate) fn called(&mut self, call: Call) {
        self.calls.push(Call { after: self.log.len(), ..call });
    }

    pub fn requests(&self) -> &BTreeSet<Request> {
        &self.requests
    }

    /// Records a request.
    pub(crate) fn asked(&mut self, process: &Process, action: &'static str, about: &str) {
        let role = process.name.rsplit_once('-').map_or(&*process.name, |(role, _)| role);
        self.requests.insert(Request { role: role.to_owned(), action, about: about.to_owned() });
    }

    pub(crate) fn is_broken(&mut self, what: String) {
        self.broken.push(what);
    }

    pub(crate) fn has_event(&self, session: &SessionId, is: impl Fn(EventStatus) -> bool) -> bool {
        let from = (key::session(session), key::EVENT_PREFIX.to_owned());
        let to = (key::session(session), format!("{}~", key::EVENT_PREFIX));
        self.items
            .range(from..to)
            .any(|(_, item)| Event::from_item(item).is_ok_and(|event| is(event.status)))
    }

    /// The session's open question.
    pub(crate) fn open_question(&self, session: &SessionId) -> Option<OpenQuestion> {
        let from = (key::session(session), key::STEP_PREFIX.to_owned());
        let to = (key::session(session), format!("{}~", key::STEP_PREFIX));
        let newest = self.items.range(from..to).next_back().map(|(_, newest)| newest);
        let newest = newest.filter(|newest| newest.text_opt("Kind") == Some("ask"))?;
        let steps = [read_step(newest).ok()?];
        control::answer::open_question(&steps).ok().map(|(_, open)| open)
    }

    pub(crate) fn get(&mut self, key: &Key) -> Option<Item> {
        let item = self.items.get(&(key.pk.clone(), key.sk.clone())).cloned();
        match self.backing_store.get(key) {
            Some(Ok(found)) if found == item => {}
            None => {}
            Some(other) => self.broken.push(format!("{key:?} reads {other:?}, not {item:?}")),
        }
        item
    }

    pub(crate) fn write(
        &mut self,
        at: Stamp,
        process: &Process,
        number: usize,
        item: Item,
        condition: &Condition,
    ) -> Written {
        let place = (item.pk.clone(), item.sk.clone());
        let there = self.items.get(&place).cloned();
        let landed = condition.holds(there.as_ref());
        let written = if landed { Written::Done } else { Written::Refused(there.clone()) };
        match self.backing_store.put(&item, condition) {
            Some(Ok(answer)) if answer == written => {}
            None => {}
            Some(other) => {
                self.broken.push(format!("{} was answered {other:?}, not {written:?}", item.sk));
            }
        }
        let process_name = process.name.clone();
        self.log.push(Write { at, process: process_name, number, item: item.clone(), landed });
        if !landed {
            return written;
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
        written
    }

    /// A step follows the newest one, and never an end.
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

    pub(crate) fn query(&mut self, query: &Query) -> Page {
        let limit = query.limit.unwrap_or(usize::MAX).min(PAGE_ITEMS_MAX);
        let page = self.page(query, limit);
        match self.backing_store.query(&query.clone().limited(limit)) {
            Some(Ok(found)) if found.items == page.items && has_more(&found, &page) => found,
            None => page,
            Some(other) => {
                self.broken.push(format!("{query:?} reads {other:?}, not {page:?}"));
                page
            }
        }
    }

    fn page(&self, query: &Query, limit: usize) -> Page {
        let pk = match &query.partition {
            Partition::Table(pk) => pk,
            Partition::Open(shard) => return self.open_leases(shard, query, limit),
            Partition::Day(_) => return Page::default(),
        };
        let bound = |sk: &str| (pk.clone(), sk.to_owned());
        let from = Bound::Included(bound(query.from.as_deref().unwrap_or("")));
        let to = Bound::Included(bound(query.to.as_deref().unwrap_or("\u{10ffff}")));
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

    /// The first page of a partition of the index of open leases.
    fn open_leases(&self, shard: &str, query: &Query, limit: usize) -> Page {
        let heartbeat_at =
            |item: &Item| item.text_opt(lease::HEARTBEAT_AT).unwrap_or_default().to_owned();
        let is_open = |item: &&Item| item.text_opt(lease::OPEN) == Some(shard);
        let to = query.to.as_deref().unwrap_or("~");
        let open = self.items.values().filter(is_open);
        let mut items: Vec<Item> =
            open.filter(|i| heartbeat_at(i).as_str() <= to).cloned().collect();
        items.sort_by_key(heartbeat_at);
        items.truncate(limit);
        Page { items, next: None }
    }

    /// Compares the real store's contents with what was written.
    pub(crate) fn compare(&mut self) {
        let items: Vec<Item> = self.items.values().cloned().collect();
        for item in items {
            self.get(&Key::new(item.pk, item.sk));
        }
    }
}

/// A store may announce a next page that is empty, but never omit one.
fn has_more(found: &Page, expected: &Page) -> bool {
    found.next.is_some() || expected.next.is_none()
}

/// A step with its payload, which must not have parts.
pub(crate) fn read_step(item: &Item) -> Result<Step<Value>, String> {
    let step = Step::from_item(item).map_err(|error| error.to_string())?;
    let decoded = step.try_map(|payload| payload.decode(&[]));
    decoded.map_err(|error: DecodeError| error.to_string())
}
