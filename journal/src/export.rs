//! Exports a session as JSON Lines, and reads, verifies and imports such files.
//!
//! Each line holds one record, `{"record": <DynamoDB's JSON>, "hash": "…"}`: first the session's
//! partition by sort key, then the parts of its payloads. The last line is the witness,
//! `{"witness": {…}}`, with the number of records and the hashes of the verdict and of the newest
//! step.

mod import;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read as _, Write};

use serde_json::{Value, json};

use crate::clock::Stamp;
use crate::event::Event;
use crate::id::SessionId;
use crate::item::{Hash, Item};
use crate::json;
use crate::key;
use crate::log::{Extract, Judged, Trust};
use crate::payload::Payload;
use crate::store::{Error, Query, Store, query_all};
use crate::verify::{self, Anchor, Anchors, Damage, Report, State};

pub use import::{Here, ImportError, Imported, acceptable, import};

/// Longest line of an export, in bytes: the largest item with every byte escaped.
pub const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most records of an export.
pub const RECORDS_MAX: usize = 1_000_000;

/// Largest file that is read, in bytes.
pub const FILE_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// An export's last line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    pub session: SessionId,
    /// Number of records.
    pub records: usize,
    /// Hash of the verdict event, if any.
    pub head: Option<Hash>,
    /// Number and hash of the newest step, if any.
    pub last_step: Option<(u32, Hash)>,
    /// The session's leaves in the log of sessions, if the journal has one.
    pub log: Option<Extract>,
}

/// An export that was read.
#[derive(Clone, Debug, Default)]
pub struct Export {
    /// The records in file order.
    pub records: Vec<Item>,
    /// The last line, if present.
    pub witness: Option<Witness>,
    /// Damaged lines.
    pub damage: Vec<Damage>,
}

/// Why an export cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("line {line} cannot be read")]
    Io {
        /// Line number, from 1.
        line: usize,
        #[source]
        source: io::Error,
    },
    #[error("line {line} is longer than {LINE_BYTES_MAX} bytes")]
    LineTooLong {
        /// Line number, from 1.
        line: usize,
    },
    #[error(
        "the file has more than {RECORDS_MAX} records or {FILE_BYTES_MAX} bytes at line {line}"
    )]
    TooLarge {
        /// Line number, from 1.
        line: usize,
    },
}

/// Reads everything that an export holds: a session's records and the parts of their payloads, in
/// order.
///
/// # Errors
/// The store cannot be read.
pub async fn records<S: Store>(store: &S, session: &SessionId) -> Result<Vec<Item>, Error> {
    let mut records = query_all(store, Query::all(key::session(session))).await?;
    records.retain(|item| !matches!(item.sk.as_str(), key::LEASE | key::WAIT | "SESSION"));
    let mut payloads: Vec<_> = records
        .iter()
        .filter_map(|item| match Payload::read_from(item) {
            Ok(Some(Payload::Parts { sha256, .. })) => Some(key::blob(session, sha256.as_str())),
            // An unreadable payload is exported unchanged; verifying reports it.
            _ => None,
        })
        .collect();
    payloads.sort_unstable();
    payloads.dedup();
    for pk in payloads {
        records.extend(query_all(store, Query::all(pk)).await?);
    }
    Ok(records)
}

/// The witness of these records, in the order of [`records`], without a log.
pub fn witness(session: &SessionId, records: &[Item]) -> Witness {
    let of_session = || records.iter().filter(|item| item.pk == key::session(session));
    let verdict = of_session()
        .filter_map(|item| Event::from_item(item).ok())
        .filter(|event| event.status.is_verdict())
        .min_by(|a, b| (a.stamp, &a.sk).cmp(&(b.stamp, &b.sk)));
    let last_step = of_session()
        .filter_map(|item| {
            let seq = item.sk.strip_prefix(key::STEP_PREFIX)?.parse().ok()?;
            Some((seq, item.hash()))
        })
        .max_by_key(|(seq, _)| *seq);
    Witness {
        session: session.clone(),
        records: records.len(),
        head: verdict.map(|verdict| verdict.hash),
        last_step,
        log: None,
    }
}

/// Writes records, in the order of [`records`], and their witness.
///
/// # Errors
/// The output cannot be written.
pub fn write(session: &SessionId, records: &[Item], out: &mut impl Write) -> io::Result<()> {
    write_with_log(session, records, None, out)
}

