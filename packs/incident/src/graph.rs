//! The graph: read the tool catalogue, then alternate model and tool calls until a diagnosis is valid.
//!
//! ```text
//! catalogue → agent_reason ⇄ execute_tools
//!                  │ submit_diagnosis, valid → the end
//!                  └ a limit is reached → forced_diagnosis → the end
//! ```
//!
//! The graph validates every call of a model before making it: the tool must be one of the three, and
//! the arguments must match its schema. It validates every result before showing it to the model. An
//! invalid diagnosis goes back with the reasons, and prose with a reminder. Each step is a node visit,
//! and visits are limited, so a model cannot run for ever.

use graph::agent::{OnModelFailure, Settings};
use graph::budget::{Budget, Crossed};
use graph::definition::{Attempts, Context, Finish, Graph, InputError, Node, Route, Scope};
use graph::effect::{
    Author, Chat, Content, Effect, INPUT_STEP, Message, Reply, ToolCall, ToolChoice, ToolSpec,
};
use graph::outcome::{Failure, Outcome, ToolOutcome, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::diagnosis::{self, Diagnosis};
use super::evidence;
use super::masks;
use super::message::Incident;
use super::policy;
use super::prompt;
use super::tool::{Arguments, EMPTY_RESPONSE, Observation, Observations, Tool};

/// The MCP server that has the tools.
pub const SERVER: &str = "aws-diagnostics";

/// The tool call that ends an investigation.
pub const SUBMIT: &str = "submit_diagnosis";

const CATALOGUE: &str = "catalogue";
const AGENT_REASON: &str = "agent_reason";
const EXECUTE_TOOLS: &str = "execute_tools";
const FORCED_DIAGNOSIS: &str = "forced_diagnosis";

/// Most node visits.
///
/// Source: the incident specification, section 1, `recursion_limit`.
pub const VISITS_MAX: u64 = 12;

/// Most tokens.
///
/// Source: the incident specification, section 7, `MAX_TOKENS_PER_INCIDENT`.
pub const TOKENS_MAX: u64 = 100_000;

/// Deadline of an investigation, in seconds.
///
/// Source: the incident specification, overview, timeout of five minutes.
pub const DEADLINE_SECONDS: u64 = 300;

/// Longest investigation before the last model call, in seconds. The rest is for that call.
///
/// Source: the incident specification, sections 1 and 7, buffer of 90 s.
pub const SECONDS_MAX: u64 = DEADLINE_SECONDS - 90;

/// Timeout of a model's reply, in seconds.
///
/// Source: the incident specification, section 7, "worst-case LLM latency".
const REPLY_SECONDS_MAX: u32 = 60;

/// Longest reply, in tokens. A diagnosis of five faults takes about a third.
const OUTPUT_TOKENS_MAX: u32 = 4_096;

/// Most calls made per reply; there are five tools.
const CALLS_MAX: usize = 6;

/// Replies in a row with only unknown tools after which the model counts as one that failed.
const UNKNOWN_REPLIES_MAX: u32 = 2;

/// The category of a model that failed so.
pub const CATEGORY_MODEL: &str = "model_invalid";

/// The error of a session that reached a limit without a diagnosis.
pub const EXHAUSTED: &str = "recursion limit exhausted without diagnosis";

/// Its category: the agent ran and could not diagnose.
pub const CATEGORY_UNDIAGNOSED: &str = "undiagnosed";

pub static GRAPH: Graph<State> = Graph {
    name: "incident",
    version: "2",
    summary: "Finds out why a Lambda function fails and proposes a remedy, with evidence.",
    start: CATALOGUE,
    nodes: &[
        Node { name: CATALOGUE, to: &[AGENT_REASON], ask: ask_catalogue, fold: fold_catalogue },
        Node {
            name: AGENT_REASON,
            to: &[EXECUTE_TOOLS, AGENT_REASON],
            ask: ask_model,
            fold: fold_reply,
        },
        Node {
            name: EXECUTE_TOOLS,
            to: &[AGENT_REASON, EXECUTE_TOOLS],
            ask: ask_tools,
            fold: fold_results,
        },
        Node { name: FORCED_DIAGNOSIS, to: &[], ask: ask_model, fold: fold_last_reply },
    ],
    init,
    budget: Budget {
        tokens: Some(TOKENS_MAX),
        calls: None,
        visits: Some(VISITS_MAX),
        seconds: Some(SECONDS_MAX),
        micro_usd: None,
    },
    scope: Scope::Session,
    on_limit,
    on_limit_to: &[FORCED_DIAGNOSIS],
    policy: reply_by_policy,
    // One retry, as the specification requires for servers and models.
    attempts: Attempts { chat: 2, tool: 2 },
    at_most_once: &[],
    critical: &[],
    servers: &[SERVER],
    tool_timeout_s: 30,
};

/// The state of an investigation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    incident: Incident,
    /// The agent's tools that the server has.
    offered: Vec<Tool>,
    seen: Observations,
    /// The conversation after the report.
    transcript: Vec<Message>,
    /// Validated calls, not made yet.
    pending: Vec<ToolCall>,
    limit: Option<String>,
    /// Replies in a row that named only unknown tools.
    #[serde(default)]
    unknown_replies: u32,
    /// Whether the policy goes on because the model failed.
    #[serde(default)]
    is_taken_over: bool,
    #[serde(default)]
    on_model_failure: OnModelFailure,
}

