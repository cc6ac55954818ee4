//! Following a session to its end: its journal as it grows, its questions, its verdict.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use graph::question::Question;
use journal::id::SessionId;
use journal::status::Status;
use local::view::{self, OpenQuestion, Record, Session};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines, Stdin};
use tokio::time::Instant;

use super::cloud::{Clients, Execution};
use super::steer::{self, Deed};
use crate::args::Target;
use crate::endpoint::Endpoint;
use crate::failure::{Exit, Failure};
use crate::feed::{Feed, Item};
use crate::ledger::{self, Ledger};
use crate::output;
use crate::progress;
use crate::render::ending;
use crate::render::timeline::Timeline;
use crate::resolve::Context;

/// How long one look at the journal waits for something new.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long after a verdict the rest of its invocation is waited for.
const LATECOMERS_WITHIN: Duration = Duration::from_secs(1);

/// How often the session's execution is asked about while nothing ends.
const CHECK_EVERY: Duration = Duration::from_secs(2);

/// Checks in a row that find nothing to wait for before waiting ends.
const CHECKS_FAILED_MAX: u32 = 5;

/// Somebody who follows one session.
pub struct Watch<'a> {
    context: &'a Context,
    ledger: &'a Ledger,
    id: SessionId,
    feed: Feed,
    timeline: Timeline,
    terminal: Option<Lines<BufReader<Stdin>>>,
    /// Whether somebody sees that it goes on while nothing is written.
    is_live: bool,
    /// The question that was shown last.
    shown: Option<u32>,
    vigil: Vigil<'a>,
    _progress: Option<progress::Shown>,
}

/// Looks now and then whether there is still something to wait for.
pub struct Vigil<'a> {
    endpoint: &'a Endpoint,
    clients: &'a Clients,
    id: SessionId,
    check_at: Instant,
    checks_failed: u32,
}

/// Follows a session of the journal to its end.
///
/// # Errors
/// When it is not there, or nothing runs it any more.
pub async fn tail(context: &Context, session: &str) -> Result<Exit, Failure> {
    let ledger = Ledger::open(context).await?;
    // A session that was triggered a moment ago may have no record yet.
    let id = ledger.find(session).await?;
    let (endpoint, clients) = (Endpoint::new(context)?, Clients::new(context).await);
    Watch::new(context, &endpoint, &clients, &ledger, id).until_the_end().await
}

impl<'a> Watch<'a> {
    /// Begins before the first record.
    pub fn new(
        context: &'a Context,
        endpoint: &'a Endpoint,
        clients: &'a Clients,
        ledger: &'a Ledger,
        id: SessionId,
    ) -> Self {
        let asks =
            !context.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        Self {
            context,
            ledger,
            feed: Feed::new(ledger.store.clone(), id.clone(), Arc::clone(&context.agents)),
            vigil: Vigil::new(endpoint, clients, &id),
            _progress: (!context.json && context.target == Target::Local)
                .then(|| progress::show(endpoint, &id))
                .flatten(),
            id,
            timeline: Timeline::new(context.look, false),
            terminal: asks.then(|| BufReader::new(tokio::io::stdin()).lines()),
            is_live: !context.json && std::io::stderr().is_terminal(),
            shown: None,
        }
    }

    /// Follows to the verdict, to a question that nobody here can answer, or to Ctrl-C.
    ///
    /// # Errors
    /// When the end cannot be found out.
    pub async fn until_the_end(mut self) -> Result<Exit, Failure> {
        let id = self.id.clone();
        tokio::select! {
            // What is dropped then is only reading; the session goes on by itself.
            _ = tokio::signal::ctrl_c() => {
                Err(Failure::unknown("interrupted").hint(format!("follow it again with: daybook tail {id}")))
            }
            ended = self.follow() => ended,
        }
    }

