//! Intrinsic functions of JSONPath states, such as `States.Format('{}', $.name)`.
//!
//! Source: AWS, "Intrinsics for JSONPath states in Step Functions". A call is compiled once, with
//! the definition; its arguments are paths, literals or calls.

mod functions;
mod parse;

use serde_json::Value;

use crate::expression::{Fault, Scope};
use crate::jsonpath::Reference;

/// Deepest nesting of calls.
///
/// Source: AWS, "Intrinsics for JSONPath states in Step Functions", reserved characters.
pub const NESTING_MAX: usize = 10;
/// Longest text to hash, encode or decode, in characters.
///
/// Source: as [`NESTING_MAX`], `States.Hash` and `States.Base64Encode`.
pub const TEXT_CHARS_MAX: usize = 10_000;
/// Most items that `States.ArrayRange` returns.
///
/// Source: as [`NESTING_MAX`], `States.ArrayRange`.
pub const RANGE_ITEMS_MAX: i64 = 1_000;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    function: Function,
    arguments: Vec<Argument>,
}

#[derive(Clone, Debug, PartialEq)]
enum Argument {
    Reference(Reference),
    Literal(Value),
    Call(Call),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Array,
    ArrayContains,
    ArrayGetItem,
    ArrayLength,
    ArrayPartition,
    ArrayRange,
    ArrayUnique,
    Base64Decode,
    Base64Encode,
    Format,
    Hash,
    JsonMerge,
    JsonToString,
    MathAdd,
    MathRandom,
    StringSplit,
    StringToJson,
    Uuid,
}

impl Function {
    const ALL: [(&'static str, Function); 18] = [
        ("Array", Function::Array),
        ("ArrayContains", Function::ArrayContains),
        ("ArrayGetItem", Function::ArrayGetItem),
        ("ArrayLength", Function::ArrayLength),
        ("ArrayPartition", Function::ArrayPartition),
        ("ArrayRange", Function::ArrayRange),
        ("ArrayUnique", Function::ArrayUnique),
        ("Base64Decode", Function::Base64Decode),
        ("Base64Encode", Function::Base64Encode),
        ("Format", Function::Format),
        ("Hash", Function::Hash),
        ("JsonMerge", Function::JsonMerge),
        ("JsonToString", Function::JsonToString),
        ("MathAdd", Function::MathAdd),
        ("MathRandom", Function::MathRandom),
        ("StringSplit", Function::StringSplit),
        ("StringToJson", Function::StringToJson),
        ("UUID", Function::Uuid),
    ];

    fn name(self) -> &'static str {
        let named = Function::ALL.iter().find(|(_, function)| *function == self);
        named.map_or("", |(name, _)| name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid intrinsic function '{text}': {problem}")]
pub struct CallError {
    pub text: String,
    pub problem: String,
}

impl Call {
    /// Compiles a call; `None` if the text does not start like one.
    ///
    /// # Errors
    /// The call is invalid.
    pub(crate) fn compile(text: &str) -> Option<Result<Call, CallError>> {
        let begins = text.starts_with("States.");
        begins.then(|| {
            parse::call(text).map_err(|problem| CallError { text: text.to_owned(), problem })
        })
    }

    /// Evaluates the call; paths are relative to `root`.
    ///
    /// # Errors
    /// A path selects nothing, or the function rejects its arguments.
    pub(crate) fn evaluate(
        &self,
        scope: &mut Scope<'_>,
        root: &Value,
        location: &str,
    ) -> Result<Value, Fault> {
        let mut values = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            values.push(match argument {
                Argument::Literal(value) => value.clone(),
                Argument::Reference(reference) => scope.follow(reference, root, location)?,
                Argument::Call(call) => call.evaluate(scope, root, location)?,
            });
        }
        functions::apply(self.function, &values, &mut || scope.draw()).map_err(|problem| {
            let name = self.function.name();
            Fault::intrinsic(format!("The function 'States.{name}' failed: {problem}."))
        })
    }
}
