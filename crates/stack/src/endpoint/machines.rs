//! `AWSStepFunctions`: the actions on state machines.

use asl::definition::Definition;
use serde_json::{Value, json};

use super::step_functions::{machine_summary, optional, required};
use super::wire::Refusal;
use super::{test_state, versions};
use crate::executions::{Executions, MachineError, UserMachine, workflow_of};
use crate::names;

/// The workflow types.
const TYPES: [&str; 2] = ["STANDARD", "EXPRESS"];

pub(super) async fn handle(
    executions: &Executions,
    action: &str,
    body: &Value,
) -> Result<Value, Refusal> {
    let _changing = match action {
        "TestState" | "ValidateStateMachineDefinition" => None,
        _ => Some(executions.changing().await),
    };
    match action {
        "CreateStateMachine" => create(executions, body).await,
        "UpdateStateMachine" => update(executions, body).await,
        "DeleteStateMachine" => delete(executions, body).await,
        "ListStateMachines" => list(executions).await,
        "DescribeStateMachineForExecution" => of_execution(executions, body).await,
        "ValidateStateMachineDefinition" => validate(body),
        "TestState" => test_state::handle(executions, body).await,
        _ => versions::handle(executions, action, body).await,
    }
}

/// Publishes the machine if the request says so; adds the version's ARN to the reply.
async fn publish(
    executions: &Executions,
    body: &Value,
    arn: &str,
    mut answer: Value,
) -> Result<Value, Refusal> {
    if body["publish"] == true {
        let description = optional(body, "versionDescription")?.unwrap_or_default();
        let version = executions.publish(arn, description).await.map_err(versions::refused)?;
        answer["stateMachineVersionArn"] = json!(version.arn());
    }
    Ok(answer)
}

async fn create(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let machine_type = machine_type(body)?;
    let (name, definition) = (required(body, "name")?, required(body, "definition")?);
    let created =
        executions.create_machine(name, machine_type, definition, required(body, "roleArn")?).await;
    let machine = created.map_err(refused)?;
    let answer = json!({ "stateMachineArn": machine.arn(), "creationDate": machine.created_at });
    publish(executions, body, &machine.arn(), answer).await
}

async fn update(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let arn = required(body, "stateMachineArn")?;
    if arn == names::STATE_MACHINE_ARN {
        return Err(workflows_own("change"));
    }
    let (definition, role) = (optional(body, "definition")?, optional(body, "roleArn")?);
    if definition.is_none() && role.is_none() {
        let message = "Either the definition, the role ARN, the LoggingConfiguration, the \
                       TracingConfiguration or the EncryptionConfiguration must be specified";
        return Err(Refusal::bad("MissingRequiredParameter", message));
    }
    let machine = executions.update_machine(arn, definition, role).await.map_err(refused)?;
    let answer = json!({ "updateDate": machine.updated_at, "revisionId": machine.revision_id });
    publish(executions, body, arn, answer).await
}

async fn delete(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let arn = required(body, "stateMachineArn")?;
    if arn == names::STATE_MACHINE_ARN {
        return Err(workflows_own("remove"));
    }
    executions.delete_machine(arn).await.map_err(|error| Refusal::journal(&error))?;
    Ok(json!({}))
}

async fn list(executions: &Executions) -> Result<Value, Refusal> {
    let machines = executions.user_machines().await.map_err(|error| Refusal::journal(&error))?;
    let mut summaries = vec![machine_summary(executions)];
    summaries.extend(machines.iter().map(|machine| {
        json!({
            "stateMachineArn": machine.arn(),
            "name": machine.name,
            "type": machine.machine_type,
            "creationDate": machine.created_at,
        })
    }));
    Ok(json!({ "stateMachines": summaries }))
}

/// The definition that an execution runs, which its machine may have left since.
async fn of_execution(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let arn = required(body, "executionArn")?;
    let journal = |error| Refusal::journal(&error);
    let Some(record) = executions.describe(arn).await.map_err(journal)? else {
        let message = format!("Execution Does Not Exist: '{arn}'");
        return Err(Refusal::bad("ExecutionDoesNotExist", message));
    };
    let text = executions.definition_text(&record).await.map_err(journal)?;
    let machine = executions.user_machine(&record.machine_arn).await.map_err(journal)?;
    let role = machine.as_ref().map_or(names::ROLE_ARN, |machine| machine.role_arn.as_str());
    let updated_at = machine.as_ref().map_or(executions.machine().created_at, |it| it.updated_at);
    let mut answer = json!({
        "stateMachineArn": record.machine_arn,
        "name": names::machine_name(&record.machine_arn),
        "definition": text,
        "roleArn": role,
        "updateDate": updated_at,
        "loggingConfiguration": { "level": "OFF", "includeExecutionData": false },
        "tracingConfiguration": { "enabled": false },
    });
    if let Some(run) = executions.run_of(&record).await.map_err(journal)? {
        answer["mapRunArn"] = json!(run);
        answer["label"] = json!(record.machine_arn.rsplit('/').next());
    }
    Ok(answer)
}

fn validate(body: &Value) -> Result<Value, Refusal> {
    let checked =
        Definition::check(required(body, "definition")?, workflow_of(machine_type(body)?));
    let errors = checked.err().unwrap_or_default();
    let diagnostics: Vec<Value> = errors
        .iter()
        .map(|error| {
            let mut diagnostic = json!({
                "severity": "ERROR",
                "code": error.problem.code(),
                "message": error.problem.to_string(),
            });
            if let Some(location) = &error.location {
                diagnostic["location"] = json!(location);
            }
            diagnostic
        })
        .collect();
    let result = if diagnostics.is_empty() { "OK" } else { "FAIL" };
    Ok(json!({ "result": result, "diagnostics": diagnostics, "truncated": false }))
}

/// The reply of `DescribeStateMachine`.
pub(super) fn described(machine: &UserMachine) -> Value {
    json!({
        "stateMachineArn": machine.arn(),
        "name": machine.name,
        "status": "ACTIVE",
        "definition": machine.definition,
        "roleArn": machine.role_arn,
        "type": machine.machine_type,
        "creationDate": machine.created_at,
        "revisionId": machine.revision_id,
        "loggingConfiguration": { "level": "OFF", "includeExecutionData": false },
        "tracingConfiguration": { "enabled": false },
    })
}

fn machine_type(body: &Value) -> Result<&str, Refusal> {
    let machine_type = optional(body, "type")?.unwrap_or("STANDARD");
    if TYPES.contains(&machine_type) {
        return Ok(machine_type);
    }
    let rule = "Member must satisfy enum value set: [STANDARD, EXPRESS]";
    Err(Refusal::constraint(&format!("'{machine_type}'"), "type", rule))
}

fn refused(error: MachineError) -> Refusal {
    let message = error.to_string();
    match error {
        MachineError::Name(_) => Refusal::bad("InvalidName", message),
        MachineError::Exists(_) => Refusal::bad("StateMachineAlreadyExists", message),
        MachineError::DoesNotExist(_) => Refusal::bad("StateMachineDoesNotExist", message),
        MachineError::Definition(_) => Refusal::bad(
            "InvalidDefinition",
            format!("Invalid State Machine Definition: '{message}'"),
        ),
        MachineError::TooMany => Refusal::bad("StateMachineLimitExceeded", message),
        MachineError::Store(error) => Refusal::journal(&error),
    }
}

fn workflows_own(verb: &str) -> Refusal {
    let message = format!(
        "the state machine {} is Daybook's workflow: start the stack with --workflow to {verb} it",
        names::STATE_MACHINE_ARN
    );
    Refusal::bad("ValidationException", message)
}
