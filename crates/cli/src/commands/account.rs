//! Implements `control`'s ports for an AWS account.
//!
//! Actions go to the poller, so a person needs no permission to write to the journal, to start executions
//! or to send callbacks.

use std::fmt;

use control::{Action, Control, Error, Execution, Executions, Forwarded, Workflow};
use journal::clock::Clock;
use journal::id::SessionId;
use stack::store::Journal;

use super::actions::Sent;
use super::cloud::{self, Clients};
use crate::failure::Failure;
use crate::reader::Reader;

/// The control actions on an account's sessions.
pub fn control(reader: &Reader, clients: Clients) -> Control<Journal, Clients> {
    Control { store: reader.store.clone(), clock: Clock::system(), executions: clients }
}

/// Converts an error of `control`, and adds a hint.
pub fn failure(error: Error, session: &SessionId, action: &Action) -> Failure {
    match error {
        Error::Refused(refused) => {
            Failure::unknown(format!("{} was refused: {refused}", action.name()))
        }
        Error::Unconfirmed => Failure::unknown(error.to_string())
            .hint(format!(
            "look at the session: daybook show {session}; if ACTIONS_URL and ACTIONS_BUS_NAME are unset, set \
             them to the stack's outputs ActionsUrl and ActionsBusName"
        )),
        Error::Executions(cause) => match cause.downcast::<Unreached>() {
            Ok(unreached) => unreached.0,
            Err(cause) => Failure::unknown(cause.to_string()),
        },
        Error::Journal(error) => error.into(),
    }
}

/// A failure with its hint in one sentence, for an HTTP response.
#[derive(Debug)]
struct Unreached(Failure);

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.sentence())
    }
}

impl std::error::Error for Unreached {}

fn unreached(failure: impl Into<Failure>) -> Error {
    Error::Executions(Unreached(failure.into()).into())
}

impl Workflow for Clients {
    /// The account's own processes wake its workflows.
    async fn wake(&self, _token: &str) -> Result<bool, Error> {
        Ok(false)
    }

    async fn forward(&self, session: &SessionId, action: &Action) -> Result<Forwarded, Error> {
        match self.act(session, action).await {
            Ok(Sent::Put) => Ok(Forwarded::Accepted),
            Ok(Sent::Done(reply)) => Ok(Forwarded::Done(reply)),
            Err(failure) => Err(unreached(failure)),
        }
    }
}

impl Executions for Clients {
    fn arn(&self, name: &str) -> Result<String, Error> {
        self.execution_arn(name).map_err(unreached)
    }

    async fn describe(&self, arn: &str) -> Result<Option<Execution>, Error> {
        let described = self.described(arn).await.map_err(unreached)?;
        Ok(described.map(|it| Execution {
            is_running: it.execution == cloud::Execution::Running,
            input: it.input,
        }))
    }

    /// Never called: [`Workflow::forward`] has the account start it.
    async fn start(&self, _name: &str, _input: &str) -> Result<String, Error> {
        Err(unreached(Failure::unknown("this program starts no executions in an account")))
    }
}
