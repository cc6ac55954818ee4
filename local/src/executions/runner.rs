//! One execution, driven: its history is durable before anything is done with it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use journal::store::{Error, Retry};
use serde_json::Value;
use states::execution::{
    AlreadyEnded, CallbackError, Execution, Next, Outcome, ReplayError, TaskRequest,
};
use states::history::{Event, Failure};
use states::time::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::busy::{BUSY_LONGEST, Busy};
use super::{Shared, call, rows};

/// Longest sleep at a stretch, by the machine's clock; a timer cannot hold three years.
pub(super) const SLEEP_LONGEST: Duration = Duration::from_secs(3_600);

/// An execution that waits for longer leaves the memory, by the stack's clock. While an agent is at
/// work its heartbeat is due earlier.
const PARKED_AFTER: Duration = Duration::from_secs(120);

/// How long it stays nonetheless, by the machine's clock: whoever had it brought back for a callback
/// must find it.
const LINGERED: Duration = Duration::from_secs(1);

/// How long to wait before writing again what could not be written, by the machine's clock.
const REWRITE_AFTER: Duration = Duration::from_secs(1);

/// How long calls in flight may take to answer when the stack stops, by the machine's clock.
const CALLS_FINISH_WITHIN: Duration = Duration::from_secs(3);

/// What somebody wants of a running execution, and where to answer.
#[derive(Debug)]
pub(super) enum Command {
    /// A callback with a token.
    Callback { token: String, answer: Callback, reply: oneshot::Sender<Result<(), CallbackError>> },
    /// `StopExecution`.
    Stop { failure: Failure, reply: oneshot::Sender<Result<Timestamp, AlreadyEnded>> },
}

/// What a token is sent with.
#[derive(Clone, Debug, PartialEq)]
pub enum Callback {
    /// `SendTaskSuccess`.
    Success(Value),
    /// `SendTaskFailure`.
    Failure(Failure),
    /// `SendTaskHeartbeat`.
    Heartbeat,
}

/// Why an execution cannot go on. It stays as its history has it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error(transparent)]
    Store(#[from] Error),
    #[error("the execution's history makes no sense")]
    History(#[from] ReplayError),
}

type Answer = (u64, Result<Value, Failure>);

pub(super) struct Runner {
    shared: Arc<Shared>,
    id: i64,
    execution: Execution,
    commands: mpsc::Receiver<Command>,
    calls: FuturesUnordered<BoxFuture<'static, Answer>>,
    /// The open tasks whose calls are in flight, or were.
    called: BTreeSet<u64>,
    /// While something is being done and not only waited for.
    busy: Option<Busy>,
    /// Whether it stays in memory for a while where it waits for long.
    lingers: bool,
}

/// Why an execution is taken up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cause {
    /// It was started, or a restart left it.
    Running,
    /// It was parked, and is due or called back.
    Due,
}

#[derive(PartialEq)]
enum Flow {
    Onwards,
    Parking(Timestamp),
    Stopping,
}

/// How a runner left its execution.
#[derive(Debug)]
pub(super) enum Left {
    /// Nothing more is to be done, or the stack stops.
    Ended,
    /// Somebody is to look at it then, or when it is called back.
    Parked(Timestamp),
}

impl Runner {
    pub(super) fn new(
        shared: Arc<Shared>,
        id: i64,
        execution: Execution,
        commands: mpsc::Receiver<Command>,
        cause: Cause,
    ) -> Self {
        let (calls, called) = (FuturesUnordered::new(), BTreeSet::new());
        let busy = Some(shared.work.begin());
        // After a restart with ten thousand that wait, nobody looks for any of them yet.
        let lingers = cause == Cause::Due;
        Self { shared, id, execution, commands, calls, called, busy, lingers }
    }

