//! Spans of the session, its invocations and its runs, derived from the records when the session is
//! sealed.

use journal::clock::Stamp;
use journal::event::{About, Event, EventStatus as E, Writer};
use journal::read;
use journal::step::Step;
use journal::store::{Error, Store};
use telemetry::attribute;
use telemetry::span::{Kind, Span};

use super::{Trace, effects};

/// The run of one claim.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    epoch: u32,
    start: Stamp,
    end: Stamp,
    /// The invocation attempt that started it.
    attempt: Option<u32>,
    agent: Option<String>,
    how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// The runner announced its end, which it does after exporting its spans.
    Said(E),
    /// The runner was lost, or its end is unknown.
    Unsaid,
}

/// Whether a runner may have died before exporting its spans, or a question was asked: then [`spans`]
/// needs all steps.
pub fn wants_steps(events: &[Event], epochs: u32) -> bool {
    let has_asked = |run: &Run| run.how == How::Said(E::AgentBackgroundTaskSuspended);
    runs(events, epochs).iter().any(|run| run.how == How::Unsaid || has_asked(run))
}

/// The spans of a sealed session: the session, its invocations, runs and questions, and the effects of
/// runs that did not announce their end. `events` are in order and include the verdict. `epochs` is the
/// number of claims: the newest step's epoch. `steps` may be empty unless [`wants_steps`].
pub fn spans<P>(trace: &Trace, events: &[Event], epochs: u32, steps: &[Step<P>]) -> Vec<Span> {
    let runs = runs(events, epochs);
    let mut spans = vec![session(trace, events, &runs)];
    spans.extend(invocations(trace, events));
    spans.extend(runs.iter().map(|run| run.span(trace)));
    let mut folded = effects::Effects::default();
    for step in steps {
        for attempt in folded.fold(step) {
            let of_lost = |run: &Run| run.epoch == attempt.epoch && run.how == How::Unsaid;
            if attempt.how.is_question() {
                spans.push(effects::span(trace, &attempt));
            } else if runs.iter().any(of_lost) || attempt.how == effects::How::Lost {
                spans.push(effects::span(trace, &attempt).with(attribute::RECOVERED, true));
            }
        }
    }
    spans
}

/// The spans of a sealed session. The sealer exports them before it replies, and again if the request
/// is repeated.
///
/// # Errors
/// If the journal cannot be read. The session remains sealed.
pub async fn read<S: Store>(store: &S, trace: &Trace) -> Result<Vec<Span>, Error> {
    let epochs = read::newest_step(store, &trace.session).await?.map_or(0, |step| step.epoch);
    let events = read::events(store, &trace.session).await?;
    let steps = if wants_steps(&events, epochs) {
        read::steps(store, &trace.session).await?
    } else {
        Vec::new()
    };
    Ok(spans(trace, &events, epochs, &steps))
}

fn session(trace: &Trace, events: &[Event], runs: &[Run]) -> Span {
    let verdict = events.iter().find(|event| event.status.is_verdict());
    let start = events.first().map_or(Stamp::default(), |event| event.stamp);
    let end = verdict.or(events.last()).map_or(start, |event| event.stamp);
    let status = verdict.map_or("open", |verdict| verdict.status.as_str());
    let span = Span::new(trace.session(), trace.remote(), "session")
        .of_kind(Kind::Server)
        .lasting(start.nanos(), end.nanos())
        .with(attribute::SESSION_ID, trace.session.as_str())
        .with(attribute::STATUS, status);
    let span = match runs.iter().find_map(|run| run.agent.as_deref()) {
        Some(agent) => span.with(attribute::AGENT, agent),
        None => span,
    };
    if status == E::SessionSucceeded.as_str() { span } else { span.failing(status) }
}

