//! `cancel`, `resume` and the way of an answer: what a person tells a session, through the endpoint or in an account.

use journal::id::SessionId;
use serde_json::{Value, json};

use super::cloud::Clients;
use super::person;
use crate::args::{self, Target};
use crate::endpoint::Endpoint;
use crate::failure::{Exit, Failure};
use crate::ledger::Ledger;
use crate::output;
use crate::resolve::Context;

/// What a person does to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Answers its question.
    Answer,
    /// Asks for its end.
    Cancel,
    /// Carries it on.
    Resume,
}

impl Deed {
    /// As the endpoint calls it.
    fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Cancel => "cancel",
            Self::Resume => "resume",
        }
    }

    /// When it is done.
    fn past(self) -> &'static str {
        match self {
            Self::Answer => "answered",
            Self::Cancel => "asked for the end of",
            Self::Resume => "resumed",
        }
    }
}

/// Asks for a session's end.
///
/// # Errors
/// When nothing listens, or the stack refuses.
pub async fn cancel(context: &Context, cancel: args::steer::Cancel) -> Result<Exit, Failure> {
    let mut body = json!({});
    if let Some(reason) = cancel.reason {
        body["reason"] = reason.into();
    }
    send(context, &cancel.session, Deed::Cancel, &body).await
}

/// Carries a session on.
///
/// # Errors
/// When nothing listens, or the stack refuses.
pub async fn resume(context: &Context, session: &str) -> Result<Exit, Failure> {
    send(context, session, Deed::Resume, &json!({})).await
}

/// Tells a session something by the way that its target has.
///
/// # Errors
/// When nobody hears it, or it is refused.
pub async fn tell(
    context: &Context,
    ledger: &Ledger,
    id: &SessionId,
    deed: Deed,
    body: &Value,
) -> Result<Value, Failure> {
    match context.target {
        Target::Local => Endpoint::new(context)?.post(id, deed.as_str(), body).await,
        Target::Aws => {
            let clients = Clients::new(context).await;
            Box::pin(person::tell(ledger, &clients, id, deed, body)).await
        }
    }
}

/// Tells a session something, and says that it was told.
///
/// # Errors
/// As [`tell`].
pub async fn send(
    context: &Context,
    session: &str,
    deed: Deed,
    body: &Value,
) -> Result<Exit, Failure> {
    if context.target == Target::Local {
        let endpoint = Endpoint::new(context)?;
        if endpoint.health().await?.is_none() {
            return Err(endpoint.nothing_listens());
        }
    }
    let ledger = Ledger::open(context).await?;
    let id = ledger.find(session).await?;
    let said = tell(context, &ledger, &id, deed, body).await?;
    if context.json {
        output::json(&if said.is_object() { said } else { json!({"session_id": id.as_str()}) })?;
    } else {
        output::say(&format!("{} session {id}", deed.past()));
        output::hint(&format!("follow it with: daybook tail {id}"));
    }
    Ok(Exit::Succeeded)
}
