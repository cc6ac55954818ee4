//! Makes and undoes a change of a fault. Both are safe to repeat.

use std::fmt;

use aws_sdk_iam::error::ProvideErrorMetadata;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Error;
use super::ec2::{Ec2, EgressRule};
use aws_diagnostics::account::{Account, CallError};

/// A change, with the previous value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// Reduces or deletes an inline policy of a role.
    RolePolicy {
        role: String,
        policy: String,
        before: Map<String, Value>,
        /// `None` deletes the policy.
        after: Option<Map<String, Value>>,
    },
    /// Detaches a managed policy from a role.
    AttachedPolicy { role: String, policy_arn: String },
    /// Sets a function's reserved concurrency.
    Concurrency { function: String, before: Option<i32>, after: i32 },
    /// Removes an outbound rule of a security group.
    Egress { rule: EgressRule },
}

#[derive(Debug)]
pub(super) struct Clients {
    pub iam: aws_sdk_iam::Client,
    pub lambda: aws_sdk_lambda::Client,
    pub ec2: Ec2,
}

impl Clients {
    pub(super) fn new(account: &Account) -> Self {
        Self {
            iam: aws_sdk_iam::Client::new(&account.config),
            lambda: aws_sdk_lambda::Client::new(&account.config),
            ec2: Ec2::new(account),
        }
    }

    async fn put_role_policy(
        &self,
        role: &str,
        policy: &str,
        document: &Map<String, Value>,
    ) -> Result<(), CallError> {
        let request = self.iam.put_role_policy().role_name(role).policy_name(policy);
        let document = Value::Object(document.clone()).to_string();
        let done = request.policy_document(document).send().await;
        done.map(|_| ()).map_err(|error| CallError::of("PutRolePolicy", &error))
    }
}

impl Change {
    pub(super) async fn make(&self, clients: &Clients) -> Result<(), Error> {
        match self {
            Self::RolePolicy { role, policy, after: Some(after), .. } => {
                clients.put_role_policy(role, policy, after).await?;
            }
            Self::RolePolicy { role, policy, after: None, .. } => {
                let request = clients.iam.delete_role_policy().role_name(role);
                let done = request.policy_name(policy).send().await;
                unless_absent("DeleteRolePolicy", done)?;
            }
            Self::AttachedPolicy { role, policy_arn } => {
                let request = clients.iam.detach_role_policy().role_name(role);
                unless_absent("DetachRolePolicy", request.policy_arn(policy_arn).send().await)?;
            }
            Self::Concurrency { function, after, .. } => {
                let request = clients.lambda.put_function_concurrency().function_name(function);
                let done = request.reserved_concurrent_executions(*after).send().await;
                done.map_err(|error| CallError::of("PutFunctionConcurrency", &error))?;
            }
            Self::Egress { rule } => clients.ec2.revoke_egress(rule).await?,
        }
        Ok(())
    }

    pub(super) async fn undo(&self, clients: &Clients) -> Result<(), Error> {
        match self {
            Self::RolePolicy { role, policy, before, .. } => {
                clients.put_role_policy(role, policy, before).await?;
            }
            Self::AttachedPolicy { role, policy_arn } => {
                let request = clients.iam.attach_role_policy().role_name(role);
                let done = request.policy_arn(policy_arn).send().await;
                done.map_err(|error| CallError::of("AttachRolePolicy", &error))?;
            }
            Self::Concurrency { function, before: Some(before), .. } => {
                let request = clients.lambda.put_function_concurrency().function_name(function);
                let done = request.reserved_concurrent_executions(*before).send().await;
                done.map_err(|error| CallError::of("PutFunctionConcurrency", &error))?;
            }
            Self::Concurrency { function, before: None, .. } => {
                let request = clients.lambda.delete_function_concurrency();
                let done = request.function_name(function).send().await;
                done.map_err(|error| CallError::of("DeleteFunctionConcurrency", &error))?;
            }
            Self::Egress { rule } => clients.ec2.authorize_egress(rule).await?,
        }
        Ok(())
    }
}

/// Ignores the error that something to remove does not exist.
fn unless_absent<T, E>(
    operation: &'static str,
    done: Result<T, SdkError<E, HttpResponse>>,
) -> Result<(), CallError>
where
    E: std::error::Error + ProvideErrorMetadata + 'static,
{
    match done {
        Ok(_) => Ok(()),
        Err(error) if error.code() == Some("NoSuchEntity") => Ok(()),
        Err(error) => Err(CallError::of(operation, &error)),
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RolePolicy { role, policy, after: Some(_), .. } => {
                write!(f, "inline policy {policy} of role {role} allows less")
            }
            Self::RolePolicy { role, policy, after: None, .. } => {
                write!(f, "inline policy {policy} of role {role} is deleted")
            }
            Self::AttachedPolicy { role, policy_arn } => {
                write!(f, "{policy_arn} is detached from role {role}")
            }
            Self::Concurrency { function, before, after } => {
                let before = before.map_or_else(|| "none".to_owned(), |n| n.to_string());
                write!(f, "reserved concurrency of {function}: {before} → {after}")
            }
            Self::Egress { rule } => {
                write!(f, "security group {} blocks outbound {rule}", rule.group)
            }
        }
    }
}
