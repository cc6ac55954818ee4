//! `AWSEvents`: the actions on rules and their targets.

use asl::rule::{Pattern, PatternError};
use serde_json::{Value, json};

use super::step_functions::{optional, required};
use super::wire::Refusal;
use crate::bus::check_bus;
use crate::executions::{Executions, is_own};
use crate::names;
use crate::rules::{RULES_MAX, RuleRecord, TARGETS_MAX, TargetRecord};

pub(super) async fn handle(
    executions: &Executions,
    action: &str,
    body: &Value,
) -> Result<Value, Refusal> {
    if action != "TestEventPattern" {
        check_bus(&body["EventBusName"])
            .map_err(|refused| Refusal::bad("ResourceNotFoundException", refused.to_string()))?;
    }
    let _changing = executions.changing().await;
    match action {
        "TestEventPattern" => test_pattern(body),
        "PutRule" => put_rule(executions, body).await,
        "DescribeRule" => {
            let rule = found(executions, required(body, "Name")?).await?;
            Ok(described(&rule))
        }
        "ListRules" => list(executions, body).await,
        "DeleteRule" => delete(executions, body).await,
        "EnableRule" => set_state(executions, body, "ENABLED").await,
        "DisableRule" => set_state(executions, body, "DISABLED").await,
        "PutTargets" => put_targets(executions, body).await,
        "RemoveTargets" => remove_targets(executions, body).await,
        "ListTargetsByRule" => {
            let rule = found(executions, required(body, "Rule")?).await?;
            Ok(json!({ "Targets": rule.targets }))
        }
        _ => Err(Refusal::unknown_operation(action)),
    }
}

fn test_pattern(body: &Value) -> Result<Value, Refusal> {
    let pattern = Pattern::parse(required(body, "EventPattern")?).map_err(invalid)?;
    let event: Value = serde_json::from_str(required(body, "Event")?).map_err(|error| {
        Refusal::bad(
            "ValidationException",
            format!("Parameter Event is not valid. Reason: {error}"),
        )
    })?;
    for name in ["id", "account", "source", "time", "region", "resources", "detail-type"] {
        if event.get(name).is_none() {
            let message =
                format!("Parameter Event is not valid. Reason: {name} is a required argument.");
            return Err(Refusal::bad("ValidationException", message));
        }
    }
    Ok(json!({ "Result": pattern.matches(&event) }))
}

async fn put_rule(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let name = required(body, "Name")?;
    let allowed = |char: char| char.is_ascii_alphanumeric() || ".-_".contains(char);
    if name.is_empty() || name.chars().count() > 64 || !name.chars().all(allowed) {
        let rule = r"Member must satisfy regular expression pattern: [\.\-_A-Za-z0-9]+";
        return Err(Refusal::constraint(&format!("'{name}'"), "name", rule));
    }
    if optional(body, "ScheduleExpression")?.is_some() {
        let message = "the local stack runs no schedules: give the rule an EventPattern";
        return Err(Refusal::bad("ValidationException", message));
    }
    let Some(pattern) = optional(body, "EventPattern")? else {
        let message = "Parameter(s) EventPattern or ScheduleExpression must be specified.";
        return Err(Refusal::bad("ValidationException", message));
    };
    Pattern::parse(pattern).map_err(invalid)?;
    let known = rules(executions).await?;
    let before = known.iter().find(|rule| rule.name == name);
    if before.is_none() && known.len() >= RULES_MAX {
        return Err(too_many());
    }
    let rule = RuleRecord {
        name: name.to_owned(),
        event_pattern: pattern.to_owned(),
        state: state(optional(body, "State")?.unwrap_or("ENABLED"))?.to_owned(),
        description: optional(body, "Description")?.map(str::to_owned),
        targets: before.map(|rule| rule.targets.clone()).unwrap_or_default(),
    };
    keep(executions, &rule).await?;
    Ok(json!({ "RuleArn": rule.arn() }))
}

fn state(state: &str) -> Result<&str, Refusal> {
    if ["ENABLED", "DISABLED"].contains(&state) {
        return Ok(state);
    }
    let rule = "Member must satisfy enum value set: [DISABLED, ENABLED]";
    Err(Refusal::constraint(&format!("'{state}'"), "state", rule))
}

async fn set_state(executions: &Executions, body: &Value, state: &str) -> Result<Value, Refusal> {
    let mut rule = found(executions, required(body, "Name")?).await?;
    rule.state = state.to_owned();
    keep(executions, &rule).await?;
    Ok(json!({}))
}

