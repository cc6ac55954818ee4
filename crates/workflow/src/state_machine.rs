//! The state machine's definition in Amazon States Language: the same locally and in the cloud.

/// The definition, with `${NAME}` placeholders for the stack's ARNs and names.
pub const TEXT: &str = include_str!("state_machine.asl.json");

/// The placeholders' names.
pub const SUBSTITUTIONS: &[&str] = &[
    "JOURNAL_TABLE_NAME",
    "JOURNAL_TTL_DAYS",
    "INVOKER_FUNCTION_ARN",
    "POLLER_FUNCTION_ARN",
    TRIGGER_PRINCIPAL,
];

/// The placeholder that says where a trigger's principal comes from.
pub const TRIGGER_PRINCIPAL: &str = "TRIGGER_PRINCIPAL";

/// Its value where the stack itself adds the principal to an execution's input, and checks inputs
/// of other senders.
pub const PRINCIPAL_OF_INPUT: &str = "input";

/// Its value where any sender writes the input: EventBridge does not pass on who sent an event.
pub const PRINCIPAL_UNKNOWN: &str = "unknown";

/// The definition with all placeholders replaced.
pub fn with_substitutions(values: &[(&str, &str)]) -> String {
    values
        .iter()
        .fold(TEXT.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}

/// Whether a definition is this one, whatever replaced its placeholders.
pub fn is_own(definition: &str) -> bool {
    let before = TEXT.split("${").next().unwrap_or(TEXT);
    definition.starts_with(before)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::error_name;

    fn definition() -> Value {
        serde_json::from_str(TEXT).unwrap()
    }

    fn errors_matched() -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for state in definition()["States"].as_object().unwrap().values() {
            for field in ["Retry", "Catch"] {
                for rule in state[field].as_array().into_iter().flatten() {
                    for name in rule["ErrorEquals"].as_array().unwrap() {
                        names.insert(name.as_str().unwrap().to_owned());
                    }
                }
            }
        }
        names
    }

    #[test]
    fn the_definition_is_told_from_others() {
        assert!(is_own(&with_substitutions(&[("JOURNAL_TABLE_NAME", "t")])));
        assert!(!is_own(r#"{"StartAt": "A"}"#));
        assert!(TEXT.split("${").next().unwrap().len() > 500);
    }

    #[test]
    fn every_matched_error_name_is_returned_by_a_function() {
        // The names that Lambda reports for a function that timed out, and for one that exited.
        const RUNTIME: [&str; 2] = ["Sandbox.Timedout", "Runtime.ExitError"];
        for name in errors_matched() {
            let known = name.starts_with("States.")
                || RUNTIME.contains(&name.as_str())
                || name.starts_with("Lambda.")
                || name.starts_with("DynamoDB.")
                || error_name::ALL.contains(&name.as_str());
            assert!(known, "{name}");
        }
    }

    #[test]
    fn the_last_catch_is_states_all_alone() {
        for (name, state) in definition()["States"].as_object().unwrap() {
            if state["Type"] == "Task" {
                let last = state["Catch"].as_array().unwrap().last().unwrap();
                assert_eq!(last["ErrorEquals"], serde_json::json!(["States.ALL"]), "{name}");
            }
        }
    }

    #[test]
    fn no_substitution_is_left_over() {
        let values: Vec<_> = SUBSTITUTIONS.iter().map(|name| (*name, "x")).collect();
        assert!(!with_substitutions(&values).contains("${"));
    }

    #[test]
    fn the_states_of_the_specification_keep_their_names() {
        let definition = definition();
        for name in [
            "InitializeSession",
            "InvokeAgent",
            "CheckStatus",
            "WaitForCompletion",
            "Success",
            "Failure",
        ] {
            assert!(definition["States"][name].is_object(), "{name}");
        }
    }
}
