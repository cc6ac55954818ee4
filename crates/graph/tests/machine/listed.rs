//! A graph that performs the operations listed in its input, and helpers to drive it.

use std::time::Duration;

use graph::agent::{Agent, OnModelFailure, Settings};
use graph::budget::{Budget, Crossed};
use graph::definition::{Attempts, Context, Finish, Graph, InputError, Node, Route, Scope};
use graph::effect::{Chat, Effect, Message, Reply, ToolCall, ToolSpec};
use graph::next::{Intent, Next, Request, Work};
use graph::outcome::{Brought, Outcome, OutcomeBody};
use graph::question::{OpenQuestion, Question};
use graph::testing::{TestSession, World};
use journal::step::Usage;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An operation of the graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Op {
    Chat,
    List,
    Look(Vec<Value>),
    Change(Value),
    Critical(Value),
    Confirm(Value),
    Say,
    Nap(u64),
    Remark,
    Nothing,
    Spin,
    Astray,
    /// Requests a call, and panics when it folds the result.
    PanicAtFold,
    PanicAtRequest,
    PanicInPolicy,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    ops: Vec<Op>,
    at: usize,
    log: Vec<Value>,
    messages: Vec<Message>,
    stop_at_limit: bool,
}

pub(crate) fn init(input: &Value, settings: &Settings) -> Result<State, InputError> {
    assert_ne!(*input, json!("panic"));
    let ops: Vec<Op> =
        serde_json::from_value(input.clone()).map_err(|_| InputError::new("", "a list"))?;
    let stop_at_limit = settings.options["stop_at_limit"] == true;
    Ok(State { ops, at: 0, log: Vec::new(), messages: vec![Message::user(1, "go")], stop_at_limit })
}

pub(crate) fn look(arguments: &Value) -> ToolCall {
    ToolCall::new("world", "look", arguments.clone())
}

pub(crate) fn ask(state: &State, context: &Context<'_>) -> Effect {
    let one = |tool, arguments: &Value| ToolCall::new("world", tool, arguments.clone());
    match &state.ops[state.at] {
        Op::PanicAtRequest => panic!("no request"),
        Op::PanicAtFold => Effect::Tools(vec![look(&json!({}))]),
        Op::Chat | Op::PanicInPolicy => Effect::Chat(Chat {
            messages: state.messages.clone(),
            tools: vec![ToolSpec {
                server: Some("world".to_owned()),
                name: "look".to_owned(),
                description: String::new(),
                input_schema: json!({}),
            }],
            max_output_tokens: 1_000,
            ..Chat::default()
        }),
        Op::List => Effect::Tools(vec![ToolCall::catalogue("world")]),
        Op::Look(all) => Effect::Tools(all.iter().map(look).collect()),
        Op::Change(arguments) => Effect::Tools(vec![one("change", arguments)]),
        Op::Critical(arguments) => Effect::Tools(vec![one("blast", arguments)]),
        Op::Confirm(arguments) => {
            let call = one("blast", arguments);
            assert!(context.is_critical(&call));
            Effect::Ask(Question::approval(&call, "Blast?"))
        }
        Op::Say => Effect::Ask(Question::open("What now?")),
        Op::Nap(seconds) => Effect::Sleep(context.now.after(Duration::from_secs(*seconds))),
        Op::Remark => Effect::Note { subject: "remark".to_owned(), payload: json!(state.at) },
        Op::Nothing | Op::Spin | Op::Astray => Effect::Nothing,
    }
}

pub(crate) fn fold(state: &mut State, outcome: Outcome) -> Route {
    let op = state.ops[state.at].clone();
    assert_ne!(op, Op::PanicAtFold);
    match outcome.body {
        OutcomeBody::Reply(reply) => {
            state.messages.push(Message::assistant(outcome.seq, &reply));
            state.log.push(json!(reply.text));
        }
        OutcomeBody::Results(results) => {
            state.messages.extend(results.iter().map(Message::result));
            state.log.extend(results.into_iter().map(|result| json!(result.outcome)));
        }
        OutcomeBody::Answer(answer) => state.log.push(json!(answer.decision)),
        OutcomeBody::Woke => state.log.push(json!("woke")),
        OutcomeBody::Nothing if op == Op::Spin => return Route::To("do"),
        OutcomeBody::Nothing if op == Op::Astray => return Route::To("nowhere"),
        OutcomeBody::Nothing => {}
    }
    state.at += 1;
    if state.at == state.ops.len() { Route::End(end(state)) } else { Route::To("do") }
}

pub(crate) fn end(state: &State) -> Finish {
    Finish::Completed(Value::from(state.log.clone()))
}

pub(crate) fn on_limit(state: &mut State, crossed: Crossed) -> Route {
    state.log.push(json!(crossed.limit));
    if state.stop_at_limit { Route::End(end(state)) } else { Route::To("do") }
}

