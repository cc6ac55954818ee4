//! What an agent's function gets: the effects, by name.

use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agent::raised;
use crate::chat::{Chat, ToolLoop};
use crate::error::{EffectError, Error, Kind, type_name};
use crate::program::{Program, Raised, Ticket};

/// The context of one session. A clone is the same context.
#[derive(Clone, Debug)]
pub struct Context {
    program: Rc<Program>,
    start: Rc<Start>,
}

#[derive(Debug)]
struct Start {
    session: String,
    replay: u64,
}

/// An effect that was asked for: a future of its value. It is performed whether it is awaited or not.
pub struct Effect<'a, T>(Pin<Box<dyn Future<Output = Result<T, EffectError>> + 'a>>);

impl<'a, T> Effect<'a, T> {
    pub(crate) fn of(future: impl Future<Output = Result<T, EffectError>> + 'a) -> Self {
        Self(Box::pin(future))
    }
}

impl<T> Future for Effect<'_, T> {
    type Output = Result<T, EffectError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

/// What a person decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Approve,
    Reject,
    Edit,
    Say,
    /// The question expired without an answer.
    Expired,
}

/// A person's answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Answer {
    pub decision: Decision,
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub reason: Option<String>,
    /// The edited arguments.
    #[serde(default)]
    pub arguments: Option<Value>,
}

/// A question, which is asked with [`Ask::send`].
#[must_use = "a question is asked by `send`"]
pub struct Ask<'a> {
    context: &'a Context,
    at: &'static Location<'static>,
    fields: Value,
}

impl Context {
    pub(crate) fn new(program: Rc<Program>, start: &Value) -> Self {
        let session = start["session"].as_str().unwrap_or_default().to_owned();
        let replay = start["replay"].as_u64().unwrap_or_default();
        Self { program, start: Rc::new(Start { session, replay }) }
    }

    /// The session's id.
    pub fn session(&self) -> &str {
        &self.start.session
    }

    /// The highest ordinal in the journal when this run began.
    pub fn replay(&self) -> u64 {
        self.start.replay
    }

    /// Runs a function of yours and journals its result. `arguments` identify the call: a replay with others diverges.
    #[track_caller]
    pub fn step<'a, T, E, W, R>(
        &self,
        name: &str,
        arguments: impl Serialize,
        work: W,
    ) -> Effect<'a, T>
    where
        T: Serialize + DeserializeOwned + 'a,
        E: Into<Error> + 'a,
        W: FnOnce() -> R + 'a,
        R: Future<Output = Result<T, E>> + 'a,
    {
        self.own_step(name, arguments, false, work, Location::caller())
    }

    /// The same, performed at most once: after a crash during it, a person decides.
    #[track_caller]
    pub fn critical_step<'a, T, E, W, R>(
        &self,
        name: &str,
        arguments: impl Serialize,
        work: W,
    ) -> Effect<'a, T>
    where
        T: Serialize + DeserializeOwned + 'a,
        E: Into<Error> + 'a,
        W: FnOnce() -> R + 'a,
        R: Future<Output = Result<T, E>> + 'a,
    {
        self.own_step(name, arguments, true, work, Location::caller())
    }

    fn own_step<'a, T, E, W, R>(
        &self,
        name: &str,
        arguments: impl Serialize,
        is_critical: bool,
        work: W,
        at: &Location<'_>,
    ) -> Effect<'a, T>
    where
        T: Serialize + DeserializeOwned + 'a,
        E: Into<Error> + 'a,
        W: FnOnce() -> R + 'a,
        R: Future<Output = Result<T, E>> + 'a,
    {
        let asked = sent(arguments, at).and_then(|arguments| {
            let fields = json!({"kind": "step", "name": name, "arguments": arguments, "critical": is_critical});
            self.program.ask(fields, true, at)
        });
        let name = format!("the step `{name}`");
        let work = async move {
            let value = work().await.map_err(|error| raised(&type_name::<E>(), &*error.into()))?;
            serde_json::to_value(value)
                .map_err(|error| Raised::new("ResultError", error.to_string()))
        };
        Effect(Box::pin(async move {
            let ticket = asked?;
            let at = ticket.at();
            read(ticket.outcome_of(&name, work).await?, &at)
        }))
    }

    /// Calls a tool of an MCP server. `arguments` is a JSON object. A critical tool waits for a person's approval of exactly
    /// this call.
    #[track_caller]
    pub fn tool<'a, T: DeserializeOwned + 'a>(
        &self,
        server: &str,
        tool: &str,
        arguments: impl Serialize,
    ) -> Effect<'a, T> {
        let at = Location::caller();
        let asked = sent(arguments, at).and_then(|arguments| {
            let fields =
                json!({"kind": "tool", "server": server, "tool": tool, "arguments": arguments});
            self.program.ask(fields, false, at)
        });
        Effect(Box::pin(async move { value_of(asked).await }))
    }

    /// Asks the model; send it with `.await`.
    #[track_caller]
    pub fn chat(&self, prompt: &str) -> Chat<'_> {
        Chat::new(self, prompt, Location::caller())
    }

    /// Lets the model call the tools of these servers until it answers without a call; start it with `.await`.
    #[track_caller]
    pub fn run_tools<'a>(
        &'a self,
        prompt: &str,
        servers: impl IntoIterator<Item = &'a str>,
    ) -> ToolLoop<'a> {
        ToolLoop::new(self, prompt, servers, Location::caller())
    }

    /// Asks a person. The session waits without a process, for days if need be.
    #[track_caller]
    pub fn ask(&self, question: &str) -> Ask<'_> {
        let fields = json!({"kind": "ask", "question": question});
        Ask { context: self, at: Location::caller(), fields }
    }

    #[track_caller]
    pub fn sleep<'a>(&self, duration: Duration) -> Effect<'a, ()> {
        let seconds = match duration.subsec_nanos() {
            0 => json!(duration.as_secs()),
            _ => json!(duration.as_secs_f64()),
        };
        self.plain(json!({"kind": "sleep", "seconds": seconds}), Location::caller())
    }

    /// Writes a note into the record.
    #[track_caller]
    pub fn note<'a>(&self, text: &str, data: impl Serialize) -> Effect<'a, ()> {
        let at = Location::caller();
        match sent(data, at) {
            Ok(data) => self.plain(json!({"kind": "note", "text": text, "data": data}), at),
            Err(error) => Effect(Box::pin(async move { Err(error) })),
        }
    }

    /// The time, as RFC 3339 in UTC with nine digits.
    #[track_caller]
    pub fn now<'a>(&self) -> Effect<'a, String> {
        self.plain(json!({"kind": "now"}), Location::caller())
    }

    /// A number from 0 to 1, 1 excluded.
    #[track_caller]
    pub fn random<'a>(&self) -> Effect<'a, f64> {
        let drawn: Effect<'a, u64> = self.plain(json!({"kind": "random"}), Location::caller());
        // The host gives 53 bits, which a double holds exactly.
        #[expect(clippy::cast_precision_loss, reason = "it has 53 bits")]
        Effect(Box::pin(async move { Ok(drawn.await? as f64 / (1_u64 << 53) as f64) }))
    }

    #[track_caller]
    pub fn uuid<'a>(&self) -> Effect<'a, String> {
        self.plain(json!({"kind": "uuid"}), Location::caller())
    }

    /// Awaits several effects; values in the order of the list. If some fail, the error of the first of them, after all have
    /// an outcome.
    pub async fn gather<T, E, F: Future<Output = Result<T, E>>>(
        &self,
        effects: impl IntoIterator<Item = F>,
    ) -> Result<Vec<T>, E> {
        let mut waiting: Vec<_> = effects.into_iter().map(|it| (Box::pin(it), None)).collect();
        let all = std::future::poll_fn(|cx| {
            let mut is_pending = false;
            for (effect, outcome) in &mut waiting {
                if outcome.is_none() {
                    match effect.as_mut().poll(cx) {
                        Poll::Ready(found) => *outcome = Some(found),
                        Poll::Pending => is_pending = true,
                    }
                }
            }
            if is_pending { Poll::Pending } else { Poll::Ready(()) }
        });
        all.await;
        waiting.into_iter().filter_map(|(_, outcome)| outcome).collect()
    }

    pub(crate) fn plain<'a, T: DeserializeOwned + 'a>(
        &self,
        fields: Value,
        at: &Location<'_>,
    ) -> Effect<'a, T> {
        let asked = self.program.ask(fields, false, at);
        Effect(Box::pin(async move { value_of(asked).await }))
    }

    pub(crate) fn ask_for(
        &self,
        fields: Value,
        has_work: bool,
        at: &Location<'_>,
    ) -> Result<Ticket, EffectError> {
        self.program.ask(fields, has_work, at)
    }
}

