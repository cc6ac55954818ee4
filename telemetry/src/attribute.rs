//! The names of attributes: the field's own where it has one.
//!
//! Source of those that begin with `gen_ai`, `mcp`, `messaging`, `session` or `error`: OpenTelemetry,
//! "Semantic conventions", 1.38. No attribute ever holds a payload, a prompt, an argument or a secret.

/// The session's id.
pub const SESSION_ID: &str = "session.id";
/// What went wrong, as a word.
pub const ERROR_TYPE: &str = "error.type";
/// The agent's name.
pub const AGENT: &str = "gen_ai.agent.name";
/// What is done: [`CHAT`], [`EXECUTE_TOOL`] or [`INVOKE_AGENT`].
pub const OPERATION: &str = "gen_ai.operation.name";
/// Who serves the model.
pub const PROVIDER: &str = "gen_ai.provider.name";
/// The same, by the name that it had before version 1.37.
pub const SYSTEM: &str = "gen_ai.system";
/// The model that was asked.
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
/// Tokens sent.
pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// Tokens received.
pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// Why the model stopped: `stop` or `tool_calls`.
pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// The tool's name.
pub const TOOL: &str = "gen_ai.tool.name";
/// The MCP request's method.
pub const MCP_METHOD: &str = "mcp.method.name";
/// The MCP server, by the name that it is configured with.
pub const MCP_SERVER: &str = "mcp.server.name";
/// The messaging system.
pub const MESSAGING_SYSTEM: &str = "messaging.system";
/// What is done with a message.
pub const MESSAGING_OPERATION: &str = "messaging.operation.type";
/// The bus.
pub const MESSAGING_DESTINATION: &str = "messaging.destination.name";

/// The graph's node.
pub const NODE: &str = "daybook.node";
/// The number of the step that a span's outcome is journaled under.
pub const STEP: &str = "daybook.step";
/// Which attempt it was.
pub const ATTEMPT: &str = "daybook.attempt";
/// The claim that it was done under.
pub const EPOCH: &str = "daybook.epoch";
/// How a session, an invocation or a check ended.
pub const STATUS: &str = "daybook.status";
/// Who closed a question: `person`, or `poller` when its time was up.
pub const CLOSED_BY: &str = "daybook.closed_by";
/// Set on a span that was made again from the journal, since its process may not have sent it.
pub const RECOVERED: &str = "daybook.recovered";

/// The operation of asking a model.
pub const CHAT: &str = "chat";
/// The operation of calling a tool.
pub const EXECUTE_TOOL: &str = "execute_tool";
/// The operation of invoking an agent.
pub const INVOKE_AGENT: &str = "invoke_agent";
