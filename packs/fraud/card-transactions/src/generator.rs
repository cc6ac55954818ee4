//! Card transactions that are nobody's: cards with habits, and frauds among them with their labels.
//!
//! A seed makes one data set, always the same. `world` has the cities and merchants, `habits` how
//! honest people pay, oddities included: journeys, one dear thing a year, a night out, a rush of
//! small purchases; `frauds` what is done with stolen cards. Rows come in the order of time, and
//! neither ids nor order tell what is a fraud.

mod frauds;
mod habits;
mod world;

use std::io::{self, Write};

use fastrand::Rng;

use self::habits::Holder;
use self::world::{City, Merchant};
use super::row::{Channel, Column, rfc3339};

/// Most rows of a data set. All of them are sorted in memory, some 50 bytes each.
pub const ROWS_MAX: u32 = 5_000_000;

/// Fewest rows: with less there is no card with habits.
pub const ROWS_MIN: u32 = 200;

/// Most frauds in a thousand rows.
pub const FRAUD_PERMILLE_MAX: u32 = 200;

/// Frauds in a thousand rows where nobody says how many: some twenty times as many as with real
/// cards, so that small data sets have some.
pub const FRAUD_PERMILLE: u32 = 20;

/// Rows a card, about.
const ROWS_PER_CARD: u32 = 60;

/// How many days a data set spans.
const DAYS: i64 = 120;

/// When it begins: 2026-06-01T00:00:00Z.
const BEGINS_MS: i64 = 1_780_272_000_000;

const DAY_MS: i64 = 86_400_000;

/// What a data set is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// What all chance comes from.
    pub seed: u64,
    /// How many rows, from [`ROWS_MIN`] to [`ROWS_MAX`].
    pub rows: u32,
    /// How many of a thousand are frauds, about, at most [`FRAUD_PERMILLE_MAX`].
    pub fraud_permille: u32,
}

/// What was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// Rows.
    pub rows: usize,
    /// Of these, frauds.
    pub frauds: usize,
    /// Cards.
    pub cards: usize,
}

/// A payment before it is written.
#[derive(Clone, Copy, Debug)]
struct Payment {
    at_ms: i64,
    card: u32,
    merchant: Merchant,
    cents: i64,
    /// Where the card, or whoever typed its number, was.
    city: &'static City,
    channel: Channel,
    is_fraud: bool,
}

/// Writes a data set as CSV.
///
/// # Errors
/// When it cannot be written.
pub fn generate(recipe: Recipe, out: impl Write) -> io::Result<Made> {
    let mut rng = Rng::with_seed(recipe.seed);
    let rows = recipe.rows.clamp(ROWS_MIN, ROWS_MAX);
    let holders: Vec<Holder> =
        (0..(rows / ROWS_PER_CARD).max(8)).map(|card| Holder::draw(card, &mut rng)).collect();
    let mut payments: Vec<Payment> = Vec::new();
    let mut histories = Vec::with_capacity(holders.len());
    for holder in &holders {
        let first = payments.len();
        holder.live(&mut rng, &mut payments);
        payments[first..].sort_by_key(|payment| payment.at_ms);
        histories.push(first..payments.len());
    }
    let wanted = usize::try_from(u64::from(rows) * u64::from(recipe.fraud_permille) / 1_000);
    frauds::commit(&holders, &histories, wanted.unwrap_or(usize::MAX), &mut rng, &mut payments);
    payments.sort_by_key(|payment| payment.at_ms);
    payments.truncate(usize::try_from(rows).unwrap_or(usize::MAX));
    write(&payments, &holders, recipe.seed, out)?;
    Ok(Made {
        rows: payments.len(),
        frauds: payments.iter().filter(|payment| payment.is_fraud).count(),
        cards: holders.len(),
    })
}

