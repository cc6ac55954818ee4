//! What a model was sent is in the journal.

use std::collections::BTreeSet;

use agent::model::Models;
use graph::request::{Requests, Sent};
use journal::clock::Stamp;
use journal::item::{Item, Value as Stored};
use journal::key;
use journal::request::NOTE_REQUEST;
use journal::step::{EffectKind, StepBody, StepKind};
use journal::store::{Condition, Query, Store as _, query_all};
use journal::verify::{Anchors, Damage, verify};
use serde_json::{Value, json};

use super::server::{Heard, Server, Wire};
use super::world::{KEY, Went, World, detail, good_replies, models};

/// What was sent for each chat.
fn sent(went: &Went) -> Vec<Sent> {
    let mut requests = Requests::default();
    went.steps.iter().filter_map(|step| requests.of(step)).collect()
}

fn recorded(went: &Went) -> Vec<Value> {
    let request = |sent| match sent {
        Sent::Request(request) => request,
        other => panic!("{other:?}"),
    };
    sent(went).into_iter().map(request).collect()
}

/// Whether the request on the wire is the recorded one.
fn assert_same(heard: &Heard, recorded: &Value) {
    let body = &heard.body;
    let (system, tools) = match heard.wire {
        Wire::OpenAi => (&body["messages"][0]["content"], &body["tools"]),
        Wire::Bedrock => (&body["system"][0]["text"], &body["toolConfig"]["tools"]),
    };
    assert_eq!(*system, recorded["system"]);
    let names = |tools: &Value, pointer: &str| {
        let tools = tools.as_array().unwrap().iter();
        tools.filter_map(|tool| tool.pointer(pointer).cloned()).collect::<Vec<_>>()
    };
    let (name, schema) = match heard.wire {
        Wire::OpenAi => ("/function/name", "/function/parameters"),
        Wire::Bedrock => ("/toolSpec/name", "/toolSpec/inputSchema/json"),
    };
    assert_eq!(names(tools, name), names(&recorded["tools"], "/name"));
    assert_eq!(names(tools, schema), names(&recorded["tools"], "/input_schema"));
    if heard.wire == Wire::OpenAi {
        let said = body["messages"].as_array().unwrap();
        let messages = recorded["messages"].as_array().unwrap();
        assert_eq!(said.len(), messages.len() + 1);
        for (said, message) in said[1..].iter().zip(messages) {
            if let Some(text) = message["content"].get("user") {
                assert_eq!(said["content"], *text);
            }
            if let Some(result) = message["content"].get("result") {
                assert_eq!(said["tool_call_id"], result["id"]);
            }
        }
    }
}

#[tokio::test]
async fn each_request_on_the_wire_is_rebuilt_from_the_journal() {
    let good = good_replies().await;
    for wire in Wire::ALL.iter().copied() {
        let says = good.clone();
        let server = Server::start(move |heard, _| says[heard.turn()].clone()).await;
        let world = World::new(models(&server.url));
        let went = world.work(&detail(wire.model(), &json!({})), 0).await;
        let (heard, recorded) = (server.heard(), recorded(&went));
        assert_eq!(heard.len(), recorded.len());
        for (heard, recorded) in heard.iter().zip(&recorded) {
            assert_same(heard, recorded);
            assert_eq!(recorded["model"], wire.model());
        }
        let texts: Vec<_> = went.notes(NOTE_REQUEST).iter().flat_map(texts).collect();
        assert_eq!(texts.len(), texts.iter().collect::<BTreeSet<_>>().len(), "each text once");
        assert!(!format!("{:?}", went.items).contains(KEY));
        let report = verify(&world.session, &went.items, &Anchors::default(), Stamp::default());
        assert!(report.is_sound(), "{report:?}");
    }
}

fn texts(note: &Value) -> Vec<String> {
    serde_json::from_value(note["parts"].clone()).unwrap()
}

