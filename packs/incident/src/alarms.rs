//! Turns alarms and reports into triggers of this agent: an event bus rule, and a pipe behind a queue.

/// Matches alarms of functions that go to `ALARM`, except the stack's own: an alarm on a failed diagnosis
/// would start another one.
///
/// Source of the event's form: AWS, "Alarm events and EventBridge".
pub const PATTERN: &str = r#"{"source":["aws.cloudwatch"],"detail-type":["CloudWatch Alarm State Change"],"detail":{"alarmName":[{"anything-but":{"prefix":"daybook-"}}],"state":{"value":["ALARM"]},"configuration":{"metrics":{"metricStat":{"metric":{"namespace":["AWS/Lambda"]}}}}}}"#;

/// The rule's input transformer's paths, by name.
pub const INPUT_PATHS: &[(&str, &str)] = &[
    ("session_id", "$.id"),
    ("time", "$.time"),
    ("alarm", "$.detail.alarmName"),
    ("changed_at", "$.detail.state.timestamp"),
    ("detail", "$.detail"),
];

/// The rule's template: a trigger with the dedupe key that admission would derive from its input.
pub const INPUT_TEMPLATE: &str = r#"{"session_id": <session_id>, "time": <time>, "detail": {"agent": "incident", "dedupe_key": "<alarm>@<changed_at>", "input": {"detail-type": "CloudWatch Alarm State Change", "detail": <detail>}}}"#;

/// The pipe's template: a trigger's detail from an SNS message in a queue.
///
/// It sets no dedupe key: the incident's own id takes precedence over the message's, and only admission
/// can read it from the envelope.
pub const MESSAGE_TEMPLATE: &str =
    r#"{"agent": "incident", "input": {"Records": [{"Sns": <$.body>}]}}"#;

#[cfg(test)]
mod tests {
    use asl::rule::{Origin, Transformer};
    use serde_json::{Value, json};
    use workflow::rule::STACK_PREFIX;
    use workflow::trigger::Trigger;

    use super::*;
    use crate::message::Incident;

    #[test]
    fn the_stack_s_own_alarms_are_not_incidents() {
        let pattern: Value = serde_json::from_str(PATTERN).unwrap();
        let but = &pattern["detail"]["alarmName"][0]["anything-but"]["prefix"];
        assert_eq!(*but, STACK_PREFIX);
    }

    /// Source of the event's form: AWS, "Alarm events and EventBridge".
    #[test]
    fn an_alarm_s_template_gives_a_valid_trigger() {
        let metric = json!({"namespace": "AWS/Lambda", "name": "Errors", "dimensions": {"FunctionName": "orders"}});
        let event = json!({
            "id": "i", "time": "2026-11-21T10:00:01Z", "source": "aws.cloudwatch",
            "detail-type": "CloudWatch Alarm State Change",
            "detail": {
                "alarmName": "orders-fail",
                "state": {"value": "ALARM", "reason": "Threshold Crossed: \"1\"", "timestamp": "2026-11-21T10:00:00.000+0000"},
                "configuration": {"metrics": [{"id": "m", "returnData": true, "metricStat": {"metric": metric, "period": 300, "stat": "Sum"}}]},
            },
        });
        let transformer = Transformer::new(INPUT_PATHS, INPUT_TEMPLATE).unwrap();
        let input = transformer.apply(&event, Origin::default()).unwrap();
        let input: Value = serde_json::from_str(&input).unwrap();
        assert_eq!((&input["session_id"], &input["time"]), (&event["id"], &event["time"]));
        let trigger = Trigger::parse(&input["detail"]).unwrap();
        assert_eq!(trigger.agent, crate::graph::GRAPH.name);
        let derived = (crate::profile::PROFILE.dedupe_key)(&trigger.input);
        assert_eq!(trigger.dedupe_key, derived);
        assert_eq!(derived.unwrap(), "orders-fail@2026-11-21T10:00:00.000+0000");
        assert_eq!(Incident::parse(&trigger.input).unwrap().lambda_name, "orders");
    }
}
