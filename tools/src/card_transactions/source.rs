//! Where the rows come from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::case_file::CaseFile;
use super::error::{Error, Place, shown};
use super::row::{self, Column, Raw};
use super::service::Service;
use super::{csv_file, parquet_file};

/// What every row is shown to.
pub type Visit<'a> = dyn FnMut(Place, &Raw<'_>) -> Result<(), Error> + 'a;

/// How a Parquet file begins.
///
/// Source: Apache Parquet, "File Format".
const PARQUET_MAGIC: &[u8; 4] = b"PAR1";

/// Largest file, in bytes. Twenty million rows are less.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// Which addresses a service may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remote {
    /// Those of this machine: the address came with a trigger, which anybody may have written.
    Refused,
    /// Any: whoever runs the server has written the address.
    Allowed,
}

/// Where the rows come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file, CSV or Parquet.
    File(PathBuf),
    /// A transaction service.
    Service(Service),
}

impl Source {
    /// The source that a path or an address names.
    ///
    /// # Errors
    /// [`Error::Address`] when it is an address that may not be asked.
    pub fn new(data: &str, remote: Remote) -> Result<Self, Error> {
        if data.contains("://") {
            return Service::new(data, remote).map(Self::Service);
        }
        Ok(Self::File(PathBuf::from(data)))
    }

    /// What of the data matters for one transaction. `on_row` is called now and then with how many
    /// rows were looked at; it says whether to go on.
    ///
    /// # Errors
    /// When the data cannot be used, or have no such transaction.
    pub fn case_file(
        &self,
        id: &str,
        mut on_row: impl FnMut(u64) -> bool,
    ) -> Result<CaseFile, Error> {
        match self {
            Self::File(path) => {
                let kind = Kind::of(path)?;
                CaseFile::build(&name_of(path), id, |visit| {
                    kind.scan(path, &mut |place, raw| {
                        if !on_row(place.row) {
                            return Err(Error::GivenUp);
                        }
                        visit(place, raw)
                    })
                })
            }
            Self::Service(service) => service.case_file(id),
        }
    }

    /// Which of these payments turned out to be frauds and which to be honest, as far as a file says. For
    /// whoever judges an investigation, never for one.
    ///
    /// # Errors
    /// When the data cannot be used.
    pub fn labels(&self, ids: &BTreeSet<&str>) -> Result<BTreeMap<String, bool>, Error> {
        let mut labels = BTreeMap::new();
        let Self::File(path) = self else { return Ok(labels) };
        let file = name_of(path);
        Kind::of(path)?.scan(path, &mut |place, raw| {
            let id = raw.get(Column::TransactionId).trim();
            if ids.contains(id) {
                let label = row::label(raw)
                    .map_err(|error| Error::of_field(&file, place, error.column, error.problem))?;
                labels.extend(label.map(|label| (id.to_owned(), label)));
            }
            Ok(())
        })?;
        Ok(labels)
    }
}

/// A file's name as it stands in messages: somebody's home folder is nobody's business.
pub fn name_of(path: &Path) -> String {
    path.file_name()
        .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into())
}

#[derive(Clone, Copy)]
enum Kind {
    Csv,
    Parquet,
}

impl Kind {
    fn scan(self, path: &Path, visit: &mut Visit<'_>) -> Result<(), Error> {
        match self {
            Self::Csv => csv_file::scan(path, visit),
            Self::Parquet => parquet_file::scan(path, visit),
        }
    }

    /// By how the file begins, whatever it is called.
    fn of(path: &Path) -> Result<Self, Error> {
        let named = shown(&path.display().to_string());
        let open = |reason: String| Error::Open { file: named.clone(), reason };
        let mut file = File::open(path).map_err(|error| open(error.to_string()))?;
        let about = file.metadata().map_err(|error| open(error.to_string()))?;
        if !about.is_file() {
            return Err(open("it is no file".to_owned()));
        }
        if about.len() > FILE_BYTES_MAX {
            return Err(open(format!("it is larger than {FILE_BYTES_MAX} bytes")));
        }
        let mut start = [0; 4];
        // A file that is shorter is no Parquet file, and what else it is, its reader says.
        let is_parquet = file.read_exact(&mut start).is_ok() && start == *PARQUET_MAGIC;
        Ok(if is_parquet { Self::Parquet } else { Self::Csv })
    }
}
