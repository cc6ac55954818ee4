//! Reads what devices print in blocks of lines: interfaces, spanning trees, OSPF interfaces, versions, redundancy.
//!
//! Sources: the command references of Cisco IOS, IOS XR and NX-OS, Junos and Arista EOS for `show interfaces`, `show
//! spanning-tree`, `show ip ospf interface`, `show version`, `show redundancy`.

use serde_json::{Map, Value, json};

use super::columns::{self, Block};
use super::logs;
use super::optics;

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

/// Ends of the lines that tell an uptime and why a device restarted, in lower case.
const UPTIME: &[&str] = &["uptime is ", "uptime: "];
const REASONS: &[&str] = &[
    "last reload reason: ",
    "last reload reason    : ",
    "reason: ",
    "system returned to rom by ",
    "last reboot reason ",
];

/// Beginnings of what `show version` prints first.
const VERSIONS: &[&str] = &[
    "cisco ",
    "arista ",
    "hostname: ",
    "junos: ",
    "software image",
    "hardware version",
    "model: ",
    "system booted: ",
    "technical support",
];

pub(super) fn block(lines: &[&str]) -> Option<Block> {
    spanning_tree(lines)
        .or_else(|| ospf_interface(lines))
        .or_else(|| interface(lines))
        .or_else(|| junos_interface(lines))
        .or_else(|| standby(lines))
        .or_else(|| redundancy(lines))
        .or_else(|| version(lines))
}

/// Lines that belong to the first one: indented, and not blank.
fn indented(lines: &[&str]) -> usize {
    let own =
        lines.iter().skip(1).take_while(|line| line.starts_with(' ') && is_below(lines[0], line));
    1 + own.count()
}

fn is_below(head: &str, line: &str) -> bool {
    let depth = |text: &str| text.len() - text.trim_start().len();
    depth(line) > depth(head)
}

fn address_after<'a>(lines: &[&'a str], head: &str) -> Option<&'a str> {
    let at = lines.iter().position(|line| line.trim_start().starts_with(head))?;
    let line = lines[at..].iter().take(3).find(|line| line.contains("Address "))?;
    line.split("Address ").nth(1)?.split_whitespace().next()
}

/// `VLAN0010`, its root and its ports.
fn spanning_tree(lines: &[&str]) -> Option<Block> {
    let name = lines.first()?.trim();
    let digits = ["VLAN", "VL", "MST"].iter().find_map(|kind| name.strip_prefix(kind))?;
    let number: u32 = digits.parse().ok()?;
    let head = lines.iter().skip(1).take(16).position(|line| line.starts_with("Interface"))? + 1;
    let above = &lines[..head];
    let is_own = above.iter().any(|line| line.to_lowercase().contains("this bridge is the root"));
    let (root, bridge) = (address_after(above, "Root ID"), address_after(above, "Bridge ID"));
    let table = columns::table(&lines[head..])?;
    let ports = table.shown.into_iter().next().map(|(_, rows)| rows)?;
    let is_root = is_own || root.is_some() && root == bridge;
    let shown = json!([{"instance": name, "vlan_id": number.to_string(), "root_id": root,
        "bridge_id": bridge, "is_root": is_root, "ports": ports}]);
    Some(Block { lines: head + table.lines, shown: vec![("spanning_tree", shown)] })
}

