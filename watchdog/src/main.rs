//! The watchdog as a Lambda function.

use bootstrap::Ends;
use bootstrap::cloud::{self, Lookup};
use journal::clock::Clock;
use journal::dynamo::DynamoStore;
use lambda_runtime::Diagnostic;
use serde_json::Value;
use watchdog::config::Config;
use watchdog::{Cloud, Event, Report, Watchdog};
use workflow::{env, metric};

/// How Lambda's figures name a run that failed; no state machine looks at it.
const FAILED: &str = "WatchdogError";

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    #[expect(clippy::disallowed_methods, reason = "the program's one look at its environment")]
    let lookup: Lookup = |name| std::env::var(name).ok();
    bootstrap::start_logging(lookup);
    telemetry::figures::embed(metric::NAMESPACE);
    metric::describe();
    env::export_spans(&lookup, "daybook-watchdog")?;
    let config = Config::read(&lookup)?;
    let aws = cloud::aws(lookup);
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
    let answered = watchdog.handle(&Event::parse(&event)).await;
    tokio::task::block_in_place(telemetry::figures::finish);
    answered.map_err(|error| Diagnostic {
        error_type: FAILED.to_owned(),
        error_message: error.to_string(),
    })
}
