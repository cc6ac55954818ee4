//! The checks of a session's records.

mod announced;
mod requests;

use std::collections::{BTreeMap, BTreeSet};

use super::{Change, Damage};
use crate::clock::Stamp;
use crate::event::{Event, EventStatus, WALL_TIME, WRITER, Writer};
use crate::id::SessionId;
use crate::item::{HASH, Hash, Item, Value};
use crate::key::{self, attribute};
use crate::limits::STEPS_MAX;
use crate::log::{Judged, Leaf, Missing};
use crate::payload::{Payload, part_bytes};
use crate::receipt::{self, Receipts};
use crate::step::{KIND, SEQ, Step, StepKind};

/// A record's name in a report.
pub(super) fn place(session: &SessionId, item: &Item) -> String {
    if item.pk == key::session(session) {
        item.sk.clone()
    } else {
        format!("{} {}", item.pk, item.sk)
    }
}

/// The records of a session by kind, and the damage found so far.
pub(super) struct Check<'a> {
    session: &'a SessionId,
    pub(super) steps: BTreeMap<u32, &'a Item>,
    pub(super) events: BTreeMap<&'a str, &'a Item>,
    parts: BTreeMap<&'a str, BTreeMap<&'a str, &'a Item>>,
    /// Partitions of parts that a record names.
    named_parts: BTreeSet<String>,
    /// Records already reported: one damage per record is enough.
    pub(super) reported: BTreeSet<String>,
    /// Records whose hash an anchor names, directly or through other records.
    pub(super) vouched: BTreeSet<String>,
    damage: Vec<Damage>,
}

/// The attributes in which two announcements of one fact may differ.
pub(super) const WHO_AND_WHEN: [&str; 4] = [WRITER, attribute::TIMESTAMP, WALL_TIME, HASH];

/// The attributes of a part, in order.
const PART_ATTRIBUTES: [&str; 3] = ["Bytes", attribute::EXPIRES_AT, HASH];

enum Kind {
    Step(u32),
    Event,
    Part,
    Mutable,
    Foreign,
}

impl<'a> Check<'a> {
    pub(super) fn of(session: &'a SessionId, items: &'a [Item]) -> Self {
        let mut check = Self {
            session,
            steps: BTreeMap::new(),
            events: BTreeMap::new(),
            parts: BTreeMap::new(),
            named_parts: BTreeSet::new(),
            reported: BTreeSet::new(),
            vouched: BTreeSet::new(),
            damage: Vec::new(),
        };
        for item in items {
            check.sort_out(item);
        }
        check
    }

