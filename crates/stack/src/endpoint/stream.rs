//! `GET /api/sessions/{id}/events`: a session's new records as server-sent events, and the progress of
//! its running tool calls.
//!
//! An event id is the record's place in the file, which only grows. A client that reconnects with its
//! last id misses no record, however late it was written and whatever its timestamp. Records are read at
//! the client's pace. Progress is not journaled, and a slow client misses some of it.

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

use super::Reader;
use super::sessions::known;
use super::wire::{self, Refusal};
use crate::executions::Executions;
use crate::view::{self, Calls, Record, Session};

/// Most concurrent streams; further ones are refused.
const STREAMS_MAX: usize = 256;

/// How long one read waits for a new record, by the machine's clock.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a stream waits after the verdict for the session's last announcements, by the machine's
/// clock.
const LATE_TIMEOUT: Duration = Duration::from_secs(1);

/// Keep-alive interval of a quiet stream, by the machine's clock: shorter than proxies' timeouts.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Limits concurrent streams to `STREAMS_MAX`.
#[derive(Clone, Debug)]
pub struct Slots(Arc<Semaphore>);

impl Default for Slots {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(STREAMS_MAX)))
    }
}

impl Slots {
    pub(super) fn acquire(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        Arc::clone(&self.0).try_acquire_owned().map_err(|_| {
            let message = format!("all {STREAMS_MAX} stream slots are in use");
            Refusal::new(503, "TooManyStreams", message)
        })
    }
}

/// What the streams of a stack need.
#[derive(Clone, Debug)]
pub struct Streams {
    pub reader: Reader,
    pub executions: Executions,
    pub progress: Broadcast,
    /// Cancelled when the stack stops, which ends all streams.
    pub stopping: CancellationToken,
}

/// A client's request.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// The place of the client's last record; 0 for none.
    last: i64,
    /// Whether to send records, not only progress.
    records: bool,
}

