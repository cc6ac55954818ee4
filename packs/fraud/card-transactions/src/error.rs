//! Errors of the data. Each names what to fix.

use std::fmt;

use super::row::Column;

/// Characters shown of an invalid value.
const SHOWN_CHARS_MAX: usize = 40;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file does not exist or is not readable.
    #[error(
        "cannot open {file}: {reason}; name a CSV or Parquet file, or a service's http:// address"
    )]
    Open { file: String, reason: String },
    /// The file is empty or has only a header.
    #[error("{file} {what}: expected rows with the columns {COLUMNS}")]
    Empty { file: String, what: &'static str },
    /// Columns are missing or occur twice.
    #[error("{file}, header: {problem}; expected the columns {COLUMNS}")]
    Header { file: String, problem: String },
    /// A row is invalid.
    #[error("{file}, {place}: {problem}")]
    Row { file: String, place: RowPosition, problem: String },
    /// A field is invalid.
    #[error("{file}, {place}, column {column}: {problem}")]
    Field { file: String, place: RowPosition, column: &'static str, problem: String },
    /// The file is unreadable.
    #[error("{file}: {problem}")]
    File { file: String, problem: String },
    #[error("{file} has no transaction {id} among its {rows} rows; check the id")]
    NotFound { file: String, id: String, rows: u64 },
    /// The address of a service is not allowed.
    #[error("{address}: {problem}")]
    Address { address: String, problem: String },
    /// A service returned no usable answer.
    #[error("the transaction service at {address} {problem}")]
    Service { address: String, problem: String },
    /// Reading was cancelled: the client disconnected or the server stops.
    #[error("reading the transactions was cancelled")]
    Cancelled,
}

/// The columns, for messages.
const COLUMNS: &str = "transaction_id, timestamp, card_id, merchant_id, merchant_category, amount, \
                       currency, country, city, latitude, longitude, channel and, if known, is_fraud";

/// Position of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPosition {
    /// The row, from 1, without the header.
    pub row: u64,
    /// The line in a text file, from 1.
    pub line: Option<u64>,
}

impl fmt::Display for RowPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {}", self.row)?;
        self.line.map_or(Ok(()), |line| write!(f, " (line {line})"))
    }
}

impl Error {
    pub fn of_field(file: &str, place: RowPosition, column: Column, problem: String) -> Self {
        Self::Field { file: file.to_owned(), place, column: column.name(), problem }
    }
}

/// A value for a message: short, on one line, without terminal escapes.
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
