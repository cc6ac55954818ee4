//! Implements `control`'s ports for an AWS account: callbacks and executions through Step Functions.
//!
//! Answers go over the event bus, so a person needs no permission to write decisions to the journal.

use std::fmt;

use control::{Action, Control, Error, Execution, Executions, Workflow};
use journal::clock::Clock;
use journal::id::SessionId;
use serde_json::Value;
use stack::store::Journal;

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
            .hint(format!("check whether the question is still open: daybook show {session}")),
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
    async fn wake(&self, token: &str) -> Result<bool, Error> {
        Clients::wake(self, token).await.map_err(unreached)
    }

    async fn forward(&self, detail: &Value) -> Result<bool, Error> {
        let detail = detail.as_object().cloned().unwrap_or_default();
        Clients::answer(self, &detail).await.map_err(unreached)?;
        Ok(true)
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

    async fn start(&self, name: &str, input: &str) -> Result<String, Error> {
        Clients::start(self, name, input).await.map_err(unreached)?;
        self.execution_arn(name).map_err(unreached)
    }
}
