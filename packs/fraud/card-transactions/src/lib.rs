//! The MCP server `card-transactions`: the tools of a fraud analyst for one card payment. They show
//! the habits of the card and the merchant, unusual patterns, similar past cases, and the effect of
//! a draft rule.
//!
//! `server` speaks MCP. It reads a `source` (`csv_file`, `parquet_file` or the HTTP `service`) row
//! by row and validates each `row`; `case_file` keeps the rows that matter for one payment. The
//! analysis is pure: `features` (a payment in numbers, against its card's history), `patterns`
//! (anomalies, with the rows that show them), `similarity` (the nearest past cases, by text too
//! with an [`Embedding`]), `calibration` (what share
//! of such payments were frauds, by the labels known then), `reasoning`, `recommendations` and `rules` (drafts, backtested
//! before they are shown). `generator` makes data sets in this format.
//!
//! The tools never see the label of the investigated payment: reading its row drops it. Labels of
//! other rows count only if they were known by then.

mod amount;
mod calibration;
mod case_file;
mod csv_file;
mod error;
mod features;
pub mod generator;
mod habits;
mod kinds;
mod parquet_file;
mod patterns;
mod reasoning;
mod recommendations;
mod row;
mod rules;
mod server;
mod service;
mod similarity;
mod source;
mod statistics;
mod summary;
mod trust;

pub use error::Error;
pub use row::Channel;
pub use server::Server;
pub use similarity::Embedding;
pub use source::{Labels, Remote, Source};
pub use summary::Payment;

use mcp::ServerInfo;

pub const INFO: ServerInfo = ServerInfo {
    name: "card-transactions",
    description: "Investigates one card payment: history, patterns, similar cases, backtested rules",
    tools: &[
        "context_tool",
        "pattern_tool",
        "reasoning_tool",
        "recommendation_tool",
        "rule_draft_tool",
        "similarity_tool",
    ],
};

/// The server, for any transport. Its data are a CSV or Parquet file, or the address of a
/// transaction service. Reads nothing yet.
///
/// # Errors
/// If `remote` does not allow the address.
pub fn server(data: &str, remote: Remote) -> Result<Server, Error> {
    Ok(Server::new(Source::new(data, remote)?))
}