#[tokio::test]
async fn the_policy_has_no_request() {
    let world = World::new(Models::default());
    let went = world.work(&detail("policy", &json!({})), 0).await;
    assert!(!sent(&went).is_empty() && sent(&went).iter().all(|sent| *sent == Sent::Policy));
    assert_eq!(went.notes(NOTE_REQUEST), Vec::<Value>::new());
}

#[tokio::test]
async fn a_crash_after_any_step_repeats_no_text_and_no_chat() {
    let good = good_replies().await;
    let wire = Wire::OpenAi;
    let server = Server::start(move |heard, _| good[heard.turn()].clone()).await;
    let detail = detail(wire.model(), &json!({}));
    let first = World::new(models(&server.url));
    let whole = first.work(&detail, 0).await;
    let pk = key::session(&first.session);
    let items = query_all(&first.store, Query::prefix(pk, key::STEP_PREFIX)).await.unwrap();
    let chats = |went: &Went| went.attempts().len();
    for cut in 1..items.len() {
        let before = server.heard().len();
        let mut world = World::new(models(&server.url));
        world.session = first.session.clone();
        for item in &items[..cut] {
            world.store.put(Item::clone(item), Condition::Absent).await.unwrap();
        }
        let resumed = world.work(&detail, 1).await;
        assert_eq!(resumed.end(), whole.end(), "cut after {cut}");
        let is_chat = |kind: EffectKind| kind == EffectKind::Chat;
        let done = whole.steps[..cut].iter().filter_map(|step| step.body.effect());
        let done = done.filter(|effect| is_chat(effect.kind)).count();
        assert_eq!(server.heard().len() - before, chats(&whole) - done, "cut after {cut}");
        assert_eq!(resumed.notes(NOTE_REQUEST).len(), whole.notes(NOTE_REQUEST).len());
        for (place, request) in recorded(&resumed).iter().enumerate() {
            assert_eq!(request["system"], recorded(&whole)[place]["system"]);
        }
    }
}

#[tokio::test]
async fn a_changed_or_missing_text_of_a_request_is_damage() {
    let good = good_replies().await;
    let server = Server::start(move |heard, _| good[heard.turn()].clone()).await;
    let world = World::new(models(&server.url));
    let went = world.work(&detail(Wire::OpenAi.model(), &json!({})), 0).await;
    let note = went.steps.iter().find(|step| step.body.kind() == StepKind::Note).unwrap();
    let place = key::step(note.seq);
    let check = |items: &[Item]| {
        verify(&world.session, items, &Anchors::default(), Stamp::default()).damage
    };
    let without: Vec<_> = went.items.iter().filter(|item| item.sk != place).cloned().collect();
    let damage = check(&without);
    assert!(damage.iter().any(|it| matches!(it, Damage::Removed { first, .. } if *first == place)));
    assert!(damage.iter().any(|it| matches!(it, Damage::RequestMissing { .. })), "{damage:?}");
    // A forger who computes the note's own hash anew.
    let forged = |item: &Item| {
        let payload = Stored::S(json!({ "parts": ["another prompt"] }).to_string());
        let mut item = item.clone();
        item.attributes.retain(|name, _| !name.starts_with("Payload"));
        item.attributes.insert("Payload".to_owned(), payload);
        item.hashed()
    };
    let changed =
        went.items.iter().map(|item| if item.sk == place { forged(item) } else { item.clone() });
    let damage = check(&changed.collect::<Vec<_>>());
    assert!(
        damage.iter().any(|it| matches!(it, Damage::Changed { place: at, .. } if *at == place))
    );
    let missing = damage.iter().filter(|it| matches!(it, Damage::RequestMissing { .. }));
    let chats = went
        .steps
        .iter()
        .filter(|step| matches!(&step.body, StepBody::Outcome { request: Some(_), .. }));
    assert_eq!(missing.count(), chats.count(), "each chat that names the text");
}
