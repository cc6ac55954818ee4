//! Who changed what is wrong, from CloudTrail's events.
//!
//! A change after the first failure did not cause it, and neither did one that invocations survived. Of
//! a policy's edits, the one that took the right away counts, not a later one.

mod rights;

use serde_json::Value;

use super::diagnosis::{EvidencePointer, FaultType};
use super::field_path::FieldPath;
use super::findings::pointer;
use super::log_lines::LogLines;
use super::signatures::Call;
use super::times::{minutes, second};
use super::tool::{Change, ChangesResponse, Observations, Tool};

/// How long invocations may still succeed after a change that breaks them, in minutes: environments
/// and credentials that exist already outlive it.
const SLACK_MIN: i64 = 10;

/// How long before the first failure a lowered limit may have been set, in minutes: a limit breaks only
/// the invocations that need more.
const LIMIT_AGE_MIN_MAX: i64 = 24 * 60;

/// Longest part of a request in a sentence, in characters.
const DETAIL_CHARS_MAX: usize = 160;

/// The members of a request that say what was changed.
const DETAILS: [&str; 18] = [
    "policyName",
    "policyArn",
    "permissionsBoundary",
    "reservedConcurrentExecutions",
    "timeout",
    "memorySize",
    "handler",
    "layers",
    "runtime",
    "architectures",
    "environment",
    "role",
    "s3Key",
    "imageUri",
    "functionVersion",
    "batchSize",
    "enabled",
    "keyId",
];

