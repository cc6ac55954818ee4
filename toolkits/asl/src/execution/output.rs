//! How a state computes its output from its input and result.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::decide::{Step, Stopped, record};
use super::inputs::payload;
use super::thread::View;
use super::{Execution, PAYLOAD_BYTES_MAX, VARIABLES_BYTES_MAX};
use crate::definition::{Lens, ResultPath, Shape, Template, Yield};
use crate::error_name;
use crate::expression::{Fault, Scope, Variables};
use crate::history::{EventKind, Failure};

type Result<T> = std::result::Result<T, Stopped>;

/// The effective input: `InputPath` applied to the input.
pub(super) fn effective<'a>(view: View<'a>, scope: &Scope<'_>) -> Result<Cow<'a, Value>> {
    look(&view.state.input, scope, &view.visit.input)
}

/// Applies `InputPath` or `OutputPath`.
fn look<'a>(lens: &Lens, scope: &Scope<'_>, value: &'a Value) -> Result<Cow<'a, Value>> {
    match lens {
        Lens::Whole => Ok(Cow::Borrowed(value)),
        Lens::Nothing => Ok(Cow::Owned(Value::Object(Map::new()))),
        Lens::Part(reference) => Ok(Cow::Owned(scope.require(reference, value)?)),
    }
}

/// The template's value, or the effective input if there is no template.
pub(super) fn filled<'a>(
    view: View<'a>,
    scope: &mut Scope<'_>,
    template: Option<&Template>,
    location: &str,
) -> Result<Cow<'a, Value>> {
    let input = effective(view, scope)?;
    match template {
        None => Ok(input),
        Some(template) => Ok(Cow::Owned(template.evaluate(scope, &input, location)?)),
    }
}

impl Execution {
    /// Leaves the state with `value` as its result. `prefix` is the path to `result`'s fields in a
    /// cause.
    pub(super) fn exit(
        &self,
        view: View<'_>,
        scope: &mut Scope<'_>,
        result: &Yield,
        value: &Value,
        prefix: &str,
    ) -> Result<Step> {
        let selected = match &result.shape {
            Shape::JsonPath { selector: Some(selector), .. } => {
                Cow::Owned(selector.evaluate(scope, value, "ResultSelector")?)
            }
            _ => Cow::Borrowed(value),
        };
        let mut assigned_variables = BTreeMap::new();
        for (name, template) in &result.assign {
            let value = template.evaluate(scope, &selected, &format!("{prefix}Assign/{name}"))?;
            assigned_variables.insert(name.clone(), bounded(view, &value)?);
        }
        check_variables(view, &assigned_variables)?;
        let output = match &result.shape {
            Shape::Jsonata(Some(template)) => {
                Cow::Owned(template.evaluate(scope, &selected, &format!("{prefix}Output"))?)
            }
            Shape::Jsonata(None) => selected,
            Shape::JsonPath { result_path, output, .. } => {
                let placed = put(view, result_path, selected)?;
                Cow::Owned(look(output, scope, &placed)?.into_owned())
            }
        };
        let output = bounded(view, &output)?;
        let (state_type, name) = (view.state.kind.state_type(), view.visit.state.clone());
        let kind = EventKind::StateExited { state_type, name, output, assigned_variables };
        Ok(record(view, kind))
    }
}

/// Writes a result into the state's input.
fn put<'a>(
    view: View<'a>,
    result_path: &ResultPath,
    result: Cow<'a, Value>,
) -> Result<Cow<'a, Value>> {
    let input: &Value = &view.visit.input;
    match result_path {
        ResultPath::Whole => Ok(result),
        ResultPath::Nowhere => Ok(Cow::Borrowed(input)),
        ResultPath::At { path, text } => {
            let mut whole = input.clone();
            match path.set(&mut whole, result.into_owned()) {
                Ok(()) => Ok(Cow::Owned(whole)),
                Err(_) => Err(Stopped::Fault(Fault {
                    error: error_name::RESULT_PATH_MATCH_FAILURE,
                    location: None,
                    cause: format!(
                        "Unable to apply path '{text}' of ResultPath to input '{input}'"
                    ),
                })),
            }
        }
    }
}

/// JSON text of an input, an output or arguments, within the size limit.
pub(super) fn bounded(view: View<'_>, value: &Value) -> Result<String> {
    payload(value, &view.visit.state).map_err(Stopped::Fatal)
}

fn check_variables(view: View<'_>, assigned: &BTreeMap<String, String>) -> Result<()> {
    if assigned.is_empty() {
        return Ok(());
    }
    let known: &Variables = view.variables;
    let added: usize = assigned.values().map(String::len).sum();
    let kept = known.iter().filter(|(name, _)| !assigned.contains_key(*name));
    let total: usize = added + kept.map(|(_, value)| value.to_string().len()).sum::<usize>();
    if added <= PAYLOAD_BYTES_MAX && total <= VARIABLES_BYTES_MAX {
        return Ok(());
    }
    let cause =
        sentence(view, "The variables assigned exceed the maximum number of bytes service limit.");
    Err(Stopped::Fatal(Failure::new(error_name::DATA_LIMIT_EXCEEDED, Some(cause))))
}

pub(super) fn sentence(view: View<'_>, cause: &str) -> String {
    let (state, id) = (&view.visit.state, view.visit.entered_event_id);
    format!(
        "An error occurred while executing the state '{state}' (entered at the event id #{id}). {cause}"
    )
}
