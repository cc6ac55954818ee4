//! Pauses between attempts to put an event that the event bus throttles. It has taken none then, so another attempt
//! starts no second session.

use std::time::Duration;

use aws_sdk_eventbridge::error::{ProvideErrorMetadata as _, SdkError};
use aws_sdk_eventbridge::operation::put_events::{PutEventsError, PutEventsOutput};
use journal::clock::Clock;

use crate::output;

/// Source: AWS, `PutEventsResultEntry`, `ErrorCode`; the same as the error of a whole request.
const THROTTLED: &str = "ThrottlingException";

/// The first pause. Each further one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(500);

const PAUSE_LONGEST: Duration = Duration::from_secs(8);

/// Attempts after the first: a minute in all.
const RETRIES_MAX: u32 = 10;

#[derive(Debug, Default)]
pub(super) struct Backoff {
    retries: u32,
}

impl Backoff {
    /// Says why, and waits for the next attempt. Returns false if there is none.
    pub(super) async fn pause(&mut self, why: &str) -> bool {
        if self.retries == RETRIES_MAX {
            return false;
        }
        let pause = PAUSE_FIRST.saturating_mul(1 << self.retries).min(PAUSE_LONGEST);
        self.retries += 1;
        // Clients that were throttled together try again at different times.
        let share = Clock::system().now().nanos().unsigned_abs() % 1_000;
        let pause = pause.mul_f64(0.5 + f64::from(u32::try_from(share).unwrap_or(0)) / 2_000.0);
        let seconds = pause.as_secs_f64();
        let (retry, most) = (self.retries, RETRIES_MAX);
        output::say(&format!("{why}; trying again in {seconds:.1} s ({retry} of {most})"));
        tokio::time::sleep(pause).await;
        true
    }
}

/// Why the event, or the only entry, was throttled; `None` if it was not.
pub(super) fn throttled(
    answer: &Result<PutEventsOutput, SdkError<PutEventsError>>,
) -> Option<String> {
    let (code, message) = match answer {
        Ok(output) => {
            let entry = output.entries().first()?;
            (entry.error_code()?, entry.error_message())
        }
        Err(error) => (error.code()?, error.message()),
    };
    (code == THROTTLED).then(|| message.unwrap_or("the event bus is throttled").to_owned())
}
