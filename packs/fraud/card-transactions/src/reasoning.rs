//! Weighs the evidence. Pure: the caller passes the findings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calibration::Calibration;
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
    /// Likelihood of fraud, in thousandths: the share of frauds among past payments with such evidence, or, if
    /// uncalibrated, the weight of the evidence.
    pub likelihood_permille: u32,
    /// Weight of the evidence, in thousandths: a judgement, comparable between all payments.
    pub evidence_permille: u32,
    /// The weight that decides, in thousandths: the evidence, bounded by what the labels say.
    pub risk_permille: u32,
    /// Whether the likelihood is calibrated.
    pub is_calibrated: bool,
    /// On which labels, or why not.
    pub calibration: String,
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
        Pattern::DistributedTesting => 920,
        Pattern::ImpossibleTravel | Pattern::ContactlessLimit => 900,
        Pattern::Structuring => 880,
        Pattern::CardTesting | Pattern::Collusion => 850,
        Pattern::Velocity => 800,
        Pattern::MerchantRisk | Pattern::SlowDrip | Pattern::PassThrough => 700,
        Pattern::MerchantCategory
        | Pattern::DormantCard
        | Pattern::UnmatchedRefund
        | Pattern::BustOut => 650,
        Pattern::AmountOutlier | Pattern::CommonPoint => 600,
        Pattern::UnusualPlace => 500,
        Pattern::OddHour => 400,
    }
}

/// Highest likelihood, in thousandths, if the payment is only unusual and no finding shows how the
/// misuse works. A card is never blocked for being unusual.
const UNUSUAL_ONLY_MAX: u32 = 840;

/// Least strength, in thousandths, of a finding that shows how the misuse works.
pub const PROOF_FROM: u32 = 700;

fn is_proof(finding: &Finding) -> bool {
    let shows_how = matches!(
        finding.pattern,
        Pattern::ImpossibleTravel
            | Pattern::CardTesting
            | Pattern::Velocity
            | Pattern::MerchantRisk
            | Pattern::DistributedTesting
            | Pattern::Collusion
            | Pattern::Structuring
            | Pattern::ContactlessLimit
    );
    shows_how && finding.strength_permille >= PROOF_FROM
}

/// Even odds, in thousandths: below them a calibrated payment is not blocked.
const EVEN: u32 = 500;

/// Weight of similar frauds, in thousandths.
const WEIGHT_SIMILARITY: u64 = 450;

/// Combines the evidence: each piece removes its share of the doubt that the others left.
pub fn weigh(evidence: &Evidence) -> Reasoning {
    let findings = evidence.findings.as_deref().unwrap_or_default();
    let near = evidence.similarity.as_ref().and_then(|similarity| similarity.near_fraud_permille);
    let calibration = evidence.similarity.as_ref().and_then(|found| found.calibration.clone());
    let calibration = calibration.unwrap_or_else(|| Calibration::Uncalibrated {
        reason: "past cases were not compared".to_owned(),
    });
    let weight = evidence_permille(findings, near);
    let probability = calibration.probability_permille(weight);
    let hypotheses = hypotheses(findings, weight);
    let mut gaps = Vec::new();
    if evidence.findings.is_none() {
        gaps.push("patterns were not checked".to_owned());
    }
    if near.is_none() {
        gaps.push("no usable past cases".to_owned());
    }
    if probability.is_none() {
        gaps.push(format!("the likelihood is {}", calibration.in_words()));
    }
    Reasoning {
        transaction_id: evidence.transaction_id.clone(),
        likelihood_permille: probability.unwrap_or(weight),
        evidence_permille: weight,
        risk_permille: risk_permille(weight, probability),
        is_calibrated: probability.is_some(),
        calibration: calibration.in_words(),
        summary: summary(findings, near, hypotheses.first()),
        hypotheses,
        gaps,
    }
}

/// Weighs findings and past cases, in thousandths. Labels do not change it.
pub fn evidence_permille(findings: &[Finding], near: Option<u32>) -> u32 {
    let mut doubt = 1_000_000;
    for finding in findings {
        doubt = left(doubt, weight(finding.pattern) * u64::from(finding.strength_permille));
    }
    if let Some(near) = near {
        doubt = left(doubt, WEIGHT_SIMILARITY * u64::from(near));
    }
    let evidence = u32::try_from(1_000 - doubt / 1_000).unwrap_or_default();
    let is_proven = findings.iter().any(is_proof);
    if is_proven { evidence } else { evidence.min(UNUSUAL_ONLY_MAX) }
}

/// Labels may take a block back to a question, and raise a low weight. They release nothing that the
/// evidence holds: frauds that were never seen before have no labels.
fn risk_permille(evidence: u32, probability: Option<u32>) -> u32 {
    match probability {
        None => evidence,
        Some(probability) if probability < EVEN => evidence.min(UNUSUAL_ONLY_MAX).max(probability),
        Some(probability) => evidence.max(probability.min(UNUSUAL_ONLY_MAX)),
    }
}

/// The remaining doubt after a piece of evidence, both in millionths.
fn left(doubt: u64, evidence: u64) -> u64 {
    doubt * (1_000_000 - evidence.min(1_000_000)) / 1_000_000
}

