//! Sums up a session: [`Reported`] from its events, [`Tally`] from its steps.
//!
//! Both are pure folds. Steps are counted one at a time and in sequence, so that an earlier count
//! needs only the newer steps. Events may arrive late and in any order, so all of them, which are
//! few, are read each time.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::cipher::Erasure;
use crate::clock::Stamp;
use crate::error_message::ErrorMessage;
use crate::event::{Event, EventStatus};
use crate::payload::Payload;
use crate::principal::Principal;
use crate::status::{Status, lanes, status};
use crate::step::{AnsweredBy, EffectKind, Ending, NOTE_FALLBACK, Step, StepBody, Usage};
use crate::version::{self, Missing};

/// What a session's events report.
#[derive(Clone, Debug, PartialEq)]
pub struct Reported {
    pub status: Status,
    /// The time of its trigger.
    pub initiated_at: Option<Stamp>,
    /// When its execution started: durations count from here.
    pub begun_at: Option<Stamp>,
    /// The sort key of its first event, the earliest SESSION_INITIATED. Another one is a copy.
    pub first_sk: Option<String>,
    /// Time of the earliest verdict.
    pub ended_at: Option<Stamp>,
    /// The agent, from an event.
    pub agent: Option<String>,
    /// The title, as the agent worded it when the session was triggered.
    pub title: Option<String>,
    /// The verdict's error, or else the last one reported.
    pub error: Option<ErrorMessage>,
    /// The verdict's error category.
    pub error_category: Option<String>,
    /// Whether the agent's background task ever started.
    pub has_run: bool,
    /// The version that the newest invocation lacked.
    pub missing_version: Option<Missing>,
    /// When, by whom and why the key of its contents was destroyed.
    pub erased: Option<Erasure>,
    /// Whether a record cannot be read, so that all else is only what the others say.
    pub is_damaged: bool,
}

impl Reported {
    /// Sums up events, sorted by time and without duplicates.
    pub fn of(events: &[Event]) -> Self {
        let verdict = events.iter().find(|event| event.status.is_verdict());
        let named = |event: &Event, name: &str| {
            event.detail.as_ref()?.get(name)?.as_str().map(str::to_owned)
        };
        let has = |status| events.iter().any(|event| event.status == status);
        let mut told_last = verdict.into_iter().chain(events.iter().rev());
        Self {
            status: status(events),
            initiated_at: events.first().map(|event| event.stamp),
            begun_at: events.first().map(Event::begun_at),
            first_sk: first_of(events).map(|event| event.sk.clone()),
            ended_at: verdict
                .map(|verdict| verdict.stamp)
                .or_else(|| lanes(events).end_without_verdict().map(|(stamp, _)| stamp)),
            agent: events.iter().find_map(|event| named(event, "agent")),
            title: events.iter().find_map(|event| named(event, "title")),
            error: told_last.find_map(|event| event.error.clone()),
            error_category: verdict.and_then(|verdict| named(verdict, "category")),
            has_run: has(EventStatus::AgentBackgroundTaskStarted),
            missing_version: version::missing(events),
            erased: erasure(events),
            is_damaged: false,
        }
    }

    /// With the status that the steps show: steps decide, and the announcement of the newest one may be missing.
    #[must_use]
    pub fn corrected_by<P>(mut self, tally: &Tally<P>) -> Self {
        // A session that waits for a version of its agent announces it after its newest step.
        let waits =
            self.missing_version.as_ref().is_some_and(|missing| missing.step == tally.steps);
        if !waits {
            self.status = tally.status(self.status);
        }
        self
    }
}

/// The destruction of the session's key, as its events say. A record of it counts after the verdict only.
pub fn erasure(events: &[Event]) -> Option<Erasure> {
    let verdict = events.iter().find(|event| event.status.is_verdict())?;
    events.iter().filter(|event| event.stamp > verdict.stamp).find_map(erased_by)
}

/// The destruction of a session's key that an event announces, if it does.
pub fn erased_by(event: &Event) -> Option<Erasure> {
    if event.status != EventStatus::SessionErased {
        return None;
    }
    let text = |name: &str| event.detail.as_ref()?.get(name)?.as_str();
    Some(Erasure {
        at: text("destroyed_at").and_then(|at| Stamp::parse(at).ok()).unwrap_or(event.stamp),
        by: event.principal.clone().unwrap_or(Principal::Unknown),
        reason: text("reason").unwrap_or_default().to_owned(),
    })
}

/// The session's first event: the earliest SESSION_INITIATED of these, which are sorted by time.
pub fn first_of(events: &[Event]) -> Option<&Event> {
    events.iter().find(|event| event.status == EventStatus::SessionInitiated)
}

/// What a session's steps add up to.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally<P> {
    /// Number of the newest step; 0 before the first.
    pub steps: u32,
    /// The agent, from the first claim.
    pub agent: Option<String>,
    /// The graph version, from the newest claim.
    pub version: Option<String>,
    /// Payload of the first claim: input and settings.
    pub opening: Option<P>,
    pub spent: Spent,
    /// Who replied to its chats.
    pub answered_by: Option<AnsweredBy>,
    /// Payload of the note that the policy has replaced a failed model.
    pub fallback: Option<P>,
    /// The open question, if the newest step is one.
    pub ask: Option<Asked<P>>,
    pub end: Option<Ended<P>>,
}

