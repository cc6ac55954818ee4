//! The loop: a model calls tools until it gives its result.
//!
//! `list` reads the servers' tools, `think` asks the model, `act` calls the tools that it named. A result with a schema is
//! the arguments of a tool `finish`, which the loop itself handles.

use std::sync::Arc;

use graph::agent::{Agent, Settings, leak, leak_all};
use graph::definition::{Context, Finish, Graph, InputError, Node, Route, Scope};
use graph::effect::{Chat, Content, Effect, INPUT_STEP, Message, Reply, ToolCall, ToolSpec};
use graph::outcome::{Outcome, ToolOutcome, ToolResult};
use graph::presentation::Presentation;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::file::Checked;

/// The tool whose arguments are the result.
pub const FINISH: &str = "finish";
/// Replies in a row that cannot be used (no result, an invalid one, unknown tools only), after which the model counts as one
/// that failed.
pub const USELESS_REPLIES_MAX: u32 = 3;
/// Tool calls of one reply; further ones are refused and not made.
pub const CALLS_AT_ONCE_MAX: usize = 16;
/// Longest reply, in tokens.
const OUTPUT_TOKENS: u32 = 4_096;

/// The state. The file is not a part of what is journaled: its digest is the version.
#[derive(Clone, Debug, Serialize)]
pub struct State {
    #[serde(skip)]
    file: Arc<Checked>,
    #[serde(flatten)]
    kept: Kept,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    tools: Vec<ToolSpec>,
    said: Vec<Message>,
    calls: Vec<ToolCall>,
    /// Useless replies in a row.
    useless: u32,
}

static NODES: [Node<State>; 3] = [
    Node { name: "list", to: &["think"], ask: list, fold: listed },
    Node { name: "think", to: &["act", "think"], ask: think, fold: thought },
    Node { name: "act", to: &["think"], ask: act, fold: acted },
];

/// The agent. Its texts live as long as this process.
pub(crate) fn agent(checked: Checked) -> Agent {
    let file = &checked.file;
    let summary = file.summary.clone().unwrap_or_else(|| "An agent without code.".to_owned());
    let graph = Graph {
        version: leak(checked.version().to_owned()),
        budget: checked.budget(),
        scope: Scope::Session,
        critical: leak_all(file.critical.clone()),
        at_most_once: leak_all(file.at_most_once.clone()),
        servers: leak_all(file.servers.clone()),
        ..Graph::new(leak(file.name.clone()), leak(summary), &NODES, no_init, no_policy)
    };
    let (model, template) = (file.model.clone(), file.title.clone().map(leak));
    let input_schema = checked.input.as_ref().map(|(_, schema)| schema.clone());
    let file = Arc::new(checked);
    let begins = file.clone();
    let agent = Agent::from_parts(
        Box::leak(Box::new(graph)),
        move |input, settings| begin(&begins, input, settings),
        move |state| Ok(State { file: file.clone(), kept: serde_json::from_value(state)? }),
    );
    let agent = agent.without_policy().with_model(model);
    let agent = agent.with_presentation(Presentation { template, ..Presentation::DEFAULT });
    match input_schema {
        Some(schema) => agent.with_input_schema(schema),
        None => agent,
    }
}

/// The graph's own `init` cannot know the file; [`Agent::from_parts`] replaces it.
fn no_init(_: &Value, _: &Settings) -> Result<State, InputError> {
    Err(InputError::new("input", "an agent that was built from its file"))
}

/// Never called: the agent has no policy.
fn no_policy(_: &State, _: &Chat) -> Reply {
    Reply::says("")
}

fn begin(file: &Arc<Checked>, input: &Value, _: &Settings) -> Result<State, InputError> {
    let violations = file.input.as_ref().and_then(|(schema, _)| schema.violations(input));
    if let Some(violations) = violations {
        return Err(InputError::new(
            "input",
            format!("a value that fits its schema: {violations}"),
        ));
    }
    let said = vec![Message::user(INPUT_STEP, input.to_string())];
    let kept = Kept { tools: Vec::new(), said, calls: Vec::new(), useless: 0 };
    Ok(State { file: file.clone(), kept })
}

fn list(state: &State, _: &Context<'_>) -> Effect {
    let servers = &state.file.file.servers;
    if servers.is_empty() {
        return Effect::Nothing;
    }
    Effect::Tools(servers.iter().map(|server| ToolCall::catalogue(server)).collect())
}

fn listed(state: &mut State, outcome: Outcome) -> Route {
    if !state.file.file.servers.is_empty() {
        let results = outcome.results();
        // A model that lacks a server's tools would answer as if there were none.
        if let Some(failed) = results.iter().find(|result| result.ok().is_none()) {
            return unlisted(failed);
        }
        let allowed = state.file.file.tools.as_deref();
        let is_allowed = |tool: &ToolSpec| allowed.is_none_or(|names| call_of(tool).is_in(names));
        let tools = results.iter().filter_map(ToolResult::ok).flat_map(ToolSpec::catalogue);
        state.kept.tools = tools.filter(is_allowed).collect();
    }
    if let Some((_, schema)) = &state.file.result {
        state.kept.tools.push(ToolSpec {
            server: None,
            name: FINISH.to_owned(),
            description: "Ends the work. Call it alone, with the result.".to_owned(),
            input_schema: schema.clone(),
        });
    }
    Route::To("think")
}

