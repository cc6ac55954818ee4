//! The MCP server: its tools and their schemas.

use std::sync::Arc;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::schema_for_output;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, MetaObject};
use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use super::function_name::{FUNCTION_NAME_PATTERN, FunctionName};
use super::response::{
    ChangesResponse, IamStateResponse, LambdaConfigResponse, LogsResponse, SecurityGroupsResponse,
};
use super::source::Source;
use mcp::hints::{Effect, Hint, annotated};
use mcp::reply::{answered, refused, reply};

/// The member of a result's `_meta` with the number of omitted older log events.
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

const HINTS: [Hint; 5] = [
    ("get_recent_logs", "Recent logs", Effect::Reads),
    ("get_iam_state", "IAM state", Effect::Reads),
    ("get_lambda_config", "Lambda configuration", Effect::Reads),
    ("get_security_group_rules", "Security group rules", Effect::Reads),
    ("get_recent_changes", "Recent changes", Effect::Reads),
];

#[tool_router]
impl Server {
    pub(super) fn new(source: Source) -> Self {
        let tool_router = annotated(Self::tool_router(), true, &HINTS);
        Self { source: Arc::new(source), tool_router }
    }

    /// Recent CloudWatch Logs events of a Lambda function.
    #[tool(
        description = "Read the newest log events of a Lambda function from CloudWatch Logs: at most 100, oldest first. Start here when the cause is unknown.",
        output_schema = schema_for_output::<LogsResponse>(),
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
    )]
    async fn get_iam_state(&self, Parameters(arguments): Parameters<Arguments>) -> CallToolResult {
        reply("get_iam_state", self.source.iam_state(&arguments.lambda_name).await)
    }

    /// Configuration of a Lambda function.
    #[tool(
        description = "Read the configuration of a Lambda function: runtime, role, memory, timeout, state, reserved concurrency (absent when none is reserved) and VPC. Start here for throttling and timeouts.",
        output_schema = schema_for_output::<LambdaConfigResponse>(),
    )]
    async fn get_lambda_config(
        &self,
        Parameters(arguments): Parameters<Arguments>,
    ) -> CallToolResult {
        reply("get_lambda_config", self.source.lambda_config(&arguments.lambda_name).await)
    }

    /// Rules of a Lambda function's security groups.
    #[tool(
        description = "Read the rules of the security groups of a Lambda function in a VPC: what they let out and in. Useful for connections that time out.",
        output_schema = schema_for_output::<SecurityGroupsResponse>(),
    )]
    async fn get_security_group_rules(
        &self,
        Parameters(arguments): Parameters<Arguments>,
    ) -> CallToolResult {
        let answer = self.source.security_groups(&arguments.lambda_name).await;
        reply("get_security_group_rules", answer)
    }

    /// Changes of a Lambda function, its role and its security groups.
    #[tool(
        description = "Read from CloudTrail who changed a Lambda function, its role or its security groups: at most 50 write events, oldest first. CloudTrail shows a change after about 5 minutes.",
        output_schema = schema_for_output::<ChangesResponse>(),
    )]
    async fn get_recent_changes(
        &self,
        Parameters(arguments): Parameters<Arguments>,
    ) -> CallToolResult {
        reply("get_recent_changes", self.source.changes(&arguments.lambda_name).await)
    }
}

mcp::serve_tools! {
    Server,
    name = "aws-diagnostics",
    instructions = "Read-only diagnostics of one AWS Lambda function. A result with isError names the AWS call that failed; it is not evidence about the function's health.",
}
