//! An MCP client for tests of servers, connected by an in-memory pipe.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, ErrorData};
use rmcp::service::{RoleClient, RunningService, ServiceError};
use rmcp::{ServerHandler, ServiceExt};
use serde_json::Value;
use tokio::task::JoinHandle;

/// Deadline of every call, however loaded the machine.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// A client and its server.
pub struct Connection {
    client: RunningService<RoleClient, ()>,
    server: JoinHandle<()>,
}

impl Connection {
    /// Connects a client to a server.
    pub async fn serve(server: impl ServerHandler) -> Connection {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let server = tokio::spawn(async move {
            server.serve(far).await.unwrap().waiting().await.unwrap();
        });
        let client = tokio::time::timeout(DEADLINE, ().serve(near)).await.unwrap().unwrap();
        Connection { client, server }
    }

    pub fn client(&self) -> &RunningService<RoleClient, ()> {
        &self.client
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// The server's protocol error; anything else panics.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<CallToolResult, ErrorData> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        match tokio::time::timeout(DEADLINE, self.client.call_tool(request)).await.unwrap() {
            Ok(result) => Ok(result),
            Err(ServiceError::McpError(error)) => Err(error),
            Err(error) => panic!("{tool}: {error}"),
        }
    }

    /// Closes the pipe and waits for the server to stop.
    pub async fn close(self) {
        self.client.cancel().await.unwrap();
        tokio::time::timeout(DEADLINE, self.server).await.unwrap().unwrap();
    }
}

/// The only text block of a result.
pub fn text(result: &CallToolResult) -> String {
    match &result.content[..] {
        [ContentBlock::Text(text)] => text.text.clone(),
        other => panic!("one text expected, not {other:?}"),
    }
}