fn init(input: &Value, settings: &Settings) -> Result<State, InputError> {
    let incident =
        Incident::parse(input).map_err(|error| InputError::new(error.field(), error.expected()))?;
    Ok(State {
        incident,
        offered: vec![],
        seen: Observations::default(),
        transcript: vec![],
        pending: vec![],
        limit: None,
        unknown_replies: 0,
        is_taken_over: false,
        on_model_failure: settings.on_model_failure,
    })
}

fn ask_catalogue(_: &State, _: &Context<'_>) -> Effect {
    Effect::Tools(vec![ToolCall::catalogue(SERVER)])
}

fn fold_catalogue(state: &mut State, outcome: Outcome) -> Route {
    for result in outcome.results() {
        match result.outcome {
            ToolOutcome::Ok(content) => {
                // The agent calls its tools without approval: it uses none that its server says may change
                // something.
                let tools = ToolSpec::catalogue(&content);
                let used = tools.iter().filter(|tool| !tool.changes(&content));
                state.offered.extend(used.filter_map(|tool| Tool::named(&tool.name)));
            }
            ToolOutcome::Error(text) => {
                return state.unreachable(&Failure::refused("mcp_init", text));
            }
            ToolOutcome::Failed(failure) => return state.unreachable(&failure),
        }
    }
    state.offered.sort_unstable();
    state.offered.dedup();
    if state.offered.is_empty() {
        let names = Tool::ALL.map(Tool::name).join(", ");
        let why = format!("the server offers none of {names} as a tool that only reads");
        return state.unreachable(&Failure::refused("mcp_init", why));
    }
    Route::To(AGENT_REASON)
}

fn ask_model(state: &State, _: &Context<'_>) -> Effect {
    let offered = state.offered.iter().filter(|_| !state.is_last()).map(|tool| ToolSpec {
        server: Some(SERVER.to_owned()),
        name: tool.name().to_owned(),
        // Not the server's description: it is untrusted text.
        description: tool.description().to_owned(),
        input_schema: Arguments::schema().clone(),
    });
    let submit = ToolSpec {
        server: None,
        name: SUBMIT.to_owned(),
        description: prompt::SUBMIT_DESCRIPTION.to_owned(),
        input_schema: diagnosis::schema().clone(),
    };
    let report = Message::user(INPUT_STEP, prompt::report(&state.incident, &state.offered));
    Effect::Chat(Chat {
        system: prompt::SYSTEM.to_owned(),
        messages: [report].into_iter().chain(state.transcript.iter().cloned()).collect(),
        tools: offered.chain([submit]).collect(),
        choice: if state.is_last() { ToolChoice::Only(SUBMIT.to_owned()) } else { ToolChoice::Any },
        max_output_tokens: OUTPUT_TOKENS_MAX,
        temperature_percent: Some(0),
        timeout_s: Some(REPLY_SECONDS_MAX),
        form: None,
    })
}

fn fold_reply(state: &mut State, outcome: Outcome) -> Route {
    let seq = outcome.seq;
    let reply = outcome.reply();
    state.transcript.push(Message::assistant(seq, &reply));
    if reply.calls.is_empty() {
        state.transcript.push(Message::user(seq, prompt::CALL_A_TOOL));
        return Route::To(AGENT_REASON);
    }
    let is_unknown = |call: &ToolCall| call.tool != SUBMIT && Tool::named(&call.tool).is_none();
    if reply.calls.iter().all(is_unknown) {
        state.unknown_replies += 1;
        if state.unknown_replies >= UNKNOWN_REPLIES_MAX {
            return state.model_failed();
        }
    } else {
        state.unknown_replies = 0;
    }
    for (position, call) in reply.calls.iter().enumerate() {
        let answer = if position >= CALLS_MAX {
            Err(format!("at most {CALLS_MAX} calls at once; this one was not made"))
        } else if call.tool == SUBMIT {
            match state.check(&call.arguments) {
                Ok(diagnosis) => return state.diagnosed(&diagnosis, &reply.by),
                Err(refusal) => Err(refusal),
            }
        } else {
            state.admit(call)
        };
        match answer {
            Ok(call) => state.pending.push(call),
            Err(refusal) => state.answer_error(seq, call, &refusal),
        }
    }
    Route::To(if state.pending.is_empty() { AGENT_REASON } else { EXECUTE_TOOLS })
}

