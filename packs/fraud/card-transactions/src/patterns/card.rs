//! Patterns of one payment against its card's habits.

use super::super::amount::Amount;
use super::super::features::{DAY_MS, HABIT_ROWS_MIN};
use super::super::kinds::{Kind, euro_cents, kind_of};
use super::super::row::{Channel, Transaction};
use super::super::statistics::{ramp, times};
use super::{Look, Pattern, ROUTINE_ROWS_MIN, Scene};

/// A card without a payment for this long sleeps.
const DORMANT_MS: i64 = 90 * DAY_MS;

/// How long a card counts as just woken up.
const AWAKE_MS: i64 = 7 * DAY_MS;

/// As many refunds beyond what was paid are no mistake.
const REFUNDS_MIN: usize = 3;

/// Why an amount cannot be compared with those of a known card.
const NO_COMPARISON: &str =
    "the card has too few earlier payments in this currency, and its size is not known";

/// Most earlier purchases that a refund is compared with go back this far.
const RETURN_MS: i64 = 400 * DAY_MS;

impl<'a> Scene<'a> {
    pub(super) fn amount_outlier(&self) -> Look {
        let Some(usual) = self.usual else {
            let is_thin = self.habits.len() < HABIT_ROWS_MIN;
            let reason = "the card has too few earlier payments";
            return Look::Unknown(if is_thin { reason } else { NO_COMPARISON });
        };
        let ratio = self.payment.amount.value().saturating_mul(1_000) / usual.max(1);
        if ratio < 3_000 {
            return Look::Nothing;
        }
        let largest = self
            .habits
            .iter()
            .map(|past| &past.transaction)
            .filter(|past| past.amount.is_payment())
            .max_by_key(|past| self.in_currency(past));
        let strength = ramp(ratio, (3_000, 14_000), (200, 900));
        // A card with equally large payments in the past makes them now and then.
        let is_known = largest
            .is_some_and(|past| self.in_currency(past) * 5 >= self.payment.amount.value() * 4);
        let is_usual_kind = self.knows(|past| {
            past.category == self.payment.category
                && self.in_currency(past) * 5 >= self.payment.amount.value() * 3
        });
        let is_chip_at_home =
            self.payment.channel == Channel::Chip && self.is_at_home(self.payment);
        let mut strength = if is_known { strength / 3 } else { strength };
        for (holds, part) in [
            (self.is_ordinary_at_the_merchant(), 2),
            (is_usual_kind && !is_known, 2),
            (is_chip_at_home && !self.kind.is_liquid(), 2),
            (self.kind == Kind::Travel, 2),
        ] {
            strength = if holds { strength * part / 4 } else { strength };
        }
        let Transaction { amount, currency, .. } = self.payment;
        let most = largest.map_or(String::new(), |past| {
            format!("; the most so far was {} {}", past.amount, past.currency)
        });
        let explanation = format!(
            "{amount} {currency} is {} times what the card usually pays ({}){most}",
            times(ratio),
            Amount::of_cents(usual / 100),
        );
        self.found(Pattern::AmountOutlier, strength, explanation, largest)
    }

    /// An earlier amount in the payment's currency, roughly.
    pub(super) fn in_currency(&self, past: &Transaction) -> i64 {
        if past.currency == self.payment.currency {
            return past.amount.value();
        }
        match (euro_cents(past), euro_cents(self.payment)) {
            (Some(there), Some(here)) if here > 0 => {
                let value = i128::from(self.payment.amount.value()) * i128::from(there);
                i64::try_from(value / i128::from(here)).unwrap_or(i64::MAX / 8)
            }
            _ => 0,
        }
    }

    pub(super) fn merchant_category(&self) -> Look {
        if self.habits.len() < ROUTINE_ROWS_MIN {
            return Look::Unknown("the card has too few earlier payments to know its merchants");
        }
        let category = self.payment.category.as_str();
        let is_atm = self.payment.channel == Channel::Atm;
        let is_known = |past: &Transaction| {
            past.category == category && (!is_atm || past.channel == Channel::Atm)
        };
        if self.knows(is_known) {
            return Look::Nothing;
        }
        let ratio = self.usual.map(|usual| self.payment.amount.value() * 1_000 / usual.max(1));
        let is_dear = ratio.is_some_and(|ratio| ratio > 2_000)
            && !self.is_ordinary_at_the_merchant()
            && self.kind != Kind::Travel;
        let is_home = self.is_at_home(self.payment);
        let strength = match (self.kind.is_liquid(), is_dear) {
            (true, true) => 750,
            (true, false) => 450,
            (false, true) => 350,
            (false, false) => 100,
        };
        let strength = if is_home { strength * 2 / 3 } else { strength };
        let what = if is_atm { "cash withdrawals" } else { category };
        let risk = if self.kind.is_liquid() { ", which is as good as money" } else { "" };
        let explanation = format!(
            "first payment of the card in the category {what}{risk}, after {} in others",
            self.habits.len()
        );
        let same_week =
            self.recent.iter().map(|past| &past.transaction).filter(|past| is_known(past));
        self.found(Pattern::MerchantCategory, strength, explanation, same_week)
    }

