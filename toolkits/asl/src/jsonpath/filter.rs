//! Filter conditions, `[?(…)]`.

use std::cmp::Ordering;

use serde_json::Value;

use super::Path;
use crate::value::{compare, equal};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Filter {
    Any(Vec<Filter>),
    All(Vec<Filter>),
    Not(Box<Filter>),
    Exists(Operand),
    Compare(Operand, Comparison, Operand),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    /// Relative to the filtered item.
    Item(Path),
    /// Relative to the root of the whole path.
    Root(Path),
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

impl Filter {
    pub(super) fn holds(&self, item: &Value, root: &Value) -> bool {
        match self {
            Filter::Any(filters) => filters.iter().any(|filter| filter.holds(item, root)),
            Filter::All(filters) => filters.iter().all(|filter| filter.holds(item, root)),
            Filter::Not(filter) => !filter.holds(item, root),
            Filter::Exists(operand) => operand.value(item, root).is_some(),
            Filter::Compare(left, comparison, right) => {
                let (left, right) = (left.value(item, root), right.value(item, root));
                comparison.holds(left.as_ref(), right.as_ref())
            }
        }
    }
}

impl Operand {
    fn value(&self, item: &Value, root: &Value) -> Option<Value> {
        match self {
            Operand::Item(path) => path.select(item).ok(),
            Operand::Root(path) => path.select(root).ok(),
            Operand::Literal(value) => Some(value.clone()),
        }
    }
}

impl Comparison {
    fn holds(self, left: Option<&Value>, right: Option<&Value>) -> bool {
        let (Some(left), Some(right)) = (left, right) else {
            return matches!(self, Comparison::NotEqual | Comparison::NotIn) && left != right;
        };
        let ordered = |accept: fn(Ordering) -> bool| compare(left, right).is_some_and(accept);
        let among = || right.as_array().is_some_and(|items| items.iter().any(|i| equal(i, left)));
        match self {
            Comparison::Equal => equal(left, right),
            Comparison::NotEqual => !equal(left, right),
            Comparison::Less => ordered(Ordering::is_lt),
            Comparison::LessOrEqual => ordered(Ordering::is_le),
            Comparison::Greater => ordered(Ordering::is_gt),
            Comparison::GreaterOrEqual => ordered(Ordering::is_ge),
            Comparison::In => among(),
            Comparison::NotIn => !among(),
        }
    }
}
