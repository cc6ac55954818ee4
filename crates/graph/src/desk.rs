//! The run of an agent that is a program: which of its effects are answered, and what comes next.
//!
//! The journal is folded first (`fold`); it names effects by ordinal and digest only. When the program asks for an
//! effect, the steps of its ordinal are applied to it. So an effect is judged by the same code live and in a replay.
//! `plan` says what the host does next.

mod fold;
mod plan;

use std::collections::BTreeMap;

use journal::clock::Stamp;
use journal::item::Hash;
use journal::step::{EffectKind, EffectRef, Step, StepBody};
use serde_json::{Value, json};

use self::fold::reference;
use crate::agent::OnModelFailure;
use crate::definition::Finish;
use crate::effect::{INPUT_STEP, ToolCall};
use crate::next::{NOTE_BUDGET, Next, Note, SLEPT_BY_RUNNER};
use crate::open::{About, Asked as Shown, CallState, CallWork, ChatWork};
use crate::outcome::Failure;
use crate::program::{Answered, Asked, Given, Hosted, OPEN_MAX, Probe};
use crate::question::Question;
use crate::run::{Phase, Run};

/// What the program has asked for, and what the journal holds.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// The input of the first claim.
    input: Value,
    /// Steps of effects that the program has not asked for again.
    recorded: BTreeMap<u32, Vec<Step<Value>>>,
    /// Effects without an outcome.
    open: BTreeMap<u32, Task>,
    /// The newest ordinal that the program asked for, with its line.
    newest: u32,
    line: Option<String>,
    /// The question without an answer, and its ordinal.
    shown: Option<(u32, Shown)>,
    answered: Vec<Answered>,
    /// The step with the outcome of each effect.
    steps: BTreeMap<u32, u32>,
    /// Claims since the newest other step, except the first and one after an answer.
    lost_claims: u32,
    after_answer: bool,
    /// What stops the run, if a limit is reached.
    stop: Option<Next>,
    end: Option<Finish>,
}

/// An effect without an outcome.
#[derive(Debug)]
struct Task {
    effect: EffectRef,
    pending: Pending,
    /// The newest question about it.
    question: Option<(About, Question)>,
}

#[derive(Debug)]
enum Pending {
    Chat { work: ChatWork, has_policy: bool },
    Call { work: CallWork, is_step: bool },
    Ask { question: Question, expires_at: Option<Stamp> },
    Sleep { until: Stamp, is_long: bool },
    Note { text: String, data: Value },
    Probe(Probe),
}

/// Why a request of the program cannot be served.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    #[error("{0}")]
    Protocol(String),
    #[error("more than {OPEN_MAX} effects are open")]
    TooManyOpen,
    #[error("{0}")]
    Diverged(String),
}

impl Problem {
    /// The end of the session.
    pub fn finish(&self) -> Finish {
        match self {
            Self::Protocol(_) => program_failed("Malformed", &self.to_string()),
            Self::TooManyOpen => program_failed("TooManyOpen", &self.to_string()),
            Self::Diverged(text) => Finish::failed("ReplayError", "Diverged", text, "replay"),
        }
    }
}

/// The end of a session because of its program.
pub fn program_failed(code: &str, message: &str) -> Finish {
    Finish::failed("ProgramError", code, message, crate::program::CATEGORY_PROGRAM)
}

impl Run {
    /// The program of this run's agent, if it is one.
    pub fn hosted(&self) -> Option<&Hosted> {
        self.sheet.hosted.as_deref()
    }

