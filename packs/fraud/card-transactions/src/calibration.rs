//! Calibrates the weight of evidence on past payments whose labels were known by then.
//!
//! Each past payment is weighed as it would have been at its own time: with its card's habits, its merchant's
//! payments and the labels known then. A logistic curve maps the weight to the share of frauds (Platt
//! scaling), so the order of scores stays. The sample has more frauds than the data; weights undo that.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case_file::{CaseFile, Labels, Past, in_time};
use super::patterns;
use super::reasoning;

/// Fewest past frauds and honest payments with a known label; with fewer, scores are uncalibrated.
pub const FRAUDS_MIN: usize = 10;
pub const HONEST_MIN: usize = 50;

/// Most frauds and honest payments that are weighed, the first ones of the sample.
pub const FRAUDS_MAX: usize = 60;
pub const HONEST_MAX: usize = 180;

/// Newton steps; the fit converges in about ten.
const STEPS_MAX: usize = 50;

/// A flatter curve means that the labels do not follow the evidence, in thousandths.
const SLOPE_MIN_PERMILLE: i32 = 100;

/// Largest coefficient, in thousandths.
const COEFFICIENT_MAX: f64 = 30_000.0;

/// A curve from the weight of evidence to a probability, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case", deny_unknown_fields)]
pub enum Calibration {
    Calibrated {
        /// Number of past frauds with a known label.
        frauds: u64,
        /// Number of past honest payments with a known label.
        honest: u64,
        /// Slope of the log odds, in thousandths.
        slope_permille: i32,
        /// The log odds at even evidence, in thousandths.
        intercept_permille: i32,
    },
    Uncalibrated {
        reason: String,
    },
}

/// A past payment that is weighed.
pub struct Known<'a> {
    /// Its card's payments before it.
    pub before: &'a [Past],
    pub past: &'a Past,
    /// Share of frauds among its nearest cases at its time, in thousandths.
    pub near_fraud_permille: Option<u32>,
}

