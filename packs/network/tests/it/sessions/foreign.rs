//! Servers with their own tools and their own spelling. A network with a bad state never ends green.
//!
//! Sources of the forms: the command references of Cisco IOS, IOS XR and NX-OS, Junos and Arista EOS.

use graph::effect::CATALOGUE;
use graph::outcome::Brought;
use serde_json::{Value, json};

use super::{by_rules, completed};

/// The result of a question to a server with one tool beside the list of devices.
fn asked(query: &str, tool: &str, answer: &Value) -> Value {
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
