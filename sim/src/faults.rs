//! What may go wrong, how often, and the one source of chance that decides.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often each thing goes wrong, in thousandths; 0 is never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// A store's operation takes seconds.
    pub store_slow: u32,
    /// A write is refused as unavailable, and did not happen. Also a read.
    pub store_unavailable: u32,
    /// A write is of unknown outcome and did not happen.
    pub store_lost: u32,
    /// A write is of unknown outcome and did happen.
    pub store_unanswered: u32,
    /// A write is of unknown outcome and happens later, whatever was written meanwhile.
    pub store_late: u32,
    /// A process dies at an operation on the store: before it, or after it and before the answer.
    pub crash: u32,
    /// An agent's process dies at some instant of its life.
    pub kill: u32,
    /// An agent's process is cut off from everything for a while, and then goes on.
    pub stall: u32,
    /// A new agent's process takes up to two minutes to start.
    pub cold: u32,
    /// A connection is refused.
    pub net_refused: u32,
    /// A request is lost.
    pub net_lost: u32,
    /// A request is served and its reply is lost.
    pub net_unanswered: u32,
    /// A request arrives twice, the second time later.
    pub net_doubled: u32,
    /// A request takes up to two minutes to arrive.
    pub net_delayed: u32,
    /// A service answers 429 and does nothing.
    pub net_throttled: u32,
    /// A service answers 500; half the time it has served the request all the same.
    pub net_failed: u32,
    /// A function's call is refused as one too many.
    pub call_throttled: u32,
    /// A function's call is made twice at once.
    pub call_doubled: u32,
    /// A function's reply is lost.
    pub call_unanswered: u32,
    /// The state machine's own process dies between two of its deeds and goes on from its history.
    pub restart: u32,
    /// The clocks of machines are up to five minutes apart.
    pub skew: u32,
    /// The trigger event is delivered twice.
    pub duplicate: u32,
    /// A person asks for the session's end.
    pub cancel: u32,
    /// Somebody stops the execution, which nobody resumes: the watchdog is to close its session.
    pub abandon: u32,
}

impl Faults {
    /// Nothing goes wrong.
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

    /// The faults of a seed: each kind is absent half the time and at a rate of its own otherwise,
    /// so that rare combinations are not drowned by everything failing at once.
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

    /// The faults of a seed, and the execution is stopped.
    pub fn abandoned(seed: u64) -> Self {
        Self { abandon: 1_000, duplicate: 0, ..Self::of(seed) }
    }
}

/// Seeded chance, `splitmix64`: the same seed and the same questions give the same answers.
#[derive(Debug)]
pub struct Chance(Mutex<u64>);

impl Chance {
    /// Chance of this seed.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    /// The next 64 bits.
    pub fn bits(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to `bound`, excluded.
    pub fn below(&self, bound: u64) -> u64 {
        self.bits() % bound.max(1)
    }

    /// Whether something of so many thousandths happens now.
    pub fn happens(&self, thousandths: u32) -> bool {
        thousandths > 0 && self.below(1_000) < u64::from(thousandths)
    }

    /// A time between two, in whole milliseconds, which is what timers keep.
    pub fn between(&self, from: Duration, to: Duration) -> Duration {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (from, to) = (millis(from), millis(to));
        Duration::from_millis(from + self.below(to.saturating_sub(from) + 1))
    }
}
