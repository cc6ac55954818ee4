//! What a session's events add up to, and which event may come next.
//!
//! [`status`] is a fold over a join: every event raises one lane to the highest it has seen, so
//! that any order of the same events, and any event said twice, give the same status.

use serde::{Deserialize, Serialize};

use crate::event::{About, Event, EventStatus, names};

names! {
    /// Where a session stands.
    pub enum Status {
        /// The state machine began; no agent yet.
        Initiated = "INITIATED",
        /// An agent is being invoked or works.
        Running = "RUNNING",
        /// A question or a distant time is waited for.
        Waiting = "WAITING",
        /// Ended with a result.
        Succeeded = "SUCCEEDED",
        /// Ended without one.
        Failed = "FAILED",
        /// Ended because its time was up.
        TimedOut = "TIMED_OUT",
        /// Ended because somebody asked.
        Cancelled = "CANCELLED",
        /// Never began: admission refused it.
        Rejected = "REJECTED",
    }
}

impl Status {
    /// Whether nothing comes after it.
    pub const fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Succeeded | Self::Failed | Self::TimedOut | Self::Cancelled | Self::Rejected
        )
    }
}

/// The lanes of a session: in each, the highest (number, event) seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lanes {
    /// Invocations, by attempt.
    pub invocation: Option<(u32, EventStatus)>,
    /// Requests that reached the agent, by attempt.
    pub entrypoint: Option<(u32, EventStatus)>,
    /// The background task and its interruptions, by step.
    pub task: Option<(u32, EventStatus)>,
    /// Silences, by epoch.
    pub lost: Option<(u32, EventStatus)>,
    /// Whether somebody asked for the end.
    pub cancel_requested: bool,
    /// The verdict, by end step.
    pub verdict: Option<(u32, EventStatus)>,
}

impl Lanes {
    /// The lanes after one more event.
    #[must_use]
    pub fn with(mut self, status: EventStatus, about: About) -> Self {
        use EventStatus as E;
        let seen = Some((about.ordinal(), status));
        match status {
            E::SessionInitiated => {}
            E::AgentInvocationStarted | E::AgentInvocationSucceeded | E::AgentInvocationFailed => {
                self.invocation = self.invocation.max(seen);
            }
            E::AgentEntrypointStarted | E::AgentEntrypointFailed => {
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
            | E::SessionRejected => self.verdict = self.verdict.max(seen),
        }
        self
    }

    /// The status that the lanes amount to.
    pub fn status(&self) -> Status {
        use EventStatus as E;
        match (self.verdict, self.task) {
            (Some((_, E::SessionSucceeded)), _) => Status::Succeeded,
            (Some((_, E::SessionTimedOut)), _) => Status::TimedOut,
            (Some((_, E::SessionCancelled)), _) => Status::Cancelled,
            (Some((_, E::SessionRejected)), _) => Status::Rejected,
            (Some(_), _) => Status::Failed,
            (None, Some((_, E::AgentBackgroundTaskSuspended))) => Status::Waiting,
            _ if self.invocation.is_some() || self.entrypoint.is_some() || self.task.is_some() => {
                Status::Running
            }
            _ => Status::Initiated,
        }
    }
}

/// The lanes of a set of events, in any order.
pub fn lanes<'a>(events: impl IntoIterator<Item = &'a Event>) -> Lanes {
    events.into_iter().fold(Lanes::default(), |lanes, event| lanes.with(event.status, event.about))
}

/// The status of a set of events, in any order; no events at all count as initiated.
pub fn status<'a>(events: impl IntoIterator<Item = &'a Event>) -> Status {
    lanes(events).status()
}

/// An event that a writer may not add.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session that is {status} takes no {event}")]
pub struct IllegalTransition {
    /// Where the session stands.
    pub status: Status,
    /// What was to be added.
    pub event: EventStatus,
}

/// Whether a writer that sees `status` may add `event`.
///
/// An event may be missing where it could not be written, so what is admitted is wider than the
/// path of an undisturbed session.
///
/// # Errors
/// When it may not; the writer then writes nothing.
pub fn admits(status: Status, event: EventStatus) -> Result<(), IllegalTransition> {
    use EventStatus as E;
    let admitted = match status {
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

    #[test]
    fn the_matrix_of_admitted_events() {
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

    fn any_event() -> impl Strategy<Value = (EventStatus, About)> {
        (0..EventStatus::ALL.len(), 0_u32..4)
            .prop_map(|(index, n)| (EventStatus::ALL[index], About::Step(n)))
    }

    proptest! {
        #[test]
        fn any_order_and_any_repetition_give_one_status(
            events in proptest::collection::vec(any_event(), 0..12),
            shuffle in proptest::collection::vec(0_usize..1_000, 24),
        ) {
            let fold = |events: &[(EventStatus, About)]| {
                events.iter().fold(Lanes::default(), |lanes, (status, about)| lanes.with(*status, *about))
            };
            let mut shuffled: Vec<_> = events.iter().chain(&events).copied().collect();
            for (place, other) in shuffle.iter().enumerate() {
                if !shuffled.is_empty() {
                    let (a, b) = (place % shuffled.len(), other % shuffled.len());
                    shuffled.swap(a, b);
                }
            }
            prop_assert_eq!(fold(&events), fold(&shuffled));
        }
    }
}
