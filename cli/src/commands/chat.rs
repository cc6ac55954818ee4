//! `chat`: a conversation with the assistant, one line after the other.
//!
//! stdout is the conversation: what the assistant says, confirmations word for word as the journal has
//! them. Whoever joins a thread again sees all of it first. Nothing is lost by leaving: the thread waits.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use graph::effect::ToolCall;
use graph::outcome::Brought;
use graph::question::{Answer, Decision};
use journal::id::SessionId;
use journal::step::{Step, StepBody};
use local::view::{OpenQuestion, Record};
use serde_json::{Map, Value, json};

use super::cloud::Clients;
use super::steer;
use super::watch::{Vigil, exit_of};
use crate::args::{self, Target};
use crate::deciding::{self, Deed};
use crate::endpoint::Endpoint;
use crate::failure::{Exit, Failure};
use crate::feed::{Feed, Item};
use crate::ledger::{self, Ledger};
use crate::output;
use crate::progress;
use crate::render::brief;
use crate::render::text::clean;
use crate::resolve::Context;
use crate::typing::Input;

/// The agent that is talked to.
const AGENT: &str = "assistant";

/// How long one look at the journal waits for something new.
const PATIENCE: Duration = Duration::from_millis(200);

/// What stands before a person's words.
const MARK: &str = "> ";

/// Begins a thread, or joins one.
///
/// # Errors
/// When there is no stack, no such thread, or the thread cannot be followed.
pub async fn chat(context: &Context, chat: args::steer::Chat) -> Result<Exit, Failure> {
    let (endpoint, clients) = (Endpoint::new(context)?, Clients::new(context).await);
    let is_local = context.target == Target::Local;
    if is_local && endpoint.health().await?.is_none() {
        return Err(endpoint.nothing_listens());
    }
    let ledger = Ledger::open(context).await?;
    let thread = match &chat.thread {
        Some(thread) => joined(&ledger, thread).await?,
        None => begun(&clients, chat.model).await?,
    };
    if context.json {
        output::json(&json!({ "thread": thread }))?;
    } else {
        output::say(&format!("thread {thread}"));
    }
    let conversation = Conversation {
        context,
        ledger: &ledger,
        feed: Feed::new(ledger.store.clone(), thread.clone(), Arc::clone(&context.agents)),
        vigil: Vigil::new(&endpoint, &clients, &thread),
        input: Input::of_stdin(),
        answered: BTreeSet::new(),
        thread: thread.clone(),
    };
    let _progress = is_local.then(|| progress::show(&endpoint, &thread)).flatten();
    // What is dropped then is only reading; the thread waits.
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {
            left(&thread);
            Ok(Exit::Succeeded)
        }
        ended = conversation.hold() => ended,
    }
}

async fn begun(clients: &Clients, model: Option<String>) -> Result<SessionId, Failure> {
    let mut detail = Map::new();
    detail.insert("agent".to_owned(), json!(AGENT));
    if let Some(model) = model {
        detail.insert("model".to_owned(), json!(model));
    }
    clients.trigger(&detail).await
}

async fn joined(ledger: &Ledger, thread: &str) -> Result<SessionId, Failure> {
    let loaded = ledger.load(thread).await?;
    let session = loaded.view(ledger::now());
    if session.agent.as_deref() == Some(AGENT) {
        return Ok(loaded.id);
    }
    let agent = session.agent.unwrap_or_else(|| "no agent".to_owned());
    Err(Failure::unknown(format!("session {} is no thread: it is of {agent}", loaded.id))
        .hint(format!("follow it with: daybook tail {}", loaded.id)))
}

fn left(thread: &SessionId) {
    output::hint(&format!("the thread waits; join it again with: daybook chat --thread {thread}"));
}

/// A thread and somebody who talks in it.
struct Conversation<'a> {
    context: &'a Context,
    ledger: &'a Ledger,
    feed: Feed,
    vigil: Vigil<'a>,
    input: Input,
    /// The questions that were answered here.
    answered: BTreeSet<u32>,
    thread: SessionId,
}

