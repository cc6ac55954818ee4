//! A service provider's network that is described by a file: its routers answer as theirs would.
//!
//! `description` is the file: P, PE and RR routers, the links between them, the customers' VRFs, and
//! the faults that are switched on (`fault`). `derive` computes what follows: which lines are up,
//! which adjacencies and sessions there are, which way leads where with which label, which routes a
//! customer has. `show` says it the way routers do. Nothing is written down twice, so that a fault
//! shows wherever it would: an interface that is down takes its adjacency and its label session down
//! at both ends, is missed by both neighbours' LLDP, and is in both logs.

mod arguments;
mod derive;
mod description;
mod fault;
mod refusal;
mod server;
mod show;

use std::path::Path;

pub use description::DescriptionError as Error;
pub use server::Server;

use crate::ServerInfo;
use description::Network;

/// This server, for listings.
pub const INFO: ServerInfo = ServerInfo {
    name: "network-inventory",
    description: "Reads the routers of a service provider's network that a file describes",
    tools: &[
        "get_devices",
        "get_interface_info",
        "get_logs",
        "get_mpls_info",
        "get_routing_info",
        "get_system_info",
        "get_topology_neighbors",
        "get_vpn_info",
    ],
};

/// The server over the network that a file describes, or over the healthy one that ships, to be
/// served on any transport.
///
/// # Errors
/// [`Error`], when the file cannot be read or describes no network.
pub fn server(inventory: Option<&Path>) -> Result<Server, Error> {
    let network = inventory.map_or_else(|| Ok(Network::shipped()), Network::read)?;
    Ok(Server::new(network))
}
