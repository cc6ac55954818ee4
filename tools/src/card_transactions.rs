//! What a fraud analyst looks at when a card payment is doubtful: the card's habits, the merchant's,
//! what is odd about the payment, which past cases it resembles, and what a rule against it would do.
//!
//! `server` speaks MCP. A `source` of rows (`csv_file`, `parquet_file` or the HTTP `service`) is read
//! row by row, and each `row` is checked at that border; `case_file` keeps of all rows those that
//! matter for one payment. On it work, all pure: `features` (a payment in numbers, against its card's
//! past), `patterns` (what is odd, with the rows that show it), `similarity` (the nearest past cases,
//! and with an `embedder` those that are about the same), `reasoning`, `recommendations` and `rules`
//! (drafts that are tried on the data before anybody is shown them). `generator` makes data sets of
//! this form.
//!
//! Whether the payment in question is a fraud is never known here, whatever the data say: of its row
//! the label is dropped as it is read, and of other rows the label counts only where it would have
//! been known by then.

mod amount;
mod case_file;
mod csv_file;
#[cfg(feature = "embeddings")]
pub mod embedder;
mod error;
mod features;
pub mod generator;
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

pub use error::Error;
pub use server::Server;
pub use similarity::Embedding;
pub use source::{Remote, Source};

use crate::ServerInfo;

/// This server, for listings.
pub const INFO: ServerInfo = ServerInfo {
    name: "card-transactions",
    description: "Investigates one card payment: habits, patterns, similar cases, rules tried on the data",
    tools: &[
        "context_tool",
        "pattern_tool",
        "reasoning_tool",
        "recommendation_tool",
        "rule_draft_tool",
        "similarity_tool",
    ],
};

/// The server over transactions, to be served on any transport: a CSV or Parquet file, or the address
/// of a transaction service. Reads nothing yet.
///
/// # Errors
/// When the address is not one that `remote` allows.
pub fn server(data: &str, remote: Remote) -> Result<Server, Error> {
    Ok(Server::new(Source::new(data, remote)?))
}
