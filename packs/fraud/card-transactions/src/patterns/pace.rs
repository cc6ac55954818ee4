//! Patterns of payments that follow one another.

use std::collections::BTreeSet;

use super::super::amount::Amount;
use super::super::case_file::Past;
use super::super::features::{DAY_MS, HOUR_MS};
use super::super::kinds::{Kind, euro_cents, kind_of};
use super::super::row::{Channel, Transaction};
use super::super::statistics::{most_within, ramp};
use super::{Look, Pattern, Scene, UNKNOWN_CURRENCY, count};

/// A short time, in milliseconds.
const QUICK_MS: i64 = 10 * 60_000;

/// Longest time over which small charges add up to a drip.
const DRIP_MS: i64 = 60 * DAY_MS;

/// Fewest small charges of a drip, and largest in euro cents.
const DRIP_ROWS_MIN: usize = 3;
const DRIP_EURO_CENTS: i64 = 1_500;

/// Fewest purchases of a spree, and least sum, in usual amounts.
const SPREE_ROWS_MIN: usize = 3;
const SPREE_TIMES_MIN: i64 = 15;

/// Fewest purchases of a takeover, and fewest habits that show that a card never pays online.
const TAKEOVER_ROWS_MIN: usize = 5;
const OFFLINE_HABITS_MIN: usize = 30;

/// Fewest tests spread over a day that need no further doubt.
const TESTS_OF_A_DAY_MIN: usize = 4;

impl<'a> Scene<'a> {
    pub(super) fn velocity(&self) -> Look {
        let hour: Vec<&Transaction> = self.last(HOUR_MS).collect();
        let in_hour = count(hour.len() + 1);
        let busiest = busiest(&self.habits, HOUR_MS, |_| true);
        let by_hour = if in_hour >= 4 && in_hour > busiest + 1 {
            ramp(in_hour - busiest, (2, 7), (350, 1_000))
        } else {
            0
        };
        // The rate of a burst identifies it before its length does.
        let is_online = !self.payment.is_card_present();
        let before = self.last(QUICK_MS).filter(|p| !p.is_card_present()).count();
        let in_quick = count(before + usize::from(is_online));
        let most_quick = busiest_online(&self.habits);
        let by_pace = if is_online && in_quick > most_quick && in_quick >= 2 {
            ramp(in_quick, (2, 5), (250, 850))
        } else {
            0
        };
        let (by_value, spree) = self.spree(&hour);
        let strength = by_hour.max(by_pace).max(by_value);
        if strength == 0 {
            return Look::Nothing;
        }
        let (strength, why) = match self.ordinary_series(&hour) {
            Some(why) => ((strength / 3).min(250), format!("; {why}")),
            None => (strength, String::new()),
        };
        let explanation = format!(
            "{in_hour} payments within one hour, {in_quick} of them online within ten minutes; in {} earlier \
             payments the card never made more than {busiest} in an hour{spree}{why}",
            self.habits.len()
        );
        self.found(Pattern::Velocity, strength, explanation, hour)
    }

    /// Strength and words of an hour's large online purchases at merchants that are new to the card: each alone is
    /// unusual at most, together they are a spree.
    fn spree(&self, hour: &[&Transaction]) -> (i64, String) {
        let all = || hour.iter().copied().chain([self.payment]);
        let is_new = |payment: &&Transaction| {
            !payment.is_card_present()
                && payment.currency == self.payment.currency
                && payment.amount.is_payment()
                && !self.knows_merchant(payment)
        };
        let sum: Amount = all().filter(is_new).map(|payment| payment.amount).sum();
        let (purchases, usual) = (all().filter(is_new).count(), self.usual.unwrap_or_default());
        let liquid = all().filter(is_new).filter(|payment| kind_of(payment).is_liquid()).count();
        let times = if usual > 0 { sum.value() / usual } else { 0 };
        if purchases < SPREE_ROWS_MIN || times < SPREE_TIMES_MIN || !is_new(&self.payment) {
            return (0, String::new());
        }
        let currency = &self.payment.currency;
        let words = format!(
            "; {purchases} online purchases of {sum} {currency} together, {times} times the usual amount, at \
             merchants that are new to the card"
        );
        // Honest people buy a trip or furniture in several payments, too. Nobody's first online payments
        // are several vouchers and money transfers.
        let is_offline = self.habits.len() >= OFFLINE_HABITS_MIN
            && !self.knows(|past| past.channel == Channel::Online);
        if is_offline && purchases >= TAKEOVER_ROWS_MIN && liquid * 2 > purchases {
            let words =
                format!("{words}, {liquid} of them as good as money; it never paid online before");
            return (ramp(times, (SPREE_TIMES_MIN, 60), (750, 950)), words);
        }
        (ramp(times, (SPREE_TIMES_MIN, 60), (450, 690)), words)
    }

