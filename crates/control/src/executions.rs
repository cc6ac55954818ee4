//! The port to a session's workflow: its callback, its executions, and the process that writes for a
//! person who may not write to the journal.
//!
//! The local stack implements it with its own executions, the poller and the command line
//! with the AWS clients. The command line has the poller perform what it may not.

use journal::id::SessionId;
use serde_json::Value;

use crate::Action;
use crate::error::Error;

/// Access to a waiting workflow.
pub trait Workflow: Send + Sync {
    /// Sends a parked workflow its callback token. Returns false when the workflow does not wait
    /// with this token any more; it reads the journal by itself then.
    ///
    /// # Errors
    /// [`Error::Executions`] or [`Error::Journal`] if the service is unavailable.
    fn wake(&self, token: &str) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Has another process perform a checked action, one that may write to the journal. The default
    /// leaves it to this process.
    ///
    /// # Errors
    /// [`Error::Executions`] if the other process did not confirm the action, which it may have
    /// accepted.
    fn forward(
        &self,
        _session: &SessionId,
        _action: &Action,
    ) -> impl Future<Output = Result<Forwarded, Error>> + Send {
        std::future::ready(Ok(Forwarded::No))
    }
}

/// Where an action is performed.
#[derive(Clone, Debug, PartialEq)]
pub enum Forwarded {
    /// In this process.
    No,
    /// In another one, which accepted it. The journal will show the result.
    Accepted,
    /// In another one, which replied with this JSON.
    Done(Value),
}

impl<W: Workflow> Workflow for &W {
    fn wake(&self, token: &str) -> impl Future<Output = Result<bool, Error>> + Send {
        W::wake(self, token)
    }

    fn forward(
        &self,
        session: &SessionId,
        action: &Action,
    ) -> impl Future<Output = Result<Forwarded, Error>> + Send {
        W::forward(self, session, action)
    }
}

pub trait Executions: Workflow {
    /// Removes what the session's tools have stored beside the journal. The default has nothing to remove.
    ///
    /// # Errors
    /// [`Error::Executions`] if it cannot be removed.
    fn remove_state(&self, _session: &SessionId) -> Result<(), Error> {
        Ok(())
    }

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

impl<E: Executions> Executions for &E {
    fn remove_state(&self, session: &SessionId) -> Result<(), Error> {
        E::remove_state(self, session)
    }

    fn arn(&self, name: &str) -> Result<String, Error> {
        E::arn(self, name)
    }

    fn describe(&self, arn: &str) -> impl Future<Output = Result<Option<Execution>, Error>> + Send {
        E::describe(self, arn)
    }

    fn start(&self, name: &str, input: &str) -> impl Future<Output = Result<String, Error>> + Send {
        E::start(self, name, input)
    }

    fn has_agent(&self, session: &SessionId) -> Option<bool> {
        E::has_agent(self, session)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    pub is_running: bool,
    /// JSON text.
    pub input: String,
}
