//! Which earlier payments are habits of a card.
//!
//! Misuse must not become a habit: a payment counts only once its label is known or, without a
//! label, once a cardholder would have reported it. A suspicious one without a label takes longer.

use super::case_file::{LABEL_KNOWN_AFTER_MS, Past};
use super::features::{HABIT_ROWS_MIN, usual_amount, within};
use super::kinds::{Kind, kind_of};
use super::row::Transaction;
use super::statistics::kilometres;

/// Most payments, the newest, that form a card's habits.
pub const HABIT_ROWS: usize = 200;

/// Time until a suspicious payment without a label counts as a habit: a statement every month and
/// two weeks to read it.
const SUSPECT_KNOWN_AFTER_MS: i64 = 45 * 86_400_000;

/// An unlabelled payment of this multiple of the usual amount is suspicious.
const SUSPECT_TIMES: i64 = 5;

/// This many payments within [`BURST_MS`] are suspicious.
const BURST_ROWS: usize = 3;
const BURST_MS: i64 = 10 * 60_000;

/// A place this far from every habit is suspicious, in kilometres.
const FAR_KM: u32 = 300;

/// The card's habits at a time, oldest first.
pub fn at(before: &[Past], at_ms: i64) -> Vec<&Past> {
    let settled = before.iter().rev().filter(|past| past.settles_at_ms <= at_ms);
    let mut habits: Vec<&Past> = settled.take(HABIT_ROWS).collect();
    habits.reverse();
    habits
}

/// When a payment becomes a habit, by its label alone.
pub fn plainly(payment: &Transaction, known_fraud: Option<bool>) -> i64 {
    if known_fraud == Some(true) { i64::MAX } else { payment.at_ms + LABEL_KNOWN_AFTER_MS }
}

/// Sets when each payment of a card becomes a habit. The rows are oldest first.
pub fn settle(rows: &mut [Past]) {
    for index in 0..rows.len() {
        let (before, rest) = rows.split_at_mut(index);
        let Some(past) = rest.first_mut() else { return };
        if past.known_fraud.is_none() && is_suspect(before, &past.transaction) {
            past.settles_at_ms = past.transaction.at_ms + SUSPECT_KNOWN_AFTER_MS;
        }
    }
}

fn is_suspect(before: &[Past], payment: &Transaction) -> bool {
    let burst = within(before, payment.at_ms, BURST_MS);
    let is_burst = burst.len() + 1 >= BURST_ROWS
        && burst.iter().all(|past| !past.transaction.is_card_present());
    let habits = at(before, payment.at_ms);
    if habits.len() < HABIT_ROWS_MIN {
        return is_burst;
    }
    let is_new = |is_alike: &dyn Fn(&Transaction) -> bool| {
        !habits.iter().any(|past| is_alike(&past.transaction))
    };
    let is_far = payment.point.is_some_and(|here| {
        is_new(&|past| past.point.is_some_and(|there| kilometres(there, here) < FAR_KM))
    });
    let usual = usual_amount(&habits, &payment.currency);
    let is_dear = usual.is_some_and(|usual| payment.amount.value() >= usual * SUSPECT_TIMES);
    let kind = kind_of(payment);
    let is_new_cash = kind.is_liquid() && is_new(&|past| kind_of(past) == kind);
    let is_new_country = is_new(&|past| past.country == payment.country);
    is_burst || is_far || is_new_country || is_new_cash || (is_dear && kind != Kind::Travel)
}
