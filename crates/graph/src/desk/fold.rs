//! Folds the steps of a program's effects.

use journal::clock::Stamp;
use journal::item::Hash;
use journal::step::{AnsweredBy, EffectKind, EffectRef, Step, StepBody};
use serde_json::Value;

use super::{Pending, Task};
use crate::digest;
use crate::effect::{Author, Chat, Reply};
use crate::error::{Divergence, FoldError};
use crate::fold::{malformed, read, tool_outcome, unexpected};
use crate::next::{NOTE_BUDGET, NOTE_FALLBACK};
use crate::open::{About, Asked as Shown, CallState, CallWork};
use crate::outcome::{Brought, ToolOutcome};
use crate::program::{Given, NOTE_PROGRAM};
use crate::question::{Answer, Decision, Question};
use crate::run::{Approval, Phase, Run};
use crate::schema::Schema;

impl Run {
    /// Folds a step that is journaled. The phase is [`Phase::Program`].
    pub(crate) fn fold_program(&mut self, step: &Step<Value>) -> Result<(), FoldError> {
        let is_closing = matches!(step.body, StepBody::Answer { .. } | StepBody::End { .. });
        if !is_closing && self.desk().is_some_and(|desk| desk.shown.is_some()) {
            return Err(unexpected(step, "a question is open"));
        }
        match &step.body {
            StepBody::Claim { agent, graph_version, input, .. } => {
                self.same_agent(step, agent)?;
                graph_version.clone_into(&mut self.core.recorded_version);
                self.core.meter.start_clock(step.stamp);
                if let Some(desk) = self.desk_mut() {
                    desk.claimed(step, input.as_ref());
                }
                return Ok(());
            }
            StepBody::End { .. } => {
                self.phase = Phase::Closed;
                return Ok(());
            }
            StepBody::Ask { effect, expires_at, payload } => {
                self.core.meter.run_clock(step.stamp);
                self.core.meter.stop_clock();
                let question: Question = read(step, &payload["question"])?;
                let digests = digest::recorded_question(step.seq, &payload["question"]);
                let about = about(payload);
                let shown =
                    Shown { seq: step.seq, expires_at: *expires_at, about, question, digests };
                if let Some(desk) = self.desk_mut() {
                    desk.shown = Some((effect.call, shown));
                }
            }
            StepBody::Answer { .. } => self.core.meter.start_clock(step.stamp),
            StepBody::Outcome { effect, .. } if effect.kind == EffectKind::Sleep => {
                self.core.meter.start_clock(step.stamp);
            }
            _ => self.core.meter.run_clock(step.stamp),
        }
        if let StepBody::Note { subject, payload, .. } = &step.body
            && subject == NOTE_BUDGET
        {
            let crossed = self.crossed(step, payload)?;
            self.core.meter.cross(crossed.limit);
            self.phase = Phase::Over(crossed.finish());
            return Ok(());
        }
        let ordinal = self.ordinal(step)?;
        self.count(step)?;
        let Some(desk) = self.desk_mut() else { return Ok(()) };
        desk.lost_claims = 0;
        desk.after_answer = matches!(step.body, StepBody::Answer { .. });
        match ordinal {
            Some(ordinal) => self.route(ordinal, step),
            None => Ok(()),
        }
    }

    /// Applies a step to its effect, or keeps it until the program asks for that.
    fn route(&mut self, ordinal: u32, step: &Step<Value>) -> Result<(), FoldError> {
        let Some(desk) = self.desk_mut() else { return Ok(()) };
        if ordinal > desk.newest {
            desk.recorded.entry(ordinal).or_default().push(step.clone());
            return Ok(());
        }
        let Some(mut task) = desk.open.remove(&ordinal) else {
            return Err(unexpected(step, "its effect is not open"));
        };
        if let Some(other) = reference(step).filter(|other| *other != task.effect) {
            let (recorded_version, asked_version) =
                (self.core.recorded_version.clone(), self.sheet.version.to_owned());
            let asked = Some(task.effect);
            let divergence = Divergence {
                seq: step.seq,
                recorded: other,
                recorded_version,
                asked,
                asked_version,
            };
            return Err(FoldError::Diverged(Box::new(divergence)));
        }
        if !self.apply(ordinal, &mut task, step) {
            self.keep(ordinal, task);
        }
        Ok(())
    }

