//! The two lines that an incident leaves in the log, so that reading them needs no journal.
//!
//! Source: the incident specification, section 7. They are the one exception to the rule that no
//! payload is logged.

use graph::budget::Limit;
use graph::run::Run;
use serde_json::{Value, json};

/// The agent whose sessions leave them.
const AGENT: &str = "incident";

/// The target of both lines, for whoever writes them without what surrounds a log line.
pub const TARGET: &str = "agent::summary";

/// Logs how an incident went that has just ended with this result.
pub fn log(run: &Run, result: &Value) {
    if run.agent() == AGENT {
        for line in lines(run, result) {
            tracing::info!(target: TARGET, "{line}");
        }
    }
}

fn lines(run: &Run, result: &Value) -> [Value; 2] {
    let used = run.usage();
    // A session that failed for its model has no result; the graph knows what it worked on.
    let incident_id = match &result["incident_id"] {
        Value::Null => run.state_json().unwrap_or_default()["incident"]["incident_id"].clone(),
        id => id.clone(),
    };
    let allowed = run.budget().allowed(Limit::Tokens);
    let metrics = json!({
        "event": "agent_metrics",
        "incident_id": incident_id,
        "llm_calls": used.model_calls,
        "total_prompt_tokens": used.input_tokens,
        "total_completion_tokens": used.output_tokens,
        "unsettled_tokens": used.unsettled_tokens,
        "total_tokens": used.tokens(),
        "budget_remaining": allowed.map(|allowed| allowed.saturating_sub(used.tokens())),
    });
    let summary = json!({
        "event": "agent_reasoning_summary",
        "incident_id": incident_id,
        "tools_called": result["tools_called"],
        "fault_types": result["fault_types"],
        "root_cause": result["root_cause"],
        "severity": result["severity"],
        "steps": used.calls,
    });
    [metrics, summary]
}
