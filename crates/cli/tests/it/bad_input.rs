//! Faults outside Daybook: servers, folders, details, disks and journal files.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use journal::clock::Clock;
use journal::sqlite::{Durability, SqliteStore};
use serde_json::{Value, json};
use stack::stack::JOURNAL_FILE;
use workflow::limits::DETAIL_BYTES_MAX;

use crate::harness::{DEADLINE, Dev, Ran, daybook, free_endpoint, incident, run, run_in};

/// The error of a trigger whose event cannot be written, before the reason.
const NOT_DURABLE: &str = "InternalFailure: cannot write the event: ";

fn last(ran: &Ran) -> Value {
    ran.json().pop().unwrap_or_else(|| panic!("{ran:#?}"))
}

/// The bundled server behind a shell script that corrupts messages: `$0` is the binary, `$1` the folder.
fn spoiled(script: &str) -> Value {
    json!({ "command": "sh", "args": ["-c", script, env!("CARGO_BIN_EXE_daybook"),
        incident("s3-permission-revoked")] })
}

/// Forwards the client's messages; runs `at_a_call` instead for tool calls.
fn before_the_server(at_a_call: &str) -> String {
    let pass = r#"printf '%s\n' "$line""#;
    let server = r#"exec "$0" mcp aws-diagnostics --snapshot "$1""#;
    format!(
        r#"while read -r line; do case "$line" in *tools/call*) {at_a_call};; *) {pass};; esac; done | {server}"#
    )
}

