//! `--target aws`: commands through the AWS clients, against the local stack's AWS endpoints.

use std::path::Path;
use std::process::Command;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use crate::harness::{DEADLINE, Dev, Ran, daybook, free_endpoint, run, run_in};
use crate::people::with_lines;

/// A command that uses the local stack as an account, with its resource names.
fn in_account(folder: &Path, endpoint: &str) -> Command {
    let mut command = daybook(folder);
    command.envs([
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("DAYBOOK_TARGET", "aws"),
        ("JOURNAL_TABLE_NAME", "daybook-journal"),
        ("STATE_MACHINE_ARN", "arn:aws:states:us-east-1:000000000000:stateMachine:daybook"),
        (
            "AGENT_RUNTIME_ARN",
            "arn:aws:bedrock-agentcore:us-east-1:000000000000:runtime/daybook-local",
        ),
    ]);
    command
}

fn ran(folder: &Path, dev: &Dev, arguments: &[&str]) -> Ran {
    run(in_account(folder, &dev.endpoint).args(arguments))
}

#[test]
fn a_session_in_an_account_runs_and_can_be_inspected() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let triggered = ran(folder.path(), &dev, &["trigger", "--wait"]);
    assert_eq!(triggered.exit, 0, "{triggered:#?}");
    assert!(triggered.stdout.contains("SUCCEEDED"), "{triggered:#?}");
    let id = triggered.stdout.lines().next().unwrap().to_owned();

    let listed = ran(folder.path(), &dev, &["sessions", "--json"]);
    assert_eq!(listed.json()[0]["session_id"], id.as_str());
    let shown = ran(folder.path(), &dev, &["show", &id[..13], "--json", "--cost"]);
    let cost = shown.json().pop().unwrap();
    assert_eq!((&cost["type"], &cost["workflow_counted"]), (&"cost".into(), &true.into()));
    let counted = |name: &str| cost["counters"][name].as_u64().unwrap();
    assert!(counted("polls") >= 1 && counted("transitions") >= 6, "{cost:#}");
    assert!(counted("calls") > counted("polls"), "{cost:#}");
    assert!(counted("write_units") >= 10 && cost["usd"]["journal"].as_f64().unwrap() > 0.0);
    let text = ran(folder.path(), &dev, &["show", &id, "--cost"]);
    assert!(text.stdout.contains("In an AWS account"), "{text:#?}");
    assert_eq!(ran(folder.path(), &dev, &["verify", &id]).exit, 0);
    assert_eq!(ran(folder.path(), &dev, &["tail", &id]).exit, 0);

    // Import the export into a local journal.
    let exported = ran(folder.path(), &dev, &["export", &id]);
    std::fs::write(folder.path().join("session.jsonl"), exported.stdout).unwrap();
    let here = free_endpoint();
    let imported = ["--endpoint", &here, "--data", "other", "import", "session.jsonl"];
    assert_eq!(run_in(folder.path(), &imported).exit, 0);
}

