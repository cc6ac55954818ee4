//! The MCP servers that ship with Daybook, and the faults that they are tried with.
//!
//! [`aws_diagnostics`] is a server. It knows nothing of journals, agents or sessions: an agent
//! reaches it as it would reach anybody's server, and so does any other MCP client. [`http`] serves
//! it to clients that are not its parent. With the feature `live`, `account` reaches the AWS
//! account at a [`place`], for the server to read, and for `chaos` to break and to heal.

#[cfg(feature = "live")]
pub mod account;
pub mod aws_diagnostics;
#[cfg(feature = "live")]
pub mod chaos;
pub mod http;
pub mod place;
mod trace;

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
