//! `export` and `import`: moves sessions between journals.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use journal::cipher;
use journal::clock::Clock;
use journal::export::{self, Export, Here, ImportError};
use journal::log::Leaf;
use journal::sqlite::{Durability, SESSION_KEYS_FILE, is_journal};
use journal::verify::{Damage, Report, State};
use serde_json::json;
use stack::checkpoints::{self, Read};
use stack::folder::{self, FolderLock};
use stack::keeping::has_execution;
use stack::keys::Keys;
use stack::stack::{JOURNAL_FILE, StartError};
use stack::store::Database;

use super::verify;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::reader::{self, Reader, unusable};
use crate::resolve::Context;

/// Writes a session to stdout as JSON Lines.
///
/// # Errors
/// When it does not exist or cannot be read.
pub async fn export(context: &Context, session: &str) -> Result<Exit, Failure> {
    let reader = Reader::open(context).await?;
    let id = reader.find(session).await?;
    let read = match reader.store.here() {
        Some(database) => {
            checkpoints::settle(database, &id).await;
            Read::of(database, database, &id).await?
        }
        None => verify::read_in_account(&reader, &id).await?,
    };
    let (records, log) = (read.records, read.log?);
    // Of a pruned session, the leaves are left.
    if records.is_empty() && log.as_ref().is_none_or(|log| log.entries.is_empty()) {
        return Err(reader::no_session(id.as_str()));
    }
    let is_encrypted = records.iter().any(cipher::is_encrypted);
    if is_encrypted && let Some(database) = reader.store.here() {
        apart_from_keys(database.path())?;
    }
    let mut out = BufWriter::new(io::stdout().lock());
    export::write_with_log(&id, &records, log, &mut out)?;
    out.flush()?;
    if is_encrypted {
        output::say(&format!(
            "its contents are encrypted, and erasing the session erases them in this file, too; \
             keep the file apart from {SESSION_KEYS_FILE}: who has both reads the session"
        ));
    }
    Ok(Exit::Succeeded)
}

/// Refuses an export of encrypted contents into the folder of their keys.
fn apart_from_keys(journal: &Path) -> Result<(), Failure> {
    let (Some(file), Some(keys)) = (stdout_file(), journal.parent()) else { return Ok(()) };
    let keys = keys.canonicalize().with_context(|| format!("cannot read {}", keys.display()))?;
    if !file.starts_with(&keys) {
        return Ok(());
    }
    let (file, keys) = (file.display(), keys.display());
    Err(Failure::unknown(format!(
        "{file} would lie beside its own key: {SESSION_KEYS_FILE} is in {keys}; nothing was exported"
    ))
    .hint("write the export to another folder"))
}

/// The file that stdout writes, where the system tells.
fn stdout_file() -> Option<PathBuf> {
    fs::read_link("/proc/self/fd/1").ok().filter(|file| file.is_file())
}

/// Imports an exported session into the local journal, also while a stack runs.
///
/// # Errors
/// When the file is damaged, or the journal is missing or has conflicting records.
pub async fn import(context: &Context, file: &Path) -> Result<Exit, Failure> {
    let export = read(file)?;
    if let Err(damage) = export::acceptable(&export, reader::now()) {
        return Ok(refused(&damage));
    }
    let folder = reader::folder(context).await?;
    let keys = context.keys.as_deref().map(|keys| Keys::of(keys, &folder));
    let _lock = beside(&folder, keys.as_ref())?;
    let leaf_key = keys.as_ref().map(Keys::leaf_key).transpose()?.flatten();
    let file = folder.join(JOURNAL_FILE);
    let store = Database::open_marking(&file, Durability::Fsync, leaf_key).map_err(unusable)?;
    let (mut is_own, mut leaves) = (false, Vec::new());
    if let Some(session) = export.session() {
        is_own = has_execution(&store, &session).await?;
        let log = store.log_of(&session).await?.unwrap_or_default();
        leaves.extend(log.entries.iter().filter_map(|entry| Leaf::parse(&entry.leaf)));
    }
    let here = Here { is_own, leaves: &leaves };
    let imported = match export::import(&store, &Clock::system(), &export, here).await {
        Ok(imported) => imported,
        Err(ImportError::Damaged(damage)) => return Ok(refused(&damage)),
        Err(error) => return Err(error.into()),
    };
    let id = export.session().map(String::from).unwrap_or_default();
    if context.json {
        let (written, present) = (imported.written, imported.present);
        let report = verify::report_json(&id, &imported.report);
        output::json(&json!({
            "session_id": id, "written": written, "present": present,
            "state": report["state"], "outcome": report["outcome"], "anchors": report["anchors"],
        }))?;
    } else {
        output::line(&id)?;
        output::say(&format!(
            "imported {} records, {} already present",
            imported.written, imported.present
        ));
        output::say(&protection(&imported.report));
    }
    Ok(Exit::Succeeded)
}

fn refused(damage: &[Damage]) -> Exit {
    for damage in damage {
        output::error(&damage.to_string());
    }
    output::hint("nothing was imported; export the session again");
    Exit::Failed
}

/// What the file proves of the imported session.
fn protection(report: &Report) -> String {
    match &report.state {
        State::Open => "the session is open: nothing protects its newest records".to_owned(),
        State::Sealed { head } => format!(
            "its records fit together; only the file itself names the verdict. If you kept its hash, compare: {head}"
        ),
        State::Expired => {
            "its records have expired, so it is not known which are missing".to_owned()
        }
        State::Pruned { .. } => "the session was pruned before its export".to_owned(),
    }
}

/// Locks the folder; `None` if a stack uses it. Both then write to the journal, in turns.
fn beside(folder: &Path, keys: Option<&Keys>) -> Result<Option<FolderLock>, Failure> {
    let journal = folder.join(JOURNAL_FILE);
    match folder::take(folder) {
        Ok((_, lock)) => {
            let is_signed = keys.is_some_and(|keys| matches!(keys.checkpoint(), Ok(Some(_))));
            match lock.missing_file(&journal, is_signed) {
                None => Ok(Some(lock)),
                Some(missing) => Err(Failure::from(missing).hint(
                    "put the file back, or restore a backup: daybook restore FILE --replace",
                )),
            }
        }
        Err(StartError::InUse(_)) if is_journal(&journal).map_err(unusable)? => Ok(None),
        Err(error @ StartError::InUse(_)) => {
            Err(Failure::from(error).hint("wait until its journal is there"))
        }
        Err(error) => Err(error.into()),
    }
}

/// Reads an exported session.
///
/// # Errors
/// When the file cannot be read, or is larger than any export.
pub(super) fn read(file: &Path) -> Result<Export, Failure> {
    let input: Box<dyn BufRead> = if file == Path::new("-") {
        Box::new(BufReader::new(io::stdin()))
    } else {
        let opened = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
        Box::new(BufReader::new(opened))
    };
    Ok(export::read(input).with_context(|| format!("cannot read {}", file.display()))?)
}
