//! Who changed what is wrong, from CloudTrail's events.

use super::diagnosis::{EvidencePointer, FaultType};
use super::field_path::FieldPath;
use super::findings::pointer;
use super::log_lines::LogLines;
use super::tool::{Observations, Tool};

/// A change that fits a fault.
pub(super) struct Fitting {
    /// Without its full stop.
    pub sentence: String,
    pub evidence: EvidencePointer,
}

/// Starts of the names of calls that can cause a fault. CloudTrail appends a version to Lambda's names.
///
/// Source: Service Authorization Reference; CloudTrail User Guide, "Lambda events".
fn causes(fault: FaultType) -> &'static [&'static str] {
    match fault {
        FaultType::PermissionLoss => &[
            "DeleteRolePolicy",
            "PutRolePolicy",
            "DetachRolePolicy",
            "PutRolePermissionsBoundary",
            "UpdateFunctionConfiguration",
        ],
        FaultType::Throttling => &["PutFunctionConcurrency"],
        FaultType::NetworkBlock => &[
            "RevokeSecurityGroupEgress",
            "ModifySecurityGroupRules",
            "DeleteRoute",
            "ReplaceRoute",
            "ReplaceNetworkAclEntry",
            "CreateNetworkAclEntry",
            "DeleteNatGateway",
            "UpdateFunctionConfiguration",
        ],
        FaultType::Unknown => &[],
    }
}

/// When the logs show the newest failure, to the second.
fn last_failure(seen: &Observations) -> Option<String> {
    let logs = seen.logs()?;
    let read = LogLines::of(&logs);
    read.errors().last().map(|line| second(line.timestamp).to_owned())
}

/// The part of a time that is alike in logs and in CloudTrail: `2026-11-25T08:30:00`.
fn second(time: &str) -> &str {
    time.get(..19).unwrap_or(time)
}

/// The newest successful change that fits each fault. A tool that answered and shows none is told, too.
pub(super) fn that_fit(seen: &Observations, faults: &[FaultType]) -> Vec<Fitting> {
    let Some(changes) = seen.changes() else { return vec![] };
    let events = FieldPath::key("events");
    let failed_at = last_failure(seen);
    // A change after the newest failure did not cause it.
    let is_before = |time: &str| failed_at.as_deref().is_none_or(|at| second(time) <= at);
    let mut found: Vec<Fitting> = Vec::new();
    for fault in faults.iter().filter(|fault| **fault != FaultType::Unknown) {
        let fits = |name: &str| causes(*fault).iter().any(|cause| name.starts_with(cause));
        let newest = changes.events.iter().enumerate().rev();
        let mut newest = newest.filter(|(_, event)| {
            event.error_code.is_none() && fits(&event.name) && is_before(&event.time)
        });
        let Some((index, event)) = newest.next() else {
            found.push(Fitting {
                sentence: format!(
                    "Who caused the {fault} is unknown: CloudTrail shows no change that fits"
                ),
                evidence: pointer(Tool::RecentChanges, &events, "", "no change that fits"),
            });
            continue;
        };
        let (user, name, time) = (&event.user, &event.name, &event.time);
        found.push(Fitting {
            sentence: format!(
                "CloudTrail shows that {user} called {name} at {time}, which fits the {fault}"
            ),
            evidence: pointer(
                Tool::RecentChanges,
                &events.at(index).then("name"),
                name.as_str(),
                format!("{user} made this change at {time}"),
            ),
        });
    }
    found
}
