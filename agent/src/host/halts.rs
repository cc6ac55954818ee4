//! Declines the sessions of a halted agent.

use graph::agent::Agent;
use journal::clock::Hlc;
use journal::halt::Halts;
use journal::lease::{Hold, WhyHeld, hold};
use journal::store::Store;
use workflow::contract::{AgentRequest, InvokeOutcome, InvokeRequest};

use super::{Declined, Host};

impl<S: Store> Host<S> {
    /// A session of a halted agent is not claimed. It waits until the halt ends.
    pub(super) async fn decline_if_halted(
        &self,
        request: &AgentRequest,
        agent: &Agent,
        hlc: &Hlc,
    ) -> Result<(), Declined> {
        let store = &self.shared.store;
        if !Halts::read(store).await?.covers(agent.name()) {
            return Ok(());
        }
        let held = Hold {
            why: WhyHeld::Halted,
            agent: agent.name().to_owned(),
            invocation: Some(InvokeRequest::invocation_of(request.attempt)),
        };
        let (session, epoch) = (&request.session_id, request.supersedes);
        hold(store, session, epoch, held, hlc.clock().wall(), request.expires_at).await?;
        tracing::info!(session_id = %session, agent = agent.name(), "The agent is halted; the session waits.");
        Err(Declined::As(InvokeOutcome::Halted))
    }
}
