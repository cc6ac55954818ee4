//! The graph: plan, select, confirm, execute, recover, respond; then wait for the next message.
//!
//! ```text
//! begin → catalogue → planner → tool_selection → confirmation_gate → tool_execution
//!            ↑          ↑  │          ↑  │  └ not critical ──────────────↗   │  │
//!            │          │  └ no call  │  └ nothing left: planner              │  │ error_recovery → planner
//!            │          │     ↓       └───────────────────────────────────────┘
//!          listen ←── response_synthesis
//! ```
//!
//! Every question suspends the session. `listen` asks for the next message, with the last reply as
//! its prompt. `confirmation_gate` asks about one call, and only that call is made. An unanswered
//! question ends the thread.

use std::time::Duration;

use graph::agent::Settings;
use graph::budget::{Budget, Crossed};
use graph::definition::{Attempts, Context, Graph, InputError, Node, Route, Scope};
use graph::effect::{Author, Chat, Effect, INPUT_STEP, Reply, ToolCall, ToolChoice, ToolSpec};
use graph::outcome::{CATEGORY_TOOL_CHANGED, Outcome, ToolOutcome};
use graph::question::{Decision, Question};
use serde_json::{Value, json};

use super::policy;
use super::prompt;
use super::state::{AgentState, LoggedStep, PendingCall, Plan, Said};
use super::tool::{self, SERVER};
use super::turn::is_farewell;
use super::witness;

const BEGIN: &str = "begin";
const CATALOGUE: &str = "catalogue";
const PLANNER: &str = "planner";
const TOOL_SELECTION: &str = "tool_selection";
const CONFIRMATION_GATE: &str = "confirmation_gate";
const TOOL_EXECUTION: &str = "tool_execution";
const ERROR_RECOVERY: &str = "error_recovery";
const RESPONSE_SYNTHESIS: &str = "response_synthesis";
const LISTEN: &str = "listen";

/// The input schema as JSON text.
pub const INPUT_SCHEMA: &str = include_str!("input.schema.json");

/// Timeout of a question; the thread then ends.
pub const THREAD_IDLE: Duration = Duration::from_secs(24 * 3_600);

/// Most questions of a thread. Each costs an invocation, and a session has a hundred. At the limit
/// the thread ends and says so.
pub const QUESTIONS_MAX: u32 = 80;

/// Longest message, in characters. The agent rejects a longer one.
pub const MESSAGE_CHARS_MAX: usize = 8_000;

/// Most calls of one plan. The agent drops further calls and tells the planner.
const PLAN_STEPS_MAX: usize = 12;

/// After this many failures in one turn the agent stops planning again.
const FAILURES_MAX: usize = 3;

const OUTPUT_TOKENS_MAX: u32 = 2_048;

/// Timeout of a model call, in seconds.
const REPLY_SECONDS_MAX: u32 = 60;

/// The opening message if the input has none.
const GREETING: &str = "What should be simulated? For example: simulate 250 mg of theophylline \
every 8 h for 3 days.";

