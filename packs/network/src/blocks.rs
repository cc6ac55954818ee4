//! Reads what devices print in blocks of lines: spanning trees, OSPF interfaces, gateways, versions, redundancy.
//!
//! Sources: the command references of Cisco IOS, IOS XR and NX-OS, Junos and Arista EOS for `show spanning-tree`, `show standby`, `show ip ospf interface`, `show version`, `show redundancy`.

use serde_json::{Map, Value, json};

use super::columns::{self, Block};
use super::ports::{self, doubtful, headline, indented, of_lines};

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
        .or_else(|| ports::block(lines))
        .or_else(|| standby(lines))
        .or_else(|| redundancy(lines))
        .or_else(|| version(lines))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> (&'static str, Value) {
        let lines: Vec<&str> = text.lines().collect();
        let block = block(&lines).unwrap();
        assert_eq!(block.lines, lines.len(), "{text}");
        block.shown.into_iter().next().unwrap()
    }

    #[test]
    fn a_spanning_tree_tells_its_root() {
        let ports = "\nInterface           Role Sts Cost      Prio.Nbr Type\n\
            ------------------- ---- --- --------- -------- ------\n\
            Gi1/0/1             Root FWD 20000     128.1    P2p";
        let own = format!(
            "VLAN0010\n  Spanning tree enabled protocol rstp\n  Root ID    Priority    4106\n             \
             Address     0011.2233.4455\n             This bridge is the root\n  Bridge ID  Priority    4106\n             \
             Address     0011.2233.4455\n{ports}"
        );
        let (path, tree) = shown(&own);
        assert_eq!(path, "spanning_tree");
        assert_eq!(tree[0]["is_root"], true);
        assert_eq!(tree[0]["vlan_id"], "10");
        assert_eq!(tree[0]["ports"][0]["role"], "Root");
        let other =
            own.replace("             This bridge is the root\n", "").replacen("4455", "9999", 1);
        let (_, tree) = shown(&other);
        assert_eq!(tree[0]["is_root"], false);
        assert_eq!(tree[0]["root_id"], "0011.2233.9999");
    }

    #[test]
    fn an_interface_of_ospf_tells_its_area_and_neighbors() {
        let text = "Ethernet1/1 is up, line protocol is up\n    Process ID 1 VRF default, area 0.0.0.7\n    \
            Timer intervals: Hello 10, Dead 40, Wait 40\n    Number of neighbors: 0, flooding to 0";
        let expected = json!([{"interface": "Ethernet1/1", "area": "0.0.0.7", "hello_interval": 10,
            "dead_interval": 40, "neighbor_count": 0}]);
        assert_eq!(shown(text), ("ospf", expected));
    }

    #[test]
    fn a_version_tells_uptime_and_reason() {
        let text = "Cisco Nexus Operating System (NX-OS) Software\nKernel uptime is 2 day(s), 3 hour(s), 4 minute(s)\n\
            Last reset\n  Reason: Reset due to upgrade";
        let expected = json!({"uptime": "2 day, 3 hour, 4 minute", "last_reload_reason": "Reset due to upgrade"});
        assert_eq!(shown(text), ("system", expected));
    }

    #[test]
    fn a_lost_supervisor_is_told() {
        let text =
            "my state = 13 -ACTIVE\npeer state = 1  -DISABLED\nMode = Simplex\nUnit = Primary";
        let (path, found) = shown(text);
        assert_eq!(path, "supervisor");
        assert_eq!(found[0]["peer_state"], "DISABLED");
        assert_eq!(found[0]["hardware_state"], "Simplex");
        let text =
            "Other supervisor (sup-2)\n------------------------\n    Redundancy state:   Standby";
        assert_eq!(shown(text).1[0]["redundancy_state"], "Standby");
    }

    #[test]
    fn a_standby_group_is_read() {
        let text = "Vlan10 - Group 7 (version 2)\n  State is Active\n  Virtual IP address is 10.0.0.1\n  \
            Active router is local\n  Standby router is unknown";
        let expected = json!([{"interface": "Vlan10", "group": "7", "state": "Active",
            "active": "local", "standby": "unknown", "virtual_ip": "10.0.0.1"}]);
        assert_eq!(shown(text), ("fhrp", expected));
    }
}
