//! Sums up a session: [`Reported`] from its events, [`Tally`] from its steps.
//!
//! Both are pure folds. Steps are counted one at a time and in sequence, so that an earlier count
//! needs only the newer steps. Events may arrive late and in any order, so all of them, which are
//! few, are read each time.

use crate::clock::Stamp;
use crate::error_message::ErrorMessage;
use crate::event::{Event, EventStatus};
use crate::status::{Status, status};
use crate::step::{Step, StepBody, Usage};

/// What a session's events report.
#[derive(Clone, Debug, PartialEq)]
pub struct Reported {
    pub status: Status,
    pub initiated_at: Option<Stamp>,
    /// Time of the earliest verdict.
    pub ended_at: Option<Stamp>,
    /// The agent, from an event.
    pub agent: Option<String>,
    /// The verdict's error, or else the last one reported.
    pub error: Option<ErrorMessage>,
    /// The verdict's error category.
    pub error_category: Option<String>,
    /// Whether the agent's background task ever started.
    pub has_run: bool,
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
            ended_at: verdict.map(|verdict| verdict.stamp),
            agent: events.iter().find_map(|event| named(event, "agent")),
            error: told_last.find_map(|event| event.error.clone()),
            error_category: verdict.and_then(|verdict| named(verdict, "category")),
            has_run: has(EventStatus::AgentBackgroundTaskStarted),
            is_damaged: false,
        }
    }
}

/// What a session's steps add up to.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally<P> {
    /// Number of the newest step; 0 before the first.
    pub steps: u32,
    /// The agent, from the first claim.
    pub agent: Option<String>,
    /// Payload of the first claim: input and settings.
    pub opening: Option<P>,
    pub spent: Spent,
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

impl<P> Default for Tally<P> {
    fn default() -> Self {
        Self { steps: 0, agent: None, opening: None, spent: Spent::default(), ask: None, end: None }
    }
}

impl<P: Clone> Tally<P> {
    /// Sums up steps, in sequence.
    pub fn of<'a>(steps: impl IntoIterator<Item = &'a Step<P>>) -> Self
    where
        P: 'a,
    {
        let mut tally = Self::default();
        steps.into_iter().for_each(|step| tally.count(step));
        tally
    }

    pub fn count(&mut self, step: &Step<P>) {
        self.steps = step.seq;
        self.ask = None;
        match &step.body {
            StepBody::Claim { agent, input, .. } => {
                self.agent.get_or_insert_with(|| agent.clone());
                self.opening = self.opening.take().or_else(|| input.clone());
            }
            StepBody::Outcome { usage, .. } => self.spent.add(*usage),
            StepBody::Ask { expires_at, payload, .. } => {
                let (expires_at, payload) = (*expires_at, payload.clone());
                self.ask = Some(Asked { seq: step.seq, expires_at, payload });
            }
            StepBody::End { error, category, payload, .. } => {
                let (error, error_category) = (error.clone(), category.clone());
                self.end = Some(Ended { error, error_category, payload: payload.clone() });
            }
            StepBody::Intent { .. } | StepBody::Answer { .. } | StepBody::Note { .. } => {}
        }
    }
}
