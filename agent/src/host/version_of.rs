//! Chooses the version of an agent that a session goes on with.

use graph::agent::Agent;
use journal::announce::Announcer;
use journal::error_message::ErrorMessage;
use journal::event::{About, Draft, EventStatus};
use journal::step::Step;
use journal::store::Store;
use journal::version::{self, Missing};
use serde_json::{Value, json};
use workflow::contract::{AgentRequest, InvokeOutcome};

use super::{Declined, Host};

/// Most registered versions that an announcement of a missing one names.
const VERSIONS_NAMED_MAX: usize = 20;

impl<S: Store> Host<S> {
    /// The agent of a session: in the version that the session goes on with, or for a new session in the current
    /// one.
    pub(super) async fn agent(
        &self,
        request: &AgentRequest,
        steps: &[Step<Value>],
        announcer: &Announcer<'_, S>,
    ) -> Result<&Agent, Declined> {
        let (name, agents) = (&request.trigger.agent, &self.shared.config.agents);
        let agent = agents.iter().find(|agent| agent.name() == name);
        let (Some(newest), Some(needs)) = (steps.last(), version::of(steps)) else {
            return agent.ok_or_else(|| unknown_agent(name, agents));
        };
        if let Some(agent) = agent.and_then(|agent| agent.at(needs)) {
            return Ok(agent);
        }
        let registered = agent.into_iter().flat_map(Agent::versions).map(Agent::version);
        let missing = Missing {
            agent: name.clone(),
            needs: needs.to_owned(),
            registered: registered.take(VERSIONS_NAMED_MAX).map(str::to_owned).collect(),
            step: newest.seq,
        };
        // Durable before the reply: the poller waits for the version only if it reads this.
        let draft = Draft::new(EventStatus::AgentVersionMissing, About::Attempt(request.attempt));
        announcer.announce_once(&draft.with_detail(json!(missing))).await?;
        tracing::warn!(session_id = %request.session_id, agent = name, needs, "The session needs another graph version.");
        Err(Declined::As(InvokeOutcome::VersionMissing))
    }
}

fn unknown_agent(name: &str, agents: &[Agent]) -> Declined {
    let known: Vec<_> = agents.iter().map(Agent::name).collect();
    let message =
        format!("detail.agent: no agent is named `{name}`; known agents: {}", known.join(", "));
    Declined::Refused(ErrorMessage::new("InvalidTrigger", "UnknownAgent", &message))
}
