//! Models: they answer the chats that the agent's own policy does not answer.
//!
//! [`Models`] sends a chat, once, to the model that the session names: [`bedrock`] is Amazon Bedrock,
//! [`openai`] any server with OpenAI's chat completions API, [`transcript`] a recording. The result is
//! an [`Attempt`]: a reply or a failure, with its usage; [`price`] computes the cost, and [`turns`] bounds the concurrent calls. This module never
//! retries: the graph does, with one journaled attempt each.
//!
//! A failure's category says who has to act, its kind what may have happened:
//!
//! | category | kind | when |
//! |---|---|---|
//! | [`BEDROCK_AUTH`], [`OPENAI_AUTH`] | refused | no credentials, or the server does not accept them, or there is no credit |
//! | [`BEDROCK_TRANSIENT`], [`OPENAI_TRANSIENT`] | not sent | connection refused, throttled, temporarily unavailable |
//! | the same | unknown | timeout, server error, truncated reply |
//! | [`UNKNOWN`] | refused | any other refusal: no such model, invalid request |
//! | [`INVALID`] | unknown | unusable reply: too large, not the protocol |
//! | [`UNAVAILABLE`] | refused | not configured here: file or address missing |
//! | [`TRANSCRIPT_MISS`] | refused | the recording has no such request |
//!
//! The graph does not retry a refused chat. An unknown one is charged at its maximum unless the server
//! reported its usage. A tool call with arguments that are not JSON is not a failure: the graph gets
//! the text as the arguments, its schema check fails, and the model gets that error.

mod assembly;
pub mod bedrock;
pub mod openai;
pub mod price;
pub mod settings;
pub mod transcript;
pub mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use files::Roots;
use futures_util::future::BoxFuture;
use graph::effect::{Chat, Message, Reply};
use graph::outcome::{Failure, FailureKind};
use journal::clock::Clock;
use journal::id::SessionId;
use journal::step::Usage;
use workflow::trigger;

use self::settings::Settings;
use self::transcript::{Recorder, Transcript};
use self::turns::{Turn, Turns};
use crate::tool::answer::cut;

/// Missing or invalid credentials for Bedrock.
pub const BEDROCK_AUTH: &str = "bedrock_auth";
/// Bedrock is temporarily unavailable.
pub const BEDROCK_TRANSIENT: &str = "bedrock_transient";
/// An OpenAI-compatible server does not accept the key, or the account has no credit.
pub const OPENAI_AUTH: &str = "openai_auth";
/// An OpenAI-compatible server is temporarily unavailable.
pub const OPENAI_TRANSIENT: &str = "openai_transient";
/// Any other refusal.
pub const UNKNOWN: &str = "unknown";
/// An unusable reply.
pub const INVALID: &str = "model_invalid";
/// This program is not configured for such a model.
pub const UNAVAILABLE: &str = "model_unavailable";
/// The recording has no such request.
pub const TRANSCRIPT_MISS: &str = "transcript_miss";

/// Largest reply on the wire, in bytes, including framing.
pub const WIRE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Largest reply in the journal, in bytes: texts, tool names and arguments together.
pub const REPLY_BYTES_MAX: usize = 256 * 1024;

/// Most tool calls of one reply.
pub const REPLY_CALLS_MAX: usize = 64;

/// Most transcripts in memory. One more evicts all of them.
const TRANSCRIPTS_MAX: usize = 8;

/// Longest message of a failure, in characters.
const MESSAGE_CHARS_MAX: usize = 500;

/// Longest error code of a service, in characters.
const CODE_CHARS_MAX: usize = 64;

/// Connect timeout, by the machine's clock.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Reply timeout of chats that set none.
const REPLY_WITHIN: Duration = Duration::from_secs(120);

/// Reply timeout of a probe, in seconds.
const PROBE_WITHIN_S: u32 = 10;

/// Longest reply to a probe, in tokens.
const PROBE_TOKENS_MAX: u32 = 16;

