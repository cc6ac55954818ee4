//! Collects the rows that matter for one payment, in bounded memory.
//!
//! It reads the rows three times: to validate all of them and find the payment; to collect the
//! earlier rows of its card and merchant and choose the cards of the sample; to collect the sample.
//! The memory is bounded for any file size, and the result does not depend on the order of the
//! rows.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::error::{Error, RowPosition, shown};
use super::habits;
use super::row::{self, Column, Raw, Row, Transaction};
use super::source::Visit;
use super::statistics::hash;

/// Most rows of a data set. To detect duplicates, the ids of all rows are kept, at about 30 bytes
/// each.
pub const ROWS_MAX: u64 = 10_000_000;

/// Most rows kept of the card and of the merchant each, the newest.
pub const HISTORY_ROWS_MAX: usize = 2_000;

/// Most cards in the sample: this many with a known fraud, and this many at random.
pub const SAMPLE_CARDS_MAX: usize = 200;

/// Most rows kept of a card in the sample, the newest.
pub const SAMPLE_CARD_ROWS_MAX: usize = 300;

/// Time until a payment's label is known. Cardholders report a fraud after they read a statement,
/// which takes weeks rather than days. An earlier label in the data is hindsight.
pub const LABEL_KNOWN_AFTER_MS: i64 = 7 * 86_400_000;

/// An earlier payment, with what was known at the time of the investigated payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    pub transaction: Transaction,
    /// The label, if it was known by then.
    pub known_fraud: Option<bool>,
    /// From when on the payment counts as a habit, in milliseconds since 1970. See [`habits`].
    pub settles_at_ms: i64,
}

/// Whether a payment's label is known at a time.
pub fn is_label_known(payment: &Transaction, at_ms: i64) -> bool {
    payment.at_ms + LABEL_KNOWN_AFTER_MS <= at_ms
}

/// Number of earlier payments with a known label, in all of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    pub frauds: u64,
    pub honest: u64,
}

impl Labels {
    fn add(&mut self, label: Option<bool>) {
        match label {
            Some(true) => self.frauds += 1,
            Some(false) => self.honest += 1,
            None => {}
        }
    }

    fn of(rows: &[Past]) -> Self {
        let mut labels = Self::default();
        rows.iter().for_each(|past| labels.add(past.known_fraud));
        labels
    }
}

/// The case of one payment.
#[derive(Clone, Debug)]
pub struct CaseFile {
    /// The payment under investigation, without its label.
    pub target: Transaction,
    /// Its card's earlier payments, oldest first.
    pub card: Vec<Past>,
    /// Its merchant's earlier payments, of any card, oldest first; `None` if unavailable.
    pub merchant: Option<Vec<Past>>,
    /// Earlier payments of other cards, by card, oldest first.
    pub sample: Vec<Vec<Past>>,
    /// Whether the sample has all other cards.
    pub is_whole: bool,
    /// Labels known by then.
    pub labels: Labels,
    /// Number of rows in the data.
    pub rows: u64,
    /// The source of the data.
    pub source: String,
}

impl Past {
    /// A row as known at a time; `None` for a later payment.
    fn of(row: Row, target: &Transaction) -> Option<Self> {
        let Row { transaction, is_fraud } = row;
        let is_earlier = transaction.at_ms <= target.at_ms && transaction.id != target.id;
        let is_known = is_label_known(&transaction, target.at_ms);
        let known_fraud = is_fraud.filter(|_| is_known);
        let settles_at_ms = habits::plainly(&transaction, known_fraud);
        is_earlier.then_some(Self { transaction, known_fraud, settles_at_ms })
    }

    /// Whether the payment was a known fraud.
    pub fn is_known_fraud(&self) -> bool {
        self.known_fraud == Some(true)
    }

    /// The label, if it was already known at an earlier time than the investigated payment's.
    pub fn label_at(&self, at_ms: i64) -> Option<bool> {
        self.known_fraud.filter(|_| is_label_known(&self.transaction, at_ms))
    }
}

