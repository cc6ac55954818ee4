//! Daybook's own API: sessions as the command line shows them.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::Response;
use journal::clock::Stamp;
use journal::event::Event;
use journal::id::SessionId;
use journal::listing::{self, Bucket, Filter, ListCursor};
use journal::read;
use journal::status::Status;
use journal::step::Step;
use journal::store::Error;
use serde_json::{Value, json};

use super::Reader;
use super::wire::{self, Refusal};
use crate::executions::RUNNING;
use crate::list::{self, List, RESULT_BYTES_MAX, When, Wish};
use crate::{names, view};

/// Most sessions per page, and the default.
const LIST_MAX: usize = 200;

/// Default period of a list. Each day costs sixteen reads.
pub(super) const LIST_BACK: Duration = Duration::from_secs(7 * 86_400);

/// How far ahead of this clock a listed session may have begun: it began while the clock was wrong.
const LIST_AHEAD: Duration = Duration::from_secs(86_400);

/// Default period and bucket length of a histogram.
const HISTOGRAM_BACK: Duration = Duration::from_secs(86_400);
const BUCKET: Duration = Duration::from_secs(3_600);

pub(super) type Reply = Result<(u16, Value), Refusal>;

pub(super) struct Records {
    pub(super) id: SessionId,
    pub(super) events: Vec<Event>,
    pub(super) steps: Vec<Step<Value>>,
}

/// `GET /api/sessions`, newest first. Filters: `?status=` (comma-separated or repeated), `?agent=`,
/// `?state=` (the agent's word for the status), `?verdict=`, `?text=` (in the id, title, agent, input, verdict, summary, error or open question),
/// `?tool=` (in the name or arguments of a tool call), and `?since=` and `?until=` (RFC 3339, or
/// relative as in `24h`) for the begin. `?limit=` is the page size. The response has the number of
/// sessions `searched`, and in `more` the cursor for `?after=`, null on the last page.
pub(super) async fn list(
    State(reader): State<Reader>,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    wire::api(list_sessions(&reader, query.as_deref().unwrap_or_default()).await)
}

/// `GET /api/histogram`: sessions begun and ended per bucket. `?since=` (default 24h) and `?until=` are
/// those of the list; `?bucket=` is the bucket length, such as `1h`.
pub(super) async fn histogram(
    State(reader): State<Reader>,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    wire::api(count_sessions(&reader, query.as_deref().unwrap_or_default()).await)
}

/// `GET /api/sessions/{id}`: the session, its events and its steps.
pub(super) async fn show(State(reader): State<Reader>, Path(id): Path<String>) -> Response<Body> {
    wire::api(show_session(&reader, &id).await)
}

async fn list_sessions(reader: &Reader, query: &str) -> Reply {
    let now = reader.clock.now();
    let wish = wish(query, LIST_MAX, now)?;
    let list = list::list(&reader.store, &reader.summary_cache, &wish, &reader.graphs, now).await;
    let List { sessions, searched, more } = list.map_err(|error| Refusal::journal(&error))?;
    let more = more.map(|cursor| cursor.to_string());
    Ok((200, json!({ "sessions": sessions, "searched": searched, "more": more })))
}

/// Parses a query string into a list request; `limit` is the default page size. Ignores unknown
/// parameters.
pub(super) fn wish(query: &str, limit: usize, now: Stamp) -> Result<Wish, Refusal> {
    let mut wish = Wish {
        filter: Filter {
            since: now.before(LIST_BACK),
            until: now.after(LIST_AHEAD),
            after: None,
            statuses: Vec::new(),
            agent: None,
        },
        text: None,
        verdict: None,
        tool: None,
        state: None,
        limit,
        result_bytes_max: RESULT_BYTES_MAX,
    };
    let time = |text: &str| {
        let time = text.parse::<When>();
        time.map(|time| time.stamp(now))
            .map_err(|error| Refusal::bad("InvalidTime", format!("`{text}`: {error}")))
    };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        // An HTML form also sends its empty fields.
        if value.is_empty() {
            continue;
        }
        match &*name {
            "status" => {
                for text in value.split(',') {
                    let status = Status::parse(text).ok_or_else(|| {
                        Refusal::bad("InvalidStatus", format!("`{text}` is not a session status"))
                    })?;
                    wish.filter.statuses.push(status);
                }
            }
            "agent" => wish.filter.agent = Some(value.into_owned()),
            "since" => wish.filter.since = time(&value)?,
            "until" => wish.filter.until = time(&value)?,
            "text" => wish.text = Some(value.into_owned()),
            "verdict" => wish.verdict = Some(value.into_owned()),
            "tool" => wish.tool = Some(value.into_owned()),
            "state" => wish.state = Some(value.into_owned()),
            "limit" => {
                let limit = value.parse().map(|limit: usize| limit.clamp(1, LIST_MAX));
                wish.limit = limit.map_err(|_| {
                    Refusal::bad("InvalidLimit", format!("invalid limit `{value}`: not a number"))
                })?;
            }
            "after" => {
                let cursor = value.parse::<ListCursor>();
                wish.filter.after =
                    Some(cursor.map_err(|e| Refusal::bad("InvalidPlace", e.to_string()))?);
            }
            _ => {}
        }
    }
    Ok(wish)
}

