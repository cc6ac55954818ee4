//! What the environment says of fraud investigations, and the figures that they leave.

use agents::fraud::graph::{PLANNER, TOOL_EXECUTOR, of_json};
use agents::fraud::options::{self, Options};
use agents::fraud::state::{PlannerDecision, State};
use graph::budget::Budget;
use graph::run::Run;
use journal::step::{Step, StepBody};
use serde_json::Value;
use telemetry::span;
use workflow::env::{self, Invalid, Lookup};
use workflow::metric;
use workflow::trigger::Model;

/// The agent that investigates.
pub const AGENT: &str = "fraud";

/// What the environment says of investigations.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    /// Limits and switches.
    pub options: Options,
    /// What an investigation may use, where that is not the agent's own.
    pub budget: Budget,
    /// The planner, where the trigger names none.
    pub model: Option<Model>,
}

/// Most of anything that is counted.
const COUNT_MAX: u32 = 100_000;

/// Highest sampling temperature.
const TEMPERATURE_MAX: f64 = 2.0;

impl Defaults {
    /// Reads the variables.
    ///
    /// # Errors
    /// When one is set to what it does not take.
    pub fn read(lookup: &impl Lookup) -> Result<Self, Invalid> {
        let own = Options::default();
        let options = Options {
            investigation_id: String::new(),
            max_steps: count(lookup, env::LANGGRAPH_MAX_STEPS)?.unwrap_or(own.max_steps),
            tool_timeout_seconds: count(lookup, env::LANGGRAPH_TOOL_TIMEOUT_SECONDS)?
                .unwrap_or(own.tool_timeout_seconds),
            planner_fallback: flag(lookup, env::LANGGRAPH_ENABLE_PLANNER_FALLBACK)?,
            planner_llm: flag(lookup, env::PLANNER_LLM_ENABLED)?,
            planner_temperature_percent: temperature_percent(lookup)?
                .unwrap_or(own.planner_temperature_percent),
            planner_max_tokens: count(lookup, env::PLANNER_MAX_TOKENS)?
                .unwrap_or(own.planner_max_tokens),
            planner_timeout_seconds: count(lookup, env::PLANNER_TIMEOUT_SECONDS)?
                .unwrap_or(own.planner_timeout_seconds),
            prompt_guard: flag(lookup, env::PLANNER_PROMPT_GUARD_ENABLED)?,
            fallback_sequence: sequence(lookup)?.unwrap_or(own.fallback_sequence),
        };
        let seconds = count(lookup, env::LANGGRAPH_INVESTIGATION_TIMEOUT_SECONDS)?;
        let budget = Budget { seconds: seconds.map(u64::from), ..Budget::UNLIMITED };
        Ok(Self { options, budget, model: model(lookup)? })
    }
}

fn count(lookup: &impl Lookup, name: &'static str) -> Result<Option<u32>, Invalid> {
    let expected = "a whole number from 1 to 100000";
    checked(lookup, name, expected, |text| {
        text.parse().ok().filter(|count| (1..=COUNT_MAX).contains(count))
    })
}

fn flag(lookup: &impl Lookup, name: &'static str) -> Result<bool, Invalid> {
    let read = |text: &str| match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    };
    Ok(checked(lookup, name, "true or false", read)?.unwrap_or(true))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 200")]
fn temperature_percent(lookup: &impl Lookup) -> Result<Option<u32>, Invalid> {
    checked(lookup, env::PLANNER_TEMPERATURE, "a number from 0 to 2", |text| {
        let temperature = text.parse::<f64>().ok();
        let temperature = temperature.filter(|t| (0.0..=TEMPERATURE_MAX).contains(t));
        temperature.map(|temperature| (temperature * 100.0).round() as u32)
    })
}

fn sequence(lookup: &impl Lookup) -> Result<Option<Vec<agents::fraud::tool::Tool>>, Invalid> {
    let expected = "names of tools with commas between them, context_tool first, each once and \
                    after those that it needs";
    checked(lookup, env::PLANNER_FALLBACK_SEQUENCE, expected, options::sequence)
}

