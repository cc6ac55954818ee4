//! The graph: validate and plan, execute the plan's steps, assess, report.
//!
//! ```text
//! servers → catalogue → input_validator_planner → network_executor ⇄ network_tools
//!                                                    ↑      │ all steps done
//!                                                    │      ▼
//!                                    repeat, bounded └ objective_assessor → report_generator → the end
//! ```
//!
//! A model may drive executor, assessor and reporter; without one, rules do. The rules read every
//! tool result in both cases, so a model cannot omit a problem. Retries, replies and calls of a
//! step are bounded.

use std::collections::BTreeMap;

use graph::agent::Settings;
use graph::budget::{Budget, Crossed};
use graph::built_in::CONFIGURED_SERVERS;
use graph::definition::{Attempts, Context, Finish, Graph, InputError, Node, Route, Scope};
use graph::effect::{Author, Chat, Effect, Form, Message, Reply, ToolCall, ToolSpec};
use graph::outcome::{Outcome, OutcomeBody, ToolOutcome, ToolResult};
use serde::Deserialize;
use serde_json::{Value, json};

use super::assess::{self, ASSESSMENT, Assessment};
use super::offer::{self, GET_DEVICES};
use super::plan::{self, Plan};
use super::query::{self, Input, Intent};
use super::report::{self, REPORT};
use super::state::{State, Work};
use super::{executor, interpret, prompt};

/// The bundled MCP server, a simulated network. Used when no other server is configured or when the
/// input names a file.
pub const SERVER: &str = "network-inventory";

pub use super::query::INPUT_SCHEMA;

const SERVERS: &str = "servers";
const CATALOGUE: &str = "catalogue";
const PLANNER: &str = "input_validator_planner";
pub(super) const EXECUTOR: &str = "network_executor";
pub(super) const TOOLS: &str = "network_tools";
pub(super) const ASSESSOR: &str = "objective_assessor";
const REPORTER: &str = "report_generator";

/// Default number of retries.
///
/// Source: the network specification, input validator and planner, `max_retries`.
pub const RETRIES_DEFAULT: u32 = 2;

/// Largest number of retries that settings accept.
pub const RETRIES_MAX: u32 = 10;

/// Most tools offered to a model.
const OFFERED_MAX: usize = 64;

const SERVERS_MAX: usize = 8;

/// Most devices of one question.
const DEVICES_MAX: usize = 8;

const OUTPUT_TOKENS_MAX: u32 = 2_048;

/// Timeout of a model call, in seconds.
const REPLY_SECONDS_MAX: u32 = 60;

/// Longest tool error that is kept, in characters.
const ERROR_CHARS_MAX: usize = 500;

/// Error category of a query without a known device.
pub const CATEGORY_INPUT: &str = "invalid_input";

pub static GRAPH: Graph<State> = Graph {
    version: "5",
    init: |input, settings| {
        let mut state = init(input, settings, query::intent)?;
        state.work.version = 5;
        Ok(state)
    },
    ..GRAPH_4
};

/// For the sessions that began with it.
pub static EARLIER: Graph<State> = GRAPH_4;

const GRAPH_4: Graph<State> = Graph {
    name: "network",
    version: "4",
    summary: "Checks a router against a plan and reports problems.",
    start: SERVERS,
    nodes: &[
        Node { name: SERVERS, to: &[CATALOGUE], ask: ask_servers, fold: fold_servers },
        Node { name: CATALOGUE, to: &[PLANNER], ask: ask_catalogue, fold: fold_catalogue },
        Node { name: PLANNER, to: &[EXECUTOR], ask: ask_devices, fold: fold_devices },
        Node {
            name: EXECUTOR,
            to: &[TOOLS, EXECUTOR, ASSESSOR],
            ask: executor::ask_executor,
            fold: executor::fold_executor,
        },
        Node { name: TOOLS, to: &[EXECUTOR], ask: executor::ask_tools, fold: executor::fold_tools },
        Node { name: ASSESSOR, to: &[EXECUTOR, REPORTER], ask: ask_assessor, fold: fold_assessor },
        Node { name: REPORTER, to: &[], ask: ask_reporter, fold: fold_reporter },
    ],
    init: |input, settings| init(input, settings, query::intent_by_whole_words),
    budget: Budget {
        tokens: Some(400_000),
        calls: Some(300),
        visits: Some(600),
        seconds: Some(1_200),
        micro_usd: None,
    },
    scope: Scope::Session,
    on_limit,
    on_limit_to: &[],
    policy,
    attempts: Attempts { chat: 2, tool: 2 },
    at_most_once: &[],
    critical: &[],
    servers: &[SERVER],
    tool_timeout_s: 60,
};

