//! Sessions of the network agent: bundled networks, foreign servers, models.

mod eval;
mod foreign;
mod injections;
mod inventory;
mod limits;
mod models;
mod shipped;
mod vendors;

use graph::agent::Settings;
use graph::definition::Finish;
use graph::effect::{CATALOGUE, ToolCall};
use graph::outcome::Brought;
use graph::testing::{TestSession, World};
use serde_json::{Value, json};

fn run(query: &str, settings: Settings, world: &mut World<'_>) -> Finish {
    let agent = network::agent();
    TestSession::start(agent, json!({ "query": query }), settings).unwrap().drive(world)
}

/// Runs a session without a model.
fn by_rules(query: &str, tools: impl FnMut(&ToolCall) -> Brought) -> Finish {
    run(query, Settings::default(), &mut World::new(tools))
}

/// The result of a completed session.
#[track_caller]
fn completed(finish: Finish) -> Value {
    let Finish::Completed(result) = finish else { panic!("{finish:?}") };
    result
}

/// The error and category of a failed session.
#[track_caller]
fn failed(finish: Finish) -> String {
    let Finish::Failed { error, category, .. } = finish else { panic!("{finish:?}") };
    format!("{error} [{category}]")
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// A foreign server with these tools, of which those that begin with `get_` are known to only read.
fn offering(call: &ToolCall, tools: &[&str]) -> Option<Brought> {
    let reads: Vec<&str> = tools.iter().copied().filter(|tool| tool.starts_with("get_")).collect();
    offering_to_read(call, tools, &reads)
}

/// A foreign server with these tools, of which these are known to only read.
fn offering_to_read(call: &ToolCall, tools: &[&str], reads: &[&str]) -> Option<Brought> {
    match call.tool.as_str() {
        "configured_servers" => Some(Brought::Ok(json!({"servers": ["theirs"]}))),
        CATALOGUE => {
            assert_eq!(call.server.as_deref(), Some("theirs"));
            let tool = |name: &&str| {
                json!({
                    "server": "theirs", "name": name, "description": "", "input_schema": {
                        "type": "object", "required": ["device_name"], "properties": {
                            "device_name": {"type": "string"},
                            "interface": {"type": "string"}, "vrf": {"type": "string"},
                        },
                    },
                })
            };
            let tools: Vec<Value> = tools.iter().map(tool).collect();
            Some(Brought::Ok(json!({"tools": tools, "reads": reads})))
        }
        _ => None,
    }
}

/// The usual tools, without the device list.
const TOOLS: [&str; 6] =
    ["get_bgp_routing", "get_interfaces", "get_mpls_labels", "get_vrfs", "get_logs", "get_system"];
