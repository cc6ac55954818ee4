//! A session's turn: asking for it, waiting for it, and giving it back.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use journal::id::SessionId;
use journal::lease::{Hold, Lease, WhyHeld, hold};
use journal::store::{Error, Store};
use journal::wait::Wait;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use workflow::contract::{AgentReply, AgentRequest, InvokeOutcome, InvokeRequest, Judgement, Mode};

use super::ledger::{Judged, Queued};
use super::{Load, New};
use crate::executions::Executions;
use crate::functions::Functions;
use crate::names;
use crate::restart::after_panics;

/// Workflows that are woken at once.
const WOKEN_AT_ONCE: usize = 64;

/// How often turns are taken back from sessions whose agent does not work, by the stack's clock. The poller's judgement
/// gives back the turn of a session that it still looks at.
const SWEEP_EVERY: Duration = Duration::from_secs(30);

/// Whether an invocation may go on to the agent.
pub(crate) enum Turn {
    Begins,
    /// The session waits. The reply for the invoker.
    Waits(AgentReply),
}

impl Load {
    /// Asks for a session's turn. If it has to wait, its lease says so before this returns.
    ///
    /// # Errors
    /// If the lease cannot be written.
    pub(crate) async fn turn<S: Store>(
        &self,
        store: &S,
        request: &AgentRequest,
    ) -> Result<Turn, Error> {
        let (session, agent) = (&request.session_id, &request.trigger.agent);
        let begins = self.ledger().ask(&self.0.limits, session, agent, self.now());
        if begins || !self.hold(store, &queued(request), WhyHeld::Queued).await? {
            return Ok(self.begins());
        }
        let asks = queued(request);
        if self.ledger().ask_or_queue(&self.0.limits, asks, self.now()) {
            return Ok(self.begins());
        }
        self.0.changes.send_replace(());
        tracing::info!(session_id = %session, %agent, "The session waits for its turn.");
        Ok(Turn::Waits(AgentReply { outcome: InvokeOutcome::Queued, seen: request.seen }))
    }

    fn begins(&self) -> Turn {
        self.0.changes.send_replace(());
        Turn::Begins
    }

    /// Returns false if another runner has the session.
    async fn hold<S: Store>(
        &self,
        store: &S,
        queued: &Queued,
        why: WhyHeld,
    ) -> Result<bool, Error> {
        let Queued { session, agent, invocation, epoch, expires_at } = queued;
        let held = Hold { why, agent: agent.clone(), invocation: Some(*invocation) };
        hold(store, session, *epoch, held, self.0.clock.wall(), *expires_at).await
    }

    /// The functions, with the poller's judgements noted.
    pub(crate) fn noting(&self, functions: Functions) -> Functions {
        let load = self.clone();
        functions.observed(names::POLLER_ARN, move |payload, reply| load.note(payload, reply))
    }

    fn note(&self, payload: &Value, reply: &Value) {
        // A reply about a parked workflow may come after the workflow went on.
        let is_park = payload["mode"] == json!(Mode::Park);
        let session = payload["session_id"].as_str().and_then(|text| text.parse().ok());
        let (Some(session), false) = (session, is_park) else { return };
        let judgement = serde_json::from_value(reply["status"].clone());
        match judgement {
            Ok(Judgement::Waiting) => self.waits(&session),
            Ok(_) => self.waits_no_more(&session),
            Err(_) => {}
        }
        match judgement {
            Ok(Judgement::Busy) | Err(_) => {}
            Ok(Judgement::Waiting | Judgement::Lost | Judgement::Resume) => {
                self.judged(&session, Judged::Paused);
            }
            Ok(_) => self.judged(&session, Judged::Ended),
        }
    }

    fn judged(&self, session: &SessionId, judged: Judged) {
        let mut ledger = self.ledger();
        ledger.judged(session, judged);
        self.settle(ledger);
    }

