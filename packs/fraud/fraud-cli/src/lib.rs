//! The fraud pack's extension of `daybook`: its MCP server, `investigate` and `generate`. `ranking` and
//! `reliability` measure scores against labels, for `investigate` and for the benchmark.

mod generate;
mod handover;
mod investigate;
mod progress;
pub mod ranking;
pub mod reliability;
mod report;
mod server;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use card_transactions::Embedding;
use extension::Extension;
use extension::input::Input;
use fraud::graph::GRAPH;

/// Opens the sentence transformer in a folder. It takes minutes to compile, so only some builds have it.
pub type OpenEmbedding = fn(&Path) -> Result<Arc<dyn Embedding>, Box<dyn Error + Send + Sync>>;

pub fn extension(embeddings: Option<OpenEmbedding>) -> Extension {
    Extension {
        servers: vec![Box::new(server::CardTransactions { embeddings })],
        input: Some(Input { agent: GRAPH.name, folder: None, paths: &["data"], referred: None }),
        commands: vec![Box::new(investigate::Investigate), Box::new(generate::Generate)],
        ..Extension::default()
    }
}
