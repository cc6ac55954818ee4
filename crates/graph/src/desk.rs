//! The run of an agent that is a program: which of its effects are answered, and what comes next.
//!
//! The journal is folded first; it names effects by ordinal and digest only. When the program asks for an effect, the
//! steps of its ordinal are applied to it. So an effect is judged by the same code live and in a replay.

use std::collections::BTreeMap;

use journal::clock::Stamp;
use journal::item::Hash;
use journal::step::{AnsweredBy, EffectKind, EffectRef, Step, StepBody};
use serde_json::{Value, json};

use crate::agent::OnModelFailure;
use crate::definition::Finish;
use crate::digest;
use crate::effect::{Author, Chat, INPUT_STEP, Reply, ToolCall};
use crate::error::{Divergence, FoldError};
use crate::fold::{malformed, read, unexpected};
use crate::next::{
    Ask, Intent, NOTE_BUDGET, NOTE_FALLBACK, Next, Note, QUESTION_OPEN, Request, SLEPT_BY_RUNNER,
    Work,
};
use crate::open::{
    About, Asked as Shown, CallState, CallWork, ChatWork, approval_question, doubt_question,
};
use crate::origin::{self, Traced};
use crate::outcome::{Brought, Failure, ToolOutcome, ToolResult};
use crate::program::{Answered, Asked, Given, Hosted, NOTE_PROGRAM, OPEN_MAX, Probe};
use crate::question::{Answer, Decision, Question};
use crate::run::{Approval, Phase, Run};
use crate::schema::Schema;

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
                let digest = digest::question(&payload["question"]);
                let about = about(payload);
                let shown =
                    Shown { seq: step.seq, expires_at: *expires_at, about, question, digest };
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

    /// Counts what an outcome used.
    fn count(&mut self, step: &Step<Value>) -> Result<(), FoldError> {
        let StepBody::Outcome { effect, usage, payload, .. } = &step.body else { return Ok(()) };
        if effect.kind == EffectKind::Chat {
            let with_model = self.model().is_some();
            let unsettled = self.desk_mut().and_then(|desk| desk.open.get_mut(&effect.call));
            if let Some(Task { pending: Pending::Chat { work, .. }, .. }) = unsettled {
                let tokens = std::mem::take(&mut work.unsettled_tokens);
                self.core.meter.settle(tokens);
            }
            self.core.meter.chat(with_model);
            if let Brought::Reply(reply) = read(step, payload)? {
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
    fn apply(&mut self, ordinal: u32, task: &mut Task, step: &Step<Value>) -> bool {
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
                let outcome = match brought {
                    Brought::Ok(content) => ToolOutcome::Ok(content),
                    Brought::Error(text) => ToolOutcome::Error(text),
                    Brought::Failure(failure) => ToolOutcome::Failed(failure),
                    Brought::Reply(_) | Brought::Woke {} => return None,
                };
                let elapsed = step.stamp.since(started_at).as_millis();
                let result = ToolResult {
                    call: work.call.clone(),
                    seq: step.seq,
                    at: step.stamp,
                    elapsed_ms: u64::try_from(elapsed).unwrap_or(u64::MAX),
                    attempt: work.failed + 1,
                    outcome,
                };
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

    /// What comes next. The phase is [`Phase::Program`].
    pub(crate) fn next_of_program(&self, desk: &Desk) -> Next {
        if let Some((_, shown)) = &desk.shown {
            return Next::Wait(shown.open_question());
        }
        if let Some(stop) = &desk.stop {
            return stop.clone();
        }
        if let Some(finish) = &desk.end {
            return Next::End(finish.clone());
        }
        if let Some(note) = desk.open.values().find_map(|task| self.note_of(task)) {
            return Next::Note(note);
        }
        let requests: Vec<_> = desk.open.values().filter_map(|task| self.work(task)).collect();
        if !requests.is_empty() {
            return Next::Perform(requests);
        }
        let sleeps =
            desk.open.values().filter(|task| matches!(task.pending, Pending::Sleep { .. }));
        let asks = desk.open.values().filter(|task| !matches!(task.pending, Pending::Sleep { .. }));
        let first = sleeps.min_by_key(|task| match task.pending {
            Pending::Sleep { until, .. } => until,
            _ => self.core.now,
        });
        let question = asks.chain(first).find_map(|task| Some((task, task.question()?)));
        match question {
            Some((task, (about, question, expires_at))) => {
                self.ask_of_program(task, about, question, expires_at)
            }
            None => Next::Idle,
        }
    }

    fn note_of(&self, task: &Task) -> Option<Note> {
        match &task.pending {
            Pending::Note { text, data } => {
                let payload = json!({"ordinal": task.effect.call, "digest": task.effect.digest.as_str(),
                    "text": text, "data": data});
                Some(Note { subject: NOTE_PROGRAM.to_owned(), payload })
            }
            Pending::Chat { work, .. } if !work.may_retry(self.sheet.attempts.chat) => {
                let (failure, _) = work.failure.as_ref()?;
                let payload = json!({"model": self.model(), "category": failure.category,
                    "message": failure.message});
                Some(Note { subject: NOTE_FALLBACK.to_owned(), payload })
            }
            _ => None,
        }
    }

    fn work(&self, task: &Task) -> Option<Request> {
        let mut request = Request {
            effect: task.effect.clone(),
            attempt: 1,
            not_before: None,
            unsettled_tokens: 0,
            work: Work::Probe(Probe::Now),
        };
        request.work = match &task.pending {
            Pending::Chat { work, .. } => {
                request.attempt = work.failed + 1;
                request.not_before = work.not_before();
                request.unsettled_tokens = work.unsettled_tokens;
                let chat = work.chat.clone();
                match self.model() {
                    Some(model) => Work::Model { model: model.to_owned(), chat },
                    None => Work::Policy { chat },
                }
            }
            Pending::Call { work, is_step } => {
                let (intent, not_before) = match &work.state {
                    CallState::Intended => (Intent::Written, None),
                    CallState::Ready { not_before } if work.at_most_once => {
                        (Intent::Needed, *not_before)
                    }
                    CallState::Ready { not_before } => (Intent::NotNeeded, *not_before),
                    _ => return None,
                };
                request.attempt = work.failed + 1;
                request.not_before = not_before;
                let call = work.call.clone();
                if *is_step {
                    Work::Local { call, intent }
                } else {
                    Work::Tool { call, intent, schema: work.schema.clone() }
                }
            }
            Pending::Sleep { until, is_long: false } => Work::Sleep { until: *until },
            Pending::Probe(probe) => Work::Probe(*probe),
            Pending::Sleep { .. } | Pending::Ask { .. } | Pending::Note { .. } => return None,
        };
        Some(request)
    }

    fn ask_of_program(
        &self,
        task: &Task,
        about: About,
        mut question: Question,
        expires_at: Option<Stamp>,
    ) -> Next {
        let call = question.call();
        let traced = call.as_ref().map(|call| Traced::judged(&self.sources, self.rules(), call));
        if let (About::Approval(_), Some(traced)) = (about, &traced) {
            question.warn(&origin::breaches(traced));
        }
        let mut payload = json!({"question": question, "about": about.as_str()});
        if let (Some(call), Some(traced)) = (call, traced) {
            payload["binds"] = Value::from(digest::call(&call).as_str());
            payload["origins"] = origin::recorded(&traced);
        }
        let expires_at = question
            .expires_at
            .or(expires_at)
            .unwrap_or_else(|| self.core.now.after(QUESTION_OPEN));
        let kind = if about == About::Sleep { EffectKind::Sleep } else { EffectKind::Ask };
        let effect = EffectRef { kind, ..task.effect.clone() };
        Next::Ask(Ask { effect, expires_at, question, payload })
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

    /// The question that the effect needs.
    fn question(&self) -> Option<(About, Question, Option<Stamp>)> {
        match &self.pending {
            Pending::Ask { question, expires_at } => {
                Some((About::Graph, question.clone(), *expires_at))
            }
            Pending::Sleep { until, .. } => Some((About::Sleep, Question::asleep(*until), None)),
            Pending::Call { work, is_step } => match &work.state {
                CallState::Unapproved => {
                    Some((About::Approval(0), approval_question(&work.call), None))
                }
                CallState::Doubtful(reason) => {
                    let question = if *is_step {
                        doubtful_step(&work.call, reason)
                    } else {
                        doubt_question(&work.call, reason)
                    };
                    Some((About::Doubt(0), question, None))
                }
                _ => None,
            },
            Pending::Chat { .. } | Pending::Note { .. } | Pending::Probe(_) => None,
        }
    }
}

/// A step is no tool: no server could be asked for its schema, so the question names it in the prompt only.
fn doubtful_step(call: &ToolCall, reason: &str) -> Question {
    let arguments = digest::canonical(&call.arguments);
    let prompt = format!(
        "Step: {}\nArguments: {arguments}\nIt is not known whether this step was performed: {reason}.\n\
         Approve to perform it again, reject to go on without it, or say what it returned.",
        call.tool
    );
    let choices = vec![Decision::Approve, Decision::Reject, Decision::Say];
    Question { choices, ..Question::open(prompt) }
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
fn reference(step: &Step<Value>) -> Option<EffectRef> {
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

fn side(effect: &EffectRef) -> String {
    let EffectRef { node, kind, digest, .. } = effect;
    let digest = digest.as_str().get(..12).unwrap_or(digest.as_str());
    format!("{} `{node}` digest {digest}", kind.as_str())
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
    if answer.digest.as_deref().is_some_and(|digest| digest != shown.digest.as_str()) {
        return Err(malformed(step, "the answer is to a question with another digest".into()));
    }
    Ok(())
}
