//! The network agent: checks a router and reports what is wrong with it.
//!
//! Takes a question (`query`), chooses a [`plan`] of steps in natural language, and runs the steps
//! with the tools of its MCP servers (`executor`; without a model, `interpret`). `findings` reads the
//! results, and `judge` judges each sentence by them. An assessor retries failed steps (`assess`), and `report` writes the
//! report, which [`conclude`] renders. [`state`] is the session's state, [`graph`] connects the
//! modules, and [`profile`] holds the settings.

mod across;
mod asks;
mod assess;
mod blocks;
mod choices;
mod columns;
mod compare;
pub mod conclude;
mod durations;
mod executor;
mod facts;
mod fields;
mod figures;
mod filters;
mod findings;
pub mod graph;
mod interpret;
mod judge;
mod leaves;
mod lexicon;
mod links;
mod logs;
mod object;
mod offer;
mod optics;
pub mod plan;
mod ports;
mod printed;
pub mod profile;
mod prompt;
mod query;
mod records;
mod relations;
mod report;
mod sentence;
mod shared;
mod specific;
pub mod state;
mod summaries;
mod tables;
mod vocabulary;

use std::sync::OnceLock;

use ::graph::agent::Agent;

pub fn agent() -> &'static Agent {
    static AGENT: OnceLock<Agent> = OnceLock::new();
    AGENT.get_or_init(|| {
        with_descriptor(Agent::of(&graph::GRAPH))
            .with_earlier(with_descriptor(Agent::of(&graph::EARLIER)))
    })
}

fn with_descriptor(agent: Agent) -> Agent {
    agent
        .with_input_schema(input_schema())
        .with_profile(&profile::PROFILE)
        .with_presentation(conclude::PRESENTATION)
}

/// The JSON schema of the input.
fn input_schema() -> serde_json::Value {
    serde_json::from_str(graph::INPUT_SCHEMA).expect("a schema in this crate is JSON")
}
