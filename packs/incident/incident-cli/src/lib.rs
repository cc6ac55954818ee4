//! The incident pack's extension of `daybook`: its MCP server, incident folders as input, and `chaos`.

pub mod chaos;
mod folder;
mod server;

use std::path::PathBuf;

use aws_diagnostics::destination::Destination;
use extension::Extension;
use extension::failure::Failure;
use extension::input::{Folder, Input};
use futures_util::future::LocalBoxFuture;
use incident::graph::GRAPH;
use mcp::loopback::Loopback;

/// Opens the diagnostics server over an account. With a folder, it records responses there.
pub type OpenServer =
    fn(
        Destination,
        Option<PathBuf>,
    ) -> LocalBoxFuture<'static, Result<aws_diagnostics::Server, aws_diagnostics::Error>>;

/// Injects or reverts a fault and returns the changes. The folder has the records of faults.
pub type RunChaos =
    fn(chaos::Order, PathBuf) -> LocalBoxFuture<'static, Result<Vec<chaos::Change>, Failure>>;

/// Support for AWS accounts. Its clients take minutes to compile, so only some builds have it.
#[derive(Clone, Copy)]
pub struct Account {
    pub open: OpenServer,
    pub chaos: RunChaos,
}

/// The pack's extension.
pub fn extension(account: Option<Account>) -> Extension {
    Extension {
        servers: vec![Box::new(server::AwsDiagnostics { account })],
        input: Some(Input {
            agent: GRAPH.name,
            folder: Some(Folder { form: folder::FORM, read: folder::read }),
            paths: &[],
            referred: None,
        }),
        commands: vec![Box::new(chaos::Chaos { account })],
        examples: &[
            (
                "trigger",
                "  daybook trigger --input packs/incident/incidents/network-blocked --wait",
            ),
            ("trigger", "  daybook trigger --agent incident --input - --wait <message.json"),
            ("sessions", "  daybook sessions --agent incident --json | jq -r .session_id"),
            ("tools", "  daybook tools aws-diagnostics"),
        ],
        ..Extension::default()
    }
}

/// An endpoint on this machine, or AWS if allowed.
fn destination(aws_endpoint_url: Option<&str>, may_ask_account: bool) -> Option<Destination> {
    match aws_endpoint_url.and_then(Loopback::of) {
        Some(endpoint) => Some(Destination::Loopback(endpoint)),
        None => may_ask_account.then_some(Destination::Aws),
    }
}
