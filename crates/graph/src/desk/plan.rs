//! What comes next in the run of a program.

use journal::clock::Stamp;
use journal::step::{EffectKind, EffectRef};
use serde_json::json;

use super::{Desk, Pending, Task};
use crate::digest;
use crate::effect::ToolCall;
use crate::next::{Ask, NOTE_FALLBACK, Next, Note, QUESTION_OPEN, Request, Work};
use crate::open::{About, CallState, approval_question, doubt_question};
use crate::program::{NOTE_PROGRAM, Probe};
use crate::question::{Decision, Question};
use crate::run::Run;

impl Run {
    /// What comes next. The phase is `Phase::Program`.
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
                let (intent, not_before) = work.due()?;
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
        let payload = self.question_payload(about, &mut question);
        let expires_at = question
            .expires_at
            .or(expires_at)
            .unwrap_or_else(|| self.core.now.after(QUESTION_OPEN));
        let kind = if about == About::Sleep { EffectKind::Sleep } else { EffectKind::Ask };
        let effect = EffectRef { kind, ..task.effect.clone() };
        Next::Ask(Ask { effect, expires_at, question, payload })
    }
}

impl Task {
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
