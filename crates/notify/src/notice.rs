//! What a target is told of a session.

use graph::agent::Agent;
use graph::conclusion::Tone;
use graph::presentation::{Presentation, TITLE_CHARS_MAX};
use graph::question::Question;
use journal::clock::Stamp;
use journal::event::{About, Event, EventStatus};
use journal::id::SessionId;
use journal::step::{Step, StepBody};
use journal::tally::{Ended, Reported, Tally};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The `source` of an event on a bus.
pub const SOURCE: &str = "daybook.session";

/// Longest headline, error and prompt, in characters: a notice points at a session and does not replace it.
const HEADLINE_CHARS_MAX: usize = 600;
const PROMPT_CHARS_MAX: usize = 4_000;

/// The code of a session that was rejected because another one is about the same. Nobody is told: the other one tells.
const DUPLICATE: &str = "Duplicate";

/// Why a target is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The session reached its result, whatever the agent's verdict is.
    Diagnosis,
    /// The session waits for a person.
    Question,
    /// The session ended without a result.
    Failure,
}

impl Why {
    pub const ALL: [Self; 3] = [Self::Diagnosis, Self::Question, Self::Failure];

    /// The `detail-type` of an event on a bus.
    pub const fn detail_type(self) -> &'static str {
        match self {
            Self::Diagnosis => "Session Concluded",
            Self::Question => "Question Asked",
            Self::Failure => "Session Failed",
        }
    }

    /// The `type` of a webhook.
    pub const fn webhook_type(self) -> &'static str {
        match self {
            Self::Diagnosis => "session.concluded",
            Self::Question => "question.asked",
            Self::Failure => "session.failed",
        }
    }

    /// What an event tells, by its name alone. A suspension may also be a sleep.
    pub const fn of(status: EventStatus) -> Option<Self> {
        match status {
            EventStatus::SessionSucceeded => Some(Self::Diagnosis),
            EventStatus::AgentBackgroundTaskSuspended => Some(Self::Question),
            EventStatus::SessionFailed
            | EventStatus::SessionTimedOut
            | EventStatus::SessionRejected => Some(Self::Failure),
            _ => None,
        }
    }
}

/// One notice, the same for every target.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// The event's id: the same however often it is sent.
    pub id: String,
    pub why: Why,
    pub agent: Option<String>,
    pub at: Stamp,
    detail: Value,
}

/// What became of a wish to word a notice.
#[derive(Clone, Debug, PartialEq)]
pub enum Worded {
    Notice(Box<Notice>),
    /// The event concerns nobody: a sleep, or a repeat of another session.
    Nothing,
    /// The question was answered, or the session ended, before anybody was told.
    Over,
}

impl Notice {
    /// Words the notice of an event, from all records of its session. `agents` say how their sessions are shown.
    pub fn of(
        about: &Event,
        events: &[Event],
        steps: &[Step<Value>],
        agents: &[Agent],
        link: &dyn Fn(&SessionId) -> Option<String>,
    ) -> Worded {
        let Some(why) = Why::of(about.status) else { return Worded::Nothing };
        let tally = Tally::of(steps);
        let reported = Reported::of(events).corrected_by(&tally);
        if is_repeat(about) {
            return Worded::Nothing;
        }
        let mut question = Value::Null;
        if why == Why::Question {
            match asked(about, steps) {
                Asked::Sleep => return Worded::Nothing,
                Asked::Over => return Worded::Over,
                Asked::Open(open) => question = open,
            }
        }
        let agent = tally.agent.clone().or_else(|| reported.agent.clone());
        let presentation = Presentation::among(agents, agent.as_deref());
        let result = tally.end.as_ref().and_then(Ended::result);
        let result = result.filter(|_| why == Why::Diagnosis && reported.erased.is_none());
        let conclusion = result.and_then(|result| presentation.conclusion_of(result));
        let verdict = conclusion.as_ref().and_then(|found| found.verdict.as_ref());
        let input = tally.opening.as_ref().and_then(|opening| opening.get("input"));
        let title = reported.title.clone().or_else(|| presentation.title_of(input?));
        let headline = conclusion.as_ref().map(|found| clipped(&found.summary, HEADLINE_CHARS_MAX));
        let error =
            tally.end.as_ref().and_then(|end| end.error.as_ref()).or(reported.error.as_ref());
        let error = error.filter(|_| why == Why::Failure);
        let session = &about.session;
        let detail = json!({
            "session_id": session,
            "agent": agent,
            "title": title.map(|title| clipped(&title, TITLE_CHARS_MAX)),
            "status": reported.status,
            "verdict": verdict.map(|verdict| json!({
                "word": clipped(&verdict.word, TITLE_CHARS_MAX), "value": value_of(verdict.tone),
            })),
            "headline": headline.filter(|headline| !headline.is_empty()),
            "question": question,
            "error": error.map(|error| clipped(error.as_str(), HEADLINE_CHARS_MAX)),
            "link": link(session),
            "command": format!("daybook show {session}"),
        });
        Worded::Notice(Box::new(Self {
            id: about.id.as_str().to_owned(),
            why,
            agent,
            at: about.stamp,
            detail,
        }))
    }

    /// The body of a webhook: the same bytes in each attempt.
    pub fn body(&self) -> String {
        json!({
            "type": self.why.webhook_type(), "timestamp": self.at.to_string(), "data": self.detail,
        })
        .to_string()
    }

    /// The detail of an event on a bus. `id` is the same in each attempt.
    pub fn bus_detail(&self) -> String {
        let mut detail = self.detail.clone();
        detail["id"] = json!(self.id);
        detail["at"] = json!(self.at.to_string());
        detail.to_string()
    }
}

/// The three values of a verdict. What is neither good nor bad was not looked at, not understood or not judged.
const fn value_of(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "fine",
        Tone::Bad => "not_fine",
        Tone::Warn | Tone::Neutral => "open",
    }
}

enum Asked {
    Open(Value),
    Sleep,
    Over,
}

/// The question that a suspension announces.
fn asked(about: &Event, steps: &[Step<Value>]) -> Asked {
    let About::Step(seq) = about.about else { return Asked::Over };
    let Some(newest) = steps.last().filter(|step| step.seq == seq) else { return Asked::Over };
    let StepBody::Ask { expires_at, payload, .. } = &newest.body else { return Asked::Over };
    let shown = payload.get("question").cloned().unwrap_or_default();
    // An unreadable question is still a question.
    let question: Question = serde_json::from_value(shown)
        .unwrap_or_else(|_| Question::open("the question cannot be read"));
    if question.is_sleep() {
        return Asked::Sleep;
    }
    Asked::Open(json!({
        "question_id": seq,
        "prompt": clipped(&question.prompt, PROMPT_CHARS_MAX),
        "tool": question.tool,
        "choices": question.choices,
        "expires_at": expires_at.to_string(),
    }))
}

fn is_repeat(about: &Event) -> bool {
    let is_named = |error: &journal::error_message::ErrorMessage| {
        error.as_str().split(": ").nth(1).is_some_and(|rest| rest.starts_with(DUPLICATE))
    };
    about.status == EventStatus::SessionRejected && about.error.as_ref().is_some_and(is_named)
}

/// At most this many characters; a cut text ends with an ellipsis.
fn clipped(text: &str, chars: usize) -> String {
    let mut clipped: String = text.chars().take(chars).collect();
    if clipped.len() < text.len() {
        clipped.pop();
        clipped.push('…');
    }
    clipped
}
