//! A recorded transcript in a model's place: it answers what it has heard before, word for word.
//!
//! The file is JSON Lines, one reply a line: `{"request": {"digest", "system", "messages", "tools"},
//! "reply", "usage"}`. A request is found by its digest, which covers what it says: the system
//! prompt, the messages and the tools on offer. Step numbers are no part of it, and neither are the
//! ids of calls beyond which result belongs to which call, so that a resumed session finds its place.
//! What was never heard is refused, naming where the nearest recorded request differs.

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

/// Largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How much of each side a difference shows, in characters.
const SHOWN_CHARS_MAX: usize = 120;

/// A recording.
#[derive(Debug)]
pub struct Transcript {
    entries: Vec<Entry>,
}

/// Why a file is no transcript.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It cannot be read.
    #[error("the transcript {} cannot be read: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// A line of it is no entry.
    #[error("line {line} of the transcript {} is no recorded reply: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    request: Request,
    reply: Reply,
    usage: Usage,
}

/// What a chat says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Request {
    digest: String,
    system: String,
    messages: Vec<Value>,
    tools: Vec<Value>,
}

impl Transcript {
    /// Reads a recording.
    ///
    /// # Errors
    /// When the file cannot be read, or a line of it is no entry.
    pub fn read(path: &Path) -> Result<Self, Unreadable> {
        let unreadable = |why: String| Unreadable::File { path: path.to_owned(), why };
        let length = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?.len();
        if length > FILE_BYTES_MAX {
            return Err(unreadable(format!("it is larger than {FILE_BYTES_MAX} bytes")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let entry = |(index, line)| {
            serde_json::from_str(line).map_err(|error: serde_json::Error| Unreadable::Line {
                path: path.to_owned(),
                line: index + 1,
                why: error.to_string(),
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
            Some(entry) => Attempt { brought: Ok(entry.reply.clone()), usage: entry.usage },
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
        // Of several that are as near, the last: `max_by_key` says so.
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
        // Absent, not null: recordings made before there were forms keep their digests.
        if let Some(form) = &chat.form {
            of["form"] = json!(form.schema);
        }
        let digest = Hash::of(canonical(&of).as_bytes()).as_str().to_owned();
        Self { digest, system: chat.system.clone(), messages, tools }
    }

    /// The first place in which they differ; `self` is the recorded one.
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

/// Both sides from shortly before the first character in which they differ.
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

/// A message without its source, with calls named by the order of their first mention.
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

/// Where replies are recorded.
#[derive(Debug)]
pub(super) struct Recorder {
    path: PathBuf,
    /// One line at a time.
    writing: Mutex<()>,
}

impl Recorder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, writing: Mutex::default() }
    }

    /// Appends a reply. A session does not fail for it: what is not recorded is said in the log, and
    /// missed when the transcript is used.
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
    async fn what_was_recorded_is_answered_and_anything_else_names_the_nearest_difference() {
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
    fn neither_step_numbers_nor_the_names_of_calls_matter() {
        let told = |source: u32, id: &str| {
            let call = ToolCall { id: Some(id.to_owned()), ..ToolCall::built_in("t", json!({})) };
            let reply = Reply { text: None, calls: vec![call], by: Author::Policy };
            let (id, tool) = (id.to_owned(), "t".to_owned());
            let content = Content::Result { id, tool, content: json!(1), is_error: false };
            let messages =
                vec![Message::assistant(source, &reply), Message { source: source + 1, content }];
            Request::of(&Chat { messages, ..Chat::default() })
        };
        assert_eq!(told(2, "x"), told(5, "y"));
    }

    #[test]
    fn a_line_that_is_no_entry_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        std::fs::write(&path, "\n{\"request\": 7}\n").unwrap();
        let refusal = Transcript::read(&path).unwrap_err().to_string();
        assert!(refusal.starts_with("line 2 of the transcript"), "{refusal}");
    }
}
