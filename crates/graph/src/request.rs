//! What a model is sent, journaled once and rebuilt from the journal alone.
//!
//! [`Log`] prepares a chat's request: its texts (system prompt, tools, format) go into a note, each once per session,
//! and the outcome names them. A message that a step says word for word is named by that step's number, so a turn adds
//! few bytes. [`Requests`] rebuilds each request, without an agent's code.

use std::collections::BTreeMap;

use journal::item::Hash;
use journal::request::{NAMED, NOTE_REQUEST, Parts, Request, SHA256};
use journal::step::{EffectKind, Step, StepBody};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::effect::{Author, Chat, Content, Message};
use crate::next::json_of;
use crate::outcome::Brought;
use crate::question::Answer;

/// A message of which no step has the text is written into the chat's step up to this length, in bytes of JSON. A
/// longer one is a text of its own.
pub const MESSAGE_BYTES_MAX: usize = 1_024;

/// References to messages are written into the chat's step up to this length, in bytes. A longer list is a text of
/// its own.
pub const MESSAGES_BYTES_MAX: usize = 8 * 1_024;

/// A chat's request, prepared for the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// Texts that the journal does not hold yet.
    parts: Vec<String>,
    pub request: Request,
}

impl Prepared {
    /// The note to journal before the chat, if the journal lacks a text.
    pub fn note(&self) -> Option<StepBody<Value>> {
        let payload = json!(Parts { parts: self.parts.clone() });
        let note = || StepBody::Note { subject: NOTE_REQUEST.to_owned(), principal: None, payload };
        (!self.parts.is_empty()).then(note)
    }
}

/// What a session's steps hold of its requests, as hashes.
#[derive(Clone, Debug, Default)]
pub struct Log {
    held: BTreeMap<String, Held>,
    said: Said,
    by_step: BTreeMap<u32, Key>,
    /// The messages of the newest request.
    sent: Vec<String>,
}

/// A text in the journal: the key of its message, or its list of messages.
#[derive(Clone, Debug, Default)]
struct Held {
    message: Option<String>,
    list: Option<Vec<Value>>,
}

/// A message's hash; for a tool's result also that of its content, because the graph names the call.
#[derive(Clone, Debug)]
struct Key {
    message: String,
    content: Option<(String, bool)>,
}

impl Log {
    /// Reads a session's steps, in sequence.
    pub fn of(steps: &[Step<Value>]) -> Self {
        let mut log = Self::default();
        steps.iter().for_each(|step| log.fold(step));
        log
    }

    pub fn fold(&mut self, step: &Step<Value>) {
        for text in parts(step) {
            self.held.insert(hash(&text), Held::of(&text));
        }
        if let StepBody::Outcome { request: Some(request), .. } = &step.body {
            self.sent = self.messages(request);
        }
        if let Some(message) = self.said.message(step) {
            let content = match &message.content {
                Content::Result { content, is_error, .. } => Some((hash_of(content), *is_error)),
                _ => None,
            };
            self.by_step.insert(step.seq, Key { message: key(&message), content });
        }
    }

    /// Prepares the request of a chat with this model. `mask` redacts secrets in what is journaled.
    pub fn prepare(&self, model: &str, chat: &Chat, mask: impl Fn(&str) -> String) -> Prepared {
        let mut texts = Texts { held: &self.held, mask: &mask, parts: Vec::new() };
        let mut frame = json_of(chat);
        if let Some(fields) = frame.as_object_mut() {
            fields.remove("messages");
            for name in ["tools", "form"] {
                if let Some(value) = fields.get_mut(name) {
                    *value = texts.named(value.to_string());
                }
            }
            fields.insert("system".to_owned(), texts.named(chat.system.clone()));
            fields.insert("model".to_owned(), json!(model));
        }
        let frame = texts.hash(frame.to_string());
        let keys = chat.messages.iter().map(key);
        let kept = keys.zip(&self.sent).take_while(|(key, sent)| key == *sent).count();
        let further = chat.messages[kept..].iter().map(|message| self.item(message, &mut texts));
        let items: Vec<_> = std::iter::once(json!(kept)).chain(further).collect();
        let mut messages = Value::Array(items).to_string();
        if messages.len() > MESSAGES_BYTES_MAX {
            messages = texts.named(messages).to_string();
        }
        Prepared { parts: texts.parts, request: Request { frame, messages } }
    }

    /// A reference to a message: the number of its step, its call and that number, or its text.
    fn item(&self, message: &Message, texts: &mut Texts<'_>) -> Value {
        let known = self.by_step.get(&message.source);
        if known.is_some_and(|known| known.message == key(message)) {
            return json!(message.source);
        }
        if let Content::Result { id, tool, content, is_error } = &message.content
            && known.and_then(|known| known.content.as_ref())
                == Some(&(hash_of(content), *is_error))
        {
            return json!({ "of": message.source, "id": id, "tool": tool });
        }
        let text = (texts.mask)(&json_of(message).to_string());
        if text.len() > MESSAGE_BYTES_MAX {
            return texts.named(text);
        }
        json!({ "message": serde_json::from_str(&text).unwrap_or(Value::String(text)) })
    }

