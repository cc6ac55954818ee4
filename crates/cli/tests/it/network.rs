//! The network agent over bundled networks, and over an independent server (PyPI `mcp`) configured with
//! `DAYBOOK_MCP_SERVERS`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Ran, daybook, free_endpoint, run, run_in, tool};

fn network(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packs/network/networks")
        .join(name)
        .canonicalize()
        .unwrap()
}

fn trigger(command: &mut Command, arguments: &[&str]) -> Ran {
    let endpoint = free_endpoint();
    let before = ["--endpoint", &endpoint, "--data", "data"];
    let after = ["trigger", "--wait", "--with-stack"];
    run(command.args(before).args(after).args(arguments))
}

fn result(ran: &Ran) -> Value {
    assert_eq!(ran.exit, 0, "{ran:#?}");
    ran.json().pop().unwrap()["result"].clone()
}

#[test]
fn a_bundled_network_is_checked_with_a_readable_report() {
    let folder = tempfile::tempdir().unwrap();
    let input = network("wrong-route-target");
    let input = ["--input", input.to_str().unwrap()];
    let ran = trigger(&mut daybook(folder.path()), &input);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    let report = ran.stdout.split_once("\nReport  ").unwrap_or_else(|| panic!("{ran:#?}")).1;
    insta::assert_snapshot!(report);
}

#[test]
fn the_bundled_network_answers_when_no_other_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let detail = json!({"agent": "network", "input": {"query": "Review route reflector rr2"}});
    let arguments = ["--json", "--detail", &detail.to_string()];
    let result = result(&trigger(&mut daybook(folder.path()), &arguments));
    assert_eq!(result["summary"], json!(["rr2: no problems found."]));
}

#[test]
fn an_unknown_device_fails_with_the_known_devices() {
    let folder = tempfile::tempdir().unwrap();
    let detail = json!({"agent": "network", "input": {"query": "Check BGP on pe9"}});
    let ran = trigger(&mut daybook(folder.path()), &["--detail", &detail.to_string()]);
    assert_eq!(ran.exit, 1, "{ran:#?}");
    let said = "unknown device `pe9`; known devices: p1, p2, p3, p4, pe1, pe2, pe3, pe4, rr1, rr2";
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&ran.stdout).contains(said), "{}", ran.stdout);
}

#[test]
fn a_foreign_server_is_used_and_its_gaps_are_reported() {
    let Some(python) = tool("DAYBOOK_TEST_MCP") else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/mcp-server.py");
    let reads = ["get_devices", "get_bgp_summary", "get_interface_status", "query_logs"];
    let server = json!({"command": python, "args": [script], "reads": reads});
    let servers = json!({"mcpServers": {"gNMIBuddy": server}});
    std::fs::write(folder.path().join("servers.json"), servers.to_string()).unwrap();
    let mut command = daybook(folder.path());
    command.env("DAYBOOK_MCP_SERVERS", "servers.json").env("MCP_INIT_TIMEOUT", "60");
    let detail = json!({"agent": "network", "input": {"query": "Review PE router ams-pe-2"}});
    let result = result(&trigger(&mut command, &["--json", "--detail", &detail.to_string()]));
    assert_eq!(result["device_name"], "ams-pe-2");
    let findings = result["findings"].as_array().unwrap().iter();
    let findings: Vec<_> = findings.map(|found| found["finding"].as_str().unwrap()).collect();
    assert_eq!(findings, ["peers 10.0.0.1 is Idle (closed by the far end)"]);
    let limitations = result["tool_limitations_report"].as_str().unwrap();
    for said in [
        "tools that may write are not used: reboot, fetch_labels, query_logs",
        "get_interface_status failed: ",
        "step 4: no available tool covers mpls",
        "step 6: no available tool covers log",
    ] {
        assert!(limitations.contains(said), "{said}: {limitations}");
    }
    assert_eq!(result["current_retries"], 2);
}

#[test]
fn invalid_plans_stop_the_stack_at_start() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("check_bgp_neighbors.json"), "{}").unwrap();
    let ran = run_in(folder.path(), &["dev", "--listen", "127.0.0.1:0", "--plans", "."]);
    assert_eq!(ran.exit, 2, "{ran:#?}");
    assert!(
        ran.stderr.contains("check_bgp_neighbors.json is not a valid plan: missing field"),
        "{ran:#?}"
    );
    assert!(ran.stderr.contains("hint: --plans names a folder of plans"), "{ran:#?}");
}
