//! EventBridge for the watchdog: delivers the ends of executions, and a schedule.

use std::sync::Arc;

use journal::clock::Clock;
use journal::store::Store;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use watchdog::{Event, Watchdog, event};
use workflow::limits::SWEEP_EVERY;
use workflow::rule::{EXECUTION_SOURCE, EXECUTION_STATUS_CHANGE};

use crate::executions::Record;
use crate::names;

/// Calls the watchdog for each execution that ends and for each scheduled sweep, until stopped.
pub(crate) async fn watch<S: Store>(
    watchdog: Watchdog<S>,
    mut ends: Receiver<Arc<Record>>,
    clock: Clock,
    stop: CancellationToken,
) {
    let clock = clock.even();
    let mut next_sweep = clock.now().after(SWEEP_EVERY);
    loop {
        // Cancel-safe: an end stays in its queue, and the next sweep keeps its time.
        let event = tokio::select! {
            () = stop.cancelled() => return,
            () = clock.sleep(next_sweep.since(clock.now())) => {
                next_sweep = clock.now().after(SWEEP_EVERY);
                json!({ "source": "aws.events", "detail-type": event::SCHEDULED })
            }
            ended = ends.recv() => match ended {
                // A state machine of a user runs no session.
                Ok(record) if record.machine_arn != names::STATE_MACHINE_ARN => continue,
                Ok(record) => status_change(&record),
                                // The sweep finds what the queue dropped.
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
            tracing::warn!(%error, "The watchdog failed to handle an event.");
        }
    }
}

/// An execution's end as an EventBridge event.
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
