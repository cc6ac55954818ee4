//! `chat`: a conversation with an agent, line by line.
//!
//! stdout has the conversation, with confirmations exactly as journaled. Rejoining a thread prints it from
//! the start. Leaving does not end the thread.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use graph::digest;
use graph::effect::ToolCall;
use graph::outcome::Brought;
use graph::question::{Answer, Decision};
use journal::id::SessionId;
use journal::step::{Step, StepBody};
use serde_json::{Map, Value, json};
use stack::view::{OpenQuestion, Record};

use super::cloud::Clients;
use super::grant;
use super::watch::{Liveness, exit_of};
use crate::args::{self, Target};
use crate::asking::{Asked, Asking};
use crate::endpoint::Endpoint;
use crate::failure::{Exit, Failure};
use crate::feed::{Feed, Item};
use crate::output;
use crate::progress;
use crate::reader::{self, Reader};
use crate::render::text::clean;
use crate::render::{brief, ending};
use crate::resolve::Context;
use crate::typing::Input;

/// Longest wait for new records in one read of the journal.
const READ_TIMEOUT: Duration = Duration::from_millis(200);

/// Prompt of the person's lines.
const MARK: &str = "> ";

/// Starts a thread, or joins one.
///
/// # Errors
/// When nothing listens, the thread does not exist, or it cannot be followed.
pub async fn chat(context: &Context, chat: args::steer::Chat) -> Result<Exit, Failure> {
    let agent = context.extensions.iter().find_map(|extension| extension.chat.as_ref());
    let agent =
        agent.ok_or_else(|| Failure::unknown("this build has no agent to chat with"))?.agent;
    let (endpoint, clients) = (Endpoint::new(context)?, Clients::new(context).await);
    let is_local = context.target == Target::Local;
    if is_local {
        let running = endpoint.health().await?.ok_or_else(|| endpoint.nothing_listens())?;
        let transcript = chat.model.as_deref().and_then(|model| model.strip_prefix("transcript:"));
        if let (Some(folder), Some(transcript)) = (running.data, transcript) {
            grant(&folder, &[transcript.into()]);
        }
    }
    let reader = Reader::open(context).await?;
    let thread = match &chat.thread {
        Some(thread) => joined(&reader, agent, thread).await?,
        None => begun(&clients, agent, chat.model).await?,
    };
    if context.json {
        output::json(&json!({ "thread": thread }))?;
    } else {
        output::say(&format!("thread {thread}"));
    }
    let conversation = Conversation {
        context,
        reader: &reader,
        feed: Feed::new(reader.store.clone(), thread.clone(), Arc::clone(&context.agents)),
        liveness: Liveness::new(&endpoint, &clients, &thread),
        input: Input::of_stdin(),
        answered: BTreeSet::new(),
        thread: thread.clone(),
    };
    let _progress = is_local.then(|| progress::show(&endpoint, &thread)).flatten();
    // Ctrl-C only stops reading; the thread waits.
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {
            left(&thread);
            Ok(Exit::Succeeded)
        }
        ended = conversation.hold() => ended,
    }
}

async fn begun(
    clients: &Clients,
    agent: &str,
    model: Option<String>,
) -> Result<SessionId, Failure> {
    let mut detail = Map::new();
    detail.insert("agent".to_owned(), json!(agent));
    if let Some(model) = model {
        detail.insert("model".to_owned(), json!(model));
    }
    clients.trigger(&detail).await
}

async fn joined(reader: &Reader, converses: &str, thread: &str) -> Result<SessionId, Failure> {
    let loaded = reader.load(thread).await?;
    let session = loaded.view(reader::now());
    if session.agent.as_deref() == Some(converses) {
        return Ok(loaded.id);
    }
    let agent = session.agent.unwrap_or_else(|| "no agent".to_owned());
    Err(Failure::unknown(format!("cannot chat in session {}: its agent is {agent}", loaded.id))
        .hint(format!("follow it with: daybook tail {}", loaded.id)))
}

fn left(thread: &SessionId) {
    output::hint(&format!("the thread waits; rejoin it with: daybook chat --thread {thread}"));
}

/// A thread, followed and answered.
struct Conversation<'a> {
    context: &'a Context,
    reader: &'a Reader,
    feed: Feed,
    liveness: Liveness<'a>,
    input: Input,
    /// Questions answered in this process.
    answered: BTreeSet<u32>,
    thread: SessionId,
}

impl Conversation<'_> {
    /// Runs until the thread ends or the person leaves.
    async fn hold(mut self) -> Result<Exit, Failure> {
        loop {
            let items = self.feed.next(READ_TIMEOUT).await?;
            if items.is_empty() {
                self.liveness.check(self.feed.execution_arn()).await?;
            } else {
                self.liveness.reset();
            }
            for item in items {
                self.show(item)?;
            }
            let session = self.feed.view(reader::now());
            if session.status.is_terminal() {
                if self.context.json {
                    output::json(&Record::Session(Box::new(session.clone())))?;
                } else {
                    let ended = session.error.as_deref().unwrap_or("the thread has ended");
                    output::say(ended);
                    output::lines(ending::fallback(self.context.look, &session))?;
                }
                return Ok(exit_of(session.status));
            }
            if let Some(question) = session.open_question
                && !self.answered.contains(&question.question_id)
                && !self.answer(&question).await?
            {
                output::lines(ending::fallback(self.context.look, &self.feed.view(reader::now())))?;
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
            StepBody::Answer { question, payload, .. } if !self.answered.contains(question) => {
                output::line(&format!("{MARK}{}", said(payload)))?;
            }
            StepBody::Outcome { payload, .. } => {
                if let Some(line) = call.as_ref().and_then(|call| done(call, payload)) {
                    output::say(&line);
                }
            }
            StepBody::Note { subject, payload, .. } => {
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
                question["digest"] =
                    digest::question(step.seq, &payload["question"]).as_str().into();
                if let Some(origins) = payload.get("origins") {
                    question["origins"] = origins.clone();
                }
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

    /// Shows what an answer would decide and prompts for it; returns whether the person is still there.
    async fn answer(&mut self, question: &OpenQuestion) -> Result<bool, Failure> {
        if !self.context.json {
            output::lines(ending::call(self.context.look, question, false))?;
        }
        let asking = Asking {
            context: self.context,
            reader: self.reader,
            session: &self.thread,
            feed: &self.feed,
            question,
            words: MARK,
        };
        let asked = asking.ask(&mut self.input).await?;
        if asked == Asked::Answered {
            self.answered.insert(question.question_id);
        }
        Ok(asked != Asked::InputEnded)
    }
}

/// Formats a journaled answer.
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

/// Formats a tool call's result on one line.
fn done(call: &ToolCall, payload: &Value) -> Option<String> {
    let came = match serde_json::from_value(payload.clone()).ok()? {
        Brought::Ok(content) if call.tool != graph::effect::CATALOGUE => brief::value(&content),
        Brought::Ok(_) | Brought::Reply(_) | Brought::Woke {} => return None,
        Brought::Error(error) => error,
        Brought::Failure(failure) => failure.to_string(),
    };
    Some(format!("· {} → {came}", brief::call(call)))
}
