//! The entries of `PutEvents`: their checks, sizes and times.

use chrono::{DateTime, SecondsFormat, Utc};
use journal::clock::Stamp;
use serde_json::{Value, json};

use super::Refused;
use crate::names;

/// Most entries of one request.
///
/// Source: AWS, `PutEvents`, `Entries`.
pub const ENTRIES_MAX: usize = 10;

/// Largest entry, in bytes.
///
/// Source: AWS, "Calculating PutEvents event entry size".
pub const ENTRY_BYTES_MAX: usize = 256 * 1024;

/// Share of a time in an entry's size, in bytes. Source: as [`ENTRY_BYTES_MAX`].
const TIME_BYTES: usize = 14;

pub(super) fn entries(body: &Value) -> Result<&[Value], Refused> {
    let entries = match &body["Entries"] {
        Value::Array(entries) => entries,
        Value::Null => {
            return Err(Refused::Validation(
                "1 validation error detected: Value null at 'entries' failed to satisfy \
                 constraint: Member must not be null"
                    .to_owned(),
            ));
        }
        _ => return Err(Refused::Serialization("Entries must be a list".to_owned())),
    };
    let bound = match entries.len() {
        0 => "greater than or equal to 1",
        1..=ENTRIES_MAX => return Ok(entries),
        _ => "less than or equal to 10",
    };
    Err(Refused::Validation(format!(
        "1 validation error detected: Value '[{} entries]' at 'entries' failed to satisfy \
         constraint: Member must have length {bound}",
        entries.len()
    )))
}

/// An entry's error, as the API words it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntryError {
    pub(super) code: &'static str,
    pub(super) message: String,
}

/// Validates an entry and returns its detail.
pub(super) fn check(entry: &Value) -> Result<Value, EntryError> {
    for name in ["Source", "DetailType", "Detail"] {
        if entry[name].as_str().unwrap_or_default().is_empty() {
            let message =
                format!("Parameter {name} is not valid. Reason: {name} is a required argument.");
            return Err(EntryError { code: "InvalidArgument", message });
        }
    }
    if entry["Source"].as_str().is_some_and(|source| source.starts_with("aws.")) {
        let message = "Not authorized for the source.".to_owned();
        return Err(EntryError { code: "NotAuthorizedForSourceException", message });
    }
    let bytes = entry_bytes(entry);
    if bytes > ENTRY_BYTES_MAX {
        let message = format!("Total size of the entry of {bytes} bytes is over {ENTRY_BYTES_MAX}");
        return Err(EntryError { code: "InvalidArgument", message });
    }
    match serde_json::from_str(entry["Detail"].as_str().unwrap_or_default()) {
        Ok(detail @ Value::Object(_)) => Ok(detail),
        _ => {
            let message = "Detail is malformed.".to_owned();
            Err(EntryError { code: "MalformedDetail", message })
        }
    }
}

pub(super) fn entry_bytes(entry: &Value) -> usize {
    let text = |value: &Value| value.as_str().map_or(0, str::len);
    let resources = entry["Resources"].as_array().map_or(0, |list| list.iter().map(text).sum());
    let time = if entry["Time"].is_null() { 0 } else { TIME_BYTES };
    time + text(&entry["Source"]) + text(&entry["DetailType"]) + text(&entry["Detail"]) + resources
}

pub(super) fn event_of(entry: &Value, id: &str, time: &str, detail: Value) -> Value {
    json!({
        "version": "0",
        "id": id,
        "detail-type": entry["DetailType"],
        "source": entry["Source"],
        "account": names::ACCOUNT,
        "time": time,
        "region": names::REGION,
        "resources": entry.get("Resources").filter(|list| list.is_array()).unwrap_or(&json!([])),
        "detail": detail,
    })
}

/// EventBridge's timestamps have whole seconds.
pub(super) fn whole_second(now: Stamp) -> String {
    let time = DateTime::<Utc>::from_timestamp(now.seconds(), 0).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Parses the caller's time: epoch seconds, as in the AWS JSON protocol, or RFC 3339.
pub(super) fn time_of(time: &Value) -> Option<String> {
    let millis = match time {
        Value::Number(seconds) => (seconds.as_f64()? * 1_000.0).round() as i64,
        Value::String(text) => Stamp::parse(text).ok()?.millis(),
        _ => return None,
    };
    let format = if millis % 1_000 == 0 { SecondsFormat::Secs } else { SecondsFormat::Millis };
    let in_range = |time: &DateTime<Utc>| (1678..2262).contains(&chrono::Datelike::year(time));
    let time = DateTime::<Utc>::from_timestamp_millis(millis).filter(in_range)?;
    Some(time.to_rfc3339_opts(format, true))
}
