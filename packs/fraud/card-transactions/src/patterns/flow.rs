//! Patterns of money over days: credit that is spent at once, and money that passes through.

use std::collections::BTreeSet;

use super::super::amount::Amount;
use super::super::features::DAY_MS;
use super::super::kinds::{Kind, euro_cents, kind_of};
use super::super::row::Transaction;
use super::super::statistics::ramp;
use super::{Look, Pattern, Scene, count};

/// Time over which large purchases are added up.
const BUST_OUT_MS: i64 = 3 * DAY_MS;

/// Fewest large purchases, each of this many usual amounts, and least sum in euro cents.
const BUST_OUT_ROWS_MIN: usize = 4;
const LARGE_TIMES: i64 = 3;
const BUST_OUT_EURO_CENTS: i64 = 100_000;

/// Least sum, in sums that the card has spent in as many days before.
const BUST_OUT_TIMES_MIN: i64 = 3;

/// Time over which incoming money is added up, and within which it leaves again.
const CREDITS_MS: i64 = 7 * DAY_MS;
const PASSED_MS: i64 = DAY_MS;

/// Fewest payments of incoming money, and least sum in usual amounts.
const CREDITS_MIN: usize = 2;
const CREDITS_TIMES: i64 = 10;

/// Least share of the incoming money that leaves, in per cent.
const PASSED_PERCENT: i64 = 70;

impl<'a> Scene<'a> {
    pub(super) fn bust_out(&self) -> Look {
        let Some(usual) = self.usual.filter(|usual| *usual > 0) else { return Look::Nothing };
        let is_large = |payment: &Transaction| {
            self.in_currency(payment) >= usual * LARGE_TIMES
                && !matches!(kind_of(payment), Kind::Travel | Kind::Recurring)
        };
        let large: Vec<&Transaction> =
            self.last(BUST_OUT_MS).filter(|past| is_large(past)).collect();
        let all = || large.iter().copied().chain([self.payment]);
        let sum = all().map(|payment| self.in_currency(payment)).fold(0, i64::saturating_add);
        let most = self.most_spent(BUST_OUT_MS);
        let times = sum / most.max(usual);
        let is_small = self.euro_cents_of(sum).is_some_and(|cents| cents < BUST_OUT_EURO_CENTS);
        let together = large.len() + 1;
        if !is_large(self.payment)
            || together < BUST_OUT_ROWS_MIN
            || times < BUST_OUT_TIMES_MIN
            || is_small
        {
            return Look::Nothing;
        }
        // Who furnishes a home spends as much, on other things.
        let resold = all().filter(|payment| resells(payment)).count();
        let strength = ramp(times, (BUST_OUT_TIMES_MIN, 12), (500, 900));
        let strength = if resold * 2 >= together { strength } else { strength / 2 };
        let explanation = format!(
            "{together} large payments within three days, {} {} together, {times} times the most that \
             the card spent in three days before; {resold} of them for cash or goods that sell again",
            Amount::of_cents(sum / 100),
            self.payment.currency,
        );
        self.found(Pattern::BustOut, strength, explanation, large)
    }

    /// The largest sum of the habits in any period, in the payment's currency.
    fn most_spent(&self, span_ms: i64) -> i64 {
        let rows: Vec<(i64, i64)> = self
            .habits
            .iter()
            .map(|past| &past.transaction)
            .filter(|past| past.amount.is_payment())
            .map(|past| (past.at_ms, self.in_currency(past)))
            .collect();
        let (mut first, mut sum, mut most) = (0, 0_i64, 0);
        for (at_ms, value) in &rows {
            sum = sum.saturating_add(*value);
            while at_ms - rows[first].0 > span_ms {
                sum -= rows[first].1;
                first += 1;
            }
            most = most.max(sum);
        }
        most
    }

    fn euro_cents_of(&self, value: i64) -> Option<i64> {
        let own = self.payment.amount.value().max(1);
        let cents = i128::from(euro_cents(self.payment)?) * i128::from(value) / i128::from(own);
        i64::try_from(cents).ok()
    }

    pub(super) fn pass_through(&self) -> Look {
        let all = || {
            let week = self.last(CREDITS_MS).chain([self.payment]);
            week.filter(|row| row.currency == self.payment.currency)
        };
        let credits: Vec<&Transaction> = all().filter(|row| self.is_unearned(row)).collect();
        let is_passed = |row: &&Transaction| {
            row.amount.is_payment()
                && kind_of(row).is_liquid()
                && credits
                    .iter()
                    .any(|credit| (0..=PASSED_MS).contains(&(row.at_ms - credit.at_ms)))
        };
        let passed: Vec<&Transaction> = all().filter(is_passed).collect();
        let is_part = passed.iter().chain(&credits).any(|row| row.id == self.payment.id);
        let sum = |rows: &[&Transaction]| rows.iter().map(|row| row.amount).sum::<Amount>().value();
        let (received, sent) = (-sum(&credits), sum(&passed));
        let usual = self.usual.unwrap_or(i64::MAX / 100);
        if !is_part
            || passed.is_empty()
            || credits.len() < CREDITS_MIN
            || received < usual.saturating_mul(CREDITS_TIMES)
            || sent.saturating_mul(100) < received.saturating_mul(PASSED_PERCENT)
        {
            return Look::Nothing;
        }
        let days: BTreeSet<i64> = passed.iter().map(|row| row.at_ms / DAY_MS).collect();
        let strength = ramp(count(credits.len() + days.len()), (3, 6), (600, 900));
        let explanation = format!(
            "{} {} came in with {} payments from where the card never paid, and {} left within a day as \
             cash, transfers or the like, on {} days",
            Amount::of_cents(received / 100),
            self.payment.currency,
            credits.len(),
            Amount::of_cents(sent / 100),
            days.len(),
        );
        let rows = credits.iter().chain(&passed).copied().filter(|row| row.id != self.payment.id);
        self.found(Pattern::PassThrough, strength, explanation, rows)
    }

    /// Whether money comes in from a party that is new and was never paid: neither a refund nor a
    /// salary.
    fn is_unearned(&self, row: &Transaction) -> bool {
        row.amount.value() < 0
            && !self.knows_merchant(row)
            && !self
                .before
                .iter()
                .map(|past| &past.transaction)
                .any(|past| past.merchant == row.merchant && past.amount.is_payment())
    }
}

/// Words of categories, and merchant category codes of ISO 18245, of goods that keep their price.
const RESOLD: &[&str] =
    &["electronic", "computer", "phone", "jewel", "watch", "5732", "5045", "5944"];

fn resells(payment: &Transaction) -> bool {
    let category = payment.category.to_lowercase();
    kind_of(payment).is_liquid() || RESOLD.iter().any(|word| category.contains(word))
}
