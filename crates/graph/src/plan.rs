//! Computes what comes next from the state of a run.

use journal::step::EffectKind;
use serde_json::{Value, json};

use crate::agent::{OnModelFailure, StateError};
use crate::budget::{CATEGORY_BUDGET, Limit};
use crate::definition::Finish;
use crate::digest;
use crate::next::{
    Ask, NOTE_BUDGET, NOTE_FALLBACK, Next, Note, QUESTION_OPEN, Request, SLEPT_BY_RUNNER, Sleep,
    Work, json_of,
};
use crate::open::{About, Asked, CallWork, ChatWork, Open, Pending};
use crate::origin::{self, Traced};
use crate::outcome::Failure;
use crate::panics::Panicked;
use crate::question::{OpenQuestion, Question};
use crate::run::{Phase, Run, Snapshot};

impl Run {
    /// What comes next. Calling this has no effect on the run.
    pub fn next(&self) -> Next {
        let open = match &self.phase {
            Phase::Unclaimed => return Next::Claim,
            Phase::Closed => return Next::Closed,
            Phase::Over(finish) => return Next::End(finish.clone()),
            Phase::Program(desk) => return self.next_of_program(desk),
            Phase::Open(open) => open,
        };
        if let Some(asked) = &open.asked {
            return Next::Wait(asked.open_question());
        }
        if let Some(next) = self.stopped_by_budget(open) {
            return next;
        }
        match &open.pending {
            Pending::Chat(work) => self.chat(open, work),
            Pending::Tools(calls) => self.tools(open, calls),
            Pending::Ask(question) => self.ask(open, About::Graph, question.clone()),
            Pending::Sleep(until) if until.since(self.core.now) > SLEPT_BY_RUNNER => {
                self.ask(open, About::Sleep, Question::asleep(*until))
            }
            Pending::Sleep(until) => {
                let effect = open.reference_as(EffectKind::Sleep, 0);
                Next::Sleep(Sleep { effect, until: *until })
            }
            Pending::Note { subject, payload } => {
                Next::Note(Note { subject: subject.clone(), payload: payload.clone() })
            }
        }
    }

    /// Checks the budget before each chat, and the visits before each effect.
    fn stopped_by_budget(&self, open: &Open) -> Option<Next> {
        if open.begun() {
            return None;
        }
        let visits_only = !matches!(open.pending, Pending::Chat(_));
        let budget = self.budget();
        let meter = &self.core.meter;
        if let Some((limit, used, bound)) = meter.exhausted(&budget, visits_only, self.by_policy())
        {
            let message = format!("{used} {} used; the maximum is {bound}", limit.as_str());
            let costs = matches!(limit, Limit::Tokens | Limit::MicroUsd);
            if costs && !self.fails_with_model() {
                return Some(self.fallback(CATEGORY_BUDGET, &message));
            }
            return Some(Next::End(Finish::failed(
                "BudgetError",
                "Exhausted",
                &message,
                CATEGORY_BUDGET,
            )));
        }
        let (limit, used, allowed) = meter.reached(&budget, visits_only)?;
        let payload = json!({"limit": limit, "used": used, "allowed": allowed, "node": open.node});
        Some(Next::Note(Note { subject: NOTE_BUDGET.to_owned(), payload }))
    }

    /// Whether the session fails when its model does.
    fn fails_with_model(&self) -> bool {
        !self.sheet.has_policy || self.settings.on_model_failure == OnModelFailure::Fail
    }

    fn chat(&self, open: &Open, work: &ChatWork) -> Next {
        match &work.failure {
            Some((failure, _)) if !work.may_retry(self.sheet.attempts.chat) => {
                if self.by_policy() || self.fails_with_model() {
                    return Next::End(model_failed(failure));
                }
                self.fallback(&failure.category, &failure.message)
            }
            _ => Next::Perform(vec![Request {
                effect: open.reference_as(EffectKind::Chat, 0),
                attempt: work.failed + 1,
                not_before: work.not_before(),
                unsettled_tokens: work.unsettled_tokens,
                work: match self.model() {
                    Some(model) => Work::Model { model: model.to_owned(), chat: work.chat.clone() },
                    None => Work::Policy { chat: work.chat.clone() },
                },
            }]),
        }
    }

