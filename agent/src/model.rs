//! Models: whoever answers a chat when it is not the agent's own policy.
//!
//! [`Models`] knows all that can be asked and asks the one that a session names, once: [`bedrock`]
//! is Amazon Bedrock, [`openai`] any server that speaks OpenAI's chat completions, [`transcript`] a
//! recording. What comes back is an [`Attempt`]: a reply or a failure, and what it used; [`price`]
//! says what that cost. Nothing here tries twice: retries are the graph's, one journaled attempt
//! each.
//!
//! A failure's category says who is to act, its kind what may have happened:
//!
//! | category | kind | when |
//! |---|---|---|
//! | [`BEDROCK_AUTH`], [`OPENAI_AUTH`] | refused | no credentials, or the server does not accept them, or there is no credit |
//! | [`BEDROCK_TRANSIENT`], [`OPENAI_TRANSIENT`] | not sent | nobody listens, throttled, unavailable for now |
//! | the same | unknown | no reply in time, an error inside the server, a reply cut in the middle |
//! | [`UNKNOWN`] | refused | any other refusal: no such model, a request that the server does not take |
//! | [`INVALID`] | unknown | a reply came and cannot be used: too large, not the protocol |
//! | [`UNAVAILABLE`] | refused | this program cannot ask such a model: feature, file or address missing |
//! | [`TRANSCRIPT_MISS`] | refused | the recording has no such request |
//!
//! Refused is not tried again. What is unknown is charged at its maximum unless the server said what
//! it used. A tool call whose arguments are no JSON is no failure: the text goes to the graph as the
//! arguments, breaks the tool's schema there, and the model is told.

mod assembly;
#[cfg(feature = "bedrock")]
pub mod bedrock;
pub mod openai;
pub mod price;
pub mod settings;
pub mod transcript;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

#[cfg(feature = "bedrock")]
use futures_util::future::BoxFuture;
use graph::effect::{Chat, Form, Message, Reply};
use graph::outcome::{Failure, FailureKind};
use journal::clock::Clock;
use journal::step::Usage;
use workflow::trigger;

use self::settings::Settings;
use self::transcript::{Recorder, Transcript};
use crate::tool::answer::cut;

/// Bedrock does not accept the credentials, or there are none.
pub const BEDROCK_AUTH: &str = "bedrock_auth";
/// Bedrock cannot answer for now.
pub const BEDROCK_TRANSIENT: &str = "bedrock_transient";
/// An OpenAI-compatible server does not accept the key, or the account has no credit.
pub const OPENAI_AUTH: &str = "openai_auth";
/// An OpenAI-compatible server cannot answer for now.
pub const OPENAI_TRANSIENT: &str = "openai_transient";
/// A refusal of any other kind.
pub const UNKNOWN: &str = "unknown";
/// A reply that cannot be used.
pub const INVALID: &str = "model_invalid";
/// This program cannot ask such a model.
pub const UNAVAILABLE: &str = "model_unavailable";
/// The recording has no such request.
pub const TRANSCRIPT_MISS: &str = "transcript_miss";

/// Largest reply as it comes over the wire, in bytes, framing included.
pub const WIRE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Largest reply as the journal gets it, in bytes: texts, tool names and arguments together.
pub const REPLY_BYTES_MAX: usize = 256 * 1024;

/// Most tool calls of one reply.
pub const REPLY_CALLS_MAX: usize = 64;

/// Longest message of a failure, in characters.
const MESSAGE_CHARS_MAX: usize = 500;

/// How long a connection may take until it stands, by the machine's clock.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// How long a reply may take where the chat does not say.
const REPLY_WITHIN: Duration = Duration::from_secs(120);

/// How long a model may take for the word that a checkup asks it for.
const PROBE_WITHIN_S: u32 = 10;

/// Longest word that a checkup asks for, in tokens.
const PROBE_TOKENS_MAX: u32 = 16;

/// Somebody who replies to chats.
pub trait Model: Send + Sync {
    /// Asks once. Bounded in bytes, not in time: the caller has the clock.
    fn attempt(&self, chat: &Chat) -> impl Future<Output = Attempt> + Send;

    /// The failure of a reply that did not come within `seconds`.
    fn late(&self, seconds: u64) -> Failure;
}

/// What asking once brought.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// The reply, or why there is none.
    pub brought: Result<Reply, Failure>,
    /// What it used, as far as the server said so; without its price.
    pub usage: Usage,
}

/// All models that can be asked. Clones share their connections and recordings.
#[derive(Clone, Debug, Default)]
pub struct Models {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    settings: Settings,
    openai: OnceLock<Result<reqwest::Client, String>>,
    #[cfg(feature = "bedrock")]
    bedrock: tokio::sync::OnceCell<aws_sdk_bedrockruntime::Client>,
    transcripts: Mutex<BTreeMap<PathBuf, Read>>,
    /// The models that refuse a form. Bounded by the triggers' model names that are asked with one
    /// and answer.
    formless: Mutex<BTreeSet<String>>,
    recorder: Option<Recorder>,
}

/// A transcript, and when it was as it was read.
type Read = (Option<SystemTime>, Arc<Transcript>);

impl Attempt {
    fn failed(failure: Failure) -> Self {
        Self { brought: Err(failure), usage: Usage::default() }
    }

    /// Whether the server does not take the request as it is.
    fn is_refused_request(&self) -> bool {
        let refused = |f: &Failure| f.kind == FailureKind::Refused && f.category == UNKNOWN;
        self.brought.as_ref().is_err_and(refused)
    }
}

impl Models {
    /// The models of these settings. Connects to nothing.
    pub fn new(settings: Settings) -> Self {
        let recorder = settings.record.clone().map(Recorder::new);
        let shared = Shared { settings, recorder, ..Shared::default() };
        Self { shared: Arc::new(shared) }
    }

