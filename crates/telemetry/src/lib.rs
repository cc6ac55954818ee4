//! Traces and metrics: spans as plain values, their propagation, and their export.
//!
//! - [`context`] is the identity of a span, propagated as W3C `traceparent`.
//! - [`span`] is a span that has ended, with names from [`attribute`].
//! - [`export`] sends spans to a collector. Without a configured collector it costs nothing.
//! - [`metrics`] exports metrics to Prometheus or CloudWatch.
//!
//! A span is created when the work has ended, from known values. So if a process dies before it sends
//! a span, another process can recreate it.

pub mod attribute;
pub mod context;
pub mod export;
pub mod metrics;
#[cfg(feature = "export")]
mod otlp;
pub mod span;
