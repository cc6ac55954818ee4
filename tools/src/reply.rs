//! How an answer or a refusal is said over MCP.

use std::fmt::Display;

use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;

/// An answer, structured and as the same text.
pub(crate) fn answered(tool: &'static str, answer: &impl Serialize) -> CallToolResult {
    match serde_json::to_value(answer) {
        Ok(value) => {
            tracing::debug!(tool, "Answered.");
            CallToolResult::structured(value)
        }
        // Every response is strings, numbers and JSON objects.
        Err(error) => unreachable!("a response is always JSON: {error}"),
    }
}

/// A refusal: a result with `isError`, which never looks like data.
pub(crate) fn refused(tool: &'static str, refusal: &impl Display) -> CallToolResult {
    tracing::debug!(tool, %refusal, "Refused.");
    CallToolResult::error(vec![ContentBlock::text(refusal.to_string())])
}
