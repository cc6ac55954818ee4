//! The end of a host's lifetime.

use std::sync::atomic::Ordering;

use journal::store::Store;
use workflow::limits::HAND_OVER_AFTER;

use super::Host;

impl<S: Store> Host<S> {
    /// Waits until this host is so old that it has to hand its sessions over.
    pub async fn outlives(&self) {
        self.shared.config.clock.sleep(HAND_OVER_AFTER).await;
    }

    /// Hands its sessions over to other hosts, as [`Self::shutdown`] does, but waits longer for what is under way.
    pub async fn hand_over(&self) {
        self.shared.hands_over.store(true, Ordering::Release);
        self.shutdown().await;
    }
}
