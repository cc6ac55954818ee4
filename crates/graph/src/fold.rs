//! Folds steps into a run.

use journal::clock::Stamp;
use journal::step::{AnsweredBy, EffectKind, EffectRef, Step, StepBody, Usage};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::budget::{Crossed, Limit};
use crate::definition::{Route, Scope};
use crate::digest;
use crate::effect::Author;
use crate::error::{Divergence, FoldError};
use crate::next::{NOTE_BUDGET, NOTE_FALLBACK};
use crate::open::{About, Asked, CallState, CallWork, Open, Pending};
use crate::outcome::{Brought, OutcomeBody, ToolOutcome};
use crate::question::{Answer, Decision, Question};
use crate::run::{Approval, Phase, Run};

impl Run {
    /// Folds the next step: a new one when it has been journaled, an old one when a session is
    /// resumed.
    ///
    /// # Errors
    /// The step has the wrong number, or is not possible here. After any error but
    /// [`FoldError::OutOfSequence`] end the session with [`FoldError::finish`].
    pub fn fold(&mut self, step: &Step<Value>) -> Result<(), FoldError> {
        let expected = self.core.seq + 1;
        if step.seq != expected {
            return Err(FoldError::OutOfSequence { expected, found: step.seq });
        }
        self.admit(step)?;
        self.core.seq = step.seq;
        self.core.now = step.stamp;
        // First, because the next effect is judged by all that the session holds.
        self.sources.fold(step);
        if let Phase::Program(_) = &self.phase {
            return self.fold_program(step);
        }
        match &step.body {
            StepBody::Claim { agent, graph_version, .. } => self.claim(step, agent, graph_version),
            StepBody::Intent { effect, .. } => self.intent(step, effect),
            StepBody::Outcome { effect, started_at, usage, payload, .. } => {
                let brought = read(step, payload)?;
                self.outcome(step, effect, *started_at, *usage, brought)
            }
            StepBody::Ask { effect, expires_at, payload } => {
                self.asked(step, effect, *expires_at, payload)
            }
            StepBody::Answer { question, payload, .. } => self.answer(step, *question, payload),
            StepBody::Note { subject, payload, .. } => self.note(step, subject, payload),
            StepBody::End { .. } => {
                self.phase = Phase::Closed;
                Ok(())
            }
        }
    }

    /// Checks which kinds are possible in a phase: nothing after the end, only an answer or an end
    /// after a question, only a claim or an end at the start.
    fn admit(&self, step: &Step<Value>) -> Result<(), FoldError> {
        let unexpected = |why| Err(unexpected(step, why));
        match (&self.phase, &step.body) {
            (Phase::Closed, _) => unexpected("the session has ended"),
            (_, StepBody::End { .. }) | (Phase::Unclaimed, StepBody::Claim { .. }) => Ok(()),
            (Phase::Unclaimed, _) => unexpected("the session is not claimed"),
            (Phase::Open(Open { asked: Some(_), .. }), StepBody::Answer { .. }) => Ok(()),
            (Phase::Open(Open { asked: Some(_), .. }), _) => unexpected("a question is open"),
            (Phase::Program(_), _) => Ok(()),
            (_, StepBody::Answer { .. }) => unexpected("no question is open"),
            _ => Ok(()),
        }
    }

