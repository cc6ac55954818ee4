//! The MCP servers that ship with Daybook, and the faults that they are tried with.
//!
//! [`aws_diagnostics`], [`card_transactions`], [`network_inventory`] and [`pk_sim`] are servers. They
//! know nothing of journals, agents or sessions: an agent reaches them as it would reach anybody's
//! server, and so does any other MCP client. [`stdio`] serves one to its parent, [`http`] to clients
//! that are not. With the feature `live`, `account` reaches the AWS account at a [`place`], for the
//! diagnostics to read, and for `chaos` to break and to heal.

#[cfg(feature = "live")]
pub mod account;
mod argument;
pub mod aws_diagnostics;
pub mod card_transactions;
#[cfg(feature = "live")]
pub mod chaos;
pub mod http;
pub mod network_inventory;
pub mod pk_sim;
pub mod place;
mod reply;
mod schema;
pub mod stdio;
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
    &[aws_diagnostics::INFO, card_transactions::INFO, network_inventory::INFO, pk_sim::INFO]
}
