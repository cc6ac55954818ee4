//! The driver: it does what the agent's graph asks for and journals each outcome before it uses it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use graph::definition::Finish;
use graph::next::{Intent, Next, Request, Work};
use graph::outcome::{Brought, Failure, ToolOutcome};
use graph::run::Run;
use journal::chain::{AppendError, Body, Head, append};
use journal::clock::Stamp;
use journal::error_message::ErrorMessage;
use journal::step::{Ending, Step, StepBody, Usage};
use journal::store::{Error, Retry, Store};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::session::Session;
use crate::tool::Toolbox;

/// After being told to stop, how long the driver waits for what is under way, to journal it.
const GRACE: Duration = Duration::from_secs(10);

/// How long it waits between two tries to write a step while the journal is out of reach. The
/// beat, which fails with it, ends the trying.
const APPEND_PAUSE: Duration = Duration::from_secs(1);

/// How a drive ended.
#[derive(Debug)]
pub enum Driven {
    /// This step ended the session, whoever wrote it.
    Ended(Box<Step<Value>>),
    /// A question is open, at this step.
    Suspended {
        /// Its number.
        question: u32,
    },
    /// Another runner has the session: write nothing more.
    Fenced,
    /// It was told to stop; the session can be resumed by another runner.
    Stopped,
    /// The journal refuses what must be written.
    Broken(AppendError),
}

/// One session's drive.
#[derive(Debug)]
pub struct Driver<S> {
    /// The session.
    pub session: Session<S>,
    /// The chain's end as this runner knows it.
    pub head: Head,
    /// The machine, with all steps up to the head folded.
    pub run: Run,
    /// The session's tools.
    pub toolbox: Arc<Toolbox<S>>,
    /// How long a tool call may take.
    pub tool_timeout: Duration,
    /// Tells the driver to stop.
    pub stop: CancellationToken,
}

/// What performing a request brought.
struct Performed {
    request: Request,
    started_at: Stamp,
    brought: Brought,
}

type UnderWay = FuturesUnordered<BoxFuture<'static, Performed>>;

impl<S: Store> Driver<S> {
    /// Drives until the session ends, waits, or is no longer this runner's.
    pub async fn drive(mut self) -> Driven {
        let mut under_way = UnderWay::new();
        let mut begun = BTreeSet::new();
        loop {
            if self.stop.is_cancelled() {
                return self.wind_down(under_way).await;
            }
            let done = match self.run.next() {
                Next::Perform(requests) => self.perform(requests, &mut under_way, &mut begun).await,
                Next::Note(note) => self.record(note.body()).await,
                Next::Ask(ask) => self.record(ask.body()).await,
                Next::Sleep(sleep) => self.sleep(sleep).await,
                Next::End(finish) => self.record(finish.body()).await,
                Next::Wait(open) => Err(Driven::Suspended { question: open.question_id }),
                Next::Claim | Next::Closed => Err(Driven::Fenced),
            };
            if let Err(driven) = done {
                return driven;
            }
        }
    }

    /// Starts what is not under way yet, then waits for one outcome and journals it.
    async fn perform(
        &mut self,
        requests: Vec<Request>,
        under_way: &mut UnderWay,
        begun: &mut BTreeSet<u32>,
    ) -> Result<(), Driven> {
        for request in requests {
            if begun.contains(&request.effect.call) {
                continue;
            }
            if let Work::Tool { intent: Intent::Needed, .. } = &request.work {
                return self.record(request.intent()).await;
            }
            begun.insert(request.effect.call);
            under_way.push(self.start(request));
        }
        // Stopping drops nothing: what is under way is waited for in `wind_down`.
        let performed = tokio::select! {
            performed = under_way.next() => performed,
            () = self.stop.cancelled() => return Ok(()),
        };
        match performed {
            Some(performed) => {
                begun.remove(&performed.request.effect.call);
                self.record_outcome(performed).await
            }
            None => Err(Driven::Fenced),
        }
    }

