//! A fixed journal with three sessions: one that succeeded with hostile texts, one that failed, and one
//! that waits for an answer.

use std::path::Path;
use std::time::Duration;

use graph::agent::Opening;
use graph::digest;
use graph::effect::{Author as By, Effect, Reply, ToolCall};
use graph::outcome::{Brought, Failure};
use graph::question::Question;
use journal::announce::Announcer;
use journal::chain::{Author, Body, Head, append};
use journal::clock::{Clock, Hlc, Stamp};
use journal::error_message::ErrorMessage;
use journal::event::{About, Draft, EventStatus as E, Writer};
use journal::id::{Runner, SessionId};
use journal::item::Item;
use journal::key::{self, attribute};
use journal::seal::seal;
use journal::sqlite::{Durability, SqliteStore};
use journal::step::{EffectKind, EffectRef, Ending, Step, StepBody, Usage};
use journal::store::{Condition, Store as _, Written};
use serde_json::{Value, json};

pub const SUCCEEDED: &str = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f";
pub const FAILED: &str = "11f2c3d4-7b1e-4cc3-98c4-dc0c0c073990";
pub const WAITING: &str = "22f2c3d4-7b1e-4cc3-98c4-dc0c0c073991";

/// Text that would clear the screen, retitle the window and reverse the line.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}txt";

/// When the sessions of the golden files began.
pub fn began() -> Stamp {
    Stamp::parse("2026-11-21T10:30:00Z").unwrap()
}

/// Writes the journal into a folder; the sessions begin at `began`.
pub async fn write(folder: &Path, began: Stamp) {
    std::fs::create_dir_all(folder).unwrap();
    let store = SqliteStore::open(&folder.join("journal.db"), Durability::Relaxed).unwrap();
    succeeded(Scribe::new(&store, SUCCEEDED, began)).await;
    failed(Scribe::new(&store, FAILED, began)).await;
    waiting(Scribe::new(&store, WAITING, began)).await;
}

/// Writes one session, moving its clock on by hand.
struct Scribe<'a> {
    store: &'a SqliteStore,
    session: SessionId,
    hlc: Hlc,
    head: Head,
    began: Stamp,
    expires_at: i64,
}

impl<'a> Scribe<'a> {
    fn new(store: &'a SqliteStore, id: &str, began: Stamp) -> Self {
        let hlc = Hlc::new(Clock::fixed(began), Stamp::default());
        // The records do not expire while this test is of any use.
        let expires_at = began.after(Duration::from_secs(100 * 365 * 86_400)).seconds();
        Self { store, session: id.parse().unwrap(), hlc, head: Head::genesis(), began, expires_at }
    }

    fn wait(&self, ms: u64) {
        self.hlc.observe(self.hlc.newest().after(Duration::from_millis(ms)));
    }

    async fn event(&self, ms: u64, writer: Writer, draft: Draft) {
        self.wait(ms);
        let (store, hlc, session) = (self.store, &self.hlc, &self.session);
        let expires_at = self.expires_at;
        Announcer { store, hlc, session, writer, expires_at }.announce(&draft).await.unwrap();
    }

    /// As the state machine writes it: without a hash.
    async fn initiated(&self) {
        let stamp = self.hlc.tick();
        let item = Item::new(key::session(&self.session), key::event(stamp))
            .with(attribute::VERSION, 1_i64)
            .with(attribute::STATUS, E::SessionInitiated.as_str())
            .with(attribute::TIMESTAMP, stamp.to_string())
            .with("EventId", "initiated")
            .with("Writer", Writer::StateMachine.as_str())
            .with(
                attribute::EXECUTION_ARN,
                "arn:aws:states:us-east-1:000000000000:execution:daybook:x",
            )
            .with(attribute::DAY, key::day(stamp, &self.session))
            .with(attribute::EXPIRES_AT, self.expires_at);
        assert_eq!(self.store.put(item, Condition::Absent).await.unwrap(), Written::Done);
    }

