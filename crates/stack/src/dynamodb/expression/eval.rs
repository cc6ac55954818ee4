//! Evaluates a condition on an item.

use std::cmp::Ordering;

use journal::item::Item;

use super::super::number::Number;
use super::super::value::AttributeValue;
use super::ast::{Comparator, Condition, Operand, Path};

impl Condition {
    pub fn holds(&self, item: &Item) -> bool {
        match self {
            Self::All(conditions) => conditions.iter().all(|condition| condition.holds(item)),
            Self::Any(conditions) => conditions.iter().any(|condition| condition.holds(item)),
            Self::Not(condition) => !condition.holds(item),
            Self::Compare(left, comparator, right) => {
                compare(left.value(item), *comparator, right.value(item))
            }
            Self::Between(value, low, high) => match value.value(item) {
                Some(value) => {
                    at_most(low.value(item).as_ref(), &value)
                        && high.value(item).is_some_and(|high| at_most(Some(&value), &high))
                }
                None => false,
            },
            Self::In(value, options) => {
                let value = value.value(item);
                value.is_some() && options.iter().any(|option| option.value(item) == value)
            }
            Self::Exists(path) => path.value(item).is_some(),
            Self::NotExists(path) => path.value(item).is_none(),
            Self::IsType(value, name) => {
                value.value(item).is_some_and(|value| value.type_name() == name)
            }
            Self::BeginsWith(value, prefix) => match (value.value(item), prefix.value(item)) {
                (Some(AttributeValue::S(text)), Some(AttributeValue::S(prefix))) => {
                    text.starts_with(&prefix)
                }
                (Some(AttributeValue::B(bytes)), Some(AttributeValue::B(prefix))) => {
                    bytes.starts_with(&prefix)
                }
                _ => false,
            },
            Self::Contains(value, part) => match (value.value(item), part.value(item)) {
                (Some(value), Some(part)) => contains(&value, &part),
                _ => false,
            },
        }
    }
}

impl Operand {
    fn value(&self, item: &Item) -> Option<AttributeValue> {
        match self {
            Self::Attribute(path) => path.value(item),
            Self::Value(value) => Some(value.clone()),
            Self::Size(operand) => {
                let size = i64::try_from(operand.value(item)?.size()?).ok()?;
                Some(AttributeValue::N(Number::from(size)))
            }
        }
    }
}

impl Path {
    /// The journal's items are flat: no attribute has members.
    fn value(&self, item: &Item) -> Option<AttributeValue> {
        self.inner.is_empty().then(|| item.get(&self.name)).flatten().map(AttributeValue::from)
    }
}

fn compare(
    left: Option<AttributeValue>,
    comparator: Comparator,
    right: Option<AttributeValue>,
) -> bool {
    let order = match (&left, &right) {
        (Some(left), Some(right)) => left.order(right),
        _ => None,
    };
    match comparator {
        Comparator::Equal => left.is_some() && left == right,
        // An absent attribute differs from everything, even from another absent one.
        Comparator::NotEqual => left.is_none() || left != right,
        Comparator::Less => order == Some(Ordering::Less),
        Comparator::LessOrEqual => order.is_some_and(Ordering::is_le),
        Comparator::Greater => order == Some(Ordering::Greater),
        Comparator::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
    }
}

fn at_most(left: Option<&AttributeValue>, right: &AttributeValue) -> bool {
    left.and_then(|left| left.order(right)).is_some_and(Ordering::is_le)
}

fn contains(value: &AttributeValue, part: &AttributeValue) -> bool {
    use AttributeValue as V;
    match (value, part) {
        (V::S(text), V::S(part)) => text.contains(part.as_str()),
        (V::B(bytes), V::B(part)) => {
            part.is_empty() || bytes.windows(part.len()).any(|window| window == part)
        }
        (V::Ss(set), V::S(member)) => set.contains(member),
        (V::Ns(set), V::N(member)) => set.contains(member),
        (V::Bs(set), V::B(member)) => set.contains(member),
        (V::L(list), member) => list.contains(member),
        _ => false,
    }
}
