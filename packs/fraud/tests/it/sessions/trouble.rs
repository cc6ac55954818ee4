//! Failing tools, invalid data, hidden labels, and resumed sessions.

use std::cell::RefCell;

use graph::agent::Settings;
use graph::budget::Budget;
use graph::definition::Finish;
use graph::effect::ToolCall;
use graph::outcome::{Brought, Failure};
use graph::testing::{self, TestSession, World};
use serde_json::{Value, json};

use super::{Desk, agent, completed, with_field};

fn failing(desk: &Desk, id: &str, broken: &str) -> Finish {
    let mut session = TestSession::start(agent(), desk.input(id), Settings::default()).unwrap();
    session.drive(&mut World::new(|call| {
        if call.tool == broken {
            return Brought::Error("the disk is on fire".to_owned());
        }
        desk.serve(call)
    }))
}

#[test]
fn the_result_names_a_failed_tool() {
    let desk = Desk::generated(6, 600, 60);
    let id = desk.targets(1).0.last().unwrap().id.clone();
    let whole = desk.investigate(&id);
    for tool in [
        "context_tool",
        "pattern_tool",
        "similarity_tool",
        "reasoning_tool",
        "recommendation_tool",
        "rule_draft_tool",
    ] {
        let result = completed(failing(&desk, &id, tool));
        let done = result["tool_executions"].as_array().unwrap();
        let failed: Vec<_> = done.iter().filter(|done| done["status"] == "FAILED").collect();
        assert_eq!(failed.len(), 1, "{tool}");
        assert_eq!(failed[0]["tool_name"], tool);
        assert_eq!(failed[0]["error_message"], "the disk is on fire");
        assert_eq!(result["completed_steps"].as_array().unwrap().len(), 6, "{tool}");
        let is_weaker = result["confidence_score"].as_f64() < whole["confidence_score"].as_f64();
        let is_evidence = !matches!(tool, "recommendation_tool" | "rule_draft_tool");
        assert_eq!(is_weaker, is_evidence, "{tool}");
    }
}

#[test]
fn without_evidence_it_fails_with_the_first_error() {
    let desk = Desk::generated(6, 600, 60);
    let mut session =
        TestSession::start(agent(), desk.input("unknown"), Settings::default()).unwrap();
    let finish = session.drive(&mut World::new(|call| desk.serve(call)));
    let Finish::Failed { error, category, result } = finish else { panic!("{finish:?}") };
    assert_eq!(category, "no_evidence");
    let expected = "transactions.csv has no transaction `unknown` among its 600 rows";
    assert!(error.as_str().contains(expected), "{error}");
    assert_eq!((&result["status"], &result["score"]), (&json!("FAILED"), &Value::Null));
    let conclusion = (fraud::conclude::PRESENTATION.conclude)(&result).unwrap();
    assert_eq!(conclusion.verdict.unwrap().word, "not assessed");
}

#[test]
fn what_is_no_answer_is_an_error_and_never_data() {
    let desk = Desk::generated(6, 600, 60);
    let id = desk.targets(1).0.last().unwrap().id.clone();
    let lies = [
        json!({"transaction_id": id, "findings": [{"pattern": "x", "strength_permille": 9999,
            "explanation": "", "rows": []}], "not_checked": []}),
        json!({"transaction_id": "another", "findings": [], "not_checked": []}),
        json!({"transaction_id": id, "findings": "none"}),
        json!("COMPLETE"),
    ];
    for lie in lies {
        let mut session =
            TestSession::start(agent(), desk.input(&id), Settings::default()).unwrap();
        let result = completed(session.drive(&mut World::new(|call| match call.tool.as_str() {
            "pattern_tool" => Brought::Ok(lie.clone()),
            _ => desk.serve(call),
        })));
        assert_eq!(result["tool_executions"][1]["status"], "FAILED", "{lie}");
        assert_eq!(result["pattern_results"], json!({}));
    }
}

#[test]
fn a_slow_tool_is_distinguished_from_a_failed_one() {
    let desk = Desk::generated(6, 600, 60);
    let id = desk.targets(1).0.last().unwrap().id.clone();
    let mut options = json!(fraud::options::Options::default());
    // Records are one second apart.
    options["tool_timeout_seconds"] = json!(1);
    let settings = Settings { options, ..Settings::default() };
    let mut session = TestSession::start(agent(), desk.input(&id), settings).unwrap();
    let result = completed(session.drive(&mut World::new(|call| match call.tool.as_str() {
        "similarity_tool" => Brought::Failure(Failure::unknown("mcp_connection", "no answer")),
        _ => desk.serve(call),
    })));
    let done = &result["tool_executions"][2];
    assert_eq!(
        (&done["tool_name"], &done["status"]),
        (&json!("similarity_tool"), &json!("TIMED_OUT"))
    );
    assert_eq!(done["error_message"], "the tool did not answer within 1 s");
    assert_eq!(result["similarity_results"], json!({}));
    assert_eq!(result["status"], "COMPLETED");
}

