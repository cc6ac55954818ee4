//! Investigations of one payment and of many, and invalid requests.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{DEADLINE, Dev, Ran, daybook, free_endpoint, run_in};
#[cfg(feature = "embeddings")]
use crate::harness::{run, tool};
use crate::people::Terminal;

fn bundled(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs/fraud/transactions").join(name)
}

fn with_stack(folder: &Path, arguments: &[&str]) -> Ran {
    let endpoint = free_endpoint();
    run_in(folder, &[&["--endpoint", &endpoint, "--data", "data"], arguments].concat())
}

#[test]
fn a_bundled_payment_is_investigated_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let input = bundled("account-takeover.json");
    let ran = with_stack(
        folder.path(),
        &[
            "trigger",
            "--agent",
            "fraud",
            "--input",
            input.to_str().unwrap(),
            "--wait",
            "--with-stack",
        ],
    );
    assert_eq!(ran.exit, 0, "{ran:#?}");
    for text in [
        "Investigation  ! suspected fraud, ask the cardholder",
        "t0a889fb210",
        "impossible_travel",
        "Recommendations",
        "audit:",
    ] {
        assert!(ran.stdout.contains(text), "{text}: {}", ran.stdout);
    }
}

#[cfg(feature = "embeddings")]
#[test]
fn a_configured_model_compares_past_cases_by_text() {
    let Some(model) = tool("DAYBOOK_TEST_EMBEDDINGS") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (data, input) = (bundled("sample.csv"), bundled("account-takeover.json"));
    let data = data.to_str().unwrap();
    let server = json!({
        "command": env!("CARGO_BIN_EXE_daybook"),
        "args": ["mcp", "card-transactions", "--data", data, "--embeddings", model],
    });
    let servers = json!({ "mcpServers": { "card-transactions": server } });
    std::fs::write(folder.path().join("servers.json"), servers.to_string()).unwrap();
    let endpoint = free_endpoint();
    let mut command = daybook(folder.path());
    command.env("DAYBOOK_MCP_SERVERS", "servers.json");
    command.args(["--endpoint", &endpoint, "--data", "data", "trigger", "--agent", "fraud"]);
    command.args(["--input", input.to_str().unwrap(), "--wait", "--with-stack", "--json"]);
    let ran = run(&mut command);
    assert_eq!(ran.exit, 0, "{ran:#?}");
    let found = &ran.json().pop().unwrap()["result"]["similarity_results"];
    assert_eq!(found["method"], "features and text", "{found}");
    let text = &found["cases"][0]["text_distance_permille"];
    assert!(text.as_u64().is_some_and(|permille| permille <= 1_000), "{found}");
}

#[test]
fn many_payments_are_investigated_and_ranked() {
    let folder = tempfile::tempdir().unwrap();
    let ids = folder.path().join("ids");
    std::fs::write(&ids, "t416e4da248\nt0a889fb210\nnobody\nt9ae4dc8ad0\n").unwrap();
    let (data, ids) = (bundled("sample.csv"), ids.to_str().unwrap().to_owned());
    let arguments =
        ["investigate", data.to_str().unwrap(), "--ids", &ids, "--parallel", "2", "--with-stack"];
    let ran = with_stack(folder.path(), &arguments);
    assert_eq!(ran.exit, 1, "one of them is nobody: {ran:#?}");
    let place = |text: &str| {
        let found = ran.stdout.lines().position(|line| line.starts_with(text));
        found.unwrap_or_else(|| panic!("{text}: {}", ran.stdout))
    };
    assert!(place("t0a889fb210") < place("t416e4da248"), "{}", ran.stdout);
    assert!(place("t9ae4dc8ad0") < place("t416e4da248"), "{}", ran.stdout);
    assert!(ran.stdout.contains("4 investigated: "), "{}", ran.stdout);
    let ranked = "area under the ROC curve 1.000, over 2 labelled frauds and 1 honest payments";
    assert!(ran.stdout.contains(ranked), "{}", ran.stdout);
    assert!(ran.stderr.contains("4 of 4: "), "{}", ran.stderr);
}

/// Payments that take a while to read, and an input for one of them.
fn many_payments(folder: &Path) -> Value {
    let data = folder.join("many.csv");
    let recipe = ["generate", "transactions", "--seed", "5", "--rows", "120000", "--output"];
    let ran = run_in(folder, &[&recipe[..], &[data.to_str().unwrap()]].concat());
    assert_eq!(ran.exit, 0, "{ran:#?}");
    let text = std::fs::read_to_string(&data).unwrap();
    let id = text.lines().last().unwrap().split(',').next().unwrap();
    json!({ "transaction_id": id, "data": data })
}

