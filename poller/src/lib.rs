//! The poller: the Lambda function that reads a session's journal and decides how the workflow
//! continues.
//!
//! It ends sessions that must end, seals ended ones, and parks the workflow while the agent runs or the
//! session waits. [`observe`] reads the journal, [`judge`] decides without IO, and [`Poller::handle`]
//! acts on the decision. [`checkpoint`] signs the log of sessions. `answer` and `url` pass a person's actions to `control`, whether they arrive
//! with the callback's token, as an event or over the function's URL.

use std::sync::Arc;

use agentcore::Runtime;
use journal::announce::Announcer;
use journal::chain::{AppendError, Author, End, Head, append, end_session};
use journal::clock::{Clock, Hlc, Stamp};
use journal::error_message::ErrorMessage;
use journal::event::{About, Draft, Event, EventStatus, Writer};
use journal::id::Runner;
use journal::lease;
use journal::principal::Principal;
use journal::read;
use journal::seal::{announcement, seal, suspension, task_announcement};
use journal::step::{Ending, Step, StepBody};
use journal::store::Store;
use journal::wait::{Turn, Wait};
use notify::bus::Notices;
use serde_json::{Map, Value, json};
use telemetry::{attribute, export};
use tracing::Instrument as _;
use workflow::contract::{CheckReply, CheckRequest, Failure, Judgement, Mode, Verdict, Watch};
use workflow::limits::ANNOUNCE_TIMEOUT;
use workflow::metric;
use workflow::trace::{Trace, lifecycle};

mod answer;
mod capacity;
pub mod checkpoint;
mod cloud;
pub mod error;
pub mod judge;
#[cfg(feature = "kms")]
pub mod kms;
pub mod observe;
mod reply;
mod url;

pub use error::Error;

use cloud::Cloud;
use judge::Decision;
use observe::Observed;
use reply::{reply, verdict};

/// The poller with its clients.
#[derive(Clone, Debug)]
pub struct Poller<S> {
    store: S,
    cloud: Cloud,
    clock: Clock,
    /// Whether an answer in a callback's output counts.
    callbacks_answer: bool,
    /// The names of the agents that may be halted.
    agents: Arc<[String]>,
    /// Whether the state machine's clock does not follow the wall clock when it is set.
    counts_even_time: bool,
    notices: Option<Notices>,
}

impl<S: Store> Poller<S> {
    /// A poller over a journal, the state machine's callbacks and an agent runtime.
    pub fn new(store: S, callbacks: aws_sdk_sfn::Client, runtime: Runtime, clock: Clock) -> Self {
        let cloud = Cloud::new(callbacks, runtime);
        let (callbacks_answer, counts_even_time) = (true, false);
        let agents = Arc::default();
        Self { store, cloud, clock, callbacks_answer, agents, counts_even_time, notices: None }
    }

    /// Sets the state machine's ARN, which only resuming needs.
    #[must_use]
    pub fn with_state_machine(mut self, state_machine_arn: Option<String>) -> Self {
        self.cloud.state_machine_arn = state_machine_arn;
        self
    }

    /// Sets the names of the agents that may be halted.
    #[must_use]
    pub fn with_agents(self, agents: impl IntoIterator<Item = String>) -> Self {
        Self { agents: agents.into_iter().collect(), ..self }
    }

    /// For a state machine whose clock runs on evenly when the wall clock is set, as a local stack's.
    #[must_use]
    pub fn counting_even_time(self) -> Self {
        Self { counts_even_time: true, ..self }
    }

    /// Puts events about sessions on an event bus.
    #[must_use]
    pub fn with_notices(self, notices: Option<Notices>) -> Self {
        Self { notices, ..self }
    }

    /// Ignores answers in a callback's output. In an account the agent, too, may send the token, and
    /// must not answer its own question.
    #[must_use]
    pub fn ignoring_answers_of_callbacks(self) -> Self {
        Self { callbacks_answer: false, ..self }
    }

    /// Handles a request of the state machine. Idempotent.
    ///
    /// # Errors
    /// The state machine distinguishes the errors by [`Error::name`].
    pub async fn handle(&self, request: CheckRequest) -> Result<CheckReply, Error> {
        let hlc = Hlc::new(self.clock.clone(), request.seen.max(request.now));
        let announcer = Announcer {
            store: &self.store,
            hlc: &hlc,
            session: &request.session_id,
            writer: Writer::Poller,
            expires_at: request.expires_at,
        };
        let trace = Trace::of(&request.session_id, request.traceparent);
        let log = tracing::error_span!(
            "session", session_id = %request.session_id, trace_id = trace.id()
        );
        let begun_at = self.clock.now();
        let done = async {
            match request.mode {
                Mode::Check => self.check(&announcer, &request).await,
                Mode::Park => self.park(&announcer, &request).await,
                Mode::Close => self.close(&announcer, &request).await,
            }
        };
        let done = async {
            let done = done.await;
            let status = done.as_ref().map_or("error", |reply| reply.status.as_str());
            metrics::counter!(metric::POLLS, "status" => status).increment(1);
            self.tell_of(&trace, request.mode, begun_at, &done).await;
            done
        };
        done.instrument(log).await
    }

