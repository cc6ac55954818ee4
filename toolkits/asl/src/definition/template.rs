//! JSON that contains expressions.

use serde_json::{Map, Value};

use super::fields::{Result, error, pointer};
use super::{Problem, SECONDS_MAX};
use crate::expression::{Expression, Fault, Language, Scope};
use crate::intrinsic::Call;
use crate::jsonata;
use crate::jsonpath::Reference;
use crate::time::Timestamp;

/// A value in a definition that may contain expressions.
///
/// In JSONata any string may be an expression. In JSONPath a field whose name ends in `.$` is a
/// path or an intrinsic function. Parts without expressions keep their spelling: `0.0` stays `0.0`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Template {
    Literal(Value),
    Computed(Expression),
    Array(Vec<Template>),
    Object(Vec<Field>),
}

/// A field of a template.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// Its name in the definition, with `.$`.
    written: String,
    value: Template,
}

impl Template {
    pub(super) fn compile(value: &Value, location: &str, language: Language) -> Result<Template> {
        Ok(match value {
            Value::String(text) if language == Language::Jsonata => {
                match compile(text, location)? {
                    Some(expression) => Template::Computed(expression),
                    None => Template::Literal(value.clone()),
                }
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                let parts = items
                    .map(|(at, item)| {
                        Template::compile(item, &format!("{location}/{at}"), language)
                    })
                    .collect::<Result<Vec<_>>>()?;
                if parts.iter().all(Template::is_literal) {
                    return Ok(Template::Literal(value.clone()));
                }
                Template::Array(parts)
            }
            Value::Object(fields) => {
                let fields = Template::fields(fields, location, language)?;
                if fields.iter().all(|field| field.value.is_literal()) {
                    return Ok(Template::Literal(value.clone()));
                }
                Template::Object(fields)
            }
            _ => Template::Literal(value.clone()),
        })
    }

    fn fields(map: &Map<String, Value>, location: &str, language: Language) -> Result<Vec<Field>> {
        let fields = map.iter();
        fields
            .map(|(written, value)| {
                let location = pointer(location, written);
                let (name, value) = match written.strip_suffix(".$") {
                    Some(name) if language == Language::JsonPath => {
                        (name, Template::Computed(dynamic(value, &location)?))
                    }
                    _ => (written.as_str(), Template::compile(value, &location, language)?),
                };
                Ok(Field { name: name.to_owned(), written: written.clone(), value })
            })
            .collect()
    }

    /// The templates of an object's fields.
    pub(super) fn compile_fields(
        map: &Map<String, Value>,
        location: &str,
        language: Language,
    ) -> Result<Vec<(String, Template)>> {
        let fields = Template::fields(map, location, language)?;
        Ok(fields.into_iter().map(|field| (field.name, field.value)).collect())
    }

    /// The error for a value whose type is not `expected`.
    pub(crate) fn wrong_type(&self, location: &str, expected: &str, value: &Value) -> Fault {
        match self {
            Template::Computed(Expression::Jsonata(expression)) => {
                expression.wrong_type(location, expected, value)
            }
            _ => Fault::query(
                location,
                format!("The field '{location}' must be an {expected} but was: {value}"),
            ),
        }
    }

    fn is_literal(&self) -> bool {
        matches!(self, Template::Literal(_))
    }

    /// Evaluates all expressions. `location` is the field as AWS spells it in a cause; paths are
    /// relative to `root`.
    pub(crate) fn evaluate(
        &self,
        scope: &mut Scope<'_>,
        root: &Value,
        location: &str,
    ) -> std::result::Result<Value, Fault> {
        Ok(match self {
            Template::Literal(value) => value.clone(),
            Template::Computed(expression) => expression.evaluate(scope, root, location)?,
            Template::Array(items) => {
                let items = items.iter().enumerate();
                let values = items
                    .map(|(at, item)| item.evaluate(scope, root, &format!("{location}[{at}]")));
                Value::Array(values.collect::<std::result::Result<_, _>>()?)
            }
            Template::Object(fields) => {
                let mut object = Map::new();
                for field in fields {
                    // AWS names a path's field alone, and an expression's field with the path to
                    // it.
                    let location = match &field.value {
                        Template::Computed(Expression::Reference(_) | Expression::Call(_)) => {
                            field.written.clone()
                        }
                        _ => format!("{location}/{}", field.name),
                    };
                    let value = field.value.evaluate(scope, root, &location)?;
                    object.insert(field.name.clone(), value);
                }
                Value::Object(object)
            }
        })
    }
}

