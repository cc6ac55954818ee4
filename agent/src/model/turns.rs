//! Bounds the concurrent calls of each provider of models, in turns among sessions: a session with many calls
//! waits as long for each of them as one with a single call.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journal::clock::Clock;
use journal::id::SessionId;
use metrics::{Gauge, gauge, histogram};
use tokio::sync::oneshot;
use workflow::metric;

/// Most concurrent calls of one provider, if no setting says otherwise.
pub const CALLS_MAX: NonZeroU32 = NonZeroU32::new(64).unwrap();

/// The turns of one provider.
#[derive(Clone, Debug)]
pub struct Turns {
    shared: Arc<Shared>,
}

/// RAII permit of one call; released on drop.
#[derive(Debug)]
pub struct Turn {
    /// `None` if the provider has no bound, or the permit was passed on.
    shared: Option<Arc<Shared>>,
    has_waited: bool,
}

#[derive(Debug)]
struct Shared {
    /// The provider, as a label of metrics.
    by: &'static str,
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    /// The waiting calls of each session, oldest first.
    waiting: BTreeMap<SessionId, VecDeque<oneshot::Sender<Turn>>>,
    /// The sessions with waiting calls, in the order of their turns.
    order: VecDeque<SessionId>,
}

/// RAII count of a waiting call.
struct Waiting(Gauge);

impl Turns {
    pub fn new(by: &'static str, most: NonZeroU32) -> Self {
        let most = usize::try_from(most.get()).unwrap_or(usize::MAX);
        Self { shared: Arc::new(Shared { by, most, state: Mutex::default() }) }
    }

    /// Waits for a call's turn. Cancel-safe: the turn of a caller that is gone passes on.
    pub async fn take(&self, session: &SessionId) -> Turn {
        let Some(turn) = self.shared.queue(session) else {
            return Turn { shared: Some(Arc::clone(&self.shared)), has_waited: false };
        };
        let clock = Clock::system().even();
        let begun_at = clock.now();
        let by = self.shared.by;
        let _waiting = Waiting::begin(gauge!(metric::MODEL_CALLS_WAITING, "by" => by));
        let turn = turn.await.unwrap_or_else(|_| unreachable!("a waiting call is answered"));
        histogram!(metric::MODEL_WAIT_SECONDS, "by" => by).record(clock.now().since(begun_at));
        turn
    }
}

impl Turn {
    /// The turn of a call to something that has no bound.
    pub const fn unbounded() -> Self {
        Self { shared: None, has_waited: false }
    }

    pub const fn has_waited(&self) -> bool {
        self.has_waited
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.pass_on();
        }
    }
}

impl Shared {
    /// Queues a call. `None` if it may begin at once.
    fn queue(&self, session: &SessionId) -> Option<oneshot::Receiver<Turn>> {
        let mut state = self.state();
        if state.under_way < self.most {
            state.under_way += 1;
            return None;
        }
        let (turn, waits) = oneshot::channel();
        let of_session = state.waiting.entry(session.clone()).or_default();
        of_session.push_back(turn);
        if of_session.len() == 1 {
            state.order.push_back(session.clone());
        }
        Some(waits)
    }

    /// Gives the place of an ended call to the next one whose caller still waits.
    fn pass_on(self: Arc<Self>) {
        loop {
            let Some(next) = self.state().next() else { return };
            let turn = Turn { shared: Some(Arc::clone(&self)), has_waited: true };
            let Err(mut turn) = next.send(turn) else { return };
            turn.shared = None;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The next waiting call; without one, a call fewer is under way.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        while let Some(session) = self.order.pop_front() {
            let Some(calls) = self.waiting.get_mut(&session) else { continue };
            let next = calls.pop_front();
            if calls.is_empty() {
                self.waiting.remove(&session);
            } else {
                self.order.push_back(session);
            }
            if next.is_some() {
                return next;
            }
        }
        self.under_way -= 1;
        None
    }
}

impl Waiting {
    fn begin(gauge: Gauge) -> Self {
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;
    use futures_util::{FutureExt as _, poll};

    use super::*;

    fn turns(most: u32) -> Turns {
        Turns::new("test", NonZeroU32::new(most).unwrap())
    }

    fn sessions() -> (SessionId, SessionId) {
        (SessionId::fresh(), SessionId::fresh())
    }

    /// Waiting calls, each polled once so that it is in the queue.
    async fn queued<'a>(turns: &'a Turns, of: &[&'a SessionId]) -> Vec<BoxFuture<'a, Turn>> {
        let mut waiting = Vec::new();
        for session in of {
            let mut call = turns.take(session).boxed();
            assert!(poll!(&mut call).is_pending());
            waiting.push(call);
        }
        waiting
    }

    #[tokio::test]
    async fn a_session_with_many_calls_starves_no_other() {
        let turns = turns(1);
        let (many, single) = sessions();
        let mut held = turns.take(&many).await;
        assert!(!held.has_waited());
        let of = [&many, &many, &many, &single];
        let mut waiting = queued(&turns, &of).await;
        // Second of all, although it asked last.
        for next in [0, 3, 1, 2] {
            drop(held);
            held = (&mut waiting[next]).now_or_never().expect("its turn");
            assert!(held.has_waited());
        }
        drop(held);
        assert!(!turns.take(&single).await.has_waited());
    }

    #[tokio::test]
    async fn the_turn_of_a_caller_that_is_gone_passes_on() {
        let turns = turns(1);
        let (one, other) = sessions();
        let held = turns.take(&one).await;
        let mut waiting = queued(&turns, &[&one, &one, &other]).await;
        let last = waiting.pop().unwrap();
        // One is gone before its turn, one after it.
        drop(waiting.pop());
        drop(held);
        drop(waiting);
        drop(last.now_or_never().expect("its turn"));
        assert!(!turns.take(&other).await.has_waited());
    }
}
