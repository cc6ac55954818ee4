//! Reads a CSV file row by row.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Take};
use std::path::Path;

use csv::{ErrorKind, ReaderBuilder, StringRecord};

use super::error::{Error, RowPosition};
use super::row::{COLUMNS, Column, Raw};
use super::source::{FILE_BYTES_MAX, Visit, name_of};

/// Longest row, in bytes. A longer one is probably an unclosed quote.
const ROW_BYTES_MAX: usize = 64 * 1024;

/// Read buffer, in bytes.
const BUFFER_BYTES: usize = 256 * 1024;

/// Calls `visit` with every row of the file.
///
/// # Errors
/// If the file is invalid, or `visit` fails.
pub fn scan(path: &Path, visit: &mut Visit<'_>) -> Result<(), Error> {
    let file = name_of(path);
    let open =
        |error: std::io::Error| Error::Open { file: file.clone(), reason: error.to_string() };
    let left = Cell::new(ROW_BYTES_MAX + BUFFER_BYTES);
    let reader =
        Fuse { file: files::read::regular(path).map_err(open)?.take(FILE_BYTES_MAX), left: &left };
    let mut reader =
        ReaderBuilder::new().flexible(true).buffer_capacity(BUFFER_BYTES).from_reader(reader);
    let header = reader.headers().map_err(|error| unreadable(&file, 0, &error))?.clone();
    if header.is_empty() {
        return Err(Error::Empty { file, what: "is empty" });
    }
    let places = places(&file, &header)?;
    let mut record = StringRecord::new();
    let mut row = 0;
    while reader.read_record(&mut record).map_err(|error| unreadable(&file, row + 1, &error))? {
        row += 1;
        let line = record.position().map(csv::Position::line);
        let place = RowPosition { row, line };
        let wrong = |problem: String| Error::Row { file: file.clone(), place, problem };
        if record.len() != header.len() {
            let problem = format!(
                "has {} fields, and the header has {}: the row is truncated or a quote is missing",
                record.len(),
                header.len()
            );
            return Err(wrong(problem));
        }
        left.set(ROW_BYTES_MAX + BUFFER_BYTES);
        let raw = Raw(places.map(|place| place.and_then(|at| record.get(at)).unwrap_or("")));
        visit(place, &raw)?;
    }
    if row == 0 {
        return Err(Error::Empty { file, what: "has a header and no rows" });
    }
    Ok(())
}

/// Limits the bytes read for one row, so that an unclosed quote does not read the whole file into
/// memory.
struct Fuse<'a> {
    file: Take<File>,
    left: &'a Cell<usize>,
}

impl Read for Fuse<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(self.left.get());
        if most == 0 {
            let problem =
                format!("a row is longer than {ROW_BYTES_MAX} bytes or a quote is missing");
            return Err(io::Error::other(problem));
        }
        let read = self.file.read(&mut buffer[..most])?;
        self.left.set(self.left.get() - read);
        Ok(read)
    }
}

/// Column positions.
fn places(file: &str, header: &StringRecord) -> Result<[Option<usize>; COLUMNS], Error> {
    let mut places = [None; COLUMNS];
    let mut missing = Vec::new();
    let wrong = |problem: String| Error::Header { file: file.to_owned(), problem };
    for column in Column::ALL {
        // Some programs mark UTF-8 with a byte order mark.
        let named = |name: &str| name.trim_start_matches('\u{feff}').trim() == column.name();
        let mut found = header.iter().enumerate().filter(|(_, name)| named(name));
        places[column as usize] = found.next().map(|(at, _)| at);
        if found.next().is_some() {
            return Err(wrong(format!("the column {} occurs twice", column.name())));
        }
        if places[column as usize].is_none() && !column.is_optional() {
            missing.push(column.name());
        }
    }
    if missing.is_empty() {
        return Ok(places);
    }
    // Quotes nothing: this may be the first line of any file.
    Err(wrong(format!("missing column {}", missing.join(", "))))
}

fn unreadable(file: &str, row: u64, error: &csv::Error) -> Error {
    let file = file.to_owned();
    let line = error.position().map(csv::Position::line);
    let problem = match error.kind() {
        ErrorKind::Utf8 { err, .. } => {
            format!("field {} is not UTF-8: save the file as UTF-8", err.field() + 1)
        }
        ErrorKind::Io(error) => format!("cannot be read: {error}"),
        _ => error.to_string(),
    };
    match row {
        0 => Error::Header { file, problem },
        _ => Error::Row { file, place: RowPosition { row, line }, problem },
    }
}
