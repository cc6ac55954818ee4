//! Requests to a model: journaled once, rebuilt from the steps alone.

use graph::effect::{Author, Chat, Form, Message, Reply, ToolCall, ToolSpec};
use graph::outcome::Brought;
use graph::question::{Answer, Decision};
use graph::request::{Log, Requests, Sent};
use journal::clock::Stamp;
use journal::id::{Runner, SessionId};
use journal::item::Hash;
use journal::payload::Payload;
use journal::request::NOTE_REQUEST;
use journal::step::{EffectKind, EffectRef, Step, StepBody, Usage};
use serde_json::{Value, json};

const MODEL: &str = "openai:test";

/// Journals up to this length are also read as a resumed runner does, after each step.
const RESUMED_STEPS: usize = 50;

/// A session's steps, as a driver journals them.
struct Journal {
    steps: Vec<Step<Value>>,
    log: Log,
    requests: Requests,
}

impl Journal {
    fn new() -> Self {
        Self { steps: Vec::new(), log: Log::default(), requests: Requests::default() }
    }

    fn append(&mut self, body: StepBody<Value>) -> (u32, Option<Sent>) {
        let seq = u32::try_from(self.steps.len()).expect("a few steps") + 1;
        let step = Step {
            session: "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse::<SessionId>().expect("an id"),
            seq,
            epoch: 1,
            runner: Runner::named("agent:0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f"),
            stamp: Stamp::from_millis(1_795_000_000_000 + i64::from(seq)),
            expires_at: 1_800_000_000,
            prev_hash: Hash::genesis(),
            hash: Hash::genesis(),
            body,
        };
        self.log.fold(&step);
        let sent = self.requests.of(&step);
        self.steps.push(step);
        if self.steps.len() < RESUMED_STEPS {
            let resumed = Log::of(&self.steps).prepare(MODEL, &Chat::default(), str::to_owned);
            assert_eq!(resumed, self.log.prepare(MODEL, &Chat::default(), str::to_owned));
        }
        (seq, sent)
    }

    fn outcome(
        &mut self,
        kind: EffectKind,
        call: u32,
        chat: Option<&Chat>,
        brought: &Brought,
    ) -> u32 {
        let mut request = None;
        if let Some(chat) = chat {
            let prepared =
                self.log.prepare(MODEL, chat, |text| text.replace("sk-secret", "[hidden]"));
            request = Some(prepared.request.clone());
            if let Some(note) = prepared.note() {
                self.append(note);
                let again =
                    self.log.prepare(MODEL, chat, |text| text.replace("sk-secret", "[hidden]"));
                assert_eq!((again.note(), again.request), (None, prepared.request));
            }
        }
        let effect =
            EffectRef { node: "think".to_owned(), kind, digest: Hash::of(b"effect"), call };
        let usage =
            Usage { input_tokens: 1_000, output_tokens: 50, micro_usd: 900, ..Usage::default() };
        let started_at = Stamp::from_millis(1_795_000_000_000);
        let payload = json!(brought);
        let body = StepBody::Outcome { effect, started_at, usage, request, payload };
        let (seq, sent) = self.append(body);
        if let Some(chat) = chat {
            let Some(Sent::Request(sent)) = sent else { panic!("{sent:?}") };
            let text = |value: Value| value.to_string().replace("sk-secret", "[hidden]");
            let expected = json!(chat);
            for field in ["system", "messages", "tools", "choice", "max_output_tokens", "form"] {
                assert_eq!(text(sent[field].clone()), text(expected[field].clone()), "{field}");
            }
            assert_eq!(sent["model"], MODEL);
        }
        seq
    }

    fn chat(&mut self, chat: &Chat, reply: &Reply) -> u32 {
        self.outcome(EffectKind::Chat, 0, Some(chat), &Brought::Reply(reply.clone()))
    }

    fn texts(&self) -> Vec<String> {
        let note = |step: &Step<Value>| match &step.body {
            StepBody::Note { subject, payload, .. } if subject == NOTE_REQUEST => {
                serde_json::from_value::<Vec<String>>(payload["parts"].clone()).ok()
            }
            _ => None,
        };
        self.steps.iter().filter_map(note).flatten().collect()
    }
}

fn calling(tools: &[&str]) -> Reply {
    let calls = tools.iter().enumerate().map(|(place, tool)| ToolCall {
        id: Some(format!("abcd1234-{place}")),
        ..ToolCall::new("files", tool, json!({ "folder": "/var/tmp/reports", "recursive": true }))
    });
    Reply { text: None, calls: calls.collect(), by: Author::Model(MODEL.to_owned()) }
}

fn tools(count: usize) -> Vec<ToolSpec> {
    let tool = |n| ToolSpec {
        server: Some("files".to_owned()),
        name: format!("tool_{n}"),
        description: "Lists what a folder holds, with the size of each file.".to_owned(),
        input_schema: json!({ "type": "object", "default": { "sha256": "no text of ours" } }),
    };
    (0..count).map(tool).collect()
}

fn result(seq: u32, id: &str, tool: &str, brought: &Brought) -> Message {
    let (content, is_error) = match brought {
        Brought::Ok(content) => (content.clone(), false),
        Brought::Error(text) => (json!(text), true),
        other => panic!("{other:?}"),
    };
    let (id, tool) = (id.to_owned(), tool.to_owned());
    let content = graph::effect::Content::Result { id, tool, content, is_error };
    Message { source: seq, content }
}

