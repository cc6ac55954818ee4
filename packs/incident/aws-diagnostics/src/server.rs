//! The MCP side: three tools, their schemas, and how an answer or a refusal is said.

use std::sync::Arc;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::schema_for_output;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, MetaObject};
use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use super::function_name::{FUNCTION_NAME_PATTERN, FunctionName};
use super::response::{IamStateResponse, LambdaConfigResponse, LogsResponse};
use super::source::Source;
use mcp::reply::{answered, refused, reply};

/// Where a result's `_meta` says how many older log events it leaves out.
const LEFT_OUT_META: &str = "daybook/events_left_out";

/// The server. Clones share their source.
#[derive(Debug, Clone)]
pub struct Server {
    source: Arc<Source>,
    tool_router: ToolRouter<Self>,
}

/// The argument of every tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Name or ARN of the Lambda function.
    #[schemars(with = "String", length(min = 1), regex(pattern = FUNCTION_NAME_PATTERN))]
    lambda_name: FunctionName,
}

#[tool_router]
impl Server {
    pub(super) fn new(source: Source) -> Self {
        Self { source: Arc::new(source), tool_router: Self::tool_router() }
    }

    /// Recent CloudWatch Logs events of a Lambda function.
    #[tool(
        description = "Read the newest log events of a Lambda function from CloudWatch Logs: at most 100, oldest first. Start here when the cause is unknown.",
        output_schema = schema_for_output::<LogsResponse>(),
        annotations(
            title = "Recent logs",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = true
        )
    )]
    async fn get_recent_logs(
        &self,
        Parameters(arguments): Parameters<Arguments>,
    ) -> CallToolResult {
        match self.source.recent_logs(&arguments.lambda_name).await {
            Err(refusal) => refused("get_recent_logs", &refusal),
            Ok(logs) => {
                let result = answered("get_recent_logs", &logs.response);
                let mut meta = MetaObject::new();
                if logs.left_out > 0 {
                    meta.0.insert(LEFT_OUT_META.to_owned(), logs.left_out.into());
                }
                result.with_meta((!meta.0.is_empty()).then_some(meta))
            }
        }
    }

    /// Policies of a Lambda function's execution role.
    #[tool(
        description = "Read what the execution role of a Lambda function may do: the documents of its inline policies and the ARNs of its attached managed policies. Start here for access and permission errors.",
        output_schema = schema_for_output::<IamStateResponse>(),
        annotations(
            title = "IAM state",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = true
        )
    )]
    async fn get_iam_state(&self, Parameters(arguments): Parameters<Arguments>) -> CallToolResult {
        reply("get_iam_state", self.source.iam_state(&arguments.lambda_name).await)
    }

    /// Configuration of a Lambda function.
    #[tool(
        description = "Read the configuration of a Lambda function: runtime, role, memory, timeout, state, reserved concurrency (absent when none is reserved) and VPC. Start here for throttling and timeouts.",
        output_schema = schema_for_output::<LambdaConfigResponse>(),
        annotations(
            title = "Lambda configuration",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = true
        )
    )]
    async fn get_lambda_config(
        &self,
        Parameters(arguments): Parameters<Arguments>,
    ) -> CallToolResult {
        reply("get_lambda_config", self.source.lambda_config(&arguments.lambda_name).await)
    }
}

mcp::serve_tools! {
    Server,
    name = "aws-diagnostics",
    instructions = "Read-only diagnostics of one AWS Lambda function. A result with isError names the AWS call that failed; it is not evidence about the function's health.",
}