    /// Drives the execution to its end, until the stack stops, or until it waits for long.
    pub(super) async fn run(mut self) -> Result<Left, Broken> {
        self.beat();
        loop {
            let (next, ahead) = self.execution.ahead(self.now());
            let flow = match next {
                Next::Record(events) => {
                    self.keep(events, ahead).await?;
                    Flow::Onwards
                }
                Next::RunTasks { requests, wake_at } => {
                    self.ensure_called(requests);
                    self.wait(wake_at).await?
                }
                Next::WaitUntil(at) => self.wait(at).await?,
                Next::Done(_) => {
                    self.finish_calls().await;
                    return Ok(Left::Ended);
                }
            };
            match flow {
                Flow::Onwards => {}
                Flow::Parking(until) => return Ok(Left::Parked(self.park(until).await?)),
                Flow::Stopping => {
                    self.stop().await?;
                    return Ok(Left::Ended);
                }
            }
        }
    }

    fn now(&self) -> Timestamp {
        self.shared.now()
    }

    /// A heartbeat is not history: whoever was alive before a restart counts as alive after it.
    fn beat(&mut self) {
        let tokens = self.execution.open_tokens().into_iter().map(str::to_owned);
        for token in tokens.collect::<Vec<_>>() {
            let now = self.now();
            // The token is the open task's own.
            let _ = self.execution.heartbeat(&token, now);
        }
    }

    /// Makes an input's event durable, with what the execution makes of it: one wait for the disk, not two.
    async fn record(&mut self, event: Event) -> Result<(), Broken> {
        let mut after = self.execution.clone();
        after.apply(&event)?;
        let mut events = vec![event];
        let (next, ahead) = after.ahead(self.now());
        if let Next::Record(more) = next {
            events.extend(more);
        }
        self.keep(events, ahead).await
    }

    /// Makes events durable; `ahead` is the execution with them.
    async fn keep(&mut self, events: Vec<Event>, ahead: Execution) -> Result<(), Broken> {
        self.busy.get_or_insert_with(|| self.shared.work.begin());
        self.lingers = true;
        let ended = ahead.outcome().cloned().zip(events.last().map(|event| event.timestamp));
        if ended.is_some() {
            // Its inbox closes before the row says so: nobody is told that it runs when it does not.
            self.commands.close();
        }
        append(&self.shared, self.id, &events, ended).await?;
        self.execution = ahead;
        Ok(())
    }

    fn ensure_called(&mut self, requests: Vec<TaskRequest>) {
        let open = self.execution.open_tasks();
        self.called.retain(|event_id| open.contains(event_id));
        for request in requests {
            if !self.called.insert(request.event_id) {
                continue;
            }
            let shared = Arc::clone(&self.shared);
            let caller = self.execution.start().execution_arn.clone();
            self.calls.push(Box::pin(async move {
                let (resource, arguments) = (&request.resource, request.arguments);
                let answer = call::perform(&shared, &caller, resource, arguments).await;
                (request.event_id, answer)
            }));
        }
    }

    async fn wait(&mut self, until: Timestamp) -> Result<Flow, Broken> {
        let millis = until.as_millis().saturating_sub(self.now().as_millis()).max(0);
        let pause = Duration::from_millis(millis.unsigned_abs());
        let is_long = pause > PARKED_AFTER && self.calls.is_empty();
        let pause = match (is_long, self.lingers) {
            (true, true) => LINGERED,
            (true, false) => Duration::ZERO,
            (false, _) => self.shared.clock.real(pause).min(SLEEP_LONGEST),
        };
        if self.calls.is_empty() {
            self.busy = None;
        }
        let pause = if self.busy.is_some() { pause.min(BUSY_LONGEST) } else { pause };
        // Whichever loses loses nothing: calls stay in their list, commands in their queue, and a
        // sleep is begun anew from the clock.
        tokio::select! {
            Some((event_id, answer)) = self.calls.next(), if !self.calls.is_empty() => {
                self.answered(event_id, answer).await?;
            }
            Some(command) = self.commands.recv() => self.obey(command).await?,
            () = tokio::time::sleep(pause) => {
                self.busy = None;
                if is_long {
                    return Ok(Flow::Parking(until));
                }
            }
            () = self.shared.stopping.cancelled() => return Ok(Flow::Stopping),
        }
        Ok(Flow::Onwards)
    }