/// The specification's own form, `ollama/NAME`, means a model behind the OpenAI-compatible server.
fn model(lookup: &impl Lookup) -> Result<Option<Model>, Invalid> {
    let expected = "policy, bedrock:ID, openai:NAME, ollama/NAME or transcript:FILE";
    checked(lookup, env::PLANNER_MODEL_NAME, expected, |text| {
        let name = match text.strip_prefix("ollama/") {
            Some(name) => format!("openai:{name}"),
            None => text.to_owned(),
        };
        Model::try_from(name).ok()
    })
}

fn checked<T>(
    lookup: &impl Lookup,
    name: &'static str,
    expected: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Invalid> {
    let Some(value) = env::text(lookup, name) else { return Ok(None) };
    match read(&value) {
        Some(read) => Ok(Some(read)),
        None => Err(Invalid::Malformed { name, value, expected }),
    }
}

/// Counts a step that was just written and folded. Steps that a resumed session reads again were
/// counted by whoever wrote them.
pub fn observe(run: &Run, step: &Step<Value>) {
    let StepBody::Outcome { effect, .. } = &step.body else { return };
    if run.agent() != AGENT {
        return;
    }
    let Some(state) = state(run) else { return };
    match effect.node.as_str() {
        PLANNER => {
            if let Some(decision) = decision(&state, step) {
                let tool = decision.selected.name();
                let fallback = if decision.used_fallback { "true" } else { "false" };
                metrics::counter!(
                    metric::PLANNER_DECISIONS, "selected_tool" => tool, "used_fallback" => fallback
                )
                .increment(1);
            }
        }
        TOOL_EXECUTOR => {
            if let Some(done) = state.tool_executions.last() {
                let seconds = std::time::Duration::from_millis(done.execution_time_ms);
                metrics::histogram!(
                    metric::TOOL_EXECUTION_LATENCY,
                    "tool_name" => done.tool_name.name(), "status" => word(&done.status)
                )
                .record(seconds.as_secs_f64());
            }
        }
        _ => {}
    }
}

/// What the span of an investigation's effect says besides what every agent's does, once the effect's step
/// is folded.
///
/// Source: the fraud specification, section 12.
pub fn attributes(run: &Run, step: &Step<Value>) -> Vec<(&'static str, span::Value)> {
    let StepBody::Outcome { effect, .. } = &step.body else { return vec![] };
    if run.agent() != AGENT {
        return vec![];
    }
    let mut attributes = vec![("investigation_id", step.session.as_str().into())];
    let Some(state) = state(run) else { return attributes };
    match effect.node.as_str() {
        PLANNER => {
            if let Some(decision) = decision(&state, step) {
                // As many as there were when this one was asked for.
                attributes.push(("step_count", decision.step.saturating_sub(1).into()));
                attributes.push(("selected_tool", decision.selected.name().into()));
            }
        }
        TOOL_EXECUTOR => {
            if let Some(done) = state.tool_executions.last() {
                let ms = i64::try_from(done.execution_time_ms).unwrap_or(i64::MAX);
                attributes.push(("execution_time_ms", ms.into()));
            }
        }
        _ => {}
    }
    attributes
}

/// The decision that a step brought. A planner that failed decided nothing; the next record says who took
/// over.
fn decision<'a>(state: &'a State, step: &Step<Value>) -> Option<&'a PlannerDecision> {
    state.planner_decisions.last().filter(|d| d.timestamp == step.stamp.to_string())
}

/// Counts an investigation that has just ended with this result.
pub fn ended(run: &Run, result: &Value) {
    if run.agent() != AGENT || !result.is_object() {
        return;
    }
    let steps = result["step_count"].as_u64().and_then(|steps| u32::try_from(steps).ok());
    metrics::histogram!(metric::INVESTIGATION_STEPS).record(steps.unwrap_or_default());
    metrics::counter!(
        metric::INVESTIGATIONS_COMPLETED,
        "status" => word(&result["status"]), "severity" => word(&result["severity"])
    )
    .increment(1);
}

fn state(run: &Run) -> Option<State> {
    run.state_json().ok().as_ref().and_then(of_json)
}

