//! `daybook mcp aws-diagnostics` over an account: results, permissions and recordings.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::account::{Account, FUNCTION, Server, TOOLS, allowed};
use crate::harness::{daybook, free_endpoint, incident, run, run_in};

/// The files below a folder, by their paths in it.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found
}

#[tokio::test]
async fn a_recorded_folder_answers_like_its_account() {
    let Some(mut account) = Account::open() else { return };
    let group = account.ask(json!(["function", FUNCTION]));
    account.ask(json!(["reserve", FUNCTION, 7]));
    let lines: Vec<String> = (0..120).map(|line| format!("line {line}: é \u{7}")).collect();
    account.ask(json!(
        [vec![json!("log"), json!(FUNCTION)], lines.iter().map(|line| json!(line)).collect()]
            .concat()
    ));
    let folder = tempfile::tempdir().unwrap();

    let live = account.server(folder.path(), &[]).await;
    let answers = live.answers(FUNCTION).await;
    live.close().await;
    let [Ok(iam), Ok(config), Ok(logs)] = &answers[..] else { panic!("{answers:#?}") };
    assert_eq!(iam["role_name"], "data-processor-role");
    let statement = &iam["inline_policies"]["data-processor-access"]["Statement"][0];
    assert_eq!(statement["Action"], json!(["s3:GetObject", "s3:ListBucket"]));
    assert_eq!(iam["attached_policies"].as_array().unwrap().len(), 1);
    assert_eq!(config["ReservedConcurrentExecutions"], 7);
    assert_eq!(config["VpcConfig"]["SecurityGroupIds"], json!([group]));
    assert_eq!(logs["log_group"], "/aws/lambda/data-processor");
    let events = logs["events"].as_array().unwrap();
    assert_eq!((events.len(), &events[99]["message"]), (100, &json!("line 119: é \u{7}")));

    let recording = account.server(folder.path(), &["--record", "tonight"]).await;
    assert_eq!(recording.answers(FUNCTION).await, answers);
    recording.close().await;
    assert_eq!(
        files(&folder.path().join("tonight")),
        [
            "functions/data-processor/describe-security-group-rules.json",
            "functions/data-processor/filter-log-events.json",
            "functions/data-processor/get-function-concurrency.json",
            "functions/data-processor/get-function-configuration.json",
            "functions/data-processor/role/get-role-policy/data-processor-access.json",
            "functions/data-processor/role/get-role-policy/data-processor-metrics.json",
            "functions/data-processor/role/get-role.json",
            "functions/data-processor/role/list-attached-role-policies.json",
            "functions/data-processor/role/list-role-policies.json",
            "incident.json",
        ]
        .map(str::to_owned)
        .into()
    );

    let mut saved = daybook(folder.path());
    saved.args(["mcp", "aws-diagnostics", "--snapshot", "tonight"]);
    let saved = Server::start(saved).await;
    assert_eq!(saved.answers(FUNCTION).await, answers);
    saved.close().await;
}

#[tokio::test]
async fn the_documented_policy_allows_what_is_called_and_no_more() {
    let Some(mut account) = Account::open() else { return };
    account.ask(json!(["function", FUNCTION]));
    let folder = tempfile::tempdir().unwrap();
    let server = account.server(folder.path(), &[]).await;
    for answer in server.answers(FUNCTION).await {
        answer.unwrap();
    }
    // The emulator has no CloudTrail, and only the tools of changes and groups make these calls.
    let of_others = ["cloudtrail:LookupEvents", "ec2:DescribeSecurityGroupRules"];
    let mut actions = allowed("aws-diagnostics.json");
    actions.retain(|action| !of_others.contains(&action.as_str()));
    assert_eq!(account.ask(json!(["calls"])), json!(actions));
    for action in actions {
        account.ask(json!(["refuse", action]));
        let answers = server.answers(FUNCTION).await;
        let named = format!("{action} failed: An error occurred (AccessDenied");
        // A part of an answer survives the refusal of another.
        let refusal = |answer: &Result<Value, String>| match answer {
            Ok(answer) => answer["error"].as_str().map(str::to_owned),
            Err(refusal) => Some(refusal.clone()),
        };
        let refusals: Vec<String> = answers.iter().filter_map(refusal).collect();
        assert!(!refusals.is_empty(), "{action}: {answers:#?}");
        for refusal in refusals {
            assert!(refusal.starts_with(&named), "{refusal}");
            assert_eq!(refusal.lines().count(), 1, "each refused call is named once: {refusal}");
        }
    }
    server.close().await;
}

