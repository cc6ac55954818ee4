//! The MCP server `network-inventory`: simulated routers of a service provider's network.
//!
//! `description` parses the network file: P, PE and RR routers, links, customers' VRFs, campus
//! switches (`campus`), and active faults (`fault`). `derive` computes the state, and `show` formats it like router output. All
//! state is derived, so a fault appears wherever it would in a real network: an interface that is
//! down loses its adjacency and label session at both ends, disappears from both neighbours' LLDP,
//! and appears in both logs.

mod arguments;
mod campus;
mod derive;
mod description;
mod fault;
mod refusal;
mod server;
mod show;

use std::path::Path;

pub use description::{DescriptionError as Error, referred};
use files::Roots;
pub use server::Server;

use description::Network;
use mcp::ServerInfo;

pub const INFO: ServerInfo = ServerInfo {
    name: "network-inventory",
    description: "Reads the routers of a service provider's network that a file describes",
    tools: &[
        "get_access_lists",
        "get_devices",
        "get_interface_info",
        "get_logs",
        "get_mpls_info",
        "get_name_resolution",
        "get_routing_info",
        "get_switching_info",
        "get_system_info",
        "get_topology_neighbors",
        "get_vpn_info",
    ],
};

/// The MCP server of the network in a file, or of the bundled healthy network, for any transport.
///
/// # Errors
/// [`Error`], if the file cannot be read or is invalid.
pub fn server(inventory: Option<&Path>) -> Result<Server, Error> {
    server_below(inventory, &Roots::everything())
}

/// As [`server()`]; the file, and the one that it is based on, must be below the roots.
///
/// # Errors
/// As [`server()`].
pub fn server_below(inventory: Option<&Path>, roots: &Roots) -> Result<Server, Error> {
    let read = |path| Network::read(path, roots);
    let network = inventory.map_or_else(|| Ok(Network::shipped()), read)?;
    Ok(Server::new(network))
}
