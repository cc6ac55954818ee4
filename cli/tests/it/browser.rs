//! The page in a browser: a headless Chromium that `scripts/browser.mjs` drives as a person would.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Dev, daybook, run, tool};

/// Triggers a session and waits for its end, or until it asks.
fn trigger(folder: &Path, dev: &Dev, detail: &Value) -> String {
    let detail = detail.to_string();
    let triggered = run(daybook(folder).args([
        "--json",
        "--endpoint",
        &dev.endpoint,
        "trigger",
        "--detail",
        &detail,
        "--wait",
    ]));
    let session = triggered.json().pop().unwrap_or_else(|| panic!("{triggered:#?}"));
    session["session_id"].as_str().unwrap_or_else(|| panic!("{triggered:#?}")).to_owned()
}

#[test]
fn a_person_finds_reads_and_answers_sessions_in_a_browser() {
    let (Some(node), Some(playwright), Some(chromium)) =
        (tool("DAYBOOK_TEST_NODE"), tool("DAYBOOK_TEST_PLAYWRIGHT"), tool("DAYBOOK_TEST_CHROMIUM"))
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let servers = folder.path().join("servers.json");
    let down = json!({"mcpServers": {"aws-diagnostics": {"command": "/nowhere/daybook"}}});
    std::fs::write(&servers, down.to_string()).unwrap();
    let mut command = daybook(folder.path());
    command.env("DAYBOOK_MCP_SERVERS", &servers);
    let dev = Dev::listening(&mut command, &folder.path().join("data"), "127.0.0.1:0");

    let input = |said: &str| json!({"lambda_name": "data-processor", "error_message": said});
    let failed = json!({"agent": "incident", "input": input("AccessDenied")});
    let hostile = json!({"agent": "incident", "input": input("<img src=x onerror=alert(1)>")});
    let asked = json!({"message": "simulate 250 mg of theophylline every 8 h for 1 day"});
    let asking = json!({"agent": "assistant", "input": asked});
    let sessions = json!({
        "failed": trigger(folder.path(), &dev, &failed),
        "hostile": trigger(folder.path(), &dev, &hostile),
        "asking": trigger(folder.path(), &dev, &asking),
    });
    let screenshots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
    std::fs::create_dir_all(&screenshots).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/browser.mjs");
    let mut browser = Command::new(node);
    browser
        .arg(script)
        .arg(&dev.endpoint)
        .arg(screenshots)
        .arg(sessions.to_string())
        .env("PLAYWRIGHT", playwright)
        .env("CHROMIUM", chromium)
        .env("HOME", folder.path())
        .stdin(std::process::Stdio::null());
    let ran = run(&mut browser);
    assert_eq!(ran.exit, 0, "{}\n{}", ran.stdout, ran.stderr);
}
