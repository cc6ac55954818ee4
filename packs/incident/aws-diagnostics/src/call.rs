//! The AWS calls that the answers are made of.

/// Largest answer of log events, in bytes. An hour of a busy function is well below.
const LOGS_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Largest other answer, in bytes. The largest that AWS can give is a role's inline policies,
/// 10,240 characters for all of them, and the CLI's indentation triples it at worst.
///
/// Source: AWS, "IAM and AWS STS quotas", role inline policies.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// One call about one function. All of them only read.
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
}

impl Call<'_> {
    /// The call as an IAM policy allows it.
    pub(super) const fn action(self) -> &'static str {
        match self {
            Self::FilterLogEvents => "logs:FilterLogEvents",
            Self::GetFunctionConfiguration => "lambda:GetFunctionConfiguration",
            Self::GetFunctionConcurrency => "lambda:GetFunctionConcurrency",
            Self::GetRole => "iam:GetRole",
            Self::ListRolePolicies => "iam:ListRolePolicies",
            Self::GetRolePolicy(_) => "iam:GetRolePolicy",
            Self::ListAttachedRolePolicies => "iam:ListAttachedRolePolicies",
        }
    }

    /// Where an incident folder has its answer, relative to the function's folder.
    pub(super) fn file(self) -> String {
        match self {
            Self::FilterLogEvents => "filter-log-events.json".to_owned(),
            Self::GetFunctionConfiguration => "get-function-configuration.json".to_owned(),
            Self::GetFunctionConcurrency => "get-function-concurrency.json".to_owned(),
            Self::GetRole => "role/get-role.json".to_owned(),
            Self::ListRolePolicies => "role/list-role-policies.json".to_owned(),
            Self::GetRolePolicy(policy) => format!("role/get-role-policy/{policy}.json"),
            Self::ListAttachedRolePolicies => "role/list-attached-role-policies.json".to_owned(),
        }
    }

    /// Largest answer that is read, in bytes.
    pub(super) const fn bytes_max(self) -> u64 {
        match self {
            Self::FilterLogEvents => LOGS_BYTES_MAX,
            _ => ANSWER_BYTES_MAX,
        }
    }
}
