//! The kind of policy that AWS's message names, and what follows from it.

use super::super::changes::{self, Suspicion};
use super::super::remediation::{self, Step};
use super::super::signals::Reason;
use super::super::signatures::Call;
use super::{Case, Verdict};

/// A kind of policy that can deny a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// In AWS's message.
    phrase: &'static str,
    /// In a sentence.
    name: &'static str,
    /// Where to look.
    place: &'static str,
}

/// Source: IAM User Guide, "Troubleshoot access denied error messages".
const KINDS: [Kind; 7] = [
    Kind {
        phrase: "VPC endpoint policy",
        name: "the policy of a VPC endpoint",
        place: "the policy of the VPC endpoint that the subnets' traffic takes",
    },
    Kind {
        phrase: "service control policy",
        name: "a service control policy of the organisation",
        place: "the service control policies of the account and its organisational units",
    },
    Kind {
        phrase: "resource control policy",
        name: "a resource control policy of the organisation",
        place: "the resource control policies of the resource's account",
    },
    Kind {
        phrase: "permissions boundary",
        name: "a permissions boundary",
        place: "the permissions boundary of the role (iam:GetRole)",
    },
    Kind {
        phrase: "session policy",
        name: "a session policy",
        place: "the policy that was passed when the session was assumed (sts:AssumeRole)",
    },
    Kind {
        phrase: "resource-based policy",
        name: "the resource's own policy",
        place: "the policy of the resource",
    },
    Kind {
        phrase: "identity-based policy",
        name: "a policy of the role itself",
        place: "the inline and the attached policies of the role",
    },
];

impl Case<'_> {
    /// The kind of policy that AWS's message names.
    pub(super) fn named_policy(&self) -> Option<Kind> {
        let first = self.denied[0];
        let said = first.line.as_ref().map_or(first.denial.quote.as_str(), |line| line.message);
        KINDS.into_iter().find(|kind| said.contains(kind.phrase))
    }

    /// AWS names a policy that is not one of the role's. The role's own policies do not explain it then.
    pub(super) fn conclude_named(&mut self) -> Option<(String, Step)> {
        let first = self.denied[0];
        let is_explicit = first.denial.reason == Reason::ExplicitDeny;
        let of_role = |kind: &Kind| kind.phrase == "identity-based policy";
        let kind = self.named_policy().filter(|kind| {
            !of_role(kind) || (is_explicit && !matches!(self.verdict, Some(Verdict::Denied(_))))
        })?;
        let refused = format!(
            "{} denied {} to {}",
            self.service_name(),
            self.denied_calls(),
            self.incident.lambda_name
        );
        let role = self.role();
        let how = match &self.verdict {
            Some(Verdict::Allowed(by)) => {
                let by = by.clone();
                self.cite_allowing(&by);
                format!(" although the policies of role {role} allow it")
            }
            _ => String::new(),
        };
        let what = if is_explicit { ", which denies it explicitly" } else { "" };
        let sentence = format!("{refused}{how}: AWS names {}{what} ({})", kind.name, kind.phrase);
        let step = remediation::look_at_policy(
            kind.phrase,
            kind.place,
            &self.resource_or_all(),
            self.basis(),
        );
        Some((sentence, step))
    }

    /// What a change must be to have taken the right away.
    pub(super) fn suspicion(&self, policy: Option<String>, since: Option<&str>) -> Suspicion {
        let denied = self.denied.iter();
        let lost = denied.filter_map(|denied| {
            Some((denied.denial.action.clone()?, denied.denial.resource.clone()))
        });
        let calls: &'static [Call] = match self.named_policy().map(|kind| kind.phrase) {
            Some("permissions boundary") => changes::BOUNDARY,
            Some("identity-based policy") | None => changes::RIGHTS,
            Some(_) => changes::RESOURCE_POLICIES,
        };
        let is_of_role = std::ptr::eq(calls, changes::RIGHTS);
        let lost: Vec<_> = lost.collect();
        let is_kms = lost.iter().any(|(action, _)| action.starts_with("kms:"));
        let calls = if is_kms && !is_of_role { changes::KEYS } else { calls };
        Suspicion {
            calls,
            since: since.map(str::to_owned),
            lost: if is_of_role { lost } else { vec![] },
            policy,
            limit: None,
        }
    }
}
