//! Cites a role's policies: the statement that denies, or all that do not allow.

use super::diagnosis::EvidencePointer;
use super::field_path::FieldPath;
use super::findings::{as_quoted, pointer};
use super::iam::{self, InlineStatement, Statement};
use super::managed_policies;
use super::tool::{IamStateResponse, Tool};

/// Most statements cited to show that none allows an action.
const STATEMENTS_CITED_MAX: usize = 5;

/// Longest value quoted in full, in bytes.
const VALUE_BYTES_MAX: usize = 300;

/// The inline policy that most likely had a permission: one that still names the service, else one
/// named after the service or the function, else the only one.
pub(super) fn suspect(iam: &IamStateResponse, service: &str, function: &str) -> Option<String> {
    let statements = iam::statements(iam);
    let names = |policy: &str| {
        statements.iter().any(|s| s.place.policy == policy && s.names_service(service))
    };
    let score = |policy: &str| {
        let name = policy.to_ascii_lowercase();
        let has = |part: &str| !part.is_empty() && name.contains(&part.to_ascii_lowercase());
        [names(policy), has(service), has(function) && has("access"), has(function)]
    };
    let policies: Vec<&String> = iam.inline_policies.keys().collect();
    if let [only] = policies[..] {
        return Some(only.clone());
    }
    // The first by name in a tie.
    let best = policies.into_iter().rev().max_by_key(|policy| score(policy))?;
    score(best).contains(&true).then(|| best.clone())
}

/// Cites every policy that could allow these actions and does not.
pub(super) fn cite_policies(
    iam: &IamStateResponse,
    service: &str,
    actions: &[&str],
    suspect: Option<&str>,
) -> Vec<EvidencePointer> {
    let named = actions.join(", ");
    let inline = FieldPath::key("inline_policies");
    let mut evidence = Vec::new();
    if iam.inline_policies.is_empty() {
        let meaning = format!("the role has no inline policy, so none allows {named}");
        evidence.push(pointer(Tool::IamState, &inline, "{}", meaning));
    }
    let mut statements = iam::statements(iam);
    statements
        .sort_by_key(|s| (!s.names_service(service), Some(s.place.policy.as_str()) != suspect));
    for statement in statements.iter().take(STATEMENTS_CITED_MAX) {
        evidence.extend(cite_statement(statement, service, actions));
    }
    for (policy, document) in &iam.inline_policies {
        if document.get("Statement").and_then(|list| list.as_array()).is_some_and(Vec::is_empty) {
            let field = inline.then(policy).then("Statement");
            let meaning = format!("the policy has no statement left, so it does not allow {named}");
            evidence.push(pointer(Tool::IamState, &field, "[]", meaning));
        }
    }
    let attached = serde_json::Value::from(iam.attached_policies.clone()).to_string();
    if attached.len() <= 2 * VALUE_BYTES_MAX {
        let meaning = if iam.attached_policies.is_empty() {
            format!("no managed policy is attached, so none allows {named}")
        } else if iam.attached_policies.iter().all(|arn| managed_policies::grants(arn).is_some()) {
            format!("none of these managed policies allows {named}")
        } else {
            format!("some of these policies are not known here and could allow {named}")
        };
        evidence.push(pointer(
            Tool::IamState,
            &FieldPath::key("attached_policies"),
            attached,
            meaning,
        ));
    }
    evidence
}

fn cite_statement(
    statement: &Statement<'_>,
    service: &str,
    actions: &[&str],
) -> Option<EvidencePointer> {
    let (path, member) = match actions.iter().find(|action| statement.allows_action(action)) {
        // It allows the action, so it lacks the resource.
        Some(_) => (statement.resource_path(), "Resource"),
        None => (statement.actions_path(), "Action"),
    };
    let value = statement.member(member).or(statement.member(&format!("Not{member}")))?;
    let policy = &statement.place.policy;
    let named = actions.join(", ");
    let meaning = match member {
        "Resource" => format!("{policy} allows it, but on this resource only"),
        _ if statement.names_service(service) => {
            format!("the {service} actions left in {policy} do not cover {named}")
        }
        _ => format!("this statement of {policy} does not cover {named}"),
    };
    Some(pointer(Tool::IamState, &path, quoted_in_part(value), meaning))
}

/// Cites a member of a statement. `Action` includes `NotAction`.
pub(super) fn cite_member(
    iam: &IamStateResponse,
    place: &InlineStatement,
    member: &str,
    meaning: &str,
) -> Option<EvidencePointer> {
    let statements = iam::statements(iam);
    let statement = statements.iter().find(|statement| statement.place == *place)?;
    let (path, value) = match member {
        "Action" => {
            let value = statement.member("Action").or(statement.member("NotAction"))?;
            (statement.actions_path(), value)
        }
        _ => (place.path.then(member), statement.member(member)?),
    };
    Some(pointer(Tool::IamState, &path, quoted_in_part(value), meaning))
}

/// A value as evidence quotes it; only the first element of a long list.
fn quoted_in_part(value: &serde_json::Value) -> String {
    let whole = as_quoted(value);
    match value.as_array().and_then(|elements| elements.first()) {
        Some(first) if whole.len() > VALUE_BYTES_MAX => as_quoted(first),
        _ => whole,
    }
}
