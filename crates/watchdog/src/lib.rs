//! The watchdog: the Lambda function that ends sessions without a running workflow.
//!
//! An execution that is stopped, times out or fails runs no further state, so its session would have
//! no verdict. The watchdog receives events of such ends ([`Event::Ended`]), and finds missed ones among
//! the open leases ([`Event::Sweep`]). [`judge`] decides without IO; [`Watchdog::handle`] acts on the
//! decision. It never touches a session whose execution is running, and all its actions are idempotent.

use journal::announce::Announcer;
use journal::chain::{Author, End, end_session};
use journal::clock::{Clock, Hlc, Stamp};
use journal::event::{Event as Announcement, EventStatus, Writer};
use journal::id::{Runner, SessionId};
use journal::item::Item;
use journal::key;
use journal::lease::{self, Lease, WhyHeld};
use journal::read;
use journal::seal::{seal, suspension, task_announcement};
use journal::step::{Step, StepBody};
use journal::store::{Query, Store};
use notify::bus::Notices;
use serde::Serialize;
use serde_json::Value;
use telemetry::export;
use tracing::Instrument as _;
use workflow::limits::{ANNOUNCE_TIMEOUT, STALE_AFTER, SWEEP_EVERY};
use workflow::metric;
use workflow::trace::{Trace, lifecycle};

pub mod cloud;
pub mod error;
pub mod event;
pub mod judge;

pub use cloud::Cloud;
pub use error::Error;
pub use event::Event;

use judge::{Decision, Execution, Observed};

/// Maximum number of sessions per sweep; the next sweep continues with others.
pub const SESSIONS_PER_SWEEP_MAX: usize = 200;

/// Most open leases that a sweep reads in one partition.
const LEASES_PER_PARTITION_MAX: usize = 5_000;

/// Open leases of one page.
const LEASES_PER_PAGE: usize = 500;

/// The watchdog with its clients.
#[derive(Clone, Debug)]
pub struct Watchdog<S> {
    store: S,
    cloud: Cloud,
    clock: Clock,
    notices: Option<Notices>,
}

/// The outcome of a run of the watchdog.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Sessions checked.
    pub looked_at: usize,
    /// Sessions that it sealed.
    pub closed: Vec<SessionId>,
    /// Sessions that failed to be checked; the next run retries.
    pub failed: Vec<SessionId>,
}

impl<S: Store> Watchdog<S> {
    /// A watchdog over a journal, the executions and an agent runtime.
    pub fn new(store: S, cloud: Cloud, clock: Clock) -> Self {
        Self { store, cloud, clock, notices: None }
    }

    /// Puts events about sessions on an event bus.
    #[must_use]
    pub fn with_notices(self, notices: Option<Notices>) -> Self {
        Self { notices, ..self }
    }

    /// Handles an event. Idempotent.
    ///
    /// # Errors
    /// If an event's session, or the list of open leases, cannot be read. In a sweep, one failed
    /// session does not stop the others.
    pub async fn handle(&self, event: &Event) -> Result<Report, Error> {
        match event {
            Event::Ended { session } => {
                let closed = self.look_after(session).await?;
                let closed = closed.then(|| session.clone());
                Ok(Report { looked_at: 1, closed: closed.into_iter().collect(), failed: vec![] })
            }
            Event::Sweep => self.sweep().await,
            Event::Other => Ok(Report::default()),
        }
    }