pub static GRAPH: Graph<AgentState> = Graph {
    name: "assistant",
    version: "4",
    summary: "Runs pharmacokinetic simulations; asks before each change.",
    start: BEGIN,
    nodes: &[
        Node { name: BEGIN, to: &[CATALOGUE, LISTEN], ask: |_, _| Effect::Nothing, fold: begin },
        Node { name: CATALOGUE, to: &[PLANNER, LISTEN], ask: ask_catalogue, fold: fold_catalogue },
        Node {
            name: PLANNER,
            to: &[TOOL_SELECTION, RESPONSE_SYNTHESIS, LISTEN],
            ask: ask_planner,
            fold: fold_plan,
        },
        Node {
            name: TOOL_SELECTION,
            to: &[CONFIRMATION_GATE, TOOL_EXECUTION, PLANNER, RESPONSE_SYNTHESIS],
            ask: |_, _| Effect::Nothing,
            fold: select,
        },
        Node {
            name: CONFIRMATION_GATE,
            to: &[TOOL_EXECUTION, TOOL_SELECTION, PLANNER],
            ask: ask_confirmation,
            fold: fold_confirmation,
        },
        Node {
            name: TOOL_EXECUTION,
            to: &[TOOL_SELECTION, ERROR_RECOVERY],
            ask: ask_tool,
            fold: fold_tool,
        },
        Node {
            name: ERROR_RECOVERY,
            to: &[PLANNER, RESPONSE_SYNTHESIS],
            ask: |_, _| Effect::Nothing,
            fold: recover,
        },
        Node { name: RESPONSE_SYNTHESIS, to: &[LISTEN], ask: ask_response, fold: fold_response },
        Node { name: LISTEN, to: &[CATALOGUE, PLANNER, LISTEN], ask: listen, fold: fold_message },
    ],
    init,
    budget: Budget {
        tokens: Some(60_000),
        calls: Some(24),
        visits: Some(150),
        seconds: Some(900),
        micro_usd: None,
    },
    scope: Scope::Turn,
    on_limit,
    on_limit_to: &[],
    policy: policy::reply,
    attempts: Attempts { chat: 2, tool: 3 },
    at_most_once: &[],
    critical: tool::CRITICAL,
    servers: &[SERVER],
    tool_timeout_s: 120,
};

fn init(input: &Value, _: &Settings) -> Result<AgentState, InputError> {
    let fields = input.as_object().ok_or_else(|| InputError::new("input", "a JSON object"))?;
    if let Some(other) = fields.keys().find(|name| !["message", "thread"].contains(&name.as_str()))
    {
        return Err(InputError::new(other, "only `message` and `thread`"));
    }
    let text = |name: &str, most: usize| match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if (1..=most).contains(&text.chars().count()) => {
            Ok(Some(text.clone()))
        }
        Some(_) => Err(InputError::new(name, format!("a text of 1 to {most} characters"))),
    };
    let (message, thread) = (text("message", MESSAGE_CHARS_MAX)?, text("thread", 128)?);
    let mut state = AgentState { thread, ..AgentState::default() };
    if let Some(message) = message {
        state.begin_turn(INPUT_STEP, 0, &message, message.clone());
    }
    Ok(state)
}

fn begin(state: &mut AgentState, outcome: Outcome) -> Route {
    if state.turn.request.is_empty() {
        state.reply = GREETING.to_owned();
        return Route::To(LISTEN);
    }
    state.turn.began_ms = outcome.at.millis();
    Route::To(CATALOGUE)
}

fn ask_catalogue(_: &AgentState, _: &Context<'_>) -> Effect {
    Effect::Tools(vec![ToolCall::catalogue(SERVER)])
}

fn fold_catalogue(state: &mut AgentState, outcome: Outcome) -> Route {
    let source = outcome.seq;
    let mut problem = format!("the server `{SERVER}` has none of the required tools");
    for result in outcome.results() {
        match result.outcome {
            ToolOutcome::Ok(content) => {
                let tools = ToolSpec::catalogue(&content).into_iter();
                state.offered = tools.filter_map(ours).collect();
                let reading = state.offered.iter().filter(|tool| tool.reads(&content));
                state.reading = reading.map(|tool| tool.name.clone()).collect();
            }
            ToolOutcome::Error(text) => problem = text,
            ToolOutcome::Failed(failure) => problem = failure.to_string(),
        }
    }
    if state.offered.is_empty() {
        let reply =
            format!("I cannot reach the simulations: {problem}. Repeat the message to try again.");
        return state.respond(source, reply);
    }
    Route::To(PLANNER)
}

/// A known tool of the server, with our description.
fn ours(spec: ToolSpec) -> Option<ToolSpec> {
    let (_, description) = tool::ALL.iter().find(|(name, _)| *name == spec.name)?;
    let description = (*description).to_owned();
    Some(ToolSpec { server: Some(SERVER.to_owned()), description, ..spec })
}

fn ask_planner(state: &AgentState, _: &Context<'_>) -> Effect {
    Effect::Chat(state.chat(prompt::PLANNER))
}

