//! JSONata as Step Functions runs it: `$states`, variables, its extra functions, its limits and its
//! error sentences.
//!
//! An `Expression` is compiled once, with the definition. A `Scope` is what an expression can see
//! at one moment of an execution; it is made, used and dropped inside one decision, because its
//! values are neither `Send` nor cheap to keep. Time and randomness come from the scope, so an
//! evaluation done again says the same.
//!
//! Numbers are doubles, as in every JSONata: integers above 2^53 lose digits once an expression has
//! touched them.

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

/// Longest that one expression may take, in milliseconds of real time.
///
/// The only place where real time matters. It is a fuse, far above what a sane expression needs.
pub const EVALUATION_MS_MAX: u64 = 5_000;
/// Deepest nesting of one evaluation.
pub const EVALUATION_DEPTH_MAX: usize = 1_000;
/// Longest sequence that one evaluation may build. The time fuse alone does not stop a range of ten
/// million.
pub const SEQUENCE_LENGTH_MAX: usize = 100_000;
/// Largest result of one evaluation, in bytes: as much as all variables of an execution may hold. What
/// an expression builds may share its parts, and is far larger once it is written out.
pub const RESULT_BYTES_MAX: usize = crate::execution::VARIABLES_BYTES_MAX;

/// Deepest nesting of a value. A parser of JSON gives up at 128, and whoever reads a history is
/// one.
pub const NESTING_MAX: usize = 120;

/// Whole doubles up to here are exact integers: 2^53.
const INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// A compiled expression and the text it came from, without `{%` and `%}`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expression {
    source: String,
    ast: AstNode,
    /// Whether it may call the functions that Step Functions adds: the name of one stands in it.
    calls_added: bool,
    /// Whether it calls the functions that bound what it makes texts of.
    calls_bounds: bool,
}

/// The text between `{%` and `%}`, which must be the string's first and last characters; `None` for
/// any other string.
pub(crate) fn embedded(text: &str) -> Option<&str> {
    text.strip_prefix("{%")?.strip_suffix("%}").map(str::trim)
}

impl Expression {
    /// Compiles the text between `{%` and `%}`.
    ///
    /// # Errors
    /// Says what is wrong with it; the definition is at fault.
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

/// Why a text is not an expression that Step Functions takes.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// JSONata does not understand it.
    #[error("expression does not compile: {0}")]
    Syntax(#[from] parser::ParserError),
    /// It refers to something that is neither `$states` nor a variable.
    #[error("reference to '{0}' at the top level is not supported")]
    TopLevel(String),
}

impl Expression {
    /// The fault that a value of another type than `expected` is.
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

/// What an expression can see: `$states`, the variables, a time and a seed.
///
/// Functions are added when the first expression comes that calls them: most call none, and to add
/// them is more work than to evaluate those.
pub(crate) struct Scope {
    evaluator: Evaluator,
    now: Timestamp,
    seed: String,
    has_added: bool,
    growth: Option<Rc<Growth>>,
}

impl Scope {
    /// Builds a scope. `states` are the fields of `$states`; `seed` must differ from one decision of an
    /// execution to the next; `now` is what `$now()` says.
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

    /// Adds the functions that an expression calls, and begins to count anew what it grows by.
    fn prepare(&mut self, expression: &Expression) {
        if expression.calls_added && !self.has_added {
            functions::register(&mut self.evaluator, self.now, &self.seed);
            self.has_added = true;
        }
        if expression.calls_bounds {
            self.growth.get_or_insert_with(|| growth::register(&mut self.evaluator)).reset();
        }
    }

    /// Evaluates an expression that stands at `location`.
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
        // There is no context item outside `$states`: a bare name at the top finds nothing.
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
    // A coded message is a sentence of its own; a bare one completes ours.
    let separator = if error.code().is_some() { ". " } else { ": " };
    format!("{opening} threw an error during evaluation{separator}{}", error.message())
}

/// A value as expressions see it. Numbers are doubles.
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

/// The JSON of a result; `None` for nothing. Whole numbers are spelled as integers, as JavaScript
/// spells them.
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
        // As `$string` does it: a function inside a value is the empty string.
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
