//! The spans of effects: what was done under the claims, as the steps tell it.

use std::collections::BTreeMap;

use journal::clock::Stamp;
use journal::step::{EffectKind, EffectRef, Step, StepBody, Usage};
use telemetry::attribute;
use telemetry::context::TraceParent;
use telemetry::span::{Kind, Span};

use super::Trace;

/// Numbers each attempt at an effect, by the steps so far. An attempt that was under way when its
/// process died has the number of the one that takes its place, and so the same span.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    closed: BTreeMap<Key, u32>,
    intended: BTreeMap<Key, (EffectRef, Stamp, u32)>,
}

type Key = (String, u32);

/// An attempt that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// The effect.
    pub effect: EffectRef,
    /// Which attempt, from 1; more than 1 as well where an effect comes again.
    pub number: u32,
    /// When it was begun.
    pub start: Stamp,
    /// When it was known to be over.
    pub end: Stamp,
    /// The claim that it was made under.
    pub epoch: u32,
    /// The step that closed it.
    pub seq: u32,
    /// What it cost; `None` if nobody knows what it brought.
    pub usage: Option<Usage>,
}

impl Effects {
    /// The number of the attempt that is made next.
    pub fn next(&self, effect: &EffectRef) -> u32 {
        self.closed.get(&key(effect)).copied().unwrap_or(0) + 1
    }

    /// Takes one step more; tells which attempts it closed. A claim closes what was begun on the
    /// condition that it is done once, and whose outcome was lost.
    pub fn fold<P>(&mut self, step: &Step<P>) -> Vec<Attempt> {
        match &step.body {
            StepBody::Intent { effect, .. } => {
                self.intended.insert(key(effect), (effect.clone(), step.stamp, step.epoch));
                Vec::new()
            }
            StepBody::Outcome { effect, started_at, usage, .. } => {
                self.intended.remove(&key(effect));
                vec![self.close(effect.clone(), *started_at, step, step.epoch, Some(*usage))]
            }
            StepBody::Claim { .. } => std::mem::take(&mut self.intended)
                .into_values()
                .map(|(effect, start, epoch)| self.close(effect, start, step, epoch, None))
                .collect(),
            _ => Vec::new(),
        }
    }

    fn close<P>(
        &mut self,
        effect: EffectRef,
        start: Stamp,
        by: &Step<P>,
        epoch: u32,
        usage: Option<Usage>,
    ) -> Attempt {
        let number = self.next(&effect);
        self.closed.insert(key(&effect), number);
        Attempt { effect, number, start, end: by.stamp, epoch, seq: by.seq, usage }
    }
}

fn key(effect: &EffectRef) -> Key {
    (effect.digest.as_str().to_owned(), effect.call)
}

/// The identity of an attempt's span, known before the attempt is made.
pub fn context(trace: &Trace, effect: &EffectRef, number: u32) -> TraceParent {
    let digest = effect.digest.as_str();
    trace.derived(&format!("effect {digest} {} {number}", effect.call))
}

/// The span of an attempt, with what the journal knows of it.
pub fn span(trace: &Trace, attempt: &Attempt) -> Span {
    let Attempt { effect, number, start, end, epoch, seq, usage } = attempt;
    let (name, kind) = match effect.kind {
        EffectKind::Chat => (attribute::CHAT, Kind::Client),
        EffectKind::Tools => (attribute::EXECUTE_TOOL, Kind::Client),
        EffectKind::Ask => ("ask", Kind::Internal),
        EffectKind::Sleep => ("sleep", Kind::Internal),
    };
    let span = Span::new(context(trace, effect, *number), Some(trace.run(*epoch)), name)
        .of_kind(kind)
        .lasting(start.nanos(), end.nanos())
        .with(attribute::SESSION_ID, trace.session.as_str())
        .with(attribute::OPERATION, name)
        .with(attribute::NODE, effect.node.as_str())
        .with(attribute::ATTEMPT, *number)
        .with(attribute::EPOCH, *epoch)
        .with(attribute::STEP, *seq);
    match usage {
        Some(usage) if effect.kind == EffectKind::Chat => span
            .with(attribute::INPUT_TOKENS, usage.input_tokens)
            .with(attribute::OUTPUT_TOKENS, usage.output_tokens),
        Some(_) => span,
        None => span.failing("unknown"),
    }
}
