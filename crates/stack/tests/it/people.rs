//! A person in the loop, over whole stacks: each way to answer, refused and late answers, and a waiting
//! session's life.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use control::{Control, Workflow};
use graph::agent::Agent;
use graph::budget::{Budget, Crossed};
use graph::definition::{Attempts, Context, Finish, Graph, Node, Route, Scope};
use graph::effect::{Effect, Reply, ToolCall};
use graph::outcome::Outcome;
use graph::question::{Decision, Question};
use journal::principal::Principal;
use journal::wait::Wait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stack::stack::{Config, Stack};
use tempfile::TempDir;

use crate::stack::{Client, config, statuses};
use crate::world::{SESSION, TIMEOUT};

/// How long its questions stay open.
const OPEN: Duration = Duration::from_secs(3_600);

/// Longer than a runner sleeps by itself.
const NAP: Duration = Duration::from_secs(300);

/// The model client; this one has only the policy.
const TOOL: &str = "model_reachable";

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct State {
    answers: Vec<Value>,
    called: Vec<Value>,
    said_by: Vec<String>,
    naps: bool,
}

/// Asks for permission to call a tool, calls it as permitted, and asks for a last word.
pub static ASKER: Graph<State> = Graph {
    name: "asker",
    version: "1",
    summary: "Asks before it acts.",
    start: "may_i",
    nodes: &[
        Node {
            name: "may_i",
            to: &["act", "last_word"],
            ask: ask_permission,
            fold: fold_permission,
        },
        Node { name: "act", to: &["nap"], ask: act, fold: fold_act },
        Node { name: "nap", to: &["last_word"], ask: nap, fold: |_, _| Route::To("last_word") },
        Node { name: "last_word", to: &[], ask: ask_last_word, fold: fold_last_word },
    ],
    init: |input, _| Ok(State { naps: input["naps"] == true, ..State::default() }),
    budget: Budget::UNLIMITED,
    scope: Scope::Session,
    on_limit: |_, crossed: Crossed| {
        Route::End(Finish::failed("AskerError", crossed.limit.as_str(), "a limit", "unknown"))
    },
    on_limit_to: &[],
    policy: |_, _| Reply::says(""),
    attempts: Attempts::DEFAULT,
    at_most_once: &[],
    critical: &[TOOL],
    servers: &[],
    tool_timeout_s: 30,
};

/// The same agent after a redeployment: other prompts, and an answer counts differently.
pub static LATER: Graph<State> = Graph {
    version: "2",
    nodes: &[
        Node {
            name: "may_i",
            to: &["act", "last_word"],
            ask: ask_otherwise,
            fold: fold_permission,
        },
        Node { name: "act", to: &["nap"], ask: act, fold: fold_act },
        Node { name: "nap", to: &["last_word"], ask: nap, fold: |_, _| Route::To("last_word") },
        Node { name: "last_word", to: &[], ask: ask_last_word, fold: fold_last_word_later },
    ],
    ..ASKER_LIKE
};

const ASKER_LIKE: Graph<State> = Graph {
    name: "asker",
    version: "",
    summary: "Asks before it acts.",
    start: "may_i",
    nodes: &[],
    init: |_, _| Ok(State::default()),
    budget: Budget::UNLIMITED,
    scope: Scope::Session,
    on_limit: |_, _| Route::End(Finish::Completed(Value::Null)),
    on_limit_to: &[],
    policy: |_, _| Reply::says(""),
    attempts: Attempts::DEFAULT,
    at_most_once: &[],
    critical: &[TOOL],
    servers: &[],
    tool_timeout_s: 30,
};

fn proposal() -> ToolCall {
    ToolCall::built_in(TOOL, json!({ "model": "openai:none" }))
}

fn permission(context: &Context<'_>, prompt: &str) -> Effect {
    let schema = json!({
        "type": "object", "required": ["model"], "additionalProperties": false,
        "properties": { "model": { "type": "string", "minLength": 1 } },
    });
    Effect::Ask(Question {
        arguments_schema: Some(schema),
        expires_at: Some(context.now.after(OPEN)),
        ..Question::approval(&proposal(), prompt)
    })
}

fn ask_permission(_: &State, context: &Context<'_>) -> Effect {
    permission(context, "May I?")
}

