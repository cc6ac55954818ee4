//! The tools' results: the three response schemas of the incident specification, and two more.
//!
//! The specification names the members, so the configuration keeps AWS's spelling.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use mcp::schema::portable;

/// Answer of `get_recent_logs`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(transform = portable)]
pub(super) struct LogsResponse {
    /// The CloudWatch log group that the events come from.
    pub log_group: String,
    /// Log events, oldest first.
    pub events: Vec<LogEvent>,
    /// What is known to be missing from an otherwise good answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One log event.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct LogEvent {
    /// When the function wrote it: RFC 3339, UTC, with milliseconds.
    pub timestamp: String,
    /// The line as it was logged; a very long one is cut and says so at its end.
    pub message: String,
}

/// Answer of `get_iam_state`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "IAMStateResponse", transform = portable)]
pub(super) struct IamStateResponse {
    /// Name of the execution role.
    pub role_name: String,
    /// Policy documents of the role's inline policies, by policy name.
    pub inline_policies: BTreeMap<String, Map<String, Value>>,
    /// ARNs of the managed policies attached to the role.
    pub attached_policies: Vec<String>,
    /// What is known to be missing from an otherwise good answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Answer of `get_lambda_config`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
#[schemars(transform = portable)]
pub(super) struct LambdaConfigResponse {
    /// Name of the function.
    pub function_name: String,
    /// Runtime identifier, such as `python3.13`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// The function's entry point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// ARN of the execution role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Memory, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_size: Option<u32>,
    /// Longest time an invocation may take, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u32>,
    /// Active, Inactive, Pending or Failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Why the function has this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_reason: Option<String>,
    /// The reason as a code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_reason_code: Option<String>,
    /// `x86_64` or `arm64`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub architectures: Vec<String>,
    /// The names of the environment variables, without their values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment_variables: Option<Vec<String>>,
    /// Why Lambda cannot decrypt the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment_error: Option<String>,
    /// The key that encrypts the environment; absent for AWS's own.
    #[serde(rename = "KMSKeyArn", skip_serializing_if = "Option::is_none")]
    pub kms_key_arn: Option<String>,
    /// Reserved concurrency; absent when none is reserved, 0 when every invocation is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_concurrent_executions: Option<u32>,
    /// The VPC that the function is attached to; absent or empty when it is in none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc_config: Option<VpcConfig>,
    /// What is known to be missing from an otherwise good answer. An absent member is unknown then.
    #[serde(rename = "error", skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Answer of `get_security_group_rules`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(transform = portable)]
pub(super) struct SecurityGroupsResponse {
    /// The rules of each security group of the function, by the group's id; empty when it is in no VPC.
    pub security_groups: BTreeMap<String, GroupRules>,
    /// What is known to be missing from an otherwise good answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The rules of a security group. What no rule lets through is dropped.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(super) struct GroupRules {
    /// Rules for outbound connections.
    pub egress: Vec<Rule>,
    /// Rules for inbound connections.
    pub ingress: Vec<Rule>,
}

/// A rule of a security group.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(transform = portable)]
pub(super) struct Rule {
    /// `tcp`, `udp`, `icmp`, a number, or `-1` for all.
    pub protocol: String,
    /// First port; absent when the protocol has no ports or all are meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_port: Option<i32>,
    /// Last port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_port: Option<i32>,
    /// The other end: an address range, a prefix list or a security group.
    pub peer: String,
    /// What its author wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Answer of `get_recent_changes`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(transform = portable)]
pub(super) struct ChangesResponse {
    /// Write events of CloudTrail about the function, its role and its security groups, oldest first.
    pub events: Vec<Change>,
    /// What is known to be missing from an otherwise good answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A write event of CloudTrail.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(transform = portable)]
pub(super) struct Change {
    /// When the call was made: RFC 3339, UTC.
    pub time: String,
    /// The API call, such as `DeleteRolePolicy`.
    pub name: String,
    /// Who made it: the ARN of the user or the role's session, or the name that CloudTrail lists.
    pub user: String,
    /// Names and ARNs of the resources.
    pub resources: Vec<String>,
    /// The call's parameters, as JSON text; a long one is cut and says so at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The error that AWS answered; absent when the call succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
}

/// A function's VPC attachment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
#[schemars(transform = portable)]
pub(super) struct VpcConfig {
    /// Subnets that its network interfaces are in.
    #[serde(default)]
    pub subnet_ids: Vec<String>,
    /// Security groups that guard its network interfaces.
    #[serde(default)]
    pub security_group_ids: Vec<String>,
    /// The VPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vpc_id: Option<String>,
    /// Whether it may send IPv6 traffic to dual-stack subnets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6_allowed_for_dual_stack: Option<bool>,
}
