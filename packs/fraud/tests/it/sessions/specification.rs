//! The specification's lists: fields, in their order, with their defaults.

use graph::agent::Settings;
use graph::effect::{Author, Content, Reply, ToolCall};
use graph::outcome::Brought;
use graph::testing::{TestSession, World};
use journal::step::{Step, StepBody, Usage};
use serde_json::{Value, json};

use super::Desk;

/// Source: the fraud specification, section 2; then our own fields.
const FIELDS: [&str; 28] = [
    "investigation_id",
    "transaction_id",
    "context",
    "pattern_results",
    "similarity_results",
    "hypotheses",
    "evidence",
    "reasoning",
    "recommendations",
    "rule_draft",
    "confidence_score",
    "severity",
    "status",
    "completed_steps",
    "next_action",
    "step_count",
    "max_steps",
    "started_at",
    "completed_at",
    "feature_flags",
    "safeguards",
    "planner_decisions",
    "tool_executions",
    "error",
    "score",
    "findings",
    "calibration",
    "model_failed",
];

fn names(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn an_investigation_has_every_field_of_the_specification() {
    let desk = Desk::generated(12, 1_000, 40);
    let fraud = desk.targets(1).0.last().unwrap().id.clone();
    let result = desk.investigate(&fraud);
    assert_eq!(names(&result), FIELDS);
    assert_eq!(
        names(&result["tool_executions"][0]),
        [
            "tool_name",
            "input_summary",
            "output_summary",
            "execution_time_ms",
            "status",
            "error_message",
            "timestamp"
        ]
    );
    assert_eq!(
        names(&result["planner_decisions"][0]),
        ["step", "selected_tool", "reason", "confidence", "timestamp", "used_fallback", "rejected"]
    );
    assert_eq!(
        result["feature_flags"],
        json!({"planner_llm_enabled": false, "reasoning_llm_enabled": false,
            "vector_search_enabled": false, "prompt_guard_enabled": true})
    );
    assert_eq!(
        result["safeguards"],
        json!({"max_steps": 20, "investigation_timeout_seconds": 120, "tool_timeout_seconds": 30})
    );
    assert_eq!(
        result["completed_steps"],
        json!([
            "context_tool",
            "pattern_tool",
            "similarity_tool",
            "reasoning_tool",
            "recommendation_tool",
            "rule_draft_tool"
        ])
    );
    assert_eq!((&result["next_action"], &result["step_count"]), (&json!("COMPLETE"), &json!(7)));
    assert_eq!(result["status"], "COMPLETED");
    for score in ["score", "confidence_score"] {
        let score = result[score].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&score));
    }
    let severities = ["CRITICAL", "HIGH", "MEDIUM", "LOW"];
    assert!(severities.contains(&result["severity"].as_str().unwrap()));
    assert!(result["started_at"].as_str() < result["completed_at"].as_str());
}

#[test]
fn the_options_are_those_of_the_specification() {
    let expected = json!({
        "investigation_id": "",
        "max_steps": 20,
        "tool_timeout_seconds": 30,
        "planner_fallback": true,
        "planner_llm": true,
        "reasoning_llm": false,
        "planner_temperature_percent": 10,
        "planner_max_tokens": 256,
        "planner_timeout_seconds": 10,
        "prompt_guard": true,
        "fallback_sequence": ["context_tool", "pattern_tool", "similarity_tool", "reasoning_tool",
            "recommendation_tool", "rule_draft_tool"],
    });
    assert_eq!(json!(fraud::options::Options::default()), expected);
    assert_eq!(super::agent().budget().seconds, Some(120));
    assert_eq!(super::agent().tool_timeout_s(), 30);
}

#[test]
fn records_follow_the_specified_order_and_the_end_is_last() {
    let desk = Desk::generated(12, 600, 60);
    let fraud = desk.targets(1).0.last().unwrap().id.clone();
    let mut session =
        TestSession::start(super::agent(), desk.input(&fraud), Settings::default()).unwrap();
    session.drive(&mut World::new(|call| desk.serve(call)));
    let label = |step: &Step<Value>| match &step.body {
        StepBody::Outcome { effect, .. } => effect.node.clone(),
        StepBody::Note { subject, payload, .. } => {
            assert_eq!(payload["transaction_id"], json!(fraud));
            assert!(subject == "evidence" || payload["decisions"] == 7, "{payload}");
            subject.clone()
        }
        other => other.kind().as_str().to_owned(),
    };
    let records: Vec<String> = session.steps().iter().map(label).collect();
    let step = ["planner", "tool_executor"];
    let expected: Vec<&str> = ["claim"]
        .into_iter()
        .chain(std::iter::repeat_n(step, 4).flatten())
        .chain(["planner", "evidence", "tool_executor"])
        .chain(["planner", "tool_executor", "planner", "audit", "end"])
        .collect();
    assert_eq!(records, expected);
}

