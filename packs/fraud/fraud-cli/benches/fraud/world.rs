//! A data set with the truth about each payment, and the payments that are investigated.

use chrono::DateTime;
use fastrand::Rng;

pub const DAY: i64 = 86_400;
pub const HOUR: i64 = 3_600;
pub const MINUTE: i64 = 60;

/// Length of a world, in days.
pub const DAYS: i64 = 120;

/// 2026-02-01T00:00:00Z.
pub const BEGIN: i64 = 1_769_904_000;

/// Frauds begin on this day: before, a card has no history.
pub const FIRST_FRAUD_DAY: i64 = 30;

const HEADER: &str = "transaction_id,timestamp,card_id,merchant_id,merchant_category,amount,currency,\
                      country,city,latitude,longitude,channel,is_fraud";

/// Name, country, latitude, longitude.
pub type Place = (&'static str, &'static str, f64, f64);

/// A kind of merchant: category, names, smallest and largest amount.
pub type Shop = (&'static str, &'static [&'static str], f64, f64);

#[derive(Clone, Debug)]
pub struct Row {
    pub id: String,
    pub at: i64,
    /// The line without id, time and label.
    rest: String,
    /// The kind of fraud; empty for an honest payment.
    pub kind: &'static str,
    /// Whether it is honest and looks like none.
    pub is_unusual: bool,
}

pub struct World {
    pub name: String,
    pub about: String,
    pub rows: Vec<Row>,
}

pub struct Targets<'a> {
    pub frauds: Vec<&'a Row>,
    /// A systematic sample of the honest payments.
    pub honest: Vec<&'a Row>,
    /// Each of them stands for this many.
    pub honest_weight: f64,
    pub unusual: Vec<&'a Row>,
}

impl Row {
    pub fn is_fraud(&self) -> bool {
        !self.kind.is_empty()
    }
}

impl World {
    pub fn of_csv(name: &str, text: &str) -> Self {
        let row = |line: &str| {
            let (id, rest) = line.split_once(',').unwrap();
            let (at, rest) = rest.split_once(',').unwrap();
            let (rest, label) = rest.rsplit_once(',').unwrap();
            Row {
                id: id.to_owned(),
                at: DateTime::parse_from_rfc3339(at).unwrap().timestamp(),
                rest: rest.to_owned(),
                kind: if label == "true" { "generated" } else { "" },
                is_unusual: false,
            }
        };
        let about = "the generator's habits and frauds, with another seed".to_owned();
        Self { name: name.to_owned(), about, rows: text.lines().skip(1).map(row).collect() }
    }

    pub fn csv(&self, has_labels: bool) -> String {
        let line = |row: &Row| {
            let at = DateTime::from_timestamp(row.at, 0).unwrap().format("%Y-%m-%dT%H:%M:%SZ");
            let label = if has_labels { row.is_fraud().to_string() } else { String::new() };
            format!("{},{at},{},{label}\n", row.id, row.rest)
        };
        format!("{HEADER}\n{}", self.rows.iter().map(line).collect::<String>())
    }

    /// Those of the last three quarters of the time.
    pub fn targets(&self, honest: usize) -> Targets<'_> {
        let (first, last) = (self.rows[0].at, self.rows[self.rows.len() - 1].at);
        let late = self.rows.iter().filter(|row| row.at > first + (last - first) / 4);
        let (frauds, others): (Vec<&Row>, Vec<&Row>) = late.partition(|row| row.is_fraud());
        let every = (others.len() / honest).max(1);
        let unusual = others.iter().filter(|row| row.is_unusual).copied().collect();
        let honest = others.into_iter().step_by(every).collect();
        #[expect(clippy::cast_precision_loss, reason = "a world has thousands of rows")]
        let honest_weight = every as f64;
        Targets { frauds, honest, honest_weight, unusual }
    }
}

/// A world that is being written.
pub struct Writer {
    pub rng: Rng,
    rows: Vec<Row>,
    /// Currency of the card that pays.
    pub currency: &'static str,
    pub card: usize,
}

impl Writer {
    pub fn new(seed: u64) -> Self {
        Self { rng: Rng::with_seed(seed), rows: Vec::new(), currency: "", card: 0 }
    }

    pub fn happens(&mut self, share: f64) -> bool {
        self.rng.f64() < share
    }

    pub fn one_of<T: Copy>(&mut self, table: &[T]) -> T {
        table[self.rng.usize(..table.len())]
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + self.rng.f64() * (high - low)
    }

    /// Small amounts are more frequent.
    pub fn skewed(&mut self, low: f64, high: f64) -> f64 {
        let share = self.rng.f64() * self.rng.f64();
        low + share * (high - low)
    }

    /// A time on a day, between two local hours; `zone` is the difference to UTC.
    pub fn time(&mut self, day: i64, hours: (i64, i64), zone: i64) -> i64 {
        let second = self.rng.i64(hours.0 * HOUR..hours.1 * HOUR);
        BEGIN + day * DAY + second - zone * HOUR
    }

    /// A day after [`FIRST_FRAUD_DAY`].
    pub fn late_day(&mut self) -> i64 {
        self.rng.i64(FIRST_FRAUD_DAY..DAYS - 2)
    }

    pub fn shop(&mut self, at: i64, shop: Shop, place: Place, channel: &str) {
        let (category, names, low, high) = shop;
        let name = names[(self.card + self.rng.usize(..2)) % names.len()];
        let amount = self.skewed(low, high);
        self.pay(at, name, category, amount, place, channel);
    }

    pub fn pay(
        &mut self,
        at: i64,
        merchant: &str,
        category: &str,
        amount: f64,
        place: Place,
        channel: &str,
    ) {
        self.add(at, merchant, category, amount, place, channel, "", false);
    }

    /// An honest payment that looks like none.
    pub fn unusual(
        &mut self,
        at: i64,
        merchant: &str,
        category: &str,
        amount: f64,
        place: Place,
        channel: &str,
    ) {
        self.add(at, merchant, category, amount, place, channel, "", true);
    }

    #[expect(clippy::too_many_arguments, reason = "a payment and the kind of its misuse")]
    pub fn fraud(
        &mut self,
        kind: &'static str,
        at: i64,
        merchant: &str,
        category: &str,
        amount: f64,
        place: Place,
        channel: &str,
    ) {
        self.add(at, merchant, category, amount, place, channel, kind, false);
    }

    #[expect(clippy::too_many_arguments, reason = "a payment, and the truth about it")]
    fn add(
        &mut self,
        at: i64,
        merchant: &str,
        category: &str,
        amount: f64,
        (city, country, latitude, longitude): Place,
        channel: &str,
        kind: &'static str,
        is_unusual: bool,
    ) {
        let (card, currency) = (self.card, self.currency);
        let rest = format!(
            "card-{card:03},{merchant},\"{category}\",{amount:.2},{currency},{country},{city},\
             {latitude:.3},{longitude:.3},{channel}"
        );
        self.rows.push(Row { id: String::new(), at, rest, kind, is_unusual });
    }

    pub fn world(mut self, name: &str, about: &str) -> World {
        self.rows.retain(|row| (BEGIN..BEGIN + DAYS * DAY).contains(&row.at));
        self.rows.sort_by_key(|row| row.at);
        for (number, row) in self.rows.iter_mut().enumerate() {
            row.id = format!("p{:06}", (number * 7_919 + 13) % 1_000_003);
        }
        World { name: name.to_owned(), about: about.to_owned(), rows: self.rows }
    }
}
