//! The MCP servers that ship.
