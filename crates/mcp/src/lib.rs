//! Shared code of Daybook's MCP servers: transports, replies, schemas and spans.
//!
//! A server knows no journals, agents or sessions: an agent uses it like any MCP server.
//! [`serve_tools`] turns a type with tools into a server. [`stdio`] serves it to the parent process,
//! [`http`] to network clients.

pub mod argument;
pub mod hints;
pub mod http;
pub mod loopback;
pub mod reply;
pub mod schema;
pub mod stdio;
pub mod testing;
pub mod trace;

/// A server described without starting it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerInfo {
    /// The name that `daybook mcp` and a servers file use.
    pub name: &'static str,
    pub description: &'static str,
    /// Names of its tools, in the order in which the server lists them.
    pub tools: &'static [&'static str],
}

/// Makes a type with a `tool_router` field an MCP server of its tools. Each call has a span
/// ([`trace::routed`]).
#[macro_export]
macro_rules! serve_tools {
    ($server:ty, name = $name:tt, instructions = $instructions:tt $(,)?) => {
        #[::rmcp::tool_handler(router = self.tool_router, name = $name, instructions = $instructions)]
        impl ::rmcp::ServerHandler for $server {
            async fn call_tool(
                &self,
                request: ::rmcp::model::CallToolRequestParams,
                context: ::rmcp::service::RequestContext<::rmcp::RoleServer>,
            ) -> ::core::result::Result<::rmcp::model::CallToolResponse, ::rmcp::ErrorData> {
                $crate::trace::routed(self, &self.tool_router, request, context).await
            }
        }
    };
}

/// What is wrong with a JSON file. Quotes nothing of the file: a trigger may have named any file.
pub fn json_problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    // Serde quotes a value before it says what it expected.
    match text.rsplit_once(", expected ") {
        Some((_, expected)) => format!("expected {expected}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only parsed")]
    struct Form {
        number: u8,
    }

    #[test]
    fn a_json_problem_quotes_nothing_of_the_file() {
        for text in [
            "hunter2",
            "\"hunter2\"",
            "{\"hunter2\": 1}",
            "{\"number\": \"hunter2\"}",
            "{\"number\": 1} hunter2",
            "[\"hunter2, expected hunter3\"]",
        ] {
            let error = serde_json::from_str::<Form>(text).unwrap_err();
            let problem = super::json_problem(&error);
            assert!(!problem.contains("hunter") && problem.contains("line 1"), "{problem}");
        }
    }
}