    /// Whether the session's agent may be working.
    pub(crate) fn is_at_work(&self, session: &SessionId) -> bool {
        self.ledger().has_permit(session)
    }

    /// Wakes sessions whose turn has come, and takes turns back, until `stop`.
    pub(crate) fn kept(
        &self,
        executions: &Executions,
        stop: &CancellationToken,
    ) -> impl Future<Output = ()> + use<> {
        let (load, executions, stop) = (self.clone(), executions.clone(), stop.clone());
        let stopping = stop.clone();
        after_panics("the queue", stop, move || {
            let (load, executions, stop) = (load.clone(), executions.clone(), stopping.clone());
            async move { load.keep(&executions, &stop).await }
        })
    }

    async fn keep(&self, executions: &Executions, stop: &CancellationToken) {
        let mut ends = executions.ends();
        let mut next_sweep = self.now().after(SWEEP_EVERY);
        loop {
            // Cancel-safe: a notification and an end stay until they are received, and the next sweep keeps its time.
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.0.has_released.notified() => {
                    let released = std::mem::take(&mut *self.released());
                    self.wake_all(executions, released).await;
                }
                ended = ends.recv() => match ended {
                    Ok(record) => self.ended(&New::of(&record.name, &record.input)),
                    // The sweep finds what the queue dropped.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                },
                () = self.0.clock.sleep(next_sweep.since(self.now())) => {
                    next_sweep = self.now().after(SWEEP_EVERY);
                    self.sweep(executions).await;
                }
            }
        }
    }

    fn ended(&self, session: &New) {
        self.forget(session);
        if let Ok(id) = session.name.parse() {
            self.waits_no_more(&id);
            let mut ledger = self.ledger();
            ledger.execution_ended(&id);
            self.settle(ledger);
        }
    }

    async fn wake_all(&self, executions: &Executions, released: Vec<Queued>) {
        let woken = stream::iter(released).map(async |queued| {
            if let Err(error) = self.wake(executions, &queued).await {
                let session_id = &queued.session;
                tracing::warn!(%session_id, %error, "A session whose turn has come was not woken.");
            }
        });
        woken.buffer_unordered(WOKEN_AT_ONCE).for_each(async |()| {}).await;
    }

    /// The lease first: a workflow that is not parked yet reads it.
    async fn wake(&self, executions: &Executions, queued: &Queued) -> Result<(), Error> {
        let (store, session) = (executions.store(), &queued.session);
        if !self.ledger().is_awaited(session) {
            return Ok(());
        }
        self.hold(store, queued, WhyHeld::Released).await?;
        if let Some(wait) = Wait::read(store, session).await? {
            executions.wake(&wait.token).await?;
        }
        Ok(())
    }

    /// Wakes sessions again that did not come for their turn, as under a high load. Takes turns back from those that
    /// never come, and from sessions that have no runner long after their invocation.
    async fn sweep(&self, executions: &Executions) {
        let awaited = self.ledger().awaited();
        self.wake_all(executions, awaited).await;
        let store = executions.store();
        let begun = self.ledger().begun_before(self.now());
        for session in begun {
            match Lease::read(store, &session).await {
                Ok(Some(lease)) if lease.runner().is_some() => {}
                Ok(_) => self.judged(&session, Judged::Paused),
                Err(error) => tracing::warn!(session_id = %session, %error, "Cannot read a lease."),
            }
        }
        let ledger = self.ledger();
        self.settle(ledger);
    }
}

/// The body of an invocation; `None` if it is another program's.
pub(crate) fn request_of(body: &[u8]) -> Option<AgentRequest> {
    serde_json::from_slice(body).ok()
}

fn queued(request: &AgentRequest) -> Queued {
    Queued {
        session: request.session_id.clone(),
        agent: request.trigger.agent.clone(),
        invocation: InvokeRequest::invocation_of(request.attempt),
        epoch: request.supersedes,
        expires_at: request.expires_at,
    }
}
