//! The load of whole stacks: caps with a queue, throttling, and draining. No session fails or is lost because of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use graph::agent::Agent;
use graph::definition::{Finish, Graph, Node, Route};
use graph::effect::{Effect, Reply};
use serde_json::{Value, json};
use stack::load::Limits;
use stack::stack::{Config, Stack};
use tempfile::TempDir;

use crate::people::{ASKER, answer, asked, begin, result};
use crate::stack::{Client, config, statuses};
use crate::world::TIMEOUT;

/// How long [`SLEEPER`] works, by the stack's clock; its runner waits for it.
const WORK: Duration = Duration::from_secs(50);

/// A minute a second: an agent that is silent is lost within two, and [`WORK`] takes less than one.
const FAST: u32 = 60;

static SLEEPER: Graph<()> = Graph {
    version: "1",
    ..Graph::new("sleeper", "Sleeps.", SLEEPS, |_, _| Ok(()), |(), _| Reply::says(""))
};

static OTHER: Graph<()> = Graph {
    version: "1",
    ..Graph::new("other", "Sleeps, too.", SLEEPS, |_, _| Ok(()), |(), _| Reply::says(""))
};

const SLEEPS: &[Node<()>] = &[Node {
    name: "sleep",
    to: &[],
    ask: |(), context| Effect::Sleep(context.now.after(WORK)),
    fold: |(), _| Route::End(Finish::Completed(json!("slept"))),
}];

fn limits(at_work: usize, queue: usize) -> Limits {
    Limits { at_work, queue, ..Limits::default() }
}

async fn start(folder: &Path, load: Limits, time_scale: u32) -> Stack {
    let agents: Arc<[Agent]> =
        Arc::new([Agent::of(&SLEEPER), Agent::of(&OTHER), Agent::of(&ASKER)]);
    Stack::start(Config { agents, load, ..config(folder, time_scale) }).await.unwrap()
}

async fn shown(client: &Client, session: &str) -> Value {
    client.get(&format!("/api/sessions/{session}")).await.1
}

async fn load(client: &Client) -> Value {
    client.get("/healthz").await.1["load"].clone()
}

