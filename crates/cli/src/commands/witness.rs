//! `witness serve`: cosigns logs of sessions.

use std::path::PathBuf;

use anyhow::Context as _;
use extension::server::socket_address;
use stack::keys;
use stack::witness::Server;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::WitnessServe;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::resolve::Context;

/// The default folder of a witness.
const FOLDER: &str = ".daybook-witness";

/// The default port.
const LISTEN: &str = "127.0.0.1:4610";

/// Serves until SIGINT or SIGTERM.
///
/// # Errors
/// When a key cannot be read, or the address cannot be listened on.
pub async fn serve(context: &Context, options: WitnessServe) -> Result<Exit, Failure> {
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut logs = Vec::new();
    for file in &options.log {
        let text = std::fs::read_to_string(file);
        let text = text.with_context(|| format!("cannot read {}", file.display()))?;
        let keys = keys::verifiers(&text);
        logs.extend(keys.with_context(|| format!("{} has no keys", file.display()))?);
    }
    let folder = context.data.clone().unwrap_or_else(|| PathBuf::from(FOLDER));
    let server = Server::open(&folder, logs)?;
    let key = server.key().to_string();
    let address = socket_address(&options.listen, LISTEN).await?;
    if !address.ip().is_loopback() {
        output::say(
            "anybody who reaches this address can submit checkpoints; only those of its logs are cosigned",
        );
    }
    let stop = CancellationToken::new();
    let ready = |address| {
        // The reader may be gone; the witness serves all the same.
        let _ = output::line(&format!("ready http://{address}"));
        let _ = output::line(&key);
    };
    let serving = server.serve(address, ready, stop.clone());
    tokio::pin!(serving);
    tokio::select! {
        served = &mut serving => served?,
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    stop.cancel();
    Ok(Exit::Succeeded)
}
