//! Reads tables that a device prints: a header, and rows with as many cells.

use serde_json::{Map, Value, json};

use super::logs;

/// Minimum columns of a table.
const COLUMNS_MIN: usize = 3;

/// Maximum rows that are read; of a longer text nothing counts as read.
const ROWS_MAX: usize = 5_000;

/// Parts of lines around tables that say nothing about health.
const AROUND: &[&str] = &[
    "router identifier",
    "table version",
    "bytes of memory",
    "bgp activity",
    "total number of neighbors",
    "codes:",
    "vrf: default",
    "process id",
];

/// Beginnings of a line with which a device refuses a command. It says nothing about health.
const REFUSALS: &[&str] =
    &["% ", "syntax error", "error:", "invalid command", "unknown command", "command "];

/// What a device printed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Printed {
    /// The rows of its tables.
    pub rows: Vec<Value>,
    /// Lines that are in no table.
    pub lines: Vec<String>,
}

pub(super) fn printed(text: &str) -> Printed {
    let mut printed = Printed::default();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let mut at = 0;
    while at < lines.len() {
        let end = lines[at..]
            .iter()
            .position(|line| line.trim().is_empty())
            .map_or(lines.len(), |n| at + n);
        if let Some(rows) = table(&lines[at..end]) {
            printed.rows.extend(rows);
            at = end;
            continue;
        }
        let line = lines[at].trim();
        let small = line.to_lowercase();
        if !line.is_empty() && !AROUND.iter().any(|part| small.contains(part)) {
            printed.lines.push(line.to_owned());
        }
        at += 1;
    }
    if printed.rows.len() > ROWS_MAX {
        let first = text.lines().next().unwrap_or_default().to_owned();
        return Printed { rows: Vec::new(), lines: vec![first] };
    }
    printed
}

/// The rows below a header, if these lines are a table.
fn table(lines: &[&str]) -> Option<Vec<Value>> {
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
    lines.iter().filter(|line| logs::is_bad(line) && !is_refusal(line))
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
    fn a_table_is_read_and_other_lines_are_kept() {
        let text = "BGP router identifier 10.0.0.1, local AS number 65000\n\n\
            Neighbor    V    AS Up/Down  State/PfxRcd\n10.0.0.2    4 65000 2w3d     120\n\nsomething else\n";
        let printed = printed(text);
        assert_eq!(printed.lines, ["something else"]);
        assert_eq!(
            printed.rows,
            [
                json!({"Neighbor": "10.0.0.2", "V": "4", "AS": "65000", "Up/Down": "2w3d", "State/PfxRcd": "120"})
            ]
        );
    }

    #[test]
    fn a_row_with_another_number_of_cells_is_no_table() {
        let text = "Port  Name  Status\nGi1  to core  connected\nGi2  notconnect\n";
        let printed = printed(text);
        assert_eq!(printed.rows, Vec::<Value>::new());
        assert_eq!(printed.lines.len(), 3);
    }
}