/// The agent's options in the settings.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    max_retries: Option<u32>,
    plans: BTreeMap<String, Plan>,
}

fn init(
    input: &Value,
    settings: &Settings,
    intent: fn(&str, &BTreeMap<String, Plan>) -> Intent,
) -> Result<State, InputError> {
    let Input { query, has_inventory } = Input::parse(input)?;
    let options = match &settings.options {
        Value::Null => Ok(Options::default()),
        options => serde_json::from_value(options.clone()),
    };
    let wrong = |problem: String| InputError::new("options", problem);
    let options: Options =
        options.map_err(|error| wrong(format!("the agent's options: {error}")))?;
    let plans = plan::with(options.plans).map_err(|error| wrong(error.to_string()))?;
    let intent = intent(&query, &plans);
    let steps = plans.get(&intent.name).map(|plan| plan.steps.clone()).unwrap_or_default();
    let has_plan = intent.is_recognised
        && intent.name != plan::GENERAL
        && !plan::is_only_where(&query, &intent, &steps);
    let intent = if !has_plan && interpret::is_specific(&query) {
        Intent { name: plan::QUESTION.to_owned(), is_recognised: true }
    } else {
        intent
    };
    let steps = plan::with_question(&query, steps, &intent);
    let work = Work {
        interface: query::interface(&query),
        vrf: query::vrf(&query),
        intent: intent.name,
        is_intent_recognised: intent.is_recognised,
        agenda: (0..steps.len()).collect(),
        plans,
        has_inventory,
        ..Work::default()
    };
    Ok(State {
        user_query: query,
        working_plan_steps: steps,
        max_retries: options.max_retries.unwrap_or(RETRIES_DEFAULT).min(RETRIES_MAX),
        work,
        ..State::default()
    })
}

fn ask_servers(state: &State, _: &Context<'_>) -> Effect {
    if state.work.has_inventory {
        return Effect::Nothing;
    }
    Effect::Tools(vec![ToolCall::built_in(CONFIGURED_SERVERS, json!({}))])
}

fn fold_servers(state: &mut State, outcome: Outcome) -> Route {
    let results = match outcome.body {
        OutcomeBody::Results(results) => results,
        _ => vec![],
    };
    for result in results {
        let servers = result.ok().and_then(|content| content.get("servers")?.as_array());
        let names = servers.into_iter().flatten().filter_map(Value::as_str);
        let of_networks = names.filter(|name| !is_of_another_agent(name));
        state.work.servers.extend(of_networks.take(SERVERS_MAX).map(str::to_owned));
    }
    if state.work.servers.is_empty() {
        state.work.servers.push(SERVER.to_owned());
    }
    Route::To(CATALOGUE)
}

/// Servers of the other bundled agents. Configuring one of them does not replace the network
/// server.
pub const SERVERS_OF_OTHERS: &[&str] = &["aws-diagnostics", "card-transactions", "pk-sim"];

fn is_of_another_agent(server: &str) -> bool {
    SERVERS_OF_OTHERS.contains(&server)
}

fn ask_catalogue(state: &State, _: &Context<'_>) -> Effect {
    let servers = state.work.servers.iter();
    Effect::Tools(servers.map(|server| ToolCall::catalogue(server)).collect())
}

fn fold_catalogue(state: &mut State, outcome: Outcome) -> Route {
    state.work.source = outcome.seq;
    let mut unreachable = None;
    let mut not_used = Vec::new();
    for result in outcome.results() {
        let server = result.call.server.clone().unwrap_or_default();
        let Some(content) = result.ok() else {
            let error = result.error().unwrap_or_default();
            state.limited(format!("the server {server} cannot be used: {}", cut(&error)));
            unreachable = Some(result);
            continue;
        };
        for tool in ToolSpec::catalogue(content) {
            let is_taken = state.work.offered.iter().any(|known| known.name == tool.name);
            // The agent calls tools without approval. A name or a description shows nothing.
            if !tool.reads(content) {
                not_used.push(tool.name);
            } else if tool.name == GET_DEVICES {
                state.work.get_devices.get_or_insert(tool);
            } else if is_taken {
                state.limited(format!(
                    "{} of {server} is not used: another server has the same tool",
                    tool.name
                ));
            } else if state.work.offered.len() < OFFERED_MAX {
                state.work.offered.push(tool);
            } else {
                state.limited(format!("only {OFFERED_MAX} tools are used"));
            }
        }
    }
    if let Some(result) = unreachable
        && state.work.offered.is_empty()
        && state.work.get_devices.is_none()
    {
        return Route::End(no_server(&result));
    }
    if !not_used.is_empty() {
        let names = not_used.join(", ");
        state.limited(cut(&format!("tools that may write are not used: {names}")));
        state.limited(
            "a server's tool is used if its annotations say that it only reads (readOnlyHint) and the \
             server's entry in the servers file lists it under `reads`"
                .to_owned(),
        );
    }
    Route::To(PLANNER)
}

