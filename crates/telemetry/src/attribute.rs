//! Names of span attributes: the standard ones where they exist.
//!
//! Source of names that start with `gen_ai`, `mcp`, `messaging`, `session` or `error`:
//! OpenTelemetry, "Semantic conventions", 1.38. No attribute contains a payload, a prompt, an
//! argument or a secret.

pub const SESSION_ID: &str = "session.id";
/// The kind of error, one word.
pub const ERROR_TYPE: &str = "error.type";
pub const AGENT: &str = "gen_ai.agent.name";
/// [`CHAT`], [`EXECUTE_TOOL`] or [`INVOKE_AGENT`].
pub const OPERATION: &str = "gen_ai.operation.name";
/// The provider of the model.
pub const PROVIDER: &str = "gen_ai.provider.name";
/// The provider, by its name before version 1.37.
pub const SYSTEM: &str = "gen_ai.system";
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// Why the model stopped: `stop` or `tool_calls`.
pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub const TOOL: &str = "gen_ai.tool.name";
pub const MCP_METHOD: &str = "mcp.method.name";
/// The MCP server, by its configured name.
pub const MCP_SERVER: &str = "mcp.server.name";
pub const MESSAGING_SYSTEM: &str = "messaging.system";
pub const MESSAGING_OPERATION: &str = "messaging.operation.type";
pub const MESSAGING_DESTINATION: &str = "messaging.destination.name";

pub const NODE: &str = "daybook.node";
/// Number of the step with the span's outcome.
pub const STEP: &str = "daybook.step";
pub const ATTEMPT: &str = "daybook.attempt";
/// The claim under which it ran.
pub const EPOCH: &str = "daybook.epoch";
/// The result of a session, an invocation or a check.
pub const STATUS: &str = "daybook.status";
/// What closed a question: `person`, or `poller` when it expired.
pub const CLOSED_BY: &str = "daybook.closed_by";
/// Set on a span that was recreated from the journal, because its process may not have sent it.
pub const RECOVERED: &str = "daybook.recovered";

pub const CHAT: &str = "chat";
pub const EXECUTE_TOOL: &str = "execute_tool";
pub const INVOKE_AGENT: &str = "invoke_agent";
