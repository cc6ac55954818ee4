//! `GET /api/health`: how the newest sessions went, and whether the circuit breakers are open.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Extension, RawQuery, State};
use axum::http::Response;
use invoker::admission::slots_taken;
use journal::clock::Stamp;
use journal::event::{Event, EventStatus};
use journal::id::SessionId;
use journal::listing::Lister;
use journal::read;
use journal::status::status;
use journal::step::{Step, StepBody, Usage};
use serde_json::{Value, json};
use timeline::health::{Health, Seen};

use super::sessions::Reply;
use super::wire::{self, Refusal};
use super::{Endpoint, Server};

/// Most sessions that are looked at, the newest; the answer says whether there were more.
pub(super) const SESSIONS_MAX: usize = 500;

/// Most hours that are looked at: as far back as a list of sessions goes.
const HOURS_MAX: u32 = 168;

/// How many hours if nothing else is said.
const HOURS: u32 = 24;

/// `?hours=` says how far back, 24 if nothing else is said.
pub(super) async fn health(
    State(endpoint): State<Endpoint>,
    Extension(server): Extension<Server>,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    wire::api(look(&endpoint, server, query.as_deref().unwrap_or_default()).await)
}

async fn look(endpoint: &Endpoint, server: Server, query: &str) -> Reply {
    let hours = match wire::parameter(query, "hours") {
        None => HOURS,
        Some(text) => {
            text.parse().ok().filter(|hours| (1..=HOURS_MAX).contains(hours)).ok_or_else(|| {
                Refusal::bad("InvalidHours", format!("hours go from 1 to {HOURS_MAX}: `{text}`"))
            })?
        }
    };
    let span = Duration::from_secs(u64::from(hours) * 3_600);
    let now = endpoint.clock.now();
    let journal = |error: journal::store::Error| Refusal::journal(&error);
    let mut lister = Lister::new(&endpoint.store, now.before(span), now);
    let mut seen = Vec::new();
    let mut is_cut = false;
    while let Some(listed) = lister.next().await.map_err(journal)? {
        if seen.len() == SESSIONS_MAX {
            is_cut = true;
            break;
        }
        seen.push(see(endpoint, &listed.session, &listed.initiated).await.map_err(journal)?);
    }
    let mut breakers = Vec::new();
    for agent in endpoint.graphs.iter() {
        breakers.extend(breaker(endpoint, server, agent.name(), now).await.map_err(journal)?);
    }
    let health = Health::of(&seen, span, now);
    Ok((
        200,
        json!({
            "hours": hours, "health": health, "breakers": breakers,
            "sessions": seen.len(), "sessions_max": SESSIONS_MAX, "is_cut": is_cut,
        }),
    ))
}

async fn see(
    endpoint: &Endpoint,
    session: &SessionId,
    initiated: &Event,
) -> Result<Seen, journal::store::Error> {
    let events = read::events(&endpoint.store, session).await?;
    let steps = read::steps(&endpoint.store, session).await?;
    let verdict = events.iter().find(|event| event.status.is_verdict());
    let took = verdict.map(|verdict| verdict.stamp.since(initiated.stamp).as_millis());
    let usages: Vec<Usage> = steps.iter().filter_map(usage).collect();
    let tokens = |used: &Usage| {
        u64::from(used.input_tokens)
            + u64::from(used.output_tokens)
            + u64::from(used.unsettled_tokens)
    };
    Ok(Seen {
        agent: steps.iter().find_map(agent),
        status: status(&events),
        initiated_at: initiated.stamp,
        took_ms: took.and_then(|ms| u64::try_from(ms).ok()),
        tokens: usages.iter().map(tokens).sum(),
        micro_usd: usages.iter().map(|used| u64::from(used.micro_usd)).sum(),
        lost: u32::try_from(
            events.iter().filter(|event| event.status == EventStatus::AgentLost).count(),
        )
        .unwrap_or(u32::MAX),
    })
}

fn usage(step: &Step) -> Option<Usage> {
    match &step.body {
        StepBody::Outcome { usage, .. } => Some(*usage),
        _ => None,
    }
}

fn agent(step: &Step) -> Option<String> {
    match &step.body {
        StepBody::Claim { agent, .. } => Some(agent.clone()),
        _ => None,
    }
}

/// The circuit breaker of an agent, if it has one: open means that no session is let in. A desk sees how
/// many were let in, and not how many may be.
async fn breaker(
    endpoint: &Endpoint,
    server: Server,
    agent: &str,
    now: Stamp,
) -> Result<Option<Value>, journal::store::Error> {
    let Some(per_hour) = endpoint.admission.per_hour(agent) else { return Ok(None) };
    let taken = slots_taken(&endpoint.store, agent, now).await?;
    let per_hour = (server == Server::Stack).then_some(per_hour);
    Ok(Some(json!({
        "agent": agent, "per_hour": per_hour, "taken": taken.len(),
        "is_open": per_hour.map(|most| taken.len() >= most as usize),
        "next_free_at": taken.iter().min(),
    })))
}