    async fn answered(
        &mut self,
        event_id: u64,
        answer: Result<Value, Failure>,
    ) -> Result<(), Broken> {
        let now = self.now();
        let proposal = match answer {
            Ok(output) => self.execution.task_succeeded(event_id, &output, now),
            Err(failure) => self.execution.task_failed(event_id, failure, now),
        };
        match proposal {
            Ok(event) => self.record(event).await,
            // The task timed out, or its callback came first: nobody waits for this answer.
            Err(_) => Ok(()),
        }
    }

    async fn obey(&mut self, command: Command) -> Result<(), Broken> {
        let now = self.now();
        // Whoever asked may have gone; what was asked is done all the same.
        match command {
            Command::Callback { token, answer: Callback::Heartbeat, reply } => {
                let _ = reply.send(self.execution.heartbeat(&token, now));
            }
            Command::Callback { token, answer, reply } => {
                let proposal = match answer {
                    Callback::Success(output) => {
                        self.execution.callback_succeeded(&token, &output, now)
                    }
                    Callback::Failure(failure) => {
                        self.execution.callback_failed(&token, failure, now)
                    }
                    Callback::Heartbeat => unreachable!("heartbeats are taken above"),
                };
                match proposal {
                    Ok(event) => {
                        self.record(event).await?;
                        let _ = reply.send(Ok(()));
                    }
                    Err(refusal) => {
                        let _ = reply.send(Err(refusal));
                    }
                }
            }
            Command::Stop { failure, reply } => match self.execution.abort(failure, now) {
                Ok(event) => {
                    self.record(event).await?;
                    let _ = reply.send(Ok(now));
                }
                Err(refusal) => {
                    let _ = reply.send(Err(refusal));
                }
            },
        }
        Ok(())
    }

    /// A function runs on although nobody waits for it any more, as Lambda's do.
    async fn finish_calls(&mut self) {
        // Whoever still waits for an answer is told by the execution's row.
        while self.commands.try_recv().is_ok() {}
        let stopping = self.shared.stopping.clone();
        // Cut off by a stop, a call is like one cut off by a crash, which every function survives.
        tokio::select! {
            () = async { while self.calls.next().await.is_some() {} } => {}
            () = stopping.cancelled() => {}
        }
    }

    /// Takes no more commands, obeys those that came, and says when to look again.
    async fn park(&mut self, until: Timestamp) -> Result<Timestamp, Broken> {
        self.commands.close();
        let mut again_at = until;
        while let Some(command) = self.commands.recv().await {
            self.obey(command).await?;
            again_at = self.now();
        }
        Ok(again_at)
    }

    /// Takes the answers that come soon; what is cut off is asked for again after the restart.
    async fn stop(&mut self) -> Result<(), Broken> {
        let deadline = tokio::time::sleep(CALLS_FINISH_WITHIN);
        tokio::pin!(deadline);
        while !self.calls.is_empty() {
            // A call that loses stays in its list and is dropped with it.
            tokio::select! {
                Some((event_id, answer)) = self.calls.next() => {
                    self.answered(event_id, answer).await?;
                }
                () = &mut deadline => break,
            }
        }
        Ok(())
    }
}

/// Appends for as long as it takes: nothing may be done before it is durable, and a full disk is no
/// reason to give the execution up.
async fn append(
    shared: &Shared,
    id: i64,
    events: &[Event],
    ended: Option<(Outcome, Timestamp)>,
) -> Result<(), Error> {
    loop {
        match rows::append(&shared.store, id, events, ended.clone()).await {
            Err(error) if error.retry() != Retry::Never && !shared.stopping.is_cancelled() => {
                tracing::warn!(%error, "A history could not be written; trying again.");
                tokio::time::sleep(REWRITE_AFTER).await;
            }
            known => return known,
        }
    }
}
