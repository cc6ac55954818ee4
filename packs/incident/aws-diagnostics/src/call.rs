//! The AWS calls that the tools need.

/// Largest response of log events, in bytes. An hour of a busy function is well below.
const LOGS_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Largest other response, in bytes. The largest that AWS can return is a role's inline policies,
/// 10,240 characters in total, which the CLI's indentation at most triples.
///
/// Source: AWS, "IAM and AWS STS quotas", role inline policies.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Largest list of CloudTrail events or of security group rules, in bytes.
const LIST_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// A read-only call about a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call<'a> {
    FilterLogEvents,
    GetFunctionConfiguration,
    GetFunctionConcurrency,
    GetRole,
    ListRolePolicies,
    /// Of the inline policy of this name.
    GetRolePolicy(&'a str),
    ListAttachedRolePolicies,
    DescribeSecurityGroupRules,
    /// Of the changes of this.
    LookupEvents(Subject),
}

/// The resource whose changes are looked up. CloudTrail takes one name a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Function,
    Role,
    SecurityGroups,
}

impl Subject {
    pub(super) const ALL: [Self; 3] = [Self::Function, Self::Role, Self::SecurityGroups];
}

impl Call<'_> {
    /// The IAM action.
    pub(super) const fn action(self) -> &'static str {
        match self {
            Self::FilterLogEvents => "logs:FilterLogEvents",
            Self::GetFunctionConfiguration => "lambda:GetFunctionConfiguration",
            Self::GetFunctionConcurrency => "lambda:GetFunctionConcurrency",
            Self::GetRole => "iam:GetRole",
            Self::ListRolePolicies => "iam:ListRolePolicies",
            Self::GetRolePolicy(_) => "iam:GetRolePolicy",
            Self::ListAttachedRolePolicies => "iam:ListAttachedRolePolicies",
            Self::DescribeSecurityGroupRules => "ec2:DescribeSecurityGroupRules",
            Self::LookupEvents(_) => "cloudtrail:LookupEvents",
        }
    }

    /// Whether a diagnosis can do without it.
    pub(super) fn is_optional(self) -> bool {
        matches!(self, Self::DescribeSecurityGroupRules | Self::LookupEvents(_))
    }

    /// The file of its response in an incident folder, relative to the function's folder.
    pub(super) fn file(self) -> String {
        match self {
            Self::FilterLogEvents => "filter-log-events.json".to_owned(),
            Self::GetFunctionConfiguration => "get-function-configuration.json".to_owned(),
            Self::GetFunctionConcurrency => "get-function-concurrency.json".to_owned(),
            Self::GetRole => "role/get-role.json".to_owned(),
            Self::ListRolePolicies => "role/list-role-policies.json".to_owned(),
            Self::GetRolePolicy(policy) => format!("role/get-role-policy/{policy}.json"),
            Self::ListAttachedRolePolicies => "role/list-attached-role-policies.json".to_owned(),
            Self::DescribeSecurityGroupRules => "describe-security-group-rules.json".to_owned(),
            Self::LookupEvents(Subject::Function) => "lookup-events.json".to_owned(),
            Self::LookupEvents(Subject::Role) => "role/lookup-events.json".to_owned(),
            Self::LookupEvents(Subject::SecurityGroups) => {
                "security-groups/lookup-events.json".to_owned()
            }
        }
    }

    /// Whether the AWS CLI prints nothing for a response without members.
    ///
    /// Source: AWS CLI, `formatter.py`: an empty response is not printed.
    pub(super) const fn may_be_empty(self) -> bool {
        matches!(self, Self::GetFunctionConcurrency)
    }

    /// Largest accepted response, in bytes.
    pub(super) const fn bytes_max(self) -> u64 {
        match self {
            Self::FilterLogEvents => LOGS_BYTES_MAX,
            Self::DescribeSecurityGroupRules | Self::LookupEvents(_) => LIST_BYTES_MAX,
            _ => ANSWER_BYTES_MAX,
        }
    }
}
