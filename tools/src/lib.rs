//! The MCP servers that ship with Daybook.
//!
//! Each module is one server. It knows nothing of journals, agents or sessions: an agent
//! reaches it as it would reach anybody's server, and so does any other MCP client.

pub mod aws_diagnostics;

/// What can be said about a server without starting it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerInfo {
    /// What `daybook mcp` and a server configuration call it.
    pub name: &'static str,
    /// One line for people.
    pub description: &'static str,
    /// Names of its tools, in the order in which the server lists them.
    pub tools: &'static [&'static str],
}

/// The servers that ship, by name.
pub fn servers() -> &'static [ServerInfo] {
    &[aws_diagnostics::INFO]
}