fn unlisted(failed: &ToolResult) -> Route {
    let server = failed.call.server.as_deref().unwrap_or_default();
    let (category, problem) = match &failed.outcome {
        ToolOutcome::Failed(failure) => (failure.category.as_str(), failure.message.clone()),
        _ => ("mcp_init", failed.error().unwrap_or_default()),
    };
    let message = format!("server `{server}` does not list its tools: {problem}");
    Route::End(Finish::failed("ToolError", "Unavailable", &message, category))
}

fn call_of(tool: &ToolSpec) -> ToolCall {
    ToolCall {
        id: None,
        server: tool.server.clone(),
        tool: tool.name.clone(),
        arguments: Value::Null,
    }
}

fn think(state: &State, _: &Context<'_>) -> Effect {
    let Kept { said, tools, .. } = &state.kept;
    let chat = Chat::new(&state.file.file.prompt, said.clone(), tools.clone());
    Effect::Chat(Chat { max_output_tokens: OUTPUT_TOKENS, ..chat })
}

fn thought(state: &mut State, outcome: Outcome) -> Route {
    let (seq, reply) = (outcome.seq, outcome.reply());
    state.kept.said.push(Message::assistant(seq, &reply));
    if reply.calls.is_empty() {
        return spoke(state, seq, reply);
    }
    let mut refused = Vec::new();
    let mut calls = Vec::new();
    let is_alone = reply.calls.len() == 1;
    for call in reply.calls {
        if call.tool == FINISH && call.server.is_none() && state.file.result.is_some() {
            match finished(&state.file, &call, is_alone) {
                Ok(finish) => return Route::End(finish),
                Err(problem) => refused.push((call, problem)),
            }
        } else if !state.offers(&call) {
            let problem = format!("there is no tool `{}`", call.tool);
            refused.push((call, problem));
        } else if calls.len() == CALLS_AT_ONCE_MAX {
            let problem = format!("not called: at most {CALLS_AT_ONCE_MAX} calls at once");
            refused.push((call, problem));
        } else {
            calls.push(call);
        }
    }
    let said = refused.into_iter().map(|(call, problem)| refusal(seq, call, problem));
    state.kept.said.extend(said);
    state.kept.calls = calls;
    if state.kept.calls.is_empty() {
        return state.useless("its calls name no tool of the agent, or its result does not fit");
    }
    state.kept.useless = 0;
    Route::To("act")
}

/// A reply without calls.
fn spoke(state: &mut State, seq: u32, reply: Reply) -> Route {
    if state.file.result.is_none() {
        return match reply.text.filter(|text| !text.trim().is_empty()) {
            Some(text) => Route::End(Finish::Completed(json!({ "report": text }))),
            None => state.useless("it said nothing"),
        };
    }
    let ask = format!("Call `{FINISH}` with the result.");
    state.kept.said.push(Message::user(seq, ask));
    state.useless("it gave no result")
}

/// The end with this result, or what is wrong with it.
fn finished(file: &Checked, call: &ToolCall, is_alone: bool) -> Result<Finish, String> {
    if !is_alone {
        return Err(format!("not accepted: call `{FINISH}` alone, after the other calls"));
    }
    match file.result.as_ref().and_then(|(schema, _)| schema.violations(&call.arguments)) {
        Some(violations) => Err(format!("the result does not fit its schema: {violations}")),
        None => Ok(Finish::Completed(call.arguments.clone())),
    }
}

fn refusal(seq: u32, call: ToolCall, problem: String) -> Message {
    let id = call.id.unwrap_or_default();
    let content = Content::Result { id, tool: call.tool, content: json!(problem), is_error: true };
    Message { source: seq, content }
}

fn act(state: &State, _: &Context<'_>) -> Effect {
    Effect::Tools(state.kept.calls.clone())
}

fn acted(state: &mut State, outcome: Outcome) -> Route {
    state.kept.said.extend(outcome.results().iter().map(Message::result));
    state.kept.calls.clear();
    Route::To("think")
}

impl State {
    fn offers(&self, call: &ToolCall) -> bool {
        let is_it = |tool: &ToolSpec| tool.name == call.tool && tool.server == call.server;
        self.kept.tools.iter().any(is_it)
    }

    fn useless(&mut self, what: &str) -> Route {
        self.kept.useless += 1;
        if self.kept.useless < USELESS_REPLIES_MAX {
            return Route::To("think");
        }
        let message = format!(
            "{USELESS_REPLIES_MAX} replies in a row cannot be used; of the last one: {what}"
        );
        Route::End(Finish::failed("ModelError", "Useless", &message, "model"))
    }
}

