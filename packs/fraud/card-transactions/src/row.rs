//! Rows, validated when they are read.

use chrono::{DateTime, Datelike as _, SecondsFormat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::{self, Amount};
use super::error::shown;

/// Longest id of a transaction or a card, in characters.
const ID_CHARS_MAX: usize = 64;

/// Most characters kept of a text, such as a merchant's name, a category or a city.
const TEXT_CHARS_MAX: usize = 64;

/// The first and last valid year of a payment.
const YEARS: (i32, i32) = (1990, 2100);

/// A column of the data, in listing order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    TransactionId,
    Timestamp,
    CardId,
    MerchantId,
    MerchantCategory,
    Amount,
    Currency,
    Country,
    City,
    Latitude,
    Longitude,
    Channel,
    IsFraud,
}

/// Number of columns.
pub const COLUMNS: usize = 13;

impl Column {
    pub const ALL: [Self; COLUMNS] = [
        Self::TransactionId,
        Self::Timestamp,
        Self::CardId,
        Self::MerchantId,
        Self::MerchantCategory,
        Self::Amount,
        Self::Currency,
        Self::Country,
        Self::City,
        Self::Latitude,
        Self::Longitude,
        Self::Channel,
        Self::IsFraud,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::TransactionId => "transaction_id",
            Self::Timestamp => "timestamp",
            Self::CardId => "card_id",
            Self::MerchantId => "merchant_id",
            Self::MerchantCategory => "merchant_category",
            Self::Amount => "amount",
            Self::Currency => "currency",
            Self::Country => "country",
            Self::City => "city",
            Self::Latitude => "latitude",
            Self::Longitude => "longitude",
            Self::Channel => "channel",
            Self::IsFraud => "is_fraud",
        }
    }

    /// Whether a data set may omit it.
    pub fn is_optional(self) -> bool {
        self == Self::IsFraud
    }
}

/// A raw row: one text a column, empty where missing.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a>(pub [&'a str; COLUMNS]);

impl<'a> Raw<'a> {
    pub fn get(&self, column: Column) -> &'a str {
        self.0[column as usize]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    Chip,
    Swipe,
    Contactless,
    Online,
    Atm,
}

impl Channel {
    const ALL: [Self; 5] = [Self::Chip, Self::Swipe, Self::Contactless, Self::Online, Self::Atm];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chip => "chip",
            Self::Swipe => "swipe",
            Self::Contactless => "contactless",
            Self::Online => "online",
            Self::Atm => "atm",
        }
    }
}

/// A point on the earth, in millionths of a degree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub latitude: i32,
    pub longitude: i32,
}

/// A card payment, without its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    pub id: String,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    pub card: String,
    pub merchant: String,
    pub category: String,
    pub amount: Amount,
    pub currency: String,
    pub country: String,
    pub city: String,
    pub point: Option<Point>,
    pub channel: Channel,
}

/// A valid row: a payment and its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub transaction: Transaction,
    pub is_fraud: Option<bool>,
}

/// Why a field is invalid.
#[derive(Debug, PartialEq, Eq)]
pub struct FieldError {
    pub column: Column,
    pub problem: String,
}

impl Row {
    /// Validates a row.
    ///
    /// # Errors
    /// The first invalid field.
    pub fn parse(raw: &Raw<'_>) -> Result<Self, FieldError> {
        let transaction = Transaction {
            id: id(raw, Column::TransactionId)?,
            at_ms: time(raw)?,
            card: id(raw, Column::CardId)?,
            merchant: merchant(raw)?,
            category: text(raw, Column::MerchantCategory)?,
            amount: read(raw, Column::Amount, amount::EXPECTED, Amount::parse)?,
            currency: code(raw, Column::Currency, 3, "an ISO 4217 code such as EUR")?,
            country: code(raw, Column::Country, 2, "an ISO 3166 code such as DE")?,
            city: text(raw, Column::City)?,
            point: point(raw)?,
            channel: read(raw, Column::Channel, CHANNELS, |text| {
                Channel::ALL.into_iter().find(|channel| channel.as_str() == text)
            })?,
        };
        Ok(Self { transaction, is_fraud: label(raw)? })
    }
}

impl Transaction {
    /// Whether the card was present.
    pub fn is_card_present(&self) -> bool {
        self.channel != Channel::Online
    }