    async fn step(&mut self, ms: u64, body: Body) -> Step<Value> {
        self.wait(ms);
        let runner = Runner::named("agent:test");
        let author = Author { session: self.session.clone(), runner, expires_at: self.expires_at };
        let step = append(self.store, &self.hlc, &author, &self.head, 1, body).await.unwrap();
        self.head = Head::after(&step);
        step
    }

    async fn seal(&self, end: &Step<Value>) {
        self.wait(20);
        let (store, hlc, session) = (self.store, &self.hlc, &self.session);
        let (writer, expires_at) = (Writer::Poller, self.expires_at);
        seal(store, &Announcer { store, hlc, session, writer, expires_at }, end).await.unwrap();
    }

    /// The events up to the task's start, and the claim.
    async fn begin(&mut self, agent: &str, input: Value) {
        let claim = StepBody::Claim {
            supersedes: 0,
            agent: agent.to_owned(),
            graph_version: "0".to_owned(),
            input: Some(Opening { input, settings: Default::default() }.payload()),
        };
        self.initiated().await;
        let attempt = About::Attempt(10);
        self.event(120, Writer::Invoker, Draft::new(E::AgentInvocationStarted, attempt)).await;
        self.event(5, Writer::Agent, Draft::new(E::AgentEntrypointStarted, attempt)).await;
        self.step(2, claim).await;
        let started = Draft::new(E::AgentBackgroundTaskStarted, About::Epoch(1));
        self.event(1, Writer::Agent, started.with_detail(json!({"agent": agent}))).await;
        let accepted = Draft::new(E::AgentInvocationSucceeded, attempt);
        self.event(3, Writer::Invoker, accepted.with_detail(json!({"outcome": "accepted"}))).await;
    }

    /// An outcome of what is begun now.
    fn outcome(&self, effect: EffectRef, usage: Usage, brought: &Brought) -> Body {
        let started_at = self.hlc.newest();
        let payload = json!(brought);
        StepBody::Outcome { effect, started_at, usage, request: None, payload }
    }

    async fn chat(&mut self, ms: u64, usage: Usage, reply: Reply) {
        let effect = EffectRef {
            node: "agent_reason".to_owned(),
            kind: EffectKind::Chat,
            digest: digest::effect("agent_reason", &Effect::Nothing),
            call: 0,
        };
        let body = self.outcome(effect, usage, &Brought::Reply(reply));
        self.step(ms, body).await;
    }

    async fn tool(&mut self, ms: u64, calls: &[ToolCall], call: u32, brought: Brought) {
        let digest = digest::effect("execute_tools", &Effect::Tools(calls.to_vec()));
        let effect =
            EffectRef { node: "execute_tools".to_owned(), kind: EffectKind::Tools, digest, call };
        let body = self.outcome(effect, Usage::default(), &brought);
        self.step(ms, body).await;
    }
}

fn call(tool: &str) -> ToolCall {
    ToolCall::new("aws-diagnostics", tool, json!({"lambda_name": "data-processor"}))
}

async fn succeeded(mut scribe: Scribe<'_>) {
    scribe.begin("incident", json!({"lambda_name": "data-processor"})).await;
    let calls = vec![call("get_recent_logs"), call("get_iam_state")];
    let usage =
        Usage { input_tokens: 1_200, output_tokens: 80, micro_usd: 4_800, ..Usage::default() };
    let by = By::Model(format!("openai:{HOSTILE}"));
    scribe.chat(1_340, usage, Reply { text: None, calls: calls.clone(), by }).await;
    let logs = json!({"log_group": HOSTILE, "events": [{"message": HOSTILE}, {"message": "x"}]});
    scribe.tool(12, &calls, 0, Brought::Ok(logs)).await;
    let refusal = format!("iam:GetRole failed: {HOSTILE}\nno such file");
    scribe.tool(3, &calls, 1, Brought::Error(refusal)).await;
    let note = json!({"model": "openai:m", "category": "bedrock_transient", "message": HOSTILE});
    scribe
        .step(1, StepBody::Note { subject: "fallback".to_owned(), principal: None, payload: note })
        .await;
    scribe.chat(0, Usage::default(), Reply::says(format!("I {HOSTILE} see"))).await;
    let end = StepBody::End {
        answered_by: None,
        ending: Ending::Completed,
        error: None,
        category: None,
        payload: diagnosis(),
    };
    let end = scribe.step(4, end).await;
    let completed = Draft::new(E::AgentBackgroundTaskCompleted, About::Step(end.seq));
    scribe.event(2, Writer::Agent, completed).await;
    scribe.seal(&end).await;
}

