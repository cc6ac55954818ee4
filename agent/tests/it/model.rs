//! Models behind loopback servers with the real wire formats, in complete incident sessions.

mod behaviour;
mod environment;
mod failures;
mod form;
mod requests;
mod server;
mod tokens;
mod transcript;
mod turns;
mod world;
