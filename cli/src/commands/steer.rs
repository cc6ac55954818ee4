//! `answer`, `cancel` and `resume`: what a person tells a session, through the endpoint.

use serde_json::{Value, json};

use crate::args;
use crate::endpoint::Endpoint;
use crate::failure::{Exit, Failure};
use crate::ledger::{self, Ledger};
use crate::output;
use crate::resolve::{Context, Decision};

/// Asks for a session's end.
///
/// # Errors
/// When nothing listens, or the stack refuses.
pub async fn cancel(context: &Context, cancel: args::steer::Cancel) -> Result<Exit, Failure> {
    let mut body = json!({});
    if let Some(reason) = cancel.reason {
        body["reason"] = reason.into();
    }
    send(context, &cancel.session, "cancel", &body).await
}

/// Carries a session on.
///
/// # Errors
/// When nothing listens, or the stack refuses.
pub async fn resume(context: &Context, session: &str) -> Result<Exit, Failure> {
    send(context, session, "resume", &json!({})).await
}

/// Answers the open question.
///
/// # Errors
/// When none is open, nothing listens, or the stack refuses the answer.
pub async fn answer(context: &Context, session: &str, decision: Decision) -> Result<Exit, Failure> {
    let loaded = Ledger::open(context).await?.load(session).await?;
    let Some(question) = loaded.view(ledger::now()).open_question else {
        return Err(Failure::unknown(format!("no question is open in session {}", loaded.id))
            .hint(format!("daybook show {} tells where it stands", loaded.id)));
    };
    let mut body = match decision {
        Decision::Approve => json!({"decision": "approve"}),
        Decision::Reject(None) => json!({"decision": "reject"}),
        Decision::Reject(Some(reason)) => json!({"decision": "reject", "reason": reason}),
        Decision::Edit(arguments) => json!({"decision": "edit", "arguments": arguments}),
        Decision::Say(text) => json!({"decision": "say", "text": text}),
    };
    body["question_id"] = question.question_id.into();
    send(context, loaded.id.as_str(), "answer", &body).await
}

async fn send(
    context: &Context,
    session: &str,
    what: &'static str,
    body: &Value,
) -> Result<Exit, Failure> {
    let endpoint = Endpoint::new(context)?;
    if endpoint.health().await?.is_none() {
        return Err(endpoint.nothing_listens());
    }
    let id = Ledger::open(context).await?.find(session).await?;
    let said = endpoint.post(&id, what, body).await?;
    if context.json {
        output::json(&if said.is_object() { said } else { json!({"session_id": id.as_str()}) })?;
    } else {
        let past = match what {
            "answer" => "answered",
            "cancel" => "asked for the end of",
            _ => "resumed",
        };
        output::say(&format!("{past} session {id}"));
        output::hint(&format!("follow it with: daybook tail {id}"));
    }
    Ok(Exit::Succeeded)
}
