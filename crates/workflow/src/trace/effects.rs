//! Spans of effects, derived from a session's steps.

use std::collections::BTreeMap;

use journal::clock::Stamp;
use journal::step::{EffectKind, EffectRef, Step, StepBody, Usage};
use telemetry::attribute;
use telemetry::context::TraceParent;
use telemetry::span::{Kind, Span};

use super::Trace;

/// Numbers the attempts at each effect by the steps so far. An attempt that was interrupted by a crash
/// has the number of the attempt that replaces it, and so the same span.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    closed: BTreeMap<Key, u32>,
    intended: BTreeMap<Key, (EffectRef, Stamp, u32)>,
    asked: Option<(EffectRef, Stamp, u32)>,
}

type Key = (String, u32);

/// A finished attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    pub effect: EffectRef,
    /// The number of the attempt, from 1; an equal effect later in the session continues the count.
    pub number: u32,
    pub start: Stamp,
    /// When its end was recorded.
    pub end: Stamp,
    /// The claim's epoch.
    pub epoch: u32,
    /// The step that closed it.
    pub seq: u32,
    pub how: How,
}

#[derive(Clone, Debug, PartialEq)]
pub enum How {
    /// It has an outcome, with this usage.
    Brought(Usage),
    /// Its outcome is unknown.
    Lost,
    /// It was a question or a long sleep, closed by a writer of this kind.
    Answered(String),
    /// The session ended before the question was closed.
    Unanswered,
}

impl How {
    /// Whether it was a question. No runner sees it closed, so the sealer exports its span.
    pub fn is_question(&self) -> bool {
        matches!(self, Self::Answered(_) | Self::Unanswered)
    }
}

impl Effects {
    /// The number of the next attempt.
    pub fn next(&self, effect: &EffectRef) -> u32 {
        self.closed.get(&key(effect)).copied().unwrap_or(0) + 1
    }

    /// Adds a step and returns the attempts that it closed. A claim closes at-most-once calls whose
    /// outcome was lost.
    pub fn fold<P>(&mut self, step: &Step<P>) -> Vec<Attempt> {
        match &step.body {
            StepBody::Intent { effect, .. } => {
                self.intended.insert(key(effect), (effect.clone(), step.stamp, step.epoch));
                Vec::new()
            }
            StepBody::Outcome { effect, started_at, usage, .. } => {
                self.intended.remove(&key(effect));
                let how = How::Brought(*usage);
                vec![self.close(effect.clone(), *started_at, step, step.epoch, how)]
            }
            StepBody::Claim { .. } => std::mem::take(&mut self.intended)
                .into_values()
                .map(|(effect, start, epoch)| self.close(effect, start, step, epoch, How::Lost))
                .collect(),
            StepBody::Ask { effect, .. } => {
                self.asked = Some((effect.clone(), step.stamp, step.epoch));
                Vec::new()
            }
            StepBody::Answer { .. } => {
                let (kind, _) = step.runner.as_str().split_once(':').unwrap_or_default();
                self.close_question(step, How::Answered(kind.to_owned()))
            }
            StepBody::End { .. } => self.close_question(step, How::Unanswered),
            _ => Vec::new(),
        }
    }

    fn close_question<P>(&mut self, by: &Step<P>, how: How) -> Vec<Attempt> {
        let asked = self.asked.take();
        let closed = asked.map(|(effect, start, epoch)| self.close(effect, start, by, epoch, how));
        closed.into_iter().collect()
    }

    fn close<P>(
        &mut self,
        effect: EffectRef,
        start: Stamp,
        by: &Step<P>,
        epoch: u32,
        how: How,
    ) -> Attempt {
        let number = self.next(&effect);
        self.closed.insert(key(&effect), number);
        Attempt { effect, number, start, end: by.stamp, epoch, seq: by.seq, how }
    }
}

fn key(effect: &EffectRef) -> Key {
    (effect.digest.as_str().to_owned(), effect.call)
}

/// The identity of an attempt's span, known before the attempt starts.
pub fn context(trace: &Trace, effect: &EffectRef, number: u32) -> TraceParent {
    let digest = effect.digest.as_str();
    trace.derived(&format!("effect {digest} {} {number}", effect.call))
}

/// The span of an attempt, from its records. A question's parent is the session's span, because the
/// run that asked ends while the session waits.
pub fn span(trace: &Trace, attempt: &Attempt) -> Span {
    let Attempt { effect, number, start, end, epoch, seq, how } = attempt;
    let (name, kind) = match effect.kind {
        EffectKind::Chat => (attribute::CHAT, Kind::Client),
        EffectKind::Tools => (attribute::EXECUTE_TOOL, Kind::Client),
        EffectKind::Ask => ("ask", Kind::Internal),
        EffectKind::Sleep => ("sleep", Kind::Internal),
    };
    let parent = match how {
        How::Brought(_) | How::Lost => trace.run(*epoch),
        How::Answered(_) | How::Unanswered => trace.session(),
    };
    let span = Span::new(context(trace, effect, *number), Some(parent), name)
        .of_kind(kind)
        .lasting(start.nanos(), end.nanos())
        .with(attribute::SESSION_ID, trace.session.as_str())
        .with(attribute::OPERATION, name)
        .with(attribute::NODE, effect.node.as_str())
        .with(attribute::ATTEMPT, *number)
        .with(attribute::EPOCH, *epoch)
        .with(attribute::STEP, *seq);
    match how {
        How::Brought(usage) if effect.kind == EffectKind::Chat => span
            .with(attribute::INPUT_TOKENS, usage.input_tokens)
            .with(attribute::OUTPUT_TOKENS, usage.output_tokens),
        How::Brought(_) => span,
        How::Lost => span.failing("unknown"),
        How::Answered(by) => span.with(attribute::CLOSED_BY, by.as_str()),
        How::Unanswered => span.failing("unanswered"),
    }
}
