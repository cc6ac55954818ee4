//! The assistant without a model: rules over the request and the tools' results.
//!
//! A plan holds the steps that can be planned now and are not yet done. The reply says so if the
//! rules do not understand a request.

use graph::effect::{Author, Chat, Reply, ToolCall};
use serde_json::{Value, json};

use super::request::{self, Figure, Quantity, Regimen, Request};
use super::state::{AgentState, LoggedStep};
use super::tool;

/// Help text: possible requests.
const HELP: &str = "I understand: which models are there; simulate 250 mg of theophylline every 8 h \
for 3 days; list the parameters; what is the clearance; change the dose to 300 mg; run; what is the \
Cmax (Tmax, AUC, half-life); bye.";

/// Smaller relative differences are rounding errors.
const SAME: f64 = 1e-9;

/// An available model.
struct Model<'a> {
    path: &'a str,
    drug: &'a str,
    route: &'a str,
}

/// The next calls, or a reply if there is nothing to call.
enum Course {
    Calls(Vec<ToolCall>, &'static str),
    Words(String),
}

pub(super) fn reply(state: &AgentState, _: &Chat) -> Reply {
    if state.turn.responding || state.turn.limit.is_some() {
        return Reply::says(summary(state));
    }
    let stopped =
        state.turn.rejected.is_some() || state.turn_steps().iter().any(|step| step.error.is_some());
    if stopped {
        // After calls the reply is a summary; otherwise it is this text.
        return Reply::says(if state.turn_steps().is_empty() {
            summary(state)
        } else {
            String::new()
        });
    }
    match course(state, &request::read(&state.turn.request)) {
        Course::Words(words) => Reply::says(words),
        Course::Calls(calls, why) => {
            let left: Vec<ToolCall> =
                calls.into_iter().filter(|call| !is_done(state, call)).collect();
            if left.is_empty() {
                return Reply::says("");
            }
            Reply { text: Some(why.to_owned()), calls: left, by: Author::Policy }
        }
    }
}

fn is_done(state: &AgentState, call: &ToolCall) -> bool {
    let is_same = |step: &LoggedStep| {
        let planned = step.planned.as_ref().unwrap_or(&step.arguments);
        step.tool == call.tool && step.error.is_none() && *planned == call.arguments
    };
    state.turn_steps().iter().any(is_same)
}

fn course(state: &AgentState, request: &Request) -> Course {
    match request {
        Request::Help => Course::Words(HELP.to_owned()),
        Request::Unknown => {
            Course::Words(format!("I did not understand \"{}\". {HELP}", state.turn.request.trim()))
        }
        Request::Models => one(tool::LIST_MODELS, json!({}), "List the models."),
        Request::Simulate(regimen) => simulate(state, regimen, true),
        Request::Load => simulate(state, &Regimen::default(), false),
        about_one => match &state.simulation_context {
            None => Course::Words(format!(
                "No simulation is loaded yet, so `{}` has no target. Load one first, for \
                 example: simulate 250 mg of theophylline.",
                request::tool_of(about_one)
            )),
            Some(context) => of_one(about_one, &context.simulation_id),
        },
    }
}

/// Steps for a request about the loaded simulation.
fn of_one(request: &Request, id: &str) -> Course {
    let simulation = json!({ "simulation_id": id });
    match request {
        Request::Run => one(tool::RUN, simulation, "Run the simulation."),
        Request::Parameters => one(tool::LIST_PARAMETERS, simulation, "List the parameters."),
        Request::Results(_) => {
            let arguments = json!({ "simulation_id": id, "points_max": 2 });
            one(tool::GET_RESULTS, arguments, "Read the results.")
        }
        Request::Read(path) => {
            let arguments = json!({ "simulation_id": id, "parameter_path": path });
            one(tool::GET_PARAMETER, arguments, "Read the value.")
        }
        Request::Change { path, value: Some(Quantity { value, unit }) } => {
            let unit = unit.or_else(|| request::plain_unit(path));
            match unit {
                Some(unit) => {
                    let set = set(id, path, *value, unit);
                    Course::Calls(vec![set], "Change the parameter.")
                }
                None => Course::Words(format!(
                    "{} of what? State the unit, such as {} mg or {} h.",
                    number(*value),
                    number(*value),
                    number(*value)
                )),
            }
        }
        Request::Change { path, value: None } => {
            Course::Words(format!("What is the new value of {path}? State a number and its unit."))
        }
        Request::Simulate(_)
        | Request::Load
        | Request::Models
        | Request::Help
        | Request::Unknown => Course::Words(HELP.to_owned()),
    }
}

fn one(tool: &str, arguments: Value, why: &'static str) -> Course {
    Course::Calls(vec![call(tool, arguments)], why)
}

fn call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall::built_in(tool, arguments)
}

fn set(id: &str, path: &str, value: f64, unit: &str) -> ToolCall {
    let arguments =
        json!({ "simulation_id": id, "parameter_path": path, "value": value, "unit": unit });
    call(tool::SET, arguments)
}

