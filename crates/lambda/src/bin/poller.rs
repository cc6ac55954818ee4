//! The poller as a Lambda function.

use journal::clock::Clock;
use journal::dynamo::DynamoStore;
use lambda::{Base, Ends, Error, diagnostic};
use poller::Poller;
use poller::checkpoint::{self, Checkpoints};
use poller::kms::KmsKey;
use serde_json::{Value, json};
use workflow::error_name;

/// The state machine retries after the deadline, which is safe.
const ENDS: Ends =
    Ends { malformed: error_name::INVALID_REQUEST, late: error_name::JOURNAL_UNAVAILABLE };

fn main() -> Result<(), Error> {
    lambda::main("daybook-poller", ENDS, |base| {
        let checkpoints = checkpoints(&base);
        let notices = lambda::notices(&base);
        let callbacks = aws_sdk_sfn::Client::new(&base.aws);
        let poller = Poller::new(base.store, callbacks, base.runtime, Clock::system());
        let machine = (base.lookup)(workflow::env::STATE_MACHINE_ARN);
        let agents = packs::all().iter().map(|agent| agent.name().to_owned());
        let poller = poller.with_state_machine(machine).with_agents(agents);
        let poller = poller.ignoring_answers_of_callbacks();
        let poller = poller.with_notices(notices);
        Ok(async move |payload: Value| {
            let served = match &checkpoints {
                Some(checkpoints) if checkpoint::is_request(&payload) => {
                    checkpoints.sign().await.map(|signed| json!(signed))
                }
                _ => Box::pin(poller.serve(payload)).await,
            };
            served.map_err(|error| diagnostic(error.name(), &error))
        })
    })
}

/// `None` in an account without a log of sessions.
fn checkpoints(base: &Base) -> Option<Checkpoints<DynamoStore, KmsKey>> {
    let id = workflow::env::text(&base.lookup, workflow::env::JOURNAL_LOG_KEY)?;
    let key = KmsKey::new(&base.aws, id, base.store.table().to_owned());
    Some(Checkpoints::new(base.store.clone(), key))
}
