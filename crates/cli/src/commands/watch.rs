//! Follows a session until it ends: prints records, asks questions, shows the verdict.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use journal::id::SessionId;
use journal::status::Status;
use serde_json::Value;
use stack::view::{self, OpenQuestion, Record, Session};
use tokio::time::Instant;

use super::cloud::{Clients, Execution};
use crate::args::Target;
use crate::asking::{Asked, Asking};
use crate::deciding;
use crate::endpoint::Endpoint;
use crate::failure::{Exit, Failure};
use crate::feed::{Feed, Item};
use crate::output;
use crate::progress;
use crate::reader::{self, Reader};
use crate::render::timeline::Timeline;
use crate::render::{conclusion, ending};
use crate::resolve::Context;
use crate::typing::{self, Input};

/// Longest wait for new records in one read of the journal.
const READ_TIMEOUT: Duration = Duration::from_millis(500);

/// How long to wait after a verdict for the invoker's last events.
const LATECOMERS_WITHIN: Duration = Duration::from_secs(1);

/// Interval between checks of the session's execution.
const CHECK_EVERY: Duration = Duration::from_secs(2);

/// Consecutive failed checks before the command gives up.
const CHECKS_FAILED_MAX: u32 = 5;

/// Follows one session on the terminal.
pub struct Watch<'a> {
    context: &'a Context,
    reader: &'a Reader,
    id: SessionId,
    feed: Feed,
    timeline: Timeline,
    /// A person's input, at a terminal.
    input: Option<Input>,
    /// Whether to show a status line between records.
    is_live: bool,
    /// The last question shown.
    shown: Option<u32>,
    liveness: Liveness<'a>,
    _progress: Option<progress::Shown>,
}

/// Checks regularly that the session's execution is still running.
pub struct Liveness<'a> {
    endpoint: &'a Endpoint,
    clients: &'a Clients,
    id: SessionId,
    check_at: Instant,
    checks_failed: u32,
}

/// Follows a session until it ends.
///
/// # Errors
/// When it does not exist, or its execution has ended without a verdict.
pub async fn tail(context: &Context, session: &str) -> Result<Exit, Failure> {
    let reader = Reader::open(context).await?;
    // A session just triggered may have no record yet.
    let id = reader.find(session).await?;
    let (endpoint, clients) = (Endpoint::new(context)?, Clients::new(context).await);
    Watch::new(context, &endpoint, &clients, &reader, id).until_the_end().await
}

impl<'a> Watch<'a> {
    /// Follows a session from its first record.
    pub fn new(
        context: &'a Context,
        endpoint: &'a Endpoint,
        clients: &'a Clients,
        reader: &'a Reader,
        id: SessionId,
    ) -> Self {
        let asks = !context.json && typing::is_interactive();
        Self {
            context,
            reader,
            feed: Feed::new(reader.store.clone(), id.clone(), Arc::clone(&context.agents)),
            liveness: Liveness::new(endpoint, clients, &id),
            _progress: (!context.json && context.target == Target::Local)
                .then(|| progress::show(endpoint, &id))
                .flatten(),
            id,
            timeline: Timeline::new(context.look, false),
            input: asks.then(Input::of_stdin),
            is_live: !context.json && std::io::stderr().is_terminal(),
            shown: None,
        }
    }

    /// Follows until the verdict, a question without a terminal, or Ctrl-C.
    ///
    /// # Errors
    /// When the session's result is unknown.
    pub async fn until_the_end(mut self) -> Result<Exit, Failure> {
        let id = self.id.clone();
        tokio::select! {
            // Ctrl-C only stops reading; the session continues.
            _ = tokio::signal::ctrl_c() => {
                Err(Failure::unknown("interrupted").hint(format!("follow it again with: daybook tail {id}")))
            }
            ended = self.follow() => ended,
        }
    }

    async fn follow(&mut self) -> Result<Exit, Failure> {
        loop {
            let items = self.feed.next(READ_TIMEOUT).await?;
            let is_news = !items.is_empty();
            for item in items {
                self.print(item)?;
            }
            if is_news {
                self.liveness.reset();
                let session = self.feed.view(reader::now());
                if session.status.is_terminal() {
                    self.print_latecomers().await?;
                    self.print_end(&session)?;
                    return Ok(exit_of(session.status));
                }
                if let Some(question) = &session.open_question
                    && self.shown != Some(question.question_id)
                    && let Some(exit) = self.ask(&session, question).await?
                {
                    return Ok(exit);
                }
            } else {
                if self.is_live {
                    let session = self.feed.view(reader::now());
                    output::idle(&ending::so_far(&session));
                }
                self.liveness.check(self.feed.execution_arn()).await?;
            }
        }
    }

    fn print(&mut self, item: Item) -> Result<(), Failure> {
        match item {
            Item::Event(event) if self.context.json => {
                output::json(&Record::Event(Box::new(view::Event::of(&event))))?;
            }
            Item::Step(..) if self.context.json => {}
            Item::Event(event) => output::lines(self.timeline.event(&event))?,
            Item::Step(step, call) => {
                output::lines(self.timeline.step(&step, call.as_ref(), false))?
            }
        }
        Ok(())
    }

