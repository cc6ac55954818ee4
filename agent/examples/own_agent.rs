//! The container as a crate made by `daybook new agent` builds it: the same two files.

#[path = "../../cli/template/src/lib.rs"]
mod janitor;

include!("../../cli/template/src/bin/agent.rs");