    /// Whether nothing of the session is left.
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.events.is_empty() && self.parts.is_empty()
    }

    pub(super) fn into_damage(self) -> Vec<Damage> {
        self.damage
    }

    pub(super) fn report(&mut self, damage: Damage) {
        self.damage.push(damage);
    }

    fn sort_out(&mut self, item: &'a Item) {
        let place = place(self.session, item);
        let kind = kind(self.session, item);
        let known = match kind {
            Kind::Step(seq) => self.steps.contains_key(&seq),
            Kind::Event => self.events.contains_key(item.sk.as_str()),
            Kind::Part => {
                self.parts.get(item.pk.as_str()).is_some_and(|parts| parts.contains_key(&*item.sk))
            }
            Kind::Mutable => return,
            Kind::Foreign => {
                let reason = "the session has no records with such a key";
                return self.report(Damage::Added { place, reason });
            }
        };
        if known {
            return self.report(Damage::Duplicated { place });
        }
        self.own_hash(item, &kind, place);
        match kind {
            Kind::Step(seq) => drop(self.steps.insert(seq, item)),
            Kind::Event => drop(self.events.insert(&item.sk, item)),
            _ => drop(self.parts.entry(&item.pk).or_default().insert(&item.sk, item)),
        }
    }

    /// Checks that a record has the hash that it states.
    fn own_hash(&mut self, item: &Item, kind: &Kind, place: String) {
        if let Some(reason) = item.unreadable_reason() {
            self.reported.insert(place.clone());
            return self.report(Damage::Unreadable { place, reason: reason.to_owned() });
        }
        let found = item.hash();
        let change = match item.attributes.get(HASH) {
            Some(Value::S(stated)) if stated == found.as_str() => {
                if !(matches!(kind, Kind::Event) && is_of_state_machine(item)) {
                    return;
                }
                Change::HashAdded
            }
            Some(Value::S(stated)) => {
                if let Some(belongs) = moved_from(item, kind, stated) {
                    self.reported.insert(place.clone());
                    return self.report(Damage::Reordered { place, belongs });
                }
                Change::Stated { stated: stated.clone(), found }
            }
            Some(_) => Change::Stated { stated: "something else".to_owned(), found },
            // The state machine cannot compute hashes, and older writers did not.
            None if matches!(kind, Kind::Event) && states_no_hash(item) => return,
            None => Change::HashMissing,
        };
        self.changed(place, change);
    }

    fn changed(&mut self, place: String, change: Change) {
        if self.reported.insert(place.clone()) {
            self.report(Damage::Changed { place, change });
        }
    }

    pub(super) fn added(&mut self, place: &str, reason: &'static str) {
        if self.reported.insert(place.to_owned()) {
            self.report(Damage::Added { place: place.to_owned(), reason });
        }
    }

    /// Compares the records that have leaves in the log of sessions with those leaves; returns what it cannot prove.
    pub(super) fn log(&mut self, log: &Judged) -> Vec<String> {
        self.damage
            .extend(log.problems.iter().map(|problem| Damage::Log { problem: problem.clone() }));
        for leaf in log.leaves() {
            let found = self.events.get(leaf.sk.as_str()).map(|item| item.hash());
            match found {
                Some(found) if found == leaf.hash => {}
                Some(found) => {
                    self.named_otherwise(&leaf.sk, "the log of sessions", &leaf.hash, &found);
                }
                None if self.reported.insert(leaf.sk.clone()) => {
                    self.report(Damage::Removed { first: leaf.sk.clone(), last: leaf.sk.clone() });
                }
                None => {}
            }
        }
        let is_logged = |of: &Leaf| log.leaves().any(|leaf| leaf.sk == of.sk);
        let due = self.events.values().filter_map(|item| Leaf::of(item));
        let missing: Vec<_> = due.filter(|leaf| !is_logged(leaf)).collect();
        let mut unmet = log.unmet.clone();
        unmet.extend(log.unproven());
        for leaf in missing {
            match log.missing(&leaf) {
                Missing::Added if self.reported.insert(leaf.sk.clone()) => {
                    self.report(Damage::NotLogged { place: leaf.sk });
                }
                Missing::Unmet(reason) => unmet.push(reason),
                Missing::Added | Missing::Unknown => {}
            }
        }
        unmet
    }

    /// Reports the first record of a session without any leaf.
    pub(super) fn not_logged(&mut self) {
        let events = self.events.keys().map(|sk| (*sk).to_owned());
        let first = events.chain(self.steps.keys().map(|seq| key::step(*seq))).next();
        if let Some(place) = first
            && self.reported.insert(place.clone())
        {
            self.report(Damage::NotLogged { place });
        }
    }

    pub(super) fn named_otherwise(&mut self, place: &str, by: &str, named: &Hash, found: &Hash) {
        let (by, named, found) = (by.to_owned(), named.clone(), found.clone());
        self.changed(place.to_owned(), Change::Named { by, named, found });
    }

    /// Follows the chain from its end, since each step holds the hash of the previous one. `anchor`
    /// names what protects the last step, its number and its hash.
    pub(super) fn steps(&mut self, anchor: Option<(String, u32, Hash)>) {
        let end = anchor.as_ref().map(|(_, seq, _)| *seq).or_else(|| self.end_step());
        let newest = self.steps.keys().next_back().copied().unwrap_or(0);
        let beyond: Vec<_> = match end {
            Some(end) => self.steps.range(end.saturating_add(1)..).map(|(_, item)| *item).collect(),
            None => Vec::new(),
        };
        for item in beyond {
            self.added(&item.sk, "it follows the last step");
        }
        if let Some(end) = end.filter(|end| *end > newest) {
            let (first, last) = (key::step(newest + 1), key::step(end));
            self.report(Damage::CutOff { first, last });
        }
        let mut rooted = anchor.is_some();
        let mut named = anchor.map(|(by, seq, hash)| (seq, by, hash));
        let mut above = end.unwrap_or(newest).min(newest) + 1;
        let chain: Vec<_> =
            self.steps.range(..above).rev().map(|(seq, item)| (*seq, *item)).collect();
        for (seq, item) in chain {
            self.gap(seq + 1, above);
            above = seq;
            let found = item.hash();
            let vouched = match named.take().filter(|(of, _, _)| *of == seq) {
                Some((_, by, hash)) if hash != found => {
                    self.named_otherwise(&item.sk, &by, &hash, &found);
                    rooted = false;
                    false
                }
                Some(_) => {
                    if rooted {
                        self.vouched.insert(item.sk.clone());
                    }
                    true
                }
                None => {
                    rooted = false;
                    !self.reported.contains(&item.sk)
                }
            };
            if vouched {
                named = self.names_before(seq, item);
            }
        }
        self.gap(1, above);
    }

    /// The number and hash of the previous step, as a step names them.
    fn names_before(&mut self, seq: u32, item: &Item) -> Option<(u32, String, Hash)> {
        match Step::from_item(item) {
            Ok(step) if seq == 1 => {
                if step.prev_hash != Hash::genesis() {
                    self.changed(item.sk.clone(), Change::NotFirst);
                }
                None
            }
            Ok(step) => Some((seq - 1, item.sk.clone(), step.prev_hash)),
            Err(error) => {
                let (place, reason) = (item.sk.clone(), error.to_string());
                if self.reported.insert(place.clone()) {
                    self.report(Damage::Unreadable { place, reason });
                }
                None
            }
        }
    }

    /// Compares the steps that say what people decided with their receipts.
    pub(super) fn receipts(&mut self, receipts: &Receipts) {
        let due = self.steps.values().filter(|item| receipt::is_due_of(item));
        let lacking = due.filter(|item| !receipts.contains(&item.hash()));
        let lacking: Vec<_> = lacking.map(|item| item.sk.clone()).collect();
        for place in lacking {
            if self.reported.insert(place.clone()) {
                self.report(Damage::NoReceipt { place });
            }
        }
    }

    /// Reports missing numbers from `first` up to `above`, exclusive.
    fn gap(&mut self, first: u32, above: u32) {
        if first < above {
            let (first, last) = (key::step(first), key::step(above - 1));
            self.report(Damage::Removed { first, last });
        }
    }

    /// Number of the first valid end step.
    fn end_step(&self) -> Option<u32> {
        let mut ends = self.steps.iter().filter(|(_, item)| {
            item.text_opt(KIND) == Some(StepKind::End.as_str()) && !self.reported.contains(&item.sk)
        });
        ends.next().map(|(seq, _)| *seq)
    }

    /// Compares the events with the verdict's manifest; returns those after the verdict.
    pub(super) fn events(&mut self, verdict: &Event) -> Vec<String> {
        let contradicting = self.contradicting(verdict);
        let Some(manifest) = self.manifest(verdict) else { return Vec::new() };
        let mut unsealed = Vec::new();
        let events: Vec<_> = self.events.values().copied().collect();
        for item in events {
            if item.sk == verdict.sk {
                continue;
            }
            let found = item.hash();
            match manifest.get(&item.sk) {
                Some(named) if *named == found => drop(self.vouched.insert(item.sk.clone())),
                Some(named) => self.named_otherwise(&item.sk, &verdict.sk, named, &found),
                None if contradicting.contains(&item.sk) => {}
                None if is_later(item, verdict) => unsealed.push(item.sk.clone()),
                None if self.is_announced(item, &manifest) => unsealed.push(item.sk.clone()),
                None => self.added(&item.sk, "the verdict does not name it: it was forged, or written at the same time as the verdict"),
            }
        }
        for sk in manifest.keys().filter(|sk| !self.events.contains_key(sk.as_str())) {
            self.damage.push(Damage::Removed { first: sk.clone(), last: sk.clone() });
        }
        unsealed
    }

    /// The verdict's list of events. If it is missing, the reason has been or is now reported.
    fn manifest(&mut self, verdict: &Event) -> Option<BTreeMap<String, Hash>> {
        let read = verdict.seal.as_ref().and_then(|seal| {
            let json = seal.manifest.decode(&self.part_bytes(&seal.manifest)).ok()?;
            let entries = json.as_array()?.iter().map(|entry| {
                let sk = entry.get(0)?.as_str()?.to_owned();
                Some((sk, Hash::from_record(entry.get(1)?.as_str()?)))
            });
            entries.collect::<Option<BTreeMap<_, _>>>()
        });
        // Missing parts of the list have been named.
        let is_whole = verdict.seal.as_ref().is_some_and(|seal| self.has_all_parts(&seal.manifest));
        if read.is_none() && is_whole && self.reported.insert(verdict.sk.clone()) {
            let reason = "its list of events cannot be read".to_owned();
            self.report(Damage::Unreadable { place: verdict.sk.clone(), reason });
        }
        read
    }

    fn part_bytes(&self, payload: &Payload) -> Vec<Vec<u8>> {
        let Payload::Parts { sha256, parts, .. } = payload else { return Vec::new() };
        let pk = key::blob(self.session, sha256.as_str());
        let items: Vec<_> =
            self.parts.get(&*pk).into_iter().flat_map(BTreeMap::values).copied().cloned().collect();
        part_bytes(&items, *parts).unwrap_or_default()
    }

    fn has_all_parts(&self, payload: &Payload) -> bool {
        let Payload::Parts { sha256, parts, .. } = payload else { return true };
        let there = self.parts.get(&*key::blob(self.session, sha256.as_str()));
        (0..*parts).all(|part| there.is_some_and(|there| there.contains_key(&*key::part(part))))
    }

    /// Checks the parts of all payloads.
    pub(super) fn payloads(&mut self) {
        let records: Vec<_> = self.steps.values().chain(self.events.values()).copied().collect();
        for item in records {
            if let Ok(Some(payload)) = Payload::read_from(item) {
                self.parts(item, &payload);
            }
        }
    }

    fn parts(&mut self, by: &Item, payload: &Payload) {
        let Payload::Parts { sha256, parts: count, .. } = payload else { return };
        let pk = key::blob(self.session, sha256.as_str());
        if !self.named_parts.insert(pk.clone()) {
            return;
        }
        let there = self.parts.get(&*pk).cloned().unwrap_or_default();
        let name = |sk: &str| format!("{pk} {sk}");
        let missing: Vec<_> =
            (0..*count).map(key::part).filter(|sk| !there.contains_key(&**sk)).take(2).collect();
        if let (Some(first), Some(last)) = (missing.first(), missing.last()) {
            let last = if missing.len() == 1 { last.clone() } else { key::part(count - 1) };
            self.report(Damage::Removed { first: name(first), last: name(&last) });
        }
        for (sk, part) in &there {
            if part_number(sk).is_none_or(|number| number >= *count) {
                self.added(&name(sk), "the record that names the payload has fewer parts");
            } else if !part.attributes.keys().map(String::as_str).eq(PART_ATTRIBUTES) {
                self.changed(name(sk), Change::Attributes);
            } else if part.attributes.get(attribute::EXPIRES_AT)
                != by.attributes.get(attribute::EXPIRES_AT)
                && !self.reported.contains(&by.sk)
            {
                self.changed(name(sk), Change::Expiry { by: by.sk.clone() });
            }
        }
        let found = Hash::of(&self.part_bytes(payload).concat());
        let unsuspected = there.keys().all(|sk| !self.reported.contains(&name(sk)));
        if missing.is_empty() && unsuspected && found != *sha256 {
            self.named_otherwise(&pk, &by.sk, sha256, &found);
        }
    }

    /// Reports further initiations: a session has one.
    pub(super) fn initiations(&mut self) {
        let mut found: Vec<_> = self
            .events
            .values()
            .filter(|item| !self.reported.contains(&item.sk))
            .filter_map(|item| Event::from_item(item).ok())
            .filter(|event| event.status == EventStatus::SessionInitiated)
            .collect();
        found.sort_by(|a, b| (a.stamp, &a.sk).cmp(&(b.stamp, &b.sk)));
        for copy in found.iter().skip(1) {
            self.added(&copy.sk, "the session was initiated before");
        }
    }

    /// Reports parts that no record names.
    pub(super) fn unnamed_parts(&mut self) {
        let parts = std::mem::take(&mut self.parts);
        for (pk, parts) in parts {
            let unnamed = !self.named_parts.contains(pk);
            for sk in parts.keys().filter(|_| unnamed) {
                self.report(Damage::Unnamed { place: format!("{pk} {sk}") });
            }
        }
    }
}

