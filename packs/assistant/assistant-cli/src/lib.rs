//! The assistant pack's extension of `daybook`: its MCP server, and the agent of `daybook chat`.

use std::path::PathBuf;

use assistant::graph::GRAPH;
use clap::{Arg, ArgMatches, value_parser};
use extension::command::Surroundings;
use extension::failure::Failure;
use extension::server::{Server, Transport};
use extension::{Chat, Extension};
use futures_util::future::{FutureExt as _, LocalBoxFuture};
use mcp::ServerInfo;

pub fn extension() -> Extension {
    Extension {
        servers: vec![Box::new(PkSim)],
        chat: Some(Chat {
            agent: GRAPH.name,
            about: "Chat with the assistant about simulations; it asks before it changes one",
            examples: "  printf '%s\\n' 'simulate 250 mg of theophylline' y y y y | daybook chat",
        }),
        ..Extension::default()
    }
}

struct PkSim;

impl Server for PkSim {
    fn info(&self) -> ServerInfo {
        pk_sim::INFO
    }

    fn options(&self) -> Vec<Arg> {
        let folder = |name: &'static str, help: &'static str| {
            let folder = value_parser!(PathBuf);
            Arg::new(name).long(name).value_name("DIR").help(help).value_parser(folder)
        };
        vec![
            folder("models", "Folder of additional models, one file NAME.json each (pk-sim)"),
            folder("state", "Folder to keep simulations in (pk-sim)"),
        ]
    }

    fn help(&self) -> &'static str {
        "\
pk-sim simulates the bundled models and those in --models. Simulations are lost when it exits, unless
--state names a folder for them:
  {\"command\": \"daybook\", \"args\": [\"mcp\", \"pk-sim\", \"--state\", \"/var/lib/pk-sim\"]}"
    }

    fn serve<'a>(
        &'a self,
        options: &'a ArgMatches,
        _: &'a Surroundings,
        transport: Transport,
    ) -> LocalBoxFuture<'a, Result<(), Failure>> {
        async move {
            let folder = |name: &str| options.get_one::<PathBuf>(name).map(PathBuf::as_path);
            let server = pk_sim::server(folder("models"), folder("state")).map_err(|error| {
                let hint = match &error {
                    pk_sim::Error::Models(_) => "--models names a folder of model files",
                    pk_sim::Error::State { .. } => "--state must name a writable folder",
                };
                Failure::from(error).hint(hint)
            })?;
            transport.serve(server).await
        }
        .boxed_local()
    }
}
