//! Halts: while a halt is in force, its agents begin nothing new.
//!
//! Halts are a chain of their own, of numbered, immutable records. Each record says who halted or unhalted what and why,
//! and lists the halts in force after it. So one read of the newest record is enough, and two writers cannot undo each
//! other's change: the one that comes second reads again.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::clock::Stamp;
use crate::item::{Hash, Item, ItemError};
use crate::key::{self, attribute};
use crate::log::LEAF_BYTES_MAX;
use crate::principal::Principal;
use crate::store::{Condition, Error, Query, Retry, Store, Written, query_all};

/// Longest reason, in characters.
pub const REASON_CHARS_MAX: usize = 500;

/// Most halts in force at once. One more is refused.
pub const HALTS_MAX: usize = 200;

/// Most attempts to write one change. Each failed one means that another change came first, or that the store did not
/// reply.
const ATTEMPTS_MAX: usize = 16;

/// The schema version of a record.
const VERSION: i64 = 1;

const CHANGE: &str = "Change";
const SCOPE: &str = "Scope";
const REASON: &str = "Reason";
const IN_FORCE: &str = "InForce";
const PREV_HASH: &str = "PrevHash";
const ALL: &str = "all";
const AGENT: &str = "agent:";

/// The agents that a halt concerns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Scope {
    All,
    Agent(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected all or agent:NAME")]
pub struct InvalidScope;

impl Scope {
    pub fn covers(&self, agent: &str) -> bool {
        match self {
            Self::All => true,
            Self::Agent(name) => name == agent,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str(ALL),
            Self::Agent(name) => write!(f, "{AGENT}{name}"),
        }
    }
}

impl FromStr for Scope {
    type Err = InvalidScope;

    fn from_str(text: &str) -> Result<Self, InvalidScope> {
        match text.strip_prefix(AGENT) {
            Some(name) if !name.is_empty() => Ok(Self::Agent(name.to_owned())),
            None if text == ALL => Ok(Self::All),
            _ => Err(InvalidScope),
        }
    }
}

impl TryFrom<String> for Scope {
    type Error = InvalidScope;

    fn try_from(text: String) -> Result<Self, InvalidScope> {
        text.parse()
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> Self {
        scope.to_string()
    }
}

/// A halt in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halt {
    pub scope: Scope,
    /// A [`Principal`], as text.
    pub by: String,
    pub reason: String,
    pub at: Stamp,
}

/// What a record changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Halt,
    /// Ends every halt of exactly this scope.
    Unhalt,
}

impl Change {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Halt => "halt",
            Self::Unhalt => "unhalt",
        }
    }
}

/// A change to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub change: Change,
    pub scope: Scope,
    pub by: Principal,
    /// Required to halt; may be empty to unhalt.
    pub reason: String,
    pub at: Stamp,
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub number: u32,
    pub wanted: Wanted,
    pub prev_hash: Hash,
    pub hash: Hash,
    /// The halts in force after it.
    pub in_force: Vec<Halt>,
}

/// Why a change is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("a reason has 1 to {REASON_CHARS_MAX} characters, none of them a control character")]
    Reason,
    #[error("{HALTS_MAX} halts are in force; unhalt some first")]
    TooMany,
    /// No halt of this scope is in force, though others may be.
    #[error("no halt of {0} is in force")]
    NotHalted(Scope),
}

/// A change was not made.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Store(#[from] Error),
}

/// The halts in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halts {
    /// The number of the newest record, 0 if there is none.
    number: u32,
    hash: Hash,
    pub in_force: Vec<Halt>,
}

impl Default for Halts {
    fn default() -> Self {
        Self { number: 0, hash: Hash::genesis(), in_force: Vec::new() }
    }
}

impl Halts {
    /// Reads the halts in force: one query.
    ///
    /// # Errors
    /// The store cannot be read, or the newest record cannot. Then it is unknown whether an agent is halted, and nothing
    /// may begin.
    pub async fn read<S: Store>(store: &S) -> Result<Self, Error> {
        let newest = store.query(Query::all(key::HALTS).reversed().limited(1)).await?;
        match newest.items.first() {
            None => Ok(Self::default()),
            Some(item) => {
                let Record { number, hash, in_force, .. } = Record::from_item(item)?;
                Ok(Self { number, hash, in_force })
            }
        }
    }

    /// The halts that concern an agent.
    pub fn of<'a>(&'a self, agent: &'a str) -> impl Iterator<Item = &'a Halt> {
        self.in_force.iter().filter(move |halt| halt.scope.covers(agent))
    }

    pub fn covers(&self, agent: &str) -> bool {
        self.of(agent).next().is_some()
    }

