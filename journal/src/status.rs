//! Computes a session's status from its events, and decides which event may follow.
//!
//! [`status`] is a commutative and idempotent fold: each event raises one lane to the highest value
//! seen, and the earliest verdict counts. So any order of the same events, and any repetition, gives the same status.
//!
//! Events of writers that know only the nine events of the event journaling specification have no verdict. A session
//! that has only such events ends by them: with the agent's completion or failure, as that specification's workflow does.

use serde::{Deserialize, Serialize};

use crate::clock::Stamp;
use crate::event::{Event, EventStatus, names};

names! {
    /// The status of a session.
    pub enum Status {
        /// Started; no agent has been invoked yet.
        Initiated = "INITIATED",
        /// An agent is being invoked or is working.
        Running = "RUNNING",
        /// Waits for an answer, a point in time, a version of its agent, or its turn.
        Waiting = "WAITING",
        Succeeded = "SUCCEEDED",
        Failed = "FAILED",
        /// Exceeded its deadline.
        TimedOut = "TIMED_OUT",
        Cancelled = "CANCELLED",
        /// Rejected by admission before it started.
        Rejected = "REJECTED",
    }
}

impl Status {
    /// The status that a verdict gives; `None` for other events.
    pub const fn of_verdict(event: EventStatus) -> Option<Self> {
        match event {
            EventStatus::SessionSucceeded => Some(Self::Succeeded),
            EventStatus::SessionFailed => Some(Self::Failed),
            EventStatus::SessionTimedOut => Some(Self::TimedOut),
            EventStatus::SessionCancelled => Some(Self::Cancelled),
            EventStatus::SessionRejected => Some(Self::Rejected),
            _ => None,
        }
    }

    /// Whether no status follows it.
    pub const fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Succeeded | Self::Failed | Self::TimedOut | Self::Cancelled | Self::Rejected
        )
    }
}

/// The lanes of a session: in each but the verdict's, the highest (number, event) seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lanes {
    /// Invocations, by attempt.
    pub invocation: Option<(u32, EventStatus)>,
    /// The newest attempt after which the session waits for its turn: for a place, or for the end of a halt.
    pub declined: Option<u32>,
    /// Requests received by the agent, by attempt.
    pub entrypoint: Option<(u32, EventStatus)>,
    /// The background task and its suspensions, by step.
    pub task: Option<(u32, EventStatus)>,
    /// Losses, by epoch.
    pub lost: Option<(u32, EventStatus)>,
    pub cancel_requested: bool,
    /// The verdict: the earliest counts, since anybody may add a later one. By time and sort key.
    pub verdict: Option<(Stamp, String, EventStatus)>,
    /// The end in events of the specification alone: first the earliest of the background task, else that of a request
    /// that failed before it. By rank, time and sort key.
    pub nine_end: Option<(u8, Stamp, String, EventStatus)>,
    /// Whether there is an event of this format, in which only a verdict ends a session.
    pub is_of_this_format: bool,
}

impl Lanes {
    /// Adds an event to the lanes.
    #[must_use]
    pub fn with(mut self, event: &Event) -> Self {
        use EventStatus as E;
        let seen = Some((event.about.ordinal(), event.status));
        self.is_of_this_format |= event.is_of_this_format();
        if let Some(rank) = rank_without_verdict(event) {
            let seen = (rank, event.stamp, event.sk.clone(), event.status);
            self.nine_end = Some(self.nine_end.map_or(seen.clone(), |end| end.min(seen)));
        }
        match event.status {
            E::SessionInitiated | E::ResumeRequested | E::SessionErased => {}
            E::AgentInvocationStarted | E::AgentInvocationSucceeded | E::AgentInvocationFailed => {
                self.invocation = self.invocation.max(seen);
                if is_declined(event) {
                    self.declined = self.declined.max(Some(event.about.ordinal()));
                }
            }
            E::AgentEntrypointStarted | E::AgentEntrypointFailed | E::AgentVersionMissing => {
                self.entrypoint = self.entrypoint.max(seen);
            }
            E::AgentBackgroundTaskStarted
            | E::AgentBackgroundTaskCompleted
            | E::AgentBackgroundTaskFailed
            | E::AgentBackgroundTaskSuspended
            | E::AgentBackgroundTaskResumed
            | E::InputReceived => self.task = self.task.max(seen),
            E::AgentLost => self.lost = self.lost.max(seen),
            E::CancelRequested => self.cancel_requested = true,
            E::SessionSucceeded
            | E::SessionFailed
            | E::SessionTimedOut
            | E::SessionCancelled
            | E::SessionRejected => {
                let seen = (event.stamp, event.sk.clone(), event.status);
                self.verdict = Some(self.verdict.map_or(seen.clone(), |verdict| verdict.min(seen)));
            }
        }
        self
    }

