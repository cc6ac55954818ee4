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
pub(super) fn bad<'a>(text: &str, lines: &'a [String]) -> impl Iterator<Item = &'a String> {
    let has_admin = text.lines().any(is_header_with_admin);
    lines.iter().filter(move |line| {
        let of_port = if has_admin { port(line) } else { None };
        let is_bad = || is_lost_neighbor(line) || logs::is_bad(line) && !is_header(line);
        of_port.unwrap_or_else(is_bad) && !is_refusal(line)
    })
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

/// Whether a header has the columns name, admin and link: `show interfaces terse` of Junos, `show port` of SR OS.
fn is_header_with_admin(line: &str) -> bool {
    let small = line.to_lowercase();
    let mut names = small.split_whitespace().skip(1);
    names.next() == Some("admin") && names.next() == Some("link")
}

/// Whether a port below such a header is down although it is switched on; `None` for another line.
fn port(line: &str) -> Option<bool> {
    let small = line.to_lowercase();
    let cells: Vec<&str> = small.split_whitespace().collect();
    let [name, admin, link, rest @ ..] = cells.as_slice() else { return None };
    if !name.chars().any(|c| c.is_ascii_digit()) || !["up", "down"].contains(admin) {
        return None;
    }
    let is_down = ["down", "no"].contains(link) || rest.first() == Some(&"down");
    Some(*admin == "up" && is_down)
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
    fn a_port_is_bad_only_if_it_is_switched_on() {
        let bad_of = |text: &str| -> Vec<String> {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            bad(text, &lines).cloned().collect()
        };
        // Nokia SR OS, `show port`.
        let sros = "Port          Admin Link Port    Cfg\n1/1/1         Up    Yes  Up      9212\n\
            1/1/2         Down  No   Down    9212\n1/1/3         Up    No   Down    9212";
        assert_eq!(bad_of(sros), ["1/1/3         Up    No   Down    9212"]);
        // Junos, `show interfaces terse` and `show bgp summary`.
        let terse = "Interface   Admin Link Proto\nge-0/0/0    up    up\nge-0/0/0.0  up    up   inet\n\
            ge-0/0/3    down  down\nge-0/0/4    up    down";
        assert_eq!(bad_of(terse), ["ge-0/0/4    up    down"]);
        let summary = "Groups: 2 Peers: 2 Down peers: 0\n\
            Peer  AS  InPkt OutPkt OutQ Flaps Last Up/Dwn State|#Active/Received/Accepted/Damped...\n\
            10.0.0.2 65000 13120 13101 0 0 4d 3:02:11 Establ";
        assert_eq!(bad_of(summary), Vec::<String>::new());
        assert_eq!(bad_of("Groups: 2 Peers: 2 Down peers: 1").len(), 1);
        // Cisco IOS, `show ip interface brief`.
        let brief = "GigabitEthernet0/2 unassigned YES NVRAM  administratively down down\n\
            GigabitEthernet0/3 unassigned YES NVRAM  down                  down";
        assert_eq!(bad_of(brief).len(), 1);
    }

    #[test]
    fn a_row_with_another_number_of_cells_is_no_table() {
        let text = "Port  Name  Status\nGi1  to core  connected\nGi2  notconnect\n";
        let printed = printed(text);
        assert_eq!(printed.rows, Vec::<Value>::new());
        assert_eq!(printed.lines.len(), 3);
    }
}
