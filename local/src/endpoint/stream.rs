//! `GET /api/sessions/{id}/events`: a session's records as server-sent events, as they land, and the
//! progress of its running tool calls in between.
//!
//! A record's id is its place in the file, which only grows: a client that comes back with the last
//! one it saw misses nothing, however late a record was written and whatever its stamp. Records are
//! read at the client's pace. Progress is not journaled, and a client that is slow misses some of it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use agent::progress::{Broadcast, Progress};
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, Response};
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse as _, Sse};
use futures_util::stream::unfold;
use journal::event::Event as JournalEvent;
use journal::id::SessionId;
use journal::item::Item;
use journal::key;
use journal::read;
use journal::status::status;
use journal::step::Step;
use journal::store::{Error, Store as _};
use serde_json::Value;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::Endpoint;
use super::sessions::existing;
use super::wire::{self, Refusal};
use crate::view::{self, Calls, Record, Session};

/// Most streams at once; further ones are refused.
const STREAMS_MAX: usize = 256;

/// How long one look at the journal waits for something new, by the machine's clock.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long after the verdict the rest of the session's announcements is waited for, by the machine's
/// clock.
const LATECOMERS_WITHIN: Duration = Duration::from_secs(1);

/// How often a quiet stream shows that it is alive, by the machine's clock: less than proxies wait.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// What all streams share.
#[derive(Clone, Debug)]
pub struct Streams {
    progress: Broadcast,
    places: Arc<Semaphore>,
    stopping: CancellationToken,
}

impl Streams {
    /// Streams of this progress, which end when the stack stops.
    pub fn new(progress: Broadcast, stopping: CancellationToken) -> Self {
        Self { progress, places: Arc::new(Semaphore::new(STREAMS_MAX)), stopping }
    }
}

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
struct Wish {
    /// The last record that it has.
    last: i64,
    /// Whether it wants the records, too, and not only progress.
    records: bool,
}

