//! What a merchant category and a currency mean for a payment.

use super::row::{Channel, Transaction};

/// Kind of a merchant category, as far as detectors distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Goods that resell within the hour, and money itself.
    Resale,
    /// Bookings of trips.
    Travel,
    /// Rides and parking: small amounts, several in an hour.
    Transit,
    /// Regular charges without the cardholder's action.
    Recurring,
    /// Money that leaves the card system: cash and transfers.
    Cash,
    Other,
}

/// Words in category names, and ISO 18245 merchant category codes.
const RESALE: &[&str] = &[
    "gift", "voucher", "crypto", "jewel", "gaming", "game", "watches", "prepaid", "quasi", "5944",
    "5094", "5816", "5947", "6051", "7995", "gambl", "casino", "betting",
];
const TRAVEL: &[&str] = &[
    "airline",
    "airport",
    "lodging",
    "hotel",
    "travel",
    "car_rental",
    "car rental",
    "rail",
    "cruise",
    "4511",
    "4722",
    "7011",
    "7512",
    "4112",
];
const TRANSIT: &[&str] = &[
    "transport",
    "transit",
    "parking",
    "toll",
    "taxi",
    "ride",
    "metro",
    "scooter",
    "bus",
    "4111",
    "4121",
    "4131",
    "7523",
    "4784",
];
const RECURRING: &[&str] = &[
    "streaming",
    "subscription",
    "utilit",
    "telecom",
    "insurance",
    "software",
    "rent",
    "gym",
    "membership",
    "news",
    "saas",
    "4814",
    "4899",
    "4900",
    "5968",
    "6300",
    "charity",
];
const CASH: &[&str] =
    &["money", "transfer", "remit", "wire", "atm", "cash", "4829", "6010", "6011"];

pub fn kind_of(payment: &Transaction) -> Kind {
    if payment.channel == Channel::Atm {
        return Kind::Cash;
    }
    let category = payment.category.to_lowercase();
    // `car_rental` contains `rent`, so travel is matched first.
    let tables = [
        (Kind::Travel, TRAVEL),
        (Kind::Cash, CASH),
        (Kind::Resale, RESALE),
        (Kind::Recurring, RECURRING),
        (Kind::Transit, TRANSIT),
    ];
    let found = tables.into_iter().find(|(_, words)| words.iter().any(|word| has(&category, word)));
    found.map_or(Kind::Other, |(kind, _)| kind)
}

/// Whether a word of the category begins with this one; short words must match whole.
fn has(category: &str, word: &str) -> bool {
    if word.contains([' ', '_']) {
        return category.contains(word);
    }
    let mut words = category.split(|c: char| !c.is_alphanumeric());
    words.any(|part| {
        if word.len() <= 4 {
            part == word || part.strip_suffix('s') == Some(word)
        } else {
            part.starts_with(word)
        }
    })
}

impl Kind {
    /// Whether a thief turns it into money.
    pub fn is_liquid(self) -> bool {
        matches!(self, Self::Resale | Self::Cash)
    }
}