/// What a change must be to have caused a finding.
#[derive(Debug, Default)]
pub(super) struct Suspicion {
    /// In the order of preference.
    pub calls: &'static [Call],
    /// When the logs show the first failure.
    pub since: Option<String>,
    /// The calls that are denied: actions and resources.
    pub lost: Vec<(String, Option<String>)>,
    /// The policy that should allow them.
    pub policy: Option<String>,
    /// The limit that was reached, as the request of a change spells it.
    pub limit: Option<(&'static str, u64)>,
}

/// A change that fits a fault, or that none does.
pub(super) struct Fitting {
    /// Without its full stop; empty if there is nothing to say.
    pub sentence: String,
    pub evidence: EvidencePointer,
}

pub(super) const RIGHTS: &[Call] = &[
    ("DeleteRolePolicy", &[]),
    ("PutRolePolicy", &[]),
    ("DetachRolePolicy", &[]),
    ("PutRolePermissionsBoundary", &[]),
    ("CreatePolicyVersion", &[]),
    ("SetDefaultPolicyVersion", &[]),
    ("UpdateFunctionConfiguration", &["role"]),
];
pub(super) const BOUNDARY: &[Call] =
    &[("PutRolePermissionsBoundary", &[]), ("CreatePolicyVersion", &[])];
/// For a denial by a policy that is not of the role.
pub(super) const RESOURCE_POLICIES: &[Call] = &[
    ("PutBucketPolicy", &[]),
    ("PutKeyPolicy", &[]),
    ("PutResourcePolicy", &[]),
    ("SetQueueAttributes", &[]),
    ("ModifyVpcEndpoint", &[]),
    ("RevokeGrant", &[]),
];
/// For a key that cannot be used.
pub(super) const KEYS: &[Call] = &[
    ("DisableKey", &[]),
    ("ScheduleKeyDeletion", &[]),
    ("PutKeyPolicy", &[]),
    ("RevokeGrant", &[]),
    ("RetireGrant", &[]),
    ("UpdateFunctionConfiguration", &["kMSKeyArn", "kmsKeyArn"]),
];
pub(super) const CONCURRENCY: &[Call] = &[("PutFunctionConcurrency", &[])];
pub(super) const NETWORK: &[Call] = &[
    ("RevokeSecurityGroupEgress", &[]),
    ("ModifySecurityGroupRules", &[]),
    ("DeleteRoute", &[]),
    ("ReplaceRoute", &[]),
    ("ReplaceNetworkAclEntry", &[]),
    ("CreateNetworkAclEntry", &[]),
    ("DeleteNatGateway", &[]),
    ("UpdateFunctionConfiguration", &["vpcConfig"]),
];

/// The change that fits a finding. `None` if nothing was looked at, or nothing is to be said.
pub(super) fn that_fits(
    seen: &Observations,
    fault: FaultType,
    suspicion: &Suspicion,
) -> Option<Fitting> {
    let changes = seen.changes()?;
    if fault == FaultType::Unknown || (suspicion.calls.is_empty() && suspicion.lost.is_empty()) {
        return None;
    }
    let window = Window::of(seen, suspicion);
    let found = if suspicion.lost.is_empty() {
        by_preference(&changes, suspicion, &window)
    } else {
        rights::that_took(&changes, seen.iam().as_ref(), suspicion, &window)
    };
    Some(match found {
        Some(index) => fitting(seen, &changes, index, fault),
        None => Fitting {
            sentence: none_fits(fault),
            evidence: pointer(
                Tool::RecentChanges,
                &FieldPath::key("events"),
                "",
                "no change that fits",
            ),
        },
    })
}

fn none_fits(fault: FaultType) -> String {
    if is_specified(fault) {
        format!("Who caused the {fault} is unknown: CloudTrail shows no change that fits")
    } else {
        "CloudTrail shows no change that fits the failure".to_owned()
    }
}

/// Whether the fault is one whose name says what is wrong.
fn is_specified(fault: FaultType) -> bool {
    matches!(fault, FaultType::PermissionLoss | FaultType::Throttling | FaultType::NetworkBlock)
}

fn fitting(
    seen: &Observations,
    changes: &ChangesResponse,
    index: usize,
    fault: FaultType,
) -> Fitting {
    let Change { user, name, time, .. } = &changes.events[index];
    let what = detail(&changes.events[index]);
    let is_reaction = fault == FaultType::Throttling && is_after_failures(seen, time);
    let fits = if is_reaction {
        "after the function had begun to fail, so it is a reaction and not the cause".to_owned()
    } else if is_specified(fault) {
        format!("which fits the {fault}")
    } else {
        "which fits the failure".to_owned()
    };
    Fitting {
        sentence: format!("CloudTrail shows that {user} called {name}{what} at {time}, {fits}"),
        evidence: pointer(
            Tool::RecentChanges,
            &FieldPath::key("events").at(index).then("name"),
            name.as_str(),
            format!("{user} made this change at {time}"),
        ),
    }
}

/// Whether the function was failing before this time: its newest failure precedes it, and none of its
/// invocations succeeded in between.
fn is_after_failures(seen: &Observations, time: &str) -> bool {
    let Some(logs) = seen.logs() else { return false };
    let read = LogLines::of(&logs);
    let mut before = read.errors().rev().filter(|line| second(line.timestamp) < second(time));
    before.next().is_some_and(|line| !read.is_clean_after(line))
}

/// Whether the reserved concurrency was lowered after the function had begun to fail.
pub(super) fn is_concurrency_a_reaction(seen: &Observations) -> bool {
    let Some(changes) = seen.changes() else { return false };
    let newest = changes.events.iter().rev().find(|event| fits(event, &CONCURRENCY[0]));
    newest.is_some_and(|event| is_after_failures(seen, &event.time))
}

/// When a change can have caused the first failure.
struct Window {
    until: Option<String>,
    /// Not long before this, in minutes.
    from_min: Option<i64>,
    /// The same for a limit that was lowered.
    limit_from_min: Option<i64>,
}

impl Window {
    fn of(seen: &Observations, suspicion: &Suspicion) -> Self {
        let Some(since) = &suspicion.since else {
            return Self { until: None, from_min: None, limit_from_min: None };
        };
        let logs = seen.logs().unwrap_or_default();
        let read = LogLines::of(&logs);
        let is_before = |time: &str| second(time) < second(since);
        let success = read
            .invocations
            .iter()
            .filter(|of| of.is_clean())
            .filter_map(|of| read.lines.get(of.first))
            .rfind(|line| is_before(line.timestamp));
        Self {
            until: Some(second(since).to_owned()),
            from_min: success.and_then(|line| Some(minutes(line.timestamp)? - SLACK_MIN)),
            limit_from_min: minutes(since).map(|at| at - LIMIT_AGE_MIN_MAX),
        }
    }

