//! Reads interfaces as devices print them one by one: their state, their counters, their optical module.
//!
//! Sources: Cisco IOS, IOS XR and NX-OS and Arista EOS, `show interfaces`; Junos, `show interfaces extensive` and `show
//! interfaces diagnostics optics`.

use serde_json::{Map, Value, json};

use super::columns::Block;
use super::{durations, logs, optics};

/// Counters of an interface by their labels in lower case.
const COUNTERS: &[(&str, &str)] = &[
    ("packets input", "input_packets"),
    ("input packets", "input_packets"),
    ("packets output", "output_packets"),
    ("output packets", "output_packets"),
    ("input errors", "input_errors"),
    ("input error", "input_errors"),
    ("output errors", "output_errors"),
    ("output error", "output_errors"),
    ("crc", "crc_errors"),
    ("crc/fcs", "crc_errors"),
    ("runts", "runts"),
    ("giants", "giants"),
    ("collisions", "collisions"),
    ("late collision", "late_collisions"),
    ("input discards", "input_discards"),
    ("output discards", "output_discards"),
    ("input discard", "input_discards"),
    ("output discard", "output_discards"),
    ("total output drops", "output_drops"),
];

/// A port without a flap for longer is stable, whatever it counted before, in seconds.
const STABLE_S_MIN: f64 = 7.0 * 86_400.0;

pub(super) fn block(lines: &[&str]) -> Option<Block> {
    interface(lines).or_else(|| junos_interface(lines))
}

/// Lines that belong to the first one: indented, and not blank.
pub(super) fn indented(lines: &[&str]) -> usize {
    let own =
        lines.iter().skip(1).take_while(|line| line.starts_with(' ') && is_below(lines[0], line));
    1 + own.count()
}

fn is_below(head: &str, line: &str) -> bool {
    let depth = |text: &str| text.len() - text.trim_start().len();
    depth(line) > depth(head)
}

/// The name, the state and the reason of a line such as `Gi0/1 is up, line protocol is up (connected)`.
pub(super) fn headline(line: &str) -> Option<Map<String, Value>> {
    let (name, rest) = line.trim().split_once(" is ")?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.contains(|c: char| c.is_ascii_digit())
        && !name.contains(' ');
    let state =
        ["administratively down", "up", "down"].iter().find(|state| rest.starts_with(*state))?;
    let after = &rest[state.len()..];
    if !is_name || !(after.is_empty() || after.starts_with([',', ' '])) {
        return None;
    }
    let mut members = Map::new();
    members.insert("name".to_owned(), json!(name));
    let small = after.to_lowercase();
    let is_off = state.starts_with("admin")
        || ["administratively down", "(disabled)"].iter().any(|reason| small.contains(reason));
    members.insert("admin_status".to_owned(), json!(if is_off { "down" } else { "up" }));
    members.insert("oper_status".to_owned(), json!(if *state == "up" { "up" } else { "down" }));
    let protocol = after.split("line protocol is ").nth(1);
    let protocol = protocol.map(|text| text.split([' ', ',']).next().unwrap_or(text));
    if let Some(protocol) = protocol {
        members.insert("line_protocol".to_owned(), json!(protocol));
    }
    let reason = after.split('(').nth(1).and_then(|text| text.split(')').next());
    if let Some(reason) = reason.filter(|reason| *reason != "connected") {
        members.insert("reason".to_owned(), json!(reason));
    }
    Some(members)
}

/// The numbers of a line such as `5 input errors, 5 CRC, 0 frame`.
fn counters(line: &str, members: &mut Map<String, Value>) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut at = 0;
    while at < words.len() {
        let Ok(number) = words[at].parse::<u64>() else {
            at += 1;
            continue;
        };
        let mut label = Vec::new();
        at += 1;
        while at < words.len() && words[at].parse::<u64>().is_err() {
            label.push(words[at].trim_end_matches(',').to_lowercase());
            at += 1;
            if words[at - 1].ends_with(',') {
                break;
            }
        }
        let label = label.join(" ");
        if let Some((_, name)) = COUNTERS.iter().find(|(known, _)| *known == label) {
            members.insert((*name).to_owned(), json!(number));
        }
    }
    if let Some(drops) =
        line.split("Total output drops: ").nth(1).and_then(|text| text.trim().parse::<u64>().ok())
    {
        members.insert("output_drops".to_owned(), json!(drops));
    }
}

/// A line that nobody knows and that sounds bad; a description is somebody's text.
pub(super) fn doubtful(line: &str) -> bool {
    let small = line.trim().to_lowercase();
    logs::is_bad(&small)
        && !small.starts_with("description")
        && !small.chars().next().is_some_and(|c| c.is_ascii_digit())
        && !["last clearing", "last input", "loopback", "keepalive", "link flap"]
            .iter()
            .any(|start| small.starts_with(start))
}

