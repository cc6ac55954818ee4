//! Reads the answers of name servers, the route targets of VRFs and the VLANs of ports, as they are printed.
//!
//! Sources: BIND 9, `dig`; Cisco IOS, `show vrf detail` and `show interfaces switchport`; Junos, `show route instance detail`.

use serde_json::{Map, Value, json};

use super::columns::Block;

pub(super) fn block(lines: &[&str]) -> Option<Block> {
    dig(lines)
        .or_else(|| switchport(lines))
        .or_else(|| junos_configuration(lines))
        .or_else(|| vrf(lines))
}

/// The VLANs of a port: in a configuration, or as `show interfaces switchport` of IOS prints them.
fn switchport(lines: &[&str]) -> Option<Block> {
    let first = lines.first()?.trim();
    let name = first.strip_prefix("interface ").or_else(|| first.strip_prefix("Name: "))?;
    let (mut used, mut members) = (1, Map::new());
    members.insert("port".to_owned(), json!(name));
    for line in &lines[1..] {
        let text = line.trim();
        let is_own = line.starts_with(' ') || text.contains(": ");
        if text.is_empty() || !is_own || text.starts_with("Name: ") {
            break;
        }
        let value = |words: &str| text.strip_prefix(words).map(|rest| rest.trim().to_owned());
        let allowed =
            value("switchport trunk allowed vlan ").or_else(|| value("Trunking VLANs Enabled:"));
        if let Some(more) = allowed {
            let more = more.trim_start_matches("add ").to_owned();
            let known = members.get("allowed_vlans").and_then(Value::as_str);
            let list = known.map_or_else(|| more.clone(), |known| format!("{known},{more}"));
            members.insert("allowed_vlans".to_owned(), json!(list));
        }
        let native =
            value("switchport trunk native vlan ").or_else(|| value("Trunking Native Mode VLAN:"));
        if let Some(native) = native.as_deref().and_then(|text| text.split_whitespace().next()) {
            members.insert("native_vlan".to_owned(), json!(native));
        }
        if let Some(state) = value("Operational Mode:") {
            members.insert(
                "status".to_owned(),
                json!(if state == "trunk" { "trunking".to_owned() } else { state }),
            );
        }
        used += 1;
    }
    let has_vlans = members.contains_key("allowed_vlans");
    let shown = vec![("trunks", json!([members]))];
    has_vlans.then_some(Block { lines: used, shown })
}

/// Types of records that are an answer to a question for an address.
const TYPES: &[&str] = &["A", "AAAA", "CNAME", "PTR", "MX", "NS", "TXT", "SRV", "SOA"];

