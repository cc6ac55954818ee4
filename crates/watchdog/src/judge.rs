//! The decision about one session, without IO.

use journal::chain::End;
use journal::clock::Stamp;
use journal::error_message::ErrorMessage;
use journal::event::{Event, EventStatus};
use journal::step::{Ending, Step, StepBody};
use journal::version;
use serde_json::Value;
use workflow::error_name::EXECUTION_BROKEN;
use workflow::limits::STALE_AFTER;

/// The error message of a session that the watchdog ends.
///
/// Source: the incident specification, section 11.
pub const REASON: &str = "stale watchdog timeout";

/// The category of a session that the watchdog ends.
pub const CATEGORY: &str = "stale";

/// The state of a session's newest execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Execution {
    /// It is running and ends the session itself.
    Running,
    Ended {
        how: How,
        at: Stamp,
    },
    /// None exists: it never started, or AWS has deleted its history.
    Absent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Succeeded,
    /// Its definition ended it, or failed.
    Failed,
    /// The stack could not run it.
    Broken,
    /// It reached its own timeout.
    TimedOut,
    Aborted,
}

/// The facts about a session.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    pub events: &'a [Event],
    pub step: Option<&'a Step>,
    /// Whether its agent was ever invoked.
    pub has_lease: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Do nothing: the workflow, or a person who resumes the session, ends it.
    Leave,
    /// Do nothing and close the lease: the session is sealed, or waits for a person or for a version of its agent.
    Forget,
    /// It has ended by this step: seal it.
    Seal(Box<Step>),
    /// End it and seal it.
    End(End),
}

pub fn judge(observed: &Observed<'_>, execution: &Execution, now: Stamp) -> Decision {
    if observed.events.iter().any(|event| event.status.is_verdict()) {
        return Decision::Forget;
    }
    if *execution == Execution::Running {
        return Decision::Leave;
    }
    if let Some(step) = observed.step {
        match step.body {
            StepBody::End { .. } => return Decision::Seal(Box::new(step.clone())),
            StepBody::Ask { .. } => return Decision::Forget,
            _ if waits_for_version(observed.events, step) => return Decision::Forget,
            _ => {}
        }
    }
    if let Execution::Ended { how: How::Aborted, at } = execution
        && observed.has_lease
        && now.since(*at) < STALE_AFTER
    {
        // The person who stopped it may resume it.
        return Decision::Leave;
    }
    Decision::End(end(observed.events, execution))
}

/// Whether the session waits for a version that its agent lacked after the newest step. A cancelled one does not.
fn waits_for_version(events: &[Event], newest: &Step) -> bool {
    let is_cancelled = events.iter().any(|event| event.status == EventStatus::CancelRequested);
    let lacked = version::missing(events).is_some_and(|missing| missing.step == newest.seq);
    lacked && !is_cancelled
}

fn end(events: &[Event], execution: &Execution) -> End {
    let cancel = events.iter().find(|event| event.status == EventStatus::CancelRequested);
    if let Some(cancel) = cancel {
        let reason = cancel.detail.as_ref().and_then(|detail| detail["reason"].as_str());
        let reason = reason.unwrap_or("by request");
        return End {
            ending: Ending::Cancelled,
            error: Some(ErrorMessage::new("Cancelled", "CancelRequested", reason)),
            category: None,
            result: Value::Null,
        };
    }
    let (ending, code, category) = match execution {
        Execution::Ended { how: How::TimedOut, .. } => {
            (Ending::TimedOut, "ExecutionTimedOut", "timeout")
        }
        Execution::Ended { how: How::Aborted, .. } => {
            (Ending::Failed, "ExecutionStopped", CATEGORY)
        }
        Execution::Ended { how: How::Failed, .. } => (Ending::Failed, "ExecutionFailed", CATEGORY),
        Execution::Ended { how: How::Broken, .. } => (Ending::Failed, EXECUTION_BROKEN, CATEGORY),
        Execution::Ended { how: How::Succeeded, .. } => {
            (Ending::Failed, "ExecutionEnded", CATEGORY)
        }
        Execution::Running | Execution::Absent => (Ending::Failed, "NoExecution", CATEGORY),
    };
    End {
        ending,
        error: Some(ErrorMessage::new("Unwatched", code, REASON)),
        category: Some(category.to_owned()),
        result: Value::Null,
    }
}
