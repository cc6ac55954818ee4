//! An exclusive lock on a file itself, whatever path leads to it: a symlink, another folder, a hard link.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held until it is dropped.
///
/// It is not `flock`, which some systems and network file systems mix up with the locks of SQLite, but an
/// open file description lock on one byte behind any content. SQLite locks other bytes, so a database stays
/// readable and writable for others.
#[derive(Debug)]
pub struct Lock {
    file: File,
    id: Id,
}

/// The files that this process has locked. A process that opens and closes a file loses all locks that
/// SQLite has on it, so a second attempt must not even open it.
///
/// Source: POSIX, `fcntl`: closing any descriptor of a file releases the process's record locks on it.
static HELD: Mutex<BTreeSet<Id>> = Mutex::new(BTreeSet::new());

impl Lock {
    /// Locks an existing file; `None` if it is locked already.
    ///
    /// # Errors
    /// The file cannot be opened for writing.
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        let mut held = held();
        let id = id(&fs::metadata(path)?);
        if held.contains(&id) {
            return Ok(None);
        }
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        if self::id(&file.metadata()?) != id {
            return Err(io::Error::other("the file was replaced meanwhile"));
        }
        if !set(&file, Kind::Exclusive)? {
            return Ok(None);
        }
        held.insert(id);
        Ok(Some(Self { file, id }))
    }

    /// The locked file.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = set(&self.file, Kind::None);
        held().remove(&self.id);
        // A copy of the descriptor stays open until the process ends: to close the last one would release what SQLite
        // still has locked here. A process locks few files.
        if let Ok(copy) = self.file.try_clone() {
            std::mem::forget(copy);
        }
    }
}

fn held() -> MutexGuard<'static, BTreeSet<Id>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Exclusive,
    None,
}

/// Far behind the largest database and the bytes that SQLite locks.
///
/// Source: SQLite, "Database File Format", the lock-byte page: offsets 2^30 to 2^30 + 511.
#[cfg(target_os = "linux")]
const LOCKED_BYTE: libc::off_t = libc::off_t::MAX - 1;

/// Returns whether it is done, and not another's.
#[cfg(target_os = "linux")]
fn set(file: &File, kind: Kind) -> io::Result<bool> {
    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, fcntl};
    let l_type = if kind == Kind::Exclusive { libc::F_WRLCK } else { libc::F_UNLCK };
    let (l_type, l_whence) = (l_type as libc::c_short, libc::SEEK_SET as libc::c_short);
    let lock = libc::flock { l_type, l_whence, l_start: LOCKED_BYTE, l_len: 1, l_pid: 0 };
    match fcntl(file, FcntlArg::F_OFD_SETLK(&lock)) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Other systems have no such lock. There, the registry of this process remains, and the data folder's lock.
#[cfg(not(target_os = "linux"))]
fn set(_: &File, _: Kind) -> io::Result<bool> {
    Ok(true)
}

/// The device and the number of a file.
type Id = (u64, u64);

#[cfg(unix)]
fn id(metadata: &fs::Metadata) -> Id {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn id(_: &fs::Metadata) -> Id {
    (0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_locked_whatever_path_leads_to_it() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "x").unwrap();
        let (symbolic, hard) = (place.path().join("symbolic"), place.path().join("hard"));
        std::os::unix::fs::symlink(&file, &symbolic).unwrap();
        fs::hard_link(&file, &hard).unwrap();
        let lock = Lock::take(&file).unwrap();
        assert!(lock.is_some());
        for path in [&file, &symbolic, &hard] {
            assert!(Lock::take(path).unwrap().is_none(), "{path:?}");
        }
        drop(lock);
        assert!(Lock::take(&hard).unwrap().is_some());
    }
}
