//! `daybook` as a crate made by `daybook new agent` builds it: the same two files.

#[path = "../template/src/lib.rs"]
mod janitor;

include!("../template/src/bin/daybook.rs");