/// Like [`write()`], with the session's leaves in the log, so that the file proves itself to whoever has the log's key.
///
/// # Errors
/// The output cannot be written.
pub fn write_with_log(
    session: &SessionId,
    records: &[Item],
    log: Option<Extract>,
    out: &mut impl Write,
) -> io::Result<()> {
    for item in records {
        writeln!(out, "{}", json!({ "record": item.to_json(), "hash": item.hash().as_str() }))?;
    }
    let witness = Witness { log, ..witness(session, records) };
    writeln!(out, "{}", json!({ "witness": witness.to_json() }))
}

impl Witness {
    fn to_json(&self) -> Value {
        let mut witness = json!({
            "session_id": self.session.as_str(),
            "records": self.records,
            "head": self.head.as_ref().map(Hash::as_str),
            "last_step": self.last_step.as_ref().map(|(seq, hash)| {
                json!({ "seq": seq, "hash": hash.as_str() })
            }),
        });
        if let Some(log) = &self.log {
            witness["log"] = log.to_json();
        }
        witness
    }

    fn from_json(json: &Value) -> Option<Self> {
        let hash = |json: &Value| json.as_str().map(Hash::from_record);
        let optional =
            |json: &Value| if json.is_null() { Some(None) } else { hash(json).map(Some) };
        let last_step = match json.get("last_step")? {
            Value::Null => None,
            step => {
                Some((u32::try_from(step.get("seq")?.as_u64()?).ok()?, hash(step.get("hash")?)?))
            }
        };
        let witness = Self {
            session: json.get("session_id")?.as_str()?.parse().ok()?,
            records: usize::try_from(json.get("records")?.as_u64()?).ok()?,
            head: optional(json.get("head")?)?,
            last_step,
            log: json.get("log").map(|log| Extract::from_json(log).ok_or(())).transpose().ok()?,
        };
        (witness.to_json() == *json).then_some(witness)
    }
}

enum Line {
    Record(Item),
    Witness(Witness),
}

/// Reads an export. A damaged line is reported in the result, not as an error, so that one run
/// finds all damage.
///
/// # Errors
/// The file cannot be read, or is larger than any export.
pub fn read(mut input: impl BufRead) -> Result<Export, ReadError> {
    let mut export = Export::default();
    let mut bytes_read = 0;
    for line in 1.. {
        let mut bytes = Vec::new();
        let bound = LINE_BYTES_MAX as u64 + 1;
        let length = (&mut input)
            .take(bound)
            .read_until(b'\n', &mut bytes)
            .map_err(|source| ReadError::Io { line, source })?;
        if length == 0 {
            break;
        }
        bytes_read += length;
        if length > LINE_BYTES_MAX {
            return Err(ReadError::LineTooLong { line });
        }
        if line > RECORDS_MAX + 1 || bytes_read > FILE_BYTES_MAX {
            return Err(ReadError::TooLarge { line });
        }
        let mut problem = |problem: String| export.damage.push(Damage::Line { line, problem });
        if export.witness.is_some() {
            problem("it comes after the witness".to_owned());
            continue;
        }
        match read_line(&bytes) {
            Ok(Line::Record(item)) => export.records.push(item),
            Ok(Line::Witness(witness)) => export.witness = Some(witness),
            Err(Unlike::Changed(item, text)) => {
                problem(text);
                export.records.push(*item);
            }
            Err(Unlike::Unreadable(text)) => problem(text),
        }
    }
    if export.witness.is_none() {
        let problem = "it is missing: the file is truncated".to_owned();
        export.damage.push(Damage::Witness { problem });
    }
    Ok(export)
}

/// How a line is damaged.
enum Unlike {
    /// It holds a record whose hash differs from the stated one.
    Changed(Box<Item>, String),
    Unreadable(String),
}

