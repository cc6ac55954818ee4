//! `AWSStepFunctions`: the actions on runs of distributed maps.

use serde_json::{Value, json};

use super::step_functions::{optional, page_size, position, required, token};
use super::wire::Refusal;
use crate::executions::{
    ChildCounts, Executions, MapRunChange, MapRunError, PENDING_REDRIVE, RUNNING, UserMapRun,
};

/// The statuses in counts, and how AWS names them.
const COUNTS: [(&str, &str); 7] = [
    ("pending", "PENDING"),
    ("running", RUNNING),
    ("succeeded", "SUCCEEDED"),
    ("failed", "FAILED"),
    ("timedOut", "TIMED_OUT"),
    ("aborted", "ABORTED"),
    ("pendingRedrive", PENDING_REDRIVE),
];

pub(super) async fn list(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let arn = required(body, "executionArn")?;
    super::step_functions::found(executions, arn).await?;
    let (page, before) = (page_size(body)?, position(body)?.unwrap_or(i64::MAX));
    let mut runs = executions.map_runs().await.map_err(|error| Refusal::journal(&error))?;
    runs.retain(|run| run.execution_arn == arn);
    // Newest first. A position counts the runs that are older.
    runs.sort_by(|a, b| (a.started_at, &a.arn).cmp(&(b.started_at, &b.arn)));
    let older = runs.into_iter().enumerate().filter(|(at, _)| (*at as i64) < before);
    let mut listed: Vec<_> = older.collect();
    listed.reverse();
    let more = listed.len() > page;
    listed.truncate(page);
    let mut answer = json!({
        "mapRuns": listed.iter().map(|(_, run)| item(run)).collect::<Vec<_>>(),
    });
    if let Some((at, _)) = listed.last().filter(|_| more) {
        answer["nextToken"] = token(*at as i64);
    }
    Ok(answer)
}

fn item(run: &UserMapRun) -> Value {
    let mut item = json!({
        "executionArn": run.execution_arn,
        "mapRunArn": run.arn,
        "stateMachineArn": run.machine_arn,
        "startDate": run.started_at,
    });
    if let Some(at) = run.stopped_at {
        item["stopDate"] = json!(at);
    }
    item
}

pub(super) async fn describe(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let run = found(executions, required(body, "mapRunArn")?).await?;
    let counts = executions.child_counts(&run).await.map_err(|error| Refusal::journal(&error))?;
    let mut answer = item(&run);
    if let Some(answer) = answer.as_object_mut() {
        answer.remove("stateMachineArn");
    }
    answer["status"] = json!(run.status);
    answer["maxConcurrency"] = json!(run.max_concurrency);
    answer["toleratedFailureCount"] = json!(run.tolerated_count.unwrap_or(0));
    answer["toleratedFailurePercentage"] = json!(run.tolerated_percentage.unwrap_or(0.0));
    answer["itemCounts"] = counted(&run, &counts, |(_, items)| items);
    answer["executionCounts"] = counted(&run, &counts, |(executions, _)| executions);
    answer["redriveCount"] = json!(run.redrives);
    if let Some(at) = run.redriven_at {
        answer["redriveDate"] = json!(at);
    }
    Ok(answer)
}

fn counted(
    run: &UserMapRun,
    counts: &ChildCounts,
    which: impl Fn((usize, usize)) -> usize,
) -> Value {
    let mut counted = json!({ "failuresNotRedrivable": 0 });
    let mut total = 0;
    for (name, status) in COUNTS {
        let count = which(counts.of(status));
        counted[name] = json!(count);
        total += count;
    }
    counted["total"] = json!(total);
    let is_written = run.has_writer && run.stopped_at.is_some();
    counted["resultsWritten"] = json!(if is_written { which(counts.of("SUCCEEDED")) } else { 0 });
    counted
}

pub(super) async fn update(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let arn = required(body, "mapRunArn")?;
    let percentage = match &body["toleratedFailurePercentage"] {
        Value::Null => None,
        value => match value.as_f64() {
            Some(share) if (0.0..=100.0).contains(&share) => Some(share),
            _ => {
                let rule = "Member must have value between 0 and 100";
                let shown = format!("'{value}'");
                return Err(Refusal::constraint(&shown, "toleratedFailurePercentage", rule));
            }
        },
    };
    let change = MapRunChange {
        max_concurrency: whole(body, "maxConcurrency")?,
        tolerated_count: whole(body, "toleratedFailureCount")?,
        tolerated_percentage: percentage,
    };
    executions.update_map_run(arn, change).await.map_err(|error| match error {
        MapRunError::DoesNotExist(_) => Refusal::bad("ResourceNotFound", error.to_string()),
        MapRunError::Ended(_) => Refusal::bad("ValidationException", error.to_string()),
        MapRunError::Store(error) => Refusal::journal(&error),
    })?;
    Ok(json!({}))
}

fn whole(body: &Value, name: &str) -> Result<Option<usize>, Refusal> {
    match &body[name] {
        Value::Null => Ok(None),
        value => match value.as_u64().and_then(|number| usize::try_from(number).ok()) {
            Some(number) => Ok(Some(number)),
            None => {
                let rule = "Member must have value greater than or equal to 0";
                Err(Refusal::constraint(&format!("'{value}'"), name, rule))
            }
        },
    }
}

/// The executions of a run, newest first, for `ListExecutions`.
pub(super) async fn executions_of(
    executions: &Executions,
    body: &Value,
) -> Result<Option<Vec<crate::executions::Record>>, Refusal> {
    let Some(arn) = optional(body, "mapRunArn")? else { return Ok(None) };
    if optional(body, "stateMachineArn")?.is_some() {
        let message = "stateMachineArn and mapRunArn exclude each other";
        return Err(Refusal::bad("ValidationException", message));
    }
    found(executions, arn).await?;
    let mut children = executions.children(arn).await.map_err(|error| Refusal::journal(&error))?;
    children.reverse();
    Ok(Some(children))
}

async fn found(executions: &Executions, arn: &str) -> Result<UserMapRun, Refusal> {
    let run = executions.map_run(arn).await.map_err(|error| Refusal::journal(&error))?;
    run.ok_or_else(|| Refusal::bad("ResourceNotFound", format!("Resource not found: '{arn}'")))
}
