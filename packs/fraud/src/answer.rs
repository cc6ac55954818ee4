//! Parses the tools' answers. The server is not trusted: an answer in another form is an error,
//! never data.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tool::Tool;

/// Longest error message about an answer, in characters.
const PROBLEM_CHARS_MAX: usize = 300;

/// Most findings read.
const FINDINGS_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub pattern: String,
    /// Strength, in thousandths.
    pub strength_permille: u32,
    pub explanation: String,
    /// The supporting transactions.
    pub rows: Vec<String>,
}

/// Answer of `pattern_tool`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Patterns {
    pub findings: Vec<Finding>,
    /// Patterns that could not be checked.
    pub not_checked: Vec<Value>,
}

/// Answer of `context_tool`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Context {
    pub transaction: Payment,
    pub card: Card,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Payment {
    pub transaction_id: String,
    /// RFC 3339 in UTC.
    pub timestamp: String,
    /// Untrusted text.
    pub merchant_id: String,
    /// Untrusted text.
    pub merchant_category: String,
    /// Decimal.
    pub amount: String,
    /// ISO 4217.
    pub currency: String,
    /// Untrusted text.
    pub city: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Card {
    /// Earlier payments.
    pub transactions: u32,
}

/// Answer of `similarity_tool`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Similarity {
    /// Number of past cases compared.
    pub compared: u32,
    /// Number of frauds among them.
    pub frauds_compared: u32,
    /// Share of frauds among the nearest cases, in thousandths; absent with too few cases.
    pub near_fraud_permille: Option<u32>,
    /// What the known labels say about weights of evidence; the agent only passes it on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PastCase {
    pub transaction_id: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PastCases {
    /// Nearest first.
    pub cases: Vec<PastCase>,
}

/// Answer of `reasoning_tool`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Reasoning {
    /// Likelihood of fraud, in thousandths.
    pub likelihood_permille: u32,
    /// Weight of the evidence, in thousandths; absent in records of earlier versions, as the next three.
    #[serde(default)]
    pub evidence_permille: Option<u32>,
    /// The weight that decides, in thousandths.
    #[serde(default)]
    pub risk_permille: Option<u32>,
    #[serde(default)]
    pub is_calibrated: bool,
    /// On which labels the likelihood is calibrated, or why not.
    #[serde(default)]
    pub calibration: String,
    pub hypotheses: Vec<Hypothesis>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Hypothesis {
    pub name: String,
    /// One sentence.
    pub statement: String,
}

/// Answer of `recommendation_tool`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Recommendations {
    /// Most urgent first.
    pub recommendations: Vec<Value>,
}

/// Answer of `rule_draft_tool`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RuleDrafts {
    /// A rule with its backtest, if one passed.
    pub rule_draft: Option<Value>,
}

/// Parses a validated answer.
pub fn read<T: serde::de::DeserializeOwned>(content: &Value) -> Option<T> {
    serde_json::from_value(content.clone()).ok()
}

/// Validates an answer.
///
/// # Errors
/// A bounded message that says why the answer is invalid.
pub fn check(tool: Tool, transaction_id: &str, content: &Value) -> Result<(), String> {
    let of = content.pointer(match tool {
        Tool::Context => "/transaction/transaction_id",
        _ => "/transaction_id",
    });
    if of.and_then(Value::as_str) != Some(transaction_id) {
        return Err("the answer has another transaction_id".to_owned());
    }
    match tool {
        Tool::Context => form::<Context>(content).map(|_| ()),
        Tool::Pattern => form::<Patterns>(content).and_then(|patterns| {
            let is_invalid = |finding: &Finding| finding.strength_permille > 1_000;
            if patterns.findings.len() > FINDINGS_MAX || patterns.findings.iter().any(is_invalid) {
                return Err("the answer has too many or too strong findings".to_owned());
            }
            Ok(())
        }),
        Tool::Similarity => {
            form::<PastCases>(content)?;
            let similarity = form::<Similarity>(content)?;
            in_bounds(similarity.near_fraud_permille.unwrap_or_default())
        }
        Tool::Reasoning => {
            let reasoning = form::<Reasoning>(content)?;
            in_bounds(reasoning.likelihood_permille)?;
            in_bounds(reasoning.evidence_permille.unwrap_or_default())?;
            in_bounds(reasoning.risk_permille.unwrap_or_default())
        }
        Tool::Recommendation => form::<Recommendations>(content).map(|_| ()),
        Tool::RuleDraft => form::<RuleDrafts>(content).map(|_| ()),
    }
}

fn form<T: serde::de::DeserializeOwned>(content: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(content).map_err(|error| {
        let problem = format!("the answer does not match its schema: {error}");
        problem.chars().take(PROBLEM_CHARS_MAX).collect()
    })
}

fn in_bounds(permille: u32) -> Result<(), String> {
    if permille <= 1_000 { Ok(()) } else { Err("the answer has a share above one".to_owned()) }
}
