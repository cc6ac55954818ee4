//! Recorded transcripts: a model that answers recorded requests with their recorded replies.
//!
//! The file is JSON Lines, one reply a line: `{"request": {"digest", "system", "messages", "tools"},
//! "reply", "usage"}`. Requests match by digest, which covers the system prompt, the messages and the
//! tools. It covers neither step numbers nor the ids of calls, only which result belongs to which call,
//! so a resumed session still matches. A request without a match is refused, and the failure shows
//! where the nearest recorded request differs.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use graph::digest::canonical;
use graph::effect::{Chat, Content, Reply};
use graph::outcome::Failure;
use journal::item::Hash;
use journal::step::Usage;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Attempt, Model, TRANSCRIPT_MISS};
use crate::tool::answer::cut;

/// Largest file, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Longest excerpt of each side in a difference, in characters.
const SHOWN_CHARS_MAX: usize = 120;

#[derive(Debug)]
pub struct Transcript {
    entries: Vec<Entry>,
}

/// An invalid transcript.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The file cannot be read.
    #[error("the transcript {} cannot be read: {why}", path.display())]
    File { path: PathBuf, why: String },
    /// A line is not an entry.
    #[error("line {line} of the transcript {} is not a recorded reply: {why}", path.display())]
    Line {
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        why: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    request: Request,
    reply: Reply,
    usage: Usage,
}

/// The recorded part of a chat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Request {
    digest: String,
    system: String,
    messages: Vec<Value>,
    tools: Vec<Value>,
}

impl Transcript {
    /// # Errors
    /// When the file cannot be read, or a line is not an entry.
    pub fn read(path: &Path) -> Result<Self, Unreadable> {
        let unreadable = |why: String| Unreadable::File { path: path.to_owned(), why };
        let text = files::read::text(path, FILE_BYTES_MAX)
            .map_err(|error| unreadable(error.to_string()))?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let entry = |(index, line)| {
            serde_json::from_str(line).map_err(|error: serde_json::Error| Unreadable::Line {
                path: path.to_owned(),
                line: index + 1,
                // The error's own text quotes the line, which may be of any file.
                why: format!("invalid {:?} at column {}", error.classify(), error.column()),
            })
        };
        Ok(Self { entries: lines.map(entry).collect::<Result<_, _>>()? })
    }
}

impl Model for Transcript {
    async fn attempt(&self, chat: &Chat) -> Attempt {
        let request = Request::of(chat);
        let same = self.entries.iter().find(|entry| entry.request.digest == request.digest);
        match same {
            Some(entry) => {
                let (brought, usage) = (Ok(entry.reply.clone()), entry.usage);
                Attempt { brought, usage, in_words: false }
            }
            None => Attempt::failed(Failure::refused(TRANSCRIPT_MISS, self.miss(&request))),
        }
    }

    fn late(&self, seconds: u64) -> Failure {
        Failure::refused(TRANSCRIPT_MISS, format!("not read within {seconds} s"))
    }
}

impl Transcript {
    fn miss(&self, asked: &Request) -> String {
        let alike = |entry: &&Entry| {
            let pairs = entry.request.messages.iter().zip(&asked.messages);
            let shared = pairs.take_while(|(recorded, asked)| recorded == asked).count();
            let apart = entry.request.messages.len().abs_diff(asked.messages.len());
            (shared, std::cmp::Reverse(apart))
        };
        // `max_by_key` returns the last of several maxima.
        match self.entries.iter().max_by_key(alike) {
            None => "the transcript is empty".to_owned(),
            Some(nearest) => format!(
                "the transcript has no such request; the nearest of {} {}",
                self.entries.len(),
                nearest.request.difference(asked)
            ),
        }
    }
}

impl Request {
    fn of(chat: &Chat) -> Self {
        let mut ids = BTreeMap::new();
        let messages: Vec<Value> =
            chat.messages.iter().map(|message| said(&message.content, &mut ids)).collect();
        let tool = |tool: &graph::effect::ToolSpec| json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema});
        let tools: Vec<Value> = chat.tools.iter().map(tool).collect();
        let mut of = json!({"system": chat.system, "messages": messages, "tools": tools});
        // Absent, not null: keeps the digests of recordings made before forms existed.
        if let Some(form) = &chat.form {
            of["form"] = json!(form.schema);
        }
        let digest = Hash::of(canonical(&of).as_bytes()).as_str().to_owned();
        Self { digest, system: chat.system.clone(), messages, tools }
    }

    /// Describes the first difference; `self` is the recorded one.
    fn difference(&self, asked: &Self) -> String {
        if self.system != asked.system {
            return apart("in its system prompt", &self.system, &asked.system);
        }
        let places = self.messages.len().max(asked.messages.len());
        for place in 0..places {
            let (recorded, asked) = (self.messages.get(place), asked.messages.get(place));
            if recorded != asked {
                let shown = |message: Option<&Value>| {
                    message.map_or("nothing".to_owned(), ToString::to_string)
                };
                let place = format!("in message {} of {places}", place + 1);
                return apart(&place, &shown(recorded), &shown(asked));
            }
        }
        let shown = |request: &Self| Value::from(request.tools.clone()).to_string();
        apart("in its tools", &shown(self), &shown(asked))
    }
}

