//! The MCP server `aws-diagnostics`: a Lambda function's recent logs, role policies, configuration,
//! security group rules and recent changes.
//!
//! `server` speaks MCP. `source` knows which AWS calls (`call`) a tool needs and reads them from
//! `snapshot`, an incident folder of saved AWS CLI output; with the feature `live`, from `live`, an
//! account, or `recording`, an account whose responses become an incident folder. `saved` is the AWS
//! CLI's output, `answer` converts it to `response` (both pure), and `refusal` has every error. A
//! refused call is an MCP result with `isError` and a text that names the AWS call. It never looks
//! like data and fails no other tool. Where a tool needs several calls, the parts that were read survive
//! the failure of another, and `error` names what is missing.

#[cfg(feature = "live")]
pub mod account;
mod answer;
mod call;
pub mod destination;
#[cfg(feature = "live")]
mod ec2;
mod function_name;
#[cfg(feature = "live")]
mod live;
#[cfg(feature = "live")]
mod recording;
mod refusal;
mod response;
mod saved;
mod server;
#[cfg(feature = "live")]
pub mod signed;
mod snapshot;
mod source;

use std::path::PathBuf;

pub use server::Server;

use mcp::{ServerInfo, stdio};
use snapshot::Snapshot;
use source::Source;

/// This server, for listings.
pub const INFO: ServerInfo = ServerInfo {
    name: "aws-diagnostics",
    description: "Reads a Lambda function's recent logs, the policies of its role, its configuration, the rules of its security groups and who changed them",
    tools: &[
        "get_iam_state",
        "get_lambda_config",
        "get_recent_changes",
        "get_recent_logs",
        "get_security_group_rules",
    ],
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The incident folder cannot be opened; pass another one.
    #[error("cannot open the incident folder {}", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Serving(#[from] stdio::Error),
}

/// Serves an incident folder on stdin and stdout until stdin closes.
///
/// # Errors
///
/// [`Error::Folder`] when the path is not a readable folder; [`Error::Serving`] when serving fails.
pub async fn serve_stdio(snapshot: PathBuf) -> Result<(), Error> {
    Ok(stdio::serve(server(snapshot)?).await?)
}

/// The server over an incident folder, for any transport.
///
/// # Errors
///
/// [`Error::Folder`] when the path is not a readable folder.
pub fn server(snapshot: PathBuf) -> Result<Server, Error> {
    match Snapshot::open(&snapshot) {
        Ok(folder) => Ok(Server::new(Source::Snapshot(folder))),
        Err(source) => Err(Error::Folder { path: snapshot, source }),
    }
}

/// The server over an AWS account. It only reads; `packs/incident/iam/aws-diagnostics.json` is its
/// least-privilege policy.
#[cfg(feature = "live")]
pub fn live(account: &crate::account::Account) -> Server {
    Server::new(Source::Live(live::Live::new(account)))
}

/// The server over an AWS account that records responses in an incident folder, created if missing.
/// A function that the folder has is read from it.
///
/// # Errors
///
/// [`Error::Folder`] when the folder cannot be created or has files of something else.
#[cfg(feature = "live")]
pub fn recording(account: &crate::account::Account, folder: PathBuf) -> Result<Server, Error> {
    match recording::Recording::open(live::Live::new(account), &folder) {
        Ok(recording) => Ok(Server::new(Source::Recording(recording))),
        Err(source) => Err(Error::Folder { path: folder, source }),
    }
}
