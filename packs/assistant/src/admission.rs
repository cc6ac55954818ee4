//! Admission: validates every planned call before a person is asked about it.

use graph::effect::{ToolCall, ToolSpec};
use graph::schema::Schema;
use serde_json::{Value, json};

use super::state::{AgentState, LoggedStep};
use super::tool::{self, SERVER};

impl AgentState {
    fn spec(&self, tool: &str) -> Option<&ToolSpec> {
        self.offered.iter().find(|spec| spec.name == tool)
    }

    /// The call to make: an offered tool with valid arguments. Adds the current simulation if the
    /// call names none.
    pub(super) fn admit(&self, planned: &ToolCall) -> Result<ToolCall, String> {
        let Some(spec) = self.spec(&planned.tool) else {
            let names: Vec<&str> = self.offered.iter().map(|spec| spec.name.as_str()).collect();
            return Err(format!(
                "unknown tool `{}`; known tools: {}",
                planned.tool,
                names.join(", ")
            ));
        };
        let mut arguments = planned.arguments.clone();
        let names_simulation = arguments.get("simulation_id").is_some_and(|id| !id.is_null());
        let takes_simulation = spec.input_schema.pointer("/properties/simulation_id").is_some();
        if let Some(fields) =
            arguments.as_object_mut().filter(|_| takes_simulation && !names_simulation)
        {
            // A call may name a simulation before it is loaded; the tool reports whether it exists.
            let id = match (&self.simulation_context, planned.tool.as_str()) {
                (_, tool::LOAD) => fields
                    .get("model_path")
                    .and_then(Value::as_str)
                    .map(|model| self.fresh_id(model)),
                (context, _) => context.as_ref().map(|context| context.simulation_id.clone()),
            };
            fields.extend(id.map(|id| ("simulation_id".to_owned(), json!(id))));
        }
        let id = planned.id.clone();
        let call = ToolCall { id, ..ToolCall::new(SERVER, &planned.tool, arguments) };
        let schema = Schema::compile(&self.schema_of(&call).unwrap_or_default());
        match schema.map_err(|error| error.to_string())?.violations(&call.arguments) {
            Some(violations) => {
                Err(format!("the arguments do not match the tool's schema: {violations}"))
            }
            None => Ok(call),
        }
    }

    /// Validates arguments against the tool's schema and, where known, the parameter's range.
    pub(super) fn schema_of(&self, call: &ToolCall) -> Option<Value> {
        let base = self.spec(&call.tool)?.input_schema.clone();
        let is_listing = |step: &&LoggedStep| {
            step.tool == tool::LIST_PARAMETERS
                && step.error.is_none()
                && step.arguments.get("simulation_id") == call.arguments.get("simulation_id")
        };
        let listed = self.intermediate_steps.iter().rev().find(is_listing);
        let Some(listed) = listed.filter(|_| call.tool == tool::SET) else { return Some(base) };
        let entries = listed.result.get("parameters").and_then(Value::as_array);
        let ranges = entries.into_iter().flatten().filter_map(range);
        let all: Vec<Value> = std::iter::once(base).chain(ranges).collect();
        Some(json!({ "allOf": all }))
    }

    /// Name for the simulation that this turn loads: the thread's name with a number, or the
    /// request time in an unnamed thread.
    pub(super) fn fresh_id(&self, model: &str) -> String {
        let allowed = |text: &str, most: usize| -> String {
            let is_allowed = |c: &char| c.is_ascii_alphanumeric() || *c == '-' || *c == '_';
            text.chars().filter(is_allowed).take(most).collect()
        };
        let model = allowed(model, 30);
        let earlier = self.intermediate_steps.get(..self.turn.first_step).unwrap_or_default();
        let loaded = earlier.iter().filter(|step| step.tool == tool::LOAD).count();
        match &self.thread {
            Some(thread) => format!("{model}-{}-{}", allowed(thread, 20), loaded + 1),
            None => format!("{model}-{:x}", self.turn.began_ms),
        }
    }
}

/// The range of a parameter, in the listed unit. For other units the tool checks the range.
fn range(entry: &Value) -> Option<Value> {
    let is_it = json!({
        "parameter_path": { "const": entry.get("parameter_path")? },
        "unit": { "const": entry.get("unit")? },
    });
    let range = json!({ "minimum": entry.get("min")?, "maximum": entry.get("max")? });
    Some(json!({ "if": { "properties": is_it }, "then": { "properties": { "value": range } } }))
}
