//! A halted agent is not invoked, which would start a process for nothing.

use journal::announce::Announcer;
use journal::event::{About, Draft, EventStatus};
use journal::halt::{Halt, Halts};
use journal::lease::{Hold, WhyHeld, hold};
use journal::store::Store;
use serde_json::json;
use workflow::contract::{InvokeOutcome, InvokeReply, InvokeRequest};
use workflow::trigger::Trigger;

use crate::{Error, Invoker, announce};

impl<S: Store> Invoker<S> {
    /// The reply for a session whose agent is halted. The session's journal says who halted it and why.
    pub(crate) async fn halted(
        &self,
        announcer: &Announcer<'_, S>,
        request: &InvokeRequest,
        trigger: &Trigger,
    ) -> Result<Option<InvokeReply>, Error> {
        let halts = Halts::read(&self.store).await?;
        let of_agent: Vec<&Halt> = halts.of(&trigger.agent).collect();
        if of_agent.is_empty() {
            return Ok(None);
        }
        let held = Hold {
            why: WhyHeld::Halted,
            agent: trigger.agent.clone(),
            invocation: Some(request.invocation),
        };
        let (session, at) = (announcer.session, announcer.hlc.clock().wall());
        hold(&self.store, session, request.supersedes, held, at, request.expires_at).await?;
        self.log(session).await;
        let outcome = InvokeOutcome::Halted;
        let about = About::Attempt(request.attempt());
        let declined = Draft::new(EventStatus::AgentInvocationSucceeded, about);
        let detail = json!({ "outcome": outcome, "halts": of_agent });
        announce(announcer, declined.with_detail(detail)).await;
        Ok(Some(InvokeReply { outcome, seen: announcer.hlc.newest() }))
    }
}
