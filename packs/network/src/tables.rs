//! Reads tables that a device prints: a header, and rows with as many cells.

use serde_json::{Map, Value, json};

use super::columns::Block;
use super::logs;

/// Minimum columns of a table.
const COLUMNS_MIN: usize = 3;

/// Beginnings of a line with which a device refuses a command. It says nothing about health.
const REFUSALS: &[&str] =
    &["% ", "syntax error", "error:", "invalid command", "unknown command", "command "];

/// A table of any columns until the next blank line, if each row has as many cells as the header.
pub(super) fn table(lines: &[&str]) -> Option<Block> {
    let blank = |line: &&str| line.trim().is_empty();
    let end = lines.iter().position(blank).unwrap_or(lines.len());
    let rows = plain(lines.get(..end)?)?;
    Some(Block { lines: end, shown: vec![("", Value::Array(rows))] })
}

/// The rows below a header, if these lines are a table.
fn plain(lines: &[&str]) -> Option<Vec<Value>> {
    let (header, rows) = lines.split_first()?;
    let is_rule = |line: &&str| line.chars().all(|c| "-=+| ".contains(c));
    let rows: Vec<&str> = rows.iter().copied().filter(|line| !is_rule(line)).collect();
    if rows.is_empty() || header.chars().any(|c| c.is_ascii_digit()) {
        return None;
    }
    let splits: [fn(&str) -> Vec<&str>; 2] = [wide, narrow];
    for split_header in splits {
        let names = split_header(header);
        for split_row in splits {
            let fits = |row: &&str| split_row(row).len() == names.len();
            if names.len() >= COLUMNS_MIN && rows.iter().all(fits) {
                return Some(rows.iter().map(|row| object(&names, &split_row(row))).collect());
            }
        }
    }
    None
}

fn object(names: &[&str], cells: &[&str]) -> Value {
    let members = names.iter().zip(cells).map(|(name, cell)| ((*name).to_owned(), json!(cell)));
    Value::Object(members.collect::<Map<String, Value>>())
}

/// Cells separated by two spaces or more.
fn wide(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

fn narrow(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The lines that say that something is bad.
pub(super) fn bad(lines: &[String]) -> impl Iterator<Item = &String> {
    lines.iter().filter(|line| {
        (is_lost_neighbor(line) || logs::is_bad(after_name(line)) && !is_header(line))
            && !is_refusal(line)
            && !line.contains('\u{fffd}')
    })
}

/// A line without the name of a device or a port that it begins with.
fn after_name(line: &str) -> &str {
    match line.split_once("  ") {
        Some((name, rest)) if name.contains(['-', '.', '/']) && !name.contains(' ') => rest,
        _ => line,
    }
}

/// Whether a line begins with an address and has a state of a BGP session that is not established.
fn is_lost_neighbor(line: &str) -> bool {
    let states = ["active", "connect", "idle", "opensent", "openconfirm"];
    let small = line.to_lowercase();
    let mut words = small.split_whitespace();
    let is_address = words.next().is_some_and(|first| {
        first.contains(['.', ':'])
            && first.chars().all(|c| c.is_ascii_hexdigit() || ".:".contains(c))
    });
    is_address && words.any(|word| states.contains(&word.split('(').next().unwrap_or(word)))
}

/// Whether a line names the columns below it.
fn is_header(line: &str) -> bool {
    let small = line.to_lowercase();
    let names = ["up/down", "up/dwn", "state", "status", "link", "protocol"];
    !line.chars().any(|c| c.is_ascii_digit())
        && line.split_whitespace().count() >= COLUMNS_MIN
        && names.iter().filter(|name| small.contains(*name)).count() >= 1
        && !small.contains(" is ")
        && !small.contains(": ")
}

/// Whether a device refuses a command with this line.
pub(super) fn is_refusal(line: &str) -> bool {
    let small = line.to_lowercase();
    REFUSALS.iter().any(|beginning| small.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_with_another_number_of_cells_is_no_table() {
        let lines = ["Port  Name  Status", "Gi1  to core  connected", "Gi2  notconnect"];
        assert!(table(&lines).is_none());
        assert!(table(&lines[..2]).is_some());
    }

    #[test]
    fn a_line_outside_of_tables_may_be_bad() {
        let lines = ["10.0.0.2  4 65000  Active", "Link  Status  Protocol", "% Invalid input"];
        let lines: Vec<String> = lines.map(str::to_owned).into();
        assert_eq!(bad(&lines).collect::<Vec<_>>(), [&lines[0]]);
    }
}
