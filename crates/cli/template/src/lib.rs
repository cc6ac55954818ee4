//! Keeps a folder below a size limit: lists the files and deletes the largest until the rest fits. Each
//! deletion waits until a person has approved it.
//!
//! Two nodes take turns: `act` calls tools, and `think` asks the model for the next action, or the
//! policy without a model. Nodes perform no IO: a node requests an effect, and Daybook runs it,
//! journals its outcome, and then passes the outcome to the node.

use graph::agent::{Agent, Settings};
use graph::budget::Budget;
use graph::definition::{Context, Finish, Graph, InputError, Node, Route};
use graph::effect::{CATALOGUE, Chat, Effect, INPUT_STEP, Message, Reply};
use graph::effect::{ToolCall, ToolSpec};
use graph::outcome::{Outcome, ToolResult};
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const PROMPT: &str = "Delete the largest file while the folder holds too much, then report.";

/// The input of a session: the folder, as the server `files` knows it, and what it may hold.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    folder: String,
    bytes_max: u64,
}

/// The state after the outcomes so far: the available tools, the messages, and the next calls.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct State {
    input: Input,
    tools: Vec<ToolSpec>,
    said: Vec<Message>,
    calls: Vec<ToolCall>,
}

// A critical tool is called at most once, and only after a person approved exactly that call.
static GRAPH: Graph<State> = Graph {
    budget: Budget { calls: Some(20), tokens: Some(50_000), ..Budget::UNLIMITED },
    critical: &["delete_file"],
    servers: &["files"],
    ..Graph::new("janitor", "Keeps a folder small; asks before deleting.", &NODES, init, policy)
};
static NODES: [Node<State>; 2] = [
    Node { name: "act", to: &["think"], ask: |s, _| Effect::Tools(s.calls.clone()), fold: acted },
    Node { name: "think", to: &["act"], ask: think, fold: thought },
];

/// The agent, for `daybook` and for tests.
pub fn agent() -> Agent {
    Agent::of(&GRAPH).with_input_schema(schema_for!(Input).to_value())
}

fn init(input: &Value, _: &Settings) -> Result<State, InputError> {
    let (input, calls) = (InputError::read(input)?, vec![ToolCall::catalogue("files")]);
    let said = vec![Message::user(INPUT_STEP, json!(input).to_string())];
    Ok(State { input, tools: vec![], said, calls })
}

fn acted(state: &mut State, outcome: Outcome) -> Route {
    let results = outcome.results();
    state.tools.extend(results.iter().filter_map(ToolResult::ok).flat_map(ToolSpec::catalogue));
    state.said.extend(results.iter().filter(|r| r.call.tool != CATALOGUE).map(Message::result));
    Route::To("think")
}

fn think(state: &State, _: &Context<'_>) -> Effect {
    Effect::Chat(Chat::new(PROMPT, state.said.clone(), state.tools.clone()))
}

fn thought(state: &mut State, outcome: Outcome) -> Route {
    let (seq, reply) = (outcome.seq, outcome.reply());
    state.said.push(Message::assistant(seq, &reply));
    let end = Route::End(Finish::Completed(json!({ "report": reply.text })));
    state.calls = reply.calls;
    if state.calls.is_empty() { end } else { Route::To("act") }
}

/// The agent's rules without a model, based on the results of its tools.
fn policy(state: &State, _: &Chat) -> Reply {
    let Input { folder, bytes_max } = &state.input;
    let call = |tool, arguments| Reply::calls(vec![ToolCall::new("files", tool, arguments)]);
    let list = call("list_files", json!({ "folder": folder }));
    let Some(brought) = state.said.last().and_then(Message::brought) else { return list };
    match brought.map(|content| (content["bytes"].as_u64(), &content["files"][0]["name"])) {
        Err(error) => Reply::says(error),
        Ok((Some(bytes), _)) if bytes <= *bytes_max => Reply::says(format!("{bytes} bytes left")),
        Ok((Some(_), largest)) => call("delete_file", json!({ "folder": folder, "name": largest })),
        Ok((None, _)) => list,
    }
}
