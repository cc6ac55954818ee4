//! Copies a journal that others may be writing, as of one moment.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::{OpenError, check_version, open_reading};

/// Pages that are copied at once, 4 MiB; after each step the caller hears of it.
const STEP_PAGES: i32 = 1_000;

/// Largest write-ahead log beside which a copy goes on, in bytes. The copy reads as of one moment, so until its end the
/// log keeps what is written. A copy that is stopped, or that is slower than the writers, must not fill the disk.
pub const LOG_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// Pause before a step is tried again that another program kept from being done.
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// Most such pauses in a row: half a minute.
const BUSY_PAUSES_MAX: u32 = 600;

/// How far a copy is, in pages of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub done: i32,
    pub total: i32,
}

/// Why a journal was not copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("cannot copy {} to {}", from.display(), to.display())]
    Sqlite {
        from: PathBuf,
        to: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("cannot write {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the write-ahead log of {} has grown to {bytes} bytes beside the copy, {LOG_BYTES_MAX} at most", path.display())]
    Slow { path: PathBuf, bytes: u64 },
    #[error("{} was locked by another program for half a minute", .0.display())]
    Busy(PathBuf),
}

/// Copies a journal as of now into an existing, empty file, which is then one file without others beside it, and
/// durable. Writers of the journal go on.
///
/// # Errors
/// The journal cannot be read, or the file not be written. What the file then holds is no journal.
pub fn copy(from: &Path, to: &Path, tell: impl FnMut(Progress)) -> Result<(), CopyError> {
    let source = open_reading(from)?;
    check_version(&source, from)?;
    let fail = |source| CopyError::Sqlite { from: from.to_owned(), to: to.to_owned(), source };
    // The copy reads in this transaction. Without one, each write of another process would begin it anew.
    let pin = "BEGIN; SELECT count(*) FROM sqlite_master";
    source.execute_batch(pin).map_err(fail)?;
    let mut target = Connection::open(to).map_err(fail)?;
    // If the copy does not come to its end, nobody uses the file.
    target.pragma_update(None, "synchronous", "off").map_err(fail)?;
    run(&source, &mut target, from, tell, &fail)?;
    target.pragma_update(None, "journal_mode", "delete").map_err(fail)?;
    target.close().map_err(|(_, error)| fail(error))?;
    let synced = fs::OpenOptions::new().write(true).open(to).and_then(|file| file.sync_all());
    synced.map_err(|source| CopyError::File { path: to.to_owned(), source })
}

fn run(
    source: &Connection,
    target: &mut Connection,
    from: &Path,
    mut tell: impl FnMut(Progress),
    fail: &impl Fn(rusqlite::Error) -> CopyError,
) -> Result<(), CopyError> {
    let backup = Backup::new(source, target).map_err(fail)?;
    let log = super::place::log_of(from);
    let mut pauses = 0;
    loop {
        let step = backup.step(STEP_PAGES).map_err(fail)?;
        let progress = backup.progress();
        tell(Progress { done: progress.pagecount - progress.remaining, total: progress.pagecount });
        match step {
            StepResult::Done => return Ok(()),
            StepResult::More => pauses = 0,
            _ if pauses == BUSY_PAUSES_MAX => return Err(CopyError::Busy(from.to_owned())),
            _ => {
                pauses += 1;
                std::thread::sleep(BUSY_PAUSE);
            }
        }
        let bytes = fs::metadata(&log).map_or(0, |found| found.len());
        if bytes > LOG_BYTES_MAX {
            return Err(CopyError::Slow { path: from.to_owned(), bytes });
        }
    }
}
