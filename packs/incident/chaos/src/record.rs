//! The record of a fault, written to disk before the first change.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use files::private;
use serde::{Deserialize, Serialize};

use super::Error;
use super::change::Change;

pub(super) const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub version: u32,
    pub function: String,
    pub fault: String,
    /// Whether the account is a fake on this machine.
    pub is_local: bool,
    pub account: String,
    pub region: String,
    /// In the order of execution.
    pub changes: Vec<Change>,
}

impl Record {
    /// Writes a new record durably.
    pub(super) fn write(&self, path: &Path) -> Result<(), Error> {
        let write = || {
            let folder = path.parent().unwrap_or(Path::new("."));
            private::folder(folder)?;
            let text = serde_json::to_string_pretty(self)?;
            // Atomic: a partial record could not be reverted.
            let partial = path.with_extension(format!("{}.partial", std::process::id()));
            let mut file = private::file(&partial)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            // A link fails if a concurrent injection has written its record.
            fs::hard_link(&partial, path)?;
            fs::remove_file(&partial)?;
            File::open(folder)?.sync_all()?;
            // The folder itself may be new.
            File::open(folder.join(".."))?.sync_all()
        };
        write().map_err(|source| Error::Record { path: path.to_owned(), source })
    }

    pub(super) fn read(path: &Path) -> Result<Option<Self>, Error> {
        let failed = |source| Error::Record { path: path.to_owned(), source };
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let record: Self =
            serde_json::from_slice(&text).map_err(|error| failed(io::Error::other(error)))?;
        if record.version != VERSION {
            let found = format!("its version is {}, not {VERSION}", record.version);
            return Err(failed(io::Error::other(found)));
        }
        Ok(Some(record))
    }

    /// Removes the record of a reverted fault.
    pub(super) fn remove(path: &Path) -> Result<(), Error> {
        fs::remove_file(path).map_err(|source| Error::Record { path: path.to_owned(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chaos/data-processor.throttle.json");
        assert!(Record::read(&path).unwrap().is_none());
        let record = |before| Record {
            version: VERSION,
            function: "data-processor".into(),
            fault: "throttle".into(),
            is_local: true,
            account: "123456789012".into(),
            region: "us-east-1".into(),
            changes: vec![Change::Concurrency {
                function: "data-processor".into(),
                before,
                after: 0,
            }],
        };
        record(Some(7)).write(&path).unwrap();
        assert!(matches!(record(None).write(&path), Err(Error::Record { .. })));
        let read = Record::read(&path).unwrap().unwrap();
        assert_eq!(read.changes, record(Some(7)).changes);
        Record::remove(&path).unwrap();
        assert!(Record::read(&path).unwrap().is_none());
        fs::write(&path, "{").unwrap();
        assert!(matches!(Record::read(&path), Err(Error::Record { .. })));
    }
}
