//! The fraud agent's settings from the environment, and the metrics and span attributes of its
//! investigations.

use ::graph::agent::OnModelFailure;
use ::graph::budget::Budget;
use ::graph::profile::{
    Defaults, Environment, Metric, MetricKind, Observed, Profile, Sample, Server, Unusable,
};
use ::graph::run::Run;
use journal::step::{Step, StepBody};
use serde_json::{Value, json};
use workflow::trigger::Model;

use super::graph::{PLANNER, SERVER, TOOL_EXECUTOR, of_json};
use super::options::{self, Options};
use super::state::{PlannerDecision, State};

pub const LANGGRAPH_MAX_STEPS: &str = "LANGGRAPH_MAX_STEPS";

pub const LANGGRAPH_INVESTIGATION_TIMEOUT_SECONDS: &str = "LANGGRAPH_INVESTIGATION_TIMEOUT_SECONDS";

pub const LANGGRAPH_TOOL_TIMEOUT_SECONDS: &str = "LANGGRAPH_TOOL_TIMEOUT_SECONDS";

/// Whether the fixed sequence replaces a failed planner.
pub const LANGGRAPH_ENABLE_PLANNER_FALLBACK: &str = "LANGGRAPH_ENABLE_PLANNER_FALLBACK";

/// Whether a model may plan.
pub const PLANNER_LLM_ENABLED: &str = "PLANNER_LLM_ENABLED";

/// Whether the model also explains the evidence.
pub const REASONING_LLM_ENABLED: &str = "REASONING_LLM_ENABLED";

/// The planning model when the trigger names none.
pub const PLANNER_MODEL_NAME: &str = "PLANNER_MODEL_NAME";

pub const PLANNER_TEMPERATURE: &str = "PLANNER_TEMPERATURE";

pub const PLANNER_MAX_TOKENS: &str = "PLANNER_MAX_TOKENS";

/// Timeout of the planner, in seconds.
pub const PLANNER_TIMEOUT_SECONDS: &str = "PLANNER_TIMEOUT_SECONDS";

/// Whether untrusted text is truncated, stripped and quoted before a model reads it.
pub const PLANNER_PROMPT_GUARD_ENABLED: &str = "PLANNER_PROMPT_GUARD_ENABLED";

/// The fixed sequence: comma-separated tool names.
pub const PLANNER_FALLBACK_SEQUENCE: &str = "PLANNER_FALLBACK_SEQUENCE";

/// Planner decisions. Labels: `selected_tool`, `used_fallback`.
///
/// Source: the fraud specification, section 12; also for the next three.
static PLANNER_DECISIONS: Metric = Metric {
    name: "ops_agent_planner_decisions_total",
    kind: MetricKind::Counter,
    description: "Choices of investigations' planners.",
};

/// Duration of tool calls, in seconds. Labels: `tool_name`, `status`.
static TOOL_EXECUTION_LATENCY: Metric = Metric {
    name: "ops_agent_tool_execution_latency_seconds",
    kind: MetricKind::Seconds,
    description: "An investigation's tool call.",
};

/// Decisions per investigation.
static INVESTIGATION_STEPS: Metric = Metric {
    name: "ops_agent_investigation_steps",
    kind: MetricKind::Histogram(&[
        1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0,
        17.0, 18.0, 19.0, 20.0,
    ]),
    description: "Choices of one investigation.",
};

/// Completed investigations. Labels: `status`, `severity`.
static INVESTIGATIONS_COMPLETED: Metric = Metric {
    name: "ops_agent_investigation_completed_total",
    kind: MetricKind::Counter,
    description: "Investigations that ended.",
};

pub static PROFILE: Profile = Profile {
    variables: &[
        LANGGRAPH_MAX_STEPS,
        LANGGRAPH_INVESTIGATION_TIMEOUT_SECONDS,
        LANGGRAPH_TOOL_TIMEOUT_SECONDS,
        LANGGRAPH_ENABLE_PLANNER_FALLBACK,
        PLANNER_LLM_ENABLED,
        REASONING_LLM_ENABLED,
        PLANNER_MODEL_NAME,
        PLANNER_TEMPERATURE,
        PLANNER_MAX_TOKENS,
        PLANNER_TIMEOUT_SECONDS,
        PLANNER_PROMPT_GUARD_ENABLED,
        PLANNER_FALLBACK_SEQUENCE,
    ],
    defaults,
    metrics: &[
        &PLANNER_DECISIONS,
        &TOOL_EXECUTION_LATENCY,
        &INVESTIGATION_STEPS,
        &INVESTIGATIONS_COMPLETED,
    ],
    observe,
    servers: &[Server {
        name: SERVER,
        options: &[("data", "--data")],
        in_account: None,
        state_option: None,
    }],
    ..Profile::PLAIN
};