/// `GET /api/sessions/{id}/events`; `?only=progress` omits the records.
pub(super) async fn events(
    State(streams): State<Streams>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response<Body> {
    match open(&streams, &id, query.as_deref().unwrap_or_default(), &headers).await {
        Err(refusal) => wire::api(Err(refusal)),
        // A browser reopens a stream that ended, until the response is 204.
        Ok(None) => wire::respond(204, "text/event-stream", Body::empty(), None),
        Ok(Some(stream)) => {
            let events = unfold(stream, |mut stream| async move {
                let event = stream.next().await?;
                Some((Ok::<_, Infallible>(event), stream))
            });
            let alive = KeepAlive::new().interval(KEEP_ALIVE_INTERVAL);
            Sse::new(events).keep_alive(alive).into_response()
        }
    }
}

async fn open(
    streams: &Streams,
    id: &str,
    query: &str,
    headers: &HeaderMap,
) -> Result<Option<Stream>, Refusal> {
    let last = match headers.get("last-event-id") {
        None => 0,
        Some(value) => {
            let last = value.to_str().ok().and_then(|text| text.parse().ok());
            last.ok_or_else(|| {
                Refusal::bad("InvalidEventId", "invalid Last-Event-ID: not an id of this stream")
            })?
        }
    };
    let request =
        Request { last, records: !query.split('&').any(|field| field == "only=progress") };
    let (records, _) = known(&streams.reader, id, streams.reader.clock.now()).await?;
    let session = records.id;
    let slot = streams.reader.slots.acquire()?;
    let mut stream = Stream::new(streams, session, request, slot);
    stream.read().await.map_err(|error| Refusal::journal(&error))?;
    let has_all = last > 0 || !request.records;
    Ok((!(has_all && stream.is_over() && stream.ready.is_empty())).then_some(stream))
}

/// One client's stream.
struct Stream {
    streams: Streams,
    session: SessionId,
    request: Request,
    /// The place of the newest record read.
    read_to: i64,
    events: Vec<JournalEvent>,
    steps: Vec<Step<Value>>,
    calls: Calls,
    progress: Receiver<Arc<Progress>>,
    ready: VecDeque<Event>,
    closed: bool,
    _slot: OwnedSemaphorePermit,
}

impl Stream {
    fn new(
        streams: &Streams,
        session: SessionId,
        request: Request,
        slot: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            streams: streams.clone(),
            session,
            request,
            read_to: 0,
            events: Vec::new(),
            steps: Vec::new(),
            calls: Calls::new(Arc::clone(&streams.reader.graphs)),
            progress: streams.progress.listen(),
            ready: VecDeque::new(),
            closed: false,
            _slot: slot,
        }
    }

    /// The next event; `None` at the end.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.closed || self.streams.stopping.is_cancelled() {
                return None;
            }
            if let Err(error) = self.advance().await {
                tracing::warn!(session_id = %self.session, %error, "Cannot read the records of a stream.");
                return None;
            }
        }
    }

    /// Whether the session has a verdict.
    fn is_over(&self) -> bool {
        status(&self.events).is_terminal()
    }

    /// Reads new records, or waits for a record, progress or the stack's stop.
    async fn advance(&mut self) -> Result<(), Error> {
        let store = self.streams.reader.store.clone();
        let timeout = if self.is_over() { LATE_TIMEOUT } else { READ_TIMEOUT };
        let mut changed = pin!(store.changed(timeout));
        // The wait starts before the read, so it sees a record that is written between the two.
        let already = poll_fn(|context| Poll::Ready(changed.as_mut().poll(context))).await;
        if self.read().await? || already.is_ready() {
            return Ok(());
        }
        let stopping = self.streams.stopping.clone();
        // Cancel-safe: records are read again, and reports stay in their queue.
        tokio::select! {
            () = changed => {
                if !self.read().await? && self.is_over() {
                    self.close();
                }
            }
            reported = self.progress.recv() => match reported {
                Ok(progress) if progress.session_id == self.session => self.report(&progress),
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => self.closed = true,
            },
            () = stopping.cancelled() => {}
        }
        Ok(())
    }

    /// Reads new records. Returns whether there were any.
    async fn read(&mut self) -> Result<bool, Error> {
        let partition = key::session(&self.session);
        let landed = self.streams.executions.store().landed(&partition, self.read_to).await?;
        for (place, item) in &landed {
            self.read_to = *place;
            self.take(*place, item).await?;
        }
        Ok(!landed.is_empty())
    }

    async fn take(&mut self, place: i64, item: &Item) -> Result<(), Error> {
        let record = if item.sk.starts_with(key::EVENT_PREFIX) {
            let event = JournalEvent::from_item(item)?;
            // An event may be announced twice; the first one counts.
            if self.events.iter().any(|known| known.id == event.id) {
                return Ok(());
            }
            self.events.push(event.clone());
            ("event", Record::Event(Box::new(view::Event::of(&event))))
        } else if item.sk.starts_with(key::STEP_PREFIX) {
            let step = read::shown(&self.streams.reader.store, Step::from_item(item)?).await?;
            let shape = view::Step::of(&step, self.calls.of(&step));
            self.steps.push(step);
            ("step", Record::Step(Box::new(shape)))
        } else {
            return Ok(());
        };
        if self.request.records && place > self.request.last {
            self.ready.push_back(event_of(record.0, &record.1).id(place.to_string()));
        }
        Ok(())
    }

    fn report(&mut self, progress: &Progress) {
        self.ready.push_back(event_of("progress", progress));
    }

    /// Ends the stream with the finished session.
    fn close(&mut self) {
        self.closed = true;
        if self.request.records {
            self.events.sort_by_key(|event| event.stamp);
            let now = self.streams.reader.clock.now();
            let session = Session::of(
                &self.session,
                &self.events,
                &self.steps,
                &self.streams.reader.graphs,
                now,
            );
            self.ready.push_back(event_of("session", &Record::Session(Box::new(session))));
        }
    }
}

/// An event of this type, with one line of JSON as its data.
fn event_of(kind: &str, what: &impl serde::Serialize) -> Event {
    let json = serde_json::to_string(what).unwrap_or_default();
    Event::default().event(kind).data(json)
}
