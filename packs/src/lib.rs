//! The list of packs.
//!
//! A pack is one folder: the graph of an agent, its MCP server, its data and its README.
//! [`checkup`] tests a deployment, [`incident`] diagnoses a failing Lambda function, [`fraud`]
//! assesses a card payment, [`network`] checks a router, and [`assistant`] runs simulations in a
//! conversation and asks a person before each change.

use std::sync::{Arc, OnceLock};

use graph::agent::Agent;
use graph::check::InvalidGraph;

/// All agents, in listing order.
pub fn all() -> &'static [Agent] {
    static ALL: OnceLock<[Agent; 5]> = OnceLock::new();
    ALL.get_or_init(|| {
        [checkup::agent(), incident::agent(), fraud::agent(), network::agent(), assistant::agent()]
            .map(Agent::clone)
    })
}

pub fn find(name: &str) -> Option<&'static Agent> {
    named(all(), name)
}

/// Why an agent cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// A pack has this name: triggers could not distinguish the two.
    #[error("two agents are named `{0}`")]
    NameTaken(&'static str),
    #[error(transparent)]
    InvalidGraph(#[from] InvalidGraph),
}

/// The agents of the packs, then `own`, in this order.
///
/// Agents of `own` with one name are versions of one agent, as with [`Agent::with_earlier`]: new sessions begin with
/// the first of them, and an older session goes on with the version that it began with.
///
/// # Errors
/// See [`RegisterError`].
pub fn all_and(own: Vec<Agent>) -> Result<Arc<[Agent]>, RegisterError> {
    let mut agents = all().to_vec();
    for agent in own {
        if find(agent.name()).is_some() {
            return Err(RegisterError::NameTaken(agent.name()));
        }
        match agents.iter_mut().find(|known| known.name() == agent.name()) {
            Some(known) => *known = known.clone().with_earlier(agent),
            None => agents.push(agent),
        }
    }
    agents.iter().try_for_each(Agent::check)?;
    Ok(agents.into())
}

/// The agent with this name.
pub fn named<'a>(agents: &'a [Agent], name: &str) -> Option<&'a Agent> {
    agents.iter().find(|agent| agent.name() == name)
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
            agent.check().unwrap();
            jsonschema::validator_for(agent.input_schema().unwrap()).unwrap();
        }
        assert!(find("unknown").is_none());
    }

    #[test]
    fn the_network_agent_knows_the_servers_of_the_others() {
        let others = all().iter().filter(|agent| agent.name() != network::graph::GRAPH.name);
        let mut servers: Vec<_> = others.flat_map(|agent| agent.servers()).copied().collect();
        servers.sort_unstable();
        assert_eq!(servers, network::graph::SERVERS_OF_OTHERS);
    }

    #[test]
    fn a_custom_agent_is_listed_last_and_cannot_reuse_a_name() {
        static OWN: Graph<checkup::State> = Graph { name: "own", ..checkup::GRAPH };
        let names = |agents: &[Agent]| agents.iter().map(Agent::name).collect::<Vec<_>>();
        let agents = all_and(vec![Agent::of(&OWN)]).unwrap();
        assert_eq!(names(&agents), [names(all()), vec!["own"]].concat());
        assert!(named(&agents, "own").is_some() && named(&agents, "unknown").is_none());
        let taken = all_and(vec![Agent::of(&checkup::GRAPH)]).unwrap_err();
        assert_eq!(taken.to_string(), "two agents are named `checkup`");
    }

    #[test]
    fn agents_of_one_name_are_versions_of_one_agent() {
        static ONE: Graph<checkup::State> = Graph { name: "own", ..checkup::GRAPH };
        static TWO: Graph<checkup::State> = Graph { name: "own", version: "two", ..checkup::GRAPH };
        let agents = all_and(vec![Agent::of(&TWO), Agent::of(&ONE)]).unwrap();
        let own = named(&agents, "own").unwrap();
        assert_eq!(agents.len(), all().len() + 1);
        assert_eq!(own.version(), "two", "new sessions begin with the first");
        assert_eq!(own.at(ONE.version).unwrap().version(), ONE.version);
        assert!(own.at("three").is_none());
        let twice = all_and(vec![Agent::of(&TWO), Agent::of(&TWO)]).unwrap_err();
        assert_eq!(
            twice.to_string(),
            "the graph of agent `own` is invalid: two of its versions are named `two`"
        );
        let other = Agent::of(&TWO).with_earlier(Agent::of(&checkup::GRAPH)).check().unwrap_err();
        assert!(other.to_string().ends_with("is of agent `checkup`"), "{other}");
    }

    #[test]
    fn an_agent_whose_routes_name_no_node_is_not_registered() {
        static OWN: Graph<checkup::State> = Graph { name: "own", start: "servr", ..checkup::GRAPH };
        let refused = all_and(vec![Agent::of(&OWN)]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the graph of agent `own` is invalid: the start `servr` is not a node \
             (did you mean `servers`?)"
        );
    }
}
