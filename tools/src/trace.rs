//! The span that a call of one of our tools leaves: a leaf of whatever trace the client named.

use rmcp::model::{CallToolResponse, RequestMetaObject};
use telemetry::context::TraceParent;
use telemetry::span::{Kind, Span, now};
use telemetry::{attribute, export};

/// Where a request's `_meta` says which span it was sent from.
///
/// Source: Model Context Protocol, SEP-414, "Request meta: OpenTelemetry trace context".
const TRACEPARENT_META: &str = "traceparent";

/// The method that every call of a tool is.
const METHOD: &str = "tools/call";

/// Answers a call within a span. `tool` is a name of ours, or one that a client made up: `None`.
pub(crate) async fn traced<E>(
    tool: Option<String>,
    meta: &RequestMetaObject,
    answer: impl Future<Output = Result<CallToolResponse, E>>,
) -> Result<CallToolResponse, E> {
    if !export::is_on() {
        return answer.await;
    }
    let parent: Option<TraceParent> =
        meta.0.0.get(TRACEPARENT_META).and_then(|value| value.as_str()?.parse().ok());
    let context = parent.map_or_else(TraceParent::fresh, TraceParent::child);
    let begun_at = now();
    let answered = answer.await;
    let name = tool.as_ref().map_or_else(|| METHOD.to_owned(), |tool| format!("{METHOD} {tool}"));
    let span = Span::new(context, parent, name)
        .of_kind(Kind::Server)
        .lasting(begun_at, now())
        .with(attribute::MCP_METHOD, METHOD);
    let span = match tool {
        Some(tool) => span.with(attribute::TOOL, tool),
        None => span,
    };
    let failed = match &answered {
        Ok(CallToolResponse::Complete(result)) => result.is_error == Some(true),
        Ok(_) => false,
        Err(_) => true,
    };
    export::record(if failed { span.failing("tool_error") } else { span });
    answered
}
