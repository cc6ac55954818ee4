//! The port to a session's workflow: its callback, its executions, and the event bus before them.
//!
//! The local stack implements it with its own executions, the command line with the AWS clients. The
//! poller may only send callbacks and implements [`Workflow`] alone.

use journal::id::SessionId;
use serde_json::Value;

use crate::error::Error;

/// Access to a waiting workflow.
pub trait Workflow: Send + Sync {
    /// Sends a parked workflow its callback token. Returns false when the workflow does not wait
    /// with this token any more; it reads the journal by itself then.
    ///
    /// # Errors
    /// [`Error::Executions`] or [`Error::Journal`] if the service is unavailable.
    fn wake(&self, token: &str) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Puts a checked answer on the event bus, where another process writes the answer's step, and
    /// returns true. The default returns false: this process writes the step itself.
    ///
    /// # Errors
    /// [`Error::Executions`] if the bus did not confirm the event, which it may have accepted.
    fn forward(&self, _detail: &Value) -> impl Future<Output = Result<bool, Error>> + Send {
        std::future::ready(Ok(false))
    }
}

impl<W: Workflow> Workflow for &W {
    fn wake(&self, token: &str) -> impl Future<Output = Result<bool, Error>> + Send {
        W::wake(self, token)
    }

    fn forward(&self, detail: &Value) -> impl Future<Output = Result<bool, Error>> + Send {
        W::forward(self, detail)
    }
}

pub trait Executions: Workflow {
    /// The ARN of the execution with this name.
    ///
    /// # Errors
    /// If the state machine is unknown.
    fn arn(&self, name: &str) -> Result<String, Error>;

    /// # Errors
    /// [`Error::Executions`] or [`Error::Journal`] if the service is unavailable.
    fn describe(&self, arn: &str) -> impl Future<Output = Result<Option<Execution>, Error>> + Send;

    /// Starts an execution and returns its ARN. An existing execution with this name counts as
    /// started: concurrent resumes of a session use the same name.
    ///
    /// # Errors
    /// [`Error::Executions`] or [`Error::Journal`] if the service is unavailable,
    /// [`Refused::InputTooLarge`](crate::Refused::InputTooLarge).
    fn start(&self, name: &str, input: &str) -> impl Future<Output = Result<String, Error>> + Send;

    /// Whether the session's agent is running. `None` if only its lease shows that.
    fn has_agent(&self, _session: &SessionId) -> Option<bool> {
        None
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    pub is_running: bool,
    /// JSON text.
    pub input: String,
}