    /// The version of this run's agent.
    pub fn version(&self) -> &'static str {
        self.sheet.version
    }

    /// The session's input; `None` if the agent is no program, or nothing is left to do.
    pub fn program_input(&self) -> Option<&Value> {
        self.desk().map(|desk| &desk.input)
    }

    /// The highest ordinal in the journal that the program has not asked for.
    pub fn replayed_to(&self) -> u32 {
        let desk = self.desk();
        desk.and_then(|desk| desk.recorded.last_key_value()).map_or(0, |(ordinal, _)| *ordinal)
    }

    /// The newest effect that the program asked for, in words.
    pub fn newest_effect(&self) -> String {
        let Some(desk) = self.desk() else { return "the start".to_owned() };
        match (&desk.line, desk.newest) {
            (_, 0) => "the start".to_owned(),
            (Some(line), newest) => format!("effect {newest} ({line})"),
            (None, newest) => format!("effect {newest}"),
        }
    }

    /// Whether the program waits for an outcome.
    pub fn awaits(&self) -> bool {
        self.desk().is_some_and(|desk| !desk.open.is_empty())
    }

    /// The outcomes that the program has not been given.
    pub fn take_answered(&mut self) -> Vec<Answered> {
        self.desk_mut().map(|desk| std::mem::take(&mut desk.answered)).unwrap_or_default()
    }

    fn desk(&self) -> Option<&Desk> {
        match &self.phase {
            Phase::Program(desk) => Some(desk),
            _ => None,
        }
    }

    pub(crate) fn desk_mut(&mut self) -> Option<&mut Desk> {
        match &mut self.phase {
            Phase::Program(desk) => Some(desk),
            _ => None,
        }
    }

    /// The program has ended.
    ///
    /// # Errors
    /// The journal has an effect that the program did not ask for.
    pub fn program_ended(&mut self, finish: Finish) -> Result<(), Problem> {
        let version = self.sheet.version;
        let recorded_version = self.core.recorded_version.clone();
        let Some(desk) = self.desk_mut() else { return Ok(()) };
        if let Some((ordinal, step, effect)) = desk.unasked() {
            let text = format!(
                "step {} recorded effect {ordinal}, {}, under version {recorded_version}; the program, version {version}, ended before it",
                step,
                side(&effect),
            );
            return Err(Problem::Diverged(text));
        }
        desk.end = Some(finish);
        Ok(())
    }

    /// The program asks for its next effect.
    ///
    /// # Errors
    /// The request breaks a rule, or the journal recorded another effect at this ordinal.
    pub fn request(
        &mut self,
        ordinal: u32,
        mut asked: Asked,
        line: Option<String>,
        now: Stamp,
    ) -> Result<(), Problem> {
        let effect = EffectRef {
            node: asked.name(),
            kind: asked.recorded_kind(),
            digest: asked.digest(),
            call: ordinal,
        };
        self.core.meter.visit();
        let versions = (self.core.recorded_version.clone(), self.sheet.version);
        let Some(desk) = self.desk_mut() else { return Ok(()) };
        if ordinal != desk.newest + 1 {
            let expected = desk.newest + 1;
            return Err(Problem::Protocol(format!("effect {ordinal} instead of {expected}")));
        }
        if desk.open.len() >= OPEN_MAX {
            return Err(Problem::TooManyOpen);
        }
        (desk.newest, desk.line) = (ordinal, line);
        let recorded = desk.recorded.remove(&ordinal).unwrap_or_default();
        if let Some(other) = recorded.iter().find_map(|it| reference(it).filter(|it| *it != effect))
        {
            return Err(Problem::Diverged(desk.diverged(&recorded, &other, &effect, &versions)));
        }
        if let Asked::Chat { chat, origins, .. } = &mut asked {
            for (message, origin) in chat.messages.iter_mut().zip(origins) {
                message.source = desk.steps.get(origin).copied().unwrap_or(INPUT_STEP);
            }
        }
        let lost = desk.lost_claims;
        let is_chat = effect.kind == EffectKind::Chat;
        if recorded.is_empty() {
            self.limited(is_chat, &effect);
        }
        let pending = self.pending(asked, now);
        let mut task = Task { effect, pending, question: None };
        if recorded.is_empty() {
            self.charge_lost(&mut task, lost);
        }
        for step in &recorded {
            if self.apply(ordinal, &mut task, step) {
                return Ok(());
            }
        }
        self.keep(ordinal, task);
        Ok(())
    }

    /// Keeps an effect open, unless it can have no outcome.
    fn keep(&mut self, ordinal: u32, task: Task) {
        let failure = self.hopeless(&task);
        let Some(desk) = self.desk_mut() else { return };
        match failure {
            Some(failure) => desk.answer(ordinal, Given::Failure(failure)),
            None => {
                desk.open.insert(ordinal, task);
            }
        }
    }

    /// Why a chat can have no reply: nobody is left to answer it.
    fn hopeless(&self, task: &Task) -> Option<Failure> {
        let Pending::Chat { work, has_policy } = &task.pending else { return None };
        let by_policy = self.model().is_none();
        match &work.failure {
            Some((failure, _)) if !work.may_retry(self.sheet.attempts.chat) => {
                let falls_back = self.settings.on_model_failure == OnModelFailure::Policy;
                let goes_on = !by_policy && falls_back && *has_policy;
                (!goes_on).then(|| failure.clone())
            }
            None if by_policy && !has_policy => {
                let text = "the session names no model, and the chat has no policy; name one with `--model`";
                Some(Failure::refused("no_model", text))
            }
            _ => None,
        }
    }

    /// Checks the budget before a new effect.
    fn limited(&mut self, is_chat: bool, effect: &EffectRef) {
        let (budget, meter) = (self.budget(), &self.core.meter);
        let stop = if let Some((limit, used, bound)) =
            meter.exhausted(&budget, !is_chat, self.model().is_none())
        {
            let message = format!("{used} {} used; the maximum is {bound}", limit.as_str());
            Next::End(Finish::failed(
                "BudgetError",
                "Exhausted",
                &message,
                crate::budget::CATEGORY_BUDGET,
            ))
        } else if let Some((limit, used, allowed)) = meter.reached(&budget, !is_chat) {
            let payload =
                json!({"limit": limit, "used": used, "allowed": allowed, "node": effect.node});
            Next::Note(Note { subject: NOTE_BUDGET.to_owned(), payload })
        } else {
            return;
        };
        if let Some(desk) = self.desk_mut() {
            desk.stop.get_or_insert(stop);
        }
    }

    /// Charges a chat that a lost runner may have sent.
    fn charge_lost(&mut self, task: &mut Task, claims: u32) {
        let by_model = self.model().is_some();
        let Pending::Chat { work, .. } = &mut task.pending else { return };
        if !by_model || claims == 0 {
            return;
        }
        let lost = work.chat.tokens_max().saturating_mul(claims);
        work.unsettled_tokens = lost;
        for _ in 0..claims {
            self.core.meter.chat(true);
        }
        let usage = journal::step::Usage { unsettled_tokens: lost, ..Default::default() };
        self.core.meter.charge(usage);
    }

    fn pending(&mut self, asked: Asked, now: Stamp) -> Pending {
        match asked {
            Asked::Chat { chat, has_policy, .. } => {
                let chat = *chat;
                let work = ChatWork { chat, failed: 0, failure: None, unsettled_tokens: 0 };
                Pending::Chat { work, has_policy }
            }
            Asked::Tool(call) => Pending::Call { work: self.call_work(call), is_step: false },
            Asked::Step { name, arguments, critical } => {
                let call = ToolCall::built_in(&name, arguments);
                let state = CallState::Ready { not_before: None };
                let work =
                    CallWork { call, at_most_once: critical, failed: 0, state, schema: None };
                Pending::Call { work, is_step: true }
            }
            Asked::Ask { question, expires } => {
                Pending::Ask { question: *question, expires_at: expires.map(|it| now.after(it)) }
            }
            Asked::Sleep { duration, .. } => {
                Pending::Sleep { until: now.after(duration), is_long: duration > SLEPT_BY_RUNNER }
            }
            Asked::Note { text, data } => Pending::Note { text, data },
            Asked::Probe(probe) => Pending::Probe(probe),
        }
    }
}

