//! The simulated network as an MCP client sees it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use mcp::testing::{Connection, text};

fn network(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../networks").join(name).join("network.json")
}

async fn open(name: &str) -> Connection {
    Connection::serve(network_inventory::server(Some(&network(name))).unwrap()).await
}

async fn ok(connection: &Connection, tool: &str, arguments: Value) -> Value {
    let result = connection.call(tool, arguments).await.unwrap();
    assert_eq!(result.is_error, Some(false), "{tool}: {:?}", result.content);
    result.structured_content.unwrap()
}

async fn about(connection: &Connection, tool: &str, device: &str) -> Value {
    ok(connection, tool, json!({ "device_name": device })).await
}

async fn refusal(connection: &Connection, tool: &str, arguments: Value) -> String {
    let result = connection.call(tool, arguments).await.unwrap();
    assert_eq!(result.is_error, Some(true), "{tool}: {:?}", result.content);
    text(&result)
}

/// The only element of a list that has this member.
#[track_caller]
fn one<'a>(list: &'a Value, member: &str, value: &str) -> &'a Value {
    let found: Vec<&Value> =
        list.as_array().unwrap().iter().filter(|item| item[member] == value).collect();
    assert_eq!(found.len(), 1, "{member}={value} in {list:#}");
    found[0]
}

#[tokio::test]
async fn the_tools_are_published_as_read_only() {
    let connection = open("healthy").await;
    let tools = connection.client().list_all_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, network_inventory::INFO.tools);
    for tool in &tools {
        let annotations = tool.annotations.as_ref().unwrap();
        assert_eq!(annotations.read_only_hint, Some(true), "{}", tool.name);
    }
    insta::assert_json_snapshot!(tools);
    connection.close().await;
}

#[tokio::test]
async fn a_healthy_edge_shows_what_a_router_would() {
    let connection = open("healthy").await;
    let mut shown = serde_json::Map::new();
    for tool in network_inventory::INFO.tools {
        if *tool != "get_devices" {
            shown.insert((*tool).to_owned(), about(&connection, tool, "pe1").await);
        }
    }
    insta::assert_json_snapshot!(shown);
    connection.close().await;
}

#[tokio::test]
async fn a_link_that_is_down_shows_at_both_ends_and_is_routed_around() {
    let (healthy, broken) = (open("healthy").await, open("interface-down").await);
    for (device, interface, far) in
        [("pe1", "HundredGigE0/0/0/0", "p1"), ("p1", "HundredGigE0/0/0/2", "pe1")]
    {
        let interfaces = about(&broken, "get_interface_info", device).await;
        assert_eq!(one(&interfaces["interfaces"], "name", interface)["oper_status"], "DOWN");
        let routing = about(&broken, "get_routing_info", device).await;
        let adjacency = one(&routing["isis"]["neighbors"], "neighbor", far);
        assert_eq!(adjacency["adjacency_state"], "DOWN");
        let mpls = about(&broken, "get_mpls_info", device).await;
        let session = one(&mpls["ldp"]["sessions"], "neighbor", far);
        assert_eq!(session["session_state"], "NONEXISTENT");
        let heard = about(&broken, "get_topology_neighbors", device).await;
        assert!(!heard["neighbors"].to_string().contains(&format!("\"{far}\"")), "{heard}");
        let logs = about(&broken, "get_logs", device).await.to_string();
        assert!(logs.contains(&format!("{interface} changed state to Down")), "{logs}");
        // All devices stay reachable over the other path.
        assert_eq!(routing["isis"]["routes"], 9);
    }
    let way = |mpls: &Value| one(&mpls["forwarding"], "destination", "p1")["next_hop"].clone();
    assert_eq!(way(&about(&healthy, "get_mpls_info", "pe1").await), "p1");
    assert_eq!(way(&about(&broken, "get_mpls_info", "pe1").await), "p2");
    healthy.close().await;
    broken.close().await;
}

