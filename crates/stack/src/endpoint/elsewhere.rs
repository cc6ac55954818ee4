//! The page over a journal whose sessions run elsewhere. Reads work as on a stack, actions go to where
//! the session runs, and streams poll the journal once a second.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Response};
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse as _, Sse};
use axum::routing::get;
use futures_util::stream::unfold;
use graph::agent::Agent;
use journal::clock::Clock;
use journal::follow::{Follow, Record};
use journal::id::SessionId;
use journal::principal::Name;
use journal::status::status;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::guard::Guard;
use super::principal::Callers;
use super::sessions::existing;
use super::wire::{self, Refusal};
use super::{Reader, Slots, guarded, reading};
use crate::keys::Keys;
use crate::stack::{StartError, listen};
use crate::store::Journal;

/// Poll interval of a stream. In an AWS account every poll costs money.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Longest poll interval while the journal does not respond. The interval doubles up to this.
const POLL_INTERVAL_MAX: Duration = Duration::from_secs(30);

/// Polls after the verdict that wait for the session's last announcements.
const LATE_POLLS: u32 = 2;

/// Keep-alive interval of a quiet stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// The page over a journal whose sessions run elsewhere.
pub struct Viewer {
    pub listen: SocketAddr,
    /// The bearer token; required to listen beyond loopback.
    pub token: Option<String>,
    /// The name of its holder.
    pub token_name: Option<Name>,
    pub journal: Journal,
    /// The keys of the journal's log of sessions, if this machine has them.
    pub keys: Option<Keys>,
    /// The agents whose graphs the page draws.
    pub agents: Arc<[Agent]>,
    /// The routes of [`actions`](super::actions).
    pub actions: Router,
}

/// The server of a [`Viewer`].
pub struct Serving {
    address: SocketAddr,
    stop: CancellationToken,
    servers: JoinSet<()>,
}

impl Viewer {
    /// Serves the page.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub async fn serve(self) -> Result<Serving, StartError> {
        let guard = Guard::new(self.listen.ip(), self.token.as_deref())?;
        let callers = Callers::new(self.token.as_deref(), self.token_name);
        let (listener, address) = listen(self.listen).await?;
        let reader = Reader {
            store: self.journal,
            clock: Clock::system(),
            graphs: self.agents,
            summary_cache: Arc::default(),
            slots: Slots::default(),
            keys: self.keys,
            stack: None,
        };
        let streaming = Router::new()
            .route("/api/sessions/{id}/events", get(events))
            .with_state(reader.clone());
        let router = guarded(reading(reader).merge(streaming).merge(self.actions), guard, callers);
        let stop = CancellationToken::new();
        let servers =
            JoinSet::from_iter([guard::serve(listener, router, stop.clone().cancelled_owned())]);
        Ok(Serving { address, stop, servers })
    }
}

impl Serving {
    /// The base URL, `http://HOST:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops the server and closes open streams. Their clients reconnect and find no server.
    pub async fn stop(mut self) {
        self.stop.cancel();
        self.servers.shutdown().await;
    }
}

/// `GET /api/sessions/{id}/events`: announces a session's new records as server-sent events.
///
/// An event id counts the steps and events so far. A client that reconnects gets the later steps. If the
/// number of events has changed, it gets all of them, because events may arrive in any order.
async fn events(
    State(reader): State<Reader>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response<Body> {
    let opened = match reader.slots.acquire() {
        Ok(slot) => existing(&reader, &id).await.map(|records| (records.id, slot)),
        Err(refusal) => Err(refusal),
    };
    let (session, slot) = match opened {
        Ok(opened) => opened,
        Err(refusal) => return wire::api(Err(refusal)),
    };
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()).map(Seen::parse);
    let mut stream = Stream::new(&reader, session, slot);
    match stream.look(last.flatten()).await {
        Err(refusal) => wire::api(Err(refusal)),
        // A browser reopens a stream that ended, until the response is 204.
        Ok(()) if last.is_some() && stream.is_over() && stream.ready.is_empty() => {
            wire::respond(204, "text/event-stream", Body::empty(), None)
        }
        Ok(()) => {
            let events = unfold(stream, |mut stream| async move {
                let event = stream.next().await?;
                Some((Ok::<_, Infallible>(event), stream))
            });
            Sse::new(events)
                .keep_alive(KeepAlive::new().interval(KEEP_ALIVE_INTERVAL))
                .into_response()
        }
    }
}

/// How many steps and events a client has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    steps: u32,
    events: usize,
}

impl Seen {
    fn parse(text: &str) -> Option<Self> {
        let (steps, events) = text.split_once('.')?;
        Some(Self { steps: steps.parse().ok()?, events: events.parse().ok()? })
    }
}

struct Stream {
    follow: Follow<Journal>,
    events: Vec<journal::event::Event>,
    seen: Seen,
    ready: VecDeque<Event>,
    late_polls: u32,
    /// The poll interval: longer than [`POLL_INTERVAL`] while the journal does not respond.
    pause: Duration,
    _slot: OwnedSemaphorePermit,
}

impl Stream {
    fn new(reader: &Reader, session: SessionId, slot: OwnedSemaphorePermit) -> Self {
        Self {
            follow: Follow::new(reader.store.clone(), session),
            events: Vec::new(),
            seen: Seen::default(),
            ready: VecDeque::new(),
            late_polls: 0,
            pause: POLL_INTERVAL,
            _slot: slot,
        }
    }

    fn is_over(&self) -> bool {
        status(&self.events).is_terminal()
    }

    /// The next event; `None` at the end.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.is_over() {
                self.late_polls += 1;
                if self.late_polls > LATE_POLLS {
                    return None;
                }
            }
            tokio::time::sleep(self.pause).await;
            let looked = self.look(None).await;
            self.announce_trouble(looked.err());
        }
    }

    /// Announces with a `journal` event that the journal stopped responding (`error` is the reason), and
    /// once more when it responds again. A client misses no record in between.
    fn announce_trouble(&mut self, trouble: Option<Refusal>) {
        let was_well = self.pause == POLL_INTERVAL;
        self.pause = match trouble {
            None => POLL_INTERVAL,
            Some(_) => (2 * self.pause).min(POLL_INTERVAL_MAX),
        };
        if was_well != trouble.is_none() {
            let data = json!({ "error": trouble.map(|refusal| refusal.message) }).to_string();
            self.ready.push_back(Event::default().event("journal").data(data));
        }
    }

    /// Reads new records, and queues those that the client does not have.
    async fn look(&mut self, has: Option<Seen>) -> Result<(), Refusal> {
        let news = self.follow.next(Duration::ZERO).await.map_err(|e| Refusal::journal(&e))?;
        let mut found = Vec::new();
        for record in news {
            let (kind, seq) = match record {
                Record::Event(event) => {
                    self.seen.events += 1;
                    self.events.push(event);
                    ("event", None)
                }
                Record::Step(step) => {
                    self.seen.steps = step.seq;
                    ("step", Some(step.seq))
                }
            };
            found.push((kind, seq, self.seen));
        }
        let knows_events = has.is_some_and(|has| has.events == self.seen.events);
        for (kind, seq, Seen { steps, events }) in found {
            let is_known = match seq {
                Some(seq) => has.is_some_and(|has| seq <= has.steps),
                None => knows_events,
            };
            if !is_known {
                // Only announces the record: the page reads it when it shows it.
                let data = json!({ "type": kind, "seq": seq }).to_string();
                let event = Event::default().event(kind).data(data);
                self.ready.push_back(event.id(format!("{steps}.{events}")));
            }
        }
        Ok(())
    }
}