/// An answer of `dig`: its status, the records, and the server.
fn dig(lines: &[&str]) -> Option<Block> {
    let first = lines.first()?.trim();
    if !first.starts_with("; <<>> DiG") && !first.starts_with(";; ->>HEADER<<-") {
        return None;
    }
    let (mut used, mut section) = (0, "");
    let mut status = None;
    let (mut question, mut server) = (String::new(), None);
    let mut answers = Vec::new();
    for line in lines {
        let text = line.trim();
        if used > 0 && text.starts_with("; <<>> DiG") {
            break;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        if let Some(name) = text.strip_prefix(";; ").and_then(|text| text.strip_suffix(" SECTION:"))
        {
            section = name;
        } else if let Some(rest) = text.split("status: ").nth(1) {
            status = rest.split(',').next();
        } else if let Some(rest) = text.strip_prefix(";; SERVER: ") {
            server = rest.split(['#', ' ']).next();
        } else if let Some(name) = text.strip_prefix(';').filter(|_| section == "QUESTION") {
            question = name.split_whitespace().next().unwrap_or_default().to_owned();
        } else if let [name, _, "IN", kind, data @ ..] = words.as_slice()
            && TYPES.contains(kind)
            && section == "ANSWER"
        {
            answers.push(json!({"name": name, "type": kind, "data": data.join(" ")}));
        } else if !text.is_empty() && !text.starts_with(';') && section == "ANSWER" {
            break;
        }
        used += 1;
    }
    let status = status?;
    let mut shown =
        vec![("dns_lookups", json!([{"query": question, "rcode": status, "answers": answers}]))];
    if let Some(server) = server {
        shown.push(("name_servers", json!([{"name": server, "reachable": true}])));
    }
    Some(Block { lines: used, shown })
}

/// The route targets of VRFs in a configuration of Junos, with braces or as `set` commands.
fn junos_configuration(lines: &[&str]) -> Option<Block> {
    let first = lines.first()?.trim();
    let set = |line: &str| -> Option<(String, String)> {
        let rest = line.trim().strip_prefix("set routing-instances ")?;
        let (name, rest) = rest.split_once(' ')?;
        Some((name.to_owned(), rest.to_owned()))
    };
    let name = match set(first) {
        Some((name, _)) => name,
        None => {
            let name = first.strip_suffix(" {").filter(|name| !name.contains(' '))?;
            lines
                .iter()
                .take(4)
                .any(|line| line.trim() == "instance-type vrf;")
                .then(|| name.to_owned())?
        }
    };
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    let (mut used, mut depth) = (0_usize, 0_i32);
    for line in lines {
        let text = match set(line) {
            Some((of, rest)) if of == name => rest,
            None if depth > 0 || used == 0 => line.trim().to_owned(),
            _ => break,
        };
        depth += i32::from(text.ends_with('{')) - i32::from(text == "}");
        let targets = target_texts(&text);
        let is_of = text.starts_with("vrf-target")
            || text.starts_with("import ")
            || text.starts_with("export ");
        if is_of && !text.contains("export ") {
            imports.extend(targets.clone());
        }
        if is_of && !text.contains("import ") {
            exports.extend(targets);
        }
        used += 1;
        if depth == 0 && text == "}" {
            break;
        }
    }
    let has_both = !imports.is_empty() && !exports.is_empty();
    let vrf =
        json!([{"name": name, "import_route_targets": imports, "export_route_targets": exports}]);
    has_both.then(|| Block { lines: used, shown: vec![("vrfs", vrf)] })
}

/// The route targets of a VRF below its name.
fn vrf(lines: &[&str]) -> Option<Block> {
    let first = lines.first()?.trim();
    let name = match first.strip_prefix("VRF ") {
        Some(rest) => rest.split([' ', ';', '(']).next()?,
        None => first.strip_suffix(':').filter(|name| !name.contains([' ', ':']))?,
    };
    let mut members = Map::new();
    members.insert("name".to_owned(), json!(name));
    let (mut used, mut side) = (1, "");
    for line in &lines[1..] {
        let small = line.trim().to_lowercase();
        let targets = target_texts(line);
        let of_junos =
            ["vrf-import-target", "vrf-export-target"].iter().find(|word| small.starts_with(*word));
        if let Some(word) = of_junos {
            let name = if word.contains("import") {
                "import_route_targets"
            } else {
                "export_route_targets"
            };
            members.insert(name.to_owned(), json!(targets));
        } else if small.contains("route-target communities") {
            side = if small.contains("import") {
                "import_route_targets"
            } else {
                "export_route_targets"
            };
            if small.starts_with("no ") {
                side = "";
            }
        } else if small.starts_with("rt:") && !side.is_empty() {
            let list = members.entry(side).or_insert_with(|| json!([]));
            if let Value::Array(list) = list {
                list.extend(targets.into_iter().map(Value::from));
            }
        } else if !line.starts_with(' ') && !line.is_empty() || super::logs::is_bad(&small) {
            break;
        }
        used += 1;
    }
    let has_both = ["import_route_targets", "export_route_targets"]
        .iter()
        .all(|name| members.contains_key(*name));
    has_both.then(|| Block { lines: used, shown: vec![("vrfs", json!([members]))] })
}

/// The route targets of a line.
fn target_texts(line: &str) -> Vec<String> {
    let parts = line.split([' ', ',', '[', ']']).map(|part| {
        part.trim_start_matches("target:").trim_start_matches("RT:").trim_end_matches(';')
    });
    let is_target = |part: &&str| {
        part.split_once(':').is_some_and(|(admin, number)| {
            !admin.is_empty()
                && admin.chars().all(|c| c.is_ascii_digit() || c == '.')
                && number.parse::<u64>().is_ok()
        })
    };
    parts.filter(is_target).map(str::to_owned).collect()
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
    fn an_answer_of_dig_is_read() {
        let found = shown(
            "; <<>> DiG 9.18.1 <<>> www.example.net\n;; Got answer:\n\
             ;; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 7\n\
             ;; flags: qr rd ra; QUERY: 1, ANSWER: 2\n\n;; QUESTION SECTION:\n;www.example.net.  IN A\n\n\
             ;; ANSWER SECTION:\nwww.example.net. 300 IN CNAME web.example.net.\n\
             web.example.net. 60 IN A 192.0.2.7\n\n;; Query time: 4 msec\n;; SERVER: 192.0.2.53#53(192.0.2.53)",
        );
        assert_eq!(found[0].1[0]["rcode"], "NOERROR");
        assert_eq!(found[0].1[0]["answers"].as_array().unwrap().len(), 2);
        assert_eq!(found[1].1[0]["name"], "192.0.2.53");
    }

    #[test]
    fn the_vlans_of_a_port_are_read() {
        let expected =
            json!([{"port": "Ethernet1/1", "native_vlan": "5", "allowed_vlans": "10-12,20"}]);
        let found = shown(
            "interface Ethernet1/1\n  switchport mode trunk\n  switchport trunk native vlan 5\n  \
             switchport trunk allowed vlan 10-12\n  switchport trunk allowed vlan add 20",
        );
        assert_eq!(found, [("trunks", expected)]);
        let found = shown(
            "Name: Gi1/0/1\nOperational Mode: trunk\nTrunking Native Mode VLAN: 1 (default)\n\
             Trunking VLANs Enabled: 10,20",
        );
        assert_eq!(found[0].1[0]["status"], "trunking");
        assert_eq!(found[0].1[0]["allowed_vlans"], "10,20");
    }

    #[test]
    fn route_targets_are_read() {
        let junos = "BLUE:\n  Router ID: 10.0.0.1\n  Type: vrf               State: Active\n  \
            Vrf-import-target: [ target:65000:1 target:65000:2 ]\n  Vrf-export-target: [ target:65000:1 ]";
        let expected = json!([{"name": "BLUE", "import_route_targets": ["65000:1", "65000:2"],
            "export_route_targets": ["65000:1"]}]);
        assert_eq!(shown(junos), [("vrfs", expected)]);
        let expected = json!([{"name": "BLUE", "import_route_targets": ["65000:7"],
            "export_route_targets": ["65000:1"]}]);
        let set = "set routing-instances BLUE instance-type vrf\n\
            set routing-instances BLUE vrf-target import target:65000:7\n\
            set routing-instances BLUE vrf-target export target:65000:1";
        assert_eq!(shown(set), [("vrfs", expected.clone())]);
        let braces = "BLUE {\n    instance-type vrf;\n    vrf-target {\n        import target:65000:7;\n        \
            export target:65000:1;\n    }\n}";
        assert_eq!(shown(braces), [("vrfs", expected)]);
        let ios = "VRF BLUE (VRF Id = 2); default RD 65000:1; default VPNID <not set>\n  \
            Export VPN route-target communities\n    RT:65000:1\n  Import VPN route-target communities\n    \
            RT:65000:9               RT:65000:1";
        let expected = json!([{"name": "BLUE", "export_route_targets": ["65000:1"],
            "import_route_targets": ["65000:9", "65000:1"]}]);
        assert_eq!(shown(ios), [("vrfs", expected)]);
    }
}