    /// The halts after a change.
    fn after(&self, wanted: &Wanted) -> Result<Vec<Halt>, Refused> {
        let is_empty = wanted.reason.trim().is_empty();
        let is_long = wanted.reason.chars().count() > REASON_CHARS_MAX;
        if is_long
            || wanted.reason.chars().any(char::is_control)
            || (is_empty && wanted.change == Change::Halt)
        {
            return Err(Refused::Reason);
        }
        let mut in_force = self.in_force.clone();
        match wanted.change {
            Change::Halt if in_force.len() >= HALTS_MAX => return Err(Refused::TooMany),
            Change::Halt => in_force.push(Halt {
                scope: wanted.scope.clone(),
                by: wanted.by.to_string(),
                reason: wanted.reason.clone(),
                at: wanted.at,
            }),
            Change::Unhalt => {
                in_force.retain(|halt| halt.scope != wanted.scope);
                if in_force.len() == self.in_force.len() {
                    return Err(Refused::NotHalted(wanted.scope.clone()));
                }
            }
        }
        Ok(in_force)
    }
}

impl Record {
    fn to_item(&self) -> Item {
        let Wanted { change, scope, by, reason, at } = &self.wanted;
        let in_force = serde_json::to_string(&self.in_force).unwrap_or_default();
        Item::new(key::HALTS, key::halt(self.number))
            .with(attribute::VERSION, VERSION)
            .with(attribute::TIMESTAMP, at.to_string())
            .with(attribute::PRINCIPAL, by.to_string())
            .with(CHANGE, change.as_str())
            .with(SCOPE, scope.to_string())
            .with(REASON, reason.as_str())
            .with(IN_FORCE, in_force)
            .with(PREV_HASH, self.prev_hash.as_str())
            .hashed()
    }

    fn from_item(item: &Item) -> Result<Self, ItemError> {
        let change = match item.text(CHANGE)? {
            "halt" => Change::Halt,
            "unhalt" => Change::Unhalt,
            _ => return Err(item.malformed(CHANGE, "`halt` or `unhalt`")),
        };
        let scope = item.text(SCOPE)?.parse();
        let by = item.text(attribute::PRINCIPAL)?.parse();
        let number = item.sk.strip_prefix(key::HALT_PREFIX).and_then(|text| text.parse().ok());
        let wanted = Wanted {
            change,
            scope: scope.map_err(|_| item.malformed(SCOPE, "`all` or `agent:NAME`"))?,
            by: by.map_err(|_| item.malformed(attribute::PRINCIPAL, "a principal"))?,
            reason: item.text(REASON)?.to_owned(),
            at: Stamp::parse(item.text(attribute::TIMESTAMP)?)
                .map_err(|_| item.malformed(attribute::TIMESTAMP, "a time"))?,
        };
        Ok(Self {
            number: number.ok_or_else(|| item.malformed("SK", "a number"))?,
            wanted,
            prev_hash: Hash::from_record(item.text(PREV_HASH)?),
            hash: item.hash(),
            in_force: serde_json::from_str(item.text(IN_FORCE)?)
                .map_err(|_| item.malformed(IN_FORCE, "a list of halts"))?,
        })
    }
}

/// Makes a change after all others. It is durable when this returns.
///
/// # Errors
/// See [`ChangeError`].
pub async fn change<S: Store>(store: &S, wanted: &Wanted) -> Result<Record, ChangeError> {
    let mut last = None;
    for _ in 0..ATTEMPTS_MAX {
        let halts = Halts::read(store).await?;
        let mut record = Record {
            number: halts.number + 1,
            wanted: wanted.clone(),
            in_force: halts.after(wanted)?,
            prev_hash: halts.hash,
            hash: Hash::genesis(),
        };
        let item = record.to_item();
        record.hash = item.hash();
        match put(store, &item).await {
            Ok(Written::Done) => return Ok(record),
            Ok(Written::Refused(Some(there))) if there == item => return Ok(record),
            Ok(Written::Refused(_)) => {}
            Err(error) => last = Some(error),
        }
    }
    let contended = || Error::Unavailable("others changed the halts at the same time".into());
    Err(last.unwrap_or_else(contended).into())
}

/// Writes a record. If the outcome is unknown, writes it again: finding it stored means that it was written.
async fn put<S: Store>(store: &S, item: &Item) -> Result<Written, Error> {
    let mut known = store.put(item.clone(), Condition::Absent).await;
    for _ in 0..ATTEMPTS_MAX {
        match &known {
            Err(error) if matches!(error.retry(), Retry::Unknown(_)) => {
                known = store.put(item.clone(), Condition::Absent).await;
            }
            _ => break,
        }
    }
    known
}