pub(crate) const GRAPH: Graph<State> = Graph {
    name: "listed",
    version: "1",
    summary: "Does what its input lists.",
    start: "do",
    nodes: &[Node { name: "do", to: &["do"], ask, fold }],
    init,
    budget: Budget::UNLIMITED,
    scope: Scope::Session,
    on_limit,
    on_limit_to: &[],
    policy: |state, _| {
        assert_ne!(state.ops[state.at], Op::PanicInPolicy);
        Reply::says(format!("policy {}", state.at))
    },
    attempts: Attempts::DEFAULT,
    at_most_once: &["world.change"],
    critical: &["blast"],
    servers: &["world"],
    tool_timeout_s: 30,
};
pub(crate) static LISTED: Graph<State> = GRAPH;
/// A later version of the same agent, which uses another tool.
pub(crate) static LATER: Graph<State> = Graph {
    version: "2",
    nodes: &[Node { name: "do", to: &["do"], ask: ask_elsewhere, fold }],
    ..GRAPH
};
pub(crate) static BY_TURN: Graph<State> = Graph { scope: Scope::Turn, ..GRAPH };

pub(crate) fn ask_elsewhere(state: &State, context: &Context<'_>) -> Effect {
    match ask(state, context) {
        Effect::Tools(calls) => Effect::Tools(
            calls.into_iter().map(|call| ToolCall { tool: "peek".to_owned(), ..call }).collect(),
        ),
        other => other,
    }
}

pub(crate) fn agent() -> Agent {
    Agent::of(&LISTED)
}

pub(crate) fn ops(ops: &[Op]) -> Value {
    json!(ops)
}

pub(crate) fn start(list: &[Op]) -> TestSession {
    start_with(list, Settings::default())
}

pub(crate) fn start_with(list: &[Op], settings: Settings) -> TestSession {
    TestSession::start(&agent(), ops(list), settings).expect("an input")
}

pub(crate) fn echo(call: &ToolCall) -> Brought {
    Brought::Ok(json!({"tool": call.tool, "of": call.arguments}))
}

pub(crate) fn requests(session: &TestSession) -> Vec<Request> {
    match session.run().next() {
        Next::Perform(requests) => requests,
        other => panic!("nothing to perform: {other:?}"),
    }
}

pub(crate) fn open_question(session: &mut TestSession) -> OpenQuestion {
    match session.run().next() {
        Next::Ask(ask) => session.append(ask.body()),
        other => panic!("nothing to ask: {other:?}"),
    }
    match session.run().next() {
        Next::Wait(open) => open,
        other => panic!("nothing to wait for: {other:?}"),
    }
}

pub(crate) fn bring(session: &mut TestSession, brought: Brought) {
    bring_with(session, brought, Usage::default());
}

pub(crate) fn bring_with(session: &mut TestSession, brought: Brought, usage: Usage) {
    let request = &requests(session)[0];
    session.append(request.outcome(brought, session.now(), usage));
}

/// Journals the pending intent and returns the request to make the call.
pub(crate) fn intend(session: &mut TestSession) -> Request {
    let request = requests(session).remove(0);
    assert!(matches!(request.work, Work::Tool { intent: Intent::Needed, .. }));
    session.append(request.intent());
    let request = requests(session).remove(0);
    assert!(matches!(request.work, Work::Tool { intent: Intent::Written, .. }));
    request
}

pub(crate) fn finished(session: &TestSession) -> Value {
    match session.run().next() {
        Next::End(Finish::Completed(log)) => log,
        other => panic!("not completed: {other:?}"),
    }
}

pub(crate) fn failed(session: &TestSession) -> (String, String) {
    match session.run().next() {
        Next::End(Finish::Failed { error, category, .. }) => (error.to_string(), category),
        other => panic!("not failed: {other:?}"),
    }
}

pub(crate) fn tokens(input: u32, output: u32) -> Usage {
    Usage { input_tokens: input, output_tokens: output, ..Usage::default() }
}

pub(crate) fn with_model(on_model_failure: OnModelFailure) -> Settings {
    Settings { model: Some("big".to_owned()), on_model_failure, ..Settings::default() }
}

pub(crate) fn with_budget(budget: Budget) -> Settings {
    Settings { budget, ..with_model(OnModelFailure::Policy) }
}

pub(crate) fn everything() -> Vec<Op> {
    vec![
        Op::Chat,
        Op::Look(vec![json!({"at": 1}), json!({"at": 2.5})]),
        Op::Nothing,
        Op::Say,
        Op::Change(json!({"to": 1})),
        Op::Confirm(json!({"x": 1})),
        Op::Critical(json!({"x": 1})),
        Op::Nap(3_600),
        Op::Chat,
        Op::Critical(json!({"x": 2})),
    ]
}

pub(crate) fn talkative() -> World<'static> {
    World::new(echo)
        .models(|_| (Brought::Reply(Reply::says("hm")), tokens(10, 5)))
        .people(|open| open.question.read(open.question_id, "yes"))
}
