//! `AWSStepFunctions`: the actions on versions and aliases of state machines.

use serde_json::{Value, json};

use super::step_functions::{optional, required};
use super::wire::Refusal;
use crate::executions::{Alias, Executions, Route, Version, VersionError};
use crate::names;

pub(super) async fn handle(
    executions: &Executions,
    action: &str,
    body: &Value,
) -> Result<Value, Refusal> {
    match action {
        "PublishStateMachineVersion" => publish(executions, body).await,
        "ListStateMachineVersions" => list(executions, body).await,
        "DeleteStateMachineVersion" => {
            let arn = required(body, "stateMachineVersionArn")?;
            executions.delete_version(arn).await.map_err(refused)?;
            Ok(json!({}))
        }
        "CreateStateMachineAlias" => create(executions, body).await,
        "UpdateStateMachineAlias" => update(executions, body).await,
        "DescribeStateMachineAlias" => {
            let arn = required(body, "stateMachineAliasArn")?;
            Ok(described(&executions.alias(arn).await.map_err(refused)?))
        }
        "ListStateMachineAliases" => list_aliases(executions, body).await,
        "DeleteStateMachineAlias" => {
            let arn = required(body, "stateMachineAliasArn")?;
            executions.delete_alias(arn).await.map_err(refused)?;
            Ok(json!({}))
        }
        _ => Err(Refusal::unknown_operation(action)),
    }
}

async fn publish(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let description = optional(body, "description")?.unwrap_or_default();
    let arn = required(body, "stateMachineArn")?;
    let version = executions.publish(arn, description).await.map_err(refused)?;
    Ok(summary(&version))
}

async fn list(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let name = names::machine_name(required(body, "stateMachineArn")?);
    let versions = executions.versions(name).await.map_err(|error| Refusal::journal(&error))?;
    let versions: Vec<Value> = versions.iter().map(summary).collect();
    Ok(json!({ "stateMachineVersions": versions }))
}

fn summary(version: &Version) -> Value {
    json!({ "stateMachineVersionArn": version.arn(), "creationDate": version.published_at })
}

async fn create(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let Some(routes) = routes(body)? else {
        let rule = "Member must not be null";
        return Err(Refusal::constraint("null", "routingConfiguration", rule));
    };
    let description = optional(body, "description")?.unwrap_or_default();
    let created = executions.create_alias(required(body, "name")?, description, routes).await;
    let alias = created.map_err(refused)?;
    Ok(json!({ "stateMachineAliasArn": alias.arn(), "creationDate": alias.created_at }))
}

async fn update(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let arn = required(body, "stateMachineAliasArn")?;
    let description = optional(body, "description")?;
    let updated = executions.update_alias(arn, description, routes(body)?).await;
    Ok(json!({ "updateDate": updated.map_err(refused)?.updated_at }))
}

fn routes(body: &Value) -> Result<Option<Vec<Route>>, Refusal> {
    let given = &body["routingConfiguration"];
    if given.is_null() {
        return Ok(None);
    }
    serde_json::from_value(given.clone()).map(Some).map_err(|error| {
        Refusal::bad("ValidationException", format!("Invalid routing configuration: {error}"))
    })
}

async fn list_aliases(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let name = names::machine_name(required(body, "stateMachineArn")?);
    let aliases = executions.aliases(name).await.map_err(|error| Refusal::journal(&error))?;
    let aliases = aliases.iter().map(
        |alias| json!({ "stateMachineAliasArn": alias.arn(), "creationDate": alias.created_at }),
    );
    Ok(json!({ "stateMachineAliases": aliases.collect::<Vec<_>>() }))
}

fn described(alias: &Alias) -> Value {
    json!({
        "stateMachineAliasArn": alias.arn(),
        "name": alias.name,
        "description": alias.description,
        "routingConfiguration": alias.routes,
        "creationDate": alias.created_at,
        "updateDate": alias.updated_at,
    })
}

pub(super) fn refused(error: VersionError) -> Refusal {
    let message = error.to_string();
    match error {
        VersionError::NoMachine(_) => Refusal::bad("StateMachineDoesNotExist", message),
        VersionError::NotFound(_) => Refusal::bad("ResourceNotFound", message),
        VersionError::Conflict(_) => Refusal::bad("ConflictException", message),
        VersionError::Invalid(_) => Refusal::bad("ValidationException", message),
        VersionError::TooMany(_) => Refusal::bad("ServiceQuotaExceededException", message),
        VersionError::Store(error) => Refusal::journal(&error),
    }
}
