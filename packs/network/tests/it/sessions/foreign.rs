//! Servers with their own tools and their own spelling. A network with a bad state never ends green.
//!
//! Sources of the forms: the command references of Cisco IOS, IOS XR and NX-OS, Junos and Arista EOS.

use graph::effect::CATALOGUE;
use graph::outcome::Brought;
use serde_json::{Value, json};

use super::{by_rules, completed};

/// The result of a question to a server with one tool beside the list of devices.
pub fn asked(query: &str, tool: &str, answer: &Value) -> Value {
    completed(by_rules(query, |call| match call.tool.as_str() {
        "configured_servers" => Brought::Ok(json!({"servers": ["theirs"]})),
        CATALOGUE => {
            let schema = json!({"type": "object", "required": ["device_name"], "properties": {"device_name": {"type": "string"}}});
            let spec = |name: &str| json!({"server": "theirs", "name": name, "description": "", "input_schema": schema});
            Brought::Ok(
                json!({"tools": [spec("get_devices"), spec(tool)], "reads": ["get_devices", tool]}),
            )
        }
        "get_devices" => Brought::Ok(json!(["r1", "r2"])),
        _ => Brought::Ok(answer.clone()),
    }))
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn a_bad_state_never_ends_in_an_all_clear() {
    let list = |key: &str, item: Value| json!({key: [item]});
    for (query, tool, answer) in [
        (
            "Is OSPF fine on r1?",
            "show_ospf",
            list("neighbors", json!({"neighbor_id": "10.0.0.2", "state": "EXSTART/BDR"})),
        ),
        (
            "Is OSPF fine on r1?",
            "show_ospf",
            list("neighbors", json!({"neighbor_id": "10.0.0.2", "nbrState": "INIT/DROTHER"})),
        ),
        (
            "Check spanning tree on r1",
            "show_stp",
            list("ports", json!({"port": "Gi0/1", "role": "Root", "state": "BKN*"})),
        ),
        ("Check spanning tree on r1", "show_stp", json!({"inconsistent_ports": ["Gi0/1"]})),
        (
            "Is HSRP healthy on r1?",
            "get_hsrp",
            list("groups", json!({"group": 10, "state": "Init"})),
        ),
        (
            "Is VRRP healthy on r1?",
            "get_vrrp",
            list("groups", json!({"group": 10, "state": "Initialize"})),
        ),
        ("Is DNS working on r1?", "dns_check", json!({"query": "a.example", "rcode": "SERVFAIL"})),
        (
            "Are the ports of r1 up?",
            "port_status",
            list("ports", json!({"port": "Gi1", "status": "errDisabled"})),
        ),
        (
            "Are the ports of r1 up?",
            "port_status",
            list("ports", json!({"port": "Gi1", "status": "err-disabled"})),
        ),
        (
            "Are the ports of r1 up?",
            "port_status",
            list("ports", json!({"port": "Gi1", "status": "down (psecure-violation)"})),
        ),
        (
            "Is NTP in order on r1?",
            "ntp_status",
            json!({"status": "unsynchronized", "stratum": 16}),
        ),
        (
            "Check the port channel on r1",
            "lacp",
            list("members", json!({"port": "Gi1", "state": "suspended"})),
        ),
        (
            "Check the MTU on r1",
            "link_mtu",
            json!({"interface": "Gi1", "local_mtu": 1500, "remote_mtu": 9000}),
        ),
        (
            "Is OSPF fine on r1?",
            "ospf",
            json!({"local_area": "0", "remote_area": "1", "state": "up"}),
        ),
        ("Check the optics on r1", "optics", json!({"port": "Te1", "rx_power_dbm": -31.2})),
        (
            "Check the optics on r1",
            "optics",
            json!({"port": "Te1", "rx_power": -18.0, "rx_low_alarm": -14.4, "rx_high_alarm": 2.0}),
        ),
        (
            "How long is the uptime of r1?",
            "system",
            json!({"uptime_seconds": 600, "reload_reason": "crash"}),
        ),
        (
            "Does r1 receive prefixes over BGP?",
            "bgp",
            list(
                "neighbors",
                json!({"peer": "10.0.0.1", "state": "Established", "prefixes_received": 0}),
            ),
        ),
        (
            "Does r1 receive prefixes over BGP?",
            "bgp",
            list(
                "neighbors",
                json!({"peer": "10.0.0.1", "state": "Established", "prefixes_received": 9, "prefixes_expected": 900}),
            ),
        ),
        (
            "Is the BGP of r1 fine?",
            "bgp",
            list("neighbors", json!({"peer": "10.0.0.1", "state": "Active"})),
        ),
        (
            "Is the BGP of r1 fine?",
            "bgp",
            list("neighbors", json!({"peer": "10.0.0.1", "whatever": "Idle (PfxCt)"})),
        ),
        (
            "Are there access lists on r1 that drop traffic?",
            "acl",
            list("entries", json!({"sequence": 20, "action": "deny", "hits": 400})),
        ),
        (
            "Check the members of r1's bundle",
            "lag",
            json!({"name": "Po1", "state": "up", "active_members": 1, "configured_members": 2}),
        ),
    ] {
        let result = asked(query, tool, &answer);
        assert_eq!(result["verdict"], "not_fine", "{query} {answer}: {}", result["judgements"]);
    }
}

#[test]
fn what_no_rule_knows_is_never_green() {
    for (query, tool, answer) in [
        (
            "Is OSPF fine on r1?",
            "show_ospf",
            json!({"neighbors": [{"neighbor_id": "10.0.0.2", "zzz": "FULL"}]}),
        ),
        (
            "Is OSPF fine on r1?",
            "show_ospf",
            json!({"neighbors": [{"neighbor_id": "10.0.0.2", "state": "FULL", "zzz": 500_000}]}),
        ),
        (
            "Is OSPF fine on r1?",
            "show_ospf",
            json!({"neighbors": [{"neighbor_id": "10.0.0.2", "state": "caido"}]}),
        ),
        (
            "Is OSPF fine on r1?",
            "show_bgp",
            json!({"neighbors": [{"peer": "10.0.0.2", "state": "Established"}]}),
        ),
        ("Is OSPF fine on r1?", "show_ospf", json!("all is well")),
        (
            "Is OSPF fine on r1?",
            "show_ospf",
            json!({"device": "r2", "neighbors": [{"state": "FULL"}]}),
        ),
        (
            "Does OSPF on r1 honour graceful shutdown timers?",
            "show_ospf",
            json!({"neighbors": [{"state": "FULL"}]}),
        ),
        ("Why is OSPF slow on r1?", "show_ospf", json!({"neighbors": [{"state": "FULL"}]})),
        ("Is OSPF fine on r1?", "show_ospf", json!({"neighbors": []})),
        (
            "Are the interfaces of r1 up?",
            "interfaces",
            json!({"items": [{"interface": "Gi1", "crc_errors": 0}]}),
        ),
        ("Check the MTU on r1", "link_mtu", json!({"interface": "Gi1", "mtu": 9000})),
        ("Check the optics on r1", "optics", json!({"port": "Te1", "rx_power_dbm": -9.5})),
        ("Is memory on r1 under 50 percent?", "memory", json!({"memory": {"free_share": 20}})),
        ("How healthy is the flux capacitor of r1?", "flux_capacitor", json!({"flux": "nominal"})),
    ] {
        let result = asked(query, tool, &answer);
        assert_eq!(result["verdict"], "unknown", "{query} {answer}: {}", result["judgements"]);
        assert!(
            result["judgements"]
                .as_array()
                .unwrap()
                .iter()
                .any(|judged| judged["reason"].is_string())
        );
    }
}

/// Bad states as vendors spell them, with the question and the tool that they belong to.
const BAD: &[(&str, &str, &[&str])] = &[
    (
        "Is OSPF fine on r1?",
        "ospf_neighbors",
        &["DOWN", "INIT", "EXSTART", "EXCHANGE/DR", "LOADING", "ATTEMPT"],
    ),
    (
        "Are the IS-IS adjacencies of r1 up?",
        "isis_adjacency",
        &["Init", "Down", "initializing", "DOWN"],
    ),
    (
        "Is BGP fine on r1?",
        "bgp_summary",
        &["Idle", "Active", "Connect", "OpenSent", "OpenConfirm", "Idle (PfxCt)", "idle"],
    ),
    (
        "Is LDP fine on r1?",
        "ldp_sessions",
        &["Nonexistent", "OpenRec", "OpenSent", "Initialized failed", "down"],
    ),
    (
        "Are the interfaces of r1 up?",
        "interface_list",
        &[
            "down",
            "Down",
            "errDisabled",
            "err-disabled",
            "error-disabled",
            "notconnect",
            "Not Connected",
            "linkDown",
            "link-down",
            "lowerLayerDown",
            "LOWER_LAYER_DOWN",
            "notPresent",
            "sfpAbsent",
            "up/down",
            "down (psecure-violation)",
            "down (sfp not inserted)",
            "Up (err-disabled)",
            "oper-down",
            "inactive",
            "suspnd",
            "faulty",
        ],
    ),
    (
        "Is spanning tree fine on r1?",
        "stp_ports",
        &[
            "BKN*",
            "broken",
            "root-inconsistent",
            "Loop_Inconsistent",
            "type inconsistent",
            "PVID-inconsistent",
        ],
    ),
    ("Is HSRP fine on r1?", "hsrp_groups", &["Init", "Learn", "Speak", "init (interface down)"]),
    ("Is VRRP fine on r1?", "vrrp_groups", &["Initialize", "init", "down"]),
    (
        "Is the port channel of r1 fine?",
        "lacp_members",
        &["suspended", "individual", "down", "stand-alone"],
    ),
    ("Is BFD fine on r1?", "bfd_sessions", &["Down", "Init", "AdminDown failed"]),
    (
        "Is NTP fine on r1?",
        "ntp_peers",
        &["unsynchronized", "unreachable", "not synced", "timeout"],
    ),
    (
        "Is DNS fine on r1?",
        "dns_servers",
        &["SERVFAIL", "NXDOMAIN", "REFUSED", "timed out", "no response"],
    ),
    (
        "Is the environment of r1 fine?",
        "environment",
        &["failed", "critical", "absent", "FAULTY", "major", "not present"],
    ),
    ("Is EVPN fine on r1?", "evpn_peers", &["down", "failed", "conflict"]),
];

/// The same state under other names and at other depths.
fn shapes(state: &str) -> Vec<Value> {
    vec![
        json!({"items": [{"name": "ok-one", "state": "up"}, {"name": "bad-one", "state": state}]}),
        json!([{"id": 1, "operStatus": state}]),
        json!({"output": {"by_vrf": {"default": {"entries_of": {"x": {"session-state": state}}}}}}),
        json!({"result": [{"name": "a", "some_new_field": state}]}),
        json!({"data": {"Oper State": state, "admin_status": "up"}}),
    ]
}

#[test]
fn one_bad_state_anywhere_is_found_in_every_shape() {
    let mut cases = 0;
    for (query, tool, states) in BAD {
        for state in *states {
            for answer in shapes(state) {
                let result = asked(query, tool, &answer);
                assert_eq!(
                    result["verdict"], "not_fine",
                    "{query} {answer}: {}",
                    result["judgements"]
                );
                cases += 1;
            }
        }
    }
    assert!(cases >= 300, "{cases}");
}

#[test]
fn a_good_state_under_a_known_name_is_fine() {
    let list = |item: Value| json!({"items": [item]});
    for (query, tool, answer) in [
        (
            "Is OSPF fine on r1?",
            "ospf_neighbors",
            list(json!({"neighbor_id": "10.0.0.2", "state": "FULL/DR", "area": "0.0.0.0"})),
        ),
        (
            "Is HSRP healthy on r1?",
            "hsrp_groups",
            list(json!({"group": 10, "state": "Active", "virtual_ip": "10.0.0.1"})),
        ),
        ("Is VRRP healthy on r1?", "vrrp_groups", list(json!({"group": 10, "state": "Backup"}))),
        (
            "Is spanning tree fine on r1?",
            "stp_ports",
            json!({"ports": [{"port": "Gi1", "role": "Root", "state": "FWD"}, {"port": "Gi2", "role": "Altn", "state": "BLK"}]}),
        ),
        (
            "Is DNS working on r1?",
            "dns_check",
            json!({"query": "a.example", "rcode": "NOERROR", "answer": "10.1.1.1"}),
        ),
        ("Is NTP in order on r1?", "ntp_status", json!({"status": "synchronized", "stratum": 2})),
        (
            "Check the optics on r1: rx power",
            "optics",
            json!({"port": "Te1", "rx_power_dbm": -3.1, "rx_low_alarm": -14.4, "rx_high_alarm": 2.0}),
        ),
        (
            "Check the MTU on r1",
            "link_mtu",
            json!({"interface": "Gi1", "local_mtu": 9000, "remote_mtu": 9000}),
        ),
        (
            "Are there errors on the interfaces of r1?",
            "interface_counters",
            list(json!({"interface": "Gi1", "crc_errors": 3, "input_packets": 900_000_000_u64})),
        ),
        (
            "Are the ports of r1 up?",
            "port_status",
            list(json!({"port": "Gi1", "status": "connected", "vlan": 10})),
        ),
    ] {
        let result = asked(query, tool, &answer);
        // The plan for interfaces asks more than this server answers.
        assert_ne!(result["verdict"], "not_fine", "{query} {answer}: {}", result["judgements"]);
        assert_eq!(
            result["judgements"][0]["verdict"], "fine",
            "{query} {answer}: {}",
            result["judgements"]
        );
        assert!(
            tool == "interface_counters" || tool == "port_status" || result["verdict"] == "fine"
        );
    }
}

#[test]
fn a_renamed_field_is_never_green() {
    let answer =
        json!({"items": [{"neighbor_id": "10.0.0.2", "state": "FULL", "errors": 0, "up": true}]});
    let item = answer["items"][0].as_object().unwrap();
    for name in item.keys().filter(|name| *name != "neighbor_id") {
        let mut renamed = item.clone();
        let value = renamed.remove(name).unwrap();
        renamed.insert(format!("zq{}", name.len()), value);
        let result = asked("Is OSPF fine on r1?", "ospf_neighbors", &json!({"items": [renamed]}));
        assert_eq!(result["verdict"], "unknown", "{name}: {}", result["judgements"]);
    }
}

#[test]
fn the_summary_begins_with_what_was_asked() {
    let answer = json!({
        "ospf": {"neighbors": [{"neighbor_id": "10.0.0.2", "state": "INIT"}]},
        "fans": [{"name": "fan1", "status": "failed"}],
    });
    let result = asked("Is OSPF fine on r1?", "ospf_neighbors", &answer);
    let summary: Vec<&str> = super::texts(&result["summary"]);
    assert_eq!(summary[..2], ["r1: one problem found.", "OSPF adjacency 10.0.0.2 is INIT"]);
    assert!(summary[2].starts_with("Also found: fans fan1 is failed"), "{summary:?}");
}

#[test]
fn a_question_about_two_devices_asks_both() {
    let answer = json!({"items": [{"neighbor_id": "10.0.0.2", "state": "INIT"}]});
    let result = asked("Is OSPF fine on r1 and r2?", "ospf_neighbors", &answer);
    assert_eq!(result["device_name"], "r1, r2");
    let found = result["findings"].as_array().unwrap().iter();
    let found: Vec<_> = found.map(|found| found["finding"].as_str().unwrap()).collect();
    assert_eq!(found, ["r1: items 10.0.0.2 is INIT", "r2: items 10.0.0.2 is INIT"]);
}

/// The result of a question to a server whose answer depends on the device.
fn asked_of(query: &str, tool: &str, answers: &Value) -> Value {
    completed(by_rules(query, |call| match call.tool.as_str() {
        "configured_servers" => Brought::Ok(json!({"servers": ["theirs"]})),
        CATALOGUE => {
            let schema = json!({"type": "object", "required": ["device_name"], "properties": {"device_name": {"type": "string"}}});
            let spec = |name: &str| json!({"server": "theirs", "name": name, "description": "", "input_schema": schema});
            Brought::Ok(
                json!({"tools": [spec("get_devices"), spec(tool)], "reads": ["get_devices", tool]}),
            )
        }
        "get_devices" => Brought::Ok(json!(["r1", "r2"])),
        _ => Brought::Ok(answers[call.arguments["device_name"].as_str().unwrap()].clone()),
    }))
}

#[test]
fn what_is_fine_at_one_of_two_devices_is_not_fine_at_both() {
    let full = json!({"neighbors": [{"neighbor_id": "10.0.0.2", "state": "FULL"}]});
    for (second, expected) in [
        (full.clone(), "fine"),
        (json!({"neighbors": []}), "unknown"),
        (json!({"neighbors": [{"neighbor_id": "10.0.0.1"}]}), "unknown"),
        (json!({"neighbors": [{"neighbor_id": "10.0.0.1", "state": "INIT"}]}), "not_fine"),
    ] {
        let answers = json!({"r1": full, "r2": second});
        let result = asked_of("Is OSPF fine on r1 and r2?", "show_ospf", &answers);
        assert_eq!(result["verdict"], expected, "{second}: {:#}", result["judgements"]);
    }
}

#[test]
fn route_targets_of_two_devices_are_compared() {
    let vrf = |imports: &str, exports: &str| json!({"vrfs": [{"name": "BLUE", "import_route_targets": [imports], "export_route_targets": [exports]}]});
    for (second, expected) in
        [(vrf("65000:1", "65000:1"), "fine"), (vrf("65000:1", "65000:2"), "not_fine")]
    {
        let answers = json!({"r1": vrf("65000:1", "65000:1"), "r2": second});
        let query = "Compare the route targets of VRF BLUE on r1 and r2";
        let result = asked_of(query, "get_vrf", &answers);
        assert_eq!(result["judgements"][0]["verdict"], expected, "{:#}", result["judgements"]);
    }
}

#[test]
fn a_neighbor_that_another_tool_knows_is_missed() {
    let answer = json!({
        "isis": {"neighbors": [{"neighbor": "p1", "adjacency_state": "UP"}, {"neighbor": "p2", "adjacency_state": "UP"}]},
        "ldp": {"sessions": [{"neighbor": "p1", "session_state": "OPERATIONAL"}]},
    });
    let result = asked("Is LDP fine on r1?", "get_ldp_and_isis", &answer);
    assert_eq!(result["verdict"], "not_fine", "{:#}", result["judgements"]);
    assert!(
        result["summary"].to_string().contains("no session with p2"),
        "{:#}",
        result["summary"]
    );
}

/// The table of another protocol than the one that was asked for.
#[test]
fn a_bgp_table_proves_nothing_about_isis() {
    let table = json!({"vrfs": {"default": {"peers": {
        "10.0.0.1": {"peerState": "Established", "prefixReceived": 812, "asn": "65000"},
        "10.0.0.2": {"peerState": "Established", "prefixReceived": 812, "asn": "65000"},
    }}}});
    let result = asked("Are the IS-IS adjacencies of r1 up?", "get_isis_adjacencies", &table);
    assert_ne!(result["verdict"], "fine", "{:#}", result["judgements"]);
    for judged in result["judgements"].as_array().unwrap() {
        let is_about = judged["sentence"].as_str().unwrap().contains("IS-IS");
        assert!(!is_about || judged["verdict"] != "fine", "{judged:#}");
    }
}

/// The MTUs of the two ends are in the answers of two devices.
#[test]
fn the_ends_of_a_link_are_compared_across_devices() {
    let ends = |far: u32, is_discovered: bool| {
        let result = completed(by_rules("Check the link between r1 and r2", |call| {
            let device = call.arguments["device_name"].as_str().unwrap_or_default().to_owned();
            let (mtu, other) = if device == "r1" { (9_216, "r2") } else { (far, "r1") };
            match call.tool.as_str() {
                "configured_servers" => Brought::Ok(json!({"servers": ["theirs"]})),
                CATALOGUE => {
                    let schema = json!({"type": "object", "required": ["device_name"], "properties": {"device_name": {"type": "string"}}});
                    let spec = |name: &str| json!({"server": "theirs", "name": name, "description": "", "input_schema": schema});
                    let names = ["get_devices", "get_interface_info", "get_topology_neighbors"];
                    Brought::Ok(json!({"tools": names.map(spec), "reads": names}))
                }
                "get_devices" => Brought::Ok(json!(["r1", "r2"])),
                "get_interface_info" => Brought::Ok(json!({"interfaces": [
                    {"name": "Eth1/1", "oper_status": "up", "admin_status": "up", "mtu": mtu},
                ]})),
                _ if !is_discovered => Brought::Ok(json!({"neighbors": []})),
                _ => Brought::Ok(json!({"neighbors": [{"local_interface": "Ethernet1/1",
                    "remote_device": format!("{other}.example.net"), "remote_interface": "Eth1/1"}]})),
            }
        }));
        (result["verdict"].clone(), json!(result["judgements"]).to_string())
    };
    let (verdict, said) = ends(1_500, true);
    assert_eq!(verdict, "not_fine", "{said}");
    assert!(said.contains("the MTUs of a link differ: r1 Eth1/1 9216, r2 Eth1/1 1500"), "{said}");
    for (far, is_discovered) in [(9_216, true), (1_500, false)] {
        assert!(!ends(far, is_discovered).1.contains("MTUs of a link differ"));
    }
}

/// One interface that is up is no healthy router.
#[test]
fn a_general_question_is_open_while_sentences_are() {
    let answer =
        json!({"interfaces": [{"name": "Eth1", "oper_status": "up", "admin_status": "up"}]});
    let result = asked("Is r1 healthy?", "get_interface_info", &answer);
    assert_eq!(result["verdict"], "unknown");
    let question = &result["judgements"][0];
    assert_eq!(question["verdict"], "not_judged", "{question:#}");
    assert!(question["reason"].as_str().unwrap().ends_with("of the plan were not answered"));
}

/// A fault elsewhere is said, but it is not the answer to the question.
#[test]
fn a_question_about_one_interface_is_answered_by_it() {
    let answer = json!({"interfaces": [
        {"name": "GigabitEthernet0/0", "oper_status": "up", "admin_status": "up"},
        {"name": "GigabitEthernet0/1", "oper_status": "down", "admin_status": "up"},
    ]});
    let of_question = |name: &str| {
        let result = asked(&format!("Is {name} on r1 up?"), "get_interface_info", &answer);
        assert_eq!(result["verdict"], "not_fine", "another interface is down");
        result["judgements"][0]["verdict"].clone()
    };
    assert_eq!(of_question("GigabitEthernet0/0"), "fine");
    assert_eq!(of_question("Gi0/1"), "not_fine");
    assert_eq!(of_question("GigabitEthernet0/7"), "not_judged");
}

/// The plan: "none, or far fewer than its partner".
#[test]
fn a_neighbor_with_far_fewer_prefixes_is_not_cleared() {
    let of = |prefixes: u32| {
        let neighbor = |name: &str, prefixes: u32| {
            json!({"neighbor": name, "remote_as": 65_000, "state": "Established",
                "uptime": "8w5d", "prefixes_received": prefixes})
        };
        let answer =
            json!({"bgp_neighbors": [neighbor("10.0.0.1", 940), neighbor("10.0.0.2", prefixes)]});
        let result = asked("Check the prefixes of the BGP neighbors on r1", "get_bgp", &answer);
        result["judgements"].to_string()
    };
    let said = of(3);
    assert!(said.contains("10.0.0.2 sends 3 prefixes and 10.0.0.1 940"), "{said}");
    assert!(!of(930).contains("whether they are partners"));
}
