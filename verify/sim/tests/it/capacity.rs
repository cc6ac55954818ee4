//! Ten thousand sessions against five hundred places of the agent runtime: the poller's own decisions over a queue of
//! events, with AWS's limits as tokens.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use journal::clock::Stamp;
use journal::id::SessionId;
use journal::lease::{Hold, Holder, Lease, WhyHeld};
use poller::judge::{Decision, judge};
use poller::observe::Observed;
use serde_json::Value;
use workflow::contract::{CheckRequest, Judgement, Mode, Watch, Woken};

const SESSIONS: usize = 10_000;
const PLACES: usize = 500;
const WORK: Duration = Duration::from_secs(600);

/// Requests that an agent's endpoint takes in a second, and new sessions in a minute.
///
/// Source: docs/cost.md, "Limits".
const REQUESTS_A_SECOND: u64 = 25;
const NEW_A_MINUTE: u64 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Asks(usize),
    /// The wait with this number ended by itself.
    TimedOut(usize, u32),
    Woken(usize, u32),
    Ends(usize),
}

struct Waiting {
    session: SessionId,
    watch: Watch,
    /// When it first found no place.
    since: Option<u64>,
    /// Counts its waits; the current one, if it waits.
    wait: u32,
    waits: bool,
}

#[derive(Default)]
struct Outcome {
    done: usize,
    failed: usize,
    asks: usize,
    asks_max: usize,
    /// In milliseconds.
    last_end: u64,
}

/// Tokens that a limit gives in a period.
struct Limit {
    per: u64,
    period_ms: u64,
    used: BTreeMap<u64, u64>,
}

impl Limit {
    fn new(per: u64, period_ms: u64) -> Self {
        Self { per, period_ms, used: BTreeMap::new() }
    }

    fn has(&self, now: u64) -> bool {
        self.used.get(&(now / self.period_ms)).is_none_or(|used| *used < self.per)
    }

    fn take(&mut self, now: u64) {
        *self.used.entry(now / self.period_ms).or_default() += 1;
    }
}

struct Runtime {
    at_work: usize,
    requests: Limit,
    new: Limit,
}

impl Runtime {
    /// Whether it takes one more session.
    fn takes(&mut self, now: u64) -> bool {
        if !self.requests.has(now) {
            return false;
        }
        self.requests.take(now);
        if self.at_work == PLACES || !self.new.has(now) {
            return false;
        }
        self.new.take(now);
        self.at_work += 1;
        true
    }
}

fn began() -> Stamp {
    Stamp::parse("2026-11-21T10:00:00Z").unwrap()
}

/// Checks a session that found no place.
fn check(waiting: &mut Waiting, now: u64, woken: Woken) -> Decision {
    let now = began().after(Duration::from_millis(now));
    let watch = std::mem::take(&mut waiting.watch);
    let hold =
        Hold { why: WhyHeld::Capacity, agent: "a".to_owned(), invocation: Some(watch.invocation) };
    let lease = Lease { holder: Holder::Held(hold), ..Lease::unclaimed(0, began()) };
    let observed = Observed { lease: Some(lease), ..Observed::default() };
    let request = CheckRequest {
        mode: Mode::Check,
        traceparent: None,
        session_id: waiting.session.clone(),
        execution_arn: "arn".to_owned(),
        expires_at: began().after(Duration::from_secs(90 * 86_400)).seconds(),
        seen: now,
        now,
        watch,
        woken,
        callback: Value::Null,
        retry: 0,
        token: None,
        failure: None,
    };
    let (decision, watch) = judge(&observed, &request);
    waiting.watch = watch;
    decision
}

fn sessions() -> Vec<Waiting> {
    let id = |n: usize| {
        // Spread over the partitions, as random ids are.
        let spread = (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("{:08x}-0000-4000-8000-{n:012x}", spread >> 32).parse().unwrap()
    };
    let watch = Watch { invocation: 1, ..Watch::default() };
    let one =
        |n| Waiting { session: id(n), watch: watch.clone(), since: None, wait: 0, waits: false };
    (0..SESSIONS).map(one).collect()
}

/// The sessions that wait, by partition: since when, and which.
type Partitions = BTreeMap<char, BTreeSet<(Option<u64>, usize)>>;

fn run() -> Outcome {
    let (mut sessions, mut outcome) = (sessions(), Outcome::default());
    let mut partitions = Partitions::new();
    let mut runtime = Runtime {
        at_work: 0,
        requests: Limit::new(REQUESTS_A_SECOND, 1_000),
        new: Limit::new(NEW_A_MINUTE, 60_000),
    };
    let mut queue: BinaryHeap<_> =
        (0..SESSIONS).map(|n| Reverse((0_u64, Happening::Asks(n)))).collect();
    let mut asks = vec![0_usize; SESSIONS];
    while let Some(Reverse((now, happening))) = queue.pop() {
        let (n, woken) = match happening {
            Happening::Asks(n) => {
                asks[n] += 1;
                if runtime.takes(now) {
                    let work = u64::try_from(WORK.as_millis()).unwrap();
                    queue.push(Reverse((now + work, Happening::Ends(n))));
                    continue;
                }
                sessions[n].since.get_or_insert(now);
                (n, Woken::Not)
            }
            Happening::Ends(n) => {
                runtime.at_work -= 1;
                (outcome.done, outcome.last_end) = (outcome.done + 1, now);
                let partition = partitions.entry(sessions[n].session.shard()).or_default();
                if let Some((_, next)) = partition.first() {
                    let wait = sessions[*next].wait;
                    queue.push(Reverse((now + 200, Happening::Woken(*next, wait))));
                }
                continue;
            }
            Happening::TimedOut(n, wait) | Happening::Woken(n, wait) => {
                if !sessions[n].waits || sessions[n].wait != wait {
                    continue;
                }
                let is_woken = matches!(happening, Happening::Woken(..));
                (n, if is_woken { Woken::Callback } else { Woken::Timeout })
            }
        };
        sessions[n].waits = false;
        let partition = partitions.entry(sessions[n].session.shard()).or_default();
        partition.remove(&(sessions[n].since, n));
        match check(&mut sessions[n], now, woken) {
            Decision::AskAgain => queue.push(Reverse((now + 100, Happening::Asks(n)))),
            Decision::Wait(Judgement::Waiting) => {
                let session = &mut sessions[n];
                (session.wait, session.waits) = (session.wait + 1, true);
                partition.insert((session.since, n));
                let until = now + 1_000 * u64::from(session.watch.timeout_s);
                queue.push(Reverse((until, Happening::TimedOut(n, session.wait))));
            }
            Decision::End(_) => outcome.failed += 1,
            other => panic!("{other:?}"),
        }
    }
    outcome.asks = asks.iter().sum();
    outcome.asks_max = asks.into_iter().max().unwrap();
    outcome
}

#[test]
fn ten_thousand_waiting_sessions_fill_five_hundred_places() {
    let outcome = run();
    let ideal = u64::try_from(WORK.as_millis()).unwrap() * (SESSIONS / PLACES) as u64;
    println!(
        "{} done, {} failed, the last after {} min (ideal {} min), {} asks, at most {}",
        outcome.done,
        outcome.failed,
        outcome.last_end / 60_000,
        ideal / 60_000,
        outcome.asks,
        outcome.asks_max,
    );
    assert_eq!((outcome.done, outcome.failed), (SESSIONS, 0));
    assert!(outcome.last_end < ideal * 11 / 10, "the places are not used");
    // Each ask adds two events to its session, and a session may have 1,000.
    assert!(outcome.asks_max < 100, "{}", outcome.asks_max);
}
