//! Reads what a device prints: prompts, tables and blocks, and the lines that are in none.

use serde_json::{Value, json};

use super::columns::{self, Block, is_rule};
use super::{blocks, filters, optics, records, summaries, tables};

/// Maximum lines that are read; of a longer text nothing counts as read.
const LINES_MAX: usize = 20_000;

/// Longest name of a device in a prompt, in characters.
const HOST_CHARS_MAX: usize = 64;

/// Parts of lines around tables that say nothing about health, in lower case.
const AROUND: &[&str] = &[
    "router identifier",
    "table version",
    "bytes of memory",
    "bgp activity",
    "codes:",
    "vrf: default",
    "process id",
    "router id",
    "local as number",
    "bgp summary information",
    "dynamically created",
    "network entries",
    "bgp route-map cache",
    "ospf neighbors",
    "is-is process:",
    "indicates configured to preempt",
    "threading mode:",
    "default ebgp mode",
    "neighbors for ospf",
    "bgp is operating in",
    "bgp table nexthop",
    "bgp main routing table",
    "bgp scan interval",
    "non-stop routing",
    "processes are",
    "advanced access control",
    "building configuration",
    "link state codes",
    "domain ",
];

/// Beginnings of lines around tables that say nothing about health, in lower case.
const BEFORE: &[&str] = &[
    "legend",
    "show ",
    "{master",
    "[edit]",
    "bgp summary",
    "neighbor status codes",
    "address family:",
    "vrf ",
    "vrf:",
    "process:",
    "is-is ",
    "tag ",
    "ospf process",
    "spanning tree enabled",
    "capability codes",
    "rtr base",
    "instance ",
    "group codes",
    "flags:",
    "|",
    "total peer groups",
    "total vpn",
    "current internal",
    "current external",
    "total bgp paths",
    "total ipv",
    "total suppressed",
    "total hist",
    "total mcast",
    "inet.0",
    "inet6.0",
    "table  ",
    "ports on slot",
    "interface table",
    "speaker ",
    "bgp admin state         : up",
];

/// Ends of the pages of a pager.
const PAGERS: &[&str] = &[
    "--more--",
    "---(more",
    "<--- more --->",
    "-- more --",
    "press any key",
    "press q to quit",
    "lines 1-",
];

/// What a device printed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Printed {
    /// What tables and blocks show, below the names of their subjects.
    pub shown: Vec<(&'static str, Value)>,
    /// Lines that are in none.
    pub lines: Vec<String>,
    /// The devices of the prompts.
    pub hosts: Vec<String>,
    /// Why the text is not complete.
    pub doubts: Vec<String>,
}

pub(super) fn printed(text: &str) -> Printed {
    let mut printed = Printed::default();
    let lines: Vec<String> = text.lines().map(clean).collect();
    if lines.len() > LINES_MAX {
        printed.lines = lines.into_iter().take(1).collect();
        return printed;
    }
    let all: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut commands: Vec<&[&str]> = Vec::new();
    let mut start = 0;
    for (at, line) in all.iter().enumerate() {
        if let Some(host) = prompt(line) {
            printed.hosts.push(host);
            commands.push(&all[start..at]);
            start = at + 1;
        }
    }
    commands.push(&all[start..]);
    let last = all.iter().rev().find(|line| !line.trim().is_empty());
    if last.is_some_and(|line| is_pager(line)) {
        printed.doubts.push("the answer ends at a page of the pager".to_owned());
    }
    commands.into_iter().for_each(|lines| printed.command(lines));
    printed
}

/// A line without the control sequences of a terminal and trailing white space.
fn clean(line: &str) -> String {
    let mut visible = String::new();
    let mut all = line.chars().peekable();
    while let Some(c) = all.next() {
        match c {
            // `ESC [ 7 m`.
            '\u{1b}' if all.next_if_eq(&'[').is_some() => {
                while all.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
            }
            '\u{8}' => drop(visible.pop()),
            '\t' => visible.push_str("        "),
            _ if c.is_control() => {}
            _ => visible.push(c),
        }
    }
    visible.trim_end().to_owned()
}

fn is_pager(line: &str) -> bool {
    let small = line.to_lowercase();
    PAGERS.iter().any(|mark| small.contains(mark))
}

