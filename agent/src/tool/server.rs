//! One MCP server for one run of a session: a process of its own, or a place at a shared one.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use graph::effect::ToolOffer;
use graph::outcome::{Failure, ToolOutcome};
use journal::id::SessionId;
use rmcp::model::{CallToolResponse, ErrorCode};
use rmcp::service::ServiceError;
use serde_json::Value;
use telemetry::context::TraceParent;
use tokio::sync::Mutex;

use super::answer::{self, Content, ERROR_CHARS_MAX, cut};
use super::catalogue::CATEGORY_UNKNOWN;
use super::connection::{Connection, Target, seconds};
use super::holder::{Holder, closed};
use super::launch::Identity;
use super::pool::{Place, Pool};
use super::{CATEGORY_CONNECTION, Timeouts, ToolSource};

/// A server, running or not.
#[derive(Debug)]
pub struct Server {
    session: SessionId,
    target: Target,
    timeouts: Timeouts,
    /// The starts that this session has caused.
    starts: AtomicU32,
    seat: Seat,
}

#[derive(Debug)]
enum Seat {
    Own(Arc<Holder>),
    /// Taken at the first use.
    Shared(Pool, Box<Identity>, Mutex<Shared>),
}

#[derive(Debug)]
enum Shared {
    Untaken,
    Taken(Place),
    Closed,
}

impl Server {
    pub(super) fn new(session: SessionId, target: Target, timeouts: Timeouts, pool: &Pool) -> Self {
        let seat = match target.launch.shared() {
            Some(identity) => {
                Seat::Shared(pool.clone(), Box::new(identity), Mutex::new(Shared::Untaken))
            }
            None => Seat::Own(Arc::new(Holder::new(target.clone(), timeouts))),
        };
        Self { session, target, timeouts, starts: AtomicU32::new(0), seat }
    }

    /// Stops the server for good, or gives the place back.
    pub(super) async fn close(&self) {
        match &self.seat {
            Seat::Own(holder) => holder.close().await,
            Seat::Shared(_, _, shared) => *shared.lock().await = Shared::Closed,
        }
    }

    /// The connection; starts the server if it is not running.
    async fn connection(&self) -> Result<Arc<Connection>, Failure> {
        self.holder().await?.connection(&self.starts).await
    }

    async fn holder(&self) -> Result<Arc<Holder>, Failure> {
        let (pool, identity, shared) = match &self.seat {
            Seat::Own(holder) => return Ok(Arc::clone(holder)),
            Seat::Shared(pool, identity, shared) => (pool, identity, shared),
        };
        let mut shared = shared.lock().await;
        let place = match &mut *shared {
            Shared::Closed => return Err(closed()),
            Shared::Taken(place) => place,
            untaken => {
                let create = || Holder::new(self.target.clone(), self.timeouts);
                *untaken = Shared::Taken(pool.join(identity, create));
                let Shared::Taken(place) = untaken else { return Err(closed()) };
                place
            }
        };
        Ok(Arc::clone(place.holder()))
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
        match connection.call(&self.session, tool, arguments, timeout, parent).await {
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
