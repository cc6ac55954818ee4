//! `GET /api/changes`: a list of sessions as server-sent events, first whole, then only the rows that changed.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::Response;
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse as _, Sse};
use futures_util::stream::unfold;
use journal::id::SessionId;
use journal::store::{Error, Store as _};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::sessions::wish;
use super::stream::Streams;
use super::wire::{self, Refusal};
use crate::list::{self, List};
use crate::view::Session;

/// Sessions of the list, if the client asks for no other number.
const LISTED: usize = 50;

/// How long one read waits for a change, by the machine's clock. A list of the last hour changes without one.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Shortest time between two reads, by the machine's clock: a busy journal changes all the time.
const READ_INTERVAL: Duration = Duration::from_millis(400);

/// The pause after a read that failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// The filters are those of `GET /api/sessions`. Each event has the changed `sessions`, the `order` of all ids if
/// it changed, and `searched` and `more` as the list has them.
pub(super) async fn changes(
    State(streams): State<Streams>,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    let query = query.unwrap_or_default();
    let opened = wish(&query, LISTED, streams.reader.clock.now())
        .and_then(|_| streams.reader.slots.acquire());
    let slot = match opened {
        Ok(slot) => slot,
        Err(refusal) => return wire::api(Err(refusal)),
    };
    let (sent, order) = (HashMap::new(), None);
    let changes = Changes { streams, query, sent, order, pause: Duration::ZERO, _slot: slot };
    let events = unfold(changes, |mut changes| async move {
        let event = changes.next().await?;
        Some((Ok::<_, Infallible>(event), changes))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_INTERVAL)).into_response()
}

/// One client's list.
struct Changes {
    streams: Streams,
    query: String,
    /// The rows that the client has.
    sent: HashMap<SessionId, Value>,
    /// The ids in the client's order; `None` before the first event.
    order: Option<Vec<SessionId>>,
    /// Before the next read.
    pause: Duration,
    _slot: OwnedSemaphorePermit,
}

impl Changes {
    /// The next event; `None` at the end.
    async fn next(&mut self) -> Option<Event> {
        let stopping = self.streams.stopping.clone();
        let store = self.streams.reader.store.clone();
        loop {
            // Cancel-safe: nothing is read yet.
            tokio::select! {
                () = tokio::time::sleep(self.pause) => {}
                () = stopping.cancelled() => return None,
            }
            self.pause = READ_INTERVAL;
            let mut changed = pin!(store.changed(READ_TIMEOUT));
            // The wait starts before the read, so it sees a record that is written between the two.
            let already = poll_fn(|context| Poll::Ready(changed.as_mut().poll(context))).await;
            match self.read().await {
                Ok(None) if already.is_ready() => {}
                Ok(None) => {
                    // Cancel-safe: the list is read again.
                    tokio::select! {
                        () = changed => {}
                        () = stopping.cancelled() => return None,
                    }
                }
                Ok(Some(news)) => {
                    return Some(Event::default().event("sessions").data(news.to_string()));
                }
                Err(refusal) => {
                    self.pause = RETRY_INTERVAL;
                    let problem = json!({ "error": refusal.message });
                    return Some(Event::default().event("journal").data(problem.to_string()));
                }
            }
        }
    }

    /// Reads the list. Returns what the client does not have, if anything.
    async fn read(&mut self) -> Result<Option<Value>, Refusal> {
        let reader = &self.streams.reader;
        let now = reader.clock.now();
        let wish = wish(&self.query, LISTED, now)?;
        let list = list::list(&reader.store, &reader.summary_cache, &wish, &reader.graphs, now);
        let List { sessions, searched, more } =
            list.await.map_err(|error: Error| Refusal::journal(&error))?;
        let order: Vec<_> = sessions.iter().map(|session| session.session_id.clone()).collect();
        let mut changed = Vec::new();
        for session in sessions {
            let row = json!(session);
            let compared = without_age(&session, row.clone());
            if self.sent.get(&session.session_id) != Some(&compared) {
                self.sent.insert(session.session_id, compared);
                changed.push(row);
            }
        }
        self.sent.retain(|id, _| order.contains(id));
        let is_moved = self.order.as_ref() != Some(&order);
        if !is_moved && changed.is_empty() {
            return Ok(None);
        }
        let mut news = json!({ "sessions": changed, "searched": searched });
        news["more"] = json!(more.map(|cursor| cursor.to_string()));
        if is_moved {
            news["order"] = json!(order);
            self.order = Some(order);
        }
        Ok(Some(news))
    }
}

/// A row without the age of an open session, which the client counts itself.
fn without_age(session: &Session, mut row: Value) -> Value {
    if !session.status.is_terminal() {
        row["elapsed_ms"] = Value::Null;
    }
    row
}
