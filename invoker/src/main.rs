//! The invoker as a Lambda function.

use aws_config::BehaviorVersion;
use bootstrap::Ends;
use invoker::config::Config;
use invoker::{Error, Invoker, Runtime};
use journal::clock::Clock;
use journal::dynamo::DynamoStore;
use lambda_runtime::Diagnostic;
use metrics_cloudwatch_embedded::{Builder, Collector};
use workflow::contract::{InvokeReply, InvokeRequest};
use workflow::{error_name, metric};

// One event at a time needs no second thread.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let figures = Builder::new().cloudwatch_namespace(metric::NAMESPACE).init()?;
    #[expect(clippy::disallowed_methods, reason = "the program's one look at its environment")]
    let config = Config::read(&|name: &str| std::env::var(name).ok())?;
    let aws = aws_config::load_defaults(BehaviorVersion::latest()).await;
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
    bootstrap::serve(ends, async |request| answer(&invoker, figures, request).await).await
}

async fn answer(
    invoker: &Invoker<DynamoStore>,
    figures: &Collector,
    request: InvokeRequest,
) -> Result<InvokeReply, Diagnostic> {
    let answer = invoker.handle(request).await;
    // A function may be frozen as soon as it has answered.
    if let Err(error) = figures.flush(std::io::stdout()) {
        tracing::warn!(%error, "The figures were not written.");
    }
    answer.map_err(|error| diagnostic(&error))
}

/// The state machine matches the name, so the type's own name must not get into it.
fn diagnostic(error: &Error) -> Diagnostic {
    Diagnostic { error_type: error.name().to_owned(), error_message: error.to_string() }
}
