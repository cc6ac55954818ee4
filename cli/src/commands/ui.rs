//! `ui`: the page over a journal that no stack here runs: in an account, or a file of this machine.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::FutureExt as _;
use local::desk::Desk;
use local::endpoint::{self, Tell};
use tokio::signal::unix::{SignalKind, signal};

use super::cloud::Clients;
use super::person;
use super::steer::Deed;
use crate::args::Target;
use crate::endpoint::Endpoint;
use crate::failure::{Exit, Failure};
use crate::ledger::Ledger;
use crate::output;
use crate::resolve::Context;

/// Serves the page until SIGINT or SIGTERM.
///
/// # Errors
/// When there is no journal, or the address cannot be listened on.
pub async fn ui(context: &Context, listen: &str) -> Result<Exit, Failure> {
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let listen: SocketAddr = listen.parse().map_err(|_| {
        Failure::usage(format!("--listen is `{listen}`, expected HOST:PORT"))
            .hint("such as 127.0.0.1:4600; 127.0.0.1:0 takes any port that is free")
    })?;
    if context.target == Target::Local {
        let endpoint = Endpoint::new(context)?;
        if endpoint.health().await?.is_some() {
            output::line(&endpoint.address)?;
            output::say("the stack that runs there serves the page itself");
            return Ok(Exit::Succeeded);
        }
    }
    let ledger = Ledger::open(context).await?;
    let scratch = tempfile::tempdir()?;
    let desk = Desk {
        listen,
        token: context.token.clone(),
        journal: ledger.store.clone(),
        agents: Arc::clone(&context.agents),
        tell: teller(context, ledger).await,
        scratch: scratch.path().to_owned(),
    };
    let serving = desk.serve().await?;
    output::line(&format!("ready {}", serving.url()))?;
    output::say(match context.target {
        Target::Aws => "the account's journal; Ctrl-C stops, and nothing else does",
        Target::Local => "the journal as it is, for no stack runs; Ctrl-C stops",
    });
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    serving.stop().await;
    Ok(Exit::Succeeded)
}

/// Tells sessions what the page is told for them.
async fn teller(context: &Context, ledger: Ledger) -> Tell {
    if context.target == Target::Local {
        let refusal =
            "no stack runs here, so that nothing carries this out; start it with daybook dev";
        return Arc::new(move |_, _, _| async { Err(refusal.to_owned()) }.boxed());
    }
    let account = Arc::new((ledger, Clients::new(context).await));
    Arc::new(move |id, deed, body| {
        let account = Arc::clone(&account);
        let deed = match deed {
            endpoint::Deed::Answer => Deed::Answer,
            endpoint::Deed::Cancel => Deed::Cancel,
            endpoint::Deed::Resume => Deed::Resume,
        };
        async move {
            let (ledger, clients) = &*account;
            let told = Box::pin(person::tell(ledger, clients, &id, deed, &body)).await;
            told.map_err(|failure| failure.sentence())
        }
        .boxed()
    })
}
