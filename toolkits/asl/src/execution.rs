//! One execution: a fold of its history, and what comes next.
//!
//! ```text
//!            next(now)                    a callback, an answer, an abort
//!  shell ──────────────▶ Execution ◀────────────────────────────── shell
//!    ▲  Record(events)      │  Ok(event)                              │
//!    └──── append durably ──┴──────────── then apply ◀────────────────┘
//! ```
//!
//! Only [`Execution::apply`] changes an execution (and [`Execution::heartbeat`], which is not in the
//! history). `next` and the inputs return proposals: append the events durably, apply them, then call
//! `next` again. If the append fails, drop the execution and replay. A replayed prefix of a history
//! continues exactly as the execution would have: all decisions depend only on the definition, the
//! [`Start`] and the events.
//!
//! An execution is a tree of threads: one for the machine, and one for each running branch or iteration
//! of a `Parallel` or `Map` (`thread`). `decide` computes the next event of the thread that has been
//! idle longest. `fold` finds an event's thread by its `previousEventId`, as Step Functions defines it:
//! the previous event of the same thread, but 0 for the first state's entry, an abort and the machine's
//! timeout. If an expression fails when its state starts, the event has the same `previousEventId` as
//! the state's entry.

mod decide;
mod distributed;
mod fold;
mod fork;
mod inputs;
mod join;
mod map_run;
mod output;
mod redrive;
mod scope;
mod task;
mod thread;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::definition::Definition;
use crate::history::{Event, EventKind, Failure};
use crate::time::Timestamp;

pub use distributed::RUN_EVENTS_MAX;
pub use fold::ReplayError;
pub use fork::CONCURRENCY_MAX;
pub use inputs::{AlreadyEnded, CallbackError, TaskClosed};
pub use map_run::{MapRun, Reading, Source, Writing};
pub use redrive::{NotRedrivable, REDRIVE_EVENTS_MAX};
use thread::{Attempt, Thread};

/// Largest input, result, output, or set of variables assigned together, in bytes of JSON text.
///
/// Source: AWS, "Step Functions service quotas", 256 KiB.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024;
/// Largest sum of all variables, in bytes of JSON text.
///
/// Source: AWS, "Passing data between states with variables", limits, 10 MiB.
pub const VARIABLES_BYTES_MAX: usize = 10 * 1024 * 1024;
/// Most events in one [`Next::Record`], so that a machine that loops without waiting still yields.
pub const BATCH_EVENTS_MAX: usize = 100;

/// The parameters of an execution. The caller stores them: replay needs them together with the
/// history.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// ARN of this execution. Its region appears in `TaskScheduled` events.
    pub execution_arn: String,
    pub execution_name: String,
    pub role_arn: String,
    pub state_machine_arn: String,
    pub state_machine_name: String,
    /// The input, JSON text.
    pub input: String,
    /// Start time; the machine's timeout counts from here.
    pub started_at: Timestamp,
    /// Secret random seed of task tokens, `$random()`, `$uuid()` and retry jitter.
    pub token_seed: String,
}

/// An execution cannot start with this input.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// AWS returns `InvalidExecutionInput`.
    #[error("input is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// AWS returns `ValidationException`.
    #[error("input of {0} bytes is larger than 262144")]
    TooLarge(usize),
}

/// What the caller does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Append these events durably, apply them, then call `next` again.
    Record(Vec<Event>),
    /// Make these calls unless they are in flight already; a `Parallel` or `Map` can have several.
    /// Call `next` again at `wake_at` or when a call has ended.
    ///
    /// After a crash the same calls are requested again, with the same arguments and tokens: each
    /// call is made at least once.
    RunTasks {
        requests: Vec<TaskRequest>,
        /// The earliest deadline; call `next` again no later.
        wake_at: Timestamp,
    },
    /// Nothing to do until this time or an input.
    WaitUntil(Timestamp),
    Done(Outcome),
}

/// A call that a task makes.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRequest {
    /// The id of the `TaskScheduled` event, unique within the execution.
    pub event_id: u64,
    pub state: String,
    /// `Resource` as the definition has it.
    pub resource: String,
    pub arguments: Value,
    /// The task token, if the task waits for a callback.
    pub token: Option<String>,
    pub timeout_at: Timestamp,
    /// Longest time between heartbeats, in seconds.
    pub heartbeat_s: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// With an output, JSON text.
    Succeeded(String),
    /// A `Fail` state, or an error that no catcher matched.
    Failed(Failure),
    /// The machine's own `TimeoutSeconds` passed. `DescribeExecution` returns no error name for it;
    /// only the event has one.
    TimedOut,
    /// `StopExecution`.
    Aborted(Failure),
}

impl Outcome {
    /// The status in the reply of `DescribeExecution`.
    pub const fn status(&self) -> &'static str {
        match self {
            Outcome::Succeeded(_) => "SUCCEEDED",
            Outcome::Failed(_) => "FAILED",
            Outcome::TimedOut => "TIMED_OUT",
            Outcome::Aborted(_) => "ABORTED",
        }
    }
}

/// A running or ended execution. Cheap to clone; `Send` and `Sync`.
#[derive(Clone, Debug)]
pub struct Execution {
    definition: Arc<Definition>,
    start: Arc<Start>,
    input: Arc<Value>,
    last_event_id: u64,
    newest_at: Timestamp,
    wall_ahead_ms: i64,
    redrives: u64,
    redriven_at: Option<Timestamp>,
    has_children: bool,
    phase: Phase,
}

