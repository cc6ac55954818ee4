//! The agent graph: a pure machine.
