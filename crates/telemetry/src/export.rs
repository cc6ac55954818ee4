//! Passes spans to the program's exporter, if it has one.
//!
//! A program has one exporter, as it has one log. Export problems never affect the work.

use std::sync::OnceLock;

use crate::span::Span;

/// Sends spans to a collector.
pub trait Exporter: Send + Sync {
    /// The configured address of the collector.
    fn endpoint(&self) -> &str;

    /// Queues a span. Never waits; a full queue drops the span.
    fn record(&self, span: Span);

    /// Waits a bounded time until all spans so far are sent. Blocks the thread. Returns whether they were sent.
    fn flush(&self) -> bool;
}

static EXPORTER: OnceLock<Box<dyn Exporter>> = OnceLock::new();

/// Exports this program's spans from now on. Only the first call has an effect.
pub fn install(exporter: Box<dyn Exporter>) {
    EXPORTER.get_or_init(|| exporter);
}

/// The configured address of the collector, if spans are exported.
pub fn endpoint() -> Option<&'static str> {
    EXPORTER.get().map(|exporter| exporter.endpoint())
}

/// Whether spans are exported. Check this before doing work for a span.
pub fn is_on() -> bool {
    EXPORTER.get().is_some()
}

/// Queues a span for export. Never waits. A span of a trace that is not sampled is dropped.
pub fn record(span: Span) {
    if let Some(exporter) = EXPORTER.get()
        && span.context.sampled
    {
        exporter.record(span);
    }
}

/// [`Exporter::flush`]; true without an exporter.
pub fn flush() -> bool {
    EXPORTER.get().is_none_or(|exporter| exporter.flush())
}
