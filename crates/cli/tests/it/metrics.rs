//! Metrics of one session, and the session and trace ids in log lines.

use reqwest::header::HOST;
use serde_json::{Value, json};

use crate::harness::{Dev, daybook, free_endpoint, incident, run};

/// Whether a metric is deterministic: durations and poll counts vary between runs.
fn is_exact(line: &str) -> bool {
    let varies =
        ["_seconds_bucket", "_seconds_sum", "daybook_polls_total", "daybook_append", "_disk_"];
    line.starts_with("daybook_") && !varies.iter().any(|name| line.contains(name))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_of_one_session_are_exact() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let dev = Dev::start(folder.path(), &data);
    let input = incident("s3-permission-revoked");
    let input = input.to_str().unwrap();
    let mut trigger = daybook(folder.path());
    trigger.args(["--endpoint", &dev.endpoint, "--data"]).arg(&data);
    let ran = run(trigger.args(["trigger", "--input", input, "--wait"]));
    assert_eq!(ran.exit, 0, "{ran:#?}");
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{}/metrics", dev.endpoint);
    let foreign = http.get(&url).header(HOST, "evil.example").send().await.unwrap();
    assert_eq!(foreign.status(), 403);
    let page = http.get(&url).send().await.unwrap().text().await.unwrap();
    let session = ran.stdout.lines().next().unwrap();
    assert!(!page.contains(session), "a session is a label");
    for kept in ["daybook_polls_total{status=\"COMPLETED\"} 1\n", "daybook_append_seconds_count"] {
        assert!(page.contains(kept), "no {kept} in\n{page}");
    }
    let mut exact: Vec<&str> = page.lines().filter(|line| is_exact(line)).collect();
    exact.sort_unstable();
    insta::assert_snapshot!(exact.join("\n"), @r#"
    daybook_admissions_total{outcome="admitted"} 1
    daybook_commit_failures_total 0
    daybook_executions_stuck 0
    daybook_executions{status="SUCCEEDED"} 1
    daybook_model_calls_total{agent="incident",by="policy",outcome="ok"} 5
    daybook_model_seconds_count{by="policy"} 5
    daybook_oldest_open_question_age_seconds 0
    daybook_session_seconds_count{status="SESSION_SUCCEEDED"} 1
    daybook_sessions_at_work{agent="assistant"} 0
    daybook_sessions_at_work{agent="checkup"} 0
    daybook_sessions_at_work{agent="fraud"} 0
    daybook_sessions_at_work{agent="incident"} 0
    daybook_sessions_at_work{agent="network"} 0
    daybook_sessions_ended_total{status="SESSION_SUCCEEDED",agent="incident"} 1
    daybook_sessions_queued{agent="assistant"} 0
    daybook_sessions_queued{agent="checkup"} 0
    daybook_sessions_queued{agent="fraud"} 0
    daybook_sessions_queued{agent="incident"} 0
    daybook_sessions_queued{agent="network"} 0
    daybook_tool_calls_total{agent="incident",tool="get_iam_state",outcome="ok"} 1
    daybook_tool_calls_total{agent="incident",tool="get_lambda_config",outcome="ok"} 1
    daybook_tool_calls_total{agent="incident",tool="get_recent_changes",outcome="ok"} 1
    daybook_tool_calls_total{agent="incident",tool="get_recent_logs",outcome="ok"} 1
    daybook_tool_calls_total{agent="incident",tool="tools/list",outcome="ok"} 1
    daybook_tool_seconds_count{tool="get_iam_state",outcome="ok"} 1
    daybook_tool_seconds_count{tool="get_lambda_config",outcome="ok"} 1
    daybook_tool_seconds_count{tool="get_recent_changes",outcome="ok"} 1
    daybook_tool_seconds_count{tool="get_recent_logs",outcome="ok"} 1
    daybook_tool_seconds_count{tool="tools/list",outcome="ok"} 1
    "#);
    for name in metrics_of_alerts() {
        assert!(page.contains(&format!("# TYPE {name} ")), "{name} is not on the page:\n{page}");
    }
    assert_eq!(dev.stop("-TERM"), 0);
}

/// The rules of `docs/alerts.yml`.
const ALERTS: &str = include_str!("../../../../docs/alerts.yml");

/// The metrics in the expressions of the alert rules.
fn metrics_of_alerts() -> Vec<&'static str> {
    let expressions = ALERTS.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let words = expressions.flat_map(|expression| expression.split(move |c| !is_name(c)));
    words.filter(|word| word.starts_with("daybook_")).collect()
}

