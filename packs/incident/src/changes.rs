//! Who changed what is wrong, from CloudTrail's events.

use super::diagnosis::{EvidencePointer, FaultType};
use super::field_path::FieldPath;
use super::findings::pointer;
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

/// The newest successful change that fits each fault. A tool that answered and shows none is told, too.
pub(super) fn that_fit(seen: &Observations, faults: &[FaultType]) -> Vec<Fitting> {
    let Some(changes) = seen.changes() else { return vec![] };
    let events = FieldPath::key("events");
    let mut found: Vec<Fitting> = Vec::new();
    for fault in faults.iter().filter(|fault| **fault != FaultType::Unknown) {
        let fits = |name: &str| causes(*fault).iter().any(|cause| name.starts_with(cause));
        let newest = changes.events.iter().enumerate().rev();
        let mut newest =
            newest.filter(|(_, event)| event.error_code.is_none() && fits(&event.name));
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
