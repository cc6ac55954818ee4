//! A session for which the agent runtime has no place waits for one. Its lease says so, and since when: the poller
//! has it ask again, those that asked first before others.

use journal::announce::Announcer;
use journal::error_message::ErrorMessage;
use journal::event::{About, Draft, EventStatus};
use journal::lease::{Hold, Lease, WhyHeld, hold};
use journal::store::Store;
use serde_json::json;
use workflow::contract::{InvokeOutcome, InvokeReply, InvokeRequest};
use workflow::metric;

use crate::{Error, Invoker, announce};

impl<S: Store> Invoker<S> {
    /// The reply for a session that the runtime did not take. `why` is the runtime's answer.
    pub(crate) async fn without_capacity(
        &self,
        announcer: &Announcer<'_, S>,
        request: &InvokeRequest,
        agent: &str,
        why: &ErrorMessage,
    ) -> Result<InvokeReply, Error> {
        metrics::counter!(metric::INVOCATIONS_WITHOUT_CAPACITY).increment(1);
        let (session, epoch) = (announcer.session, request.supersedes);
        let before = Lease::read(&self.store, session).await?;
        let waits = |lease: &Lease| {
            lease.epoch == epoch && lease.hold().is_some_and(|it| it.why == WhyHeld::Capacity)
        };
        // It keeps its place: another ask is no later one.
        let since = before.filter(waits).map(|lease| lease.heartbeat_at);
        let since = since.unwrap_or_else(|| announcer.hlc.clock().wall());
        let held = Hold {
            why: WhyHeld::Capacity,
            agent: agent.to_owned(),
            invocation: Some(request.invocation),
        };
        let expires_at = request.expires_at;
        let outcome = if hold(&self.store, session, epoch, held, since, expires_at).await? {
            InvokeOutcome::Queued
        } else {
            // A runner of a later epoch holds the lease.
            InvokeOutcome::AlreadyRunning
        };
        let about = About::Attempt(request.attempt());
        let declined = Draft::new(EventStatus::AgentInvocationSucceeded, about);
        let detail = json!({ "outcome": outcome, "why": why.as_str() });
        announce(announcer, declined.with_detail(detail)).await;
        Ok(InvokeReply { outcome, seen: announcer.hlc.newest() })
    }
}