impl Desk {
    fn answer(&mut self, ordinal: u32, outcome: Given) {
        self.answered.push(Answered { ordinal, outcome });
    }

    fn claimed(&mut self, step: &Step<Value>, input: Option<&Value>) {
        if let Some(opening) = input {
            self.input = opening["input"].clone();
            return;
        }
        if std::mem::take(&mut self.after_answer) {
            return;
        }
        self.lost_claims += 1;
        for steps in self.recorded.values_mut() {
            if steps.last().is_some_and(|step| matches!(step.body, StepBody::Intent { .. })) {
                steps.push(step.clone());
            }
        }
    }

    fn fell_back(&mut self, step: &Step<Value>) {
        for task in self.open.values_mut() {
            if let Pending::Chat { work, .. } = &mut task.pending {
                work.failure = None;
            }
        }
        for steps in self.recorded.values_mut() {
            let is_chat = |it: &EffectRef| it.kind == EffectKind::Chat;
            if steps.last().and_then(reference).is_some_and(|effect| is_chat(&effect)) {
                steps.push(step.clone());
            }
        }
    }

    /// The first effect in the journal that the program did not ask for: its ordinal, step and reference.
    fn unasked(&self) -> Option<(u32, u32, EffectRef)> {
        let (ordinal, steps) = self.recorded.first_key_value()?;
        let step = steps.first()?;
        let note = || EffectRef {
            node: "note".to_owned(),
            kind: EffectKind::Tools,
            digest: Hash::genesis(),
            call: *ordinal,
        };
        Some((*ordinal, step.seq, reference(step).unwrap_or_else(note)))
    }

    fn diverged(
        &self,
        recorded: &[Step<Value>],
        other: &EffectRef,
        asked: &EffectRef,
        (recorded_version, version): &(String, &str),
    ) -> String {
        let seq = recorded.first().map_or(0, |step| step.seq);
        let line = self.line.as_ref().map(|line| format!(" at {line}")).unwrap_or_default();
        format!(
            "step {seq} recorded effect {}, {}, under version {recorded_version}; the program, version {version}, asks for {}{line}",
            asked.call,
            side(other),
            side(asked),
        )
    }
}

fn side(effect: &EffectRef) -> String {
    let EffectRef { node, kind, digest, .. } = effect;
    let digest = digest.as_str().get(..12).unwrap_or(digest.as_str());
    format!("{} `{node}` digest {digest}", kind.as_str())
}