    /// The end of a session whose events are all of the specification alone.
    pub fn end_without_verdict(&self) -> Option<(Stamp, EventStatus)> {
        let (_, stamp, _, event) = self.nine_end.as_ref().filter(|_| !self.is_of_this_format)?;
        Some((*stamp, *event))
    }

    pub fn status(&self) -> Status {
        use EventStatus as E;
        let verdict = self.verdict.as_ref();
        if let Some(status) = verdict.and_then(|(_, _, event)| Status::of_verdict(*event)) {
            return status;
        }
        if let Some((_, end)) = self.end_without_verdict() {
            return match end {
                E::AgentBackgroundTaskCompleted => Status::Succeeded,
                _ => Status::Failed,
            };
        }
        match self.task {
            Some((_, E::AgentBackgroundTaskSuspended)) => Status::Waiting,
            _ if matches!(self.entrypoint, Some((_, E::AgentVersionMissing))) => Status::Waiting,
            None if self.awaits_its_turn() => Status::Waiting,
            _ if self.invocation.is_some() || self.entrypoint.is_some() || self.task.is_some() => {
                Status::Running
            }
            _ => Status::Initiated,
        }
    }
}

/// The rank of an event with which the specification's workflow ends; `None` for other events. The workflow may have
/// retried a request that failed, so an end of the background task takes precedence.
fn rank_without_verdict(event: &Event) -> Option<u8> {
    use EventStatus as E;
    if event.is_of_this_format() {
        return None;
    }
    match event.status {
        E::AgentBackgroundTaskCompleted | E::AgentBackgroundTaskFailed => Some(0),
        E::AgentInvocationFailed | E::AgentEntrypointFailed => Some(1),
        _ => None,
    }
}

impl Lanes {
    /// Whether nothing has happened since the agent was not taken.
    fn awaits_its_turn(&self) -> bool {
        let newest = self.invocation.max(self.entrypoint).map(|(attempt, _)| attempt);
        self.declined.is_some() && self.declined == newest
    }
}

/// Whether the agent was not invoked after all, because it is not the session's turn.
fn is_declined(event: &Event) -> bool {
    let outcome = event.detail.as_ref().and_then(|detail| detail["outcome"].as_str());
    event.status == EventStatus::AgentInvocationSucceeded
        && matches!(outcome, Some("queued" | "halted"))
}

/// The lanes of events in any order.
pub fn lanes<'a>(events: impl IntoIterator<Item = &'a Event>) -> Lanes {
    events.into_iter().fold(Lanes::default(), Lanes::with)
}

/// The status of events in any order; without events a session counts as initiated.
pub fn status<'a>(events: impl IntoIterator<Item = &'a Event>) -> Status {
    lanes(events).status()
}

/// A writer may not add this event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session with status {status} does not accept {event}")]
pub struct IllegalTransition {
    pub status: Status,
    /// The event to add.
    pub event: EventStatus,
}

