//! Reads tables whose columns are known, by where their cells stand.
//!
//! A cell may be empty or have several words, so a row is read by its position below the header.
//!
//! Sources: the command references of Cisco IOS, IOS XR and NX-OS, Junos, Arista EOS and Nokia SR OS.

use serde_json::{Map, Value, json};

/// What was read: how many lines, and what they show below the names of their subjects.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub lines: usize,
    pub shown: Vec<(&'static str, Value)>,
}

/// Headings of columns in lower case, and the members that they become. `-` is left out.
const COLUMNS: &[(&str, &str)] = &[
    ("neighbor id", "neighbor"),
    ("neighbor", "neighbor"),
    ("rtr id", "neighbor_id"),
    ("neighaddr", "neighbor"),
    ("system id", "neighbor"),
    ("system", "neighbor"),
    ("id", "neighbor_id"),
    ("l", "level"),
    ("usage", "level"),
    ("level", "level"),
    ("interface", "interface"),
    ("interface-name", "interface"),
    ("int", "interface"),
    ("port", "port"),
    ("intf", "interface"),
    ("ethernet", "interface"),
    ("port-channel", "interface"),
    ("state", "state"),
    ("status", "status"),
    ("sts", "state"),
    ("st", "state"),
    ("role", "role"),
    ("pri", "priority"),
    ("prio", "priority"),
    ("p", "-"),
    ("pre", "-"),
    ("own", "-"),
    ("ver", "-"),
    ("time", "-"),
    ("dead time", "dead_time"),
    ("dead", "dead_time"),
    ("up time", "uptime"),
    ("uptime", "uptime"),
    ("hold time", "hold_time"),
    ("hold (secs)", "hold_time"),
    ("holdtime", "hold_time"),
    ("hold", "hold_time"),
    ("changed", "changed"),
    ("snpa", "snpa"),
    ("mt-id", "-"),
    ("retxq", "-"),
    ("ttl", "-"),
    ("nsf", "-"),
    ("ietf-nsf", "-"),
    ("ipv4", "-"),
    ("ipv6", "-"),
    ("bfd", "-"),
    ("circuit id", "-"),
    ("instance", "instance"),
    ("vrf", "vrf"),
    ("vrf-name", "vrf"),
    ("address", "address"),
    ("ip address", "address"),
    ("ip-address", "address"),
    ("ip address/mask", "address"),
    ("pid", "process"),
    ("area", "area"),
    ("cost", "cost"),
    ("nbrs f/c", "neighbors_full"),
    ("grp", "group"),
    ("group", "group"),
    ("vr state", "state"),
    ("vr mode", "-"),
    ("active", "active"),
    ("active addr", "active"),
    ("standby", "standby"),
    ("standby addr", "standby"),
    ("virtual ip", "virtual_ip"),
    ("group addr", "virtual_ip"),
    ("master addr", "master_address"),
    ("type", "type"),
    ("prio.nbr", "-"),
    ("ok?", "-"),
    ("method", "-"),
    ("protocol", "protocol_status"),
    ("admin", "admin_status"),
    ("link", "link"),
    ("proto", "-"),
    ("local", "-"),
    ("remote", "-"),
    ("name", "description"),
    ("description", "description"),
    ("vlan", "vlan"),
    ("duplex", "duplex"),
    ("speed", "speed"),
    ("mode", "mode"),
    ("reason", "reason"),
    ("encapsulation", "encapsulation"),
    ("native vlan", "native_vlan"),
    ("vlans allowed on trunk", "allowed_vlans"),
    ("vlans allowed", "allowed_vlans"),
    ("native", "native_vlan"),
    ("vlans err-disabled on trunk", "errdisabled_vlans"),
    ("vlans allowed and active in management domain", "active_vlans"),
    ("vlans in spanning tree forwarding state and not pruned", "forwarding_vlans"),
    ("vlans in spanning tree forwarding state", "forwarding_vlans"),
    ("stp forwarding", "forwarding_vlans"),
    ("vlans in spanning tree forwarding state and pruned", "forwarding_vlans"),
    ("vlans forwarding on fabricpath", "-"),
    ("device id", "neighbor"),
    ("neighbor device id", "neighbor"),
    ("system name", "neighbor"),
    ("local intf", "local_interface"),
    ("local intrfce", "local_interface"),
    ("local interface", "local_interface"),
    ("parent interface", "-"),
    ("chassis id", "-"),
    ("hold-time", "hold_time"),
    ("holdtme", "hold_time"),
    ("capability", "-"),
    ("platform", "-"),
    ("hldtme", "hold_time"),
    ("port info", "neighbor_interface"),
    ("neighbor port id", "neighbor_interface"),
    ("mod", "module"),
    ("ports", "-"),
    ("module-type", "type"),
    ("model", "model"),
    ("align-err", "alignment_errors"),
    ("fcs-err", "fcs_errors"),
    ("xmit-err", "transmit_errors"),
    ("rcv-err", "receive_errors"),
    ("undersize", "undersize_errors"),
    ("outdiscards", "output_discards"),
    ("fcs", "fcs_errors"),
    ("align", "alignment_errors"),
    ("symbol", "symbol_errors"),
    ("rx", "receive_errors"),
    ("runts", "runts"),
    ("giants", "giants"),
    ("tx", "transmit_errors"),
    ("flags", "-"),
    ("ld/rd", "-"),
    ("rh/rs", "remote_state"),
    ("detect time", "-"),
    ("interval", "-"),
    ("multiplier", "-"),
    ("port id", "neighbor_interface"),
    ("designated port id", "-"),
    ("designated bridge id", "-"),
    ("connection", "-"),
    ("adv. mode", "-"),
];