/// The name, the state and the reason of a line such as `Gi0/1 is up, line protocol is up (connected)`.
fn headline(line: &str) -> Option<Map<String, Value>> {
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
fn doubtful(line: &str) -> bool {
    let small = line.trim().to_lowercase();
    logs::is_bad(&small)
        && !small.starts_with("description")
        && !small.chars().next().is_some_and(|c| c.is_ascii_digit())
        && !["last clearing", "last input", "loopback", "keepalive", "link flap"]
            .iter()
            .any(|start| small.starts_with(start))
}

fn of_lines(
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

/// The interface of OSPF below the line of its state.
fn ospf_interface(lines: &[&str]) -> Option<Block> {
    let head = headline(lines.first()?)?;
    let used = indented(lines);
    let own = &lines[1..used];
    let area = own.iter().find_map(|line| {
        let small = line.to_lowercase();
        let at = small.find("area ")?;
        let text = line[at + 5..].split([' ', ',', '(']).next()?;
        (small.contains("process id") || small.contains("internet address"))
            .then(|| text.to_owned())
    })?;
    let number = |words: &str| -> Option<u32> {
        own.iter().find_map(|line| {
            let small = line.to_lowercase();
            let rest = small[small.find(words)? + words.len()..].to_owned();
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        })
    };
    let neighbors = number("number of neighbors: ").or_else(|| number("neighbor count is "));
    let is_passive = own.iter().any(|line| line.to_lowercase().contains("passive"));
    let mut members = Map::new();
    for (name, value) in [
        ("interface", head.get("name").cloned()),
        ("area", Some(json!(area))),
        ("hello_interval", number("hello ").map(Value::from)),
        ("dead_interval", number("dead ").map(Value::from)),
        ("neighbor_count", neighbors.map(Value::from)),
        ("passive", is_passive.then(|| json!(true))),
    ] {
        if let Some(value) = value {
            members.insert(name.to_owned(), value);
        }
    }
    let doubts = own
        .iter()
        .copied()
        .filter(|line| doubtful(line) && !line.to_lowercase().contains("passive"));
    let doubts: Vec<&str> = doubts.filter(|line| !line.contains("Dead ")).collect();
    Some(of_lines(members, "ospf", used, doubts))
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
        match text {
            "Input errors:" => side = "input_",
            "Output errors:" => side = "output_",
            _ => {}
        }
        if let Some(shown) = optics::junos(text) {
            // The words of the device beside the member's name.
            if shown.as_ref().is_some_and(|(_, value)| value == "On") {
                raised.push(text.split_whitespace().collect::<Vec<_>>().join(" "));
            }
            module.extend(shown);
        } else if let Some(ago) = text.strip_prefix("Last flapped") {
            let ago = ago.split('(').nth(1).and_then(|text| text.split(" ago").next());
            stable = ago.and_then(super::durations::seconds).is_some_and(|ago| ago >= STABLE_S_MIN);
        } else if !junos_counters(text, side, &mut members) && doubtful(text) {
            doubts.push(text);
        }
    }
    if !raised.is_empty() {
        module.insert("reason".to_owned(), json!(raised.join(", ")));
    }
    if stable {
        members.remove("carrier_transitions");
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

/// `Vlan10 - Group 10 (version 2)` of HSRP and VRRP.
fn standby(lines: &[&str]) -> Option<Block> {
    let (interface, group) = lines.first()?.trim().split_once(" - Group ")?;
    let used = indented(lines);
    let own = &lines[1..used];
    let after = |words: &str| {
        own.iter().find_map(|line| {
            let small = line.to_lowercase();
            let rest = &line.trim()[small.trim().find(words)? + words.len()..];
            Some(rest.split([',', ' ', '(']).next().unwrap_or(rest).to_owned())
        })
    };
    let mut members = Map::new();
    let group: String = group.chars().take_while(char::is_ascii_digit).collect();
    for (name, value) in [
        ("interface", Some(interface.to_owned())),
        ("group", Some(group)),
        ("state", after("state is ")),
        ("active", after("active router is ").or_else(|| after("master router is "))),
        ("standby", after("standby router is ")),
        ("virtual_ip", after("virtual ip address is ")),
    ] {
        if let Some(value) = value {
            members.insert(name.to_owned(), json!(value));
        }
    }
    members.get("state")?;
    Some(of_lines(members, "fhrp", used, Vec::new()))
}

/// Values of `show redundancy` by their names in lower case.
const REDUNDANCY: &[(&str, &str)] = &[
    ("operating redundancy mode", "operating_mode_state"),
    ("redundancy mode (operational)", "operating_mode_state"),
    ("hardware mode", "hardware_state"),
    ("communications", "communications_state"),
    ("my state", "state"),
    ("peer state", "peer_state"),
    ("mode", "hardware_state"),
    ("unit", "-"),
    ("redundancy state", "redundancy_state"),
    ("supervisor state", "supervisor_state"),
    ("internal state", "-"),
    ("configured redundancy mode", "-"),
    ("available system uptime", "-"),
    ("switchovers system experienced", "-"),
    ("standby failures", "-"),
    ("last switchover reason", "-"),
    ("maintenance mode", "-"),
    ("active location", "-"),
    ("current software state", "state"),
];

/// Facts about the redundancy of supervisors, a name and a value each.
fn redundancy(lines: &[&str]) -> Option<Block> {
    let fact = |line: &str| -> Option<(&'static str, String)> {
        let (name, value) = line.split_once(" = ").or_else(|| line.split_once(": "))?;
        let name = name.trim().to_lowercase();
        let (_, member) = REDUNDANCY.iter().find(|(known, _)| *known == name)?;
        // `8 -STANDBY HOT`; the reason stands behind the state.
        let value = value
            .trim()
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .trim_start_matches([' ', '-']);
        let value = value.split("  ").next().unwrap_or(value);
        Some((*member, value.to_owned()))
    };
    let head = lines.first()?.trim();
    let of = ["This supervisor", "Other supervisor"].iter().find(|start| head.starts_with(*start));
    let mut members = Map::new();
    let mut used = 0;
    if of.is_some() {
        used = 1 + usize::from(lines.get(1).is_some_and(|line| columns::is_rule(line)));
    }
    fact(lines.get(used)?)?;
    for line in &lines[used..] {
        let small = line.to_lowercase();
        match fact(line) {
            Some(("-", _)) => {}
            Some((name, value)) => drop(members.entry(name).or_insert(json!(value))),
            None if small.contains("information is not available because") => {
                members.insert("peer_state".to_owned(), json!("absent"));
            }
            None => break,
        }
        used += 1;
    }
    if members.is_empty() {
        return Some(Block { lines: used, shown: vec![] });
    }
    members.insert("name".to_owned(), json!(of.unwrap_or(&"redundancy").to_lowercase()));
    Some(Block { lines: used, shown: vec![("supervisor", json!([members]))] })
}

/// `show version`: the uptime, and why the device restarted. The rest describes it.
fn version(lines: &[&str]) -> Option<Block> {
    let small: Vec<String> = lines.iter().map(|line| line.to_lowercase()).collect();
    let is_first = |text: &str| {
        let text = text.trim();
        VERSIONS.iter().any(|start| text.starts_with(start))
            || UPTIME.iter().any(|words| text.contains(words))
    };
    if !is_first(small.first()?) {
        return None;
    }
    let after = |words: &str| {
        small.iter().zip(lines).find_map(|(small, line)| {
            let at = small.find(words)? + words.len();
            line.get(at..).map(|rest| rest.trim().replace("(s)", ""))
        })
    };
    let uptime = UPTIME.iter().find_map(|words| after(words)).or_else(|| {
        let booted = after("system booted: ")?;
        booted.split('(').nth(1)?.split(" ago").next().map(str::to_owned)
    })?;
    let reason = REASONS.iter().find_map(|words| after(words));
    let mut members = Map::new();
    members.insert("uptime".to_owned(), json!(uptime.trim_end_matches('.')));
    if let Some(reason) = reason {
        members.insert("last_reload_reason".to_owned(), json!(reason));
    }
    Some(Block { lines: lines.len(), shown: vec![("system", Value::Object(members))] })
}