/// Upper bound of all counts.
const COUNT_MAX: u64 = 100_000;

const TEMPERATURE_MAX: f64 = 2.0;

fn defaults(environment: &Environment<'_>) -> Result<Defaults, Unusable> {
    let own = Options::default();
    let count = |name| count(environment, name);
    let flag = |name| Ok::<_, Unusable>(environment.flag(name)?.unwrap_or(true));
    let options = Options {
        // The host sets it for each session.
        investigation_id: String::new(),
        max_steps: count(LANGGRAPH_MAX_STEPS)?.unwrap_or(own.max_steps),
        tool_timeout_seconds: count(LANGGRAPH_TOOL_TIMEOUT_SECONDS)?
            .unwrap_or(own.tool_timeout_seconds),
        planner_fallback: flag(LANGGRAPH_ENABLE_PLANNER_FALLBACK)?,
        planner_llm: flag(PLANNER_LLM_ENABLED)?,
        reasoning_llm: environment.flag(REASONING_LLM_ENABLED)?.unwrap_or(own.reasoning_llm),
        planner_temperature_percent: temperature_percent(environment)?
            .unwrap_or(own.planner_temperature_percent),
        planner_max_tokens: count(PLANNER_MAX_TOKENS)?.unwrap_or(own.planner_max_tokens),
        planner_timeout_seconds: count(PLANNER_TIMEOUT_SECONDS)?
            .unwrap_or(own.planner_timeout_seconds),
        prompt_guard: flag(PLANNER_PROMPT_GUARD_ENABLED)?,
        fallback_sequence: sequence(environment)?.unwrap_or(own.fallback_sequence),
    };
    let seconds = count(LANGGRAPH_INVESTIGATION_TIMEOUT_SECONDS)?;
    Ok(Defaults {
        ceiling: Budget::UNLIMITED,
        model: model(environment)?,
        is_policy_only: !options.planner_llm,
        on_model_failure: (!options.planner_fallback).then_some(OnModelFailure::Fail),
        budget: Budget { seconds: seconds.map(u64::from), ..Budget::UNLIMITED },
        tool_timeout_s: Some(options.tool_timeout_seconds),
        options: json!(options),
        session_option: Some("investigation_id"),
    })
}

