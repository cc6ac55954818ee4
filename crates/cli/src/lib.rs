//! The program `daybook`: the local stack and the command line over sessions, local or in AWS.
//!
//! [`main_with`] is the whole program. A crate with its own agents calls it with them and is a complete
//! `daybook`. Packs add MCP servers, inputs and commands as `extension::Extension`s; `packs-cli` lists
//! them, and this crate names no pack.
//!
//! A command passes through these modules:
//!
//! 1. `args` parses the command line, and `config` reads the environment.
//! 2. `resolve` combines the two into a typed action. It is the only step that can fail on the environment.
//! 3. `commands` runs the action. It reads the journal (`reader`, `feed`), calls the stack (`endpoint`) or
//!    AWS (`outputs` finds the resource names), and creates agent crates (`new_agent`, with the kits of `installed`).
//! 4. `render` turns records into lines without IO, and `output` writes them: data to stdout, messages to
//!    stderr.
//!
//! Interactive commands read keys and lines with `typing`, open an editor with `editor`, and parse answers
//! with `deciding`. `eval` compares runs with the cases of an evaluation. `progress` shows running tools, `counted` counts AWS usage, `caps` has the limits of a stack's load, and `failure` reports errors.

mod args;
mod asking;
mod caps;
mod commands;
mod config;
mod counted;
mod deciding;
mod editor;
mod endpoint;
mod eval;
mod failure;
mod feed;
mod input;
mod installed;
mod new_agent;
mod output;
#[cfg(feature = "live")]
mod outputs;
mod progress;
mod project;
mod reader;
mod render;
mod resolve;
mod typing;
mod user;

use std::process::ExitCode;
use std::sync::Arc;

use agent::measure::LOG_TARGET;
use agent::project::Project;
use extension::Extension;
use graph::agent::Agent;
use packs::RegisterError;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::Command;
use crate::args::packs::{Parsed, Typed, parse};
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::resolve::Action;

/// Runs `daybook` with the bundled agents and `own`.
///
/// Exits with the command's code, or 64 if two agents have the same name or a graph is invalid.
pub fn main_with(own: Vec<Agent>) -> ExitCode {
    if agent::http_agent::is_asked() {
        agent::http_agent::main();
    }
    #[cfg(feature = "live")]
    if agent::container::is_asked() {
        return agent_process(own);
    }
    let extensions: Arc<[Extension]> = packs_cli::all(optional()).into();
    let args = match parse(&extensions) {
        Ok(args) => args,
        Err(refusal) => return usage(&refusal),
    };
    let is_host =
        matches!(&args.command, Typed::Own(command) if matches!(**command, Command::Dev(_)));
    start_logging(args.global.verbose, is_host);
    let exit = run(args, own, extensions).unwrap_or_else(|failure| {
        failure::report(&failure);
        failure.exit()
    });
    ExitCode::from(exit as u8)
}

/// The container's program, for `dev --isolate` where no binary `agent` is installed beside this one.
#[cfg(feature = "live")]
fn agent_process(own: Vec<Agent>) -> ExitCode {
    let agents = packs::all_and(own).map_err(agent::container::Error::from);
    match agents.and_then(agent::container::main_with) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:?}");
            ExitCode::FAILURE
        }
    }
}

/// The optional parts in this build, which take minutes to compile.
fn optional() -> packs_cli::Optional {
    packs_cli::Optional {
        #[cfg(feature = "live")]
        account: Some(aws_account::ACCOUNT),
        #[cfg(not(feature = "live"))]
        account: None,
        #[cfg(feature = "embeddings")]
        embeddings: Some(embeddings::open),
        #[cfg(not(feature = "embeddings"))]
        embeddings: None,
    }
}

/// Size of the blocking pool: journal reads (eight at a time), terminal input, files. More threads would
/// wait for the same disk, and each keeps its memory after a burst of sessions.
const BLOCKING_THREADS_MAX: usize = 16;

