//! Models behind loopback servers that speak the real wire formats, through whole incidents.

mod behaviour;
mod failures;
mod ledger;
mod server;
mod transcript;
mod world;