impl CaseFile {
    /// Reads the data. `scan` visits every row, and may be called several times with the same rows.
    ///
    /// # Errors
    /// If a row is invalid, an id occurs twice, or the payment is missing.
    pub fn build(
        source: &str,
        id: &str,
        mut scan: impl FnMut(&mut Visit<'_>) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mut survey = Survey::new(source, id);
        scan(&mut |place, raw| survey.see(place, raw))?;
        let Survey { rows, target, .. } = survey;
        let target = target.ok_or_else(|| Error::NotFound {
            file: source.to_owned(),
            id: shown(id),
            rows,
        })?;
        let mut histories = Histories::new(source, &target);
        scan(&mut |place, raw| histories.see(place, raw))?;
        let (card, merchant) = (of_card(histories.card), newest(histories.merchant));
        let labels = histories.labels;
        let (chosen, is_whole) = histories.chosen.cards();
        let mut sample: BTreeMap<String, Vec<Past>> =
            chosen.into_iter().map(|card| (card, Vec::new())).collect();
        scan(&mut |place, raw| {
            if let Some(rows) = sample.get_mut(raw.get(Column::CardId).trim()) {
                keep(rows, Past::of(parse(source, place, raw)?, &target), SAMPLE_CARD_ROWS_MAX);
            }
            Ok(())
        })?;
        let sample = sample.into_values().map(of_card).filter(|rows| !rows.is_empty()).collect();
        let (merchant, source) = (Some(merchant), source.to_owned());
        Ok(Self { target, card, merchant, sample, is_whole, labels, rows, source })
    }

    /// A case from a service: the card's rows and, if available, the merchant's.
    pub fn of_histories(
        source: &str,
        target: Transaction,
        card: Vec<Row>,
        merchant: Option<Vec<Row>>,
    ) -> Self {
        let rows = (card.len() + merchant.as_ref().map_or(0, Vec::len)) as u64;
        let earlier = |rows: Vec<Row>| -> Vec<Past> {
            rows.into_iter().filter_map(|row| Past::of(row, &target)).collect()
        };
        let (card, merchant) = (of_card(earlier(card)), merchant.map(|rows| newest(earlier(rows))));
        let labels = Labels::of(&card);
        let (sample, is_whole, source) = (Vec::new(), false, source.to_owned());
        Self { target, card, merchant, sample, is_whole, labels, rows, source }
    }

    /// All earlier payments with a known label, by card, each with the card's payments before it.
    pub fn known_cases(&self) -> impl Iterator<Item = (&[Past], &Past)> {
        let cards = self.sample.iter().map(Vec::as_slice).chain([self.card.as_slice()]);
        cards
            .flat_map(|rows| rows.iter().enumerate().map(|(at, past)| (&rows[..at], past)))
            .filter(|(_, past)| past.known_fraud.is_some())
    }
}

/// First pass: validates every row and finds the payment.
struct Survey<'a> {
    source: &'a str,
    id: &'a str,
    rows: u64,
    /// The hash and row of each id. Two ids share a hash about once in ten thousand data sets of
    /// the largest size.
    seen: HashMap<u64, u64>,
    target: Option<Transaction>,
}

impl<'a> Survey<'a> {
    fn new(source: &'a str, id: &'a str) -> Self {
        Self { source, id, rows: 0, seen: HashMap::new(), target: None }
    }

    fn see(&mut self, place: RowPosition, raw: &Raw<'_>) -> Result<(), Error> {
        let row = parse(self.source, place, raw)?;
        self.rows += 1;
        if self.rows > ROWS_MAX {
            let problem = format!("holds more than {ROWS_MAX} rows; pass a part of them");
            return Err(Error::File { file: self.source.to_owned(), problem });
        }
        let mut hasher = DefaultHasher::new();
        row.transaction.id.hash(&mut hasher);
        if let Some(first) = self.seen.insert(hasher.finish(), place.row) {
            let id = shown(&row.transaction.id);
            let problem = format!("{id} is already in row {first}; each transaction has one row");
            return Err(Error::of_field(self.source, place, Column::TransactionId, problem));
        }
        if row.transaction.id == self.id {
            // Drops the label of the investigated payment.
            self.target = Some(row.transaction);
        }
        Ok(())
    }
}

/// Second pass: collects the history of the card and the merchant, and chooses the sample's cards.
struct Histories<'a> {
    source: &'a str,
    target: &'a Transaction,
    card: Vec<Past>,
    merchant: Vec<Past>,
    labels: Labels,
    chosen: Chosen,
}

