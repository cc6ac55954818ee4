//! The data folder: for its user alone, and for one stack at a time.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use files::{GRANTS_FOLDER, private, remove_expired_grants};

use crate::stack::{JOURNAL_FILE, StartError};

/// The lock file; held while a stack uses the folder.
const LOCK_FILE: &str = "lock";

/// The exclusive lock on a data folder. Dropping it unlocks the file explicitly, because a process that
/// is being forked holds a copy of the open file.
#[derive(Debug)]
pub(crate) struct FolderLock(File);

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Closing the file unlocks it too, only later.
        let _ = self.0.unlock();
    }
}

/// Creates, restricts and locks a data folder; returns its absolute path. Removes what has expired.
///
/// # Errors
/// If it is unusable, or another stack uses it.
pub(crate) fn take(data: &Path, ttl_days: u32) -> Result<(PathBuf, FolderLock), StartError> {
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |source| StartError::Folder { path, source }
    };
    private::folder(data).map_err(fail(data))?;
    let data = data.canonicalize().map_err(fail(data))?;
    restrict(&data).map_err(fail(&data))?;
    let path = data.join(LOCK_FILE);
    let lock = private::file(&path).map_err(fail(&path))?;
    match lock.try_lock() {
        Ok(()) => {
            let kept = Duration::from_secs(u64::from(ttl_days) * 86_400);
            remove_expired_grants(&data.join(GRANTS_FOLDER), kept);
            Ok((data, FolderLock(lock)))
        }
        Err(TryLockError::WouldBlock) => Err(StartError::InUse(data)),
        Err(TryLockError::Error(source)) => Err(StartError::Folder { path, source }),
    }
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