fn ask_tools(state: &State, _: &Context<'_>) -> Effect {
    Effect::Tools(state.pending.clone())
}

fn fold_results(state: &mut State, outcome: Outcome) -> Route {
    state.pending.clear();
    for result in outcome.results() {
        // `admit` accepts only these tools.
        let Some(tool) = Tool::named(&result.call.tool) else { continue };
        if let ToolOutcome::Failed(failure) = &result.outcome
            && is_unreachable(failure)
            && state.seen.all().iter().all(|seen| seen.is_error)
        {
            return state.unreachable(failure);
        }
        state.observe(tool, &result);
    }
    if state.is_taken_over { state.go_on_by_policy() } else { Route::To(AGENT_REASON) }
}

fn on_limit(state: &mut State, crossed: Crossed) -> Route {
    if state.is_last() {
        // A second limit, reached before the last call.
        return state.diagnosed_by_policy();
    }
    state.limit = Some(crossed.limit.as_str().to_owned());
    for call in std::mem::take(&mut state.pending) {
        state.answer_error(crossed.seq, &call, "not called: a limit is reached");
    }
    state.transcript.push(Message::user(crossed.seq, prompt::LAST_CALL));
    Route::To(FORCED_DIAGNOSIS)
}

fn fold_last_reply(state: &mut State, outcome: Outcome) -> Route {
    let reply = outcome.reply();
    let submitted = reply.calls.iter().filter(|call| call.tool == SUBMIT);
    match submitted.map(|call| state.check(&call.arguments)).find_map(Result::ok) {
        Some(diagnosis) => state.diagnosed(&diagnosis, &reply.by),
        None => state.diagnosed_by_policy(),
    }
}

/// The policy: the next useful tool call, else the diagnosis.
fn reply_by_policy(state: &State, _: &Chat) -> Reply {
    let next = if state.is_last() {
        None
    } else {
        policy::next_tool(&state.incident, &state.seen, &state.offered)
    };
    let (text, call) = match next {
        Some((tool, why)) => {
            let arguments = json!({ "lambda_name": state.incident.lambda_name });
            (why, ToolCall::built_in(tool.name(), arguments))
        }
        None => {
            let diagnosis = policy::diagnose(&state.incident, &state.seen);
            (
                "No other tool result would change the diagnosis.",
                ToolCall::built_in(SUBMIT, diagnosis.json()),
            )
        }
    };
    Reply { text: Some(text.to_owned()), calls: vec![call], by: Author::Policy }
}

impl State {
    /// The model named only unknown tools: the policy goes on, or the session fails.
    fn model_failed(&mut self) -> Route {
        if self.on_model_failure == OnModelFailure::Fail {
            let why = "the model named only tools that do not exist";
            let finish = Finish::failed("ModelError", "UnknownTools", why, CATEGORY_MODEL);
            return self.failed(finish, "FAILED");
        }
        self.is_taken_over = true;
        self.go_on_by_policy()
    }

    fn go_on_by_policy(&mut self) -> Route {
        match policy::next_tool(&self.incident, &self.seen, &self.offered) {
            Some((tool, _)) => {
                let arguments = json!({ "lambda_name": self.incident.lambda_name });
                self.pending.push(ToolCall::new(SERVER, tool.name(), arguments));
                Route::To(EXECUTE_TOOLS)
            }
            None => self.diagnosed_by_policy(),
        }
    }

    fn is_last(&self) -> bool {
        self.limit.is_some()
    }

    /// The diagnosis, or why it is invalid.
    fn check(&self, arguments: &Value) -> Result<Diagnosis, String> {
        let diagnosis = Diagnosis::parse(arguments).map_err(|violations| {
            format!("The arguments do not match the schema:\n- {}", violations.join("\n- "))
        })?;
        let refusals = evidence::check(&diagnosis, &self.seen);
        if refusals.is_empty() {
            return Ok(diagnosis);
        }
        let reasons: Vec<String> = refusals.iter().map(ToString::to_string).collect();
        Err(format!("The diagnosis does not hold:\n- {}", reasons.join("\n- ")))
    }

