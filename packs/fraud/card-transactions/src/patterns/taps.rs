//! Amounts that stay just under a limit.

use std::collections::BTreeSet;

use super::super::amount::Amount;
use super::super::features::{DAY_MS, HOUR_MS};
use super::super::kinds::{contactless_limit, euro_cents, kind_of};
use super::super::row::{Channel, Transaction};
use super::super::statistics::{median, ramp};
use super::pace::busiest;
use super::{Look, Pattern, Scene, UNKNOWN_CURRENCY, count};

/// Longest time over which amounts under a limit are compared.
const STRUCTURING_MS: i64 = 4 * DAY_MS;

/// Round numbers, in tenths of a power of ten, that people keep under: withdrawal, review and
/// reporting limits. The powers fit any currency.
const LIMITS: [i64; 5] = [10, 20, 25, 30, 50];

/// Least limit of split amounts, in euro cents; below it prices end just under round numbers.
const LIMIT_EURO_CENTS_MIN: i64 = 15_000;

/// Round numbers at which countries set the limit of a tap without a PIN.
const TAP_LIMITS: [i64; 10] = [10, 15, 20, 25, 30, 35, 40, 50, 75, 80];

/// As many taps under one round number show a limit that no table has.
const REPEATED_TAPS_MIN: usize = 3;

/// How near a tap is to a limit of the table, and to one that only the taps show, in per cent.
const NEAR_TABLE: i64 = 82;
const NEAR_SHOWN: i64 = 90;

/// Ten-thousandths of a unit, as amounts are kept.
const UNIT: i64 = 10_000;

impl<'a> Scene<'a> {
    pub(super) fn structuring(&self) -> Look {
        let Some(limit) = limit_of(self.payment) else {
            let is_sized = euro_cents(self.payment).is_some();
            return if is_sized { Look::Nothing } else { Look::Unknown(UNKNOWN_CURRENCY) };
        };
        let is_alike = |past: &Transaction| {
            past.currency == self.payment.currency && limit_of(past) == Some(limit)
        };
        let series: Vec<&Transaction> =
            self.last(STRUCTURING_MS).filter(|past| is_alike(past)).collect();
        let together = count(series.len() + 1);
        let usual_there = self.habits.iter().filter(|past| is_alike(&past.transaction)).count();
        if together < 3 || count(usual_there) >= together {
            return Look::Nothing;
        }
        let all = || series.iter().copied().chain([self.payment]);
        let is_money = all().all(|payment| kind_of(payment).is_liquid());
        let is_one_shop = all().all(|payment| payment.merchant == self.payment.merchant);
        let strength = ramp(together, (3, 5), (600, 900));
        // Prices in shops end just under round numbers, too.
        let strength = match (is_money, is_one_shop) {
            (true, _) => strength,
            (false, true) => strength * 3 / 4,
            (false, false) => strength / 3,
        };
        let sum: Amount = all().map(|payment| payment.amount).sum();
        let explanation = format!(
            "{together} payments of just under {} {} within four days, {sum} together; \
             {usual_there} such among {} habits",
            limit / UNIT,
            self.payment.currency,
            self.habits.len(),
        );
        self.found(Pattern::Structuring, strength, explanation, series)
    }

    pub(super) fn contactless_limit(&self) -> Look {
        let Some((limit, taps)) = self.taps_under_a_limit() else { return Look::Nothing };
        let together = count(taps.len() + 1);
        let is_alike = |past: &Transaction| self.is_tap_under(past, limit);
        let most = busiest(&self.habits, DAY_MS, is_alike);
        if together < 2 || together <= most {
            return Look::Nothing;
        }
        let all = || taps.iter().copied().chain([self.payment]);
        let strangers = count(all().filter(|payment| !self.knows_merchant(payment)).count());
        let is_quick = all().filter(|p| p.at_ms >= self.payment.at_ms - 3 * HOUR_MS).count() > 2;
        // Prices end anywhere; who tries the limit out ends at it.
        let is_at_limit = all().all(|tap| tap.amount.value() * 100 >= limit.value * 95);
        let strength = ramp(together, (2, 5), (300, 950))
            + if is_quick { 150 } else { 0 }
            + if is_at_limit && together >= 3 { 100 } else { 0 };
        let strength = if strangers * 2 >= together { strength } else { strength / 2 };
        let explanation = format!(
            "{together} contactless payments just under {} {} within one day, {strangers} of \
             them at merchants that are new to the card; {}; among the card's habits there were at \
             most {most} in a day",
            limit.value / UNIT,
            self.payment.currency,
            limit.why(),
        );
        self.found(Pattern::ContactlessLimit, strength, explanation, taps)
    }