async fn list(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let prefix = optional(body, "NamePrefix")?.unwrap_or_default();
    let rules = rules(executions).await?;
    let rules = rules.iter().filter(|rule| rule.name.starts_with(prefix));
    Ok(json!({ "Rules": rules.map(described).collect::<Vec<_>>() }))
}

async fn delete(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let name = required(body, "Name")?;
    let known = rules(executions).await?;
    if known.iter().any(|rule| rule.name == name && !rule.targets.is_empty()) {
        let message = "Rule can't be deleted since it has targets.";
        return Err(Refusal::bad("ValidationException", message));
    }
    executions.delete_rule(name).await.map_err(|error| Refusal::journal(&error))?;
    Ok(json!({}))
}

async fn put_targets(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let mut rule = found(executions, required(body, "Rule")?).await?;
    let targets: Vec<TargetRecord> =
        serde_json::from_value(body["Targets"].clone()).map_err(|error| {
            Refusal::bad("ValidationException", format!("Targets is not valid: {error}"))
        })?;
    if targets.len() > TARGETS_MAX {
        return Err(too_many());
    }
    let mut failed = Vec::new();
    for target in targets {
        if let Err((code, message)) = accepted(executions, &target).await? {
            failed.push(json!({
                "TargetId": target.id, "ErrorCode": code, "ErrorMessage": message,
            }));
            continue;
        }
        rule.targets.retain(|known| known.id != target.id);
        rule.targets.push(target);
    }
    if rule.targets.len() > TARGETS_MAX {
        return Err(too_many());
    }
    keep(executions, &rule).await?;
    Ok(json!({ "FailedEntryCount": failed.len(), "FailedEntries": failed }))
}

/// Whether this stack can deliver to a target.
async fn accepted(
    executions: &Executions,
    target: &TargetRecord,
) -> Result<Result<(), (&'static str, String)>, Refusal> {
    if let Some(problem) = target.problem() {
        return Ok(Err(("ValidationException", problem)));
    }
    let given =
        [target.input.is_some(), target.input_path.is_some(), target.input_transformer.is_some()];
    if given.iter().filter(|given| **given).count() > 1 {
        let message = "Only one of Input, InputPath, or InputTransformer must be provided";
        return Ok(Err(("ValidationException", format!("{message} for target {}.", target.id))));
    }
    let arn = target.arn.as_str();
    let found = if arn.starts_with("arn:aws:lambda:") {
        executions.functions().has(arn) && !is_own(arn)
    } else {
        let machine = executions.machine_to_start(arn).await;
        machine.map_err(|error| Refusal::journal(&error))?.is_some()
    };
    Ok(if found {
        Ok(())
    } else {
        let message = format!(
            "{arn} is neither a state machine that was created on this stack nor one of its functions"
        );
        Err(("ResourceNotFoundException", message))
    })
}

async fn remove_targets(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let mut rule = found(executions, required(body, "Rule")?).await?;
    let ids: Vec<String> = serde_json::from_value(body["Ids"].clone()).map_err(|error| {
        Refusal::bad("ValidationException", format!("Ids is not valid: {error}"))
    })?;
    rule.targets.retain(|target| !ids.contains(&target.id));
    keep(executions, &rule).await?;
    Ok(json!({ "FailedEntryCount": 0, "FailedEntries": [] }))
}

fn too_many() -> Refusal {
    let message = "The requested resource exceeds the maximum number allowed.";
    Refusal::bad("LimitExceededException", message)
}

fn described(rule: &RuleRecord) -> Value {
    let mut described = json!({
        "Name": rule.name,
        "Arn": rule.arn(),
        "EventPattern": rule.event_pattern,
        "State": rule.state,
        "EventBusName": names::EVENT_BUS,
    });
    if let Some(description) = &rule.description {
        described["Description"] = json!(description);
    }
    described
}

async fn rules(executions: &Executions) -> Result<Vec<RuleRecord>, Refusal> {
    executions.rule_records().await.map_err(|error| Refusal::journal(&error))
}

async fn found(executions: &Executions, name: &str) -> Result<RuleRecord, Refusal> {
    let rules = rules(executions).await?;
    rules.into_iter().find(|rule| rule.name == name).ok_or_else(|| {
        let message = format!("Rule {name} does not exist on EventBus {}.", names::EVENT_BUS);
        Refusal::bad("ResourceNotFoundException", message)
    })
}

async fn keep(executions: &Executions, rule: &RuleRecord) -> Result<(), Refusal> {
    executions.put_rule(rule).await.map_err(|error| Refusal::journal(&error))
}

fn invalid(error: PatternError) -> Refusal {
    Refusal::bad("InvalidEventPatternException", error.to_string())
}