/// Tables with a heading of two lines or with one word for two columns: the words of the first line, and the
/// members of the first columns. What stands to their right says nothing about health.
const SPECIAL: &[(&str, &str, &[&str])] = &[
    // IOS XR, show interfaces brief.
    ("intf intf linep encap mtu bw", "interfaces", &["interface", "status", "line_protocol"]),
    // Nokia SR OS, show port.
    ("port admin link port cfg", "interfaces", &["port", "admin_status", "link", "status", "mtu"]),
    // Junos, show spanning-tree interface.
    (
        "interface port id designated designated port state role",
        "spanning_tree",
        &["interface", "port_id", "designated_port", "designated_bridge", "cost", "state", "role"],
    ),
];

/// Longest heading of a column, in words.
const WORDS_MAX: usize = 9;

/// How far a cell may stand from its heading, in characters.
const DISTANCE_MAX: usize = 14;

/// Members of a row that say how it is.
const STATES: &[&str] = &["state", "status", "link", "protocol_status"];

struct Column {
    name: &'static str,
    start: usize,
    end: usize,
}

/// The words of a line with the positions of their first and last characters.
fn spans(line: &str) -> Vec<(usize, usize, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    for word in line.split(' ') {
        let length = word.chars().count();
        if length > 0 {
            found.push((at, at + length - 1, word));
        }
        at += length + 1;
    }
    found
}

/// The columns of a header, if all its words are known.
fn header(line: &str) -> Option<Vec<Column>> {
    let words = spans(line);
    let mut columns = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let phrase = |many: usize| -> Option<&'static str> {
            let part = words.get(at..at + many)?;
            let is_close = part.windows(2).all(|pair| pair[1].0 == pair[0].1 + 2);
            let text = part.iter().map(|(_, _, word)| *word).collect::<Vec<_>>().join(" ");
            let known = COLUMNS.iter().find(|(name, _)| text.eq_ignore_ascii_case(name));
            known.filter(|_| is_close).map(|(_, member)| *member)
        };
        let (many, name) = (1..=WORDS_MAX).rev().find_map(|many| Some((many, phrase(many)?)))?;
        columns.push(Column { name, start: words[at].0, end: words[at + many - 1].1 });
        at += many;
    }
    Some(columns)
}

