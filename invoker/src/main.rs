//! The invoker as a Lambda function.

use bootstrap::Ends;
use bootstrap::cloud::{self, Lookup};
use invoker::config::Config;
use invoker::{Error, Invoker, Runtime};
use journal::clock::Clock;
use journal::dynamo::DynamoStore;
use lambda_runtime::Diagnostic;
use workflow::contract::{InvokeReply, InvokeRequest};
use workflow::{env, error_name, metric};

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    #[expect(clippy::disallowed_methods, reason = "the program's one look at its environment")]
    let lookup: Lookup = |name| std::env::var(name).ok();
    bootstrap::start_logging(lookup);
    telemetry::figures::embed(metric::NAMESPACE);
    metric::describe();
    env::export_spans(&lookup, "daybook-invoker")?;
    let config = Config::read(&lookup)?;
    let aws = cloud::aws(lookup);
    let store = DynamoStore::new(&aws, &config.table);
    let runtime = Runtime {
        client: aws_sdk_bedrockagentcore::Client::new(&aws),
        arn: config.runtime_arn,
        qualifier: config.qualifier,
    };
    let invoker = Invoker::new(store, runtime, Clock::system()).with_limits(config.limits);
    // The agent may have been invoked by then.
    let ends =
        Ends { malformed: error_name::INVALID_REQUEST, late: error_name::INVOCATION_UNKNOWN };
    bootstrap::serve(ends, async |request| answer(&invoker, request).await).await
}

async fn answer(
    invoker: &Invoker<DynamoStore>,
    request: InvokeRequest,
) -> Result<InvokeReply, Diagnostic> {
    let answered = invoker.handle(request).await;
    tokio::task::block_in_place(telemetry::figures::finish);
    answered.map_err(|error| diagnostic(&error))
}

/// The state machine matches the name, so the type's own name must not get into it.
fn diagnostic(error: &Error) -> Diagnostic {
    Diagnostic { error_type: error.name().to_owned(), error_message: error.to_string() }
}
