//! Weighs the evidence. Pure: the caller passes the findings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::patterns::{Finding, Pattern};
use super::similarity::Similarity;

/// The evidence so far.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    pub transaction_id: String,
    /// The patterns found; absent if they were not checked.
    pub findings: Option<Vec<Finding>>,
    /// The result of the comparison with past cases; absent if there was none.
    pub similarity: Option<Similarity>,
}

/// A possible explanation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hypothesis {
    pub name: String,
    /// One sentence.
    pub statement: String,
    /// Support by the evidence, in thousandths.
    pub support_permille: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Reasoning {
    pub transaction_id: String,
    /// Likelihood of fraud, in thousandths.
    pub likelihood_permille: u32,
    /// Most likely first.
    pub hypotheses: Vec<Hypothesis>,
    /// Summary in a few sentences.
    pub summary: String,
    /// Missing evidence.
    pub gaps: Vec<String>,
}

/// Weight of each pattern, in thousandths; an unusual hour alone weighs little.
const fn weight(pattern: Pattern) -> u64 {
    match pattern {
        Pattern::ImpossibleTravel => 900,
        Pattern::CardTesting => 850,
        Pattern::Velocity => 800,
        Pattern::MerchantRisk => 700,
        Pattern::MerchantCategory => 650,
        Pattern::AmountOutlier => 600,
        Pattern::UnusualPlace => 500,
        Pattern::OddHour => 400,
    }
}

/// Weight of similar frauds, in thousandths.
const WEIGHT_SIMILARITY: u64 = 450;

/// Combines the evidence: each piece removes its share of the doubt that the others left.
pub fn weigh(evidence: &Evidence) -> Reasoning {
    let findings = evidence.findings.as_deref().unwrap_or_default();
    let near = evidence.similarity.as_ref().and_then(|similarity| similarity.near_fraud_permille);
    let mut doubt = 1_000_000;
    for finding in findings {
        doubt = left(doubt, weight(finding.pattern) * u64::from(finding.strength_permille));
    }
    if let Some(near) = near {
        doubt = left(doubt, WEIGHT_SIMILARITY * u64::from(near));
    }
    let likelihood = u32::try_from(1_000 - doubt / 1_000).unwrap_or_default();
    let hypotheses = hypotheses(findings, likelihood);
    let mut gaps = Vec::new();
    if evidence.findings.is_none() {
        gaps.push("patterns were not checked".to_owned());
    }
    if near.is_none() {
        gaps.push("no usable past cases".to_owned());
    }
    Reasoning {
        transaction_id: evidence.transaction_id.clone(),
        likelihood_permille: likelihood,
        summary: summary(findings, near, hypotheses.first()),
        hypotheses,
        gaps,
    }
}

/// The remaining doubt after a piece of evidence, both in millionths.
fn left(doubt: u64, evidence: u64) -> u64 {
    doubt * (1_000_000 - evidence.min(1_000_000)) / 1_000_000
}

/// The possible explanations: name, sentence, and the patterns that each explains.
const EXPLANATIONS: [(&str, &str, &[Pattern]); 5] = [
    (
        "card_testing",
        "A thief tests the stolen card with small payments.",
        &[Pattern::CardTesting, Pattern::MerchantRisk, Pattern::Velocity],
    ),
    (
        "account_takeover",
        "The card, or a copy of it, is used by another person in another place.",
        &[Pattern::ImpossibleTravel, Pattern::UnusualPlace],
    ),
    (
        "cash_out_burst",
        "A thief spends as much as possible before the card is blocked.",
        &[Pattern::Velocity, Pattern::AmountOutlier, Pattern::MerchantCategory],
    ),
    (
        "stolen_card_spending",
        "A thief buys goods that the cardholder never buys, expensive ones or at unusual hours.",
        &[
            Pattern::AmountOutlier,
            Pattern::MerchantCategory,
            Pattern::OddHour,
            Pattern::UnusualPlace,
        ],
    ),
    ("compromised_merchant", "Stolen cards are used at the merchant.", &[Pattern::MerchantRisk]),
];

fn hypotheses(findings: &[Finding], likelihood: u32) -> Vec<Hypothesis> {
    let mut hypotheses: Vec<Hypothesis> = EXPLANATIONS
        .iter()
        .filter_map(|(name, statement, explains)| {
            let explained = findings.iter().filter(|finding| explains.contains(&finding.pattern));
            let doubt = explained.fold(1_000_000, |doubt, finding| {
                left(doubt, weight(finding.pattern) * u64::from(finding.strength_permille))
            });
            let support_permille = u32::try_from(1_000 - doubt / 1_000).unwrap_or_default();
            (support_permille > 0).then(|| hypothesis(name, statement, support_permille))
        })
        .collect();
    let honest = "The cardholder made the payment; its unusual features have an ordinary reason.";
    hypotheses.push(hypothesis("cardholder", honest, 1_000 - likelihood));
    hypotheses.sort_by_key(|hypothesis| std::cmp::Reverse(hypothesis.support_permille));
    hypotheses
}

fn hypothesis(name: &str, statement: &str, support_permille: u32) -> Hypothesis {
    Hypothesis { name: name.to_owned(), statement: statement.to_owned(), support_permille }
}

fn summary(findings: &[Finding], near: Option<u32>, first: Option<&Hypothesis>) -> String {
    let unusual = match findings {
        [] => "No unusual patterns.".to_owned(),
        [one] => format!("One unusual pattern: {}.", one.explanation),
        [most, rest @ ..] => {
            format!("{} unusual patterns, the strongest: {}.", rest.len() + 1, most.explanation)
        }
    };
    let cases = near.map_or(String::new(), |near| {
        format!(" {} % of the nearest past cases were frauds.", near / 10)
    });
    let first = first.map_or(String::new(), |first| format!(" Most likely: {}", first.statement));
    format!("{unusual}{cases}{first}")
}
