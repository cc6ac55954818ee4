//! The AWS CLI's output, as far as the tools need it.
//!
//! Unknown members are ignored, because AWS adds them. Known members are typed: output of the wrong
//! shape is refused.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::response::VpcConfig;

/// `aws logs filter-log-events`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FilterLogEvents {
    pub events: Vec<FilteredLogEvent>,
    /// The service's token of the next page; the CLI's own paging spells it `NextToken`.
    #[serde(alias = "NextToken")]
    pub next_token: Option<String>,
}

/// One event of `aws logs filter-log-events`
#[derive(Debug, Deserialize)]
pub(super) struct FilteredLogEvent {
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
    pub message: String,
}

/// `aws lambda get-function-configuration`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct FunctionConfiguration {
    pub function_name: String,
    pub runtime: Option<String>,
    pub handler: Option<String>,
    pub role: Option<String>,
    pub memory_size: Option<u32>,
    pub timeout: Option<u32>,
    pub state: Option<String>,
    pub vpc_config: Option<VpcConfig>,
}

/// The member of `aws lambda get-function-configuration` that the logs need.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct LoggingConfiguration {
    pub logging_config: Option<LoggingConfig>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct LoggingConfig {
    pub log_group: Option<String>,
}

/// `aws lambda get-function-concurrency`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct FunctionConcurrency {
    pub reserved_concurrent_executions: Option<u32>,
}

/// `aws iam get-role`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct GetRole {
    pub role: Role,
}

/// The role of `aws iam get-role`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Role {
    pub role_name: String,
}

/// `aws iam list-role-policies`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct RolePolicies {
    pub policy_names: Vec<String>,
    #[serde(default)]
    pub is_truncated: bool,
}

/// `aws iam get-role-policy`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct RolePolicy {
    pub policy_name: String,
    pub policy_document: Map<String, Value>,
}

/// `aws iam list-attached-role-policies`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct AttachedRolePolicies {
    pub attached_policies: Vec<AttachedPolicy>,
    #[serde(default)]
    pub is_truncated: bool,
}

/// One managed policy of `aws iam list-attached-role-policies`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct AttachedPolicy {
    pub policy_arn: String,
}
