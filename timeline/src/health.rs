//! How the sessions of the last time went: how many, how they ended, how long they took and what they
//! cost, by hour and by agent.

use std::collections::BTreeMap;
use std::time::Duration;

use journal::clock::Stamp;
use journal::status::Status;
use serde::Serialize;

/// Bars of the drawing, whatever time it covers.
pub const BARS: u32 = 24;

/// What is known of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Its agent, once one is known.
    pub agent: Option<String>,
    /// Where it stands.
    pub status: Status,
    /// When it began.
    pub initiated_at: Stamp,
    /// From its begin to its verdict, in milliseconds; none before that.
    pub took_ms: Option<u64>,
    /// Tokens in, out and unsettled.
    pub tokens: u64,
    /// Millionths of a dollar.
    pub micro_usd: u64,
    /// How often its agent fell silent.
    pub lost: u32,
}

/// How it went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Health {
    /// When the drawing begins.
    pub since: Stamp,
    /// How long a bar is, in milliseconds.
    pub bar_ms: u64,
    /// [`BARS`] of them, the oldest first.
    pub bars: Vec<Bar>,
    /// By agent, in order of name.
    pub agents: Vec<Agent>,
    /// Everything together.
    pub total: Counts,
    /// How often an agent fell silent.
    pub lost: u32,
}

/// The sessions that began in one span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bar {
    /// When it begins.
    pub at: Stamp,
    /// How they stand.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Sessions by how they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Ended with a result.
    pub succeeded: u32,
    /// Failed, or their time was up.
    pub failed: u32,
    /// Cancelled or rejected.
    pub stopped: u32,
    /// Wait for a person or a time.
    pub waiting: u32,
    /// Run.
    pub running: u32,
}

/// How an agent's sessions went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agent {
    /// Its name; `None` for sessions that came to no agent.
    pub name: Option<String>,
    /// How they stand.
    #[serde(flatten)]
    pub counts: Counts,
    /// Of those that have ended, how long the middle one took, in milliseconds.
    pub p50_ms: Option<u64>,
    /// How long 95 of 100 took at most.
    pub p95_ms: Option<u64>,
    /// Tokens of all of them.
    pub tokens: u64,
    /// Millionths of a dollar of all of them.
    pub micro_usd: u64,
    /// How often it fell silent.
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
    /// How the sessions went that began in `span` before `now`.
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

/// The smallest of these, sorted, that at least so many of a hundred do not exceed.
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
        let told = bars.iter().map(|(hour, bar)| {
            let Counts { succeeded, failed, stopped, waiting, running } = bar.counts;
            format!("{hour}: {succeeded} {failed} {stopped} {waiting} {running}")
        });
        assert_eq!(
            told.collect::<Vec<_>>(),
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
