//! The nearest past cases, by their numbers and, with an [`Embedding`], by their texts.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calibration::{self, Calibration};
use super::case_file::{CaseFile, Past, is_label_known};
use super::features::Features;
use super::row::Transaction;
use super::statistics::{hash, permille};

/// Number of nearest neighbours compared.
const NEIGHBOURS: usize = 15;

/// Neighbours in the result.
const SHOWN: usize = 5;

/// Most frauds and most honest payments compared, those with the smallest hashes.
const FRAUDS_MAX: usize = 250;
const HONEST_MAX: usize = 500;

/// Number of nearest cases whose texts are compared. Each text takes milliseconds, and a text
/// cannot bring a distant case near.
const TEXTS: usize = 60;

/// Minimum number of known cases for a result.
const CASES_MIN: usize = 20;

/// Embeds texts: similar texts have nearby points.
pub trait Embedding: fmt::Debug + Send + Sync {
    /// One point per text, in order, all with the same length and norm 1.
    ///
    /// # Errors
    /// A message, if the texts cannot be embedded.
    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String>;
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PastCase {
    pub transaction_id: String,
    pub is_fraud: bool,
    /// Distance, in thousandths; 0 is identical.
    pub distance_permille: u32,
    /// Distance of the texts, in thousandths, if texts are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_distance_permille: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SimilarityResults {
    pub transaction_id: String,
    /// Method of comparison.
    pub method: &'static str,
    /// Number of past cases compared.
    pub compared: u32,
    /// Number of frauds among them.
    pub frauds_compared: u32,
    /// Share of frauds among the nearest cases, in thousandths; absent with too few cases.
    pub near_fraud_permille: Option<u32>,
    pub cases: Vec<PastCase>,
    /// What the known labels say about weights of evidence.
    pub calibration: Calibration,
    /// Limitations of the result.
    pub gaps: Vec<String>,
}

/// The part of the result that reasoning uses.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Similarity {
    /// Number of past cases compared.
    pub compared: u32,
    /// Number of frauds among them.
    pub frauds_compared: u32,
    /// Share of frauds among the nearest cases, in thousandths; absent with too few cases.
    pub near_fraud_permille: Option<u32>,
    /// What the known labels say about weights of evidence; absent in records of earlier versions.
    #[serde(default)]
    pub calibration: Option<Calibration>,
}

/// A past case and its distance.
struct Near<'a> {
    past: &'a Past,
    distance: u32,
    text: Option<u32>,
}

/// Compares the payment with all labelled cases.
pub fn compare(case: &CaseFile, embedding: Option<&dyn Embedding>) -> SimilarityResults {
    let own = vector(&Features::of(&case.card, &case.target));
    let (frauds, honest): (Vec<_>, Vec<_>) =
        case.known_cases().partition(|(_, past)| past.is_known_fraud());
    let (frauds, honest) = (chosen(frauds, FRAUDS_MAX), chosen(honest, HONEST_MAX));
    let compared = frauds.len() + honest.len();
    let all: Vec<Placed<'_>> = frauds.iter().chain(&honest).map(Placed::of).collect();
    let calibration = calibrate(case, &all);
    let mut near: Vec<Near<'_>> = all.iter().map(|placed| placed.near(&own)).collect();
    sort(&mut near);
    let mut gaps = Vec::new();
    let mut method = "features";
    if let Some(embedding) = embedding {
        near.truncate(TEXTS);
        match compare_texts(&case.target, &mut near, embedding) {
            Ok(()) => method = "features and text",
            Err(reason) => gaps.push(format!("cannot compare texts: {reason}")),
        }
    }
    near.truncate(NEIGHBOURS);
    let near_frauds = near.iter().filter(|near| near.past.is_known_fraud()).count();
    let says_something = compared >= CASES_MIN && !frauds.is_empty();
    if compared < CASES_MIN {
        gaps.push(format!("only {compared} past cases are known, {CASES_MIN} are needed"));
    }
    if frauds.is_empty() {
        gaps.push("no past fraud is known".to_owned());
    }
    SimilarityResults {
        transaction_id: case.target.id.clone(),
        method,
        compared: u32::try_from(compared).unwrap_or(u32::MAX),
        frauds_compared: u32::try_from(frauds.len()).unwrap_or(u32::MAX),
        near_fraud_permille: says_something.then(|| permille(near_frauds, near.len())),
        cases: near.into_iter().take(SHOWN).map(shown).collect(),
        calibration,
        gaps,
    }
}