/// Edits the server's messages with sed.
fn after_the_server(edit: &str) -> String {
    format!(r#""$0" mcp aws-diagnostics --snapshot "$1" | sed -u '{edit}'"#)
}

/// Runs an incident over a server; returns the exit code and the session.
fn diagnosed_over(server: &Value) -> (i32, Value) {
    let folder = tempfile::tempdir().unwrap();
    let servers = json!({ "mcpServers": { "aws-diagnostics": server } });
    std::fs::write(folder.path().join("servers.json"), servers.to_string()).unwrap();
    let mut command = daybook(folder.path());
    command.env("DAYBOOK_MCP_SERVERS", "servers.json");
    command.env("MCP_CONNECT_TIMEOUT", "60").env("MCP_INIT_TIMEOUT", "60");
    let data = folder.path().join("data");
    // The fast clock also shortens the server timeouts.
    let dev = Dev::listening_with(&mut command, &data, "127.0.0.1:0", &["--time-scale", "20"]);
    let detail = json!({ "agent": "incident", "input": { "lambda_name": "data-processor" } });
    let trigger = ["--endpoint", &dev.endpoint, "trigger", "--wait", "--json", "--detail"];
    let ran = run_in(folder.path(), &[&trigger[..], &[&detail.to_string()]].concat());
    let session = last(&ran);
    assert_eq!(dev.stop("-TERM"), 0);
    (ran.exit, session)
}

#[test]
fn an_unusable_server_fails_the_session_with_the_reason() {
    let server = spoiled;
    for (server, category, said) in [
        (json!({ "command": "/nonexistent/server" }), "mcp_connection", "/nonexistent/server"),
        (
            server("exit 3"),
            "mcp_connection",
            "ended before the handshake was done (exit status: 3)",
        ),
        (server("exec sleep 600"), "mcp_connection", "did not finish the handshake within 60 s"),
        (
            server("while read line; do echo Listening on port 8080; done"),
            "mcp_connection",
            "its stdout has a line that is not JSON: `Listening on port 8080`",
        ),
        (server(&before_the_server("exit 9")), "mcp_connection", "ended during the call of"),
        (
            server(&before_the_server("")),
            "mcp_connection",
            "did not answer `get_recent_logs` within",
        ),
        (
            server(&after_the_server("s/.*structuredContent.*/garbage/")),
            "mcp_connection",
            "whether the call had an effect is not known",
        ),
        (
            server(&after_the_server(r#"s/"result":{"tools":.*/"result":{"tools":[]}}/"#)),
            "mcp_init",
            "the server offers none of get_recent_logs",
        ),
    ] {
        let (exit, session) = diagnosed_over(&server);
        assert_eq!((exit, &session["status"]), (1, &json!("FAILED")), "{server}: {session:#}");
        assert_eq!(session["error_category"], category, "{server}: {session:#}");
        assert!(session["error"].as_str().unwrap().contains(said), "{server}: {session:#}");
        assert_eq!(session["incident_state"], "ERROR", "{server}: {session:#}");
    }
}

#[test]
fn an_empty_result_is_not_evidence() {
    let nothing = r#"s/"result":.*structuredContent.*/"result":{"content":[]}}/"#;
    let (exit, session) = diagnosed_over(&spoiled(&after_the_server(nothing)));
    assert_eq!((exit, &session["status"]), (0, &json!("SUCCEEDED")), "{session:#}");
    assert_eq!(session["result"]["fault_types"], json!(["unknown"]), "{session:#}");
    let evidence = session["result"]["evidence"].as_array().unwrap();
    assert!(evidence.iter().all(|found| found["value"] == "Tool returned empty response"));
}

#[test]
fn a_log_of_10_mb_is_refused_and_the_rest_diagnosed() {
    let folder = tempfile::tempdir().unwrap();
    let copied = folder.path().join("incident");
    let from = incident("s3-permission-revoked");
    assert!(Command::new("cp").arg("-r").args([&from, &copied]).status().unwrap().success());
    let event = json!({ "timestamp": 1_789_378_000_000_i64, "message": "x".repeat(1_000) });
    let log = json!({ "events": vec![event; 10_000] }).to_string();
    assert!(log.len() > 10_000_000);
    std::fs::write(copied.join("functions/data-processor/filter-log-events.json"), log).unwrap();
    let endpoint = free_endpoint();
    let at = ["--endpoint", &endpoint, "--data", "data", "--json"];
    let trigger = ["trigger", "--wait", "--with-stack", "--input", "incident"];
    let ran = run_in(folder.path(), &[&at[..], &trigger].concat());
    let session = last(&ran);
    assert_eq!((ran.exit, &session["status"]), (0, &json!("SUCCEEDED")), "{session:#}");
    let evidence = session["result"]["evidence"].to_string();
    assert!(evidence.contains("filter-log-events.json"), "{session:#}");
    assert!(evidence.contains("get_iam_state"), "{session:#}");
}

#[test]
fn a_detail_of_96_kib_is_accepted_and_no_larger_one() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let detail = |padding: usize| {
        let input = json!({ "lambda_name": "data-processor", "error_message": "x".repeat(padding),
            "snapshot": incident("s3-permission-revoked") });
        json!({ "agent": "incident", "input": input }).to_string()
    };
    let fits = DETAIL_BYTES_MAX - detail(0).len();
    let trigger = |padding: usize| {
        let trigger = ["--endpoint", &dev.endpoint, "trigger", "--wait", "--json", "--detail"];
        run_in(folder.path(), &[&trigger[..], &[&detail(padding)]].concat())
    };
    let ran = trigger(fits);
    assert_eq!((ran.exit, &last(&ran)["status"]), (0, &json!("SUCCEEDED")), "{ran:#?}");
    let ran = trigger(fits + 1);
    assert_eq!((ran.exit, &last(&ran)["status"]), (1, &json!("REJECTED")), "{ran:#?}");
    let error = "Rejected: TooLarge - detail: 98305 bytes are over the limit of 98304";
    assert_eq!(last(&ran)["error"], error);
    assert_eq!(dev.stop("-TERM"), 0);
}

/// A command started by a shell script, which ends with `exec "$@"`.
fn through(program: &str, arguments: &[&str], script: &str, data: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).args(["sh", "-c", script, "sh"]).arg(data);
    command.arg(env!("CARGO_BIN_EXE_daybook"));
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command
}

/// Follows and verifies sessions; all must succeed.
fn all_succeed(run: impl Fn(&[&str]) -> Ran, sessions: &[String]) {
    for id in sessions {
        for command in ["tail", "verify"] {
            let ran = run(&[command, id]);
            assert_eq!(ran.exit, 0, "{command}: {ran:#?}");
        }
    }
}

/// Triggers until the stack refuses; returns the accepted sessions and the refusal.
fn trigger_until_refused(folder: &Path, endpoint: &str) -> (Vec<String>, Ran) {
    let mut accepted = Vec::new();
    for _ in 0..200 {
        let ran = run_in(folder, &["--endpoint", endpoint, "trigger"]);
        match ran.exit {
            0 => accepted.push(ran.stdout.trim().to_owned()),
            _ => return (accepted, ran),
        }
    }
    panic!("it never refuses: {accepted:?}");
}

/// Simulates a full disk for this process with a file size limit.
#[test]
fn a_full_disk_refuses_triggers_and_a_restart_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let script = r#"shift; trap "" XFSZ; ulimit -f 1000; exec "$@""#;
    let dev = Dev::listening(&mut through("env", &[], script, &data), &data, "127.0.0.1:0");
    let (accepted, refused) = trigger_until_refused(folder.path(), &dev.endpoint);
    assert_eq!(refused.exit, 2, "{refused:#?}");
    assert!(refused.stderr.contains(NOT_DURABLE), "{refused:#?}");
    let listed = run_in(folder.path(), &["--endpoint", &dev.endpoint, "--json", "sessions"]);
    assert_eq!(listed.exit, 0, "what is there can be read: {listed:#?}");
    assert_eq!(dev.stop("-TERM"), 0, "nothing hangs");
    // Agents with a lease in the journal must first count as lost.
    let hurried = ["--time-scale", "20"];
    let mut command = daybook(folder.path());
    let dev = Dev::listening_with(&mut command, &data, "127.0.0.1:0", &hurried);
    let at = ["--endpoint", &dev.endpoint];
    all_succeed(|command| run_in(folder.path(), &[&at[..], command].concat()), &accepted);
}

