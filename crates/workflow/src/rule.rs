//! The event bus's rules: which events start a session and what the state machine receives, which
//! events answer a question or cancel a session and what the poller receives.

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

/// The name of the rule for cancellations.
pub const CANCEL_NAME: &str = "daybook-cancel";

/// The `detail-type` of an event that requests a session's end. Its detail is `{"session_id",
/// "reason"?}`.
pub const CANCEL_DETAIL_TYPE: &str = "cancel-agent";

pub const CANCEL_PATTERN: &str = r#"{"source":["manual-trigger"],"detail-type":["cancel-agent"]}"#;

/// That rule's input transformer: the paths, by name.
pub const CANCEL_INPUT_PATHS: &[(&str, &str)] = &[("cancel", "$.detail")];

/// And the template, whose target is the poller's function.
pub const CANCEL_INPUT_TEMPLATE: &str = r#"{"cancel": <cancel>}"#;

/// The name of the rule for resumptions.
pub const RESUME_NAME: &str = "daybook-resume";

/// The `detail-type` of an event that resumes a session. Its detail is `{"session_id",
/// "as_version"?}`.
pub const RESUME_DETAIL_TYPE: &str = "resume-agent";

pub const RESUME_PATTERN: &str = r#"{"source":["manual-trigger"],"detail-type":["resume-agent"]}"#;

/// That rule's input transformer: the paths, by name.
pub const RESUME_INPUT_PATHS: &[(&str, &str)] = &[("resume", "$.detail")];

/// And the template, whose target is the poller's function.
pub const RESUME_INPUT_TEMPLATE: &str = r#"{"resume": <resume>}"#;

/// A rule for one kind of a person's actions; its target is the poller's function.
#[derive(Clone, Copy, Debug)]
pub struct ActionRule {
    pub name: &'static str,
    /// The name of the action, as in the API.
    pub action: &'static str,
    pub detail_type: &'static str,
    pub pattern: &'static str,
    pub input_paths: &'static [(&'static str, &'static str)],
    pub input_template: &'static str,
}

/// The rules for a person's actions.
pub const ACTIONS: [ActionRule; 3] = [
    ActionRule {
        name: ANSWER_NAME,
        action: "answer",
        detail_type: ANSWER_DETAIL_TYPE,
        pattern: ANSWER_PATTERN,
        input_paths: ANSWER_INPUT_PATHS,
        input_template: ANSWER_INPUT_TEMPLATE,
    },
    ActionRule {
        name: CANCEL_NAME,
        action: "cancel",
        detail_type: CANCEL_DETAIL_TYPE,
        pattern: CANCEL_PATTERN,
        input_paths: CANCEL_INPUT_PATHS,
        input_template: CANCEL_INPUT_TEMPLATE,
    },
    ActionRule {
        name: RESUME_NAME,
        action: "resume",
        detail_type: RESUME_DETAIL_TYPE,
        pattern: RESUME_PATTERN,
        input_paths: RESUME_INPUT_PATHS,
        input_template: RESUME_INPUT_TEMPLATE,
    },
];

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
            (CANCEL_PATTERN, CANCEL_DETAIL_TYPE, CANCEL_INPUT_PATHS, CANCEL_INPUT_TEMPLATE),
            (RESUME_PATTERN, RESUME_DETAIL_TYPE, RESUME_INPUT_PATHS, RESUME_INPUT_TEMPLATE),
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
