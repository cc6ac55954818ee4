//! Golden records: today's records must stay readable for years.

use journal::clock::Stamp;
use journal::error_message::ErrorMessage;
use journal::event::{About, Draft, Event, EventStatus, Seal, Writer};
use journal::export;
use journal::id::{EventId, Runner, SessionId};
use journal::item::{Hash, Item};
use journal::key;
use journal::payload::{Encoded, Payload, part_items};
use journal::read;
use journal::seal;
use journal::step::{EffectKind, EffectRef, Ending, Step, StepBody, Usage};
use serde_json::json;

const EXPIRES_AT: i64 = 1_803_033_000;

pub fn session() -> SessionId {
    "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap()
}

/// This many milliseconds after the session's start.
pub fn at(millis: i64) -> Stamp {
    Stamp::from_millis(Stamp::parse("2026-11-21T10:30:00Z").unwrap().millis() + millis)
}

fn text(json: serde_json::Value) -> Payload {
    Payload::Text(json.to_string())
}

fn effect(node: &str, kind: EffectKind, call: u32) -> EffectRef {
    EffectRef { node: node.to_owned(), kind, digest: Hash::of(node.as_bytes()), call }
}

/// Every kind of step and every form of payload except parts, as one session with a question.
fn bodies(large: Payload) -> Vec<(u32, StepBody<Payload>)> {
    let claim = |supersedes, input| StepBody::Claim {
        supersedes,
        agent: "assistant".to_owned(),
        graph_version: "1".to_owned(),
        input,
    };
    let usage = Usage {
        input_tokens: 1_200,
        output_tokens: 85,
        unsettled_tokens: 4_096,
        micro_usd: 310,
        ..Usage::default()
    };
    let call = effect("act", EffectKind::Tools, 1);
    let ask = effect("confirm", EffectKind::Ask, 0);
    let wait = effect("rest", EffectKind::Sleep, 0);
    let outcome = |effect: EffectRef, usage, payload| StepBody::Outcome {
        effect,
        started_at: at(150),
        usage,
        request: None,
        payload,
    };
    vec![
        (1, claim(0, Some(text(json!({"message": "Grüße: run the simulation"}))))),
        (1, outcome(effect("plan", EffectKind::Chat, 0), usage, text(json!({"reply": "ok"})))),
        (
            1,
            StepBody::Ask {
                effect: ask,
                expires_at: at(604_800_000),
                payload: text(json!({"prompt": "Approve? (yes/no)"})),
            },
        ),
        (
            1,
            StepBody::Answer {
                question: 3,
                principal: None,
                payload: text(json!({"decision": "approve"})),
            },
        ),
        (5, claim(1, None)),
        (5, StepBody::Intent { effect: call.clone(), payload: text(json!({"tool": "run"})) }),
        (5, outcome(call, Usage::default(), large)),
        (
            5,
            StepBody::Note {
                subject: "budget".to_owned(),
                principal: None,
                payload: text(json!({"crossed": "calls"})),
            },
        ),
        (5, outcome(wait, Usage::default(), text(json!("2026-11-21T10:30:05Z")))),
        (
            5,
            StepBody::End {
                ending: Ending::Completed,
                error: Some(ErrorMessage::new("Warning", "Partial", "one result is missing")),
                category: Some("partial".to_owned()),
                answered_by: None,
                payload: text(json!({"reply": "done"})),
            },
        ),
    ]
}

fn steps(large: Payload) -> Vec<Item> {
    let mut prev_hash = Hash::genesis();
    let mut items = Vec::new();
    for (seq, (epoch, body)) in (1_u32..).zip(bodies(large)) {
        let runner = if epoch == 1 { "agent:one" } else { "agent:two" };
        let step = Step {
            session: session(),
            seq,
            epoch,
            runner: Runner::named(runner),
            stamp: at(100 * i64::from(seq)),
            expires_at: EXPIRES_AT,
            prev_hash,
            hash: Hash::genesis(),
            body,
        };
        let item = step.to_item();
        prev_hash = item.hash();
        items.push(item);
    }
    items
}