    /// The same, with this client for Bedrock instead of one from the environment.
    #[cfg(feature = "bedrock")]
    #[must_use]
    pub fn with_bedrock(self, client: aws_sdk_bedrockruntime::Client) -> Self {
        // The cell of models that were just made is empty.
        let _ = self.shared.bedrock.set(client);
        self
    }

    /// Asks the model of this name once, within the chat's timeout by this clock.
    ///
    /// The usage is without its price, which [`Self::charge`] adds. No message holds the server's key.
    pub async fn ask(&self, name: &str, chat: &Chat, clock: &Clock) -> Attempt {
        let model = match trigger::Model::try_from(name.to_owned()) {
            Ok(model) => model,
            Err(why) => return Attempt::failed(Failure::refused(UNAVAILABLE, why)),
        };
        let asked = match model {
            trigger::Model::Policy => {
                Attempt::failed(Failure::refused(UNAVAILABLE, "the policy is no model"))
            }
            trigger::Model::OpenAi(model) => match self.openai(model) {
                Ok(model) => self.formed(&model, name, chat, clock).await,
                Err(failure) => Attempt::failed(failure),
            },
            trigger::Model::Transcript(file) => match self.transcript(PathBuf::from(file)) {
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

    /// Asks a model for a word.
    pub async fn probe(&self, name: &str, clock: &Clock) -> Attempt {
        let chat = Chat {
            system: "You are a test of a connection.".to_owned(),
            messages: vec![Message::user(1, "Reply with the word ok.")],
            max_output_tokens: PROBE_TOKENS_MAX,
            timeout_s: Some(PROBE_WITHIN_S),
            ..Chat::default()
        };
        let attempt = self.ask(name, &chat, clock).await;
        match &attempt.brought {
            // As with any chat: what was lost is charged at its maximum.
            Err(failure)
                if failure.kind == FailureKind::Unknown && attempt.usage == Usage::default() =>
            {
                let usage = Usage { unsettled_tokens: chat.tokens_max(), ..Usage::default() };
                Attempt { usage, ..attempt }
            }
            _ => attempt,
        }
    }

    /// What a usage of this model costs; see [`price::Prices::charge`].
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

    /// Read again when it was written since, as it is while it is recorded.
    fn transcript(&self, file: PathBuf) -> Result<Arc<Transcript>, Failure> {
        let written = std::fs::metadata(&file).and_then(|file| file.modified()).ok();
        let mut read = self.shared.transcripts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((as_of, transcript)) = read.get(&file)
            && *as_of == written
        {
            return Ok(Arc::clone(transcript));
        }
        let transcript = Transcript::read(&file)
            .map_err(|error| Failure::refused(UNAVAILABLE, error.to_string()))?;
        let transcript = Arc::new(transcript);
        read.insert(file, (written, Arc::clone(&transcript)));
        Ok(transcript)
    }

    /// Boxed with its type hidden: the SDK's futures are nested so deeply that whoever awaits this
    /// would reach the compiler's limit.
    #[cfg(feature = "bedrock")]
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

    #[cfg(not(feature = "bedrock"))]
    #[expect(clippy::unused_async, reason = "with the feature it awaits")]
    async fn ask_bedrock(&self, id: String, _: &str, _: &Chat, _: &Clock) -> Attempt {
        let message = format!(
            "this build cannot ask the model `{id}` on Bedrock: build it with the feature `bedrock`"
        );
        Attempt::failed(Failure::refused(UNAVAILABLE, message))
    }

    /// Asks for the chat's form natively where the model offers that, and else in words.
    ///
    /// Which models do is not known beforehand: one that does not refuses the request, before it has
    /// cost anything. It is then asked in words, at once and from then on.
    async fn formed(&self, model: &impl Model, name: &str, chat: &Chat, clock: &Clock) -> Attempt {
        let Some(form) = &chat.form else { return within(model, chat, clock).await };
        let formless = || self.shared.formless.lock().unwrap_or_else(PoisonError::into_inner);
        if !formless().contains(name) {
            let attempt = within(model, chat, clock).await;
            if !attempt.is_refused_request() {
                return attempt;
            }
        }
        let attempt = within(model, &in_words(chat, form), clock).await;
        // Refused either way, it was not the form that was refused.
        if !attempt.is_refused_request() {
            formless().insert(name.to_owned());
        }
        attempt
    }

    /// A server may repeat what it was sent: neither a key nor a flood belongs into the journal.
    fn presentable(&self, failure: Failure) -> Failure {
        let message = self.shared.settings.openai.without_key(&failure.message);
        Failure { message: cut(&message, MESSAGE_CHARS_MAX), ..failure }
    }
}

async fn within(model: &impl Model, chat: &Chat, clock: &Clock) -> Attempt {
    let timeout = chat.timeout_s.map_or(REPLY_WITHIN, |s| Duration::from_secs(u64::from(s)));
    match clock.timeout(timeout, model.attempt(chat)).await {
        Some(attempt) => attempt,
        None => Attempt::failed(model.late(timeout.as_secs())),
    }
}

/// The chat with its form as a sentence.
fn in_words(chat: &Chat, form: &Form) -> Chat {
    let words = format!(
        "Reply with one JSON value and nothing else. It has to be valid by this JSON schema:\n{}",
        form.schema
    );
    let system = [chat.system.as_str(), &words].join("\n\n").trim().to_owned();
    Chat { system, form: None, ..chat.clone() }
}

/// What a call used whose server did not say so: a guess from above, as unsettled tokens, so that
/// budgets hold with such servers too.
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
