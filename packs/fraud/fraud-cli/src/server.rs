//! `daybook mcp card-transactions`.

use std::path::{Path, PathBuf};

use card_transactions::Remote;
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use extension::command::Surroundings;
use extension::failure::Failure;
use extension::server::{Server, Transport};
use files::Roots;
use futures_util::future::{FutureExt as _, LocalBoxFuture};
use mcp::ServerInfo;

use super::OpenEmbedding;

/// The server, with an optional sentence transformer.
pub struct CardTransactions {
    pub embeddings: Option<OpenEmbedding>,
}

impl Server for CardTransactions {
    fn info(&self) -> ServerInfo {
        card_transactions::INFO
    }

    fn options(&self) -> Vec<Arg> {
        vec![
            Arg::new("allow_remote")
                .long("allow-remote")
                .help("Allow a service on another machine (card-transactions)")
                .action(ArgAction::SetTrue),
            Arg::new("embeddings")
                .long("embeddings")
                .value_name("DIR")
                .help(
                    "Also compare past cases by their texts, with the sentence transformer in this \
                     folder (card-transactions)",
                )
                .value_parser(value_parser!(PathBuf)),
        ]
    }

    fn help(&self) -> &'static str {
        "\
card-transactions reads a CSV or Parquet file, or a transaction service on this machine (on another one
with --allow-remote), named by --data. A build with the feature `embeddings` can also compare past cases
by their texts:
  daybook mcp card-transactions --data packs/fraud/transactions/sample.csv
  daybook mcp card-transactions --data packs/fraud/transactions/sample.csv --embeddings all-MiniLM-L6-v2"
    }

    fn listing_options(&self) -> &'static [&'static str] {
        &["--data", "."]
    }

    fn serve<'a>(
        &'a self,
        options: &'a ArgMatches,
        surroundings: &'a Surroundings,
        transport: Transport,
    ) -> LocalBoxFuture<'a, Result<(), Failure>> {
        async move {
            // A server has no journal, so `--data` names the transactions here.
            let data = surroundings.data.as_deref().and_then(Path::to_str).ok_or_else(|| {
                Failure::usage("no transactions given")
                    .hint("pass a CSV or Parquet file, or a service's URL, with --data")
            })?;
            let remote =
                if options.get_flag("allow_remote") { Remote::Allowed } else { Remote::Refused };
            let data = admitted(data, &surroundings.roots)?;
            let server = card_transactions::server(&data, remote)?;
            let server = match options.get_one::<PathBuf>("embeddings") {
                None => server,
                Some(folder) => self.comparing_texts(server, folder)?,
            };
            transport.serve(server).await
        }
        .boxed_local()
    }
}

/// The canonical form of a file; an address as it is.
fn admitted(data: &str, roots: &Roots) -> Result<String, Failure> {
    if data.contains("://") {
        return Ok(data.to_owned());
    }
    // A file that does not exist is named by the first call that needs it.
    match roots.admit(Path::new(data)) {
        Ok(path) => Ok(path.to_string_lossy().into_owned()),
        Err(files::Refusal::Unreadable { .. }) => Ok(data.to_owned()),
        Err(refusal) => Err(Failure::unknown(refusal.to_string())),
    }
}

impl CardTransactions {
    fn comparing_texts(
        &self,
        server: card_transactions::Server,
        folder: &Path,
    ) -> Result<card_transactions::Server, Failure> {
        let open = self.embeddings.ok_or_else(|| {
            Failure::unknown("this build has no support for embeddings")
                .hint("build it with: cargo build -p cli --profile local --features embeddings")
        })?;
        let embedding = open(folder).map_err(|error| {
            Failure::unknown(error).hint(
                "--embeddings names a folder with config.json, tokenizer.json and model.safetensors",
            )
        })?;
        Ok(server.comparing_texts(embedding))
    }
}
