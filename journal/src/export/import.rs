//! Adds the records of an export to a store.

use std::collections::{BTreeMap, BTreeSet};

use super::{Export, records};
use crate::chain::put_until_known;
use crate::clock::{Clock, Hlc, Stamp};
use crate::id::SessionId;
use crate::item::Item;
use crate::key;
use crate::limits::ITEM_BYTES_MAX;
use crate::log::Leaf;
use crate::store::{Condition, Error, Key, Store, Written};
use crate::verify::{Damage, Report};

/// Why an export was not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file is damaged. Nothing was written.
    #[error("the file is damaged: {}", .0.first().map(ToString::to_string).unwrap_or_default())]
    Damaged(Vec<Damage>),
    /// The store holds a different record under one of the file's keys.
    #[error("the store holds a different record at {} {}", .0.pk, .0.sk)]
    Conflict(Key),
    /// The file has a record that the journal lacks, of a session that the journal's own stack runs or has run.
    #[error("the session is this stack's own, so only the stack adds records to it: {} is not here", .0.sk)]
    Own(Key),
    /// The store cannot be read or written. Importing again continues.
    #[error(transparent)]
    Store(#[from] Error),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Records written.
    pub written: usize,
    /// Records that existed already.
    pub present: usize,
    /// How far the session is protected, and by which anchors.
    pub report: Report,
}

/// What a journal has of the session of an import.
#[derive(Clone, Copy, Debug, Default)]
pub struct Here<'a> {
    /// The journal's own stack runs it or has run it. Then it alone writes the session's records: a file could answer a
    /// question, or end the session, in the name of anybody.
    pub is_own: bool,
    /// Its leaves in the log of sessions.
    pub leaves: &'a [Leaf],
}

/// How records differ from the leaves that the log has of their session.
fn unlike_log(records: &[Item], leaves: &[Leaf]) -> Option<String> {
    leaves.iter().find_map(|leaf| {
        let found = records.iter().find(|item| item.sk == leaf.sk && !item.pk.starts_with("BLOB#"));
        match found {
            None => Some(format!("{} is not in the file, but has a leaf here", leaf.sk)),
            Some(item) if item.hash() == leaf.hash => None,
            Some(_) => Some(format!("{} has another hash in its leaf here", leaf.sk)),
        }
    })
}

/// Imports an export's records into a store. Existing records stay: an identical one is skipped. A
/// different record under the same key, or a damaged file, rejects the import before any write.
///
/// # Errors
/// See [`ImportError`].
pub async fn import<S: Store>(
    store: &S,
    clock: &Clock,
    export: &Export,
    Here { is_own, leaves }: Here<'_>,
) -> Result<Imported, ImportError> {
    let (session, report) = acceptable(export, clock.now()).map_err(ImportError::Damaged)?;
    let place = |item: &Item| Key::new(item.pk.as_str(), item.sk.as_str());
    let there = records(store, &session).await?;
    let there: BTreeMap<_, _> = there.iter().map(|item| (place(item), item)).collect();
    for item in &export.records {
        if there.get(&place(item)).is_some_and(|other| *other != item) {
            return Err(ImportError::Conflict(place(item)));
        }
    }
    let is_new = |item: &&Item| !there.contains_key(&place(item));
    if let Some(item) = export.records.iter().find(is_new) {
        if is_own {
            return Err(ImportError::Own(place(item)));
        }
        if let Some(problem) = unlike_log(&export.records, leaves) {
            return Err(ImportError::Damaged(vec![Damage::Log { problem }]));
        }
    }
    let mut imported = Imported { written: 0, present: 0, report };
    // In the original order: parts before the record that names them, steps before events.
    let mut ordered: Vec<_> = export.records.iter().collect();
    ordered.sort_by_key(|item| {
        let turn = match &item.sk {
            _ if item.pk != key::session(&session) => 0,
            sk if sk.starts_with(key::STEP_PREFIX) => 1,
            _ => 2,
        };
        (turn, &item.pk, &item.sk)
    });
    let hlc = Hlc::new(clock.clone(), Stamp::default());
    for item in ordered {
        match put_until_known(store, &hlc, item, &Condition::Absent).await? {
            Written::Done => imported.written += 1,
            Written::Refused(Some(other)) if other == *item => imported.present += 1,
            Written::Refused(_) => return Err(ImportError::Conflict(place(item))),
        }
    }
    Ok(imported)
}

/// The session of an undamaged export, all of whose lines belong to it, with the report of its verification. A session
/// that is open, or that only the file's own last line vouches for, is accepted; the report says so.
///
/// # Errors
/// The damage, as [`Export::verify`] names it.
pub fn acceptable(export: &Export, now: Stamp) -> Result<(SessionId, Report), Vec<Damage>> {
    let report = export.verify(None, now);
    if !report.damage.is_empty() {
        return Err(report.damage);
    }
    let Some(stated) = &export.witness else { return Err(Vec::new()) };
    let blobs = key::blob(&stated.session, "");
    let partition = key::session(&stated.session);
    let mut places = BTreeSet::new();
    for (line, item) in (1..).zip(&export.records) {
        let refused = |problem: String| {
            Err(vec![Damage::Line { line, problem: format!("{} {} {problem}", item.pk, item.sk) }])
        };
        let is_record = item.pk == partition
            && (item.sk.starts_with(key::STEP_PREFIX) || item.sk.starts_with(key::EVENT_PREFIX));
        if !is_record && !item.pk.starts_with(&blobs) {
            return refused("is not a record of the session".to_owned());
        }
        // The store would reject these two later, after half of the file was written.
        if !places.insert((&item.pk, &item.sk)) {
            return refused("occurs twice".to_owned());
        }
        let bytes = item.size_bytes();
        if bytes > ITEM_BYTES_MAX {
            return refused(format!("has {bytes} bytes; at most {ITEM_BYTES_MAX} are allowed"));
        }
    }
    Ok((stated.session.clone(), report))
}