/// Excerpts of both sides, from shortly before the first character that differs.
fn apart(place: &str, recorded: &str, asked: &str) -> String {
    let pairs = recorded.chars().zip(asked.chars());
    let same = pairs.take_while(|(one, other)| one == other).count();
    let from = same.saturating_sub(20);
    let shown = |text: &str| cut(&text.chars().skip(from).collect::<String>(), SHOWN_CHARS_MAX);
    format!(
        "differs {place} from character {}: recorded `{}`, asked `{}`",
        same + 1,
        shown(recorded),
        shown(asked)
    )
}

/// A message without its source, its calls numbered in order of first mention.
fn said(content: &Content, ids: &mut BTreeMap<String, usize>) -> Value {
    let mut place = |id: &str| {
        let next = ids.len() + 1;
        *ids.entry(id.to_owned()).or_insert(next)
    };
    match content {
        Content::User(text) => json!({"user": text}),
        Content::Assistant { text, calls } => {
            let call = |call: &graph::effect::ToolCall| {
                let id = place(call.id.as_deref().unwrap_or_default());
                json!({"call": id, "tool": call.tool, "arguments": call.arguments})
            };
            let calls: Vec<Value> = calls.iter().map(call).collect();
            json!({"assistant": text, "calls": calls})
        }
        Content::Result { id, tool, content, is_error } => {
            json!({"result_of": place(id), "tool": tool, "content": content, "is_error": is_error})
        }
    }
}

/// Appends replies to a recording.
#[derive(Debug)]
pub(super) struct Recorder {
    path: PathBuf,
    writing: Mutex<()>,
}

impl Recorder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, writing: Mutex::default() }
    }

    /// Appends a reply. A failure is logged and does not fail the session: the transcript then lacks the
    /// request.
    pub(super) fn record(&self, chat: &Chat, reply: &Reply, usage: Usage) {
        let entry = Entry { request: Request::of(chat), reply: reply.clone(), usage };
        let written =
            serde_json::to_string(&entry).map_err(std::io::Error::other).and_then(|line| {
                let _one = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
                let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
                file.write_all(format!("{line}\n").as_bytes())
            });
        if let Err(error) = written {
            tracing::error!(path = %self.path.display(), %error, "A model's reply was not recorded.");
        }
    }
}

#[cfg(test)]
mod tests {
    use graph::effect::{Author, Message, ToolCall};

    use super::*;

    fn chat(system: &str, said: &[&str]) -> Chat {
        let messages = said.iter().map(|text| Message::user(1, *text)).collect();
        Chat { system: system.to_owned(), messages, ..Chat::default() }
    }

    fn recorded(chats: &[Chat]) -> (tempfile::TempDir, Transcript) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let recorder = Recorder::new(path.clone());
        for (index, chat) in chats.iter().enumerate() {
            let usage = Usage { input_tokens: 7, ..Usage::default() };
            recorder.record(chat, &Reply::says(index.to_string()), usage);
        }
        let transcript = Transcript::read(&path).unwrap();
        (folder, transcript)
    }

    #[tokio::test]
    async fn a_request_without_a_match_names_the_nearest_difference() {
        let (_folder, transcript) = recorded(&[chat("s", &["a"]), chat("s", &["a", "b"])]);
        let heard = transcript.attempt(&chat("s", &["a", "b"])).await;
        assert_eq!(heard.brought.unwrap().text.as_deref(), Some("1"));
        assert_eq!(heard.usage.input_tokens, 7);
        for (asked, expected) in [
            (
                chat("s", &["a", "c"]),
                "the nearest of 2 differs in message 2 of 2 from character 10: recorded `{\"user\":\"b\"}`, asked `{\"user\":\"c\"}`",
            ),
            (
                chat("t", &["a"]),
                "differs in its system prompt from character 1: recorded `s`, asked `t`",
            ),
            (chat("s", &["a", "b", "c"]), "differs in message 3 of 3"),
        ] {
            let failure = transcript.attempt(&asked).await.brought.unwrap_err();
            assert_eq!(failure.category, TRANSCRIPT_MISS);
            assert!(failure.message.contains(expected), "{}", failure.message);
        }
    }

    #[test]
    fn step_numbers_and_call_ids_do_not_matter() {
        let request = |source: u32, id: &str| {
            let call = ToolCall { id: Some(id.to_owned()), ..ToolCall::built_in("t", json!({})) };
            let reply = Reply { text: None, calls: vec![call], by: Author::Policy };
            let (id, tool) = (id.to_owned(), "t".to_owned());
            let content = Content::Result { id, tool, content: json!(1), is_error: false };
            let messages =
                vec![Message::assistant(source, &reply), Message { source: source + 1, content }];
            Request::of(&Chat { messages, ..Chat::default() })
        };
        assert_eq!(request(2, "x"), request(5, "y"));
    }

    #[test]
    fn an_invalid_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        std::fs::write(&path, "\n{\"request\": 7}\n").unwrap();
        let refusal = Transcript::read(&path).unwrap_err().to_string();
        assert!(refusal.starts_with("line 2 of the transcript"), "{refusal}");
    }

    #[test]
    fn an_error_quotes_nothing_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        for text in ["\"hunter2\"", "hunter2", "{\"hunter2\": 1}"] {
            std::fs::write(&path, text).unwrap();
            let refusal = Transcript::read(&path).unwrap_err().to_string();
            assert!(!refusal.contains("hunter2"), "{refusal}");
        }
    }

    #[test]
    fn only_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        for path in [&*fifo, Path::new("/dev/zero"), Path::new("/dev/ptmx"), folder.path()] {
            let refusal = Transcript::read(path).unwrap_err().to_string();
            assert!(refusal.contains("not a regular file"), "{refusal}");
        }
    }
}