    pub(super) fn dormant_card(&self) -> Look {
        let mut newer = self.payment.at_ms;
        let mut woken = 0_usize;
        let Some(last) = self.before.iter().rev().map(|past| &past.transaction).find(|past| {
            let is_before_the_sleep = newer - past.at_ms >= DORMANT_MS;
            if !is_before_the_sleep {
                newer = past.at_ms;
                woken += 1;
            }
            is_before_the_sleep
        }) else {
            return Look::Nothing;
        };
        if newer + AWAKE_MS < self.payment.at_ms {
            return Look::Nothing;
        }
        let slept_ms = newer - last.at_ms;
        let older: Vec<i64> = self
            .before
            .iter()
            .map(|past| past.transaction.at_ms)
            .filter(|at_ms| *at_ms <= last.at_ms)
            .collect();
        let longest = older.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
        let is_habit = longest * 10 >= slept_ms * 6;
        let is_dear = self.usual.is_some_and(|usual| self.payment.amount.value() > usual * 3);
        let is_new = !self.knows_merchant(self.payment);
        let strength = 150
            + if is_new { 150 } else { 0 }
            + if is_dear { 250 } else { 0 }
            + if self.payment.is_card_present() { 0 } else { 150 }
            + if self.kind.is_liquid() { 200 } else { 0 };
        let at_home = self.is_at_home(self.payment) && self.payment.channel == Channel::Chip;
        let strength = if is_habit || at_home { strength / 2 } else { strength };
        let explanation = format!(
            "the card was not used for {} days before {}; its longest pause before that was {} days",
            slept_ms / DAY_MS,
            if woken == 0 { "this payment".to_owned() } else { format!("the last {}", woken + 1) },
            longest / DAY_MS,
        );
        self.found(Pattern::DormantCard, strength, explanation, [last])
    }

    pub(super) fn unmatched_refund(&self) -> Look {
        let is_paid_regularly = !self.regular_charges().is_empty()
            && self.paid_there().all(|past| !past.amount.is_payment());
        // A salary or a pension comes back to no purchase.
        if self.payment.amount.value() == 0 || self.purchase().is_some() || is_paid_regularly {
            return Look::Nothing;
        }
        let Transaction { amount, currency, merchant, .. } = self.payment;
        let back = -amount.value();
        let why = if self.paid_there().any(|past| past.amount.value() >= back) {
            "where earlier refunds have returned what the card paid"
        } else {
            "where the card has no earlier purchase of that amount or more"
        };
        let explanation = format!("a refund of {amount} {currency} at {merchant}, {why}");
        let refunds = || self.paid_there().filter(|past| !past.amount.is_payment());
        // A clerk may return an amount twice; more often it is taken.
        let strength = if refunds().count() + 1 >= REFUNDS_MIN { 900 } else { 600 };
        self.found(Pattern::UnmatchedRefund, strength, explanation, refunds())
    }

    /// The purchase that a refund returns, if earlier refunds have left enough of it.
    pub(super) fn purchase(&self) -> Option<&'a Transaction> {
        let back = -self.payment.amount.value();
        let left =
            self.paid_there().fold(0_i64, |sum, past| sum.saturating_add(past.amount.value()));
        let mut matching = self.paid_there().filter(|past| past.amount.value() >= back);
        matching.find(|past| back > 0 && left >= back && kind_of(past) == self.kind)
    }

    /// The card's purchases and refunds at the merchant, in the payment's currency.
    fn paid_there(&self) -> impl Iterator<Item = &'a Transaction> {
        let payment = self.payment;
        self.last(RETURN_MS).filter(move |past| {
            past.merchant == payment.merchant && past.currency == payment.currency
        })
    }
}