/// The device of a prompt: `pe1#show version`, `ops@pe1> show version`, `RP/0/RP0/CPU0:pe1#`, `A:ops@pe1#`.
pub(super) fn prompt(line: &str) -> Option<String> {
    let at = line.find(['#', '>'])?;
    let (before, after) = (line[..at].trim_start_matches('*'), line[at + 1..].trim());
    let name = before.rsplit(['@', ':']).next()?.split('(').next()?;
    let is_name = (1..=HOST_CHARS_MAX).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let is_prefix = before.chars().all(|c| c.is_ascii_alphanumeric() || "-_.@:/()".contains(c));
    let verbs = ["show", "sh", "display", "do", "run", "admin", "exit", "terminal", "set"];
    let is_command = after.is_empty()
        || after.split_whitespace().next().is_some_and(|verb| verbs.contains(&verb));
    (is_name && is_prefix && is_command).then(|| name.to_lowercase())
}

/// How many neighbors a line announces, and how many of them are up, with their subject.
struct Announced {
    subject: &'static str,
    total: usize,
    up: Option<usize>,
}

impl Printed {
    /// What one command printed.
    fn command(&mut self, lines: &[&str]) {
        let mut local_as = None;
        let mut announced: Vec<Announced> = Vec::new();
        let first = self.shown.len();
        let mut at = 0;
        while at < lines.len() {
            let line = lines[at];
            local_as = number_after(line, "local as number ")
                .map(|number| number.to_string())
                .or(local_as);
            if let Some(found) = announces(line) {
                announced.push(found);
                at += 1;
                continue;
            }
            if let Some(block) = self.block(&lines[at..], local_as.as_deref()) {
                at += block.lines.max(1);
                self.shown.extend(block.shown);
                continue;
            }
            if !is_noise(line) {
                self.lines.push(line.trim().to_owned());
            }
            at += 1;
        }
        let own = self.shown.split_off(first);
        for found in announced {
            self.listed(&found, &own);
        }
        self.shown.extend(own);
    }

    fn block(&self, lines: &[&str], local_as: Option<&str>) -> Option<Block> {
        summaries::summary(lines, local_as)
            .or_else(|| blocks::block(lines))
            .or_else(|| optics::block(lines))
            .or_else(|| records::block(lines))
            .or_else(|| filters::block(lines))
            .or_else(|| columns::table(lines))
            .or_else(|| tables::table(lines))
    }

