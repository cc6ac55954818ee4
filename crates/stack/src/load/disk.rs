//! The disk budget of a data folder: new sessions are refused early, so that those under way have room to end.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use journal::clock::Stamp;
use journal::store::Error;

use super::{NotAdmitted, unpoisoned};
use crate::stack::JOURNAL_FILE;
use crate::store::Database;

/// What a session under way may still write, in bytes: more than a short session writes in all.
pub const SESSION_BYTES_EXPECTED: u64 = 64 * 1024;

/// Part of the budget that no new session may use: a tenth.
const RESERVED_PART: u64 = 10;

/// How long a measurement of the journal is used, by the stack's clock.
const JOURNAL_FOR: Duration = Duration::from_secs(1);

/// The same for the other files, which are few bytes beside it, and may be many files.
const OTHERS_FOR: Duration = Duration::from_secs(30);

/// Most files to look at beside the journal. Further ones do not count.
const OTHERS_MAX: usize = 100_000;

/// The budget of a stack's data folder.
#[derive(Debug)]
pub struct Budget {
    store: Database,
    folder: PathBuf,
    bytes_max: u64,
    newest: Mutex<Newest>,
}

/// The newest measurements, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    journal: Option<(Stamp, u64)>,
    others: Option<(Stamp, u64)>,
}

/// How much of the budget is used, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    pub bytes: u64,
    pub bytes_max: u64,
}

impl Budget {
    /// For the data folder of this store.
    pub fn new(store: &Database, folder: &Path, bytes_max: u64) -> Self {
        let (store, folder) = (store.clone(), folder.to_owned());
        Self { store, folder, bytes_max, newest: Mutex::default() }
    }

    /// Measures what is used, or returns a measurement that is new enough.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub(crate) async fn used(&self, now: Stamp) -> Result<Used, Error> {
        let Newest { journal, others } = *unpoisoned(&self.newest);
        let known = |measured: Option<(Stamp, u64)>, within: Duration| {
            measured.filter(|(at, _)| now.since(*at) < within).map(|(_, bytes)| bytes)
        };
        let journal = match known(journal, JOURNAL_FOR) {
            Some(bytes) => bytes,
            None => self.store.used_bytes().await?,
        };
        let others = match known(others, OTHERS_FOR) {
            Some(bytes) => bytes,
            None => {
                let folder = self.folder.clone();
                let counted = tokio::task::spawn_blocking(move || beside_journal(&folder)).await;
                counted.map_err(|error| Error::Unavailable(error.into()))?
            }
        };
        let mut newest = unpoisoned(&self.newest);
        if known(newest.journal, JOURNAL_FOR).is_none() {
            newest.journal = Some((now, journal));
        }
        if known(newest.others, OTHERS_FOR).is_none() {
            newest.others = Some((now, others));
        }
        Ok(Used { bytes: journal + others, bytes_max: self.bytes_max })
    }
}

impl Used {
    /// New sessions that may start beside those under way.
    pub(crate) fn room(self, under_way: usize) -> usize {
        let least = self.bytes_max - self.bytes_max / RESERVED_PART;
        let sessions = least.saturating_sub(self.bytes) / SESSION_BYTES_EXPECTED;
        usize::try_from(sessions).unwrap_or(usize::MAX).saturating_sub(under_way)
    }

    /// Why no session is admitted now; `None` if one is.
    pub(crate) fn refusal(self, under_way: usize) -> Option<NotAdmitted> {
        let Self { bytes, bytes_max } = self;
        (self.room(under_way) == 0).then_some(NotAdmitted::Disk { bytes, bytes_max, under_way })
    }
}

/// The size of all regular files in a data folder besides the journal, its write-ahead log, and the log's index. What
/// cannot be read does not count.
fn beside_journal(folder: &Path) -> u64 {
    let (mut bytes, mut files) = (0, 0);
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let entries = std::fs::read_dir(&next).into_iter().flatten().flatten();
        for entry in entries {
            let Ok(kind) = entry.file_type() else { continue };
            let is_journal =
                next == folder && entry.file_name().to_string_lossy().starts_with(JOURNAL_FILE);
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && !is_journal {
                bytes += entry.metadata().map_or(0, |found| found.len());
            }
            files += 1;
            if files == OTHERS_MAX {
                return bytes;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_and_the_sessions_under_way_are_reserved() {
        const MIB: u64 = 1024 * 1024;
        let check = |bytes: u64, under_way: usize, expected: usize| {
            let used = Used { bytes, bytes_max: 10 * MIB };
            assert_eq!(used.room(under_way), expected, "{bytes} bytes, {under_way} under way");
            assert_eq!(used.refusal(under_way).is_some(), expected == 0);
        };
        check(0, 0, 144);
        check(8 * MIB, 0, 16);
        check(8 * MIB, 15, 1);
        check(8 * MIB, 16, 0);
        check(9 * MIB, 0, 0);
        check(20 * MIB, 1_000, 0);
    }

    #[test]
    fn files_beside_the_journal_count() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("server").join("state");
        std::fs::create_dir_all(&inner).unwrap();
        for (path, bytes) in [
            (folder.path().join("journal.db"), 1_000),
            (folder.path().join("journal.db-wal"), 1_000),
            (folder.path().join("lock"), 1),
            (inner.join("journal.db"), 20),
        ] {
            std::fs::write(path, vec![0; bytes]).unwrap();
        }
        assert_eq!(beside_journal(folder.path()), 21);
    }
}