fn diagnosis() -> Value {
    json!({
        "root_cause": format!("The policy that let the function read its bucket is gone.{HOSTILE}"),
        "fault_types": ["permission_loss", "throttling"],
        "affected_resources": ["data-processor", HOSTILE],
        "severity": "high",
        "evidence": [
            {"tool": "get_recent_logs", "field": "events[0].message",
             "value": "User: arn:aws:sts::123456789012:assumed-role/data-processor-role/data-processor is not authorized to perform: s3:GetObject",
             "interpretation": "the function is denied what it needs"},
            {"tool": "get_iam_state", "field": "error", "value": "",
             "interpretation": "the role could not be looked at"},
        ],
        "remediation_plan": [
            {"action": "Restore the policy", "details": "Put the statement back.",
             "evidence_basis": [0, 1], "risk_level": "medium", "requires_approval": true},
            {"action": "Look again"},
        ],
    })
}

async fn failed(mut scribe: Scribe<'_>) {
    scribe.begin("incident", json!({"lambda_name": "f"})).await;
    let message = format!("no server answers {HOSTILE}");
    let failure = Failure::not_sent("mcp_connection", message.as_str());
    scribe.tool(10_002, &[call("tools/list")], 0, Brought::Failure(failure)).await;
    let error = ErrorMessage::new("ToolError", "Unreachable", &message);
    let end = StepBody::End {
        answered_by: None,
        ending: Ending::Failed,
        error: Some(error.clone()),
        category: Some("mcp_connection".to_owned()),
        payload: Value::Null,
    };
    let end = scribe.step(1, end).await;
    let draft = Draft::new(E::AgentBackgroundTaskFailed, About::Step(end.seq));
    scribe.event(1, Writer::Agent, draft.with_error(Some(error))).await;
    scribe.seal(&end).await;
}

async fn waiting(mut scribe: Scribe<'_>) {
    scribe.begin("assistant", json!({"message": "simulate"})).await;
    let call = ToolCall::new("pk-sim", "run", json!({"id": 7, "dose_mg": 2.5}));
    let intent = json!({"call": call, "attempt": 1});
    let effect = EffectRef {
        node: "act".to_owned(),
        kind: EffectKind::Tools,
        digest: digest::effect("act", &Effect::Tools(vec![call.clone()])),
        call: 0,
    };
    scribe.step(2, StepBody::Intent { effect: effect.clone(), payload: intent }).await;
    let prompt = format!("Run simulation 7 with 2.5 mg?\nApprove? (yes/no){HOSTILE}");
    let question = Question {
        justification: Some("the plan needs its curve".to_owned()),
        arguments_schema: Some(json!({"type": "object", "required": ["id", "dose_mg"]})),
        ..Question::approval(&call, prompt)
    };
    let payload = json!({"question": question, "about": "approval", "snapshot": {}});
    let expires_at = scribe.began.after(Duration::from_secs(7 * 86_400));
    let effect = EffectRef { kind: EffectKind::Ask, ..effect };
    let ask = scribe.step(5, StepBody::Ask { effect, expires_at, payload }).await;
    let suspended = Draft::new(E::AgentBackgroundTaskSuspended, About::Step(ask.seq));
    scribe.event(1, Writer::Agent, suspended).await;
}
