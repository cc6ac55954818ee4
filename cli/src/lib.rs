//! All of the binary `daybook`: one machine's cloud for agents, and everything a person asks of it.
//!
//! [`main_with`] is the program; a crate with agents of its own calls it with them and is the whole of
//! `daybook` with these besides.
//!
//! `args` parses the command line plainly, `config` reads the environment, `resolve` joins the
//! two into a typed command; only that step may fail on the environment. `commands` do the work:
//! they read the journal (`ledger`, `feed`, wherever the target keeps it), speak to the endpoint (`endpoint`) and hand what
//! they find to `render`, which is pure. `output` writes: stdout is data, stderr is talk.
//! `typing` reads what a person types, `editor` has them edit a text, `deciding` knows what they mean at a
//! question; `progress` shows how far running tools are, `counted` what a session asks of an account,
//! `outputs` looks up what a stack there is called. `failure` is how anything goes wrong; `new_agent` is what
//! the crate of a new agent consists of.

mod args;
mod commands;
mod config;
mod counted;
mod deciding;
mod editor;
mod endpoint;
mod failure;
mod feed;
mod input;
mod ledger;
mod new_agent;
mod output;
#[cfg(feature = "live")]
mod outputs;
mod progress;
mod render;
mod resolve;
mod typing;

use std::process::ExitCode;

use clap::Parser;
use graph::agent::Agent;

use crate::args::Args;
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::resolve::Action;

/// The program `daybook` with the agents that ship and these of one's own.
///
/// The exit is the command's; 64 if two agents have one name.
pub fn main_with(own: Vec<Agent>) -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(refusal) => return usage(&refusal),
    };
    start_logging(args.global.verbose);
    let exit = run(args, own).unwrap_or_else(|failure| {
        failure.report();
        failure.exit()
    });
    ExitCode::from(exit as u8)
}

/// Threads for what blocks: reads of the journal, of which eight are made at once, a line from the terminal,
/// a file. More than these would wait for the same disk, and a burst of sessions would leave each with
/// memory of its own.
const BLOCKING_THREADS_MAX: usize = 16;

fn run(args: Args, own: Vec<Agent>) -> Result<Exit, Failure> {
    let agents = agents::all_and(own).map_err(|taken| {
        Failure::usage(taken).hint("an agent of your own needs a name that no other has")
    })?;
    let command = resolve::resolve(args, &Config::from_environment(agents))?;
    if let Some(service) = service(&command.action) {
        config::export_spans(service).map_err(|error| Failure::usage(error.to_string()))?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .build()?;
    let exit = runtime.block_on(commands::run(command));
    // A thread that still waits for a line from the terminal must not keep the program alive.
    runtime.shutdown_background();
    telemetry::export::flush();
    exit
}

/// What the program is called in the spans of a command; `None` for one that leaves none.
fn service(action: &Action) -> Option<&'static str> {
    match action {
        Action::Dev(..) => Some("daybook"),
        Action::Trigger(_) | Action::Investigate(_) | Action::Chat(_) => Some("daybook-cli"),
        Action::Mcp(_) => Some("daybook-mcp"),
        _ => None,
    }
}

/// Help and version are answers, everything else that the parser says is a refusal.
fn usage(refusal: &clap::Error) -> ExitCode {
    // A closed pipe leaves nobody to tell.
    let _ = refusal.print();
    ExitCode::from(if refusal.use_stderr() { Exit::Usage as u8 } else { Exit::Succeeded as u8 })
}

/// Logs go to stderr and never hold payloads. `RUST_LOG` stands over `-v`.
fn start_logging(verbose: u8) {
    let level = match verbose {
        // That no region is found in a place where there is none is not worth a line.
        0 => "warn,aws_config=error",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(output::stderr_has_colour())
        .init();
}
