//! `dev`: the local stack until somebody stops it.

use tokio::signal::unix::{SignalKind, signal};

use super::stack;
use crate::args;
use crate::config::StackEnvironment;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::resolve::Context;

/// Runs the stack until SIGINT or SIGTERM. A second signal does not wait for it to stop.
///
/// # Errors
/// When it does not start.
pub async fn dev(
    context: &Context,
    options: args::Dev,
    environment: StackEnvironment,
) -> Result<Exit, Failure> {
    // Before the first word, so that whoever reads it may stop us at once.
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let running = stack::for_dev(context, &options, &environment).await?;
    output::line(&format!("ready {}", running.url()))?;
    output::say(&format!("journal in {}; Ctrl-C stops", running.folder().display()));
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    output::say("stopping; sessions that run go on when the stack does");
    tokio::select! {
        // What a second signal cuts off is what a crash would: it goes on at the next start.
        () = running.stop() => Ok(Exit::Succeeded),
        _ = interrupt.recv() => Ok(Exit::Unknown),
        _ = terminate.recv() => Ok(Exit::Unknown),
    }
}
