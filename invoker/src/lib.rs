//! The invoker: the Lambda function that admits a session and invokes its agent.
//!
//! [`Invoker::handle`] validates the trigger, admits the session ([`admission`]), journals the start of
//! the invocation, calls the agent runtime ([`agentcore`]) and journals the outcome. It distinguishes a
//! call that was refused from one that may have been accepted: only a refused call is retried or fails
//! the session. A session for which the runtime has no place waits (`capacity`).

use agentcore::Runtime;
use agentcore::invoke::CallError;
use futures_util::future::join;
use journal::announce::Announcer;
use journal::chain::{Author, End, end_session};
use journal::clock::{Clock, Hlc};
use journal::error_message::ErrorMessage;
use journal::event::{About, Draft, EventStatus, Writer};
use journal::id::{Runner, SessionId};
use journal::lease::Lease;
use journal::seal::seal;
use journal::step::Ending;
use journal::store::Store;
use serde_json::json;
use telemetry::{attribute, export};
use tracing::Instrument as _;
use workflow::contract::{AgentRequest, InvokeOutcome, InvokeReply, InvokeRequest};
use workflow::limits::ANNOUNCE_TIMEOUT;
use workflow::metric;
use workflow::trace::{self, Trace};
use workflow::trigger::{InvalidTrigger, Trigger};

pub mod admission;
mod capacity;
pub mod error;
mod halted;
mod kept;

pub use error::Error;

use admission::{Refusal, Rules};

/// The invoker with its clients.
#[derive(Clone, Debug)]
pub struct Invoker<S> {
    store: S,
    runtime: Runtime,
    clock: Clock,
    rules: Rules,
}

impl<S: Store> Invoker<S> {
    /// An invoker over a journal and an agent runtime.
    pub fn new(store: S, runtime: Runtime, clock: Clock) -> Self {
        Self { store, runtime, clock, rules: Rules::default() }
    }

    /// Sets the rules of admission.
    #[must_use]
    pub fn with_rules(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    /// Invokes the agent for a session. Idempotent.
    ///
    /// # Errors
    /// The state machine distinguishes the errors by [`Error::name`].
    pub async fn handle(&self, request: InvokeRequest) -> Result<InvokeReply, Error> {
        let remote = trace::of_detail(&request.detail);
        let trace = Trace::of(&request.session_id, remote.unwrap_or_default());
        let log = tracing::error_span!(
            "session", session_id = %request.session_id, trace_id = trace.id()
        );
        if let Err(error) = remote {
            // The invalid value is untrusted input: keep it out of the log.
            log.in_scope(|| tracing::warn!(%error, "The trigger's traceparent was left out."));
        }
        let begun_at = self.clock.now();
        let attempt = request.attempt();
        let done = self.invoke(request, &trace).instrument(log).await;
        if export::is_on() {
            let span = trace.leaf("invoker.invoke", begun_at.nanos(), trace.session());
            let span = span
                .lasting(begun_at.nanos(), self.clock.now().nanos())
                .with(attribute::ATTEMPT, attempt);
            export::record(match &done {
                Ok(_) => span,
                Err(error) => span.failing(error.name()),
            });
        }
        done
    }

    async fn invoke(&self, request: InvokeRequest, trace: &Trace) -> Result<InvokeReply, Error> {
        // An expiry that the agent computes from its stamps is compared with the state machine's time.
        let hlc = Hlc::new(self.clock.clone(), request.seen.max(request.asked_at));
        let announcer = Announcer {
            store: &self.store,
            hlc: &hlc,
            session: &request.session_id,
            writer: Writer::Invoker,
            expires_at: request.expires_at,
        };
        let about = About::Attempt(request.attempt());
        let kept = || kept::whole(&self.rules, &request.detail);
        let trigger = match Trigger::parse_or(&request.detail, self.rules.default_agent()) {
            Ok(trigger) => trigger,
            Err(refusal @ InvalidTrigger::TooLarge { .. }) => {
                return self
                    .reject(&announcer, &request, refusal.code(), &refusal.to_string())
                    .await;
            }
            Err(refusal) => {
                let error =
                    ErrorMessage::new("InvalidTrigger", refusal.code(), &refusal.to_string());
                let failed = Draft::new(EventStatus::AgentInvocationFailed, about);
                let failed = failed.with_error(Some(error)).with_detail(kept().into());
                announce(&announcer, failed).await;
                return Err(Error::InvalidTrigger(refusal));
            }
        };
        let admitted = admission::admit(&self.store, &self.rules, &request, &trigger).await?;
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(refusal) => {
                let outcome = match refusal {
                    Refusal::BreakerOpen { .. } => {
                        metrics::counter!(metric::BREAKER_OPEN, "agent" => trigger.agent)
                            .increment(1);
                        "breaker_open"
                    }
                    Refusal::Duplicate { .. } | Refusal::Repeat { .. } => "duplicate",
                    Refusal::Panicked(_) => "panicked",
                };
                metrics::counter!(metric::ADMISSIONS, "outcome" => outcome).increment(1);
                return self
                    .reject(&announcer, &request, refusal.code(), &refusal.to_string())
                    .await;
            }
        };
        metrics::counter!(metric::ADMISSIONS, "outcome" => "admitted").increment(1);
        let lease = Lease::unclaimed(request.supersedes, hlc.clock().wall());
        if let Err(error) = lease.create(&self.store, &request.session_id, request.expires_at).await
        {
            tracing::warn!(session_id = %request.session_id, %error, "The lease was not created.");
        }
        let mut detail = kept::named(&self.rules, &request.detail);
        detail.extend(admitted.map(|admitted| ("admitted".to_owned(), admitted)));
        let started = Draft::new(EventStatus::AgentInvocationStarted, about);
        announce(&announcer, started.with_detail(detail.into())).await;
        if let Some(halted) = self.halted(&announcer, &request, &trigger).await? {
            return Ok(halted);
        }
        let parent = trace.invocation(request.attempt());
        let asked = agent_request(&request, trigger, hlc.tick());
        let invoked = self.runtime.invoke(&asked, parent);
        let (called, ()) = join(invoked, self.log(&request.session_id)).await;
        self.conclude(&announcer, &request, &asked.trigger.agent, called).await
    }

