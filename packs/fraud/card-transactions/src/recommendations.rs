//! Recommends actions. Pure: the caller passes the findings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::patterns::{Finding, NotChecked, Pattern};

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
    /// The weight that decides, in thousandths; absent for the likelihood.
    #[serde(default)]
    pub risk_permille: Option<u32>,
    /// The patterns found.
    pub findings: Vec<Finding>,
    /// The patterns that could not be checked; absent if none were checked.
    pub not_checked: Option<Vec<NotChecked>>,
}

/// Most patterns that may be unchecked in a payment that is released.
const NOT_CHECKED_MAX: usize = 1;

impl Known {
    fn risk(&self) -> Option<u32> {
        self.risk_permille.or(self.likelihood_permille)
    }

    /// Why the payment cannot be released although its likelihood of fraud is low.
    fn too_little(&self) -> Option<String> {
        let Some(not_checked) = &self.not_checked else {
            return Some("the patterns were not checked".to_owned());
        };
        let is_vital = |gap: &NotChecked| {
            matches!(gap.pattern, Pattern::AmountOutlier | Pattern::UnusualPlace)
        };
        let is_enough = not_checked.len() <= NOT_CHECKED_MAX && !not_checked.iter().any(is_vital);
        if is_enough || self.is_refund_of_a_purchase() {
            return None;
        }
        let reasons: std::collections::BTreeSet<&str> =
            not_checked.iter().map(|gap| gap.reason.as_str()).collect();
        Some(reasons.into_iter().collect::<Vec<_>>().join("; "))
    }

    fn is_refund_of_a_purchase(&self) -> bool {
        // For a refund only the amount cannot be compared.
        let gaps = self.not_checked.as_deref().unwrap_or_default();
        gaps.iter().all(|gap| gap.reason == REFUND) && self.findings.is_empty()
    }
}

/// Why the amount of a refund is not compared.
pub const REFUND: &str = "the amount is not a payment";

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
    let is_likely = known.risk().is_some_and(|risk| risk >= ASK_FROM);
    // The last row is the payment itself.
    if let Some(testing) =
        of(Pattern::CardTesting).filter(|found| is_likely && found.rows.len() > 1)
    {
        let reason = "the small payments before it are part of the same misuse".to_owned();
        all.push(recommendation("refund_small_payments", Priority::High, reason, &testing.rows));
    }
    if let Some(travel) = of(Pattern::ImpossibleTravel).filter(|_| is_likely) {
        let reason = "one of the two locations is not the cardholder's".to_owned();
        all.push(recommendation("confirm_location", Priority::High, reason, &travel.rows));
    }
    for merchant in [Pattern::MerchantRisk, Pattern::CommonPoint].into_iter().filter_map(of) {
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
    let (Some(likelihood), Some(risk)) = (known.likelihood_permille, known.risk()) else {
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
    match risk {
        BLOCK_FROM.. => recommendation("block_card", Priority::Immediate, reason, &rows),
        ASK_FROM.. => recommendation("ask_cardholder", Priority::Immediate, reason, &rows),
        REVIEW_FROM.. => recommendation("manual_review", Priority::High, reason, &rows),
        _ => match known.too_little() {
            None => recommendation("release", Priority::Normal, reason, own),
            Some(gap) => {
                let reason = format!("too little is known to release it: {gap}");
                recommendation("manual_review", Priority::High, reason, &rows)
            }
        },
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
