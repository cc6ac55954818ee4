//! Actions of a person on a session: `POST /api/sessions/{id}/answer`, `cancel`, `resume` and `erase`.
//!
//! [`Control`] performs them. On a stack it acts on the stack's own executions ([`Aws`]); a viewer of
//! another journal supplies an implementation that acts where the sessions run.

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::Response;
use axum::routing::post;
use axum::{Extension, Router};
use control::{Action, AsVersion, Control, Error, Execution, Refused, Workflow};
use journal::id::SessionId;
use journal::principal::Principal;
use serde_json::{Value, json};

use super::Aws;
use super::begin;
use super::keeping::{HOLD, RELEASE};
use super::sessions::{Reply, session_id};
use super::wire::{self, Refusal};
use crate::executions::{RUNNING, Request, StartError};
use crate::folder::remove_state;
use crate::load::NotAdmitted;
use crate::names;
use crate::store::Journal;

const ANSWER: &str = "/api/sessions/{id}/answer";
const CANCEL: &str = "/api/sessions/{id}/cancel";
const RESUME: &str = "/api/sessions/{id}/resume";
const ERASE: &str = "/api/sessions/{id}/erase";

/// The routes for a journal whose sessions can be controlled.
pub fn router<E>(control: Control<Journal, E>) -> Router
where
    E: control::Executions + Clone + 'static,
{
    Router::new()
        .route(ANSWER, post(answer::<E>))
        .route(CANCEL, post(cancel::<E>))
        .route(RESUME, post(resume::<E>))
        .route(ERASE, post(erase::<E>))
        .with_state(control)
}

/// The routes for a journal whose sessions cannot be controlled. They respond with the reason.
pub fn refused(reason: &'static str) -> Router {
    let refuse = move || async move { wire::api(Err(Refusal::new(409, "Refused", reason))) };
    [ANSWER, CANCEL, RESUME, ERASE, HOLD, RELEASE, begin::SESSIONS]
        .iter()
        .fold(Router::new(), |router, path| router.route(path, post(refuse)))
}

async fn answer<E: control::Executions>(
    State(control): State<Control<Journal, E>>,
    Extension(by): Extension<Principal>,
    Path(id): Path<String>,
    body: Bytes,
) -> Response<Body> {
    let said = serde_json::from_slice(&body);
    let said = said.map_err(|error| Refusal::bad("InvalidAnswer", error.to_string()));
    wire::api(act(&control, &id, said.map(Action::Answer), &by).await)
}

/// Takes an optional `{"reason"}`.
async fn cancel<E: control::Executions>(
    State(control): State<Control<Journal, E>>,
    Extension(by): Extension<Principal>,
    Path(id): Path<String>,
    body: Bytes,
) -> Response<Body> {
    let action = asked(&body)
        .map(|asked| Action::Cancel { reason: asked["reason"].as_str().map(str::to_owned) })
        .map_err(|error| Refusal::bad("InvalidBody", error.to_string()));
    wire::api(act(&control, &id, action, &by).await)
}

/// Takes an optional `{"as_version"}`.
async fn resume<E: control::Executions>(
    State(control): State<Control<Journal, E>>,
    Extension(by): Extension<Principal>,
    Path(id): Path<String>,
    body: Bytes,
) -> Response<Body> {
    let action = asked(&body)
        .and_then(AsVersion::of_request)
        .map(|as_version| Action::Resume { as_version })
        .map_err(|error| Refusal::bad("InvalidBody", error.to_string()));
    wire::api(act(&control, &id, action, &by).await)
}

/// Takes a `{"reason"}`.
async fn erase<E: control::Executions>(
    State(control): State<Control<Journal, E>>,
    Extension(by): Extension<Principal>,
    Path(id): Path<String>,
    body: Bytes,
) -> Response<Body> {
    let action = asked(&body)
        .map(|asked| Action::Erase { reason: control::reason_of(&asked) })
        .map_err(|error| Refusal::bad("InvalidBody", error.to_string()));
    wire::api(act(&control, &id, action, &by).await)
}

/// A body that may be empty.
fn asked(body: &[u8]) -> serde_json::Result<Value> {
    if body.is_empty() { Ok(Value::Null) } else { serde_json::from_slice(body) }
}

async fn act<E: control::Executions>(
    control: &Control<Journal, E>,
    id: &str,
    action: Result<Action, Refusal>,
    by: &Principal,
) -> Reply {
    let (id, action) = (session_id(id)?, action?);
    Ok((202, json!(control.act(&id, &action, by).await?)))
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        if let Error::Journal(error) = &error {
            return Self::journal(error);
        }
        let ((status, code), message) = (error.http(), error.to_string());
        Self::new(status, code, message)
    }
}

impl Workflow for Aws {
    async fn wake(&self, token: &str) -> Result<bool, Error> {
        // If none is parked, it reads the journal by itself.
        Ok(self.executions.wake(token).await?)
    }
}

impl control::Executions for Aws {
    fn remove_state(&self, session: &SessionId) -> Result<(), Error> {
        let Some(data) = self.executions.store().path().parent() else { return Ok(()) };
        remove_state(data, session).map_err(|error| Error::Executions(error.into()))
    }

    fn arn(&self, name: &str) -> Result<String, Error> {
        Ok(names::execution_arn(names::STATE_MACHINE, name))
    }

    async fn describe(&self, arn: &str) -> Result<Option<Execution>, Error> {
        let record = self.executions.describe(arn).await?;
        Ok(record.map(|it| Execution { is_running: it.status == RUNNING, input: it.input }))
    }

    async fn start(&self, name: &str, input: &str) -> Result<String, Error> {
        if self.load.is_draining() {
            return Err(Error::Executions(NotAdmitted::Draining.into()));
        }
        let request = Request { name: name.to_owned(), input: input.to_owned() };
        match self.executions.start(request).await {
            Ok(started) => Ok(started.arn),
            Err(StartError::AlreadyExists(arn)) => Ok(arn),
            Err(StartError::TooLarge(bytes)) => Err(Refused::InputTooLarge(bytes).into()),
            Err(StartError::Store(error)) => Err(error.into()),
            Err(error) => Err(Error::Executions(error.into())),
        }
    }

    fn has_agent(&self, session: &SessionId) -> Option<bool> {
        Some(self.agents.has(session))
    }
}
