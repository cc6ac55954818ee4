//! Checks what the records say of the requests to models.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Check, Damage};
use crate::item::{Hash, Item, Value as Stored};
use crate::payload::Payload;
use crate::request::{self, MESSAGES, NOTE_REQUEST, Parts, REQUEST, SHA256};
use crate::step::SUBJECT;

impl Check<'_> {
    /// Checks that earlier notes hold every text that a request names.
    pub(in super::super) fn requests(&mut self) {
        let mut held = BTreeMap::new();
        let mut damage = Vec::new();
        for item in self.steps.values() {
            if item.text_opt(SUBJECT) == Some(NOTE_REQUEST) {
                held.extend(self.texts(item).into_iter().map(|text| (hash_of(&text), text)));
            }
            let Some(Stored::B(frame)) = item.value(REQUEST) else { continue };
            let frame = request::frame_of(frame);
            if let Some(sha256) = missing_text(&held, frame.as_str(), item.text_opt(MESSAGES)) {
                damage.push(Damage::RequestMissing { place: item.sk.clone(), sha256 });
            }
        }
        self.damage.extend(damage);
    }

    /// The texts of a note. Unreadable ones are missing where a request names them.
    fn texts(&self, note: &Item) -> Vec<String> {
        let payload = Payload::read_from(note).ok().flatten();
        let json = payload.and_then(|payload| payload.decode(&self.part_bytes(&payload)).ok());
        let parts = json.and_then(|json| serde_json::from_value::<Parts>(json).ok());
        parts.unwrap_or_default().parts
    }
}

fn hash_of(text: &str) -> String {
    Hash::of(text.as_bytes()).as_str().to_owned()
}

/// The first text that a request names and that is not held.
fn missing_text(
    held: &BTreeMap<String, String>,
    frame: &str,
    messages: Option<&str>,
) -> Option<String> {
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let missing = |sha256: &&str| !held.contains_key(*sha256);
    let Some(framed) = held.get(frame) else { return Some(frame.to_owned()) };
    let (framed, mut list) = (json(framed), json(messages.unwrap_or_default()));
    if let Some(sha256) = list[SHA256].as_str().map(str::to_owned) {
        // A long list of messages is a text of its own.
        let Some(text) = held.get(&sha256) else { return Some(sha256) };
        list = json(text);
    }
    let mut named = request::of_frame(&framed).chain(request::of_messages(&list));
    named.find(missing).map(str::to_owned)
}
