//! Our own API: sessions as the command line shows them, and what a person may do to one.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, State};
use axum::http::Response;
use graph::question::{Answer, AnswerRefused};
use journal::announce::Announcer;
use journal::clock::{Hlc, Stamp};
use journal::event::{About, Draft, Event, EventStatus, Writer};
use journal::id::SessionId;
use journal::listing::{self, Bucket, Filter, Place};
use journal::read;
use journal::status::{self, Status, admits};
use journal::step::Step;
use journal::store::Error;
use journal::wait::Wait;
use poller::answer;
use serde_json::{Value, json};

use super::Endpoint;
use super::wire::{self, Refusal};
use crate::executions::{Callback, SendError};
use crate::list::{self, List, RESULT_BYTES_MAX, When, Wish};
use crate::store::Journal;
use crate::view;

/// Most sessions of a list, and how many it has if nothing else is said.
const LIST_MAX: usize = 200;

/// How far back a list goes that says nothing else; every day costs sixteen reads.
pub(super) const LIST_BACK: Duration = Duration::from_secs(7 * 86_400);

/// How far back a histogram goes that says nothing else, and how long its stretches are.
const HISTOGRAM_BACK: Duration = Duration::from_secs(86_400);
const BUCKET: Duration = Duration::from_secs(3_600);

pub(super) type Reply = Result<(u16, Value), Refusal>;

/// A session's records.
pub(super) struct Records {
    pub(super) id: SessionId,
    pub(super) events: Vec<Event>,
    pub(super) steps: Vec<Step<Value>>,
}

/// `GET /api/sessions`, newest first. `?status=` (several with commas, or again), `?agent=` and
/// `?text=` (in the id, agent, error or open question) choose among them; `?since=` and `?until=` (RFC
/// 3339, or such as `24h`) say when they began; `?limit=` how many they are at most. The answer says how
/// many were `searched`, and in `more`, unless it is null, what `?after=` takes to go on there.
pub(super) async fn list(
    State(endpoint): State<Endpoint>,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    wire::api(list_sessions(&endpoint, query.as_deref().unwrap_or_default()).await)
}

/// `GET /api/histogram`: how many sessions began and ended in each stretch of time: `?since=` (24h) and
/// `?until=` as for the list, `?bucket=` (such as `1h`) for the length of each.
pub(super) async fn histogram(
    State(endpoint): State<Endpoint>,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    wire::api(count_sessions(&endpoint, query.as_deref().unwrap_or_default()).await)
}

/// `GET /api/sessions/{id}`: the session, its events and its steps.
pub(super) async fn show(
    State(endpoint): State<Endpoint>,
    Path(id): Path<String>,
) -> Response<Body> {
    wire::api(show_session(&endpoint, &id).await)
}

/// `POST /api/sessions/{id}/cancel`, optionally with `{"reason"}`.
pub(super) async fn cancel(
    State(endpoint): State<Endpoint>,
    Path(id): Path<String>,
    body: Bytes,
) -> Response<Body> {
    wire::api(cancel_session(&endpoint, &id, &body).await)
}

/// `POST /api/sessions/{id}/answer`.
pub(super) async fn answer(
    State(endpoint): State<Endpoint>,
    Path(id): Path<String>,
    body: Bytes,
) -> Response<Body> {
    wire::api(answer_question(&endpoint, &id, &body).await)
}

async fn list_sessions(endpoint: &Endpoint, query: &str) -> Reply {
    let now = endpoint.clock.now();
    let wish = wish(query, LIST_MAX, now)?;
    let list = list::list(&endpoint.store, &endpoint.shelf, &wish, now).await;
    let List { sessions, searched, more } = list.map_err(|error| Refusal::journal(&error))?;
    let more = more.map(|place| place.to_string());
    Ok((200, json!({ "sessions": sessions, "searched": searched, "more": more })))
}