fn count(environment: &Environment<'_>, name: &'static str) -> Result<Option<u32>, Unusable> {
    let expected = "a whole number from 1 to 100000";
    let count = environment.whole_number(name, 1..=COUNT_MAX, expected)?;
    Ok(count.and_then(|count| u32::try_from(count).ok()))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 200")]
fn temperature_percent(environment: &Environment<'_>) -> Result<Option<u32>, Unusable> {
    environment.read(PLANNER_TEMPERATURE, "a number from 0 to 2", |text| {
        let temperature = text.parse::<f64>().ok();
        let temperature = temperature.filter(|t| (0.0..=TEMPERATURE_MAX).contains(t));
        temperature.map(|temperature| (temperature * 100.0).round() as u32)
    })
}

fn sequence(environment: &Environment<'_>) -> Result<Option<Vec<super::tool::Tool>>, Unusable> {
    let expected = "names of tools with commas between them, context_tool first, each once and \
                    after those that it needs";
    environment.read(PLANNER_FALLBACK_SEQUENCE, expected, options::sequence)
}

/// `ollama/NAME`, the specification's form, means a model behind the OpenAI-compatible server.
fn model(environment: &Environment<'_>) -> Result<Option<String>, Unusable> {
    let expected = "policy, bedrock:ID, openai:NAME, ollama/NAME or transcript:FILE";
    environment.read(PLANNER_MODEL_NAME, expected, |text| {
        let name = match text.strip_prefix("ollama/") {
            Some(name) => format!("openai:{name}"),
            None => text.to_owned(),
        };
        Model::try_from(name).ok().map(String::from)
    })
}

/// Source: the fraud specification, section 12.
fn observe(run: &Run, step: &Step<Value>) -> Observed {
    match &step.body {
        StepBody::Outcome { effect, .. } => match state(run) {
            Some(state) => observe_outcome(&state, &effect.node, step),
            None => Observed { attributes: vec![of_session(step)], ..Observed::default() },
        },
        StepBody::End { payload, .. } if payload.is_object() => observe_end(payload),
        _ => Observed::default(),
    }
}

fn observe_outcome(state: &State, node: &str, step: &Step<Value>) -> Observed {
    let mut observed = Observed { attributes: vec![of_session(step)], ..Observed::default() };
    match node {
        PLANNER => {
            if let Some(decision) = decision(state, step) {
                let tool = decision.selected.name();
                observed.samples.push(Sample {
                    metric: &PLANNER_DECISIONS,
                    labels: vec![
                        ("selected_tool", tool.to_owned()),
                        ("used_fallback", decision.used_fallback.to_string()),
                    ],
                    value: 1.0,
                });
                // The number of decisions when this one was requested.
                let before = decision.step.saturating_sub(1);
                observed.attributes.push(("step_count", json!(before)));
                observed.attributes.push(("selected_tool", json!(tool)));
            }
        }
        TOOL_EXECUTOR => {
            if let Some(done) = state.tool_executions.last() {
                let took = std::time::Duration::from_millis(done.execution_time_ms);
                observed.samples.push(Sample {
                    metric: &TOOL_EXECUTION_LATENCY,
                    labels: vec![
                        ("tool_name", done.tool_name.name().to_owned()),
                        ("status", word(&json!(done.status))),
                    ],
                    value: took.as_secs_f64(),
                });
                observed.attributes.push(("execution_time_ms", json!(done.execution_time_ms)));
            }
        }
        _ => {}
    }
    observed
}

fn observe_end(result: &Value) -> Observed {
    let steps = result["step_count"].as_u64().and_then(|steps| u32::try_from(steps).ok());
    let labels = vec![("status", word(&result["status"])), ("severity", word(&result["severity"]))];
    let steps = Sample {
        metric: &INVESTIGATION_STEPS,
        labels: vec![],
        value: steps.unwrap_or_default().into(),
    };
    let ended = Sample { metric: &INVESTIGATIONS_COMPLETED, labels, value: 1.0 };
    Observed { samples: vec![steps, ended], ..Observed::default() }
}

fn of_session(step: &Step<Value>) -> (&'static str, Value) {
    ("investigation_id", json!(step.session.as_str()))
}

/// The decision of a step. A failed planner decides nothing; the next record names the replacement.
fn decision<'a>(state: &'a State, step: &Step<Value>) -> Option<&'a PlannerDecision> {
    state.planner_decisions.last().filter(|d| d.timestamp == step.stamp.to_string())
}

fn state(run: &Run) -> Option<State> {
    run.state_json().ok().as_ref().and_then(of_json)
}