fn ask_otherwise(_: &State, context: &Context<'_>) -> Effect {
    permission(context, "Would you kindly let me?")
}

fn fold_permission(state: &mut State, outcome: Outcome) -> Route {
    let answer = outcome.answer();
    let next = match answer.decision {
        Decision::Approve | Decision::Edit => "act",
        _ => "last_word",
    };
    state.answers.push(json!(answer));
    Route::To(next)
}

fn act(state: &State, _: &Context<'_>) -> Effect {
    let edited = state.answers.last().and_then(|answer| answer.get("arguments")).cloned();
    let arguments = edited.unwrap_or_else(|| proposal().arguments);
    Effect::Tools(vec![ToolCall { arguments, ..proposal() }])
}

fn fold_act(state: &mut State, outcome: Outcome) -> Route {
    state.called = outcome.results().iter().map(|result| json!(result.call.arguments)).collect();
    Route::To("nap")
}

fn nap(state: &State, context: &Context<'_>) -> Effect {
    if state.naps { Effect::Sleep(context.now.after(NAP)) } else { Effect::Nothing }
}

fn ask_last_word(_: &State, context: &Context<'_>) -> Effect {
    let question = Question::open("Anything else?");
    Effect::Ask(Question { expires_at: Some(context.now.after(OPEN)), ..question })
}

fn fold_last_word(state: &mut State, outcome: Outcome) -> Route {
    state.answers.push(json!(outcome.answer()));
    Route::End(Finish::Completed(json!(state)))
}

fn fold_last_word_later(state: &mut State, outcome: Outcome) -> Route {
    state.said_by.push("later".to_owned());
    fold_last_word(state, outcome)
}

pub async fn asker(folder: &Path) -> Stack {
    stack(folder, &ASKER, 1).await
}

async fn stack(folder: &Path, graph: &'static Graph<State>, time_scale: u32) -> Stack {
    stack_of(folder, Agent::of(graph), time_scale).await
}

pub async fn stack_of(folder: &Path, agent: Agent, time_scale: u32) -> Stack {
    let agents: Arc<[Agent]> = Arc::new([agent]);
    Stack::start(Config { agents, ..config(folder, time_scale) }).await.unwrap()
}

