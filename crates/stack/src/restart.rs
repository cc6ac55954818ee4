//! Tasks of the stack that run again after a panic. Without this, what they do would stand still until the next start.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use graph::panics::Panicked;
use tokio_util::sync::CancellationToken;

/// The delay before a task that panicked runs again, by the machine's clock. Each further panic doubles it.
const DELAY_FIRST: Duration = Duration::from_secs(1);

const DELAY_LONGEST: Duration = Duration::from_secs(60);

/// Runs a task to its end. If it panics, runs it again after a delay, until `stop`.
pub(crate) async fn after_panics<F: Future<Output = ()>>(
    name: &'static str,
    stop: CancellationToken,
    mut task: impl FnMut() -> F,
) {
    let mut delay = DELAY_FIRST;
    while let Err(panic) = contained(name, task()).await {
        tracing::error!(%panic, "A task of the stack panicked; it runs again.");
        if stop.run_until_cancelled(tokio::time::sleep(delay)).await.is_none() {
            return;
        }
        delay = (delay * 2).min(DELAY_LONGEST);
    }
}

/// Runs a future to its end, or to its panic.
pub(crate) async fn contained<F: Future>(name: &str, task: F) -> Result<F::Output, Panicked> {
    let ended = AssertUnwindSafe(task).catch_unwind().await;
    ended.map_err(|payload| Panicked::of(name, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_runs_again_until_it_ends() {
        let mut runs = 0;
        let task = || {
            runs += 1;
            let panics = runs < 2;
            async move { assert!(!panics, "on purpose") }
        };
        after_panics("a task", CancellationToken::new(), task).await;
        assert_eq!(runs, 2);
    }

    #[tokio::test]
    async fn a_task_that_panics_does_not_delay_a_stop() {
        let stop = CancellationToken::new();
        stop.cancel();
        after_panics("a task", stop, || async { panic!("on purpose") }).await;
    }
}
