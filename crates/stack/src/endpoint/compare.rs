//! `GET /api/compare?a=…&b=…`: two sessions side by side.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::Response;
use journal::clock::Stamp;
use journal::listing::{COPIES_MAX, Lister};
use journal::step::{Step, StepBody};
use serde_json::{Value, json};
use views::compare::{Compared, Comparison};
use views::waterfall::{Row, Waterfall};

use super::Reader;
use super::page::calls;
use super::sessions::{LIST_BACK, Records, Reply, existing};
use super::wire::{self, Refusal};

/// The newest session before `a` of the same agent with the same input.
const BEFORE: &str = "before";

/// Most sessions to examine for the one before.
const LOOKED_AT_MAX: usize = 100;

/// `?b=before` means the newest earlier session of the same agent with the same input.
pub(super) async fn compare(
    State(reader): State<Reader>,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    wire::api(compare_sessions(&reader, query.as_deref().unwrap_or_default()).await)
}

async fn compare_sessions(reader: &Reader, query: &str) -> Reply {
    let named = |name| {
        wire::parameter(query, name).ok_or_else(|| {
            Refusal::bad(
                "MissingSession",
                format!("`{name}` is missing: name a session to compare"),
            )
        })
    };
    let a = existing(reader, &named("a")?).await?;
    let b = match named("b")?.as_str() {
        BEFORE => before(reader, &a).await?,
        id => existing(reader, id).await?,
    };
    let now = reader.clock.now();
    let [one, other] = [&a, &b].map(|records| {
        let session = records.view(reader, now);
        let calls = calls(reader, &records.steps);
        let with_calls = records.steps.iter().zip(calls.iter().cloned());
        // Only steps have rows: announcements follow from them.
        let rows = Waterfall::of(&[], with_calls, !session.status.is_terminal(), now).rows;
        (session, rows, calls)
    });
    let sides = [(&a, &one), (&b, &other)].map(|(records, (_, rows, calls))| {
        let each = in_sequence(rows).into_iter().zip(&records.steps).zip(calls);
        each.map(|((row, step), call)| Compared::of(row, step, call.as_ref())).collect::<Vec<_>>()
    });
    let comparison = Comparison::of(&sides[0], &sides[1]);
    Ok((200, json!({ "a": one.0, "b": other.0, "comparison": comparison })))
}

/// Rows sorted by step number. They come sorted by time, which is nearly the same.
fn in_sequence(rows: &[Row]) -> Vec<&Row> {
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by_key(|row| row.seq);
    rows
}

async fn before(reader: &Reader, records: &Records) -> Result<Records, Refusal> {
    let none = |why: &str| Refusal::new(404, "NoSession", why);
    let opening = opening(&records.steps)
        .ok_or_else(|| none("the session has no claim, so its input is unknown"))?;
    let began = records.events.first().map_or_else(Stamp::default, |event| event.stamp);
    let mut lister = Lister::new(&reader.store, began.before(LIST_BACK), began);
    let mut looked_at = BTreeSet::from([records.id.clone()]);
    for _ in 0..COPIES_MAX {
        if looked_at.len() > LOOKED_AT_MAX {
            break;
        }
        let listed = lister.next().await.map_err(|error| Refusal::journal(&error))?;
        let Some(listed) = listed else { break };
        if !looked_at.insert(listed.session.clone()) {
            continue;
        }
        let other = existing(reader, listed.session.as_str()).await?;
        if self::opening(&other.steps) == Some(opening) {
            return Ok(other);
        }
    }
    Err(none("no session of the week before this one has the same agent and input"))
}

/// The agent and its input.
fn opening(steps: &[Step<Value>]) -> Option<(&str, Option<&Value>)> {
    match &steps.first()?.body {
        StepBody::Claim { agent, input, .. } => {
            Some((agent, input.as_ref().and_then(|opening| opening.get("input"))))
        }
        _ => None,
    }
}
