//! JSON with expressions in it.

use serde_json::{Map, Value};

use super::fields::pointer;
use super::{DefinitionError, Literal, Problem};
use crate::jsonata::{EvaluationError, Expression, Scope, embedded};

/// A value in a definition whose strings may be expressions.
///
/// Parts without expressions stay as they were written, so a `0.0` in a definition is a `0.0` in an
/// output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Template {
    Literal(Value),
    Expression(Expression),
    Array(Vec<Template>),
    Object(Vec<(String, Template)>),
}

impl Template {
    pub(crate) fn compile(value: &Value, location: &str) -> Result<Template, DefinitionError> {
        Ok(match value {
            Value::String(text) => match compile_expression(text, location)? {
                Some(expression) => Template::Expression(expression),
                None => Template::Literal(value.clone()),
            },
            Value::Array(items) => {
                let parts = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| Template::compile(item, &format!("{location}/{index}")))
                    .collect::<Result<Vec<_>, _>>()?;
                if parts.iter().all(Template::is_literal) {
                    return Ok(Template::Literal(value.clone()));
                }
                Template::Array(parts)
            }
            Value::Object(fields) => {
                let parts = Template::compile_fields(fields, location)?;
                if parts.iter().all(|(_, part)| part.is_literal()) {
                    return Ok(Template::Literal(value.clone()));
                }
                Template::Object(parts)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Template::Literal(value.clone()),
        })
    }

    pub(crate) fn compile_fields(
        fields: &Map<String, Value>,
        location: &str,
    ) -> Result<Vec<(String, Template)>, DefinitionError> {
        fields
            .iter()
            .map(|(name, field)| {
                Ok((name.clone(), Template::compile(field, &pointer(location, name))?))
            })
            .collect()
    }

    fn is_literal(&self) -> bool {
        matches!(self, Template::Literal(_))
    }

    /// The value with every expression evaluated. `location` is spelled as AWS spells it in a
    /// cause.
    pub(crate) fn evaluate(
        &self,
        scope: &mut Scope,
        location: &str,
    ) -> Result<Value, EvaluationError> {
        Ok(match self {
            Template::Literal(value) => value.clone(),
            Template::Expression(expression) => scope.evaluate(expression, location)?,
            Template::Array(items) => {
                let values = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| item.evaluate(scope, &format!("{location}[{index}]")));
                Value::Array(values.collect::<Result<_, _>>()?)
            }
            Template::Object(fields) => {
                let values = fields.iter().map(|(name, part)| {
                    Ok((name.clone(), part.evaluate(scope, &format!("{location}/{name}"))?))
                });
                Value::Object(values.collect::<Result<_, _>>()?)
            }
        })
    }
}

pub(super) fn compile_expression(
    text: &str,
    location: &str,
) -> Result<Option<Expression>, DefinitionError> {
    let Some(source) = embedded(text) else { return Ok(None) };
    match Expression::compile(source) {
        Ok(expression) => Ok(Some(expression)),
        Err(error) => Err(DefinitionError {
            location: location.to_owned(),
            problem: Problem::Expression(error),
        }),
    }
}

/// A field of one type, given literally or by an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Slot {
    Literal(Literal),
    Expression(Expression),
}

impl Slot {
    /// The value, if `accept` takes it; `expected` names the type in the cause where it does not.
    ///
    /// A literal was accepted by the parser under the same rule.
    pub(crate) fn evaluate<T>(
        &self,
        scope: &mut Scope,
        location: &str,
        expected: &str,
        accept: impl Fn(&Value) -> Option<T>,
    ) -> Result<T, EvaluationError> {
        match self {
            Slot::Literal(value) => Ok(accept(value).expect("the parser checks literals")),
            Slot::Expression(expression) => {
                let value = scope.evaluate(expression, location)?;
                accept(&value).ok_or_else(|| {
                    EvaluationError::wrong_type(expression, location, expected, &value)
                })
            }
        }
    }
}

/// What the slots accept; the parser and the evaluation use the same functions.
pub(crate) mod accept {
    use super::Value;
    use crate::definition::SECONDS_MAX;
    use crate::time::Timestamp;

    pub(crate) fn boolean(value: &Value) -> Option<bool> {
        value.as_bool()
    }

    pub(crate) fn text(value: &Value) -> Option<String> {
        value.as_str().map(str::to_owned)
    }

    pub(crate) fn time(value: &Value) -> Option<Timestamp> {
        value.as_str().and_then(Timestamp::parse)
    }

    /// Whole seconds that something waits, 0 allowed.
    pub(crate) fn seconds(value: &Value) -> Option<u64> {
        let seconds = match value.as_u64() {
            Some(seconds) => seconds,
            // A definition may spell a whole number 5.0.
            None => {
                value.as_f64().filter(|seconds| seconds.fract() == 0.0 && *seconds >= 0.0)? as u64
            }
        };
        (seconds <= SECONDS_MAX).then_some(seconds)
    }

    /// Whole seconds that something may take, at least 1.
    pub(crate) fn limit(value: &Value) -> Option<u64> {
        seconds(value).filter(|seconds| *seconds > 0)
    }
}
