//! The checkup agent: tests whether a deployment works.
//!
//! Each check is a tool call, so the journal records its result. The agent first asks for the
//! configured servers, because a resumed session must get the same answer. The host provides these
//! built-in tools:
//!
//! | tool | arguments | content |
//! |---|---|---|
//! | `configured_servers` | `{}` | `{"servers": [NAME]}` |
//! | `journal_probe` | `{}` | `{"detail": TEXT}`, after a record was written and read back |
//! | `clock_skew` | `{}` | `{"skew_ms": N}`, this clock minus the journal's |
//! | `model_reachable` | `{"model": NAME}` | `{"detail": TEXT}`, or `{"error": TEXT}`; both with
//! `usage` |
//!
//! A failed check is an error result or a failed call, never a failure of the host. [`conclude`]
//! renders the checks.

pub mod conclude;

use std::sync::OnceLock;

use graph::agent::{Agent, Settings};
use graph::budget::{Budget, Crossed};
use graph::built_in::{CLOCK_SKEW, CONFIGURED_SERVERS, JOURNAL_PROBE, MODEL_REACHABLE};
use graph::definition::{Attempts, Context, Finish, Graph, InputError, Node, Route, Scope};
use graph::effect::{CATALOGUE, Chat, Effect, Reply, ToolCall, ToolSpec};
use graph::outcome::{Outcome, ToolOutcome, ToolResult};
use graph::profile::Profile;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub fn agent() -> &'static Agent {
    static AGENT: OnceLock<Agent> = OnceLock::new();
    AGENT.get_or_init(|| {
        Agent::of(&GRAPH)
            .with_input_schema(input_schema())
            .with_profile(&PROFILE)
            .with_presentation(conclude::PRESENTATION)
    })
}

/// The JSON schema of its input.
fn input_schema() -> serde_json::Value {
    serde_json::from_str(INPUT_SCHEMA).expect("a schema in this crate is JSON")
}

/// Largest clock skew at which sessions work, in milliseconds. Above it, a runner that sends
/// heartbeats may be considered dead.
pub const CLOCK_SKEW_MS_MAX: u64 = 60_000;

/// The setting's value for "no model".
const POLICY: &str = "policy";

/// Error category of a deployment that does not work.
pub const CATEGORY: &str = "checkup";

/// The input schema as JSON text.
pub const INPUT_SCHEMA: &str = r#"{"type": "object", "additionalProperties": false}"#;

const SERVERS: &str = "servers";
const CHECKS: &str = "checks";

/// An empty trigger tests the deployment.
pub static PROFILE: Profile = Profile { is_default: true, ..Profile::PLAIN };

pub static GRAPH: Graph<State> = Graph {
    name: "checkup",
    version: "1",
    summary: "Tests the deployment: journal, clock, model and the tool servers.",
    start: SERVERS,
    nodes: &[
        Node { name: SERVERS, to: &[CHECKS], ask: ask_servers, fold: fold_servers },
        Node { name: CHECKS, to: &[], ask: ask_checks, fold: fold_checks },
    ],
    init,
    budget: Budget { seconds: Some(120), ..Budget::UNLIMITED },
    scope: Scope::Session,
    on_limit,
    on_limit_to: &[],
    policy,
    attempts: Attempts { chat: 2, tool: 2 },
    at_most_once: &[],
    critical: &[],
    servers: &[],
    tool_timeout_s: 30,
};

/// The checks to do, and their results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    model: Option<String>,
    servers: Vec<String>,
    checks: Vec<Check>,
}

/// One check in the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Check {
    name: String,
    ok: bool,
    detail: String,
    ms: u64,
}

fn init(input: &Value, settings: &Settings) -> Result<State, InputError> {
    match input {
        Value::Null => {}
        Value::Object(members) => {
            if let Some(name) = members.keys().next() {
                return Err(InputError::new(name, "no fields: checkup takes no input"));
            }
        }
        _ => return Err(InputError::new("input", "a JSON object")),
    }
    let model = settings.model.clone().filter(|model| model != POLICY);
    Ok(State { model, servers: vec![], checks: vec![] })
}

