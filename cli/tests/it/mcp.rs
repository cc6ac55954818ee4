//! Our MCP servers, started and listed the way any client would.

use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::TokioChildProcess;
use serde_json::json;

use crate::harness::{DEADLINE, daybook, incident, run_in};

#[test]
fn the_tools_of_a_server_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run_in(folder.path(), &["tools", "aws-diagnostics"]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    insta::assert_snapshot!(ran.stdout);
    let tools = run_in(folder.path(), &["tools", "aws-diagnostics", "--json"]).json();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["get_iam_state", "get_lambda_config", "get_recent_logs"]);
    assert!(tools.iter().all(|tool| tool["inputSchema"].is_object()));
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

#[test]
fn a_client_that_leaves_at_once_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run_in(folder.path(), &["mcp", "aws-diagnostics", "--snapshot", "."]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run_in(folder.path(), &["mcp", "aws-diagnostics", "--snapshot", "nowhere"]);
    assert_eq!(ran.exit, 2, "{ran:#?}");
    assert!(ran.stderr.contains("cannot open the incident folder nowhere"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: --snapshot"), "{}", ran.stderr);
}