    fn start(&self, request: Request) -> BoxFuture<'static, Performed> {
        let clock = self.session.hlc.clock().clone();
        let policy = match &request.work {
            Work::Policy { chat } => Some(self.run.policy(chat)),
            Work::Model { .. } | Work::Tool { .. } => None,
        };
        let toolbox = Arc::clone(&self.toolbox);
        let timeout = self.tool_timeout;
        Box::pin(async move {
            if let Some(not_before) = request.not_before {
                clock.sleep(not_before.since(clock.now())).await;
            }
            let started_at = clock.now();
            let brought = match (&request.work, policy) {
                (Work::Tool { call, .. }, _) => brought(toolbox.call(call, timeout).await),
                (_, Some(reply)) => Brought::Reply(reply),
                (Work::Model { model, .. }, None) => Brought::Failure(no_adapter(model)),
                (Work::Policy { .. }, None) => unreachable!("the policy was asked above"),
            };
            Performed { request, started_at, brought }
        })
    }

    async fn record_outcome(&mut self, performed: Performed) -> Result<(), Driven> {
        let Performed { request, started_at, brought } = performed;
        let body = request.outcome(brought, started_at, Usage::default());
        self.record(body).await
    }

    async fn sleep(&mut self, sleep: graph::next::Sleep) -> Result<(), Driven> {
        let clock = self.session.hlc.clock().clone();
        let started_at = clock.now();
        // Stopping leaves the sleep open; the next runner sleeps on.
        tokio::select! {
            () = clock.sleep(sleep.until.since(started_at)) => self.record(sleep.body(started_at)).await,
            () = self.stop.cancelled() => Ok(()),
        }
    }

    /// Journals what arrives within [`GRACE`], begins nothing more, and writes no end.
    async fn wind_down(&mut self, mut under_way: UnderWay) -> Driven {
        let clock = self.session.hlc.clock().clone();
        let until = clock.now().after(GRACE);
        while let Some(Some(performed)) =
            clock.timeout(until.since(clock.now()), under_way.next()).await
        {
            if let Err(driven) = self.record_outcome(performed).await {
                return driven;
            }
        }
        Driven::Stopped
    }

    /// Journals a step and folds it; folds another's that came first.
    async fn record(&mut self, body: Body) -> Result<(), Driven> {
        match self.append(body).await {
            Ok(step) => self.fold(step).await,
            Err(AppendError::Collision(theirs)) => match &theirs.body {
                StepBody::Claim { .. } => Err(Driven::Fenced),
                StepBody::Ask { .. } => Err(Driven::Suspended { question: theirs.seq }),
                _ => self.fold(*theirs).await,
            },
            Err(AppendError::TooLarge(error)) => {
                let message = ErrorMessage::new("PayloadError", "TooLarge", &error.to_string());
                let end = StepBody::End {
                    ending: Ending::Failed,
                    error: Some(message),
                    category: Some("payload".to_owned()),
                    payload: Value::Null,
                };
                Box::pin(self.record(end)).await
            }
            Err(error) => Err(Driven::Broken(error)),
        }
    }

    async fn append(&mut self, body: Body) -> Result<Step<Value>, AppendError> {
        loop {
            let session = &self.session;
            let appended = append(
                &session.store,
                &session.hlc,
                &session.author,
                &self.head,
                session.epoch,
                body.clone(),
            )
            .await;
            match appended {
                Err(AppendError::Store(error)) if may_pass(&error) && !self.stop.is_cancelled() => {
                    tracing::warn!(session_id = %session.author.session, %error, "A step was not written yet.");
                    session.hlc.clock().sleep(APPEND_PAUSE).await;
                }
                decided => return decided,
            }
        }
    }

    async fn fold(&mut self, step: Step<Value>) -> Result<(), Driven> {
        self.head = Head::after(&step);
        if matches!(step.body, StepBody::End { .. }) {
            return Err(Driven::Ended(Box::new(step)));
        }
        match self.run.fold(&step) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.give_up(error.finish()).await),
        }
    }

    /// Ends a session that cannot go on.
    async fn give_up(&mut self, finish: Finish) -> Driven {
        match self.append(finish.body()).await {
            Ok(step) => Driven::Ended(Box::new(step)),
            Err(AppendError::Collision(theirs)) if matches!(theirs.body, StepBody::End { .. }) => {
                Driven::Ended(theirs)
            }
            Err(AppendError::Collision(_)) => Driven::Fenced,
            Err(error) => Driven::Broken(error),
        }
    }
}

fn may_pass(error: &Error) -> bool {
    error.retry() != Retry::Never
}

fn brought(outcome: ToolOutcome) -> Brought {
    match outcome {
        ToolOutcome::Ok(content) => Brought::Ok(content),
        ToolOutcome::Error(text) => Brought::Error(text),
        ToolOutcome::Failed(failure) => Brought::Failure(failure),
    }
}

/// The seam for model adapters: until one of a model's kind is built in, calling it is refused for
/// good, and the trigger's `on_model_failure` decides what follows.
fn no_adapter(model: &str) -> Failure {
    Failure::refused(
        "model_unavailable",
        format!("this build has no adapter for the model `{model}`"),
    )
}