/// A past case with its features.
struct Placed<'a> {
    before: &'a [Past],
    past: &'a Past,
    vector: [u32; DIMENSIONS],
}

impl<'a> Placed<'a> {
    fn of((before, past): &Known<'a>) -> Self {
        Self { before, past, vector: vector(&Features::of(before, &past.transaction)) }
    }

    fn near(&self, own: &[u32; DIMENSIONS]) -> Near<'a> {
        Near { past: self.past, distance: distance(own, &self.vector), text: None }
    }
}

/// Calibrates on some of the cases, each compared by its features with those known at its own time.
fn calibrate(case: &CaseFile, all: &[Placed<'_>]) -> Calibration {
    let (frauds, honest): (Vec<_>, Vec<_>) =
        all.iter().partition(|placed| placed.past.is_known_fraud());
    let some = frauds.into_iter().take(calibration::FRAUDS_MAX);
    let some = some.chain(honest.into_iter().take(calibration::HONEST_MAX));
    let known = some.map(|placed| calibration::Known {
        before: placed.before,
        past: placed.past,
        near_fraud_permille: near_at_its_time(placed, all),
    });
    Calibration::of(case, &known.collect::<Vec<_>>())
}

/// Share of frauds among the nearest cases whose labels were known when a past case was made.
fn near_at_its_time(placed: &Placed<'_>, all: &[Placed<'_>]) -> Option<u32> {
    let at_ms = placed.past.transaction.at_ms;
    let known = all.iter().filter(|other| is_label_known(&other.past.transaction, at_ms));
    let mut near: Vec<(u32, &str, bool)> = known
        .map(|other| {
            let apart = distance(&placed.vector, &other.vector);
            (apart, other.past.transaction.id.as_str(), other.past.is_known_fraud())
        })
        .collect();
    if near.len() < CASES_MIN || !near.iter().any(|(_, _, is_fraud)| *is_fraud) {
        return None;
    }
    near.sort_unstable();
    near.truncate(NEIGHBOURS);
    Some(permille(near.iter().filter(|(_, _, is_fraud)| *is_fraud).count(), near.len()))
}

fn sort(near: &mut [Near<'_>]) {
    near.sort_by(|a, b| {
        let ids = || a.past.transaction.id.cmp(&b.past.transaction.id);
        a.distance.cmp(&b.distance).then_with(ids)
    });
}

/// Adds the text distance as one more dimension and sorts again.
fn compare_texts(
    payment: &Transaction,
    near: &mut [Near<'_>],
    embedding: &dyn Embedding,
) -> Result<(), String> {
    let texts = near.iter().map(|near| &near.past.transaction).chain([payment]);
    let points = embedding.embed(&texts.map(words).collect::<Vec<_>>())?;
    let (own, others) = points.split_last().ok_or("no embedding was returned")?;
    if others.len() != near.len() {
        return Err(format!("{} texts have {} embeddings", near.len() + 1, points.len()));
    }
    let numbers = u32::try_from(DIMENSIONS).unwrap_or(1);
    for (near, point) in near.iter_mut().zip(others) {
        let text = apart_permille(own, point);
        near.distance = (near.distance * numbers + text) / (numbers + 1);
        near.text = Some(text);
    }
    sort(near);
    Ok(())
}

/// The text of a payment. Merchants write it, so it is used for distances only.
fn words(payment: &Transaction) -> String {
    let Transaction { merchant, category, city, country, channel, .. } = payment;
    format!("{merchant}, {category}, {}, {city} {country}", channel.as_str())
}

/// 0 for the same direction, 1,000 for a right angle or more.
fn apart_permille(a: &[f32], b: &[f32]) -> u32 {
    let cosine: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "values below 0 and NaN become 0"
    )]
    let alike = (cosine * 1_000.0).round() as u32;
    1_000 - alike.min(1_000)
}

type Known<'a> = (&'a [Past], &'a Past);

