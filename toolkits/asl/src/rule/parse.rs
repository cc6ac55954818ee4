//! Parses text into a pattern, with AWS's error messages.

use std::net::IpAddr;

use serde_json::{Map, Value};

use super::matcher::{Matcher, Order, Text};
use super::pattern::{Condition, Pattern};
use crate::definition::json_problem;
use crate::wildcard::Wildcard;

/// Longest pattern, in bytes.
///
/// Source: AWS, `PutRule`, `EventPattern`.
pub const PATTERN_BYTES_MAX: usize = 4_096;
/// Most combinations that `$or` may produce.
///
/// Source: AWS, "Creating Amazon EventBridge event patterns", Or matching.
pub const ALTERNATIVES_MAX: usize = 1_000;
/// Most stars in one wildcard followed by the same character. AWS states no number: it rejected
/// five and accepted four.
pub const WILDCARD_REPEATS_MAX: usize = 4;
/// Largest absolute value in a numeric match.
///
/// Source: AWS, "Comparison operators for use in event patterns", numeric matching.
const NUMBER_MAX: f64 = 5e9;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Event pattern is not valid. Reason: {reason}")]
pub struct PatternError {
    pub reason: String,
}

type Result<T> = std::result::Result<T, PatternError>;
type Alternatives = Vec<Vec<Condition>>;

fn fail<T>(reason: impl Into<String>) -> Result<T> {
    Err(PatternError { reason: reason.into() })
}

pub(super) fn pattern(text: &str) -> Result<Pattern> {
    if text.len() > PATTERN_BYTES_MAX {
        return fail(format!("Pattern is longer than {PATTERN_BYTES_MAX} bytes"));
    }
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return fail(json_problem(text, &error)),
    };
    let Some(fields) = value.as_object() else { return fail("Filter is not an object") };
    Ok(Pattern { alternatives: object(fields, "", false)? })
}

fn object(fields: &Map<String, Value>, path: &str, within_or: bool) -> Result<Alternatives> {
    if fields.is_empty() {
        return fail("Empty objects are not allowed");
    }
    let mut alternatives: Alternatives = vec![Vec::new()];
    for (name, value) in fields {
        if within_or && RESERVED_WITHIN_OR.contains(&name.as_str()) {
            return fail(format!(
                "{name} is Ruler reserved fieldName which cannot be used inside $or."
            ));
        }
        let dot = if path.is_empty() { "" } else { "." };
        let inner = format!("{path}{dot}{name}");
        let more = match value {
            _ if name == "$or" => any_of(value, path)?,
            Value::Array(items) => vec![vec![field(items, inner)?]],
            Value::Object(fields) => object(fields, &inner, within_or)?,
            _ => return fail(format!("\"{name}\" must be an object or an array")),
        };
        alternatives = combine(&alternatives, &more)?;
    }
    Ok(alternatives)
}

/// Names that a field directly below `$or` must not have.
///
/// Source: AWS, `event-ruler`, `Constants.RESERVED_FIELD_NAMES_IN_OR_RELATIONSHIP`.
const RESERVED_WITHIN_OR: [&str; 24] = [
    "exactly",
    "equals-ignore-case",
    "prefix",
    "suffix",
    "anything-but",
    "exists",
    "wildcard",
    "numeric",
    "cidr",
    "=",
    "<",
    "<=",
    ">",
    ">=",
    "regex",
    "not-wildcard",
    "not-equals-ignore-case",
    "date-after",
    "date-on-or-after",
    "date-before",
    "date-on-or-before",
    "in-date-range",
    "ip-address-in-range",
    "ip-address-not-in-range",
];

fn any_of(value: &Value, path: &str) -> Result<Alternatives> {
    let Some(items) = value.as_array() else {
        return fail("It must be an Array followed with $or.");
    };
    let mut alternatives = Vec::new();
    for item in items {
        let Some(fields) = item.as_object() else {
            return fail("Only JSON object is allowed in array of $or relationship.");
        };
        alternatives.extend(object(fields, path, true)?);
    }
    if items.len() < 2 {
        return fail("There must have at least 2 Objects in $or relationship.");
    }
    Ok(alternatives)
}

fn combine(left: &Alternatives, right: &Alternatives) -> Result<Alternatives> {
    if left.len().saturating_mul(right.len()) > ALTERNATIVES_MAX {
        return fail(format!("\"$or\" makes more than {ALTERNATIVES_MAX} combinations"));
    }
    let pairs = left.iter().flat_map(|left| right.iter().map(move |right| (left, right)));
    Ok(pairs.map(|(left, right)| [left.as_slice(), right.as_slice()].concat()).collect())
}

fn field(items: &[Value], path: String) -> Result<Condition> {
    if items.is_empty() {
        return fail("Empty arrays are not allowed");
    }
    let any_of = items.iter().map(matcher).collect::<Result<_>>()?;
    Ok(Condition { path, any_of })
}