    /// The cardholder's hour, from 0: solar time at the terminal, or at `home` (millionths of a
    /// degree east) for an online payment, whose place is that of a server or a proxy. Without a
    /// place, UTC. Solar time is exact enough for "at night" and needs no time zone map.
    pub fn hour(&self, home: Option<i32>) -> i64 {
        let own = self.point.map(|point| point.longitude);
        let longitude = if self.is_card_present() { own.or(home) } else { home.or(own) };
        let degrees = longitude.map_or(0, |longitude| i64::from(longitude) / 1_000_000);
        let shift_ms = degrees * 240_000;
        (self.at_ms + shift_ms).rem_euclid(86_400_000) / 3_600_000
    }

    /// The time as RFC 3339.
    pub fn at(&self) -> String {
        rfc3339(self.at_ms)
    }
}

/// A time as RFC 3339, without fractions if they are zero.
pub fn rfc3339(at_ms: i64) -> String {
    DateTime::from_timestamp_millis(at_ms)
        .map(|at| at.to_rfc3339_opts(SecondsFormat::AutoSi, true))
        .unwrap_or_default()
}

/// The time of a raw row.
///
/// # Errors
/// If the time is invalid.
pub fn time(raw: &Raw<'_>) -> Result<i64, FieldError> {
    let expected = "an RFC 3339 time such as 2026-11-02T09:30:00Z";
    let at =
        read(raw, Column::Timestamp, expected, |text| DateTime::parse_from_rfc3339(text).ok())?;
    let year = at.year();
    if (YEARS.0..=YEARS.1).contains(&year) {
        return Ok(at.timestamp_millis());
    }
    let problem = format!("is in the year {year}, expected {} to {}", YEARS.0, YEARS.1);
    Err(FieldError { column: Column::Timestamp, problem })
}

/// The merchant of a raw row.
///
/// # Errors
/// If the row has no merchant.
pub fn merchant(raw: &Raw<'_>) -> Result<String, FieldError> {
    text(raw, Column::MerchantId)
}

/// The label of a raw row.
///
/// # Errors
/// If the label is invalid.
pub fn label(raw: &Raw<'_>) -> Result<Option<bool>, FieldError> {
    read(raw, Column::IsFraud, "true or false, 1 or 0, or nothing", |text| match text {
        "" => Some(None),
        "true" | "True" | "TRUE" | "1" => Some(Some(true)),
        "false" | "False" | "FALSE" | "0" => Some(Some(false)),
        _ => None,
    })
}

const CHANNELS: &str = "chip, swipe, contactless, online or atm";

