//! `AWSStepFunctions`: the actions on executions.

use std::slice;

use asl::execution::PAYLOAD_BYTES_MAX;
use asl::history::Failure;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use journal::id::SessionId;
use journal::principal::Principal;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::wire::Refusal;
use super::{machines, map_runs, redrives};
use crate::bus;
use crate::executions::{
    Callback, Executions, Record, Request, SendError, StartError, StopError, UserMachine,
};
use crate::load::{Load, New, NotAdmitted};
use crate::names;

/// Default and maximum page size.
///
/// Source: AWS, `ListExecutions` and `GetExecutionHistory`, `maxResults`.
const PAGE_DEFAULT: usize = 100;
const PAGE_MAX: usize = 1_000;

/// The statuses that a list can be filtered by.
const STATUSES: [&str; 6] =
    ["RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED", "PENDING_REDRIVE"];

/// The fields of an event that `includeExecutionData: false` omits.
const EXECUTION_DATA: [&str; 4] = ["input", "output", "parameters", "assignedVariables"];

pub(super) async fn handle(
    executions: &Executions,
    load: &Load,
    action: &str,
    body: &Value,
    by: &Principal,
) -> Result<Value, Refusal> {
    match action {
        "StartExecution" => start(executions, load, body, by).await,
        "DescribeExecution" => describe(executions, body).await,
        "ListExecutions" => list(executions, body).await,
        "GetExecutionHistory" => history(executions, body).await,
        "StopExecution" => stop(executions, body).await,
        "ListMapRuns" => map_runs::list(executions, body).await,
        "DescribeMapRun" => map_runs::describe(executions, body).await,
        "UpdateMapRun" => map_runs::update(executions, body).await,
        "RedriveExecution" => redrives::redrive(executions, body).await,
        "DescribeStateMachine" => describe_machine(executions, body).await,
        "SendTaskSuccess" => {
            let output = required(body, "output")?;
            if output.len() > PAYLOAD_BYTES_MAX {
                let rule = "Member must have length less than or equal to 262144";
                return Err(Refusal::constraint("'***'", "output", rule));
            }
            let output = serde_json::from_str(output).map_err(|error| {
                Refusal::bad("InvalidOutput", format!("Invalid Output: '{error}'"))
            })?;
            send(executions, body, Callback::Success(output)).await
        }
        "SendTaskFailure" => send(executions, body, Callback::Failure(failure(body)?)).await,
        "SendTaskHeartbeat" => send(executions, body, Callback::Heartbeat).await,
        _ => machines::handle(executions, action, body).await,
    }
}

async fn start(
    executions: &Executions,
    load: &Load,
    body: &Value,
    by: &Principal,
) -> Result<Value, Refusal> {
    let machine = machine_of(executions, body).await?;
    let name = match optional(body, "name")? {
        Some(name) => name.to_owned(),
        None => Uuid::new_v4().to_string(),
    };
    let input = optional(body, "input")?.unwrap_or("{}").to_owned();
    if let Some(machine) = machine {
        if load.is_draining() {
            return Err(Refusal::not_admitted(NotAdmitted::Draining));
        }
        let started = executions.start_of(&machine, Request { name, input }).await;
        let started = started.map_err(not_started)?;
        return Ok(json!({ "executionArn": started.arn, "startDate": started.at }));
    }
    // The workflow's own: a machine of a user gets its input as it is.
    let input = checked(&input, by);
    check_session(&input)?;
    let new = New::of(&name, &input);
    let admitted = load.admit(slice::from_ref(&new), executions).await;
    if let Some(why) = admitted.map_err(|error| Refusal::journal(&error))?.1 {
        return Err(Refusal::not_admitted(why));
    }
    match executions.start(Request { name, input }).await {
        Ok(started) => Ok(json!({ "executionArn": started.arn, "startDate": started.at })),
        Err(error) => {
            load.forget(&new);
            Err(not_started(error))
        }
    }
}

