//! Logs that nobody may write: the function runs, and nobody sees it.

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

/// What writing logs takes. The group is there already where a function has run.
///
/// Source: AWS Lambda Developer Guide, "Sending Lambda function logs to CloudWatch Logs".
const LOG_ACTIONS: [&str; 2] = ["logs:CreateLogStream", "logs:PutLogEvents"];

/// Nothing lets the role write the function's logs.
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
        format!("a Deny statement of inline policy {} refuses it", place.policy)
    } else {
        let actions: Vec<&str> = lost.iter().map(String::as_str).collect();
        evidence.extend(citations::cite_policies(&iam, "logs", &actions, suspect.as_deref()));
        "neither an inline nor an attached policy allows it any more".to_owned()
    };
    if evidence.is_empty() {
        return None;
    }
    evidence.extend(logs.as_ref().and_then(last_words));
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
    let also = if lost.len() == 1 { first.clone() } else { lost.join(" and ") };
    Some(Finding {
        fault: FaultType::PermissionLoss,
        sentence: format!(
            "The CloudWatch permission to write logs ({also} on {group}) was revoked from role \
             {role}: {how}, so {} runs unseen",
            incident.lambda_name
        ),
        severity: Severity::Medium,
        resources: vec![incident.lambda_name.clone(), role, group],
        evidence,
        steps: vec![step],
    })
}

/// What keeps from telling whether the role may write the function's logs, if anything does.
pub(super) fn doubt(incident: &Incident, seen: &Observations) -> Option<EvidencePointer> {
    let iam = seen.iam()?;
    let group = format!("/aws/lambda/{}", incident.lambda_name);
    let is_doubtful = |action: &str| {
        iam::evaluate(&iam, action, Resource::LogGroup(&group)) == Verdict::Uncertain
    };
    if !LOG_ACTIONS.into_iter().any(is_doubtful) {
        return None;
    }
    if let Some(error) = &iam.error {
        let said = "so it cannot be told whether the role may write logs";
        let quote = log_lines::first_words(error);
        return Some(pointer(Tool::IamState, &FieldPath::key("error"), quote, said));
    }
    let is_unknown = |arn: &String| managed_policies::grants(arn).is_none();
    let position = iam.attached_policies.iter().position(is_unknown)?;
    let field = FieldPath::key("attached_policies").at(position);
    let said = "what this policy allows is not known here; writing logs could be among it";
    Some(pointer(Tool::IamState, &field, iam.attached_policies[position].as_str(), said))
}

/// What there is of logs that cannot be written any more.
fn last_words(logs: &LogsResponse) -> Option<EvidencePointer> {
    if logs.events.is_empty() {
        let field = FieldPath::key("events");
        return Some(pointer(
            Tool::RecentLogs,
            &field,
            "[]",
            "the log group holds no event at all",
        ));
    }
    newest_event(logs, "the newest event: it could be written then, and nothing has been since")
}