fn fold_plan(state: &mut AgentState, outcome: Outcome) -> Route {
    let source = outcome.seq;
    let Reply { text, calls, by } = outcome.reply();
    let text = text.filter(|text| !text.trim().is_empty());
    let text = text.map(|text| witness::short(&text));
    if calls.is_empty() {
        return match text {
            // A different prompt summarises replies after tool calls.
            Some(text) if by == Author::Policy || state.turn_steps().is_empty() => {
                state.turn.unclear = true;
                let text = match by {
                    Author::Policy => text,
                    Author::Model(_) => witness::reply(state, Some(&text)).0,
                };
                state.respond(source, text)
            }
            _ => {
                state.turn.responding = true;
                Route::To(RESPONSE_SYNTHESIS)
            }
        };
    }
    state.say(source, Said::Planner { text: text.clone(), calls: calls.clone() });
    let mut steps = calls;
    for call in steps.split_off(steps.len().min(PLAN_STEPS_MAX)) {
        state.refuse(source, &call, &format!("at most {PLAN_STEPS_MAX} calls at once"));
    }
    let is_critical = steps.first().is_some_and(|call| state.is_critical(call));
    state.plan = Some(Plan { reasoning: text.unwrap_or_default(), steps, is_critical });
    Route::To(TOOL_SELECTION)
}

/// Takes the plan's next call and validates it.
fn select(state: &mut AgentState, outcome: Outcome) -> Route {
    let unknown = state.unknown_values();
    let Some(plan) = state.plan.as_mut().filter(|plan| !plan.steps.is_empty()) else {
        state.plan = None;
        return Route::To(PLANNER);
    };
    let mut planned = plan.steps.remove(0);
    if let Some(look) = unknown {
        plan.steps.insert(0, std::mem::replace(&mut planned, look));
    }
    let (justification, next) = (plan.reasoning.clone(), plan.steps.first().cloned());
    let is_next_critical = next.is_some_and(|call| state.is_critical(&call));
    if let Some(plan) = state.plan.as_mut() {
        plan.is_critical = is_next_critical;
    }
    let call = match state.admit(&planned) {
        Ok(call) => call,
        Err(refusal) => {
            state.refuse(outcome.seq, &planned, &refusal);
            state.drop_plan(outcome.seq, "not called: an earlier call of the plan was refused");
            return state.failed(&planned, refusal, outcome.seq);
        }
    };
    let is_critical = state.is_critical(&call);
    state.awaiting_confirmation = is_critical;
    state.confirmation_prompt = is_critical.then(|| state.confirmation(&call));
    state.pending_tool_call = Some(PendingCall { call, planned: None, justification });
    Route::To(if is_critical { CONFIRMATION_GATE } else { TOOL_EXECUTION })
}

fn ask_confirmation(state: &AgentState, context: &Context<'_>) -> Effect {
    let Some(PendingCall { call, justification, .. }) = &state.pending_tool_call else {
        return Effect::Nothing;
    };
    let prompt = state.confirmation(call);
    Effect::Ask(Question {
        arguments_schema: state.schema_of(call),
        justification: Some(justification.clone()).filter(|why| !why.is_empty()),
        expires_at: Some(context.now.after(THREAD_IDLE)),
        ..Question::approval(call, prompt)
    })
}

