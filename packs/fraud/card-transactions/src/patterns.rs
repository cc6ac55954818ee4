//! Detects unusual patterns of a payment, with their strength and supporting rows.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case_file::{CaseFile, Past};
use super::features::{
    Features, HABIT_ROWS, HOUR_MS, Journey, is_small, journey, usual_amount, within,
};
use super::row::Transaction;
use super::statistics::{kilometres, most_within, permille, ramp, times};

/// Most rows cited by a finding.
const ROWS_MAX: usize = 12;

/// Faster than an airliner, including transfers, in kilometres per hour.
const IMPOSSIBLE_KMH: i64 = 900;

/// Shorter distances, in kilometres, may be inaccurate terminal positions.
const JOURNEY_KM_MIN: u32 = 150;

/// A short time, in milliseconds.
const QUICK_MS: i64 = 10 * 60_000;

/// Honest payments added to every merchant's count, so that one fraud at a rarely used one counts
/// little.
const DOUBT_ROWS: usize = 5;

/// Longest time between a booking and its trip.
const TICKET_MS: i64 = 60 * 24 * HOUR_MS;

/// Longest time that another payment abroad still explains a trip.
const STAY_MS: i64 = 21 * 24 * HOUR_MS;

/// Categories of goods that resell within the hour.
const HIGH_RISK: [&str; 5] = ["gift_cards", "crypto", "money_transfer", "jewelry", "gaming"];

/// Categories of bookings.
const TRAVEL: [&str; 3] = ["airline", "lodging", "travel"];

/// Fewer payments than this show no habits of time and category.
const ROUTINE_ROWS_MIN: usize = 15;

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// More payments within an hour than usual for the card.
    Velocity,
    /// An amount far above the card's usual one.
    AmountOutlier,
    /// Two locations too far apart to travel between in the time.
    ImpossibleTravel,
    /// A location that is new for the card.
    UnusualPlace,
    /// A series of small payments that test whether the card works.
    CardTesting,
    /// An unusual time of day for the card.
    OddHour,
    /// A merchant category that is new for the card.
    MerchantCategory,
    /// A merchant where cards were misused before, or are being tested now.
    MerchantRisk,
}

impl Pattern {
    /// All patterns, in order of detection.
    pub const ALL: [Self; 8] = [
        Self::Velocity,
        Self::AmountOutlier,
        Self::ImpossibleTravel,
        Self::UnusualPlace,
        Self::CardTesting,
        Self::OddHour,
        Self::MerchantCategory,
        Self::MerchantRisk,
    ];
}

/// An unusual pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    pub pattern: Pattern,
    /// Strength, in thousandths.
    pub strength_permille: u32,
    /// Explanation with numbers.
    pub explanation: String,
    /// The supporting transactions, including the investigated one.
    pub rows: Vec<String>,
}

/// A pattern that could not be checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotChecked {
    pub pattern: Pattern,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PatternResults {
    pub transaction_id: String,
    /// Strongest first.
    pub findings: Vec<Finding>,
    /// Patterns that could not be checked.
    pub not_checked: Vec<NotChecked>,
}

pub fn look(case: &CaseFile) -> PatternResults {
    let scene = Scene::of(case);
    let (mut findings, mut not_checked) = (Vec::new(), Vec::new());
    for pattern in Pattern::ALL {
        match scene.look_for(pattern) {
            Look::Found(finding) => findings.push(finding),
            Look::Nothing => {}
            Look::Unknown(reason) => {
                not_checked.push(NotChecked { pattern, reason: reason.to_owned() });
            }
        }
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.strength_permille));
    PatternResults { transaction_id: case.target.id.clone(), findings, not_checked }
}

enum Look {
    Found(Finding),
    Nothing,
    Unknown(&'static str),
}

/// The payment and its context.
struct Scene<'a> {
    payment: &'a Transaction,
    before: &'a [Past],
    habits: &'a [Past],
    merchant: Option<&'a [Past]>,
    features: Features,
}

impl<'a> Scene<'a> {
    fn of(case: &'a CaseFile) -> Self {
        let before = case.card.as_slice();
        Self {
            payment: &case.target,
            before,
            habits: &before[before.len().saturating_sub(HABIT_ROWS)..],
            merchant: case.merchant.as_deref(),
            features: Features::of(before, &case.target),
        }
    }

    fn look_for(&self, pattern: Pattern) -> Look {
        match pattern {
            Pattern::Velocity => self.velocity(),
            Pattern::AmountOutlier => self.amount_outlier(),
            Pattern::ImpossibleTravel => self.impossible_travel(),
            Pattern::UnusualPlace => self.unusual_place(),
            Pattern::CardTesting => self.card_testing(),
            Pattern::OddHour => self.odd_hour(),
            Pattern::MerchantCategory => self.merchant_category(),
            Pattern::MerchantRisk => self.merchant_risk(),
        }
    }

