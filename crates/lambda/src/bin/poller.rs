//! The poller as a Lambda function.

use journal::clock::Clock;
use lambda::{Ends, Error, diagnostic};
use poller::Poller;
use serde_json::Value;
use workflow::error_name;

/// The state machine retries after the deadline, which is safe.
const ENDS: Ends =
    Ends { malformed: error_name::INVALID_REQUEST, late: error_name::JOURNAL_UNAVAILABLE };

fn main() -> Result<(), Error> {
    lambda::main("daybook-poller", ENDS, |base| {
        let callbacks = aws_sdk_sfn::Client::new(&base.aws);
        let poller = Poller::new(base.store, callbacks, base.runtime, Clock::system());
        let machine = (base.lookup)(workflow::env::STATE_MACHINE_ARN);
        let poller = poller.with_state_machine(machine).ignoring_answers_of_callbacks();
        Ok(async move |payload: Value| {
            poller.serve(payload).await.map_err(|error| diagnostic(error.name(), &error))
        })
    })
}
