//! The AWS CLI's output, as far as the tools need it.
//!
//! Unknown members are ignored, because AWS adds them. Known members are typed: output of the wrong
//! shape is refused.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::response::VpcConfig;

/// `aws logs filter-log-events`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FilterLogEvents {
    /// Parsed one by one, so that one bad event loses no other.
    pub events: Vec<Value>,
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
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct FunctionConfiguration {
    pub function_name: String,
    pub runtime: Option<String>,
    pub handler: Option<String>,
    pub role: Option<String>,
    pub memory_size: Option<u32>,
    pub timeout: Option<u32>,
    pub state: Option<String>,
    pub state_reason: Option<String>,
    pub state_reason_code: Option<String>,
    pub vpc_config: Option<VpcConfig>,
    #[serde(default)]
    pub architectures: Vec<String>,
    #[serde(rename = "KMSKeyArn")]
    pub kms_key_arn: Option<String>,
    pub environment: Option<Environment>,
}

/// The environment of a function. Its values stay out of the tools' results.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Environment {
    pub variables: Option<BTreeMap<String, IgnoredAny>>,
    pub error: Option<EnvironmentError>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct EnvironmentError {
    pub error_code: Option<String>,
    pub message: Option<String>,
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
    pub role_name: Option<String>,
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

/// The members of `aws lambda get-function-configuration` that name other resources.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Surroundings {
    pub role: Option<String>,
    pub vpc_config: Option<VpcConfig>,
}

impl Surroundings {
    /// The role's name, from the end of its ARN.
    pub(super) fn role_name(&self) -> Option<&str> {
        self.role.as_deref()?.split_once(":role/")?.1.rsplit('/').next()
    }

    pub(super) fn security_groups(&self) -> &[String] {
        self.vpc_config.as_ref().map_or(&[], |vpc| &vpc.security_group_ids)
    }
}

/// `aws ec2 describe-security-group-rules`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct SecurityGroupRules {
    pub security_group_rules: Vec<SecurityGroupRule>,
    pub next_token: Option<String>,
}

/// One rule of `aws ec2 describe-security-group-rules`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct SecurityGroupRule {
    pub group_id: String,
    pub is_egress: bool,
    pub ip_protocol: String,
    pub from_port: Option<i32>,
    pub to_port: Option<i32>,
    pub cidr_ipv4: Option<String>,
    pub cidr_ipv6: Option<String>,
    pub prefix_list_id: Option<String>,
    pub referenced_group_info: Option<ReferencedGroup>,
    pub description: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ReferencedGroup {
    pub group_id: Option<String>,
}

/// `aws cloudtrail lookup-events`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct LookedUpEvents {
    pub events: Vec<LookedUpEvent>,
    pub next_token: Option<String>,
}

/// One event of `aws cloudtrail lookup-events`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct LookedUpEvent {
    pub event_id: Option<String>,
    pub event_name: String,
    /// Version 2 of the CLI prints RFC 3339, version 1 seconds since the Unix epoch.
    pub event_time: Value,
    pub username: Option<String>,
    #[serde(default)]
    pub resources: Vec<LookedUpResource>,
    /// The whole event, as JSON text.
    pub cloud_trail_event: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct LookedUpResource {
    pub resource_name: Option<String>,
}