fn write(payments: &[Payment], holders: &[Holder], seed: u64, out: impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(Column::ALL.map(Column::name))?;
    for (number, payment) in payments.iter().enumerate() {
        let city = payment.city;
        let cents = payment.cents;
        writer.write_record(&[
            format!("t{:010x}", scattered(number as u64, seed)),
            rfc3339(payment.at_ms),
            format!("c{:010x}", scattered(u64::from(payment.card), !seed)),
            payment.merchant.name(),
            payment.merchant.category().to_owned(),
            format!("{}.{:02}", cents / 100, cents % 100),
            holders[payment.card as usize].currency().to_owned(),
            city.country.to_owned(),
            city.name.to_owned(),
            format!("{:.2}", city.latitude),
            format!("{:.2}", city.longitude),
            payment.channel.as_str().to_owned(),
            payment.is_fraud.to_string(),
        ])?;
    }
    writer.flush()
}

/// Another number of 40 bits for each number, so that ids tell nothing of what came first.
fn scattered(number: u64, seed: u64) -> u64 {
    const MASK: u64 = (1 << 40) - 1;
    // Multiplying by an odd number and adding are bijections of numbers of so many bits.
    let mixed = number.wrapping_mul(0x9e_3779_b97f).wrapping_add(seed) & MASK;
    (mixed ^ (mixed >> 19)).wrapping_mul(0xbf_5847_6d1d) & MASK
}

/// About normal: a sum of uniform numbers, mean 0, deviation 1, so that no logarithm is needed.
fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
}

/// A factor whose logarithm is about normal.
fn spread(rng: &mut Rng, deviation: f64) -> f64 {
    (normal(rng) * deviation).exp()
}

/// Cents of an amount, at least one.
#[expect(clippy::cast_possible_truncation, reason = "amounts are below ten million")]
fn cents(amount: f64) -> i64 {
    ((amount * 100.0).round() as i64).clamp(1, 999_999_999)
}

/// Whether something of this likelihood happens.
fn happens(rng: &mut Rng, likelihood: f64) -> bool {
    rng.f64() < likelihood
}

/// One of a table.
fn one_of<T: Copy>(rng: &mut Rng, table: &[T]) -> T {
    table[rng.usize(..table.len())]
}

/// One of some cities.
fn a_city(rng: &mut Rng, cities: &'static [City]) -> &'static City {
    &cities[rng.usize(..cities.len())]
}

/// A number from a range of milliseconds.
fn between(rng: &mut Rng, from_ms: i64, to_ms: i64) -> i64 {
    rng.i64(from_ms..=to_ms.max(from_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(recipe: Recipe) -> (Made, String) {
        let mut out = Vec::new();
        let made = generate(recipe, &mut out).unwrap();
        (made, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_seed_makes_one_data_set() {
        let recipe = Recipe { seed: 7, rows: 1_000, fraud_permille: 20 };
        assert_eq!(made(recipe), made(recipe));
        assert_ne!(made(recipe).1, made(Recipe { seed: 8, ..recipe }).1);
    }

    #[test]
    fn a_data_set_has_the_rows_and_about_the_frauds_that_were_asked_for() {
        for (seed, rows, fraud_permille) in
            [(1, 200, 20), (2, 3_000, 20), (3, 3_000, 100), (4, 3_000, 0)]
        {
            let (made, text) = made(Recipe { seed, rows, fraud_permille });
            assert_eq!((made.rows, text.lines().count()), (rows as usize, rows as usize + 1));
            let wanted = rows * fraud_permille / 1_000;
            assert!(made.frauds <= wanted as usize + 12, "{made:?}");
            // Of a handful of frauds all may lie in the days that are cut off.
            assert!(wanted < 10 || made.frauds * 2 >= wanted as usize, "{made:?}");
        }
    }

    #[test]
    fn no_two_numbers_scatter_to_one() {
        let ids: std::collections::BTreeSet<u64> = (0..200_000).map(|n| scattered(n, 99)).collect();
        assert_eq!(ids.len(), 200_000);
    }
}