/// Triggers a thread of the assistant, which asks a question at once.
fn asking(folder: &Path, dev: &Dev) -> (String, u64) {
    let triggered = ran(folder, dev, &["trigger", "--agent", "assistant"]);
    let id = triggered.stdout.trim().to_owned();
    for _ in 0..DEADLINE.as_millis() / 100 {
        let shown = ran(folder, dev, &["show", &id, "--json"]);
        let question = (shown.exit == 0).then(|| shown.json()[0]["open_question"].clone());
        if let Some(number) = question.and_then(|question| question["question_id"].as_u64()) {
            return (id, number);
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("no question is asked");
}

#[test]
fn a_session_in_an_account_is_answered_and_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let (id, question) = asking(folder.path(), &dev);
    let refused = ran(folder.path(), &dev, &["answer", &id, "--approve"]);
    assert_eq!(refused.exit, 2, "{refused:#?}");
    assert!(refused.stderr.contains("refused"), "{refused:#?}");
    let said = ran(folder.path(), &dev, &["--json", "answer", &id, "--say", "what can you do?"]);
    assert_eq!(said.exit, 0, "{said:#?}");
    assert_eq!(said.json()[0]["step"].as_u64(), Some(question + 1));
    let cancelled = ran(folder.path(), &dev, &["cancel", &id, "--reason", "enough"]);
    assert_eq!(cancelled.exit, 0, "{cancelled:#?}");
    let ended = ran(folder.path(), &dev, &["tail", &id, "--json"]);
    assert_eq!(ended.exit, 1, "{ended:#?}");
    assert_eq!(ended.json().pop().unwrap()["status"], "CANCELLED");
    let again = ran(folder.path(), &dev, &["resume", &id]);
    assert!(again.stderr.contains("the session has ended"), "{again:#?}");
}

/// The page of an account, over the AWS clients: read, answered and cancelled through it, and refused to
/// other sites.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_an_account_acts_on_its_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let (id, question) = asking(folder.path(), &dev);
    let arguments = ["ui", "--listen", "127.0.0.1:0"];
    let ui = Dev::ready(in_account(folder.path(), &dev.endpoint).args(arguments));
    let http = reqwest::Client::builder().no_proxy().timeout(DEADLINE).build().unwrap();
    let at = |path: &str| format!("{}{path}", ui.endpoint);
    let get = async |path: &str| -> Value {
        http.get(at(path)).send().await.unwrap().json().await.unwrap()
    };
    let post = async |what: &str, body: Value| {
        let request = http.post(at(&format!("/api/sessions/{id}/{what}"))).body(body.to_string());
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let page = http.get(at("/")).send().await.unwrap();
    assert!(
        page.headers()["content-security-policy"].to_str().unwrap().contains("default-src 'none'")
    );
    assert_eq!(get("/api/sessions?status=WAITING").await["sessions"][0]["session_id"], id.as_str());
    let timeline = get(&format!("/api/sessions/{id}/timeline")).await;
    assert_eq!(timeline["session"]["open_question"]["question_id"].as_u64(), Some(question));
    let sk = timeline["waterfall"]["rows"][0]["sk"].as_str().unwrap().replace('#', "%23");
    assert_eq!(
        get(&format!("/api/sessions/{id}/record?sk={sk}")).await["status"],
        "SESSION_INITIATED"
    );

    // Only the account's functions know its circuit breaker settings.
    let health = get("/api/health").await;
    let breaker = &health["breakers"][0];
    assert_eq!((&breaker["agent"], &breaker["taken"]), (&"incident".into(), &0.into()), "{health}");
    assert!(breaker["per_hour"].is_null() && breaker["is_open"].is_null(), "{health}");

    let wrong = post("answer", json!({ "question_id": 1, "decision": "approve" })).await;
    assert_eq!(wrong.0, 409, "{wrong:?}");
    let said = json!({ "question_id": question, "decision": "say", "text": "what can you do?" });
    let taken = post("answer", said).await;
    assert_eq!((taken.0, taken.1["step"].as_u64()), (202, Some(question + 1)), "{taken:?}");
    let strange = http.post(at(&format!("/api/sessions/{id}/cancel")));
    let strange = strange.header("origin", "https://evil.example").send().await.unwrap();
    assert_eq!(strange.status().as_u16(), 403);
    assert_eq!(post("cancel", json!({ "reason": "enough" })).await.0, 202);

    // The stream ends with the session, and is not begun again by who has all of it.
    let stream = || http.get(at(&format!("/api/sessions/{id}/events")));
    let told = stream().send().await.unwrap().text().await.unwrap();
    let last = told.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().unwrap();
    let again = stream().header("last-event-id", last).send().await.unwrap();
    assert_eq!(again.status().as_u16(), 204, "{told}");
    assert_eq!(get(&format!("/api/sessions/{id}")).await["session"]["status"], "CANCELLED");
    assert_eq!(ui.stop("-TERM"), 0);

    let local = run_in(folder.path(), &["--endpoint", &dev.endpoint, "ui"]);
    assert_eq!((local.exit, local.stdout.trim()), (0, dev.endpoint.as_str()));
}

/// Reads a stream until it has contained all of these texts, in order.
async fn heard(stream: &mut reqwest::Response, words: &[&str]) {
    let mut text = String::new();
    for word in words {
        loop {
            if let Some(at) = text.find(word) {
                text.drain(..at + word.len());
                break;
            }
            let more = tokio::time::timeout(DEADLINE, stream.chunk()).await;
            let more = more.unwrap_or_else(|_| panic!("`{word}` is not said: {text}"));
            let more = more.unwrap().unwrap_or_else(|| panic!("it ends before `{word}`: {text}"));
            text.push_str(&String::from_utf8_lossy(&more));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_reports_an_unavailable_journal_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let dev = Dev::start(folder.path(), &data);
    let (id, _) = asking(folder.path(), &dev);
    let arguments = ["ui", "--listen", "127.0.0.1:0"];
    let ui = Dev::ready(in_account(folder.path(), &dev.endpoint).args(arguments));
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{}/api/sessions/{id}/events", ui.endpoint);
    let mut stream = http.get(url).send().await.unwrap();
    heard(&mut stream, &["event: event", "event: step"]).await;
    let listen = dev.endpoint.strip_prefix("http://").unwrap().to_owned();
    dev.kill();
    heard(&mut stream, &["event: journal", r#"{"error":"#]).await;
    let dev = Dev::listening(&mut daybook(folder.path()), &data, &listen);
    heard(&mut stream, &["event: journal", r#"{"error":null}"#]).await;
    assert_eq!(ran(folder.path(), &dev, &["cancel", &id]).exit, 0);
    heard(&mut stream, &["event: event"]).await;
}

/// What CloudFormation says of a stack whose things are those of the stack on this machine.
const OUTPUTS: &str = "<DescribeStacksResponse><DescribeStacksResult><Stacks><member>\
    <StackName>daybook-prod</StackName><StackStatus>CREATE_COMPLETE</StackStatus>\
    <CreationTime>2026-11-22T08:00:00Z</CreationTime><Outputs>\
    <member><OutputKey>JournalTableName</OutputKey><OutputValue>daybook-journal</OutputValue></member>\
    <member><OutputKey>StateMachineArn</OutputKey>\
    <OutputValue>arn:aws:states:us-east-1:000000000000:stateMachine:daybook</OutputValue></member>\
    </Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>";

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_stage_uses_the_stack_s_journal() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let (asked, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let describe = async |State(asked): State<UnboundedSender<String>>, body: String| {
        let _ = asked.send(body);
        OUTPUTS
    };
    let app = Router::new().route("/", post(describe)).with_state(asked);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let formation = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let triggered = ran(folder.path(), &dev, &["trigger", "--wait"]).stdout;
    let id = triggered.lines().next().unwrap();
    let mut command = in_account(folder.path(), &dev.endpoint);
    command.env("AWS_ENDPOINT_URL_CLOUDFORMATION", formation);
    command.env("JOURNAL_TABLE_NAME", "of-another-stage");
    let ui = Dev::ready(command.args(["ui", "--stage", "prod", "--listen", "127.0.0.1:0"]));
    let http = reqwest::Client::builder().no_proxy().timeout(DEADLINE).build().unwrap();
    let shown = http.get(format!("{}/api/sessions/{}", ui.endpoint, id)).send().await;
    let shown = shown.unwrap().text().await.unwrap();
    assert!(shown.contains("SESSION_INITIATED"), "{shown}");
    let said = seen.recv().await.unwrap();
    assert!(
        said.contains("Action=DescribeStacks") && said.contains("StackName=daybook-prod"),
        "{said}"
    );
}

#[test]
fn the_page_s_stage_takes_precedence_over_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let ui = |target: &str, stage: &str| {
        let mut named = in_account(folder.path(), &free_endpoint());
        run(named.env("DAYBOOK_STAGE", "test").args(["ui", "--target", target, "--stage", stage]))
    };
    let elsewhere = ui("aws", "prod");
    assert_eq!(elsewhere.exit, 2, "{elsewhere:#?}");
    assert!(elsewhere.stderr.contains("cannot describe the stack daybook-prod"), "{elsewhere:#?}");
    for (refused, says) in [
        (ui("aws", "Prod"), "--stage is `Prod`, expected 1 to 20 characters of a-z, 0-9 and -"),
        (ui("local", "prod"), "--stage requires --target aws"),
    ] {
        assert!(refused.exit == 64 && refused.stderr.contains(says), "{refused:#?}");
    }
}

#[test]
fn an_unreadable_stack_is_named_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    for command in [&["sessions"][..], &["show", "0190a5c4"], &["trigger"], &["chat"], &["ui"]] {
        let mut nameless = in_account(folder.path(), &free_endpoint());
        nameless.env_remove("JOURNAL_TABLE_NAME").env_remove("STATE_MACHINE_ARN");
        nameless.env("DAYBOOK_STAGE", "prod");
        let refused = run(nameless.args(command));
        assert_eq!(refused.exit, 2, "{refused:#?}");
        assert!(refused.stderr.contains("cannot describe the stack daybook-prod"), "{refused:#?}");
        assert!(refused.stderr.contains("hint: set DAYBOOK_STAGE"), "{refused:#?}");
    }
    let mut misspelt = in_account(folder.path(), &free_endpoint());
    let refused = run(misspelt.env("DAYBOOK_STAGE", "Prod").arg("sessions"));
    assert!(
        refused.exit == 64 && refused.stderr.contains("DAYBOOK_STAGE is `Prod`"),
        "{refused:#?}"
    );
}

#[test]
fn chat_works_in_an_account() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let mut chat = in_account(folder.path(), &dev.endpoint);
    let talked = with_lines(chat.arg("chat"), &["what can you do?"]);
    assert_eq!(talked.exit, 0, "{talked:#?}");
    assert!(talked.stderr.contains("thread "), "{talked:#?}");
    assert!(!talked.stdout.trim().is_empty(), "{talked:#?}");
}

fn states(ran: &Ran) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    ran.json().iter().map(|check| (text(&check["name"]), text(&check["state"]))).collect()
}

#[test]
fn the_doctor_checks_an_account_and_suggests_fixes() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let found = ran(folder.path(), &dev, &["doctor", "--json"]);
    let expected = [
        ("region", "ok"),
        // The local endpoint knows no identities.
        ("credentials", "failed"),
        ("journal", "ok"),
        ("state machine", "ok"),
        ("agent runtime", "ok"),
        ("permissions", "unknown"),
    ];
    assert_eq!(states(&found), expected.map(|(a, b)| (a.to_owned(), b.to_owned())), "{found:#?}");
    assert_eq!(found.exit, 1);

    let mut lost = in_account(folder.path(), &dev.endpoint);
    lost.env_remove("JOURNAL_TABLE_NAME")
        .env("STATE_MACHINE_ARN", "arn:aws:states:us-east-1:000000000000:stateMachine:other");
    let lost = run(lost.args(["doctor", "--json"]));
    let fixes: Vec<_> = (lost.json().iter())
        .filter(|check| check["state"] == "failed")
        .map(|check| check["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(fixes, ["credentials", "stack", "journal", "state machine"], "{lost:#?}");
    assert!(lost.json().iter().all(|check| (check["state"] == "ok") == check["fix"].is_null()));

    let mut nowhere = in_account(folder.path(), &dev.endpoint);
    nowhere.env_remove("AWS_REGION").env("AWS_EC2_METADATA_DISABLED", "true");
    let nowhere = run(nowhere.args(["doctor", "--json"]));
    assert_eq!(states(&nowhere), [("region".to_owned(), "failed".to_owned())]);
}

#[test]
fn the_doctor_passes_with_a_stack_and_names_one_that_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = free_endpoint();
    let without = run_in(folder.path(), &["--endpoint", &endpoint, "doctor"]);
    let nothing = format!("nothing listens at {endpoint}");
    assert!(without.exit == 1 && without.stdout.contains(&nothing), "{without:#?}");
    assert!(!folder.path().join(".daybook").exists(), "it changes nothing");
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let with = run_in(folder.path(), &["--endpoint", &dev.endpoint, "doctor"]);
    assert!(with.exit == 0 && with.stdout.contains("running at"), "{with:#?}");
    let file = folder.path().join("data/journal.db");
    std::fs::rename(&file, folder.path().join("aside")).unwrap();
    let gone = run_in(folder.path(), &["--endpoint", &dev.endpoint, "doctor", "--json"]);
    let failed = gone.json().into_iter().filter(|check| check["state"] == "failed");
    let names: Vec<_> = failed.map(|check| check["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, ["stack", "journal"], "{gone:#?}");
    std::fs::rename(folder.path().join("aside"), &file).unwrap();
}

#[test]
fn the_doctor_names_what_is_wrong_on_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("servers.json"), "{").unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    std::fs::write(folder.path().join("data/journal.db"), "no journal").unwrap();
    let endpoint = free_endpoint();
    let mut command = daybook(folder.path());
    command.env("DAYBOOK_MCP_SERVERS", "servers.json");
    let found = run(command.args(["--endpoint", &endpoint, "--data", "data", "doctor", "--json"]));
    assert_eq!(found.exit, 1);
    let failed: Vec<_> = found.json().into_iter().filter(|c| c["state"] == "failed").collect();
    let names: Vec<_> = failed.iter().map(|check| check["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["tool servers", "stack", "journal"], "{found:#?}");

    let mut command = daybook(folder.path());
    command.env("MAX_INCIDENTS_PER_HOUR", "many");
    let found = run(command.args(["--endpoint", &endpoint, "doctor"]));
    assert!(found.exit == 1 && found.stdout.contains("MAX_INCIDENTS_PER_HOUR"), "{found:#?}");
}