    fn has(&self, change: &Change) -> bool {
        self.is_in_time(change) && is_from(self.from_min, change)
    }

    fn is_in_time(&self, change: &Change) -> bool {
        self.until.as_deref().is_none_or(|until| second(&change.time) <= until)
    }
}

fn is_from(from: Option<i64>, change: &Change) -> bool {
    match (from, minutes(&change.time)) {
        (Some(from), Some(at)) => at >= from,
        _ => true,
    }
}

/// Whether a change fits that says what it set.
pub(super) fn is_found(seen: &Observations, suspicion: &Suspicion) -> bool {
    let Some(changes) = seen.changes() else { return false };
    let found = by_preference(&changes, suspicion, &Window::of(seen, suspicion));
    found.is_some_and(|index| parameters(&changes.events[index]).is_some())
}

/// Whether a successful change is this call. A request that was not recorded fits.
fn fits(change: &Change, (name, members): &Call) -> bool {
    let has = |request: &String| members.iter().any(|member| has_member(request, member));
    change.error_code.is_none()
        && change.name.starts_with(name)
        && (members.is_empty() || change.request.as_ref().is_none_or(has))
}

fn has_member(request: &str, member: &str) -> bool {
    request.contains(&format!("\"{member}\":")) && !request.contains(&format!("\"{member}\":null"))
}

/// The newest change of the first call that has one.
fn by_preference(
    changes: &ChangesResponse,
    suspicion: &Suspicion,
    window: &Window,
) -> Option<usize> {
    suspicion.calls.iter().find_map(|call| {
        let of_limit = suspicion.limit.filter(|(member, _)| call.1.contains(member));
        changes.events.iter().rposition(|event| {
            let is_recent = match of_limit {
                Some(_) => window.is_in_time(event) && is_from(window.limit_from_min, event),
                None => window.has(event),
            };
            is_recent && fits(event, call) && sets(event, of_limit)
        })
    })
}

/// Whether a change set a limit to its present value.
fn sets(change: &Change, limit: Option<(&str, u64)>) -> bool {
    let (Some((member, value)), Some(request)) = (limit, parameters(change)) else { return true };
    request.get(member).and_then(Value::as_u64).is_none_or(|set| set == value)
}

/// The parameters of a change, unless they were cut off.
fn parameters(change: &Change) -> Option<Value> {
    serde_json::from_str(change.request.as_deref()?).ok()
}

/// What a change's request says, for a sentence.
fn detail(change: &Change) -> String {
    let Some(request) = parameters(change) else { return String::new() };
    let mut named = Vec::new();
    for name in DETAILS {
        let Some(value) = request.get(name).filter(|value| !value.is_null()) else { continue };
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let text: String = text.chars().take(DETAIL_CHARS_MAX).collect();
        named.push(format!("{name} {text}"));
    }
    if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) }
}

/// Calls after which nothing invokes a function any more.
const STOPS: &[Call] = &[
    ("DisableRule", &[]),
    ("DeleteRule", &[]),
    ("RemoveTargets", &[]),
    ("DeleteEventSourceMapping", &[]),
    ("UpdateEventSourceMapping", &["enabled"]),
    ("RemovePermission", &[]),
    ("DeleteSchedule", &[]),
    ("UpdateSchedule", &["state"]),
];

/// The newest change after which nothing may invoke the function.
pub(super) fn that_stops(seen: &Observations) -> Option<(usize, Change)> {
    let changes = seen.changes()?;
    let is_stop = |event: &Change| {
        let request = event.request.as_deref().unwrap_or_default();
        let is_on = request.contains("\"enabled\":true") || request.contains("\"ENABLED\"");
        !is_on && STOPS.iter().any(|call| fits(event, call))
    };
    let index = changes.events.iter().rposition(is_stop)?;
    Some((index, changes.events[index].clone()))
}

#[cfg(test)]
mod tests;