fn ask_devices(state: &State, _: &Context<'_>) -> Effect {
    match &state.work.get_devices {
        Some(tool) => Effect::Tools(vec![ToolCall {
            id: None,
            server: tool.server.clone(),
            tool: tool.name.clone(),
            arguments: json!({}),
        }]),
        None => Effect::Nothing,
    }
}

fn fold_devices(state: &mut State, outcome: Outcome) -> Route {
    state.work.source = outcome.seq;
    let result = match outcome.body {
        OutcomeBody::Results(results) => results.into_iter().next(),
        _ => None,
    };
    let Some(result) = result else {
        let what =
            format!("no server offers {GET_DEVICES}: whether the device exists was not checked");
        return state.assume_device(what);
    };
    let Some(content) = result.ok() else {
        let why = cut(&result.error().unwrap_or_default());
        let message = format!("cannot list the devices: {why}");
        return Route::End(Finish::failed(
            "NetworkError",
            "DevicesUnavailable",
            &message,
            "unknown",
        ));
    };
    let known = offer::devices(content);
    if known.is_empty() {
        let what =
            format!("{GET_DEVICES} lists no device: whether the device exists was not checked");
        return state.assume_device(what);
    }
    let mut named: Vec<String> =
        query::about(&state.user_query, &known).into_iter().map(str::to_owned).collect();
    if named.is_empty() {
        return Route::End(unknown_device(state, &known));
    }
    if named.len() > DEVICES_MAX {
        state.work.not_done.insert(usize::MAX, format!("only {DEVICES_MAX} devices are checked"));
        state.limited(format!("only {DEVICES_MAX} devices are checked"));
        named.truncate(DEVICES_MAX);
    }
    state.begin(named)
}

fn ask_assessor(state: &State, _: &Context<'_>) -> Effect {
    form(state, prompt::assessor(), ASSESSMENT, assess::schema())
}

fn fold_assessor(state: &mut State, outcome: Outcome) -> Route {
    state.work.source = outcome.seq;
    let reply = outcome.reply();
    let steps = state.working_plan_steps.len();
    let assessment = reply.json().and_then(|form| Assessment::parse(&form, steps));
    let assessment = assessment.unwrap_or_else(|| assess::by_rules(state));
    let wants_more = !assessment.is_achieved && !assessment.steps_to_repeat.is_empty();
    if wants_more && state.current_retries < state.max_retries {
        state.current_retries += 1;
        state.objective_achieved_assessment = Some(false);
        state.assessor_feedback_for_retry = Some(assessment.feedback);
        state.work.agenda = assessment.steps_to_repeat;
        state.work.attempt_from = state.execution_results.len();
        return Route::To(EXECUTOR);
    }
    let mut notes = assessment.notes;
    if wants_more {
        let bound = format!(" Proceeding after max retries ({}).", state.max_retries);
        notes.push_str(&bound);
    }
    state.objective_achieved_assessment = Some(true);
    state.assessor_feedback_for_retry = None;
    state.assessor_notes_for_final_report = Some(notes.trim().to_owned());
    Route::To(REPORTER)
}

fn ask_reporter(state: &State, _: &Context<'_>) -> Effect {
    form(state, prompt::reporter(), REPORT, report::schema())
}

fn fold_reporter(state: &mut State, outcome: Outcome) -> Route {
    let reply = outcome.reply();
    let is_model = matches!(reply.by, Author::Model(_));
    let written = reply.json().and_then(|form| report::parse(&form));
    let summary = written.filter(|_| is_model);
    state.reported(summary)
}