    fn found<'b>(
        &self,
        pattern: Pattern,
        strength: i64,
        explanation: String,
        rows: impl IntoIterator<Item = &'b Transaction>,
    ) -> Look {
        let mut rows: Vec<String> = rows.into_iter().map(|row| row.id.clone()).collect();
        // The newest payments matter most; the payment itself is always included.
        rows.drain(..rows.len().saturating_sub(ROWS_MAX - 1));
        rows.push(self.payment.id.clone());
        let strength_permille = u32::try_from(strength.clamp(0, 1_000)).unwrap_or_default();
        Look::Found(Finding { pattern, strength_permille, explanation, rows })
    }

    fn velocity(&self) -> Look {
        let hour = within(self.before, self.payment.at_ms, HOUR_MS);
        let in_hour = i64::from(self.features.payments_1h);
        let busiest = busiest(self.settled(), HOUR_MS);
        let by_hour = if in_hour >= 4 && in_hour > busiest + 1 {
            ramp(in_hour - busiest, (2, 7), (350, 1_000))
        } else {
            0
        };
        // The rate of a burst identifies it before its length does.
        let quick = within(self.before, self.payment.at_ms, QUICK_MS);
        let in_quick = i64::try_from(quick.len()).unwrap_or(i64::MAX).saturating_add(1);
        let is_online = !self.payment.is_card_present();
        let by_pace = if is_online && in_quick > busiest_online(self.settled()) && in_quick >= 2 {
            ramp(in_quick, (2, 5), (250, 850))
        } else {
            0
        };
        let strength = by_hour.max(by_pace);
        if strength == 0 {
            return Look::Nothing;
        }
        let explanation = format!(
            "{in_hour} payments within one hour, {in_quick} of them within ten minutes; in {} earlier \
             payments the card never made more than {busiest} in an hour",
            self.settled().len()
        );
        self.found(Pattern::Velocity, strength, explanation, hour.iter().map(|p| &p.transaction))
    }

    fn amount_outlier(&self) -> Look {
        if !self.payment.amount.is_payment() {
            return Look::Unknown("the amount is not a payment");
        }
        let Some(usual) = usual_amount(self.habits, &self.payment.currency) else {
            return Look::Unknown("the card has too few earlier payments in this currency");
        };
        let ratio = i64::from(self.features.amount_ratio_permille.unwrap_or_default());
        if ratio < 3_500 {
            return Look::Nothing;
        }
        // Payments of the last day may be the same misuse.
        let same = |past: &&Past| past.transaction.currency == self.payment.currency;
        let settled = self.settled().iter().filter(same);
        let largest = settled.max_by_key(|past| past.transaction.amount);
        let Some(largest) = largest.map(|past| &past.transaction) else { return Look::Nothing };
        let strength = ramp(ratio, (3_500, 16_000), (250, 900));
        // A card with equally large payments in the past makes them now and then.
        let is_known = largest.amount.value() * 5 >= self.payment.amount.value() * 4;
        let strength = if is_known { strength / 3 } else { strength };
        let strength = if self.is_ordinary_at_the_merchant() { strength / 2 } else { strength };
        let Transaction { amount, currency, .. } = self.payment;
        let explanation = format!(
            "{amount} {currency} is {} times what the card usually pays ({}); the most so far was {}",
            times(ratio),
            super::amount::Amount::of_cents(usual / 100),
            largest.amount,
        );
        self.found(Pattern::AmountOutlier, strength, explanation, [largest])
    }

    fn impossible_travel(&self) -> Look {
        if !self.payment.is_card_present() {
            return Look::Nothing;
        }
        if self.payment.point.is_none() {
            return Look::Unknown("the payment has no place");
        }
        let here = self.payment;
        if let Some(from) = journey(self.before, here).filter(is_impossible) {
            return self.travelled(from, here);
        }
        // After impossible travel, later payments nearby are still the cloned card's.
        let day = within(self.before, here.at_ms, 24 * HOUR_MS);
        let first = self.before.len() - day.len();
        let arrived = day.iter().enumerate().rev().find_map(|(at, past)| {
            let past = &past.transaction;
            let from = journey(&self.before[..first + at], past).filter(is_impossible)?;
            let km = kilometres(past.point?, here.point?);
            (km < JOURNEY_KM_MIN).then_some((from, past))
        });
        match arrived {
            Some((from, to)) => self.travelled(from, to),
            None => Look::Nothing,
        }
    }

    fn travelled(&self, journey: Journey<'_>, to: &Transaction) -> Look {
        let Journey { from, km, kmh } = journey;
        let strength = ramp(i64::from(kmh), (IMPOSSIBLE_KMH, 3_000), (750, 1_000));
        let minutes = (to.at_ms - from.at_ms) / 60_000;
        let explanation = format!(
            "the card was in {} ({}) and {minutes} minutes later in {} ({}), {km} km away: \
             {kmh} km/h",
            from.city, from.country, to.city, to.country,
        );
        let rows = if to.id == self.payment.id { vec![from] } else { vec![from, to] };
        self.found(Pattern::ImpossibleTravel, strength, explanation, rows)
    }

    fn unusual_place(&self) -> Look {
        if self.habits.len() < super::features::HABIT_ROWS_MIN {
            return Look::Unknown("the card has too few earlier payments");
        }
        let payment = self.payment;
        let nearest = payment.point.and_then(|here| {
            let places = self.settled().iter().filter_map(|past| past.transaction.point);
            places.map(|there| kilometres(there, here)).min()
        });
        let is_far = nearest.is_some_and(|km| km > 2 * JOURNEY_KM_MIN);
        let is_new_country =
            !self.settled().iter().any(|past| past.transaction.country == payment.country);
        if !is_new_country && !is_far {
            return Look::Nothing;
        }
        let base = match (is_new_country, payment.is_card_present()) {
            (true, true) => 450,
            (true, false) => 550,
            (false, true) => 300,
            (false, false) => 350,
        };
        let ticket = self.before.iter().rev().map(|past| &past.transaction).find(|past| {
            TRAVEL.contains(&past.category.as_str()) && past.at_ms + TICKET_MS >= payment.at_ms
        });
        let far = nearest.map_or(String::new(), |km| format!(", {km} km from any earlier payment"));
        let (place, way) = (&payment.city, if payment.is_card_present() { "in" } else { "from" });
        let country = if is_new_country {
            "a country that is new to the card"
        } else {
            "a place that is new to the card"
        };
        let explained = format!("paid {way} {place} ({}){far}: {country}", payment.country);
        match ticket {
            Some(ticket) if payment.is_card_present() => {
                let explained = format!("{explained}; but {} was paid before", ticket.category);
                self.found(Pattern::UnusualPlace, base / 4, explained, [ticket])
            }
            _ => self.found(Pattern::UnusualPlace, base, explained, self.stays()),
        }
    }

    /// Whether other cards pay similar amounts there.
    fn is_ordinary_at_the_merchant(&self) -> bool {
        let others = self.merchant.unwrap_or_default();
        let usual = usual_amount(others, &self.payment.currency);
        usual.is_some_and(|usual| self.payment.amount.value() <= usual * 2)
    }

    /// The card's payments up to a day before; later ones may be part of the same misuse.
    fn settled(&self) -> &'a [Past] {
        let recent = within(self.before, self.payment.at_ms, 24 * HOUR_MS).len();
        &self.before[..self.before.len() - recent]
    }

    /// The card's recent location instead.
    fn stays(&self) -> impl Iterator<Item = &'a Transaction> {
        let recent = within(self.before, self.payment.at_ms, STAY_MS).iter();
        let country = &self.payment.country;
        recent.map(|past| &past.transaction).filter(move |past| past.country != *country).take(2)
    }

    fn card_testing(&self) -> Look {
        let Some(usual) = usual_amount(self.habits, &self.payment.currency) else {
            return Look::Unknown("the card has too few earlier payments in this currency");
        };
        let hour = within(self.before, self.payment.at_ms, HOUR_MS).iter();
        let small: Vec<&Transaction> = hour
            .map(|past| &past.transaction)
            .filter(|past| !past.is_card_present() && is_small(past, usual))
            .collect();
        let is_small_too = is_small(self.payment, usual) && !self.payment.is_card_present();
        let count = small.len() + usize::from(is_small_too);
        if small.is_empty() && is_small_too && self.features.is_new_merchant {
            let explanation =
                "a small online payment at a merchant that is new to the card; that is \
                               how trying out a card begins, and how much else does"
                    .to_owned();
            return self.found(Pattern::CardTesting, 180, explanation, None);
        }
        if count < 2 || (small.len() < 2 && !is_small_too) {
            return Look::Nothing;
        }
        let strength = ramp(i64::try_from(count).unwrap_or(i64::MAX), (2, 5), (450, 950));
        let sum: super::amount::Amount = small.iter().map(|past| past.amount).sum();
        let after = if is_small_too { "" } else { ", and now a larger one" };
        let explanation = format!(
            "{count} small online payments within one hour{after} ({sum} {} before this one)",
            self.payment.currency
        );
        self.found(Pattern::CardTesting, strength, explanation, small)
    }

    fn odd_hour(&self) -> Look {
        if self.habits.len() < ROUTINE_ROWS_MIN {
            return Look::Unknown("the card has too few earlier payments to know its hours");
        }
        let share = i64::from(self.features.hour_share_permille.unwrap_or(1_000));
        if share > 40 {
            return Look::Nothing;
        }
        let night = (0..6).contains(&self.payment.hour());
        let base = ramp(share, (0, 40), (400, 150));
        let strength = if night { base } else { base / 3 };
        let explanation = format!(
            "paid at {} o'clock solar time; {} % of {} earlier payments were within two hours of it",
            self.payment.hour(),
            share / 10,
            self.habits.len(),
        );
        self.found(Pattern::OddHour, strength, explanation, None)
    }

    fn merchant_category(&self) -> Look {
        if self.habits.len() < ROUTINE_ROWS_MIN {
            return Look::Unknown("the card has too few earlier payments to know its merchants");
        }
        let category = self.payment.category.as_str();
        let known = |past: &Past| past.transaction.category == category;
        if self.settled().iter().any(known) {
            return Look::Nothing;
        }
        let is_risky = HIGH_RISK.contains(&category);
        let is_dear = self.features.amount_ratio_permille.is_some_and(|ratio| ratio > 2_000)
            && !self.is_ordinary_at_the_merchant()
            && !TRAVEL.contains(&category);
        let strength = match (is_risky, is_dear) {
            (true, true) => 750,
            (true, false) => 500,
            (false, true) => 350,
            (false, false) => 120,
        };
        let risk = if is_risky { ", whose goods are easy to resell" } else { "" };
        let explanation = format!(
            "first payment of the card in the category {category}{risk}, after {} in others",
            self.settled().len()
        );
        let same_day = within(self.before, self.payment.at_ms, 24 * HOUR_MS).iter();
        let rows = same_day.map(|past| &past.transaction).filter(|past| past.category == category);
        self.found(Pattern::MerchantCategory, strength, explanation, rows)
    }

    fn merchant_risk(&self) -> Look {
        let Some(merchant) = self.merchant else {
            return Look::Unknown("the source has no other payments at the merchant");
        };
        let frauds: Vec<&Transaction> = merchant
            .iter()
            .filter(|past| past.is_known_fraud() && past.transaction.card != self.payment.card)
            .map(|past| &past.transaction)
            .collect();
        let known = merchant.iter().filter(|past| past.known_fraud.is_some()).count();
        let recent = within(merchant, self.payment.at_ms, 72 * HOUR_MS).iter();
        let small = |past: &&Transaction| {
            past.amount.value() > 0
                && past.amount.value() < 30_000
                && past.card != self.payment.card
                && !past.is_card_present()
        };
        let tried: Vec<&Transaction> = recent.map(|past| &past.transaction).filter(small).collect();
        let cards: BTreeSet<&str> = tried.iter().map(|past| past.card.as_str()).collect();
        // One fraud at a rarely used merchant proves little.
        let share = permille(frauds.len(), known + DOUBT_ROWS);
        let by_frauds =
            if frauds.is_empty() { 0 } else { ramp(i64::from(share), (20, 500), (60, 900)) };
        let is_online = !self.payment.is_card_present();
        let by_trials = if is_online && cards.len() >= 3 { 350 } else { 0 };
        let strength = by_frauds.max(by_trials);
        if strength < 100 {
            return Look::Nothing;
        }
        let explanation = format!(
            "{} of {known} earlier payments at {} were frauds, as far as known; {} other cards paid \
             very little there in three days",
            frauds.len(),
            self.payment.merchant,
            cards.len(),
        );
        let rows = if by_frauds >= by_trials { frauds } else { tried };
        self.found(Pattern::MerchantRisk, strength, explanation, rows)
    }
}

/// Most payments in any span of this many milliseconds.
fn busiest(rows: &[Past], span_ms: i64) -> i64 {
    most_within(rows.iter().map(|past| past.transaction.at_ms), span_ms)
}

/// Most online payments in any ten minutes.
fn busiest_online(rows: &[Past]) -> i64 {
    let online = rows.iter().map(|past| &past.transaction).filter(|p| !p.is_card_present());
    most_within(online.map(|payment| payment.at_ms), QUICK_MS)
}

fn is_impossible(journey: &Journey<'_>) -> bool {
    journey.km >= JOURNEY_KM_MIN && i64::from(journey.kmh) >= IMPOSSIBLE_KMH
}
