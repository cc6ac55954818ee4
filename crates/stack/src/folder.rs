//! The data folder: for its user alone, and for one stack at a time. Its lock file says how the last stack ended.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use files::{GRANTS_FOLDER, private, remove_expired_grants};
use journal::id::SessionId;
use journal::sqlite::is_journal;

use crate::stack::{JOURNAL_FILE, StartError};
use crate::store::Database;

/// The lock file; held while a stack uses the folder.
const LOCK_FILE: &str = "lock";

/// Largest content of the lock file, in bytes.
const NOTE_BYTES_MAX: u64 = 256;

/// How often a running stack notes how much its journal holds.
const NOTE_INTERVAL: Duration = Duration::from_secs(1);

/// The exclusive lock on a data folder. Dropping it unlocks the file explicitly, because a process that
/// is being forked holds a copy of the open file.
#[derive(Debug)]
pub struct FolderLock(Note);

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Closing the file unlocks it too, only later.
        let _ = self.0.0.unlock();
    }
}

/// What the lock file says.
#[derive(Clone, Debug)]
pub(crate) struct Note(Arc<File>);

/// What a journal holds, in numbers that only increase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Executions that were ever started.
    executions: i64,
    /// Leaves of the log of sessions.
    leaves: i64,
}

impl Counts {
    async fn of(store: &Database) -> Option<Self> {
        let read = store.read(|connection| {
            let one = |sql: &str| connection.query_row(sql, [], |row| row.get(0));
            let executions = match connection.table_exists(None, "sqlite_sequence")? {
                true => {
                    one("SELECT IFNULL(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'execution'")?
                }
                false => 0,
            };
            Ok(Self { executions, leaves: one("SELECT IFNULL(MAX(n) + 1, 0) FROM log_leaf")? })
        });
        read.await.ok()
    }
}

/// How the last stack of a folder ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// There was none, or it was of a version that did not say.
    Unknown,
    /// It stopped, and the journal's file is whole without another beside it.
    Stopped,
    /// It was killed, when the journal held at least this much.
    Killed(Counts),
}

/// Why a stack does not start by itself: its journal, or the end of it, is missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    #[error("the journal {} is gone, but a stack has written it", .0.display())]
    Gone(PathBuf),
    #[error("the journal {} is empty, but a stack has written it", .0.display())]
    Empty(PathBuf),
    #[error(
        "the end of the journal {} is missing: the last stack was killed, its write-ahead log is gone, and there are \
         {found} leaves and executions instead of at least {expected}", path.display()
    )]
    End { path: PathBuf, found: i64, expected: i64 },
}

impl FolderLock {
    pub(crate) fn keeper(&self) -> Note {
        self.0.clone()
    }

    /// Notes that the journal's file is whole without another beside it.
    ///
    /// # Errors
    /// The lock file cannot be written.
    pub fn is_stopped(&self) -> io::Result<()> {
        self.0.write("stopped\n")
    }

    /// Whether the journal is missing that the last stack has written. `is_signed`: a log of it was signed on this machine.
    pub fn missing_file(&self, journal: &Path, is_signed: bool) -> Option<Missing> {
        missing_file(self.0.last(), journal, is_signed)
    }

    /// Whether the opened journal lacks what the last stack has written. Only a write-ahead log that was removed can be
    /// the reason; programs that write the journal, such as `sqlite3`, put it into the file before they remove it.
    pub(crate) async fn missing_end(&self, store: &Database) -> Option<Missing> {
        let Last::Killed(expected) = self.0.last() else { return None };
        let found = Counts::of(store).await?;
        let is_whole = found.executions >= expected.executions && found.leaves >= expected.leaves;
        (!is_whole).then(|| Missing::End {
            path: store.path().to_owned(),
            found: found.executions + found.leaves,
            expected: expected.executions + expected.leaves,
        })
    }
}

impl Note {
    fn last(&self) -> Last {
        let mut text = String::new();
        let mut file = &*self.0;
        let read = file.rewind().and_then(|()| file.take(NOTE_BYTES_MAX).read_to_string(&mut text));
        let mut words = text.split_whitespace();
        let number = |word: Option<&str>| word.and_then(|word| word.parse().ok()).unwrap_or(0);
        match (read.is_ok(), words.next()) {
            (true, Some("stopped")) => Last::Stopped,
            (true, Some("running")) => Last::Killed(Counts {
                executions: number(words.next()),
                leaves: number(words.next()),
            }),
            _ => Last::Unknown,
        }
    }

