//! Failures before the code runs: Lambda itself refuses the invocation.
//!
//! They leave no log line. The function's state and its environment's error show some of them; the
//! others only the caller sees, so the report is their witness. AWS's own names of errors count there,
//! and only while no tool contradicts them.

use super::changes::{self, Suspicion};
use super::diagnosis::{EvidencePointer, FaultType, Severity};
use super::field_path::FieldPath;
use super::findings::{Finding, newest_event, pointer};
use super::log_lines::{self, LogLines};
use super::message::Incident;
use super::remediation;
use super::signatures;
use super::times::minutes;
use super::tool::{LambdaConfigResponse, Observations, Tool};

/// Why Lambda refuses an invocation, as the caller's exception tells it.
///
/// Source: AWS Lambda API reference, `TooManyRequestsException`, Reason.
const REASONS: [(&str, &str); 4] = [
    ("ReservedFunctionConcurrentInvocationLimitExceeded", "its reserved concurrency is used up"),
    (
        "ConcurrentInvocationLimitExceeded",
        "the concurrency of the account in this Region is used up, by this function and all others",
    ),
    ("FunctionInvocationRateLimitExceeded", "it is invoked more often than its concurrency admits"),
    ("CallerRateLimitExceeded", "the account's callers exceed the rate of Lambda's API"),
];

/// Errors with which Lambda answers an invocation that it cannot begin.
///
/// Source: AWS Lambda API reference, `Invoke`, Errors.
const OF_LAMBDA: [&str; 8] = [
    "KMSAccessDeniedException",
    "KMSDisabledException",
    "KMSInvalidStateException",
    "KMSNotFoundException",
    "EFSMountConnectivityException",
    "EFSMountFailureException",
    "EFSMountTimeoutException",
    "EFSIOException",
];

/// Lambda does not run the function in this state.
pub(super) fn state(incident: &Incident, seen: &Observations) -> Option<Finding> {
    let config = seen.config()?;
    let state = config.state.as_deref().filter(|state| ["Failed", "Inactive"].contains(state))?;
    let code = config.state_reason_code.as_deref().unwrap_or_default();
    // An idle function becomes active with its next invocation.
    if code == "Idle" || (state == "Inactive" && config.state_reason.is_none()) {
        return None;
    }
    let name = &incident.lambda_name;
    let field = FieldPath::key;
    let mut evidence = vec![pointer(
        Tool::LambdaConfig,
        &field("State"),
        state,
        "Lambda does not run the function in this state",
    )];
    let mut why = String::new();
    if let Some(reason) = &config.state_reason {
        let quote = log_lines::first_words(reason);
        evidence.push(pointer(Tool::LambdaConfig, &field("StateReason"), quote, "why"));
        why = format!(": {}", quote.trim_end_matches('.'));
    }
    if !code.is_empty() {
        evidence.push(pointer(
            Tool::LambdaConfig,
            &field("StateReasonCode"),
            code,
            "why, as a code",
        ));
        why = format!("{why} ({code})");
    }
    let is_about = |words: &[&str]| words.iter().any(|word| code.contains(word));
    let fault = if is_about(&["Permission", "KMSKeyAccessDenied"]) {
        FaultType::PermissionLoss
    } else if is_about(&["Image", "Package", "Zip", "Runtime"]) {
        FaultType::Deployment
    } else {
        FaultType::Configuration
    };
    let basis = (0..evidence.len()).collect();
    Some(Finding {
        fault,
        sentence: format!("{name} is in the state {state}, so Lambda does not invoke it{why}"),
        severity: Severity::Critical,
        resources: vec![name.clone()],
        evidence,
        steps: vec![remediation::repair_state(&why, basis)],
        suspicion: Suspicion::default(),
    })
}

/// Lambda cannot decrypt the function's environment.
pub(super) fn environment(incident: &Incident, seen: &Observations) -> Option<Finding> {
    let config = seen.config()?;
    let error = config.environment_error.as_deref()?;
    let name = &incident.lambda_name;
    let quote = log_lines::first_words(error);
    let field = FieldPath::key("EnvironmentError");
    let mut evidence = vec![pointer(
        Tool::LambdaConfig,
        &field,
        quote,
        "Lambda cannot decrypt the function's environment variables",
    )];
    let key = cite_key(&config, &mut evidence);
    let is_denied = error.contains("AccessDenied") || error.contains("access was denied");
    let basis = (0..evidence.len()).collect();
    Some(Finding {
        fault: if is_denied { FaultType::PermissionLoss } else { FaultType::Configuration },
        sentence: format!(
            "Lambda cannot decrypt the environment variables of {name}{key}: {}",
            quote.trim_end_matches('.')
        ),
        severity: Severity::Critical,
        resources: [name.clone()].into_iter().chain(config.kms_key_arn).collect(),
        evidence,
        steps: vec![remediation::repair_key(basis)],
        suspicion: Suspicion { calls: changes::KEYS, ..Suspicion::default() },
    })
}

fn cite_key(config: &LambdaConfigResponse, evidence: &mut Vec<EvidencePointer>) -> String {
    let Some(key) = &config.kms_key_arn else { return String::new() };
    let field = FieldPath::key("KMSKeyArn");
    evidence.push(pointer(Tool::LambdaConfig, &field, key.as_str(), "the key of its environment"));
    format!(" with {key}")
}

/// The caller's exception says why Lambda refused the invocation.
pub(super) fn refused(incident: &Incident, seen: &Observations) -> Option<Finding> {
    let texts = [&incident.error_type, &incident.error_message];
    let texts = || texts.into_iter().flatten();
    let named = |word: &str| texts().any(|text| log_lines::find(text, word).is_some());
    if works_since(incident, seen) {
        return None;
    }
    if let Some((reason, means)) = REASONS.into_iter().find(|(reason, _)| named(reason)) {
        return throttled(incident, seen, reason, means);
    }
    let name = OF_LAMBDA.into_iter().find(|name| named(name))?;
    of_lambda(incident, seen, name)
}

