//! Waiting for a place in the agent runtime.
//!
//! A session asks again after pauses that grow, and at once when an ended session has freed a place
//! ([`Poller::offer_place`]). It keeps its place: the lease tells since when it waits. After
//! [`CAPACITY_WAIT_MAX`] it ends by name.

use std::time::Duration;

use journal::chain::End;
use journal::error_message::ErrorMessage;
use journal::id::SessionId;
use journal::key;
use journal::lease::{self, Lease, WhyHeld};
use journal::step::Ending;
use journal::store::{Query, Store};
use journal::wait::Wait;
use serde_json::Value;
use workflow::contract::{CheckRequest, Judgement, Watch, Woken};
use workflow::limits::{
    CAPACITY_PAUSE_FACTOR_PERCENT, CAPACITY_PAUSE_FIRST, CAPACITY_PAUSE_LONGEST, CAPACITY_WAIT_MAX,
    PARK_LONGEST,
};

use crate::judge::{Decision, again_uncounted, wait_for};
use crate::observe::Observed;
use crate::{Error, Poller};

/// Leases that are read at once to find a session that waits, the oldest heartbeat first.
const LEASES_READ: usize = 50;

/// Most pages of them: leases of halted and of lost sessions may be older than those that wait. A session that is not
/// found asks by itself.
const PAGES_MAX: usize = 10;

/// Waits for the next ask, asks, or ends the session because it has waited too long.
pub(crate) fn wait(observed: &Observed, request: &CheckRequest, watch: &mut Watch) -> Decision {
    let waited = request.now.since(*watch.capacity_since.get_or_insert(request.now));
    if waited >= CAPACITY_WAIT_MAX {
        return Decision::End(too_long());
    }
    if request.woken != Woken::Not {
        watch.capacity_asks = watch.capacity_asks.saturating_add(1);
        return again_uncounted(watch, observed, || Decision::AskAgain);
    }
    let pause = pause(&request.session_id, watch.capacity_asks);
    wait_for(watch, pause.min(CAPACITY_WAIT_MAX.saturating_sub(waited)), PARK_LONGEST);
    Decision::Wait(Judgement::Waiting)
}

/// The pause after this many asks: between half and all of a value that grows, so that sessions that came together do
/// not ask together.
fn pause(session: &SessionId, asks: u32) -> Duration {
    let mut longest = CAPACITY_PAUSE_FIRST;
    for _ in 0..asks {
        longest = longest * CAPACITY_PAUSE_FACTOR_PERCENT / 100;
        if longest >= CAPACITY_PAUSE_LONGEST {
            longest = CAPACITY_PAUSE_LONGEST;
            break;
        }
    }
    // FNV-1a: the same session and ask give the same pause, in every replay.
    let bytes = session.as_str().bytes().chain(asks.to_le_bytes());
    let spread = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let permille = 500 + u32::try_from(spread >> 32).unwrap_or(0) % 501;
    longest * permille / 1_000
}

fn too_long() -> End {
    let hours = CAPACITY_WAIT_MAX.as_secs() / 3_600;
    let why = format!("the agent runtime had no place for this session for {hours} hours");
    End {
        ending: Ending::Failed,
        error: Some(ErrorMessage::new("NoCapacity", "WaitedTooLong", &why)),
        category: Some("capacity".to_owned()),
        result: Value::Null,
    }
}

impl<S: Store> Poller<S> {
    /// Wakes the session that has waited longest for a place, of those in the ended session's partition of open leases.
    /// Best effort: each also asks by itself.
    pub(crate) async fn offer_place(&self, ended: &SessionId) {
        if let Err(error) = self.wake_longest_waiting(ended).await {
            tracing::warn!(session_id = %ended, %error, "A freed place was not offered.");
        }
    }

    async fn wake_longest_waiting(&self, ended: &SessionId) -> Result<(), Error> {
        let mut query = Query::open(lease::shard(ended.shard())).limited(LEASES_READ);
        for _ in 0..PAGES_MAX {
            let page = self.store.query(query.clone()).await?;
            for item in page.items {
                let waits = Lease::from_item(&item)
                    .is_ok_and(|lease| lease.hold().is_some_and(|it| it.why == WhyHeld::Capacity));
                let Some(session) = key::session_of(&item.pk).filter(|_| waits) else { continue };
                let Some(wait) = Wait::read(&self.store, &session).await? else { continue };
                // One that no longer waits with this token has asked just now: the next may have the place.
                if self.cloud.wake(&wait.token).await? {
                    return Ok(());
                }
            }
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_ten_minutes_and_differ_between_sessions() {
        let one: SessionId = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap();
        let other: SessionId = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398e".parse().unwrap();
        let mut bounds = vec![];
        for asks in 0..40 {
            let longest = 15.0 * 1.5_f64.powi(asks);
            bounds.push(longest.min(600.0));
        }
        for (asks, longest) in (0..).zip(bounds) {
            for session in [&one, &other] {
                let seconds = pause(session, asks).as_secs_f64();
                assert!((longest * 0.49..=longest * 1.001).contains(&seconds), "{asks}: {seconds}");
            }
        }
        assert_ne!(pause(&one, 3), pause(&other, 3));
        assert_eq!(pause(&one, 3), pause(&one, 3));
    }
}
