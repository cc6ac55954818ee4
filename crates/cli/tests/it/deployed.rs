//! The deployed path on an independent AWS emulator: the synthesised template in a ministack account, the
//! built functions in its Lambda, the agent behind a fake AgentCore, and `daybook --target aws`.
//!
//! PutEvents → rule → transformer → state machine → putItem → invoker → agent → poller → verdict, all from
//! the committed template ([`account`] lists the differences). `DAYBOOK_TEST_LAMBDAS` names packaged
//! functions to run instead.

mod access;
pub mod account;
mod messages;
pub mod runtime;
mod stages;

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{DEADLINE, Ran, tool};
use access::policy_of_a_person;
use account::{ALARMS, Account, Table};
use runtime::{MODEL, Model, Runtime};

struct World {
    account: Account,
    runtime: Runtime,
}

impl World {
    /// Starts one, if the emulator is available.
    async fn open(table: Table, model: Model) -> Option<Self> {
        let runtime = Runtime::start(model).await;
        let account = Account::open(table, &runtime.endpoint).await?;
        runtime.host(&account.environment(), account.origin)?;
        Some(Self { account, runtime })
    }

    /// Triggers a session with the command line; returns its id.
    async fn trigger(&self, arguments: &[&str]) -> String {
        let triggered = self.account.daybook(&[&["trigger"], arguments].concat()).await;
        assert_eq!(triggered.exit, 0, "{triggered:#?}");
        triggered.stdout.trim().to_owned()
    }

    /// Triggers a session, follows it until it ends, and verifies its journal.
    async fn run(&self, arguments: &[&str]) -> (String, Ran) {
        let ran = self.account.daybook(&[&["trigger", "--wait"], arguments].concat()).await;
        let id = ran.stdout.lines().next().unwrap_or_else(|| panic!("{ran:#?}")).to_owned();
        self.verified(&id).await;
        (id, ran)
    }

    /// The session's journal is whole, and its head is what the execution brought as a witness.
    async fn verified(&self, id: &str) {
        let execution = self.account.ended(id).await;
        let output = execution["output"].as_str().unwrap_or("{}");
        let output: Value = serde_json::from_str(output).unwrap();
        let mut arguments = vec!["verify", id];
        if let Some(head) = output["head"].as_str() {
            arguments.extend(["--head", head]);
        }
        let verified = self.account.daybook(&arguments).await;
        assert_eq!(verified.exit, 0, "{verified:#?}");
    }