    /// The limit that the payment stays just under, with the other taps of the day that do.
    pub(super) fn taps_under_a_limit(&self) -> Option<(TapLimit, Vec<&'a Transaction>)> {
        let taps = |limit: TapLimit| -> Vec<&'a Transaction> {
            self.last(DAY_MS).filter(|past| self.is_tap_under(past, limit)).collect()
        };
        let table = contactless_limit(&self.payment.currency)
            .map(|units| TapLimit { value: units * UNIT, near_percent: NEAR_TABLE });
        if let Some(limit) = table.filter(|limit| self.is_tap_under(self.payment, *limit)) {
            return Some((limit, taps(limit)));
        }
        let value = round_above(self.payment.amount.value(), NEAR_SHOWN, &TAP_LIMITS)?;
        let limit = TapLimit { value, near_percent: NEAR_SHOWN };
        let shown = taps(limit);
        let merchants: BTreeSet<&str> =
            shown.iter().copied().chain([self.payment]).map(|tap| tap.merchant.as_str()).collect();
        let is_limit = self.is_tap_under(self.payment, limit)
            && shown.len() + 1 >= REPEATED_TAPS_MIN
            && merchants.len() >= 2
            && self.is_above_usual_taps()
            && !self.has_tapped_above(value);
        is_limit.then_some((limit, shown))
    }

    fn is_tap(&self, payment: &Transaction) -> bool {
        payment.channel == Channel::Contactless && payment.currency == self.payment.currency
    }

    fn is_tap_under(&self, payment: &Transaction, limit: TapLimit) -> bool {
        let value = payment.amount.value();
        self.is_tap(payment)
            && value <= limit.value
            && value * 100 >= limit.value * limit.near_percent
    }

    /// A larger tap refutes a limit.
    fn has_tapped_above(&self, value: i64) -> bool {
        let mut earlier = self.before.iter().map(|past| &past.transaction);
        earlier.any(|past| self.is_tap(past) && past.amount.value() > value)
    }

    fn is_above_usual_taps(&self) -> bool {
        let taps =
            self.habits.iter().map(|past| &past.transaction).filter(|past| self.is_tap(past));
        let usual = median(taps.map(|past| past.amount.value()).collect()).or(self.usual);
        usual.is_some_and(|usual| self.payment.amount.value() >= usual * 2)
    }
}

/// A limit of taps without a PIN.
#[derive(Clone, Copy)]
pub(super) struct TapLimit {
    /// In ten-thousandths of the unit.
    value: i64,
    /// How near a tap is to it, in per cent.
    near_percent: i64,
}

impl TapLimit {
    fn why(self) -> &'static str {
        if self.near_percent == NEAR_TABLE {
            "above it the terminal asks for the PIN"
        } else {
            "no tap of the card was ever above it"
        }
    }
}

/// The limit that an amount stays under by at most a tenth.
fn limit_of(payment: &Transaction) -> Option<i64> {
    let value = payment.amount.value();
    let cents = euro_cents(payment).filter(|cents| *cents > 0)?;
    let limit = round_above(value + 1, 90, &LIMITS)?;
    let limit_cents = i128::from(cents) * i128::from(limit) / i128::from(value);
    (limit_cents >= i128::from(LIMIT_EURO_CENTS_MIN)).then_some(limit)
}

/// The smallest round number not below a value, if the value is at least this percentage of it.
fn round_above(value: i64, percent: i64, tenths: &[i64]) -> Option<i64> {
    if value <= 0 {
        return None;
    }
    let powers = std::iter::successors(Some(UNIT), |power| power.checked_mul(10));
    let mut limits = powers.take(12).flat_map(|power| tenths.iter().map(move |of| power / 10 * of));
    limits
        .find(|limit| value <= *limit)
        .filter(|limit| i128::from(value) * 100 >= i128::from(*limit) * i128::from(percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_the_next_round_number_in_any_currency() {
        for (units, percent, tenths, expected) in [
            (245, 90, &LIMITS[..], Some(250)),
            (990_000, 90, &LIMITS, Some(1_000_000)),
            (9_900, 90, &LIMITS, Some(10_000)),
            (150, 90, &LIMITS, None),
            (79, 90, &TAP_LIMITS, Some(80)),
            (345, 90, &TAP_LIMITS, Some(350)),
            (62, 90, &TAP_LIMITS, None),
        ] {
            let found = round_above(units * UNIT, percent, tenths);
            assert_eq!(found, expected.map(|limit: i64| limit * UNIT), "{units}");
        }
    }
}
