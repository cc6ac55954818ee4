//! The MCP server `pk-sim`: pharmacokinetic simulations of a drug's concentration over time.
//!
//! `server` speaks MCP. A `model` is a file; a `simulation` is a model with its own parameter
//! values; `state` stores the simulations. `kinetics` solves the models in closed form: one and two
//! compartments, intravenous bolus, infusion and first-order absorption, any number of equal doses.
//! `parameter` and `unit` define what a caller can set, its units and bounds. `arguments` validates
//! calls. `refusal` lists every error of a call; its text names the argument and the accepted form.
//!
//! Calls are safe to repeat when a response was lost: loading, setting and running again give the
//! same state, and `list_parameters`, `get_parameter_value` and `get_results` only read.

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

use mcp::ServerInfo;
use model::Library;
use state::State;

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

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The models are invalid. Name another folder or fix the file.
    #[error(transparent)]
    Models(#[from] LibraryError),
    /// The folder cannot hold simulations. Name another one.
    #[error("cannot keep simulations in {}", path.display())]
    State {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// The server, for any transport. It offers the bundled models and those of the folder `models`. It
/// keeps simulations in the folder `state`, or in memory if there is none.
///
/// # Errors
/// [`Error`], if one of the folders cannot be used.
pub fn server(models: Option<&Path>, state: Option<&Path>) -> Result<Server, Error> {
    let library = models.map_or_else(|| Ok(Library::shipped()), Library::with_folder)?;
    let state = match state {
        None => State::in_memory(),
        Some(path) => State::in_folder(path)
            .map_err(|source| Error::State { path: path.to_owned(), source })?,
    };
    Ok(Server::new(library, state))
}