impl Calibration {
    /// Fits the curve.
    pub fn of(case: &CaseFile, known: &[Known<'_>]) -> Self {
        let merchants = merchants(case, known);
        let weighed: Vec<(u32, bool)> = known
            .iter()
            .map(|known| (weigh(known, &merchants), known.past.is_known_fraud()))
            .collect();
        fit(&weighed, case.labels)
    }

    /// The probability of fraud for a weight of evidence, both in thousandths; `None` if uncalibrated.
    pub fn probability_permille(&self, evidence_permille: u32) -> Option<u32> {
        let Self::Calibrated { slope_permille, intercept_permille, .. } = self else {
            return None;
        };
        let slope = f64::from(*slope_permille) / 1_000.0;
        let intercept = f64::from(*intercept_permille) / 1_000.0;
        let share = logistic(intercept + slope * log_odds(evidence_permille));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1")]
        let permille = (share * 1_000.0).round() as u32;
        // A past without such a fraud does not rule one out.
        Some(permille.clamp(1, 999))
    }

    /// One sentence about the labels.
    pub fn in_words(&self) -> String {
        match self {
            Self::Calibrated { frauds, honest, .. } => format!(
                "calibrated on {frauds} frauds and {honest} honest payments whose labels were known by then"
            ),
            Self::Uncalibrated { reason } => format!("uncalibrated: {reason}"),
        }
    }
}

/// The payments of the merchants at which known payments were made, oldest first; empty if the source
/// has only one card's payments.
fn merchants<'a>(case: &'a CaseFile, known: &[Known<'a>]) -> BTreeMap<&'a str, Vec<Past>> {
    let mut merchants: BTreeMap<&str, Vec<Past>> = BTreeMap::new();
    if case.merchant.is_none() {
        return merchants;
    }
    let wanted: BTreeSet<&str> =
        known.iter().map(|known| known.past.transaction.merchant.as_str()).collect();
    for past in case.sample.iter().flatten().chain(&case.card) {
        let merchant = past.transaction.merchant.as_str();
        if wanted.contains(merchant) {
            merchants.entry(merchant).or_default().push(past.clone());
        }
    }
    for rows in merchants.values_mut() {
        rows.sort_unstable_by(in_time);
    }
    merchants
}

fn weigh(known: &Known<'_>, merchants: &BTreeMap<&str, Vec<Past>>) -> u32 {
    let payment = &known.past.transaction;
    let merchant = merchants.get(payment.merchant.as_str()).map(|rows| {
        let end = rows.partition_point(|past| in_time(past, known.past).is_lt());
        &rows[..end]
    });
    let found = patterns::look_at(payment, known.before, merchant);
    reasoning::evidence_permille(&found.findings, known.near_fraud_permille)
}

/// Fits the curve to pairs of weight and `is_fraud`.
fn fit(weighed: &[(u32, bool)], labels: Labels) -> Calibration {
    let frauds = weighed.iter().filter(|(_, is_fraud)| *is_fraud).count();
    let honest = weighed.len() - frauds;
    if frauds < FRAUDS_MIN || honest < HONEST_MIN {
        let reason = format!(
            "{frauds} past frauds and {honest} honest payments have a label known by then, \
             {FRAUDS_MIN} and {HONEST_MIN} are needed"
        );
        return Calibration::Uncalibrated { reason };
    }
    let points = points(weighed, frauds, honest, labels);
    let (slope, intercept) = logistic_fit(&points);
    let (slope_permille, intercept_permille) = (permille(slope), permille(intercept));
    if slope_permille < SLOPE_MIN_PERMILLE {
        let reason = "the known labels do not follow the evidence".to_owned();
        return Calibration::Uncalibrated { reason };
    }
    let Labels { frauds, honest } = labels;
    Calibration::Calibrated { frauds, honest, slope_permille, intercept_permille }
}

/// A past payment: the log odds of its evidence, the share of frauds to fit, and its weight.
struct Point {
    evidence: f64,
    target: f64,
    weight: f64,
}

/// Source of the targets, which keep the curve finite when the labels separate: J. Platt, "Probabilistic
/// Outputs for Support Vector Machines", 1999, section 2.2.
#[expect(clippy::cast_precision_loss, reason = "counts are at most ten million")]
fn points(weighed: &[(u32, bool)], frauds: usize, honest: usize, labels: Labels) -> Vec<Point> {
    let (n_frauds, n_honest) = (frauds as f64, honest as f64);
    let all = (labels.frauds + labels.honest).max(1) as f64;
    let of = |is_fraud: bool| {
        if is_fraud {
            ((n_frauds + 1.0) / (n_frauds + 2.0), labels.frauds as f64 / all / n_frauds)
        } else {
            (1.0 / (n_honest + 2.0), labels.honest as f64 / all / n_honest)
        }
    };
    let point = |(evidence, is_fraud): &(u32, bool)| {
        let (target, weight) = of(*is_fraud);
        Point { evidence: log_odds(*evidence), target, weight }
    };
    weighed.iter().map(point).collect()
}

/// Maximum likelihood by Newton's method with halved steps: slope and intercept.
fn logistic_fit(points: &[Point]) -> (f64, f64) {
    let (mut slope, mut intercept) = (1.0, 0.0);
    let mut best = loss(points, slope, intercept);
    for _ in 0..STEPS_MAX {
        let (by_slope, by_intercept) = newton_step(points, slope, intercept);
        let mut length = 1.0;
        let mut next = best;
        while length > 1e-6 {
            next = loss(points, slope - length * by_slope, intercept - length * by_intercept);
            if next < best {
                break;
            }
            length /= 2.0;
        }
        if best - next < 1e-12 {
            break;
        }
        (slope, intercept) = (slope - length * by_slope, intercept - length * by_intercept);
        best = next;
    }
    (slope, intercept)
}

fn newton_step(points: &[Point], slope: f64, intercept: f64) -> (f64, f64) {
    // The small diagonal keeps the matrix invertible when all evidence is equal.
    let (mut g_slope, mut g_intercept) = (0.0, 0.0);
    let (mut h_slope, mut h_both, mut h_intercept) = (1e-9, 0.0, 1e-9);
    for Point { evidence, target, weight } in points {
        let share = logistic(intercept + slope * evidence);
        let gap = weight * (share - target);
        let curve = weight * share * (1.0 - share);
        g_slope += gap * evidence;
        g_intercept += gap;
        h_slope += curve * evidence * evidence;
        h_both += curve * evidence;
        h_intercept += curve;
    }
    let determinant = (h_slope * h_intercept - h_both * h_both).max(1e-18);
    (
        (h_intercept * g_slope - h_both * g_intercept) / determinant,
        (h_slope * g_intercept - h_both * g_slope) / determinant,
    )
}

fn loss(points: &[Point], slope: f64, intercept: f64) -> f64 {
    let of = |Point { evidence, target, weight }: &Point| {
        let odds = intercept + slope * evidence;
        // ln(1 + exp(odds)) - target × odds, without overflow.
        weight * (odds.max(0.0) + (-odds.abs()).exp().ln_1p() - target * odds)
    };
    points.iter().map(of).sum()
}

/// The log odds of a share in thousandths; finite at 0 and 1,000.
fn log_odds(permille: u32) -> f64 {
    let share = (f64::from(permille.min(1_000)) + 5.0) / 1_010.0;
    (share / (1.0 - share)).ln()
}

fn logistic(odds: f64) -> f64 {
    1.0 / (1.0 + (-odds).exp())
}

#[expect(clippy::cast_possible_truncation, reason = "clamped")]
fn permille(coefficient: f64) -> i32 {
    (coefficient * 1_000.0).clamp(-COEFFICIENT_MAX, COEFFICIENT_MAX).round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Payments with these weights, of which this many of ten were frauds.
    fn labelled(table: &[(u32, usize)], times: usize) -> Vec<(u32, bool)> {
        let row = |(evidence, frauds): &(u32, usize)| {
            (0..10).map(|n| (*evidence, n < *frauds)).collect::<Vec<_>>()
        };
        (0..times).flat_map(|_| table.iter().flat_map(row)).collect()
    }

    fn labels(weighed: &[(u32, bool)]) -> Labels {
        let frauds = weighed.iter().filter(|(_, is_fraud)| *is_fraud).count() as u64;
        Labels { frauds, honest: weighed.len() as u64 - frauds }
    }

    #[test]
    fn a_probability_is_the_share_of_frauds_among_the_like() {
        let weighed = labelled(&[(120, 1), (500, 3), (900, 7)], 20);
        let curve = fit(&weighed, labels(&weighed));
        for (evidence, expected) in [(120, 100), (500, 330), (900, 700)] {
            let share = curve.probability_permille(evidence).unwrap();
            assert!(share.abs_diff(expected) < 60, "{evidence}: {share} {curve:?}");
        }
        let shares = (0..=1_000).map(|evidence| curve.probability_permille(evidence).unwrap());
        assert!(shares.is_sorted());
    }

    /// The sample has a fraud for each honest payment; the data have one for a thousand.
    #[test]
    fn the_share_is_that_of_the_data_and_not_of_the_sample() {
        let weighed = labelled(&[(100, 1), (900, 9)], 20);
        let of_sample = fit(&weighed, labels(&weighed)).probability_permille(900).unwrap();
        let rare = Labels { frauds: 200, honest: 200_000 };
        let of_data = fit(&weighed, rare).probability_permille(900).unwrap();
        assert!(of_sample > 800 && of_data < 30, "{of_sample} {of_data}");
    }

    #[test]
    fn too_few_or_contrary_labels_leave_it_uncalibrated() {
        let few = labelled(&[(100, 0), (900, 9)], 1);
        let reason = fit(&few, labels(&few)).in_words();
        assert_eq!(
            reason,
            "uncalibrated: 9 past frauds and 11 honest payments have a label known by then, \
             10 and 50 are needed"
        );
        let contrary = labelled(&[(100, 9), (900, 1)], 20);
        let found = fit(&contrary, labels(&contrary));
        assert_eq!(found.in_words(), "uncalibrated: the known labels do not follow the evidence");
        assert_eq!(found.probability_permille(900), None);
    }

    #[test]
    fn labels_that_separate_give_a_finite_curve() {
        let weighed = labelled(&[(0, 0), (1_000, 10)], 20);
        let curve = fit(&weighed, labels(&weighed));
        let at = |evidence| curve.probability_permille(evidence).unwrap();
        assert!(at(0) < 20 && at(1_000) > 950, "{curve:?}");
    }
}