#[test]
fn each_alert_rule_says_when_how_urgent_and_what_to_do() {
    let rules: Vec<&str> = ALERTS.split("      - alert: ").skip(1).collect();
    assert!(rules.len() >= 6 && metrics_of_alerts().len() >= rules.len());
    let mut names = Vec::new();
    for rule in &rules {
        let (name, body) = rule.split_once('\n').unwrap();
        names.push(name);
        for field in
            ["        expr: ", "          severity: ", "          summary: ", "          action: "]
        {
            let lines = body.lines().filter(|line| line.starts_with(field)).count();
            assert_eq!(lines, 1, "{name} has one `{}`", field.trim());
        }
        // A value that YAML would read as something else than text.
        let values = body.lines().filter_map(|line| line.trim().split_once(": "));
        for (field, value) in values {
            let is_plain = !value.contains(": ") && !value.contains(" #");
            assert!(is_plain && value.starts_with(|c: char| c.is_ascii_alphanumeric()), "{field}");
        }
    }
    let (all, _) = (names.len(), names.sort_unstable());
    names.dedup();
    assert_eq!(names.len(), all, "a name is used twice");
}

#[test]
fn a_log_line_contains_its_session_and_trace() {
    let folder = tempfile::tempdir().unwrap();
    let input = incident("s3-permission-revoked");
    let mut command = daybook(folder.path());
    command.env("RUST_LOG", "warn,agent=info").args(["--endpoint", &free_endpoint()]);
    command.args(["trigger", "--input", input.to_str().unwrap(), "--wait", "--with-stack"]);
    let ran = run(&mut command);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    let session = ran.stdout.lines().next().unwrap();
    let line = ran.stderr.lines().find(|line| line.contains("agent_metrics")).unwrap();
    for field in [session.to_owned(), session.replace('-', "")] {
        assert!(line.contains(&field), "no {field} in {line}");
    }
    assert!(line.contains("session_id=") && line.contains("trace_id="), "{line}");
}

/// Source: the incident specification, section 7, "Token observability".
#[test]
fn a_stack_logs_the_incident_specifications_lines_bare() {
    let folder = tempfile::tempdir().unwrap();
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let dev = Dev::logging_to(folder.path(), &data, &log);
    let input = incident("s3-permission-revoked");
    let mut trigger = daybook(folder.path());
    trigger.args(["--endpoint", &dev.endpoint, "--data"]).arg(&data);
    let ran = run(trigger.args(["trigger", "--input", input.to_str().unwrap(), "--wait"]));
    assert_eq!(ran.exit, 0, "{ran:#?}");
    assert_eq!(dev.stop("-TERM"), 0);
    let log = std::fs::read_to_string(log).unwrap();
    let objects: Vec<Value> =
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let [metrics, summary] = &objects[..] else { panic!("{log}") };
    assert_eq!(metrics["event"], "agent_metrics");
    for name in [
        "incident_id",
        "llm_calls",
        "total_prompt_tokens",
        "total_completion_tokens",
        "total_tokens",
        "budget_remaining",
    ] {
        assert!(metrics.get(name).is_some_and(|value| !value.is_null()), "{name}: {metrics}");
    }
    assert_eq!(
        (&summary["event"], &summary["fault_types"]),
        (&json!("agent_reasoning_summary"), &json!(["permission_loss"]))
    );
    for name in ["incident_id", "tools_called", "root_cause", "severity", "steps"] {
        assert!(summary.get(name).is_some_and(|value| !value.is_null()), "{name}: {summary}");
    }
}