    /// Exports this request's span, and those of the whole session after its end.
    async fn tell_of(
        &self,
        trace: &Trace,
        mode: Mode,
        begun_at: Stamp,
        done: &Result<CheckReply, Error>,
    ) {
        if !export::is_on() {
            return;
        }
        let name = match mode {
            Mode::Check => "poller.check",
            Mode::Park => "poller.park",
            Mode::Close => "poller.close",
        };
        let span = trace.leaf(name, begun_at.nanos(), trace.session());
        let span = span.lasting(begun_at.nanos(), self.clock.now().nanos());
        export::record(match done {
            Ok(reply) => span.with(attribute::STATUS, reply.status.as_str()),
            Err(error) => span.failing(error.name()),
        });
        if done.as_ref().is_ok_and(|reply| reply.verdict.is_some()) {
            match lifecycle::read(&self.store, trace).await {
                Ok(spans) => spans.into_iter().for_each(export::record),
                Err(error) => tracing::warn!(%error, "A session's trace could not be exported."),
            }
            let _ = tokio::task::spawn_blocking(export::flush).await;
        }
    }

    /// Handles requests of the state machine, of the function's URL, which states its caller, and of
    /// the rules for a person's actions, which do not pass on who sent the event.
    ///
    /// # Errors
    /// As [`Self::handle`] and [`Self::answer`], and if the payload is none of their requests.
    pub async fn serve(&self, payload: Value) -> Result<Value, Error> {
        if url::is_request(&payload) {
            return Ok(Box::pin(self.respond(&payload)).await);
        }
        self.serve_for(payload, &Principal::Unknown).await
    }

    /// The same for a caller that knows who sent the event. It has no URL.
    ///
    /// # Errors
    /// As [`Self::serve`].
    pub async fn serve_for(&self, payload: Value, by: &Principal) -> Result<Value, Error> {
        Ok(if payload.get("answer").is_some() {
            json!(self.answer(serde_json::from_value(payload)?, by).await?)
        } else if payload.get("cancel").is_some() {
            json!(self.cancel(serde_json::from_value(payload)?, by).await?)
        } else if payload.get("resume").is_some() {
            json!(self.resume(serde_json::from_value(payload)?, by).await?)
        } else {
            json!(Box::pin(self.handle(serde_json::from_value(payload)?)).await?)
        })
    }

    async fn check(
        &self,
        announcer: &Announcer<'_, S>,
        request: &CheckRequest,
    ) -> Result<CheckReply, Error> {
        if let Some(said) = said(&request.callback) {
            if self.callbacks_answer {
                self.answer_of_callback(&request.session_id, said).await?;
            } else {
                tracing::warn!("An answer in a callback's output was ignored.");
            }
        }
        let observed = self.observe(announcer, request).await?;
        self.repair(announcer, &observed).await;
        let (decision, mut watch) = judge::judge(&observed, request);
        watch.checks = watch.checks.saturating_add(1);
        match decision {
            Decision::Wait(judgement) => Ok(reply(announcer.hlc, judgement, watch, None)),
            Decision::Ended(end) => {
                let end = read::resolve(&self.store, *end).await?;
                self.conclude(announcer, request, watch, end, &observed.events).await
            }
            Decision::End(end) => self.end(announcer, request, watch, &end).await,
            Decision::Expire { question } => {
                self.expire(announcer, request, question).await?;
                Ok(reply(announcer.hlc, Judgement::Resume, watch, None))
            }
            Decision::AskAgain => Ok(reply(announcer.hlc, Judgement::Resume, watch, None)),
            Decision::Resume => {
                self.cloud.runtime.stop_session(&request.session_id).await;
                Ok(reply(announcer.hlc, Judgement::Resume, watch, None))
            }
            Decision::Lost { epoch, why } => {
                let lost = Draft::new(EventStatus::AgentLost, About::Epoch(epoch))
                    .with_detail(json!({ "why": why, "invocation": request.watch.invocation }));
                self.announce(announcer, &lost).await;
                metrics::counter!(metric::AGENTS_LOST).increment(1);
                self.cloud.runtime.stop_session(&request.session_id).await;
                Ok(reply(announcer.hlc, Judgement::Lost, watch, None))
            }
        }
    }