/// `GET /api/sessions/{id}/events`; `?only=progress` leaves the records out.
pub(super) async fn events(
    State(endpoint): State<Endpoint>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response<Body> {
    match open(&endpoint, &id, query.as_deref().unwrap_or_default(), &headers).await {
        Err(refusal) => wire::api(Err(refusal)),
        // A browser asks again for a stream that ended, until it is told that there is no more.
        Ok(None) => wire::respond(204, "text/event-stream", Body::empty(), None),
        Ok(Some(stream)) => {
            let events = unfold(stream, |mut stream| async move {
                let event = stream.next().await?;
                Some((Ok::<_, Infallible>(event), stream))
            });
            let alive = KeepAlive::new().interval(ALIVE_EVERY);
            Sse::new(events).keep_alive(alive).into_response()
        }
    }
}

async fn open(
    endpoint: &Endpoint,
    id: &str,
    query: &str,
    headers: &HeaderMap,
) -> Result<Option<Stream>, Refusal> {
    let last = match headers.get("last-event-id") {
        None => 0,
        Some(value) => {
            let last = value.to_str().ok().and_then(|text| text.parse().ok());
            last.ok_or_else(|| {
                Refusal::bad("InvalidEventId", "Last-Event-ID is no id of this stream")
            })?
        }
    };
    let wish = Wish { last, records: !query.split('&').any(|field| field == "only=progress") };
    let session = existing(endpoint, id).await?.id;
    let place = Arc::clone(&endpoint.streams.places).try_acquire_owned().map_err(|_| {
        Refusal::new(503, "TooManyStreams", format!("{STREAMS_MAX} streams are open, the most"))
    })?;
    let mut stream = Stream::new(endpoint, session, wish, place);
    stream.read().await.map_err(|error| Refusal::journal(&error))?;
    let has_all = last > 0 || !wish.records;
    Ok((!(has_all && stream.is_over() && stream.ready.is_empty())).then_some(stream))
}

/// One client's stream.
struct Stream {
    endpoint: Endpoint,
    session: SessionId,
    wish: Wish,
    /// The place of the newest record read.
    read_to: i64,
    events: Vec<JournalEvent>,
    steps: Vec<Step<Value>>,
    calls: Calls,
    progress: Receiver<Arc<Progress>>,
    ready: VecDeque<Event>,
    /// Whether the last word was said.
    closed: bool,
    _place: OwnedSemaphorePermit,
}

impl Stream {
    fn new(
        endpoint: &Endpoint,
        session: SessionId,
        wish: Wish,
        place: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            endpoint: endpoint.clone(),
            session,
            wish,
            read_to: 0,
            events: Vec::new(),
            steps: Vec::new(),
            calls: Calls::new(Arc::clone(&endpoint.graphs)),
            progress: endpoint.streams.progress.listen(),
            ready: VecDeque::new(),
            closed: false,
            _place: place,
        }
    }

    /// The next event; none when there is no more.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.closed || self.endpoint.streams.stopping.is_cancelled() {
                return None;
            }
            if let Err(error) = self.advance().await {
                tracing::warn!(session_id = %self.session, %error, "A stream cannot be read on.");
                return None;
            }
        }
    }

    /// Whether the session has its verdict.
    fn is_over(&self) -> bool {
        status(&self.events).is_terminal()
    }

    /// Reads what has landed, or waits for something to happen.
    async fn advance(&mut self) -> Result<(), Error> {
        let store = self.endpoint.store.clone();
        let patience = if self.is_over() { LATECOMERS_WITHIN } else { PATIENCE };
        let mut changed = pin!(store.changed(patience));
        // Waiting begins before reading: a record that lands between the two must not be slept over.
        let already = poll_fn(|context| Poll::Ready(changed.as_mut().poll(context))).await;
        if self.read().await? || already.is_ready() {
            return Ok(());
        }
        let stopping = self.endpoint.streams.stopping.clone();
        // Whichever loses loses nothing: records are read again, reports stay in their queue.
        tokio::select! {
            () = changed => {
                if !self.read().await? && self.is_over() {
                    self.close();
                }
            }
            told = self.progress.recv() => match told {
                Ok(progress) if progress.session_id == self.session => self.tell(&progress),
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => self.closed = true,
            },
            () = stopping.cancelled() => {}
        }
        Ok(())
    }

    /// Takes what has landed; says whether there was something.
    async fn read(&mut self) -> Result<bool, Error> {
        let partition = key::session(&self.session);
        let landed = self.endpoint.executions.store().landed(&partition, self.read_to).await?;
        for (place, item) in &landed {
            self.read_to = *place;
            self.take(*place, item).await?;
        }
        Ok(!landed.is_empty())
    }

    async fn take(&mut self, place: i64, item: &Item) -> Result<(), Error> {
        let record = if item.sk.starts_with(key::EVENT_PREFIX) {
            let event = JournalEvent::from_item(item)?;
            // The same thing may be told twice; the first telling counts.
            if self.events.iter().any(|known| known.id == event.id) {
                return Ok(());
            }
            self.events.push(event.clone());
            ("event", Record::Event(view::Event::of(&event)))
        } else if item.sk.starts_with(key::STEP_PREFIX) {
            let step = read::resolve(&self.endpoint.store, Step::from_item(item)?).await?;
            let shape = view::Step::of(&step, self.calls.of(&step));
            self.steps.push(step);
            ("step", Record::Step(shape))
        } else {
            return Ok(());
        };
        if self.wish.records && place > self.wish.last {
            self.ready.push_back(event_of(record.0, &record.1).id(place.to_string()));
        }
        Ok(())
    }

    fn tell(&mut self, progress: &Progress) {
        self.ready.push_back(event_of("progress", progress));
    }

    /// Says how the session ended, as the last word.
    fn close(&mut self) {
        self.closed = true;
        if self.wish.records {
            self.events.sort_by_key(|event| event.stamp);
            let now = self.endpoint.clock.now();
            let session = Session::of(&self.session, &self.events, &self.steps, now);
            self.ready.push_back(event_of("session", &Record::Session(session)));
        }
    }
}

/// An event of this type; its text is one line of JSON.
fn event_of(kind: &str, what: &impl serde::Serialize) -> Event {
    let json = serde_json::to_string(what).unwrap_or_default();
    Event::default().event(kind).data(json)
}
