//! Every way in which the data can be of no use, said so that somebody can mend it.

use std::fmt;

use super::row::Column;

/// Characters that are shown of a value that is wrong.
const SHOWN_CHARS_MAX: usize = 40;

/// Why transactions cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such file, or it may not be read.
    #[error(
        "cannot open {file}: {reason}; name a CSV or Parquet file, or a service's http:// address"
    )]
    Open {
        /// The file.
        file: String,
        /// What the file system said.
        reason: String,
    },
    /// The file has no byte, or nothing but a header.
    #[error("{file} {what}: expected rows with the columns {COLUMNS}")]
    Empty {
        /// The file.
        file: String,
        /// How it is empty.
        what: &'static str,
    },
    /// Columns are missing or there twice.
    #[error("{file}, header: {problem}; expected the columns {COLUMNS}")]
    Header {
        /// The file.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// A row is no row.
    #[error("{file}, {place}: {problem}")]
    Row {
        /// The file.
        file: String,
        /// The row.
        place: Place,
        /// What is wrong.
        problem: String,
    },
    /// A field is not what its column holds.
    #[error("{file}, {place}, column {column}: {problem}")]
    Field {
        /// The file.
        file: String,
        /// The row.
        place: Place,
        /// The column.
        column: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The file as a whole cannot be read.
    #[error("{file}: {problem}")]
    File {
        /// The file.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// No row has this id.
    #[error("{file} has no transaction {id} among its {rows} rows; check the id")]
    NotFound {
        /// The file.
        file: String,
        /// The id.
        id: String,
        /// How many rows there are.
        rows: u64,
    },
    /// The address of a service is not one that may be asked.
    #[error("{address}: {problem}")]
    Address {
        /// The address.
        address: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A service gave no usable answer.
    #[error("the transaction service at {address} {problem}")]
    Service {
        /// What was asked.
        address: String,
        /// What went wrong.
        problem: String,
    },
    /// Reading was given up, because whoever asked is gone or we stop.
    #[error("reading the transactions was given up")]
    GivenUp,
}

/// The columns, for messages.
const COLUMNS: &str = "transaction_id, timestamp, card_id, merchant_id, merchant_category, amount, \
                       currency, country, city, latitude, longitude, channel and, if known, is_fraud";

/// Where a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The row, from 1; a header does not count.
    pub row: u64,
    /// The line in a text file, from 1.
    pub line: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {}", self.row)?;
        self.line.map_or(Ok(()), |line| write!(f, " (line {line})"))
    }
}

impl Error {
    /// The error of a field.
    pub fn of_field(file: &str, place: Place, column: Column, problem: String) -> Self {
        Self::Field { file: file.to_owned(), place, column: column.name(), problem }
    }
}

/// A value as it may stand in a message: short, on one line, without anything that a terminal obeys.
pub fn shown(value: &str) -> String {
    let cut: String = value
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .take(SHOWN_CHARS_MAX)
        .collect();
    if value.chars().nth(SHOWN_CHARS_MAX).is_some() {
        format!("`{cut}…`")
    } else {
        format!("`{cut}`")
    }
}
