//! Where a session stands whose execution is gone, read off its journal.

use journal::clock::Stamp;
use journal::event::{About, Event, EventStatus};
use journal::step::{Step, StepBody};

use crate::contract::{InvokeRequest, Judgement, Resume};

/// What the execution that carries the session on is told.
///
/// `working`: its agent may still be at work, since stopping an execution does not stop it.
pub fn standing<P>(events: &[Event], steps: &[Step<P>], expires_at: i64, working: bool) -> Resume {
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
        // As if the agent had been invoked a moment ago: the poller watches its beat, and ends,
        // waits or invokes again as it finds.
        let epoch = epoch.saturating_sub(1);
        return Resume { status: Judgement::Busy, invocation: made, epoch, expires_at, seen };
    }
    Resume { status: Judgement::Resume, invocation: made + 1, epoch, expires_at, seen }
}

fn newest_stamp<P>(events: &[Event], steps: &[Step<P>]) -> Stamp {
    let stamps = events.iter().map(|event| event.stamp);
    stamps.chain(steps.iter().map(|step| step.stamp)).max().unwrap_or_default()
}