pub(super) fn of_lines(
    mut members: Map<String, Value>,
    path: &'static str,
    used: usize,
    doubts: Vec<&str>,
) -> Block {
    if let Some(first) = doubts.first() {
        members.insert("unread".to_owned(), json!(first.trim()));
    }
    Block { lines: used, shown: vec![(path, json!([members]))] }
}

fn interface(lines: &[&str]) -> Option<Block> {
    let mut members = headline(lines.first()?)?;
    let used = indented(lines);
    let mut doubts = Vec::new();
    for line in &lines[1..used] {
        counters(line, &mut members);
        let mtu = line.split("MTU ").nth(1).and_then(|text| text.split_whitespace().next());
        if let Some(mtu) = mtu.and_then(|text| text.parse::<u32>().ok()) {
            members.insert("mtu".to_owned(), json!(mtu));
        }
        let transitions = line.split("nterface state transitions: ").nth(1);
        if let Some(number) = transitions.and_then(|text| text.trim().parse::<u32>().ok()) {
            members.insert("state_transitions".to_owned(), json!(number));
        } else if doubtful(line) {
            doubts.push(*line);
        }
    }
    Some(of_lines(members, "interfaces", used, doubts))
}

/// `Physical interface: ge-0/0/0, Enabled, Physical link is Up`, and the values of its optical module.
fn junos_interface(lines: &[&str]) -> Option<Block> {
    let rest = lines.first()?.trim().strip_prefix("Physical interface: ")?;
    let mut parts = rest.split(", ");
    let name = parts.next()?;
    let (mut members, mut module) = (Map::new(), Map::new());
    members.insert("name".to_owned(), json!(name));
    module.insert("port".to_owned(), json!(name));
    let small = rest.to_lowercase();
    let is_off = small.contains("administratively down") || small.contains("disabled");
    members.insert("admin_status".to_owned(), json!(if is_off { "down" } else { "up" }));
    let link = small.split("physical link is ").nth(1).map(|text| text.trim().to_owned());
    if let Some(link) = link {
        members.insert("oper_status".to_owned(), json!(link));
    }
    let (mut used, mut doubts, mut side, mut stable) = (1, Vec::new(), "", false);
    let mut raised: Vec<String> = Vec::new();
    for line in &lines[1..] {
        let text = line.trim();
        if text.starts_with("Physical interface: ") || !line.starts_with(' ') && !text.is_empty() {
            break;
        }
        used += 1;
        // A heading such as `Input errors:` or `MAC statistics:   Receive   Transmit` tells nothing by itself.
        if text.ends_with(':') || text.contains(" statistics:") {
            side = match text {
                "Input errors:" => "input_",
                "Output errors:" => "output_",
                _ => "",
            };
            continue;
        }
        if let Some(shown) = optics::junos(text) {
            // The words of the device beside the member's name.
            if shown.as_ref().is_some_and(|(_, value)| value == "On") {
                raised.push(text.split_whitespace().collect::<Vec<_>>().join(" "));
            }
            module.extend(shown);
        } else if let Some(ago) = text.strip_prefix("Last flapped") {
            let ago = ago.split('(').nth(1).and_then(|text| text.split(" ago").next());
            stable = ago.and_then(durations::seconds).is_some_and(|ago| ago >= STABLE_S_MIN);
        } else if !junos_counters(text, side, &mut members) && doubtful(text) {
            doubts.push(text);
        }
    }
    if !raised.is_empty() {
        module.insert("reason".to_owned(), json!(raised.join(", ")));
    }
    if stable {
        members.remove("carrier_transitions");
        members.insert("recent_transitions".to_owned(), json!(0));
    }
    let mut block = of_lines(members, "interfaces", used, doubts);
    if module.len() > 1 {
        block.shown.push(("optics", json!([module])));
    }
    Some(block)
}