fn run(args: Parsed, own: Vec<Agent>, extensions: Arc<[Extension]>) -> Result<Exit, Failure> {
    let (project, problem) = project(&args, &own)?;
    let own = with_agents_of(&project, own, &args)?;
    let agents = packs::all_and(own).map_err(|refused| {
        let hint = match &refused {
            RegisterError::NameTaken(_) => {
                "give your agent a unique name; `daybook agents` lists those in use"
            }
            RegisterError::InvalidGraph(_) => "correct the node names in the agent's `Graph`",
        };
        Failure::usage(refused).hint(hint)
    })?;
    let mut config = Config::from_environment(agents, extensions);
    (config.project, config.project_problem) = (Arc::new(project), problem);
    let command = resolve::resolve(args, &config)?;
    if let Some(service) = service(&command.action) {
        config::export_spans(service).map_err(|error| Failure::usage(error.to_string()))?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .build()?;
    let exit = runtime.block_on(commands::run(command));
    // A thread that waits for terminal input must not keep the program alive.
    runtime.shutdown_background();
    telemetry::export::flush();
    exit
}

/// Reads `daybook.toml` and takes over its settings. `doctor` and `check` go on if it is unusable, because they say why.
fn project(args: &Parsed, own: &[Agent]) -> Result<(Project, Option<String>), Failure> {
    let known: Vec<Agent> = packs::all().iter().chain(own).cloned().collect();
    let read = project::read(args.global.config.as_deref()).and_then(|project| {
        config::take_over(project::settings(&project, &known)?);
        Ok(project)
    });
    match read {
        Ok(project) => Ok((project, None)),
        Err(failure) if args.command.diagnoses() => {
            Ok((Project::default(), Some(failure.to_string())))
        }
        Err(failure) => Err(failure),
    }
}

/// Adds the agents of `daybook.toml`, for commands that run agents or list them. Viewers start no program.
fn with_agents_of(
    project: &Project,
    mut own: Vec<Agent>,
    args: &Parsed,
) -> Result<Vec<Agent>, Failure> {
    if project.has_agents() && args.command.uses_agents(&args.global) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        own.extend(runtime.block_on(project.agents()).map_err(project::failure)?);
    }
    Ok(own)
}

/// The service name in a command's spans; `None` for commands without spans.
fn service(action: &Action) -> Option<&'static str> {
    match action {
        Action::Dev(..) => Some("daybook"),
        Action::Trigger(_) | Action::Chat(_) | Action::Eval(_) => Some("daybook-cli"),
        Action::OfPack(command) if command.starts_sessions => Some("daybook-cli"),
        Action::Mcp(_) => Some("daybook-mcp"),
        _ => None,
    }
}

/// Prints the parser's message. Help and version succeed; everything else is a usage error.
fn usage(refusal: &clap::Error) -> ExitCode {
    // The pipe may be closed.
    let _ = refusal.print();
    ExitCode::from(if refusal.use_stderr() { Exit::Usage as u8 } else { Exit::Succeeded as u8 })
}

/// Logs go to stderr and contain no payloads. `RUST_LOG` takes precedence over `-v`. A host of agents writes the lines
/// in which they sum up a session, each by itself, as the container does: a JSON object on a line of its own.
fn start_logging(verbose: u8, is_host: bool) {
    let level = match verbose {
        // The SDK warns when it finds no region; locally none is needed.
        0 if is_host => "warn,program=info,aws_config=error,agent::summary=info",
        0 => "warn,program=info,aws_config=error",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    let is_bare = move |target: &str| is_host && target == LOG_TARGET;
    let summaries = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time()
        .with_level(false)
        .with_target(false)
        .log_internal_errors(false)
        // It lets no span pass either, so that none precedes the object.
        .with_filter(filter_fn(move |metadata| is_bare(metadata.target())));
    let rest = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(output::stderr_has_colour())
        // Either would panic when stderr is a file on a full disk.
        .log_internal_errors(false)
        .with_filter(filter_fn(move |metadata| !is_bare(metadata.target())));
    tracing_subscriber::registry().with(filter).with(rest).with(summaries).init();
}