/// What a query string wishes for, so many sessions if it does not say. Parameters that are not known are
/// passed over.
pub(super) fn wish(query: &str, limit: usize, now: Stamp) -> Result<Wish, Refusal> {
    let mut wish = Wish {
        filter: Filter {
            since: now.before(LIST_BACK),
            // The table's clocks may be ahead of ours by as much as is not worth reporting.
            until: now.after(journal::limits::SKEW_REPORTED),
            after: None,
            statuses: Vec::new(),
            agent: None,
        },
        text: None,
        limit,
        result_bytes_max: RESULT_BYTES_MAX,
    };
    let time = |text: &str| {
        let time = text.parse::<When>();
        time.map(|time| time.stamp(now))
            .map_err(|error| Refusal::bad("InvalidTime", format!("`{text}`: {error}")))
    };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        // A form sends its empty fields, too.
        if value.is_empty() {
            continue;
        }
        match &*name {
            "status" => {
                for text in value.split(',') {
                    let status = Status::parse(text).ok_or_else(|| {
                        Refusal::bad("InvalidStatus", format!("`{text}` is no status of a session"))
                    })?;
                    wish.filter.statuses.push(status);
                }
            }
            "agent" => wish.filter.agent = Some(value.into_owned()),
            "since" => wish.filter.since = time(&value)?,
            "until" => wish.filter.until = time(&value)?,
            "text" => wish.text = Some(value.into_owned()),
            "limit" => {
                let limit = value.parse().map(|limit: usize| limit.clamp(1, LIST_MAX));
                wish.limit = limit.map_err(|_| {
                    Refusal::bad("InvalidLimit", format!("`{value}` is no number of sessions"))
                })?;
            }
            "after" => {
                let place = value.parse::<Place>();
                wish.filter.after =
                    Some(place.map_err(|e| Refusal::bad("InvalidPlace", e.to_string()))?);
            }
            _ => {}
        }
    }
    Ok(wish)
}

async fn count_sessions(endpoint: &Endpoint, query: &str) -> Reply {
    let now = endpoint.clock.now();
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
                    return Err(Refusal::bad("InvalidTime", "`bucket` is a length, such as 1h"));
                }
            },
            _ => {}
        }
    }
    let stretches = listing::buckets(since, until, length)
        .map_err(|error| Refusal::bad("InvalidBuckets", error.to_string()))?;
    let counted = listing::histogram(&endpoint.store, &endpoint.shelf, &stretches, now).await;
    let counted = counted.map_err(|error| Refusal::journal(&error))?;
    let buckets = counted.into_iter().map(|bucket| {
        let Bucket { from, to, began, ended } = bucket;
        json!({ "from": from, "to": to, "began": began, "ended": ended })
    });
    Ok((200, json!({ "buckets": buckets.collect::<Vec<_>>() })))
}

async fn show_session(endpoint: &Endpoint, id: &str) -> Reply {
    let records = existing(endpoint, id).await?;
    let now = endpoint.clock.now();
    let session = view::Session::of(&records.id, &records.events, &records.steps, now);
    let events: Vec<_> = records.events.iter().map(view::Event::of).collect();
    let mut calls = view::Calls::new(Arc::clone(&endpoint.graphs));
    let steps: Vec<_> =
        records.steps.iter().map(|step| view::Step::of(step, calls.of(step))).collect();
    Ok((200, json!({ "session": session, "events": events, "steps": steps })))
}

async fn cancel_session(endpoint: &Endpoint, id: &str, body: &[u8]) -> Reply {
    let records = existing(endpoint, id).await?;
    let reason = json_body(body)?["reason"].as_str().map(str::to_owned);
    refuse_ended(&records, EventStatus::CancelRequested)?;
    let hlc = records.hlc(endpoint);
    let mut draft = Draft::new(EventStatus::CancelRequested, About::Session);
    if let Some(reason) = reason {
        draft = draft.with_detail(json!({ "reason": reason }));
    }
    let voice = records.voice(endpoint, &hlc);
    voice.announce_once(&draft).await.map_err(|error| Refusal::journal(&error))?;
    let woken = wake(endpoint, &records.id).await?;
    Ok((202, json!({ "session_id": records.id, "woken": woken })))
}

