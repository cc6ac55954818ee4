//! Names of the tools that every host provides without an MCP server.

/// Lists the configured MCP servers.
pub const CONFIGURED_SERVERS: &str = "configured_servers";
/// Writes to the journal and reads back.
pub const JOURNAL_PROBE: &str = "journal_probe";
pub const CLOCK_SKEW: &str = "clock_skew";
/// Sends a short prompt to a model.
pub const MODEL_REACHABLE: &str = "model_reachable";
