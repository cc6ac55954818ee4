//! The assistant: a conversation about pharmacokinetic simulations. Calls that change or compute
//! something need a person's approval.
//!
//! A thread is one session. [`graph`] plans, selects, confirms, executes, recovers and responds,
//! and waits for the next message between turns. `admission` validates planned calls. [`tool`]
//! lists the tools and their confirmation texts, [`state`] is the session's state, and [`conclude`]
//! renders a finished thread. A model may plan. Without one, `policy` plans for the requests that
//! `request` reads whole, and asks about every part that it does not. `goal` follows a request
//! through its amendments, `turn` goes on after a person's words,
//! `regimen` derives the values and shows the whole regimen, `figures` reads
//! the results, and `witness` adds to a model's reply what was really done.

mod admission;
pub mod conclude;
mod figures;
mod goal;
pub mod graph;
mod policy;
pub mod profile;
mod prompt;
mod regimen;
mod request;
pub mod state;
pub mod tool;
mod turn;
mod witness;

use std::sync::OnceLock;

use ::graph::agent::Agent;

pub fn agent() -> &'static Agent {
    static AGENT: OnceLock<Agent> = OnceLock::new();
    AGENT.get_or_init(|| {
        Agent::of(&graph::GRAPH)
            .with_input_schema(input_schema())
            .with_profile(&profile::PROFILE)
            .with_presentation(conclude::PRESENTATION)
    })
}

/// The JSON schema of its input.
fn input_schema() -> serde_json::Value {
    serde_json::from_str(graph::INPUT_SCHEMA).expect("a schema in this crate is JSON")
}