/// A model: it replies to chats.
pub trait Model: Send + Sync {
    /// Sends the chat once. Bounded in bytes, not in time: the caller enforces the timeout.
    fn attempt(&self, chat: &Chat) -> impl Future<Output = Attempt> + Send;

    /// The failure of a reply that did not come within `seconds`.
    fn late(&self, seconds: u64) -> Failure;
}

/// The result of one attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    pub brought: Result<Reply, Failure>,
    /// As the server reported it; without the price.
    pub usage: Usage,
    /// Whether the chat was sent with its schema in the system prompt ([`in_words`]).
    pub in_words: bool,
}

/// All available models. Clones share connections and recordings.
#[derive(Clone, Debug, Default)]
pub struct Models {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    turns_of_openai: Turns,
    turns_of_bedrock: Turns,
    openai: OnceLock<Result<reqwest::Client, String>>,
    bedrock: tokio::sync::OnceCell<aws_sdk_bedrockruntime::Client>,
    transcripts: Mutex<BTreeMap<PathBuf, Read>>,
    /// The models without native structured output. Bounded by the number of model names in triggers.
    formless: Mutex<BTreeSet<String>>,
    recorder: Option<Recorder>,
    /// The transcripts that may be read.
    roots: Roots,
}

/// A transcript, with the file's modification time when it was read.
type Read = (Option<SystemTime>, Arc<Transcript>);

impl Default for Shared {
    fn default() -> Self {
        Self::new(Settings::default(), Roots::default())
    }
}

impl Shared {
    fn new(settings: Settings, roots: Roots) -> Self {
        let most = settings.calls_max.unwrap_or(turns::CALLS_MAX);
        Self {
            turns_of_openai: Turns::new("openai", most),
            turns_of_bedrock: Turns::new("bedrock", most),
            openai: OnceLock::new(),
            bedrock: tokio::sync::OnceCell::new(),
            transcripts: Mutex::default(),
            formless: Mutex::default(),
            recorder: settings.record.clone().map(Recorder::new),
            roots,
            settings,
        }
    }

    fn transcript(&self, file: &Path) -> Result<Arc<Transcript>, String> {
        let file = self.roots.admit(file).map_err(|refusal| {
            format!("the transcript {refusal}; start the stack with --allow DIR, or trigger with --model")
        })?;
        let written = std::fs::metadata(&file).and_then(|file| file.modified()).ok();
        let mut read = self.transcripts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((as_of, transcript)) = read.get(&file)
            && *as_of == written
        {
            return Ok(Arc::clone(transcript));
        }
        let transcript = Transcript::read(&file).map_err(|error| error.to_string())?;
        let transcript = Arc::new(transcript);
        if read.len() >= TRANSCRIPTS_MAX {
            read.clear();
        }
        read.insert(file, (written, Arc::clone(&transcript)));
        Ok(transcript)
    }
}

impl Attempt {
    fn failed(failure: Failure) -> Self {
        Self { brought: Err(failure), usage: Usage::default(), in_words: false }
    }

    /// Whether the server rejected the request as invalid.
    fn is_refused_request(&self) -> bool {
        let refused = |f: &Failure| f.kind == FailureKind::Refused && f.category == UNKNOWN;
        self.brought.as_ref().is_err_and(refused)
    }
}

impl Models {
    /// Opens no connection.
    pub fn new(settings: Settings) -> Self {
        Self { shared: Arc::new(Shared::new(settings, Roots::default())) }
    }

    /// Allows transcripts below these roots. Without roots no transcript may be read, because triggers name
    /// them.
    #[must_use]
    pub fn with_roots(self, roots: Roots) -> Self {
        Self { shared: Arc::new(Shared::new(self.shared.settings.clone(), roots)) }
    }

    /// Replaces the client for Bedrock, which otherwise comes from the environment.
    #[must_use]
    pub fn with_bedrock(self, client: aws_sdk_bedrockruntime::Client) -> Self {
        // The cell is still empty.
        let _ = self.shared.bedrock.set(client);
        self
    }

