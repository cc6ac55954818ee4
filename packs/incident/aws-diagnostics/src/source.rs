//! The source of AWS responses, and the calls that each tool needs.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;

use super::answer::{self, RecentLogs, Role};
use super::call::{Call, Subject};
use super::function_name::FunctionName;
#[cfg(feature = "live")]
use super::live::{self, Live};
#[cfg(feature = "live")]
use super::recording::Recording;
use super::refusal::{Reason, Refusal, RefusedCall};
use super::response::{
    ChangesResponse, IamStateResponse, LambdaConfigResponse, SecurityGroupsResponse,
};
use super::saved::{
    FunctionConfiguration, GetRole, LoggingConfiguration, RolePolicies, RolePolicy, Surroundings,
};
use super::snapshot::Snapshot;

/// Most inline policies read per role. With the limit of each it keeps a result below the 4 MiB that a
/// session may journal in one step.
pub(super) const INLINE_POLICIES_MAX: usize = 50;

/// The name of a role that no answer names.
const UNKNOWN_ROLE: &str = "unknown";

/// Longest name of an inline policy, in characters.
///
/// Source: IAM API reference, `GetRolePolicy`, PolicyName.
const POLICY_NAME_CHARS_MAX: usize = 128;

/// The source of AWS responses. An enum instead of a trait: it is chosen at start, from a known set.
#[derive(Debug)]
pub(super) enum Source {
    Snapshot(Snapshot),
    #[cfg(feature = "live")]
    Live(Live),
    /// An AWS account that is recorded as an incident folder.
    #[cfg(feature = "live")]
    Recording(Recording),
}

/// A function in its source, during one tool call.
enum Function<'a> {
    Saved(&'a Snapshot, &'a FunctionName),
    #[cfg(feature = "live")]
    Live(live::Function<'a>),
}

impl Source {
    pub(super) async fn recent_logs(&self, name: &FunctionName) -> Result<RecentLogs, Refusal> {
        let function = self.function(name).await?;
        let saved = function.ask(Call::FilterLogEvents).await?;
        // Only for a custom log group. `get_lambda_config` reports a failure of this call.
        let logging: Option<LoggingConfiguration> =
            function.ask(Call::GetFunctionConfiguration).await.ok();
        answer::recent_logs(answer::log_group(name, logging), saved)
            .map_err(|reason| function.refused(Call::FilterLogEvents, reason).into())
    }

    /// Makes all calls, so that the answer has every part that was read and names each that failed.
    pub(super) async fn iam_state(&self, name: &FunctionName) -> Result<IamStateResponse, Refusal> {
        let function = self.function(name).await?;
        let mut refused = Vec::new();
        let role: Option<GetRole> = kept(function.ask(Call::GetRole).await, &mut refused);
        let names = kept(function.ask(Call::ListRolePolicies).await, &mut refused);
        let attached = kept(function.ask(Call::ListAttachedRolePolicies).await, &mut refused);
        let mut policies = Vec::new();
        for policy in function.inline_policies(names.as_ref()).await {
            policies.extend(kept(policy, &mut refused));
        }
        // A name alone is no state.
        if names.is_none() && attached.is_none() {
            return Err(all(refused));
        }
        let of_policy = policies.iter().find_map(|policy| policy.role_name.clone());
        let name = match role.map(|role| role.role.role_name).or(of_policy) {
            Some(name) => name,
            None => {
                let surroundings = function.surroundings().await.unwrap_or_default();
                surroundings.role_name().unwrap_or(UNKNOWN_ROLE).to_owned()
            }
        };
        Ok(answer::iam_state(Role { name, names, policies, attached }, &unique(refused)))
    }

    pub(super) async fn lambda_config(
        &self,
        name: &FunctionName,
    ) -> Result<LambdaConfigResponse, Refusal> {
        let function = self.function(name).await?;
        let mut refused = Vec::new();
        let configuration = kept(function.configuration(name).await, &mut refused);
        let concurrency = kept(function.ask(Call::GetFunctionConcurrency).await, &mut refused);
        if configuration.is_none() && concurrency.is_none() {
            return Err(all(refused));
        }
        Ok(answer::lambda_config(name, configuration, concurrency, &refused))
    }

    /// The rules of the function's security groups.
    pub(super) async fn security_groups(
        &self,
        name: &FunctionName,
    ) -> Result<SecurityGroupsResponse, Refusal> {
        let function = self.function(name).await?;
        let surroundings = function.surroundings().await;
        let groups = surroundings.as_ref().map_or(&[][..], Surroundings::security_groups);
        if surroundings.is_ok() && groups.is_empty() {
            let security_groups = BTreeMap::new();
            return Ok(SecurityGroupsResponse { security_groups, error: None });
        }
        let saved = function.ask(Call::DescribeSecurityGroupRules).await?;
        answer::security_groups(groups, saved)
            .map_err(|reason| function.refused(Call::DescribeSecurityGroupRules, reason).into())
    }

