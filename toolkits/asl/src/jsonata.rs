//! JSONata as Step Functions runs it: `$states`, variables, additional functions, limits and error
//! messages.
//!
//! An `Expression` is compiled once, with the definition. A `Scope` is what an expression can read
//! at one moment of an execution. It lives for one decision, because its values are neither `Send`
//! nor cheap to keep. Time and random values come from the scope, so evaluating again gives the
//! same result.
//!
//! Numbers are doubles, as in every JSONata: an integer above 2^53 loses digits once an expression
//! has used it.

mod functions;
mod growth;
mod top_level;

pub(crate) use functions::fraction;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use jsonata_core::ast::AstNode;
use jsonata_core::evaluator::{Context, Evaluator, EvaluatorError, EvaluatorOptions};
use jsonata_core::parser;
use jsonata_core::value::JValue;
use serde_json::{Map, Number, Value};

use crate::expression::Fault;
use crate::time::Timestamp;
use growth::{Growth, Unfit};

/// Longest evaluation of one expression, in milliseconds of real time.
///
/// This is the only use of real time: a safety limit far above what a sane expression needs.
pub const EVALUATION_MS_MAX: u64 = 5_000;
/// Deepest nesting of one evaluation.
pub const EVALUATION_DEPTH_MAX: usize = 1_000;
/// Longest sequence that one evaluation may build. The time limit alone does not stop a range of
/// ten million.
pub const SEQUENCE_LENGTH_MAX: usize = 100_000;
/// Largest result of one evaluation, in bytes: as much as all variables of an execution may hold. A
/// value that shares its parts is small in memory and large as text.
pub const RESULT_BYTES_MAX: usize = crate::execution::VARIABLES_BYTES_MAX;

/// Deepest nesting of a value. JSON parsers, such as those that read a history, stop at 128.
pub const NESTING_MAX: usize = 120;

/// Doubles up to 2^53 represent whole numbers exactly.
const INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// A compiled expression and the text it came from, without `{%` and `%}`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expression {
    source: String,
    ast: AstNode,
    /// Whether the text contains the name of a function that Step Functions adds.
    calls_added: bool,
    /// Whether it calls the functions that limit text size.
    calls_bounds: bool,
}

/// The text between `{%` and `%}`, which must be the first and last characters of the string;
/// otherwise `None`.
pub(crate) fn embedded(text: &str) -> Option<&str> {
    text.strip_prefix("{%")?.strip_suffix("%}").map(str::trim)
}