/// Refuses an input with an invalid session id: no reader would find the workflow's first record.
fn check_session(input: &str) -> Result<(), Refusal> {
    let input: Value = serde_json::from_str(input).unwrap_or_default();
    let Some(id) = input.get("session_id").filter(|id| !id.is_null()) else { return Ok(()) };
    let valid = id.as_str().is_some_and(|id| id.parse::<SessionId>().is_ok());
    if valid {
        return Ok(());
    }
    let message = format!(
        "Invalid State Machine Execution Input: 'invalid session_id {id}: expected 33 to 100 letters, \
         digits, dashes and underscores'"
    );
    Err(Refusal::bad("InvalidExecutionInput", message))
}

/// The input as it was sent, unless it claims a principal: the caller's replaces that.
fn checked(input: &str, by: &Principal) -> String {
    let claims = serde_json::from_str::<Value>(input).is_ok_and(|it| it.get("principal").is_some());
    if claims { bus::with_principal(input, by) } else { input.to_owned() }
}

/// AWS's error for an execution that cannot be started.
fn not_started(error: StartError) -> Refusal {
    match error {
        StartError::InvalidName(name) => {
            Refusal::bad("InvalidName", format!("Invalid Name: '{name}'"))
        }
        StartError::InvalidInput(why) => Refusal::bad(
            "InvalidExecutionInput",
            format!("Invalid State Machine Execution Input: '{why}'"),
        ),
        StartError::TooLarge(_) => {
            let rule = "Member must have length less than or equal to 262144";
            Refusal::constraint("'***'", "input", rule)
        }
        StartError::AlreadyExists(arn) => {
            Refusal::bad("ExecutionAlreadyExists", format!("Execution Already Exists: '{arn}'"))
        }
        StartError::Store(error) => Refusal::journal(&error),
    }
}

async fn describe(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let record = found(executions, required(body, "executionArn")?).await?;
    let mut answer = json!({
        "executionArn": record.arn,
        "stateMachineArn": record.machine_arn,
        "name": record.name,
        "status": record.status,
        "startDate": record.started_at,
        "input": record.input,
        "inputDetails": { "included": true },
    });
    redrives::count(&mut answer, &record);
    redrives::status(&mut answer, executions, &record).await?;
    add(&mut answer, "stopDate", record.stopped_at.map(|at| json!(at)));
    add(&mut answer, "outputDetails", record.output.is_some().then(|| json!({ "included": true })));
    add(&mut answer, "output", record.output.map(Value::from));
    add(&mut answer, "error", record.error.map(Value::from));
    add(&mut answer, "cause", record.cause.map(Value::from));
    Ok(answer)
}

async fn list(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let status = optional(body, "statusFilter")?;
    if let Some(status) = status.filter(|status| !STATUSES.contains(status)) {
        let rule = format!("Member must satisfy enum value set: [{}]", STATUSES.join(", "));
        return Err(Refusal::constraint(&format!("'{status}'"), "statusFilter", &rule));
    }
    let redriven = redrives::filter(body)?;
    let page = page_size(body)?;
    let before = position(body)?;
    // One item more than requested shows whether there is a next page.
    let filter = (status, redriven);
    let mut records = match map_runs::executions_of(executions, body).await? {
        Some(children) => {
            let before = before.unwrap_or(i64::MAX);
            let fits = |it: &Record| it.id < before && fits(it, filter);
            children.into_iter().filter(fits).take(page + 1).collect()
        }
        None => {
            machine_of(executions, body).await?;
            let name = names::machine_name(required(body, "stateMachineArn")?);
            listed(executions, &names::machine_arn(name), filter, before, page + 1)
                .await
                .map_err(|error| Refusal::journal(&error))?
        }
    };
    let more = records.len() > page;
    records.truncate(page);
    let next = records.last().filter(|_| more).map(|record| token(record.id));
    let summaries: Vec<_> = records.into_iter().map(summary).collect();
    let mut answer = json!({ "executions": summaries });
    add(&mut answer, "nextToken", next);
    Ok(answer)
}

/// The newest executions of a machine with an id below `before`.
async fn listed(
    executions: &Executions,
    machine: &str,
    (status, redriven): (Option<&str>, Option<bool>),
    mut before: Option<i64>,
    wanted: usize,
) -> Result<Vec<Record>, journal::store::Error> {
    let mut found = Vec::new();
    loop {
        let page = executions.list(status, before, wanted).await?;
        let is_last = page.len() < wanted;
        before = page.last().map(|record| record.id);
        let of = |it: &Record| it.machine_arn == machine && fits(it, (status, redriven));
        found.extend(page.into_iter().filter(of));
        if is_last || found.len() >= wanted {
            found.truncate(wanted);
            return Ok(found);
        }
    }
}

