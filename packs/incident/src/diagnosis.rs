//! The agent's result: the diagnosis, its evidence and its plan.
//!
//! Models see these names; the specification defines them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::schema::{Schema, plain_enum};

/// The arguments of `submit_diagnosis`, and the result of an incident session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diagnosis {
    /// One or two sentences that an engineer on call can act on.
    #[schemars(length(min = 1))]
    pub root_cause: String,
    /// Every fault that was detected; `unknown` alone when none explains the failure.
    #[schemars(length(min = 1))]
    pub fault_types: Vec<FaultType>,
    /// Names or ARNs of what is affected: the function, its role, a bucket.
    pub affected_resources: Vec<String>,
    /// How bad it is.
    pub severity: Severity,
    /// Pointers into tool results, one per claim. An empty `value` notes a gap.
    pub evidence: Vec<EvidencePointer>,
    /// What to do, in order.
    pub remediation_plan: Vec<RemediationStep>,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(transform = plain_enum)]
pub enum FaultType {
    /// A policy that the function needs was revoked.
    PermissionLoss,
    /// Reserved concurrency keeps the function from being invoked.
    Throttling,
    /// The function cannot reach what it connects to.
    NetworkBlock,
    /// The function was killed at its memory limit.
    OutOfMemory,
    /// An invocation or the initialization took longer than its limit.
    Timeout,
    /// The ephemeral storage is full.
    StorageFull,
    /// The deployed code cannot start: its package, handler, layer, image or architecture.
    Deployment,
    /// A setting is missing or invalid: an environment variable, a key, a file system.
    Configuration,
    /// Credentials that the function uses were refused or have expired.
    Credentials,
    /// What the function calls refuses it, fails or does not exist.
    Dependency,
    /// The function's own code raises an error.
    CodeError,
    /// Nothing that the tools show explains the failure.
    Unknown,
}

/// How bad a fault is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(transform = plain_enum)]
pub enum Severity {
    /// Nothing fails now.
    Low,
    /// The function works, but worse than it should.
    Medium,
    /// What the function is for does not happen.
    High,
    /// It cannot run at all, or several things are broken at once.
    Critical,
}

/// How much a remediation step may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(transform = plain_enum)]
pub enum RiskLevel {
    /// It only reads, or adds back what was there.
    Low,
    /// It changes how the function is run or what it may do.
    Medium,
    /// It changes what others depend on.
    High,
}

/// A claim and where in a tool's result it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvidencePointer {
    /// The name of the tool that was called.
    pub tool: String,
    /// Where in its result, such as `events[3].message` or
    /// `inline_policies.data-access.Statement[0].Action`; `error` for a tool's error text.
    pub field: String,
    /// The value there, quoted; empty if there is none.
    pub value: String,
    /// What it means.
    pub interpretation: String,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemediationStep {
    /// What to do, in a few words.
    pub action: String,
    /// How exactly.
    pub details: String,
    /// Positions in `evidence`, from 0, of what justifies it.
    pub evidence_basis: Vec<usize>,
    /// How much it may break.
    pub risk_level: RiskLevel,
    /// Whether a person must agree first.
    pub requires_approval: bool,
}

impl EvidencePointer {
    /// Whether it notes missing data, and so supports no claim.
    pub fn is_gap(&self) -> bool {
        self.value.trim().is_empty()
    }
}

impl fmt::Display for FaultType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PermissionLoss => "permission_loss",
            Self::Throttling => "throttling",
            Self::NetworkBlock => "network_block",
            Self::OutOfMemory => "out_of_memory",
            Self::Timeout => "timeout",
            Self::StorageFull => "storage_full",
            Self::Deployment => "deployment",
            Self::Configuration => "configuration",
            Self::Credentials => "credentials",
            Self::Dependency => "dependency",
            Self::CodeError => "code_error",
            Self::Unknown => "unknown",
        })
    }
}

static SCHEMA: Schema = Schema::of::<Diagnosis>();

/// The schema of `submit_diagnosis`'s arguments.
pub fn schema() -> &'static Value {
    SCHEMA.json()
}

impl Diagnosis {
    /// Reads the arguments of `submit_diagnosis`.
    ///
    /// # Errors
    ///
    /// All violations of the schema, as text for the author of the arguments.
    pub fn parse(arguments: &Value) -> Result<Self, Vec<String>> {
        SCHEMA.parse(arguments)
    }

    /// The diagnosis as the arguments of `submit_diagnosis`.
    pub fn json(&self) -> Value {
        // Fails only for keys that are not strings.
        serde_json::to_value(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(patch: Value) -> Vec<String> {
        let mut arguments = json!({
            "root_cause": "r", "fault_types": ["unknown"], "affected_resources": [],
            "severity": "low", "evidence": [], "remediation_plan": []
        });
        for (key, value) in patch.as_object().unwrap() {
            arguments[key] = value.clone();
        }
        Diagnosis::parse(&arguments).err().unwrap_or_default()
    }

    #[test]
    fn the_schema_that_a_model_is_shown() {
        insta::assert_json_snapshot!(schema());
    }

    #[test]
    fn arguments_that_miss_the_schema_are_refused() {
        assert_eq!(refused(json!({})), Vec::<String>::new());
        let table = [
            json!({"fault_types": ["disk_full"]}),
            json!({"fault_types": [], "severity": "catastrophic"}),
            json!({"confidence": 1}),
            json!({"root_cause": ""}),
            json!({"evidence": [{"tool": "get_iam_state", "field": "a", "value": 0, "interpretation": "i"}]}),
            json!({"remediation_plan": [{"action": "a", "details": "d", "evidence_basis": [-1],
                "risk_level": "none", "requires_approval": "yes"}]}),
        ];
        insta::assert_snapshot!(table.map(|patch| refused(patch).join("; ")).join("\n"), @r#"
        /fault_types/0: value is not one of "permission_loss", "throttling" or 10 other candidates
        /fault_types: value has less than 1 item; /severity: value is not one of "low", "medium" or 2 other candidates
        Additional properties are not allowed ('confidence' was unexpected)
        /root_cause: value is shorter than 1 character
        /evidence/0/value: value is not of type "string"
        /remediation_plan/0/evidence_basis/0: value is less than the minimum of 0; /remediation_plan/0/risk_level: value is not one of "low", "medium" or "high"; /remediation_plan/0/requires_approval: value is not of type "boolean"
        "#);
        assert_eq!(Diagnosis::parse(&json!("it broke")).unwrap_err().len(), 1);
    }
}
