//! Commands that packs add, and the host interface that they use.

use std::io;
use std::path::PathBuf;

use clap::ArgMatches;
use files::Roots;
use futures_util::future::LocalBoxFuture;
use serde_json::{Map, Value};

use crate::failure::{Exit, Failure};

/// A pack's command.
pub trait Command: Send + Sync {
    /// Name, options and help.
    fn definition(&self) -> clap::Command;

    /// Whether it starts sessions. If so, this process exports spans.
    fn starts_sessions(&self) -> bool {
        false
    }

    /// Runs the command with parsed options.
    fn run<'a>(
        &'a self,
        options: &'a ArgMatches,
        host: &'a dyn Host,
    ) -> LocalBoxFuture<'a, Result<Exit, Failure>>;
}

/// Settings from the global options and the environment.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Whether `--target aws` is set, which allows calls to an AWS account.
    pub is_in_account: bool,
    /// `--data`.
    pub data: Option<PathBuf>,
    /// The local stack's folder: `--data`, or the default.
    pub stack_folder: PathBuf,
    /// Whether output is JSON, one object per line.
    pub json: bool,
    /// Whether colour is enabled.
    pub colour: bool,
    /// The paths that a server may read; any, if a person started it.
    pub roots: Roots,
    /// `AWS_ENDPOINT_URL`.
    pub aws_endpoint_url: Option<String>,
}

/// Services of the command line for a pack's command.
pub trait Host {
    /// The global options and the environment.
    fn surroundings(&self) -> &Surroundings;

    /// Writes lines of data to stdout.
    ///
    /// # Errors
    /// When stdout is closed; the command then stops.
    fn print(&self, lines: &[String]) -> io::Result<()>;

    /// Writes a JSON value to stdout, on one line.
    ///
    /// # Errors
    /// As [`Host::print`].
    fn print_json(&self, value: &Value) -> io::Result<()>;

    /// Writes a line to stderr.
    fn say(&self, text: &str);

    /// Shows a transient line on the terminal, which the next output overwrites. Returns whether there is a
    /// terminal.
    fn show_progress(&self, text: &str) -> bool;

    /// Runs sessions on the local stack and calls `ended` as each one ends.
    ///
    /// # Errors
    /// When no stack accepts the events, a session's result is unknown, or `ended` fails.
    fn run_sessions<'a>(
        &'a self,
        batch: Batch,
        ended: &'a mut Ended<'a>,
    ) -> LocalBoxFuture<'a, Result<(), Failure>>;
}

/// Receives a session's index in its batch, and the session in the format of `daybook show --json`.
pub type Ended<'a> = dyn FnMut(usize, Value) -> Result<(), Failure> + 'a;

/// Sessions to run.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The details of the trigger events.
    pub details: Vec<Map<String, Value>>,
    /// Maximum number of concurrent sessions.
    pub parallel: usize,
    /// Whether to start a stack for this run if none is listening.
    pub with_stack: bool,
}