/// Whether an execution has the wanted status, and was redriven or not as wanted.
fn fits(record: &Record, (status, redriven): (Option<&str>, Option<bool>)) -> bool {
    status.is_none_or(|status| record.status == status)
        && redriven.is_none_or(|wanted| wanted == record.redriven.is_some())
}

fn summary(record: Record) -> Value {
    let mut summary = json!({
        "executionArn": record.arn,
        "stateMachineArn": record.machine_arn,
        "name": record.name,
        "status": record.status,
        "startDate": record.started_at,
    });
    redrives::count(&mut summary, &record);
    add(&mut summary, "stopDate", record.stopped_at.map(|at| json!(at)));
    summary
}

async fn history(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let record = found(executions, required(body, "executionArn")?).await?;
    let flag = |name: &str, default: bool| match &body[name] {
        Value::Null => Ok(default),
        Value::Bool(flag) => Ok(*flag),
        _ => Err(serialization(name, "a boolean")),
    };
    let (reverse, with_data) = (flag("reverseOrder", false)?, flag("includeExecutionData", true)?);
    let page = page_size(body)?;
    let mut bodies = executions
        .history(record.id, position(body)?, reverse, page + 1)
        .await
        .map_err(|error| Refusal::journal(&error))?;
    let more = bodies.len() > page;
    bodies.truncate(page);
    let events = bodies
        .iter()
        .map(|body| serde_json::from_str::<Value>(body))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Refusal::journal(&journal::store::Error::Corrupt(error.into())))?;
    let last = events.last().filter(|_| more).and_then(|event| event["id"].as_i64());
    let events: Vec<_> = events
        .into_iter()
        .map(|event| if with_data { as_aws_has_it(event) } else { without_data(event) })
        .collect();
    let mut answer = json!({ "events": events });
    add(&mut answer, "nextToken", last.map(token));
    Ok(answer)
}

/// An event without what only this engine tells.
fn as_aws_has_it(mut event: Value) -> Value {
    if let Some(event) = event.as_object_mut() {
        event.remove("mapRunSucceededEventDetails");
    }
    event
}

fn without_data(event: Value) -> Value {
    let mut event = as_aws_has_it(event);
    for details in event.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Some(details) = details.as_object_mut() {
            details.retain(|name, _| !EXECUTION_DATA.contains(&name.as_str()));
        }
    }
    event
}

async fn stop(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let arn = required(body, "executionArn")?;
    match executions.stop(arn, failure(body)?).await {
        Ok(at) => Ok(json!({ "stopDate": at })),
        Err(StopError::DoesNotExist(arn)) => Err(no_execution(&arn)),
        Err(StopError::Busy) => Err(busy()),
        Err(StopError::Store(error)) => Err(Refusal::journal(&error)),
    }
}

async fn send(executions: &Executions, body: &Value, answer: Callback) -> Result<Value, Refusal> {
    match executions.send(required(body, "taskToken")?, answer).await {
        Ok(()) => Ok(json!({})),
        Err(error) => Err(match error {
            SendError::InvalidToken => {
                Refusal::bad("InvalidToken", "Invalid Token: 'Invalid token'")
            }
            SendError::DoesNotExist => Refusal::bad(
                "TaskDoesNotExist",
                "Task Does Not Exist: 'Provided task does not exist'",
            ),
            SendError::TimedOut => Refusal::bad(
                "TaskTimedOut",
                "Task Timed Out: 'Provided task does not exist anymore'",
            ),
            SendError::Busy => busy(),
            SendError::Store(error) => Refusal::journal(&error),
        }),
    }
}

async fn describe_machine(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    if let Some(machine) = machine_of(executions, body).await? {
        let mut answer = machines::described(&machine);
        answer["stateMachineArn"] = json!(required(body, "stateMachineArn")?);
        return Ok(answer);
    }
    let mut answer = machine_summary(executions);
    answer["status"] = json!("ACTIVE");
    answer["definition"] = json!(executions.machine().text);
    answer["roleArn"] = json!(names::ROLE_ARN);
    answer["loggingConfiguration"] = json!({ "level": "OFF", "includeExecutionData": false });
    answer["tracingConfiguration"] = json!({ "enabled": false });
    Ok(answer)
}

