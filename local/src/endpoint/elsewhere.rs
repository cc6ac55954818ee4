//! The page over a journal whose sessions run elsewhere: what reads is the stack's own, what a person
//! does to a session goes where it runs, and a session's records are looked for once a second.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, Response};
use axum::middleware::from_fn_with_state;
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse as _, Sse};
use axum::routing::{get, post};
use futures_util::future::BoxFuture;
use futures_util::stream::unfold;
use journal::follow::{Follow, Record};
use journal::id::SessionId;
use journal::status::status;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::guard::{self, Guard};
use super::sessions::{self, existing, json_body};
use super::wire::{self, Refusal};
use super::{BODY_BYTES_MAX, Endpoint, Server, page, plain};
use crate::store::Journal;

/// How often the journal is looked at for a stream. An account asks for money for every look.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How seldom it is looked at while it does not answer: each time half as often, down to this.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(30);

/// How many looks after the verdict the rest of the session's announcements is waited for.
const LATE_LOOKS: u32 = 2;

/// How often a quiet stream shows that it is alive.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// What a person does to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Answers its question.
    Answer,
    /// Asks for its end.
    Cancel,
    /// Carries it on.
    Resume,
}

/// Tells a session something where it runs. The error is why that was refused, for the person.
pub type Tell =
    Arc<dyn Fn(SessionId, Deed, Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

/// The routes, behind a guard.
pub fn router(endpoint: Endpoint, tell: Tell, guard: Guard) -> Router {
    let reading = Router::new()
        .route("/api/sessions", get(sessions::list))
        .route("/api/histogram", get(sessions::histogram))
        .route("/api/sessions/{id}", get(sessions::show))
        .merge(page::views(Server::Desk))
        .route("/api/sessions/{id}/events", get(events))
        .route("/login", post(guard::log_in))
        .with_state(endpoint.clone());
    let telling = Router::new()
        .route("/api/sessions/{id}/answer", post(answer))
        .route("/api/sessions/{id}/cancel", post(cancel))
        .route("/api/sessions/{id}/resume", post(resume))
        .with_state(tell);
    reading
        .merge(telling)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(guard.clone(), guard::check))
        .merge(
            page::files()
                .layer(from_fn_with_state(guard.clone(), guard::check_address))
                .merge(plain::views(guard, Server::Desk))
                .with_state(endpoint),
        )
}

async fn answer(State(tell): State<Tell>, Path(id): Path<String>, body: Bytes) -> Response<Body> {
    wire::api(told(&tell, &id, Deed::Answer, &body).await)
}

async fn cancel(State(tell): State<Tell>, Path(id): Path<String>, body: Bytes) -> Response<Body> {
    wire::api(told(&tell, &id, Deed::Cancel, &body).await)
}

async fn resume(State(tell): State<Tell>, Path(id): Path<String>) -> Response<Body> {
    wire::api(told(&tell, &id, Deed::Resume, &[]).await)
}

async fn told(tell: &Tell, id: &str, deed: Deed, body: &[u8]) -> sessions::Reply {
    let id: SessionId = id.parse().map_err(|error: journal::id::InvalidSessionId| {
        Refusal::bad("InvalidSessionId", error.to_string())
    })?;
    let said = tell(id, deed, json_body(body)?).await;
    said.map(|said| (202, said)).map_err(|why| Refusal::new(409, "Refused", why))
}

/// `GET /api/sessions/{id}/events`: a session's records as server-sent events, as they are found.
///
/// An id says how many steps and events came before. A client that comes back is given the steps after
/// those, and if there are other events than it knows, all of them: they may have come in any order.
async fn events(
    State(endpoint): State<Endpoint>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response<Body> {
    let opened = match endpoint.streams.place() {
        Ok(place) => existing(&endpoint, &id).await.map(|records| (records.id, place)),
        Err(refusal) => Err(refusal),
    };
    let (session, place) = match opened {
        Ok(opened) => opened,
        Err(refusal) => return wire::api(Err(refusal)),
    };
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()).map(Seen::parse);
    let mut stream = Stream::new(&endpoint, session, place);
    match stream.look(last.flatten()).await {
        Err(refusal) => wire::api(Err(refusal)),
        // A browser asks again for a stream that ended, until it is told that there is no more.
        Ok(()) if last.is_some() && stream.is_over() && stream.ready.is_empty() => {
            wire::respond(204, "text/event-stream", Body::empty(), None)
        }
        Ok(()) => {
            let events = unfold(stream, |mut stream| async move {
                let event = stream.next().await?;
                Some((Ok::<_, Infallible>(event), stream))
            });
            Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE_EVERY)).into_response()
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
    late_looks: u32,
    /// When it is looked for the next time: longer than [`LOOK_EVERY`] while the journal does not answer.
    pause: Duration,
    _place: OwnedSemaphorePermit,
}

impl Stream {
    fn new(endpoint: &Endpoint, session: SessionId, place: OwnedSemaphorePermit) -> Self {
        Self {
            follow: Follow::new(endpoint.store.clone(), session),
            events: Vec::new(),
            seen: Seen::default(),
            ready: VecDeque::new(),
            late_looks: 0,
            pause: LOOK_EVERY,
            _place: place,
        }
    }

    fn is_over(&self) -> bool {
        status(&self.events).is_terminal()
    }

    /// The next event; none when there is no more.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.is_over() {
                self.late_looks += 1;
                if self.late_looks > LATE_LOOKS {
                    return None;
                }
            }
            tokio::time::sleep(self.pause).await;
            let looked = self.look(None).await;
            self.tell_of_trouble(looked.err());
        }
    }

    /// Tells once that the journal does not answer, in an event `journal` whose `error` says why, and once that
    /// it does again. A client then has all that it would have without.
    fn tell_of_trouble(&mut self, trouble: Option<Refusal>) {
        let was_well = self.pause == LOOK_EVERY;
        self.pause = match trouble {
            None => LOOK_EVERY,
            Some(_) => (2 * self.pause).min(LOOK_AT_LEAST_EVERY),
        };
        if was_well != trouble.is_none() {
            let data = json!({ "error": trouble.map(|refusal| refusal.message) }).to_string();
            self.ready.push_back(Event::default().event("journal").data(data));
        }
    }

    /// Takes what has come, but for what a client has already.
    async fn look(&mut self, has: Option<Seen>) -> Result<(), Refusal> {
        let news = self.follow.next(Duration::ZERO).await.map_err(|e| Refusal::journal(&e))?;
        let mut told = Vec::new();
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
            told.push((kind, seq, self.seen));
        }
        let knows_events = has.is_some_and(|has| has.events == self.seen.events);
        for (kind, seq, Seen { steps, events }) in told {
            let is_known = match seq {
                Some(seq) => has.is_some_and(|has| seq <= has.steps),
                None => knows_events,
            };
            if !is_known {
                // What came is asked for where it is shown: here it is only told that it is there.
                let data = json!({ "type": kind, "seq": seq }).to_string();
                let event = Event::default().event(kind).data(data);
                self.ready.push_back(event.id(format!("{steps}.{events}")));
            }
        }
        Ok(())
    }
}