    /// Prints the invoker's events that follow the verdict of a quick agent.
    async fn print_latecomers(&mut self) -> Result<(), Failure> {
        let until = Instant::now() + LATECOMERS_WITHIN;
        while self.feed.awaits_the_invoker() && Instant::now() < until {
            for item in self.feed.next(READ_TIMEOUT).await? {
                self.print(item)?;
            }
        }
        Ok(())
    }

    fn print_end(&self, session: &Session) -> Result<(), Failure> {
        let look = self.context.look;
        if self.context.json {
            output::json(&Record::Session(Box::new(session.clone())))?;
            return Ok(());
        }
        output::line("")?;
        output::lines(ending::verdict(look, session))?;
        if let Some(found) = &session.conclusion {
            output::line("")?;
            output::lines(conclusion::conclusion(look, found))?;
        }
        Ok(())
    }

    /// Shows a question. In a terminal, prompts until it is answered; elsewhere, stops following.
    async fn ask(
        &mut self,
        session: &Session,
        question: &OpenQuestion,
    ) -> Result<Option<Exit>, Failure> {
        self.shown = Some(question.question_id);
        if self.context.json {
            output::json(&Record::Session(Box::new(session.clone())))?;
        } else {
            output::line("")?;
            output::lines(ending::question(self.context.look, question, false))?;
        }
        let Some(input) = &mut self.input else {
            output::hint(&format!(
                "the session waits; answer with: daybook answer {} {}",
                self.id,
                deciding::options(question)
            ));
            return Ok(Some(Exit::Unknown));
        };
        let asking = Asking {
            context: self.context,
            reader: self.reader,
            session: &self.id,
            feed: &self.feed,
            question,
            words: "your answer: ",
        };
        match asking.ask(input).await? {
            Asked::Answered | Asked::Elsewhere => Ok(None),
            Asked::InputEnded => {
                Err(Failure::unknown("stdin has ended, and the question is still open"))
            }
        }
    }
}

impl<'a> Liveness<'a> {
    pub fn new(endpoint: &'a Endpoint, clients: &'a Clients, id: &SessionId) -> Self {
        let check_at = Instant::now() + CHECK_EVERY;
        Self { endpoint, clients, id: id.clone(), check_at, checks_failed: 0 }
    }

    /// Postpones the next check after a new record.
    pub fn reset(&mut self) {
        self.check_at = Instant::now() + CHECK_EVERY;
        self.checks_failed = 0;
    }

    /// Checks the execution if a check is due. `first` is the session's first execution.
    ///
    /// # Errors
    /// When several checks in a row find no running execution.
    pub async fn check(&mut self, first: Option<&str>) -> Result<(), Failure> {
        if Instant::now() < self.check_at {
            return Ok(());
        }
        self.check_at = Instant::now() + CHECK_EVERY;
        let id = &self.id;
        let problem = match self.clients.execution(id, first).await {
            Ok(Execution::Running) => {
                self.checks_failed = 0;
                return Ok(());
            }
            Ok(Execution::Absent) => {
                Failure::unknown("the session has no execution")
                    .hint(format!("show its records with: daybook show {id}"))
            }
            Ok(Execution::Over { status, error, .. }) => {
                let error = error.map(|error| format!(" ({error})")).unwrap_or_default();
                Failure::unknown(format!(
                    "the execution is {status}{error}, and the journal has no verdict"
                ))
                .hint(format!("resume it with: daybook resume {id}"))
            }
            Err(error) if self.clients.is_in_account() => Failure::unknown(format!(
                "cannot query the execution: {error}"
            ))
            .hint(format!("the session continues; follow it again with: daybook tail {id}")),
            Err(_) => Failure::unknown(format!(
                "the stack at {} stopped responding",
                self.endpoint.address
            ))
            .hint(format!(
                "restart the stack with: daybook dev; then follow the session with: daybook tail {id}"
            )),
        };
        self.checks_failed += 1;
        if self.checks_failed >= CHECKS_FAILED_MAX { Err(problem) } else { Ok(()) }
    }
}

/// The exit code for a session's status.
pub fn exit_of(status: Status) -> Exit {
    match status {
        Status::Succeeded => Exit::Succeeded,
        Status::Failed | Status::TimedOut | Status::Cancelled | Status::Rejected => Exit::Failed,
        Status::Initiated | Status::Running | Status::Waiting => Exit::Unknown,
    }
}

/// The exit code for an execution. The execution of a cancelled session succeeds, so the session's status
/// in its output decides.
pub fn exit_of_execution(status: &str, output: &Value) -> Exit {
    let session = output.get("status").and_then(Value::as_str).and_then(Status::parse);
    match (status, session) {
        (_, Some(session)) => exit_of(session),
        ("FAILED" | "TIMED_OUT" | "ABORTED", None) => Exit::Failed,
        _ => Exit::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_exit_code_follows_the_session_not_its_execution() {
        for (status, output, exit) in [
            ("SUCCEEDED", json!({"status": "SUCCEEDED"}), Exit::Succeeded),
            ("SUCCEEDED", json!({"status": "CANCELLED"}), Exit::Failed),
            ("SUCCEEDED", json!({}), Exit::Unknown),
            ("FAILED", json!(null), Exit::Failed),
            ("ABORTED", json!(null), Exit::Failed),
        ] {
            assert_eq!(exit_of_execution(status, &output), exit, "{status} {output}");
        }
    }
}
