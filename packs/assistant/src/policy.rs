//! The assistant without a model: rules over the request and the tools' results.
//!
//! A plan holds the steps that can be planned now and are not yet done. The reply says so if the
//! rules do not understand a request.

use graph::effect::{Author, Chat, Reply, ToolCall};
use serde_json::{Value, json};

use super::figures;
use super::regimen::{self, Target};
use super::request::quantity::Dimension;
use super::request::{self, Figure, Listing, Model, Question, Request, path};
use super::state::{AgentState, LoggedStep};
use super::tool;

/// Help text: possible requests.
const HELP: &str = "I understand: which models are there; simulate 250 mg of theophylline every 8 h \
for 3 days; list the parameters; what is the clearance; change the dose to 300 mg and run it; what is \
the Cmax (Tmax, AUC, half-life, trough); time above 10 mg/L; concentration at 12 h; plot; compare; bye.";

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
    match course(state) {
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

/// Whether a call of the plan was made in this turn, as planned or with a person's edits.
fn is_done(state: &AgentState, call: &ToolCall) -> bool {
    let steps = state.turn_steps();
    let amended = state.turn.amended_at.saturating_sub(state.turn.first_step).min(steps.len());
    let last_change = steps.iter().rposition(|step| step.tool == tool::SET).map_or(0, |at| at + 1);
    let counted = match call.tool.as_str() {
        tool::SET => &steps[amended..],
        tool::RUN | tool::GET_RESULTS => &steps[last_change.max(amended)..],
        _ => steps,
    };
    let is_same = |step: &LoggedStep| {
        let planned = step.planned.as_ref().unwrap_or(&step.arguments);
        let is_it = *planned == call.arguments || step.arguments == call.arguments;
        step.tool == call.tool && step.error.is_none() && is_it
    };
    counted.iter().any(is_same)
}

fn course(state: &AgentState) -> Course {
    let Some(models) = state.models() else {
        return Course::Calls(vec![call(tool::LIST_MODELS, json!({}))], "First list the models.");
    };
    let request = match state.goal() {
        Ok(request) => request,
        Err(question) => return Course::Words(asked(state, &question)),
    };
    match request.listing {
        Some(Listing::Help) => return Course::Words(HELP.to_owned()),
        Some(Listing::Models) => return one(tool::LIST_MODELS, json!({}), "List the models."),
        Some(Listing::Parameters) | None => {}
    }
    if request.figures == [Figure::Compare] && request.changes.is_empty() {
        return Course::Words(figures::comparison(state));
    }
    let planned = match state.is_new(&request, &models) {
        true => simulate(state, &request, &models),
        false => of_loaded(state, &request, &models),
    };
    planned.unwrap_or_else(|question| Course::Words(asked(state, &question)))
}

/// A question, with what the rules understand where the whole text meant nothing to them.
fn asked(state: &AgentState, question: &Question) -> String {
    let words = &question.words;
    if words.starts_with("I did not understand") {
        return format!("{words} {HELP}");
    }
    let has_acted =
        state.turn_steps().iter().any(|step| tool::CRITICAL.contains(&step.tool.as_str()));
    if has_acted { words.clone() } else { format!("Nothing was done yet. {words}") }
}

/// Steps for a request about the loaded simulation.
fn of_loaded(state: &AgentState, request: &Request, models: &[Model]) -> Result<Course, Question> {
    let (Some(context), Some(model)) = (&state.simulation_context, state.loaded(models)) else {
        if request.simulates || request.sets(path::DOSE) {
            state.chosen(request, models)?;
        }
        return Err(Question::new(format!(
            "No simulation is loaded yet, so `{}` has no target. Load one first, for example: \
             simulate 250 mg of theophylline.",
            last_tool(request)
        )));
    };
    let id = state.renamed(&context.simulation_id);
    let simulation = json!({ "simulation_id": id });
    if request.listing == Some(Listing::Parameters) {
        return Ok(one(tool::LIST_PARAMETERS, simulation, "List the parameters."));
    }
    if let Some(path) = request.reads.first() {
        let read = |path| {
            call(tool::GET_PARAMETER, json!({ "simulation_id": id, "parameter_path": path }))
        };
        let calls = request.reads.iter().map(read).collect();
        debug_assert!(!path.is_empty(), "a parameter has a name");
        return Ok(Course::Calls(calls, "Read the values."));
    }
    let mut calls = Vec::new();
    if !request.changes.is_empty() || request.route.is_some() || request.weight.is_some() {
        let Some(base) = state.base(id) else {
            return Ok(one(tool::LIST_PARAMETERS, simulation, "Look at the values first."));
        };
        let targets = regimen::targets(request, &model, &base, false)?;
        calls.extend(changes(state, id, &targets));
    } else if request.alters {
        return Err(Question::new(
            "What is to change, and to which value? Such as: 300 mg every 12 h.",
        ));
    }
    let is_regimen = request.simulates || (!request.alters && !request.changes.is_empty());
    if request.runs.unwrap_or(is_regimen) {
        calls.push(call(tool::RUN, simulation));
    }
    calls.extend(figures::fetch(id, request));
    Ok(Course::Calls(calls, "Change the simulation and run it as requested."))
}

/// Steps of a new simulation in order: load, list parameters, set those that differ, run.
fn simulate(state: &AgentState, request: &Request, models: &[Model]) -> Result<Course, Question> {
    let model = state.chosen(request, models)?;
    let only_asks = request.changes.is_empty() && !request.simulates && !request.loads;
    if only_asks
        && request.runs.is_none()
        && !(request.reads.is_empty() && request.figures.is_empty())
    {
        return Err(Question::new(format!(
            "No simulation of {} is loaded. Say: load {}.",
            model.drug, model.path
        )));
    }
    if let Some(defaults) = state.defaults(&model.path) {
        regimen::targets(request, &model, &defaults, true)?;
    }
    let planned_id = state.fresh_id(&model.path);
    let load = json!({ "model_path": model.path, "simulation_id": planned_id });
    let load = call(tool::LOAD, load);
    let mut loads = state.turn_steps().iter().rev().filter(|step| step.tool == tool::LOAD);
    let loaded = loads.find(|step| {
        step.error.is_none() && *step.planned.as_ref().unwrap_or(&step.arguments) == load.arguments
    });
    // A person may have edited its name.
    let id = loaded.and_then(|step| step.result["simulation_id"].as_str()).unwrap_or(&planned_id);
    let id = state.renamed(id);
    let simulation = json!({ "simulation_id": id });
    let runs = request.runs.unwrap_or(!request.loads);
    let mut calls = vec![load];
    if !runs && request.changes.is_empty() {
        return Ok(Course::Calls(calls, "Load the model."));
    }
    calls.push(call(tool::LIST_PARAMETERS, simulation.clone()));
    if loaded.is_some() && state.values(id).is_some() {
        let base = state.base(id).unwrap_or_default();
        let targets = regimen::targets(request, &model, &base, true)?;
        calls.extend(changes(state, id, &targets));
        calls.extend(runs.then(|| call(tool::RUN, simulation)));
        calls.extend(figures::fetch(id, request));
    }
    Ok(Course::Calls(calls, "Load a simulation, set the regimen and run it."))
}

/// The settings that differ from the simulation's.
fn changes(state: &AgentState, id: &str, targets: &[Target]) -> Vec<ToolCall> {
    let now = state.values(id).unwrap_or_default();
    let is_there = |target: &Target| {
        let setting = now.get(target.path);
        setting.is_some_and(|setting| regimen::same(setting.value, target.value))
    };
    targets.iter().filter(|target| !is_there(target)).map(|target| set(id, target)).collect()
}

fn one(tool: &str, arguments: Value, why: &'static str) -> Course {
    Course::Calls(vec![call(tool, arguments)], why)
}

fn call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall::built_in(tool, arguments)
}

