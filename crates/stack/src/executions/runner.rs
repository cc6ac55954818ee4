//! Runs one execution: its history is durable before any action.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use asl::execution::{
    AlreadyEnded, CallbackError, Execution, Next, Outcome, ReplayError, TaskRequest,
};
use asl::history::{Event, Failure};
use asl::time::Timestamp;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use journal::store::{Error, Retry};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::busy::{BUSY_LONGEST, Busy};
use super::store::until_known;
use super::{ExecutionStore, Shared, call, map_runs};

/// Longest single sleep, by the machine's clock. A timer cannot hold three years.
pub(super) const SLEEP_LONGEST: Duration = Duration::from_secs(3_600);

/// An execution that waits for longer than this is parked, by the stack's clock. While an agent works,
/// its heartbeat is due earlier.
const PARKED_AFTER: Duration = Duration::from_secs(120);

/// How long a woken execution stays in memory, by the machine's clock, so that the callback that woke it
/// finds it.
const LINGERED: Duration = Duration::from_secs(1);

/// Delay before a failed write is repeated, by the machine's clock.
const WRITE_RETRY_DELAY: Duration = Duration::from_secs(1);

/// How long calls in flight may take on shutdown, by the machine's clock.
const CALLS_TIMEOUT: Duration = Duration::from_secs(3);

/// `mode` of the poller's request that parks a workflow ([`workflow::contract::Mode::Park`]).
const PARK: &str = "park";

/// A request to a running execution, with a channel for the reply.
#[derive(Debug)]
pub(super) enum Command {
    Callback {
        token: String,
        answer: Callback,
        reply: oneshot::Sender<Result<(), CallbackError>>,
    },
    /// Continues the workflow if the poller has parked it; the reply says whether.
    Wake {
        reply: oneshot::Sender<bool>,
    },
    /// `StopExecution`.
    Stop {
        failure: Failure,
        reply: oneshot::Sender<Result<Timestamp, AlreadyEnded>>,
    },
}

/// A callback to a task token.
#[derive(Clone, Debug, PartialEq)]
pub enum Callback {
    /// `SendTaskSuccess`.
    Success(Value),
    /// `SendTaskFailure`.
    Failure(Failure),
    /// `SendTaskHeartbeat`.
    Heartbeat,
}

/// Why an execution cannot continue. Its history is unchanged.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error(transparent)]
    Store(#[from] Error),
    #[error("the execution's history is inconsistent")]
    History(#[from] ReplayError),
}

/// The result of a call or of a run of a distributed `Map`; `None` for a run that was cut off.
struct Answer {
    event_id: u64,
    is_run: bool,
    result: Option<Result<Value, Failure>>,
}

pub(super) struct Runner<S> {
    shared: Arc<Shared<S>>,
    id: i64,
    execution: Execution,
    /// How far the execution's own time is ahead of the stack's even clock.
    ahead_ms: i64,
    commands: mpsc::Receiver<Command>,
    calls: FuturesUnordered<BoxFuture<'static, Answer>>,
    /// The open tasks that have been called.
    called: BTreeSet<u64>,
    /// The runs of distributed maps that were performed.
    performed: BTreeMap<u64, CancellationToken>,
    /// Held while the execution works, not while it only waits.
    busy: Option<Busy>,
    /// Whether it stays in memory for a while before it is parked.
    lingers: bool,
}

/// Why an execution gets a runner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cause {
    /// It is new, or a restart left it.
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
    /// It has ended, or the stack is stopping.
    Ended,
    /// It is due then by the stack's even clock, or on a callback.
    Parked(Timestamp),
}

impl<S: ExecutionStore> Runner<S> {
    pub(super) fn new(
        shared: Arc<Shared<S>>,
        id: i64,
        execution: Execution,
        ahead_ms: i64,
        commands: mpsc::Receiver<Command>,
        cause: Cause,
    ) -> Self {
        let (calls, called) = (FuturesUnordered::new(), BTreeSet::new());
        let performed = BTreeMap::new();
        let busy = Some(shared.work.begin());
        // After a restart no callback waits for an execution yet, so it need not linger.
        let lingers = cause == Cause::Due;
        Self { shared, id, execution, ahead_ms, commands, calls, called, performed, busy, lingers }
    }