fn fold_confirmation(state: &mut AgentState, outcome: Outcome) -> Route {
    let (source, at_ms) = (outcome.seq, outcome.at.millis());
    let answer = outcome.answer();
    let prompt = state.confirmation_prompt.take().unwrap_or_default();
    state.say(source, Said::Confirmation(prompt));
    state.awaiting_confirmation = false;
    state.asked += 1;
    let words = answer.reason.or(answer.text).filter(|words| !words.trim().is_empty());
    let farewell = words.as_deref().filter(|words| is_farewell(words));
    if let (Decision::Say, Some(farewell)) = (answer.decision, farewell) {
        let farewell = farewell.to_owned();
        state.drop_plan(source, "not called: the user ended the conversation");
        state.turn.unclear = true;
        state.end_turn(false);
        state.say(source, Said::Answer(farewell));
        return state.end("asked");
    }
    let said = match (answer.decision, &words) {
        (Decision::Approve, _) => "yes".to_owned(),
        (Decision::Edit, _) => {
            format!("yes, with {}", graph::digest::canonical(&json!(answer.arguments)))
        }
        (Decision::Reject, None) => "no".to_owned(),
        (Decision::Reject, Some(words)) => format!("no: {words}"),
        (Decision::Say, _) => words.clone().unwrap_or_default(),
        (Decision::Expired, _) => return state.end("idle"),
    };
    state.say(source, Said::Answer(said.clone()));
    state.user_feedback = Some(said);
    match (answer.decision, state.pending_tool_call.as_mut()) {
        (Decision::Approve, Some(_)) => return Route::To(TOOL_EXECUTION),
        (Decision::Edit, Some(pending)) => {
            let edited = answer.arguments.unwrap_or_default();
            let planned = std::mem::replace(&mut pending.call.arguments, edited.clone());
            pending.planned = Some(planned.clone());
            let tool = pending.call.tool.clone();
            state.carry(&tool, &planned, &edited);
            return if tool == tool::RUN && planned != edited {
                state.select_again();
                Route::To(TOOL_SELECTION)
            } else {
                Route::To(TOOL_EXECUTION)
            };
        }
        _ => {}
    }
    let tool = state.pending_tool_call.as_ref().map(|pending| pending.call.tool.clone());
    let tool = tool.unwrap_or_default();
    let reason = words.clone().map(|words| format!(": {words}")).unwrap_or_default();
    state.drop_plan(source, &format!("not called: the user did not approve `{tool}`{reason}"));
    match (answer.decision, words) {
        // Words amend the request or replace it; the plan starts again from both.
        (Decision::Say, Some(words)) => state.amend(source, at_ms, &words),
        (_, words) => {
            let why = words.map(|words| format!(" ({words})")).unwrap_or_default();
            state.turn.rejected =
                Some(format!("`{tool}` was not called because you did not approve it{why}."));
        }
    }
    Route::To(PLANNER)
}

fn ask_tool(state: &AgentState, _: &Context<'_>) -> Effect {
    let call = state.pending_tool_call.as_ref().map(|pending| pending.call.clone());
    Effect::Tools(call.into_iter().collect())
}

fn fold_tool(state: &mut AgentState, outcome: Outcome) -> Route {
    let planned = state.pending_tool_call.take().and_then(|pending| pending.planned);
    let seq = outcome.seq;
    let mut has_failed = false;
    for result in outcome.results() {
        has_failed |= result.ok().is_none();
        if matches!(&result.outcome, ToolOutcome::Failed(failure) if failure.category == CATEGORY_TOOL_CHANGED)
        {
            // The next plan starts from the list that the server offers now.
            state.offered.clear();
        }
        state.log(result, planned.clone());
    }
    if has_failed {
        state.drop_plan(seq, "not called: an earlier call of the plan failed");
        return Route::To(ERROR_RECOVERY);
    }
    Route::To(TOOL_SELECTION)
}

/// The host has already retried; the planner handles the rest.
fn recover(state: &mut AgentState, _: Outcome) -> Route {
    let failed = state.turn_steps().iter().filter(|step| step.error.is_some()).count();
    if failed < FAILURES_MAX {
        return Route::To(PLANNER);
    }
    state.turn.responding = true;
    Route::To(RESPONSE_SYNTHESIS)
}

fn ask_response(state: &AgentState, _: &Context<'_>) -> Effect {
    if state.turn.limit.is_some() {
        return Effect::Nothing;
    }
    Effect::Chat(state.chat(prompt::RESPONSE))
}

fn fold_response(state: &mut AgentState, outcome: Outcome) -> Route {
    let source = outcome.seq;
    let (text, by) = match outcome.body {
        graph::outcome::OutcomeBody::Reply(reply) => (reply.text, reply.by),
        _ => (None, Author::Policy),
    };
    let text = text.filter(|text| !text.trim().is_empty());
    let (reply, is_unchecked) = match (text, by) {
        (Some(text), Author::Policy) => (text, false),
        (None, Author::Policy) => (policy::summary(state), false),
        (text, _) => witness::reply(state, text.map(|text| witness::short(&text)).as_deref()),
    };
    state.respond_with(source, reply, is_unchecked)
}

