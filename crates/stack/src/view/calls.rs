//! The tool call of each step.

use std::sync::Arc;

use graph::agent::{Agent, Opening};
use graph::digest;
use graph::effect::{Effect, ToolCall};
use graph::next::Next;
use graph::outcome::Brought;
use graph::run::Run;
use journal::step::{EffectKind, StepBody};

use super::RecordedStep;

/// Finds the tool call that an outcome answers, step by step.
///
/// It replays the session's own graph. If that graph is missing or has another version, it uses the
/// calls of the newest reply, provided that their digest matches the recorded one.
pub struct Calls {
    agents: Arc<[Agent]>,
    run: Option<Run>,
    replied: Vec<ToolCall>,
}

impl Calls {
    /// Before the first step. `agents` are the known agents.
    pub fn new(agents: Arc<[Agent]>) -> Self {
        Self { agents, run: None, replied: Vec::new() }
    }

    /// The call of the next step, if that is a tool's intent or outcome.
    pub fn of(&mut self, step: &RecordedStep) -> Option<ToolCall> {
        if step.seq == 1 {
            self.run = self.start(step);
        }
        let call = self.asked(step).or_else(|| self.replied(step));
        if self.run.as_mut().is_some_and(|run| run.fold(step).is_err()) {
            self.run = None;
        }
        if let StepBody::Outcome { payload, .. } = &step.body
            && let Ok(Brought::Reply(reply)) = serde_json::from_value(payload.clone())
        {
            self.replied = reply.calls;
        }
        call
    }

    fn start(&self, step: &RecordedStep) -> Option<Run> {
        let StepBody::Claim { agent, graph_version, .. } = &step.body else { return None };
        let opening = Opening::of(step).ok()?;
        let agent = packs::named(&self.agents, agent)?.at(graph_version)?;
        agent.start(&opening.input, &opening.settings).ok()
    }

    fn asked(&self, step: &RecordedStep) -> Option<ToolCall> {
        let effect = step.body.effect()?;
        let Next::Perform(requests) = self.run.as_ref()?.next() else { return None };
        requests.iter().find(|request| request.effect == *effect)?.call().cloned()
    }

    fn replied(&self, step: &RecordedStep) -> Option<ToolCall> {
        let effect = step.body.effect().filter(|effect| effect.kind == EffectKind::Tools)?;
        let asked = digest::effect(&effect.node, &Effect::Tools(self.replied.clone()));
        let place = usize::try_from(effect.call).ok()?;
        self.replied.get(place).filter(|_| asked == effect.digest).cloned()
    }
}
