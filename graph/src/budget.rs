//! What a run may use, and what it has used.

use std::time::Duration;

use journal::clock::Stamp;
use journal::step::Usage;
use serde::{Deserialize, Serialize};

use crate::definition::Finish;

/// What a run may use; `None` is without limit. Cumulative over retries and resumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Tokens sent and received, those of calls with a lost answer at their maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Chats, the policy's too, each attempt counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Visits of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits: Option<u64>,
    /// Seconds of running: waiting for a person, for a time or for a new runner does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
}

/// One of a budget's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// See [`Budget::tokens`].
    Tokens,
    /// See [`Budget::calls`].
    Calls,
    /// See [`Budget::visits`].
    Visits,
    /// See [`Budget::seconds`].
    Seconds,
    /// See [`Budget::micro_usd`].
    MicroUsd,
}

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Tokens sent to a model.
    pub input_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
    /// Tokens of calls whose answer was lost.
    pub unsettled_tokens: u64,
    /// Chats.
    pub calls: u64,
    /// Of these, the ones with a model.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub model_calls: u64,
    /// Visits of nodes.
    pub visits: u64,
    /// Time of running, in nanoseconds.
    pub running_ns: u64,
    /// Millionths of a dollar.
    pub micro_usd: u64,
}

/// A limit was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crossed {
    /// Which.
    pub limit: Limit,
    /// How much was used, in the limit's unit.
    pub used: u64,
    /// How much was allowed.
    pub allowed: u64,
    /// The node whose effect was not performed for it.
    pub node: String,
    /// The number of the note that says so; the source of messages made from it.
    pub seq: u32,
    /// That note's time.
    pub at: Stamp,
}

impl Crossed {
    /// The end of a run that has nothing to show when it reaches a limit.
    pub fn finish(&self) -> Finish {
        let message = format!("{} of {} {} used", self.used, self.allowed, self.limit.as_str());
        Finish::failed("BudgetError", "Reached", &message, CATEGORY_BUDGET)
    }
}

/// A run that ends because of its budget fails with this category.
pub const CATEGORY_BUDGET: &str = "budget";

/// Visits after which a run ends as failed, whatever its budget says. A session of so many steps still
/// goes on within seconds after a crash (`make bench`, "resume").
pub const VISITS_MAX: u64 = 100_000;

impl Limit {
    /// All limits, in the order in which they are looked at.
    pub const ALL: [Self; 5] =
        [Self::Visits, Self::Calls, Self::Tokens, Self::Seconds, Self::MicroUsd];

    /// The limit's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Calls => "calls",
            Self::Visits => "visits",
            Self::Seconds => "seconds",
            Self::MicroUsd => "micro_usd",
        }
    }

    /// What a run gets beyond twice its limit before it is ended: room for a last chat and the nodes
    /// around it even where the limit is very small.
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
    /// Without limits.
    pub const UNLIMITED: Self =
        Self { tokens: None, calls: None, visits: None, seconds: None, micro_usd: None };

    /// What is allowed of a limit.
    pub fn allowed(&self, limit: Limit) -> Option<u64> {
        match limit {
            Limit::Tokens => self.tokens,
            Limit::Calls => self.calls,
            Limit::Visits => self.visits,
            Limit::Seconds => self.seconds,
            Limit::MicroUsd => self.micro_usd,
        }
    }

    /// This budget where it says something, `defaults` where it does not.
    pub fn or(self, defaults: Self) -> Self {
        Self {
            tokens: self.tokens.or(defaults.tokens),
            calls: self.calls.or(defaults.calls),
            visits: self.visits.or(defaults.visits),
            seconds: self.seconds.or(defaults.seconds),
            micro_usd: self.micro_usd.or(defaults.micro_usd),
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
    /// What was used of a limit, in its unit.
    pub fn of(&self, limit: Limit) -> u64 {
        match limit {
            Limit::Tokens => self.tokens(),
            Limit::Calls => self.calls,
            Limit::Visits => self.visits,
            Limit::Seconds => Duration::from_nanos(self.running_ns).as_secs(),
            Limit::MicroUsd => self.micro_usd,
        }
    }

    /// All tokens: sent, received, unsettled.
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
pub(crate) struct Ledger {
    /// Over the whole session.
    total: Used,
    /// In the present scope: the session, or a turn of it.
    scoped: Used,
    crossed: Vec<Limit>,
    /// Since when the clock runs; `None` while a question is open.
    running_since: Option<Stamp>,
}

impl Ledger {
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

    /// Takes back what was charged for lost answers: the outcome's own usage says it for good.
    pub(crate) fn settle(&mut self, tokens: u32) {
        let tokens = u64::from(tokens);
        self.both(|used| used.unsettled_tokens = used.unsettled_tokens.saturating_sub(tokens));
    }

    /// The clock starts anew: what passed since the last record was nobody's running.
    pub(crate) fn start_clock(&mut self, at: Stamp) {
        self.running_since = Some(at);
    }

    /// What passed since the last record counts.
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

    /// A person's turn is over: budgets of one turn count from zero.
    pub(crate) fn new_turn(&mut self) {
        self.scoped = Used::default();
        self.crossed.clear();
    }

    /// The first limit that is reached and was not before: the limit, what was used, the bound.
    pub(crate) fn reached(&self, budget: &Budget, visits_only: bool) -> Option<(Limit, u64, u64)> {
        self.first(visits_only, |limit| {
            budget.allowed(limit).filter(|_| !self.crossed.contains(&limit))
        })
    }

    /// What is left of the seconds at this time, unless that limit was reached.
    pub(crate) fn time_left(&self, budget: &Budget, now: Stamp) -> Option<Duration> {
        let allowed = budget.seconds.filter(|_| !self.crossed.contains(&Limit::Seconds))?;
        let since_record = self.running_since.map_or(Duration::ZERO, |since| now.since(since));
        let used = Duration::from_nanos(self.scoped.running_ns).saturating_add(since_record);
        Some(Duration::from_secs(allowed).saturating_sub(used))
    }

    /// The first limit whose second bound is reached. What the policy does costs nothing.
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
            // A visit is counted when the node is entered, before its effect is performed, a call
            // when its outcome came: so the visit after the last allowed is one too many.
            let reached = if limit == Limit::Visits { used > bound } else { used >= bound };
            reached.then_some((limit, used, bound))
        })
    }
}
