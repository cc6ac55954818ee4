//! MCP results for answers and refusals.

use std::fmt::Display;

use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;

/// An answer or a refusal.
pub fn reply(tool: &'static str, result: Result<impl Serialize, impl Display>) -> CallToolResult {
    match result {
        Ok(answer) => answered(tool, &answer),
        Err(refusal) => refused(tool, &refusal),
    }
}

/// An answer, as structured content and as equal text.
pub fn answered(tool: &'static str, answer: &impl Serialize) -> CallToolResult {
    match serde_json::to_value(answer) {
        Ok(value) => {
            tracing::debug!(tool, "Answered.");
            CallToolResult::structured(value)
        }
        // Every response is strings, numbers and JSON objects.
        Err(error) => unreachable!("a response is always JSON: {error}"),
    }
}

/// A refusal: a result with `isError`, which clients cannot take for data.
pub fn refused(tool: &'static str, refusal: &impl Display) -> CallToolResult {
    tracing::debug!(tool, %refusal, "Refused.");
    CallToolResult::error(vec![ContentBlock::text(refusal.to_string())])
}