/// The first element of a record's leaf in the log of sessions: what it is, and the version of its form.
const FORM: &str = "daybook halts 1";

/// The leaf of a record in the log of sessions, so that a removed record is missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HaltLeaf {
    pub number: u32,
    pub hash: Hash,
}

impl HaltLeaf {
    /// The leaf of a record; `None` if the item is none of halts.
    pub fn of(item: &Item) -> Option<Self> {
        let number = item.sk.strip_prefix(key::HALT_PREFIX).filter(|_| item.pk == key::HALTS)?;
        Some(Self { number: number.parse().ok()?, hash: item.hash() })
    }

    /// The contents of the leaf in the tree.
    pub fn to_bytes(&self) -> Vec<u8> {
        json!([FORM, key::HALTS, self.number, self.hash.as_str()]).to_string().into_bytes()
    }

    /// Reads what [`Self::to_bytes`] writes; `None` for anything else.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > LEAF_BYTES_MAX {
            return None;
        }
        let (_, _, number, hash): (String, String, u32, String) =
            serde_json::from_slice(bytes).ok()?;
        let leaf = Self { number, hash: Hash::from_record(&hash) };
        (leaf.to_bytes() == bytes).then_some(leaf)
    }
}

/// Most problems of the chain that are named.
const PROBLEMS_MAX: usize = 20;

/// What does not hold in the chain of halts, each in a sentence: a record that was changed, removed or added between
/// others, or whose halts in force do not follow from those before it. `leaves` are those of the log of sessions, in its
/// order: each has its record, and so has each record after the first of them. Without leaves, nothing shows that the
/// newest records were removed.
///
/// # Errors
/// The store cannot be read.
pub async fn verify<S: Store>(store: &S, leaves: &[HaltLeaf]) -> Result<Vec<String>, Error> {
    let items = query_all(store, Query::all(key::HALTS)).await?;
    let mut problems = of_leaves(&items, leaves);
    let mut halts = Halts::default();
    for item in &items {
        if problems.len() >= PROBLEMS_MAX {
            problems.truncate(PROBLEMS_MAX);
            problems.push("further records of halts are not listed".to_owned());
            break;
        }
        let record = match Record::from_item(item) {
            Ok(record) => record,
            Err(error) => {
                // What follows cannot be held against it.
                problems.push(format!("the record {} of halts cannot be read: {error}", item.sk));
                return Ok(problems);
            }
        };
        problems.extend(
            halts
                .differs(item, &record)
                .map(|what| format!("the record {} of halts {what}", item.sk)),
        );
        halts = Halts { number: record.number, hash: record.hash, in_force: record.in_force };
    }
    Ok(problems)
}

/// Where records and leaves differ.
fn of_leaves(items: &[Item], leaves: &[HaltLeaf]) -> Vec<String> {
    let records: BTreeMap<u32, Hash> =
        items.iter().filter_map(HaltLeaf::of).map(|leaf| (leaf.number, leaf.hash)).collect();
    let named: BTreeMap<u32, &Hash> = leaves.iter().map(|leaf| (leaf.number, &leaf.hash)).collect();
    let mut problems = Vec::new();
    for HaltLeaf { number, hash } in leaves {
        let what = match records.get(number) {
            Some(found) if found == hash => continue,
            Some(_) => "was changed: the log of sessions names another hash",
            None => "is missing: the log of sessions names it",
        };
        problems.push(format!("the record {} of halts {what}", key::halt(*number)));
    }
    if let Some(first) = named.keys().next() {
        let added = records.keys().filter(|number| *number > first && !named.contains_key(number));
        problems.extend(added.map(|number| {
            format!("the record {} of halts was added: it has no leaf", key::halt(*number))
        }));
    }
    problems
}

impl Halts {
    /// Why a record is not the next one.
    fn differs(&self, item: &Item, record: &Record) -> Option<String> {
        let next = self.number + 1;
        if record.number != next {
            return Some(format!("is in the place of {}", key::halt(next)));
        }
        if record.to_item() != *item {
            return Some("was changed: its content and its hash differ".to_owned());
        }
        if record.prev_hash != self.hash {
            return Some("does not follow from the one before it".to_owned());
        }
        let is_next = self.after(&record.wanted).is_ok_and(|halts| halts == record.in_force);
        (!is_next).then(|| "names other halts in force than its change leaves".to_owned())
    }
}

/// All changes, oldest first.
///
/// # Errors
/// The store cannot be read, or a record cannot.
pub async fn history<S: Store>(store: &S) -> Result<Vec<Record>, Error> {
    let items = query_all(store, Query::all(key::HALTS)).await?;
    Ok(items.iter().map(Record::from_item).collect::<Result<_, _>>()?)
}