/// An open question, or a sleep.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked<P> {
    pub seq: u32,
    /// When it expires, or the sleep ends.
    pub expires_at: Stamp,
    pub payload: P,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Ended<P> {
    pub ending: Ending,
    pub error: Option<ErrorMessage>,
    pub error_category: Option<String>,
    pub payload: P,
}

/// Model usage of effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Tokens of calls whose outcome was lost, counted at their maximum.
    pub unsettled_tokens: u64,
    /// Sent tokens that the model read from its cache.
    pub cache_read_tokens: u64,
    /// Sent tokens that the model wrote to its cache.
    pub cache_write_tokens: u64,
    /// Tokens without a known price.
    pub unpriced_tokens: u64,
    /// Millionths of a dollar.
    pub micro_usd: u64,
}

impl Spent {
    /// Adds the usage of one effect.
    pub fn add(&mut self, used: Usage) {
        self.input_tokens += u64::from(used.input_tokens);
        self.output_tokens += u64::from(used.output_tokens);
        self.unsettled_tokens += u64::from(used.unsettled_tokens);
        self.cache_read_tokens += u64::from(used.cache_read_tokens);
        self.cache_write_tokens += u64::from(used.cache_write_tokens);
        self.unpriced_tokens += u64::from(used.unpriced_tokens);
        self.micro_usd += u64::from(used.micro_usd);
    }
}

impl<P> Ended<P> {
    /// The agent's result; that of a rejected session is what was rejected.
    pub fn result(&self) -> Option<&P> {
        (self.ending != Ending::Rejected).then_some(&self.payload)
    }
}

impl<P> Default for Tally<P> {
    fn default() -> Self {
        Self {
            steps: 0,
            agent: None,
            version: None,
            opening: None,
            spent: Spent::default(),
            answered_by: None,
            fallback: None,
            ask: None,
            end: None,
        }
    }
}

impl<P> Tally<P> {
    /// The session's status, given that of its events: only a verdict is an event that decides.
    pub fn status(&self, announced: Status) -> Status {
        match announced {
            terminal if terminal.is_terminal() => terminal,
            _ if self.ask.is_some() => Status::Waiting,
            _ if self.steps > 0 => Status::Running,
            without_steps => without_steps,
        }
    }
}

/// The outcome of a chat, as a payload.
pub trait ChatOutcome {
    /// Who replied, the model or the policy; `None` if the outcome is no reply.
    fn author(&self) -> Option<AnsweredBy>;
}

/// A reply and its author: `{"reply": {"by": "policy" | {"model": NAME}}}`.
#[derive(Deserialize)]
struct Replied {
    reply: Authored,
}

#[derive(Deserialize)]
struct Authored {
    by: By,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum By {
    Policy,
    Model(IgnoredAny),
}

impl Replied {
    fn author(self) -> AnsweredBy {
        match self.reply.by {
            By::Policy => AnsweredBy::Policy,
            By::Model(_) => AnsweredBy::Model,
        }
    }
}

impl ChatOutcome for Value {
    fn author(&self) -> Option<AnsweredBy> {
        Replied::deserialize(self).ok().map(Replied::author)
    }
}

impl ChatOutcome for Payload {
    /// A reply in separate parts is a model's: no policy writes that much.
    fn author(&self) -> Option<AnsweredBy> {
        match self {
            Self::Text(text) => serde_json::from_str(text).ok().map(Replied::author),
            Self::Zstd { .. } => self.decode(&[]).ok()?.author(),
            Self::Parts { .. } => Some(AnsweredBy::Model),
            Self::Encrypted => None,
        }
    }
}

impl<P: Clone + ChatOutcome> Tally<P> {
    /// Sums up steps, in sequence.
    pub fn of<'a>(steps: impl IntoIterator<Item = &'a Step<P>>) -> Self
    where
        P: 'a,
    {
        let mut tally = Self::default();
        steps.into_iter().for_each(|step| tally.count(step));
        tally
    }

    /// Adds the next step.
    pub fn count(&mut self, step: &Step<P>) {
        self.steps = step.seq;
        self.ask = None;
        match &step.body {
            StepBody::Claim { agent, graph_version, input, .. } => {
                self.version = Some(graph_version.clone());
                self.agent.get_or_insert_with(|| agent.clone());
                self.opening = self.opening.take().or_else(|| input.clone());
            }
            StepBody::Outcome { effect, usage, payload, .. } => {
                self.spent.add(*usage);
                let author = Some(payload).filter(|_| effect.kind == EffectKind::Chat);
                if let Some(author) = author.and_then(ChatOutcome::author) {
                    self.answered_by = Some(AnsweredBy::and(self.answered_by, author));
                }
            }
            StepBody::Ask { expires_at, payload, .. } => {
                let (expires_at, payload) = (*expires_at, payload.clone());
                self.ask = Some(Asked { seq: step.seq, expires_at, payload });
            }
            StepBody::End { ending, error, category, payload, .. } => {
                let (error, error_category) = (error.clone(), category.clone());
                let payload = payload.clone();
                self.end = Some(Ended { ending: *ending, error, error_category, payload });
            }
            StepBody::Note { subject, payload, .. } if subject == NOTE_FALLBACK => {
                self.fallback.get_or_insert_with(|| payload.clone());
            }
            StepBody::Intent { .. } | StepBody::Answer { .. } | StepBody::Note { .. } => {}
        }
    }
}
