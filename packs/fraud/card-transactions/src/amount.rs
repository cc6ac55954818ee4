//! Exact amounts of money.

use std::fmt;

/// Most decimals of an amount. ISO 4217 has currencies with up to four.
const DECIMALS_MAX: usize = 4;

/// Ten to the power of [`DECIMALS_MAX`].
const SCALE: i64 = 10_000;

/// Most digits before the decimal point.
const UNIT_DIGITS_MAX: usize = 12;

/// The accepted form, for messages.
pub const EXPECTED: &str =
    "a decimal amount of at most 12 digits, with at most 4 decimals, such as 12.50";

/// An amount in ten-thousandths of its currency's unit. Negative for a refund.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(i64);

impl Amount {
    pub fn of_cents(cents: i64) -> Self {
        Self(cents.saturating_mul(SCALE / 100))
    }

    /// Parses `12`, `12.5`, `-3.10`. Rejects exponents and thousands separators.
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text),
        };
        let (units, decimals) = digits.split_once('.').unwrap_or((digits, ""));
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let fits = (1..=UNIT_DIGITS_MAX).contains(&units.len()) && decimals.len() <= DECIMALS_MAX;
        if !fits || !are_digits(units) || !are_digits(decimals) || digits.ends_with('.') {
            return None;
        }
        let units: i64 = units.parse().ok()?;
        let fraction: i64 = format!("{decimals:0<DECIMALS_MAX$}").parse().ok()?;
        Some(Self(sign * (units * SCALE + fraction)))
    }

    pub fn value(self) -> i64 {
        self.0
    }

    pub fn is_payment(self) -> bool {
        self.0 > 0
    }
}

impl std::iter::Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        Self(amounts.fold(0, |sum, amount| sum.saturating_add(amount.0)))
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let value = self.0.unsigned_abs();
        let (units, fraction) = (value / SCALE.unsigned_abs(), value % SCALE.unsigned_abs());
        if fraction % 100 == 0 {
            write!(f, "{sign}{units}.{:02}", fraction / 100)
        } else {
            write!(f, "{sign}{units}.{fraction:04}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_read_and_written_exactly() {
        for (text, shown) in [
            ("12.50", "12.50"),
            ("12.5", "12.50"),
            ("0", "0.00"),
            ("-3.1", "-3.10"),
            ("0.0725", "0.0725"),
            ("999999999999.9999", "999999999999.9999"),
        ] {
            assert_eq!(Amount::parse(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in
            ["", "-", ".", ".5", "5.", "NaN", "inf", "1e3", "1,000", "+1", "1.00001", " 1", "１"]
        {
            assert_eq!(Amount::parse(text), None, "{text}");
        }
        assert_eq!(Amount::parse("1000000000000"), None);
    }
}