    /// Adds the session's start to the log of sessions. If that fails, its verdict adds it.
    async fn log(&self, session: &SessionId) {
        if let Err(error) = self.store.log_session(session).await {
            tracing::warn!(session_id = %session, %error, "The session's start was not logged.");
        }
    }

    async fn conclude(
        &self,
        announcer: &Announcer<'_, S>,
        request: &InvokeRequest,
        agent: &str,
        called: Result<workflow::contract::AgentReply, CallError>,
    ) -> Result<InvokeReply, Error> {
        let about = About::Attempt(request.attempt());
        match called {
            Ok(reply) => {
                announcer.hlc.observe(reply.seen);
                let succeeded = Draft::new(EventStatus::AgentInvocationSucceeded, about)
                    .with_detail(json!({ "outcome": reply.outcome }));
                announce(announcer, succeeded).await;
                Ok(InvokeReply { outcome: reply.outcome, seen: announcer.hlc.newest() })
            }
            Err(CallError::NoCapacity { message }) => {
                self.without_capacity(announcer, request, agent, &message).await
            }
            Err(error) => {
                if let Some(seen) = error.seen() {
                    announcer.hlc.observe(seen);
                }
                if let Some(message) = error.message() {
                    let kept = kept::whole(&self.rules, &request.detail);
                    let failed = Draft::new(EventStatus::AgentInvocationFailed, about);
                    let failed = failed.with_error(Some(message)).with_detail(kept.into());
                    announce(announcer, failed).await;
                }
                Err(Error::from(error))
            }
        }
    }

    /// Ends and seals a rejected session, before any model or runtime cost. Its end step and its verdict keep what was
    /// rejected.
    async fn reject(
        &self,
        announcer: &Announcer<'_, S>,
        request: &InvokeRequest,
        code: &str,
        why: &str,
    ) -> Result<InvokeReply, Error> {
        let author = Author {
            session: request.session_id.clone(),
            runner: Runner::fresh(Writer::Invoker.as_str()),
            expires_at: request.expires_at,
        };
        let end = End {
            ending: Ending::Rejected,
            error: Some(ErrorMessage::new("Rejected", code, why)),
            category: Some("rejected".to_owned()),
            result: kept::whole(&self.rules, &request.detail).into(),
        };
        let step = end_session(&self.store, announcer.hlc, &author, &end).await?;
        seal(&self.store, announcer, &step).await?;
        Ok(InvokeReply { outcome: InvokeOutcome::Rejected, seen: announcer.hlc.newest() })
    }
}

fn agent_request(
    request: &InvokeRequest,
    trigger: Trigger,
    seen: journal::clock::Stamp,
) -> AgentRequest {
    AgentRequest {
        session_id: request.session_id.clone(),
        invocation_id: format!("{}/{}", request.session_id, request.attempt()),
        attempt: request.attempt(),
        supersedes: request.supersedes,
        trigger,
        expires_at: request.expires_at,
        seen,
    }
}

/// Announces an event, best effort: the invocation does not wait for an unavailable journal.
async fn announce<S: Store>(announcer: &Announcer<'_, S>, draft: Draft) {
    if let Err(error) = announcer.announce_within(&draft, ANNOUNCE_TIMEOUT).await {
        tracing::warn!(
            session_id = %announcer.session, event = %draft.status, %error,
            "An event was not written; the journal has a gap here."
        );
    }
}
