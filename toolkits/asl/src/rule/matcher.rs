//! Matching one value against a pattern.

use std::net::IpAddr;

use serde_json::Value;

use crate::value::{compare, equal};
use crate::wildcard::Wildcard;

/// One alternative for a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Matcher {
    Exact(Value),
    /// The text, or another spelling of the same address.
    Address {
        text: String,
        network: IpAddr,
    },
    Text(Text),
    /// Any other value; the field must exist.
    AnythingBut(Vec<Matcher>),
    Numeric(Vec<(Order, Value)>),
    Exists(bool),
    Cidr {
        network: IpAddr,
        bits: u32,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Text {
    Prefix { text: String, ignore_case: bool },
    Suffix { text: String, ignore_case: bool },
    EqualsIgnoreCase(String),
    Wildcard(Wildcard),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}

impl Matcher {
    /// Whether a present value matches.
    pub(super) fn matches(&self, value: &Value) -> bool {
        match self {
            Matcher::Exact(expected) => equal(expected, value),
            Matcher::Address { text, network } => value.as_str().is_some_and(|value| {
                value == text || value.parse::<IpAddr>().is_ok_and(|found| found == *network)
            }),
            Matcher::Text(text) => value.as_str().is_some_and(|value| text.matches(value)),
            Matcher::AnythingBut(matchers) => !matchers.iter().any(|inner| inner.matches(value)),
            Matcher::Numeric(bounds) => {
                value.is_number()
                    && bounds.iter().all(|(order, bound)| {
                        compare(value, bound).is_some_and(|found| match order {
                            Order::Less => found.is_lt(),
                            Order::LessOrEqual => found.is_le(),
                            Order::Equal => found.is_eq(),
                            Order::GreaterOrEqual => found.is_ge(),
                            Order::Greater => found.is_gt(),
                        })
                    })
            }
            Matcher::Exists(expected) => *expected,
            Matcher::Cidr { network, bits } => {
                let address = value.as_str().and_then(|text| text.parse().ok());
                address.is_some_and(|address| within(*network, *bits, address))
            }
        }
    }
}

impl Text {
    fn matches(&self, value: &str) -> bool {
        match self {
            Text::Prefix { text, ignore_case: false } => value.starts_with(text.as_str()),
            Text::Suffix { text, ignore_case: false } => value.ends_with(text.as_str()),
            Text::Prefix { text, .. } => value.to_lowercase().starts_with(&text.to_lowercase()),
            Text::Suffix { text, .. } => value.to_lowercase().ends_with(&text.to_lowercase()),
            Text::EqualsIgnoreCase(text) => value.to_lowercase() == text.to_lowercase(),
            Text::Wildcard(wildcard) => wildcard.matches(value),
        }
    }
}

/// Whether an address belongs to a network.
fn within(network: IpAddr, bits: u32, address: IpAddr) -> bool {
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    let ((network, width), (address, other)) = (number(network), number(address));
    if width != other {
        return false;
    }
    let shift = width - bits.min(width);
    network.checked_shr(shift).unwrap_or(0) == address.checked_shr(shift).unwrap_or(0)
}