#[test]
fn a_request_is_rebuilt_from_the_steps_alone() {
    let mut journal = Journal::new();
    let mut chat = Chat::new("You tidy folders.", vec![], tools(3));
    chat.messages.push(Message::user(1, "What a template made of the input."));
    let reply = calling(&["tool_0", "tool_1"]);
    let seq = journal.chat(&chat, &reply);
    chat.messages.push(Message::assistant(seq, &reply));
    // Results arrive in any order, and fold in the order of the calls.
    let (late, early) =
        (Brought::Ok(json!({ "files": [1.5, "é\n"] })), Brought::Error("no".to_owned()));
    let second = journal.outcome(EffectKind::Tools, 1, None, &early);
    let first = journal.outcome(EffectKind::Tools, 0, None, &late);
    chat.messages.push(result(first, "abcd1234-0", "tool_0", &late));
    chat.messages.push(result(second, "other", "renamed", &early));
    chat.messages.push(Message::user(second, "x".repeat(5_000)));
    journal.chat(&chat, &Reply { by: Author::Model(MODEL.to_owned()), ..Reply::says("Done.") });
    let answer = Answer { text: Some("Go on".to_owned()), ..Answer::new(2, Decision::Say) };
    let (said, _) = journal.append(answer.body());
    chat.messages.push(Message::user(said, "Go on"));
    journal.chat(&chat, &reply);
    // A compacted conversation, another prompt, a format, and a list too long for its step.
    chat.messages.drain(..2);
    chat.messages.extend((0..900).map(|n| Message::user(1, format!("line {n}"))));
    chat.system = "[\"Another prompt with sk-secret\"]".to_owned();
    chat.form = Some(Form { name: "a".to_owned(), schema: json!({ "const": { "sha256": "0" } }) });
    journal.chat(&chat, &reply);
    chat.messages.push(Message::user(1, "sk-secret"));
    journal.chat(&chat, &reply);
    journal.chat(&chat, &reply);
    let whole = format!("{:?}", journal.steps);
    assert!(!whole.contains("sk-secret"), "secrets are masked");
    let mut texts = journal.texts();
    let count = texts.len();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), count, "each text is journaled once");
}

#[test]
fn what_was_sent_is_said_or_why_there_is_nothing() {
    let mut journal = Journal::new();
    let effect = |kind| EffectRef { node: "n".to_owned(), kind, digest: Hash::genesis(), call: 0 };
    let outcome = |kind, request, brought: Brought| StepBody::Outcome {
        effect: effect(kind),
        started_at: Stamp::default(),
        usage: Usage::default(),
        request,
        payload: json!(brought),
    };
    let policy = Brought::Reply(Reply::says("by rules"));
    assert_eq!(journal.append(outcome(EffectKind::Chat, None, policy)).1, Some(Sent::Policy));
    let model = Brought::Reply(calling(&[]));
    let old = outcome(EffectKind::Chat, None, model.clone());
    assert_eq!(journal.append(old).1, Some(Sent::Unrecorded));
    assert_eq!(journal.append(outcome(EffectKind::Tools, None, Brought::Ok(json!(1)))).1, None);
    // The note is missing.
    let request = journal.log.prepare(MODEL, &Chat::default(), str::to_owned).request;
    let damaged = journal.append(outcome(EffectKind::Chat, Some(request), model)).1;
    assert!(matches!(damaged, Some(Sent::Damaged(_))), "{damaged:?}");
}

/// Bytes of the steps as items, and without what they hold of requests.
fn bytes(steps: &[Step<Value>]) -> (usize, usize) {
    let (mut with, mut without) = (0, 0);
    for step in steps {
        let encode = |json| Payload::encode(&json).map(|encoded| encoded.payload);
        let mut stored = step.clone().try_map(encode).expect("a small step");
        with += stored.to_item().size_bytes();
        if matches!(&stored.body, StepBody::Note { .. }) {
            continue;
        }
        if let StepBody::Outcome { request, .. } = &mut stored.body {
            *request = None;
        }
        without += stored.to_item().size_bytes();
    }
    (with, without)
}

#[test]
fn two_hundred_turns_grow_by_at_most_five_percent() {
    let mut journal = Journal::new();
    let prompt = "You tidy folders, and never delete what a person may miss. ".repeat(40);
    let mut chat = Chat::new(&prompt, vec![Message::user(1, "Tidy /var/tmp.")], tools(12));
    let files = |turn| {
        let file = |n| json!({ "name": format!("report-{turn}-{n}.csv"), "bytes": 4_096 + n });
        json!({ "files": (0..30).map(file).collect::<Vec<_>>() })
    };
    for turn in 0..200 {
        let reply = calling(&["tool_3"]);
        let seq = journal.chat(&chat, &reply);
        chat.messages.push(Message::assistant(seq, &reply));
        let brought = Brought::Ok(files(turn));
        let seq = journal.outcome(EffectKind::Tools, 0, None, &brought);
        chat.messages.push(result(seq, "abcd1234-0", "tool_3", &brought));
    }
    let (with, without) = bytes(&journal.steps);
    let permille = (with - without) * 1_000 / without;
    println!("200 turns: {without} bytes without requests, {with} with them: {permille} per mille");
    assert!(permille <= 50, "{without} bytes grow to {with}");
    assert_eq!(journal.texts().len(), 3, "the frame, the prompt and the tools");
}
