//! Replaces placeholders with names and values, and refuses conditions that can never hold.

use std::cmp::Ordering;

use super::ast::raw::{self, Call};
use super::ast::{Condition, Operand, Path, Segment};
use super::parser::OPERATORS_MAX;
use super::placeholders::Placeholders;
use crate::dynamodb::value::{AttributeValue, TYPE_NAMES};

/// Most operands of IN.
///
/// Source: AWS, "Quotas in Amazon DynamoDB", expression parameters.
pub const IN_OPERANDS_MAX: usize = 100;

/// Most parts of a document path.
///
/// Source: AWS, "Quotas in Amazon DynamoDB", attribute depth.
pub const PATH_SEGMENTS_MAX: usize = 32;

/// Why an expression is invalid: the rest of the sentence `Invalid FilterExpression: …`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// An undefined name placeholder.
    #[error(
        "An expression attribute name used in the document path is not defined; attribute name: {0}"
    )]
    UndefinedName(String),
    /// An undefined value placeholder.
    #[error(
        "An expression attribute value used in expression is not defined; attribute value: {0}"
    )]
    UndefinedValue(String),
    /// A path longer than [`PATH_SEGMENTS_MAX`].
    #[error("The document path has too many nesting levels; nesting levels: {0}")]
    TooDeep(usize),
    /// Wrong number of operands.
    #[error(
        "Incorrect number of operands for operator or function; operator or function: {function}, \
         number of operands: {count}"
    )]
    OperandCount { function: String, count: usize },
    /// An attribute compared with itself.
    #[error(
        "The first operand must be distinct from the remaining operands for this operator or \
         function; operator: {operator}, first operand: {path}"
    )]
    NotDistinct { operator: &'static str, path: String },
    /// A value of a type that the operator does not support.
    #[error(
        "Incorrect operand type for operator or function; operator or function: {operator}, \
         operand type: {found}"
    )]
    OperandType { operator: &'static str, found: String },
    /// A value in place of an attribute.
    #[error("Operator or function requires a document path; operator or function: {0}")]
    NeedsPath(&'static str),
    /// An unknown type.
    #[error("Invalid attribute type name found; type: {0}, valid types: {{{types}}}", types = TYPE_NAMES.join(","))]
    UnknownType(String),
    /// IN with more than [`IN_OPERANDS_MAX`].
    #[error("The IN operator is provided with too many operands; number of operands: {0}")]
    TooManyOptions(usize),
    /// BETWEEN with values of two types.
    #[error(
        "The BETWEEN operator requires same data type for lower and upper bounds; lower bound \
         operand: {0}, upper bound operand: {1}"
    )]
    BoundTypes(String, String),
    /// BETWEEN with the larger value first.
    #[error(
        "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; \
         lower bound operand: {0}, upper bound operand: {1}"
    )]
    BoundOrder(String, String),
    /// More than [`OPERATORS_MAX`].
    #[error("The expression contains too many operators; operator count: {}", OPERATORS_MAX + 1)]
    TooManyOperators,
}

/// Binds one expression.
pub struct Binder<'a> {
    placeholders: &'a mut Placeholders,
    operators: usize,
}

impl<'a> Binder<'a> {
    /// A binder with the request's placeholders.
    pub fn new(placeholders: &'a mut Placeholders) -> Self {
        Self { placeholders, operators: 0 }
    }

    pub fn condition(&mut self, condition: &raw::Condition) -> Result<Condition, BindError> {
        match condition {
            raw::Condition::All(conditions) => self.joined(conditions).map(Condition::All),
            raw::Condition::Any(conditions) => self.joined(conditions).map(Condition::Any),
            raw::Condition::Not(condition) => {
                let condition = self.condition(condition)?;
                self.count()?;
                Ok(Condition::Not(Box::new(condition)))
            }
            raw::Condition::Compare(left, comparator, right) => {
                let (left, right) = (self.operand(left)?, self.operand(right)?);
                self.count()?;
                use super::ast::Comparator as C;
                distinct(comparator.as_str(), &left, [&right])?;
                if !matches!(comparator, C::Equal | C::NotEqual) {
                    ordered(comparator.as_str(), &left)?;
                    ordered(comparator.as_str(), &right)?;
                }
                Ok(Condition::Compare(left, *comparator, right))
            }
            raw::Condition::Between(value, low, high) => {
                let value = self.operand(value)?;
                let (low, high) = (self.operand(low)?, self.operand(high)?);
                self.count()?;
                for operand in [&value, &low, &high] {
                    ordered("BETWEEN", operand)?;
                }
                distinct("BETWEEN", &value, [&low, &high])?;
                bounds(&low, &high)?;
                Ok(Condition::Between(value, low, high))
            }
            raw::Condition::In(value, options) => {
                let value = self.operand(value)?;
                let options = self.operands(options)?;
                self.count()?;
                if options.len() > IN_OPERANDS_MAX {
                    return Err(BindError::TooManyOptions(options.len()));
                }
                distinct("IN", &value, &options)?;
                Ok(Condition::In(value, options))
            }
            raw::Condition::Call(call) => self.call(call),
        }
    }

    fn joined(&mut self, conditions: &[raw::Condition]) -> Result<Vec<Condition>, BindError> {
        let mut bound = Vec::with_capacity(conditions.len());
        for condition in conditions {
            bound.push(self.condition(condition)?);
            if bound.len() > 1 {
                self.count()?;
            }
        }
        Ok(bound)
    }