    /// Compares what a line announces with what is listed.
    fn listed(&mut self, announced: &Announced, shown: &[(&'static str, Value)]) {
        let of_subject = shown.iter().filter(|(subject, _)| *subject == announced.subject);
        let mut names: Vec<&Value> = of_subject
            .filter_map(|(_, rows)| rows.as_array())
            .flatten()
            .filter_map(|row| row.get("neighbor").or_else(|| row.get("neighbor_id")))
            .collect();
        let rows = names.len();
        names.sort_by_key(|name| name.to_string());
        names.dedup();
        let Announced { subject, total, up } = *announced;
        if rows.max(names.len()) >= total {
            return;
        }
        // A list that is cut shows nothing about the rest.
        let of_subject = shown.iter().filter(|(known, _)| *known == subject);
        let is_cut = !self.doubts.is_empty()
            || of_subject
                .filter_map(|(_, rows)| rows.as_array())
                .flatten()
                .any(|row| row.get("state").is_none_or(Value::is_null));
        if is_cut {
            self.doubts.push(format!("{total} neighbors are announced, {rows} are listed"));
        } else {
            let up = up.filter(|up| *up < total).unwrap_or(rows);
            let counts = json!({"configured_neighbors": total, "operational_neighbors": up});
            self.shown.push((subject, counts));
        }
    }
}

fn is_noise(line: &str) -> bool {
    let small = line.trim().to_lowercase();
    small.is_empty()
        || is_rule(line)
        || is_pager(line)
        || small.chars().all(|c| c.is_ascii_digit() || c == ' ')
        || BEFORE.iter().any(|beginning| small.starts_with(beginning))
        || AROUND.iter().any(|part| small.contains(part))
        || is_date(&small)
        || is_table_name(&small)
}

/// Whether a line begins with a routing table of Junos: `inet.0`, `bgp.l3vpn.0`, and has only numbers beside it.
fn is_table_name(small: &str) -> bool {
    let mut words = small.split_whitespace();
    let is_table =
        |name: &str| name.ends_with(".0") && name.starts_with(|c: char| c.is_ascii_alphabetic());
    words.next().is_some_and(is_table) && words.all(|word| word.parse::<u64>().is_ok())
}

/// Whether a line is the time at which a device answers.
fn is_date(small: &str) -> bool {
    let days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    days.iter().any(|day| small.starts_with(day))
        && small.contains(':')
        && small.split_whitespace().count() <= 7
}

/// The number after these words, in a line in any case.
fn number_after(line: &str, words: &str) -> Option<usize> {
    let small = line.to_lowercase();
    let rest = &small[small.find(words)? + words.len()..];
    let rest = rest.trim_start_matches([' ', ':']);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn announces(line: &str) -> Option<Announced> {
    let of = |subject, words| {
        let total = number_after(line, words)?;
        Some(Announced { subject, total, up: None })
    };
    let small = line.to_lowercase();
    if small.contains("config peers") && small.contains("capable peers") {
        let total = number_after(line, "config peers")?;
        return Some(Announced { subject: "bgp", total, up: number_after(line, "capable peers") });
    }
    if small.starts_with("groups:") && small.contains("down peers") {
        let total = number_after(line, " peers:")?;
        let down = number_after(line, "down peers:")?;
        return Some(Announced { subject: "bgp", total, up: total.checked_sub(down) });
    }
    if small.trim_start().starts_with("peers ") {
        return of("bgp", "peers ");
    }
    of("ospf", "total number of neighbors")
        .or_else(|| of("isis", "total neighbor count"))
        .or_else(|| of("isis", "total adjacency count"))
        .or_else(|| of("isis", "adjacencies :"))
        .or_else(|| of("ospf", "no. of neighbors"))
        .or_else(|| of("bgp", "total peers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_names_its_device() {
        for (line, expected) in [
            ("pe1#show ip bgp summary", Some("pe1")),
            ("ops@pe1> show bgp summary", Some("pe1")),
            ("RP/0/RP0/CPU0:pe1#show bgp summary", Some("pe1")),
            ("A:ops@pe1# show router bgp summary", Some("pe1")),
            ("*A:pe1# show port", Some("pe1")),
            ("PE1(config)#do show version", Some("pe1")),
            ("pe1#", Some("pe1")),
            ("10.0.0.2 > 10.0.0.3", None),
            ("Interface #1 is up", None),
            ("<html>", None),
        ] {
            assert_eq!(prompt(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn a_table_is_read_and_other_lines_are_kept() {
        let text = "pe1#show ip bgp summary\nBGP router identifier 10.0.0.1, local AS number 65000\n\n\
            Neighbor    V    AS MsgRcvd MsgSent   TblVer  InQ OutQ Up/Down  State/PfxRcd\n\
            10.0.0.2    4 65001     100     100        8    0    0 2w3d     120\n\nsomething else\n";
        let printed = printed(text);
        assert_eq!(printed.hosts, ["pe1"]);
        assert_eq!(printed.lines, ["something else"]);
        let expected = json!([{"neighbor": "10.0.0.2", "remote_as": "65001", "local_as": "65000",
            "up_down": "2w3d", "state": "Established", "prefixes_received": 120}]);
        assert_eq!(printed.shown, [("bgp", expected)]);
        assert_eq!(printed.doubts, Vec::<String>::new());
    }

    #[test]
    fn an_answer_that_is_not_complete_is_doubted() {
        let table = "Neighbor ID     Pri State            Up Time  Address         Interface\n\
            10.0.0.2          1 FULL/DR          8w1d     10.1.1.2        Vlan9\n";
        let doubts = |text: String| printed(&text).doubts;
        assert_eq!(clean("\u{1b}[7m--More--\u{1b}[m"), "--More--");
        assert_eq!(clean("ab\u{8}c"), "ac");
        assert_eq!(doubts(format!(" Total number of neighbors: 1\n{table}")), Vec::<String>::new());
        assert_eq!(
            doubts(format!(" Total number of neighbors: 2\n{table} 10.0.0.3          1\n")),
            ["2 neighbors are announced, 2 are listed"; 0]
        );
        assert_eq!(
            doubts(format!(" Total number of neighbors: 3\n{table} 10.0.0.3          1\n")),
            ["3 neighbors are announced, 2 are listed"]
        );
        assert_eq!(
            doubts(format!("{table} --More-- ")),
            ["the answer ends at a page of the pager"]
        );
    }

    #[test]
    fn fewer_neighbors_that_are_up_than_configured_are_told() {
        let text = "BGP table version is 7, L2VPN EVPN config peers 3, capable peers 2\n";
        let expected = json!({"configured_neighbors": 3, "operational_neighbors": 2});
        assert_eq!(printed(text).shown, [("bgp", expected)]);
        // One of the configured neighbors is not in the list.
        let text = "Total number of neighbors: 2\n\n\
            Neighbor ID     Pri State            Up Time  Address         Interface\n\
            10.0.0.2          1 FULL/DR          8w1d     10.1.1.2        Vlan9\n";
        let expected = json!({"configured_neighbors": 2, "operational_neighbors": 1});
        assert_eq!(printed(text).shown[0], ("ospf", expected));
    }
}
