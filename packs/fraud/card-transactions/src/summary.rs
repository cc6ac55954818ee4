//! Summarises the payment, and the history of its card and merchant.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::amount::Amount;
use super::case_file::{CaseFile, LABEL_KNOWN_AFTER_MS, Past};
use super::features::usual_amount;
use super::habits;
use super::row::{Channel, Transaction, rfc3339};
use super::statistics::permille;

/// Most names in a list.
const NAMES_MAX: usize = 6;

/// Number of the card's last payments in the summary.
const PREVIOUS_MAX: usize = 8;

/// A payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Payment {
    pub transaction_id: String,
    pub timestamp: String,
    pub card_id: String,
    pub merchant_id: String,
    pub merchant_category: String,
    /// Decimal.
    pub amount: String,
    pub currency: String,
    pub country: String,
    pub city: String,
    pub channel: Channel,
}

/// The card's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CardHistory {
    /// Number of earlier payments.
    pub transactions: u32,
    /// Number of those that count as habits: old enough to be reported, and not suspicious.
    pub habits: u32,
    /// Number of known frauds among them.
    pub known_frauds: u32,
    /// Time of the first payment.
    pub first_at: Option<String>,
    /// Median amount in the payment's currency, decimal.
    pub median_amount: Option<String>,
    /// Largest amount, decimal.
    pub largest_amount: Option<String>,
    /// Most frequent cities.
    pub cities: Vec<String>,
    /// Most frequent categories.
    pub categories: Vec<String>,
    /// Last payments, oldest first.
    pub previous: Vec<Payment>,
}

/// The merchant's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MerchantHistory {
    /// Number of earlier payments.
    pub transactions: u32,
    /// Number of cards.
    pub cards: u32,
    /// Number of known frauds among them.
    pub known_frauds: u32,
    /// Median amount in the payment's currency, decimal.
    pub median_amount: Option<String>,
    /// Share of payments without the card, in thousandths.
    pub online_permille: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Context {
    pub transaction: Payment,
    pub card: CardHistory,
    /// Absent if the source has no data about the merchant.
    pub merchant: Option<MerchantHistory>,
    /// The source of the data.
    pub source: String,
    /// Number of rows in the data.
    pub rows: u64,
    /// Caveats.
    pub notes: Vec<String>,
}

pub fn sum_up(case: &CaseFile) -> Context {
    let currency = &case.target.currency;
    Context {
        transaction: Payment::of(&case.target),
        card: card(&case.card, &case.target),
        merchant: case.merchant.as_ref().map(|rows| merchant(rows, currency)),
        source: case.source.clone(),
        rows: case.rows,
        notes: notes(case),
    }
}

impl Payment {
    pub(super) fn of(transaction: &Transaction) -> Self {
        Self {
            transaction_id: transaction.id.clone(),
            timestamp: transaction.at(),
            card_id: transaction.card.clone(),
            merchant_id: transaction.merchant.clone(),
            merchant_category: transaction.category.clone(),
            amount: transaction.amount.to_string(),
            currency: transaction.currency.clone(),
            country: transaction.country.clone(),
            city: transaction.city.clone(),
            channel: transaction.channel,
        }
    }
}

fn card(rows: &[Past], target: &Transaction) -> CardHistory {
    let currency = target.currency.as_str();
    let habits = habits::at(rows, target.at_ms);
    let in_currency = rows.iter().filter(|past| past.transaction.currency == currency);
    CardHistory {
        transactions: count(rows.len()),
        habits: count(habits.len()),
        known_frauds: count(rows.iter().filter(|past| past.is_known_fraud()).count()),
        first_at: rows.first().map(|past| rfc3339(past.transaction.at_ms)),
        median_amount: usual_amount(&habits, currency)
            .map(|amount| Amount::of_cents(amount / 100).to_string()),
        largest_amount: in_currency
            .map(|past| past.transaction.amount)
            .max()
            .map(|a| a.to_string()),
        cities: most_common(habits.iter().map(|past| past.transaction.city.as_str())),
        categories: most_common(habits.iter().map(|past| past.transaction.category.as_str())),
        previous: rows[rows.len().saturating_sub(PREVIOUS_MAX)..]
            .iter()
            .map(|past| Payment::of(&past.transaction))
            .collect(),
    }
}

fn merchant(rows: &[Past], currency: &str) -> MerchantHistory {
    let cards: BTreeSet<&str> = rows.iter().map(|past| past.transaction.card.as_str()).collect();
    let online = rows.iter().filter(|past| !past.transaction.is_card_present()).count();
    MerchantHistory {
        transactions: count(rows.len()),
        cards: count(cards.len()),
        known_frauds: count(rows.iter().filter(|past| past.is_known_fraud()).count()),
        median_amount: usual_amount(&rows.iter().collect::<Vec<_>>(), currency)
            .map(|amount| Amount::of_cents(amount / 100).to_string()),
        online_permille: permille(online, rows.len()),
    }
}

/// The most frequent names first.
fn most_common<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.into_iter().take(NAMES_MAX).map(|(name, _)| name.to_owned()).collect()
}

fn notes(case: &CaseFile) -> Vec<String> {
    let mut notes = vec![format!(
        "fraud labels count from {} days after a payment; the label of this payment is never \
         read",
        LABEL_KNOWN_AFTER_MS / 86_400_000
    )];
    if !case.target.amount.is_payment() {
        notes.push("the amount is a refund or a card check, not a payment".to_owned());
    }
    if case.card.is_empty() {
        notes.push("the card has no earlier payment".to_owned());
    }
    if case.merchant.is_none() {
        notes.push(
            "the source has only the card's payments, not those of the merchant or other cards"
                .to_owned(),
        );
    } else if case.sample.is_empty() && !case.is_whole {
        notes.push("the source has no payments of other cards at other merchants".to_owned());
    }
    notes
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