fn read<T>(
    raw: &Raw<'_>,
    column: Column,
    expected: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, FieldError> {
    let text = raw.get(column).trim();
    parse(text).ok_or_else(|| {
        let is =
            if text.is_empty() { "is empty".to_owned() } else { format!("is {}", shown(text)) };
        FieldError { column, problem: format!("{is}, expected {expected}") }
    })
}

fn id(raw: &Raw<'_>, column: Column) -> Result<String, FieldError> {
    read(raw, column, "an id of 1 to 64 characters without control characters", |text| {
        let fits = (1..=ID_CHARS_MAX).contains(&text.chars().count());
        (fits && !text.chars().any(is_unseen)).then(|| text.to_owned())
    })
}

/// Untrusted text, truncated, without terminal escapes and invisible characters.
fn text(raw: &Raw<'_>, column: Column) -> Result<String, FieldError> {
    read(raw, column, "a text", |text| {
        let seen = text.chars().filter(|c| !is_unseen(*c)).take(TEXT_CHARS_MAX);
        Some(seen.collect::<String>()).filter(|text| !text.trim().is_empty())
    })
}

fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

fn code(
    raw: &Raw<'_>,
    column: Column,
    letters: usize,
    expected: &str,
) -> Result<String, FieldError> {
    read(raw, column, expected, |text| {
        let is_code = text.len() == letters && text.bytes().all(|byte| byte.is_ascii_alphabetic());
        is_code.then(|| text.to_ascii_uppercase())
    })
}

fn point(raw: &Raw<'_>) -> Result<Option<Point>, FieldError> {
    let latitude = degrees(raw, Column::Latitude, 90.0, "degrees from -90 to 90, or nothing")?;
    let longitude = degrees(raw, Column::Longitude, 180.0, "degrees from -180 to 180, or nothing")?;
    match (latitude, longitude) {
        (Some(latitude), Some(longitude)) => Ok(Some(Point { latitude, longitude })),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(lonely(Column::Latitude)),
        (Some(_), None) => Err(lonely(Column::Longitude)),
    }
}

fn lonely(column: Column) -> FieldError {
    FieldError { column, problem: "is empty, but the other coordinate is not".to_owned() }
}

#[expect(clippy::cast_possible_truncation, reason = "degrees are at most 180")]
fn degrees(
    raw: &Raw<'_>,
    column: Column,
    most: f64,
    expected: &str,
) -> Result<Option<i32>, FieldError> {
    read(raw, column, expected, |text| match text {
        "" => Some(None),
        _ => text
            .parse::<f64>()
            .ok()
            .filter(|degrees| degrees.abs() <= most)
            .map(|degrees| Some((degrees * 1e6).round() as i32)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: [&str; COLUMNS] = [
        "t1",
        "2026-11-02T09:30:00Z",
        "c1",
        "m1",
        "grocery",
        "12.50",
        "EUR",
        "DE",
        "Köln",
        "50.94",
        "6.96",
        "chip",
        "",
    ];

    fn with(column: Column, text: &str) -> Result<Row, FieldError> {
        let mut fields = GOOD;
        fields[column as usize] = text;
        Row::parse(&Raw(fields))
    }

    #[test]
    fn a_row_is_read() {
        let row = with(Column::IsFraud, "1").unwrap();
        assert_eq!(row.is_fraud, Some(true));
        assert_eq!(row.transaction.at(), "2026-11-02T09:30:00Z");
        assert_eq!(row.transaction.city, "Köln");
        assert_eq!(row.transaction.hour(None), 9);
        assert_eq!(
            with(Column::Timestamp, "2026-11-02T09:30:00+02:00").unwrap().transaction.hour(None),
            7
        );
    }

    #[test]
    fn an_error_names_the_column_the_value_and_the_accepted_form() {
        let table = [
            (Column::TransactionId, "", "is empty, expected an id of 1 to 64 characters"),
            (Column::CardId, "a\u{7}b", "is `a\u{fffd}b`, expected an id"),
            (Column::Timestamp, "yesterday", "is `yesterday`, expected an RFC 3339 time"),
            (Column::Timestamp, "2026-11-02 09:30", "expected an RFC 3339 time"),
            (
                Column::Timestamp,
                "2400-01-01T00:00:00Z",
                "is in the year 2400, expected 1990 to 2100",
            ),
            (Column::Amount, "NaN", "is `NaN`, expected a decimal amount"),
            (Column::Amount, "", "is empty, expected a decimal amount"),
            (Column::Currency, "euro", "is `euro`, expected an ISO 4217 code"),
            (Column::Country, "D1", "is `D1`, expected an ISO 3166 code"),
            (Column::Latitude, "91", "is `91`, expected degrees from -90 to 90"),
            (Column::Latitude, "NaN", "is `NaN`, expected degrees"),
            (Column::Longitude, "", "is empty, but the other coordinate is not"),
            (Column::Channel, "fax", "is `fax`, expected chip, swipe, contactless, online or atm"),
            (Column::IsFraud, "maybe", "is `maybe`, expected true or false"),
            (Column::MerchantId, "\u{202e}", "expected a text"),
        ];
        for (column, text, problem) in table {
            let error = with(column, text).unwrap_err();
            assert_eq!(error.column, column, "{text}");
            assert!(error.problem.contains(problem), "{}", error.problem);
        }
    }

    #[test]
    fn somebody_elses_words_are_cut_and_stripped() {
        let row =
            with(Column::MerchantCategory, &format!("a\u{1b}[2J\u{202e}b{}", "x".repeat(500)));
        let category = row.unwrap().transaction.category;
        assert!(category.starts_with("a[2Jbx"), "{category}");
        assert_eq!(category.chars().count(), TEXT_CHARS_MAX);
    }

    #[test]
    fn refunds_and_payments_without_a_place_are_valid_rows() {
        assert!(!with(Column::Amount, "-4.20").unwrap().transaction.amount.is_payment());
        let mut fields = GOOD;
        fields[Column::Latitude as usize] = "";
        fields[Column::Longitude as usize] = "";
        assert_eq!(Row::parse(&Raw(fields)).unwrap().transaction.point, None);
    }
}