fn ask_servers(_: &State, _: &Context<'_>) -> Effect {
    Effect::Tools(vec![ToolCall::built_in(CONFIGURED_SERVERS, json!({}))])
}

fn fold_servers(state: &mut State, outcome: Outcome) -> Route {
    for result in outcome.results() {
        let servers = result.ok().and_then(|content| content.get("servers")?.as_array());
        match servers {
            Some(servers) => {
                let names = servers.iter().filter_map(Value::as_str);
                state.servers.extend(names.map(str::to_owned));
            }
            // The other checks still run.
            None => state.checks.push(check(&result)),
        }
    }
    Route::To(CHECKS)
}

fn ask_checks(state: &State, _: &Context<'_>) -> Effect {
    let mut calls = vec![
        ToolCall::built_in(JOURNAL_PROBE, json!({})),
        ToolCall::built_in(CLOCK_SKEW, json!({})),
    ];
    let model = state.model.as_ref();
    calls.extend(model.map(|model| ToolCall::built_in(MODEL_REACHABLE, json!({ "model": model }))));
    calls.extend(state.servers.iter().map(|server| ToolCall::catalogue(server)));
    Effect::Tools(calls)
}

fn fold_checks(state: &mut State, outcome: Outcome) -> Route {
    state.checks.extend(outcome.results().iter().map(check));
    Route::End(state.finish())
}

fn on_limit(state: &mut State, crossed: Crossed) -> Route {
    state.checks.push(Check {
        name: crossed.limit.as_str().to_owned(),
        ok: false,
        detail: format!("the limit of {} was reached before all checks ran", crossed.allowed),
        ms: 0,
    });
    Route::End(state.finish())
}

/// Checkups have no conversation.
fn policy(_: &State, _: &Chat) -> Reply {
    Reply::says("")
}

impl State {
    fn finish(&self) -> Finish {
        let result = json!({ "checks": self.checks });
        let failed: Vec<&Check> = self.checks.iter().filter(|check| !check.ok).collect();
        let names: Vec<&str> = failed.iter().map(|check| check.name.as_str()).collect();
        let Some(first) = failed.first() else { return Finish::Completed(result) };
        match Finish::failed("CheckFailed", &names.join(", "), &first.detail, CATEGORY) {
            Finish::Failed { error, category, .. } => Finish::Failed { error, category, result },
            completed @ Finish::Completed(_) => completed,
        }
    }
}

fn check(result: &ToolResult) -> Check {
    let name = match &result.call.server {
        Some(server) => format!("mcp:{server}"),
        None => result.call.tool.clone(),
    };
    let judged = match &result.outcome {
        ToolOutcome::Ok(content) => judge(&result.call.tool, content),
        ToolOutcome::Error(text) => Err(text.clone()),
        ToolOutcome::Failed(failure) => Err(failure.to_string()),
    };
    let ok = judged.is_ok();
    let detail = judged.unwrap_or_else(|why| why);
    Check { name, ok, detail, ms: result.elapsed_ms }
}

/// The result of a check, or its error.
fn judge(tool: &str, content: &Value) -> Result<String, String> {
    let unreadable = || format!("invalid answer: {content}");
    match tool {
        CLOCK_SKEW => {
            let skew_ms = content.get("skew_ms").and_then(Value::as_i64).ok_or_else(unreadable)?;
            let detail = format!("{skew_ms} ms apart from the journal's clock");
            let is_ok = skew_ms.unsigned_abs() <= CLOCK_SKEW_MS_MAX;
            if is_ok { Ok(detail) } else { Err(detail) }
        }
        CATALOGUE => {
            content.get("tools").and_then(Value::as_array).ok_or_else(unreadable)?;
            let tools = ToolSpec::catalogue(content);
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            Ok(format!("{} tools: {}", names.len(), names.join(", ")))
        }
        MODEL_REACHABLE if content.get("error").is_some() => {
            Err(content["error"].as_str().map_or_else(unreadable, str::to_owned))
        }
        JOURNAL_PROBE | MODEL_REACHABLE => {
            let detail = content.get("detail").and_then(Value::as_str);
            detail.map(str::to_owned).ok_or_else(unreadable)
        }
        _ => Err(unreadable()),
    }
}
