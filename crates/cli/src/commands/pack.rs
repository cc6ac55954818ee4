//! Runs a pack's command, and the batches of sessions that it requests.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent::model::settings::Unusable;
use extension::command::{Batch, Ended, Host, Surroundings};
use futures_util::future::{FutureExt as _, LocalBoxFuture};
use journal::id::SessionId;
use serde_json::Value;
use stack::view::{Record, Session};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::cloud::Clients;
use super::{grant, own_stack};
use crate::args::packs::of_pack;
use crate::config::StackEnvironment;
use crate::endpoint::Endpoint;
use crate::failure::{Exit, Failure};
use crate::feed::Feed;
use crate::output;
use crate::reader::{self, Reader};
use crate::resolve::{Context, PackCommand};

/// Longest wait for new records in one read of the journal.
const LOOK_TIMEOUT: Duration = Duration::from_millis(500);

/// Longest time without a new record before the command gives up on a session. It is longer than a tool
/// call, and than the detection of a lost agent.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// Runs a command of a pack.
///
/// # Errors
/// The command's.
pub async fn run(context: &Context, typed: PackCommand) -> Result<Exit, Failure> {
    let command = of_pack(&context.extensions, &typed.name)
        .ok_or_else(|| Failure::usage(format!("unknown command `{}`", typed.name)))?;
    let host = CommandHost { context, environment: &typed.environment };
    command.run(&typed.options, &host).await
}

/// The host of a pack's command.
struct CommandHost<'a> {
    context: &'a Context,
    environment: &'a Result<StackEnvironment, Unusable>,
}

impl Host for CommandHost<'_> {
    fn surroundings(&self) -> &Surroundings {
        &self.context.surroundings
    }

    fn print(&self, lines: &[String]) -> io::Result<()> {
        output::lines(lines)
    }

    fn print_json(&self, value: &Value) -> io::Result<()> {
        output::json(value)
    }

    fn say(&self, text: &str) {
        output::say(text);
    }

    fn show_progress(&self, text: &str) -> bool {
        output::idle_on_terminal(text)
    }

    fn run_sessions<'a>(
        &'a self,
        batch: Batch,
        ended: &'a mut Ended<'a>,
    ) -> LocalBoxFuture<'a, Result<(), Failure>> {
        self.sessions(batch, ended).boxed_local()
    }
}

impl CommandHost<'_> {
    async fn sessions(&self, batch: Batch, ended: &mut Ended<'_>) -> Result<(), Failure> {
        let (context, endpoint) = (self.context, Endpoint::new(self.context)?);
        if let Some(running) = endpoint.health().await? {
            let folder = running.data.or_else(|| context.data.clone());
            let folder = folder.unwrap_or_else(|| reader::DEFAULT_FOLDER.into());
            return all(context, batch, &folder, ended).await;
        }
        if !batch.with_stack {
            let hint = "start the local stack with: daybook dev; or add --with-stack to start one for \
                        this run";
            return Err(endpoint.nothing_listens().hint(hint));
        }
        let environment =
            self.environment.as_ref().map_err(|error| Failure::usage(error.to_string()))?;
        output::say(&format!(
            "nothing listens at {}: starting a stack for this run",
            endpoint.address
        ));
        let stack = own_stack::for_a_run(context, environment).await?;
        let folder = stack.folder().to_owned();
        let outcome = all(context, batch, &folder, ended).await;
        stack.stop().await;
        outcome
    }
}

async fn all(
    context: &Context,
    batch: Batch,
    folder: &Path,
    ended: &mut Ended<'_>,
) -> Result<(), Failure> {
    let clients = Clients::new(context).await;
    let store = Reader::open_in(context, folder)?.store;
    let mut details = batch.details.iter().enumerate();
    let mut under_way = JoinSet::new();
    loop {
        while under_way.len() < batch.parallel
            && let Some((number, detail)) = details.next()
        {
            grant(folder, &crate::input::named(detail, &context.agents, &context.extensions));
            let session = clients.trigger(detail).await?;
            let feed = Feed::new(store.clone(), session.clone(), Arc::clone(&context.agents));
            under_way.spawn(one(number, session, feed));
        }
        // On a failure the set stops following the other sessions; they continue.
        let Some(joined) = under_way.join_next().await else { return Ok(()) };
        let (number, session) = joined.map_err(anyhow::Error::from)??;
        ended(number, serde_json::to_value(Record::Session(Box::new(session)))?)?;
    }
}

/// Follows one session to its end.
async fn one(
    number: usize,
    session: SessionId,
    mut feed: Feed,
) -> Result<(usize, Session), Failure> {
    let mut last_record_at = Instant::now();
    loop {
        if !feed.next(LOOK_TIMEOUT).await?.is_empty() {
            last_record_at = Instant::now();
            let view = feed.view(reader::now());
            if view.status.is_terminal() {
                return Ok((number, view));
            }
        }
        if last_record_at.elapsed() > SILENCE_MAX {
            let seconds = SILENCE_MAX.as_secs();
            return Err(Failure::unknown(format!(
                "session {session} has written no record for {seconds} s"
            ))
            .hint(format!("show its records with: daybook show {session}")));
        }
    }
}