fn matcher(value: &Value) -> Result<Matcher> {
    match value {
        Value::Array(_) => fail("Match value must be String, number, true, false, or null"),
        Value::Object(fields) => {
            let Some((name, value)) = fields.iter().next() else {
                return fail("Match expression name not found");
            };
            // The members are read in order, so the first one's problem is the one reported.
            let matcher = expression(name, value)?;
            let reason = match name.as_str() {
                "numeric" | "anything-but" => "Too many elements in numeric expression",
                _ => "Only one key allowed in match expression",
            };
            sole(fields, reason).map(|()| matcher)
        }
        Value::String(text) => Ok(match address(text) {
            Some(network) => Matcher::Address { text: text.clone(), network },
            None => Matcher::Exact(value.clone()),
        }),
        _ => Ok(Matcher::Exact(value.clone())),
    }
}

fn expression(name: &str, value: &Value) -> Result<Matcher> {
    Ok(match name {
        "prefix" | "suffix" => {
            let (text, ignore_case) = match value {
                Value::Object(fields) => {
                    let Some((inner, value)) = fields.iter().next() else {
                        let capital = if name == "prefix" { "Prefix" } else { "Suffix" };
                        return fail(format!("{capital} expression name not found"));
                    };
                    if inner != "equals-ignore-case" {
                        return fail(format!("Unsupported {name} pattern: {inner}"));
                    }
                    let text = text(value, inner)?;
                    (sole(fields, "Only one key allowed in match expression").map(|()| text)?, true)
                }
                _ => (text(value, name)?, false),
            };
            Matcher::Text(affix(name, text, ignore_case))
        }
        "equals-ignore-case" => Matcher::Text(Text::EqualsIgnoreCase(text(value, name)?)),
        "wildcard" => Matcher::Text(Text::Wildcard(wildcard(value)?)),
        "anything-but" => anything_but(value)?,
        "numeric" => numeric(value)?,
        "cidr" => cidr(value)?,
        "exactly" => match value {
            Value::String(text) => Matcher::Exact(Value::String(text.clone())),
            _ => return fail("exact match pattern must be a string"),
        },
        "exists" => match value {
            Value::Bool(expected) => Matcher::Exists(*expected),
            _ => return fail("exists match pattern must be either true or false."),
        },
        _ => return fail(format!("Unrecognized match type {name}")),
    })
}

/// Rejects an object with more than one member.
fn sole(fields: &Map<String, Value>, reason: &str) -> Result<()> {
    if fields.len() > 1 { fail(reason) } else { Ok(()) }
}

fn text(value: &Value, name: &str) -> Result<String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        _ => fail(format!("{name} match pattern must be a string")),
    }
}

fn affix(name: &str, text: String, ignore_case: bool) -> Text {
    match name {
        "prefix" => Text::Prefix { text, ignore_case },
        _ => Text::Suffix { text, ignore_case },
    }
}

fn wildcard(value: &Value) -> Result<Wildcard> {
    let text = text(value, "wildcard")?;
    let mut bytes = text.bytes().enumerate().peekable();
    while let Some((at, byte)) = bytes.next() {
        // EventBridge counts the bytes of the value with its opening quote.
        let at = at + 1;
        match (byte, bytes.peek()) {
            (b'*', Some((_, b'*'))) => {
                return fail(format!("Consecutive wildcard characters at pos {at}"));
            }
            (b'\\', Some((_, b'*' | b'\\'))) => {
                bytes.next();
            }
            (b'\\', _) => return fail(format!("Invalid escape character at pos {at}")),
            _ => {}
        }
    }
    let wildcard = Wildcard::parse(&text);
    let firsts: Vec<Option<char>> =
        wildcard.inner_pieces().iter().map(|piece| piece.chars().next()).collect();
    let repeats = |first: &Option<char>| firsts.iter().filter(|other| *other == first).count();
    if firsts.iter().map(repeats).max().unwrap_or_default() > WILDCARD_REPEATS_MAX {
        return fail(
            "Rule is too complex - try using fewer wildcard characters or fewer repeating character sequences after a wildcard character",
        );
    }
    Ok(wildcard)
}

const ANYTHING_BUT: &str = "Value of anything-but must be an array or single string/number value.";

fn anything_but(value: &Value) -> Result<Matcher> {
    Ok(Matcher::AnythingBut(match value {
        Value::Array(items) => {
            let plain = |item: &Value| item.is_string() || item.is_number();
            if !items.iter().all(plain) {
                return fail("Inside anything but list, start|null|boolean is not supported.");
            }
            if items.iter().any(Value::is_string) == items.iter().any(Value::is_number) {
                return fail(
                    "Inside anything but list, either all values are number or string, mixed type is not supported",
                );
            }
            items.iter().cloned().map(Matcher::Exact).collect()
        }
        Value::String(_) | Value::Number(_) => vec![Matcher::Exact(value.clone())],
        Value::Object(fields) => {
            let Some((name, value)) = fields.iter().next() else {
                return fail("Anything-But expression name not found");
            };
            if !["equals-ignore-case", "prefix", "suffix", "wildcard"].contains(&name.as_str()) {
                return fail(format!("Unsupported anything-but pattern: {name}"));
            }
            let items = match value {
                Value::Array(items) => items.as_slice(),
                Value::String(_) | Value::Number(_) => std::slice::from_ref(value),
                _ => return fail(ANYTHING_BUT),
            };
            let matchers = items.iter().map(|item| but(name, item)).collect::<Result<_>>()?;
            sole(fields, "Too many elements in numeric expression")?;
            matchers
        }
        _ => return fail(ANYTHING_BUT),
    }))
}

