//! The incident agent: why does this Lambda function fail?
//!
//! It reads the incident ([`message`]), fetches logs, role, configuration, security groups and changes through an MCP server
//! ([`tool`]), and returns a [`diagnosis`] whose every claim cites a tool result ([`evidence`],
//! [`field_path`]). [`conclude`] renders it. A model drives the agent, or the rules of [`policy`] do.
//! [`graph`] connects them. [`profile`] configures the host, and [`alarms`] turns alarms into triggers.

pub mod alarms;
mod changes;
mod citations;
pub mod conclude;
pub mod diagnosis;
mod egress;
mod error_text;
pub mod evidence;
mod failures;
pub mod field_path;
mod findings;
pub mod graph;
mod iam;
mod log_lines;
mod logging;
mod managed_policies;
pub mod masks;
pub mod message;
mod permissions;
pub mod policy;
pub mod profile;
mod prompt;
mod remediation;
mod reported;
mod schema;
mod signals;
mod signatures;
mod times;
pub mod tool;

use std::sync::OnceLock;

use ::graph::agent::Agent;

/// The agent, as a host registers it.
pub fn agent() -> &'static Agent {
    static AGENT: OnceLock<Agent> = OnceLock::new();
    AGENT.get_or_init(|| {
        Agent::of(&graph::GRAPH)
            .with_input_schema(input_schema())
            .with_profile(&profile::PROFILE)
            .with_presentation(conclude::PRESENTATION)
    })
}

fn input_schema() -> serde_json::Value {
    serde_json::from_str(message::INPUT_SCHEMA).expect("a schema in this crate is JSON")
}
