//! The agents that ship: pure graphs with their prompts, schemas and fallback policies.
//!
//! Each agent is a module with a [`graph::definition::Graph`]: what it asks of the world and what
//! it makes of the answers. None does IO or reads a clock; the driver does what they ask for.
//! [`checkup`] tests a deployment, [`incident`] finds out why a Lambda function fails, [`fraud`]
//! whether a card payment is a fraud, [`network`] whether a router is well, [`assistant`] talks about
//! simulations and asks before it touches one.

use std::sync::{Arc, OnceLock};

use graph::agent::Agent;

pub mod assistant;
pub mod checkup;
pub mod fraud;
pub mod incident;
pub mod network;

/// All agents, in the order in which they are listed.
pub fn all() -> &'static [Agent] {
    static ALL: OnceLock<[Agent; 5]> = OnceLock::new();
    ALL.get_or_init(|| {
        [
            Agent::of(&checkup::GRAPH),
            Agent::of(&incident::graph::GRAPH),
            Agent::of(&fraud::graph::GRAPH).with_span_names(fraud::graph::SPAN_NAMES),
            Agent::of(&network::graph::GRAPH),
            Agent::of(&assistant::graph::GRAPH),
        ]
    })
}

/// The agent of a name.
pub fn find(name: &str) -> Option<&'static Agent> {
    named(all(), name)
}

/// An agent of one's own that cannot be listed beside the others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are two agents named `{0}`")]
pub struct NameTaken(pub &'static str);

/// The agents that ship and `own` behind them, in this order.
///
/// # Errors
/// When two have one name, for then a trigger would not say which it means.
pub fn all_and(own: Vec<Agent>) -> Result<Arc<[Agent]>, NameTaken> {
    let mut agents = all().to_vec();
    for agent in own {
        if named(&agents, agent.name()).is_some() {
            return Err(NameTaken(agent.name()));
        }
        agents.push(agent);
    }
    Ok(agents.into())
}

/// The one of these agents that has a name.
pub fn named<'a>(agents: &'a [Agent], name: &str) -> Option<&'a Agent> {
    agents.iter().find(|agent| agent.name() == name)
}

/// The JSON schema of an agent's input, as text, for people and for editors; the agent itself
/// judges its input in more detail and names the field.
pub fn input_schema(name: &str) -> Option<&'static str> {
    match name {
        "checkup" => Some(checkup::INPUT_SCHEMA),
        "assistant" => Some(assistant::graph::INPUT_SCHEMA),
        "incident" => Some(incident::message::INPUT_SCHEMA),
        "fraud" => Some(fraud::input::INPUT_SCHEMA),
        "network" => Some(network::graph::INPUT_SCHEMA),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use graph::definition::Graph;

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

    #[test]
    fn an_agent_of_one_s_own_is_listed_behind_those_that_ship_and_takes_no_name_of_theirs() {
        static OWN: Graph<checkup::State> = Graph { name: "own", ..checkup::GRAPH };
        let names = |agents: &[Agent]| agents.iter().map(Agent::name).collect::<Vec<_>>();
        let agents = all_and(vec![Agent::of(&OWN)]).unwrap();
        assert_eq!(names(&agents), [names(all()), vec!["own"]].concat());
        assert!(named(&agents, "own").is_some() && named(&agents, "nobody").is_none());
        let taken = all_and(vec![Agent::of(&checkup::GRAPH)]).unwrap_err();
        assert_eq!(taken.to_string(), "there are two agents named `checkup`");
        let twice = all_and(vec![Agent::of(&OWN), Agent::of(&OWN)]).unwrap_err();
        assert_eq!(twice, NameTaken("own"));
    }
}