/// A full file system that later has space again.
#[test]
fn sessions_on_a_full_disk_end_once_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let mount = r#"mount -t tmpfs -o size=4m tmpfs "$1" && shift && exec "$@""#;
    let namespace = ["--mount", "--map-root-user"];
    let allowed = Command::new("unshare").args(namespace).arg("true").status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("skipped: this machine gives no mount namespace");
        return;
    }
    let script =
        r#"until test -e "$2"; do sleep 0.02; done; exec "$0" mcp aws-diagnostics --snapshot "$1""#;
    let mut server = spoiled(script);
    let gate = folder.path().join("gate");
    server["args"].as_array_mut().unwrap().push(json!(gate));
    let servers = json!({ "mcpServers": { "aws-diagnostics": server } });
    std::fs::write(folder.path().join("servers.json"), servers.to_string()).unwrap();
    let mut command = through("unshare", &namespace, mount, &data);
    command.current_dir(folder.path()).env("DAYBOOK_MCP_SERVERS", "servers.json");
    command.env("MCP_CONNECT_TIMEOUT", "60").env("MCP_INIT_TIMEOUT", "60");
    let dev = Dev::listening(&mut command, &data, "127.0.0.1:0");
    // The mount is visible inside the namespace only.
    let id = dev.id().to_string();
    let inside = |arguments: &[&str]| {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--user", "--preserve-credentials", "--target", &id]);
        command.arg(env!("CARGO_BIN_EXE_daybook")).args(["--endpoint", &dev.endpoint]);
        run(command.args(arguments))
    };
    // Repeats about one function would attach to the first.
    let trigger = |n| {
        let input = json!({ "lambda_name": format!("data-processor-{n}") });
        let incident = json!({ "agent": "incident", "input": input }).to_string();
        inside(&["trigger", "--detail", &incident]).stdout.trim().to_owned()
    };
    let begun: Vec<_> = (0..3).map(trigger).collect();
    for id in &begun {
        let started = Clock::system().now();
        while !inside(&["show", id]).stdout.contains("AGENT_INVOCATION_SUCCEEDED") {
            let waited = Clock::system().now().since(started);
            assert!(waited < DEADLINE, "{:#?}", inside(&["show", id]));
        }
    }
    let filler = Path::new("/proc").join(&id).join("root").join(data.strip_prefix("/").unwrap());
    let filler = filler.join("filler");
    let full = std::fs::write(&filler, vec![0; 8 * 1024 * 1024]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    // The agents now receive results that they cannot write.
    std::fs::write(gate, "").unwrap();
    let (accepted, refused) = trigger_until_refused(folder.path(), &dev.endpoint);
    assert!(refused.exit == 2 && refused.stderr.contains(NOT_DURABLE), "{refused:#?}");
    std::thread::sleep(Duration::from_secs(1));
    std::fs::remove_file(filler).unwrap();
    all_succeed(inside, &[&begun[..], &accepted].concat());
    assert_eq!(inside(&["trigger", "--wait"]).exit, 0);
    assert_eq!(dev.stop("-TERM"), 0);
}

async fn newer(path: &Path) {
    let store = SqliteStore::open(path, Durability::Relaxed).unwrap();
    store.transact(|connection| connection.execute_batch("PRAGMA user_version = 5")).await.unwrap();
}

#[tokio::test]
async fn an_unusable_journal_is_named_and_left_unchanged() {
    for (said, is_newer) in
        [("has schema 5; this version supports 4", true), ("file is not a database", false)]
    {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data").join(JOURNAL_FILE);
        std::fs::create_dir(folder.path().join("data")).unwrap();
        if is_newer {
            newer(&path).await;
        } else {
            std::fs::write(&path, "a letter to my grandmother, ".repeat(1_000)).unwrap();
        }
        let before = std::fs::read(&path).unwrap();
        let sound =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../verify/reader/bases/session.jsonl");
        std::fs::copy(sound, folder.path().join("session.jsonl")).unwrap();
        let id = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f";
        let endpoint = free_endpoint();
        for command in [
            &["dev", "--listen", "127.0.0.1:0"][..],
            &["trigger", "--wait", "--with-stack"],
            &["sessions"],
            &["show", id],
            &["tail", id],
            &["export", id],
            &["verify", id],
            &["import", "session.jsonl"],
        ] {
            let at = ["--endpoint", &endpoint, "--data", "data"];
            let ran = run_in(folder.path(), &[&at[..], command].concat());
            assert_eq!((ran.exit, ran.stdout.as_str()), (2, ""), "{command:?}: {ran:#?}");
            assert!(ran.stderr.contains(said), "{command:?}: {ran:#?}");
            assert!(ran.stderr.contains("data/journal.db"), "{command:?}: {ran:#?}");
            assert!(ran.stderr.contains("\nhint: "), "{command:?}: {ran:#?}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), before, "{said}");
    }
}
