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
    Ok(Pattern { alternatives: object(fields, "")? })
}

fn object(fields: &Map<String, Value>, path: &str) -> Result<Alternatives> {
    if fields.is_empty() {
        return fail("Empty objects are not allowed");
    }
    let mut alternatives: Alternatives = vec![Vec::new()];
    for (name, value) in fields {
        let dot = if path.is_empty() { "" } else { "." };
        let inner = format!("{path}{dot}{name}");
        let more = match value {
            Value::Array(items) if name == "$or" && is_or(items) => any_of(items, path)?,
            Value::Array(items) => vec![vec![field(items, inner)?]],
            Value::Object(fields) => object(fields, &inner)?,
            _ => return fail(format!("\"{name}\" must be an object or an array")),
        };
        alternatives = combine(&alternatives, &more)?;
    }
    Ok(alternatives)
}

/// Whether `$or` is the operator and not a field of that name.
fn is_or(items: &[Value]) -> bool {
    let known = |name: &String| KEYWORDS.contains(&name.as_str());
    items.iter().all(|item| item.as_object().is_some_and(|fields| !fields.keys().any(known)))
}

const KEYWORDS: [&str; 9] = [
    "anything-but",
    "cidr",
    "equals-ignore-case",
    "exact",
    "exists",
    "numeric",
    "prefix",
    "suffix",
    "wildcard",
];

fn any_of(items: &[Value], path: &str) -> Result<Alternatives> {
    if items.len() < 2 {
        return fail("There must have at least 2 Objects in \"$or\" relationship.");
    }
    let mut alternatives = Vec::new();
    for item in items.iter().filter_map(Value::as_object) {
        alternatives.extend(object(item, path)?);
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
            let (name, value) = only(fields)?;
            expression(name, value)
        }
        _ => Ok(Matcher::Exact(value.clone())),
    }
}

fn only(fields: &Map<String, Value>) -> Result<(&String, &Value)> {
    let mut entries = fields.iter();
    match (entries.next(), entries.next()) {
        (None, _) => fail("Match expression name not found"),
        (Some(entry), None) => Ok(entry),
        (Some(_), Some(_)) => fail("Only one key allowed in match expression"),
    }
}

fn expression(name: &str, value: &Value) -> Result<Matcher> {
    Ok(match name {
        "prefix" | "suffix" => {
            let (text, ignore_case) = match value {
                Value::Object(fields) => match only(fields)? {
                    (inner, value) if inner == "equals-ignore-case" => (text(value, inner)?, true),
                    (inner, _) => return fail(format!("Unsupported {name} pattern: {inner}")),
                },
                _ => (text(value, name)?, false),
            };
            Matcher::Text(affix(name, text, ignore_case))
        }
        "equals-ignore-case" => Matcher::Text(Text::EqualsIgnoreCase(text(value, name)?)),
        "wildcard" => Matcher::Text(Text::Wildcard(wildcard(value)?)),
        "anything-but" => anything_but(value)?,
        "numeric" => numeric(value)?,
        "cidr" => cidr(value)?,
        "exact" => Matcher::Exact(Value::String(text(value, name)?)),
        "exists" => match value {
            Value::Bool(expected) => Matcher::Exists(*expected),
            _ => return fail("exists match pattern must be either true or false."),
        },
        _ => return fail(format!("Unrecognized match type {name}")),
    })
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
    let mut chars = text.chars().enumerate().peekable();
    while let Some((at, char)) = chars.next() {
        match (char, chars.peek()) {
            ('*', Some((_, '*'))) => {
                return fail(format!("Consecutive wildcard characters at pos {at}"));
            }
            ('\\', Some((_, '*' | '\\'))) => {
                chars.next();
            }
            ('\\', _) => return fail(format!("Invalid escape character at pos {at}")),
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
        Value::String(_) | Value::Number(_) => vec![Matcher::Exact(value.clone())],
        Value::Array(items) => {
            let plain = |item: &&Value| item.is_string() || item.is_number();
            if !items.iter().all(|item| plain(&item)) {
                return fail("Inside anything but list, start|null|boolean is not supported.");
            }
            if items.is_empty() {
                return fail("Empty arrays are not allowed");
            }
            if items.iter().any(Value::is_string) && items.iter().any(Value::is_number) {
                return fail(
                    "Inside anything but list, either all values are number or string, mixed type is not supported",
                );
            }
            items.iter().cloned().map(Matcher::Exact).collect()
        }
        Value::Object(fields) => {
            let (name, value) = only(fields)?;
            let items = match value {
                Value::Array(items) if items.is_empty() => {
                    return fail("Empty arrays are not allowed");
                }
                Value::Array(items) => items.as_slice(),
                value => std::slice::from_ref(value),
            };
            items.iter().map(|item| but(name, item)).collect::<Result<_>>()?
        }
        _ => return fail(ANYTHING_BUT),
    }))
}

