//! The container of a crate that `daybook new agent` creates, built from the template's two files.

#[path = "../../crates/cli/template/src/lib.rs"]
mod janitor;

include!("../../crates/cli/template/src/bin/agent.rs");
