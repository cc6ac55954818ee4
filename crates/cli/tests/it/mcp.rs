//! The bundled MCP servers, started and listed by a client.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};

use crate::harness::{DEADLINE, daybook, incident, run_in};

#[test]
fn the_tools_of_a_server_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run_in(folder.path(), &["tools", "aws-diagnostics"]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    insta::assert_snapshot!(ran.stdout);
    let tools = run_in(folder.path(), &["tools", "aws-diagnostics", "--json"]).json();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let expected = [
        "get_iam_state",
        "get_lambda_config",
        "get_recent_changes",
        "get_recent_logs",
        "get_security_group_rules",
    ];
    assert_eq!(names, expected);
    assert!(tools.iter().all(|tool| tool["inputSchema"].is_object()));
    let tools = run_in(folder.path(), &["tools", "pk-sim", "--json"]).json();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"run_simulation") && names.len() == 7, "{names:?}");
}

#[tokio::test]
async fn a_client_reaches_a_server_over_stdio() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = daybook(folder.path());
    command.args(["mcp", "aws-diagnostics", "--snapshot"]).arg(incident("network-blocked"));
    let transport = TokioChildProcess::new(tokio::process::Command::from(command)).unwrap();
    let talk = async {
        let client = ().serve(transport).await.unwrap();
        assert_eq!(
            client.peer_info().unwrap().server_info.as_ref().unwrap().name,
            "aws-diagnostics"
        );
        let arguments = json!({"lambda_name": "inventory-sync"}).as_object().unwrap().clone();
        let call = CallToolRequestParams::new("get_lambda_config").with_arguments(arguments);
        let answer = client.call_tool(call).await.unwrap().structured_content.unwrap();
        assert_eq!(answer["FunctionName"], "inventory-sync");
        client.cancel().await.unwrap();
    };
    tokio::time::timeout(DEADLINE, talk).await.unwrap();
}

/// One call of a tool, as one request.
async fn post(url: &str, tool: &str, arguments: Value) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}});
    let request = reqwest::Client::new().post(url).timeout(DEADLINE).json(&call);
    let accept = "application/json, text/event-stream";
    let answer = request.header("accept", accept).send().await.unwrap();
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    answer["result"]["structuredContent"].clone()
}

#[tokio::test]
async fn a_simulation_survives_requests_and_a_server_restart() {
    let folder = tempfile::tempdir().unwrap();
    let one = json!({"simulation_id": "s"});
    let mut ran = Vec::new();
    for server in 0..2 {
        let mut command = daybook(folder.path());
        command.args(["mcp", "pk-sim", "--state", "kept", "--http", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let url = ready.strip_prefix("ready ").unwrap_or_else(|| panic!("{ready:?}")).trim();
        if server == 0 {
            let load = json!({"model_path": "vancomycin-infusion", "simulation_id": "s"});
            post(url, "load_simulation", load).await;
            ran.push(post(url, "run_simulation", one.clone()).await["summary"].clone());
        }
        ran.push(post(url, "get_results", one.clone()).await["summary"].clone());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(ran[0]["cmax"]["value"].as_f64().unwrap() > 40.0, "{}", ran[0]);
    assert!(ran.iter().all(|summary| *summary == ran[0]), "{ran:#?}");
}

#[test]
fn a_missing_models_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run_in(folder.path(), &["mcp", "pk-sim", "--models", "nowhere"]);
    assert_eq!(ran.exit, 2, "{ran:#?}");
    assert!(ran.stderr.contains("cannot read nowhere"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: --models names a folder"), "{}", ran.stderr);
}

#[test]
fn a_client_that_disconnects_at_once_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run_in(folder.path(), &["mcp", "aws-diagnostics", "--snapshot", "."]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
}

#[test]
fn a_missing_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run_in(folder.path(), &["mcp", "aws-diagnostics", "--snapshot", "nowhere"]);
    assert_eq!(ran.exit, 2, "{ran:#?}");
    assert!(ran.stderr.contains("cannot open the incident folder nowhere"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: --snapshot"), "{}", ran.stderr);
}
