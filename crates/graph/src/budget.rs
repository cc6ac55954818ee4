//! Budgets of a run, and what it has used.

use std::time::Duration;

use journal::clock::Stamp;
use journal::step::Usage;
use serde::{Deserialize, Serialize};

use crate::definition::Finish;

/// Limits of a run, cumulative over retries and resumes; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Tokens sent and received; calls with a lost reply count at their maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Chats, including the policy's, and each attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Visits of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits: Option<u64>,
    /// Seconds of running. Waiting for a person, a point in time or a new runner does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Tokens,
    Calls,
    Visits,
    Seconds,
    /// See [`Budget::micro_usd`].
    MicroUsd,
}

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Tokens sent to a model.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Tokens of calls whose reply was lost.
    pub unsettled_tokens: u64,
    pub calls: u64,
    /// Chats with a model.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub model_calls: u64,
    pub visits: u64,
    /// Running time, in nanoseconds.
    pub running_ns: u64,
    /// Millionths of a dollar.
    pub micro_usd: u64,
}

/// A reached limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crossed {
    pub limit: Limit,
    /// Amount used, in the limit's unit.
    pub used: u64,
    pub allowed: u64,
    /// The node whose effect was not performed.
    pub node: String,
    /// Number of the note that records it; the source of messages built from it.
    pub seq: u32,
    /// Time of that note.
    pub at: Stamp,
}

impl Crossed {
    /// The end of a run that has no result when it reaches a limit.
    pub fn finish(&self) -> Finish {
        let message = format!("{} of {} {} used", self.used, self.allowed, self.limit.as_str());
        Finish::failed("BudgetError", "Reached", &message, CATEGORY_BUDGET)
    }
}

/// Category of runs that fail because of their budget.
pub const CATEGORY_BUDGET: &str = "budget";

/// Visits after which a run fails, whatever its budget. A session with this many steps still
/// resumes within seconds after a crash (`make bench`, "resume").
pub const VISITS_MAX: u64 = 100_000;

impl Limit {
    /// All limits, in the order of checking.
    pub const ALL: [Self; 5] =
        [Self::Visits, Self::Calls, Self::Tokens, Self::Seconds, Self::MicroUsd];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Calls => "calls",
            Self::Visits => "visits",
            Self::Seconds => "seconds",
            Self::MicroUsd => "micro_usd",
        }
    }

    /// Allowance beyond twice the limit before the run is ended: enough for a last chat and the
    /// nodes around it even with a very small limit.
    fn slack(self) -> u64 {
        match self {
            Self::Tokens => 20_000,
            Self::Calls | Self::Visits => 8,
            Self::Seconds => 60,
            Self::MicroUsd => 100_000,
        }
    }
}

impl Budget {
    pub const UNLIMITED: Self =
        Self { tokens: None, calls: None, visits: None, seconds: None, micro_usd: None };

    /// The allowance of a limit.
    pub fn allowed(&self, limit: Limit) -> Option<u64> {
        match limit {
            Limit::Tokens => self.tokens,
            Limit::Calls => self.calls,
            Limit::Visits => self.visits,
            Limit::Seconds => self.seconds,
            Limit::MicroUsd => self.micro_usd,
        }
    }

    /// This budget, with `defaults` for limits that it does not set.
    pub fn or(self, defaults: Self) -> Self {
        Self {
            tokens: self.tokens.or(defaults.tokens),
            calls: self.calls.or(defaults.calls),
            visits: self.visits.or(defaults.visits),
            seconds: self.seconds.or(defaults.seconds),
            micro_usd: self.micro_usd.or(defaults.micro_usd),
        }
    }

    /// This budget with at most the ceiling's tokens and seconds.
    #[must_use]
    pub fn within(self, ceiling: Self) -> Self {
        let least = |own: Option<u64>, most: Option<u64>| match (own, most) {
            (Some(own), Some(most)) => Some(own.min(most)),
            (own, most) => own.or(most),
        };
        Self {
            tokens: least(self.tokens, ceiling.tokens),
            seconds: least(self.seconds, ceiling.seconds),
            ..self
        }
    }

    /// The second bound of a limit, at which the run is ended.
    pub(crate) fn hard(&self, limit: Limit) -> Option<u64> {
        let soft = self
            .allowed(limit)
            .map(|allowed| allowed.saturating_mul(2).saturating_add(limit.slack()));
        match limit {
            Limit::Visits => Some(soft.unwrap_or(VISITS_MAX).min(VISITS_MAX)),
            _ => soft,
        }
    }
}

impl Used {
    /// Amount used of a limit, in its unit.
    pub fn of(&self, limit: Limit) -> u64 {
        match limit {
            Limit::Tokens => self.tokens(),
            Limit::Calls => self.calls,
            Limit::Visits => self.visits,
            Limit::Seconds => Duration::from_nanos(self.running_ns).as_secs(),
            Limit::MicroUsd => self.micro_usd,
        }
    }

