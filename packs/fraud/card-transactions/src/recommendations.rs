//! Recommends actions. Pure: the caller passes the findings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::patterns::{Finding, Pattern};

/// Minimum likelihood to block the card, in thousandths.
const BLOCK_FROM: u32 = 850;

/// Minimum likelihood to ask the cardholder before settlement, in thousandths.
const ASK_FROM: u32 = 500;

/// Minimum likelihood for a review by a person, in thousandths.
const REVIEW_FROM: u32 = 250;

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Known {
    pub transaction_id: String,
    /// Likelihood of fraud, in thousandths; absent if the evidence was not weighed.
    pub likelihood_permille: Option<u32>,
    /// The patterns found.
    pub findings: Vec<Finding>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    Immediate,
    High,
    Normal,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Recommendation {
    pub action: &'static str,
    pub priority: Priority,
    pub reason: String,
    /// The transactions it concerns.
    pub rows: Vec<String>,
    /// Whether a person must approve. This server executes nothing in any case.
    pub requires_approval: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Recommendations {
    pub transaction_id: String,
    /// Most urgent first.
    pub recommendations: Vec<Recommendation>,
}

/// Recommends actions.
pub fn recommend(known: &Known) -> Recommendations {
    let mut all = vec![about_the_card(known)];
    let of = |pattern| known.findings.iter().find(|finding| finding.pattern == pattern);
    let is_likely = known.likelihood_permille.is_some_and(|likelihood| likelihood >= ASK_FROM);
    if let Some(testing) = of(Pattern::CardTesting).filter(|_| is_likely) {
        let reason = "the small payments before it are part of the same misuse".to_owned();
        all.push(recommendation("refund_small_payments", Priority::High, reason, &testing.rows));
    }
    if let Some(travel) = of(Pattern::ImpossibleTravel).filter(|_| is_likely) {
        let reason = "one of the two locations is not the cardholder's".to_owned();
        all.push(recommendation("confirm_location", Priority::High, reason, &travel.rows));
    }
    if let Some(merchant) = of(Pattern::MerchantRisk) {
        let reason = merchant.explanation.clone();
        all.push(recommendation("review_merchant", Priority::Normal, reason, &merchant.rows));
    }
    Recommendations { transaction_id: known.transaction_id.clone(), recommendations: all }
}

fn about_the_card(known: &Known) -> Recommendation {
    let mut rows = vec![known.transaction_id.clone()];
    for row in known.findings.iter().flat_map(|finding| &finding.rows) {
        if !rows.contains(row) {
            rows.push(row.clone());
        }
    }
    let Some(likelihood) = known.likelihood_permille else {
        let reason = "the evidence was not weighed automatically".to_owned();
        return recommendation("manual_review", Priority::High, reason, &rows);
    };
    let percent = likelihood / 10;
    let because = known
        .findings
        .first()
        .map_or_else(|| "no unusual patterns".to_owned(), |finding| finding.explanation.clone());
    let reason = format!("{percent} % likelihood of fraud: {because}");
    let own = std::slice::from_ref(&known.transaction_id);
    match likelihood {
        BLOCK_FROM.. => recommendation("block_card", Priority::Immediate, reason, &rows),
        ASK_FROM.. => recommendation("ask_cardholder", Priority::Immediate, reason, &rows),
        REVIEW_FROM.. => recommendation("manual_review", Priority::High, reason, &rows),
        _ => recommendation("release", Priority::Normal, reason, own),
    }
}

fn recommendation(
    action: &'static str,
    priority: Priority,
    reason: String,
    rows: &[String],
) -> Recommendation {
    let requires_approval = action != "release";
    Recommendation { action, priority, reason, rows: rows.to_vec(), requires_approval }
}