    /// Waits until the model's provider may have another call of this session. A recording has no bound.
    pub async fn turn(&self, name: &str, session: &SessionId) -> Turn {
        match trigger::Model::try_from(name.to_owned()) {
            Ok(trigger::Model::OpenAi(_)) => self.shared.turns_of_openai.take(session).await,
            Ok(trigger::Model::Bedrock(_)) => self.shared.turns_of_bedrock.take(session).await,
            _ => Turn::unbounded(),
        }
    }

    /// Sends the chat to the model once, within the chat's timeout by this clock. `_turn` is the call's.
    ///
    /// The usage has no price yet: [`Self::charge`] adds it. No message contains the server's key.
    pub async fn ask(&self, _turn: &Turn, name: &str, chat: &Chat, clock: &Clock) -> Attempt {
        let model = match trigger::Model::try_from(name.to_owned()) {
            Ok(model) => model,
            Err(why) => return Attempt::failed(Failure::refused(UNAVAILABLE, why)),
        };
        let asked = match model {
            trigger::Model::Policy => {
                Attempt::failed(Failure::refused(UNAVAILABLE, "the policy is not a model"))
            }
            trigger::Model::OpenAi(model) => match self.openai(model) {
                Ok(model) => self.formed(&model, name, chat, clock).await,
                Err(failure) => Attempt::failed(failure),
            },
            trigger::Model::Transcript(file) => match self.transcript(PathBuf::from(file)).await {
                Ok(model) => within(model.as_ref(), chat, clock).await,
                Err(failure) => Attempt::failed(failure),
            },
            trigger::Model::Bedrock(id) => self.ask_bedrock(id, name, chat, clock).await,
        };
        if let (Some(recorder), Ok(reply)) = (&self.shared.recorder, &asked.brought) {
            recorder.record(chat, reply, asked.usage);
        }
        Attempt { brought: asked.brought.map_err(|failure| self.presentable(failure)), ..asked }
    }

    /// Checks that a model replies, with a chat of one word.
    pub async fn probe(&self, name: &str, session: &SessionId, clock: &Clock) -> Attempt {
        let chat = Chat {
            system: "You are a test of a connection.".to_owned(),
            messages: vec![Message::user(1, "Reply with the word ok.")],
            max_output_tokens: PROBE_TOKENS_MAX,
            timeout_s: Some(PROBE_WITHIN_S),
            ..Chat::default()
        };
        let turn = self.turn(name, session).await;
        let attempt = self.ask(&turn, name, &chat, clock).await;
        match &attempt.brought {
            // As with any chat, an attempt with an unknown outcome is charged at its maximum.
            Err(failure)
                if failure.kind == FailureKind::Unknown && attempt.usage == Usage::default() =>
            {
                let usage = Usage { unsettled_tokens: chat.tokens_max(), ..Usage::default() };
                Attempt { usage, ..attempt }
            }
            _ => attempt,
        }
    }

    /// Adds the cost to a usage; see [`price::Prices::charge`].
    pub fn charge(&self, name: &str, usage: Usage) -> Usage {
        self.shared.settings.prices.charge(name, usage)
    }

