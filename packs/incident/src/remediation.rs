//! Remediation steps of each fault, with their risk and whether they need approval.
//!
//! Every change of a role, concurrency or the network needs approval: the agent only reads and
//! proposes.

use super::diagnosis::RiskLevel;
use super::signatures::Advice;

/// A step of the plan. Its basis counts from its finding's first pointer.
#[derive(Debug)]
pub(super) struct Step {
    pub action: String,
    pub details: String,
    pub basis: Vec<usize>,
    pub risk_level: RiskLevel,
    pub requires_approval: bool,
}

/// A step that changes something.
fn change(action: String, details: String, basis: Vec<usize>, risk_level: RiskLevel) -> Step {
    Step { action, details, basis, risk_level, requires_approval: true }
}

/// A read-only step.
pub(super) fn look(action: &str, details: String, basis: Vec<usize>) -> Step {
    let action = action.to_owned();
    Step { action, details, basis, risk_level: RiskLevel::Low, requires_approval: false }
}

/// A permission to restore.
pub(super) struct Grant<'a> {
    /// `S3` or `CloudWatch Logs`.
    pub service: &'a str,
    pub actions: &'a [String],
    pub resource: &'a str,
    pub role: &'a str,
    /// The inline policy that most likely had it.
    pub policy: Option<&'a str>,
}

pub(super) fn restore_permission(grant: &Grant<'_>, basis: Vec<usize>) -> Step {
    let Grant { service, actions, resource, role, policy } = grant;
    let place = policy.map_or_else(
        || format!("an inline policy of role {role}"),
        |policy| format!("inline policy {policy} of role {role}"),
    );
    change(
        format!("Restore the {service} policy of role {role}"),
        format!(
            "Put the statement that allows {} on {resource} back into {place}, from the \
             infrastructure code or with iam:PutRolePolicy, and find in CloudTrail who removed it.",
            if actions.is_empty() { "the denied call".to_owned() } else { actions.join(", ") }
        ),
        basis,
        RiskLevel::Medium,
    )
}

pub(super) fn remove_denial(
    actions: &[String],
    policy: &str,
    role: &str,
    basis: Vec<usize>,
) -> Step {
    change(
        format!("Remove the denial from inline policy {policy}"),
        format!(
            "A Deny overrides every Allow. Ask its author for the reason, then remove {} from the \
             Deny statement of {policy} of role {role}.",
            actions.join(", ")
        ),
        basis,
        RiskLevel::High,
    )
}

pub(super) fn confirm_restored(basis: Vec<usize>) -> Step {
    look(
        "Confirm that the permission is back",
        "Invoke the function again: a policy change takes a moment to take effect. Then find in \
         CloudTrail who changed it, and retry the invocations that failed."
            .to_owned(),
        basis,
    )
}

/// For a denial although the role's own policies allow the call.
pub(super) fn look_beyond_the_role(resource: &str, basis: Vec<usize>) -> Step {
    look(
        "Read the policies outside the role",
        format!(
            "Read the policy of {resource}, the role's permissions boundary, its organisation's \
             service control policies and the policy of the KMS key: one of them denies the call."
        ),
        basis,
    )
}

/// For a denial by a policy that AWS names.
pub(super) fn look_at_policy(kind: &str, place: &str, resource: &str, basis: Vec<usize>) -> Step {
    look(
        &format!("Read the {kind}"),
        format!(
            "Read {place}: a statement there denies the call on {resource}, or none allows it. Ask its \
             owner to allow it; no other policy can."
        ),
        basis,
    )
}

pub(super) fn restore_concurrency(function: &str, reserved: u64) -> Step {
    change(
        format!("Restore the concurrency of {function}"),
        format!(
            "Remove the reservation (lambda:DeleteFunctionConcurrency) or set it to what the \
             function had before it was {reserved}; first confirm that the function was not \
             stopped on purpose."
        ),
        vec![0],
        RiskLevel::Medium,
    )
}

/// Restores egress. The first `proofs` pointers are the timeouts.
pub(super) fn restore_egress(groups: &str, basis: Vec<usize>, proofs: usize) -> Vec<Step> {
    let place = if groups.is_empty() {
        "the function's security groups".to_owned()
    } else {
        groups.to_owned()
    };
    vec![
        look(
            "Compare the security groups and routes with what they were",
            format!(
                "Read the outbound rules of {place}, the subnets' route tables and network ACLs, \
                 and find in CloudTrail what was changed before the first timeout \
                 (RevokeSecurityGroupEgress, DeleteRoute, ReplaceNetworkAclEntry)."
            ),
            (0..proofs).collect(),
        ),
        change(
            "Restore the function's outbound access".to_owned(),
            format!("Put back the outbound rule of {place}, or the route, that was removed."),
            basis,
            RiskLevel::High,
        ),
    ]
}

pub(super) fn repair_access(tool: &str, basis: Vec<usize>) -> Step {
    look(
        "Make the missing data readable",
        format!(
            "{tool} returned no data. Fix what its error names and diagnose again; until then, \
             faults that it would show cannot be ruled out."
        ),
        basis,
    )
}

/// For an error that no known fault explains.
pub(super) fn follow_up(place: Option<&str>, basis: Vec<usize>) -> Step {
    let place = place.unwrap_or("the stack trace");
    look(
        "Follow the error into the code",
        format!(
            "Start at {place}: reproduce one of the failing invocations with its input, and \
             compare the time of the first failure with deployments and with changes to the \
             services that the function calls."
        ),
        basis,
    )
}

/// The step of a known failure.
pub(super) fn of_signature(advice: &Advice, basis: Vec<usize>) -> Step {
    Step {
        action: advice.action.to_owned(),
        details: advice.details.to_owned(),
        basis,
        risk_level: advice.risk,
        requires_approval: advice.risk != RiskLevel::Low,
    }
}

pub(super) fn repair_state(why: &str, basis: Vec<usize>) -> Step {
    change(
        "Repair what the function's state names".to_owned(),
        format!(
            "Lambda says why{why}. Repair it (the image and the repository's policy for Lambda in ECR, the \
             key, the subnets, the file system), then update the function: it stays in its state until then."
        ),
        basis,
        RiskLevel::Medium,
    )
}

pub(super) fn repair_key(basis: Vec<usize>) -> Step {
    change(
        "Give the function its key again".to_owned(),
        "Look at the state of the KMS key, its policy and the role's kms:Decrypt: enable the key, cancel its \
         deletion or allow the role, whichever the error names."
            .to_owned(),
        basis,
        RiskLevel::Medium,
    )
}

pub(super) fn more_concurrency(function: &str, is_reserved: bool) -> Step {
    let details = if is_reserved {
        format!("Raise the reserved concurrency of {function}, or slow its callers down.")
    } else {
        format!(
            "Find which function of the account uses its concurrency (the metric ConcurrentExecutions) and \
             limit that one; reserve a share for {function}; or ask AWS for a higher quota."
        )
    };
    change("Give the function concurrency".to_owned(), details, vec![0], RiskLevel::Medium)
}

pub(super) fn restore_trigger(basis: Vec<usize>) -> Step {
    change(
        "Restore what invokes the function".to_owned(),
        "Ask who made the change for the reason, then enable the rule, schedule or event source mapping \
         again, or give its service the permission back."
            .to_owned(),
        basis,
        RiskLevel::Medium,
    )
}