async fn answer_question(endpoint: &Endpoint, id: &str, body: &[u8]) -> Reply {
    let records = existing(endpoint, id).await?;
    let answer: Answer = serde_json::from_slice(body)
        .map_err(|error| Refusal::bad("InvalidAnswer", error.to_string()))?;
    let answered = answer::answer(&endpoint.store, &endpoint.clock, &records.id, answer).await;
    if matches!(answered, Err(answer::Error::NoQuestion | answer::Error::Closed)) {
        // Whoever answered before may have died before waking anybody.
        wake(endpoint, &records.id).await?;
    }
    let seq = answered.map_err(not_taken)?;
    let woken = wake(endpoint, &records.id).await?;
    Ok((202, json!({ "session_id": records.id, "step": seq, "woken": woken })))
}

fn not_taken(error: answer::Error) -> Refusal {
    let code = match &error {
        answer::Error::Journal(error) => return Refusal::journal(error),
        answer::Error::NoQuestion => "NoQuestion",
        answer::Error::Refused(AnswerRefused::WrongQuestion { .. }) => "WrongQuestion",
        answer::Error::Expired => "QuestionExpired",
        answer::Error::Closed => "QuestionClosed",
        answer::Error::Refused(_) | answer::Error::Unfit(_) => {
            return Refusal::bad("InvalidAnswer", error.to_string());
        }
    };
    Refusal::new(409, code, error.to_string())
}

/// Has the parked workflow look again; says whether there was one.
pub(super) async fn wake(endpoint: &Endpoint, session: &SessionId) -> Result<bool, Refusal> {
    let wait =
        Wait::read(&endpoint.store, session).await.map_err(|error| Refusal::journal(&error))?;
    let Some(wait) = wait else { return Ok(false) };
    match endpoint.executions.send(&wait.token, Callback::Success(json!({}))).await {
        Ok(()) => Ok(true),
        Err(SendError::Store(error)) => Err(Refusal::journal(&error)),
        // It is not parked: it looks by itself.
        Err(_) => Ok(false),
    }
}

pub(super) fn refuse_ended(records: &Records, event: EventStatus) -> Result<(), Refusal> {
    let status = status::status(&records.events);
    match admits(status, event) {
        Ok(()) => Ok(()),
        Err(_) => {
            let message = format!("the session has ended: {status}");
            Err(Refusal::new(409, "SessionEnded", message))
        }
    }
}

pub(super) async fn existing(endpoint: &Endpoint, id: &str) -> Result<Records, Refusal> {
    let id: SessionId = id.parse().map_err(|error: journal::id::InvalidSessionId| {
        Refusal::bad("InvalidSessionId", error.to_string())
    })?;
    let records = records(endpoint, &id).await?;
    if records.events.is_empty() && records.steps.is_empty() {
        return Err(Refusal::new(404, "NoSession", format!("there is no session {id}")));
    }
    Ok(records)
}

async fn records(endpoint: &Endpoint, id: &SessionId) -> Result<Records, Refusal> {
    let read = async {
        let events = read::events(&endpoint.store, id).await?;
        let steps = read::resolved_steps(&endpoint.store, id).await?;
        Ok::<_, Error>(Records { id: id.clone(), events, steps })
    };
    read.await.map_err(|error| Refusal::journal(&error))
}

impl Records {
    /// A clock that has seen all of the session.
    pub(super) fn hlc(&self, endpoint: &Endpoint) -> Hlc {
        let hlc = Hlc::new(endpoint.clock.clone(), Stamp::default());
        self.events.iter().for_each(|event| hlc.observe(event.stamp));
        self.steps.iter().for_each(|step| hlc.observe(step.stamp));
        hlc
    }

    fn voice<'a>(&'a self, endpoint: &'a Endpoint, hlc: &'a Hlc) -> Announcer<'a, Journal> {
        Announcer {
            store: &endpoint.store,
            hlc,
            session: &self.id,
            writer: Writer::Person,
            expires_at: self.events.first().map_or(0, |event| event.expires_at),
        }
    }
}

pub(super) fn json_body(body: &[u8]) -> Result<Value, Refusal> {
    if body.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(body).map_err(|error| Refusal::bad("InvalidBody", error.to_string()))
}
