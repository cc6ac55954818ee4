//! `cancel`, `resume`, `erase`, `hold` and `release`, and how actions on a session are sent to the local stack or to AWS.

use control::{Action, AsVersion};
use journal::id::SessionId;
use journal::principal::Principal;
use serde_json::{Value, json};

use super::account;
use super::cloud::Clients;
use crate::args::{self, Target};
use crate::endpoint::Endpoint;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::reader::Reader;
use crate::resolve::Context;

/// Requests that a session is cancelled.
///
/// # Errors
/// When nothing listens, or the stack refuses.
pub async fn cancel(context: &Context, cancel: args::steer::Cancel) -> Result<Exit, Failure> {
    send(context, &cancel.session, &Action::Cancel { reason: cancel.reason }).await
}

/// Resumes a session.
///
/// # Errors
/// When nothing listens, or the stack refuses.
pub async fn resume(context: &Context, resume: args::steer::Resume) -> Result<Exit, Failure> {
    let as_version = resume.as_version.map(|version| AsVersion { version });
    send(context, &resume.session, &Action::Resume { as_version }).await
}

/// Destroys the key of a session's contents.
///
/// # Errors
/// When nothing listens, or the stack refuses.
pub async fn erase(context: &Context, erase: args::steer::Erase) -> Result<Exit, Failure> {
    send(context, &erase.session, &Action::Erase { reason: erase.reason }).await
}

/// Applies an action to a session, through the local stack or in the account.
///
/// # Errors
/// When the target cannot be reached, or refuses the action.
pub async fn apply(
    context: &Context,
    reader: &Reader,
    id: &SessionId,
    action: &Action,
) -> Result<Value, Failure> {
    match context.target {
        Target::Local => Endpoint::new(context)?.post(id, action.name(), &action.body()).await,
        Target::Aws => {
            let control = account::control(reader, Clients::new(context).await);
            let done = Box::pin(control.act(id, action, &Principal::Unknown)).await;
            let mut done = json!(done.map_err(|error| account::failure(error, id, action))?);
            // Scripts rely on the execution's name.
            if let Some(arn) = done["execution_arn"].as_str() {
                done["execution"] = arn.rsplit(':').next().into();
            }
            Ok(done)
        }
    }
}

/// Applies an action to a session and reports it.
///
/// # Errors
/// As [`apply`].
pub async fn send(context: &Context, session: &str, action: &Action) -> Result<Exit, Failure> {
    if context.target == Target::Local {
        let endpoint = Endpoint::new(context)?;
        if endpoint.health().await?.is_none() {
            return Err(endpoint.nothing_listens());
        }
    }
    let reader = Reader::open(context).await?;
    let id = reader.find(session).await?;
    let said = apply(context, &reader, &id, action).await?;
    if context.json {
        output::json(&if said.is_object() { said } else { json!({"session_id": id.as_str()}) })?;
    } else {
        let past = match action {
            Action::Answer(_) => "answered",
            Action::Cancel { .. } => "requested cancellation of",
            Action::Resume { .. } => "resumed",
            Action::Erase { .. } => "erased",
        };
        output::say(&format!("{past} session {id}"));
        if !matches!(action, Action::Erase { .. }) {
            output::hint(&format!("follow it with: daybook tail {id}"));
        }
    }
    Ok(Exit::Succeeded)
}
