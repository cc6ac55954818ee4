//! The faults of a run, their rates, and the seeded random source.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The rate of each fault, in thousandths; 0 means never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// A store operation takes seconds.
    pub store_slow: u32,
    /// A write or read fails as unavailable; the write did not happen.
    pub store_unavailable: u32,
    /// A write has an unknown result and did not happen.
    pub store_lost: u32,
    /// A write has an unknown result and did happen.
    pub store_unanswered: u32,
    /// A write has an unknown result and happens later, whatever was written meanwhile.
    pub store_late: u32,
    /// A process dies at a store operation: before it, or after it and before the reply.
    pub crash: u32,
    /// An agent's process dies at a random time.
    pub kill: u32,
    /// An agent's process is disconnected from everything for a while, then continues.
    pub stall: u32,
    /// A new agent's process takes up to two minutes to start.
    pub cold: u32,
    pub net_refused: u32,
    pub net_lost: u32,
    /// A request is processed and its reply is lost.
    pub net_unanswered: u32,
    /// A request arrives twice, the second time later.
    pub net_doubled: u32,
    /// A request takes up to two minutes to arrive.
    pub net_delayed: u32,
    /// A service replies 429 and does nothing.
    pub net_throttled: u32,
    /// A service replies 500; half the time it has processed the request.
    pub net_failed: u32,
    /// A function call is throttled.
    pub call_throttled: u32,
    /// A function is called twice concurrently.
    pub call_doubled: u32,
    pub call_unanswered: u32,
    /// The state machine's process dies between two actions and resumes from its history.
    pub restart: u32,
    /// The clocks of machines are up to five minutes apart.
    pub skew: u32,
    pub duplicate: u32,
    /// A person cancels the session.
    pub cancel: u32,
    /// The execution is stopped and not resumed: the watchdog must end the session.
    pub abandon: u32,
}

impl Faults {
    /// No faults.
    pub const NONE: Self = Self {
        store_slow: 0,
        store_unavailable: 0,
        store_lost: 0,
        store_unanswered: 0,
        store_late: 0,
        crash: 0,
        kill: 0,
        stall: 0,
        cold: 0,
        net_refused: 0,
        net_lost: 0,
        net_unanswered: 0,
        net_doubled: 0,
        net_delayed: 0,
        net_throttled: 0,
        net_failed: 0,
        call_throttled: 0,
        call_doubled: 0,
        call_unanswered: 0,
        restart: 0,
        skew: 0,
        duplicate: 0,
        cancel: 0,
        abandon: 0,
    };

    /// The faults of a seed. Each kind is absent half of the time and otherwise has a random rate,
    /// so that rare combinations occur.
    pub fn of(seed: u64) -> Self {
        let chance = Chance::new(seed ^ 0x000f_a017);
        let rate = |most: u32| {
            if chance.happens(500) {
                0
            } else {
                u32::try_from(chance.below(u64::from(most) + 1)).unwrap_or(0)
            }
        };
        Self {
            store_slow: rate(30),
            store_unavailable: rate(60),
            store_lost: rate(40),
            store_unanswered: rate(60),
            store_late: rate(30),
            crash: rate(15),
            kill: rate(500),
            stall: rate(500),
            cold: rate(300),
            net_refused: rate(150),
            net_lost: rate(150),
            net_unanswered: rate(150),
            net_doubled: rate(200),
            net_delayed: rate(150),
            net_throttled: rate(150),
            net_failed: rate(100),
            call_throttled: rate(50),
            call_doubled: rate(100),
            call_unanswered: rate(60),
            restart: rate(100),
            skew: rate(1_000),
            duplicate: rate(500),
            cancel: rate(300),
            abandon: 0,
        }
    }

    /// The faults of a seed, with a stopped execution.
    pub fn abandoned(seed: u64) -> Self {
        Self { abandon: 1_000, duplicate: 0, ..Self::of(seed) }
    }
}

/// A seeded random source, `splitmix64`: the same seed and the same calls give the same values.
#[derive(Debug)]
pub struct Chance(Mutex<u64>);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    pub fn bits(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub fn below(&self, bound: u64) -> u64 {
        self.bits() % bound.max(1)
    }

    /// True with a probability of this many thousandths.
    pub fn happens(&self, thousandths: u32) -> bool {
        thousandths > 0 && self.below(1_000) < u64::from(thousandths)
    }

    /// A duration in this range, in whole milliseconds, the resolution of timers.
    pub fn between(&self, from: Duration, to: Duration) -> Duration {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (from, to) = (millis(from), millis(to));
        Duration::from_millis(from + self.below(to.saturating_sub(from) + 1))
    }
}
