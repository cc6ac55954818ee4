//! The agents that ship.