fn on_limit(state: &mut State, crossed: Crossed) -> Route {
    let is_second = state.work.limit.is_some();
    state.work.limit.get_or_insert_with(|| crossed.limit.as_str().to_owned());
    state.work.source = crossed.seq;
    let limit = crossed.limit.as_str();
    state.limited(format!(
        "the limit of {} {limit} was reached before the check was complete",
        crossed.allowed
    ));
    state.objective_achieved_assessment = Some(true);
    let notes = format!("Not assessed: the limit of {limit} was reached.");
    state.assessor_notes_for_final_report.get_or_insert(notes);
    if state.device_name.is_empty() {
        if let Some(named) = query::candidate(&state.user_query).map(cut) {
            state.device_name = named;
            state.limited("whether the device exists was not checked".to_owned());
        }
        return state.reported(None);
    }
    if is_second {
        return state.reported(None);
    }
    Route::To(REPORTER)
}

/// Rules in place of the model. The form's name says what the prompt asks for.
fn policy(state: &State, chat: &Chat) -> Reply {
    match chat.form.as_ref().map(|form| form.name.as_str()) {
        Some(ASSESSMENT) => Reply::says(assess::by_rules(state).json().to_string()),
        Some(_) => Reply::says(json!({"summary": report::by_rules(state)}).to_string()),
        None => executor::execute(state),
    }
}

impl State {
    /// Continues with the device that the query appears to name, or fails the session.
    fn assume_device(&mut self, limitation: String) -> Route {
        let Some(device) = query::candidate(&self.user_query).map(str::to_owned) else {
            let message = "the query names no device; for example: Check BGP neighbors on pe1";
            return Route::End(Finish::failed("NetworkError", "NoDevice", message, CATEGORY_INPUT));
        };
        self.limited(limitation);
        self.begin(vec![device])
    }

    fn begin(&mut self, devices: Vec<String>) -> Route {
        let device = devices.join(", ");
        self.device_name = device.clone();
        self.work.devices = devices;
        let plan = self.work.plans.get(&self.work.intent);
        let question = plan.map_or(self.user_query.as_str(), |plan| plan.description.as_str());
        let mut objective =
            format!("{} on {device}: {question}", self.work.intent.replace('_', " "));
        if let Some(interface) = &self.work.interface {
            objective.push_str(&format!(" Interface {interface}."));
        }
        if let Some(vrf) = &self.work.vrf {
            objective.push_str(&format!(" VRF {vrf}."));
        }
        self.objective = objective;
        // No longer needed; the session's first record has them if they differ from the bundled
        // ones.
        self.work.plans.clear();
        Route::To(EXECUTOR)
    }

    /// Ends the session with this report, or with the rules' report.
    fn reported(&mut self, summary: Option<Vec<String>>) -> Route {
        let summary = match summary {
            Some(written) => report::with_model(self, written),
            None => report::by_rules(self),
        };
        self.summary = Some(summary);
        Route::End(Finish::Completed(self.result()))
    }
}

/// A model call whose reply is a form.
fn form(state: &State, system: String, name: &str, schema: Value) -> Effect {
    Effect::Chat(Chat {
        system,
        messages: vec![Message::user(state.work.source, prompt::results(state))],
        form: Some(Form { name: name.to_owned(), schema }),
        ..chat()
    })
}

pub(super) fn chat() -> Chat {
    Chat {
        max_output_tokens: OUTPUT_TOKENS_MAX,
        temperature_percent: Some(0),
        timeout_s: Some(REPLY_SECONDS_MAX),
        ..Chat::default()
    }
}

pub(super) fn cut(text: &str) -> String {
    text.chars().take(ERROR_CHARS_MAX).collect()
}

/// The tool servers are unavailable.
fn no_server(result: &ToolResult) -> Finish {
    let server = result.call.server.as_deref().unwrap_or_default();
    let (kind, category) = match &result.outcome {
        ToolOutcome::Failed(failure) if failure.category == "mcp_connection" => {
            ("McpConnection", "mcp_connection")
        }
        ToolOutcome::Failed(failure) if failure.category == "mcp_init" => ("McpInit", "mcp_init"),
        _ => ("ToolServer", "unknown"),
    };
    let why = result.error().unwrap_or_default();
    Finish::failed(kind, server, &cut(&why), category)
}

/// The query names no known device.
fn unknown_device(state: &State, known: &[String]) -> Finish {
    let named = query::candidate(&state.user_query);
    let what = named.map_or("the query names no device".to_owned(), |named| {
        format!("unknown device `{}`", cut(named))
    });
    let message = format!("{what}; known devices: {}", known.join(", "));
    match Finish::failed("NetworkError", "UnknownDevice", &message, CATEGORY_INPUT) {
        Finish::Failed { error, category, .. } => {
            Finish::Failed { error, category, result: json!({"known_devices": known}) }
        }
        completed @ Finish::Completed(_) => completed,
    }
}
