//! Patterns of other cards at the merchant.

use std::collections::{BTreeMap, BTreeSet};

use super::super::features::{HOUR_MS, within};
use super::super::kinds::{Kind, euro_cents};
use super::super::reasoning::PROOF_FROM;
use super::super::row::Transaction;
use super::super::statistics::{median, permille, ramp};
use super::{Look, Pattern, Scene, TINY_EURO_CENTS, UNKNOWN_CURRENCY, count};

/// Honest payments added to every merchant's count, so that one fraud at a rarely used one counts
/// little.
const DOUBT_ROWS: usize = 5;

/// Cards are tested by machines: many within minutes.
const TESTING_MS: i64 = 30 * 60_000;

/// Fewest other cards of a distributed test.
const TESTING_CARDS_MIN: usize = 3;

/// Largest amount of a test, in euro cents.
const TESTING_EURO_CENTS: i64 = 500;

/// Longest time over which colluding payments are compared.
const COLLUSION_MS: i64 = 30 * 24 * HOUR_MS;

/// Least amount of colluding payments, in euro cents, and what round means, in units.
const COLLUSION_EURO_CENTS: i64 = 10_000;
const ROUND_UNITS: i64 = 50;

/// Most cards of a collusion.
const COLLUSION_CARDS_MAX: usize = 6;

impl<'a> Scene<'a> {
    pub(super) fn merchant_risk(&self) -> Look {
        let Some(merchant) = self.merchant else {
            return Look::Unknown("the source has no other payments at the merchant");
        };
        let frauds: Vec<&Transaction> = merchant
            .iter()
            .filter(|past| past.label_at(self.payment.at_ms) == Some(true))
            .filter(|past| past.transaction.card != self.payment.card)
            .map(|past| &past.transaction)
            .collect();
        let labels = merchant.iter().filter_map(|past| past.label_at(self.payment.at_ms));
        let known = labels.count();
        // One fraud at a rarely used merchant proves little.
        let share = permille(frauds.len(), known + DOUBT_ROWS);
        let strength =
            if frauds.is_empty() { 0 } else { ramp(i64::from(share), (20, 500), (60, 900)) };
        if strength < 100 {
            return Look::Nothing;
        }
        let explanation = format!(
            "{} of {known} earlier payments at {} with a known label were frauds",
            frauds.len(),
            self.payment.merchant,
        );
        self.found(Pattern::MerchantRisk, strength, explanation, frauds)
    }

    pub(super) fn distributed_testing(&self) -> Look {
        let Some(merchant) = self.merchant else {
            return Look::Unknown("the source has no other payments at the merchant");
        };
        let is_small = |payment: &Transaction| {
            payment.amount.value() >= 0
                && euro_cents(payment).is_some_and(|cents| cents <= TESTING_EURO_CENTS)
        };
        if !self.payment.is_card_present() && euro_cents(self.payment).is_none() {
            return Look::Unknown(UNKNOWN_CURRENCY);
        }
        if self.payment.is_card_present() || !is_small(self.payment) {
            return Look::Nothing;
        }
        let now = within(merchant, self.payment.at_ms, TESTING_MS);
        let older = &merchant[..merchant.len() - now.len()];
        let customers: BTreeSet<&str> =
            older.iter().map(|past| past.transaction.card.as_str()).collect();
        let is_test = |payment: &&Transaction| {
            payment.card != self.payment.card
                && !payment.is_card_present()
                && is_small(payment)
                && !customers.contains(payment.card.as_str())
        };
        let tried: Vec<&Transaction> =
            now.iter().map(|past| &past.transaction).filter(is_test).collect();
        let cards: BTreeSet<&str> = tried.iter().map(|past| past.card.as_str()).collect();
        if cards.len() < TESTING_CARDS_MIN || customers.contains(self.payment.card.as_str()) {
            return Look::Nothing;
        }
        // A shop with as many cards every half hour is busy, not attacked.
        let busiest = busiest_cards(older);
        if cards.len() < busiest * 2 {
            return Look::Nothing;
        }
        let strength = ramp(count(cards.len() + 1), (4, 10), (600, 980));
        // Parents who pay for a trip, and an appeal on television, look alike: but their sums are no
        // tests, or most of them are larger. Only the cardholders can tell.
        let is_machine = euro_cents(self.payment).is_some_and(|cents| cents <= TINY_EURO_CENTS)
            && tried.len() * 3 >= now.len() * 2;
        let strength = if is_machine { strength } else { strength.min(i64::from(PROOF_FROM) - 10) };
        let strength = if self.kind == Kind::Transit { strength / 2 } else { strength };
        let before = if older.is_empty() {
            "which has no earlier payments in the data".to_owned()
        } else {
            format!("where at most {busiest} cards paid within half an hour before")
        };
        let explanation = format!(
            "{} other cards paid tiny amounts for the first time at {} within half an hour, {before}",
            cards.len(),
            self.payment.merchant,
        );
        self.found(Pattern::DistributedTesting, strength, explanation, tried)
    }