fn invocations<'a>(trace: &'a Trace, events: &'a [Event]) -> impl Iterator<Item = Span> + 'a {
    let attempt = |event: &Event| match event.about {
        About::Attempt(attempt) => Some(attempt),
        _ => None,
    };
    let mut attempts: Vec<u32> = events.iter().filter_map(attempt).collect();
    attempts.sort_unstable();
    attempts.dedup();
    attempts.into_iter().map(move |number| {
        let mut told = events.iter().filter(|event| attempt(event) == Some(number));
        let start = told.clone().next().map_or(Stamp::default(), |event| event.stamp);
        let end = told.clone().next_back().map_or(start, |event| event.stamp);
        let answered = told.find(|event| {
            matches!(event.status, E::AgentInvocationSucceeded | E::AgentInvocationFailed)
        });
        let span =
            Span::new(trace.invocation(number), Some(trace.session()), attribute::INVOKE_AGENT)
                .of_kind(Kind::Client)
                .lasting(start.nanos(), end.nanos())
                .with(attribute::SESSION_ID, trace.session.as_str())
                .with(attribute::OPERATION, attribute::INVOKE_AGENT)
                .with(attribute::ATTEMPT, number);
        match answered.map(|event| event.status) {
            Some(E::AgentInvocationSucceeded) => span,
            Some(status) => span.failing(status.as_str()),
            // It may have been accepted.
            None => span.failing("unknown"),
        }
    })
}

fn runs(events: &[Event], epochs: u32) -> Vec<Run> {
    let first = events.first().map_or(Stamp::default(), |event| event.stamp);
    let started: Vec<Option<&Event>> =
        (1..=epochs).map(|epoch| events.iter().find(|event| begins(event, epoch))).collect();
    (1..=epochs)
        .zip(&started)
        .map(|(epoch, begun)| {
            let start = begun.map_or(first, |event| event.stamp);
            let next = started.iter().skip(epoch as usize).flatten().next();
            let until = next.map_or(Stamp::from_nanos(i64::MAX), |event| event.stamp);
            let during = || events.iter().filter(|e| e.stamp > start && e.stamp < until);
            let said = during().find(|event| says_its_end(event));
            let end = said.or_else(|| during().next_back()).map_or(start, |event| event.stamp);
            let came = events.iter().rev().filter(|event| event.stamp < start);
            let mut came = came.filter(|event| event.status == E::AgentEntrypointStarted);
            Run {
                epoch,
                start,
                end,
                attempt: came.next().map(|event| event.about.ordinal()),
                agent: begun.and_then(|event| {
                    Some(event.detail.as_ref()?.get("agent")?.as_str()?.to_owned())
                }),
                how: said.map_or(How::Unsaid, |event| How::Said(event.status)),
            }
        })
        .collect()
}

fn begins(event: &Event, epoch: u32) -> bool {
    matches!(event.status, E::AgentBackgroundTaskStarted | E::AgentBackgroundTaskResumed)
        && event.detail.as_ref().is_some_and(|detail| detail["epoch"] == epoch)
}

fn says_its_end(event: &Event) -> bool {
    use E::{
        AgentBackgroundTaskCompleted, AgentBackgroundTaskFailed, AgentBackgroundTaskSuspended,
    };
    event.writer == Writer::Agent
        && matches!(
            event.status,
            AgentBackgroundTaskCompleted | AgentBackgroundTaskFailed | AgentBackgroundTaskSuspended
        )
}

impl Run {
    fn span(&self, trace: &Trace) -> Span {
        let parent = self.attempt.map_or_else(|| trace.session(), |n| trace.invocation(n));
        let span = Span::new(trace.run(self.epoch), Some(parent), "agent.run")
            .lasting(self.start.nanos(), self.end.nanos())
            .with(attribute::SESSION_ID, trace.session.as_str())
            .with(attribute::EPOCH, self.epoch);
        let span = match &self.agent {
            Some(agent) => span.with(attribute::AGENT, agent.as_str()),
            None => span,
        };
        match self.how {
            How::Said(E::AgentBackgroundTaskFailed) => span.failing("failed"),
            How::Said(status) => span.with(attribute::STATUS, status.as_str()),
            How::Unsaid => span.failing("unknown"),
        }
    }
}