impl<'a> Ask<'a> {
    /// The call that the question is about.
    pub fn about(mut self, server: &str, tool: &str, arguments: Value) -> Self {
        self.fields["server"] = json!(server);
        self.fields["tool"] = json!(tool);
        self.fields["arguments"] = arguments;
        self
    }

    /// What the person may decide.
    pub fn choices(mut self, choices: impl IntoIterator<Item = Decision>) -> Self {
        self.fields["choices"] = choices.into_iter().map(|choice| json!(choice)).collect();
        self
    }

    /// The JSON schema of edited arguments.
    pub fn schema(mut self, schema: Value) -> Self {
        self.fields["schema"] = schema;
        self
    }

    /// How long it stays open.
    pub fn expires(mut self, after: Duration) -> Self {
        self.fields["expires_seconds"] = json!(after.as_secs_f64());
        self
    }

    /// Asks it.
    pub fn send(self) -> Effect<'a, Answer> {
        self.context.plain(self.fields, self.at)
    }
}

impl<'a> IntoFuture for Ask<'a> {
    type Output = Result<Answer, EffectError>;
    type IntoFuture = Effect<'a, Answer>;

    fn into_future(self) -> Effect<'a, Answer> {
        self.send()
    }
}

async fn value_of<T: DeserializeOwned>(
    asked: Result<Ticket, EffectError>,
) -> Result<T, EffectError> {
    let ticket = asked?;
    let at = ticket.at();
    read(ticket.outcome().await?, &at)
}

/// The arguments as JSON.
fn sent(arguments: impl Serialize, at: &Location<'_>) -> Result<Value, EffectError> {
    serde_json::to_value(arguments).map_err(|error| EffectError {
        kind: Kind::Arguments,
        category: "arguments".to_owned(),
        message: format!("the arguments are no JSON: {error}"),
        at: format!("{}:{}", at.file(), at.line()),
    })
}

/// The value as the agent's type.
pub(crate) fn read<T: DeserializeOwned>(value: Value, at: &str) -> Result<T, EffectError> {
    T::deserialize(value).map_err(|error| EffectError {
        kind: Kind::Value,
        category: "value".to_owned(),
        message: format!("the value is not of the expected type: {error}"),
        at: at.to_owned(),
    })
}