#[tokio::test]
async fn a_refusal_is_recorded_in_the_words_of_the_aws_cli() {
    let Some(mut account) = Account::open() else { return };
    account.ask(json!(["function", FUNCTION]));
    account.ask(json!(["refuse", "logs:FilterLogEvents"]));
    let folder = tempfile::tempdir().unwrap();
    let server = account.server(folder.path(), &["--record", "tonight"]).await;
    let refusal = server.call("get_recent_logs", FUNCTION).await.unwrap_err();
    server.call("get_iam_state", FUNCTION).await.unwrap();
    server.close().await;
    let file = "functions/data-processor/filter-log-events.json";
    let saved = fs::read_to_string(folder.path().join("tonight").join(file)).unwrap();
    assert_eq!(
        saved.trim(),
        "An error occurred (AccessDeniedException) when calling the FilterLogEvents operation: \
         User: arn:aws:iam::123456789012:user/reader is not authorized to perform: \
         logs:FilterLogEvents"
    );
    assert_eq!(refusal, format!("logs:FilterLogEvents failed: {file}: {}", saved.trim()));
}

#[tokio::test]
async fn a_recorded_answer_is_reused_and_never_overwritten() {
    let Some(mut account) = Account::open() else { return };
    account.ask(json!(["function", FUNCTION]));
    let folder = tempfile::tempdir().unwrap();
    for answered in [Ok(json!(null)), Ok(json!(null)), Err(())] {
        let server = account.server(folder.path(), &["--record", "tonight"]).await;
        let function = if answered.is_ok() { FUNCTION } else { "nobody" };
        let config = server.call("get_lambda_config", function).await;
        server.close().await;
        match answered {
            Ok(reserved) => {
                let config = config.unwrap();
                assert_eq!(config["ReservedConcurrentExecutions"], reserved);
                account.ask(json!(["reserve", FUNCTION, 1]));
            }
            Err(()) => assert!(config.unwrap_err().contains("ResourceNotFoundException")),
        }
    }
    let functions = fs::read_dir(folder.path().join("tonight/functions")).unwrap();
    assert_eq!(functions.count(), 1, "what does not exist is not recorded");
}

#[tokio::test]
async fn an_unanswered_call_is_named_and_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = daybook(folder.path());
    command.env("AWS_ENDPOINT_URL", free_endpoint()).args(["mcp", "aws-diagnostics"]);
    command.args(["--record", "tonight"]);
    let server = Server::start(command).await;
    for tool in TOOLS {
        let refusal = server.call(tool, FUNCTION).await.unwrap_err();
        let said = "lambda:GetFunctionConfiguration failed: no answer to GetFunctionConfiguration";
        assert!(refusal.starts_with(said), "{refusal}");
    }
    server.close().await;
    assert_eq!(files(&folder.path().join("tonight")), BTreeSet::new());
}

#[test]
fn a_folder_that_is_something_else_is_not_recorded_to() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let mut command = daybook(folder.path());
    command.env("AWS_ENDPOINT_URL", "http://127.0.0.1:9");
    let ran = run(command.args(["mcp", "aws-diagnostics", "--record", "."]));
    assert_eq!(ran.exit, 2, "{ran:#?}");
    assert!(ran.stderr.contains("it holds notes.txt"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: --record"), "{}", ran.stderr);
    assert_eq!(files(folder.path()), ["notes.txt".to_owned()].into());
}

#[test]
fn an_account_is_called_only_with_target_aws() {
    let folder = tempfile::tempdir().unwrap();
    for endpoint in ["", "https://lambda.us-east-1.amazonaws.com", "http://127.0.0.1.example.com"] {
        let mut command = daybook(folder.path());
        command.env("AWS_ENDPOINT_URL", endpoint);
        let ran = run(command.args(["mcp", "aws-diagnostics"]));
        assert_eq!(ran.exit, 64, "{endpoint}: {ran:#?}");
        assert!(ran.stderr.contains("--target aws"), "{endpoint}: {}", ran.stderr);
    }
    let snapshot = incident("network-blocked");
    let both = ["--snapshot", snapshot.to_str().unwrap(), "--record", "x"];
    let ran = run_in(folder.path(), &[&["mcp", "aws-diagnostics"][..], &both].concat());
    assert_eq!(ran.exit, 64, "{ran:#?}");
}
