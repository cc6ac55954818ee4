//! The watchdog as a Lambda function.

use journal::clock::Clock;
use lambda::{Ends, Error, diagnostic};
use serde_json::Value;
use watchdog::{Cloud, Event, Watchdog};

/// The error name in Lambda's metrics; no state machine matches it.
const FAILED: &str = "WatchdogError";

/// Lambda retries after the deadline, and the next sweep continues.
const ENDS: Ends = Ends { malformed: FAILED, late: FAILED };

fn main() -> Result<(), Error> {
    lambda::main("daybook-watchdog", ENDS, |base| {
        let notices = lambda::notices(&base);
        let executions = aws_sdk_sfn::Client::new(&base.aws);
        let cloud = Cloud { executions, runtime: base.runtime };
        let watchdog = Watchdog::new(base.store, cloud, Clock::system()).with_notices(notices);
        Ok(async move |event: Value| {
            watchdog.handle(&Event::parse(&event)).await.map_err(|error| diagnostic(FAILED, &error))
        })
    })
}