/// SESSION_INITIATED as the state machine writes it.
fn initiated() -> Item {
    Item::new(key::session(&session()), key::event(at(0)))
        .with("V", 1_i64)
        .with("Status", "SESSION_INITIATED")
        .with("Timestamp", at(0).to_string())
        .with("EventId", EventId::initiated().as_str())
        .with("Writer", "state-machine")
        .with("Day", key::day(at(0), &session()))
        .with(
            "ExecutionArn",
            format!("arn:aws:states:us-east-1:000000000000:execution:daybook:{}", session()),
        )
        .with("ExpiresAt", EXPIRES_AT)
}

fn events() -> Vec<Item> {
    use EventStatus as E;
    let announced = |millis, writer, status, about| {
        Draft::new(status, about).to_item(&session(), writer, at(millis), None, EXPIRES_AT)
    };
    let lost = Draft::new(E::AgentLost, About::Epoch(5))
        .with_error(Some(ErrorMessage::new("AgentLost", "Silent", "no beat for 60 s")))
        .with_detail(json!({ "pulse": "5/agent:two/7" }));
    vec![
        initiated(),
        announced(20, Writer::Invoker, E::AgentInvocationStarted, About::Attempt(1)),
        announced(40, Writer::Agent, E::AgentEntrypointStarted, About::Attempt(1)),
        announced(101, Writer::Agent, E::AgentBackgroundTaskStarted, About::Epoch(1)),
        announced(120, Writer::Invoker, E::AgentInvocationSucceeded, About::Attempt(1)),
        announced(301, Writer::Agent, E::AgentBackgroundTaskSuspended, About::Step(3)),
        announced(401, Writer::Person, E::InputReceived, About::Step(4)),
        announced(501, Writer::Agent, E::AgentBackgroundTaskResumed, About::Step(5)),
        lost.to_item(&session(), Writer::Poller, at(700), Some(at(-5_000)), EXPIRES_AT),
        announced(1_001, Writer::Agent, E::AgentBackgroundTaskCompleted, About::Step(10)),
    ]
}

/// The session's records in the order of an export. `large` is the payload of one outcome;
/// `manifest` builds the verdict's.
pub fn records(large: &Encoded, manifest: impl FnOnce(&serde_json::Value) -> Encoded) -> Vec<Item> {
    let steps = steps(large.payload.clone());
    let mut records = events();
    let listed = manifest(&seal::manifest(&records));
    let mut verdict = Draft::new(seal::verdict(Ending::Completed), About::Step(10));
    verdict.seal =
        Some(Seal { end_seq: 10, end_hash: steps[9].hash(), manifest: listed.payload.clone() });
    records.push(verdict.to_item(&session(), Writer::Poller, at(1_100), None, EXPIRES_AT));
    records.extend(steps);
    let mut parts = part_items(&session(), EXPIRES_AT, large);
    parts.extend(part_items(&session(), EXPIRES_AT, &listed));
    parts.sort_by(|a, b| (&a.pk, &a.sk).cmp(&(&b.pk, &b.sk)));
    records.extend(parts);
    records
}

/// The session of the golden file, with a compressed payload and no parts. The compressed bytes are
/// a file, so that another version of zstd does not change them.
pub fn small() -> Vec<Item> {
    let bytes = include_bytes!("golden/payload.zst").to_vec();
    let payload = Payload::Zstd { bytes, raw_bytes: 6_002 };
    records(&Encoded { payload, parts: Vec::new() }, |manifest| Encoded {
        payload: Payload::Text(manifest.to_string()),
        parts: Vec::new(),
    })
}

/// The same session with payloads in parts, one of them the manifest.
pub fn large() -> Vec<Item> {
    let mut noise = String::new();
    let mut hash = Hash::genesis();
    while noise.len() < 1_000_000 {
        hash = Hash::of(hash.as_str().as_bytes());
        noise.push_str(hash.as_str());
    }
    let large = Payload::encode(&json!(noise)).unwrap();
    assert_eq!(large.parts.len(), 2);
    records(&large, |manifest| {
        let bytes = zstd_of(manifest);
        let sha256 = Hash::of(&bytes);
        let raw_bytes = u32::try_from(manifest.to_string().len()).unwrap();
        let payload = Payload::Parts { sha256, raw_bytes, parts: 1, encrypted: None };
        Encoded { payload, parts: vec![bytes] }
    })
}

/// Compresses with the payload's own code, given a text that is long enough.
fn zstd_of(json: &serde_json::Value) -> Vec<u8> {
    zstd::bulk::compress(json.to_string().as_bytes(), 3).unwrap()
}

