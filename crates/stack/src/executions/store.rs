//! The store of executions and their histories.

use std::collections::BTreeMap;

use asl::execution::Outcome;
use asl::history::Event;
use asl::time::Timestamp;
use journal::limits::WRITE_ATTEMPTS_MAX;
use journal::store::{Error, Retry, Store};

use super::redrives::Redriven;

/// The status of an execution that has not ended.
pub const RUNNING: &str = "RUNNING";

/// The status of a child execution that a redrive has yet to run again.
pub const PENDING_REDRIVE: &str = "PENDING_REDRIVE";

/// Stores executions in the database that holds the journal. A task of a state machine writes to the
/// journal through the same store.
///
/// - A write is durable when it returns.
/// - Every write is idempotent: it leaves what an earlier attempt wrote. So a write whose outcome is
///   unknown ([`Error::Unknown`]) is repeated.
/// - Each write is one transaction: status and history always agree.
///
/// [`conformance`](super::conformance) tests implementations.
pub trait ExecutionStore: Store {
    /// Returns the row of a state machine's definition; inserts it if it is absent.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    fn open_machine(
        &self,
        arn: &str,
        definition: &str,
        now: Timestamp,
    ) -> impl Future<Output = Result<MachineRow, Error>> + Send;

    /// Reads a definition's text.
    ///
    /// # Errors
    /// If the store cannot be read, or has no such row.
    fn definition(&self, machine: i64) -> impl Future<Output = Result<String, Error>> + Send;

    /// The newest time that the executions have recorded, for running ones that of their history. A clock
    /// must not start before it. `None` if the store never held an execution.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn newest_time(&self) -> impl Future<Output = Result<Option<Timestamp>, Error>> + Send;

    /// Whether the store was ever opened for executions.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn holds_executions(&self) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Starts executions in one transaction. Each has its own result.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn start_all(
        &self,
        machine: i64,
        executions: Vec<NewExecution>,
    ) -> impl Future<Output = Result<Vec<Inserted>, Error>> + Send;

    /// Appends events to a history. If `ended` is given, also closes the execution.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn append(
        &self,
        execution: i64,
        events: &[Event],
        ended: Option<&(Outcome, Timestamp)>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Opens an execution again that ended without success: appends the event `ExecutionRedriven` and records the
    /// redrive with the client token of the request. Returns false, and changes nothing, if the execution runs or has
    /// succeeded, or if the event does not follow the last one. The same redrive again is true.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn redrive(
        &self,
        execution: i64,
        event: &Event,
        token: Option<&str>,
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Running executions with an id above `after`, in the order of their start.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn running_after(
        &self,
        after: i64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Record>, Error>> + Send;

    /// Those of the given executions that are running, in the order of their start.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn running(&self, ids: &[i64]) -> impl Future<Output = Result<Vec<Record>, Error>> + Send;

    /// Finds an execution by its ARN.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn find(&self, arn: &str) -> impl Future<Output = Result<Option<Record>, Error>> + Send;

    /// Executions with an id below `before`, newest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn newest_first(
        &self,
        status: Option<&str>,
        before: i64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Record>, Error>> + Send;

    /// The number of executions by status, sorted by status.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn counts(&self) -> impl Future<Output = Result<Vec<(String, i64)>, Error>> + Send;

    /// The number of executions that run.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn running_count(&self) -> impl Future<Output = Result<usize, Error>> + Send {
        async {
            let counts = self.counts().await?;
            let running = counts.into_iter().find(|(status, _)| status == RUNNING);
            Ok(running.map_or(0, |(_, count)| usize::try_from(count).unwrap_or(0)))
        }
    }

    /// The resources of a kind that users created, as JSON texts by name.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn resources(
        &self,
        kind: &'static str,
    ) -> impl Future<Output = Result<Vec<(String, String)>, Error>> + Send {
        let _ = kind;
        async { Ok(Vec::new()) }
    }

    /// One resource that users created.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn resource(
        &self,
        kind: &'static str,
        name: &str,
    ) -> impl Future<Output = Result<Option<String>, Error>> + Send {
        let _ = (kind, name);
        async { Ok(None) }
    }

    /// Whether the store keeps the child executions of distributed maps. A store need not.
    fn has_children(&self) -> bool {
        false
    }

    /// Writes the child executions of a run, each with the number of its items. They wait to be begun. A run that has
    /// some already stays as it is.
    ///
    /// # Errors
    /// If the store cannot be written, or keeps no children.
    fn add_children(
        &self,
        run: &str,
        machine: i64,
        children: Vec<(NewExecution, usize)>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = (run, machine, children);
        async { Err(no_children()) }
    }

    /// Begins the next waiting executions of a run, at most `limit`. Returns how many.
    ///
    /// # Errors
    /// If the store cannot be written, or keeps no children.
    fn begin_children(
        &self,
        run: &str,
        limit: usize,
        now: Timestamp,
    ) -> impl Future<Output = Result<usize, Error>> + Send {
        let _ = (run, limit, now);
        async { Err(no_children()) }
    }

    /// The executions of a run that have begun, in order.
    ///
    /// # Errors
    /// If the store cannot be read, or keeps no children.
    fn children(&self, run: &str) -> impl Future<Output = Result<Vec<Record>, Error>> + Send {
        let _ = run;
        async { Err(no_children()) }
    }

    /// How many executions and items of a run have which status. If a token is given, those that ended without success
    /// and were not redriven with it are [`PENDING_REDRIVE`].
    ///
    /// # Errors
    /// If the store cannot be read, or keeps no children.
    fn child_counts(
        &self,
        run: &str,
        token: Option<&str>,
    ) -> impl Future<Output = Result<ChildCounts, Error>> + Send {
        let _ = (run, token);
        async { Err(no_children()) }
    }

    /// The run of a child execution; `None` for any other one.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn run_of(&self, execution: i64) -> impl Future<Output = Result<Option<String>, Error>> + Send {
        let _ = execution;
        async { Ok(None) }
    }

    /// Creates, replaces or (without a body) removes a resource. A store need not support this.
    ///
    /// # Errors
    /// If the store cannot be written, or does not support it.
    fn put_resource(
        &self,
        kind: &'static str,
        name: &str,
        body: Option<String>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = body;
        let what = format!("cannot keep the {kind} {name}: this store has no resources of users");
        async move { Err(Error::Refused(what.into())) }
    }

    /// Part of a history, each event as the API's JSON text: events with an id above `after`, or
    /// in reverse those below it.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn history(
        &self,
        execution: i64,
        after: i64,
        reverse: bool,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<String>, Error>> + Send;
}