/// The session, once it waits at a question after `seq` with its workflow parked.
pub async fn asked(stack: &Stack, client: &Client, session: &str, after: u64) -> Value {
    let looking = async {
        loop {
            let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
            let open = &shown["session"]["open_question"];
            if open["question_id"].as_u64().is_some_and(|id| id > after) {
                return open.clone();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let open = tokio::time::timeout(TIMEOUT, looking).await;
    let Ok(open) = open else {
        panic!("{:#}", client.get(&format!("/api/sessions/{session}")).await.1)
    };
    parked(stack, session).await;
    open
}

/// The workflow's token, once its lease is released, so that only an answer moves it.
async fn parked(stack: &Stack, session: &str) -> String {
    let id = session.parse().unwrap();
    let looking = async {
        loop {
            let (_, described) = history(stack, session).await;
            if described {
                return Wait::read(stack.store(), &id).await.unwrap().unwrap().token;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, looking).await.expect("the workflow parks")
}

/// How often the workflow has parked, and whether it is parked, after the poller saw it waiting.
async fn history(stack: &Stack, session: &str) -> (usize, bool) {
    let arn = stack::names::execution_arn("daybook", session);
    let record = stack.executions().describe(&arn).await.unwrap().unwrap();
    let events = stack.executions().history(record.id, None, false, 10_000).await.unwrap();
    let submitted = |event: &String| event.contains("TaskSubmitted");
    let waiting = events.iter().rev().find(|event| event.contains("\\\"status\\\":\\\""));
    let is_waiting = waiting.is_some_and(|event| event.contains("\\\"status\\\":\\\"WAITING"));
    let count = events.iter().filter(|event| submitted(event)).count();
    (count, events.last().is_some_and(submitted) && is_waiting)
}

pub async fn answer(client: &Client, session: &str, body: &Value) -> (u16, Value) {
    client.post(&format!("/api/sessions/{session}/answer"), body).await
}

/// Why an answer by event was refused, if it was.
async fn put_answer(client: &Client, detail: &Value) -> Option<String> {
    let entry = json!({
        "Source": "manual-trigger", "DetailType": "answer-agent", "Detail": detail.to_string(),
    });
    let (status, answer) = client.aws("AWSEvents.PutEvents", &json!({ "Entries": [entry] })).await;
    assert_eq!(status, 200, "{answer}");
    let entry = &answer["Entries"][0];
    let refused = entry["ErrorMessage"].as_str().map(str::to_owned);
    assert_eq!(entry["ErrorCode"], json!(refused.as_ref().map(|_| "ActionRefused")), "{answer}");
    assert_eq!(answer["FailedEntryCount"], json!(usize::from(refused.is_some())), "{answer}");
    refused
}

/// Answers with the parked workflow's token. A workflow that has parked again has another token: then
/// the first one is refused, and the next one is read.
async fn send_token(client: &Client, stack: &Stack, session: &str, output: &Value) {
    let sending = async {
        loop {
            let token = parked(stack, session).await;
            let body = json!({ "taskToken": token, "output": output.to_string() });
            let (status, answer) = client.aws("AWSStepFunctions.SendTaskSuccess", &body).await;
            match answer["__type"].as_str() {
                Some("TaskTimedOut") => {}
                _ => break assert_eq!(status, 200, "{answer}"),
            }
        }
    };
    tokio::time::timeout(TIMEOUT, sending).await.expect("a token is taken");
}

/// The result once the session has succeeded.
pub async fn result(client: &Client, session: &str) -> Value {
    let execution = client.ended(session).await;
    assert_eq!(execution["status"], "SUCCEEDED", "{execution:#}");
    client.get(&format!("/api/sessions/{session}")).await.1["session"]["result"].clone()
}

pub async fn begin(client: &Client, input: Value) -> String {
    client.trigger(&json!({ "agent": "asker", "input": input })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_arrives_by_api_by_event_or_with_the_token() {
    let folder = TempDir::new().unwrap();
    let stack = stack(folder.path(), &ASKER, 1).await;
    let client = Client::new(&stack);
    let session = begin(&client, json!({})).await;
    let open = asked(&stack, &client, &session, 0).await;
    assert_eq!(open["tool"], TOOL);
    no_agent(&stack, &session).await;
    let id = open["question_id"].as_u64().unwrap();
    let detail = json!({ "session_id": session, "question_id": id, "decision": "edit",
        "arguments": { "model": "policy" } });
    assert_eq!(put_answer(&client, &detail).await, None);
    let open = asked(&stack, &client, &session, id).await;
    let last = open["question_id"].clone();
    let said = json!({ "question_id": last, "decision": "say", "text": "no" });
    send_token(&client, &stack, &session, &said).await;
    let result = result(&client, &session).await;
    assert_eq!(result["called"], json!([{ "model": "policy" }]), "the approved call is made");
    assert_eq!(result["answers"][1]["text"], "no", "a text answer stays text");

    let session = begin(&client, json!({})).await;
    let id = asked(&stack, &client, &session, 0).await["question_id"].clone();
    let body = json!({ "question_id": id, "decision": "reject", "reason": "too dear" });
    assert_eq!(answer(&client, &session, &body).await.0, 202);
    let after = id.as_u64().unwrap();
    let id = asked(&stack, &client, &session, after).await["question_id"].clone();
    let body = json!({ "question_id": id, "decision": "say", "text": "enough" });
    assert_eq!(answer(&client, &session, &body).await.0, 202);
    let result = self::result(&client, &session).await;
    assert_eq!(
        (&result["called"], &result["answers"][0]["reason"]),
        (&json!([]), &json!("too dear"))
    );
    stack.shutdown().await;
}

/// Waits until no agent runs for the session: it leaves by itself, a moment after it has asked.
async fn no_agent(stack: &Stack, session: &str) {
    let id = session.parse().unwrap();
    let leaving = async {
        while stack.agents().has(&id) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let left = tokio::time::timeout(TIMEOUT, leaving).await;
    left.expect("no agent runs while the session waits for a person");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_answer_is_refused_and_leaves_the_question_open() {
    let folder = TempDir::new().unwrap();
    let stack = stack(folder.path(), &ASKER, 1).await;
    let client = Client::new(&stack);
    let session = begin(&client, json!({})).await;
    let id = asked(&stack, &client, &session, 0).await["question_id"].as_u64().unwrap();
    for (body, status, code, said) in [
        (
            json!({ "question_id": id + 1, "decision": "approve" }),
            409,
            "WrongQuestion",
            "is not open",
        ),
        (json!({ "decision": "approve" }), 409, "WrongQuestion", "question 0 is not open"),
        (json!({ "question_id": id, "decision": "maybe" }), 400, "InvalidAnswer", "maybe"),
        (
            json!({ "question_id": id, "decision": "expired" }),
            400,
            "InvalidAnswer",
            "does not offer",
        ),
        (json!({ "question_id": id, "decision": "say" }), 400, "InvalidAnswer", "needs `text`"),
        (
            json!({ "question_id": id, "decision": "edit", "arguments": { "model": 7 } }),
            400,
            "InvalidAnswer",
            "/model",
        ),
        (
            json!({ "question_id": id, "decision": "edit", "arguments": { "model": "a", "to": 1 } }),
            400,
            "InvalidAnswer",
            "do not match its schema",
        ),
    ] {
        let (refused, answer) = answer(&client, &session, &body).await;
        assert_eq!((refused, &answer["code"]), (status, &json!(code)), "{body}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains(said), "{body}: {answer}");
    }
    // Where the sender gets no response, the workflow parks again and the question stays open.
    for said in [json!("yes"), json!({ "decision": 7 }), json!({ "decision": "approve" })] {
        let (times, _) = history(&stack, &session).await;
        send_token(&client, &stack, &session, &said).await;
        let again = async {
            while history(&stack, &session).await.0 == times {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, again).await.expect("the workflow parks again");
    }
    let wrong = json!({ "session_id": session, "question_id": 1, "decision": "approve" });
    let refused = put_answer(&client, &wrong).await.unwrap();
    assert!(refused.contains(&id.to_string()), "{refused}");
    let nobody = json!({ "session_id": "nobody", "decision": "approve" });
    assert!(put_answer(&client, &nobody).await.is_some());
    assert_eq!(asked(&stack, &client, &session, 0).await["question_id"], id);
    let (status, _) =
        answer(&client, &session, &json!({ "question_id": id, "decision": "reject" })).await;
    assert_eq!(status, 202);
    let again = json!({ "question_id": id, "decision": "approve" });
    let (status, refused) = answer(&client, &session, &again).await;
    assert_eq!(status, 409, "a closed question stays closed: {refused}");
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_concurrent_answers_exactly_one_is_accepted() {
    let folder = TempDir::new().unwrap();
    let stack = stack(folder.path(), &ASKER, 1).await;
    let client = Client::new(&stack);
    let session = begin(&client, json!({})).await;
    let id = asked(&stack, &client, &session, 0).await["question_id"].clone();
    let bodies: Vec<Value> = (0..8)
        .map(|n| json!({ "question_id": id, "decision": "reject", "reason": format!("{n}") }))
        .collect();
    let answers =
        futures_util::future::join_all(bodies.iter().map(|body| answer(&client, &session, body)));
    let answers = answers.await;
    let taken: Vec<usize> = (0..8).filter(|n| answers[*n].0 == 202).collect();
    assert_eq!(taken.len(), 1, "{answers:?}");
    assert!(answers.iter().all(|(status, _)| [202, 409].contains(status)), "{answers:?}");
    let last = asked(&stack, &client, &session, id.as_u64().unwrap()).await["question_id"].clone();
    answer(&client, &session, &json!({ "question_id": last, "decision": "say", "text": "x" }))
        .await;
    let result = result(&client, &session).await;
    assert_eq!(result["answers"][0]["reason"], format!("{}", taken[0]));
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unanswered_questions_expire_and_long_sleeps_end() {
    let folder = TempDir::new().unwrap();
    let stack = stack(folder.path(), &ASKER, 2_000).await;
    let client = Client::new(&stack);
    let session = begin(&client, json!({})).await;
    let result = result(&client, &session).await;
    let decisions: Vec<_> = (0..2).map(|n| result["answers"][n]["decision"].clone()).collect();
    assert_eq!(decisions, ["expired", "expired"], "{result}");

    let session = begin(&client, json!({ "naps": true })).await;
    let id = loop_until_asked(&client, &session).await;
    let edit = json!({ "question_id": id, "decision": "edit", "arguments": { "model": "policy" } });
    let (status, answer) = answer(&client, &session, &edit).await;
    assert_eq!(status, 202, "{answer}");
    let result = self::result(&client, &session).await;
    assert_eq!(result["called"], json!([{ "model": "policy" }]), "{result}");
    let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
    let slept = shown["steps"].as_array().unwrap().iter().filter(|step| step["effect"] == "sleep");
    let kinds: Vec<_> = slept.map(|step| step["kind"].clone()).collect();
    assert_eq!(kinds, ["ask"], "a runner does not take a long sleep");
    stack.shutdown().await;
}

async fn loop_until_asked(client: &Client, session: &str) -> Value {
    let looking = async {
        loop {
            let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
            let id = shown["session"]["open_question"]["question_id"].clone();
            if id.is_u64() {
                return id;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, looking).await.expect("a question")
}

/// A process that is killed between writing an answer and waking the workflow.
struct Killed;

impl Workflow for Killed {
    async fn wake(&self, _token: &str) -> Result<bool, control::Error> {
        Ok(false)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_wakes_an_answered_workflow() {
    let folder = TempDir::new().unwrap();
    let before = stack(folder.path(), &ASKER, 1).await;
    let client = Client::new(&before);
    let session = begin(&client, json!({})).await;
    let id = asked(&before, &client, &session, 0).await["question_id"].as_u64().unwrap();
    let reject = json!({ "question_id": id, "decision": "reject" });
    let (store, clock) = (before.store().clone(), before.clock().clone());
    let killed = Control { store, clock, executions: Killed };
    killed.answer(&session.parse().unwrap(), &reject, &Principal::Unknown).await.unwrap();
    before.shutdown().await;
    let after = stack(folder.path(), &ASKER, 1).await;
    let client = Client::new(&after);
    let last = asked(&after, &client, &session, id).await["question_id"].clone();
    let words = json!({ "question_id": last, "decision": "say", "text": "thanks" });
    assert_eq!(answer(&client, &session, &words).await.0, 202);
    assert_eq!(result(&client, &session).await["answers"][0]["decision"], "reject");
    after.shutdown().await;
}

/// The principals of a session's records, as the API shows them.
async fn principals(client: &Client, session: &str) -> Vec<(String, Value)> {
    let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
    let of = |records: &Value, name: &str| -> Vec<(String, Value)> {
        let records = records.as_array().unwrap().iter();
        let records = records.filter(|it| it.get("principal").is_some());
        records.map(|it| (it[name].as_str().unwrap().to_owned(), it["principal"].clone())).collect()
    };
    let mut all = of(&shown["events"], "status");
    all.extend(of(&shown["steps"], "kind"));
    all
}

fn known(what: &str, kind: &str, name: &str, vouched_by: Value) -> (String, Value) {
    (what.to_owned(), json!({ "kind": kind, "name": name, "vouched_by": vouched_by }))
}

/// A body's claim counts nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn each_way_to_act_records_who_acted() {
    let folder = TempDir::new().unwrap();
    let stack = stack(folder.path(), &ASKER, 1).await;
    let user = |user| Client::sending(&stack, &[("x-daybook-user", user)]);
    let (alice, bob, nobody) = (user("alice"), user("bob"), Client::new(&stack));
    let session = begin(&alice, json!({ "principal": "token:root" })).await;
    let id = asked(&stack, &alice, &session, 0).await["question_id"].as_u64().unwrap();
    let said = json!({ "question_id": id, "decision": "reject", "session_id": session,
        "principal": "token:root", "user": "root" });
    put_answer(&bob, &said).await;
    let id = asked(&stack, &bob, &session, id).await["question_id"].clone();
    let words =
        json!({ "question_id": id, "decision": "say", "text": "no", "principal": "token:root" });
    send_token(&bob, &stack, &session, &words).await;
    result(&alice, &session).await;
    let unknown = json!({ "kind": "unknown", "name": null, "vouched_by": null });
    let expected = [
        known("SESSION_INITIATED", "os-user", "alice", Value::Null),
        known("answer", "os-user", "bob", Value::Null),
        ("answer".to_owned(), unknown.clone()),
    ];
    assert_eq!(principals(&alice, &session).await, expected);

    let session = begin(&nobody, json!({})).await;
    asked(&stack, &nobody, &session, 0).await;
    let path = format!("/api/sessions/{session}");
    let claim = json!({ "principal": "token:root", "reason": "enough" });
    assert_eq!(nobody.post(&format!("{path}/resume"), &claim).await.0, 400);
    assert_eq!(nobody.post(&format!("{path}/resume"), &json!({})).await.0, 202);
    let detail = json!({ "session_id": session, "reason": "enough", "principal": "token:root" });
    let entry = json!({
        "Source": "manual-trigger", "DetailType": "cancel-agent", "Detail": detail.to_string(),
    });
    let put = alice.aws("AWSEvents.PutEvents", &json!({ "Entries": [entry] })).await;
    assert_eq!((put.0, &put.1["FailedEntryCount"]), (200, &json!(0)), "{}", put.1);
    assert_eq!(alice.ended(&session).await["status"], "SUCCEEDED");
    let expected = [
        ("SESSION_INITIATED".to_owned(), unknown.clone()),
        ("RESUME_REQUESTED".to_owned(), unknown),
        known("CANCEL_REQUESTED", "os-user", "alice", Value::Null),
    ];
    assert_eq!(principals(&alice, &session).await, expected);
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_with_a_token_records_the_tokens_name() {
    let folder = TempDir::new().unwrap();
    let agents: Arc<[Agent]> = Arc::new([Agent::of(&ASKER)]);
    let (token, token_name) = (Some("secret".to_owned()), Some("ci".parse().unwrap()));
    let config = Config { agents, token, token_name, ..config(folder.path(), 1) };
    let stack = Stack::start(config).await.unwrap();
    let headers = [("authorization", "Bearer secret"), ("x-daybook-user", "root")];
    let client = Client::sending(&stack, &headers);
    let session = begin(&client, json!({})).await;
    let open = asked(&stack, &client, &session, 0).await;
    let said = json!({ "question_id": open["question_id"], "decision": "reject" });
    assert_eq!(answer(&client, &session, &said).await.0, 202);
    let ci = |what| known(what, "token", "ci", json!("stack"));
    assert_eq!(principals(&client, &session).await, [ci("SESSION_INITIATED"), ci("answer")]);

    let input = json!({ "session_id": SESSION, "time": "2026-11-20T10:00:00Z",
        "detail": { "agent": "asker" }, "principal": "aws-arn:arn:aws:iam::1:root" });
    let start = json!({ "stateMachineArn": stack::names::STATE_MACHINE_ARN, "name": SESSION,
        "input": input.to_string() });
    let started = client.aws("AWSStepFunctions.StartExecution", &start).await;
    assert_eq!(started.0, 200, "{}", started.1);
    asked(&stack, &client, SESSION, 0).await;
    assert_eq!(principals(&client, SESSION).await, [ci("SESSION_INITIATED")]);
    stack.shutdown().await;
}

/// A kill between a question's step and its announcement.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_announcement_of_a_question_is_written_again() {
    const LOST: &str = "AGENT_BACKGROUND_TASK_SUSPENDED";
    let folder = TempDir::new().unwrap();
    let before = stack(folder.path(), &ASKER, 1).await;
    let client = Client::new(&before);
    let session = begin(&client, json!({})).await;
    asked(&before, &client, &session, 0).await;
    parked(&before, &session).await;
    before.shutdown().await;
    let journal = rusqlite::Connection::open(folder.path().join("journal.db")).unwrap();
    let deleted = "DELETE FROM item WHERE json_extract(body, '$.Status.S') = ?";
    assert_eq!(journal.execute(deleted, [LOST]).unwrap(), 1);
    drop(journal);
    let after = stack(folder.path(), &ASKER, 1).await;
    let client = Client::new(&after);
    let (_, list) = client.get("/api/sessions?status=WAITING").await;
    assert_eq!(list["sessions"][0]["session_id"], json!(session), "{list}");
    let (_, health) = client.get("/api/health").await;
    assert_eq!(health["health"]["total"]["waiting"], 1, "{health}");
    let announced = async {
        loop {
            let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
            assert_eq!(shown["session"]["status"], "WAITING");
            if statuses(&shown).contains(&LOST) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, announced).await.unwrap();
    after.shutdown().await;
}
