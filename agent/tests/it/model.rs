//! Models behind loopback servers that speak the real wire formats, through whole incidents.

mod behaviour;
#[cfg(feature = "bedrock")]
mod environment;
mod failures;
mod form;
mod ledger;
mod server;
mod transcript;
mod world;
