//! Whole runs, from the event to the verdict.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use journal::clock::Clock;
use serde_json::{Value, json};

use crate::fixture;
use crate::harness::{DEADLINE, Dev, Ran, daybook, free_endpoint, incident, run, run_in};

/// Runs `trigger --wait --with-stack` on a port and a folder of its own.
fn trigger(folder: &Path, arguments: &[&str]) -> Ran {
    let endpoint = free_endpoint();
    let before = ["--endpoint", &endpoint, "--data", "data", "trigger", "--wait", "--with-stack"];
    run_in(folder, &[&before[..], arguments].concat())
}

fn session(ran: &Ran) -> Value {
    let lines = ran.json();
    assert!(lines[0]["session_id"].is_string(), "{ran:#?}");
    let last = lines.last().unwrap().clone();
    assert_eq!(last["type"], "session", "{ran:#?}");
    last
}

/// Where the lines that begin so are in a text.
fn places(text: &str, names: &[&str]) -> Vec<usize> {
    let line_of = |name: &&str| text.lines().position(|line| line.contains(*name));
    names.iter().map(|name| line_of(name).unwrap_or_else(|| panic!("{name}: {text}"))).collect()
}

#[test]
fn a_trigger_without_options_runs_the_checkup() {
    let folder = tempfile::tempdir().unwrap();
    let ran = trigger(folder.path(), &["--json"]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    let session = session(&ran);
    assert_eq!(
        (session["status"].as_str(), session["agent"].as_str()),
        (Some("SUCCEEDED"), Some("checkup"))
    );
    let checks = session["result"]["checks"].as_array().unwrap();
    assert!(!checks.is_empty() && checks.iter().all(|check| check["ok"] == true), "{session:#}");
    assert!(ran.stderr.contains("starting a stack for this run"), "{}", ran.stderr);
}

#[test]
fn an_incident_is_printed_live_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let input = incident("s3-permission-revoked");
    let ran = trigger(folder.path(), &["--agent", "incident", "--input", input.to_str().unwrap()]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    let in_order = places(
        &ran.stdout,
        &[
            "SESSION_INITIATED",
            "AGENT_INVOCATION_STARTED",
            "AGENT_ENTRYPOINT_STARTED",
            "AGENT_BACKGROUND_TASK_STARTED",
            "AGENT_BACKGROUND_TASK_COMPLETED",
            "SESSION_SUCCEEDED",
            "✓ SUCCEEDED",
            "Diagnosis",
            "Root cause",
            "Evidence",
            "Remediation",
        ],
    );
    assert!(in_order.is_sorted(), "{}", ran.stdout);
    assert!(ran.stdout.contains("AGENT_INVOCATION_SUCCEEDED"), "{}", ran.stdout);
    assert!(ran.stdout.contains("tools/list →"), "calls are named: {}", ran.stdout);
    assert!(!ran.stdout.contains('\u{1b}'), "no colour goes into a pipe");
}

#[test]
fn every_bundled_incident_gets_its_diagnosis() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    for (name, expected) in [
        ("s3-permission-revoked", &["permission_loss"][..]),
        ("cloudwatch-revoked", &["permission_loss"]),
        ("cloudwatch-and-s3-revoked", &["permission_loss"]),
        ("reserved-concurrency-zero", &["throttling"]),
        ("network-blocked", &["network_block"]),
        ("throttled-and-s3-revoked", &["permission_loss", "throttling"]),
        ("unexplained-failure", &["unknown"]),
    ] {
        let input = incident(name).join("incident.json");
        let ran = run(daybook(folder.path())
            .args(["--endpoint", &dev.endpoint, "trigger", "--wait", "--json", "--input"])
            .arg(input));
        assert_eq!(ran.exit, 0, "{name}: {ran:#?}");
        let session = session(&ran);
        let mut faults: Vec<_> = session["result"]["fault_types"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| f.as_str().unwrap())
            .collect();
        faults.sort_unstable();
        assert_eq!(faults, expected, "{name}");
        assert_eq!(session["incident_state"], "DIAGNOSED", "{name}");
        assert_eq!(session["result"]["incident_state"], "DIAGNOSED", "{name}");
    }
    assert_eq!(dev.stop("-TERM"), 0);
}

