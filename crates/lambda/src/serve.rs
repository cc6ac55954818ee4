//! The event loop: handles one event at a time, and replies to each before its deadline.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use metrics_cloudwatch_embedded::Collector;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use crate::{Ends, Error};

/// How long before its deadline an event is abandoned, so that the error reply is still sent.
const RESERVE: Duration = Duration::from_millis(500);

/// Serves events until Lambda stops the function.
///
/// # Errors
/// If Lambda's Runtime API is unavailable.
pub(crate) async fn serve<A, R>(
    ends: Ends,
    metrics: &'static Collector,
    handle: impl AsyncFn(A) -> Result<R, Diagnostic>,
) -> Result<(), Error>
where
    A: DeserializeOwned,
    R: Serialize,
{
    let mut stop = signal(SignalKind::terminate())?;
    let answer = |event: LambdaEvent<Value>| answer(ends, metrics, &handle, event);
    tokio::select! {
        ended = lambda_runtime::run(service_fn(answer)) => ended,
        // The sender of an interrupted event retries it on another instance.
        _ = stop.recv() => {
            tracing::info!("Lambda stops this function.");
            Ok(())
        }
    }
}

async fn answer<A, R>(
    ends: Ends,
    metrics: &Collector,
    handle: &impl AsyncFn(A) -> Result<R, Diagnostic>,
    event: LambdaEvent<Value>,
) -> Result<R, Diagnostic>
where
    A: DeserializeOwned,
{
    let deadline = event.context.deadline();
    let event = serde_json::from_value(event.payload).map_err(|error| {
        tracing::warn!(%error, "An event is malformed.");
        Diagnostic { error_type: ends.malformed.to_owned(), error_message: error.to_string() }
    })?;
    let handled = async {
        let answer = AssertUnwindSafe(handle(event)).catch_unwind().await;
        // Panics of agents' code are contained further down. To the state machine this is a function that died.
        let answer = answer.unwrap_or_else(|_| std::process::abort());
        // Lambda may freeze the function as soon as it has replied.
        tokio::task::block_in_place(|| flush(metrics));
        answer
    };
    tokio::time::timeout(left(deadline), Box::pin(handled)).await.unwrap_or_else(|_| {
        tracing::error!("An event was not handled before its deadline.");
        let error_message = "no answer before the deadline".to_owned();
        Err(Diagnostic { error_type: ends.late.to_owned(), error_message })
    })
}

fn flush(metrics: &Collector) {
    telemetry::export::flush();
    if let Err(error) = metrics.flush(std::io::stdout()) {
        tracing::warn!(%error, "Metrics were not written.");
    }
}

/// The time left for the handler; zero shortly before the deadline.
#[expect(clippy::disallowed_methods, reason = "Lambda gives the deadline in the system's time")]
fn left(deadline: SystemTime) -> Duration {
    let left = deadline.duration_since(SystemTime::now()).unwrap_or_default();
    left.saturating_sub(RESERVE)
}
