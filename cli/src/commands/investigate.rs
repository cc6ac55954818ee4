//! `investigate`: many payments, a session each, a bounded number at a time.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use journal::id::SessionId;
use journal::status::Status;
use local::view::{Record, Session};
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tools::card_transactions::{Remote, Source};

use super::cloud::Clients;
use super::stack;
use crate::endpoint::Endpoint;
use crate::failure::{Exit, Failure};
use crate::feed::Feed;
use crate::ledger::{self, Ledger};
use crate::output;
use crate::render::investigation;
use crate::render::ranking::Ranking;
use crate::resolve::Context;
use crate::resolve::payments::Batch;

/// How long one look at the journal waits for something new.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long a session may go without a new record before it counts as one of which nothing can be
/// found out: longer than a tool, and than a lost agent takes to be found.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// Investigates all of them and sums them up.
///
/// # Errors
/// When nothing takes the events, or the end of one cannot be found out.
pub async fn investigate(context: &Context, batch: Batch) -> Result<Exit, Failure> {
    let endpoint = Endpoint::new(context)?;
    if let Some(running) = endpoint.health().await? {
        let folder = running.data.or_else(|| context.data.clone());
        let folder = folder.unwrap_or_else(|| ledger::DEFAULT_FOLDER.into());
        return all(context, batch, &folder).await;
    }
    let Some(environment) = &batch.with_stack else {
        let hint = "start the local stack with: daybook dev; or add --with-stack for one that lasts \
                    this run";
        return Err(endpoint.nothing_listens().hint(hint));
    };
    output::say(&format!(
        "nothing listens at {}: starting a stack for the length of this run",
        endpoint.address
    ));
    let stack = stack::for_a_run(context, environment).await?;
    let folder = stack.folder().to_owned();
    let outcome = all(context, batch, &folder).await;
    stack.stop().await;
    outcome
}

async fn all(context: &Context, batch: Batch, folder: &Path) -> Result<Exit, Failure> {
    let clients = Clients::new(context).await;
    let store = Ledger::open_in(folder)?.store;
    let count = batch.orders.len();
    let mut orders = batch.orders.into_iter();
    let mut under_way = JoinSet::new();
    let mut done: Vec<(String, Session)> = Vec::with_capacity(count);
    loop {
        while under_way.len() < batch.parallel
            && let Some((id, detail)) = orders.next()
        {
            let feed = |id| Feed::new(store.clone(), id, Arc::clone(&context.agents));
            let session = clients.trigger(&detail).await?;
            under_way.spawn(one(id, session.clone(), feed(session)));
        }
        // Those under way are dropped with their set if one fails: only watching ends, no session.
        let Some(joined) = under_way.join_next().await else { break };
        let (id, session) = joined.map_err(anyhow::Error::from)??;
        if context.json {
            output::json(&Record::Session(session.clone()))?;
        }
        done.push((id, session));
        let (id, session) = &done[done.len() - 1];
        let told = investigation::in_short(id, session);
        output::say(&format!("{} of {count}: {told}", done.len()));
    }
    let ranking = ranking(&batch.data, &done);
    if context.json {
        if let Some(ranking) = ranking {
            output::json(&Told { kind: "ranking", ranking })?;
        }
    } else {
        output::lines(investigation::table(context.look, &mut done))?;
        output::lines(ranking.map(|ranking| ranking.in_words()))?;
    }
    let all_succeeded = done.iter().all(|(_, session)| session.status == Status::Succeeded);
    Ok(if all_succeeded { Exit::Succeeded } else { Exit::Failed })
}

/// A ranking as `--json` has it.
#[derive(Serialize)]
struct Told {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    ranking: Ranking,
}

/// How the payments are ranked of which the data say what they were. The data are read for it again, here
/// and not by an agent.
fn ranking(data: &str, done: &[(String, Session)]) -> Option<Ranking> {
    let ids: BTreeSet<&str> = done.iter().map(|(id, _)| id.as_str()).collect();
    let labels = Source::new(data, Remote::Refused).and_then(|source| source.labels(&ids));
    match labels {
        Ok(labels) => {
            let scored = done.iter().filter_map(|(id, session)| {
                Some((investigation::score(session)?, *labels.get(id)?))
            });
            Ranking::of(scored.collect())
        }
        Err(error) => {
            output::say(&format!("what the payments turned out to be cannot be read: {error}"));
            None
        }
    }
}

/// Follows one session to its end.
async fn one(id: String, session: SessionId, mut feed: Feed) -> Result<(String, Session), Failure> {
    let mut heard_at = Instant::now();
    loop {
        if !feed.next(PATIENCE).await?.is_empty() {
            heard_at = Instant::now();
            let view = feed.view(ledger::now());
            if view.status.is_terminal() {
                return Ok((id, view));
            }
        }
        if heard_at.elapsed() > SILENCE_MAX {
            let seconds = SILENCE_MAX.as_secs();
            return Err(Failure::unknown(format!(
                "session {session} said nothing for {seconds} s"
            ))
            .hint(format!("daybook show {session} tells what the journal has of it")));
        }
    }
}
