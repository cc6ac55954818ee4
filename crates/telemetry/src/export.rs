//! Exports spans to a collector, if one is configured.
//!
//! A program has one exporter, as it has one log. Export problems never affect the work: a full
//! queue drops spans, an export to a collector that does not reply ends after [`EXPORT_WITHIN`],
//! and failures are logged at most once per [`COMPLAIN_EVERY`].

use std::time::Duration;

use crate::span::Span;

/// Timeout of a batch.
pub const EXPORT_WITHIN: Duration = Duration::from_secs(2);

/// Timeout of a flush.
pub const FLUSH_WITHIN: Duration = Duration::from_secs(2);

/// After a failure, how long no other one is logged and flushes return at once.
pub const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// Spans cannot be exported. The program does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("expected the address of an OTLP collector, such as http://127.0.0.1:4318")]
    Endpoint,
    #[error("cannot create the span exporter: {0}")]
    Exporter(String),
    #[error("this build cannot export spans: it lacks the feature export")]
    NotBuilt,
}

/// Starts exporting this program's spans under the name `service` to the collector at `endpoint`,
/// with HTTP and protobuf, to `/v1/traces`. No other address is contacted. Only the first call has
/// an effect.
///
/// # Errors
/// [`Error`]; the configured endpoint must be corrected.
#[cfg(feature = "export")]
pub fn start(endpoint: &str, service: &'static str) -> Result<(), Error> {
    crate::otlp::start(endpoint, service)
}

/// This build has no exporter.
///
/// # Errors
/// Always [`Error::NotBuilt`].
#[cfg(not(feature = "export"))]
pub fn start(_: &str, _: &'static str) -> Result<(), Error> {
    Err(Error::NotBuilt)
}

/// The configured address of the collector, if spans are exported.
pub fn endpoint() -> Option<&'static str> {
    #[cfg(feature = "export")]
    return crate::otlp::pipeline().map(|pipeline| pipeline.endpoint.as_str());
    #[cfg(not(feature = "export"))]
    None
}

/// Whether spans are exported. Check this before doing work for a span.
pub fn is_on() -> bool {
    endpoint().is_some()
}

/// Queues a span for export. Never waits. A span of a trace that is not sampled is dropped.
pub fn record(span: Span) {
    #[cfg(feature = "export")]
    if let Some(pipeline) = crate::otlp::pipeline()
        && span.context.sampled
    {
        pipeline.record(span);
    }
    #[cfg(not(feature = "export"))]
    drop(span);
}

/// Waits until all spans so far are sent, at most [`FLUSH_WITHIN`]. Blocks the thread. Returns
/// whether they were sent.
pub fn flush() -> bool {
    #[cfg(feature = "export")]
    return crate::otlp::pipeline().is_none_or(|pipeline| pipeline.flush());
    #[cfg(not(feature = "export"))]
    true
}
