//! Sends what a program measures: spans to an OpenTelemetry collector, metrics to `/metrics` for Prometheus.

pub mod metrics;
mod otlp;

use workflow::env::{Invalid, Lookup, OTEL_EXPORTER_OTLP_ENDPOINT, text};

/// Exports the spans of this program, called `service`, if the environment names a collector. Call it before any other
/// thread runs.
///
/// # Errors
/// When the value is not a collector's address, or no exporter can be created.
pub fn export_spans(lookup: &impl Lookup, service: &'static str) -> Result<(), Invalid> {
    let name = OTEL_EXPORTER_OTLP_ENDPOINT;
    let Some(value) = text(lookup, name) else { return Ok(()) };
    let pipeline = otlp::Pipeline::to(&value, service).map_err(|error| {
        let expected = match error {
            otlp::Error::Endpoint => {
                "the address of an OTLP collector, such as http://127.0.0.1:4318"
            }
            otlp::Error::Exporter(_) => "a collector for which an HTTP client can be created",
        };
        Invalid::Malformed { name, value, expected }
    })?;
    telemetry::export::install(Box::new(pipeline));
    Ok(())
}