    async fn observe(
        &self,
        announcer: &Announcer<'_, S>,
        request: &CheckRequest,
    ) -> Result<Observed, Error> {
        let observed = observe::observe(&self.store, announcer.hlc, &request.session_id).await?;
        let wall = self.counts_even_time.then(|| self.clock.wall());
        Ok(Observed { wall, ..observed })
    }

    /// Writes the token and *then* reads the journal again: a writer in between found no token to send,
    /// so it is sent here.
    async fn park(
        &self,
        announcer: &Announcer<'_, S>,
        request: &CheckRequest,
    ) -> Result<CheckReply, Error> {
        let token =
            request.token.clone().ok_or(Error::Request("a parked workflow needs a task token"))?;
        let Watch { resumes, checks, .. } = request.watch;
        let turn = Turn { resumes, checks, retry: request.retry };
        let (session, expires_at) = (&request.session_id, request.expires_at);
        Wait::write(&self.store, session, &token, turn, expires_at).await?;
        let observed = self.observe(announcer, request).await?;
        let (decision, _) = judge::judge(&observed, request);
        self.tell_of_question(&observed).await?;
        let judgement = match decision {
            Decision::Wait(judgement)
                if observed.seq() == request.watch.seq || judgement == Judgement::Busy =>
            {
                judgement
            }
            _ => {
                self.cloud.wake(&token).await?;
                Judgement::Busy
            }
        };
        Ok(reply(announcer.hlc, judgement, request.watch.clone(), None))
    }

    /// Tells of the open question, once it is announced. A session without one parks, too.
    async fn tell_of_question(&self, observed: &Observed) -> Result<(), Error> {
        let Some(notices) = &self.notices else { return Ok(()) };
        let is_asked = |event: &&Event| {
            event.status == EventStatus::AgentBackgroundTaskSuspended
                && event.about == About::Step(observed.seq())
        };
        match observed.events.iter().find(is_asked) {
            Some(event) => Ok(notices.tell(&self.store, &self.clock, event).await?),
            None => Ok(()),
        }
    }

    async fn close(
        &self,
        announcer: &Announcer<'_, S>,
        request: &CheckRequest,
    ) -> Result<CheckReply, Error> {
        let failure = request.failure.clone().unwrap_or_else(|| Failure {
            error: "Unknown".to_owned(),
            cause: "the state machine gave no reason".to_owned(),
        });
        let end = End {
            ending: Ending::Failed,
            error: Some(ErrorMessage::new("WorkflowError", &failure.error, &failure.cause)),
            category: Some("unknown".to_owned()),
            result: Value::Null,
        };
        self.end(announcer, request, request.watch.clone(), &end).await
    }

    /// Ends the session, unless another writer has ended it, and seals it.
    async fn end(
        &self,
        announcer: &Announcer<'_, S>,
        request: &CheckRequest,
        watch: Watch,
        end: &End,
    ) -> Result<CheckReply, Error> {
        let step = end_session(&self.store, announcer.hlc, &author(request), end).await?;
        self.conclude(announcer, request, watch, step, &[]).await
    }

    /// Seals an ended session; `seen` are the events announced so far.
    async fn conclude(
        &self,
        announcer: &Announcer<'_, S>,
        request: &CheckRequest,
        watch: Watch,
        end: Step<Value>,
        seen: &[Event],
    ) -> Result<CheckReply, Error> {
        let StepBody::End { ending, error, answered_by, .. } = &end.body else {
            return Err(Error::Request("a session without an end step has no verdict"));
        };
        let by_agent = is_by(&end, Writer::Agent);
        let missing = task_announcement(end.seq, *ending, error.as_ref()).filter(|draft| {
            let id = draft.status.id(announcer.session, announcer.writer, draft.about);
            by_agent && seen.iter().all(|event| event.id != id)
        });
        if let Some(missing) = missing {
            self.announce(announcer, &missing).await;
        }
        let sealed = seal(&self.store, announcer, &end).await?;
        self.cloud.runtime.stop_session(&request.session_id).await;
        if let Some(notices) = &self.notices {
            // Before the lease is closed: the watchdog tells of a sealed session whose lease is open.
            notices.tell(&self.store, &self.clock, &sealed).await?;
        }
        // After all that may have this request repeated, so that a session counts once.
        self.count(&sealed, seen).await;
        let closed = lease::close(&self.store, &request.session_id, request.expires_at).await;
        if let Err(error) = closed {
            // The watchdog closes what it finds sealed.
            tracing::warn!(session_id = %request.session_id, %error, "The lease was not closed.");
        }
        self.offer_place(&request.session_id).await;
        let judgement = judge::judgement_of(*ending);
        let verdict = verdict(request, judgement, error.as_ref(), sealed.hash.as_str());
        let verdict = Verdict { answered_by: *answered_by, ..verdict };
        Ok(reply(announcer.hlc, judgement, watch, Some(verdict)))
    }