    /// The call to make, or why it is not made.
    fn admit(&self, call: &ToolCall) -> Result<ToolCall, String> {
        let tool = Tool::named(&call.tool).filter(|tool| self.offered.contains(tool));
        let Some(tool) = tool else {
            let names: Vec<&str> = self.offered.iter().map(|tool| tool.name()).collect();
            return Err(format!("There is no tool of this name; there are {}.", names.join(", ")));
        };
        let arguments = Arguments::parse(&call.arguments).map_err(|violations| {
            format!(
                "Not called, the arguments do not match the schema:\n- {}",
                violations.join("\n- ")
            )
        })?;
        let arguments = json!({ "lambda_name": arguments.lambda_name });
        Ok(ToolCall { id: call.id.clone(), ..ToolCall::new(SERVER, tool.name(), arguments) })
    }

    fn answer_error(&mut self, source: u32, call: &ToolCall, error: &str) {
        let content = Content::Result {
            id: call.id.clone().unwrap_or_default(),
            tool: call.tool.clone(),
            content: json!({ "error": error }),
            is_error: true,
        };
        self.transcript.push(Message { source, content });
    }

    fn observe(&mut self, tool: Tool, result: &ToolResult) {
        let observation = match &result.outcome {
            ToolOutcome::Ok(content) => Observation::of_result(tool, content, false),
            ToolOutcome::Error(text) if text.trim().is_empty() => {
                Observation::of_error(tool, EMPTY_RESPONSE)
            }
            ToolOutcome::Error(text) => Observation::of_error(tool, text),
            ToolOutcome::Failed(failure) => Observation::of_error(tool, &failure.to_string()),
        };
        let content = Content::Result {
            id: result.call.id.clone().unwrap_or_default(),
            tool: tool.name().to_owned(),
            content: observation.output.clone(),
            is_error: observation.is_error,
        };
        self.transcript.push(Message { source: result.seq, content });
        self.seen.push(observation);
    }

    /// The called tools, in the order of their first calls.
    fn tools_called(&self) -> Vec<&'static str> {
        let mut called: Vec<&str> = Vec::new();
        for seen in self.seen.all() {
            if !called.contains(&seen.tool.name()) {
                called.push(seen.tool.name());
            }
        }
        called
    }

    /// The members of every result, whatever the outcome.
    fn summary(&self, incident_state: &str) -> Value {
        let mut summary = json!({
            "incident_state": incident_state,
            "incident_id": self.incident.incident_id,
            "lambda_name": self.incident.lambda_name,
            "tools_called": self.tools_called(),
        });
        summary["not_looked_at"] = self.seen.not_looked_at(&self.offered);
        let masked = masks::said(&json!([self.incident, self.seen]));
        if !masked.is_empty() {
            summary["masked"] = json!(masked);
        }
        if self.is_taken_over {
            summary["model_failed"] = json!("it named only tools that do not exist");
        }
        if let Some(limit) = &self.limit {
            summary["limit_reached"] = json!(limit);
        }
        summary
    }

    fn diagnosed(&self, diagnosis: &Diagnosis, by: &Author) -> Route {
        let mut result = diagnosis.json();
        if let (Value::Object(result), Value::Object(summary)) =
            (&mut result, self.summary("DIAGNOSED"))
        {
            result.extend(summary);
        }
        result["diagnosed_by"] = match by {
            Author::Policy => json!("policy"),
            Author::Model(name) => json!(name),
        };
        Route::End(Finish::Completed(result))
    }

    /// Ends with the policy's diagnosis, if it is valid.
    fn diagnosed_by_policy(&self) -> Route {
        let diagnosis = policy::diagnose(&self.incident, &self.seen);
        match evidence::check(&diagnosis, &self.seen)[..] {
            [] => self.diagnosed(&diagnosis, &Author::Policy),
            [..] => {
                let finish =
                    Finish::failed("IncidentError", "Undiagnosed", EXHAUSTED, CATEGORY_UNDIAGNOSED);
                self.failed(finish, "FAILED")
            }
        }
    }

    /// Ends the session because the tools cannot be reached.
    fn unreachable(&self, failure: &Failure) -> Route {
        let (kind, category) = match failure.category.as_str() {
            "mcp_connection" => ("McpConnection", "mcp_connection"),
            "mcp_init" => ("McpInit", "mcp_init"),
            _ => ("ToolServer", "unknown"),
        };
        self.failed(Finish::failed(kind, SERVER, &failure.message, category), "ERROR")
    }

    fn failed(&self, finish: Finish, incident_state: &str) -> Route {
        Route::End(match finish {
            Finish::Failed { error, category, .. } => {
                Finish::Failed { error, category, result: self.summary(incident_state) }
            }
            completed @ Finish::Completed(_) => completed,
        })
    }
}

/// Whether the server could not be reached.
fn is_unreachable(failure: &Failure) -> bool {
    matches!(failure.category.as_str(), "mcp_connection" | "mcp_init")
}