#[test]
fn a_terminal_shows_the_progress_of_reading() {
    let folder = tempfile::tempdir().unwrap();
    let input = many_payments(folder.path());
    std::fs::write(folder.path().join("input.json"), input.to_string()).unwrap();
    let line = format!(
        "{} --endpoint {} --data data trigger --agent fraud --input input.json --wait --with-stack",
        env!("CARGO_BIN_EXE_daybook"),
        free_endpoint()
    );
    let terminal = Terminal::run(folder.path(), &line);
    terminal.until(" rows read");
    terminal.until("SUCCEEDED");
}

#[tokio::test]
async fn an_isolated_agent_s_tools_report_progress() {
    let agent = Path::new(env!("CARGO_BIN_EXE_daybook")).with_file_name("agent");
    if !agent.exists() {
        eprintln!("skipped: build it with `cargo build -p agent --features container`");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let input = many_payments(folder.path());
    let mut command = daybook(folder.path());
    let data = folder.path().join("data");
    let dev = Dev::listening_with(&mut command, &data, "127.0.0.1:0", &["--isolate"]);
    let detail = json!({ "agent": "fraud", "input": input }).to_string();
    let arguments = ["--endpoint", &dev.endpoint, "trigger", "--detail", &detail];
    let id = run_in(folder.path(), &arguments).stdout.trim().to_owned();
    let url = format!("{}/api/sessions/{id}/events?only=progress", dev.endpoint);
    let http = reqwest::Client::builder().no_proxy().timeout(DEADLINE).build().unwrap();
    let mut told = String::new();
    let listening = async {
        while !told.contains(" rows read") {
            // A session has no stream before its first record.
            let mut stream = http.get(&url).send().await.unwrap();
            while let Ok(Some(bytes)) = stream.chunk().await
                && !told.contains(" rows read")
            {
                told.push_str(&String::from_utf8_lossy(&bytes));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let heard = tokio::time::timeout(DEADLINE, listening).await;
    assert!(heard.is_ok(), "{told}");
    assert!(told.contains(r#""server":"card-transactions","tool":"context_tool""#), "{told}");
    assert_eq!(dev.stop("-TERM"), 0);
}

#[test]
fn generated_transactions_go_to_stdout_or_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = ["generate", "transactions", "--seed", "3", "--rows", "300"];
    let ran = run_in(folder.path(), &recipe);
    assert_eq!((ran.exit, ran.stdout.lines().count()), (0, 301), "{}", ran.stderr);
    let to_file = run_in(folder.path(), &[&recipe[..], &["--output", "t.csv"]].concat());
    assert_eq!((to_file.exit, to_file.stdout.as_str()), (0, ""));
    assert_eq!(std::fs::read_to_string(folder.path().join("t.csv")).unwrap(), ran.stdout);
    for wrong in [["--fraud-rate", "0.9"], ["--rows", "3"], ["--seed", "x"]] {
        let ran = run_in(folder.path(), &[&recipe[..2], &wrong].concat());
        assert_eq!(ran.exit, 64, "{wrong:?}: {}", ran.stderr);
    }
}

#[test]
fn a_transactions_server_requires_transactions() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, said) in [
        (&["mcp", "card-transactions"][..], "no transactions given"),
        (
            &["mcp", "card-transactions", "--data", "a", "--snapshot", "b"],
            "--snapshot is an option of aws-diagnostics",
        ),
        (
            &["mcp", "aws-diagnostics", "--allow-remote", "--snapshot", "."],
            "--allow-remote is an option of card-transactions",
        ),
        (
            &["mcp", "pk-sim", "--embeddings", "model"],
            "--embeddings is an option of card-transactions",
        ),
    ] {
        let ran = run_in(folder.path(), arguments);
        assert_eq!(ran.exit, 64, "{ran:#?}");
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    let server = ["mcp", "card-transactions", "--data", "t.csv", "--embeddings", "nowhere"];
    let ran = run_in(folder.path(), &server);
    assert_eq!(ran.exit, 2, "{ran:#?}");
    if cfg!(feature = "embeddings") {
        assert!(ran.stderr.contains("nowhere/config.json: cannot be read"), "{ran:#?}");
        assert!(ran.stderr.contains("hint: --embeddings names a folder with config.json"));
    } else {
        assert!(ran.stderr.contains("this build has no support for embeddings"), "{ran:#?}");
    }
    let ran = run_in(folder.path(), &["mcp", "card-transactions", "--data", "http://example.com"]);
    assert!(ran.stderr.contains("is not on this machine"), "{ran:#?}");
    let listed = run_in(folder.path(), &["tools", "card-transactions", "--json"]);
    let names: Vec<Value> = listed.json().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names.len(), 6, "{names:?}");
}