/// What a table with these columns is about.
fn subject(columns: &[Column], text: &str) -> Option<&'static str> {
    let has = |name: &str| columns.iter().any(|column| column.name == name);
    let small = text.to_lowercase();
    if small.contains("system") && has("neighbor") && has("state") {
        Some("isis")
    } else if has("neighbors_full") && has("area") {
        Some("ospf_interfaces")
    } else if small.contains("ld/rd") || small.contains("detect time") {
        Some("bfd")
    } else if small.contains("adv. mode") {
        Some("ldp")
    } else if has("state")
        && has("interface")
        && (has("dead_time") || has("neighbor") && has("uptime") || small.contains("rtr id"))
    {
        Some("ospf")
    } else if has("role") && has("state") {
        Some("spanning_tree")
    } else if has("group") && has("state") {
        Some("fhrp")
    } else if has("neighbor_interface") && has("neighbor") {
        Some("lldp_neighbors")
    } else if has("module") && has("status") {
        Some("supervisor_modules")
    } else if columns
        .iter()
        .any(|column| column.name.ends_with("_vlans") || column.name == "native_vlan")
    {
        Some("trunks")
    } else if ["fcs_errors", "receive_errors"].iter().any(|name| has(name))
        || has("status") && (has("port") || has("interface"))
        || has("admin_status") && has("link") && has("interface")
    {
        Some("interfaces")
    } else {
        None
    }
}

/// The cells of a row: each word belongs to the nearest column, in order.
fn cells(row: &str, columns: &[Column]) -> Option<Vec<String>> {
    let words = spans(row);
    if words.len() == columns.len() {
        return Some(words.into_iter().map(|(_, _, word)| word.to_owned()).collect());
    }
    let distance = |(start, end, _): &(usize, usize, &str), at: usize| {
        let column = &columns[at];
        let next = columns.get(at + 1).map_or(usize::MAX, |next| next.start);
        if *end < column.start {
            column.start - end
        } else if (column.start..next).contains(start) {
            // A later word of a cell that is wider than its heading.
            usize::from(*start > column.end)
        } else {
            start.saturating_sub(column.end)
        }
    };
    // The least sum of distances, of each word and each column that it may be in.
    let mut best: Vec<Vec<(usize, usize)>> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let of = |column: usize| {
            let before = match at.checked_sub(1) {
                None => (0, 0),
                Some(last) => (0..=column)
                    .map(|earlier| (best[last][earlier].0, earlier))
                    .min()
                    .unwrap_or_default(),
            };
            (before.0 + distance(word, column), before.1)
        };
        best.push((0..columns.len()).map(of).collect());
    }
    let mut found = vec![Vec::new(); columns.len()];
    let mut column = (0..columns.len()).min_by_key(|at| (best.last().map(|of| of[*at].0), *at))?;
    for (at, word) in words.iter().enumerate().rev() {
        if distance(word, column) > DISTANCE_MAX {
            return None;
        }
        found[column].insert(0, word.2);
        column = best[at][column].1;
    }
    Some(found.into_iter().map(|words| words.join(" ")).collect())
}

/// Whether a line only separates.
pub(super) fn is_rule(line: &str) -> bool {
    let text = line.trim();
    !text.is_empty() && text.chars().all(|c| "-=+|_* ".contains(c)) && text.len() > 2
}

/// Whether a line continues the header above it.
fn is_second_header(line: &str) -> bool {
    let small = line.trim().to_lowercase();
    let first = small.split_whitespace().next().unwrap_or_default();
    let known = ["interface", "name", "id", "ip-address", "port", "area-id", "vlan", "ch", "bfd"];
    !line.chars().any(|c| c.is_ascii_digit()) && known.contains(&first)
}

/// A table that starts at the first of these lines.
pub(super) fn table(lines: &[&str]) -> Option<Block> {
    let first = lines.first()?;
    let words: Vec<String> = first.split_whitespace().map(str::to_lowercase).collect();
    let joined = words.join(" ");
    if let Some((_, path, names)) = SPECIAL.iter().find(|(start, _, _)| joined.starts_with(start)) {
        let read = |row: &str| -> Option<Vec<(&'static str, String)>> {
            let cells: Vec<&str> = row.split_whitespace().collect();
            let is_whole = cells.len() >= names.len() || cells.len() > 2;
            is_whole
                .then(|| names.iter().copied().zip(cells.into_iter().map(str::to_owned)).collect())
        };
        return rows(lines, path, read);
    }
    let columns = header(first).filter(|columns| columns.len() >= 2)?;
    let path = subject(&columns, first)?;
    let read = |row: &str| -> Option<Vec<(&'static str, String)>> {
        let cells = cells(row, &columns)?;
        let named = columns.iter().map(|column| column.name).zip(cells);
        Some(named.collect())
    };
    rows(lines, path, read)
}

