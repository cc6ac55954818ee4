//! Generates synthetic card transactions with labelled frauds.
//!
//! A seed always gives the same data set. `world` has the cities and merchants; `habits` models
//! honest cardholders, including unusual behaviour (trips, large purchases, nights out, bursts of
//! small purchases); `frauds` models the misuse of stolen cards. Rows are sorted by time. Neither
//! ids nor order reveal a fraud.

mod frauds;
mod habits;
mod world;

use std::io::{self, Write};

use fastrand::Rng;

use self::habits::Holder;
use self::world::{City, Merchant};
use super::row::{Channel, Column, rfc3339};

/// Most rows of a data set. They are sorted in memory, at about 50 bytes each.
pub const ROWS_MAX: u32 = 5_000_000;

/// Fewest rows: fewer give no card a history.
pub const ROWS_MIN: u32 = 200;

/// Highest fraud rate, in thousandths of the rows.
pub const FRAUD_PERMILLE_MAX: u32 = 200;

/// Default fraud rate, in thousandths. About twenty times that of real cards, so that small data
/// sets contain some.
pub const FRAUD_PERMILLE: u32 = 20;

/// Average number of rows per card.
const ROWS_PER_CARD: u32 = 60;

/// Length of a data set, in days.
const DAYS: i64 = 120;

/// Start of a data set: 2026-06-01T00:00:00Z.
const BEGINS_MS: i64 = 1_780_272_000_000;

const DAY_MS: i64 = 86_400_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of rows, from [`ROWS_MIN`] to [`ROWS_MAX`].
    pub rows: u32,
    /// Approximate fraud rate in thousandths, at most [`FRAUD_PERMILLE_MAX`].
    pub fraud_permille: u32,
}

/// Counts of a generated data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    pub rows: usize,
    pub frauds: usize,
    pub cards: usize,
}

#[derive(Clone, Copy, Debug)]
struct Payment {
    at_ms: i64,
    card: u32,
    merchant: Merchant,
    cents: i64,
    /// Location of the card, or of the person who entered its number.
    city: &'static City,
    channel: Channel,
    is_fraud: bool,
}

/// Writes a data set as CSV.
///
/// # Errors
/// If writing fails.
pub fn generate(options: Options, out: impl Write) -> io::Result<Counts> {
    let mut rng = Rng::with_seed(options.seed);
    let rows = options.rows.clamp(ROWS_MIN, ROWS_MAX);
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
    let wanted = usize::try_from(u64::from(rows) * u64::from(options.fraud_permille) / 1_000);
    frauds::commit(&holders, &histories, wanted.unwrap_or(usize::MAX), &mut rng, &mut payments);
    payments.sort_by_key(|payment| payment.at_ms);
    payments.truncate(usize::try_from(rows).unwrap_or(usize::MAX));
    write(&payments, &holders, options.seed, out)?;
    Ok(Counts {
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
            format!("t{:010x}", unique_id(number as u64, seed)),
            rfc3339(payment.at_ms),
            format!("c{:010x}", unique_id(u64::from(payment.card), !seed)),
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

/// Maps a number to a unique 40-bit number, so that ids do not reveal the order.
fn unique_id(number: u64, seed: u64) -> u64 {
    const MASK: u64 = (1 << 40) - 1;
    // Both steps are bijections modulo 2^40, so ids stay unique.
    let mixed = number.wrapping_mul(0x9e_3779_b97f).wrapping_add(seed) & MASK;
    (mixed ^ (mixed >> 19)).wrapping_mul(0xbf_5847_6d1d) & MASK
}

/// Approximately normal, mean 0 and standard deviation 1: a sum of uniform numbers.
fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
}

/// An approximately log-normal factor.
fn spread(rng: &mut Rng, deviation: f64) -> f64 {
    (normal(rng) * deviation).exp()
}

/// The amount in cents, at least one.
#[expect(clippy::cast_possible_truncation, reason = "amounts are below ten million")]
fn cents(amount: f64) -> i64 {
    ((amount * 100.0).round() as i64).clamp(1, 999_999_999)
}

/// True with this probability.
fn happens(rng: &mut Rng, likelihood: f64) -> bool {
    rng.f64() < likelihood
}

fn one_of<T: Copy>(rng: &mut Rng, table: &[T]) -> T {
    table[rng.usize(..table.len())]
}

fn a_city(rng: &mut Rng, cities: &'static [City]) -> &'static City {
    &cities[rng.usize(..cities.len())]
}

fn between(rng: &mut Rng, from_ms: i64, to_ms: i64) -> i64 {
    rng.i64(from_ms..=to_ms.max(from_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(options: Options) -> (Counts, String) {
        let mut out = Vec::new();
        let made = generate(options, &mut out).unwrap();
        (made, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_seed_makes_one_data_set() {
        let options = Options { seed: 7, rows: 1_000, fraud_permille: 20 };
        assert_eq!(made(options), made(options));
        assert_ne!(made(options).1, made(Options { seed: 8, ..options }).1);
    }

    #[test]
    fn a_data_set_has_the_requested_rows_and_fraud_rate() {
        for (seed, rows, fraud_permille) in
            [(1, 200, 20), (2, 3_000, 20), (3, 3_000, 100), (4, 3_000, 0)]
        {
            let (made, text) = made(Options { seed, rows, fraud_permille });
            assert_eq!((made.rows, text.lines().count()), (rows as usize, rows as usize + 1));
            let wanted = rows * fraud_permille / 1_000;
            assert!(made.frauds <= wanted as usize + 12, "{made:?}");
            // With few frauds, all may be in the days that are cut off.
            assert!(wanted < 10 || made.frauds * 2 >= wanted as usize, "{made:?}");
        }
    }

    #[test]
    fn no_two_numbers_scatter_to_one() {
        let ids: std::collections::BTreeSet<u64> = (0..200_000).map(|n| unique_id(n, 99)).collect();
        assert_eq!(ids.len(), 200_000);
    }
}