    async fn sweep(&self) -> Result<Report, Error> {
        let mut report = Report::default();
        for session in self.neglected().await? {
            report.looked_at += 1;
            match self.look_after(&session).await {
                Ok(true) => report.closed.push(session),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(session_id = %session, %error, "A session could not be checked.");
                    report.failed.push(session);
                }
            }
        }
        tracing::info!(
            looked_at = report.looked_at,
            closed = report.closed.len(),
            failed = report.failed.len(),
            "Open leases were swept."
        );
        Ok(report)
    }

    /// Sessions with a stale open lease; those that a halt, a queue or a lack of places holds back come last, because their silence is
    /// expected. The partitions take turns in being first, so that one large partition does not starve the others.
    async fn neglected(&self) -> Result<Vec<SessionId>, Error> {
        let now = self.clock.now();
        let mut stale = Stale::default();
        let shards: Vec<char> = key::SHARDS.chars().collect();
        let sweeps = now.since(Stamp::default()).as_secs() / SWEEP_EVERY.as_secs();
        let turn = usize::try_from(sweeps).unwrap_or(0);
        for n in 0..shards.len() {
            let digit = shards[(turn + n) % shards.len()];
            let mut query = Query::open(lease::shard(digit)).limited(LEASES_PER_PAGE);
            query.to = Some(now.before(STALE_AFTER).to_string());
            for _ in 0..LEASES_PER_PARTITION_MAX / LEASES_PER_PAGE {
                let page = self.store.query(query.clone()).await?;
                page.items.iter().for_each(|item| stale.add(item));
                query.after = page.next;
                if query.after.is_none() {
                    break;
                }
            }
            if query.after.is_some() {
                tracing::warn!(
                    %digit, limit = LEASES_PER_PARTITION_MAX,
                    "A partition has more stale leases than a sweep reads; the next sweep goes on."
                );
            }
        }
        metrics::gauge!(metric::SESSIONS_WAITING_FOR_CAPACITY).set(stale.without_capacity);
        Ok(stale.in_order())
    }

    /// Returns whether this call sealed the session.
    async fn look_after(&self, session: &SessionId) -> Result<bool, Error> {
        let log = tracing::error_span!(
            "session", session_id = %session, trace_id = tracing::field::Empty
        );
        self.judge(session).instrument(log).await
    }

    async fn judge(&self, session: &SessionId) -> Result<bool, Error> {
        let events = read::events(&self.store, session).await?;
        let Some(first) = events.first() else {
            return Ok(false);
        };
        let expires_at = first.expires_at;
        let execution = self.newest_execution(session, &events).await?;
        let step = read::newest_step(&self.store, session).await?;
        let has_lease = lease::Lease::read(&self.store, session).await?.is_some();
        let observed = Observed { events: &events, step: step.as_ref(), has_lease };
        let hlc = Hlc::new(self.clock.clone(), Stamp::default());
        events.iter().for_each(|event| hlc.observe(event.stamp));
        let announcer = Announcer {
            store: &self.store,
            hlc: &hlc,
            session,
            writer: Writer::Watchdog,
            expires_at,
        };
        let sealed = match judge::judge(&observed, &execution, self.clock.now()) {
            Decision::Leave => return Ok(false),
            Decision::Forget => {
                self.repair(&announcer, step.as_ref(), &events).await;
                false
            }
            Decision::Seal(end) => {
                let end = read::resolve(&self.store, *end).await?;
                self.conclude(&announcer, &end).await?;
                true
            }
            Decision::End(end) => {
                let step = self.end(&announcer, &end).await?;
                self.conclude(&announcer, &step).await?;
                true
            }
        };
        // Export the trace, and tell of the verdict, before closing the lease: the next sweep finds an open lease again.
        self.tell_of(session, &events).await;
        self.notify(session).await?;
        lease::close(&self.store, session, expires_at).await?;
        Ok(sealed)
    }

    /// Tells of the verdict of a session, if it has one that was not told.
    async fn notify(&self, session: &SessionId) -> Result<(), Error> {
        let Some(notices) = &self.notices else { return Ok(()) };
        let events = read::events(&self.store, session).await?;
        match events.iter().find(|event| event.status.is_verdict()) {
            Some(verdict) => Ok(notices.tell(&self.store, &self.clock, verdict).await?),
            None => Ok(()),
        }
    }

    /// Exports the spans of a sealed session.
    async fn tell_of(&self, session: &SessionId, events: &[Announcement]) {
        if !export::is_on() {
            return;
        }
        let begun_at = self.clock.now();
        let remote = match first_execution(events) {
            Some(arn) => self.cloud.traceparent(arn).await,
            None => None,
        };
        let trace = Trace::of(session, remote);
        tracing::Span::current().record("trace_id", trace.id());
        let span = trace.leaf("watchdog.close", begun_at.nanos(), trace.session());
        export::record(span.lasting(begun_at.nanos(), self.clock.now().nanos()));
        match lifecycle::read(&self.store, &trace).await {
            Ok(spans) => spans.into_iter().for_each(export::record),
            Err(error) => tracing::warn!(%error, "A session's trace could not be exported."),
        }
    }

    /// The session's newest execution: its first one, or that of the last resume.
    async fn newest_execution(
        &self,
        session: &SessionId,
        events: &[Announcement],
    ) -> Result<Execution, Error> {
        let Some(first) = first_execution(events) else { return Ok(Execution::Absent) };
        self.cloud.newest_execution(session, first).await
    }

    /// Announces an open question if its writer died before it could.
    async fn repair(
        &self,
        announcer: &Announcer<'_, S>,
        step: Option<&Step>,
        events: &[Announcement],
    ) {
        let asked = step.filter(|step| matches!(step.body, StepBody::Ask { .. }));
        let Some(missing) = asked.map(|step| suspension(step.seq)) else { return };
        let id = missing.status.id(announcer.session, announcer.writer, missing.about);
        if events.iter().all(|event| event.id != id && !event.status.is_verdict())
            && let Err(error) = announcer.announce_within(&missing, ANNOUNCE_TIMEOUT).await
        {
            tracing::warn!(session_id = %announcer.session, %error, "An event was not written.");
        }
    }

    async fn end(&self, announcer: &Announcer<'_, S>, end: &End) -> Result<Step<Value>, Error> {
        let author = Author {
            session: announcer.session.clone(),
            runner: Runner::fresh(Writer::Watchdog.as_str()),
            expires_at: announcer.expires_at,
        };
        Ok(end_session(&self.store, announcer.hlc, &author, end).await?)
    }

    async fn conclude(&self, announcer: &Announcer<'_, S>, end: &Step<Value>) -> Result<(), Error> {
        let StepBody::End { ending, error, .. } = &end.body else {
            return Err(Error::NoEnd);
        };
        let by_agent = end.runner.as_str().starts_with(Writer::Agent.as_str());
        let announcement = task_announcement(end.seq, *ending, error.as_ref()).filter(|_| by_agent);
        if let Some(announcement) = announcement
            && let Err(error) = announcer.announce_within(&announcement, ANNOUNCE_TIMEOUT).await
        {
            tracing::warn!(session_id = %announcer.session, %error, "An event was not written.");
        }
        let verdict = seal(&self.store, announcer, end).await?;
        metrics::counter!(metric::WATCHDOG_CLOSED).increment(1);
        self.cloud.runtime.stop_session(announcer.session).await;
        tracing::warn!(
            session_id = %announcer.session, verdict = %verdict.status,
            "A session without a workflow was closed."
        );
        Ok(())
    }
}

/// The sessions of stale open leases.
#[derive(Debug, Default)]
struct Stale {
    silent: Vec<SessionId>,
    held: Vec<SessionId>,
    /// How many of the held ones wait for a place in the agent runtime.
    without_capacity: u32,
}

impl Stale {
    fn add(&mut self, item: &Item) {
        let Some(session) = key::session_of(&item.pk) else { return };
        let lease = Lease::from_item(item).ok();
        let why = lease.as_ref().and_then(Lease::hold).map(|hold| hold.why);
        self.without_capacity += u32::from(why == Some(WhyHeld::Capacity));
        let list = if why.is_some() { &mut self.held } else { &mut self.silent };
        if list.len() < SESSIONS_PER_SWEEP_MAX {
            list.push(session);
        }
    }

    fn in_order(self) -> Vec<SessionId> {
        self.silent.into_iter().chain(self.held).take(SESSIONS_PER_SWEEP_MAX).collect()
    }
}

/// A session's first execution.
fn first_execution(events: &[Announcement]) -> Option<&str> {
    let initiated = events.iter().find(|e| e.status == EventStatus::SessionInitiated);
    initiated.and_then(|event| event.execution_arn.as_deref())
}