/// A value of a closed list as it is written.
fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use graph::agent::Settings;
    use graph::definition::Finish;
    use graph::effect::ToolCall;
    use graph::next::Next;
    use graph::outcome::Brought;
    use graph::testing::{Session, World};
    use metrics::{
        Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
        SharedString, Unit,
    };

    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Defaults, Invalid> {
        Defaults::read(&|name: &str| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_defaults_are_those_of_the_specification() {
        let defaults = read(&[]).unwrap();
        assert_eq!(defaults.options, Options::default());
        assert_eq!((defaults.budget, defaults.model), (Budget::UNLIMITED, None));
    }

    #[test]
    fn every_variable_is_read() {
        let defaults = read(&[
            ("LANGGRAPH_MAX_STEPS", "5"),
            ("LANGGRAPH_INVESTIGATION_TIMEOUT_SECONDS", "60"),
            ("LANGGRAPH_TOOL_TIMEOUT_SECONDS", "7"),
            ("LANGGRAPH_ENABLE_PLANNER_FALLBACK", "false"),
            ("PLANNER_LLM_ENABLED", "false"),
            ("PLANNER_MODEL_NAME", "ollama/llama3.2"),
            ("PLANNER_TEMPERATURE", "0.35"),
            ("PLANNER_MAX_TOKENS", "100"),
            ("PLANNER_TIMEOUT_SECONDS", "3"),
            ("PLANNER_PROMPT_GUARD_ENABLED", "false"),
            ("PLANNER_FALLBACK_SEQUENCE", "context_tool,pattern_tool"),
        ])
        .unwrap();
        let expected = Options {
            investigation_id: String::new(),
            max_steps: 5,
            tool_timeout_seconds: 7,
            planner_fallback: false,
            planner_llm: false,
            planner_temperature_percent: 35,
            planner_max_tokens: 100,
            planner_timeout_seconds: 3,
            prompt_guard: false,
            fallback_sequence: vec![
                agents::fraud::tool::Tool::Context,
                agents::fraud::tool::Tool::Pattern,
            ],
        };
        assert_eq!(defaults.options, expected);
        assert_eq!(defaults.budget.seconds, Some(60));
        assert_eq!(defaults.model.map(String::from).as_deref(), Some("openai:llama3.2"));
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

    /// A recorder that remembers what it is told, by name and labels.
    #[derive(Clone, Default)]
    struct Told(Arc<Mutex<Vec<String>>>);

    struct Figure(Told, String);

    impl Figure {
        fn tell(&self, value: impl std::fmt::Display) {
            self.0.0.lock().unwrap().push(format!("{} {value}", self.1));
        }
    }

    impl CounterFn for Figure {
        fn increment(&self, value: u64) {
            self.tell(value);
        }

        fn absolute(&self, value: u64) {
            self.tell(value);
        }
    }

    impl HistogramFn for Figure {
        fn record(&self, value: f64) {
            self.tell(value);
        }
    }

    impl Told {
        fn figure(&self, key: &Key) -> Arc<Figure> {
            let labels: Vec<String> =
                key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            Arc::new(Figure(self.clone(), format!("{} {}", key.name(), labels.join(","))))
        }
    }

    impl Recorder for Told {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(self.figure(key))
        }

        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }

        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::from_arc(self.figure(key))
        }
    }

    #[test]
    fn each_decision_each_call_and_each_end_leaves_its_figure_once() {
        let input = serde_json::json!({"transaction_id": "t1", "data": "a.csv"});
        let agent = agents::find(AGENT).unwrap();
        let mut session = Session::start(agent, input, Settings::default()).unwrap();
        let told = Told::default();
        let mut world = World::new(|call: &ToolCall| match call.tool.as_str() {
            "pattern_tool" => Brought::Ok(
                serde_json::json!({"transaction_id": "t1", "findings": [], "not_checked": []}),
            ),
            _ => Brought::Error("no".to_owned()),
        });
        metrics::with_local_recorder(&told, || {
            // As the driver does: a step is counted once it is journaled and folded.
            while let Next::Perform(requests) = session.run().next() {
                session.perform(&requests[0], &mut world);
                observe(session.run(), session.steps().last().unwrap());
            }
            let Finish::Completed(result) = session.drive(&mut world) else { panic!("completed") };
            ended(session.run(), &result);
        });
        let told = told.0.lock().unwrap().join("\n");
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
            "ops_agent_investigation_completed_total status=COMPLETED,severity=LOW 1".to_owned(),
        ];
        assert_eq!(told, expected.join("\n"));
        assert_eq!(
            metric::INVESTIGATION_STEPS_BUCKETS.map(|bound| bound as u32),
            std::array::from_fn(|i| i as u32 + 1)
        );
    }
}
