//! How a function serves Lambda: one event at a time, each answered before its deadline, until Lambda
//! says stop.
//!
//! [`start_logging`] and [`cloud::aws`] are what a finished function begins with, [`serve`] is its loop. It knows nothing of what functions do: whatever it cuts
//! off at a deadline or a stop looks to the journal like a machine that died, which every function is
//! written for. `stand_in` is the other side of Lambda's Runtime API, to run finished binaries against,
//! and `conformance` what each of them must do there.

pub mod cloud;
#[cfg(feature = "test-support")]
pub mod conformance;
#[cfg(feature = "test-support")]
pub mod stand_in;

use std::time::{Duration, SystemTime};

use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// How long before its deadline an event is given up, so that the answer still gets out.
pub const RESERVE: Duration = Duration::from_millis(500);

/// How the events end that the function itself does not come to answer, as error names.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// The event is not what the function takes.
    pub malformed: &'static str,
    /// Its deadline came first: it may have been done, in part or in full.
    pub late: &'static str,
}

/// Logs lines of JSON, which CloudWatch finds fields in, whatever the function is set to: what `RUST_LOG`
/// asks for of targets and levels, else what informs.
pub fn start_logging(lookup: cloud::Lookup) {
    let asked = lookup("RUST_LOG").and_then(|text| text.parse::<Targets>().ok());
    let filter = asked.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let lines = tracing_subscriber::fmt::layer().json();
    tracing_subscriber::registry().with(lines).with(filter).init();
}

/// Serves events until Lambda stops the function.
///
/// # Errors
/// When Lambda's Runtime API is out of reach.
pub async fn serve<A, R>(
    ends: Ends,
    handle: impl AsyncFn(A) -> Result<R, Diagnostic>,
) -> Result<(), lambda_runtime::Error>
where
    A: DeserializeOwned,
    R: Serialize,
{
    let mut stop = signal(SignalKind::terminate())?;
    let answer = |event: LambdaEvent<Value>| answer(ends, &handle, event);
    tokio::select! {
        ended = lambda_runtime::run(service_fn(answer)) => ended,
        // An event that is cut off here is given to another machine by whoever sent it.
        _ = stop.recv() => {
            tracing::info!("Lambda stops this function.");
            Ok(())
        }
    }
}

async fn answer<A, R>(
    ends: Ends,
    handle: &impl AsyncFn(A) -> Result<R, Diagnostic>,
    event: LambdaEvent<Value>,
) -> Result<R, Diagnostic>
where
    A: DeserializeOwned,
{
    let deadline = event.context.deadline();
    let event = serde_json::from_value(event.payload).map_err(|error| {
        tracing::warn!(%error, "An event is not what this function takes.");
        Diagnostic { error_type: ends.malformed.to_owned(), error_message: error.to_string() }
    })?;
    tokio::time::timeout(left(deadline), Box::pin(handle(event))).await.unwrap_or_else(|_| {
        tracing::error!("An event was not done before its deadline.");
        let error_message = "the deadline came before the answer".to_owned();
        Err(Diagnostic { error_type: ends.late.to_owned(), error_message })
    })
}

/// How long may be worked; nothing if the deadline is nearly there.
#[expect(clippy::disallowed_methods, reason = "Lambda gives the deadline in the system's time")]
fn left(deadline: SystemTime) -> Duration {
    let left = deadline.duration_since(SystemTime::now()).unwrap_or_default();
    left.saturating_sub(RESERVE)
}
