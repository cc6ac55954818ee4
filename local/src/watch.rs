//! What EventBridge does for the watchdog: tells it of executions that end, and wakes it on a schedule.

use std::sync::Arc;

use journal::clock::Clock;
use journal::sqlite::SqliteStore;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use watchdog::{Event, Watchdog, event};
use workflow::limits::SWEEP_EVERY;
use workflow::rule::{EXECUTION_SOURCE, EXECUTION_STATUS_CHANGE};

use crate::executions::Record;

/// Has the watchdog see to what ends and to what is neglected, until told to stop.
pub(crate) async fn watch(
    watchdog: Watchdog<SqliteStore>,
    mut ends: Receiver<Arc<Record>>,
    clock: Clock,
    stop: CancellationToken,
) {
    let mut next_sweep = clock.now().after(SWEEP_EVERY);
    loop {
        // Whichever loses loses nothing: an end stays in its queue, and the sweep's time stands.
        let event = tokio::select! {
            () = stop.cancelled() => return,
            () = clock.sleep(next_sweep.since(clock.now())) => {
                next_sweep = clock.now().after(SWEEP_EVERY);
                json!({ "source": "aws.events", "detail-type": event::SCHEDULED })
            }
            ended = ends.recv() => match ended {
                Ok(record) => status_change(&record),
                // The sweep finds what was not told.
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return,
            },
        };
        let event = Event::parse(&event);
        let handled = tokio::select! {
            () = stop.cancelled() => return,
            handled = watchdog.handle(&event) => handled,
        };
        if let Err(error) = handled {
            tracing::warn!(%error, "The watchdog could not do what it was called for.");
        }
    }
}

/// An execution's end as EventBridge tells it.
///
/// Source: AWS, "Automating Step Functions event delivery with EventBridge".
fn status_change(record: &Record) -> Value {
    json!({
        "source": EXECUTION_SOURCE,
        "detail-type": EXECUTION_STATUS_CHANGE,
        "detail": {
            "executionArn": record.arn,
            "stateMachineArn": record.machine_arn,
            "name": record.name,
            "status": record.status,
            "startDate": record.started_at.as_millis(),
            "stopDate": record.stopped_at.map(|at| at.as_millis()),
            "input": record.input,
            "output": record.output,
            "error": record.error,
            "cause": record.cause,
        },
    })
}
