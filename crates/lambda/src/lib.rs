//! The bootstrap of the Lambda functions: the binaries `invoker`, `poller` and `watchdog`.
//!
//! [`main`] sets up logs, metrics, spans and the AWS clients, and runs `serve`, which handles one
//! event at a time until Lambda stops the function. Each binary makes its handler from a [`Base`].
//! Lambda stops a handler at its deadline. To the journal that is a crash, which each handler
//! tolerates.

mod aws;
mod config;
mod serve;

use agentcore::Runtime;
use aws_config::SdkConfig;
use journal::dynamo::DynamoStore;
use lambda_runtime::Diagnostic;
use notify::bus::Notices;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use workflow::{env, metric};

use config::Config;

/// Why a function stops: an invalid environment, or an unavailable Runtime API.
pub type Error = lambda_runtime::Error;

/// Reads a variable of the environment.
pub type Lookup = fn(&str) -> Option<String>;

/// Error names of events without an answer of the handler.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// The event is malformed.
    pub malformed: &'static str,
    /// The deadline passed: the event may have been handled in part or in full.
    pub late: &'static str,
}

/// The parts from which a binary makes its handler.
#[derive(Clone, Debug)]
pub struct Base {
    pub store: DynamoStore,
    pub runtime: Runtime,
    /// Configuration of further clients, which share connections.
    pub aws: SdkConfig,
    /// Environment lookup, for settings of one function.
    pub lookup: Lookup,
}

/// What puts events about sessions on a bus; `None` in an account where nobody wants them.
pub fn notices(base: &Base) -> Option<Notices> {
    let bus = workflow::env::text(&base.lookup, workflow::env::NOTIFY_BUS_NAME)?;
    let link = workflow::env::text(&base.lookup, workflow::env::NOTIFY_LINK);
    let client = aws_sdk_eventbridge::Client::new(&base.aws);
    Some(Notices::new(client, bus, packs::all().into(), link))
}

/// Runs a function: serves the handler that `make` returns until Lambda stops the program. Its spans
/// have the service name `service`.
///
/// # Errors
/// If an environment variable is missing or malformed, or Lambda's Runtime API is unavailable.
pub fn main<A, R, H>(
    service: &'static str,
    ends: Ends,
    make: impl FnOnce(Base) -> Result<H, Error>,
) -> Result<(), Error>
where
    A: DeserializeOwned,
    R: Serialize,
    H: AsyncFn(A) -> Result<R, Diagnostic>,
{
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the environment")]
    let lookup: Lookup = |name| std::env::var(name).ok();
    start_logging(lookup);
    let metrics = metrics_cloudwatch_embedded::Builder::new();
    let metrics = metrics.cloudwatch_namespace(metric::NAMESPACE);
    let metrics = match env::text(&lookup, env::DAYBOOK_STAGE) {
        Some(stage) => metrics.with_dimension(metric::STAGE, stage),
        None => metrics,
    };
    let metrics = metrics.init()?;
    telemetry::metrics::set_on();
    metric::describe();
    exporters::export_spans(&lookup, service)?;
    let config = Config::read(&lookup)?;
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    tokio.block_on(async {
        let aws = aws::config(lookup);
        let runtime = Runtime {
            client: aws_sdk_bedrockagentcore::Client::new(&aws),
            arn: config.runtime_arn,
            qualifier: config.qualifier,
        };
        let store = DynamoStore::new(&aws, &config.table);
        let store = if config.is_logged { store.with_log() } else { store };
        let handler = make(Base { store, runtime, aws, lookup })?;
        serve::serve(ends, metrics, handler).await
    })
}

/// An error by the name that the state machine matches.
pub fn diagnostic(name: &str, error: &impl std::error::Error) -> Diagnostic {
    Diagnostic { error_type: name.to_owned(), error_message: error.to_string() }
}

/// Logs JSON lines, whose fields CloudWatch indexes, at the levels in `RUST_LOG`, else INFO.
fn start_logging(lookup: Lookup) {
    let asked = lookup("RUST_LOG").and_then(|text| text.parse::<Targets>().ok());
    let filter = asked.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    // It would panic when it cannot write the line.
    let lines = tracing_subscriber::fmt::layer().json().log_internal_errors(false);
    tracing_subscriber::registry().with(lines).with(filter).init();
}