    /// The changes of the function, its role and its security groups.
    pub(super) async fn changes(&self, name: &FunctionName) -> Result<ChangesResponse, Refusal> {
        let function = self.function(name).await?;
        let surroundings = function.surroundings().await;
        let has_no_groups = surroundings.is_ok_and(|known| known.security_groups().is_empty());
        let (mut refused, mut found) = (Vec::new(), Vec::new());
        for subject in Subject::ALL {
            if subject != Subject::SecurityGroups || !has_no_groups {
                let answer = function.ask(Call::LookupEvents(subject)).await;
                found.extend(kept(answer, &mut refused));
            }
        }
        if found.is_empty() {
            return Err(all(refused));
        }
        Ok(answer::changes(found, &refused))
    }

    /// The function, if the source has it. For an account, the first call checks that.
    async fn function<'a>(&'a self, name: &'a FunctionName) -> Result<Function<'a>, Refusal> {
        match self {
            Self::Snapshot(folder) => {
                folder.knows(name).await?;
                Ok(Function::Saved(folder, name))
            }
            #[cfg(feature = "live")]
            Self::Live(live) => Ok(Function::Live(live.function(name))),
            #[cfg(feature = "live")]
            Self::Recording(recording) => {
                Ok(Function::Saved(recording.folder_with(name).await?, name))
            }
        }
    }
}

impl Function<'_> {
    async fn ask<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, RefusedCall> {
        match self {
            Self::Saved(folder, name) => folder.read(name, call).await,
            #[cfg(feature = "live")]
            Self::Live(function) => function.ask(call).await,
        }
    }

    /// The configuration. A saved one must be about this function: people copy and rename folders by hand.
    async fn configuration(
        &self,
        name: &FunctionName,
    ) -> Result<FunctionConfiguration, RefusedCall> {
        let call = Call::GetFunctionConfiguration;
        let found: FunctionConfiguration = self.ask(call).await?;
        answer::belongs(&found.function_name, name.as_str())
            .map_err(|reason| self.refused(call, reason))?;
        Ok(found)
    }

    async fn surroundings(&self) -> Result<Surroundings, RefusedCall> {
        self.ask(Call::GetFunctionConfiguration).await
    }

    fn refused(&self, call: Call<'_>, reason: Reason) -> RefusedCall {
        match self {
            Self::Saved(_, name) => RefusedCall::saved(name, call, reason),
            #[cfg(feature = "live")]
            Self::Live(_) => RefusedCall { call: call.action(), file: None, reason },
        }
    }

    /// The documents of the listed policies, or why they failed.
    async fn inline_policies(
        &self,
        listed: Option<&RolePolicies>,
    ) -> Vec<Result<RolePolicy, RefusedCall>> {
        let listed = listed.map_or(&[][..], |listed| &listed.policy_names);
        if listed.len() > INLINE_POLICIES_MAX {
            let reason = Reason::Malformed(format!(
                "it lists {} policies, more than {INLINE_POLICIES_MAX}",
                listed.len()
            ));
            return vec![Err(self.refused(Call::ListRolePolicies, reason))];
        }
        let mut policies = Vec::new();
        for policy in listed {
            policies.push(self.inline_policy(policy).await);
        }
        policies
    }

    async fn inline_policy(&self, policy: &str) -> Result<RolePolicy, RefusedCall> {
        if !is_policy_name(policy) {
            let policy: String = policy.chars().take(POLICY_NAME_CHARS_MAX).collect();
            let reason = Reason::Malformed(format!("{policy:?} is not a policy name"));
            return Err(self.refused(Call::ListRolePolicies, reason));
        }
        let call = Call::GetRolePolicy(policy);
        let saved: RolePolicy = self.ask(call).await?;
        match answer::belongs(&saved.policy_name, policy) {
            Ok(()) => Ok(saved),
            Err(reason) => Err(self.refused(call, reason)),
        }
    }
}

/// The answer of a call, or nothing and one more refusal.
fn kept<T>(answer: Result<T, RefusedCall>, refused: &mut Vec<RefusedCall>) -> Option<T> {
    answer.map_err(|refusal| refused.push(refusal)).ok()
}

fn all(calls: Vec<RefusedCall>) -> Refusal {
    Refusal::Calls(unique(calls))
}

/// Without duplicates: several results may need the same call.
fn unique(calls: Vec<RefusedCall>) -> Vec<RefusedCall> {
    let mut seen = BTreeSet::new();
    calls.into_iter().filter(|call| seen.insert(call.to_string())).collect()
}

/// Whether it is a valid name of an IAM policy, and so a valid file name.
///
/// Source: IAM API reference, `GetRolePolicy`, PolicyName: `[\w+=,.@-]+`.
pub(super) fn is_policy_name(name: &str) -> bool {
    (1..=POLICY_NAME_CHARS_MAX).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_+=,.@-".contains(&b))
}
