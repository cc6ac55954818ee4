//! A conversation with the assistant: a simulation approved call by call, one of them with edited
//! arguments; a second run that is rejected; a farewell.

use graph::agent::Agent;
use graph::digest::canonical;
use graph::question::{Answer, Decision, OpenQuestion};
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use sim::person::{Person, careful};
use sim::scenario::Scenario;
use sim::store::Call;
use sim::tools::ToolServer;
use std::time::Duration;

/// With a named thread, simulations have the same names in every run.
pub fn scenario() -> Scenario {
    let input = json!({
        "message": "simulate 250 mg of theophylline", "thread": "sim",
    });
    Scenario {
        servers: vec![ToolServer::new("pk-sim", |_| Laboratory)],
        people: vec![Person { answer, ..Person::taking(SOON, SOON) }],
        view,
        ..Scenario::new(Agent::of(&assistant::graph::GRAPH), input)
    }
}

const SOON: Duration = Duration::from_secs(7);

/// Step numbers differ between runs. And 200.0, sent with the token, becomes 200 in the state
/// machine, which is the same number. After a change whose outcome is unknown, the agent looks at the values again.
fn view(result: &Value) -> Value {
    let steps = result["intermediate_steps"].as_array().unwrap().iter();
    let mut seen: Vec<Value> = Vec::new();
    for step in steps {
        let call = json!([step["tool"], canonical(&step["arguments"]), step["error"]]);
        if step["tool"] != "list_parameters" || !seen.contains(&call) {
            seen.push(call);
        }
    }
    json!([result["ended"], seen])
}

/// Approves the plan with a dose of 200 mg instead of 250, rejects the second run, which the person
/// requested, and leaves.
fn answer(open: &OpenQuestion, calls: &[Call]) -> Answer {
    let (question, id) = (&open.question, open.question_id);
    let words =
        |text: &str| Answer { text: Some(text.to_owned()), ..Answer::new(id, Decision::Say) };
    let is_doubt = !question.choices.contains(&Decision::Edit);
    let arguments = question.arguments.clone().unwrap_or_default();
    match question.tool.as_deref() {
        Some(_) if is_doubt => careful(open, calls),
        Some("run_simulation") if calls.iter().any(|call| call.tool == "run_simulation") => {
            Answer::new(id, Decision::Reject)
        }
        Some("set_parameter_value") if arguments["value"] == 250.0 => {
            let mut other = arguments;
            other["value"] = json!(200.0);
            Answer { arguments: Some(other), ..Answer::new(id, Decision::Edit) }
        }
        Some(_) => Answer::new(id, Decision::Approve),
        None if question.prompt.contains("Ran ") => words("run it again"),
        None => words("bye"),
    }
}

/// Replies like `pk-sim`, from the arguments alone; the simulator logs the calls.
#[derive(Clone, Copy, Debug)]
struct Laboratory;

impl ServerHandler for Laboratory {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |(name, _): &(&'static str, &str)| {
            let simulation = json!({ "simulation_id": { "type": "string" } });
            let of_one = !["list_models"].contains(name);
            let properties = if of_one { simulation } else { json!({}) };
            let schema = json!({ "type": "object", "properties": properties });
            Tool::new(*name, "Does what its name says.", schema.as_object().cloned().unwrap())
        };
        Ok(ListToolsResult::with_all_items(assistant::tool::ALL.iter().map(tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = json!(request.arguments);
        let id = &arguments["simulation_id"];
        let mg = |value: f64| json!({ "value": value, "unit": "mg/L" });
        let summary = json!({ "cmax": mg(7.5), "tmax": mg(2.0), "auc_0_t": mg(96.5),
            "auc_0_inf": mg(114.0), "half_life": mg(8.6), "doses_given": 3 });
        let answer = match request.name.as_ref() {
            "list_models" => json!({ "models": [
                { "model_path": "theophylline-oral", "drug": "theophylline", "route": "oral" },
            ] }),
            "load_simulation" => json!({ "simulation_id": id, "created": true, "revision": 0,
                "model_path": arguments["model_path"] }),
            "list_parameters" => json!({ "simulation_id": id, "parameters": [
                { "parameter_path": "Dosing|Dose", "value": 320.0, "unit": "mg" },
                { "parameter_path": "Dosing|Interval", "value": 8.0, "unit": "h" },
                { "parameter_path": "Dosing|Doses", "value": 1.0, "unit": "count" },
                { "parameter_path": "Simulation|Duration", "value": 24.0, "unit": "h" },
            ] }),
            "set_parameter_value" => json!({ "simulation_id": id, "revision": 1,
                "parameter_path": arguments["parameter_path"], "value": arguments["value"],
                "unit": arguments["unit"], "previous": { "value": 320.0, "unit": "mg" } }),
            _ => json!({ "simulation_id": id, "points": 241, "revision": 2, "summary": summary }),
        };
        Ok(CallToolResult::structured(answer).into())
    }
}
