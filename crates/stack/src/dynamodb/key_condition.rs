//! A query's key condition: a partition and a range of sort keys.

use super::error::ApiError;
use super::expression::ast::{Comparator, Condition, Operand, Path};
use super::keys::{Schema, not_empty};
use super::value::AttributeValue;

/// A parsed key condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeyCondition {
    pub(super) hash: String,
    /// The range in the partition.
    pub(super) range: Range,
}

/// A range of sort keys.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Range {
    All,
    Equal(String),
    Less(String),
    AtMost(String),
    Greater(String),
    AtLeast(String),
    Between(String, String),
    BeginsWith(String),
}

impl Range {
    /// Whether the range contains the sort key.
    pub(super) fn admits(&self, key: &str) -> bool {
        match self {
            Self::All => true,
            Self::Equal(value) => key == value,
            Self::Less(value) => key < value.as_str(),
            Self::AtMost(value) => key <= value.as_str(),
            Self::Greater(value) => key > value.as_str(),
            Self::AtLeast(value) => key >= value.as_str(),
            Self::Between(low, high) => low.as_str() <= key && key <= high.as_str(),
            Self::BeginsWith(prefix) => key.starts_with(prefix.as_str()),
        }
    }

    /// Whether the range ends at this sort key in this direction, as DynamoDB sees it: it does not check
    /// for `=`.
    pub(super) fn ends_at(&self, key: &str, reverse: bool) -> bool {
        match self {
            Self::AtMost(value) => !reverse && key == value,
            Self::AtLeast(value) => reverse && key == value,
            Self::Between(low, high) => key == if reverse { low } else { high },
            _ => false,
        }
    }

    /// The smallest and the largest sort key that the range can contain.
    pub(super) fn bounds(&self) -> (Option<String>, Option<String>) {
        match self.clone() {
            Self::All => (None, None),
            Self::Equal(value) => (Some(value.clone()), Some(value)),
            Self::Less(value) | Self::AtMost(value) => (None, Some(value)),
            Self::Greater(value) | Self::AtLeast(value) => (Some(value), None),
            Self::Between(low, high) => (Some(low), Some(high)),
            Self::BeginsWith(prefix) => {
                let beyond = beyond(&prefix);
                (Some(prefix), beyond)
            }
        }
    }
}

/// The first text after all texts with the prefix, if there is one.
fn beyond(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        let next = match last {
            // Surrogates are not characters.
            '\u{d7ff}' => Some('\u{e000}'),
            other => char::from_u32(u32::from(other) + 1),
        };
        if let Some(next) = next {
            text.push(next);
            return Some(text);
        }
    }
    None
}

struct Term<'a> {
    path: &'a Path,
    relation: Relation<'a>,
}

enum Relation<'a> {
    Compare(Comparator, &'a AttributeValue),
    Between(&'a AttributeValue, &'a AttributeValue),
    BeginsWith(&'a AttributeValue),
}

impl KeyCondition {
    /// Splits a key condition into its parts.
    pub(super) fn from_condition(condition: &Condition, schema: Schema) -> Result<Self, ApiError> {
        let mut terms = Vec::new();
        collect(condition, &mut terms)?;
        let (hash, range) = assign(&terms, schema)?;
        for (term, name) in [(hash, schema.hash()), (range, schema.range())] {
            for value in term.into_iter().flat_map(|term| term.relation.values()) {
                if let AttributeValue::S(text) = value {
                    not_empty(name, text)?;
                }
            }
        }
        let supported =
            |term: &&Term<'_>| matches!(term.relation, Relation::Compare(Comparator::Equal, _));
        if hash.is_some_and(|term| !supported(&term)) {
            return Err(ApiError::validation("Query key condition not supported"));
        }
        let missed = |name: &str| {
            ApiError::validation(format!("Query condition missed key schema element: {name}"))
        };
        let hash = hash.ok_or_else(|| missed(schema.hash()))?;
        if terms.len() == 2 && range.is_none() {
            return Err(missed(schema.range()));
        }
        let Relation::Compare(_, hash) = hash.relation else {
            return Err(ApiError::validation("Query key condition not supported"));
        };
        let range = range.map_or(Ok(Range::All), |term| term.relation.range())?;
        Ok(Self { hash: text(hash)?, range })
    }
}

/// Assigns each condition to a key.
fn assign<'a, 'b>(
    terms: &'b [Term<'a>],
    schema: Schema,
) -> Result<(Option<&'b Term<'a>>, Option<&'b Term<'a>>), ApiError> {
    let mut names: Vec<&str> = terms.iter().map(|term| term.path.name.as_str()).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(ApiError::validation(
            "KeyConditionExpressions must only contain one condition per key",
        ));
    }
    if terms.len() > 2 {
        return Err(ApiError::validation("Conditions can be of length 1 or 2 only"));
    }
    let of = |name: &str| terms.iter().find(|term| term.path.name == name);
    Ok((of(schema.hash()), of(schema.range())))
}