fn no_children() -> Error {
    Error::Refused("this store keeps no child executions".into())
}

/// The number of executions and of items by status. `PENDING` ones have not begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildCounts(pub BTreeMap<String, (usize, usize)>);

impl ChildCounts {
    /// Executions and items of a status.
    pub fn of(&self, status: &str) -> (usize, usize) {
        self.0.get(status).copied().unwrap_or_default()
    }

    /// All items.
    pub fn items(&self) -> usize {
        self.0.values().map(|(_, items)| items).sum()
    }

    pub(super) fn failed_items(&self) -> usize {
        ["FAILED", "TIMED_OUT", "ABORTED"].iter().map(|status| self.of(status).1).sum()
    }

    pub(super) fn have_all_ended(&self) -> bool {
        [RUNNING, "PENDING", PENDING_REDRIVE].iter().all(|status| self.of(status).0 == 0)
    }
}

/// A version of a state machine's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineRow {
    pub id: i64,
    /// When this text was first used.
    pub created_at: Timestamp,
}

/// An execution's row.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Increases in the order of starts.
    pub id: i64,
    pub arn: String,
    pub name: String,
    /// The row of its definition.
    pub machine: i64,
    pub machine_arn: String,
    /// As in `DescribeExecution`.
    pub status: String,
    /// JSON text.
    pub input: String,
    /// JSON text; only of an execution that succeeded.
    pub output: Option<String>,
    /// Only of an execution that failed or was aborted.
    pub error: Option<String>,
    pub cause: Option<String>,
    pub started_at: Timestamp,
    pub stopped_at: Option<Timestamp>,
    /// The newest redrive.
    pub redriven: Option<Redriven>,
    /// The seed of its task tokens. Secret.
    pub token_seed: String,
}

/// A row to insert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewExecution {
    pub arn: String,
    pub name: String,
    /// JSON text.
    pub input: String,
    pub started_at: Timestamp,
    pub token_seed: String,
}

/// The result of a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It is durable, from now or from an earlier start with the same input.
    Started(Timestamp),
    /// Another execution has the name, or this one has ended.
    Taken,
}

/// Repeats a write of an [`ExecutionStore`] until its outcome is known, at most
/// [`WRITE_ATTEMPTS_MAX`] times.
pub(crate) async fn until_known<T, F>(mut write: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    for attempt in 1..WRITE_ATTEMPTS_MAX {
        let outcome = write().await;
        match outcome.as_ref().map_err(Error::retry) {
            Err(Retry::After(pause) | Retry::Unknown(pause)) => {
                tokio::time::sleep(pause * attempt).await;
            }
            Ok(_) | Err(Retry::Never) => return outcome,
        }
    }
    write().await
}