/// The items with the smallest hashes, a reproducible random sample, in the order of their hashes.
fn chosen(mut cases: Vec<Known<'_>>, cases_max: usize) -> Vec<Known<'_>> {
    cases.sort_by_cached_key(|(_, past)| hash(&past.transaction.id));
    cases.truncate(cases_max);
    cases
}

fn shown(near: Near<'_>) -> PastCase {
    PastCase {
        transaction_id: near.past.transaction.id.clone(),
        is_fraud: near.past.is_known_fraud(),
        distance_permille: near.distance,
        text_distance_permille: near.text,
    }
}

/// Number of dimensions.
const DIMENSIONS: usize = 8;

/// The features, scaled to 0 to 1,000. Unknown values get a neutral one.
fn vector(features: &Features) -> [u32; DIMENSIONS] {
    let ratio = features.amount_ratio_permille.unwrap_or(1_000).max(1);
    // Logarithmic: doubling is one step.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::Amount;
    use crate::case_file::Labels;
    use crate::row::Channel;

    /// Distinguishes two kinds of shops by a word; fails on other texts.
    #[derive(Debug)]
    struct Kinds;

    impl Embedding for Kinds {
        fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
            let point = |text: &String| match text {
                text if text.contains("???") => Err("a text cannot be read".to_owned()),
                text if text.contains("gift") || text.contains("voucher") => Ok(vec![1.0, 0.0]),
                _ => Ok(vec![0.0, 1.0]),
            };
            texts.iter().map(point).collect()
        }
    }

    fn payment(number: i64, card: &str, merchant: &str) -> Transaction {
        Transaction {
            id: format!("t{number}"),
            at_ms: number * 3 * 86_400_000,
            card: card.to_owned(),
            merchant: merchant.to_owned(),
            category: "shop".to_owned(),
            amount: Amount::parse("20.00").unwrap(),
            currency: "EUR".to_owned(),
            country: "DE".to_owned(),
            city: "Bonn".to_owned(),
            point: None,
            channel: Channel::Online,
        }
    }

    /// Forty cards with one earlier payment each and equal numbers; those at gift shops are frauds.
    fn case(merchant: &str) -> CaseFile {
        let past = |number: i64| {
            let is_fraud = number % 4 == 0;
            let merchant = if is_fraud { "a voucher kiosk" } else { "a bakery" };
            let transaction = payment(number, &format!("c{number}"), merchant);
            vec![Past { transaction, known_fraud: Some(is_fraud), settles_at_ms: 0 }]
        };
        CaseFile {
            target: payment(100, "mine", merchant),
            card: Vec::new(),
            merchant: None,
            sample: (0..40).map(past).collect(),
            is_whole: true,
            labels: Labels { frauds: 10, honest: 30 },
            rows: 41,
            source: "data.csv".to_owned(),
        }
    }

    #[test]
    fn with_equal_numbers_cases_with_similar_texts_are_nearer() {
        let found = compare(&case("gift cards"), Some(&Kinds));
        assert_eq!(found.method, "features and text");
        // Only ten such frauds exist among the fifteen neighbours.
        assert_eq!(found.near_fraud_permille, Some(666));
        assert!(found.cases.iter().all(|case| case.is_fraud));
        assert!(found.cases.iter().all(|case| case.text_distance_permille == Some(0)));
        let found = compare(&case("a baker's"), Some(&Kinds));
        assert_eq!(found.near_fraud_permille, Some(0));
        let found = compare(&case("gift cards"), None);
        assert_eq!((found.method, found.gaps.len()), ("features", 0));
        assert!(found.cases.iter().all(|case| case.text_distance_permille.is_none()));
    }

    #[test]
    fn without_text_distances_the_numbers_decide() {
        let found = compare(&case("???"), Some(&Kinds));
        let without = compare(&case("???"), None);
        assert_eq!(found.gaps, ["cannot compare texts: a text cannot be read"]);
        assert_eq!((found.method, &found.cases), ("features", &without.cases));
        assert_eq!(found.near_fraud_permille, without.near_fraud_permille);
    }

    #[test]
    fn a_point_that_is_none_is_far_from_everything() {
        assert_eq!(apart_permille(&[f32::NAN, 0.0], &[1.0, 0.0]), 1_000);
        assert_eq!(apart_permille(&[-1.0, 0.0], &[1.0, 0.0]), 1_000);
        assert_eq!(apart_permille(&[1.0, 0.0], &[1.0, 0.0]), 0);
    }
}
