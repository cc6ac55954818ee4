//! The invoker as a Lambda function.

use graph::profile::{Environment, Limits};
use invoker::Invoker;
use invoker::admission::Rules;
use journal::clock::Clock;
use lambda::{Ends, Error, diagnostic};
use workflow::contract::InvokeRequest;
use workflow::error_name;

/// At the deadline, the agent may have been invoked.
const ENDS: Ends =
    Ends { malformed: error_name::INVALID_REQUEST, late: error_name::INVOCATION_UNKNOWN };

fn main() -> Result<(), Error> {
    lambda::main("daybook-invoker", ENDS, |base| {
        let limits = Limits::read(packs::all(), &Environment::of(&base.lookup))?;
        let rules = Rules { agents: packs::all().into(), limits };
        let invoker = Invoker::new(base.store, base.runtime, Clock::system()).with_rules(rules);
        Ok(async move |request: InvokeRequest| {
            invoker.handle(request).await.map_err(|error| diagnostic(error.name(), &error))
        })
    })
}
