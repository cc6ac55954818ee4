use serde_json::{Value, json};

use super::super::tool::Observation;
use super::*;

fn incident(error_type: &str, error_message: &str) -> Incident {
    Incident::parse(
        &json!({"lambda_name": "f", "error_type": error_type, "error_message": error_message,
        "timestamp": "2026-05-04T10:00:00Z"}),
    )
    .unwrap()
}

fn seen(config: &Value, events: &Value) -> Observations {
    let mut seen = Observations::default();
    let logs = json!({"log_group": "g", "events": events});
    seen.push(Observation::of_result(Tool::RecentLogs, &logs, false));
    let mut all = json!({"FunctionName": "f"});
    for (name, value) in config.as_object().unwrap() {
        all[name] = value.clone();
    }
    seen.push(Observation::of_result(Tool::LambdaConfig, &all, false));
    seen
}

fn works(time: &str) -> Value {
    json!([
        {"timestamp": time, "message": "START RequestId: aaaa Version: 1"},
        {"timestamp": time, "message": "REPORT RequestId: aaaa\tDuration: 1 ms"},
    ])
}

#[test]
fn a_state_that_is_not_active_tells_why() {
    let of = |config: Value| state(&incident("", ""), &seen(&config, &json!([])));
    let failed = of(json!({"State": "Failed", "StateReasonCode": "ImageDeleted",
        "StateReason": "The image was deleted from ECR."}))
    .unwrap();
    assert_eq!(failed.fault, FaultType::Deployment);
    assert!(failed.sentence.ends_with("The image was deleted from ECR (ImageDeleted)"));
    let role = of(json!({"State": "Failed", "StateReasonCode": "InsufficientRolePermissions",
        "StateReason": "The role may not create network interfaces"}));
    assert_eq!(role.map(|finding| finding.fault), Some(FaultType::PermissionLoss));
    assert!(of(json!({"State": "Active"})).is_none());
    assert!(
        of(json!({"State": "Inactive", "StateReasonCode": "Idle", "StateReason": "idle"}))
            .is_none()
    );
}

#[test]
fn an_environment_that_cannot_be_decrypted_is_a_fault() {
    let config = json!({"KMSKeyArn": "arn:aws:kms:eu-west-1:1:key/k",
        "EnvironmentError": "AccessDeniedException: Lambda was unable to decrypt your environment variables"});
    let finding = environment(&incident("", ""), &seen(&config, &json!([]))).unwrap();
    assert_eq!(finding.fault, FaultType::PermissionLoss);
    assert!(finding.sentence.contains("key/k"));
}

#[test]
fn the_reason_of_a_throttle_counts_unless_a_tool_contradicts_it() {
    let fault = |reason: &str, config: Value| {
        let message = format!("Rate Exceeded. {{\"Reason\":\"{reason}\"}}");
        let incident = incident("TooManyRequestsException", &message);
        refused(&incident, &seen(&config, &works("2026-05-04T09:59:00Z"))).map(|f| f.sentence)
    };
    let account = fault("ConcurrentInvocationLimitExceeded", json!({})).unwrap();
    assert!(account.contains("concurrency of the account"), "{account}");
    let reserved = json!({"ReservedConcurrentExecutions": 5});
    let own = fault("ReservedFunctionConcurrentInvocationLimitExceeded", reserved.clone()).unwrap();
    assert!(own.ends_with("it reserves 5"), "{own}");
    assert_eq!(fault("ConcurrentInvocationLimitExceeded", reserved), None);
    assert_eq!(fault("ReservedFunctionConcurrentInvocationLimitExceeded", json!({})), None);
    assert_eq!(fault("Unknown", json!({})), None);
}

#[test]
fn an_error_of_lambda_counts_while_nothing_runs() {
    let incident =
        incident("KMSDisabledException", "Lambda was unable to decrypt the environment variables");
    let fault = |events: Value| refused(&incident, &seen(&json!({}), &events)).map(|f| f.fault);
    assert_eq!(fault(json!([])), Some(FaultType::Configuration));
    assert_eq!(fault(works("2026-05-04T09:00:00Z")), Some(FaultType::Configuration));
    assert_eq!(fault(works("2026-05-04T10:30:00Z")), None, "it works since");
}

#[test]
fn a_disabled_trigger_explains_silence() {
    let stop = |time: &str, request: Value| {
        let mut seen = seen(&json!({}), &works("2026-05-04T09:00:00Z"));
        let event = json!({"time": time, "name": "UpdateEventSourceMapping20150331", "user": "ann",
            "request": request.to_string()});
        let changes = json!({"events": [event]});
        seen.push(Observation::of_result(Tool::RecentChanges, &changes, false));
        stopped(&incident("", ""), &seen).map(|finding| finding.sentence)
    };
    let sentence = stop("2026-05-04T09:30:00Z", json!({"uUID": "u", "enabled": false})).unwrap();
    assert!(sentence.contains("ann called UpdateEventSourceMapping"), "{sentence}");
    assert_eq!(stop("2026-05-04T09:30:00Z", json!({"enabled": true})), None);
    assert_eq!(stop("2026-05-04T08:00:00Z", json!({"enabled": false})), None, "it ran after it");
}
