//! A fake `pk-sim` with the models that ship with the real one.

use std::cell::RefCell;
use std::collections::BTreeMap;

use graph::agent::Settings;
use graph::effect::{CATALOGUE, ToolCall};
use graph::outcome::Brought;
use graph::question::{Answer, Decision, OpenQuestion};
use graph::testing::{TestSession, World};
use journal::step::StepBody;
use serde_json::{Map, Value, json};

const MODELS: [(&str, &str); 3] = [
    ("gentamicin-bolus", include_str!("../../pk-sim/src/models/gentamicin-bolus.json")),
    ("theophylline-oral", include_str!("../../pk-sim/src/models/theophylline-oral.json")),
    ("vancomycin-infusion", include_str!("../../pk-sim/src/models/vancomycin-infusion.json")),
];

/// A model and the values of its parameters.
type Simulation = (String, BTreeMap<String, f64>);

/// The simulations by id.
#[derive(Default)]
pub struct Laboratory {
    simulations: RefCell<BTreeMap<String, Simulation>>,
    /// The regimens that were run.
    pub ran: RefCell<Vec<String>>,
}

fn file(model: &str) -> Value {
    let (_, text) = MODELS.iter().find(|(name, _)| *name == model).unwrap();
    serde_json::from_str(text).unwrap()
}

fn entries(model: &str, values: Option<&BTreeMap<String, f64>>) -> Vec<Value> {
    let file = file(model);
    let parameters = file["parameters"].as_object().unwrap();
    let entry = |(path, entry): (&String, &Value)| {
        let value = values.map_or(entry["value"].as_f64().unwrap(), |values| values[path]);
        json!({ "parameter_path": path, "value": value, "unit": entry["unit"],
            "min": entry["min"], "max": entry["max"] })
    };
    parameters.iter().map(entry).collect()
}

impl Laboratory {
    pub fn call(&self, call: &ToolCall) -> Brought {
        let text = |name: &str| call.arguments[name].as_str().unwrap_or_default().to_owned();
        let id = text("simulation_id");
        let mut simulations = self.simulations.borrow_mut();
        Brought::Ok(match call.tool.as_str() {
            CATALOGUE => catalogue(),
            "list_models" => {
                let entry = |(name, _): &(&str, &str)| {
                    let file = file(name);
                    json!({ "model_path": name, "drug": file["drug"], "route": file["route"],
                        "description": file["description"], "parameters": entries(name, None) })
                };
                json!({ "models": MODELS.iter().map(entry).collect::<Vec<_>>() })
            }
            "load_simulation" => {
                let model = text("model_path");
                let initial = entries(&model, None).into_iter().map(|entry| {
                    let path = entry["parameter_path"].as_str().unwrap().to_owned();
                    (path, entry["value"].as_f64().unwrap())
                });
                simulations.insert(id.clone(), (model.clone(), initial.collect()));
                json!({ "simulation_id": id, "model_path": model, "created": true, "revision": 0 })
            }
            _ if !simulations.contains_key(&id) => {
                return Brought::Error(format!("unknown simulation_id {id}"));
            }
            "list_parameters" => {
                let (model, values) = &simulations[&id];
                json!({ "simulation_id": id, "model_path": model,
                    "parameters": entries(model, Some(values)) })
            }
            "get_parameter_value" => {
                let (path, (_, values)) = (text("parameter_path"), &simulations[&id]);
                json!({ "simulation_id": id, "parameter_path": path, "value": values[&path], "unit": "?" })
            }
            "set_parameter_value" => {
                let (path, value) =
                    (text("parameter_path"), call.arguments["value"].as_f64().unwrap());
                let (_, values) = simulations.get_mut(&id).unwrap();
                let before = values.insert(path.clone(), value).unwrap();
                let unit = &call.arguments["unit"];
                json!({ "simulation_id": id, "parameter_path": path, "value": value, "unit": unit,
                    "previous": { "value": before, "unit": unit }, "revision": 1 })
            }
            "run_simulation" => {
                let (model, values) = &simulations[&id];
                self.ran.borrow_mut().push(regimen(model, values));
                json!({ "simulation_id": id, "revision": 1, "points": 241, "summary": {} })
            }
            "get_results" => json!({ "simulation_id": id, "is_current": true, "summary": {},
                "asked": call.arguments }),
            other => panic!("unexpected call of {other}"),
        })
    }
}