#[derive(Clone, Debug)]
enum Phase {
    Before,
    Running(Thread),
    /// With the thread as it was, from which a redrive continues.
    Ended(Outcome, Box<Thread>),
}

impl Execution {
    /// An execution without history; [`Execution::next`] starts it.
    ///
    /// # Errors
    /// The input is not JSON or too large. Reject the request.
    pub fn new(definition: Arc<Definition>, start: Start) -> Result<Execution, StartError> {
        if start.input.len() > PAYLOAD_BYTES_MAX {
            return Err(StartError::TooLarge(start.input.len()));
        }
        let input = serde_json::from_str(&start.input).map_err(StartError::NotJson)?;
        Ok(Execution {
            definition,
            newest_at: start.started_at,
            start: Arc::new(start),
            input: Arc::new(input),
            last_event_id: 0,
            wall_ahead_ms: 0,
            redrives: 0,
            redriven_at: None,
            has_children: false,
            phase: Phase::Before,
        })
    }

    /// Rebuilds an execution from its history. Pass the definition that it started with: a
    /// definition that changed since is a different state machine.
    ///
    /// Heartbeats are not in the history. After a replay, call [`Execution::heartbeat`] with the
    /// time of the last one, or of the restart. Otherwise a live task counts as silent since it was
    /// scheduled.
    ///
    /// # Errors
    /// The start is invalid, or the history does not belong to this definition.
    pub fn replay<'a>(
        definition: Arc<Definition>,
        start: Start,
        history: impl IntoIterator<Item = &'a Event>,
    ) -> Result<Execution, ReplayError> {
        let mut execution = Execution::new(definition, start)?;
        for event in history {
            execution.apply(event)?;
        }
        Ok(execution)
    }

    /// What to do next. Call it after applying events, and at the time that the last result named.
    pub fn next(&self, now: Timestamp) -> Next {
        self.ahead(now).0
    }

    /// Like [`Execution::next`]; also returns the execution as it will be once the events are
    /// applied.
    pub fn ahead(&self, now: Timestamp) -> (Next, Execution) {
        let mut ahead = self.clone();
        let mut events = Vec::new();
        while events.len() < BATCH_EVENTS_MAX {
            match ahead.decide(now) {
                Decision::Record { previous_event_id, kind } => {
                    let event = Event {
                        id: ahead.last_event_id + 1,
                        previous_event_id,
                        timestamp: now,
                        kind,
                    };
                    ahead.apply(&event).expect("what is decided at a position fits it");
                    events.push(event);
                }
                Decision::Await(next) if events.is_empty() => return (next, ahead),
                Decision::Await(_) => break,
            }
        }
        (Next::Record(events), ahead)
    }

    /// Has the iterations of distributed `Map` states run as executions of their own, which the caller starts
    /// ([`Execution::open_map_runs`]). Otherwise those that only compute run within one decision, and others as
    /// iterations of an inline `Map`.
    pub fn run_children(&mut self) {
        self.has_children = true;
    }

    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Ended(outcome, _) => Some(outcome),
            _ => None,
        }
    }

    /// The id of the newest event applied, 0 before the first.
    pub fn last_event_id(&self) -> u64 {
        self.last_event_id
    }

    /// The latest time in its history, or its start: its own time does not go back before it.
    pub fn newest_at(&self) -> Timestamp {
        self.newest_at
    }

    /// Says how far the wall clock is ahead of the times that the caller passes in, which are to run
    /// evenly. Only a `Wait` until a timestamp depends on it: its end is an instant of the wall clock,
    /// all other times are durations.
    pub fn set_wall_ahead(&mut self, millis: i64) {
        self.wall_ahead_ms = millis;
    }

    /// The active states, outermost first.
    pub fn states(&self) -> Vec<&str> {
        let mut names = Vec::new();
        if let Phase::Running(thread) = &self.phase {
            thread.visit_all(&mut |thread| names.extend(thread.state_name()));
        }
        names
    }

    /// Tokens of the open tasks.
    pub fn open_tokens(&self) -> Vec<&str> {
        self.open_attempts().into_iter().filter_map(|attempt| attempt.token.as_deref()).collect()
    }

    /// Tokens and arguments of the open tasks that wait for a callback.
    pub fn open_callbacks(&self) -> Vec<(&str, &Value)> {
        let attempts = self.open_attempts().into_iter();
        attempts
            .filter_map(|attempt| Some((attempt.token.as_deref()?, &*attempt.arguments)))
            .collect()
    }

    /// Ids of the `TaskScheduled` events of the open tasks.
    pub fn open_tasks(&self) -> BTreeSet<u64> {
        self.open_attempts().into_iter().map(|attempt| attempt.event_id).collect()
    }

    pub fn start(&self) -> &Start {
        &self.start
    }

    fn open_attempts(&self) -> Vec<&Attempt> {
        let mut attempts = Vec::new();
        if let Phase::Running(thread) = &self.phase {
            thread.visit_all(&mut |thread| attempts.extend(thread.attempt()));
        }
        attempts
    }
}

enum Decision {
    Record { previous_event_id: u64, kind: EventKind },
    Await(Next),
}
