//! Sources of rows.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::case_file::CaseFile;
use super::error::{Error, RowPosition, shown};
use super::row::{self, Column, Raw, Row};
use super::service::Service;
use super::summary::Payment;
use super::{csv_file, parquet_file};

/// Visitor of rows.
pub type Visit<'a> = dyn FnMut(RowPosition, &Raw<'_>) -> Result<(), Error> + 'a;

/// Magic number of a Parquet file.
///
/// Source: Apache Parquet, "File Format".
const PARQUET_MAGIC: &[u8; 4] = b"PAR1";

/// Largest file, in bytes. Twenty million rows take less.
pub(super) const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// Allowed addresses of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remote {
    /// This machine only: the address comes from a trigger, which is untrusted.
    Refused,
    /// Any: the operator of the server chose the address.
    Allowed,
}

#[derive(Clone, Debug)]
pub enum Source {
    /// A CSV or Parquet file.
    File(PathBuf),
    Service(Service),
}

impl Source {
    /// The source at a path or an address.
    ///
    /// # Errors
    /// [`Error::Address`] if the address is not allowed.
    pub fn new(data: &str, remote: Remote) -> Result<Self, Error> {
        if data.contains("://") {
            return Service::new(data, remote).map(Self::Service);
        }
        Ok(Self::File(PathBuf::from(data)))
    }

    /// Collects the case of one transaction. Calls `on_row` now and then with the number of rows
    /// read; it returns whether to continue.
    ///
    /// # Errors
    /// If the data are invalid or lack this transaction.
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
                            return Err(Error::Cancelled);
                        }
                        visit(place, raw)
                    })
                })
            }
            Self::Service(service) => service.case_file(id),
        }
    }

    /// Whether these payments turned out to be frauds, as far as a file says. For evaluating
    /// investigations, never for running one.
    ///
    /// # Errors
    /// If the data are invalid.
    pub fn labels(&self, ids: &BTreeSet<&str>) -> Result<Labels, Error> {
        let mut labels = Labels::default();
        self.each_row(|file, place, raw| {
            let label = row::label(raw)
                .map_err(|error| Error::of_field(file, place, error.column, error.problem))?;
            let Some(is_fraud) = label else { return Ok(()) };
            *if is_fraud { &mut labels.frauds } else { &mut labels.honest } += 1;
            let id = raw.get(Column::TransactionId).trim();
            if ids.contains(id) {
                labels.of.insert(id.to_owned(), is_fraud);
            }
            Ok(())
        })?;
        Ok(labels)
    }

    /// The payments with these ids, as far as a file has them. For reports.
    ///
    /// # Errors
    /// If the data are invalid.
    pub fn payments(&self, ids: &BTreeSet<&str>) -> Result<BTreeMap<String, Payment>, Error> {
        let mut payments = BTreeMap::new();
        self.each_row(|file, place, raw| {
            if ids.contains(raw.get(Column::TransactionId).trim()) {
                let row = Row::parse(raw)
                    .map_err(|error| Error::of_field(file, place, error.column, error.problem))?;
                payments.insert(row.transaction.id.clone(), Payment::of(&row.transaction));
            }
            Ok(())
        })?;
        Ok(payments)
    }

    /// Visits the rows of a file; a service has none to visit.
    fn each_row(
        &self,
        mut visit: impl FnMut(&str, RowPosition, &Raw<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Self::File(path) = self else { return Ok(()) };
        let file = name_of(path);
        Kind::of(path)?.scan(path, &mut |place, raw| visit(&file, place, raw))
    }
}

/// Labels of a data set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// Those of the payments that were asked for, by id.
    pub of: BTreeMap<String, bool>,
    /// Number of labelled frauds in all.
    pub frauds: u64,
    /// Number of labelled honest payments in all.
    pub honest: u64,
}

/// A file's name for messages, without its folders, which may be private.
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

    /// Detects the format by the content, not the name.
    fn of(path: &Path) -> Result<Self, Error> {
        let named = shown(&path.display().to_string());
        let open = |reason: String| Error::Open { file: named.clone(), reason };
        let mut file = files::read::regular(path).map_err(|error| open(error.to_string()))?;
        let bytes = file.metadata().map_err(|error| open(error.to_string()))?.len();
        if bytes > FILE_BYTES_MAX {
            return Err(open(format!("it is larger than {FILE_BYTES_MAX} bytes")));
        }
        let mut start = [0; 4];
        // A shorter file is not Parquet; the CSV reader reports what is wrong.
        let is_parquet = file.read_exact(&mut start).is_ok() && start == *PARQUET_MAGIC;
        Ok(if is_parquet { Self::Parquet } else { Self::Csv })
    }
}