fn collect<'a>(condition: &'a Condition, terms: &mut Vec<Term<'a>>) -> Result<(), ApiError> {
    let operator = match condition {
        Condition::All(conditions) => {
            return conditions.iter().try_for_each(|condition| collect(condition, terms));
        }
        Condition::Compare(left, comparator, right) if *comparator != Comparator::NotEqual => {
            terms.push(comparison(left, *comparator, right)?);
            return Ok(());
        }
        Condition::Between(value, low, high) => {
            let path = first("BETWEEN", value, [low, high])?;
            let relation = Relation::Between(second(low)?, second(high)?);
            terms.push(Term { path, relation });
            return Ok(());
        }
        Condition::BeginsWith(value, prefix) => {
            let path = first("begins_with", value, [prefix])?;
            terms.push(Term { path, relation: Relation::BeginsWith(second(prefix)?) });
            return Ok(());
        }
        Condition::Any(_) => "OR",
        Condition::Not(_) => "NOT",
        Condition::Compare(..) => "<>",
        Condition::In(..) => "IN",
        Condition::Exists(_) => "attribute_exists",
        Condition::NotExists(_) => "attribute_not_exists",
        Condition::IsType(..) => "attribute_type",
        Condition::Contains(..) => "contains",
    };
    let refusal = format!("Invalid operator used in KeyConditionExpression: {operator}");
    Err(ApiError::validation(refusal))
}

fn comparison<'a>(
    left: &'a Operand,
    comparator: Comparator,
    right: &'a Operand,
) -> Result<Term<'a>, ApiError> {
    match (left, right) {
        (Operand::Size(_), _) | (_, Operand::Size(_)) => Err(nested_operation()),
        (Operand::Attribute(path), Operand::Value(value)) => {
            Ok(Term { path: whole(path)?, relation: Relation::Compare(comparator, value) })
        }
        (Operand::Value(value), Operand::Attribute(path)) => {
            let relation = Relation::Compare(comparator.flipped(), value);
            Ok(Term { path: whole(path)?, relation })
        }
        (Operand::Attribute(_), Operand::Attribute(_)) => Err(several_names()),
        (Operand::Value(_), Operand::Value(_)) => Err(ApiError::validation(
            "Invalid condition in KeyConditionExpression: No key attribute specified",
        )),
    }
}

fn first<'a, const N: usize>(
    operator: &str,
    operand: &'a Operand,
    others: [&'a Operand; N],
) -> Result<&'a Path, ApiError> {
    if others.iter().chain([&operand]).any(|operand| matches!(operand, Operand::Size(_))) {
        return Err(nested_operation());
    }
    match operand {
        Operand::Attribute(path) => whole(path),
        _ => Err(ApiError::validation(format!(
            "Invalid condition in KeyConditionExpression: {operator} operator must have the key \
             attribute as its first operand"
        ))),
    }
}

fn second(operand: &Operand) -> Result<&AttributeValue, ApiError> {
    match operand {
        Operand::Value(value) => Ok(value),
        _ => Err(several_names()),
    }
}

fn whole(path: &Path) -> Result<&Path, ApiError> {
    if path.inner.is_empty() {
        return Ok(path);
    }
    Err(ApiError::validation("KeyConditionExpressions cannot have conditions on nested attributes"))
}

fn nested_operation() -> ApiError {
    ApiError::validation("KeyConditionExpressions cannot contain nested operations")
}

fn several_names() -> ApiError {
    ApiError::validation(
        "Invalid condition in KeyConditionExpression: Multiple attribute names used in one \
         condition",
    )
}

fn text(value: &AttributeValue) -> Result<String, ApiError> {
    match value {
        AttributeValue::S(text) => Ok(text.clone()),
        _ => Err(ApiError::validation(
            "One or more parameter values were invalid: Condition parameter type does not match \
             schema type",
        )),
    }
}

impl<'a> Relation<'a> {
    fn values(&self) -> impl Iterator<Item = &'a AttributeValue> + use<'a> {
        let (one, other) = match *self {
            Self::Compare(_, value) | Self::BeginsWith(value) => (value, None),
            Self::Between(low, high) => (low, Some(high)),
        };
        std::iter::once(one).chain(other)
    }

    fn range(&self) -> Result<Range, ApiError> {
        Ok(match *self {
            Self::Compare(comparator, value) => {
                let value = text(value)?;
                match comparator {
                    Comparator::Less => Range::Less(value),
                    Comparator::LessOrEqual => Range::AtMost(value),
                    Comparator::Greater => Range::Greater(value),
                    Comparator::GreaterOrEqual => Range::AtLeast(value),
                    Comparator::Equal | Comparator::NotEqual => Range::Equal(value),
                }
            }
            Self::Between(low, high) => Range::Between(text(low)?, text(high)?),
            Self::BeginsWith(prefix) => Range::BeginsWith(text(prefix)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_range_ends_before_the_next_text() {
        for (prefix, expected) in [
            ("EVENT#", Some("EVENT$")),
            ("a\u{10ffff}", Some("b")),
            ("\u{d7ff}", Some("\u{e000}")),
            ("\u{10ffff}", None),
            ("", None),
        ] {
            assert_eq!(beyond(prefix).as_deref(), expected, "{prefix:?}");
        }
    }
}
