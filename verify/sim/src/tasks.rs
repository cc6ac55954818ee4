//! The only place that spawns tasks.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;

/// Background tasks, dropped with the world.
#[derive(Clone, Debug, Default)]
pub struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while set.try_join_next().is_some() {}
        set.spawn(task);
    }

    pub fn abort(&self) {
        let set = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        drop(set);
    }
}
