//! Texts of executions under the key of the session that they belong to.

use asl::execution::Outcome;
use asl::time::Timestamp;
use journal::id::SessionId;
use journal::read::ENCRYPTED;
use journal::sqlite::SqliteStore;
use journal::sqlite::encrypted::session_of_text;
use journal::store::Error;

use super::store::{NewExecution, Record};

/// An event's id, its time and its text.
pub(super) type Body = (u64, i64, String);
pub(super) type Ended = Option<(Outcome, Timestamp)>;

/// The session of a new execution, as its input or else its name says.
pub(super) fn session_of(new: &NewExecution) -> Option<SessionId> {
    let input: serde_json::Value = serde_json::from_str(&new.input).unwrap_or_default();
    let named = input["session_id"].as_str().and_then(|id| id.parse().ok());
    named.or_else(|| new.name.parse().ok())
}

pub(super) fn encrypt_input(store: &SqliteStore, new: NewExecution) -> Result<NewExecution, Error> {
    let Some(session) = session_of(&new) else { return Ok(new) };
    let input = store.encrypt_text(&session, &place_of_input(&new.arn), &new.input)?;
    Ok(NewExecution { input, ..new })
}

/// Encrypts what an execution appends if its input is encrypted.
pub(super) async fn encrypt_history(
    store: &SqliteStore,
    execution: i64,
    mut bodies: Vec<Body>,
    mut ended: Ended,
) -> Result<(Vec<Body>, Ended), Error> {
    if !store.has_keys() {
        return Ok((bodies, ended));
    }
    let sql = "SELECT input FROM execution WHERE id = ?";
    let input = store.read(move |connection| {
        Ok(connection.query_row(sql, [execution], |row| row.get::<_, String>(0))?)
    });
    let Some(session) = session_of_text(&input.await?) else { return Ok((bodies, ended)) };
    for (id, _, body) in &mut bodies {
        let id = i64::try_from(*id).unwrap_or(i64::MAX);
        *body = store.encrypt_text(&session, &place_of_event(execution, id), body)?;
    }
    if let Some((outcome, _)) = &mut ended {
        let encrypt = |name: &str, text: &mut String| {
            *text = store.encrypt_text(&session, &place_of(execution, name), text)?;
            Ok::<_, Error>(())
        };
        match outcome {
            Outcome::Succeeded(output) => encrypt("output", output)?,
            Outcome::Failed(failure) | Outcome::Aborted(failure) => {
                failure.error.iter_mut().try_for_each(|error| encrypt("error", error))?;
                failure.cause.iter_mut().try_for_each(|cause| encrypt("cause", cause))?;
            }
            Outcome::TimedOut => {}
        }
    }
    Ok((bodies, ended))
}

/// A record with its texts decrypted. Those of an erased session are gone, except that an input is JSON.
pub(super) fn decrypted(store: &SqliteStore, mut record: Record) -> Result<Record, Error> {
    let id = record.id;
    let gone =
        || serde_json::json!({ ENCRYPTED: "the session's key was destroyed or is not here" });
    let input = store.decrypt_text(&place_of_input(&record.arn), record.input)?;
    record.input = input.unwrap_or_else(|| gone().to_string());
    let text = |name: &str, text: Option<String>| match text {
        Some(text) => store.decrypt_text(&place_of(id, name), text),
        None => Ok(None),
    };
    record.output = text("output", record.output)?;
    record.error = text("error", record.error)?;
    record.cause = text("cause", record.cause)?;
    Ok(record)
}

pub(super) fn place_of_input(arn: &str) -> String {
    format!("input of {arn}")
}

pub(super) fn place_of(execution: i64, name: &str) -> String {
    format!("{name} of execution {execution}")
}

pub(super) fn place_of_event(execution: i64, event: i64) -> String {
    format!("event {event} of execution {execution}")
}
