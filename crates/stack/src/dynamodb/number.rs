//! DynamoDB's numbers: exact decimals of up to 38 digits.

use std::cmp::Ordering;

/// Most significant digits of a number.
///
/// Source: AWS, "Supported data types and naming rules in Amazon DynamoDB", Number.
pub const DIGITS_MAX: usize = 38;

/// The largest exponent, as in 9.99E+125.
///
/// Source: as [`DIGITS_MAX`].
pub const EXPONENT_MAX: i64 = 125;

/// The smallest exponent, as in 1E-130.
///
/// Source: as [`DIGITS_MAX`].
pub const EXPONENT_MIN: i64 = -130;

/// A decimal number in normal form, so that equal numbers are equal values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    negative: bool,
    /// The exponent of the first digit; 0 for zero.
    exponent: i64,
    /// Significant digits without leading or trailing zeros; empty for zero.
    digits: Vec<u8>,
}

/// Why a text is not a number. The messages are DynamoDB's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    #[error("The parameter cannot be converted to a numeric value: {0}")]
    Malformed(String),
    #[error("Attempting to store more than {DIGITS_MAX} significant digits in a Number")]
    TooLong,
    #[error(
        "Number overflow. Attempting to store a number with magnitude larger than supported range"
    )]
    Overflow,
    #[error(
        "Number underflow. Attempting to store a number with magnitude smaller than supported range"
    )]
    Underflow,
}

impl Number {
    /// Parses a decimal number, with or without fraction and exponent.
    pub fn parse(text: &str) -> Result<Self, NumberError> {
        let malformed = || NumberError::Malformed(text.to_owned());
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let (mantissa, power) = match rest.split_once(['e', 'E']) {
            Some((mantissa, power)) => (mantissa, power.parse::<i32>().map_err(|_| malformed())?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        if all.is_empty() || !all.iter().all(u8::is_ascii_digit) {
            return Err(malformed());
        }
        let Some(first) = all.iter().position(|digit| *digit != b'0') else {
            return Ok(Self { negative: false, exponent: 0, digits: Vec::new() });
        };
        let last = all.iter().rposition(|digit| *digit != b'0').unwrap_or(first);
        let digits = all[first..=last].to_vec();
        let point = i64::try_from(whole.len()).map_err(|_| NumberError::Overflow)?;
        let first = i64::try_from(first).map_err(|_| NumberError::Overflow)?;
        let exponent = point - 1 - first + i64::from(power);
        if exponent > EXPONENT_MAX {
            return Err(NumberError::Overflow);
        }
        if exponent < EXPONENT_MIN {
            return Err(NumberError::Underflow);
        }
        if digits.len() > DIGITS_MAX {
            return Err(NumberError::TooLong);
        }
        Ok(Self { negative, exponent, digits })
    }

    /// The number as a 64-bit integer, if it is one.
    pub fn whole(&self) -> Option<i64> {
        if self.digits.is_empty() {
            return Some(0);
        }
        let places = usize::try_from(self.exponent).ok()? + 1;
        if places < self.digits.len() {
            return None;
        }
        let mut text = if self.negative { "-".to_owned() } else { String::new() };
        text.extend(self.digits.iter().map(|digit| char::from(*digit)));
        text.extend(std::iter::repeat_n('0', places - self.digits.len()));
        text.parse().ok()
    }

    /// The size as DynamoDB counts it: one byte per two digits, plus one.
    pub fn size_bytes(&self) -> usize {
        self.digits.len().div_ceil(2) + 1 + usize::from(self.negative)
    }

    fn magnitude(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => {
                self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits))
            }
        }
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Self {
        let text = number.unsigned_abs().to_string();
        let digits = text.trim_end_matches('0').as_bytes().to_vec();
        // At most 19 digits, so the conversion cannot fail.
        let exponent =
            if digits.is_empty() { 0 } else { i64::try_from(text.len() - 1).unwrap_or_default() };
        Self { negative: number < 0, exponent, digits }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(whole) = self.whole() {
            return write!(f, "{whole}");
        }
        let sign = if self.negative { "-" } else { "" };
        let digits = String::from_utf8_lossy(&self.digits);
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        write!(f, "{sign}{first}{point}{rest}E{}", self.exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_have_one_form() {
        for (text, whole) in [
            ("3", Some(3)),
            ("3.0", Some(3)),
            ("3e0", Some(3)),
            ("0.3E1", Some(3)),
            ("-0", Some(0)),
            ("1200", Some(1200)),
            ("12e2", Some(1200)),
            ("2.5", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
        ] {
            let number = Number::parse(text).unwrap();
            assert_eq!(number.whole(), whole, "{text}");
            if let Some(whole) = whole {
                assert_eq!(number, Number::from(whole), "{text}");
            }
        }
    }

    #[test]
    fn numbers_are_ordered() {
        let texts = ["-1e10", "-2", "-1.5", "-1e-5", "0", "1e-130", "0.5", "1", "1.01", "9", "10"];
        let numbers: Vec<_> = texts.iter().map(|text| Number::parse(text).unwrap()).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
    }

    #[test]
    fn an_invalid_number_has_dynamodbs_error() {
        for text in ["", "-", ".", "abc", "1e", "1.2.3", "0x1", "1e99999999999"] {
            assert_eq!(Number::parse(text), Err(NumberError::Malformed(text.to_owned())));
        }
        assert_eq!(Number::parse("1e126"), Err(NumberError::Overflow));
        assert_eq!(Number::parse("1e-131"), Err(NumberError::Underflow));
        assert_eq!(Number::parse(&"1".repeat(39)), Err(NumberError::TooLong));
    }
}
