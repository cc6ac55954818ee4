//! Finds a role that may not write its function's logs.

use super::changes::{self, Suspicion};
use super::citations;
use super::diagnosis::{EvidencePointer, FaultType, Severity};
use super::field_path::FieldPath;
use super::findings::{Finding, newest_event, pointer};
use super::iam::{self, Resource, Verdict};
use super::log_lines;
use super::managed_policies;
use super::message::Incident;
use super::remediation::{self, Grant};
use super::tool::{LogsResponse, Observations, Tool};

/// The actions that write logs. The log group exists once a function has run.
///
/// Source: AWS Lambda Developer Guide, "Sending Lambda function logs to CloudWatch Logs".
const LOG_ACTIONS: [&str; 2] = ["logs:CreateLogStream", "logs:PutLogEvents"];

/// The fault that the role may not write the function's logs.
pub(super) fn revoked(incident: &Incident, seen: &Observations) -> Option<Finding> {
    let iam = seen.iam()?;
    let logs = seen.logs();
    let default_group = format!("/aws/lambda/{}", incident.lambda_name);
    let group = logs.as_ref().map(|logs| logs.log_group.clone()).unwrap_or(default_group);
    let verdict = |action: &str| iam::evaluate(&iam, action, Resource::LogGroup(&group));
    let lost: Vec<String> = LOG_ACTIONS
        .into_iter()
        .filter(|action| matches!(verdict(action), Verdict::NotAllowed | Verdict::Denied(_)))
        .map(str::to_owned)
        .collect();
    let first = lost.first()?;
    let mut evidence = Vec::new();
    let suspect = citations::suspect(&iam, "logs", &incident.lambda_name);
    let denying = lost.iter().find_map(|action| match verdict(action) {
        Verdict::Denied(place) => Some(place),
        _ => None,
    });
    let role = iam.role_name.clone();
    let how = if let Some(place) = &denying {
        evidence.extend(citations::cite_member(&iam, place, "Effect", "this statement denies"));
        evidence.extend(citations::cite_member(&iam, place, "Action", "it covers writing logs"));
        format!("a Deny statement in inline policy {} denies it", place.policy)
    } else {
        let actions: Vec<&str> = lost.iter().map(String::as_str).collect();
        evidence.extend(citations::cite_policies(&iam, "logs", &actions, suspect.as_deref()));
        "neither an inline nor an attached policy allows it any more".to_owned()
    };
    if evidence.is_empty() {
        return None;
    }
    evidence.extend(logs.as_ref().and_then(newest_log_event));
    let basis: Vec<usize> = (0..evidence.len()).collect();
    let resource = format!("log group {group}");
    let step = match &denying {
        Some(place) => remediation::remove_denial(&lost, &place.policy, &role, basis),
        None => remediation::restore_permission(
            &Grant {
                service: "CloudWatch Logs",
                actions: &lost,
                resource: &resource,
                role: &role,
                policy: None,
            },
            basis,
        ),
    };
    let actions = if lost.len() == 1 { first.clone() } else { lost.join(" and ") };
    Some(Finding {
        fault: FaultType::PermissionLoss,
        sentence: format!(
            "The CloudWatch permission to write logs ({actions} on {group}) was revoked from role \
             {role}: {how}, so {} runs without logs",
            incident.lambda_name
        ),
        severity: Severity::Medium,
        resources: vec![incident.lambda_name.clone(), role, group],
        evidence,
        steps: vec![step],
        suspicion: Suspicion {
            calls: changes::RIGHTS,
            lost: lost.into_iter().map(|action| (action, None)).collect(),
            policy: suspect,
            ..Suspicion::default()
        },
    })
}

/// Why it is unknown whether the role may write the function's logs, if it is.
pub(super) fn uncertainty(incident: &Incident, seen: &Observations) -> Option<EvidencePointer> {
    let iam = seen.iam()?;
    let group = format!("/aws/lambda/{}", incident.lambda_name);
    let is_uncertain = |action: &str| {
        iam::evaluate(&iam, action, Resource::LogGroup(&group)) == Verdict::Uncertain
    };
    if !LOG_ACTIONS.into_iter().any(is_uncertain) {
        return None;
    }
    if let Some(error) = &iam.error {
        let meaning = "so it is unknown whether the role may write logs";
        let quote = log_lines::first_words(error);
        return Some(pointer(Tool::IamState, &FieldPath::key("error"), quote, meaning));
    }
    let is_unknown = |arn: &String| managed_policies::grants(arn).is_none();
    let position = iam.attached_policies.iter().position(is_unknown)?;
    let field = FieldPath::key("attached_policies").at(position);
    let meaning = "this policy is not known here and could allow writing logs";
    Some(pointer(Tool::IamState, &field, iam.attached_policies[position].as_str(), meaning))
}

/// The newest event of the logs, or their absence.
fn newest_log_event(logs: &LogsResponse) -> Option<EvidencePointer> {
    if logs.events.is_empty() {
        let field = FieldPath::key("events");
        return Some(pointer(Tool::RecentLogs, &field, "[]", "the log group has no events"));
    }
    newest_event(logs, "the newest event; nothing was written after it")
}
