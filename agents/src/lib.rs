//! The agents that ship: pure graphs with their prompts, schemas and fallback policies.
//!
//! Each agent is a module with a [`graph::definition::Graph`]: what it asks of the world and what
//! it makes of the answers. None does IO or reads a clock; the driver does what they ask for.
//! [`checkup`] tests a deployment, [`incident`] finds out why a Lambda function fails, [`fraud`]
//! whether a card payment is a fraud.

use std::sync::OnceLock;

use graph::agent::Agent;

pub mod checkup;
pub mod fraud;
pub mod incident;

/// All agents, in the order in which they are listed.
pub fn all() -> &'static [Agent] {
    static ALL: OnceLock<[Agent; 3]> = OnceLock::new();
    ALL.get_or_init(|| {
        [
            Agent::of(&checkup::GRAPH),
            Agent::of(&incident::graph::GRAPH),
            Agent::of(&fraud::graph::GRAPH),
        ]
    })
}

/// The agent of a name.
pub fn find(name: &str) -> Option<&'static Agent> {
    all().iter().find(|agent| agent.name() == name)
}

/// The JSON schema of an agent's input, as text, for people and for editors; the agent itself
/// judges its input in more detail and names the field.
pub fn input_schema(name: &str) -> Option<&'static str> {
    match name {
        "checkup" => Some(checkup::INPUT_SCHEMA),
        "incident" => Some(incident::message::INPUT_SCHEMA),
        "fraud" => Some(fraud::input::INPUT_SCHEMA),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_is_found_by_its_name_and_has_a_schema() {
        for agent in all() {
            assert_eq!(find(agent.name()).unwrap().name(), agent.name());
            assert!(agent.summary().ends_with('.'));
            let schema = serde_json::from_str(input_schema(agent.name()).unwrap()).unwrap();
            jsonschema::validator_for(&schema).unwrap();
        }
        assert!(find("nobody").is_none() && input_schema("nobody").is_none());
    }
}
