//! `GET /api/health`: the results of the newest sessions, and the state of the circuit breakers.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::Response;
use graph::agent::Agent;
use invoker::admission::slots_taken;
use journal::clock::Stamp;
use journal::event::EventStatus;
use journal::halt::Halts;
use journal::listing::{Copies, Listed, Lister};
use journal::read;
use journal::step::{Step, StepBody, Usage};
use journal::store::Error;
use journal::tally::{Reported, Tally, first_of};
use serde_json::{Value, json};
use views::health::{Health, Seen};

use super::Reader;
use super::sessions::Reply;
use super::wire::{self, Refusal};

/// Most sessions to examine, newest first. The response says whether there are more.
pub(super) const SESSIONS_MAX: usize = 500;

/// Longest period, in hours: that of a list of sessions.
const HOURS_MAX: u32 = 168;

/// Default period, in hours.
const HOURS: u32 = 24;

/// `?hours=` is the period; 24 by default.
pub(super) async fn health(
    State(reader): State<Reader>,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    wire::api(look(&reader, query.as_deref().unwrap_or_default()).await)
}

async fn look(reader: &Reader, query: &str) -> Reply {
    let hours = match wire::parameter(query, "hours") {
        None => HOURS,
        Some(text) => {
            text.parse().ok().filter(|hours| (1..=HOURS_MAX).contains(hours)).ok_or_else(|| {
                Refusal::bad(
                    "InvalidHours",
                    format!("invalid hours `{text}`: must be 1 to {HOURS_MAX}"),
                )
            })?
        }
    };
    let span = Duration::from_secs(u64::from(hours) * 3_600);
    let now = reader.clock.now();
    let journal = |error: journal::store::Error| Refusal::journal(&error);
    let mut lister = Lister::new(&reader.store, now.before(span), now);
    let (mut seen, mut damaged) = (Vec::new(), BTreeSet::new());
    let mut copies = Copies::default();
    let mut is_cut = false;
    while let Some(listed) = lister.next().await.map_err(journal)? {
        if seen.len() + damaged.len() == SESSIONS_MAX || copies.are_too_many() {
            is_cut = true;
            break;
        }
        if copies.knows(&listed) {
            continue;
        }
        match see(reader, &listed, &mut copies).await {
            Ok(session) => seen.extend(session),
            // It hides no other.
            Err(Error::Corrupt(_)) => drop(damaged.insert(listed.session.to_string())),
            Err(error) => return Err(journal(error)),
        }
    }
    let mut breakers = Vec::new();
    for agent in reader.graphs.iter() {
        breakers.extend(breaker(reader, agent, now).await.map_err(journal)?);
    }
    let health = Health::of(&seen, span, now);
    let restarted = match &reader.stack {
        Some(stack) => stack.executions.failing().await.map_err(journal)?.len(),
        None => 0,
    };
    // Null where no stack of this process signs.
    let unsigned = reader.stack.as_ref().and_then(|stack| stack.signing.problem());
    // Null for a journal elsewhere, whose halts a reader may not be permitted to read.
    let halts = match &reader.stack {
        Some(_) => Some(Halts::read(&reader.store).await.map_err(journal)?.in_force),
        None => None,
    };
    let clock = reader.stack.as_ref().map(|stack| stack.clock_steps.to_json());
    Ok((
        200,
        json!({
            "clock": clock, "halts": halts,
            "hours": hours, "health": health, "breakers": breakers,
            "damaged": damaged, "log_problem": unsigned, "restarted_executions": restarted,
            "sessions": seen.len(), "sessions_max": SESSIONS_MAX, "is_cut": is_cut,
        }),
    ))
}

/// What the records of a session say; `None` if the entry is a copy of its first one.
async fn see(
    reader: &Reader,
    listed: &Listed,
    copies: &mut Copies,
) -> Result<Option<Seen>, journal::store::Error> {
    let Listed { session, initiated, .. } = listed;
    let events = read::events(&reader.store, session).await?;
    if copies.learn(listed, first_of(&events).map(|first| first.sk.as_str())) {
        return Ok(None);
    }
    let steps = read::steps(&reader.store, session).await?;
    let verdict = events.iter().find(|event| event.status.is_verdict());
    let took = verdict.map(|verdict| verdict.stamp.since(initiated.begun_at()).as_millis());
    let reported = Reported::of(&events).corrected_by(&Tally::of(&steps));
    let usages: Vec<Usage> = steps.iter().filter_map(usage).collect();
    let tokens = |used: &Usage| {
        u64::from(used.input_tokens)
            + u64::from(used.output_tokens)
            + u64::from(used.unsettled_tokens)
    };
    Ok(Some(Seen {
        agent: steps.iter().find_map(agent_of).or(reported.agent),
        status: reported.status,
        initiated_at: initiated.stamp,
        took_ms: took.and_then(|ms| u64::try_from(ms).ok()),
        tokens: usages.iter().map(tokens).sum(),
        micro_usd: usages.iter().map(|used| u64::from(used.micro_usd)).sum(),
        lost: u32::try_from(
            events.iter().filter(|event| event.status == EventStatus::AgentLost).count(),
        )
        .unwrap_or(u32::MAX),
    }))
}

fn usage(step: &Step) -> Option<Usage> {
    match &step.body {
        StepBody::Outcome { usage, .. } => Some(*usage),
        _ => None,
    }
}

fn agent_of(step: &Step) -> Option<String> {
    match &step.body {
        StepBody::Claim { agent, .. } => Some(agent.clone()),
        _ => None,
    }
}

/// The circuit breaker of an agent, if it has one. An open breaker admits no session. A viewer of
/// another journal knows how many sessions were admitted, but not the limit.
async fn breaker(
    reader: &Reader,
    agent: &Agent,
    now: Stamp,
) -> Result<Option<Value>, journal::store::Error> {
    let limits = reader.stack.as_ref().map(|stack| stack.admission.clone()).unwrap_or_default();
    let Some(per_hour) = limits.per_hour(agent) else { return Ok(None) };
    let taken = slots_taken(&reader.store, agent.name(), now).await?;
    let per_hour = reader.stack.is_some().then_some(per_hour);
    Ok(Some(json!({
        "agent": agent.name(), "per_hour": per_hour, "taken": taken.len(),
        "is_open": per_hour.map(|most| taken.len() >= most as usize),
        "next_free_at": taken.iter().min(),
    })))
}
