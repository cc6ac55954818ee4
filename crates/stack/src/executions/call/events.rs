//! The event bus, for tasks that put events.

use std::sync::Arc;

use asl::error_name;
use asl::history::Failure;
use journal::principal::Principal;
use serde_json::{Value, json};

use super::{ExecutionStore, Shared, with_metadata};
use crate::bus::{Bus, Refused};
use crate::executions::Executions;
use crate::names;

/// Puts the entries in the arguments on the bus. A refused entry fails the task.
pub(super) async fn put<S: ExecutionStore>(
    shared: &Arc<Shared<S>>,
    caller: &str,
    mut arguments: Value,
) -> Result<Value, Failure> {
    complete(&mut arguments, caller, &names::machine_of_execution(caller));
    // Created for each call: a stored one would form a reference cycle with the executions.
    let executions = Executions { shared: Arc::clone(shared) };
    let bus = Bus::new(executions, shared.services.functions.clone(), shared.clock.clone())
        .map_err(|error| Failure::new(error_name::RUNTIME, Some(error.to_string())))?
        .with_load(shared.services.load.clone());
    let answer = bus.put_events(&arguments, &Principal::Unknown).await.map_err(|refused| {
        let code = match refused {
            Refused::Validation(_) => "ValidationException",
            Refused::Serialization(_) => "SerializationException",
            Refused::NoSuchBus(_) => "ResourceNotFoundException",
            Refused::NotAdmitted(why) => why.http().1,
        };
        Failure::new(format!("EventBridge.{code}"), Some(refused.to_string()))
    })?;
    if answer["FailedEntryCount"] != 0 {
        return Err(Failure::new("EventBridge.FailedEntry", Some(answer.to_string())));
    }
    Ok(with_metadata(answer))
}

/// Completes entries as Step Functions does: a `Detail` may be JSON, and the execution and its state
/// machine are added to `Resources`.
///
/// Source: AWS, "Add EventBridge events with Step Functions".
fn complete(arguments: &mut Value, execution: &str, machine: &str) {
    let entries = arguments.get_mut("Entries").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(detail) = entry.get_mut("Detail").filter(|detail| detail.is_object()) {
            *detail = Value::String(detail.to_string());
        }
        if let Value::Array(list) = entry.entry("Resources").or_insert_with(|| json!([])) {
            list.extend([json!(execution), json!(machine)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entrys_detail_may_be_json_and_names_its_execution() {
        let mut arguments = json!({"Entries": [
            {"Detail": {"a": 1}, "Resources": ["r"]}, {"Detail": "{}"}, 7,
        ]});
        complete(&mut arguments, "e", "m");
        assert_eq!(
            arguments["Entries"],
            json!([
                {"Detail": r#"{"a":1}"#, "Resources": ["r", "e", "m"]},
                {"Detail": "{}", "Resources": ["e", "m"]},
                7,
            ])
        );
    }
}