    /// Waits until the session's journal has an event of this status.
    async fn until(&self, id: &str, status: &str) {
        let waiting = async {
            while !self.account.events(id).await.iter().any(|known| known == status) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(DEADLINE, waiting).await.unwrap_or_else(|_| panic!("no {status}"));
    }

    /// Triggers a session whose agent waits for its model; returns its id.
    async fn at_work(&self) -> String {
        let id = self.trigger(&["--detail", &long_work().to_string()]).await;
        let waiting = async {
            while self.runtime.asked() == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(DEADLINE, waiting).await.expect("the model is asked");
        self.until(&id, "AGENT_INVOCATION_SUCCEEDED").await;
        id
    }

    async fn close(self) {
        self.account.nobody_was_refused();
        self.runtime.shutdown().await;
    }
}

/// Child processes that run a program.
fn children(program: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok());
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let ours = format!("({program}) ");
    let this = std::process::id();
    // Source: Linux, proc(5), `stat`: the number, the program in parentheses, the state, the parent.
    let is_ours = |number: &u32| {
        let stat = std::fs::read_to_string(Path::new("/proc").join(format!("{number}/stat")));
        stat.is_ok_and(|stat| {
            let parent = stat.split(&ours).nth(1).and_then(|rest| rest.split(' ').nth(1));
            parent.is_some_and(|parent| parent == this.to_string())
        })
    };
    numbers.filter(is_ours).collect()
}

fn dynamodb_local() -> Option<Table> {
    #[expect(clippy::disallowed_methods, reason = "how the test runner says where it is")]
    let endpoint = std::env::var("DAYBOOK_TEST_DYNAMODB").ok();
    if endpoint.is_none() {
        eprintln!("skipped: DAYBOOK_TEST_DYNAMODB names no DynamoDB endpoint");
    }
    endpoint.map(Table::At)
}

/// A trigger whose agent is at work for as long as its model hangs.
fn long_work() -> Value {
    json!({ "agent": "incident", "model": MODEL, "input": { "lambda_name": "daybook-dev-invoker" } })
}

const SUCCESS: [&str; 7] = [
    "SESSION_INITIATED",
    "AGENT_INVOCATION_STARTED",
    "AGENT_ENTRYPOINT_STARTED",
    "AGENT_BACKGROUND_TASK_STARTED",
    "AGENT_BACKGROUND_TASK_COMPLETED",
    "AGENT_INVOCATION_SUCCEEDED",
    "SESSION_SUCCEEDED",
];

#[tokio::test(flavor = "multi_thread")]
async fn the_packaged_functions_run_sessions_in_an_account() {
    let Some(world) = World::open(Table::Ministack, Model::Refuses).await else { return };
    succeeds_and_fails(&world).await;
    // The watchdog is told of each execution that failed.
    let functions = ["invoker", "poller", "watchdog"].map(|name| format!("daybook-dev-{name}"));
    let [invoker, poller, watchdog] = functions.each_ref().map(String::as_str);
    assert_eq!(world.account.who_asked(), ["agent", invoker, poller, watchdog, "person"]);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_run_the_same_over_dynamodb_local() {
    let Some(table) = dynamodb_local() else { return };
    let Some(world) = World::open(table, Model::Refuses).await else { return };
    succeeds_and_fails(&world).await;
    world.close().await;
}

/// Signs the log, as its rule does every few minutes; returns what the execution gave.
async fn checkpoint(world: &World) -> Value {
    let arn = account::checkpoints_arn();
    let input = json!({ "stateMachineArn": arn, "input": "{}" });
    let started = world.account.ask("states", "AWSStepFunctions.StartExecution", &input).await;
    let arn = json!({ "executionArn": started["executionArn"] });
    let ending = async {
        loop {
            let described =
                world.account.ask("states", "AWSStepFunctions.DescribeExecution", &arn).await;
            if described["status"] != "RUNNING" {
                return described;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(DEADLINE, ending).await.expect("the checkpoint is made")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_an_account_is_signed_and_names_what_was_removed() {
    let Some(world) = World::open(Table::Ministack, Model::Refuses).await else { return };
    let account = &world.account;
    let (id, _) = world.run(&[]).await;
    let unsigned = account.daybook(&["verify", &id, "--json"]).await;
    assert_eq!(unsigned.json()[0]["log"]["unsigned"], 2, "{unsigned:#?}");
    let made = checkpoint(&world).await;
    assert_eq!(made["status"], "SUCCEEDED", "{made:#}");
    let again = checkpoint(&world).await;
    assert_eq!(again["status"], "SUCCEEDED", "{again:#}");

    let key = account.daybook(&["keys", "show"]).await;
    assert_eq!(key.exit, 0, "{key:#?}");
    let file = account.folder.path().join("log.pub");
    std::fs::write(&file, &key.stdout).unwrap();
    let file = file.to_str().unwrap();
    let proven = account.daybook(&["verify", &id, "--json", "--key", file]).await;
    assert_eq!(proven.exit, 0, "{proven:#?}");
    let report = &proven.json()[0];
    assert!(report["anchors"].as_array().unwrap().contains(&json!("checkpoint")), "{report:#}");
    assert_eq!(report["log"], json!({ "leaves": 2, "unsigned": 0 }));

    let exported = account.daybook(&["export", &id]).await;
    let export = account.folder.path().join("session.jsonl");
    std::fs::write(&export, &exported.stdout).unwrap();
    let alone = ["verify", "--file", export.to_str().unwrap(), "--key", file, "--json"];
    let alone = account.daybook(&alone).await;
    assert_eq!(alone.exit, 0, "{alone:#?}");
    assert_eq!(alone.json()[0]["outcome"], "sound", "{alone:#?}");

    let (other, _) = world.run(&[]).await;
    let made = checkpoint(&world).await;
    let copies = account.checkpoints().await;
    assert_eq!(copies.len(), 2, "{copies:#?} {made:#}");
    let kept = account.folder.path().join("kept.json");
    std::fs::write(&kept, copies[0].as_str()).unwrap();
    let all = ["verify", "--all", "--json", "--key", file, "--checkpoint", kept.to_str().unwrap()];
    let whole = account.daybook(&all).await;
    assert_eq!(whole.exit, 0, "{whole:#?}");
    let summary = whole.json().pop().unwrap();
    assert_eq!(summary["outcomes"], json!({ "sound": 2 }), "{summary:#}");
    assert_eq!(summary["log"]["problems"], json!([]), "{summary:#}");

    account.remove_session(&other).await;
    let whole = account.daybook(&all).await;
    assert_eq!(whole.exit, 1, "{whole:#?}");
    assert!(whole.stdout.contains(&other), "{whole:#?}");
    world.close().await;
}

async fn succeeds_and_fails(world: &World) {
    let (id, ran) = world.run(&[]).await;
    assert_eq!(ran.exit, 0, "{ran:#?}");
    let (mut events, mut expected) = (world.account.events(&id).await, SUCCESS);
    // The agent and the invoker tell of two things that happen at once.
    events.sort_unstable();
    expected.sort_unstable();
    assert_eq!(events, expected);
    assert_eq!(world.account.ended(&id).await["status"], "SUCCEEDED");

    let failing = json!({ "model": MODEL, "on_model_failure": "fail" });
    let (id, ran) = world.run(&["--detail", &failing.to_string()]).await;
    assert_eq!(ran.exit, 1, "{ran:#?}");
    let events = world.account.events(&id).await;
    assert!(events.contains(&"AGENT_BACKGROUND_TASK_FAILED".to_owned()), "{events:?}");
    assert_eq!(events.last().unwrap(), "SESSION_FAILED");
    let execution = world.account.ended(&id).await;
    assert_eq!(execution["status"], "FAILED", "{execution:#}");

    let (id, ran) = world.run(&["--agent", "nobody"]).await;
    assert_eq!(ran.exit, 1, "{ran:#?}");
    let events = world.account.events(&id).await;
    assert!(events.contains(&"AGENT_INVOCATION_FAILED".to_owned()), "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_agent_in_an_account_is_replaced() {
    let Some(world) = World::open(Table::Ministack, Model::HangsOnce).await else { return };
    let id = world.at_work().await;
    let agents = children("agent");
    assert_eq!(agents.len(), 1, "{agents:?}");
    let mut kill = std::process::Command::new("kill");
    assert!(kill.args(["-KILL", &agents[0].to_string()]).status().unwrap().success());
    let execution = world.account.ended(&id).await;
    let events = world.account.events(&id).await;
    assert!(events.contains(&"AGENT_LOST".to_owned()), "{events:?}");
    let invoked = events.iter().filter(|event| *event == "AGENT_INVOCATION_STARTED").count();
    assert_eq!(invoked, 2, "{events:?}: {execution:#}");
    assert!(events.last().unwrap().starts_with("SESSION_"), "{events:?}");
    world.verified(&id).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_in_an_account_times_out_before_it_expires() {
    let Some(world) = World::open(Table::Ministack, Model::Hangs).await else { return };
    // The deadline is two days before its records expire.
    world.account.redefine(|text| text.replace("$number('90')", "$number('2')")).await;
    let (id, ran) = world.run(&["--detail", &long_work().to_string()]).await;
    assert_eq!(ran.exit, 1, "{ran:#?}");
    let execution = world.account.ended(&id).await;
    assert_eq!(execution["status"], "FAILED", "{execution:#}");
    let events = world.account.events(&id).await;
    assert!(events.contains(&"AGENT_BACKGROUND_TASK_STARTED".to_owned()), "{events:?}");
    assert_eq!(events.last().unwrap(), "SESSION_TIMED_OUT", "{events:?}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_watchdog_ends_a_session_with_a_broken_execution() {
    let Some(world) = World::open(Table::Ministack, Model::Hangs).await else { return };
    let id = world.at_work().await;
    // From now on neither the poller nor the watchdog can end it.
    world.account.delete_function("poller").await;
    world.until(&id, "SESSION_FAILED").await;
    let execution = world.account.ended(&id).await;
    assert_eq!(execution["status"], "FAILED", "{execution:#}");
    let shown = world.account.shown(&id).await;
    assert!(
        shown[0]["error"].as_str().unwrap().starts_with("Unwatched: ExecutionFailed "),
        "{shown:#?}"
    );
    world.verified(&id).await;
    assert!(world.account.who_asked().contains(&"daybook-dev-watchdog".to_owned()));
    world.close().await;
}

/// Has the state machine wait after its first record.
fn pausing(text: String) -> String {
    let mut machine: Value = serde_json::from_str(&text).unwrap();
    let states = &mut machine["States"];
    let next = std::mem::replace(&mut states["InitializeSession"]["Next"], json!("Pause"));
    states["Pause"] = json!({ "Type": "Wait", "Seconds": 3_600, "Next": next });
    machine.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_watchdog_ends_a_session_stopped_before_its_invocation() {
    let Some(world) = World::open(Table::Ministack, Model::Refuses).await else { return };
    world.account.redefine(pausing).await;
    let id = world.trigger(&[]).await;
    world.until(&id, "SESSION_INITIATED").await;
    world.account.stop(&id).await;
    world.until(&id, "SESSION_FAILED").await;
    assert_eq!(world.account.ended(&id).await["status"], "ABORTED");
    let shown = world.account.shown(&id).await;
    assert!(
        shown[0]["error"].as_str().unwrap().starts_with("Unwatched: ExecutionStopped "),
        "{shown:#?}"
    );
    world.verified(&id).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_permission_is_diagnosed_in_an_account() {
    let Some(world) = World::open(Table::Ministack, Model::Refuses).await else { return };
    let account = &world.account;
    let (invokes, other) =
        ("bedrock-agentcore:InvokeAgentRuntime", "bedrock-agentcore:GetAgentRuntime");
    account.change("InvokerRole", invokes, other).await;
    let (id, ran) = world.run(&[]).await;
    assert_eq!(ran.exit, 1, "{ran:#?}");
    let session = account.shown(&id).await.remove(0);
    assert!(session["error"].as_str().unwrap().contains("AccessDenied"), "{session:#}");

    account.change("InvokerRole", "SESSION#*", "OTHER#*").await;
    let (_, ran) = world.run(&[]).await;
    assert_eq!(ran.exit, 1, "{ran:#?}");
    let refused: Vec<_> = account.asked().into_iter().filter(|asked| !asked.allowed).collect();
    assert!(refused.iter().all(|asked| asked.who == "daybook-dev-invoker"), "{refused:#?}");
    let refused: Vec<_> = refused.iter().map(|asked| asked.action.as_str()).collect();
    assert_eq!(refused, [invokes, "dynamodb:PutItem", "dynamodb:Query"]);
    world.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_execution_in_an_account_can_be_resumed() {
    let Some(world) = World::open(Table::Ministack, Model::HangsOnce).await else { return };
    let id = world.at_work().await;
    world.account.stop(&id).await;
    let resumed = world.account.daybook(&["--json", "resume", &id]).await;
    assert_eq!(resumed.exit, 0, "{resumed:#?}");
    assert_eq!(resumed.json()[0]["execution"], format!("{id}-resume-1"));
    let ended = world.account.daybook(&["tail", &id]).await;
    assert!(matches!(ended.exit, 0 | 1), "{ended:#?}");
    let cost = world.account.daybook(&["show", &id, "--cost", "--json"]).await;
    assert!(cost.json().pop().unwrap()["counters"]["polls"].as_u64().unwrap() >= 2, "{cost:#?}");
    world.verified(&id).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_in_an_account_is_answered_and_then_cancelled() {
    let Some(world) = World::open(Table::Ministack, Model::Refuses).await else { return };
    let id = world.trigger(&["--agent", "assistant"]).await;
    world.until(&id, "AGENT_BACKGROUND_TASK_SUSPENDED").await;
    let said = world.account.daybook(&["answer", &id, "--say", "what can you do?"]).await;
    assert_eq!(said.exit, 0, "{said:#?}");
    world.until(&id, "AGENT_BACKGROUND_TASK_RESUMED").await;
    let cancelled = world.account.daybook(&["cancel", &id]).await;
    assert_eq!(cancelled.exit, 0, "{cancelled:#?}");
    world.until(&id, "SESSION_CANCELLED").await;
    let ended = world.account.daybook(&["tail", &id, "--json"]).await;
    assert_eq!(ended.exit, 1, "{ended:#?}");
    assert_eq!(ended.json().pop().unwrap()["status"], "CANCELLED");
    world.verified(&id).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_simulates_permissions_per_resource() {
    let Some(world) = World::open(Table::Ministack, Model::Refuses).await else { return };
    let account = &world.account;
    let well = account.daybook(&["doctor", "--json"]).await;
    assert_eq!(well.exit, 0, "{well:#?}");
    let checks = well.json();
    assert!(checks.iter().all(|check| check["state"] == "ok"), "{checks:#?}");

    let reader = policy_of_a_person().replace("events:PutEvents", "events:ListRules");
    let keys = account.user("reader", &reader).await;
    let refused = account.daybook_as(&keys, &["doctor", "--json"]).await;
    assert_eq!(refused.exit, 1, "{refused:#?}");
    let checks = refused.json();
    let bad: Vec<_> = checks.iter().filter(|check| check["state"] != "ok").collect();
    let [permissions] = &bad[..] else { panic!("{checks:#?}") };
    let said = permissions["detail"].as_str().unwrap();
    assert!(said.contains("is not allowed events:PutEvents on "), "{said}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alarm_on_a_function_triggers_the_incident_agent() {
    let Some(world) = World::open(Table::Ministack, Model::Refuses).await else { return };
    // Source of the event's form: Amazon CloudWatch User Guide, "Alarm events and EventBridge".
    let metric = json!({
        "namespace": "AWS/Lambda", "name": "Errors",
        "dimensions": { "FunctionName": "daybook-dev-invoker" },
    });
    let detail = json!({
        "alarmName": "invoker-errors",
        "state": { "value": "ALARM", "timestamp": "2026-11-22T10:30:00.000+0000", "reason": "r" },
        "configuration": { "metrics": [{ "id": "m", "metricStat": { "metric": metric } }] },
    });
    let id = world.account.put_event(ALARMS, "CloudWatch Alarm State Change", &detail).await;
    let execution = world.account.ended(&id).await;
    assert_eq!(execution["status"], "SUCCEEDED", "{execution:#}");
    let session = world.account.shown(&id).await.remove(0);
    assert_eq!((&session["agent"], &session["status"]), (&json!("incident"), &json!("SUCCEEDED")));
    let diagnosis = session["result"].to_string();
    assert!(diagnosis.contains("daybook-dev-invoker"), "{session:#}");
    world.verified(&id).await;
    // EventBridge delivers at least once.
    let again = world.account.put_event(ALARMS, "CloudWatch Alarm State Change", &detail).await;
    world.until(&again, "SESSION_REJECTED").await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incident_on_the_topic_is_diagnosed_once() {
    let Some(world) = World::open(Table::Ministack, Model::Refuses).await else { return };
    let incident = json!({ "incident_id": "inc-7", "lambda_name": "daybook-dev-invoker" });
    let id = world.account.report(&incident).await;
    let execution = world.account.ended(&id).await;
    assert_eq!(execution["status"], "SUCCEEDED", "{execution:#}");
    let session = world.account.shown(&id).await.remove(0);
    assert_eq!((&session["agent"], &session["status"]), (&json!("incident"), &json!("SUCCEEDED")));
    assert!(session["result"].to_string().contains("daybook-dev-invoker"), "{session:#}");

    // SNS and SQS deliver at least once.
    let again = world.account.report(&incident).await;
    world.until(&again, "SESSION_REJECTED").await;
    let refused = world.account.shown(&again).await.remove(0);
    assert!(refused["error"].as_str().unwrap().contains(&id), "{refused:#}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_stage_keeps_its_journal() {
    if tool("DAYBOOK_TEST_CDK_CLI").is_none() {
        return;
    }
    let Some(world) = World::open(Table::Ministack, Model::Refuses).await else { return };
    let (id, _) = world.run(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let destroy = ["scripts/deploy.sh", "destroy", folder.path().to_str().unwrap(), "dev"];
    let removed = world.account.script(&destroy).await;
    assert_eq!(removed.exit, 0, "{removed:#?}");
    assert!(removed.stdout.contains("the journal daybook-dev-journal is kept"), "{removed:#?}");
    let machines =
        world.account.ask("states", "AWSStepFunctions.ListStateMachines", &json!({})).await;
    assert_eq!(machines, json!({ "stateMachines": [] }));
    let table = json!({ "TableName": "daybook-dev-journal" });
    let kept = world.account.ask("dynamodb", "DynamoDB_20120810.Scan", &table).await;
    assert!(kept.to_string().contains(&id), "{kept:#}");

    let dropped = world.account.script(&[&destroy[..], &["drop"]].concat()).await;
    assert_eq!(dropped.exit, 0, "{dropped:#?}");
    let tables = world.account.ask("dynamodb", "DynamoDB_20120810.ListTables", &json!({})).await;
    assert_eq!(tables["TableNames"], json!([]), "{dropped:#?}");
    world.close().await;
}