/// The serialised form of an enum value.
fn word(value: &Value) -> String {
    value.as_str().unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use ::graph::agent::Settings;
    use ::graph::definition::Finish;
    use ::graph::effect::ToolCall;
    use ::graph::next::Next;
    use ::graph::outcome::Brought;
    use ::graph::testing::{TestSession, World};

    use super::*;
    use crate::tool::Tool;

    fn read(pairs: &[(&str, &str)]) -> Result<Defaults, Unusable> {
        defaults(&Environment::of(&|name: &str| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        }))
    }

    #[test]
    fn the_defaults_are_those_of_the_specification() {
        let defaults = read(&[]).unwrap();
        assert_eq!(defaults.options, json!(Options::default()));
        assert_eq!((defaults.budget, defaults.model), (Budget::UNLIMITED, None));
        assert_eq!((defaults.is_policy_only, defaults.on_model_failure), (false, None));
    }

    #[test]
    fn every_variable_is_read() {
        let pairs = [
            ("LANGGRAPH_MAX_STEPS", "5"),
            ("LANGGRAPH_INVESTIGATION_TIMEOUT_SECONDS", "60"),
            ("LANGGRAPH_TOOL_TIMEOUT_SECONDS", "7"),
            ("LANGGRAPH_ENABLE_PLANNER_FALLBACK", "false"),
            ("PLANNER_LLM_ENABLED", "false"),
            ("REASONING_LLM_ENABLED", "true"),
            ("PLANNER_MODEL_NAME", "ollama/llama3.2"),
            ("PLANNER_TEMPERATURE", "0.35"),
            ("PLANNER_MAX_TOKENS", "100"),
            ("PLANNER_TIMEOUT_SECONDS", "3"),
            ("PLANNER_PROMPT_GUARD_ENABLED", "false"),
            ("PLANNER_FALLBACK_SEQUENCE", "context_tool,pattern_tool"),
        ];
        let mut names: Vec<_> = pairs.iter().map(|(name, _)| *name).collect();
        let mut known = PROFILE.variables.to_vec();
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(names, known);
        let expected = Options {
            investigation_id: String::new(),
            max_steps: 5,
            tool_timeout_seconds: 7,
            planner_fallback: false,
            planner_llm: false,
            reasoning_llm: true,
            planner_temperature_percent: 35,
            planner_max_tokens: 100,
            planner_timeout_seconds: 3,
            prompt_guard: false,
            fallback_sequence: vec![Tool::Context, Tool::Pattern],
        };
        let defaults = read(&pairs).unwrap();
        assert_eq!(defaults.options, json!(expected));
        assert_eq!((defaults.budget.seconds, defaults.tool_timeout_s), (Some(60), Some(7)));
        assert_eq!(defaults.model.as_deref(), Some("openai:llama3.2"));
        assert!(defaults.is_policy_only);
        assert_eq!(defaults.on_model_failure, Some(OnModelFailure::Fail));
    }

    #[test]
    fn a_wrong_value_stops_the_program() {
        for (name, value) in [
            ("LANGGRAPH_MAX_STEPS", "0"),
            ("LANGGRAPH_TOOL_TIMEOUT_SECONDS", "soon"),
            ("PLANNER_LLM_ENABLED", "yes"),
            ("PLANNER_TEMPERATURE", "NaN"),
            ("PLANNER_MODEL_NAME", "gpt"),
            ("PLANNER_FALLBACK_SEQUENCE", "pattern_tool"),
        ] {
            let refusal = read(&[(name, value)]).unwrap_err().to_string();
            assert!(refusal.starts_with(&format!("{name} is `{value}`, expected ")), "{refusal}");
        }
    }

    #[test]
    fn every_decision_call_and_end_is_counted_once() {
        let input = json!({"transaction_id": "t1", "data": "a.csv"});
        let mut session = TestSession::start(crate::agent(), input, Settings::default()).unwrap();
        let mut world = World::new(|call: &ToolCall| match call.tool.as_str() {
            "pattern_tool" => {
                Brought::Ok(json!({"transaction_id": "t1", "findings": [], "not_checked": []}))
            }
            _ => Brought::Error("no".to_owned()),
        });
        let mut samples = Vec::new();
        // The driver observes a step after it is journaled and folded.
        loop {
            match session.run().next() {
                Next::Perform(requests) => session.perform(&requests[0], &mut world),
                Next::Note(note) => session.append(note.body()),
                _ => break,
            }
            samples.extend(observe(session.run(), session.steps().last().unwrap()).samples);
        }
        let Finish::Completed(result) = session.drive(&mut world) else { panic!("completed") };
        samples.extend(observe_end(&result).samples);
        let lines: Vec<String> = samples
            .iter()
            .map(|Sample { metric, labels, value }| {
                let labels: Vec<String> =
                    labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
                format!("{} {} {value}", metric.name, labels.join(","))
            })
            .collect();
        let call = |tool: &str, status: &str| {
            format!(
                "ops_agent_planner_decisions_total selected_tool={tool},used_fallback=true 1\n\
                 ops_agent_tool_execution_latency_seconds tool_name={tool},status={status} 1"
            )
        };
        let expected = [
            call("context_tool", "FAILED"),
            call("pattern_tool", "SUCCESS"),
            call("similarity_tool", "FAILED"),
            call("reasoning_tool", "FAILED"),
            call("recommendation_tool", "FAILED"),
            call("rule_draft_tool", "FAILED"),
            "ops_agent_planner_decisions_total selected_tool=COMPLETE,used_fallback=true 1"
                .to_owned(),
            "ops_agent_investigation_steps  7".to_owned(),
            "ops_agent_investigation_completed_total status=COMPLETED,severity=unknown 1"
                .to_owned(),
        ];
        assert_eq!(lines.join("\n"), expected.join("\n"));
    }
}
