//! Exports spans to an OpenTelemetry collector: HTTP and protobuf, to `/v1/traces`. No other address is contacted.
//!
//! A full queue drops spans, an export to a collector that does not reply ends after [`EXPORT_WITHIN`], and failures
//! are logged at most once per [`COMPLAIN_EVERY`].

use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value as OtelValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanProcessor as _,
};

use telemetry::export::Exporter;
use telemetry::span::{Kind, Span, Value};

/// Timeout of a batch.
const EXPORT_WITHIN: Duration = Duration::from_secs(2);

/// Timeout of a flush.
const FLUSH_WITHIN: Duration = Duration::from_secs(2);

/// After a failure, how long no other one is logged and flushes return at once.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// A collector's path for traces.
///
/// Source: OpenTelemetry, "OTLP specification", OTLP/HTTP request.
const TRACES_PATH: &str = "/v1/traces";

/// How long a span waits for its batch to fill.
const BATCH_DELAY: Duration = Duration::from_millis(500);

/// The span pipeline to the collector.
#[derive(Debug)]
pub(crate) struct Pipeline {
    endpoint: String,
    processor: Arc<BatchSpanProcessor>,
    failures: Failures,
}

/// When an export last failed.
#[derive(Clone, Debug, Default)]
struct Failures(Arc<Mutex<Option<Instant>>>);

/// An exporter that rate-limits failure logs.
#[derive(Debug)]
struct Forbearing {
    exporter: SpanExporter,
    failures: Failures,
}

/// Why spans cannot be exported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("expected the address of an OTLP collector, such as http://127.0.0.1:4318")]
    Endpoint,
    #[error("cannot create the span exporter: {0}")]
    Exporter(String),
}

/// A blocking client must not be created on a runtime's thread, so another thread creates it.
fn exporter(url: &str) -> Result<SpanExporter, Error> {
    let made = std::thread::spawn(|| {
        // A redirect or a proxy would lead to addresses that are not configured.
        reqwest::blocking::Client::builder()
            .timeout(EXPORT_WITHIN)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
    });
    let failed = |error: &dyn std::fmt::Display| Error::Exporter(error.to_string());
    let client = made.join().map_err(|_| failed(&"the http client panicked"))?;
    SpanExporter::builder()
        .with_http()
        .with_http_client(client.map_err(|error| failed(&error))?)
        .with_endpoint(url)
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(EXPORT_WITHIN)
        .build()
        .map_err(|error| failed(&error))
}

impl Pipeline {
    pub(crate) fn to(endpoint: &str, service: &'static str) -> Result<Self, Error> {
        let url = reqwest::Url::parse(endpoint).map_err(|_| Error::Endpoint)?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(Error::Endpoint);
        }
        let url = format!("{}{TRACES_PATH}", endpoint.trim_end_matches('/'));
        let failures = Failures::default();
        let mut exporter = Forbearing { exporter: exporter(&url)?, failures: failures.clone() };
        opentelemetry_sdk::trace::SpanExporter::set_resource(
            &mut exporter,
            &Resource::builder().with_service_name(service).build(),
        );
        let batches = BatchConfigBuilder::default().with_scheduled_delay(BATCH_DELAY).build();
        let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batches).build();
        Ok(Self { endpoint: endpoint.to_owned(), processor: Arc::new(processor), failures })
    }
}

impl Exporter for Pipeline {
    fn endpoint(&self) -> &str {
        &self.endpoint
    }

    fn record(&self, span: Span) {
        self.processor.on_end(data(span));
    }

    fn flush(&self) -> bool {
        // After a failed batch, do not wait for the collector.
        if self.failures.is_recent() {
            return false;
        }
        // The processor waits longer than we do, so it waits on a thread of its own.
        let (done, wait) = mpsc::channel();
        let processor = Arc::clone(&self.processor);
        std::thread::spawn(move || done.send(processor.force_flush().is_ok()));
        wait.recv_timeout(FLUSH_WITHIN).unwrap_or(false) && !self.failures.is_recent()
    }
}

impl Failures {
    fn is_recent(&self) -> bool {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_some_and(|last| last.elapsed() < COMPLAIN_EVERY)
    }

    /// Whether to log this failure.
    fn note(&self) -> bool {
        if self.is_recent() {
            return false;
        }
        #[expect(clippy::disallowed_methods, reason = "rate-limits logs in real time")]
        let now = Instant::now();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        true
    }

    fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl opentelemetry_sdk::trace::SpanExporter for Forbearing {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let exported = self.exporter.export(batch).await;
        match &exported {
            Ok(()) => self.failures.forget(),
            Err(error) if self.failures.note() => {
                tracing::warn!(%error, spans, "Spans were not exported.");
            }
            Err(_) => {}
        }
        exported
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

fn data(span: Span) -> SpanData {
    let flags = if span.context.sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
    let context = SpanContext::new(
        TraceId::from_bytes(span.context.trace_id.get().to_be_bytes()),
        SpanId::from_bytes(span.context.span_id.get().to_be_bytes()),
        flags,
        false,
        TraceState::default(),
    );
    let parent =
        span.parent.map_or(SpanId::INVALID, |id| SpanId::from_bytes(id.get().to_be_bytes()));
    let status = if span.failed { Status::error("") } else { Status::Unset };
    let attributes = span.attributes.into_iter().map(|(name, v)| KeyValue::new(name, value(v)));
    SpanData {
        span_context: context,
        parent_span_id: parent,
        parent_span_is_remote: false,
        span_kind: kind(span.kind),
        name: span.name.into(),
        start_time: time(span.start),
        end_time: time(span.end),
        attributes: attributes.collect(),
        dropped_attributes_count: 0,
        events: Default::default(),
        links: Default::default(),
        status,
        instrumentation_scope: InstrumentationScope::builder(span.scope).build(),
    }
}

fn time(nanos: i64) -> std::time::SystemTime {
    std::time::UNIX_EPOCH + Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

fn kind(kind: Kind) -> SpanKind {
    match kind {
        Kind::Internal => SpanKind::Internal,
        Kind::Client => SpanKind::Client,
        Kind::Server => SpanKind::Server,
        Kind::Producer => SpanKind::Producer,
    }
}

fn value(value: Value) -> OtelValue {
    match value {
        Value::Text(text) => text.into(),
        Value::Number(number) => number.into(),
        Value::Flag(flag) => flag.into(),
        Value::Texts(texts) => {
            OtelValue::Array(Array::String(texts.into_iter().map(StringValue::from).collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use telemetry::context::TraceParent;

    /// A collector that accepts connections and never replies.
    fn mute() -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let taken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&taken);
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            for connection in listener.incoming() {
                count.fetch_add(1, Ordering::Relaxed);
                kept.push(connection);
            }
        });
        (endpoint, taken)
    }

    #[test]
    fn a_flush_gives_up_on_a_silent_collector() {
        let (endpoint, taken) = mute();
        let pipeline = Pipeline::to(&endpoint, "test").unwrap();
        // Fill the queue: several batches, each of which could block.
        for _ in 0..2_048 {
            pipeline.record(Span::new(TraceParent::fresh(), None, "span"));
        }
        assert!(!pipeline.flush());
        let tried = taken.load(Ordering::Relaxed);
        assert!((1..=2).contains(&tried), "it waited for {tried} exports");
        // From then on a flush returns at once.
        let more = (0..1_000).filter(|_| pipeline.flush()).count();
        assert_eq!(more, 0);
        assert!(taken.load(Ordering::Relaxed) <= 4, "the queue is sent once and dropped");
    }
}