#[cfg(test)]
mod tests {
    use graph::outcome::Brought;
    use graph::question::Decision;
    use graph::testing::script::Script;

    use super::*;

    fn janitor(more: &str) -> Agent {
        let text = format!(
            "name: janitor\nprompt: Tidy.\nservers: [files]\ncritical: [delete_file]\ninput: {{ folder: string }}\n{more}"
        );
        Checked::of_yaml(&text).unwrap().agent()
    }

    fn input() -> Value {
        json!({ "folder": "box" })
    }

    fn listing() -> Script {
        let tool = |name: &str| json!({ "server": "files", "name": name, "input_schema": {} });
        let tools = json!({ "tools": [tool("list_files"), tool("delete_file")] });
        Script::new().tool("files.tools/list", tools)
    }

    fn calls(tools: &[&str]) -> Reply {
        let call = |tool: &&str| ToolCall::built_in(tool, json!({ "folder": "box" }));
        Reply::calls(tools.iter().map(call).collect())
    }

    fn finish(arguments: Value) -> Reply {
        Reply::calls(vec![ToolCall::built_in(FINISH, arguments)])
    }

    fn failed(finish: Finish) -> String {
        let Finish::Failed { error, .. } = finish else { panic!("{finish:?}") };
        error.to_string()
    }

    #[test]
    fn a_file_runs_as_a_durable_loop() {
        let script = listing()
            .model(calls(&["list_files"]))
            .tool("list_files", json!({ "files": ["a"] }))
            .model(calls(&["delete_file"]))
            .person(Decision::Approve)
            .tool("delete_file", json!({ "deleted": "a" }))
            .model(Reply::says("One file deleted."));
        let report = Finish::Completed(json!({ "report": "One file deleted." }));
        assert_eq!(script.play(&janitor(""), &input()), report);
        script.every_prefix(&janitor(""), &input());
        script.every_budget(&janitor(""), &input());
    }

    #[test]
    fn a_result_has_its_schema() {
        let agent = janitor("result: { deleted: integer }");
        let script = listing()
            .model(Reply::says("I think it is fine."))
            .model(finish(json!({ "deleted": "one" })))
            .model(finish(json!({ "deleted": 1 })));
        assert_eq!(script.play(&agent, &input()), Finish::Completed(json!({ "deleted": 1 })));
        script.every_prefix(&agent, &input());
    }

    #[test]
    fn a_model_without_a_usable_reply_has_failed() {
        let agent = janitor("result: { deleted: integer }");
        let unknown = || calls(&["format_disk"]);
        for replies in
            [[unknown(), unknown(), unknown()], [Reply::says("no"), unknown(), finish(json!({}))]]
        {
            let script = replies.into_iter().fold(listing(), Script::model);
            let error = failed(script.play(&agent, &input()));
            assert!(error.starts_with("ModelError: Useless - 3 replies in a row"), "{error}");
        }
    }

    #[test]
    fn a_result_beside_other_calls_is_not_accepted() {
        let agent = janitor("result: { deleted: integer }");
        let mut both = calls(&["list_files"]);
        both.calls.push(ToolCall::built_in(FINISH, json!({ "deleted": 1 })));
        let script = listing()
            .model(both)
            .tool("list_files", json!([]))
            .model(finish(json!({ "deleted": 0 })));
        assert_eq!(script.play(&agent, &input()), Finish::Completed(json!({ "deleted": 0 })));
    }

    #[test]
    fn a_flood_of_calls_is_bounded() {
        let flood = calls(&["list_files"; 40]);
        let script = (0..CALLS_AT_ONCE_MAX)
            .fold(listing().model(flood), |script, _| script.tool("list_files", json!([])))
            .model(Reply::says("done"));
        let report = Finish::Completed(json!({ "report": "done" }));
        assert_eq!(script.play(&janitor(""), &input()), report);
    }

    #[test]
    fn a_tool_that_the_file_does_not_list_is_not_called() {
        let script = listing().model(calls(&["delete_file"])).model(Reply::says("I may not."));
        let report = Finish::Completed(json!({ "report": "I may not." }));
        assert_eq!(script.play(&janitor("tools: [files.list_files]"), &input()), report);
    }

    #[test]
    fn a_server_without_its_tools_fails_the_session() {
        let script = Script::new().brings("files.tools/list", Brought::Error("gone".to_owned()));
        let error = failed(script.play(&janitor("model: openai:m"), &input()));
        assert_eq!(error, "ToolError: Unavailable - server `files` does not list its tools: gone");
    }

    #[test]
    fn without_a_model_the_session_fails_and_says_so() {
        let error = failed(listing().play(&janitor(""), &input()));
        assert!(error.contains("names no model"), "{error}");
    }

    #[test]
    fn an_input_that_does_not_fit_is_refused() {
        let settings = Settings::default();
        let error = janitor("").start(&json!({ "folder": 7 }), &settings).unwrap_err();
        assert!(error.to_string().contains("/folder"), "{error}");
    }
}