/// `Errors: 0, Drops: 0` below its heading, and the rows of the MAC statistics; whether the line is one of them.
fn junos_counters(text: &str, side: &str, members: &mut Map<String, Value>) -> bool {
    let mut is_read = false;
    for part in text.split(", ") {
        let Some((name, value)) = part.split_once(": ") else { continue };
        let small = name.trim().to_lowercase();
        let value = value.trim().trim_end_matches(',');
        let none = ["none", "0", "disabled"].contains(&value.to_lowercase().as_str());
        let number = value.parse::<u64>().ok();
        match (small.as_str(), number) {
            ("mtu", Some(mtu)) => drop(members.insert("mtu".to_owned(), json!(mtu))),
            ("carrier transitions", Some(count)) => {
                members.insert("carrier_transitions".to_owned(), json!(count));
            }
            (
                "errors" | "drops" | "discards" | "framing errors" | "runts" | "giants",
                Some(count),
            ) if !side.is_empty() => {
                members.insert(format!("{side}{}", small.replace(' ', "_")), json!(count));
            }
            ("input  packets" | "input packets", Some(count)) => {
                members.insert("input_packets".to_owned(), json!(count));
            }
            ("active alarms" | "active defects", _) if !none => {
                members.insert(small.replace(' ', "_"), json!(value));
            }
            _ if none || number.is_some() => {}
            _ => continue,
        }
        is_read = true;
    }
    let cells: Vec<&str> =
        text.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    if let [name, received, ..] = cells.as_slice()
        && let Ok(received) = received.parse::<u64>()
    {
        match name.to_lowercase().as_str() {
            "crc/align errors" => drop(members.insert("crc_errors".to_owned(), json!(received))),
            "total packets" => drop(members.insert("input_packets".to_owned(), json!(received))),
            "fifo errors" | "fragment frames" | "jabber frames" | "code violations" => {
                let name = format!("{}_errors", name.to_lowercase().replace(' ', "_"));
                members.insert(name, json!(received));
            }
            _ => {}
        }
        is_read = true;
    }
    is_read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<(&'static str, Value)> {
        let lines: Vec<&str> = text.lines().collect();
        let block = block(&lines).unwrap();
        assert_eq!(block.lines, lines.len(), "{text}");
        block.shown
    }

    #[test]
    fn an_interface_of_cisco_is_read() {
        let found = shown(
            "GigabitEthernet0/1 is up, line protocol is up (connected)\n  Description: link down to the core\n  \
             MTU 9000 bytes, BW 1000000 Kbit/sec\n     8000 packets input, 90 bytes, 0 no buffer\n     \
             7 input errors, 5 CRC, 0 frame, 2 overrun\n     3 output errors, 0 collisions",
        );
        let expected = json!([{"name": "GigabitEthernet0/1", "admin_status": "up", "oper_status": "up",
            "line_protocol": "up", "mtu": 9000, "input_packets": 8000, "input_errors": 7, "crc_errors": 5,
            "output_errors": 3, "collisions": 0}]);
        assert_eq!(found, [("interfaces", expected)]);
        let of = |line: &str| shown(line)[0].1[0].clone();
        assert_eq!(of("Ethernet1/3 is down (Administratively down)")["admin_status"], "down");
        let disabled = of("Gi0/2 is down, line protocol is down (err-disabled)");
        assert_eq!(disabled["admin_status"], "up");
        assert_eq!(disabled["reason"], "err-disabled");
        assert!(block(&["The link is up, thanks"]).is_none());
    }

    #[test]
    fn an_interface_of_junos_is_read() {
        let found = shown(
            "Physical interface: ge-0/0/1, Enabled, Physical link is Up\n  Link-level type: Ethernet, MTU: 1514, \
             BPDU Error: None, Loopback: Disabled\n  Last flapped   : 2026-01-02 03:04:05 UTC (00:12:00 ago)\n  \
             Input errors:\n    Errors: 3, Drops: 0, Framing errors: 0\n  Output errors:\n    \
             Carrier transitions: 44, Errors: 0, Drops: 0\n  MAC statistics:         Receive     Transmit\n    \
             Total packets           5000000     400\n    CRC/Align errors        3           0\n    \
             Laser rx power low alarm   :  On\n    Laser rx power             :  0.0040 mW / -23.98 dBm",
        );
        let port = &found[0].1[0];
        for (name, expected) in [
            ("oper_status", json!("up")),
            ("input_errors", json!(3)),
            ("carrier_transitions", json!(44)),
            ("crc_errors", json!(3)),
            ("input_packets", json!(5_000_000)),
            ("mtu", json!(1514)),
        ] {
            assert_eq!(port[name], expected, "{name}");
        }
        assert_eq!(port.get("unread"), None);
        assert_eq!(found[1].0, "optics");
        assert_eq!(found[1].1[0]["rx_power_low_alarm"], "On");
        assert_eq!(found[1].1[0]["rx_power_dbm"], -23.98);
    }

    /// What a port counted before it was stable for weeks says nothing about now.
    #[test]
    fn old_flaps_of_a_stable_port_are_left_out() {
        let found = shown(
            "Physical interface: ge-0/0/1, Enabled, Physical link is Up\n  Last flapped   : 2026-01-02 03:04:05 UTC \
             (5w2d 03:04 ago)\n  Output errors:\n    Carrier transitions: 44, Errors: 0",
        );
        assert_eq!(found[0].1[0].get("carrier_transitions"), None);
    }
}