    /// Runs the execution until it ends, the stack stops, or it waits for long.
    pub(super) async fn run(mut self) -> Result<Left, Broken> {
        self.refresh_heartbeats();
        loop {
            self.ensure_performed();
            let now = self.now();
            let wall_ahead_ms = self.shared.wall().as_millis().saturating_sub(now.as_millis());
            self.execution.set_wall_ahead(wall_ahead_ms);
            let (next, ahead) = self.execution.ahead(now);
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

    /// The execution's own time.
    fn now(&self) -> Timestamp {
        self.shared.now().plus_millis(self.ahead_ms)
    }

    /// Restarts the heartbeat timeouts: heartbeats are not in the history, so an agent that was
    /// alive before a restart counts as alive after it.
    fn refresh_heartbeats(&mut self) {
        let tokens = self.execution.open_tokens().into_iter().map(str::to_owned);
        for token in tokens.collect::<Vec<_>>() {
            let now = self.now();
            // The token belongs to an open task.
            let _ = self.execution.heartbeat(&token, now);
        }
    }

    /// Makes an input event durable together with its consequences: one commit instead of two.
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

    /// Makes events durable. `ahead` is the execution after them.
    async fn keep(&mut self, events: Vec<Event>, ahead: Execution) -> Result<(), Broken> {
        self.busy.get_or_insert_with(|| self.shared.work.begin());
        self.lingers = true;
        let ended = ahead.outcome().cloned().zip(events.last().map(|event| event.timestamp));
        if ended.is_some() {
            // The inbox closes before the row does, so an ended execution accepts no callback.
            self.commands.close();
        }
        append(&self.shared, self.id, &events, ended.as_ref()).await?;
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
                let result = call::perform(&shared, &caller, resource, arguments).await;
                Answer { event_id: request.event_id, is_run: false, result: Some(result) }
            }));
        }
    }

    /// Performs the runs of distributed maps that are in progress.
    fn ensure_performed(&mut self) {
        let open = self.execution.open_map_runs();
        let closed = self.performed.extract_if(.., |event_id, _| !open.contains(event_id));
        // The execution goes on without the results of such a run.
        closed.for_each(|(_, gone)| gone.cancel());
        for event_id in open {
            if self.performed.contains_key(&event_id) {
                continue;
            }
            let gone = CancellationToken::new();
            self.performed.insert(event_id, gone.clone());
            let (shared, execution) = (Arc::clone(&self.shared), self.execution.clone());
            let performed = map_runs::perform(shared, execution, event_id, gone);
            self.calls.push(Box::pin(async move {
                Answer { event_id, is_run: true, result: performed.await }
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
        // Cancel-safe: calls stay in their list, commands in their queue, and a sleep restarts
        // from the clock.
        tokio::select! {
            Some(answer) = self.calls.next(), if !self.calls.is_empty() => {
                self.answered(answer).await?;
            }
            Some(command) = self.commands.recv() => self.obey(command).await?,
            () = tokio::time::sleep(pause) => {
                self.busy = None;
                if is_long {
                    return Ok(Flow::Parking(until));
                }
            }
            () = self.shared.wall_set.notified() => {}
            () = self.shared.stopping.cancelled() => return Ok(Flow::Stopping),
        }
        Ok(Flow::Onwards)
    }

    async fn answered(&mut self, answer: Answer) -> Result<(), Broken> {
        let Answer { event_id, is_run, result: Some(result) } = answer else { return Ok(()) };
        let now = self.now();
        let proposal = match result {
            Ok(output) if is_run => self.execution.map_run_succeeded(event_id, &output, now),
            Err(failure) if is_run => self.execution.map_run_failed(event_id, failure, now),
            Ok(output) => self.execution.task_succeeded(event_id, &output, now),
            Err(failure) => self.execution.task_failed(event_id, failure, now),
        };
        match proposal {
            Ok(event) => self.record(event).await,
            // The task has timed out, or its callback came first: the response is not needed.
            Err(_) => Ok(()),
        }
    }

    async fn obey(&mut self, command: Command) -> Result<(), Broken> {
        let now = self.now();
        // The caller may be gone. The command takes effect anyway.
        match command {
            Command::Callback { token, answer: Callback::Heartbeat, reply } => {
                let _ = reply.send(self.execution.heartbeat(&token, now));
            }
            Command::Wake { reply } => {
                let token = self.parked_with();
                let is_parked = token.is_some();
                if let Some(token) = token
                    && let Ok(event) = self.execution.callback_succeeded(&token, &json!({}), now)
                {
                    self.record(event).await?;
                }
                let _ = reply.send(is_parked);
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

    /// The token with which the poller has parked the workflow. Other callbacks are not the stack's.
    fn parked_with(&self) -> Option<String> {
        let park = |arguments: &Value| arguments["Payload"]["mode"] == PARK;
        let mut open = self.execution.open_callbacks().into_iter();
        open.find_map(|(token, arguments)| park(arguments).then(|| token.to_owned()))
    }

    /// Lets calls finish that are no longer needed, as Lambda does.
    async fn finish_calls(&mut self) {
        // A sender without a reply reads the execution's row.
        while self.commands.try_recv().is_ok() {}
        let stopping = self.shared.stopping.clone();
        // A call that a stop cuts off is like one that a crash cuts off. Every function tolerates that.
        tokio::select! {
            () = async { while self.calls.next().await.is_some() {} } => {}
            () = stopping.cancelled() => {}
        }
    }

    /// Closes the inbox and handles the queued commands. Returns when the execution is due, by the stack's
    /// even clock.
    async fn park(&mut self, until: Timestamp) -> Result<Timestamp, Broken> {
        self.commands.close();
        let mut again_at = until;
        while let Some(command) = self.commands.recv().await {
            self.obey(command).await?;
            again_at = self.now();
        }
        Ok(again_at.plus_millis(self.ahead_ms.saturating_neg()))
    }

    /// Waits shortly for calls in flight. The restart repeats those that do not finish.
    async fn stop(&mut self) -> Result<(), Broken> {
        let deadline = tokio::time::sleep(CALLS_TIMEOUT);
        tokio::pin!(deadline);
        while !self.calls.is_empty() {
            // Cancel-safe: the call stays in its list.
            tokio::select! {
                Some(answer) = self.calls.next() => {
                    self.answered(answer).await?;
                }
                () = &mut deadline => break,
            }
        }
        Ok(())
    }
}

/// Appends events, retrying without limit: no action may precede its record, and a full disk does not
/// end an execution.
pub(super) async fn append<S: ExecutionStore>(
    shared: &Shared<S>,
    id: i64,
    events: &[Event],
    ended: Option<&(Outcome, Timestamp)>,
) -> Result<(), Error> {
    loop {
        match until_known(|| shared.store.append(id, events, ended)).await {
            Err(error) if error.retry() != Retry::Never && !shared.stopping.is_cancelled() => {
                tracing::warn!(%error, "Cannot write an execution's history; retrying.");
                tokio::time::sleep(WRITE_RETRY_DELAY).await;
            }
            known => return known,
        }
    }
}