/// A regimen on one line, with what else differs from the model.
fn regimen(model: &str, values: &BTreeMap<String, f64>) -> String {
    let of = |path: &str| values[path];
    let mut text = format!(
        "{model} {} mg x{} q{}h for {}h",
        of("Dosing|Dose"),
        of("Dosing|Doses"),
        of("Dosing|Interval"),
        of("Simulation|Duration")
    );
    let file = file(model);
    for (path, value) in values {
        let is_named = ["Dosing|Dose", "Dosing|Doses", "Dosing|Interval", "Simulation|Duration"];
        let default = file["parameters"][path]["value"].as_f64().unwrap();
        if !is_named.contains(&path.as_str()) && default.to_bits() != value.to_bits() {
            text = format!("{text} {path}={value}");
        }
    }
    text
}

fn catalogue() -> Value {
    let text = json!({ "type": "string" });
    let of = |fields: &[(&str, &str)]| {
        let properties: Map<_, _> = fields
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), json!({ "type": kind })))
            .collect();
        json!({ "type": "object", "additionalProperties": false, "properties": properties })
    };
    let one = of(&[("simulation_id", "string")]);
    let parameter = of(&[("simulation_id", "string"), ("parameter_path", "string")]);
    let set = json!({ "type": "object", "required": ["simulation_id", "parameter_path", "value", "unit"],
        "properties": { "simulation_id": text, "parameter_path": text, "value": { "type": "number" },
            "unit": text } });
    let results = of(&[
        ("simulation_id", "string"),
        ("points_max", "integer"),
        ("at_times", "array"),
        ("above", "number"),
    ]);
    let tool = |name: &str, schema: &Value| json!({ "name": name, "description": "", "input_schema": schema });
    json!({ "tools": [
        tool("list_models", &of(&[])),
        tool("load_simulation", &of(&[("model_path", "string"), ("simulation_id", "string")])),
        tool("list_parameters", &one),
        tool("get_parameter_value", &parameter),
        tool("set_parameter_value", &set),
        tool("run_simulation", &one),
        tool("get_results", &results),
    ], "reads": ["list_models", "list_parameters", "get_parameter_value", "get_results"] })
}

/// What became of the lines of one conversation. Every call is approved.
pub struct Heard {
    /// The regimens that were run.
    pub ran: Vec<String>,
    /// The last reply.
    pub reply: String,
    /// The confirmations, in order.
    pub confirmations: Vec<String>,
    /// The changes that were made, such as `Dosing|Dose=300`.
    pub set: Vec<String>,
    pub ending: String,
}

pub fn hear(lines: &[&str]) -> Heard {
    hear_with(lines, |_| Decision::Approve)
}

/// Runs a conversation in which `decide` answers the confirmations. [`Decision::Say`] says the next
/// line there.
pub fn hear_with(lines: &[&str], mut decide: impl FnMut(&OpenQuestion) -> Decision) -> Heard {
    let laboratory = Laboratory::default();
    let agent = assistant::agent();
    let input = json!({ "message": lines[0], "thread": "t" });
    let mut session = TestSession::start(agent, input, Settings::default()).unwrap();
    let mut confirmations = Vec::new();
    let mut left = lines[1..].iter();
    let people = |open: &OpenQuestion| {
        let id = open.question_id;
        if open.question.tool.is_some() {
            confirmations.push(open.question.prompt.clone());
            match decide(open) {
                Decision::Say => {}
                decision => return Answer::new(id, decision),
            }
        }
        let text = left.next().copied().unwrap_or("bye").to_owned();
        Answer { text: Some(text), ..Answer::new(id, Decision::Say) }
    };
    session.drive(&mut World::new(|call| laboratory.call(call)).people(people));
    let result = session.steps().iter().rev().find_map(|step| match &step.body {
        StepBody::End { payload, .. } => Some(payload.clone()),
        _ => None,
    });
    let result = result.unwrap();
    let steps = result["intermediate_steps"].as_array().cloned().unwrap_or_default();
    let set = steps.iter().filter(|step| step["tool"] == "set_parameter_value").map(|step| {
        let of = |name: &str| step["arguments"][name].clone();
        format!("{}={}", of("parameter_path").as_str().unwrap(), of("value").as_f64().unwrap())
    });
    Heard {
        ran: laboratory.ran.take(),
        reply: result["reply"].as_str().unwrap_or_default().to_owned(),
        set: set.collect(),
        confirmations,
        ending: result["last_turn"].as_str().unwrap_or_default().to_owned(),
    }
}