    /// The keys of a request's messages.
    fn messages(&self, request: &Request) -> Vec<String> {
        let list = match serde_json::from_str(&request.messages) {
            Ok(Value::Array(items)) => items,
            Ok(named) => {
                let held = named[SHA256].as_str().and_then(|sha256| self.held.get(sha256));
                held.and_then(|held| held.list.clone()).unwrap_or_default()
            }
            Err(_) => Vec::new(),
        };
        let mut items = list.iter();
        let kept = items.next().and_then(place).unwrap_or(0);
        let further = items.map(|item| self.key_of(item).unwrap_or_default());
        self.sent.iter().take(kept).cloned().chain(further).collect()
    }

    fn key_of(&self, item: &Value) -> Option<String> {
        if let Some(seq) = item.as_u64() {
            return Some(self.by_step.get(&u32::try_from(seq).ok()?)?.message.clone());
        }
        if let Some(sha256) = item[SHA256].as_str() {
            return self.held.get(sha256)?.message.clone();
        }
        if let Some(seq) = item["of"].as_u64() {
            let (source, id, tool) = (u32::try_from(seq).ok()?, &item["id"], &item["tool"]);
            let (content, is_error) = self.by_step.get(&source)?.content.as_ref()?;
            return Some(result_key(source, id.as_str()?, tool.as_str()?, content, *is_error));
        }
        serde_json::from_value(item["message"].clone()).ok().map(|message| key(&message))
    }
}

impl Held {
    fn of(text: &str) -> Self {
        let message = text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten();
        let list = text.starts_with('[').then(|| serde_json::from_str(text).ok()).flatten();
        Self { message: message.map(|message| key(&message)), list }
    }
}

/// Collects the texts of one request that are not journaled yet.
struct Texts<'a> {
    held: &'a BTreeMap<String, Held>,
    mask: &'a dyn Fn(&str) -> String,
    parts: Vec<String>,
}

impl Texts<'_> {
    fn hash(&mut self, text: String) -> Hash {
        let text = (self.mask)(&text);
        let hash = Hash::of(text.as_bytes());
        if !self.held.contains_key(hash.as_str()) && !self.parts.contains(&text) {
            self.parts.push(text);
        }
        hash
    }

    fn named(&mut self, text: String) -> Value {
        json!({ SHA256: self.hash(text).as_str() })
    }
}

/// What was sent for the outcome of a chat.
#[derive(Clone, Debug, PartialEq)]
pub enum Sent {
    /// The request: the model, everything that the chat had, and the hashes of its texts.
    Request(Value),
    /// No model was asked: the agent's policy answered.
    Policy,
    /// The step does not say: an earlier version wrote it.
    Unrecorded,
    /// A record that the request needs is missing or changed.
    Damaged(String),
}

/// Rebuilds the requests of a session, step by step.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    texts: BTreeMap<String, String>,
    said: Said,
    by_step: BTreeMap<u32, Value>,
    sent: Vec<Value>,
}

impl Requests {
    /// What was sent for the next step; `None` if it is not the outcome of a chat.
    pub fn of(&mut self, step: &Step<Value>) -> Option<Sent> {
        self.texts.extend(parts(step).into_iter().map(|text| (hash(&text), text)));
        let sent = self.sent(step);
        if let Some(message) = self.said.message(step) {
            self.by_step.insert(step.seq, json_of(&message));
        }
        sent
    }

    fn sent(&mut self, step: &Step<Value>) -> Option<Sent> {
        let StepBody::Outcome { effect, request, payload, .. } = &step.body else { return None };
        match request {
            _ if effect.kind != EffectKind::Chat => None,
            Some(request) => Some(match self.rebuilt(request) {
                Ok(request) => Sent::Request(request),
                Err(what) => Sent::Damaged(what),
            }),
            None => Some(match Brought::deserialize(payload) {
                Ok(Brought::Reply(reply)) if reply.by == Author::Policy => Sent::Policy,
                _ => Sent::Unrecorded,
            }),
        }
    }

    fn rebuilt(&mut self, request: &Request) -> Result<Value, String> {
        let frame = self.json(request.frame.as_str())?;
        let mut whole = frame.as_object().cloned().ok_or("the request is not an object")?;
        for name in NAMED {
            let Some(sha256) = whole.get(name).and_then(|text| text[SHA256].as_str()) else {
                continue;
            };
            let sha256 = sha256.to_owned();
            let value = match name {
                "system" => json!(self.text(&sha256)?),
                _ => self.json(&sha256)?,
            };
            whole.insert(name.to_owned(), value);
            whole.insert(format!("{name}_sha256"), json!(sha256));
        }
        self.sent = self.messages(&request.messages)?;
        whole.insert("messages".to_owned(), json!(self.sent));
        Ok(Value::Object(whole))
    }