impl<'a> Histories<'a> {
    fn new(source: &'a str, target: &'a Transaction) -> Self {
        let (labels, chosen) = (Labels::default(), Chosen::default());
        Self { source, target, card: vec![], merchant: vec![], labels, chosen }
    }

    fn see(&mut self, place: RowPosition, raw: &Raw<'_>) -> Result<(), Error> {
        let target = self.target;
        let card = raw.get(Column::CardId).trim();
        let wrong = |error: row::FieldError| {
            Error::of_field(self.source, place, error.column, error.problem)
        };
        let label = match row::label(raw).map_err(wrong)? {
            Some(label)
                if row::time(raw).map_err(wrong)? + LABEL_KNOWN_AFTER_MS <= target.at_ms =>
            {
                Some(label)
            }
            _ => None,
        };
        self.labels.add(label);
        if card != target.card {
            self.chosen.offer(card, label == Some(true));
        }
        let is_merchant = row::merchant(raw).map_err(wrong)? == target.merchant;
        if card == target.card || is_merchant {
            let past = Past::of(parse(self.source, place, raw)?, target);
            if is_merchant {
                keep(&mut self.merchant, past.clone(), HISTORY_ROWS_MAX);
            }
            if card == target.card {
                keep(&mut self.card, past, HISTORY_ROWS_MAX);
            }
        }
        Ok(())
    }
}

/// The cards of the sample: those with the smallest hashes, a reproducible random choice.
#[derive(Default)]
struct Chosen {
    with_fraud: BTreeMap<u64, String>,
    any: BTreeMap<u64, String>,
    left_out: bool,
}

impl Chosen {
    fn offer(&mut self, card: &str, is_known_fraud: bool) {
        let hash = hash(card);
        if is_known_fraud {
            add(&mut self.with_fraud, hash, card);
        }
        self.left_out |= add(&mut self.any, hash, card);
    }

    fn cards(self) -> (Vec<String>, bool) {
        let is_whole = !self.left_out;
        let mut cards: Vec<String> =
            self.with_fraud.into_values().chain(self.any.into_values()).collect();
        cards.sort_unstable();
        cards.dedup();
        (cards, is_whole)
    }
}

/// Adds a card if its hash is among the smallest; returns whether a card was left out.
fn add(cards: &mut BTreeMap<u64, String>, hash: u64, card: &str) -> bool {
    if cards.contains_key(&hash) {
        return false;
    }
    if cards.len() >= SAMPLE_CARDS_MAX
        && cards.last_key_value().is_some_and(|(last, _)| *last < hash)
    {
        return true;
    }
    cards.insert(hash, card.to_owned());
    if cards.len() > SAMPLE_CARDS_MAX {
        cards.pop_last();
        return true;
    }
    false
}

fn parse(source: &str, place: RowPosition, raw: &Raw<'_>) -> Result<Row, Error> {
    Row::parse(raw).map_err(|error| Error::of_field(source, place, error.column, error.problem))
}

/// Adds a payment and keeps the newest ones.
fn keep(rows: &mut Vec<Past>, past: Option<Past>, rows_max: usize) {
    let Some(past) = past else { return };
    rows.push(past);
    // Sorts rarely: sorting at each row takes quadratic time.
    if rows.len() >= rows_max * 2 {
        drop_oldest(rows, rows_max);
    }
}

fn drop_oldest(rows: &mut Vec<Past>, rows_max: usize) {
    rows.sort_unstable_by(in_time);
    rows.drain(..rows.len().saturating_sub(rows_max));
}

fn newest(mut rows: Vec<Past>) -> Vec<Past> {
    drop_oldest(&mut rows, HISTORY_ROWS_MAX);
    rows
}

fn of_card(rows: Vec<Past>) -> Vec<Past> {
    let mut rows = newest(rows);
    habits::settle(&mut rows);
    rows
}

pub fn in_time(a: &Past, b: &Past) -> std::cmp::Ordering {
    let key = |past: &Past| past.transaction.at_ms;
    key(a).cmp(&key(b)).then_with(|| a.transaction.id.cmp(&b.transaction.id))
}
