//! Where spans go: to a collector if the program was told of one, and nowhere otherwise.
//!
//! A program has one exporter, as it has one log. Nothing that happens to it reaches the work: a full
//! queue drops spans, a collector that does not answer is given up after [`EXPORT_WITHIN`], and its
//! failures are logged once in [`COMPLAIN_EVERY`] at most.

use std::time::Duration;

use crate::span::Span;

/// How long one batch may take.
pub const EXPORT_WITHIN: Duration = Duration::from_secs(2);

/// How long whoever waits for the spans to be out waits at most.
pub const FLUSH_WITHIN: Duration = Duration::from_secs(2);

/// After a failure, how long no other is logged, and nobody waits for spans to be out.
pub const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// Why spans cannot be exported. The program does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The endpoint is no address of a collector.
    #[error("expected the address of an OTLP collector, such as http://127.0.0.1:4318")]
    Endpoint,
    /// The exporter cannot be had.
    #[error("no exporter of spans can be had: {0}")]
    Exporter(String),
    /// This build has no exporter.
    #[error("this build cannot export spans: it was made without the feature otlp")]
    NotBuilt,
}

/// Exports the spans of this program, called `service`, to the collector at `endpoint`, by HTTP and
/// protobuf below `/v1/traces`. No other address is ever contacted. Only the first call counts.
///
/// # Errors
/// [`Error`]; the person who set the endpoint has to mend it.
#[cfg(feature = "otlp")]
pub fn start(endpoint: &str, service: &'static str) -> Result<(), Error> {
    crate::otlp::start(endpoint, service)
}

/// This build has no exporter.
///
/// # Errors
/// Always [`Error::NotBuilt`].
#[cfg(not(feature = "otlp"))]
pub fn start(_: &str, _: &'static str) -> Result<(), Error> {
    Err(Error::NotBuilt)
}

/// The collector's address as it was given, if spans are exported.
pub fn endpoint() -> Option<&'static str> {
    #[cfg(feature = "otlp")]
    return crate::otlp::pipeline().map(|pipeline| pipeline.endpoint.as_str());
    #[cfg(not(feature = "otlp"))]
    None
}

/// Whether spans are exported. Whoever would have to work for a span asks first.
pub fn is_on() -> bool {
    endpoint().is_some()
}

/// Exports a span, in time. Never waits. One of a trace that is not to be recorded is dropped.
pub fn record(span: Span) {
    #[cfg(feature = "otlp")]
    if let Some(pipeline) = crate::otlp::pipeline()
        && span.context.sampled
    {
        pipeline.record(span);
    }
    #[cfg(not(feature = "otlp"))]
    drop(span);
}

/// Waits until all spans so far are out, at most [`FLUSH_WITHIN`]. Blocks the thread. Says whether
/// they are.
pub fn flush() -> bool {
    #[cfg(feature = "otlp")]
    return crate::otlp::pipeline().is_none_or(|pipeline| pipeline.flush());
    #[cfg(not(feature = "otlp"))]
    true
}
