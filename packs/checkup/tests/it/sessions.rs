//! Sessions of the checkup agent.

use graph::agent::Settings;
use graph::definition::Finish;
use graph::effect::{CATALOGUE, ToolCall};
use graph::outcome::{Brought, Failure};
use graph::testing::{self, TestSession, World};
use serde_json::{Value, json};

fn works(call: &ToolCall) -> Brought {
    Brought::Ok(match call.tool.as_str() {
        "configured_servers" => json!({"servers": ["aws-diagnostics", "inventory"]}),
        "journal_probe" => json!({"detail": "wrote 1 record and read it back"}),
        "clock_skew" => json!({"skew_ms": -12}),
        "model_reachable" => json!({"detail": format!("{} answered", call.arguments["model"])}),
        CATALOGUE => json!({"tools": [
            {"name": "a", "description": "", "input_schema": {}},
            {"name": "b", "input_schema": {}}]}),
        other => panic!("not a built-in tool: {other}"),
    })
}

fn run(settings: Settings, tools: impl FnMut(&ToolCall) -> Brought) -> Finish {
    let agent = checkup::agent();
    TestSession::start(agent, json!({}), settings).unwrap().drive(&mut World::new(tools))
}

/// The checks without their durations.
fn checks(finish: &Finish) -> Vec<String> {
    let (Finish::Completed(result) | Finish::Failed { result, .. }) = finish;
    let checks = result["checks"].as_array().unwrap();
    let text = |check: &Value| {
        assert!(check["ms"].is_u64());
        format!("{} {}: {}", check["ok"], check["name"], check["detail"])
    };
    checks.iter().map(text).collect()
}

#[test]
fn a_deployment_that_works_is_said_to() {
    let finish = run(Settings::default(), works);
    assert!(matches!(finish, Finish::Completed(_)));
    insta::assert_snapshot!(checks(&finish).join("\n"), @r#"
        true "journal_probe": "wrote 1 record and read it back"
        true "clock_skew": "-12 ms apart from the journal's clock"
        true "mcp:aws-diagnostics": "2 tools: a, b"
        true "mcp:inventory": "2 tools: a, b"
        "#);
}

#[test]
fn a_model_is_tried_if_one_is_named() {
    let named = |model: &str| Settings { model: Some(model.to_owned()), ..Settings::default() };
    assert!(checks(&run(named("openai:x"), works)).iter().any(|c| c.contains("model_reachable")));
    assert!(!checks(&run(named("policy"), works)).iter().any(|c| c.contains("model_reachable")));
}

#[test]
fn failures_are_named_and_the_rest_is_still_reported() {
    let finish = run(Settings::default(), |call| match (&call.server, call.tool.as_str()) {
        (None, "clock_skew") => Brought::Ok(json!({"skew_ms": 61_000})),
        (None, "journal_probe") => Brought::Error("no table".to_owned()),
        (Some(server), _) if server == "inventory" => {
            Brought::Failure(Failure::refused("mcp_connection", "no such command"))
        }
        _ => works(call),
    });
    let Finish::Failed { error, category, .. } = &finish else { panic!("it works") };
    assert_eq!(category, "checkup");
    insta::assert_snapshot!(format!("{error}\n{}", checks(&finish).join("\n")), @r#"
        CheckFailed: journal_probe, clock_skew, mcp:inventory - no table
        false "journal_probe": "no table"
        false "clock_skew": "61000 ms apart from the journal's clock"
        true "mcp:aws-diagnostics": "2 tools: a, b"
        false "mcp:inventory": "mcp_connection: no such command"
        "#);
}

#[test]
fn an_unknown_server_does_not_stop_the_other_checks() {
    let finish = run(Settings::default(), |call| match call.tool.as_str() {
        "configured_servers" => Brought::Error("mcp.json: not JSON".to_owned()),
        "clock_skew" => Brought::Ok(json!("soon")),
        _ => works(call),
    });
    insta::assert_snapshot!(checks(&finish).join("\n"), @r#"
        false "configured_servers": "mcp.json: not JSON"
        true "journal_probe": "wrote 1 record and read it back"
        false "clock_skew": "invalid answer: \"soon\""
        "#);
}

#[test]
fn an_input_is_refused_by_its_field() {
    let agent = checkup::agent();
    let refused = |input| agent.start(&input, &Settings::default()).err().unwrap().to_string();
    assert_eq!(
        refused(json!({"lambda_name": "f"})),
        "input field `lambda_name`: expected no fields: checkup takes no input"
    );
    assert_eq!(refused(json!([])), "input field `input`: expected a JSON object");
}

#[test]
fn checkup_resumes_from_every_prefix() {
    let agent = checkup::agent();
    let steps = testing::every_prefix_by(
        agent,
        &json!({}),
        &Settings::default(),
        || World::new(works),
        checks,
    );
    assert_eq!(steps.len(), 1 + 1 + 4 + 1);
}