impl Expression {
    /// Compiles the text between `{%` and `%}`.
    ///
    /// # Errors
    /// The expression is invalid.
    pub(crate) fn compile(source: &str) -> Result<Expression, CompileError> {
        let mut ast = parser::parse(source)?;
        if let Some(name) = top_level::stray_reference(&ast) {
            return Err(CompileError::TopLevel(name));
        }
        let written = ast.clone();
        growth::rewrite(&mut ast);
        Ok(Expression {
            source: source.to_owned(),
            calls_added: functions::NAMES.iter().any(|name| source.contains(name)),
            calls_bounds: ast != written,
            ast,
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    #[error("expression does not compile: {0}")]
    Syntax(#[from] parser::ParserError),
    /// The reference is neither to `$states` nor to a variable.
    #[error("reference to '{0}' at the top level is not supported")]
    TopLevel(String),
}

impl CompileError {
    /// The message of AWS's validation: that of the parser without its code.
    ///
    /// Source: measured diagnostics of `ValidateStateMachineDefinition`, quoted in issues 2670 and
    /// 2745 of floci-io/floci.
    pub(crate) fn as_aws_words_it(&self) -> String {
        match self {
            CompileError::TopLevel(name) => {
                format!("Reference to '{name}' at the top level is not supported.")
            }
            CompileError::Syntax(error) => {
                let text = error.to_string();
                let coded = text.split_once(": ").filter(|(code, _)| {
                    code.len() == 5 && code[1..].bytes().all(|byte| byte.is_ascii_digit())
                });
                coded.map_or(text.clone(), |(_, sentence)| sentence.to_owned())
            }
        }
    }
}

impl Expression {
    /// The text between `{%` and `%}`.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// The error for a value whose type is not `expected`.
    pub(crate) fn wrong_type(&self, location: &str, expected: &str, value: &Value) -> Fault {
        let cause = format!(
            "The JSONata expression '{}' specified for the field '{location}' returned an unexpected result type. \
             Expected '{expected}', but was '{}' for value: {value}",
            self.source,
            type_name(value),
        );
        Fault::query(location, cause)
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// What an expression can read: `$states`, the variables, a time and a seed.
///
/// Functions are registered on the first expression that calls them: most call none, and
/// registering costs more than evaluating such an expression.
pub(crate) struct Scope {
    evaluator: Evaluator,
    now: Timestamp,
    seed: String,
    has_added: bool,
    growth: Option<Rc<Growth>>,
}

impl Scope {
    /// `states` are the fields of `$states`; `seed` must differ between decisions of an execution;
    /// `now` is the value of `$now()`.
    pub(crate) fn new<'a>(
        states: impl IntoIterator<Item = (&'static str, &'a Value)>,
        variables: &BTreeMap<String, Arc<Value>>,
        now: Timestamp,
        seed: &str,
    ) -> Scope {
        let mut context = Context::new();
        let states = states.into_iter().map(|(name, value)| (name.to_owned(), from_json(value)));
        context.bind("states".to_owned(), JValue::object(states.collect()));
        for (name, value) in variables {
            context.bind(name.clone(), from_json(value));
        }
        let options = EvaluatorOptions {
            timeout_ms: Some(EVALUATION_MS_MAX),
            cancel: None,
            max_stack_depth: Some(EVALUATION_DEPTH_MAX),
            max_sequence_length: Some(SEQUENCE_LENGTH_MAX),
        };
        let evaluator = Evaluator::with_options(context, options);
        Scope { evaluator, now, seed: seed.to_owned(), has_added: false, growth: None }
    }

    /// Registers the functions that an expression calls, and resets the size counters.
    fn prepare(&mut self, expression: &Expression) {
        if expression.calls_added && !self.has_added {
            functions::register(&mut self.evaluator, self.now, &self.seed);
            self.has_added = true;
        }
        if expression.calls_bounds {
            self.growth.get_or_insert_with(|| growth::register(&mut self.evaluator)).reset();
        }
    }

    /// Evaluates an expression in the field `location`.
    ///
    /// # Errors
    /// Evaluation failed, or returned nothing or a function: the state fails with
    /// `States.QueryEvaluationError`.
    pub(crate) fn evaluate(
        &mut self,
        expression: &Expression,
        location: &str,
    ) -> Result<Value, Fault> {
        let opening = || {
            format!(
                "The JSONata expression '{}' specified for the field '{location}'",
                expression.source
            )
        };
        let fail = |cause| Fault::query(location, cause);
        self.prepare(expression);
        // There is no context item outside `$states`: a bare name at the top level selects nothing.
        let value = self
            .evaluator
            .evaluate(&expression.ast, &JValue::Undefined)
            .map_err(|error| fail(thrown(&opening(), &error)))?;
        if value.is_function() || value.is_regex() {
            return Err(fail(format!("{} returned an unsupported result type.", opening())));
        }
        match growth::weigh(&value, NESTING_MAX, &mut { RESULT_BYTES_MAX }) {
            Ok(()) => {}
            Err(Unfit::TooDeep) => {
                return Err(fail(format!(
                    "{} returned a value nested more than {NESTING_MAX} levels deep.",
                    opening()
                )));
            }
            Err(Unfit::TooLarge) => {
                return Err(fail(format!(
                    "{} returned a value of more than {RESULT_BYTES_MAX} bytes.",
                    opening()
                )));
            }
        }
        to_json(&value).ok_or_else(|| fail(format!("{} returned nothing (undefined).", opening())))
    }
}

fn thrown(opening: &str, error: &EvaluatorError) -> String {
    // AWS does not name the function that does not exist.
    if error.message().starts_with(functions::NO_FUNCTION) {
        return format!("{opening} threw an error during evaluation. {}", functions::NO_FUNCTION);
    }
    // A message with a code is a sentence of its own; one without completes ours.
    let separator = if error.code().is_some() { ". " } else { ": " };
    format!("{opening} threw an error during evaluation{separator}{}", error.message())
}

/// Converts a value for expressions. Numbers become doubles.
fn from_json(value: &Value) -> JValue {
    match value {
        Value::Null => JValue::Null,
        Value::Bool(value) => JValue::Bool(*value),
        Value::Number(value) => JValue::Number(value.as_f64().unwrap_or_default()),
        Value::String(text) => JValue::from(text.as_str()),
        Value::Array(items) => JValue::array(items.iter().map(from_json).collect()),
        Value::Object(fields) => {
            let field = |(name, field): (&String, &Value)| (name.clone(), from_json(field));
            JValue::object(fields.iter().map(field).collect())
        }
    }
}

/// Converts a result to JSON; `None` for undefined. Whole numbers are written as integers, as in
/// JavaScript.
fn to_json(value: &JValue) -> Option<Value> {
    Some(match value {
        JValue::Undefined => return None,
        JValue::Null => Value::Null,
        JValue::Bool(value) => Value::Bool(*value),
        JValue::Number(value) => number(*value),
        JValue::String(text) => Value::String(text.to_string()),
        JValue::Array(items) => items.iter().filter_map(to_json).collect(),
        JValue::Object(fields) => {
            let field = |(name, field): (&String, &JValue)| Some((name.clone(), to_json(field)?));
            Value::Object(fields.iter().filter_map(field).collect::<Map<_, _>>())
        }
        // Like `$string`: a function inside a value becomes the empty string.
        JValue::Lambda(_) | JValue::Builtin { .. } | JValue::Regex { .. } => {
            Value::String(String::new())
        }
    })
}

/// Whether a value nests at most [`NESTING_MAX`] levels.
pub(crate) fn is_shallow(value: &Value) -> bool {
    fn within(value: &Value, levels: usize) -> bool {
        match value {
            Value::Array(items) => levels > 0 && items.iter().all(|item| within(item, levels - 1)),
            Value::Object(fields) => {
                levels > 0 && fields.values().all(|field| within(field, levels - 1))
            }
            _ => true,
        }
    }
    within(value, NESTING_MAX)
}

fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() <= INTEGER_MAX {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests;