/// Steps in order: list models, load, list parameters, set those that differ, run.
fn simulate(state: &AgentState, regimen: &Regimen, run: bool) -> Course {
    let mut calls = vec![call(tool::LIST_MODELS, json!({}))];
    let listed = state
        .intermediate_steps
        .iter()
        .rev()
        .find(|step| step.tool == tool::LIST_MODELS && step.error.is_none());
    let Some(listed) = listed else {
        return Course::Calls(calls, "First list the models.");
    };
    let models = models(&listed.result);
    let model = match chosen(&models, &state.turn.request, regimen) {
        Ok(model) => model,
        Err(words) => return Course::Words(words),
    };
    if let Some(Quantity { value, unit: None }) = regimen.dose {
        let value = number(value);
        return Course::Words(format!(
            "{value} of what? State the dose with its unit, such as {value} mg."
        ));
    }
    // Parameters are listed once per thread.
    calls.clear();
    let planned_id = state.fresh_id(model.path);
    calls.push(call(tool::LOAD, json!({ "model_path": model.path, "simulation_id": planned_id })));
    let loaded =
        state.turn_steps().iter().any(|step| step.tool == tool::LOAD && step.error.is_none());
    let id = match &state.simulation_context {
        // A person may have edited its name.
        Some(context) if loaded => context.simulation_id.as_str(),
        _ => planned_id.as_str(),
    };
    if !run {
        return Course::Calls(calls, "Load the model.");
    }
    calls.push(call(tool::LIST_PARAMETERS, json!({ "simulation_id": id })));
    let parameters = state
        .turn_steps()
        .iter()
        .find(|step| step.tool == tool::LIST_PARAMETERS && step.error.is_none());
    if let Some(parameters) = parameters {
        calls.extend(differing(regimen, &parameters.result, id));
        calls.push(call(tool::RUN, json!({ "simulation_id": id })));
    }
    Course::Calls(calls, "Load a simulation, set the regimen and run it.")
}

fn models(listed: &Value) -> Vec<Model<'_>> {
    let models = listed.get("models").and_then(Value::as_array).into_iter().flatten();
    models
        .filter_map(|entry| {
            let text = |name: &str| entry.get(name).and_then(Value::as_str);
            let path = text("model_path")?;
            Some(Model {
                path,
                drug: text("drug").unwrap_or(path),
                route: text("route").unwrap_or_default(),
            })
        })
        .collect()
}

/// The model that the request names, or a question.
fn chosen<'a, 'b>(
    models: &'b [Model<'a>],
    request: &str,
    regimen: &Regimen,
) -> Result<&'b Model<'a>, String> {
    let request = request.to_lowercase();
    let is_named = |model: &&Model<'_>| {
        request.contains(&model.path.to_lowercase()) || request.contains(&model.drug.to_lowercase())
    };
    let exact: Vec<&Model<'_>> =
        models.iter().filter(|model| request.contains(&model.path.to_lowercase())).collect();
    let named: Vec<&Model<'_>> =
        if exact.len() == 1 { exact } else { models.iter().filter(is_named).collect() };
    let names = |models: &mut dyn Iterator<Item = &&Model<'_>>| {
        models.map(|model| model.path).collect::<Vec<_>>().join(", ")
    };
    let fits = |model: &&&Model<'_>| regimen.route.is_none_or(|route| model.route == route);
    let fitting: Vec<&&Model<'_>> = named.iter().filter(fits).collect();
    match (named.len(), fitting.as_slice()) {
        (_, [model]) => Ok(**model),
        (0, _) => {
            let all: Vec<&Model<'_>> = models.iter().collect();
            Err(format!("Which model? Available: {}.", names(&mut all.iter())))
        }
        (_, []) => Err(format!(
            "{} has a different route: {}. Which do you mean?",
            names(&mut named.iter()),
            named.iter().map(|model| model.route).collect::<Vec<_>>().join(", ")
        )),
        (_, several) => {
            Err(format!("Which of these models: {}?", names(&mut several.iter().copied())))
        }
    }
}

/// The settings of the regimen that differ from the simulation's.
fn differing(regimen: &Regimen, listed: &Value, id: &str) -> Vec<ToolCall> {
    let parameters: Vec<&Value> =
        listed.get("parameters").and_then(Value::as_array).into_iter().flatten().collect();
    let value_of = |path: &str| {
        let entry = parameters.iter().find(|entry| entry["parameter_path"] == path)?;
        entry["value"].as_f64()
    };
    let interval = regimen.interval_h.or_else(|| value_of("Dosing|Interval"));
    let counted = regimen
        .duration_h
        .zip(interval)
        .map(|(duration, interval)| (duration / interval).ceil().max(1.0));
    let given = regimen.interval_h.is_some() || regimen.doses.is_some();
    let doses = regimen.doses.or(counted.filter(|_| given));
    let duration = regimen.duration_h.or_else(|| Some(regimen.doses? * interval?));
    let dose = regimen.dose.and_then(|dose| Some((dose.value, dose.unit?)));
    let wanted = [
        ("Dosing|Dose", dose),
        ("Dosing|Interval", regimen.interval_h.map(|hours| (hours, "h"))),
        ("Dosing|Doses", doses.map(|doses| (doses, "count"))),
        ("Simulation|Duration", duration.map(|hours| (hours, "h"))),
    ];
    let differs = |path: &str, value: f64, unit: &str| {
        let canonical = ["mg", "h", "count"].contains(&unit);
        !canonical
            || value_of(path).is_none_or(|now| (now - value).abs() > SAME * now.abs().max(1.0))
    };
    wanted
        .into_iter()
        .filter_map(|(path, wanted)| wanted.map(|(value, unit)| (path, value, unit)))
        .filter(|(path, value, unit)| differs(path, *value, unit))
        .map(|(path, value, unit)| set(id, path, value, unit))
        .collect()
}