fn listen(state: &AgentState, context: &Context<'_>) -> Effect {
    let expires_at = Some(context.now.after(THREAD_IDLE));
    Effect::Ask(Question { expires_at, ..Question::open(&state.reply) })
}

fn fold_message(state: &mut AgentState, outcome: Outcome) -> Route {
    let (source, at_ms) = (outcome.seq, outcome.at.millis());
    let answer = outcome.answer();
    state.asked += 1;
    let text = match answer.text.as_deref().map(str::trim) {
        Some(text) if answer.decision == Decision::Say => text.to_owned(),
        _ => return state.end("idle"),
    };
    if is_farewell(&text) {
        state.say(source, Said::User(text));
        return state.end("asked");
    }
    if state.asked >= QUESTIONS_MAX {
        return state.end("full");
    }
    if text.chars().count() > MESSAGE_CHARS_MAX {
        let reply = format!("I read messages of at most {MESSAGE_CHARS_MAX} characters.");
        return state.respond(source, reply);
    }
    if state.turn.unclear {
        let (base, request) = state.continued(&text);
        state.resume_turn(source, &text, request, base);
    } else {
        let base = state.refused_load();
        state.begin_turn(source, at_ms, &text, text.clone());
        state.turn.base = base;
    }
    Route::To(if state.offered.is_empty() { CATALOGUE } else { PLANNER })
}

fn on_limit(state: &mut AgentState, crossed: Crossed) -> Route {
    let limit = format!("{} {}", crossed.allowed, crossed.limit.as_str());
    state.drop_plan(crossed.seq, "not called: the turn has reached a limit");
    state.turn.limit = Some(limit);
    Route::To(RESPONSE_SYNTHESIS)
}

impl AgentState {
    fn chat(&self, system: &str) -> Chat {
        Chat {
            system: system.to_owned(),
            messages: self.for_model(),
            tools: self.offered.clone(),
            choice: ToolChoice::Auto,
            max_output_tokens: OUTPUT_TOKENS_MAX,
            temperature_percent: Some(0),
            timeout_s: Some(REPLY_SECONDS_MAX),
            ..Chat::default()
        }
    }

    /// Whether a call needs approval: it changes something by the specification, or nothing but its name
    /// says that it only reads.
    fn is_critical(&self, call: &ToolCall) -> bool {
        call.is_in(tool::CRITICAL) || !self.reading.contains(&call.tool)
    }

    fn refuse(&mut self, source: u32, call: &ToolCall, why: &str) {
        let (id, tool) = (call.id.clone().unwrap_or_default(), call.tool.clone());
        let content = json!({ "error": format!("not called: {why}") });
        self.say(source, Said::Tool { id, tool, content, is_error: true });
    }

    /// Logs a call that was not made, and routes to the recovery of failures.
    fn failed(&mut self, call: &ToolCall, why: String, step: u32) -> Route {
        self.intermediate_steps.push(LoggedStep {
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            planned: None,
            result: Value::Null,
            error: Some(why),
            step,
        });
        let failed = self.turn_steps().iter().filter(|step| step.error.is_some()).count();
        if failed < FAILURES_MAX {
            return Route::To(PLANNER);
        }
        self.turn.responding = true;
        Route::To(RESPONSE_SYNTHESIS)
    }

    /// Ends the turn with a reply and clears its state.
    fn respond(&mut self, source: u32, reply: String) -> Route {
        self.respond_with(source, reply, false)
    }

    /// The same, for a reply that leaves open whether everything was done.
    fn respond_with(&mut self, source: u32, reply: String, is_unchecked: bool) -> Route {
        self.end_turn(is_unchecked);
        self.say(source, Said::Reply(reply.clone()));
        self.reply = reply;
        self.plan = None;
        self.pending_tool_call = None;
        self.awaiting_confirmation = false;
        self.confirmation_prompt = None;
        self.turn.responding = false;
        Route::To(LISTEN)
    }
}
