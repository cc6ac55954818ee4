//! Whether the file at the journal's path is still the one that was opened. SQLite writes on into a file that was removed
//! or replaced, and every commit would be acknowledged into nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The paths of the opened file and of its write-ahead log.
#[derive(Debug)]
pub(super) struct Place {
    file: PathBuf,
    file_id: Id,
    log: PathBuf,
    /// Known once the log is there: SQLite makes it for the first write, and keeps it while the journal is open.
    log_id: OnceLock<Id>,
}

/// Why a commit would be lost.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Lost {
    #[error("{} is gone: it was removed or moved while it was open", .0.display())]
    Gone(PathBuf),
    #[error("{} was replaced by another file while it was open", .0.display())]
    Replaced(PathBuf),
    #[error("{} cannot be looked at: {why}", path.display())]
    Hidden { path: PathBuf, why: String },
}

impl Place {
    /// The file that is at a path now.
    pub(super) fn of(file: &Path) -> io::Result<Self> {
        let file_id = id(file)?;
        let (log, log_id) = (log_of(file), OnceLock::new());
        Ok(Self { file: file.to_owned(), file_id, log, log_id })
    }

    /// Size of the write-ahead log, in bytes.
    pub(super) fn log_bytes(&self) -> u64 {
        fs::metadata(&self.log).map_or(0, |found| found.len())
    }

    /// Whether the same files are there.
    pub(super) fn check(&self) -> Result<(), Lost> {
        compare(&self.file, self.file_id)?;
        match self.log_id.get() {
            Some(known) => compare(&self.log, *known),
            None => {
                if let Ok(found) = id(&self.log) {
                    let _ = self.log_id.set(found);
                }
                Ok(())
            }
        }
    }
}

/// The write-ahead log of a database. SQLite puts it beside the file itself, not beside a symlink to it.
pub(super) fn log_of(file: &Path) -> PathBuf {
    let mut log = file.canonicalize().unwrap_or_else(|_| file.to_owned()).into_os_string();
    log.push("-wal");
    PathBuf::from(log)
}

fn compare(path: &Path, known: Id) -> Result<(), Lost> {
    match id(path) {
        Ok(found) if found == known => Ok(()),
        Ok(_) => Err(Lost::Replaced(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Lost::Gone(path.to_owned())),
        Err(error) => Err(Lost::Hidden { path: path.to_owned(), why: error.to_string() }),
    }
}

/// The device and the number of a file.
#[cfg(unix)]
type Id = (u64, u64);

#[cfg(unix)]
fn id(path: &Path) -> io::Result<Id> {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}

/// Without such numbers, only a missing file is noticed.
#[cfg(not(unix))]
type Id = ();

#[cfg(not(unix))]
fn id(path: &Path) -> io::Result<Id> {
    fs::metadata(path).map(drop)
}
