//! Derives the state of a session without a running execution from its journal.

use journal::clock::Stamp;
use journal::event::{About, Event, EventStatus};
use journal::step::{Step, StepBody};

use crate::contract::{InvokeRequest, Judgement, Resume};

/// The input of the execution that continues the session.
///
/// `working`: the agent may still be running, because stopping an execution does not stop the agent.
///
/// `resumes`: the number of the session's resumes, this one included.
pub fn standing<P>(
    events: &[Event],
    steps: &[Step<P>],
    expires_at: i64,
    working: bool,
    resumes: u32,
) -> Resume {
    let attempts = events.iter().filter_map(|event| match event.about {
        About::Attempt(attempt) => Some(attempt),
        _ => None,
    });
    let made = attempts.max().map_or(0, InvokeRequest::invocation_of);
    let newest = steps.last();
    let epoch = newest.map_or(0, |step| step.epoch);
    let is_cancelled = events.iter().any(|event| event.status == EventStatus::CancelRequested);
    let nothing_to_do = is_cancelled
        || newest
            .is_some_and(|step| matches!(step.body, StepBody::Ask { .. } | StepBody::End { .. }));
    let seen = newest_stamp(events, steps);
    if nothing_to_do || (working && epoch > 0) {
        // As if the agent had just been invoked: the poller watches its heartbeat, and ends the
        // session, waits or invokes the agent again.
        let epoch = epoch.saturating_sub(1);
        let (status, invocation) = (Judgement::Busy, made);
        return Resume { status, invocation, epoch, expires_at, seen, resumes };
    }
    let (status, invocation) = (Judgement::Resume, made + 1);
    Resume { status, invocation, epoch, expires_at, seen, resumes }
}

fn newest_stamp<P>(events: &[Event], steps: &[Step<P>]) -> Stamp {
    let stamps = events.iter().map(|event| event.stamp);
    stamps.chain(steps.iter().map(|step| step.stamp)).max().unwrap_or_default()
}