    /// The effect that a step is about.
    fn ordinal(&mut self, step: &Step<Value>) -> Result<Option<u32>, FoldError> {
        let is_fallback = |subject: &str| subject == NOTE_FALLBACK;
        match &step.body {
            StepBody::Answer { question, payload, .. } => {
                let shown = self.desk_mut().and_then(|desk| desk.shown.take());
                let Some((ordinal, shown)) = shown else {
                    return Err(unexpected(step, "no question is open"));
                };
                checked(step, *question, payload, &shown)?;
                Ok(Some(ordinal))
            }
            StepBody::Note { subject, payload, .. } if subject == NOTE_PROGRAM => {
                let ordinal = payload["ordinal"].as_u64().and_then(|it| u32::try_from(it).ok());
                ordinal.map(Some).ok_or_else(|| malformed(step, "no `ordinal`".to_owned()))
            }
            StepBody::Note { subject, .. } if is_fallback(subject) => {
                self.core.fallback = true;
                if let Some(desk) = self.desk_mut() {
                    desk.fell_back(step);
                }
                Ok(None)
            }
            body => Ok(body.effect().map(|effect| effect.call)),
        }
    }

    /// Counts what an outcome used. An outcome that cannot be read is an error: its effect must not be performed again.
    fn count(&mut self, step: &Step<Value>) -> Result<(), FoldError> {
        let StepBody::Outcome { effect, usage, payload, .. } = &step.body else { return Ok(()) };
        let brought: Brought = read(step, payload)?;
        let fits = match effect.kind {
            EffectKind::Chat => matches!(brought, Brought::Reply(_) | Brought::Failure(_)),
            EffectKind::Sleep => brought == Brought::Woke {},
            EffectKind::Tools => tool_outcome(brought.clone()).is_some(),
            EffectKind::Ask => false,
        };
        if !fits {
            return Err(malformed(step, format!("not the outcome of a {}", effect.kind.as_str())));
        }
        if effect.kind == EffectKind::Chat {
            let with_model = self.model().is_some();
            let unsettled = self.desk_mut().and_then(|desk| desk.open.get_mut(&effect.call));
            if let Some(Task { pending: Pending::Chat { work, .. }, .. }) = unsettled {
                let tokens = std::mem::take(&mut work.unsettled_tokens);
                self.core.meter.settle(tokens);
            }
            self.core.meter.chat(with_model);
            if let Brought::Reply(reply) = brought {
                let author = match &reply.by {
                    Author::Policy => AnsweredBy::Policy,
                    Author::Model(_) => AnsweredBy::Model,
                };
                self.core.answered_by = Some(AnsweredBy::and(self.core.answered_by, author));
            }
        }
        self.core.meter.charge(*usage);
        Ok(())
    }

    /// Applies a step to an effect. Returns whether that has its outcome now.
    pub(super) fn apply(&mut self, ordinal: u32, task: &mut Task, step: &Step<Value>) -> bool {
        let given = match &step.body {
            StepBody::Intent { .. } | StepBody::Claim { .. } => {
                task.intended(matches!(step.body, StepBody::Claim { .. }));
                None
            }
            StepBody::Outcome { started_at, payload, .. } => {
                serde_json::from_value(payload.clone())
                    .ok()
                    .and_then(|brought| self.brought(task, step, *started_at, brought))
            }
            StepBody::Ask { payload, .. } => {
                let question = serde_json::from_value(payload["question"].clone()).ok();
                task.question = question.map(|question| (about(payload), question));
                None
            }
            StepBody::Answer { question, payload, .. } => {
                serde_json::from_value::<Answer>(payload.clone()).ok().and_then(|answer| {
                    self.answered(task, step, Answer { question_id: *question, ..answer })
                })
            }
            StepBody::Note { subject, .. } if subject == NOTE_PROGRAM => {
                Some(Given::Value(Value::Null))
            }
            StepBody::Note { .. } => {
                if let Pending::Chat { work, .. } = &mut task.pending {
                    work.failure = None;
                }
                None
            }
            StepBody::End { .. } => None,
        };
        let Some(given) = given else { return false };
        if let Some(desk) = self.desk_mut() {
            desk.steps.insert(ordinal, step.seq);
            desk.answer(ordinal, given);
        }
        true
    }

    fn brought(
        &mut self,
        task: &mut Task,
        step: &Step<Value>,
        started_at: Stamp,
        brought: Brought,
    ) -> Option<Given> {
        let attempts = self.sheet.attempts.tool;
        match (&mut task.pending, brought) {
            (Pending::Chat { work, .. }, Brought::Reply(reply)) => {
                Some(given_reply(&work.chat, reply))
            }
            (Pending::Chat { work, .. }, Brought::Failure(failure)) => {
                work.fail(failure, step.stamp);
                None
            }
            (Pending::Sleep { .. }, _) => Some(Given::Value(Value::Null)),
            (Pending::Probe(_), Brought::Ok(value)) => Some(Given::Value(value)),
            (Pending::Call { work, is_step }, brought) => {
                let result = work.result_in(step, started_at, tool_outcome(brought)?);
                work.take(result.clone(), attempts);
                if !*is_step {
                    self.core.heed(&result);
                }
                given_result(work, *is_step)
            }
            _ => None,
        }
    }