    fn messages(&self, text: &str) -> Result<Vec<Value>, String> {
        let mut list: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if let Some(sha256) = list[SHA256].as_str() {
            list = self.json(sha256)?;
        }
        let mut items = list.as_array().ok_or("the messages are not a list")?.iter();
        let kept = items.next().and_then(place).ok_or("the list of messages has no start")?;
        let before = self.sent.get(..kept).ok_or("an earlier request is missing")?;
        let further = items.map(|item| self.message(item));
        before.iter().cloned().map(Ok).chain(further).collect()
    }

    fn message(&self, item: &Value) -> Result<Value, String> {
        if let Some(seq) = item.as_u64() {
            return self.of_step(seq).cloned();
        }
        if let Some(sha256) = item[SHA256].as_str() {
            return self.json(sha256);
        }
        let Some(seq) = item["of"].as_u64() else { return Ok(item["message"].clone()) };
        let mut message = self.of_step(seq)?.clone();
        if let Some(result) = message.pointer_mut("/content/result").and_then(Value::as_object_mut)
        {
            result.insert("id".to_owned(), item["id"].clone());
            result.insert("tool".to_owned(), item["tool"].clone());
        }
        Ok(message)
    }

    fn of_step(&self, seq: u64) -> Result<&Value, String> {
        let message = u32::try_from(seq).ok().and_then(|seq| self.by_step.get(&seq));
        message.ok_or_else(|| format!("step {seq} has no message"))
    }

    fn text(&self, sha256: &str) -> Result<&str, String> {
        let text = self.texts.get(sha256).map(String::as_str);
        text.ok_or_else(|| format!("no earlier step holds the text {sha256}"))
    }

    fn json(&self, sha256: &str) -> Result<Value, String> {
        serde_json::from_str(self.text(sha256)?).map_err(|error| error.to_string())
    }
}

/// Finds the message that a step says.
#[derive(Clone, Debug, Default)]
struct Said {
    /// Ids and tools of the newest reply's calls.
    calls: Vec<(String, String)>,
}

impl Said {
    fn message(&mut self, step: &Step<Value>) -> Option<Message> {
        match &step.body {
            StepBody::Answer { payload, .. } => {
                let answer = Answer::deserialize(payload).ok()?;
                Some(Message::user(step.seq, answer.text?))
            }
            StepBody::Outcome { effect, payload, .. } => {
                let place = usize::try_from(effect.call).ok()?;
                self.brought(step.seq, place, Brought::deserialize(payload).ok()?)
            }
            _ => None,
        }
    }

    fn brought(&mut self, seq: u32, place: usize, brought: Brought) -> Option<Message> {
        let (content, is_error) = match brought {
            Brought::Reply(reply) => {
                let name = |call: &crate::effect::ToolCall| {
                    (call.id.clone().unwrap_or_default(), call.tool.clone())
                };
                self.calls = reply.calls.iter().map(name).collect();
                return Some(Message::assistant(seq, &reply));
            }
            Brought::Ok(content) => (content, false),
            Brought::Error(text) => (json!(text), true),
            Brought::Failure(failure) => (json!(failure.to_string()), true),
            Brought::Woke {} => return None,
        };
        let (id, tool) = self.calls.get(place).cloned().unwrap_or_default();
        Some(Message { source: seq, content: Content::Result { id, tool, content, is_error } })
    }
}

/// The texts of a note about requests.
fn parts(step: &Step<Value>) -> Vec<String> {
    match &step.body {
        StepBody::Note { subject, payload, .. } if subject == NOTE_REQUEST => {
            Parts::deserialize(payload).unwrap_or_default().parts
        }
        _ => Vec::new(),
    }
}

fn place(item: &Value) -> Option<usize> {
    usize::try_from(item.as_u64()?).ok()
}

/// A message's identity. A tool's result is hashed by the hash of its content, which a step may have.
fn key(message: &Message) -> String {
    match &message.content {
        Content::Result { id, tool, content, is_error } => {
            result_key(message.source, id, tool, &hash_of(content), *is_error)
        }
        _ => hash_of(&json_of(message)),
    }
}

fn result_key(source: u32, id: &str, tool: &str, content: &str, is_error: bool) -> String {
    hash_of(&json!([source, id, tool, content, is_error]))
}

fn hash_of(json: &Value) -> String {
    hash(&json.to_string())
}

fn hash(text: &str) -> String {
    Hash::of(text.as_bytes()).as_str().to_owned()
}
