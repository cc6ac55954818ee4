//! What a running stack stores on its disk, and when that is a problem.

use std::path::Path;

use files::disk::{Space, space};
use serde_json::{Map, Value, json};

use crate::store::Database;

/// Less than this left on a disk is a problem, in bytes: a write-ahead log, and the sessions of a few hours.
pub const DISK_LEFT_BYTES_MIN: u64 = 256 * 1024 * 1024;

/// On a small disk, less than this part of it: a twentieth.
const DISK_LEFT_PART_MIN: u64 = 20;

/// A larger write-ahead log is a problem, in bytes: a program reads the journal and does not come to an end.
pub const LOG_BYTES_PROBLEM: u64 = 1024 * 1024 * 1024;

/// What is stored, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    journal: Option<u64>,
    log: u64,
    /// `None` if the system does not say.
    disk: Option<Space>,
}

impl Storage {
    /// Of the journal in a data folder.
    pub fn of(store: &Database, data: &Path) -> Self {
        let journal = std::fs::metadata(store.path()).ok().map(|found| found.len());
        Self { journal, log: store.log_bytes(), disk: space(data).ok() }
    }

    /// In bytes; `None` if the system does not say.
    pub fn disk_left(self) -> Option<u64> {
        self.disk.map(|disk| disk.left_bytes)
    }

    /// How much left is too little, in bytes.
    pub fn disk_left_min(self) -> Option<u64> {
        self.disk.map(least)
    }

    pub fn to_json(self) -> Value {
        json!({
            "journal_bytes": self.journal, "log_bytes": self.log,
            "disk_left_bytes": self.disk.map(|disk| disk.left_bytes),
            "disk_total_bytes": self.disk.map(|disk| disk.total_bytes),
            "disk_left_bytes_min": self.disk.map(least),
        })
    }

    /// What keeps, or will soon keep, sessions from going on.
    pub fn problems(self) -> Map<String, Value> {
        let mut problems = Map::new();
        if let Some(disk) = self.disk.filter(|disk| disk.left_bytes < least(*disk)) {
            let (left, least) = (disk.left_bytes, least(disk));
            let why = format!("{left} bytes are left on the disk, fewer than {least}");
            problems.insert("disk".to_owned(), why.into());
        }
        if self.log > LOG_BYTES_PROBLEM {
            let why = format!(
                "the write-ahead log has {} bytes: a program that reads the journal keeps it from being emptied",
                self.log
            );
            problems.insert("log".to_owned(), why.into());
        }
        problems
    }
}

fn least(disk: Space) -> u64 {
    DISK_LEFT_BYTES_MIN.min(disk.total_bytes / DISK_LEFT_PART_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_space_and_a_large_log_are_problems() {
        const GIB: u64 = 1024 * 1024 * 1024;
        let check = |left_bytes: u64, total_bytes: u64, log: u64, expected: &[&str]| {
            let disk = Some(Space { left_bytes, total_bytes });
            let found = Storage { journal: Some(1), log, disk }.problems();
            assert_eq!(found.keys().collect::<Vec<_>>(), expected, "{left_bytes} of {total_bytes}");
        };
        check(GIB, 100 * GIB, 0, &[]);
        check(DISK_LEFT_BYTES_MIN, 100 * GIB, LOG_BYTES_PROBLEM, &[]);
        check(DISK_LEFT_BYTES_MIN - 1, 100 * GIB, LOG_BYTES_PROBLEM + 1, &["disk", "log"]);
        // A small disk.
        check(4_000_000, 64_000_000, 0, &[]);
        check(3_000_000, 64_000_000, 0, &["disk"]);
        assert!(Storage::default().problems().is_empty(), "nothing is known");
    }
}