/// A summary of this turn's calls.
pub(super) fn summary(state: &AgentState) -> String {
    let request = request::read(&state.turn.request);
    let mut lines: Vec<String> =
        state.turn_steps().iter().filter_map(|step| outcome(step, &request)).collect();
    if let Some(rejected) = &state.turn.rejected {
        lines.push(format!("{rejected} Tell me what to do instead."));
    }
    if let Some(limit) = &state.turn.limit {
        lines.push(format!("This turn reached its limit of {limit}."));
    }
    if lines.is_empty() {
        lines.push("Nothing was done.".to_owned());
    }
    lines.join("\n")
}

/// The summary of one call; `None` for intermediate lookups.
fn outcome(step: &LoggedStep, request: &Request) -> Option<String> {
    let LoggedStep { tool, result, .. } = step;
    if let Some(error) = &step.error {
        return Some(format!("`{tool}` failed: {error}"));
    }
    let text = |name: &str| result.get(name).and_then(Value::as_str).unwrap_or("?");
    let figure = match request {
        Request::Results(figure) => *figure,
        _ => None,
    };
    Some(match tool.as_str() {
        tool::LIST_MODELS if *request != Request::Models => return None,
        tool::LIST_PARAMETERS if *request != Request::Parameters => return None,
        tool::LIST_MODELS => {
            let list = models(result)
                .iter()
                .map(|m| format!("{} ({}, {})", m.path, m.drug, m.route))
                .collect::<Vec<_>>();
            format!("Available models: {}.", list.join("; "))
        }
        tool::LOAD => format!("Loaded {} as {}.", text("model_path"), text("simulation_id")),
        tool::SET => {
            let previous = quantity(result.get("previous"));
            format!(
                "{} is now {} (before: {previous}).",
                text("parameter_path"),
                quantity(Some(result))
            )
        }
        tool::RUN => {
            format!("Ran {}: {}.", text("simulation_id"), figures(&result["summary"], None))
        }
        tool::GET_RESULTS => {
            let stale = if result["is_current"] == false {
                " These results are older than the latest change; say run to update them."
            } else {
                ""
            };
            format!("{}: {}.{stale}", text("simulation_id"), figures(&result["summary"], figure))
        }
        tool::GET_PARAMETER => format!("{} is {}.", text("parameter_path"), quantity(Some(result))),
        tool::LIST_PARAMETERS => parameters(result),
        _ => return None,
    })
}

fn parameters(result: &Value) -> String {
    let listed = result.get("parameters").and_then(Value::as_array).into_iter().flatten();
    let each = listed.map(|entry| {
        format!("{} {}", entry["parameter_path"].as_str().unwrap_or("?"), quantity(Some(entry)))
    });
    format!("Parameters: {}.", each.collect::<Vec<_>>().join(", "))
}

fn figures(summary: &Value, figure: Option<Figure>) -> String {
    let of = |name: &str| quantity(summary.get(name));
    let cmax = || format!("Cmax {} at {}", of("cmax"), of("tmax"));
    let auc = || {
        format!("AUC {} over the simulated time, {} to infinity", of("auc_0_t"), of("auc_0_inf"))
    };
    match figure {
        Some(Figure::Cmax) => cmax(),
        Some(Figure::Tmax) => format!("Tmax {}", of("tmax")),
        Some(Figure::Auc) => auc(),
        Some(Figure::HalfLife) => format!("half-life {}", of("half_life")),
        None => format!("{}, {}, half-life {}", cmax(), auc(), of("half_life")),
    }
}

/// Formats `{"value", "unit"}` for people.
fn quantity(value: Option<&Value>) -> String {
    let Some((number_, unit)) =
        value.and_then(|v| Some((v.get("value")?.as_f64()?, v.get("unit")?.as_str()?)))
    else {
        return "?".to_owned();
    };
    match unit {
        "count" | "fraction" => number(number_),
        unit => format!("{} {unit}", number(number_)),
    }
}

/// Rounds to four significant digits.
fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    #[expect(clippy::cast_possible_truncation, reason = "a double's exponent is small")]
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = usize::try_from(3 - magnitude).unwrap_or(0).min(12);
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_significant_digits() {
        for (value, text) in [
            (250.0, "250"),
            (7.7512, "7.751"),
            (0.012_345, "0.01235"),
            (1052.63, "1053"),
            (0.0, "0"),
            (5.4, "5.4"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