/// The expression in a field whose name ends in `.$`.
fn dynamic(value: &Value, location: &str) -> Result<Expression> {
    let text = value.as_str().filter(|text| text.starts_with('$') || text.starts_with("States."));
    match text {
        Some(text) => path_or_call(text, location)
            .map_err(|error| undynamic(location, Some(error.problem.to_string()))),
        None => Err(undynamic(location, None)),
    }
}

/// The error for a field whose name ends in `.$`. AWS points to the object that has the field.
fn undynamic(location: &str, detail: Option<String>) -> super::DefinitionError {
    let (object, field) = location.rsplit_once('/').unwrap_or(("", location));
    let field = field.replace("~1", "/").replace("~0", "~");
    error(object, Problem::Dynamic { field, detail })
}

/// A path, or the call of an intrinsic function.
pub(super) fn path_or_call(text: &str, location: &str) -> Result<Expression> {
    match Call::compile(text) {
        Some(call) => call.map(Expression::Call).map_err(|problem| error(location, problem)),
        None => match Reference::compile(text) {
            Ok(reference) => Ok(Expression::Reference(reference)),
            Err(problem) => Err(error(location, problem)),
        },
    }
}

/// Compiles the JSONata in a text; `None` if there is none.
pub(super) fn compile(text: &str, location: &str) -> Result<Option<Expression>> {
    let Some(source) = jsonata::embedded(text) else {
        if text.starts_with("{%") {
            let problem = "JSONata string must start with {% and end with %}";
            return Err(error(location, Problem::Conflict(problem)));
        }
        return Ok(None);
    };
    match jsonata::Expression::compile(source) {
        Ok(expression) => Ok(Some(Expression::Jsonata(expression))),
        Err(problem) => Err(error(location, problem)),
    }
}

/// A field of one type, literal or computed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Slot {
    Literal(Value),
    Computed { field: &'static str, expression: Expression },
}

impl Slot {
    /// Evaluates the field. If `accept` rejects the value, the cause names the type `expected`.
    ///
    /// A literal was already checked by the parser with the same function.
    pub(crate) fn evaluate<T>(
        &self,
        scope: &mut Scope<'_>,
        root: &Value,
        prefix: &str,
        expected: &str,
        accept: impl Fn(&Value) -> Option<T>,
    ) -> std::result::Result<T, Fault> {
        match self {
            Slot::Literal(value) => Ok(accept(value).expect("the parser checks literals")),
            Slot::Computed { field, expression } => {
                let location = format!("{prefix}{field}");
                let value = match (expression, *field) {
                    // AWS words these two errors like those of template fields.
                    (Expression::Reference(reference), "SecondsPath" | "TimestampPath") => {
                        let found = scope.lookup(reference, root);
                        let found = found.and_then(std::result::Result::ok);
                        found.ok_or_else(|| no_input(field, &reference.text))?
                    }
                    (Expression::Reference(reference), name)
                        if !matches!(name, "ErrorPath" | "CausePath") =>
                    {
                        scope.require(reference, root)?
                    }
                    _ => expression.evaluate(scope, root, &location)?,
                };
                let wrong = || match expression {
                    Expression::Jsonata(expression) => {
                        match wrong_result(field, expression.source(), &value) {
                            Some(cause) => Fault::query(&location, cause),
                            None => expression.wrong_type(&location, expected, &value),
                        }
                    }
                    Expression::Reference(reference) => {
                        Fault::runtime(wrong_reference(field, &reference.text, expected, &value))
                    }
                    Expression::Call(_) => Fault::runtime(format!(
                        "The function in the field '{field}' returned a value that is not a valid {expected}"
                    )),
                };
                accept(&value).ok_or_else(wrong)
            }
        }
    }
}

/// A wait's path selects nothing.
fn no_input(field: &str, path: &str) -> Fault {
    Fault::runtime(format!("The {field} parameter does not reference an input value: {path}"))
}

