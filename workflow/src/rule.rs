//! The event bus's rules: which events start a session and what the state machine receives, which
//! events answer a question and what the poller receives.

/// The rule's name.
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

/// That rule's event pattern.
pub const ANSWER_PATTERN: &str = r#"{"source":["manual-trigger"],"detail-type":["answer-agent"]}"#;

/// That rule's input transformer: the paths, by name.
pub const ANSWER_INPUT_PATHS: &[(&str, &str)] = &[("answer", "$.detail")];

/// And the template, whose target is the poller's function.
pub const ANSWER_INPUT_TEMPLATE: &str = r#"{"answer": <answer>}"#;

/// What the names of all that a stack makes begin with, its alarms among them.
pub const STACK_PREFIX: &str = "daybook-";

/// Which alarms are incidents: those of functions that go to `ALARM`, but not the stack's own, or an
/// alarm on a failed diagnosis would ask for another one.
///
/// Source of the event's form: AWS, "Alarm events and EventBridge".
pub const ALARM_PATTERN: &str = r#"{"source":["aws.cloudwatch"],"detail-type":["CloudWatch Alarm State Change"],"detail":{"alarmName":[{"anything-but":{"prefix":"daybook-"}}],"state":{"value":["ALARM"]},"configuration":{"metrics":{"metricStat":{"metric":{"namespace":["AWS/Lambda"]}}}}}}"#;

/// The alarm rule's input transformer's paths, by name.
pub const ALARM_INPUT_PATHS: &[(&str, &str)] = &[
    ("session_id", "$.id"),
    ("time", "$.time"),
    ("alarm", "$.detail.alarmName"),
    ("changed_at", "$.detail.state.timestamp"),
    ("detail", "$.detail"),
];

/// The alarm rule's template: the trigger of an incident, whose key is the one that admission would find.
pub const ALARM_INPUT_TEMPLATE: &str = r#"{"session_id": <session_id>, "time": <time>, "detail": {"agent": "incident", "dedupe_key": "<alarm>@<changed_at>", "input": {"detail-type": "CloudWatch Alarm State Change", "detail": <detail>}}}"#;

/// The template by which a pipe makes a trigger's detail of an SNS message that came through a queue.
///
/// It sets no key: the incident's own id stands before the message's, and only admission can look for
/// it; the envelope that it looks into is made here.
pub const MESSAGE_TEMPLATE: &str =
    r#"{"agent": "incident", "input": {"Records": [{"Sns": <$.body>}]}}"#;

/// The `source` of what happens to executions.
///
/// Source: AWS, "Automating Step Functions event delivery with EventBridge".
pub const EXECUTION_SOURCE: &str = "aws.states";

/// The `detail-type` of what happens to executions.
pub const EXECUTION_STATUS_CHANGE: &str = "Step Functions Execution Status Change";

/// The statuses of an execution that ended without running a state that writes a verdict.
pub const EXECUTION_BROKEN: &[&str] = &["FAILED", "TIMED_OUT", "ABORTED"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_s_own_alarms_are_no_incidents() {
        let pattern: serde_json::Value = serde_json::from_str(ALARM_PATTERN).unwrap();
        let but = &pattern["detail"]["alarmName"][0]["anything-but"]["prefix"];
        assert_eq!(*but, STACK_PREFIX);
    }

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
