//! Pharmacokinetic simulations: how much of a drug is in the blood, and when.
//!
//! `server` speaks MCP. A `model` is a file; a `simulation` is a model with values of its own, and
//! `state` is where simulations are kept. `kinetics` has the solutions, in closed form: one and two
//! compartments, intravenous bolus, infusion and first-order absorption, any number of equal doses.
//! `parameter` and `unit` say what can be set, in which units and within which bounds. `arguments`
//! checks what comes in; `refusal` is every way in which a call can go wrong, and its text names the
//! argument and the accepted form.
//!
//! Whoever lost the answer of a call can find out what it did: loading, setting and running again
//! come to the same, and `list_parameters`, `get_parameter_value` and `get_results` only read.

mod arguments;
mod kinetics;
mod model;
mod parameter;
mod refusal;
mod response;
mod server;
mod simulation;
mod state;
mod unit;

use std::path::{Path, PathBuf};

pub use model::LibraryError;
pub use server::Server;

use crate::ServerInfo;
use model::Library;
use state::State;

/// This server, for listings.
pub const INFO: ServerInfo = ServerInfo {
    name: "pk-sim",
    description: "Simulates the concentration of a drug over time in one and two compartments",
    tools: &[
        "get_parameter_value",
        "get_results",
        "list_models",
        "list_parameters",
        "load_simulation",
        "run_simulation",
        "set_parameter_value",
    ],
};

/// Why the server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The models cannot be used; the caller names another folder or mends the file.
    #[error(transparent)]
    Models(#[from] LibraryError),
    /// The simulations cannot be kept there; the caller names another folder.
    #[error("cannot keep simulations in {}", path.display())]
    State {
        /// The folder as it was given.
        path: PathBuf,
        /// What the file system said.
        #[source]
        source: std::io::Error,
    },
}

/// The server over the models that ship and those of the folder `models`, to be served on any
/// transport. Its simulations are kept in the folder `state`, or without one until it ends.
///
/// # Errors
/// [`Error`], when one of the folders cannot be used.
pub fn server(models: Option<&Path>, state: Option<&Path>) -> Result<Server, Error> {
    let library = models.map_or_else(|| Ok(Library::shipped()), Library::with_folder)?;
    let state = match state {
        None => State::in_memory(),
        Some(path) => State::in_folder(path)
            .map_err(|source| Error::State { path: path.to_owned(), source })?,
    };
    Ok(Server::new(library, state))
}