async fn count_sessions(reader: &Reader, query: &str) -> Reply {
    let now = reader.clock.now();
    let (mut since, mut until, mut length) = (now.before(HISTOGRAM_BACK), now, BUCKET);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let time = || {
            let time = value.parse::<When>();
            time.map_err(|error| Refusal::bad("InvalidTime", format!("`{value}`: {error}")))
        };
        match &*name {
            "since" => since = time()?.stamp(now),
            "until" => until = time()?.stamp(now),
            "bucket" => match time()? {
                When::Ago(given) => length = given,
                When::At(_) => {
                    return Err(Refusal::bad(
                        "InvalidTime",
                        "invalid bucket: expected a duration, such as 1h",
                    ));
                }
            },
            _ => {}
        }
    }
    let spans = listing::buckets(since, until, length)
        .map_err(|error| Refusal::bad("InvalidBuckets", error.to_string()))?;
    let counted = listing::histogram(&reader.store, &reader.summary_cache, &spans, now).await;
    let counted = counted.map_err(|error| Refusal::journal(&error))?;
    let buckets = counted.into_iter().map(|bucket| {
        let Bucket { from, to, began, ended } = bucket;
        json!({ "from": from, "to": to, "began": began, "ended": ended })
    });
    Ok((200, json!({ "buckets": buckets.collect::<Vec<_>>() })))
}

async fn show_session(reader: &Reader, id: &str) -> Reply {
    let now = reader.clock.now();
    let (records, session) = known(reader, id, now).await?;
    let events: Vec<_> = records.events.iter().map(view::Event::of).collect();
    let mut calls = view::Calls::new(Arc::clone(&reader.graphs));
    let steps: Vec<_> = records
        .steps
        .iter()
        .map(|step| view::Step::of(step, calls.of(step)).traced(&records.steps))
        .collect();
    let mut shown = json!({ "session": session, "events": events, "steps": steps });
    let told = deliveries(reader, &records.id).await?;
    if !told.is_empty() {
        shown["deliveries"] = told.into();
    }
    Ok((200, shown))
}

/// Who was told of a session. None of a journal elsewhere, where a reader may not be permitted to read it.
async fn deliveries(reader: &Reader, id: &SessionId) -> Result<Vec<Value>, Refusal> {
    if reader.stack.is_none() {
        return Ok(Vec::new());
    }
    let told = notify::delivery::of_session(&reader.store, id).await;
    let told = told.map_err(|error| Refusal::journal(&error))?;
    Ok(told.iter().map(notify::Delivery::to_json).collect())
}

/// A session with records, or one whose execution has started.
pub(super) async fn known(
    reader: &Reader,
    id: &str,
    now: Stamp,
) -> Result<(Records, view::Session), Refusal> {
    match existing(reader, id).await {
        Ok(records) => {
            let session = records.view(reader, now);
            Ok((records, session))
        }
        Err(absent) if absent.status == 404 => begun(reader, id, now).await?.ok_or(absent),
        Err(refused) => Err(refused),
    }
}

/// A session whose execution has started and has not written its first record yet.
async fn begun(
    reader: &Reader,
    id: &str,
    now: Stamp,
) -> Result<Option<(Records, view::Session)>, Refusal> {
    let id = session_id(id)?;
    let Some(stack) = &reader.stack else { return Ok(None) };
    let arn = names::execution_arn(names::STATE_MACHINE, id.as_str());
    let described = stack.executions.describe(&arn).await;
    let execution = described.map_err(|error| Refusal::journal(&error))?;
    let Some(execution) = execution.filter(|it| it.status == RUNNING) else { return Ok(None) };
    // It may have been written meanwhile.
    let records = records(reader, &id).await?;
    let mut session = records.view(reader, now);
    if records.events.is_empty() {
        let input: Value = serde_json::from_str(&execution.input).unwrap_or_default();
        session.agent = input["detail"]["agent"].as_str().map(str::to_owned);
        session.initiated_at = input["time"].as_str().and_then(|time| Stamp::parse(time).ok());
    }
    Ok(Some((records, session)))
}

pub(super) fn session_id(text: &str) -> Result<SessionId, Refusal> {
    text.parse().map_err(|error: journal::id::InvalidSessionId| {
        Refusal::bad("InvalidSessionId", error.to_string())
    })
}

pub(super) async fn existing(reader: &Reader, id: &str) -> Result<Records, Refusal> {
    let id = session_id(id)?;
    let records = records(reader, &id).await?;
    if records.events.is_empty() && records.steps.is_empty() {
        return Err(Refusal::new(404, "NoSession", format!("there is no session {id}")));
    }
    Ok(records)
}

async fn records(reader: &Reader, id: &SessionId) -> Result<Records, Refusal> {
    let read = async {
        let events = read::events(&reader.store, id).await?;
        let steps = read::shown_steps(&reader.store, id).await?;
        Ok::<_, Error>(Records { id: id.clone(), events, steps })
    };
    read.await.map_err(|error| Refusal::journal(&error))
}

impl Records {
    pub(super) fn view(&self, reader: &Reader, now: Stamp) -> view::Session {
        view::Session::of(&self.id, &self.events, &self.steps, &reader.graphs, now)
    }
}
