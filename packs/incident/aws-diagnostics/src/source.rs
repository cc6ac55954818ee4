//! The source of AWS responses, and the calls that each tool needs.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

use super::answer::{self, RecentLogs};
use super::call::Call;
use super::function_name::FunctionName;
#[cfg(feature = "live")]
use super::live::{self, Live};
#[cfg(feature = "live")]
use super::recording::Recording;
use super::refusal::{Reason, Refusal, RefusedCall};
use super::response::{IamStateResponse, LambdaConfigResponse};
use super::saved::{LoggingConfiguration, RolePolicies, RolePolicy};
use super::snapshot::Snapshot;

/// Most inline policies read per role. With the limit of each it keeps a result below the 4 MiB that a
/// session may journal in one step.
pub(super) const INLINE_POLICIES_MAX: usize = 50;

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

    /// Makes all calls, so that an error names each that failed.
    pub(super) async fn iam_state(&self, name: &FunctionName) -> Result<IamStateResponse, Refusal> {
        let function = self.function(name).await?;
        let role = function.ask(Call::GetRole).await;
        let names = function.ask(Call::ListRolePolicies).await;
        let attached = function.ask(Call::ListAttachedRolePolicies).await;
        let mut refused = Vec::new();
        let mut policies = Vec::new();
        for policy in function.inline_policies(names.as_ref().ok()).await {
            match policy {
                Ok(policy) => policies.push(policy),
                Err(refusal) => refused.push(refusal),
            }
        }
        match (role, names, attached) {
            (Ok(role), Ok(names), Ok(attached)) if refused.is_empty() => {
                Ok(answer::iam_state(role, &names, policies, attached))
            }
            (role, names, attached) => {
                let lists = [role.err(), names.err(), attached.err()];
                Err(all(lists.into_iter().flatten().chain(refused)))
            }
        }
    }

    pub(super) async fn lambda_config(
        &self,
        name: &FunctionName,
    ) -> Result<LambdaConfigResponse, Refusal> {
        let function = self.function(name).await?;
        let configuration = function.ask(Call::GetFunctionConfiguration).await;
        let concurrency = function.ask(Call::GetFunctionConcurrency).await;
        match (configuration, concurrency) {
            (Ok(configuration), Ok(concurrency)) => {
                answer::lambda_config(name, configuration, &concurrency).map_err(|reason| {
                    function.refused(Call::GetFunctionConfiguration, reason).into()
                })
            }
            (configuration, concurrency) => {
                Err(all([configuration.err(), concurrency.err()].into_iter().flatten()))
            }
        }
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

/// All failed calls, without duplicates: several results may need the same call.
fn all(calls: impl IntoIterator<Item = RefusedCall>) -> Refusal {
    let mut unique = BTreeSet::new();
    Refusal::Calls(calls.into_iter().filter(|call| unique.insert(call.to_string())).collect())
}

/// Whether it is a valid name of an IAM policy, and so a valid file name.
///
/// Source: IAM API reference, `GetRolePolicy`, PolicyName: `[\w+=,.@-]+`.
pub(super) fn is_policy_name(name: &str) -> bool {
    (1..=POLICY_NAME_CHARS_MAX).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_+=,.@-".contains(&b))
}