    async fn follow(&mut self) -> Result<Exit, Failure> {
        loop {
            let items = self.feed.next(PATIENCE).await?;
            let is_news = !items.is_empty();
            for item in items {
                self.print(item)?;
            }
            if is_news {
                self.vigil.news();
                let session = self.feed.view(ledger::now());
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
                    let session = self.feed.view(ledger::now());
                    output::idle(&ending::so_far(&session));
                }
                self.vigil.look(self.feed.execution_arn()).await?;
            }
        }
    }

    fn print(&mut self, item: Item) -> Result<(), Failure> {
        match item {
            Item::Event(event) if self.context.json => {
                output::json(&Record::Event(view::Event::of(&event)))?;
            }
            Item::Step(..) if self.context.json => {}
            Item::Event(event) => output::lines(self.timeline.event(&event))?,
            Item::Step(step, call) => {
                output::lines(self.timeline.step(&step, call.as_ref(), false))?
            }
        }
        Ok(())
    }

    /// A quick agent can end before the invoker has said that it was reached.
    async fn print_latecomers(&mut self) -> Result<(), Failure> {
        let until = Instant::now() + LATECOMERS_WITHIN;
        while self.feed.awaits_the_invoker() && Instant::now() < until {
            for item in self.feed.next(PATIENCE).await? {
                self.print(item)?;
            }
        }
        Ok(())
    }

    fn print_end(&self, session: &Session) -> Result<(), Failure> {
        let look = self.context.look;
        if self.context.json {
            output::json(&Record::Session(session.clone()))?;
            return Ok(());
        }
        output::line("")?;
        output::lines(ending::verdict(look, session))?;
        if let Some(result) = &session.result {
            output::line("")?;
            output::lines(ending::result(look, result))?;
        }
        Ok(())
    }

    /// Shows a question. In a terminal it asks until there is an answer; elsewhere the session waits
    /// for one that comes by another way, and watching ends.
    async fn ask(
        &mut self,
        session: &Session,
        question: &OpenQuestion,
    ) -> Result<Option<Exit>, Failure> {
        self.shown = Some(question.question_id);
        if self.context.json {
            output::json(&Record::Session(session.clone()))?;
        } else {
            output::line("")?;
            output::lines(ending::question(self.context.look, question))?;
        }
        if self.terminal.is_none() {
            output::hint(&format!(
                "the session waits; answer with: daybook answer {} --approve (or --reject, --edit, --say)",
                self.id
            ));
            return Ok(Some(Exit::Unknown));
        }
        loop {
            output::say("your answer (yes, no, or words):");
            let Some(line) = self.line_or_news().await? else { return Ok(None) };
            if line.trim().is_empty() {
                continue;
            }
            let said = answer(question, &line);
            let told = steer::tell(self.context, self.ledger, &self.id, Deed::Answer, &said);
            match Box::pin(told).await {
                Ok(_) => return Ok(None),
                Err(refusal) => refusal.report(),
            }
        }
    }

    /// The next line from the terminal, or nothing if the session moved on without it.
    async fn line_or_news(&mut self) -> Result<Option<String>, Failure> {
        let Some(terminal) = &mut self.terminal else { return Ok(None) };
        loop {
            tokio::select! {
                // Reading a line loses nothing when it is dropped; the feed was not asked to forget.
                line = terminal.next_line() => {
                    let Some(line) = line? else {
                        return Err(Failure::unknown("no more input, and the question is still open"));
                    };
                    return Ok(Some(line));
                }
                () = tokio::time::sleep(PATIENCE) => {
                    if !self.feed.is_asking().await? {
                        return Ok(None);
                    }
                }
            }
        }
    }
}

impl<'a> Vigil<'a> {
    /// Begins now.
    pub fn new(endpoint: &'a Endpoint, clients: &'a Clients, id: &SessionId) -> Self {
        let check_at = Instant::now() + CHECK_EVERY;
        Self { endpoint, clients, id: id.clone(), check_at, checks_failed: 0 }
    }

    /// Something has come.
    pub fn news(&mut self) {
        self.check_at = Instant::now() + CHECK_EVERY;
        self.checks_failed = 0;
    }

    /// Nothing has come; if that has been so for a while, is there still something to wait for?
    /// `first` is the execution that the session began with.
    ///
    /// # Errors
    /// When several looks in a row find nothing.
    pub async fn look(&mut self, first: Option<&str>) -> Result<(), Failure> {
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
                Failure::unknown("the stack knows no execution of this session")
                    .hint(format!("daybook show {id} tells what the journal has of it"))
            }
            Ok(Execution::Over { status, error, .. }) => {
                let error = error.map(|error| format!(" ({error})")).unwrap_or_default();
                Failure::unknown(format!(
                    "the execution is {status}{error}, and the journal has no verdict"
                ))
                .hint(format!("daybook resume {id} carries it on"))
            }
            Err(error) if self.clients.is_in_account() => Failure::unknown(format!(
                "the execution cannot be asked about: {error}"
            ))
            .hint(format!("the session goes on by itself; daybook tail {id} follows it again")),
            Err(_) => Failure::unknown(format!(
                "nothing answers at {} any more",
                self.endpoint.address
            ))
            .hint(format!(
                "the session goes on when the stack does: daybook dev, then daybook tail {id}"
            )),
        };
        self.checks_failed += 1;
        if self.checks_failed >= CHECKS_FAILED_MAX { Err(problem) } else { Ok(()) }
    }
}

/// What a line means as an answer: it approves only if it is one of a closed list of words.
fn answer(question: &OpenQuestion, line: &str) -> Value {
    let offered =
        Question { choices: question.choices.clone(), ..Question::open(&question.prompt) };
    serde_json::to_value(offered.read(question.question_id, line)).unwrap_or_default()
}

/// The exit that a session's status leads to.
pub fn exit_of(status: Status) -> Exit {
    match status {
        Status::Succeeded => Exit::Succeeded,
        Status::Failed | Status::TimedOut | Status::Cancelled | Status::Rejected => Exit::Failed,
        Status::Initiated | Status::Running | Status::Waiting => Exit::Unknown,
    }
}

/// The exit that an execution leads to: a cancelled session's execution succeeds too, so its output
/// has the word.
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
    use graph::question::Decision;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_approves_only_if_it_is_one_of_a_closed_list() {
        let question = OpenQuestion {
            question_id: 7,
            prompt: "Run it?".to_owned(),
            tool: None,
            arguments: None,
            justification: None,
            choices: vec![Decision::Approve, Decision::Reject, Decision::Say],
            expires_at: journal::clock::Stamp::default(),
        };
        for (line, decision) in [
            ("yes", "approve"),
            (" Y ", "approve"),
            ("no", "reject"),
            ("yes please", "say"),
            ("ok", "say"),
        ] {
            assert_eq!(answer(&question, line)["decision"], decision, "{line}");
        }
        assert_eq!(answer(&question, "yes")["question_id"], 7);
    }

    #[test]
    fn the_exit_is_the_sessions_whatever_its_execution_is_called() {
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
