//! `ui`: serves the web page for an account's journal, or for a local journal without a stack.

use std::net::SocketAddr;
use std::sync::Arc;

use stack::endpoint::{Viewer, actions};
use tokio::signal::unix::{SignalKind, signal};

use super::account;
use super::cloud::Clients;
use super::verify;
use crate::args::Target;
use crate::endpoint::Endpoint;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::reader::Reader;
use crate::resolve::Context;

/// Serves the page until SIGINT or SIGTERM.
///
/// # Errors
/// When there is no journal, or it cannot listen on the address.
pub async fn ui(context: &Context, listen: &str) -> Result<Exit, Failure> {
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let listen: SocketAddr = listen.parse().map_err(|_| {
        Failure::usage(format!("--listen is `{listen}`, expected HOST:PORT"))
            .hint("such as 127.0.0.1:4600; 127.0.0.1:0 picks a free port")
    })?;
    if context.target == Target::Local {
        let endpoint = Endpoint::new(context)?;
        if endpoint.health().await?.is_some() {
            output::line(&endpoint.address)?;
            output::say("the local stack already serves the page there");
            return Ok(Exit::Succeeded);
        }
    }
    let reader = Reader::open(context).await?;
    let actions = match context.target {
        Target::Aws => actions::router(account::control(&reader, Clients::new(context).await)),
        Target::Local => actions::refused("no stack is running; start it with: daybook dev"),
    };
    let keys = reader.store.here().and_then(|database| verify::keys(context, database));
    let viewer = Viewer {
        keys,
        listen,
        token: context.token.clone(),
        token_name: context.token_name()?,
        journal: reader.store,
        agents: Arc::clone(&context.agents),
        actions,
    };
    let serving = viewer.serve().await?;
    output::line(&format!("ready {}", serving.url()))?;
    output::say(match context.target {
        Target::Aws => {
            "serving the account's journal; press Ctrl-C to stop the page, sessions continue"
        }
        Target::Local => {
            "serving the journal read-only, because no stack is running; press Ctrl-C to stop"
        }
    });
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    serving.stop().await;
    Ok(Exit::Succeeded)
}