/// Sets a parameter, in its canonical unit.
fn set(id: &str, target: &Target) -> ToolCall {
    let dimension = request::dimension_of(target.path);
    let unit = dimension.map_or("", Dimension::canonical);
    let arguments = json!({ "simulation_id": id, "parameter_path": target.path,
        "value": target.value, "unit": unit });
    call(tool::SET, arguments)
}

/// The final tool of a request, for messages.
fn last_tool(request: &Request) -> &'static str {
    if request.runs == Some(true) {
        tool::RUN
    } else if !request.changes.is_empty() || request.alters {
        tool::SET
    } else if !request.figures.is_empty() {
        tool::GET_RESULTS
    } else if request.listing.is_some() {
        tool::LIST_PARAMETERS
    } else if !request.reads.is_empty() {
        tool::GET_PARAMETER
    } else {
        tool::RUN
    }
}

/// A summary of this turn's calls.
pub(super) fn summary(state: &AgentState) -> String {
    let request = state.goal().unwrap_or_default();
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
    Some(match tool.as_str() {
        tool::LIST_MODELS if request.listing != Some(Listing::Models) => return None,
        tool::LIST_PARAMETERS if request.listing != Some(Listing::Parameters) => return None,
        tool::LIST_MODELS => {
            let entries = result.get("models").and_then(Value::as_array).into_iter().flatten();
            let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or("?").to_owned();
            let shown = |entry: &Value| {
                let [path, drug, route] =
                    ["model_path", "drug", "route"].map(|name| text(entry, name));
                format!("{path} ({drug}, {route})")
            };
            format!("Available models: {}.", entries.map(shown).collect::<Vec<_>>().join("; "))
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
            format!("Ran {}: {}.", text("simulation_id"), figures::all(&result["summary"]))
        }
        tool::GET_RESULTS => {
            let stale = if result["is_current"] == false {
                " These results are older than the latest change; say run to update them."
            } else {
                ""
            };
            format!(
                "{}: {}{stale}",
                text("simulation_id"),
                figures::found(result, &request.figures)
            )
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

/// Formats `{"value", "unit"}` with all digits.
fn quantity(value: Option<&Value>) -> String {
    let Some((value, unit)) =
        value.and_then(|v| Some((v.get("value")?.as_f64()?, v.get("unit")?.as_str()?)))
    else {
        return "?".to_owned();
    };
    match unit {
        "count" | "fraction" => request::number(value),
        unit => format!("{} {unit}", request::number(value)),
    }
}
