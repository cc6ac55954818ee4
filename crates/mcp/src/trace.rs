//! The span of a tool call: a leaf of the client's trace.

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::model::{CallToolRequestParams, CallToolResponse, RequestMetaObject};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use telemetry::context::TraceParent;
use telemetry::span::{Kind, Span, now};
use telemetry::{attribute, export};

/// The field of a request's `_meta` with the client's span.
///
/// Source: Model Context Protocol, SEP-414, "Request meta: OpenTelemetry trace context".
const TRACEPARENT_META: &str = "traceparent";

/// The MCP method of tool calls.
const METHOD: &str = "tools/call";

/// Runs a tool call through the server's router, within a span.
pub async fn routed<S: Send + Sync + 'static>(
    server: &S,
    router: &ToolRouter<S>,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    // An unknown tool's name is untrusted input: keep it out of the span.
    let known = router.has_route(&request.name).then(|| request.name.to_string());
    let meta = context.meta.clone();
    traced(known, &meta, router.call(ToolCallContext::new(server, request, context))).await
}

async fn traced<E>(
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
