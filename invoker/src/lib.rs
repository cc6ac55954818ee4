//! The Lambda that invokes the agent: it judges the trigger, admits the session, journals that it is
//! about to call, calls, and journals what came of it.
//!
//! [`Invoker::handle`] is the whole of it; [`admission`] says which sessions are paid for, [`runtime`]
//! makes the call and tells "refused" from "may
//! have been accepted", which is the difference that everything after it rests on.

use journal::announce::Announcer;
use journal::chain::{Author, End, end_session};
use journal::clock::{Clock, Hlc};
use journal::error_message::ErrorMessage;
use journal::event::{About, Draft, EventStatus, Writer};
use journal::id::Runner;
use journal::lease::Lease;
use journal::seal::seal;
use journal::step::Ending;
use journal::store::Store;
use serde_json::{Value, json};
use telemetry::{attribute, export};
use tracing::Instrument as _;
use workflow::admission::Limits;
use workflow::contract::{AgentRequest, InvokeOutcome, InvokeReply, InvokeRequest};
use workflow::limits::ANNOUNCE_PATIENCE;
use workflow::metric;
use workflow::trace::{self, Trace};
use workflow::trigger::{InvalidTrigger, Trigger};

pub mod admission;
pub mod config;
pub mod error;
pub mod runtime;

pub use error::Error;
pub use runtime::Runtime;

use admission::Refusal;
use runtime::CallError;

/// The invoker with all that it reaches.
#[derive(Clone, Debug)]
pub struct Invoker<S> {
    store: S,
    runtime: Runtime,
    clock: Clock,
    limits: Limits,
}

impl<S: Store> Invoker<S> {
    /// An invoker over a journal and an agent runtime.
    pub fn new(store: S, runtime: Runtime, clock: Clock) -> Self {
        Self { store, runtime, clock, limits: Limits::default() }
    }

    /// The same with other limits on admission.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Invokes the agent for a session. Safe to be called again with the same request.
    ///
    /// # Errors
    /// Each error is one that the state machine tells apart by [`Error::name`].
    pub async fn handle(&self, request: InvokeRequest) -> Result<InvokeReply, Error> {
        let remote = trace::of_detail(&request.detail);
        let trace = Trace::of(&request.session_id, remote.unwrap_or_default());
        let log = tracing::error_span!(
            "session", session_id = %request.session_id, trace_id = trace.id()
        );
        if let Err(error) = remote {
            // What was sent instead is the sender's, and no log's.
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
        let hlc = Hlc::new(self.clock.clone(), request.seen);
        let voice = Announcer {
            store: &self.store,
            hlc: &hlc,
            session: &request.session_id,
            writer: Writer::Invoker,
            expires_at: request.expires_at,
        };
        let about = About::Attempt(request.attempt());
        let trigger = match Trigger::parse(&request.detail) {
            Ok(trigger) => trigger,
            Err(refusal @ InvalidTrigger::TooLarge { .. }) => {
                return self.reject(&voice, &request, refusal.code(), &refusal.to_string()).await;
            }
            Err(refusal) => {
                let error =
                    ErrorMessage::new("InvalidTrigger", refusal.code(), &refusal.to_string());
                let failed = Draft::new(EventStatus::AgentInvocationFailed, about);
                tell(&voice, failed.with_error(Some(error))).await;
                return Err(Error::InvalidTrigger(refusal));
            }
        };
        let admitted = admission::admit(&self.store, self.limits, &request, &trigger).await?;
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(refusal) => {
                let outcome = match refusal {
                    Refusal::BreakerOpen { .. } => {
                        metrics::counter!(metric::BREAKER_OPEN, "agent" => trigger.agent)
                            .increment(1);
                        "breaker_open"
                    }
                    Refusal::Duplicate { .. } => "duplicate",
                };
                metrics::counter!(metric::ADMISSIONS, "outcome" => outcome).increment(1);
                return self.reject(&voice, &request, refusal.code(), &refusal.to_string()).await;
            }
        };
        metrics::counter!(metric::ADMISSIONS, "outcome" => "admitted").increment(1);
        let lease = Lease::unclaimed(request.supersedes, hlc.tick());
        if let Err(error) = lease.create(&self.store, &request.session_id, request.expires_at).await
        {
            tracing::warn!(session_id = %request.session_id, %error, "The lease was not created.");
        }
        let mut started = Draft::new(EventStatus::AgentInvocationStarted, about);
        if let Some(admitted) = admitted {
            started = started.with_detail(json!({ "admitted": admitted }));
        }
        tell(&voice, started).await;
        let parent = trace.invocation(request.attempt());
        let asked = agent_request(&request, trigger, hlc.tick());
        let called = self.runtime.invoke(&asked, parent).await;
        self.conclude(&voice, about, called).await
    }

    async fn conclude(
        &self,
        voice: &Announcer<'_, S>,
        about: About,
        called: Result<workflow::contract::AgentReply, CallError>,
    ) -> Result<InvokeReply, Error> {
        match called {
            Ok(reply) => {
                voice.hlc.observe(reply.seen);
                let succeeded = Draft::new(EventStatus::AgentInvocationSucceeded, about)
                    .with_detail(json!({ "outcome": reply.outcome }));
                tell(voice, succeeded).await;
                Ok(InvokeReply { outcome: reply.outcome, seen: voice.hlc.newest() })
            }
            Err(error) => {
                if let Some(seen) = error.seen() {
                    voice.hlc.observe(seen);
                }
                if let Some(message) = error.message() {
                    let failed = Draft::new(EventStatus::AgentInvocationFailed, about);
                    tell(voice, failed.with_error(Some(message))).await;
                }
                Err(Error::from(error))
            }
        }
    }

    /// Ends a session that is refused before anything is paid for. Its verdict is the invoker's.
    async fn reject(
        &self,
        voice: &Announcer<'_, S>,
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
            result: Value::Null,
        };
        let step = end_session(&self.store, voice.hlc, &author, &end).await?;
        seal(&self.store, voice, &step).await?;
        Ok(InvokeReply { outcome: InvokeOutcome::Rejected, seen: voice.hlc.newest() })
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

/// Announces as well as it can: the invocation does not wait for a journal that is out of reach.
async fn tell<S: Store>(voice: &Announcer<'_, S>, draft: Draft) {
    if let Err(error) = voice.announce_within(&draft, ANNOUNCE_PATIENCE).await {
        tracing::warn!(
            session_id = %voice.session, event = %draft.status, %error,
            "An event was not written; the journal has a gap here."
        );
    }
}
