//! Traces and metrics: spans as plain values and their propagation. The crate `exporters` sends them.
//!
//! - [`context`] is the identity of a span, propagated as W3C `traceparent`.
//! - [`span`] is a span that has ended, with names from [`attribute`].
//! - [`export`] passes spans to the program's exporter. Without one it costs nothing.
//! - [`metrics`] names metrics as Prometheus does.
//!
//! A span is created when the work has ended, from known values. So if a process dies before it sends
//! a span, another process can recreate it.

pub mod attribute;
pub mod context;
pub mod export;
pub mod metrics;
pub mod span;
