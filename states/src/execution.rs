//! One execution: a fold of its history, and what comes next.
//!
//! ```text
//!            next(now)                    a callback, an answer, an abort
//!  shell ──────────────▶ Execution ◀────────────────────────────── shell
//!    ▲  Record(events)      │  Ok(event)                              │
//!    └──── append durably ──┴──────────── then apply ◀────────────────┘
//! ```
//!
//! Nothing here changes an execution but [`Execution::apply`] (and [`Execution::heartbeat`], which
//! is not history). What `next` or an input returns is a proposal: append it durably, then apply
//! it, then ask again. If the append fails, drop the execution and replay. A replay of any prefix
//! of a history goes on as the execution would have: everything that decides is in the definition,
//! the [`Start`] and the events.
//!
//! An execution is a tree of threads: one for the machine, and below a `Parallel` or `Map` one for
//! each branch or iteration that runs (`thread`). `decide` asks the thread that has been still for
//! longest what its next event is, `fold` finds the thread that an event belongs to by its
//! `previousEventId`, which is Step Functions' own idea: it is the event before on the same thread,
//! but 0 for the first state's entry, for an abort and for the machine's timeout, and an expression
//! that fails as its state begins names what the state's entry names.

mod decide;
mod distributed;
mod fold;
mod fork;
mod inputs;
mod join;
mod output;
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
use thread::{Attempt, Thread};

/// Largest input, result, output, or set of variables assigned at once, in bytes of JSON text.
///
/// Source: AWS, "Step Functions service quotas", 256 KiB.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024;
/// Largest sum of all variables, in bytes of JSON text.
///
/// Source: AWS, "Passing data between states with variables", limits, 10 MiB.
pub const VARIABLES_BYTES_MAX: usize = 10 * 1024 * 1024;
/// Most events that one [`Next::Record`] holds, so that a machine that loops without waiting still
/// yields.
pub const BATCH_EVENTS_MAX: usize = 100;

/// What an execution is started with. The shell stores it: replay needs it beside the history.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// ARN of this execution; its region is the one that `TaskScheduled` events name.
    pub execution_arn: String,
    /// Name of this execution.
    pub execution_name: String,
    /// The role it runs under.
    pub role_arn: String,
    /// ARN of the state machine.
    pub state_machine_arn: String,
    /// Name of the state machine.
    pub state_machine_name: String,
    /// The input, JSON text.
    pub input: String,
    /// When it was started; the machine's timeout counts from here.
    pub started_at: Timestamp,
    /// Secret randomness, drawn once: task tokens, `$random()`, `$uuid()` and jitter come from it.
    pub token_seed: String,
}

/// Why an execution cannot be started: the input is at fault.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// AWS answers `InvalidExecutionInput`.
    #[error("input is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// AWS answers `ValidationException`.
    #[error("input of {0} bytes is larger than 262144")]
    TooLarge(usize),
}

/// What the shell is to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Append these durably, apply them, ask again.
    Record(Vec<Event>),
    /// These calls must be in flight, several below a `Parallel` or `Map`. Make those that are not;
    /// ask again at `wake_at` or when one ended.
    ///
    /// After a crash they are asked for again, with the same arguments and tokens: a call is made at
    /// least once.
    RunTasks {
        /// The calls, oldest first.
        requests: Vec<TaskRequest>,
        /// When to ask again at the latest: the earliest of all deadlines that run now.
        wake_at: Timestamp,
    },
    /// Nothing to do until this time or an input; then ask again.
    WaitUntil(Timestamp),
    /// It is over.
    Done(Outcome),
}

/// A call that a task makes.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRequest {
    /// The event that scheduled it: its identity within the execution.
    pub event_id: u64,
    /// The state it belongs to.
    pub state: String,
    /// `Resource` as the definition has it.
    pub resource: String,
    /// What to call it with.
    pub arguments: Value,
    /// The token to wait for, if the task does.
    pub token: Option<String>,
    /// When the task times out.
    pub timeout_at: Timestamp,
    /// Longest silence between heartbeats, in seconds.
    pub heartbeat_s: Option<u64>,
}

/// How an execution ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// With an output, JSON text.
    Succeeded(String),
    /// A `Fail` state, or an error that nothing caught.
    Failed(Failure),
    /// The machine's own `TimeoutSeconds` passed. `DescribeExecution` names no error then; only the
    /// event does.
    TimedOut,
    /// Somebody stopped it.
    Aborted(Failure),
}

impl Outcome {
    /// The status that `DescribeExecution` answers.
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
    phase: Phase,
}

#[derive(Clone, Debug)]
enum Phase {
    Before,
    Running(Thread),
    Ended(Outcome),
}

impl Execution {
    /// An execution without history; [`Execution::next`] begins it.
    ///
    /// # Errors
    /// The input is not JSON or too large; answer the caller, start nothing.
    pub fn new(definition: Arc<Definition>, start: Start) -> Result<Execution, StartError> {
        if start.input.len() > PAYLOAD_BYTES_MAX {
            return Err(StartError::TooLarge(start.input.len()));
        }
        let input = serde_json::from_str(&start.input).map_err(StartError::NotJson)?;
        Ok(Execution {
            definition,
            start: Arc::new(start),
            input: Arc::new(input),
            last_event_id: 0,
            phase: Phase::Before,
        })
    }

    /// An execution as its history left it, over the definition that it was started with: a
    /// definition that changed since is another state machine.
    ///
    /// A heartbeat is not history: after a replay tell [`Execution::heartbeat`] the last one, or
    /// the time of the restart, else a task that was alive counts as silent since it was scheduled.
    ///
    /// # Errors
    /// The start is wrong, or the history is not one of this definition.
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

    /// What to do next. Ask after every event applied, and at the time the last answer named.
    pub fn next(&self, now: Timestamp) -> Next {
        self.ahead(now).0
    }

    /// As [`Execution::next`], with the execution as it is when what is to be recorded is durable.
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

    /// How it ended, if it has.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Ended(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// The id of the newest event applied, 0 before the first.
    pub fn last_event_id(&self) -> u64 {
        self.last_event_id
    }

    /// The states that are being run, outermost first.
    pub fn states(&self) -> Vec<&str> {
        let mut names = Vec::new();
        if let Phase::Running(thread) = &self.phase {
            thread.visit_all(&mut |thread| names.extend(thread.state_name()));
        }
        names
    }

    /// The tokens that the execution waits for.
    pub fn open_tokens(&self) -> Vec<&str> {
        self.open_attempts().into_iter().filter_map(|attempt| attempt.token.as_deref()).collect()
    }

    /// The events that scheduled the tasks that have not ended.
    pub fn open_tasks(&self) -> BTreeSet<u64> {
        self.open_attempts().into_iter().map(|attempt| attempt.event_id).collect()
    }

    /// What it was started with.
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
