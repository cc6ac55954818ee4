//! The network pack's extension of `daybook`: its MCP server, network folders as input, `dev
//! --plans`.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, value_parser};
use extension::command::Surroundings;
use extension::failure::Failure;
use extension::input::{self, Folder, Input};
use extension::server::{Server, Transport};
use extension::{DevOptions, Extension};
use futures_util::future::{FutureExt as _, LocalBoxFuture};
use mcp::ServerInfo;
use network::graph::GRAPH;
use serde_json::{Map, Value, json};

/// The input file of a network folder.
const QUERY_FILE: &str = "query.json";

pub fn extension() -> Extension {
    Extension {
        servers: vec![Box::new(NetworkInventory)],
        input: Some(Input {
            agent: GRAPH.name,
            folder: Some(Folder {
                form: "a network folder has query.json; see packs/network/networks/README.md",
                read,
            }),
            paths: &["inventory"],
            referred: Some(network_inventory::referred),
        }),
        dev: Some(DevOptions {
            define,
            variables,
            hint: "--plans names a folder of plans; see packs/network/plans",
        }),
        ..Extension::default()
    }
}

fn read(path: &Path) -> Result<Option<Map<String, Value>>, Failure> {
    let file = path.join(QUERY_FILE);
    if !file.is_file() {
        return Ok(None);
    }
    let detail =
        [("agent".to_owned(), json!(GRAPH.name)), ("input".to_owned(), input::json(&file)?)];
    Ok(Some(Map::from_iter(detail)))
}

fn define(dev: clap::Command) -> clap::Command {
    let help = "Folder of plans for the network agent, one file INTENT.json each; they take precedence over the bundled ones";
    dev.arg(path("plans", "DIR", help))
}

fn variables(options: &ArgMatches) -> Result<Vec<(&'static str, String)>, Failure> {
    let Some(folder) = options.get_one::<PathBuf>("plans") else { return Ok(Vec::new()) };
    // An isolated agent may run in another working directory.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    Ok(vec![(network::profile::NETWORK_PLANS, folder.to_string_lossy().into_owned())])
}

fn path(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help).value_parser(value_parser!(PathBuf))
}

struct NetworkInventory;

impl Server for NetworkInventory {
    fn info(&self) -> ServerInfo {
        network_inventory::INFO
    }

    fn options(&self) -> Vec<Arg> {
        let help =
            "The network to answer from [default: a bundled healthy network] (network-inventory)";
        vec![path("inventory", "FILE", help)]
    }

    fn help(&self) -> &'static str {
        "network-inventory answers from a network description (--inventory), or else from a bundled healthy network."
    }

    fn serve<'a>(
        &'a self,
        options: &'a ArgMatches,
        surroundings: &'a Surroundings,
        transport: Transport,
    ) -> LocalBoxFuture<'a, Result<(), Failure>> {
        async move {
            let file = options.get_one::<PathBuf>("inventory");
            let server =
                network_inventory::server_below(file.map(PathBuf::as_path), &surroundings.roots)
                    .map_err(|error| {
                        Failure::from(error)
                            .hint("--inventory names a file; see packs/network/networks/README.md")
                    })?;
            transport.serve(server).await
        }
        .boxed_local()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_query_is_an_input() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../networks/mtu-mismatch");
        let detail = read(&folder).unwrap().unwrap();
        assert_eq!(detail["agent"], GRAPH.name);
        assert_eq!(detail["input"]["inventory"], "network.json");
        assert_eq!(read(tempfile::tempdir().unwrap().path()).unwrap(), None);
    }
}
