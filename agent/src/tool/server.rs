//! One MCP server for one run of a session: started at its first use, and restarted if it exited.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use graph::effect::ToolOffer;
use graph::outcome::{Failure, ToolOutcome};
use journal::clock::Clock;
use rmcp::model::{CallToolResponse, ErrorCode};
use rmcp::service::ServiceError;
use serde_json::Value;
use telemetry::context::TraceParent;
use tokio::sync::Mutex;

use super::answer::{self, Content, ERROR_CHARS_MAX, cut};
use super::catalogue::{CATEGORY_UNKNOWN, Readers};
use super::connection::{Connection, Target, seconds};
use super::launch::Launch;
use super::{CATEGORY_CONNECTION, Timeouts, ToolSource};
use crate::progress::Listener;

/// Most starts of a server in one run, including the first.
pub const STARTS_MAX: u32 = 5;

/// A server, running or not.
#[derive(Debug)]
pub struct Server {
    target: Target,
    timeouts: Timeouts,
    /// Completed starts, read outside the lock.
    starts: AtomicU32,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// Not started, or the last start failed with this.
    Down(Option<Failure>),
    /// Running, as far as known.
    Up(Arc<Connection>),
    /// Stopped for good.
    Closed,
}

impl Server {
    pub(super) fn new(
        name: String,
        launch: Launch,
        readers: Readers,
        timeouts: Timeouts,
        clock: Clock,
        listener: Listener,
    ) -> Self {
        Self {
            target: Target { name, launch, readers, clock, listener },
            timeouts,
            starts: AtomicU32::new(0),
            state: Mutex::new(State::Down(None)),
        }
    }

    /// Stops the server for good.
    pub(super) async fn close(&self) {
        let mut state = self.state.lock().await;
        if let State::Up(connection) = std::mem::replace(&mut *state, State::Closed) {
            connection.close().await;
        }
    }

    /// The connection; starts the server if it is not running.
    async fn connection(&self) -> Result<Arc<Connection>, Failure> {
        let starts_before = self.starts.load(Ordering::Acquire);
        let mut state = self.state.lock().await;
        let last_failure = match &*state {
            State::Closed => {
                let message = "the session's tools are closed";
                return Err(Failure::not_sent(CATEGORY_CONNECTION, message));
            }
            State::Up(connection) if connection.is_usable().await => return Ok(connection.clone()),
            State::Up(gone) => {
                gone.kill().await;
                None
            }
            State::Down(failure) => failure.clone(),
        };
        let starts = self.starts.load(Ordering::Acquire);
        // Calls that waited for the same start share its failure. With a start each, the last call
        // would wait for the deadlines of all others.
        if let Some(failure) = last_failure.as_ref().filter(|_| starts > starts_before) {
            return Err(failure.clone());
        }
        if starts >= STARTS_MAX {
            *state = State::Down(last_failure);
            let problem =
                format!("was started {starts} times in this run and is not started again");
            let hint = format!("try it with `daybook tools {}`", self.target.name);
            let message = self.target.message(&problem, &hint);
            return Err(Failure::refused(CATEGORY_CONNECTION, message));
        }
        *state = State::Down(None);
        let opened = Connection::open(&self.target, self.timeouts).await;
        self.starts.fetch_add(1, Ordering::Release);
        match opened {
            Ok(connection) => {
                let connection = Arc::new(connection);
                *state = State::Up(connection.clone());
                Ok(connection)
            }
            Err(failure) => {
                *state = State::Down(Some(failure.clone()));
                Err(failure)
            }
        }
    }

    /// The outcome of a call without an answer.
    async fn unanswered(
        &self,
        connection: &Connection,
        tool: &str,
        error: Option<ServiceError>,
        timeout: Duration,
    ) -> ToolOutcome {
        let name = &self.target.name;
        let problem = match error {
            None => format!("did not answer `{tool}` within {}", seconds(timeout)),
            Some(ServiceError::McpError(error)) => {
                let said = format!("`{tool}` of server `{name}`: {}", error.message);
                let said = cut(&self.target.launch.redact(&said), ERROR_CHARS_MAX);
                return match error.code {
                    ErrorCode::INVALID_PARAMS
                    | ErrorCode::INVALID_REQUEST
                    | ErrorCode::METHOD_NOT_FOUND => {
                        ToolOutcome::Failed(Failure::refused(CATEGORY_UNKNOWN, said))
                    }
                    _ => ToolOutcome::Error(said),
                };
            }
            Some(ServiceError::UnexpectedResponse) => {
                let said = format!("server `{name}` answered `{tool}` with an invalid tool result");
                return ToolOutcome::Error(said);
            }
            Some(error) => {
                if let ServiceError::TransportSend(error) = &error
                    && let Some(mishap) = connection.mishap(error)
                {
                    return ToolOutcome::Failed(self.target.not_answered(tool, &mishap));
                }
                format!("ended during the call of `{tool}`: {}", connection.exit_reason().await)
            }
        };
        let message = self.target.message(&problem, "whether the call had an effect is not known");
        ToolOutcome::Failed(Failure::unknown(CATEGORY_CONNECTION, message))
    }
}

impl ToolSource for Server {
    async fn catalogue(&self, _timeout: Duration) -> ToolOutcome {
        match self.connection().await {
            Ok(connection) => connection.catalogue().outcome(),
            Err(failure) => ToolOutcome::Failed(failure),
        }
    }

    async fn offer(&self, tool: &str, timeout: Duration) -> Result<ToolOffer, Failure> {
        self.connection().await?.offer(tool, timeout).await
    }

    async fn call(
        &self,
        tool: &str,
        arguments: &Value,
        timeout: Duration,
        parent: Option<TraceParent>,
    ) -> ToolOutcome {
        let connection = match self.connection().await {
            Ok(connection) => connection,
            Err(failure) => return ToolOutcome::Failed(failure),
        };
        let catalogue = connection.catalogue();
        let admitted = match catalogue.admit(&self.target.name, tool, arguments) {
            Ok(admitted) => admitted,
            Err(outcome) => return outcome,
        };
        match connection.call(tool, arguments, timeout, parent).await {
            Ok(CallToolResponse::Complete(result)) => match answer::content(result) {
                Content::Value(value) => admitted.result(self.target.launch.redact_value(value)),
                Content::Error(text) => ToolOutcome::Error(self.target.launch.redact(&text)),
            },
            Ok(_) => ToolOutcome::Error(format!(
                "`{tool}` asks for input during the call, which is not supported"
            )),
            Err(error) => self.unanswered(&connection, tool, error, timeout).await,
        }
    }
}
