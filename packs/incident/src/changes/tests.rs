use serde_json::{Value, json};

use super::super::signatures::TIMEOUT;
use super::super::tool::Observation;
use super::*;

fn change(time: &str, name: &str, user: &str, request: &Value) -> Value {
    json!({"time": format!("2026-05-04T{time}Z"), "name": name, "user": user, "resources": [],
        "request": request.to_string()})
}

/// Logs with a success at 10:00, a failure at 10:30 and one at 11:00.
fn seen(changes: &[Value]) -> Observations {
    let events = json!([
        {"timestamp": "2026-05-04T10:00:00.000Z", "message": "START RequestId: aaaa Version: $LATEST"},
        {"timestamp": "2026-05-04T10:00:01.000Z", "message": "REPORT RequestId: aaaa\tDuration: 1 ms"},
        {"timestamp": "2026-05-04T10:30:00.000Z", "message": "[ERROR] X: no"},
        {"timestamp": "2026-05-04T11:00:00.000Z", "message": "[ERROR] X: no"},
    ]);
    let mut seen = Observations::default();
    let logs = json!({"log_group": "g", "events": events});
    seen.push(Observation::of_result(Tool::RecentLogs, &logs, false));
    let changes = json!({ "events": changes });
    seen.push(Observation::of_result(Tool::RecentChanges, &changes, false));
    seen
}

fn rights() -> Suspicion {
    Suspicion {
        calls: RIGHTS,
        since: Some("2026-05-04T10:30:00.000Z".to_owned()),
        lost: vec![("s3:GetObject".to_owned(), Some("arn:aws:s3:::b/k".to_owned()))],
        policy: Some("f-access".to_owned()),
        limit: None,
    }
}

fn named(changes: &[Value], fault: FaultType, suspicion: &Suspicion) -> String {
    let sentence = that_fits(&seen(changes), fault, suspicion).unwrap().sentence;
    sentence
        .split_once("shows that ")
        .map_or(sentence.clone(), |(_, rest)| rest.split(' ').next().unwrap_or_default().to_owned())
}

fn edit(time: &str, user: &str, policy: &str, actions: &[&str]) -> Value {
    let document = json!({"Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]});
    let request = json!({"policyName": policy, "policyDocument": document.to_string()});
    change(time, "PutRolePolicy", user, &request)
}

fn who(changes: &[Value]) -> String {
    named(changes, FaultType::PermissionLoss, &rights())
}

#[test]
fn the_edit_that_took_the_right_away_is_named() {
    let unknown = "Who caused the permission_loss is unknown: CloudTrail shows no change that fits";
    let took = edit("10:20:00", "ann", "f-access", &["s3:PutObject"]);
    let after = edit("10:40:00", "bob", "f-access", &["s3:PutObject", "s3:ListBucket"]);
    assert_eq!(
        who(&[took.clone(), after.clone()]),
        "ann",
        "a later edit is after the first failure"
    );
    assert_eq!(who(&[after]), unknown);
    let later = edit("10:25:00", "bob", "f-access", &["s3:PutObject", "s3:ListBucket"]);
    assert_eq!(who(&[took.clone(), later]), "ann", "the right was gone before the later edit");
    let granted = edit("10:15:00", "eve", "f-access", &["s3:*"]);
    assert_eq!(who(&[granted.clone(), took.clone()]), "ann");
    assert_eq!(who(&[granted]), unknown, "an edit that grants the right is innocent");
    let other = edit("10:25:00", "bob", "queues", &["sqs:SendMessage"]);
    assert_eq!(who(&[took.clone(), other]), "ann", "another policy's edit is less likely");
    let old = edit("09:00:00", "ann", "f-access", &["s3:PutObject"]);
    assert_eq!(who(&[old]), unknown, "invocations succeeded after it");
}

#[test]
fn removed_policies_are_judged_by_what_they_grant() {
    let detach = |time: &str, user: &str, policy: &str| {
        let arn = format!("arn:aws:iam::aws:policy/{policy}");
        change(time, "DetachRolePolicy", user, &json!({ "policyArn": arn }))
    };
    let read = detach("10:20:00", "ann", "AmazonS3ReadOnlyAccess");
    let logs = detach("10:25:00", "bob", "service-role/AWSLambdaBasicExecutionRole");
    assert_eq!(who(&[read, logs.clone()]), "ann");
    assert!(who(&[logs]).starts_with("Who caused"));
    let mut failed =
        change("10:20:00", "DeleteRolePolicy", "ann", &json!({"policyName": "f-access"}));
    assert_eq!(who(&[failed.clone()]), "ann");
    failed["error_code"] = json!("AccessDenied");
    assert!(who(&[failed]).starts_with("Who caused"));
}

#[test]
fn a_lowered_limit_is_named_by_its_value() {
    let suspicion = |timeout| Suspicion {
        calls: TIMEOUT.calls,
        since: Some("2026-05-04T10:30:00.000Z".to_owned()),
        limit: Some(("timeout", timeout)),
        ..Suspicion::default()
    };
    let lowered = change(
        "09:00:00",
        "UpdateFunctionConfiguration20150331v2",
        "ann",
        &json!({"functionName": "f", "timeout": 3}),
    );
    let other = change(
        "10:20:00",
        "UpdateFunctionConfiguration20150331v2",
        "bob",
        &json!({"functionName": "f", "description": "x"}),
    );
    let changes = [lowered, other];
    assert_eq!(named(&changes, FaultType::Timeout, &suspicion(3)), "ann");
    let none = "CloudTrail shows no change that fits the failure";
    assert_eq!(named(&changes, FaultType::Timeout, &suspicion(30)), none);
}

#[test]
fn concurrency_that_was_lowered_after_the_failures_is_a_reaction() {
    let suspicion = Suspicion { calls: CONCURRENCY, ..Suspicion::default() };
    let set = |time: &str| {
        let request = json!({"reservedConcurrentExecutions": 0});
        let changes = [change(time, "PutFunctionConcurrency20171031", "ann", &request)];
        that_fits(&seen(&changes), FaultType::Throttling, &suspicion).unwrap().sentence
    };
    assert!(set("11:20:00").ends_with("so it is a reaction and not the cause"));
    assert!(set("09:00:00").ends_with("which fits the throttling"));
}