/// Waits until this many sessions are at work and in the queue.
async fn until(client: &Client, at_work: usize, queued: usize) {
    let looking = async {
        loop {
            let load = load(client).await;
            if (&load["at_work"], &load["queued"]) == (&json!(at_work), &json!(queued)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(TIMEOUT, looking).await;
    if found.is_err() {
        panic!("not {at_work} at work and {queued} queued: {:#}", load(client).await);
    }
}

async fn trigger(client: &Client, agent: &str) -> String {
    client.trigger(&json!({ "agent": agent })).await
}

/// Asserts that the session succeeded, with one claim and no loss. Returns the time of its claim.
async fn succeeded(client: &Client, session: &str) -> String {
    let execution = client.ended(session).await;
    assert_eq!(execution["status"], "SUCCEEDED", "{execution:#}");
    let shown = shown(client, session).await;
    let statuses = statuses(&shown);
    assert!(!statuses.contains(&"AGENT_LOST"), "{statuses:?}");
    shown["steps"][0]["at"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_above_the_cap_take_turns_in_order() {
    let folder = TempDir::new().unwrap();
    let stack = start(folder.path(), limits(1, 100), FAST).await;
    let client = Client::new(&stack);
    let mut sessions = Vec::new();
    for queued in 0..4 {
        sessions.push(trigger(&client, "sleeper").await);
        until(&client, 1, queued).await;
    }
    let (_, page) = client.get("/metrics").await;
    for line in [
        r#"daybook_sessions_at_work{agent="sleeper"} 1"#,
        r#"daybook_sessions_queued{agent="sleeper"} 3"#,
    ] {
        assert!(page.as_str().unwrap().contains(line), "no {line} in {page}");
    }
    let mut claims = Vec::new();
    for session in &sessions {
        claims.push(succeeded(&client, session).await);
    }
    assert!(claims.is_sorted(), "{claims:?}");
    let last = shown(&client, &sessions[3]).await;
    assert!(last["events"].to_string().contains(r#""outcome":"queued""#), "{:#}", last["events"]);
    until(&client, 0, 0).await;
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_cap_holds_up_no_other_agent() {
    let folder = TempDir::new().unwrap();
    let by_agent = [("sleeper".to_owned(), 1)].into();
    let stack = start(folder.path(), Limits { by_agent, ..Limits::default() }, FAST).await;
    let client = Client::new(&stack);
    let first = trigger(&client, "sleeper").await;
    until(&client, 1, 0).await;
    let second = trigger(&client, "sleeper").await;
    until(&client, 1, 1).await;
    let other = trigger(&client, "other").await;
    until(&client, 2, 1).await;
    let health = load(&client).await;
    assert_eq!(health["agents"]["sleeper"], json!({ "at_work": 1, "queued": 1, "at_work_max": 1 }));
    for session in [first, second, other] {
        succeeded(&client, &session).await;
    }
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_waits_for_a_person_frees_its_turn() {
    let folder = TempDir::new().unwrap();
    let stack = start(folder.path(), limits(1, 100), 1).await;
    let client = Client::new(&stack);
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let session = begin(&client, json!({})).await;
        waiting.push((asked(&stack, &client, &session, 0).await, session));
    }
    until(&client, 0, 0).await;
    for (open, session) in waiting {
        let id = open["question_id"].as_u64().unwrap();
        let no = json!({ "question_id": id, "decision": "reject", "reason": "no" });
        assert_eq!(answer(&client, &session, &no).await.0, 202);
        finish(&stack, &client, &session, id).await;
    }
    stack.shutdown().await;
}

/// Answers the last question, which is asked after `seq`.
async fn finish(stack: &Stack, client: &Client, session: &str, seq: u64) {
    let last = asked(stack, client, session, seq).await["question_id"].clone();
    let bye = json!({ "question_id": last, "decision": "say", "text": "bye" });
    assert_eq!(answer(client, session, &bye).await.0, 202);
    result(client, session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_session_leaves_the_queue() {
    let folder = TempDir::new().unwrap();
    let stack = start(folder.path(), limits(1, 100), FAST).await;
    let client = Client::new(&stack);
    let first = trigger(&client, "sleeper").await;
    until(&client, 1, 0).await;
    let queued = trigger(&client, "sleeper").await;
    until(&client, 1, 1).await;
    let (status, _) = client.post(&format!("/api/sessions/{queued}/cancel"), &json!({})).await;
    assert_eq!(status, 202);
    until(&client, 1, 0).await;
    succeeded(&client, &first).await;
    assert_eq!(shown(&client, &queued).await["session"]["status"], "CANCELLED");
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_execution_leaves_the_queue() {
    let folder = TempDir::new().unwrap();
    let stack = start(folder.path(), limits(1, 100), FAST).await;
    let client = Client::new(&stack);
    let first = trigger(&client, "sleeper").await;
    until(&client, 1, 0).await;
    let queued = trigger(&client, "sleeper").await;
    until(&client, 1, 1).await;
    let stop = json!({ "executionArn": stack::names::execution_arn("daybook", &queued) });
    assert_eq!(client.aws("AWSStepFunctions.StopExecution", &stop).await.0, 200);
    until(&client, 1, 0).await;
    succeeded(&client, &first).await;
    until(&client, 0, 0).await;
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_queued_sessions() {
    let folder = TempDir::new().unwrap();
    let stack = start(folder.path(), limits(1, 100), FAST).await;
    let client = Client::new(&stack);
    let mut sessions = Vec::new();
    for queued in 0..3 {
        sessions.push(trigger(&client, "sleeper").await);
        until(&client, 1, queued).await;
    }
    stack.shutdown().await;
    let stack = start(folder.path(), limits(1, 100), FAST).await;
    let client = Client::new(&stack);
    for session in &sessions {
        assert_eq!(client.ended(session).await["status"], "SUCCEEDED");
    }
    stack.shutdown().await;
}

fn put(details: &[Value]) -> Value {
    let entry = |detail: &Value| {
        json!({
            "Source": "manual-trigger", "DetailType": "execute-agent", "Detail": detail.to_string(),
        })
    };
    json!({ "Entries": details.iter().map(entry).collect::<Vec<_>>() })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_throttles_new_sessions() {
    let folder = TempDir::new().unwrap();
    let stack = start(folder.path(), limits(1, 1), FAST).await;
    let client = Client::new(&stack);
    let triggers: Vec<Value> = (0..3).map(|_| json!({ "agent": "sleeper" })).collect();
    // One begins and one waits, before either has asked.
    let (status, answer) = client.aws("AWSEvents.PutEvents", &put(&triggers)).await;
    assert_eq!((status, &answer["FailedEntryCount"]), (200, &json!(1)), "{answer}");
    assert_eq!(answer["Entries"][2]["ErrorCode"], "ThrottlingException", "{answer}");
    until(&client, 1, 1).await;
    let (status, refused) = client.aws("AWSEvents.PutEvents", &put(&triggers[..1])).await;
    assert_eq!((status, &refused["__type"]), (400, &json!("ThrottlingException")), "{refused}");
    assert!(refused["message"].as_str().unwrap().starts_with("Rate exceeded"), "{refused}");
    let start = json!({ "stateMachineArn": stack::names::STATE_MACHINE_ARN });
    let (status, refused) = client.aws("AWSStepFunctions.StartExecution", &start).await;
    assert_eq!((status, &refused["__type"]), (400, &json!("ThrottlingException")), "{refused}");
    // A person's action is no new session.
    let running = answer["Entries"][1]["EventId"].as_str().unwrap();
    let cancel = json!({ "session_id": running }).to_string();
    let cancel =
        json!({ "Source": "manual-trigger", "DetailType": "cancel-agent", "Detail": cancel });
    let mut both = put(&triggers[..1]);
    both["Entries"].as_array_mut().unwrap().push(cancel);
    let (status, mixed) = client.aws("AWSEvents.PutEvents", &both).await;
    assert_eq!((status, &mixed["FailedEntryCount"]), (200, &json!(1)), "{mixed}");
    assert_eq!(mixed["Entries"][0]["ErrorCode"], "ThrottlingException", "{mixed}");
    until(&client, 1, 0).await;
    let admitted = trigger(&client, "sleeper").await;
    succeeded(&client, &admitted).await;
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_under_way_have_a_bound() {
    let folder = TempDir::new().unwrap();
    let stack = start(folder.path(), Limits { executions: 2, ..Limits::default() }, 1).await;
    let client = Client::new(&stack);
    let triggers: Vec<Value> = (0..3).map(|_| json!({ "agent": "asker" })).collect();
    let (_, answer) = client.aws("AWSEvents.PutEvents", &put(&triggers)).await;
    assert_eq!(answer["FailedEntryCount"], 1, "{answer}");
    let (status, refused) = client.aws("AWSEvents.PutEvents", &put(&triggers[..1])).await;
    assert_eq!((status, &refused["__type"]), (400, &json!("ThrottlingException")), "{refused}");
    stack.shutdown().await;
}

async fn drain(client: &Client, within_s: u64) {
    let (status, reply) = client.post("/api/drain", &json!({ "within_s": within_s })).await;
    assert_eq!((status, &reply["draining"]), (202, &json!(true)), "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_stack_loses_nothing() {
    let folder = TempDir::new().unwrap();
    let by_agent = [("sleeper".to_owned(), 1)].into();
    let limits = Limits { by_agent, ..Limits::default() };
    let stack = start(folder.path(), limits.clone(), 20).await;
    let client = Client::new(&stack);
    let waiting = begin(&client, json!({})).await;
    let open = asked(&stack, &client, &waiting, 0).await;
    let running = trigger(&client, "sleeper").await;
    until(&client, 1, 0).await;
    let queued = trigger(&client, "sleeper").await;
    until(&client, 1, 1).await;
    drain(&client, 60).await;
    let (status, refused) = client.aws("AWSEvents.PutEvents", &put(&[json!({})])).await;
    assert_eq!((status, &refused["__type"]), (503, &json!("ServiceUnavailable")), "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("draining"), "{refused}");
    let start_one = json!({ "stateMachineArn": stack::names::STATE_MACHINE_ARN });
    assert_eq!(client.aws("AWSStepFunctions.StartExecution", &start_one).await.0, 503);
    let (status, ready) = client.get("/readyz").await;
    assert_eq!(status, 503);
    assert!(ready["problems"]["draining"].as_str().unwrap().contains("1 sessions at work"));
    assert_eq!(client.get("/livez").await.0, 200);
    // An answer is taken; its session goes on after the restart.
    let id = open["question_id"].as_u64().unwrap();
    let no = json!({ "question_id": id, "decision": "reject", "reason": "no" });
    assert_eq!(answer(&client, &waiting, &no).await.0, 202);
    let left = tokio::time::timeout(TIMEOUT, stack.load().drained()).await.unwrap();
    assert_eq!(left, 0);
    let (_, progress) = client.get("/api/drain").await;
    assert_eq!((&progress["ended"], &progress["at_work"]), (&json!(true), &json!(0)), "{progress}");
    assert_eq!(shown(&client, &running).await["session"]["status"], "SUCCEEDED");
    assert_eq!(shown(&client, &queued).await["steps"], json!([]), "nothing begins");
    stack.shutdown().await;
    let stack = start(folder.path(), limits, 20).await;
    let client = Client::new(&stack);
    assert_eq!(client.get("/readyz").await.0, 200);
    finish(&stack, &client, &waiting, id).await;
    assert_eq!(client.ended(&queued).await["status"], "SUCCEEDED");
    for session in [&waiting, &queued, &running] {
        let (_, found) = client.get(&format!("/api/sessions/{session}")).await;
        assert!(!statuses(&found).contains(&"AGENT_LOST"), "{:?}", statuses(&found));
    }
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_ends_within_its_limit() {
    let folder = TempDir::new().unwrap();
    let stack = start(folder.path(), Limits::default(), 1).await;
    let client = Client::new(&stack);
    let session = trigger(&client, "sleeper").await;
    until(&client, 1, 0).await;
    drain(&client, 600).await;
    drain(&client, 1).await;
    let left = tokio::time::timeout(TIMEOUT, stack.load().drained()).await.unwrap();
    assert_eq!(left, 1);
    tokio::time::timeout(TIMEOUT, stack.shutdown()).await.unwrap();
    let stack = start(folder.path(), Limits::default(), FAST).await;
    assert_eq!(Client::new(&stack).ended(&session).await["status"], "SUCCEEDED");
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_drain_is_refused() {
    let folder = TempDir::new().unwrap();
    let stack = start(folder.path(), Limits::default(), 1).await;
    let client = Client::new(&stack);
    for body in [
        json!({}),
        json!({ "within_s": -1 }),
        json!({ "within_s": 1, "x": 1 }),
        json!({ "within_s": 86_401 }),
    ] {
        let (status, refused) = client.post("/api/drain", &body).await;
        assert_eq!((status, &refused["code"]), (400, &json!("InvalidBody")), "{body} {refused}");
    }
    assert_eq!(client.get("/api/drain").await.1["draining"], false);
    stack.shutdown().await;
}

/// The value of a metric without labels.
async fn metric(client: &Client, name: &str) -> Option<f64> {
    let (_, page) = client.get("/metrics").await;
    let page = page.as_str().unwrap().to_owned();
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("daybook_{name} ")));
    line.map(|value| value.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_age_of_the_oldest_question_outlives_a_restart() {
    const AGE: &str = "oldest_open_question_age_seconds";
    let folder = TempDir::new().unwrap();
    let stack = start(folder.path(), Limits::default(), FAST).await;
    let client = Client::new(&stack);
    assert_eq!(metric(&client, AGE).await, Some(0.0));
    let session = begin(&client, json!({})).await;
    let open = asked(&stack, &client, &session, 0).await;
    let older = async {
        while metric(&client, AGE).await.unwrap() < 30.0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, older).await.unwrap();
    stack.shutdown().await;
    let stack = start(folder.path(), Limits::default(), FAST).await;
    let client = Client::new(&stack);
    let found = async {
        while metric(&client, AGE).await.unwrap() < 30.0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, found).await.unwrap();
    let id = open["question_id"].as_u64().unwrap();
    let no = json!({ "question_id": id, "decision": "reject", "reason": "no" });
    assert_eq!(answer(&client, &session, &no).await.0, 202);
    finish(&stack, &client, &session, id).await;
    assert_eq!(metric(&client, AGE).await, Some(0.0));
    assert_eq!(metric(&client, "executions_stuck").await, Some(0.0));
    assert_eq!(metric(&client, "commit_failures_total").await, Some(0.0));
    assert!(metric(&client, "disk_left_bytes").await.unwrap() > 0.0);
    stack.shutdown().await;
}

/// Triggers sessions of the agent, one after another, until one is refused. Returns those that were taken.
async fn until_refused(client: &Client, agent: &str) -> (Vec<String>, Value) {
    let mut taken = Vec::new();
    let filling = async {
        loop {
            let (status, answer) =
                client.aws("AWSEvents.PutEvents", &put(&[json!({ "agent": agent })])).await;
            if status != 200 {
                return answer;
            }
            let session = answer["Entries"][0]["EventId"].as_str().unwrap().to_owned();
            client.ended(&session).await;
            taken.push(session);
        }
    };
    let refused = tokio::time::timeout(TIMEOUT, filling).await.unwrap();
    (taken, refused)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_up_disk_budget_refuses_only_new_sessions() {
    let folder = TempDir::new().unwrap();
    let disk_bytes = Some(600_000);
    let stack = start(folder.path(), Limits { disk_bytes, ..Limits::default() }, FAST).await;
    let client = Client::new(&stack);
    let waiting = begin(&client, json!({})).await;
    let open = asked(&stack, &client, &waiting, 0).await;
    assert_eq!(client.get("/readyz").await.0, 200);
    let (taken, refused) = until_refused(&client, "sleeper").await;
    assert_eq!(refused["__type"], "ThrottlingException", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("--disk-max"), "{refused}");
    let start_one = json!({ "stateMachineArn": stack::names::STATE_MACHINE_ARN });
    assert_eq!(client.aws("AWSStepFunctions.StartExecution", &start_one).await.0, 400);
    let (status, ready) = client.get("/readyz").await;
    assert_eq!((status, &ready["storage"]["used_bytes_max"]), (503, &json!(disk_bytes)));
    assert!(ready["problems"]["disk_budget"].as_str().unwrap().contains("prune"), "{ready}");
    let used = metric(&client, "disk_used_bytes").await.unwrap();
    assert!(used > 300_000.0 && used <= 600_000.0, "{used}");
    // What is under way goes on to its end.
    let id = open["question_id"].as_u64().unwrap();
    let no = json!({ "question_id": id, "decision": "reject", "reason": "no" });
    assert_eq!(answer(&client, &waiting, &no).await.0, 202);
    finish(&stack, &client, &waiting, id).await;
    // Pruning makes room.
    for some in taken.chunks(25) {
        let body = json!({ "sessions": some, "reason": "the budget is used up" });
        let (status, pruned) = client.post("/api/prune", &body).await;
        assert_eq!((status, &pruned["sessions"][0]["pruned"]), (200, &json!(true)), "{pruned}");
    }
    let lifted = async {
        while client.get("/readyz").await.0 != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, lifted).await.unwrap();
    succeeded(&client, &trigger(&client, "sleeper").await).await;
    stack.shutdown().await;
}
