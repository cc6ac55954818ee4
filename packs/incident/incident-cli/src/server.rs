//! `daybook mcp aws-diagnostics`.

use std::path::{Path, PathBuf};

use aws_diagnostics::Error;
use clap::{Arg, ArgMatches, value_parser};
use extension::command::Surroundings;
use extension::failure::Failure;
use extension::server::{Server, Transport};
use files::Roots;
use futures_util::future::{FutureExt as _, LocalBoxFuture};
use mcp::ServerInfo;

use super::{Account, destination};

/// The server, with optional AWS support.
pub struct AwsDiagnostics {
    pub account: Option<Account>,
}

impl Server for AwsDiagnostics {
    fn info(&self) -> ServerInfo {
        aws_diagnostics::INFO
    }

    fn options(&self) -> Vec<Arg> {
        let folder = |name: &'static str, help: &'static str| {
            let folder = value_parser!(PathBuf);
            Arg::new(name).long(name).value_name("DIR").help(help).value_parser(folder)
        };
        vec![
            folder("snapshot", "Answer from this incident folder (aws-diagnostics)"),
            folder(
                "record",
                "Record the account's responses as an incident folder (aws-diagnostics)",
            )
            .conflicts_with("snapshot"),
        ]
    }

    fn help(&self) -> &'static str {
        "\
aws-diagnostics answers from an incident folder (--snapshot), from an endpoint on this machine
(AWS_ENDPOINT_URL), or from the account of the current credentials (--target aws):
  {\"command\": \"daybook\", \"args\": [\"mcp\", \"aws-diagnostics\", \"--snapshot\", \"packs/incident/incidents/network-blocked\"]}
  daybook mcp aws-diagnostics --target aws --record incidents/tonight --http 127.0.0.1:4600"
    }

    fn listing_options(&self) -> &'static [&'static str] {
        &["--snapshot", "."]
    }

    fn serve<'a>(
        &'a self,
        options: &'a ArgMatches,
        surroundings: &'a Surroundings,
        transport: Transport,
    ) -> LocalBoxFuture<'a, Result<(), Failure>> {
        async move {
            let server = match options.get_one::<PathBuf>("snapshot") {
                Some(folder) => {
                    let folder = admitted(folder, &surroundings.roots)?;
                    aws_diagnostics::server(folder).map_err(|error| {
                    let hint = "--snapshot names an incident folder; see packs/incident/incidents/README.md";
                        of_folder(error, hint)
                    })?
                }
                None => self.over_account(options, surroundings).await?,
            };
            transport.serve(server).await
        }
        .boxed_local()
    }
}

impl AwsDiagnostics {
    async fn over_account(
        &self,
        options: &ArgMatches,
        surroundings: &Surroundings,
    ) -> Result<aws_diagnostics::Server, Failure> {
        let endpoint = surroundings.aws_endpoint_url.as_deref();
        let destination = destination(endpoint, surroundings.is_in_account).ok_or_else(|| {
            Failure::usage("no data source given").hint(
                "pass an incident folder with --snapshot DIR, or use the account of the current \
                 credentials with --target aws",
            )
        })?;
        let account = self.account.ok_or_else(|| Failure::not_live("AWS accounts"))?;
        let record = options.get_one::<PathBuf>("record").cloned();
        (account.open)(destination, record).await.map_err(|error| {
            of_folder(error, "--record names a new folder, or an existing incident folder")
        })
    }
}

/// The canonical form of a folder. One that does not exist is named by the server.
fn admitted(folder: &Path, roots: &Roots) -> Result<PathBuf, Failure> {
    match roots.admit(folder) {
        Err(files::Refusal::Unreadable { .. }) => Ok(folder.to_owned()),
        admitted => admitted.map_err(|refusal| Failure::unknown(refusal.to_string())),
    }
}

fn of_folder(error: Error, hint: &str) -> Failure {
    let is_folder = matches!(error, Error::Folder { .. });
    let failure = Failure::from(error);
    if is_folder { failure.hint(hint) } else { failure }
}
