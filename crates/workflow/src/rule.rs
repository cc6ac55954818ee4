//! The event bus's rules: which events start a session and what the state machine receives, which
//! events answer a question and what the poller receives.

pub const NAME: &str = "daybook-trigger";

/// The `source` of a trigger event.
pub const SOURCE: &str = "manual-trigger";

/// The `detail-type` of a trigger event.
pub const DETAIL_TYPE: &str = "execute-agent";

/// The rule's event pattern.
pub const PATTERN: &str = r#"{"source":["manual-trigger"],"detail-type":["execute-agent"]}"#;

/// The input transformer's paths, by name.
pub const INPUT_PATHS: &[(&str, &str)] =
    &[("session_id", "$.id"), ("time", "$.time"), ("detail", "$.detail")];

/// The input transformer's template: the same text locally and in the cloud.
pub const INPUT_TEMPLATE: &str =
    r#"{"session_id": <session_id>, "time": <time>, "detail": <detail>}"#;

/// The name of the rule for answers.
pub const ANSWER_NAME: &str = "daybook-answer";

/// The `detail-type` of an event that answers a question. Its detail is the answer, with the
/// `session_id`.
pub const ANSWER_DETAIL_TYPE: &str = "answer-agent";

pub const ANSWER_PATTERN: &str = r#"{"source":["manual-trigger"],"detail-type":["answer-agent"]}"#;

/// That rule's input transformer: the paths, by name.
pub const ANSWER_INPUT_PATHS: &[(&str, &str)] = &[("answer", "$.detail")];

/// And the template, whose target is the poller's function.
pub const ANSWER_INPUT_TEMPLATE: &str = r#"{"answer": <answer>}"#;

/// The prefix of the names of all of a stack's resources, its alarms among them.
pub const STACK_PREFIX: &str = "daybook-";

/// The `source` of status changes of executions.
///
/// Source: AWS, "Automating Step Functions event delivery with EventBridge".
pub const EXECUTION_SOURCE: &str = "aws.states";

/// The `detail-type` of status changes of executions.
pub const EXECUTION_STATUS_CHANGE: &str = "Step Functions Execution Status Change";

/// The statuses of an execution that ended without running a state that writes a verdict.
pub const EXECUTION_BROKEN: &[&str] = &["FAILED", "TIMED_OUT", "ABORTED"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pattern_names_the_source_and_its_detail_type() {
        for (pattern, detail_type, paths, template) in [
            (PATTERN, DETAIL_TYPE, INPUT_PATHS, INPUT_TEMPLATE),
            (ANSWER_PATTERN, ANSWER_DETAIL_TYPE, ANSWER_INPUT_PATHS, ANSWER_INPUT_TEMPLATE),
        ] {
            let pattern: serde_json::Value = serde_json::from_str(pattern).unwrap();
            assert_eq!(pattern["source"][0], SOURCE);
            assert_eq!(pattern["detail-type"][0], detail_type);
            for (name, _) in paths {
                assert!(template.contains(&format!("<{name}>")), "{name}");
            }
        }
    }
}
