//! What a session's records add up to in a few figures: of its events [`Told`], of its steps [`Tally`].
//!
//! Both are pure folds. Steps are taken one at a time and in sequence, so that who has counted a
//! session up to a step needs only the steps after it; events may come late and in any order, so that
//! all of them, which are few, are taken at once.

use crate::clock::Stamp;
use crate::error_message::ErrorMessage;
use crate::event::{Event, EventStatus};
use crate::status::{Status, status};
use crate::step::{Step, StepBody, Usage};

/// What a session's events say of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// Where the session stands.
    pub status: Status,
    /// Its first event's time.
    pub initiated_at: Option<Stamp>,
    /// Its verdict's time; of several verdicts the earliest counts.
    pub ended_at: Option<Stamp>,
    /// The agent, as an event names it.
    pub agent: Option<String>,
    /// The error that the verdict tells, else the one that was told last.
    pub error: Option<ErrorMessage>,
    /// The error's category, as the verdict tells it.
    pub error_category: Option<String>,
    /// Whether the agent's background task ever began.
    pub has_run: bool,
    /// The execution that it began with.
    pub execution_arn: Option<String>,
}

impl Told {
    /// What these events say, in order of time and each once.
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
            execution_arn: events.iter().find_map(|event| event.execution_arn.clone()),
        }
    }
}

/// What a session's steps add up to, up to the newest that was counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally<P> {
    /// The number of the newest step; 0 before the first.
    pub steps: u32,
    /// The agent, as the first claim names it.
    pub agent: Option<String>,
    /// What its effects used.
    pub spent: Spent,
    /// The question that is open: the newest step.
    pub ask: Option<Asked<P>>,
    /// The end.
    pub end: Option<Ended<P>>,
}

/// A question that was asked, or a sleep.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked<P> {
    /// Its step.
    pub seq: u32,
    /// When it expires, or the sleep ends.
    pub expires_at: Stamp,
    /// The question.
    pub payload: P,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended<P> {
    /// What went wrong.
    pub error: Option<ErrorMessage>,
    /// The error's category.
    pub error_category: Option<String>,
    /// The result.
    pub payload: P,
}

/// What effects used of models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens sent.
    pub input_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
    /// Tokens of calls whose outcome was lost, counted at their maximum.
    pub unsettled_tokens: u64,
    /// Of those sent, the ones that the model had in its cache.
    pub cache_read_tokens: u64,
    /// Of those sent, the ones that the model put into its cache.
    pub cache_write_tokens: u64,
    /// Of all of them, the ones for which no price was known.
    pub unpriced_tokens: u64,
    /// Millionths of a dollar.
    pub micro_usd: u64,
}

impl Spent {
    /// Counts what one effect used.
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
        Self { steps: 0, agent: None, spent: Spent::default(), ask: None, end: None }
    }
}

impl<P: Clone> Tally<P> {
    /// What these steps add up to, in sequence.
    pub fn of<'a>(steps: impl IntoIterator<Item = &'a Step<P>>) -> Self
    where
        P: 'a,
    {
        let mut tally = Self::default();
        steps.into_iter().for_each(|step| tally.count(step));
        tally
    }

    /// Counts the next step.
    pub fn count(&mut self, step: &Step<P>) {
        self.steps = step.seq;
        self.ask = None;
        match &step.body {
            StepBody::Claim { agent, .. } => {
                self.agent.get_or_insert_with(|| agent.clone());
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
