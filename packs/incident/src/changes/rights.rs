//! Which change took a right away from a role.

use serde_json::{Map, Value};

use super::{Suspicion, Window, fits, parameters};
use crate::iam::{self, Resource, Verdict};
use crate::managed_policies;
use crate::tool::{Change, ChangesResponse, IamStateResponse};

/// How well a change explains the lost rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// It leaves the rights as they are, or grants them.
    Innocent,
    /// It may have held the rights; its content is not known.
    Possible,
    /// It concerns the policy or the service.
    Likely,
    /// Its own content lacks the rights, or it is known to have held them.
    Guilty,
}

/// The change that took the rights away.
pub(super) fn that_took(
    changes: &ChangesResponse,
    iam: Option<&IamStateResponse>,
    suspicion: &Suspicion,
    window: &Window,
) -> Option<usize> {
    let judged: Vec<(usize, Fit)> = changes
        .events
        .iter()
        .enumerate()
        .filter(|(_, event)| {
            window.has(event) && suspicion.calls.iter().any(|call| fits(event, call))
        })
        .map(|(index, event)| (index, judge(event, iam, suspicion)))
        .collect();
    let best = judged.iter().map(|(_, fit)| *fit).max().filter(|fit| *fit > Fit::Innocent)?;
    let (newest, _) = *judged.iter().rev().find(|(_, fit)| *fit == best)?;
    Some(first_of_its_edits(changes, &judged, newest))
}

/// Of consecutive edits of one policy that all lack the rights, the first took them away.
fn first_of_its_edits(changes: &ChangesResponse, judged: &[(usize, Fit)], newest: usize) -> usize {
    let policy = policy_of(&changes.events[newest]);
    let is_edit = |event: &Change| document(event).is_some() && policy_of(event) == policy;
    if !is_edit(&changes.events[newest]) {
        return newest;
    }
    let edits = judged.iter().rev().filter(|(index, _)| is_edit(&changes.events[*index]));
    let since = edits.skip_while(|(index, _)| *index > newest);
    since.take_while(|(_, fit)| *fit > Fit::Possible).last().map_or(newest, |(index, _)| *index)
}

fn policy_of(change: &Change) -> Option<String> {
    let request = parameters(change)?;
    let name = request.get("policyName").or(request.get("policyArn"))?;
    name.as_str().map(str::to_owned)
}

/// The policy document in a change's request.
fn document(change: &Change) -> Option<Map<String, Value>> {
    let request = parameters(change)?;
    let document = request.get("policyDocument")?;
    match document {
        Value::String(text) => serde_json::from_str(text).ok(),
        Value::Object(document) => Some(document.clone()),
        _ => None,
    }
}

fn judge(change: &Change, iam: Option<&IamStateResponse>, suspicion: &Suspicion) -> Fit {
    let policy = policy_of(change);
    if let Some(document) = document(change) {
        return of_document(document, policy.as_deref(), suspicion);
    }
    let is_detach = change.name.starts_with("DetachRolePolicy");
    if let Some(arn) = policy.as_deref().filter(|_| is_detach) {
        if iam.is_some_and(|iam| iam.attached_policies.iter().any(|other| other == arn)) {
            return Fit::Innocent;
        }
        return match managed_policies::grants(arn) {
            Some(grants) => {
                let covers = |(action, resource): &(String, Option<String>)| {
                    grants.iter().any(|grant| grant.covers(action, of(resource.as_deref())))
                };
                if suspicion.lost.iter().any(covers) { Fit::Guilty } else { Fit::Innocent }
            }
            None => Fit::Likely,
        };
    }
    let is_removed = change.name.starts_with("DeleteRolePolicy");
    let names = |policy: &str| {
        suspicion.policy.as_deref() == Some(policy)
            || services(suspicion).any(|service| policy.to_ascii_lowercase().contains(service))
    };
    match policy.as_deref() {
        Some(policy)
            if is_removed && iam.is_some_and(|iam| iam.inline_policies.contains_key(policy)) =>
        {
            Fit::Possible
        }
        Some(policy) if is_removed && names(policy) => Fit::Guilty,
        _ if is_removed => Fit::Likely,
        _ => Fit::Possible,
    }
}

fn of(resource: Option<&str>) -> Resource<'_> {
    resource.map_or(Resource::Any, Resource::Arn)
}

fn services(suspicion: &Suspicion) -> impl Iterator<Item = &str> {
    suspicion.lost.iter().filter_map(|(action, _)| action.split(':').next())
}

/// An edit that grants what is denied is innocent.
fn of_document(document: Map<String, Value>, policy: Option<&str>, suspicion: &Suspicion) -> Fit {
    let role = IamStateResponse {
        role_name: String::new(),
        inline_policies: [("edit".to_owned(), document)].into(),
        attached_policies: vec![],
        error: None,
    };
    let verdict = |(action, resource): &(String, Option<String>)| {
        iam::evaluate(&role, action, of(resource.as_deref()))
    };
    let is_granted =
        |verdict: &Verdict| matches!(verdict, Verdict::Allowed(_) | Verdict::Conditional(_));
    let verdicts: Vec<Verdict> = suspicion.lost.iter().map(verdict).collect();
    if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Denied(_))) {
        return Fit::Guilty;
    }
    if verdicts.iter().all(is_granted) {
        return Fit::Innocent;
    }
    let statements = iam::statements(&role);
    let names_it = services(suspicion)
        .any(|service| statements.iter().any(|statement| statement.names_service(service)));
    if names_it || (policy.is_some() && suspicion.policy.as_deref() == policy) {
        Fit::Guilty
    } else {
        Fit::Possible
    }
}
