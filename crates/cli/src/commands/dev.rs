//! `dev`: runs the local stack until a signal stops it.

mod reload;

use std::io::ErrorKind;

use journal::sqlite::Migrated;
use tokio::signal::unix::{SignalKind, signal};

use self::reload::Watched;
use super::own_stack;
use crate::args;
use crate::config::StackEnvironment;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::resolve::Context;

/// Runs the stack until SIGINT or SIGTERM, or until it was drained. A second signal exits at once. When `daybook.toml`
/// changes, the stack stops, and this process starts anew with it.
///
/// # Errors
/// When the stack cannot start.
pub async fn dev(
    context: &Context,
    options: args::Dev,
    environment: StackEnvironment,
) -> Result<Exit, Failure> {
    let config = own_stack::for_dev(context, &options, &environment).await?;
    if options.check {
        output::say("a start has what it needs");
        return Ok(Exit::Succeeded);
    }
    // Registered before `ready` is printed: a reader may send a signal at once.
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut watched = Watched::new(&context.project);
    let running = own_stack::start(config).await?;
    match output::line(&format!("ready {}", running.url())) {
        // The parent may have closed the pipe after the first `ready`.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        printed => printed?,
    }
    output::say(&format!("journal in {}; press Ctrl-C to stop", running.folder().display()));
    if let Some(Migrated { from, to }) = running.migrated() {
        output::say(&format!("the journal had schema {from} and has schema {to} now"));
    }
    let mut is_reload = false;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        left = running.drained() => output::say(&format!("drained; {left} sessions are still at work")),
        () = watched.usable_change(context) => is_reload = true,
    }
    if !is_reload {
        output::say("stopping; running sessions continue when the stack starts again");
    }
    tokio::select! {
        // A second signal is like a crash: sessions continue at the next start.
        () = running.stop() => {}
        _ = interrupt.recv() => return Ok(Exit::Unknown),
        _ = terminate.recv() => return Ok(Exit::Unknown),
    }
    if is_reload { Err(reload::start_anew(context)) } else { Ok(Exit::Succeeded) }
}
