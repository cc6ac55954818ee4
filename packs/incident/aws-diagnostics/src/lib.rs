//! The MCP server `aws-diagnostics`: a Lambda function's recent logs, role policies and
//! configuration.
//!
//! `server` speaks MCP. `source` knows which AWS calls (`call`) an answer needs and who answers
//! them: `snapshot`, an incident folder of saved AWS CLI output; with the feature `live`, `live`,
//! an account, or `recording`, an account whose answers become an incident folder. `saved` is the
//! AWS CLI's output, `answer` converts it to `response` (both pure), and `refusal` lists every
//! error of a call. A refused call is an MCP result with `isError` and a text that names the AWS
//! call. It never looks like data and fails no other tool.

#[cfg(feature = "live")]
pub mod account;
mod answer;
mod call;
pub mod destination;
mod function_name;
#[cfg(feature = "live")]
mod live;
#[cfg(feature = "live")]
mod recording;
mod refusal;
mod response;
mod saved;
mod server;
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
    description: "Reads a Lambda function's recent logs, the policies of its role and its configuration",
    tools: &["get_iam_state", "get_lambda_config", "get_recent_logs"],
};

/// Why the server could not be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The incident folder cannot be opened; the caller names another one.
    #[error("cannot open the incident folder {}", path.display())]
    Folder {
        /// The folder as it was given.
        path: PathBuf,
        /// What the file system said.
        #[source]
        source: std::io::Error,
    },
    /// Nothing could be served.
    #[error(transparent)]
    Serving(#[from] stdio::Error),
}

/// Serves an incident folder on stdin and stdout until stdin closes.
///
/// # Errors
///
/// [`Error`], of which only [`Error::Folder`] can be put right by whoever started it.
pub async fn serve_stdio(snapshot: PathBuf) -> Result<(), Error> {
    Ok(stdio::serve(server(snapshot)?).await?)
}

/// The server over an incident folder, to be served on any transport.
///
/// # Errors
///
/// [`Error::Folder`] when the path is not a folder that can be read.
pub fn server(snapshot: PathBuf) -> Result<Server, Error> {
    match Snapshot::open(&snapshot) {
        Ok(folder) => Ok(Server::new(Source::Snapshot(folder))),
        Err(source) => Err(Error::Folder { path: snapshot, source }),
    }
}

/// The server over an AWS account. All its calls only read; `packs/incident/iam/aws-diagnostics.json` is
/// the policy that allows them and no more.
#[cfg(feature = "live")]
pub fn live(account: &crate::account::Account) -> Server {
    Server::new(Source::Live(live::Live::new(account)))
}

/// The server over an AWS account whose answers become an incident folder, which is made if it is
/// not there. A function that the folder has already is answered from it.
///
/// # Errors
///
/// [`Error::Folder`] when the folder cannot be made, or holds what is no part of an incident.
#[cfg(feature = "live")]
pub fn recording(account: &crate::account::Account, folder: PathBuf) -> Result<Server, Error> {
    match recording::Recording::open(live::Live::new(account), &folder) {
        Ok(recording) => Ok(Server::new(Source::Recording(recording))),
        Err(source) => Err(Error::Folder { path: folder, source }),
    }
}
