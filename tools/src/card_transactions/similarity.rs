//! The nearest past cases, by their numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case_file::{CaseFile, Past};
use super::features::Features;
use super::statistics::{hash, permille};

/// How many neighbours are asked.
const NEIGHBOURS: usize = 15;

/// How many of them are shown.
const SHOWN: usize = 5;

/// Most frauds and most honest payments that are compared, those with the smallest hashes.
const FRAUDS_MAX: usize = 250;
const HONEST_MAX: usize = 500;

/// Fewer known cases than these say nothing.
const CASES_MIN: usize = 20;

/// A past case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PastCase {
    /// The transaction.
    pub transaction_id: String,
    /// What it turned out to be.
    pub is_fraud: bool,
    /// How far it is, in thousandths: 0 is the same.
    pub distance_permille: u32,
}

/// The nearest past cases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SimilarityResults {
    /// The transaction.
    pub transaction_id: String,
    /// How cases are compared.
    pub method: &'static str,
    /// How many past cases were compared, and how many of them were frauds.
    pub compared: u32,
    /// Of these, frauds.
    pub frauds_compared: u32,
    /// Frauds among the nearest, in thousandths, if there are enough cases.
    pub near_fraud_permille: Option<u32>,
    /// The nearest.
    pub cases: Vec<PastCase>,
    /// What limits what this says.
    pub gaps: Vec<String>,
}

/// What reasoning takes of it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Similarity {
    /// How many past cases were compared.
    pub compared: u32,
    /// Of these, frauds.
    pub frauds_compared: u32,
    /// Frauds among the nearest, in thousandths, if there are enough cases.
    pub near_fraud_permille: Option<u32>,
}

/// Compares the payment with all known cases.
pub fn compare(case: &CaseFile) -> SimilarityResults {
    let own = vector(&Features::of(&case.card, &case.target));
    let (frauds, honest): (Vec<_>, Vec<_>) =
        case.known_cases().partition(|(_, past)| past.is_known_fraud());
    let (frauds, honest) = (chosen(frauds, FRAUDS_MAX), chosen(honest, HONEST_MAX));
    let compared = frauds.len() + honest.len();
    let mut near: Vec<(u32, &Past)> = frauds
        .iter()
        .chain(&honest)
        .map(|(before, past)| {
            (distance(&own, &vector(&Features::of(before, &past.transaction))), *past)
        })
        .collect();
    near.sort_by(|(a, x), (b, y)| a.cmp(b).then_with(|| x.transaction.id.cmp(&y.transaction.id)));
    near.truncate(NEIGHBOURS);
    let near_frauds = near.iter().filter(|(_, past)| past.is_known_fraud()).count();
    let mut gaps = Vec::new();
    if compared < CASES_MIN {
        gaps.push(format!("only {compared} past cases are known, {CASES_MIN} are needed"));
    }
    if frauds.is_empty() {
        gaps.push("no past fraud is known, so none can be near".to_owned());
    }
    SimilarityResults {
        transaction_id: case.target.id.clone(),
        method: "features",
        compared: u32::try_from(compared).unwrap_or(u32::MAX),
        frauds_compared: u32::try_from(frauds.len()).unwrap_or(u32::MAX),
        near_fraud_permille: (gaps.is_empty()).then(|| permille(near_frauds, near.len())),
        cases: near.into_iter().take(SHOWN).map(shown).collect(),
        gaps,
    }
}

type Known<'a> = (&'a [Past], &'a Past);

/// Of many those with the smallest hashes: chance that repeats itself.
fn chosen(mut cases: Vec<Known<'_>>, cases_max: usize) -> Vec<Known<'_>> {
    if cases.len() > cases_max {
        cases.sort_by_cached_key(|(_, past)| hash(&past.transaction.id));
        cases.truncate(cases_max);
    }
    cases
}

fn shown((distance_permille, past): (u32, &Past)) -> PastCase {
    PastCase {
        transaction_id: past.transaction.id.clone(),
        is_fraud: past.is_known_fraud(),
        distance_permille,
    }
}

/// How many numbers a payment is compared by.
const DIMENSIONS: usize = 8;

/// The features on one scale, from 0 to 1,000; what cannot be known lies where it says least.
fn vector(features: &Features) -> [u32; DIMENSIONS] {
    let ratio = features.amount_ratio_permille.unwrap_or(1_000).max(1);
    // Twice as much is one step, wherever one starts.
    let doublings = ratio.ilog2() * 62 + (ratio >> ratio.ilog2().saturating_sub(3) & 7) * 7;
    let rarity = |share: Option<u32>| 1_000 - (share.unwrap_or(250) * 4).min(1_000);
    let flag = |flag: bool, weight: u32| if flag { weight } else { 0 };
    [
        doublings.min(1_000),
        (features.payments_1h - 1).min(8) * 125,
        features.small_payments_1h.min(4) * 250,
        (features.journey_kmh.unwrap_or_default() / 2).min(1_000),
        rarity(features.hour_share_permille) / 2,
        rarity(features.category_share_permille),
        flag(features.is_new_country, 800),
        flag(features.is_online, 400) + flag(features.is_new_merchant, 200),
    ]
}

fn distance(a: &[u32; DIMENSIONS], b: &[u32; DIMENSIONS]) -> u32 {
    let sum: u32 = a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).sum();
    sum / u32::try_from(DIMENSIONS).unwrap_or(1)
}
