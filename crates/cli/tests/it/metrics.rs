//! Metrics of one session, and the session and trace ids in log lines.

use reqwest::header::HOST;

use crate::harness::{Dev, daybook, free_endpoint, incident, run};

/// Whether a metric is deterministic: durations and poll counts vary between runs.
fn is_exact(line: &str) -> bool {
    let varies = ["_seconds_bucket", "_seconds_sum", "daybook_polls_total", "daybook_append"];
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
    daybook_executions{status="SUCCEEDED"} 1
    daybook_model_calls_total{by="policy",outcome="ok"} 5
    daybook_model_seconds_count{by="policy"} 5
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
    daybook_tool_calls_total{outcome="ok"} 5
    daybook_tool_seconds_count{outcome="ok"} 5
    "#);
    assert_eq!(dev.stop("-TERM"), 0);
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