/// A possible explanation.
struct Explanation {
    name: &'static str,
    statement: &'static str,
    /// One of these must be found: without it the story has no ground.
    needs: &'static [Pattern],
    /// What else it explains.
    explains: &'static [Pattern],
}

const STOLEN: &str = "stolen_card_spending";

/// The story of a stolen card with what was found, and nothing else.
fn stolen(findings: &[Finding]) -> String {
    let has = |pattern| findings.iter().any(|finding| finding.pattern == pattern);
    let parts: Vec<&str> = [
        (Pattern::AmountOutlier, "for more than the cardholder pays"),
        (Pattern::MerchantCategory, "for what the cardholder does not pay for"),
        (Pattern::OddHour, "at an hour at which the cardholder does not pay"),
        (Pattern::DormantCard, "after a long pause"),
        (Pattern::UnusualPlace, "in a place where the cardholder does not pay"),
    ]
    .into_iter()
    .filter(|(pattern, _)| has(*pattern))
    .map(|(_, words)| words)
    .collect();
    format!("Another person uses the card, {}.", parts.join(", "))
}

const EXPLANATIONS: [Explanation; 11] = [
    Explanation {
        name: "card_testing",
        statement: "A thief tests the stolen card with small payments.",
        needs: &[Pattern::CardTesting, Pattern::DistributedTesting],
        explains: &[Pattern::Velocity],
    },
    Explanation {
        name: "account_takeover",
        statement: "The card, or a copy of it, is used by another person in another place.",
        needs: &[Pattern::ImpossibleTravel, Pattern::UnusualPlace],
        explains: &[Pattern::DormantCard],
    },
    Explanation {
        name: "cash_out_burst",
        statement: "A thief spends as much as possible before the card is blocked.",
        needs: &[Pattern::Velocity, Pattern::ContactlessLimit],
        explains: &[Pattern::AmountOutlier, Pattern::MerchantCategory],
    },
    Explanation {
        name: STOLEN,
        statement: "Another person uses the card.",
        needs: &[
            Pattern::AmountOutlier,
            Pattern::MerchantCategory,
            Pattern::OddHour,
            Pattern::DormantCard,
        ],
        explains: &[Pattern::UnusualPlace],
    },
    Explanation {
        name: "compromised_merchant",
        statement: "Stolen cards are used at the merchant.",
        needs: &[Pattern::MerchantRisk],
        explains: &[Pattern::DistributedTesting, Pattern::CardTesting, Pattern::SlowDrip],
    },
    Explanation {
        name: "collusion",
        statement: "The merchant and a few cards move money under the name of sales.",
        needs: &[Pattern::Collusion, Pattern::UnmatchedRefund],
        explains: &[Pattern::OddHour, Pattern::AmountOutlier],
    },
    Explanation {
        name: "structuring",
        statement: "Amounts are split to stay under a limit.",
        needs: &[Pattern::Structuring],
        explains: &[Pattern::Velocity, Pattern::MerchantCategory, Pattern::AmountOutlier],
    },
    Explanation {
        name: "slow_drip",
        statement: "A merchant takes small amounts again and again, so that nobody notices.",
        needs: &[Pattern::SlowDrip],
        explains: &[Pattern::MerchantRisk],
    },
    Explanation {
        name: "bust_out",
        statement: "The credit is spent within days, by somebody who does not mean to pay it back.",
        needs: &[Pattern::BustOut],
        explains: &[Pattern::AmountOutlier, Pattern::MerchantCategory, Pattern::Velocity],
    },
    Explanation {
        name: "money_mule",
        statement: "The card passes on money that is not the cardholder's.",
        needs: &[Pattern::PassThrough],
        explains: &[
            Pattern::AmountOutlier,
            Pattern::MerchantCategory,
            Pattern::Velocity,
            Pattern::UnmatchedRefund,
        ],
    },
    Explanation {
        name: "copied_card",
        statement: "The card was copied where other cards that are misused now had paid.",
        needs: &[Pattern::CommonPoint],
        explains: &[
            Pattern::ImpossibleTravel,
            Pattern::UnusualPlace,
            Pattern::MerchantRisk,
            Pattern::MerchantCategory,
        ],
    },
];

fn hypotheses(findings: &[Finding], likelihood: u32) -> Vec<Hypothesis> {
    let mut hypotheses: Vec<Hypothesis> = EXPLANATIONS
        .iter()
        .filter_map(|Explanation { name, statement, needs, explains }| {
            findings.iter().find(|finding| needs.contains(&finding.pattern))?;
            let fits = |finding: &&Finding| {
                needs.contains(&finding.pattern) || explains.contains(&finding.pattern)
            };
            let explained = findings.iter().filter(fits);
            let doubt = explained.fold(1_000_000, |doubt, finding| {
                left(doubt, weight(finding.pattern) * u64::from(finding.strength_permille))
            });
            let support_permille = u32::try_from(1_000 - doubt / 1_000).unwrap_or_default();
            let statement = match *name {
                STOLEN => stolen(findings),
                _ => (*statement).to_owned(),
            };
            (support_permille > 0).then(|| hypothesis(name, &statement, support_permille))
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