/// Units of a currency for a thousand euros. Exact enough to tell 20 from 200; no amount is shown
/// in another currency than its own.
///
/// Approximate rates, not copied from a table: only the magnitude is used.
const PER_1000_EUR: &[(&str, i64)] = &[
    ("EUR", 1_000),
    ("USD", 1_100),
    ("GBP", 860),
    ("CHF", 940),
    ("SEK", 11_000),
    ("NOK", 12_000),
    ("DKK", 7_500),
    ("PLN", 4_200),
    ("CZK", 25_000),
    ("HUF", 400_000),
    ("RON", 5_000),
    ("BGN", 2_000),
    ("TRY", 45_000),
    ("JPY", 170_000),
    ("CNY", 8_100),
    ("INR", 98_000),
    ("AUD", 1_700),
    ("CAD", 1_600),
    ("NZD", 1_900),
    ("SGD", 1_500),
    ("HKD", 8_800),
    ("KRW", 1_600_000),
    ("THB", 37_000),
    ("IDR", 18_500_000),
    ("MYR", 4_800),
    ("PHP", 64_000),
    ("MXN", 21_000),
    ("BRL", 6_300),
    ("ZAR", 20_000),
    ("ILS", 3_900),
    ("ISK", 143_000),
    ("AED", 4_100),
    ("SAR", 4_200),
    ("EGP", 56_000),
    ("KES", 146_000),
    ("NGN", 1_740_000),
    ("MAD", 10_500),
    ("UAH", 47_000),
    ("TWD", 34_000),
    ("CLP", 1_070_000),
    ("VND", 29_500_000),
    ("COP", 4_500_000),
    ("PEN", 4_100),
    ("ARS", 1_500_000),
    ("UYU", 45_000),
    ("BOB", 7_600),
    ("PYG", 8_200_000),
    ("CRC", 560_000),
    ("GTQ", 8_500),
    ("DOP", 66_000),
    ("JMD", 175_000),
    ("TTD", 7_400),
    ("HNL", 28_500),
    ("NIO", 40_500),
    ("PAB", 1_100),
    ("KWD", 335),
    ("BHD", 415),
    ("OMR", 423),
    ("QAR", 4_000),
    ("JOD", 780),
    ("LBP", 98_000_000),
    ("IQD", 1_440_000),
    ("TND", 3_400),
    ("DZD", 150_000),
    ("LYD", 6_000),
    ("GHS", 13_000),
    ("UGX", 4_000_000),
    ("TZS", 2_850_000),
    ("RWF", 1_570_000),
    ("ETB", 150_000),
    ("ZMW", 27_000),
    ("BWP", 15_500),
    ("NAD", 20_000),
    ("MUR", 52_000),
    ("MGA", 5_100_000),
    ("MZN", 70_000),
    ("AOA", 1_000_000),
    ("XAF", 656_000),
    ("XOF", 656_000),
    ("XPF", 119_000),
    ("CVE", 110_000),
    ("PKR", 310_000),
    ("BDT", 134_000),
    ("LKR", 330_000),
    ("NPR", 157_000),
    ("MVR", 17_000),
    ("MMK", 2_300_000),
    ("KHR", 4_500_000),
    ("LAK", 24_000_000),
    ("MNT", 3_900_000),
    ("MOP", 9_000),
    ("BND", 1_500),
    ("FJD", 2_600),
    ("PGK", 4_500),
    ("KZT", 580_000),
    ("UZS", 13_800_000),
    ("KGS", 96_000),
    ("GEL", 3_000),
    ("AMD", 430_000),
    ("AZN", 1_900),
    ("RUB", 95_000),
    ("BYN", 3_600),
    ("MDL", 19_500),
    ("RSD", 117_000),
    ("MKD", 61_500),
    ("ALL", 98_000),
    ("BAM", 1_956),
];

/// The value in euro cents, roughly; `None` for a currency outside the table.
pub fn euro_cents(payment: &Transaction) -> Option<i64> {
    let rate = PER_1000_EUR.iter().find(|(code, _)| *code == payment.currency)?.1;
    // An amount is in ten-thousandths: a cent is a hundred of them.
    i64::try_from(i128::from(payment.amount.value()) * 10 / i128::from(rate)).ok()
}

/// Highest contactless payment without a PIN, in units of the currency.
///
/// Source for the euro: Commission Delegated Regulation (EU) 2018/389, article 11. The others are
/// approximate and not checked against the schemes' tables.
const CONTACTLESS_LIMITS: &[(&str, i64)] = &[
    ("EUR", 50),
    ("GBP", 100),
    ("CHF", 80),
    ("SEK", 400),
    ("NOK", 500),
    ("DKK", 350),
    ("PLN", 100),
    ("CZK", 500),
    ("HUF", 15_000),
    ("RON", 100),
    ("CAD", 250),
    ("AUD", 100),
    ("NZD", 200),
    ("USD", 100),
    ("INR", 5_000),
    ("JPY", 15_000),
];

pub fn contactless_limit(currency: &str) -> Option<i64> {
    CONTACTLESS_LIMITS.iter().find(|(code, _)| *code == currency).map(|(_, units)| *units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_category_match_whole_or_by_their_beginning() {
        for (category, word, expected) in [
            ("car_rental", "rent", false),
            ("rent", "rent", true),
            ("parking_app", "parking", true),
            ("business_services", "bus", false),
            ("gift_cards", "gift", true),
            ("5947", "5947", true),
            ("games", "game", true),
        ] {
            assert_eq!(has(category, word), expected, "{category} {word}");
        }
    }
}