    async fn count(&self, verdict: &Event, seen: &[Event]) {
        // The agent's name may need a read of the journal: skip it if no metrics are recorded.
        if !telemetry::metrics::is_on() {
            return;
        }
        let is_first = |event: &Event| event.status == EventStatus::SessionInitiated;
        let read;
        let events = if seen.iter().any(is_first) {
            seen
        } else {
            let Ok(all) = read::events(&self.store, &verdict.session).await else { return };
            read = all;
            &read
        };
        let began = events.iter().map(Event::begun_at).min().unwrap_or(verdict.stamp);
        let agent = agent_of(events).unwrap_or("none").to_owned();
        let status = verdict.status.as_str();
        metrics::counter!(metric::SESSIONS_ENDED, "status" => status, "agent" => agent)
            .increment(1);
        metrics::histogram!(metric::SESSION_SECONDS, "status" => status)
            .record(verdict.stamp.since(began));
    }

    /// Closes an expired question. The first writer of the next step decides: an earlier answer
    /// remains.
    async fn expire(
        &self,
        announcer: &Announcer<'_, S>,
        request: &CheckRequest,
        question: u32,
    ) -> Result<(), Error> {
        let Some(newest) = read::newest_step(&self.store, &request.session_id).await? else {
            return Ok(());
        };
        if newest.seq != question {
            return Ok(());
        }
        let payload = json!({ "question_id": question, "decision": "expired" });
        let principal = Some(Principal::service(Writer::Poller));
        let body = StepBody::Answer { question, principal, payload };
        let head = Head::after(&newest);
        let author = author(request);
        match append(&self.store, announcer.hlc, &author, &head, newest.epoch, body).await {
            Ok(_) | Err(AppendError::Collision(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Announces the newest question or answer if its writer died before it could. An end is announced when it is
    /// sealed.
    async fn repair(&self, announcer: &Announcer<'_, S>, observed: &Observed) {
        let Some(step) = &observed.step else { return };
        let is_missing = |draft: &Draft| {
            let id = draft.status.id(announcer.session, announcer.writer, draft.about);
            observed.events.iter().all(|event| event.id != id)
        };
        let Some(newest) = announcement(step).filter(is_missing) else { return };
        match &step.body {
            StepBody::Ask { .. } => self.announce(announcer, &newest).await,
            // The poller closes an expired question without an announcement.
            StepBody::Answer { question, .. } if !is_by(step, Writer::Poller) => {
                let asked = suspension(*question);
                if is_missing(&asked) {
                    self.announce(announcer, &asked).await;
                }
                self.announce(announcer, &newest).await;
            }
            _ => {}
        }
    }

    async fn announce(&self, announcer: &Announcer<'_, S>, draft: &Draft) {
        if let Err(error) = announcer.announce_within(draft, ANNOUNCE_TIMEOUT).await {
            tracing::warn!(
                session_id = %announcer.session, event = %draft.status, %error,
                "An event was not written; the journal has a gap here."
            );
        }
    }
}

fn is_by<P>(step: &Step<P>, writer: Writer) -> bool {
    step.runner.as_str().starts_with(writer.as_str())
}

/// The agent that claimed the session, if it is registered.
fn agent_of(events: &[Event]) -> Option<&str> {
    let told = events.iter().find(|event| {
        event.status == EventStatus::AgentBackgroundTaskStarted && event.writer == Writer::Agent
    })?;
    told.detail.as_ref()?.get("agent")?.as_str()
}

/// The token's output, if it is more than a request to read the journal.
fn said(callback: &Value) -> Option<&Value> {
    let is_a_wish = callback.is_null() || callback.as_object().is_some_and(Map::is_empty);
    (!is_a_wish).then_some(callback)
}

fn author(request: &CheckRequest) -> Author {
    Author {
        session: request.session_id.clone(),
        runner: Runner::fresh(Writer::Poller.as_str()),
        expires_at: request.expires_at,
    }
}
