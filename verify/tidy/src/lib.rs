//! Checks that the workspace stays as ARCHITECTURE.md describes it.
//!
//! [`tree`] loads every file that git tracks or would track; each module under [`rules`] is one
//! rule, a pure function from that tree to findings.

pub mod rules;
pub mod tree;

use std::path::Path;

/// The folder that holds the workspace's Cargo.toml.
pub fn workspace_root() -> &'static Path {
    let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_dir.ancestors().nth(2).unwrap_or(manifest_dir)
}
