//! The network agent: is this router well, and if not, what is wrong with it?
//!
//! It takes a question in words (`query`), chooses a [`plan`] of steps in natural language, and
//! works the steps off one by one with whatever tools its MCP servers offer (`executor`;
//! `interpret` does it without a model). What the tools say is read for what is out of order (`findings`). An assessor
//! decides whether the steps are answered or some are repeated (`assess`), and a report is written
//! (`report`). [`state`] is what is known on the way, [`graph`] ties it together.

mod assess;
mod choices;
mod executor;
mod findings;
pub mod graph;
mod interpret;
mod offer;
pub mod plan;
mod prompt;
mod query;
mod report;
pub mod state;