    /// Why a series of payments is an ordinary one: a fair or a night out, or rides and parking.
    fn ordinary_series(&self, series: &[&Transaction]) -> Option<&'static str> {
        let mut all = series.iter().copied().chain([self.payment]);
        if all.clone().all(|payment| kind_of(payment) == Kind::Transit && !self.is_dear(payment)) {
            return Some("all for rides or parking");
        }
        let is_plain = |payment: &Transaction| {
            payment.is_card_present()
                && payment.channel != Channel::Atm
                && !kind_of(payment).is_liquid()
                && payment.city == self.payment.city
                && !self.is_dear(payment)
        };
        let near_limit = self.taps_under_a_limit().map_or(0, |(_, taps)| taps.len());
        (all.all(is_plain) && near_limit < 2)
            .then_some("all with the card present, in one city and of usual amounts")
    }

    fn is_dear(&self, payment: &Transaction) -> bool {
        match self.usual {
            Some(usual) => payment.amount.value() > usual * 2,
            None => euro_cents(payment).is_none_or(|cents| cents > 10_000),
        }
    }

    pub(super) fn card_testing(&self) -> Look {
        if self.usual.is_none() && euro_cents(self.payment).is_none() {
            return Look::Unknown("the card has too few earlier payments in this currency");
        }
        let is_test = |payment: &&Transaction| {
            !payment.is_card_present() && self.is_tiny(payment) && !self.is_expected(payment)
        };
        let hour: Vec<&Transaction> = self.last(HOUR_MS).filter(is_test).collect();
        let day: Vec<&Transaction> = self.last(DAY_MS).filter(is_test).collect();
        let is_test_too = is_test(&self.payment);
        let (small, span) =
            if hour.len() >= 2 || day.len() < 3 { (hour, "one hour") } else { (day, "one day") };
        let tests = small.len() + usize::from(is_test_too);
        if small.is_empty() && is_test_too && self.features.is_new_merchant {
            let explanation =
                "a small online payment at a merchant that is new to the card; that is \
                               how testing a card begins, and how much else does"
                    .to_owned();
            return self.found(Pattern::CardTesting, 180, explanation, None);
        }
        if tests < 2 || (!is_test_too && self.is_expected(self.payment)) {
            return Look::Nothing;
        }
        if small.len() < 2 && !is_test_too {
            return Look::Nothing;
        }
        let strength = ramp(count(tests), (2, 5), (450, 950));
        let merchants: BTreeSet<&str> = small.iter().map(|test| test.merchant.as_str()).collect();
        let is_dear = self.usual.is_some_and(|usual| self.payment.amount.value() > usual * 5);
        // Small sums add up over a day. Those of several new merchants before a large one do not.
        let is_sequence = !is_test_too
            && small.len() >= TESTS_OF_A_DAY_MIN
            && merchants.len() >= 2
            && is_dear
            && self.features.is_new_merchant;
        let is_slow = span == "one day" && !is_sequence;
        let strength = if is_slow { strength * 3 / 4 } else { strength };
        // A few cents after a test say more with a large payment at a new merchant behind them.
        let strength = if is_test_too || self.payment.is_card_present() {
            strength
        } else {
            strength.max(700)
        };
        let after = if is_test_too { "" } else { ", and now a larger one" };
        let (sum, currency) = (sum_of(&small, &self.payment.currency), &self.payment.currency);
        let explanation = format!(
            "{tests} small online payments within {span}{after} ({sum} {currency} before this one)"
        );
        self.found(Pattern::CardTesting, strength, explanation, small)
    }

    /// Whether a small online payment is ordinary: a known merchant, rides and parking, a regular
    /// charge, or the price that everybody pays there.
    fn is_expected(&self, payment: &Transaction) -> bool {
        let is_usual_there = payment.merchant == self.payment.merchant
            && self.merchant_usual().is_some_and(|usual| payment.amount.value() * 3 > usual);
        let kind = kind_of(payment);
        let is_app = kind == Kind::Transit && euro_cents(payment).is_none_or(|cents| cents > 50);
        self.knows_merchant(payment) || is_usual_there || is_app
    }

    pub(super) fn slow_drip(&self) -> Look {
        let is_drop = |payment: &&Transaction| {
            !payment.is_card_present()
                && kind_of(payment) != Kind::Transit
                && payment.amount.is_payment()
                && euro_cents(payment).is_some_and(|cents| cents <= DRIP_EURO_CENTS)
        };
        if !self.payment.is_card_present() && euro_cents(self.payment).is_none() {
            return Look::Unknown(UNKNOWN_CURRENCY);
        }
        if !is_drop(&self.payment) {
            return Look::Nothing;
        }
        let first_ms = self.payment.at_ms - DRIP_MS;
        let is_new = |payment: &&Transaction| {
            !self.before.iter().any(|past| {
                past.transaction.at_ms < first_ms && past.transaction.merchant == payment.merchant
            })
        };
        let same = |payment: &&Transaction| payment.merchant == self.payment.merchant;
        let drops: Vec<&Transaction> = self.last(DRIP_MS).filter(is_drop).filter(same).collect();
        let all = || drops.iter().copied().chain([self.payment]);
        let days: BTreeSet<i64> = all().map(|payment| payment.at_ms / DAY_MS).collect();
        if drops.len() + 1 < DRIP_ROWS_MIN || days.len() < DRIP_ROWS_MIN || !is_new(&self.payment) {
            return Look::Nothing;
        }
        let is_young = self.before.first().is_none_or(|past| past.transaction.at_ms > first_ms);
        if is_regular(all().map(|payment| payment.at_ms).collect()) || is_young {
            return Look::Nothing;
        }
        let victims: BTreeSet<&str> = self
            .merchant
            .unwrap_or_default()
            .iter()
            .map(|past| &past.transaction)
            .filter(|past| past.card != self.payment.card && is_drop(past))
            .map(|past| past.card.as_str())
            .collect();
        let strength = ramp(count(days.len()), (3, 6), (450, 750));
        let strength = if self.kind == Kind::Recurring { strength / 2 } else { strength };
        let explanation = format!(
            "{} small charges by {} on {} days since its first within 60 days, at no regular \
             interval; {} other cards have such charges there",
            drops.len() + 1,
            self.payment.merchant,
            days.len(),
            victims.len(),
        );
        self.found(Pattern::SlowDrip, strength, explanation, drops)
    }
}

/// Whether payments come at a regular interval of at least six days: a subscription.
fn is_regular(mut at_ms: Vec<i64>) -> bool {
    at_ms.sort_unstable();
    let gaps: Vec<i64> = at_ms.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (Some(least), Some(most)) = (gaps.iter().min(), gaps.iter().max()) else { return false };
    *least >= 6 * DAY_MS && *most - *least <= (*least / 5).max(2 * DAY_MS)
}

fn sum_of(payments: &[&Transaction], currency: &str) -> Amount {
    payments.iter().filter(|p| p.currency == currency).map(|payment| payment.amount).sum()
}

/// Most payments of a kind in any span of this many milliseconds.
pub(super) fn busiest(
    rows: &[&Past],
    span_ms: i64,
    is_alike: impl Fn(&Transaction) -> bool,
) -> i64 {
    let alike = rows.iter().map(|past| &past.transaction).filter(|payment| is_alike(payment));
    most_within(alike.map(|payment| payment.at_ms), span_ms)
}

/// Most online payments in any ten minutes.
fn busiest_online(rows: &[&Past]) -> i64 {
    busiest(rows, QUICK_MS, |payment| !payment.is_card_present())
}
