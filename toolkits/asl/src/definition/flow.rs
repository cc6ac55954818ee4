//! Transitions, output and error handling of a state.

use serde_json::Value;

use super::fields::{Fields, Result, error};
use super::template::accept;
use super::{
    Catcher, Lens, Problem, ResultPath, Retrier, Shape, Template, Transition,
    VARIABLE_NAME_CHARS_MAX, Yield,
};
use crate::error_name;
use crate::expression::Language;

pub(super) fn transition(fields: &Fields<'_>) -> Result<Transition> {
    let end = fields.optional("End", "true or false", Value::as_bool)?.unwrap_or(false);
    match (fields.text("Next")?, end) {
        (Some(next), false) => Ok(Transition::Next(next.to_owned())),
        (None, true) => Ok(Transition::End),
        (Some(_), true) => Err(fields.error(Problem::Exclusive("Next, End".to_owned()))),
        (None, false) => Err(fields.error(Problem::NoneOf("Next, End"))),
    }
}

fn handed_on(fields: &Fields<'_>, shape: Shape) -> Result<Yield> {
    let Some(assign) = fields.optional("Assign", "an object", Value::as_object)? else {
        return Ok(Yield { assign: Vec::new(), shape });
    };
    let location = fields.at("Assign");
    let assign = Template::compile_fields(assign, &location, fields.language())?;
    if let Some((name, _)) = assign.iter().find(|(name, _)| !is_variable_name(name)) {
        let location = format!("{location}/{name}");
        return Err(error(
            &location,
            match name.as_str() {
                "states" => Problem::ReservedVariable(name.clone()),
                _ => Problem::VariableName(name.clone()),
            },
        ));
    }
    Ok(Yield { assign, shape })
}

/// The output of a state without a result, and of a catcher.
pub(super) fn passed_on(fields: &Fields<'_>) -> Result<Yield> {
    let shape = match fields.language() {
        Language::Jsonata => Shape::Jsonata(fields.template("Output")?),
        Language::JsonPath => Shape::JsonPath {
            selector: None,
            result_path: ResultPath::Whole,
            output: fields.lens("OutputPath")?,
        },
    };
    handed_on(fields, shape)
}

/// The output of a state with a result.
pub(super) fn result(fields: &Fields<'_>, selects: bool) -> Result<Yield> {
    let shape = match fields.language() {
        Language::Jsonata => Shape::Jsonata(fields.template("Output")?),
        Language::JsonPath => Shape::JsonPath {
            selector: if selects { fields.template("ResultSelector")? } else { None },
            result_path: fields.result_path()?,
            output: fields.lens("OutputPath")?,
        },
    };
    handed_on(fields, shape)
}

/// The output of a `Choice` rule, which replaces that of its state.
pub(super) fn choice_result(fields: &Fields<'_>) -> Result<Yield> {
    let shape = match fields.language() {
        Language::Jsonata => Shape::Jsonata(fields.template("Output")?),
        Language::JsonPath => {
            Shape::JsonPath { selector: None, result_path: ResultPath::Whole, output: Lens::Whole }
        }
    };
    handed_on(fields, shape)
}

/// Source: AWS, "Passing data between states with variables", names (Unicode identifiers).
fn is_variable_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && chars.all(|char| char.is_alphanumeric() || char == '_')
        && name.chars().count() <= VARIABLE_NAME_CHARS_MAX
        && name != "states"
}

pub(super) fn retriers(fields: &Fields<'_>) -> Result<Vec<Retrier>> {
    let retry = fields.objects("Retry")?;
    let count = retry.len();
    (1..).zip(retry).map(|(at, item)| retrier(item, at == count)).collect()
}

pub(super) fn catchers(fields: &Fields<'_>) -> Result<Vec<Catcher>> {
    let catch = fields.objects("Catch")?;
    let count = catch.len();
    (1..).zip(catch).map(|(at, item)| catcher(item, at == count)).collect()
}

fn error_equals(fields: &Fields<'_>, last: bool) -> Result<Vec<String>> {
    const NAMES: &str = "an array of error names that is not empty";
    fields.require(&["ErrorEquals"])?;
    let items = fields.optional("ErrorEquals", NAMES, Value::as_array)?.into_iter().flatten();
    let names: Option<Vec<String>> = items.map(|item| item.as_str().map(str::to_owned)).collect();
    let names = names.ok_or_else(|| fields.error_at("ErrorEquals", Problem::Value(NAMES)))?;
    if names.is_empty() {
        return Err(fields.error_at("ErrorEquals", Problem::Empty));
    }
    if names.iter().any(|name| name == error_name::ALL) && !(names.len() == 1 && last) {
        let problem = Problem::Conflict("States.ALL must appear alone and at end of list");
        return Err(fields.error_at("ErrorEquals", problem));
    }
    Ok(names)
}

fn retrier(fields: Fields<'_>, last: bool) -> Result<Retrier> {
    let jitter = fields.text("JitterStrategy")?.unwrap_or("NONE");
    if !matches!(jitter, "FULL" | "NONE") {
        return Err(fields.error_at("JitterStrategy", Problem::Among("NONE, FULL")));
    }
    let rate = |value: &Value| value.as_f64().filter(|rate| *rate >= 1.0);
    let positive = "a positive whole number";
    let retrier = Retrier {
        error_equals: error_equals(&fields, last)?,
        interval_s: fields.optional("IntervalSeconds", positive, accept::seconds)?.unwrap_or(1),
        max_attempts: fields
            .optional("MaxAttempts", "a whole number", accept::seconds)?
            .unwrap_or(3),
        backoff_rate: fields.optional("BackoffRate", "a number, at least 1", rate)?.unwrap_or(2.0),
        max_delay_s: fields.optional("MaxDelaySeconds", positive, accept::limit)?,
        full_jitter: jitter == "FULL",
    };
    if retrier.max_delay_s.is_some_and(|max| max <= retrier.interval_s) {
        let problem = "'MaxDelaySeconds' must be greater than 'IntervalSeconds'";
        return Err(fields.error(Problem::Conflict(problem)));
    }
    fields.finish()?;
    Ok(retrier)
}

fn catcher(fields: Fields<'_>, last: bool) -> Result<Catcher> {
    let shape = match fields.language() {
        Language::Jsonata => Shape::Jsonata(fields.template("Output")?),
        Language::JsonPath => Shape::JsonPath {
            selector: None,
            result_path: fields.result_path()?,
            output: Lens::Whole,
        },
    };
    let catcher = Catcher {
        error_equals: error_equals(&fields, last)?,
        result: handed_on(&fields, shape)?,
        next: fields.required_text("Next")?.to_owned(),
    };
    fields.finish()?;
    Ok(catcher)
}