    fn fallback(&self, category: &str, message: &str) -> Next {
        let payload = json!({"model": self.model(), "category": category, "message": message});
        Next::Note(Note { subject: NOTE_FALLBACK.to_owned(), payload })
    }

    fn tools(&self, open: &Open, calls: &[CallWork]) -> Next {
        let request = |(index, work): (usize, &CallWork)| {
            let (intent, not_before) = work.due()?;
            Some(Request {
                effect: open.reference_as(EffectKind::Tools, index),
                attempt: work.failed + 1,
                not_before,
                unsettled_tokens: 0,
                work: Work::Tool { call: work.call.clone(), intent, schema: work.schema.clone() },
            })
        };
        let requests: Vec<_> = calls.iter().enumerate().filter_map(request).collect();
        match open.question() {
            Some((about, question)) => self.ask(open, about, question),
            None => Next::Perform(requests),
        }
    }

    fn ask(&self, open: &Open, about: About, mut question: Question) -> Next {
        let state = match self.program.state() {
            Ok(state) => state,
            Err(StateError::NotSerialisable(error)) => {
                return Next::End(graph_failed("StateNotSerialisable", &error.to_string()));
            }
            Err(StateError::Panicked(panicked)) => return Next::End(panicked.finish()),
        };
        let snapshot = Snapshot { core: self.core.clone(), open: open.clone(), state };
        let mut payload = self.question_payload(about, &mut question);
        payload["snapshot"] = json_of(&snapshot);
        Next::Ask(Ask {
            effect: open.question_reference(about),
            expires_at: question.expires_at.unwrap_or_else(|| self.core.now.after(QUESTION_OPEN)),
            question,
            payload,
        })
    }

    /// The payload of a question. One about a call binds the call and says where its arguments came from; one that asks
    /// for approval warns of what may not feed an argument.
    pub(crate) fn question_payload(&self, about: About, question: &mut Question) -> Value {
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
        payload
    }

    /// The model for chats; `None` for the policy.
    pub(crate) fn model(&self) -> Option<&str> {
        let named = self.settings.model.as_deref().filter(|name| *name != POLICY);
        named.filter(|_| !self.core.fallback)
    }

    fn by_policy(&self) -> bool {
        self.model().is_none()
    }
}

/// The name of the policy in triggers.
const POLICY: &str = "policy";

fn model_failed(failure: &Failure) -> Finish {
    if failure.category == CATEGORY_GRAPH && failure.model.is_none() {
        return graph_failed(Panicked::CODE, &failure.message);
    }
    let Some(code) = &failure.code else {
        return Finish::failed(
            "ModelError",
            &failure.category,
            &failure.message,
            &failure.category,
        );
    };
    // The message of the failure begins with the code, which the error message has a place for.
    let message = failure.message.strip_prefix(code.as_str());
    let message = message.and_then(|message| message.strip_prefix(": "));
    Finish::failed("ClientError", code, message.unwrap_or(&failure.message), &failure.category)
}

/// Category of an end because of a bug in the graph.
pub(crate) const CATEGORY_GRAPH: &str = "graph";

/// The end of a run whose graph has a bug.
pub(crate) fn graph_failed(code: &str, message: &str) -> Finish {
    Finish::failed("GraphError", code, message, CATEGORY_GRAPH)
}

impl Asked {
    pub(crate) fn open_question(&self) -> OpenQuestion {
        OpenQuestion {
            question_id: self.seq,
            question: self.question.clone(),
            digest: self.digests[0].clone(),
            expires_at: self.expires_at,
        }
    }
}