/// One alternative that `anything-but` excludes.
fn but(name: &str, value: &Value) -> Result<Matcher> {
    Ok(Matcher::Text(match (name, value) {
        ("prefix" | "suffix", Value::Object(_)) => return fail(ANYTHING_BUT),
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
        ("wildcard", _) => Text::Wildcard(wildcard(value)?),
        _ => return fail(format!("Unsupported anything-but pattern: {name}")),
    }))
}

fn numeric(value: &Value) -> Result<Matcher> {
    let Some(items) = value.as_array() else { return fail("Value of numeric must be an array.") };
    let mut bounds = Vec::new();
    for pair in items.chunks(2) {
        let Some(name) = pair[0].as_str() else {
            return fail(format!("Invalid member in numeric match: {}", pair[0]));
        };
        let order = match name {
            "<" => Order::Less,
            "<=" => Order::LessOrEqual,
            "=" => Order::Equal,
            ">=" => Order::GreaterOrEqual,
            ">" => Order::Greater,
            _ => return fail(format!("Unrecognized numeric range operator: {name}")),
        };
        let bound = pair.get(1).filter(|bound| bound.is_number());
        let Some(bound) = bound else {
            let name = if name == "=" { "equals" } else { name };
            return fail(format!("Value of {name} must be numeric"));
        };
        if !bound.as_f64().is_some_and(|number| (-NUMBER_MAX..=NUMBER_MAX).contains(&number)) {
            return fail("Value must be between -5.0E9 and 5.0E9, inclusive");
        }
        bounds.push((order, bound.clone()));
    }
    let upper = |order: Order| matches!(order, Order::Less | Order::LessOrEqual);
    match bounds.as_slice() {
        [] => fail("Invalid member in numeric match: ]"),
        [_] => Ok(Matcher::Numeric(bounds)),
        [(low, from), (high, to)] if !upper(*low) && *low != Order::Equal && upper(*high) => {
            if from.as_f64() >= to.as_f64() {
                return fail("Bottom must be less than top");
            }
            Ok(Matcher::Numeric(bounds))
        }
        [_, (_, _)] => fail("Bad numeric range operator"),
        _ => fail("Too many elements in numeric expression"),
    }
}

fn cidr(value: &Value) -> Result<Matcher> {
    let text = text(value, "CIDR")?;
    let mut parts = text.split('/');
    let (Some(address), Some(bits), None) = (parts.next(), parts.next(), parts.next()) else {
        return fail("Malformed CIDR, one '/' required");
    };
    let Ok(bits) = bits.parse::<u32>() else {
        return fail("Malformed CIDR, mask bits must be an integer");
    };
    let Ok(network) = address.parse::<IpAddr>() else {
        return fail(format!("Nonstandard IP address: {address}"));
    };
    let width = if network.is_ipv4() { 32 } else { 128 };
    if bits > width {
        return fail(format!("Malformed CIDR, mask bits must not exceed {width}"));
    }
    Ok(Matcher::Cidr { network, bits })
}
