//! The bundled networks: every fault is found, and nothing else is reported.

use std::collections::BTreeMap;

use graph::agent::Settings;
use graph::testing::{self, World};
use serde_json::{Value, json};

use super::inventory::{Inventory, all, folder};
use super::{by_rules, completed, texts};

/// The expected finding of each bundled network.
const FAULTS: [(&str, &str); 20] = [
    (
        "access-list-denies",
        "access list SERVERS-IN: rule 5 denies tcp 10.10.0.0/16 to 10.30.0.10/32, 48211 packets",
    ),
    ("bgp-session-down", "BGP neighbor rr1 is IDLE (hold timer expired)"),
    ("dns-server-silent", "name server 10.30.0.54 is timed out"),
    ("dns-servfail", "lookup intranet.example is SERVFAIL"),
    ("duplicate-sid", "prefix SID pe4 is CONFLICT (pe2)"),
    ("flapping-interface", "interface HundredGigE0/0/0/1 flaps: 38 transitions"),
    ("high-cpu", "CPU is 98% used (bgp)"),
    ("interface-down", "interface HundredGigE0/0/0/0 is DOWN"),
    ("interface-errors", "interface HundredGigE0/0/0/0 has 184223 CRC errors"),
    ("ldp-session-down", "LDP session p4 is NONEXISTENT"),
    ("missing-label", "label path pe3 has no label"),
    ("mtu-mismatch", "IS-IS adjacency p4 is INIT"),
    ("native-vlan-mismatch", "NATIVE VLAN mismatch"),
    ("ospf-area-mismatch", "has no neighbor"),
    ("ospf-stuck-exstart", "is EXSTART/-"),
    ("prefix-limit", "VRF ACME: routes limit of 2 reached"),
    ("stp-inconsistent-port", "is BKN* (root-inconsistent)"),
    ("stp-root-moved", "ROOT BRIDGE mismatch"),
    ("vlan-not-allowed", "ALLOWED VLANS mismatch"),
    ("wrong-route-target", "VRF ACME: import route target 65000:999 matches no route"),
];

fn query(network: &str) -> String {
    let text = std::fs::read_to_string(folder(network).join("query.json")).unwrap();
    let input: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(input["inventory"], "network.json");
    input["query"].as_str().unwrap().to_owned()
}

fn found(result: &Value) -> Vec<&str> {
    let findings = result["findings"].as_array().unwrap().iter();
    findings.map(|found| found["finding"].as_str().unwrap()).collect()
}

#[test]
fn every_bundled_fault_is_found() {
    let mut networks: Vec<&str> = FAULTS.iter().map(|(network, _)| *network).collect();
    networks.extend(["campus", "healthy"]);
    networks.sort_unstable();
    assert_eq!(all(), networks, "every bundled network is tested");
    let mut reports = String::new();
    for (network, fault) in FAULTS {
        let inventory = Inventory::of(network);
        let result = completed(by_rules(&query(network), |call| inventory.call(call)));
        let has = found(&result).iter().any(|found| found.contains(fault));
        assert!(has, "{network}: {:#?}", found(&result));
        assert_eq!(result["verdict"], "not_fine", "{network}");
        assert_eq!(result["tool_limitations_report"], Value::Null, "{network}");
        assert_eq!(result["current_retries"], 0, "{network}");
        let summary = texts(&result["summary"]).join("\n  ");
        reports.push_str(&format!("{network}: {}\n  {summary}\n", result["objective"]));
    }
    insta::assert_snapshot!(reports);
}

#[test]
fn the_general_check_finds_every_bundled_fault() {
    for (network, fault) in FAULTS {
        let inventory = Inventory::of(network);
        let named = completed(by_rules(&query(network), |call| inventory.call(call)));
        let device = named["device_name"].as_str().unwrap();
        let result = completed(by_rules(&format!("How is {device}"), |call| inventory.call(call)));
        let has = found(&result).iter().any(|found| found.contains(fault));
        assert!(has, "{network}: {:#?}", found(&result));
    }
}

#[test]
fn the_healthy_campus_is_fine_for_each_of_its_plans() {
    let inventory = Inventory::of("campus");
    for query in [
        "Is core1 healthy?",
        "Check OSPF neighbors on core1",
        "Check OSPF on wan1",
        "Check spanning tree on acc1",
        "Is spanning tree fine on core2?",
        "Check the VLANs and trunks of acc1",
        "Check the access lists on core1",
        "Does DNS work on acc1?",
        "Are both OSPF neighbors of core2 full?",
        "Is VLAN 30 active on acc1?",
    ] {
        let result = completed(by_rules(query, |call| inventory.call(call)));
        assert_eq!(result["verdict"], "fine", "{query}: {:#}", result["judgements"]);
    }
    // What no rule knows, or nothing shows, is open although the network is healthy.
    for query in [
        "Does the voice VLAN of acc1 have the right QoS trust?",
        "Is 802.1X enforced on acc1?",
        "Are all three OSPF neighbors of core1 in area 7?",
        "Is VLAN 40 active on acc1?",
        "Why is the spanning tree of acc1 slow?",
        "Is IS-IS up on core1?",
    ] {
        let result = completed(by_rules(query, |call| inventory.call(call)));
        assert_ne!(result["verdict"], "fine", "{query}: {:#}", result["judgements"]);
    }
}

#[test]
fn no_plan_reports_problems_in_the_healthy_network() {
    let mut open = BTreeMap::new();
    let inventory = Inventory::of("healthy");
    for intent in network::plan::shipped().keys() {
        for device in ["p1", "pe1", "pe4", "rr1"] {
            let query = format!("run {intent} on {device}");
            let result = completed(by_rules(&query, |call| inventory.call(call)));
            assert_eq!(result["intent"], **intent);
            assert_eq!(found(&result), Vec::<&str>::new(), "{query}");
            assert_eq!(result["tool_limitations_report"], Value::Null, "{query}");
            for judged in result["judgements"].as_array().unwrap() {
                let reason = judged["reason"].as_str().unwrap_or_default();
                let is_fine = ["fine", "not_needed"].contains(&judged["verdict"].as_str().unwrap());
                if !is_fine && !reason.starts_with("the device has no") {
                    open.insert(format!("{judged}"), query.clone());
                }
            }
        }
    }
    assert!(open.is_empty(), "{open:#?}");
}

#[test]
fn a_session_resumes_from_every_prefix() {
    let inventory = Inventory::of("bgp-session-down");
    let input = json!({"query": query("bgp-session-down")});
    let agent = network::agent();
    let steps = testing::every_prefix(agent, &input, &Settings::default(), || {
        World::new(|call| inventory.call(call))
    });
    assert!(steps.len() >= 15, "{} steps", steps.len());
}

#[test]
fn the_result_lists_each_step_with_its_calls() {
    let inventory = Inventory::of("healthy");
    let result = completed(by_rules("Is interface HundredGigE0/0/0/1 on pe3 stable?", |call| {
        inventory.call(call)
    }));
    let mut calls: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for step in result["execution_results"].as_array().unwrap() {
        for call in step["executed_calls"].as_array().unwrap() {
            let said = format!("{} {}", call["function"].as_str().unwrap(), call["params"]);
            assert!(call["result"].is_object() && call["error"].is_null(), "{said}");
            calls.entry(step["step_index"].as_u64().unwrap()).or_default().push(said);
        }
    }
    insta::assert_json_snapshot!(calls);
}