/// AWS's message for the result of a JSONata expression that has the right type and a wrong value;
/// `None` if the type is wrong.
///
/// Known for `Timestamp` and `TimeoutSeconds`; assumed for the other fields, which have the same
/// form in JSONPath.
fn wrong_result(field: &str, source: &str, value: &Value) -> Option<String> {
    match (field, value) {
        ("Timestamp", Value::String(text)) => Some(format!(
            "The Timestamp parameter does not reference a valid ISO-8601 extended offset date-time format string: {source} == {text}"
        )),
        ("Seconds", Value::Number(number)) if number.as_i64().is_some_and(|whole| whole < 0) => {
            Some(format!("The Seconds parameter references a negative value: {source} == {number}"))
        }
        ("Seconds", Value::Number(number)) if !number.is_i64() => Some(format!(
            "The Seconds parameter cannot be parsed as a long value: {source} == {number}"
        )),
        ("TimeoutSeconds" | "HeartbeatSeconds", Value::Number(number)) if number.is_f64() => {
            Some(format!("The {field} field cannot be parsed as an integer: {number}"))
        }
        ("TimeoutSeconds" | "HeartbeatSeconds", Value::Number(number)) => {
            Some(format!("{field} must be between 0 and {SECONDS_MAX} but was: {number}"))
        }
        _ => None,
    }
}

/// AWS's message, which differs from field to field.
fn wrong_reference(field: &str, path: &str, expected: &str, value: &Value) -> String {
    let plain = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match field {
        "SecondsPath" if value.as_i64().is_some() => {
            format!("The SecondsPath parameter references a negative value: {path} == {plain}")
        }
        "SecondsPath" => {
            format!("The SecondsPath parameter cannot be parsed as a long value: {path} == {plain}")
        }
        "TimestampPath" => format!(
            "The TimestampPath parameter does not reference a valid ISO-8601 extended offset date-time format string: {path} == {plain}"
        ),
        "ToleratedFailureCountPath" if value.as_i64().is_some() => {
            "ToleratedFailureCount cannot be negative.".to_owned()
        }
        "ToleratedFailurePercentagePath" if value.is_number() => {
            "ToleratedFailurePercentage must be between 0 and 100.".to_owned()
        }
        _ => {
            let expected = match expected {
                "number" if field == "ToleratedFailurePercentagePath" => "float",
                "number" => "integer",
                other => other,
            };
            format!(
                "The {field} field refers to value \"{plain}\" which is not a valid {expected}: {path}"
            )
        }
    }
}

/// Type checks for slots, shared by the parser and the evaluation.
pub(crate) mod accept {
    use super::{SECONDS_MAX, Timestamp, Value};

    pub(crate) fn boolean(value: &Value) -> Option<bool> {
        value.as_bool()
    }

    pub(crate) fn text(value: &Value) -> Option<String> {
        value.as_str().map(str::to_owned)
    }

    pub(crate) fn time(value: &Value) -> Option<Timestamp> {
        value.as_str().and_then(Timestamp::parse)
    }

    /// Whole seconds to wait, at least 0.
    pub(crate) fn seconds(value: &Value) -> Option<u64> {
        whole(value).filter(|seconds| *seconds <= SECONDS_MAX)
    }

    /// Whole seconds of a timeout, at least 1.
    pub(crate) fn limit(value: &Value) -> Option<u64> {
        seconds(value).filter(|seconds| *seconds > 0)
    }

    /// A whole number, at least 0. A definition may spell one as 5.0.
    pub(crate) fn whole(value: &Value) -> Option<u64> {
        let from_float = || value.as_f64().filter(|number| number.fract() == 0.0 && *number >= 0.0);
        value.as_u64().or_else(|| from_float().map(|number| number as u64))
    }

    /// A whole number; a path may also find it as a string.
    pub(crate) fn whole_or_text(value: &Value) -> Option<u64> {
        whole(value).or_else(|| value.as_str()?.trim().parse().ok())
    }

    /// A percentage; a path may also find it as a string.
    pub(crate) fn percentage_or_text(value: &Value) -> Option<f64> {
        let share = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
        share.filter(|share| (0.0..=100.0).contains(share))
    }

    pub(crate) fn percentage(value: &Value) -> Option<f64> {
        value.as_f64().filter(|number| (0.0..=100.0).contains(number))
    }
}
