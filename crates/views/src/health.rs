//! Health of recent sessions: counts by status over time, and durations, tokens and cost by agent.

use std::collections::BTreeMap;
use std::time::Duration;

use journal::clock::Stamp;
use journal::status::Status;
use serde::Serialize;

/// Number of bars in the chart, for any time range.
pub const BARS: u32 = 24;

/// The facts about a session that are counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Its agent, once known.
    pub agent: Option<String>,
    pub status: Status,
    pub initiated_at: Stamp,
    /// Time from start to verdict, in milliseconds; `None` before the verdict.
    pub took_ms: Option<u64>,
    /// Tokens in, out and unsettled.
    pub tokens: u64,
    /// Millionths of a dollar.
    pub micro_usd: u64,
    /// How many times its agent stopped responding.
    pub lost: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Health {
    pub since: Stamp,
    /// The time that a bar covers, in milliseconds.
    pub bar_ms: u64,
    /// [`BARS`] of them, the oldest first.
    pub bars: Vec<Bar>,
    /// By agent, in order of name.
    pub agents: Vec<Agent>,
    pub total: Counts,
    /// How many times an agent stopped responding.
    pub lost: u32,
}

/// The sessions that started within the time of one bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bar {
    pub at: Stamp,
    #[serde(flatten)]
    pub counts: Counts,
}

/// Sessions by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub succeeded: u32,
    /// Failed or timed out.
    pub failed: u32,
    /// Cancelled or rejected.
    pub stopped: u32,
    /// Waiting for a person or a time.
    pub waiting: u32,
    pub running: u32,
}

/// Counts and metrics of one agent's sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agent {
    /// Its name; `None` for sessions that were rejected before start.
    pub name: Option<String>,
    #[serde(flatten)]
    pub counts: Counts,
    /// Median duration of ended sessions, in milliseconds.
    pub p50_ms: Option<u64>,
    /// 95th percentile of the same, in milliseconds.
    pub p95_ms: Option<u64>,
    /// Total tokens.
    pub tokens: u64,
    /// Total cost, in millionths of a dollar.
    pub micro_usd: u64,
    /// How many times it stopped responding.
    pub lost: u32,
}

impl Counts {
    fn add(&mut self, status: Status) {
        match status {
            Status::Succeeded => self.succeeded += 1,
            Status::Failed | Status::TimedOut => self.failed += 1,
            Status::Cancelled | Status::Rejected => self.stopped += 1,
            Status::Waiting => self.waiting += 1,
            Status::Initiated | Status::Running => self.running += 1,
        }
    }
}

impl Health {
    /// The health of the sessions that started within `span` before `now`.
    pub fn of(seen: &[Seen], span: Duration, now: Stamp) -> Self {
        let since = now.before(span);
        let bar = span / BARS;
        let mut bars: Vec<_> = (0..BARS)
            .map(|n| Bar { at: since.after(bar * n), counts: Counts::default() })
            .collect();
        let mut by_agent: BTreeMap<Option<&str>, Vec<&Seen>> = BTreeMap::new();
        let mut total = Counts::default();
        for session in seen.iter().filter(|session| session.initiated_at >= since) {
            let passed = bars.partition_point(|bar| bar.at <= session.initiated_at);
            bars[passed.saturating_sub(1)].counts.add(session.status);
            total.add(session.status);
            by_agent.entry(session.agent.as_deref()).or_default().push(session);
        }
        let agents: Vec<_> =
            by_agent.into_iter().map(|(name, sessions)| agent(name, &sessions)).collect();
        let lost = agents.iter().map(|agent| agent.lost).sum();
        let bar_ms = u64::try_from(bar.as_millis()).unwrap_or(u64::MAX);
        Self { since, bar_ms, bars, agents, total, lost }
    }
}

fn agent(name: Option<&str>, sessions: &[&Seen]) -> Agent {
    let mut counts = Counts::default();
    sessions.iter().for_each(|session| counts.add(session.status));
    let mut took: Vec<_> = sessions.iter().filter_map(|session| session.took_ms).collect();
    took.sort_unstable();
    Agent {
        name: name.map(str::to_owned),
        counts,
        p50_ms: percentile(&took, 50),
        p95_ms: percentile(&took, 95),
        tokens: sessions.iter().map(|session| session.tokens).sum(),
        micro_usd: sessions.iter().map(|session| session.micro_usd).sum(),
        lost: sessions.iter().map(|session| session.lost).sum(),
    }
}

/// The nearest-rank percentile of sorted values.
fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    const HOUR_MS: i64 = 3_600_000;

    fn seen(agent: &str, status: Status, hours_ago: i64, took_ms: Option<u64>) -> Seen {
        Seen {
            agent: Some(agent.to_owned()),
            status,
            initiated_at: at(-hours_ago * HOUR_MS),
            took_ms,
            tokens: 100,
            micro_usd: 7,
            lost: u32::from(status == Status::Failed),
        }
    }

    #[test]
    fn sessions_are_counted_in_their_hour_and_by_their_agent() {
        let mut sessions: Vec<_> =
            (1..=20).map(|n| seen("incident", Status::Succeeded, 2, Some(n * 100))).collect();
        sessions.push(seen("incident", Status::Failed, 5, Some(9_000)));
        sessions.push(seen("fraud", Status::Waiting, 0, None));
        sessions.push(seen("fraud", Status::Rejected, 24, Some(5)));
        sessions.push(seen("fraud", Status::Failed, 25, Some(5)));
        let health = Health::of(&sessions, Duration::from_secs(86_400), at(0));
        let bars: Vec<_> = health
            .bars
            .iter()
            .enumerate()
            .filter(|(_, bar)| bar.counts != Counts::default())
            .collect();
        let lines = bars.iter().map(|(hour, bar)| {
            let Counts { succeeded, failed, stopped, waiting, running } = bar.counts;
            format!("{hour}: {succeeded} {failed} {stopped} {waiting} {running}")
        });
        assert_eq!(
            lines.collect::<Vec<_>>(),
            ["0: 0 0 1 0 0", "19: 0 1 0 0 0", "22: 20 0 0 0 0", "23: 0 0 0 1 0"]
        );
        let [fraud, incident] = &health.agents[..] else { panic!("{health:#?}") };
        assert_eq!(
            (fraud.p50_ms, fraud.counts.waiting, fraud.tokens, fraud.lost),
            (Some(5), 1, 200, 0)
        );
        assert_eq!((incident.p50_ms, incident.p95_ms), (Some(1_100), Some(2_000)));
        assert_eq!((incident.micro_usd, incident.lost, health.lost), (147, 1, 1));
        assert_eq!(
            (health.total.succeeded, health.total.failed, health.bar_ms),
            (20, 1, 3_600_000)
        );
    }

    #[test]
    fn nothing_seen_is_nothing_counted() {
        let health = Health::of(&[], Duration::from_secs(86_400), at(0));
        assert_eq!((health.bars.len(), health.agents.len()), (24, 0));
        assert_eq!(percentile(&[], 95), None);
        assert_eq!(percentile(&[3], 50), Some(3));
    }
}