#[test]
fn a_timeout_is_distinguished_from_a_failure() {
    let desk = Desk::generated(6, 600, 60);
    let id = desk.targets(1).0.last().unwrap().id.clone();
    // Records are one second apart; the second tool's is at the limit.
    let budget = Budget { seconds: Some(4), ..Budget::UNLIMITED };
    for (brought, status) in [
        (Brought::Failure(Failure::unknown("mcp_connection", "no answer")), "TIMED_OUT"),
        (Brought::Error("the disk is on fire".to_owned()), "FAILED"),
    ] {
        let settings = Settings { budget, ..Settings::default() };
        let mut session = TestSession::start(agent(), desk.input(&id), settings).unwrap();
        let result = completed(session.drive(&mut World::new(|call| match call.tool.as_str() {
            "pattern_tool" => brought.clone(),
            _ => desk.serve(call),
        })));
        assert_eq!(result["status"], "TIMED_OUT");
        assert_eq!(result["tool_executions"][1]["status"], status);
    }
}

/// All answers of all tools.
fn answers(desk: &Desk, id: &str) -> Vec<Value> {
    let answers = RefCell::new(Vec::new());
    let mut session = TestSession::start(agent(), desk.input(id), Settings::default()).unwrap();
    session.drive(&mut World::new(|call: &ToolCall| {
        let brought = desk.serve(call);
        answers.borrow_mut().push(json!(brought));
        brought
    }));
    answers.into_inner()
}

#[test]
fn the_payment_s_label_and_future_labels_change_no_answer() {
    let desk = Desk::generated(8, 1_200, 60);
    let (frauds, honest) = desk.targets(90);
    for row in [*frauds.last().unwrap(), frauds[0], honest[3], *honest.last().unwrap()] {
        let before = answers(&desk, &row.id);
        let flipped = if row.is_fraud { "false" } else { "true" };
        let own = Desk::of(&with_field(&desk.path, &row.id, "is_fraud", flipped));
        assert_eq!(answers(&own, &row.id), before, "{}", row.id);
        // Labels of later payments, and of payments less than a week before.
        let at = desk.rows.iter().position(|other| other.id == row.id).unwrap();
        for other in [at.checked_sub(3), Some(at + 1)].into_iter().flatten() {
            let Some(other) = desk.rows.get(other) else { continue };
            let flipped = if other.is_fraud { "false" } else { "true" };
            let changed = Desk::of(&with_field(&desk.path, &other.id, "is_fraud", flipped));
            assert_eq!(answers(&changed, &row.id), before, "{} through {}", row.id, other.id);
        }
    }
}

#[test]
fn the_order_of_the_rows_changes_no_answer() {
    let desk = Desk::generated(8, 1_200, 60);
    let text = std::fs::read_to_string(&desk.path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let header = lines.remove(0);
    lines.reverse();
    let reversed = Desk::of(&format!("{header}\n{}\n", lines.join("\n")));
    let fraud = desk.targets(1).0.last().unwrap().id.clone();
    assert_eq!(answers(&desk, &fraud), answers(&reversed, &fraud));
}

#[test]
fn every_finding_cites_rows_and_the_payment() {
    let desk = Desk::generated(9, 2_000, 60);
    let (frauds, honest) = desk.targets(60);
    let mut findings = 0;
    for row in frauds.iter().chain(&honest) {
        for finding in desk.investigate(&row.id)["findings"].as_array().unwrap() {
            findings += 1;
            let rows: Vec<&str> =
                finding["rows"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
            assert_eq!(rows.last(), Some(&row.id.as_str()), "{finding}");
            // Impossible travel needs a previous place.
            assert!(finding["pattern"] != "impossible_travel" || rows.len() > 1, "{finding}");
            for id in rows {
                assert!(desk.rows.iter().any(|other| other.id == id), "{finding}");
            }
        }
    }
    assert!(findings > 40, "{findings}");
}

/// Removes values that differ in every run: times and durations.
fn timeless(result: &Value) -> Value {
    let mut result = result.clone();
    for field in ["started_at", "completed_at"] {
        result[field] = Value::Null;
    }
    for list in ["planner_decisions", "tool_executions"] {
        for item in result[list].as_array_mut().into_iter().flatten() {
            item["timestamp"] = Value::Null;
            if item.get("execution_time_ms").is_some() {
                item["execution_time_ms"] = Value::Null;
            }
        }
    }
    result
}

#[test]
fn an_investigation_resumes_from_every_prefix() {
    let desk = Desk::generated(10, 400, 60);
    let id = desk.targets(1).0.last().unwrap().id.clone();
    let world = || World::new(|call| desk.serve(call));
    let view = |finish: &Finish| timeless(&completed(finish.clone()));
    let steps =
        testing::every_prefix_by(agent(), &desk.input(&id), &Settings::default(), world, view);
    assert!(steps.len() >= 15, "{}", steps.len());
}