#[tokio::test]
async fn an_isolated_edge_loses_its_sessions_and_customer_routes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("network.json");
    let dead = |interface: &str| json!({"kind": "interface_down", "device": "pe1", "interface": interface});
    let faults = json!([dead("HundredGigE0/0/0/0"), dead("HundredGigE0/0/0/1")]);
    let base = network("healthy").canonicalize().unwrap();
    std::fs::write(&file, json!({"base": base, "faults": faults}).to_string()).unwrap();
    let connection = Connection::serve(network_inventory::server(Some(&file)).unwrap()).await;
    let bgp = about(&connection, "get_routing_info", "pe1").await;
    assert_eq!(one(&bgp["bgp"]["neighbors"], "neighbor_name", "rr1")["session_state"], "ACTIVE");
    let reflector = about(&connection, "get_routing_info", "rr1").await;
    let neighbor = one(&reflector["bgp"]["neighbors"], "neighbor_name", "pe1");
    assert_eq!(neighbor["session_state"], "ACTIVE");
    let others = one(&reflector["bgp"]["neighbors"], "neighbor_name", "pe3");
    assert_eq!(others["session_state"], "ESTABLISHED");
    for (device, expected) in [("pe1", 0), ("pe3", 2), ("pe4", 1)] {
        let vpn = about(&connection, "get_vpn_info", device).await;
        let targets = &one(&vpn["vrfs"], "name", "ACME")["import_route_targets"];
        assert_eq!(targets[0]["matching_routes"], expected, "{device}");
    }
    connection.close().await;
}

#[tokio::test]
async fn an_mtu_mismatch_breaks_only_the_adjacency() {
    let connection = open("mtu-mismatch").await;
    for (device, interface, far) in
        [("p3", "HundredGigE0/0/0/1", "p4"), ("p4", "HundredGigE0/0/0/1", "p3")]
    {
        let interfaces = about(&connection, "get_interface_info", device).await;
        assert_eq!(one(&interfaces["interfaces"], "name", interface)["oper_status"], "UP");
        let routing = about(&connection, "get_routing_info", device).await;
        let adjacency = one(&routing["isis"]["neighbors"], "neighbor", far);
        assert_eq!(adjacency["adjacency_state"], "INIT");
        assert!(about(&connection, "get_logs", device).await.to_string().contains("MTU mismatch"));
    }
    connection.close().await;
}

#[tokio::test]
async fn the_spanning_tree_follows_the_lowest_bridge() {
    let role = |shown: &Value, port: &str| {
        let ports = &shown["spanning_tree"]["ports"];
        one(ports, "port", port)["role"].as_str().unwrap().to_owned()
    };
    let (healthy, moved) = (open("campus").await, open("stp-root-moved").await);
    let designed = about(&healthy, "get_switching_info", "acc1").await;
    assert_eq!(role(&designed, "TenGigabitEthernet1/0/1"), "Root");
    assert_eq!(role(&designed, "TenGigabitEthernet1/0/2"), "Altn");
    let tree = &designed["spanning_tree"];
    assert_eq!(tree["root_bridge"], tree["expected_root_bridge"]);
    let shown = about(&moved, "get_switching_info", "acc2").await;
    assert_eq!(shown["spanning_tree"]["root_bridge"], "0 00a1.b2c3.0012");
    assert_eq!(role(&shown, "TenGigabitEthernet1/0/1"), "Desg");
    let core = about(&moved, "get_switching_info", "core1").await;
    assert_eq!(role(&core, "TenGigabitEthernet1/0/12"), "Root");
    healthy.close().await;
    moved.close().await;
}

#[tokio::test]
async fn saved_answers_take_the_place_of_the_simulation() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("network.json");
    let device =
        json!({"name": "r1", "role": "SWITCH", "loopback": "10.0.0.1", "model": "m", "os": "o"});
    let answers = json!({"r1": {"get_routing_info": "Neighbor ID", "get_vpn_info": [1], "get_logs": {"entries": []}}});
    let network = json!({
        "name": "n", "taken_at": "2026-11-20T08:30:00Z", "as_number": 1, "devices": [device], "answers": answers,
    });
    std::fs::write(&file, network.to_string()).unwrap();
    let connection = Connection::serve(network_inventory::server(Some(&file)).unwrap()).await;
    assert_eq!(about(&connection, "get_logs", "r1").await, json!({"entries": []}));
    for (tool, said) in [("get_routing_info", "Neighbor ID"), ("get_vpn_info", "[1]")] {
        let result = connection.call(tool, json!({"device_name": "r1"})).await.unwrap();
        assert_eq!((result.is_error, text(&result)), (Some(false), said.to_owned()));
    }
    let refused = refusal(&connection, "get_mpls_info", json!({"device_name": "r1"})).await;
    assert_eq!(refused, "no answer of get_mpls_info was saved for r1");
    connection.close().await;
}

