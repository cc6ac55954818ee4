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
use journal::listing::{Filter, summaries};
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
use crate::view;

/// Most sessions of a list, and how many it has if nothing else is said.
const LIST_MAX: usize = 200;

/// How far back a list goes that says nothing else; every day costs sixteen reads.
pub(super) const LIST_BACK: Duration = Duration::from_secs(7 * 86_400);

pub(super) type Reply = Result<(u16, Value), Refusal>;

/// A session's records.
pub(super) struct Records {
    pub(super) id: SessionId,
    pub(super) events: Vec<Event>,
    pub(super) steps: Vec<Step<Value>>,
}

/// `GET /api/sessions`, newest first; `?status=` and `?agent=` choose among them, `?since=` (RFC
/// 3339) says how far back they go, `?limit=` how many they are at most.
pub(super) async fn list(
    State(endpoint): State<Endpoint>,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    wire::api(list_sessions(&endpoint, query.as_deref().unwrap_or_default()).await)
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
    let field = |name: &str| {
        query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name)
    };
    let status = match field("status") {
        None => None,
        Some((_, text)) => Some(Status::parse(text).ok_or_else(|| {
            Refusal::bad("InvalidStatus", format!("`{text}` is no status of a session"))
        })?),
    };
    let now = endpoint.clock.now();
    let since = match field("since") {
        None => now.before(LIST_BACK),
        Some((_, text)) => Stamp::parse(&text.replace("%3A", ":"))
            .map_err(|error| Refusal::bad("InvalidTime", error.to_string()))?,
    };
    let limit = match field("limit") {
        None => LIST_MAX,
        Some((_, text)) => {
            text.parse().map(|limit: usize| limit.clamp(1, LIST_MAX)).map_err(|_| {
                Refusal::bad("InvalidLimit", format!("`{text}` is no number of sessions"))
            })?
        }
    };
    let filter = Filter {
        since,
        // The table's clocks may be ahead of ours by as much as is not worth reporting.
        until: now.after(journal::limits::SKEW_REPORTED),
        status,
        agent: field("agent").map(|(_, agent)| agent.to_owned()),
        limit,
    };
    let found = summaries(&endpoint.store, &filter).await.map_err(|e| Refusal::journal(&e))?;
    let mut sessions = Vec::new();
    for summary in found {
        let records = records(endpoint, &summary.session).await?;
        sessions.push(json!(view::Session::of(&records.id, &records.events, &records.steps, now)));
    }
    Ok((200, json!({ "sessions": sessions })))
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

    fn voice<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        hlc: &'a Hlc,
    ) -> Announcer<'a, journal::sqlite::SqliteStore> {
        Announcer {
            store: &endpoint.store,
            hlc,
            session: &self.id,
            writer: Writer::Person,
            expires_at: self.events.first().map_or(0, |event| event.expires_at),
        }
    }
}

fn json_body(body: &[u8]) -> Result<Value, Refusal> {
    if body.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(body).map_err(|error| Refusal::bad("InvalidBody", error.to_string()))
}
