//! The open connections of a server, bounded in number.
//!
//! A full server closes the connection that has waited longest for its next request. So connections
//! without a request never keep a request out, however many there are.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

#[derive(Debug)]
pub struct Connections {
    max: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    count: usize,
    /// The connections without a request, in the order in which they began to wait for one.
    waiting: BTreeMap<u64, Arc<Eviction>>,
    next: u64,
}

#[derive(Debug, Default)]
struct Eviction {
    happened: AtomicBool,
    notify: Notify,
}

/// One connection's place. Dropping it frees the place.
#[derive(Debug)]
pub struct Place {
    connections: Arc<Connections>,
    eviction: Arc<Eviction>,
    /// Its key in `waiting`, if it waits for a request.
    turn: Mutex<Option<u64>>,
}

impl Connections {
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, open: Mutex::default() })
    }

    /// Takes a place; `None` if all connections have a request.
    pub fn admit(self: &Arc<Self>) -> Option<Arc<Place>> {
        let mut open = self.open();
        if open.count < self.max {
            open.count += 1;
        } else {
            // The place passes to the new connection, so the count stays.
            let (_, evicted) = open.waiting.pop_first()?;
            evicted.happened.store(true, Ordering::Release);
            evicted.notify.notify_one();
        }
        drop(open);
        let place = Place {
            connections: Arc::clone(self),
            eviction: Arc::default(),
            turn: Mutex::default(),
        };
        place.wait();
        Some(Arc::new(place))
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Its connection waits for a request from now on.
    pub fn wait(&self) {
        let mut open = self.connections.open();
        if self.eviction.happened.load(Ordering::Acquire) {
            return;
        }
        let turn = open.next;
        open.next += 1;
        open.waiting.insert(turn, Arc::clone(&self.eviction));
        if let Some(earlier) = self.turn().replace(turn) {
            open.waiting.remove(&earlier);
        }
    }

    /// Its connection has a request.
    pub fn work(&self) {
        let mut open = self.connections.open();
        if let Some(turn) = self.turn().take() {
            open.waiting.remove(&turn);
        }
    }

    /// Whether its connection has a request.
    pub fn works(&self) -> bool {
        self.turn().is_none()
    }

    /// Ready once another connection took this place.
    pub async fn evicted(&self) {
        self.eviction.notify.notified().await;
    }

    fn turn(&self) -> MutexGuard<'_, Option<u64>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.work();
        let mut open = self.connections.open();
        if !self.eviction.happened.load(Ordering::Acquire) {
            open.count -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_the_longest_wait_is_passed_on() {
        let connections = Connections::new(2);
        let (first, second) = (connections.admit().unwrap(), connections.admit().unwrap());
        first.work();
        first.wait();
        let third = connections.admit().unwrap();
        assert!(second.eviction.happened.load(Ordering::Acquire), "it waited longest");
        first.work();
        third.work();
        assert!(connections.admit().is_none(), "both have a request");
        drop(second);
        assert!(connections.admit().is_none(), "the evicted one had no place any more");
        drop(first);
        assert!(connections.admit().is_some());
        drop(third);
        assert_eq!(connections.open().count, 0);
        assert!(connections.open().waiting.is_empty());
    }
}
