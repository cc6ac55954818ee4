//! Notices when the machine's clock is set, by comparing it with the monotonic clock.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use journal::clock::{Clock, Stamp};
use journal::limits::SKEW_NOTED;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::executions::{ExecutionStore, Executions};

/// How often the clocks are compared, by the machine's clock.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A step of the machine's clock by more than [`SKEW_NOTED`]. A machine that slept shows one, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// What the clock showed after it.
    pub at: Stamp,
    /// Negative if the clock went back.
    pub by_ms: i64,
}

/// The steps that this stack has noticed. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ClockSteps(Arc<Mutex<(u64, Option<ClockStep>)>>);

impl ClockSteps {
    /// A start with a clock that is behind the newest time in the file: it was set back meanwhile, or
    /// was wrong before.
    pub(crate) fn since(newest: Option<Stamp>, now: Stamp) -> Self {
        let steps = Self::default();
        if let Some(newest) = newest.filter(|newest| newest.since(now) > SKEW_NOTED) {
            let by_ms = apart_ms(newest, now);
            tracing::warn!(by_ms, "The clock shows an earlier time than the journal's file.");
            steps.note(ClockStep { at: now, by_ms });
        }
        steps
    }

    fn note(&self, step: ClockStep) {
        let mut steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *steps = (steps.0 + 1, Some(step));
    }

    /// As the API shows them.
    pub fn to_json(&self) -> Value {
        let (count, newest) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = newest.map(|step| json!({ "at": step.at, "by_ms": step.by_ms }));
        json!({ "steps": count, "newest": newest })
    }
}

/// Compares the clocks until `stop`. After a step, waiting executions look at the clock again.
pub(crate) async fn watch<S: ExecutionStore>(
    clock: Clock,
    steps: ClockSteps,
    executions: Executions<S>,
    stop: CancellationToken,
) {
    loop {
        let even = clock.even();
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let (expected, now) = (even.now(), clock.now());
        if now.since(expected).max(expected.since(now)) > SKEW_NOTED {
            let by_ms = apart_ms(expected, now);
            tracing::warn!(by_ms, "The machine's clock was set, or the machine slept.");
            steps.note(ClockStep { at: now, by_ms });
            executions.wall_was_set();
        }
    }
}

fn apart_ms(from: Stamp, to: Stamp) -> i64 {
    to.millis().saturating_sub(from.millis())
}