/// Source: the fraud specification, section 5, "Current Confidence", "Current Severity" and rule 7.
#[test]
fn the_planner_reads_confidence_severity_and_rule_7() {
    let desk = Desk::generated(12, 600, 60);
    let fraud = desk.targets(1).0.last().unwrap().id.clone();
    let settings = Settings { model: Some("m".to_owned()), ..Settings::default() };
    let mut session = TestSession::start(super::agent(), desk.input(&fraud), settings).unwrap();
    let mut prompts = Vec::new();
    let mut world = World::new(|call| desk.serve(call)).models(|chat| {
        let Content::User(text) = &chat.messages[0].content else { panic!("{chat:?}") };
        prompts.push(text.clone());
        // Each choice is rejected but the last, and the fixed sequence goes on.
        let arguments = json!({"tool": "COMPLETE", "reason": "enough", "confidence": 1.0});
        let calls = vec![ToolCall::built_in("select_next_step", arguments)];
        let by = Author::Model("m".to_owned());
        (Brought::Reply(Reply { text: None, calls, by }), Usage::default())
    });
    let result = super::completed(session.drive(&mut world));
    drop(world);
    let line = |prompt: &str, name: &str| {
        let line = prompt.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit_once(": ").unwrap().1.to_owned()
    };
    let first = prompts.first().unwrap();
    assert_eq!(line(first, "Confidence so far"), "0 of 1000");
    assert_eq!(line(first, "Severity so far"), "not judged yet");
    let last = prompts.last().unwrap();
    let confidence = result["confidence_score"].as_f64().unwrap();
    assert_eq!(line(last, "Confidence so far"), format!("{:.0} of 1000", confidence * 1_000.0));
    assert_eq!(line(last, "Severity so far"), result["severity"].as_str().unwrap());
    assert!(last.contains("\n7. Consider confidence and severity when you decide"), "{last}");
}

#[test]
fn vector_search_is_reported_only_if_texts_were_compared() {
    let desk = Desk::generated(12, 600, 60);
    let fraud = desk.targets(1).0.last().unwrap().id.clone();
    for (method, expected) in [("features and text", true), ("features", false)] {
        let mut session =
            TestSession::start(super::agent(), desk.input(&fraud), Settings::default()).unwrap();
        let mut world = World::new(|call| match desk.serve(call) {
            Brought::Ok(mut content) if call.tool == "similarity_tool" => {
                content["method"] = json!(method);
                Brought::Ok(content)
            }
            other => other,
        });
        let result = super::completed(session.drive(&mut world));
        assert_eq!(result["feature_flags"]["vector_search_enabled"], expected, "{method}");
    }
    let mut session =
        TestSession::start(super::agent(), desk.input(&fraud), Settings::default()).unwrap();
    let mut world = World::new(|call| match call.tool.as_str() {
        "similarity_tool" => Brought::Error("no model".to_owned()),
        _ => desk.serve(call),
    });
    let result = super::completed(session.drive(&mut world));
    assert_eq!(result["feature_flags"]["vector_search_enabled"], false);
}

/// The record comes before the call of the recommendation tool, and has what the advice rests on.
#[test]
fn the_evidence_is_recorded_before_the_recommendations() {
    let desk = Desk::generated(12, 600, 60);
    let fraud = desk.targets(1).0.last().unwrap().id.clone();
    let mut session =
        TestSession::start(super::agent(), desk.input(&fraud), Settings::default()).unwrap();
    let result = super::completed(session.drive(&mut World::new(|call| desk.serve(call))));
    let recorded: Vec<&Value> = session
        .steps()
        .iter()
        .filter_map(|step| match &step.body {
            StepBody::Note { subject, payload, .. } if subject == "evidence" => Some(payload),
            _ => None,
        })
        .collect();
    let [recorded] = recorded[..] else { panic!("{recorded:?}") };
    let rows = |evidence: &Value| -> Vec<Value> {
        let evidence = evidence.as_array().unwrap().iter();
        evidence.map(|piece| json!([piece["tool"], piece["pattern"], piece["rows"]])).collect()
    };
    assert!(!rows(&recorded["evidence"]).is_empty());
    assert_eq!(rows(&recorded["evidence"]), rows(&result["evidence"]));
    assert_eq!(recorded["severity"], result["severity"]);
    let tools: Vec<Value> =
        recorded["tools"].as_array().unwrap().iter().map(|tool| tool[0].clone()).collect();
    assert_eq!(
        json!(tools),
        json!(["context_tool", "pattern_tool", "similarity_tool", "reasoning_tool"])
    );
}