pub(super) fn machine_summary(executions: &Executions) -> Value {
    let machine = executions.machine();
    json!({
        "stateMachineArn": machine.arn,
        "name": machine.name,
        "type": "STANDARD",
        "creationDate": machine.created_at,
    })
}

pub(super) async fn found(executions: &Executions, arn: &str) -> Result<Record, Refusal> {
    let record = executions.describe(arn).await.map_err(|error| Refusal::journal(&error))?;
    record.ok_or_else(|| no_execution(arn))
}

pub(super) fn no_execution(arn: &str) -> Refusal {
    if arn.starts_with("arn:") {
        Refusal::bad("ExecutionDoesNotExist", format!("Execution Does Not Exist: '{arn}'"))
    } else {
        Refusal::bad("InvalidArn", format!("Invalid Arn: '{arn}'"))
    }
}

fn busy() -> Refusal {
    Refusal::new(
        503,
        "ServiceUnavailable",
        "the execution cannot take a request at the moment; try again",
    )
}

/// The state machine that a request names; `None` for the workflow's own.
async fn machine_of(executions: &Executions, body: &Value) -> Result<Option<UserMachine>, Refusal> {
    let arn = required(body, "stateMachineArn")?;
    if arn == names::STATE_MACHINE_ARN {
        return Ok(None);
    }
    if !arn.starts_with("arn:") {
        return Err(Refusal::bad("InvalidArn", format!("Invalid Arn: '{arn}'")));
    }
    let found = executions.machine_to_start(arn).await.map_err(|error| Refusal::journal(&error))?;
    found.map(Some).ok_or_else(|| {
        let message = format!("State Machine Does Not Exist: '{arn}'");
        Refusal::bad("StateMachineDoesNotExist", message)
    })
}

fn failure(body: &Value) -> Result<Failure, Refusal> {
    Ok(Failure {
        error: optional(body, "error")?.map(str::to_owned),
        cause: optional(body, "cause")?.map(str::to_owned),
    })
}

pub(super) fn optional<'a>(body: &'a Value, name: &str) -> Result<Option<&'a str>, Refusal> {
    match &body[name] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        _ => Err(serialization(name, "a string")),
    }
}

pub(super) fn required<'a>(body: &'a Value, name: &str) -> Result<&'a str, Refusal> {
    let rule = "Member must not be null";
    optional(body, name)?.ok_or_else(|| Refusal::constraint("null", name, rule))
}

fn serialization(name: &str, expected: &str) -> Refusal {
    Refusal::bad(
        "com.amazon.coral.service#SerializationException",
        format!("{name} must be {expected}"),
    )
}

pub(super) fn page_size(body: &Value) -> Result<usize, Refusal> {
    match &body["maxResults"] {
        Value::Null => Ok(PAGE_DEFAULT),
        size => match size.as_u64().and_then(|size| usize::try_from(size).ok()) {
            // AWS treats 0 as the default.
            Some(0) => Ok(PAGE_DEFAULT),
            Some(size) if size <= PAGE_MAX => Ok(size),
            _ => {
                let rule = "Member must have value between 0 and 1000";
                Err(Refusal::constraint(&format!("'{size}'"), "maxResults", rule))
            }
        },
    }
}

/// The end of the previous page, as an opaque token.
pub(super) fn token(position: i64) -> Value {
    Value::from(BASE64.encode(format!("after {position}")))
}

pub(super) fn position(body: &Value) -> Result<Option<i64>, Refusal> {
    let Some(token) = optional(body, "nextToken")? else { return Ok(None) };
    let position = BASE64
        .decode(token)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .and_then(|text| text.strip_prefix("after ")?.parse().ok());
    match position {
        Some(position) => Ok(Some(position)),
        None => Err(Refusal::bad("InvalidToken", "Invalid Token: 'Invalid token'")),
    }
}

fn add(answer: &mut Value, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        answer[name] = value;
    }
}