/// Whether a writer that sees `status` may add `event`.
///
/// This admits more than the sequence of an undisturbed session, because an event that could not be
/// written may be missing.
///
/// # Errors
/// The event is not allowed; do not write it.
pub fn admits(status: Status, event: EventStatus) -> Result<(), IllegalTransition> {
    use EventStatus as E;
    let admitted = match status {
        // Only the key of an ended session is destroyed.
        _ if event == E::SessionErased => false,
        Status::Initiated => !matches!(
            event,
            E::SessionInitiated
                | E::SessionSucceeded
                | E::InputReceived
                | E::AgentBackgroundTaskResumed
        ),
        // A question and its answer may be durable before the suspension is announced.
        Status::Running => !matches!(event, E::SessionInitiated | E::SessionRejected),
        Status::Waiting => !matches!(
            event,
            E::SessionInitiated | E::SessionSucceeded | E::SessionRejected | E::AgentLost
        ),
        _ => false,
    };
    if admitted { Ok(()) } else { Err(IllegalTransition { status, event }) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::{About, Draft, Writer};
    use crate::item::Item;

    #[test]
    fn admitted_events_per_status_match_the_golden_matrix() {
        let mut matrix = String::new();
        for event in EventStatus::ALL {
            matrix.push_str(&format!("{event:<32}"));
            for status in Status::ALL {
                let mark = if admits(*status, *event).is_ok() { status.as_str() } else { "-" };
                matrix.push_str(&format!(" {mark:<9}"));
            }
            matrix = matrix.trim_end().to_owned() + "\n";
        }
        insta::assert_snapshot!("admits", matrix);
    }

    #[test]
    fn nothing_follows_a_terminal_event() {
        for status in Status::ALL.iter().filter(|status| status.is_terminal()) {
            for event in EventStatus::ALL {
                assert!(admits(*status, *event).is_err(), "{status} {event}");
            }
        }
    }

    fn event(status: EventStatus, number: u32, nanos: i64) -> Event {
        let session = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap();
        let draft = Draft::new(status, About::Step(number));
        let at = Stamp::from_nanos(nanos);
        Event::from_item(&draft.to_item(&session, Writer::Agent, at, None, 0)).unwrap()
    }

    fn any_event() -> impl Strategy<Value = Event> {
        (0..EventStatus::ALL.len(), 0_u32..4, 0_i64..4, proptest::bool::ANY).prop_map(
            |(index, number, nanos, is_of_this_format)| {
                let status = EventStatus::ALL[index];
                if is_of_this_format {
                    return event(status, number, nanos);
                }
                of_specification(status, &Stamp::from_nanos(nanos).to_string())
            },
        )
    }

    /// An event of the specification alone: status and time, with three digits or as Python writes them.
    fn of_specification(status: EventStatus, time: &str) -> Event {
        let item =
            Item::new("SESSION#0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f", format!("EVENT#{time}"))
                .with("Status", status.as_str())
                .with("Timestamp", time);
        Event::from_item(&item).unwrap()
    }

    #[test]
    fn records_of_the_specification_alone_end_without_verdict() {
        use EventStatus as E;
        let begun = [
            of_specification(E::SessionInitiated, "2024-11-04T10:30:00.000Z"),
            of_specification(E::AgentInvocationStarted, "2024-11-04T10:30:01.234Z"),
            of_specification(E::AgentEntrypointStarted, "2024-11-04T10:30:02.123456+00:00"),
            of_specification(E::AgentBackgroundTaskStarted, "2024-11-04T10:30:02+00:00"),
        ];
        assert_eq!(status(&begun), Status::Running);
        let python = "2024-11-04T10:35:45.678901+00:00";
        for (last, expected) in [
            (E::AgentBackgroundTaskCompleted, Status::Succeeded),
            (E::AgentBackgroundTaskFailed, Status::Failed),
            (E::AgentEntrypointFailed, Status::Failed),
            (E::AgentInvocationFailed, Status::Failed),
        ] {
            let last = of_specification(last, python);
            assert_eq!(status(begun.iter().chain([&last])), expected, "{}", last.status);
            let retried = of_specification(E::AgentBackgroundTaskCompleted, "2024-11-04T11:00:00Z");
            let is_final = last.status == E::AgentBackgroundTaskFailed;
            let expected = if is_final { Status::Failed } else { Status::Succeeded };
            assert_eq!(status(begun.iter().chain([&last, &retried])), expected, "{}", last.status);
            // In a session of this format, only a verdict ends it.
            let ours = event(E::AgentInvocationStarted, 1, 0);
            assert_eq!(status(begun.iter().chain([&last, &ours])), Status::Running);
        }
    }

    #[test]
    fn a_later_verdict_does_not_change_the_status() {
        let failed = event(EventStatus::SessionFailed, 1, 5);
        let later = event(EventStatus::SessionSucceeded, 2, 6);
        assert_eq!(status([&failed, &later]), Status::Failed);
        assert_eq!(status([&later, &failed]), Status::Failed);
    }

    #[test]
    fn a_session_that_awaits_its_turn_is_waiting() {
        let told = |status, attempt, outcome: Option<&str>| {
            let session = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap();
            let draft = Draft::new(status, About::Attempt(attempt));
            let draft = match outcome {
                Some(outcome) => draft.with_detail(serde_json::json!({ "outcome": outcome })),
                None => draft,
            };
            let at = Stamp::from_nanos(i64::from(attempt));
            Event::from_item(&draft.to_item(&session, Writer::Invoker, at, None, 0)).unwrap()
        };
        let (started, taken) =
            (EventStatus::AgentInvocationStarted, EventStatus::AgentInvocationSucceeded);
        let mut events = vec![told(started, 10, None), told(taken, 10, Some("queued"))];
        assert_eq!(status(&events), Status::Waiting);
        events.push(told(started, 20, None));
        assert_eq!(status(&events), Status::Running);
        events.push(told(taken, 20, Some("accepted")));
        assert_eq!(status(&events), Status::Running);
        let halted = [told(started, 10, None), told(taken, 10, Some("halted"))];
        assert_eq!(status(&halted), Status::Waiting);
    }

    proptest! {
        #[test]
        fn any_order_and_any_repetition_give_one_status(
            events in proptest::collection::vec(any_event(), 0..12),
            shuffle in proptest::collection::vec(0_usize..1_000, 24),
        ) {
            let mut shuffled: Vec<_> = events.iter().chain(&events).cloned().collect();
            for (place, other) in shuffle.iter().enumerate() {
                if !shuffled.is_empty() {
                    let (a, b) = (place % shuffled.len(), other % shuffled.len());
                    shuffled.swap(a, b);
                }
            }
            prop_assert_eq!(lanes(&events), lanes(&shuffled));
        }
    }
}
