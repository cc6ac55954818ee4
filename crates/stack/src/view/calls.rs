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
use super::bounded::Asked;

/// Finds the tool call that an outcome answers, step by step.
///
/// It replays the session's own graph, on a thread with a time limit. If that graph is missing, has another version or
/// does not answer, it uses the calls of the newest reply, provided that their digest matches the recorded one.
pub struct Calls {
    agents: Arc<[Agent]>,
    replay: Option<Asked<RecordedStep, Option<ToolCall>>>,
    replied: Vec<ToolCall>,
}

impl Calls {
    /// Before the first step. `agents` are the known agents.
    pub fn new(agents: Arc<[Agent]>) -> Self {
        Self { agents, replay: None, replied: Vec::new() }
    }

    /// The call of the next step, if that is a tool's intent or outcome.
    pub fn of(&mut self, step: &RecordedStep) -> Option<ToolCall> {
        if step.seq == 1 {
            self.replay = self.start(step);
        }
        let replayed = self.replay.as_ref().map(|replay| replay.answer(step.clone()));
        if matches!(replayed, Some(None)) {
            self.replay = None;
        }
        let call = replayed.flatten().flatten().or_else(|| self.replied(step));
        if let StepBody::Outcome { payload, .. } = &step.body
            && let Ok(Brought::Reply(reply)) = serde_json::from_value(payload.clone())
        {
            self.replied = reply.calls;
        }
        call
    }

    fn start(&self, step: &RecordedStep) -> Option<Asked<RecordedStep, Option<ToolCall>>> {
        let StepBody::Claim { agent, graph_version, .. } = &step.body else { return None };
        let opening = Opening::of(step).ok()?;
        let agent = packs::named(&self.agents, agent)?.at(graph_version)?.clone();
        Asked::start(agent.name(), move || {
            let mut run = agent.start(&opening.input, &opening.settings).ok();
            move |step: RecordedStep| replay(&mut run, &step)
        })
    }

    fn replied(&self, step: &RecordedStep) -> Option<ToolCall> {
        let effect = step.body.effect().filter(|effect| effect.kind == EffectKind::Tools)?;
        let asked = digest::effect(&effect.node, &Effect::Tools(self.replied.clone()));
        let place = usize::try_from(effect.call).ok()?;
        self.replied.get(place).filter(|_| asked == effect.digest).cloned()
    }
}

/// The call of the next step of a run, which then follows it.
fn replay(run: &mut Option<Run>, step: &RecordedStep) -> Option<ToolCall> {
    let call = asked(run.as_ref()?, step);
    if run.as_mut().is_some_and(|run| run.fold(step).is_err()) {
        *run = None;
    }
    call
}

fn asked(run: &Run, step: &RecordedStep) -> Option<ToolCall> {
    let effect = step.body.effect()?;
    let Next::Perform(requests) = run.next() else { return None };
    requests.iter().find(|request| request.effect == *effect)?.call().cloned()
}