    /// Notes that a stack writes, and how much it has written.
    async fn is_running(&self, store: &Database) {
        if let Some(Counts { executions, leaves }) = Counts::of(store).await
            && let Err(error) = self.write(&format!("running {executions} {leaves}\n"))
        {
            tracing::warn!(%error, "The data folder's lock file cannot be written.");
        }
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut file = &*self.0;
        file.rewind()?;
        // Longer than what it replaces, or cut afterwards: a crash in between leaves a number that is too small.
        file.write_all(text.as_bytes())?;
        file.set_len(text.len() as u64)
    }
}

/// Notes again and again how much the journal of a running stack holds.
pub(crate) async fn keep_noting(note: Note, store: Database) {
    let mut changes = store.changes();
    loop {
        changes.mark_unchanged();
        note.is_running(&store).await;
        tokio::time::sleep(NOTE_INTERVAL).await;
        // The store outlives the loop.
        let _ = changes.changed().await;
    }
}

/// Whether the journal of a data folder is missing, as the next start would find. Locks nothing.
pub fn missing(data: &Path, is_signed: bool) -> Option<Missing> {
    let note = File::open(data.join(LOCK_FILE)).ok().map(|file| Note(Arc::new(file)));
    let last = note.map_or(Last::Unknown, |note| note.last());
    missing_file(last, &data.join(JOURNAL_FILE), is_signed)
}

fn missing_file(last: Last, journal: &Path, is_signed: bool) -> Option<Missing> {
    let bytes = std::fs::metadata(journal).map(|found| found.len());
    let log = std::fs::metadata(with_log(journal)).map_or(0, |found| found.len());
    let is_known = last != Last::Unknown;
    match bytes {
        // A first start that was killed leaves no write-ahead log beside an empty file.
        Err(_) if is_known || log > 0 => Some(Missing::Gone(journal.to_owned())),
        Ok(0) if is_known || log > 0 || is_signed => Some(Missing::Empty(journal.to_owned())),
        // Of a file that is no database, opening it tells.
        Ok(1..) if is_known && !is_journal(journal).unwrap_or(true) => {
            Some(Missing::Empty(journal.to_owned()))
        }
        _ => None,
    }
}

fn with_log(journal: &Path) -> PathBuf {
    let mut log = journal.as_os_str().to_owned();
    log.push("-wal");
    PathBuf::from(log)
}

/// Creates, restricts and locks a data folder; returns its absolute path.
///
/// # Errors
/// If it is unusable, or another stack uses it.
pub fn take(data: &Path) -> Result<(PathBuf, FolderLock), StartError> {
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |source| StartError::Folder { path, source }
    };
    private::folder(data).map_err(fail(data))?;
    let data = data.canonicalize().map_err(fail(data))?;
    restrict(&data).map_err(fail(&data))?;
    let path = data.join(LOCK_FILE);
    let lock = private::kept(&path).map_err(fail(&path))?;
    match lock.try_lock() {
        Ok(()) => Ok((data, FolderLock(Note(Arc::new(lock))))),
        Err(TryLockError::WouldBlock) => Err(StartError::InUse(data)),
        Err(TryLockError::Error(source)) => Err(StartError::Folder { path, source }),
    }
}

/// Removes what has expired in a data folder.
pub(crate) fn remove_expired(data: &Path, ttl_days: u32) {
    let kept = Duration::from_secs(u64::from(ttl_days) * 86_400);
    remove_expired_grants(&data.join(GRANTS_FOLDER), kept);
}

/// Removes the folders of a session's tools: `{server}/{session}` in the data folder.
///
/// # Errors
/// If one of them cannot be removed.
pub(crate) fn remove_state(data: &Path, session: &SessionId) -> io::Result<()> {
    for entry in std::fs::read_dir(data)? {
        let entry = entry?;
        let state = entry.path().join(session.as_str());
        // Of a symlink, only the link itself would be in the folder.
        if entry.file_type()?.is_dir() && state.symlink_metadata().is_ok_and(|it| it.is_dir()) {
            std::fs::remove_dir_all(state)?;
        }
    }
    Ok(())
}

/// Takes the access of other users to the data folder. A folder that has other purposes, or another owner,
/// keeps its mode, with a warning: its files are private anyway.
fn restrict(data: &Path) -> io::Result<()> {
    if !private::is_open_to_others(data)? {
        return Ok(());
    }
    let is_new = || std::fs::read_dir(data).is_ok_and(|mut entries| entries.next().is_none());
    let is_working_folder = std::env::current_dir().is_ok_and(|working| working.starts_with(data));
    let is_ours = !is_working_folder && (data.join(JOURNAL_FILE).is_file() || is_new());
    if is_ours && private::restrict_folder(data).is_ok() {
        return Ok(());
    }
    let folder = data.display();
    tracing::warn!(%folder, "Other users may list the data folder; `chmod 700` ends that.");
    Ok(())
}