    fn call(&mut self, call: &Call) -> Result<Condition, BindError> {
        let operands = self.operands(&call.operands)?;
        self.count()?;
        let wrong_count =
            || BindError::OperandCount { function: call.function.clone(), count: operands.len() };
        if let "attribute_exists" | "attribute_not_exists" = call.function.as_str() {
            let [operand] = operands.as_slice() else { return Err(wrong_count()) };
            return presence(call.function == "attribute_exists", operand);
        }
        let [first, second] = operands.as_slice() else { return Err(wrong_count()) };
        let (first, second) = (first.clone(), second.clone());
        match call.function.as_str() {
            "attribute_type" => {
                distinct("attribute_type", &first, [&second])?;
                Ok(Condition::IsType(first, type_name(&second)?))
            }
            "begins_with" => {
                distinct("begins_with", &first, [&second])?;
                for operand in [&first, &second] {
                    if let Some(found @ ("N" | "BOOL" | "NULL" | "L" | "M" | "SS" | "NS" | "BS")) =
                        operand.type_name()
                    {
                        let found = found.to_owned();
                        return Err(BindError::OperandType { operator: "begins_with", found });
                    }
                }
                Ok(Condition::BeginsWith(first, second))
            }
            _ => {
                distinct("contains", &first, [&second])?;
                Ok(Condition::Contains(first, second))
            }
        }
    }

    fn operands(&mut self, operands: &[raw::Operand]) -> Result<Vec<Operand>, BindError> {
        operands.iter().map(|operand| self.operand(operand)).collect()
    }

    pub fn operand(&mut self, operand: &raw::Operand) -> Result<Operand, BindError> {
        match operand {
            raw::Operand::Path(path) => self.path(path).map(Operand::Attribute),
            raw::Operand::Value(placeholder) => match self.placeholders.value(placeholder) {
                Some(value) => Ok(Operand::Value(value)),
                None => Err(BindError::UndefinedValue(placeholder.clone())),
            },
            raw::Operand::Call(call) => {
                let operands = self.operands(&call.operands)?;
                self.count()?;
                let [operand] = operands.as_slice() else {
                    let (function, count) = (call.function.clone(), operands.len());
                    return Err(BindError::OperandCount { function, count });
                };
                if let Some(found @ ("N" | "BOOL" | "NULL")) = operand.type_name() {
                    let found = found.to_owned();
                    return Err(BindError::OperandType { operator: "size", found });
                }
                Ok(Operand::Size(Box::new(operand.clone())))
            }
        }
    }

    pub fn path(&mut self, path: &raw::Path) -> Result<Path, BindError> {
        if path.len() > PATH_SEGMENTS_MAX {
            return Err(BindError::TooDeep(path.len()));
        }
        let mut bound = Path { name: String::new(), inner: Vec::new() };
        for (place, segment) in path.iter().enumerate() {
            let segment = match segment {
                raw::Segment::Name(name) => Segment::Name(name.clone()),
                raw::Segment::Placeholder(placeholder) => {
                    match self.placeholders.name(placeholder) {
                        Some(name) => Segment::Name(name),
                        None => return Err(BindError::UndefinedName(placeholder.clone())),
                    }
                }
                // `check` has checked the range.
                raw::Segment::Index(index) => Segment::Index(index.parse().unwrap_or_default()),
            };
            match segment {
                Segment::Name(name) if place == 0 => bound.name = name,
                inner => bound.inner.push(inner),
            }
        }
        Ok(bound)
    }

    fn count(&mut self) -> Result<(), BindError> {
        self.operators += 1;
        if self.operators > OPERATORS_MAX { Err(BindError::TooManyOperators) } else { Ok(()) }
    }
}

impl Operand {
    /// The operand's type, if it is the same for every item.
    fn type_name(&self) -> Option<&'static str> {
        match self {
            Self::Attribute(_) => None,
            Self::Value(value) => Some(value.type_name()),
            Self::Size(_) => Some("N"),
        }
    }
}

fn distinct<'a>(
    operator: &'static str,
    first: &Operand,
    others: impl IntoIterator<Item = &'a Operand>,
) -> Result<(), BindError> {
    match first {
        Operand::Attribute(path) if others.into_iter().any(|other| other == first) => {
            Err(BindError::NotDistinct { operator, path: path.to_string() })
        }
        _ => Ok(()),
    }
}

fn ordered(operator: &'static str, operand: &Operand) -> Result<(), BindError> {
    match operand.type_name() {
        None | Some("S" | "N" | "B") => Ok(()),
        Some(found) => Err(BindError::OperandType { operator, found: found.to_owned() }),
    }
}

fn bounds(low: &Operand, high: &Operand) -> Result<(), BindError> {
    let (Operand::Value(low), Operand::Value(high)) = (low, high) else { return Ok(()) };
    match low.order(high) {
        Some(Ordering::Greater) => Err(BindError::BoundOrder(low.in_message(), high.in_message())),
        Some(_) => Ok(()),
        None => Err(BindError::BoundTypes(low.in_message(), high.in_message())),
    }
}

fn presence(exists: bool, operand: &Operand) -> Result<Condition, BindError> {
    let Operand::Attribute(path) = operand else {
        let function = if exists { "attribute_exists" } else { "attribute_not_exists" };
        return Err(BindError::NeedsPath(function));
    };
    let path = path.clone();
    Ok(if exists { Condition::Exists(path) } else { Condition::NotExists(path) })
}

fn type_name(operand: &Operand) -> Result<String, BindError> {
    let name = match operand {
        Operand::Value(AttributeValue::S(name)) => name,
        other => {
            let found = other.type_name().unwrap_or("unknown").to_owned();
            return Err(BindError::OperandType { operator: "attribute_type", found });
        }
    };
    if !TYPE_NAMES.contains(&name.as_str()) {
        return Err(BindError::UnknownType(name.clone()));
    }
    Ok(name.clone())
}
