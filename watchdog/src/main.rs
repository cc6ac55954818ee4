//! The watchdog as a Lambda function.

use aws_config::BehaviorVersion;
use bootstrap::Ends;
use journal::clock::Clock;
use journal::dynamo::DynamoStore;
use lambda_runtime::Diagnostic;
use serde_json::Value;
use watchdog::config::Config;
use watchdog::{Cloud, Event, Report, Watchdog};

/// How Lambda's figures name a run that failed; no state machine looks at it.
const FAILED: &str = "WatchdogError";

// One event at a time needs no second thread.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    lambda_runtime::tracing::init_default_subscriber();
    #[expect(clippy::disallowed_methods, reason = "the program's one look at its environment")]
    let config = Config::read(&|name: &str| std::env::var(name).ok())?;
    let aws = aws_config::load_defaults(BehaviorVersion::latest()).await;
    let cloud = Cloud {
        executions: aws_sdk_sfn::Client::new(&aws),
        runtime: aws_sdk_bedrockagentcore::Client::new(&aws),
        runtime_arn: config.runtime_arn,
        qualifier: config.qualifier,
    };
    let watchdog = Watchdog::new(DynamoStore::new(&aws, &config.table), cloud, Clock::system());
    // The event is delivered again, and the next sweep finds what this one left.
    let ends = Ends { malformed: FAILED, late: FAILED };
    bootstrap::serve(ends, async |event| answer(&watchdog, event).await).await
}

async fn answer(watchdog: &Watchdog<DynamoStore>, event: Value) -> Result<Report, Diagnostic> {
    watchdog.handle(&Event::parse(&event)).await.map_err(|error| Diagnostic {
        error_type: FAILED.to_owned(),
        error_message: error.to_string(),
    })
}