    /// All tokens: sent, received and unsettled.
    pub fn tokens(&self) -> u64 {
        self.input_tokens + self.output_tokens + self.unsettled_tokens
    }

    fn charge(&mut self, usage: Usage) {
        self.input_tokens += u64::from(usage.input_tokens);
        self.output_tokens += u64::from(usage.output_tokens);
        self.unsettled_tokens += u64::from(usage.unsettled_tokens);
        self.micro_usd += u64::from(usage.micro_usd);
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What a session has used, and which limits it has reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Meter {
    total: Used,
    /// In the current scope: the session, or one turn.
    scoped: Used,
    crossed: Vec<Limit>,
    /// Start of the running clock; `None` while a question is open.
    running_since: Option<Stamp>,
}

impl Meter {
    pub(crate) fn total(&self) -> Used {
        self.total
    }

    pub(crate) fn scoped(&self) -> Used {
        self.scoped
    }

    fn both(&mut self, change: impl Fn(&mut Used)) {
        change(&mut self.total);
        change(&mut self.scoped);
    }

    pub(crate) fn visit(&mut self) {
        self.both(|used| used.visits += 1);
    }

    pub(crate) fn chat(&mut self, with_model: bool) {
        self.both(|used| {
            used.calls += 1;
            used.model_calls += u64::from(with_model);
        });
    }

    pub(crate) fn charge(&mut self, usage: Usage) {
        self.both(|used| used.charge(usage));
    }

    /// Reverts the charge for lost replies: the outcome's own usage replaces it.
    pub(crate) fn settle(&mut self, tokens: u32) {
        let tokens = u64::from(tokens);
        self.both(|used| used.unsettled_tokens = used.unsettled_tokens.saturating_sub(tokens));
    }

    /// Restarts the clock: no runner was active since the last record.
    pub(crate) fn start_clock(&mut self, at: Stamp) {
        self.running_since = Some(at);
    }

    /// Counts the time since the last record.
    pub(crate) fn run_clock(&mut self, at: Stamp) {
        if let Some(since) = self.running_since {
            let ran = u64::try_from(at.since(since).as_nanos()).unwrap_or(u64::MAX);
            self.both(|used| used.running_ns = used.running_ns.saturating_add(ran));
            self.running_since = Some(at);
        }
    }

    pub(crate) fn stop_clock(&mut self) {
        self.running_since = None;
    }

    pub(crate) fn cross(&mut self, limit: Limit) {
        if !self.crossed.contains(&limit) {
            self.crossed.push(limit);
        }
    }

    /// A person's turn has ended: budgets of one turn restart from zero.
    pub(crate) fn new_turn(&mut self) {
        self.scoped = Used::default();
        self.crossed.clear();
    }

    /// The first newly reached limit: the limit, the amount used, the bound.
    pub(crate) fn reached(&self, budget: &Budget, visits_only: bool) -> Option<(Limit, u64, u64)> {
        self.first(visits_only, |limit| {
            budget.allowed(limit).filter(|_| !self.crossed.contains(&limit))
        })
    }

    /// Time left at `now`, unless that limit was already reached.
    pub(crate) fn time_left(&self, budget: &Budget, now: Stamp) -> Option<Duration> {
        let allowed = budget.seconds.filter(|_| !self.crossed.contains(&Limit::Seconds))?;
        let since_record = self.running_since.map_or(Duration::ZERO, |since| now.since(since));
        let used = Duration::from_nanos(self.scoped.running_ns).saturating_add(since_record);
        Some(Duration::from_secs(allowed).saturating_sub(used))
    }

    /// The first limit whose second bound is reached. The policy's work costs nothing.
    pub(crate) fn exhausted(
        &self,
        budget: &Budget,
        visits_only: bool,
        by_policy: bool,
    ) -> Option<(Limit, u64, u64)> {
        self.first(visits_only, |limit| match limit {
            Limit::Tokens | Limit::MicroUsd if by_policy => None,
            _ => budget.hard(limit),
        })
    }

    fn first(
        &self,
        visits_only: bool,
        bound: impl Fn(Limit) -> Option<u64>,
    ) -> Option<(Limit, u64, u64)> {
        let limits = Limit::ALL.into_iter();
        limits.filter(|limit| !visits_only || *limit == Limit::Visits).find_map(|limit| {
            let bound = bound(limit)?;
            let used = self.scoped.of(limit);
            // A visit is counted before its effect is performed, a call after its outcome. So the
            // visit after the last allowed one is already over the limit.
            let reached = if limit == Limit::Visits { used > bound } else { used >= bound };
            reached.then_some((limit, used, bound))
        })
    }
}