fn read_line(bytes: &[u8]) -> Result<Line, Unlike> {
    let unreadable = |text: &str| Unlike::Unreadable(text.to_owned());
    let json: Value = json::strict(bytes).map_err(|error| match error {
        json::Error::Duplicate(name) => unreadable(&format!("it has two members `{name}`")),
        json::Error::NotJson => unreadable("it is not JSON"),
    })?;
    let object = json.as_object().ok_or_else(|| unreadable("it is not an object"))?;
    if let (Some(witness), 1) = (object.get("witness"), object.len()) {
        let witness = Witness::from_json(witness);
        return witness.map(Line::Witness).ok_or_else(|| unreadable("it is not a witness"));
    }
    let (Some(record), Some(stated), 2) =
        (object.get("record"), object.get("hash").and_then(Value::as_str), object.len())
    else {
        return Err(unreadable("it is neither a record with a hash nor the witness"));
    };
    let item = Item::from_json(record).map_err(|error| Unlike::Unreadable(error.to_string()))?;
    let found = item.hash();
    if stated == found.as_str() {
        return Ok(Line::Record(item));
    }
    let text = format!("{} hashes to {found} but the line states {stated}", item.sk);
    Err(Unlike::Changed(Box::new(item), text))
}

impl Export {
    /// The session of the file: that of most records, or the witness's if there are none.
    pub fn session(&self) -> Option<SessionId> {
        let mut counts = BTreeMap::new();
        for session in self.records.iter().filter_map(|item| key::session_of(&item.pk)) {
            *counts.entry(session).or_insert(0_usize) += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count).map(|(session, _)| session);
        most.or_else(|| self.witness.as_ref().map(|witness| witness.session.clone()))
    }

    /// Verifies the file: its lines, its records and its witness. `head` is the verdict's hash from
    /// another source; `now` is as for [`verify::verify`].
    pub fn verify(&self, head: Option<&Hash>, now: Stamp) -> Report {
        self.verify_with(head, &Trust::default(), now)
    }

    /// Like [`Self::verify`], for a reader who trusts the log's keys.
    pub fn verify_with(&self, head: Option<&Hash>, trust: &Trust, now: Stamp) -> Report {
        let mut damage = self.damage.clone();
        let Some(session) = self.session() else {
            // The session is unknown, but a head proves that there was a verdict.
            damage.extend(
                head.map(|head| Damage::VerdictMissing {
                    anchor: Anchor::Given,
                    head: head.clone(),
                }),
            );
            return Report {
                state: State::Open,
                anchors: Vec::new(),
                consulted: head.map(|_| Anchor::Given).into_iter().collect(),
                damage,
                unsealed: Vec::new(),
                unmet: Vec::new(),
                log: None,
                erased: None,
            };
        };
        let anchors = Anchors {
            receipts: None,
            heads: [
                head.map(|head| (Anchor::Given, head.clone())),
                self.witness
                    .as_ref()
                    .and_then(|witness| Some((Anchor::Witness, witness.head.clone()?))),
            ]
            .into_iter()
            .flatten()
            .collect(),
            last_step: self.witness.as_ref().and_then(|witness| witness.last_step.clone()),
            log: self.log(&session, trust),
            unmet: Vec::new(),
        };
        let mut report = verify::verify(&session, &self.records, &anchors, now);
        if let Some(stated) = &self.witness {
            damage.extend(witness_problems(stated, &witness(&session, &self.records)));
        }
        damage.append(&mut report.damage);
        Report { damage, ..report }
    }
}

impl Export {
    fn log(&self, session: &SessionId, trust: &Trust) -> Option<Judged> {
        let extract = self.witness.as_ref().and_then(|witness| witness.log.clone());
        let asked = extract.or_else(|| trust.is_required.then(Extract::default));
        asked.map(|extract| extract.judge(session, trust))
    }
}

fn witness_problems(stated: &Witness, found: &Witness) -> Vec<Damage> {
    let hash = |hash: Option<&Hash>| hash.map_or("none".to_owned(), ToString::to_string);
    let step = |step: Option<&(u32, Hash)>| {
        step.map_or("none".to_owned(), |(seq, hash)| format!("{} with {hash}", key::step(*seq)))
    };
    let mut problems = Vec::new();
    if stated.session != found.session {
        problems.push(format!("its session is {}, theirs is {}", stated.session, found.session));
    }
    if stated.records != found.records {
        problems.push(format!("it states {} records, there are {}", stated.records, found.records));
    }
    if stated.head != found.head {
        let (stated, found) = (hash(stated.head.as_ref()), hash(found.head.as_ref()));
        problems.push(format!("its head is {stated}, the verdict is {found}"));
    }
    if stated.last_step != found.last_step {
        let (stated, found) = (step(stated.last_step.as_ref()), step(found.last_step.as_ref()));
        problems.push(format!("its last step is {stated}, the records' is {found}"));
    }
    problems.into_iter().map(|problem| Damage::Witness { problem }).collect()
}