/// One alternative that `anything-but` excludes.
fn but(name: &str, value: &Value) -> Result<Matcher> {
    Ok(Matcher::Text(match (name, value) {
        ("prefix" | "suffix", Value::String(text)) if text.is_empty() => {
            return fail("Null prefix/suffix not allowed");
        }
        ("prefix" | "suffix", _) => affix(name, text(value, "prefix/suffix")?, false),
        ("equals-ignore-case", Value::String(text)) => Text::EqualsIgnoreCase(text.clone()),
        ("equals-ignore-case", _) => {
            return fail(
                "Inside anything-but/equals-ignore-case list, number|start|null|boolean is not supported.",
            );
        }
        _ => Text::Wildcard(wildcard(value)?),
    }))
}

fn numeric(value: &Value) -> Result<Matcher> {
    let Some(items) = value.as_array() else { return fail("Value of numeric must be an array.") };
    let name = match items.first() {
        Some(Value::String(name)) => name.as_str(),
        Some(other) => return fail(format!("Invalid member in numeric match: {}", token(other))),
        None => return fail("Invalid member in numeric match: ]"),
    };
    let order = match name {
        "<" => Order::Less,
        "<=" => Order::LessOrEqual,
        "=" => Order::Equal,
        ">=" => Order::GreaterOrEqual,
        ">" => Order::Greater,
        _ => return fail(format!("Unrecognized numeric range operator: {name}")),
    };
    let first = bound(if name == "=" { "equals" } else { name }, items.get(1))?;
    let mut bounds = vec![(order, first)];
    match items.get(2) {
        None => {}
        Some(_) if !matches!(order, Order::Greater | Order::GreaterOrEqual) => {
            return fail("Too many elements in numeric expression");
        }
        Some(Value::String(name)) => {
            let order = match name.as_str() {
                "<" => Order::Less,
                "<=" => Order::LessOrEqual,
                _ => return fail(format!("Bad numeric range operator: {name}")),
            };
            bounds.push((order, bound(name, items.get(3))?));
            if items.len() > 4 {
                return fail("Too many terms in numeric range expression");
            }
            if bounds[0].1.as_f64() >= bounds[1].1.as_f64() {
                return fail("Bottom must be less than top");
            }
        }
        Some(other) => return fail(format!("Bad value in numeric range: {}", token(other))),
    }
    Ok(Matcher::Numeric(bounds))
}

fn bound(operator: &str, value: Option<&Value>) -> Result<Value> {
    let Some(value) = value.filter(|value| value.is_number()) else {
        return fail(format!("Value of {operator} must be numeric"));
    };
    if !value.as_f64().is_some_and(|number| (-NUMBER_MAX..=NUMBER_MAX).contains(&number)) {
        return fail("Value must be between -5.0E9 and 5.0E9, inclusive");
    }
    Ok(value.clone())
}

/// The token with which a value begins, as EventBridge's parser shows it.
fn token(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(_) => "[".to_owned(),
        Value::Object(_) => "{".to_owned(),
        other => other.to_string(),
    }
}

fn cidr(value: &Value) -> Result<Matcher> {
    // EventBridge's message for this operator names another one.
    let text = text(value, "prefix")?;
    let parts: Vec<&str> = text.trim_end_matches('/').split('/').collect();
    let [address, bits] = parts.as_slice() else {
        return fail("Malformed CIDR, one '/' required");
    };
    let Ok(bits) = bits.parse::<i32>() else {
        return fail("Malformed CIDR, mask bits must be an integer");
    };
    let Ok(bits) = u32::try_from(bits) else {
        return fail("Malformed CIDR, mask bits must not be negative");
    };
    if !looks_like_address(address) {
        return fail(format!("Nonstandard IP address: {address}"));
    }
    let Ok(network) = address.parse::<IpAddr>() else {
        return fail(format!("Invalid IP address: {address}"));
    };
    match network {
        IpAddr::V4(_) if bits > 31 => fail("IPv4 mask bits must be < 32"),
        IpAddr::V6(_) if bits > 127 => fail("IPv6 mask bits must be < 128"),
        _ => Ok(Matcher::Cidr { network, bits }),
    }
}

/// Whether a text has the characters of an address: four numbers with dots, or hexadecimal digits
/// with colons.
fn looks_like_address(text: &str) -> bool {
    let numbers = text
        .split('.')
        .filter(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    let four = numbers.count() == 4 && text.matches('.').count() == 3;
    let digits = |byte: u8| byte.is_ascii_hexdigit() || byte == b':';
    four || (text.contains(':') && text.bytes().all(digits))
}

/// The address that a text spells. A pattern's value that is an address matches every spelling of
/// that address.
fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok().filter(|_| looks_like_address(text))
}
