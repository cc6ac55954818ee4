//! Import: no file crashes the reader, everything read is written identically, and imported records
//! are exported unchanged.
//!
//! An input is a file. One that starts with [`RECORDS`] is a list of records, from which a file
//! with valid hashes is built: random changes alone would never produce valid hashes.

use journal::clock::{Clock, Stamp};
use journal::event::Event;
use journal::export::{self, Export, Here, ImportError};
use journal::id::SessionId;
use journal::item::{HASH, Hash, Item};
use journal::key::{self, STEP_PREFIX};
use journal::sqlite::{Durability, SqliteStore};
use journal::status::status;
use journal::verify::State;
use tokio::runtime::{Builder, Runtime};

/// First byte of an input that is a list of records, one per line.
pub const RECORDS: u8 = b'+';

/// Checks a file as an export, or the file built from the records.
///
/// # Panics
/// A promise is broken.
pub fn check(bytes: &[u8]) {
    match bytes.split_first() {
        Some((&RECORDS, lines)) => file(&made_of(lines)),
        _ => file(bytes),
    }
}

fn file(bytes: &[u8]) {
    // Longer lines and files are rejected; the fuzzer does not produce them.
    let Ok(export) = export::read(bytes) else { return };
    let lines = bytes.split(|byte| *byte == b'\n').count();
    assert!(export.records.len() + export.damage.len() <= 2 * lines + 1);
    let report = export.verify(None, now());
    assert_eq!(report, export.verify(None, now()));
    assert!(report.damage.iter().all(|damage| !damage.to_string().is_empty()));
    one_status_in_any_order(&export.records);
    let Some(session) = export.session() else { return };

    let (text, again) = rewritten(&session, &export.records);
    assert_eq!(again.records, export.records);
    assert_eq!(rewritten(&session, &again.records).0, text);

    let sound = report.is_sound() && report.state != State::Expired;
    let Some(stored) = imported(&export) else {
        return assert!(!sound, "what is sound can be imported");
    };
    if stored == export.records {
        return;
    }
    assert!(!sound, "what is sound comes out as it went in");
    let (text, again) = rewritten(&session, &stored);
    let stored = imported(&again).expect("what was exported can be imported");
    assert_eq!(rewritten(&session, &stored).0, text, "equal after one round");
}

/// The golden session: whole, in lines, truncated, as lists of records, and with extreme step and
/// part numbers.
pub fn seeds() -> Vec<Vec<u8>> {
    let lines: Vec<_> = crate::SESSION.split_inclusive('\n').collect();
    let mut seeds = vec![crate::SESSION.as_bytes().to_vec(), Vec::new()];
    seeds.extend(lines.iter().map(|line| line.as_bytes().to_vec()));
    seeds.extend([3, lines.len() - 1].map(|to| lines[..to].concat().into_bytes()));

    let records: Vec<_> =
        crate::golden_records().iter().map(|record| format!("\n{record}").into_bytes()).collect();
    let plus = vec![vec![RECORDS]];
    for chosen in [&records[..], &records[..3], &records[10..13], &records[18..]] {
        seeds.push([&plus, chosen].concat().concat());
    }
    seeds.extend(records.iter().map(|record| [&[RECORDS][..], record].concat()));

    let items = crate::golden_items();
    let session = a_session();
    let of_one = |records: &[Item]| {
        let mut text = Vec::new();
        export::write(&session, records, &mut text).expect("memory can be written");
        text
    };
    let step = items.iter().find(|item| item.sk.starts_with(STEP_PREFIX)).expect("a step");
    for seq in [0, 2, 99_999_999, u32::MAX - 1, u32::MAX] {
        let mut step = step.clone();
        step.attributes.remove(HASH);
        step.sk = key::step(seq);
        seeds.push(of_one(&[step.with("Seq", seq).hashed()]));
    }
    let verdict = items.iter().find(|item| item.text_opt("EndHash").is_some()).expect("a verdict");
    let mut verdict = verdict.clone();
    for name in [HASH, "Payload", "PayloadBytes", "PayloadEncoding"] {
        verdict.attributes.remove(name);
    }
    let part = Item::new(format!("BLOB#{session}#aa"), "PART#0000").with("Bytes", vec![1, 2]);
    let verdict = verdict.with("PayloadSha256", "aa").with("PayloadBytes", u32::MAX);
    seeds.push(of_one(&[verdict.with("PayloadParts", u32::MAX).hashed(), part.hashed()]));
    seeds
}

/// The file with these records. A record that states a hash gets its own, and a step gets the hash
/// of the previous one, so that without a verdict any contents form a valid session.
fn made_of(lines: &[u8]) -> Vec<u8> {
    let mut records: Vec<Item> = Vec::new();
    for line in lines.split(|byte| *byte == b'\n') {
        let json = serde_json::from_slice(line).unwrap_or_default();
        let Ok(mut item) = Item::from_json(&json) else { continue };
        if item.attributes.contains_key("PrevHash") {
            let mut steps = records.iter().filter(|record| record.sk.starts_with(STEP_PREFIX));
            let before = steps.next_back().map_or_else(Hash::genesis, Item::hash);
            item = item.with("PrevHash", before.as_str());
        }
        let states_hash = item.attributes.contains_key(HASH);
        records.push(if states_hash { item.hashed() } else { item });
    }
    let mut text = Vec::new();
    export::write(&a_session(), &records, &mut text).expect("memory can be written");
    text
}

fn one_status_in_any_order(records: &[Item]) {
    let events = records.iter().filter_map(|item| Event::from_item(item).ok());
    let mut events: Vec<_> = events.collect();
    let found = status(&events);
    events.reverse();
    assert_eq!(status(&events), found);
    events.extend_from_within(..);
    assert_eq!(status(&events), found);
}

/// The records as an export, and the result of reading it.
fn rewritten(session: &SessionId, records: &[Item]) -> (String, Export) {
    let mut text = Vec::new();
    export::write(session, records, &mut text).expect("memory can be written");
    let read = export::read(&text[..]).expect("what was written can be read");
    assert_eq!(read.damage, []);
    assert_eq!(read.witness, Some(export::witness(session, records)));
    (String::from_utf8(text).expect("JSON is UTF-8"), read)
}

/// The contents of an empty store after importing; `None` if the import was rejected, and then the
/// store is empty.
fn imported(export: &Export) -> Option<Vec<Item>> {
    // Most files are rejected before the store is accessed.
    if !export.damage.is_empty() {
        return None;
    }
    let session = export.witness.as_ref()?.session.clone();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("journal.db");
    let store = SqliteStore::open(&path, Durability::Relaxed).expect("a fresh journal");
    runtime().block_on(async {
        let clock = Clock::fixed(now());
        let outcome = export::import(&store, &clock, export, Here::default()).await;
        let stored = export::records(&store, &session).await.expect("the store can be read");
        match outcome {
            Ok(imported) => {
                assert_eq!(imported.written + imported.present, export.records.len());
                let again = export::import(&store, &clock, export, Here::default()).await;
                assert!(again.is_ok_and(|again| again.written == 0), "the second time is idle");
                Some(stored)
            }
            Err(ImportError::Damaged(_)) => {
                assert_eq!(stored, [], "what is refused is refused before any write");
                None
            }
            Err(error) => panic!("the store failed: {error}"),
        }
    })
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// A time before the golden records expire.
fn now() -> Stamp {
    Stamp::parse("2026-11-21T10:31:00Z").expect("a time")
}

fn a_session() -> SessionId {
    "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().expect("a session id")
}
