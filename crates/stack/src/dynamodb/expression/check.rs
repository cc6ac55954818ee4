//! Checks an expression without its placeholders' values, in the order of its text.

use super::ast::raw::{Call, Condition, Operand, Path, Segment};
use super::reserved::is_reserved;

/// The largest list index.
///
/// Source: DynamoDB Local 3.3.0, which refuses the next one.
pub const INDEX_MAX: u32 = i32::MAX.unsigned_abs();

/// Why an expression is invalid: the rest of the sentence `Invalid FilterExpression: …`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// A plain name that is a reserved word.
    #[error("Attribute name is a reserved keyword; reserved keyword: {0}")]
    Reserved(String),
    /// An unknown function.
    #[error("Invalid function name; function: {0}")]
    UnknownFunction(String),
    /// A function of update expressions.
    #[error("The function is not allowed in a condition expression; function: {0}")]
    OnlyInUpdates(String),
    /// A condition used as a value, or a value used as a condition.
    #[error("The function is not allowed to be used this way in an expression; function: {0}")]
    Misplaced(String),
    /// A list index above [`INDEX_MAX`].
    #[error("List index is not within the allowable range; index: [{0}]")]
    Index(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Truth,
    Value,
}

pub fn condition(condition: &Condition) -> Result<(), CheckError> {
    match condition {
        Condition::All(conditions) | Condition::Any(conditions) => {
            conditions.iter().try_for_each(self::condition)
        }
        Condition::Not(condition) => self::condition(condition),
        Condition::Compare(left, _, right) => {
            operand(left)?;
            operand(right)
        }
        Condition::Between(value, low, high) => {
            operand(value)?;
            operand(low)?;
            operand(high)
        }
        Condition::In(value, options) => {
            operand(value)?;
            options.iter().try_for_each(operand)
        }
        Condition::Call(function) => call(function, Use::Truth),
    }
}

fn operand(operand: &Operand) -> Result<(), CheckError> {
    match operand {
        Operand::Path(segments) => path(segments),
        Operand::Value(_) => Ok(()),
        Operand::Call(function) => call(function, Use::Value),
    }
}

fn call(call: &Call, used: Use) -> Result<(), CheckError> {
    let function = call.function.as_str();
    let owned = || function.to_owned();
    match function {
        "size" if used == Use::Value => {}
        "attribute_exists"
        | "attribute_not_exists"
        | "attribute_type"
        | "begins_with"
        | "contains"
            if used == Use::Truth => {}
        "size"
        | "attribute_exists"
        | "attribute_not_exists"
        | "attribute_type"
        | "begins_with"
        | "contains" => return Err(CheckError::Misplaced(owned())),
        "if_not_exists" | "list_append" => return Err(CheckError::OnlyInUpdates(owned())),
        _ => return Err(CheckError::UnknownFunction(owned())),
    }
    call.operands.iter().try_for_each(operand)
}

pub fn path(path: &Path) -> Result<(), CheckError> {
    for segment in path {
        match segment {
            Segment::Name(name) if is_reserved(name) => {
                return Err(CheckError::Reserved(name.clone()));
            }
            Segment::Index(index) if !index.parse().is_ok_and(|index: u32| index <= INDEX_MAX) => {
                return Err(CheckError::Index(index.clone()));
            }
            _ => {}
        }
    }
    Ok(())
}
