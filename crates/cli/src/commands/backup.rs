//! `backup`: the journal of a data folder as one verified file.

use std::path::Path;
use std::time::Duration;

use journal::log::Trust;
use journal::sqlite::backup::{CopyError, Progress, copy};
use journal::sqlite::{Pages, check_pages};
use serde_json::json;
use stack::backup::{self, Error, Part};
use stack::checkpoints::settle_all;
use stack::keys::Keys;
use stack::stack::JOURNAL_FILE;
use stack::store::Database;
use stack::verifier::Verifier;

use super::verify::{Told, Whole};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::progress;
use crate::reader;
use crate::resolve::Context;

/// How long reading all pages of a backup may take. It is the whole purpose, so only a disk that hangs ends it.
pub(super) const PAGES_TIMEOUT: Duration = Duration::from_secs(86_400);

/// Copies the journal, verifies the copy, and gives it its name.
///
/// # Errors
/// When the journal cannot be read, or the file exists or cannot be written. Then nothing has its name.
pub async fn backup(context: &Context, file: &Path) -> Result<Exit, Failure> {
    let data = reader::folder(context).await?;
    let journal = data.join(JOURNAL_FILE);
    if !journal.is_file() {
        return Err(reader::no_journal(&journal));
    }
    let part = Part::begin(file).map_err(failed)?;
    settle_all(&Database::open_read_only(&journal).map_err(reader::unusable)?).await?;
    let keys = context.keys.as_deref().map(|keys| Keys::of(keys, &data));
    // Before the copy: the stack may sign what comes after it.
    let signed = keys.as_ref().map(Keys::checkpoint).transpose()?.flatten();
    copied(&journal, part.path()).await?;
    let folders = backup::state_folders(&context.agents);
    let files = backup::add_state(part.path(), &data, &folders).map_err(failed)?;
    whole_pages(part.path()).await?;
    let log = keys.as_ref().map(Keys::verifiers).transpose()?.unwrap_or_default();
    let trust = Trust { log, ..Trust::default() };
    let whole = verified(context, part.path(), trust, signed.as_deref()).await?;
    let bytes = std::fs::metadata(part.path())?.len();
    part.finish().map_err(failed)?;
    if context.json {
        let verified = whole.to_json();
        output::json(&json!({
            "file": file, "bytes": bytes, "state_files": files, "verified": verified,
        }))?;
    } else {
        output::lines(whole.lines(context))?;
        output::line(&format!("backup {} · {bytes} bytes", file.display()))?;
        if files > 0 {
            output::say(&format!("with {files} files of MCP servers' states"));
        }
        output::say(&without_keys(keys.as_ref()));
        if whole.exit() == Exit::Failed {
            output::error("the journal is damaged, and so is this copy of it; keep an earlier one");
        }
    }
    Ok(whole.exit())
}

fn without_keys(keys: Option<&Keys>) -> String {
    match keys {
        Some(keys) => format!(
            "the keys that sign the log of sessions are not in it; they are in {}",
            keys.folder().display()
        ),
        None => "the keys that sign the log of sessions are not in it".to_owned(),
    }
}

/// Copies a journal on a thread of its own.
pub(super) async fn copied(from: &Path, to: &Path) -> Result<(), Failure> {
    let (from, to) = (from.to_owned(), to.to_owned());
    let tell = |Progress { done, total }: Progress| {
        let pages = |count: i32| u64::try_from(count).unwrap_or(0);
        progress::bar("copying", pages(done), pages(total), "pages");
    };
    let copying = tokio::task::spawn_blocking(move || copy(&from, &to, tell));
    copying.await?.map_err(|error| match error {
        CopyError::Open(error) => reader::unusable(error),
        CopyError::Slow { .. } => Failure::from(error)
            .hint("sessions write faster than the copy is made: copy to a faster disk, or stop the stack first"),
        error => error.into(),
    })
}

/// Refuses a file with damaged pages.
pub(super) async fn whole_pages(file: &Path) -> Result<(), Failure> {
    output::idle_on_terminal("checking every page");
    match check_pages(file, PAGES_TIMEOUT).await.map_err(reader::unusable)? {
        Pages::Whole => Ok(()),
        Pages::Damaged(findings) => {
            findings.iter().for_each(|finding| output::error(finding));
            Err(Failure::damaged("pages of the journal are damaged; nothing was written")
                .hint("restore an earlier backup; or save what can be read with: sqlite3 journal.db .recover"))
        }
        Pages::NotInTime => Err(Failure::unknown("its pages were not read within a day")),
    }
}

/// Verifies every session in a file, with these keys, against a checkpoint that was signed before.
pub(super) async fn verified(
    context: &Context,
    file: &Path,
    trust: Trust,
    signed: Option<&str>,
) -> Result<Whole, Failure> {
    let database = Database::open_read_only(file).map_err(reader::unusable)?;
    // A checkpoint without a key that could have signed it says nothing about the log.
    let signed = signed.filter(|_| !trust.log.is_empty());
    let verifier = Verifier::new(database, None, trust, signed).await?;
    Whole::read(context, verifier, &[], Told::Problems).await
}

/// The failure of a step, with what to do next.
pub(super) fn failed(error: Error) -> Failure {
    let hint = match &error {
        Error::Exists(_) => Some("a backup replaces no file: name another one, or remove this one"),
        Error::Written(_) => Some("wait until it is done"),
        Error::HasJournal(_) => {
            Some("pass --replace, which keeps that journal beside it; or another --data-dir")
        }
        Error::InUse(_) | Error::Folder(_) => {
            Some("stop the stack that uses the folder, or pass another --data-dir")
        }
        Error::State { .. } => Some("remove what is not needed from the state of that server"),
        Error::Foreign(_) => Some("restore a file that `daybook backup` wrote"),
        Error::File { .. } | Error::Sqlite { .. } => None,
    };
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