    fn claim(&mut self, step: &Step<Value>, agent: &str, version: &str) -> Result<(), FoldError> {
        self.same_agent(step, agent)?;
        version.clone_into(&mut self.core.recorded_version);
        self.core.meter.start_clock(step.stamp);
        let by_model = self.model().is_some();
        match &mut self.phase {
            Phase::Unclaimed if self.sheet.hosted.is_some() => {
                self.phase = Phase::Program(Box::default());
                return self.fold_program(step);
            }
            Phase::Unclaimed => {
                self.go(Route::To(self.sheet.start));
            }
            Phase::Open(Open { pending: Pending::Chat(work), .. }) if by_model => {
                let lost = work.chat.tokens_max();
                work.unsettled_tokens = work.unsettled_tokens.saturating_add(lost);
                self.core.meter.chat(true);
                self.core.meter.charge(Usage { unsettled_tokens: lost, ..Usage::default() });
            }
            Phase::Open(Open { pending: Pending::Tools(calls), .. }) => {
                for work in calls.iter_mut() {
                    if matches!(work.state, CallState::Intended) {
                        let reason = "the process that was about to make it was lost";
                        work.state = CallState::Doubtful(reason.to_owned());
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn same_agent(&self, step: &Step<Value>, agent: &str) -> Result<(), FoldError> {
        if agent == self.sheet.name {
            return Ok(());
        }
        let reason = format!("claim by agent `{agent}`, expected `{}`", self.sheet.name);
        Err(malformed(step, reason))
    }

    /// The limit that a note says was reached.
    pub(crate) fn crossed(
        &self,
        step: &Step<Value>,
        payload: &Value,
    ) -> Result<Crossed, FoldError> {
        let Crossing { limit, used, allowed } = read(step, payload)?;
        let node = payload["node"].as_str().unwrap_or_default().to_owned();
        Ok(Crossed { limit, used, allowed, node, seq: step.seq, at: step.stamp })
    }

    fn intent(&mut self, step: &Step<Value>, effect: &EffectRef) -> Result<(), FoldError> {
        self.check(step, effect, |open| open.reference(place(effect)))?;
        self.core.meter.run_clock(step.stamp);
        let work = self.call(step, effect)?;
        match work.state {
            CallState::Ready { .. } if work.at_most_once => {
                work.state = CallState::Intended;
                Ok(())
            }
            _ => Err(unexpected(step, "the call is not pending")),
        }
    }

    fn outcome(
        &mut self,
        step: &Step<Value>,
        effect: &EffectRef,
        started_at: Stamp,
        usage: Usage,
        brought: Brought,
    ) -> Result<(), FoldError> {
        self.check(step, effect, |open| open.reference(place(effect)))?;
        if effect.kind == EffectKind::Sleep {
            self.core.meter.start_clock(step.stamp);
        } else {
            self.core.meter.run_clock(step.stamp);
        }
        match (effect.kind, brought) {
            (EffectKind::Chat, Brought::Reply(reply)) => {
                self.settle_chat(usage);
                let author = match &reply.by {
                    Author::Policy => AnsweredBy::Policy,
                    Author::Model(_) => AnsweredBy::Model,
                };
                self.core.answered_by = Some(AnsweredBy::and(self.core.answered_by, author));
                self.complete(OutcomeBody::Reply(reply));
            }
            (EffectKind::Chat, Brought::Failure(failure)) => {
                self.settle_chat(usage);
                if let Phase::Open(Open { pending: Pending::Chat(work), .. }) = &mut self.phase {
                    work.fail(failure, step.stamp);
                }
            }
            (EffectKind::Tools, brought) => {
                let Some(outcome) = tool_outcome(brought) else {
                    return Err(malformed(step, "not the outcome of a tool call".to_owned()));
                };
                self.core.meter.charge(usage);
                self.tool_outcome(step, effect, started_at, outcome)?;
            }
            (EffectKind::Sleep, Brought::Woke {}) => self.complete(OutcomeBody::Woke),
            (kind, _) => {
                return Err(malformed(step, format!("not the outcome of a {}", kind.as_str())));
            }
        }
        Ok(())
    }

    fn settle_chat(&mut self, usage: Usage) {
        let with_model = self.model().is_some();
        if let Phase::Open(Open { pending: Pending::Chat(work), .. }) = &mut self.phase {
            let unsettled_tokens = std::mem::take(&mut work.unsettled_tokens);
            self.core.meter.settle(unsettled_tokens);
        }
        self.core.meter.chat(with_model);
        self.core.meter.charge(usage);
    }

    fn tool_outcome(
        &mut self,
        step: &Step<Value>,
        effect: &EffectRef,
        started_at: Stamp,
        outcome: ToolOutcome,
    ) -> Result<(), FoldError> {
        let attempts = self.sheet.attempts.tool;
        let work = self.call(step, effect)?;
        match work.state {
            CallState::Ready { .. } if work.at_most_once => {
                return Err(unexpected(step, "the call's intent was not journaled"));
            }
            CallState::Ready { .. } | CallState::Intended => {}
            _ => return Err(unexpected(step, "the call was not pending")),
        }
        let result = work.result_in(step, started_at, outcome);
        work.take(result.clone(), attempts);
        self.core.heed(&result);
        self.complete_tools();
        Ok(())
    }

    fn asked(
        &mut self,
        step: &Step<Value>,
        effect: &EffectRef,
        expires_at: Stamp,
        payload: &Value,
    ) -> Result<(), FoldError> {
        let Some((about, _)) = self.open().and_then(Open::question) else {
            return Err(self.diverged(
                step,
                effect,
                self.open().and_then(|open| open.reference(0)),
            ));
        };
        self.check(step, effect, |open| Some(open.question_reference(about)))?;
        self.core.meter.run_clock(step.stamp);
        self.core.meter.stop_clock();
        // The person reads the journaled wording, whatever this version would ask.
        let question: Question = read(step, &payload["question"])?;
        if let Phase::Open(open) = &mut self.phase {
            let digests = digest::recorded_question(step.seq, &payload["question"]);
            open.asked = Some(Asked { seq: step.seq, expires_at, about, question, digests });
        }
        Ok(())
    }

    fn answer(&mut self, step: &Step<Value>, id: u32, payload: &Value) -> Result<(), FoldError> {
        // The step names the question; the payload of an expiry need not.
        let answer = Answer { question_id: id, ..read(step, payload)? };
        let Phase::Open(open) = &mut self.phase else { return Ok(()) };
        let Some(asked) = open.asked.take() else { return Ok(()) };
        if id != asked.seq {
            return Err(malformed(step, format!("question {} is open", asked.seq)));
        }
        if answer.decision != Decision::Expired {
            let checked = asked.question.check_recorded(&answer);
            checked.map_err(|error| malformed(step, error.to_string()))?;
            if answer
                .digest
                .as_deref()
                .is_some_and(|shown| !asked.digests.iter().any(|it| it.as_str() == shown))
            {
                return Err(malformed(
                    step,
                    "the answer is to a question with another digest".into(),
                ));
            }
        }
        self.core.meter.start_clock(step.stamp);
        match (asked.about, &mut open.pending) {
            (About::Approval(index) | About::Doubt(index), Pending::Tools(calls)) => {
                if let Some(work) = calls.get_mut(index) {
                    work.decide(&asked.question, &answer, step.seq, step.stamp);
                }
                self.complete_tools();
            }
            (About::Sleep, _) => self.complete(OutcomeBody::Woke),
            _ => {
                let schema = asked.question.tool_schema.clone();
                let allowed = asked.question.allowed(&answer);
                let approval =
                    allowed.map(|call| Approval { call: call.as_str().to_owned(), schema });
                self.core.approvals.extend(approval);
                if self.sheet.scope == Scope::Turn && asked.question.tool.is_none() {
                    self.core.meter.new_turn();
                }
                self.complete(OutcomeBody::Answer(answer));
            }
        }
        Ok(())
    }

    /// A note is a decision: it counts even if this version's budget would not require it. A note
    /// that the graph requested lets it continue; notes on other subjects have no effect.
    fn note(
        &mut self,
        step: &Step<Value>,
        subject: &str,
        payload: &Value,
    ) -> Result<(), FoldError> {
        self.core.meter.run_clock(step.stamp);
        match subject {
            NOTE_FALLBACK => {
                self.core.fallback = true;
                if let Phase::Open(Open { pending: Pending::Chat(work), .. }) = &mut self.phase {
                    work.failure = None;
                }
            }
            NOTE_BUDGET => {
                let crossing: Crossing = read(step, payload)?;
                let Phase::Open(open) = &self.phase else {
                    return Err(unexpected(step, "no effect is open"));
                };
                if let Pending::Chat(work) = &open.pending {
                    self.core.left_tokens =
                        self.core.left_tokens.saturating_add(work.unsettled_tokens);
                }
                self.core.meter.cross(crossing.limit);
                let route = self.program.on_limit(Crossed {
                    limit: crossing.limit,
                    used: crossing.used,
                    allowed: crossing.allowed,
                    node: open.node.clone(),
                    seq: step.seq,
                    at: step.stamp,
                });
                self.go(route.unwrap_or_else(|panicked| Route::End(panicked.finish())));
            }
            _ => {
                let is_asked_for = self.open().is_some_and(|open| {
                    matches!(&open.pending, Pending::Note { subject: asked, .. } if asked == subject)
                });
                if is_asked_for {
                    self.complete(OutcomeBody::Nothing);
                }
            }
        }
        Ok(())
    }

    /// The call of a step. A journaled call was permitted when it was made: a rule about origins that has
    /// changed since does not undo it.
    fn call(&mut self, step: &Step<Value>, effect: &EffectRef) -> Result<&mut CallWork, FoldError> {
        let critical = &self.critical;
        match &mut self.phase {
            Phase::Open(Open { pending: Pending::Tools(calls), .. }) => {
                let work = calls.get_mut(place(effect));
                let work = work
                    .ok_or_else(|| malformed(step, format!("there is no call {}", effect.call)))?;
                if work.state == CallState::Unapproved && !work.call.is_in(critical) {
                    work.state = CallState::Ready { not_before: None };
                    work.at_most_once &= matches!(step.body, StepBody::Intent { .. });
                }
                Ok(work)
            }
            _ => Err(unexpected(step, "no tool call is open")),
        }
    }

    fn check(
        &self,
        step: &Step<Value>,
        recorded: &EffectRef,
        asked: impl Fn(&Open) -> Option<EffectRef>,
    ) -> Result<(), FoldError> {
        let asked = self.open().and_then(asked);
        if asked.as_ref() == Some(recorded) {
            return Ok(());
        }
        Err(self.diverged(step, recorded, asked))
    }

    fn diverged(
        &self,
        step: &Step<Value>,
        recorded: &EffectRef,
        asked: Option<EffectRef>,
    ) -> FoldError {
        FoldError::Diverged(Box::new(Divergence {
            seq: step.seq,
            recorded: recorded.clone(),
            recorded_version: self.core.recorded_version.clone(),
            asked,
            asked_version: self.sheet.version.to_owned(),
        }))
    }
}

#[derive(Deserialize)]
struct Crossing {
    limit: Limit,
    used: u64,
    allowed: u64,
}

pub(crate) fn tool_outcome(brought: Brought) -> Option<ToolOutcome> {
    match brought {
        Brought::Ok(content) => Some(ToolOutcome::Ok(content)),
        Brought::Error(text) => Some(ToolOutcome::Error(text)),
        Brought::Failure(failure) => Some(ToolOutcome::Failed(failure)),
        Brought::Reply(_) | Brought::Woke {} => None,
    }
}

fn place(effect: &EffectRef) -> usize {
    usize::try_from(effect.call).unwrap_or(usize::MAX)
}

pub(crate) fn read<T: DeserializeOwned>(
    step: &Step<Value>,
    payload: &Value,
) -> Result<T, FoldError> {
    serde_json::from_value(payload.clone()).map_err(|error| malformed(step, error.to_string()))
}

pub(crate) fn malformed(step: &Step<Value>, reason: String) -> FoldError {
    FoldError::Malformed { seq: step.seq, reason }
}

pub(crate) fn unexpected(step: &Step<Value>, why: &'static str) -> FoldError {
    FoldError::Unexpected { seq: step.seq, kind: step.body.kind(), why }
}