    fn answered(&mut self, task: &mut Task, step: &Step<Value>, answer: Answer) -> Option<Given> {
        let (_, question) = task.question.clone()?;
        match &mut task.pending {
            Pending::Call { work, is_step } => {
                work.decide(&question, &answer, step.seq, step.stamp);
                given_result(work, *is_step)
            }
            Pending::Sleep { .. } => Some(Given::Value(Value::Null)),
            Pending::Ask { .. } => {
                let schema = question.tool_schema.clone();
                let allowed = question.allowed(&answer);
                let approval =
                    allowed.map(|call| Approval { call: call.as_str().to_owned(), schema });
                self.core.approvals.extend(approval);
                Some(Given::Answer(answer))
            }
            Pending::Chat { .. } | Pending::Note { .. } | Pending::Probe(_) => None,
        }
    }
}

impl Task {
    /// An intent, or a claim after one: then its runner was lost.
    fn intended(&mut self, is_lost: bool) {
        let Pending::Call { work, .. } = &mut self.pending else { return };
        work.state = if is_lost {
            let reason = "the process that was about to make it was lost";
            CallState::Doubtful(reason.to_owned())
        } else {
            CallState::Intended
        };
    }
}

fn given_reply(chat: &Chat, reply: Reply) -> Given {
    let json = chat.form.as_ref().map(|form| valid(&reply, &form.schema));
    Given::Reply { reply, json }
}

/// The reply's value, if it matches the schema.
fn valid(reply: &Reply, schema: &Value) -> Result<Value, String> {
    let value = reply.json().ok_or("the reply is no JSON value")?;
    let schema = Schema::compile(schema).map_err(|error| error.to_string())?;
    schema.violations(&value).map_or(Ok(value), Err)
}

fn given_result(work: &CallWork, is_step: bool) -> Option<Given> {
    let result = work.result()?;
    Some(match result.outcome {
        ToolOutcome::Ok(content) => Given::Value(content),
        ToolOutcome::Error(text) if is_step => Given::StepError(text),
        ToolOutcome::Error(text) => Given::ToolError(text),
        ToolOutcome::Failed(failure) => Given::Failure(failure),
    })
}

/// The effect of a step, as the program asks for it: a question about an effect has that effect's digest.
pub(super) fn reference(step: &Step<Value>) -> Option<EffectRef> {
    if let StepBody::Note { subject, payload, .. } = &step.body {
        let is_own = subject == NOTE_PROGRAM;
        let digest = payload["digest"].as_str().filter(|_| is_own)?;
        let call = u32::try_from(payload["ordinal"].as_u64()?).ok()?;
        let (node, kind) = ("note".to_owned(), EffectKind::Tools);
        return Some(EffectRef { node, kind, digest: Hash::from_record(digest), call });
    }
    let effect = step.body.effect()?.clone();
    let asks_about_a_call = matches!(&step.body, StepBody::Ask { payload, .. }
        if matches!(about(payload), About::Approval(_) | About::Doubt(_)));
    let kind = if asks_about_a_call { EffectKind::Tools } else { effect.kind };
    Some(EffectRef { kind, ..effect })
}

fn about(payload: &Value) -> About {
    match payload["about"].as_str() {
        Some("approval") => About::Approval(0),
        Some("doubt") => About::Doubt(0),
        Some("sleep") => About::Sleep,
        _ => About::Graph,
    }
}

/// Checks a recorded answer against its question.
fn checked(step: &Step<Value>, id: u32, payload: &Value, shown: &Shown) -> Result<(), FoldError> {
    let answer = Answer { question_id: id, ..read(step, payload)? };
    if id != shown.seq {
        return Err(malformed(step, format!("question {} is open", shown.seq)));
    }
    if answer.decision == Decision::Expired {
        return Ok(());
    }
    let checked = shown.question.check_recorded(&answer);
    checked.map_err(|error| malformed(step, error.to_string()))?;
    if answer
        .digest
        .as_deref()
        .is_some_and(|digest| !shown.digests.iter().any(|it| it.as_str() == digest))
    {
        return Err(malformed(step, "the answer is to a question with another digest".into()));
    }
    Ok(())
}