fn kind(session: &SessionId, item: &Item) -> Kind {
    if item.pk.strip_prefix(&key::blob(session, "")).is_some() {
        return Kind::Part;
    }
    if item.pk != key::session(session) {
        return Kind::Foreign;
    }
    if let Some(digits) = item.sk.strip_prefix(key::STEP_PREFIX) {
        return match digits.parse() {
            Ok(seq) if (1..=STEPS_MAX).contains(&seq) && key::step(seq) == item.sk => {
                Kind::Step(seq)
            }
            _ => Kind::Foreign,
        };
    }
    match item.sk.as_str() {
        sk if sk.starts_with(key::EVENT_PREFIX) => Kind::Event,
        // `SESSION` was written by an earlier design and is ignored.
        key::LEASE | key::WAIT | "SESSION" => Kind::Mutable,
        _ => Kind::Foreign,
    }
}

fn part_number(sk: &str) -> Option<u32> {
    let number = sk.strip_prefix("PART#")?.parse().ok()?;
    (key::part(number) == sk).then_some(number)
}

/// The key under which a record was written, if it differs and the stated hash proves it.
fn moved_from(item: &Item, kind: &Kind, stated: &str) -> Option<String> {
    let sk = match kind {
        Kind::Step(_) => key::step(item.small(SEQ).ok()?),
        Kind::Event => format!("{}{}", key::EVENT_PREFIX, item.text_opt(attribute::TIMESTAMP)?),
        _ => return None,
    };
    let original = Item { sk: sk.clone(), ..item.clone() };
    (sk != item.sk && original.hash().as_str() == stated).then_some(sk)
}

fn is_of_state_machine(item: &Item) -> bool {
    item.text_opt(WRITER) == Some(Writer::StateMachine.as_str())
}

fn states_no_hash(item: &Item) -> bool {
    is_of_state_machine(item) || !item.attributes.contains_key(WRITER)
}

fn is_later(item: &Item, verdict: &Event) -> bool {
    let time = item.sk.strip_prefix(key::EVENT_PREFIX).unwrap_or_default();
    Stamp::parse(time).is_ok_and(|stamp| (stamp, &item.sk) > (verdict.stamp, &verdict.sk))
}
