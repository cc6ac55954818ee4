//! The poller as a Lambda function.

use bootstrap::Ends;
use bootstrap::cloud::{self, Lookup};
use journal::clock::Clock;
use journal::dynamo::DynamoStore;
use lambda_runtime::Diagnostic;
use poller::config::Config;
use poller::{Error, Poller, Runtime};
use serde_json::Value;
use workflow::{env, error_name, metric};

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    #[expect(clippy::disallowed_methods, reason = "the program's one look at its environment")]
    let lookup: Lookup = |name| std::env::var(name).ok();
    bootstrap::start_logging(lookup);
    telemetry::figures::embed(metric::NAMESPACE);
    metric::describe();
    env::export_spans(&lookup, "daybook-poller")?;
    let config = Config::read(&lookup)?;
    let aws = cloud::aws(lookup);
    let store = DynamoStore::new(&aws, &config.table);
    let runtime = Runtime {
        client: aws_sdk_bedrockagentcore::Client::new(&aws),
        arn: config.runtime_arn,
        qualifier: config.qualifier,
    };
    let poller = Poller::new(store, aws_sdk_sfn::Client::new(&aws), runtime, Clock::system());
    // Whatever it does may be done again, and the state machine does so for this name.
    let ends =
        Ends { malformed: error_name::INVALID_REQUEST, late: error_name::JOURNAL_UNAVAILABLE };
    bootstrap::serve(ends, async |payload| serve(&poller, payload).await).await
}

async fn serve(poller: &Poller<DynamoStore>, payload: Value) -> Result<Value, Diagnostic> {
    let answered = poller.serve(payload).await;
    tokio::task::block_in_place(telemetry::figures::finish);
    answered.map_err(|error| diagnostic(&error))
}

/// The state machine matches the name, so the type's own name must not get into it.
fn diagnostic(error: &Error) -> Diagnostic {
    Diagnostic { error_type: error.name().to_owned(), error_message: error.to_string() }
}