fn rows(
    lines: &[&str],
    path: &'static str,
    read: impl Fn(&str) -> Option<Vec<(&'static str, String)>>,
) -> Option<Block> {
    let mut block = Block { lines: 1, shown: Vec::new() };
    let mut found = Vec::new();
    for line in &lines[1..] {
        if is_rule(line) || found.is_empty() && is_second_header(line) {
            block.lines += 1;
            continue;
        }
        let is_row = !line.trim().is_empty();
        let Some(cells) = read(line).filter(|_| is_row) else { break };
        // SR OS prints the area of a neighbor below it.
        let is_area = path == "ospf"
            && line.starts_with("   ")
            && cells[1..].iter().all(|(_, cell)| cell.is_empty());
        if is_area || cells.first().is_none_or(|(_, cell)| cell.is_empty()) {
            // A second address or family of the row above.
            if found.is_empty() || super::logs::is_bad(line) {
                break;
            }
            // A list of VLANs that goes on.
            let last = found.last_mut().and_then(Value::as_object_mut);
            if let (Some(row), Some((name, more))) = (last, cells.last())
                && let Some(Value::String(list)) = row.get_mut(*name)
                && path == "trunks"
            {
                *list = format!("{},{more}", list.trim_end_matches(','));
            }
            block.lines += 1;
            continue;
        }
        if !is_name(&cells[0].1) {
            break;
        }
        found.push(object(path, cells));
        block.lines += 1;
    }
    if found.is_empty() {
        return None;
    }
    let path = if path == "ospf_interfaces" { "ospf" } else { path };
    block.shown.push((path, Value::Array(found)));
    Some(block)
}

/// Whether a first cell names a row: prose below a table does not.
fn is_name(cell: &str) -> bool {
    let ends = [':', '%', '.', ','];
    !cell.contains(' ') && !cell.ends_with(ends) && !cell.starts_with(ends)
}

/// A row as an object.
fn object(path: &'static str, cells: Vec<(&'static str, String)>) -> Value {
    let mut members = Map::new();
    let has = |name: &str| cells.iter().filter(|(known, _)| *known == name).count();
    // Junos prints the state of the interface before that of the group.
    let is_twice = has("state") > 1;
    let mut states = 0;
    for (name, cell) in cells {
        let is_empty = cell.is_empty() || cell == "--" || cell == "-";
        let name = match name {
            "-" => continue,
            "state" => {
                states += 1;
                if is_twice && states == 1 { "interface_state" } else { name }
            }
            _ => name,
        };
        match name {
            _ if is_empty && !STATES.contains(&name) => {}
            // Full neighbors and all of them. An interface without any may be passive.
            "neighbors_full" => {
                let count = cell.split('/').next_back().and_then(|all| all.parse::<u32>().ok());
                members.insert("neighbor_count".to_owned(), json!(count));
            }
            // A BDR's interface is no adjacency.
            "state" if path == "ospf_interfaces" => {
                members.insert("interface_role".to_owned(), json!(cell));
            }
            "link" if ["yes", "no"].contains(&cell.to_lowercase().as_str()) => {}
            "reason" if cell.eq_ignore_ascii_case("none") => {}
            _ if STATES.contains(&name) && is_empty => {
                members.insert(name.to_owned(), Value::Null);
            }
            _ => {
                members.insert(name.to_owned(), json!(cell));
            }
        }
    }
    // People look for the port of a neighbor.
    let of_neighbors = ["isis", "ospf", "bfd"].contains(&path) && members.contains_key("neighbor");
    if let Some(port) = members.get("interface").and_then(Value::as_str).filter(|_| of_neighbors) {
        members.insert("where".to_owned(), json!(format!("interface {port}")));
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, path: &str, expected: &Value) {
        let lines: Vec<&str> = text.lines().collect();
        let block = table(&lines).unwrap();
        assert_eq!(block.shown, [(path, expected.clone())], "{text}");
        assert_eq!(block.lines, lines.len(), "{text}");
    }

    #[test]
    fn a_row_is_read_by_the_places_of_its_cells() {
        // Junos leaves the SNPA of a point-to-point link empty.
        check(
            "Interface             System         L State        Hold (secs) SNPA\n\
             ge-0/0/0.0            r2             2  Up                   22\n\
             ge-0/0/1.0            r3             1  Initializing          8  0:5:85:8f:c8:bd",
            "isis",
            &json!([
                {"interface": "ge-0/0/0.0", "neighbor": "r2", "level": "2", "state": "Up", "hold_time": "22",
                 "where": "interface ge-0/0/0.0"},
                {"interface": "ge-0/0/1.0", "neighbor": "r3", "level": "1", "state": "Initializing",
                 "hold_time": "8", "snpa": "0:5:85:8f:c8:bd", "where": "interface ge-0/0/1.0"},
            ]),
        );
        // The name of an IOS port may be empty or have several words.
        check(
            "Port      Name               Status       Vlan       Duplex  Speed Type\n\
             Gi1/0/1   uplink to core     connected    trunk      a-full a-1000 10/100/1000BaseTX\n\
             Gi1/0/2                      err-disabled 20           auto   auto 10/100/1000BaseTX",
            "interfaces",
            &json!([
                {"port": "Gi1/0/1", "description": "uplink to core", "status": "connected", "vlan": "trunk",
                 "duplex": "a-full", "speed": "a-1000", "type": "10/100/1000BaseTX"},
                {"port": "Gi1/0/2", "status": "err-disabled", "vlan": "20", "duplex": "auto",
                 "speed": "auto", "type": "10/100/1000BaseTX"},
            ]),
        );
        // A blank preempt flag of HSRP.
        check(
            "Interface   Grp  Pri P State   Active          Standby         Virtual IP\n\
             Vl10        10   110 P Active  local           10.1.10.3       10.1.10.1\n\
             Vl20        20   100   Standby 10.1.20.3       local           10.1.20.1",
            "fhrp",
            &json!([
                {"interface": "Vl10", "group": "10", "priority": "110", "state": "Active",
                 "active": "local", "standby": "10.1.10.3", "virtual_ip": "10.1.10.1"},
                {"interface": "Vl20", "group": "20", "priority": "100", "state": "Standby",
                 "active": "10.1.20.3", "standby": "local", "virtual_ip": "10.1.20.1"},
            ]),
        );
    }

    #[test]
    fn a_row_without_a_state_says_so() {
        let lines = [
            "System Id       Type Interface     IP Address      State Holdtime Circuit Id",
            "r2              L2   Gi0/1         10.1.1.2",
        ];
        let block = table(&lines).unwrap();
        assert_eq!(block.shown[0].1[0]["state"], Value::Null);
    }

    #[test]
    fn headings_of_two_lines_are_read() {
        let text = "Port          Admin Link Port    Cfg  Oper LAG/ Port Port Port   C/QS/S/XFP/\n\
            Id            State      State   MTU  MTU  Bndl Mode Encp Type   MDIMDX\n\
            -------------------------------------------------------------------------------\n\
            1/1/1         Up    Yes  Up      9212 9212    - netw null xcme   10GBASE-LR\n\
            1/1/2         Down  No   Down    9212 9212    - netw null xcme";
        check(
            text,
            "interfaces",
            &json!([
                {"port": "1/1/1", "admin_status": "Up", "status": "Up", "mtu": "9212"},
                {"port": "1/1/2", "admin_status": "Down", "status": "Down", "mtu": "9212"},
            ]),
        );
    }

    #[test]
    fn prose_is_no_table() {
        assert!(table(&["Interface state changed", "since yesterday"]).is_none());
        assert!(table(&["Neighbor  V AS     Wobble", "10.0.0.2  4 65000  high"]).is_none());
    }
}
