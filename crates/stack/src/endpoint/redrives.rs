//! `AWSStepFunctions`: `RedriveExecution`, and what other replies say about redrives.

use serde_json::{Value, json};

use super::step_functions::{no_execution, optional, required};
use super::wire::Refusal;
use crate::executions::{Executions, Record, RedriveError};

/// Longest client token.
///
/// Source: AWS, `RedriveExecution`, `clientToken`.
const TOKEN_CHARS_MAX: usize = 64;

/// The values of `redriveFilter`.
const FILTERS: [&str; 2] = ["REDRIVEN", "NOT_REDRIVEN"];

pub(super) async fn redrive(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let arn = required(body, "executionArn")?;
    let token = optional(body, "clientToken")?;
    if token.is_some_and(|token| !(1..=TOKEN_CHARS_MAX).contains(&token.chars().count())) {
        let rule = "Member must have length between 1 and 64";
        return Err(Refusal::constraint("'***'", "clientToken", rule));
    }
    match executions.redrive(arn, token).await {
        Ok(at) => Ok(json!({ "redriveDate": at })),
        Err(RedriveError::DoesNotExist(arn)) => Err(no_execution(&arn)),
        Err(RedriveError::NotRedrivable(why)) => Err(Refusal::bad("ExecutionNotRedrivable", why)),
        Err(RedriveError::Store(error)) => Err(Refusal::journal(&error)),
    }
}

/// Adds how often and when an execution was redriven.
pub(super) fn count(answer: &mut Value, record: &Record) {
    answer["redriveCount"] = json!(record.redriven.as_ref().map_or(0, |redriven| redriven.count));
    if let Some(redriven) = &record.redriven {
        answer["redriveDate"] = json!(redriven.at);
    }
}

/// Adds whether an execution can be redriven now.
pub(super) async fn status(
    answer: &mut Value,
    executions: &Executions,
    record: &Record,
) -> Result<(), Refusal> {
    let journal = |error| Refusal::journal(&error);
    let why = executions.not_redrivable(record).await.map_err(journal)?;
    let run = executions.run_of(record).await.map_err(journal)?;
    let status = match (&why, &run) {
        (Some(_), _) => "NOT_REDRIVABLE",
        (None, Some(_)) => "REDRIVABLE_BY_MAP_RUN",
        (None, None) => "REDRIVABLE",
    };
    if let Some(run) = run {
        answer["mapRunArn"] = json!(run);
    }
    answer["redriveStatus"] = json!(status);
    if let Some(why) = why {
        answer["redriveStatusReason"] = json!(why);
    }
    Ok(())
}

/// Whether the executions of a list are to be redriven ones, or not; `None` for all.
pub(super) fn filter(body: &Value) -> Result<Option<bool>, Refusal> {
    let Some(filter) = optional(body, "redriveFilter")? else { return Ok(None) };
    if !FILTERS.contains(&filter) {
        let rule = format!("Member must satisfy enum value set: [{}]", FILTERS.join(", "));
        return Err(Refusal::constraint(&format!("'{filter}'"), "redriveFilter", &rule));
    }
    Ok(Some(filter == FILTERS[0]))
}
