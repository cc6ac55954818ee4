//! Folders with missing, wrong or hostile files. One bad file fails only its tools.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Copy, FUNCTION, answer, open};

const POLICY: &str = "role/get-role-policy/inventory-sync-access.json";

/// The tools' outcomes after a change.
async fn after(change: impl FnOnce(&Copy)) -> String {
    let copy = Copy::new();
    change(&copy);
    copy.outcomes().await
}

#[tokio::test]
async fn a_missing_file_is_a_refused_call() {
    let mut outcomes = String::new();
    for file in [
        "filter-log-events.json",
        "get-function-configuration.json",
        "get-function-concurrency.json",
        "role/get-role.json",
        "role/list-role-policies.json",
        POLICY,
        "role/list-attached-role-policies.json",
    ] {
        let tools = after(|copy| copy.remove(file)).await;
        outcomes.push_str(&format!("without {file}\n{tools}\n"));
    }
    insta::assert_snapshot!(outcomes);
}

#[tokio::test]
async fn every_refused_call_is_named() {
    let outcomes = after(|copy| {
        fs::remove_dir_all(copy.file("role")).unwrap();
        copy.remove("get-function-configuration.json");
        copy.remove("get-function-concurrency.json");
    })
    .await;
    insta::assert_snapshot!(outcomes, @r#"
    get_iam_state: iam:GetRole failed: functions/inventory-sync/role/get-role.json: no such file
    iam:ListRolePolicies failed: functions/inventory-sync/role/list-role-policies.json: no such file
    iam:ListAttachedRolePolicies failed: functions/inventory-sync/role/list-attached-role-policies.json: no such file
    get_lambda_config: lambda:GetFunctionConfiguration failed: functions/inventory-sync/get-function-configuration.json: no such file
    lambda:GetFunctionConcurrency failed: functions/inventory-sync/get-function-concurrency.json: no such file
    get_recent_logs: answered
    "#);
}

#[tokio::test]
async fn invalid_json_is_refused() {
    let outcomes = after(|copy| {
        copy.write("filter-log-events.json", "{\"events\": [{\"timestamp\": 1790000000000,");
        copy.write("get-function-configuration.json", b"\xff\xfe{\0}\0");
        copy.write("get-function-concurrency.json", "");
        copy.write("role/get-role.json", "<html>");
        copy.write(POLICY, "null");
    })
    .await;
    insta::assert_snapshot!(outcomes, @r"
    get_iam_state: answered in part: iam:GetRole failed: functions/inventory-sync/role/get-role.json: not the output of this call: a JSON object was expected
    iam:GetRolePolicy failed: functions/inventory-sync/role/get-role-policy/inventory-sync-access.json: not the output of this call: a JSON object was expected: policies may be missing
    get_lambda_config: answered in part: lambda:GetFunctionConfiguration failed: functions/inventory-sync/get-function-configuration.json: not the output of this call: missing field `FunctionName` at line 1 column 2: what it would show is unknown
    get_recent_logs: logs:FilterLogEvents failed: functions/inventory-sync/filter-log-events.json: not the output of this call: EOF while parsing a value at line 1 column 40
    ");
}

#[tokio::test]
async fn a_wrong_type_is_refused() {
    let outcomes = after(|copy| {
        copy.edit("filter-log-events.json", |file| file["events"][3]["timestamp"] = json!("noon"));
        copy.edit("get-function-configuration.json", |file| file["MemorySize"] = json!("768"));
        copy.edit("get-function-concurrency.json", |file| {
            file.insert("ReservedConcurrentExecutions".into(), json!(-1));
        });
        copy.edit("role/list-attached-role-policies.json", |file| {
            file["AttachedPolicies"] = json!(["AWSLambdaBasicExecutionRole"]);
        });
        copy.edit(POLICY, |file| file["PolicyDocument"] = json!("%7B%22Version%22%3A"));
    })
    .await;
    insta::assert_snapshot!(outcomes, @r"
    get_iam_state: answered in part: iam:ListAttachedRolePolicies failed: functions/inventory-sync/role/list-attached-role-policies.json: not the output of this call: expected struct AttachedPolicy at line 1 column 50
    iam:GetRolePolicy failed: functions/inventory-sync/role/get-role-policy/inventory-sync-access.json: not the output of this call: expected a map at line 1 column 109: policies may be missing
    get_lambda_config: lambda:GetFunctionConfiguration failed: functions/inventory-sync/get-function-configuration.json: not the output of this call: expected u32 at line 1 column 356
    lambda:GetFunctionConcurrency failed: functions/inventory-sync/get-function-concurrency.json: not the output of this call: expected u32 at line 1 column 34
    get_recent_logs: answered in part: 1 of 147 events are unreadable (not the output of this call: expected i64): events may be missing
    ");
}

#[tokio::test]
async fn an_error_of_the_aws_cli_is_quoted() {
    let outcomes = after(|copy| {
        copy.write(
            "filter-log-events.json",
            "\nAn error occurred (AccessDeniedException) when calling the FilterLogEvents \
             operation: User: arn:aws:iam::210987654321:user/dana is not authorized to perform: \
             logs:FilterLogEvents on resource: arn:aws:logs:us-west-2:210987654321:log-group:\
             /aws/lambda/inventory-sync:log-stream: because no identity-based policy allows the \
             logs:FilterLogEvents action\n",
        );
    })
    .await;
    insta::assert_snapshot!(outcomes, @r#"
    get_iam_state: answered
    get_lambda_config: answered
    get_recent_logs: logs:FilterLogEvents failed: functions/inventory-sync/filter-log-events.json: An error occurred (AccessDeniedException) when calling the FilterLogEvents operation: User: arn:aws:iam::210987654321:user/dana is not authorized to perform: logs:FilterLogEvents on resource: arn:aws:logs:us-west-2:210987654321:log-group:/aws/lambda/inventory-sync:log-stream: because no identity-based policy allows the logs:FilterLogEvents action
    "#);
}

#[tokio::test]
async fn oversized_files_are_refused() {
    let outcomes = after(|copy| {
        let message = "x".repeat(9 * 1024 * 1024);
        let event = json!({ "timestamp": 1_790_000_000_000_u64, "message": message });
        copy.write("filter-log-events.json", json!({ "events": [event] }).to_string());
        copy.edit("get-function-configuration.json", |file| {
            file["Description"] = Value::String("x".repeat(64 * 1024));
        });
        let names: Vec<String> = (0..51).map(|number| format!("policy-{number}")).collect();
        copy.write("role/list-role-policies.json", json!({ "PolicyNames": names }).to_string());
    })
    .await;
    insta::assert_snapshot!(outcomes, @r"
    get_iam_state: answered in part: iam:ListRolePolicies failed: functions/inventory-sync/role/list-role-policies.json: not the output of this call: it lists 51 policies, more than 50: policies may be missing
    get_lambda_config: answered in part: lambda:GetFunctionConfiguration failed: functions/inventory-sync/get-function-configuration.json: larger than 65536 bytes: what it would show is unknown
    get_recent_logs: logs:FilterLogEvents failed: functions/inventory-sync/filter-log-events.json: larger than 8388608 bytes
    ");
}

#[tokio::test]
async fn another_functions_answer_is_refused() {
    let outcomes = after(|copy| {
        copy.edit("get-function-configuration.json", |file| file["FunctionName"] = json!("other"));
        copy.edit(POLICY, |file| file["PolicyName"] = json!("other-access"));
    })
    .await;
    insta::assert_snapshot!(outcomes, @r#"
    get_iam_state: answered in part: iam:GetRolePolicy failed: functions/inventory-sync/role/get-role-policy/inventory-sync-access.json: not the output of this call: it is about "other-access", not "inventory-sync-access": policies may be missing
    get_lambda_config: answered in part: lambda:GetFunctionConfiguration failed: functions/inventory-sync/get-function-configuration.json: not the output of this call: it is about "other", not "inventory-sync": what it would show is unknown
    get_recent_logs: answered
    "#);
}

#[tokio::test]
async fn a_policy_name_is_never_a_path() {
    let copy = Copy::new();
    for name in ["../get-role", "/etc/hostname", "a/b", "", ".."] {
        copy.write("role/list-role-policies.json", json!({ "PolicyNames": [name] }).to_string());
        let connection = open(copy.folder()).await;
        let state = answer(&connection, "get_iam_state", FUNCTION).await;
        assert_eq!(state["inline_policies"], json!({}), "{name:?}");
        let refusal = state["error"].as_str().unwrap();
        assert!(refusal.starts_with("iam:"), "{name:?}: {refusal}");
        assert!(!refusal.contains("not the output of this call: missing field"), "{refusal}");
        connection.close().await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_does_not_lead_out_of_the_folder() {
    use std::os::unix::fs::symlink;

    let outside = Copy::new();
    let outcomes = after(|copy| {
        for file in ["filter-log-events.json", POLICY] {
            copy.remove(file);
            symlink(outside.file(file), copy.file(file)).unwrap();
        }
        copy.remove("get-function-concurrency.json");
        symlink("nowhere.json", copy.file("get-function-concurrency.json")).unwrap();
    })
    .await;
    insta::assert_snapshot!(outcomes, @r"
    get_iam_state: answered in part: iam:GetRolePolicy failed: functions/inventory-sync/role/get-role-policy/inventory-sync-access.json: the path leads out of the incident folder: policies may be missing
    get_lambda_config: answered in part: lambda:GetFunctionConcurrency failed: functions/inventory-sync/get-function-concurrency.json: no such file: what it would show is unknown
    get_recent_logs: logs:FilterLogEvents failed: functions/inventory-sync/filter-log-events.json: the path leads out of the incident folder
    ");

    let outcomes = after(|copy| {
        let function = copy.file("");
        fs::remove_dir_all(&function).unwrap();
        symlink(outside.file(""), Path::new(function.to_str().unwrap().trim_end_matches('/')))
            .unwrap();
    })
    .await;
    assert_eq!(
        outcomes.matches("the path leads out of the incident folder").count(),
        6,
        "{outcomes}"
    );
    assert!(!outcomes.contains("answered"), "{outcomes}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_within_the_folder_is_followed() {
    use std::os::unix::fs::symlink;

    let outcomes = after(|copy| {
        fs::rename(copy.file("filter-log-events.json"), copy.folder().join("logs.json")).unwrap();
        symlink("../../logs.json", copy.file("filter-log-events.json")).unwrap();
    })
    .await;
    assert_eq!(outcomes.matches("answered").count(), 3, "{outcomes}");
}

#[cfg(unix)]
#[tokio::test]
async fn only_regular_files_are_opened() {
    let outcomes = after(|copy| {
        copy.remove("filter-log-events.json");
        fs::create_dir(copy.file("filter-log-events.json")).unwrap();
        copy.remove("get-function-concurrency.json");
        // Opening a pipe without a writer would block.
        let made = std::process::Command::new("mkfifo")
            .arg(copy.file("get-function-concurrency.json"))
            .status()
            .unwrap();
        assert!(made.success());
    })
    .await;
    insta::assert_snapshot!(outcomes, @r"
    get_iam_state: answered
    get_lambda_config: answered in part: lambda:GetFunctionConcurrency failed: functions/inventory-sync/get-function-concurrency.json: not a regular file: what it would show is unknown
    get_recent_logs: logs:FilterLogEvents failed: functions/inventory-sync/filter-log-events.json: not a regular file
    ");
}

#[tokio::test]
async fn the_logs_do_not_need_the_configuration() {
    let copy = Copy::new();
    copy.write("get-function-configuration.json", "{");
    let connection = open(copy.folder()).await;
    let logs = answer(&connection, "get_recent_logs", FUNCTION).await;
    assert_eq!(logs["log_group"], "/aws/lambda/inventory-sync");
    connection.close().await;

    copy.write(
        "get-function-configuration.json",
        json!({ "LoggingConfig": { "LogGroup": "/fulfilment/sync" } }).to_string(),
    );
    let connection = open(copy.folder()).await;
    let logs = answer(&connection, "get_recent_logs", FUNCTION).await;
    assert_eq!(logs["log_group"], "/fulfilment/sync");
    connection.close().await;
}