#[test]
fn an_invalid_input_exits_1_and_names_the_field() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    for (arguments, said) in [
        (&["--agent", "incident"][..], "lambda_name"),
        (&["--detail", r#"{"agnet": 1}"#], "detail.agnet"),
        (&["--detail", r#"{"input": "text"}"#], "detail.input"),
        (&["--model", "gpt"], "detail.model"),
        (&["--detail", r#"{"agent": "incident", "input": {"lambda_name": 7}}"#], "lambda_name"),
    ] {
        let trigger = ["--endpoint", &dev.endpoint, "trigger", "--wait", "--json"];
        let ran = run_in(folder.path(), &[&trigger[..], arguments].concat());
        assert_eq!(ran.exit, 1, "{arguments:?}: {ran:#?}");
        let session = session(&ran);
        assert_eq!(session["status"], "FAILED", "{arguments:?}");
        assert!(session["error"].as_str().unwrap().contains(said), "{arguments:?}: {session:#}");
    }
    assert_eq!(dev.stop("-INT"), 0);
}

#[test]
fn a_folder_with_missing_files_is_still_diagnosed() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken");
    std::fs::create_dir_all(broken.join("functions/inventory-sync")).unwrap();
    std::fs::write(broken.join("incident.json"), r#"{"error_type": "Timeout"}"#).unwrap();
    let ran = trigger(folder.path(), &["--input", "broken"]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    assert!(ran.stdout.contains("no such file"), "{}", ran.stdout);
    assert!(ran.stdout.contains("! unknown"), "{}", ran.stdout);
}

#[test]
fn a_running_stack_admits_an_import_and_no_second_stack() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let at = |arguments: &[&str]| {
        run_in(folder.path(), &[&["--endpoint", &dev.endpoint], arguments].concat())
    };
    let id = at(&["trigger"]).stdout.trim().to_owned();
    assert_eq!(id.len(), 36, "{id}");
    let tail = at(&["tail", &id]);
    assert_eq!(tail.exit, 0, "{tail:#?}");
    let listed = at(&["sessions", "--agent", "checkup", "--status", "succeeded", "--json"]).json();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["session_id"], id.as_str());
    assert!(at(&["sessions"]).stdout.contains(&id));
    assert!(at(&["show", &id[..8], "--steps"]).stdout.contains("✓ SUCCEEDED"));
    let cancel = at(&["cancel", &id, "--reason", "too late"]);
    assert_eq!(cancel.exit, 2, "{cancel:#?}");
    assert!(cancel.stderr.contains("the session has ended"), "{}", cancel.stderr);
    let exported = at(&["export", &id]).stdout;
    std::fs::write(folder.path().join("session.jsonl"), exported).unwrap();
    let import = at(&["import", "session.jsonl"]);
    assert_eq!(import.exit, 0, "{import:#?}");
    assert!(import.stderr.contains("imported 0 records"), "{}", import.stderr);
    let second = run_in(folder.path(), &["--data", "data", "dev", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.exit, 2, "{second:#?}");
    assert!(second.stderr.contains("another stack uses the folder"), "{}", second.stderr);
    assert_eq!(dev.stop("-TERM"), 0);
    let read =
        run_in(folder.path(), &["--endpoint", &free_endpoint(), "--data", "data", "verify", &id]);
    assert_eq!(read.exit, 0, "{read:#?}");
}

/// The local endpoint as AWS: the same client, configured with the SDK's environment variables.
#[test]
fn in_aws_the_execution_determines_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let cloud = |arguments: &[&str]| {
        let mut command = daybook(folder.path());
        command.env("AWS_ENDPOINT_URL", &dev.endpoint).env("AWS_REGION", "us-east-1");
        command.env("AWS_ACCESS_KEY_ID", "x").env("AWS_SECRET_ACCESS_KEY", "x");
        command.env("DAYBOOK_TARGET", "aws").args(["trigger", "--wait"]).args(arguments);
        command
    };
    let machine = "arn:aws:states:us-east-1:000000000000:stateMachine:daybook";
    let ran = run(cloud(&["--json"]).env("STATE_MACHINE_ARN", machine));
    assert_eq!(ran.exit, 0, "{ran:#?}");
    let (put, execution) = (&ran.json()[0], &ran.json()[1]);
    assert_eq!(execution["output"]["session_id"], put["session_id"]);
    assert_eq!(execution["output"]["status"], "SUCCEEDED");
    let ran = run(cloud(&["--agent", "nobody"]).env("STATE_MACHINE_ARN", machine));
    assert_eq!(ran.exit, 1, "{ran:#?}");
    assert!(ran.stdout.contains("execution FAILED"), "{}", ran.stdout);
    let ran = run(&mut cloud(&[]));
    assert_eq!(ran.exit, 2, "nothing says which state machine: {ran:#?}");
    // A build with AWS support looks up the stack's names, which the local stack does not have.
    let said = if cfg!(feature = "live") {
        "cannot describe the stack daybook-dev"
    } else {
        "STATE_MACHINE_ARN to wait for its execution"
    };
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn a_stack_beyond_loopback_requires_its_token() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let refused = run_in(folder.path(), &["--data", "data", "dev", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.exit, 2, "{refused:#?}");
    assert!(refused.stderr.contains("hint: set DAYBOOK_TOKEN"), "{}", refused.stderr);
    let mut command = daybook(folder.path());
    let dev = Dev::listening(command.env("DAYBOOK_TOKEN", "secret"), &data, "0.0.0.0:0");
    let endpoint = dev.endpoint.replace("0.0.0.0", "127.0.0.1");
    let trigger = ["--endpoint", &endpoint, "trigger", "--wait"];
    let ran = run(daybook(folder.path()).env("DAYBOOK_TOKEN", "secret").args(trigger));
    assert_eq!(ran.exit, 0, "{ran:#?}");
    let ran = run(daybook(folder.path()).args(trigger));
    assert_eq!(ran.exit, 2, "{ran:#?}");
    assert!(ran.stderr.contains("DAYBOOK_TOKEN"), "{}", ran.stderr);
}

#[tokio::test]
async fn a_question_is_answered_once() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fixture::write(&data, Clock::system().now().before(Duration::from_secs(60))).await;
    let dev = Dev::start(folder.path(), &data);
    let at = |arguments: &[&str]| {
        run_in(folder.path(), &[&["--endpoint", &dev.endpoint], arguments].concat())
    };
    let id = fixture::WAITING;
    std::fs::write(folder.path().join("edit.json"), r#"{"id": 7, "dose_mg": 1.5}"#).unwrap();
    std::fs::write(folder.path().join("list.json"), "[]").unwrap();
    assert_eq!(at(&["answer", id, "--edit", "list.json"]).exit, 64, "arguments are an object");
    let answered = at(&["answer", &id[..8], "--edit", "edit.json"]);
    assert_eq!(answered.exit, 0, "{answered:#?}");
    assert_eq!(answered.stdout, "", "what is said is no data");
    let shown = at(&["show", id, "--steps"]).stdout;
    assert!(shown.contains("INPUT_RECEIVED"), "{shown}");
    assert!(shown.contains("answer to #3: edit"), "{shown}");
    assert!(shown.contains(&format!("by {} (OS user, stated)", me())), "{shown}");
    let again = at(&["answer", id, "--approve"]);
    assert_eq!(again.exit, 2, "{again:#?}");
    assert!(again.stderr.contains("no question is open"), "{}", again.stderr);
}

/// The name of this process's user.
fn me() -> String {
    let name = std::process::Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(name.stdout).unwrap().trim().to_owned()
}

/// Stops an execution, which the command line cannot do.
async fn stop_execution(endpoint: &str, session: &str) {
    let credentials = aws_sdk_sfn::config::Credentials::new("x", "x", None, None, "test");
    let config = aws_sdk_sfn::Config::builder()
        .behavior_version_latest()
        .region(aws_sdk_sfn::config::Region::new("us-east-1"))
        .credentials_provider(credentials)
        .endpoint_url(endpoint);
    let arn = stack::names::execution_arn(stack::names::STATE_MACHINE, session);
    let client = aws_sdk_sfn::Client::from_conf(config.build());
    client.stop_execution().execution_arn(arn).send().await.unwrap();
}

#[tokio::test]
async fn a_session_with_a_stopped_execution_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    // The checkup hangs in this server until the gate is there.
    let script = r#"until test -e "$0"; do sleep 0.02; done"#;
    let server = json!({ "command": "sh", "args": ["-c", script, folder.path().join("gate")] });
    let servers = folder.path().join("servers.json");
    std::fs::write(&servers, json!({ "mcpServers": { "gated": server } }).to_string()).unwrap();
    let mut command = daybook(folder.path());
    command.env("DAYBOOK_MCP_SERVERS", &servers);
    let dev = Dev::listening(&mut command, &folder.path().join("data"), "127.0.0.1:0");
    let at = |arguments: &[&str]| {
        run_in(folder.path(), &[&["--endpoint", &dev.endpoint], arguments].concat())
    };
    let id = at(&["trigger"]).stdout.trim().to_owned();
    let invoked = || at(&["show", &id]).stdout.contains("AGENT_INVOCATION_SUCCEEDED");
    let until = DEADLINE.as_millis() / 20;
    assert!(
        (0..until).any(|_| invoked() || {
            std::thread::sleep(Duration::from_millis(20));
            false
        }),
        "the agent does not begin"
    );
    stop_execution(&dev.endpoint, &id).await;
    let resumed = at(&["resume", &id]);
    assert_eq!(resumed.exit, 0, "{resumed:#?}");
    assert!(resumed.stderr.contains(&format!("resumed session {id}")), "{}", resumed.stderr);
    std::fs::write(folder.path().join("gate"), "").unwrap();
    let tail = at(&["tail", &id]);
    assert_eq!(tail.exit, 1, "the gated server is no server: {tail:#?}");
    assert!(tail.stdout.contains("SESSION_FAILED"), "{}", tail.stdout);
    let again = at(&["resume", &id]);
    assert_eq!(again.exit, 2, "{again:#?}");
    assert!(again.stderr.contains("the session has ended: FAILED"), "{}", again.stderr);
}

/// A log may be on the same disk as the journal, and full.
#[test]
fn a_stack_that_cannot_write_its_log_works() {
    let folder = tempfile::tempdir().unwrap();
    let plain = daybook(folder.path());
    let mut command = Command::new("sh");
    command.args(["-c", r#"exec "$0" -vvv "$@" 2>/dev/full"#]).arg(plain.get_program());
    command.current_dir(folder.path());
    for (name, value) in plain.get_envs() {
        value.map(|value| command.env(name, value));
    }
    let dev = Dev::listening(&mut command, &folder.path().join("data"), "127.0.0.1:0");
    let ran = run_in(folder.path(), &["--endpoint", &dev.endpoint, "trigger", "--wait", "--json"]);
    assert_eq!(ran.exit, 0, "{ran:?}");
    assert_eq!(dev.stop("-TERM"), 0);
}