#[test]
fn the_golden_session_is_still_written_the_same() {
    let mut written = Vec::new();
    export::write(&session(), &small(), &mut written).unwrap();
    let golden = include_bytes!("golden/session.jsonl");
    if written != golden {
        let path = std::env::temp_dir().join("session.jsonl");
        std::fs::write(&path, &written).unwrap();
        panic!(
            "the format of records has changed: compare {} with tests/it/golden/session.jsonl",
            path.display()
        );
    }
}

#[test]
fn the_golden_session_is_still_read_the_same() {
    let export = export::read(&include_bytes!("golden/session.jsonl")[..]).unwrap();
    assert!(export.damage.is_empty(), "{:?}", export.damage);
    assert_eq!(export.session(), Some(session()));
    assert_eq!(export.records, small());
    let is_step = |item: &&Item| item.sk.starts_with(key::STEP_PREFIX);
    let (steps, events): (Vec<_>, Vec<_>) = export.records.iter().partition(is_step);
    for item in &steps {
        assert_eq!(Step::from_item(item).unwrap().to_item(), **item);
    }
    let steps: Vec<_> = steps.into_iter().map(|item| Step::from_item(item).unwrap()).collect();
    read::check_chain(&steps).unwrap();
    let large = steps[6].body.payload().unwrap().decode(&[]).unwrap();
    assert_eq!(large, json!("daybook ".repeat(750)));
    let events = read::in_order(events.into_iter()).unwrap();
    assert_eq!(events.len(), 11);
    assert_eq!(journal::status::status(&events), journal::status::Status::Succeeded);
    assert_eq!(events[8].wall, Some(at(-5_000)));
}

/// The golden session's eighth step, hashed with standard tools:
///
/// ```sh
/// printf '%s' \
///   '5:EpochN1:5' '9:ExpiresAtN10:1803033000' '4:KindS4:note' \
///   '2:PKS44:SESSION#0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f' \
///   '7:PayloadS19:{"crossed":"calls"}' \
///   '8:PrevHashS64:20eca7b3bb050be4ed5d279653bb81ea879ff8f0baad6312c4ba7c04325beb67' \
///   '6:RunnerS9:agent:two' '2:SKS13:STEP#00000008' '3:SeqN1:8' '7:SubjectS6:budget' \
///   '9:TimestampS30:2026-11-21T10:30:00.800000000Z' '1:VN1:1' | sha256sum
/// ```
#[test]
fn a_whole_record_can_be_hashed_with_standard_tools() {
    let step = small().into_iter().find(|item| item.sk == "STEP#00000008").unwrap();
    let by_hand = "006f4ad323c4c1963ce7d47ef5d12d833a2555d1fbf0c181892d6d28fc36df06";
    assert_eq!(step.hash().as_str(), by_hand);
    assert_eq!(step.text("Hash").unwrap(), step.hash().as_str());
}

/// Events of older writers: three fractional digits or none, no id, writer, hash or version.
#[test]
fn records_of_older_writers_are_readable() {
    let lines = include_str!("golden/old-records.jsonl").lines();
    let items: Vec<_> =
        lines.map(|line| Item::from_json(&serde_json::from_str(line).unwrap()).unwrap()).collect();
    let events = read::in_order(items.iter()).unwrap();
    let shown: Vec<_> = events
        .iter()
        .map(|event| format!("{} {} {}", event.stamp, event.status, event.id.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            "2024-11-04T10:29:59.000000000Z SESSION_INITIATED EVENT#2024-11-04T10:29:59Z",
            "2024-11-04T10:30:00.120000000Z AGENT_INVOCATION_STARTED EVENT#2024-11-04T10:30:00.12Z",
            "2024-11-04T10:30:00.123000000Z AGENT_ENTRYPOINT_STARTED EVENT#2024-11-04T10:30:00.123Z",
            "2024-11-04T10:30:00.123456000Z AGENT_BACKGROUND_TASK_STARTED \
             EVENT#2024-11-04T10:30:00.123456+00:00",
            "2024-11-04T10:30:09.001000000Z AGENT_BACKGROUND_TASK_FAILED EVENT#2024-11-04T10:30:09.001Z",
        ]
    );
    let failed: &Event = events.last().unwrap();
    let message = failed.error.as_ref().unwrap().as_str();
    assert_eq!(message, "ClientError: AccessDeniedException - not authorized");
    assert_eq!(failed.expires_at, 0);
}
