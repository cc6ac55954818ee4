//! `dev`: runs the local stack until a signal stops it.

use journal::sqlite::Migrated;
use tokio::signal::unix::{SignalKind, signal};

use super::own_stack;
use crate::args;
use crate::config::StackEnvironment;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::resolve::Context;

/// Runs the stack until SIGINT or SIGTERM, or until it was drained. A second signal exits at once.
///
/// # Errors
/// When the stack cannot start.
pub async fn dev(
    context: &Context,
    options: args::Dev,
    environment: StackEnvironment,
) -> Result<Exit, Failure> {
    // Registered before `ready` is printed: a reader may send a signal at once.
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let running = own_stack::for_dev(context, &options, &environment).await?;
    output::line(&format!("ready {}", running.url()))?;
    output::say(&format!("journal in {}; press Ctrl-C to stop", running.folder().display()));
    if let Some(Migrated { from, to }) = running.migrated() {
        output::say(&format!("the journal had schema {from} and has schema {to} now"));
    }
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        left = running.drained() => output::say(&format!("drained; {left} sessions are still at work")),
    }
    output::say("stopping; running sessions continue when the stack starts again");
    tokio::select! {
        // A second signal is like a crash: sessions continue at the next start.
        () = running.stop() => Ok(Exit::Succeeded),
        _ = interrupt.recv() => Ok(Exit::Unknown),
        _ = terminate.recv() => Ok(Exit::Unknown),
    }
}