    pub(super) fn collusion(&self) -> Look {
        let Some(merchant) = self.merchant else {
            return Look::Unknown("the source has no other payments at the merchant");
        };
        if euro_cents(self.payment).is_none() && is_round(self.payment) {
            return Look::Unknown(UNKNOWN_CURRENCY);
        }
        if !is_round_and_high(self.payment) || matches!(self.kind, Kind::Cash | Kind::Recurring) {
            return Look::Nothing;
        }
        let month = within(merchant, self.payment.at_ms, COLLUSION_MS);
        let all: Vec<&Transaction> = month.iter().map(|past| &past.transaction).collect();
        let round: Vec<&Transaction> =
            all.iter().copied().filter(|payment| is_round_and_high(payment)).collect();
        let series = || round.iter().copied().chain([self.payment]);
        let mut by_card: BTreeMap<&str, usize> = BTreeMap::new();
        for payment in series() {
            *by_card.entry(payment.card.as_str()).or_default() += 1;
        }
        let repeated = by_card.values().filter(|times| **times >= 2).count();
        let odd = series().filter(|payment| is_odd(payment)).count();
        let together = round.len() + 1;
        // One card alone colludes with nobody.
        let is_few =
            (2..=COLLUSION_CARDS_MAX).contains(&by_card.len()) && by_card.len() * 3 <= together * 2;
        // Prices of a jeweller are round, too: but most of its customers pay once, by day.
        let is_most = together * 2 > all.len();
        let is_dear = self.usual.is_none_or(|usual| self.payment.amount.value() >= usual * 2);
        if together < 4 || repeated < 1 || !is_few || !is_most || !is_dear {
            return Look::Nothing;
        }
        let strength =
            ramp(count(together), (4, 10), (450, 700)) + if odd * 2 >= together { 250 } else { 0 };
        let middle = median(series().map(|payment| payment.amount.value()).collect());
        let explanation = format!(
            "{together} round amounts at {} within 30 days by {} cards, usually {}; {odd} of them \
             between 10 at night and 6 in the morning",
            self.payment.merchant,
            by_card.len(),
            super::super::amount::Amount::of_cents(middle.unwrap_or_default() / 100),
        );
        self.found(Pattern::Collusion, strength, explanation, round)
    }
}

fn is_round(payment: &Transaction) -> bool {
    payment.amount.is_payment() && payment.amount.value() % (ROUND_UNITS * 10_000) == 0
}

fn is_round_and_high(payment: &Transaction) -> bool {
    is_round(payment) && euro_cents(payment).is_some_and(|cents| cents >= COLLUSION_EURO_CENTS)
}

fn is_odd(payment: &Transaction) -> bool {
    let hour = payment.hour(None);
    !(6..22).contains(&hour)
}

/// Most cards within [`TESTING_MS`], in payments from oldest to newest.
fn busiest_cards(rows: &[super::Past]) -> usize {
    let (mut first, mut most) = (0, 0);
    let mut inside: BTreeMap<&str, usize> = BTreeMap::new();
    for past in rows {
        *inside.entry(past.transaction.card.as_str()).or_default() += 1;
        while past.transaction.at_ms - rows[first].transaction.at_ms > TESTING_MS {
            let card = rows[first].transaction.card.as_str();
            if let Some(times) = inside.get_mut(card) {
                *times -= 1;
                if *times == 0 {
                    inside.remove(card);
                }
            }
            first += 1;
        }
        most = most.max(inside.len());
    }
    most
}
