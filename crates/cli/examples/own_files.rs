//! The MCP server of a crate made by `daybook new agent`: the same file.

include!("../template/src/bin/files.rs");
