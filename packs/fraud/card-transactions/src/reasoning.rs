//! Weighs the evidence. Pure: the caller passes the findings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::patterns::{Finding, Pattern};
use super::similarity::Similarity;

/// The evidence so far.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The transaction.
    pub transaction_id: String,
    /// What was found to be odd; nothing if nobody could look.
    pub findings: Option<Vec<Finding>>,
    /// What past cases say; nothing if nobody could compare.
    pub similarity: Option<Similarity>,
}

/// What may have happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hypothesis {
    /// Its name.
    pub name: String,
    /// In a sentence.
    pub statement: String,
    /// How well the evidence supports it, in thousandths.
    pub support_permille: u32,
}

/// What the evidence adds up to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Reasoning {
    /// The transaction.
    pub transaction_id: String,
    /// How likely it is that the payment is a fraud, in thousandths.
    pub likelihood_permille: u32,
    /// What may have happened, the likeliest first.
    pub hypotheses: Vec<Hypothesis>,
    /// In a few sentences.
    pub summary: String,
    /// What is missing.
    pub gaps: Vec<String>,
}

/// Weight of each pattern, in thousandths: an unusual hour alone is no fraud.
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
        gaps.push("nobody could look for patterns".to_owned());
    }
    if near.is_none() {
        gaps.push("past cases say nothing".to_owned());
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
const STORIES: [(&str, &str, &[Pattern]); 5] = [
    (
        "card_testing",
        "Somebody who holds the card's data tries out with small payments whether it works.",
        &[Pattern::CardTesting, Pattern::MerchantRisk, Pattern::Velocity],
    ),
    (
        "account_takeover",
        "The card, or a copy of it, is used by another person in another place.",
        &[Pattern::ImpossibleTravel, Pattern::UnusualPlace],
    ),
    (
        "cash_out_burst",
        "Somebody spends as much as possible before the card is blocked.",
        &[Pattern::Velocity, Pattern::AmountOutlier, Pattern::MerchantCategory],
    ),
    (
        "stolen_card_spending",
        "Somebody else buys goods that the cardholder never buys, dear ones or at odd hours.",
        &[
            Pattern::AmountOutlier,
            Pattern::MerchantCategory,
            Pattern::OddHour,
            Pattern::UnusualPlace,
        ],
    ),
    (
        "compromised_merchant",
        "The merchant is one at which stolen cards are used.",
        &[Pattern::MerchantRisk],
    ),
];

fn hypotheses(findings: &[Finding], likelihood: u32) -> Vec<Hypothesis> {
    let mut hypotheses: Vec<Hypothesis> = STORIES
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
    let honest = "The cardholder made the payment; what is odd about it has an ordinary reason.";
    hypotheses.push(hypothesis("cardholder", honest, 1_000 - likelihood));
    hypotheses.sort_by_key(|hypothesis| std::cmp::Reverse(hypothesis.support_permille));
    hypotheses
}

fn hypothesis(name: &str, statement: &str, support_permille: u32) -> Hypothesis {
    Hypothesis { name: name.to_owned(), statement: statement.to_owned(), support_permille }
}

fn summary(findings: &[Finding], near: Option<u32>, first: Option<&Hypothesis>) -> String {
    let odd = match findings {
        [] => "Nothing about the payment is odd.".to_owned(),
        [one] => format!("One thing is odd: {}.", one.explanation),
        [most, rest @ ..] => {
            format!("{} things are odd, most of all: {}.", rest.len() + 1, most.explanation)
        }
    };
    let cases = near.map_or(String::new(), |near| {
        format!(" Of the past cases nearest to it {} in a hundred were frauds.", near / 10)
    });
    let first = first.map_or(String::new(), |first| format!(" Likeliest: {}", first.statement));
    format!("{odd}{cases}{first}")
}