impl Conversation<'_> {
    /// Talks until the thread ends or the person leaves.
    async fn hold(mut self) -> Result<Exit, Failure> {
        loop {
            let items = self.feed.next(PATIENCE).await?;
            if items.is_empty() {
                self.vigil.look(self.feed.execution_arn()).await?;
            } else {
                self.vigil.news();
            }
            for item in items {
                self.show(item)?;
            }
            let session = self.feed.view(ledger::now());
            if session.status.is_terminal() {
                if self.context.json {
                    output::json(&Record::Session(session.clone()))?;
                } else {
                    let ended = session.error.unwrap_or_else(|| "the thread has ended".to_owned());
                    output::say(&ended);
                }
                return Ok(exit_of(session.status));
            }
            if let Some(question) = session.open_question
                && !self.answered.contains(&question.question_id)
                && !self.answer(&question).await?
            {
                left(&self.thread);
                return Ok(Exit::Succeeded);
            }
        }
    }

    fn show(&self, item: Item) -> Result<(), Failure> {
        let Item::Step(step, call) = item else { return Ok(()) };
        if self.context.json {
            return self.show_json(&step);
        }
        match &step.body {
            StepBody::Ask { payload, .. } => {
                let prompt = payload.pointer("/question/prompt").and_then(Value::as_str);
                output::lines(prompt.unwrap_or_default().lines().map(clean))?;
            }
            StepBody::Answer { question, payload } if !self.answered.contains(question) => {
                output::line(&format!("{MARK}{}", said(payload)))?;
            }
            StepBody::Outcome { payload, .. } => {
                if let Some(line) = call.as_ref().and_then(|call| done(call, payload)) {
                    output::say(&line);
                }
            }
            StepBody::Note { subject, payload } => {
                output::say(&format!("{}: {}", clean(subject), brief::value(payload)));
            }
            _ => {}
        }
        Ok(())
    }

    fn show_json(&self, step: &Step<Value>) -> Result<(), Failure> {
        match &step.body {
            StepBody::Ask { payload, .. } => {
                let mut question = payload["question"].clone();
                question["question_id"] = step.seq.into();
                output::json(&json!({ "type": "question", "question": question }))?;
            }
            StepBody::Answer { payload, .. } => {
                output::json(&json!({ "type": "answer", "answer": payload }))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Has the person answer; says whether they are still there.
    async fn answer(&mut self, question: &OpenQuestion) -> Result<bool, Failure> {
        let about_call = question.tool.is_some();
        let mut editing = false;
        loop {
            self.input.ask(match (editing, about_call) {
                (true, _) => "other arguments, as JSON: ",
                (false, true) => "y, n, e, or words (no, too much): ",
                (false, false) => MARK,
            });
            let keys = if about_call && !editing { deciding::keys(question) } else { Vec::new() };
            let Some(line) = self.line(&keys).await? else {
                // Somebody else has answered, or nobody will.
                return Ok(!self.feed.is_asking().await?);
            };
            if line.trim().is_empty() {
                continue;
            }
            let deed = if editing {
                deciding::edited(question, &line)
            } else {
                deciding::deed(question, &line)
            };
            editing = false;
            let answer = match deed {
                Ok(Deed::Edit) => {
                    let now = question.arguments.clone().unwrap_or_default();
                    output::say(&format!("now: {now}"));
                    editing = true;
                    continue;
                }
                Ok(Deed::Answer(answer)) => answer,
                Err(problem) => {
                    output::error(&problem);
                    continue;
                }
            };
            self.answered.insert(question.question_id);
            let said = json!(answer);
            let told =
                steer::tell(self.context, self.ledger, &self.thread, steer::Deed::Answer, &said);
            match Box::pin(told).await {
                Ok(_) => return Ok(true),
                Err(refusal) => {
                    self.answered.remove(&question.question_id);
                    refusal.report();
                    if !self.feed.is_asking().await? {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// The person's next line; none at the end of their words, or when the thread moved on without it.
    async fn line(&mut self, keys: &[u8]) -> Result<Option<String>, Failure> {
        let Self { input, feed, .. } = self;
        let mut typing = std::pin::pin!(input.line(keys));
        loop {
            tokio::select! {
                line = &mut typing => return Ok(line?),
                // Reading a line goes on meanwhile; the feed was not asked to forget.
                () = tokio::time::sleep(PATIENCE) => {
                    if !feed.is_asking().await? {
                        return Ok(None);
                    }
                }
            }
        }
    }
}

/// An answer as the person gave it.
fn said(payload: &Value) -> String {
    let Ok(answer) = serde_json::from_value::<Answer>(payload.clone()) else {
        return "?".to_owned();
    };
    let decision = match answer.decision {
        Decision::Approve => "yes",
        Decision::Reject => "no",
        Decision::Say => "",
        other => other.as_str(),
    };
    let arguments = answer.arguments.filter(|_| answer.decision == Decision::Edit);
    let words = answer.reason.or(answer.text.filter(|_| answer.decision == Decision::Say));
    let rest = arguments.map(|arguments| arguments.to_string()).or(words).unwrap_or_default();
    clean(format!("{decision} {rest}").trim())
}

/// What a call came to, in a line.
fn done(call: &ToolCall, payload: &Value) -> Option<String> {
    let came = match serde_json::from_value(payload.clone()).ok()? {
        Brought::Ok(content) if call.tool != graph::effect::CATALOGUE => brief::value(&content),
        Brought::Ok(_) | Brought::Reply(_) | Brought::Woke {} => return None,
        Brought::Error(error) => error,
        Brought::Failure(failure) => failure.to_string(),
    };
    Some(format!("· {} → {came}", brief::call(call)))
}