    fn openai(&self, model: String) -> Result<openai::Completions<'_>, Failure> {
        let settings = &self.shared.settings.openai;
        let client = self.shared.openai.get_or_init(|| openai::client(settings));
        match client {
            Ok(client) => Ok(openai::Completions { client, settings, model }),
            Err(why) => Err(Failure::refused(UNAVAILABLE, why)),
        }
    }

    /// Reads the file again when it changed, as it does during a recording.
    /// Reads a transcript, on a thread that may block.
    async fn transcript(&self, file: PathBuf) -> Result<Arc<Transcript>, Failure> {
        let shared = Arc::clone(&self.shared);
        if shared.roots.is_empty() {
            let why = format!("the transcript {} is not read: no path is allowed", file.display());
            return Err(Failure::refused(UNAVAILABLE, why));
        }
        let read = tokio::task::spawn_blocking(move || shared.transcript(&file)).await;
        let failed = |error: String| Failure::refused(UNAVAILABLE, error);
        read.map_err(|error| failed(error.to_string()))?.map_err(failed)
    }
    /// Boxed as a trait object: the SDK's futures nest so deeply that callers would exceed the compiler's
    /// recursion limit.
    fn ask_bedrock<'a>(
        &'a self,
        id: String,
        name: &'a str,
        chat: &'a Chat,
        clock: &'a Clock,
    ) -> BoxFuture<'a, Attempt> {
        Box::pin(async move {
            let client = self.shared.bedrock.get_or_init(bedrock::client_of_environment).await;
            let model = bedrock::Converse { client, id };
            Box::pin(self.formed(&model, name, chat, clock)).await
        })
    }

    /// Requests structured output natively where the model supports it, and in the prompt elsewhere.
    ///
    /// Models do not announce their support: one without it refuses the request, at no cost. This then
    /// asks in the prompt, for this chat and all later ones.
    async fn formed(&self, model: &impl Model, name: &str, chat: &Chat, clock: &Clock) -> Attempt {
        if chat.form.is_none() {
            return within(model, chat, clock).await;
        }
        let formless = || self.shared.formless.lock().unwrap_or_else(PoisonError::into_inner);
        if !formless().contains(name) {
            let attempt = within(model, chat, clock).await;
            if !attempt.is_refused_request() {
                return attempt;
            }
        }
        let attempt = within(model, &in_words(chat), clock).await;
        // When both requests are refused, the form was not the reason.
        if !attempt.is_refused_request() {
            formless().insert(name.to_owned());
        }
        Attempt { in_words: true, ..attempt }
    }

    /// The text without the key of a model's server, for the journal.
    pub fn without_key(&self, text: &str) -> String {
        self.shared.settings.openai.without_key(text)
    }

    /// Removes the key from a server's message and truncates it, since servers may echo requests.
    fn presentable(&self, failure: Failure) -> Failure {
        let without_key = |text: &str| self.shared.settings.openai.without_key(text);
        let message = cut(&without_key(&failure.message), MESSAGE_CHARS_MAX);
        let code = failure.code.map(|code| cut(&without_key(&code), CODE_CHARS_MAX));
        Failure { message, code, ..failure }
    }
}

async fn within(model: &impl Model, chat: &Chat, clock: &Clock) -> Attempt {
    let timeout = chat.timeout_s.map_or(REPLY_WITHIN, |s| Duration::from_secs(u64::from(s)));
    match clock.timeout(timeout, model.attempt(chat)).await {
        Some(attempt) => attempt,
        None => Attempt::failed(model.late(timeout.as_secs())),
    }
}

/// The chat with its schema in the system prompt.
pub fn in_words(chat: &Chat) -> Chat {
    let Some(form) = &chat.form else { return chat.clone() };
    let words = format!(
        "Reply with one JSON value and nothing else. It has to be valid by this JSON schema:\n{}",
        form.schema
    );
    let system = [chat.system.as_str(), &words].join("\n\n").trim().to_owned();
    Chat { system, form: None, ..chat.clone() }
}

/// An upper bound of the usage, as unsettled tokens, for servers that report none. Budgets hold with
/// such servers too.
fn guessed(chat: &Chat, reply: &Reply) -> Usage {
    let sent = Chat { max_output_tokens: 0, ..chat.clone() }.tokens_max();
    let text = reply.text.as_ref().map_or(0, String::len);
    let called =
        |call: &graph::effect::ToolCall| call.tool.len() + call.arguments.to_string().len();
    let bytes = text + reply.calls.iter().map(called).sum::<usize>();
    let received = bytes.div_ceil(graph::effect::BYTES_PER_TOKEN_MIN);
    let received = u32::try_from(received).unwrap_or(u32::MAX);
    Usage { unsettled_tokens: sent.saturating_add(received), ..Usage::default() }
}

/// An error with its causes, as one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}
