//! The Lambda that invokes the agent.