#[tokio::test]
async fn logs_are_chosen_by_words_and_minutes() {
    let connection = open("bgp-session-down").await;
    let messages = |logs: &Value| {
        let entries = logs["entries"].as_array().unwrap().iter();
        entries.map(|entry| entry["mnemonic"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let logs = async |more: Value| {
        let mut arguments = json!({"device_name": "pe2"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        messages(&ok(&connection, "get_logs", arguments).await)
    };
    assert_eq!(logs(json!({})).await.len(), 4);
    assert_eq!(logs(json!({"keywords": "bgp, ospf"})).await, ["ROUTING-BGP-5-ADJCHANGE"]);
    assert_eq!(logs(json!({"minutes": 5})).await, ["INFRA-NTP-6-SYNC"]);
    assert_eq!(logs(json!({"keywords": "nothing"})).await, [""; 0]);
    connection.close().await;
}

#[tokio::test]
async fn an_error_names_the_argument_and_the_known_names() {
    let connection = open("healthy").await;
    let mut said = Vec::new();
    for (tool, arguments) in [
        ("get_system_info", json!({"device_name": "pe9"})),
        ("get_system_info", json!({"device_name": 7})),
        ("get_system_info", json!({})),
        ("get_devices", json!({"role": "P"})),
        ("get_routing_info", json!({"device_name": "p1", "protocol": "rip"})),
        ("get_interface_info", json!({"device_name": "p1", "interface": "eth0"})),
        ("get_vpn_info", json!({"device_name": "pe1", "vrf": "GLOBEX"})),
        ("get_vpn_info", json!({"device_name": "p1", "vrf": "ACME"})),
        ("get_logs", json!({"device_name": "p1", "minutes": 0})),
        ("get_logs", json!({"device_name": "p1", "keywords": ["bgp"]})),
    ] {
        said.push(refusal(&connection, tool, arguments).await);
    }
    insta::assert_snapshot!(said.join("\n"));
    connection.close().await;
}

#[test]
fn an_invalid_network_file_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let base = std::fs::read_to_string(network("healthy")).unwrap();
    std::fs::write(folder.path().join("healthy.json"), &base).unwrap();
    let whole: Value = serde_json::from_str(&base).unwrap();
    let said = |content: Value| {
        let file = folder.path().join("n.json");
        std::fs::write(&file, content.to_string()).unwrap();
        let error = network_inventory::server(Some(&file)).unwrap_err().to_string();
        let path = folder.path().display().to_string();
        assert!(error.contains("is invalid: "), "{error}");
        error.replace(&path, "").split(": ").skip(1).collect::<Vec<_>>().join(": ")
    };
    let fault = |fault: Value| json!({"base": "healthy.json", "faults": [fault]});
    let edited = |pointer: &str, value: Value| {
        let mut edited = whole.clone();
        *edited.pointer_mut(pointer).unwrap() = value;
        edited
    };
    let all = [
        said(json!({})),
        said(json!("x")),
        said(edited("/devices/0/role", json!("CE"))),
        said(edited("/devices/0/name", json!("p 1"))),
        said(edited("/devices/0/name", json!("p2"))),
        said(edited("/links/0/a/0", json!("p9"))),
        said(edited("/links/0/subnet", json!("10.0.1.1/31"))),
        said(edited("/links/0/a/1", json!("HundredGigE0/0/0/1"))),
        said(fault(json!({"kind": "meteor", "device": "p1"}))),
        said(fault(json!({"kind": "interface_down", "device": "p1", "interface": "eth0"}))),
        said(fault(
            json!({"kind": "bgp_session_down", "device": "pe1", "neighbor": "x", "reason": ""}),
        )),
        said(fault(json!({"kind": "ldp_session_down", "device": "p1", "neighbor": "p4"}))),
        said(fault(
            json!({"kind": "route_target", "device": "p1", "vrf": "ACME", "import_route_targets": []}),
        )),
        said(fault(json!({"kind": "high_cpu", "device": "p1", "percent": 101, "process": "x"}))),
        said(fault(
            json!({"kind": "ospf_area", "device": "p1", "interface": "HundredGigE0/0/0/0", "area": "0.0.0.1"}),
        )),
        said(fault(json!({"kind": "bridge_priority", "device": "p1", "priority": 0}))),
        said(fault(json!({"kind": "name_server", "address": "10.9.9.9", "rcode": "SERVFAIL"}))),
    ];
    insta::assert_snapshot!(all.join("\n"));
    let nowhere = network_inventory::server(Some(Path::new("/nonexistent"))).unwrap_err();
    assert_eq!(nowhere.to_string(), "cannot read the inventory /nonexistent");
}

#[test]
fn every_bundled_network_is_valid() {
    network_inventory::server(None).unwrap();
    let folders = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../networks"));
    let files = folders.unwrap().map(|entry| entry.unwrap().path().join("network.json"));
    let files: Vec<PathBuf> = files.filter(|file| file.is_file()).collect();
    assert_eq!(files.len(), 22);
    for file in files {
        network_inventory::server(Some(&file)).unwrap();
    }
}