/// Whether an invocation after the report succeeded.
fn works_since(incident: &Incident, seen: &Observations) -> bool {
    let logs = seen.logs().unwrap_or_default();
    let read = LogLines::of(&logs);
    let Some(reported) = incident.timestamp.as_deref().and_then(minutes) else { return false };
    let mut clean = read.invocations.iter().filter(|of| of.is_clean());
    clean.any(|of| minutes(read.lines[of.first].timestamp).is_some_and(|began| began > reported))
}

fn throttled(
    incident: &Incident,
    seen: &Observations,
    reason: &str,
    means: &str,
) -> Option<Finding> {
    let config = seen.config()?;
    let reserved = config.reserved_concurrent_executions;
    // Findings of their own explain a concurrency of 0 or 1. What is not reserved cannot be used up.
    let is_of_reservation = reason.starts_with("ReservedFunction");
    let is_contradicted = match reserved {
        Some(0 | 1) => true,
        Some(_) => reason == "ConcurrentInvocationLimitExceeded",
        None => is_of_reservation || config.error.is_some(),
    };
    if is_contradicted {
        return None;
    }
    let name = &incident.lambda_name;
    let known = reserved.map_or_else(
        || "it reserves none".to_owned(),
        |reserved| format!("it reserves {reserved}"),
    );
    let field = FieldPath::key("ReservedConcurrentExecutions");
    let evidence = vec![match reserved {
        Some(reserved) => pointer(Tool::LambdaConfig, &field, reserved.to_string(), known.as_str()),
        None => pointer(
            Tool::LambdaConfig,
            &FieldPath::key("FunctionName"),
            config.function_name.as_str(),
            "its configuration reserves no concurrency, so it shares the account's",
        ),
    }];
    Some(Finding {
        fault: FaultType::Throttling,
        sentence: format!(
            "Lambda throttles {name}: the caller's exception gives the reason {reason}, which means \
             that {means}; {known}"
        ),
        severity: Severity::High,
        resources: vec![name.clone()],
        evidence,
        steps: vec![remediation::more_concurrency(name, is_of_reservation)],
        suspicion: Suspicion {
            calls: if is_of_reservation { changes::CONCURRENCY } else { &[] },
            ..Suspicion::default()
        },
    })
}

/// An error of Lambda itself, which nothing logs.
fn of_lambda(incident: &Incident, seen: &Observations, named: &str) -> Option<Finding> {
    let (config, logs) = (seen.config()?, seen.logs()?);
    if LogLines::of(&logs).errors().next().is_some() {
        return None;
    }
    let lower = named.to_ascii_lowercase();
    let signature = signatures::all().find(|of| of.phrases.contains(&lower.as_str()))?;
    let name = &incident.lambda_name;
    let mut evidence = Vec::new();
    let key =
        if named.starts_with("KMS") { cite_key(&config, &mut evidence) } else { String::new() };
    let meaning = "nothing was logged after this: Lambda did not begin the invocations";
    evidence.push(newest_event(&logs, meaning).unwrap_or_else(|| {
        let events = FieldPath::key("events");
        pointer(
            Tool::RecentLogs,
            &events,
            "[]",
            "no log event: Lambda did not begin the invocations",
        )
    }));
    let text = incident.error_message.as_deref().unwrap_or_default();
    let text = log_lines::first_words(text).trim_end_matches('.');
    let basis = (0..evidence.len()).collect();
    Some(Finding {
        fault: signature.fault,
        sentence: format!(
            "Lambda cannot invoke {name}{key}: the caller gets {named} ({text}), which means that {}; \
             the logs show no invocation after it",
            signature.means
        ),
        severity: signature.severity,
        resources: vec![name.clone()],
        evidence,
        steps: vec![remediation::of_signature(&signature.step, basis)],
        suspicion: Suspicion {
            calls: signature.calls,
            since: incident.timestamp.clone(),
            ..Suspicion::default()
        },
    })
}

/// Nothing invokes the function: a change of its triggers precedes the end of its logs.
pub(super) fn stopped(incident: &Incident, seen: &Observations) -> Option<Finding> {
    let logs = seen.logs().filter(|logs| logs.error.is_none())?;
    let read = LogLines::of(&logs);
    if read.errors().next().is_some() {
        return None;
    }
    let (index, change) = changes::that_stops(seen)?;
    let is_invoked = read.lines.iter().any(|line| {
        minutes(line.timestamp).zip(minutes(&change.time)).is_none_or(|(at, stop)| at > stop + 1)
    });
    if is_invoked {
        return None;
    }
    let name = &incident.lambda_name;
    let field = FieldPath::key("events").at(index).then("name");
    let meaning = format!("{} made this change at {}", change.user, change.time);
    let mut evidence = vec![pointer(Tool::RecentChanges, &field, change.name.as_str(), meaning)];
    evidence.extend(newest_event(&logs, "the newest event: nothing was invoked after the change"));
    let basis = (0..evidence.len()).collect();
    Some(Finding {
        fault: FaultType::Configuration,
        sentence: format!(
            "Nothing invokes {name} any more: CloudTrail shows that {} called {} at {}, and its logs \
             show no invocation since",
            change.user, change.name, change.time
        ),
        severity: Severity::High,
        resources: vec![name.clone()],
        evidence,
        steps: vec![remediation::restore_trigger(basis)],
        suspicion: Suspicion::default(),
    })
}

#[cfg(test)]
mod tests;
