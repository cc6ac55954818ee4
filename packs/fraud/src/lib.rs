//! The fraud agent: decides whether a card payment is a fraud.
//!
//! A planner ([`planner`]) chooses among six tools ([`tool`]), each is called at most once, and
//! [`conclusion`] weighs their answers. A model may plan; the planner validates each of its choices
//! and replaces an invalid one by the fixed sequence. A model decides the order of the steps and
//! may explain the evidence in words ([`explaining`]); it changes no score and no recommendation. [`options`] and [`profile`] hold the settings, [`state`] the session's state, and
//! `prompt` the model's prompts. [`graph`] connects them, and [`conclude`] renders an
//! investigation.

pub mod answer;
pub mod conclude;
pub mod conclusion;
pub mod explaining;
pub mod graph;
pub mod input;
pub mod options;
pub mod planner;
pub mod profile;
mod prompt;
pub mod state;
pub mod tool;

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
        .with_span_names(graph::SPAN_NAMES)
        .with_profile(&profile::PROFILE)
        .with_input_schema(input_schema())
        .with_presentation(conclude::PRESENTATION)
}

/// The JSON schema of its input.
fn input_schema() -> serde_json::Value {
    serde_json::from_str(input::INPUT_SCHEMA).expect("a schema in this crate is JSON")
}
