//! The agent host.
