//! Input transformers: a template with places for values of the event.

use serde_json::Value;

/// Makes a target's input of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transformer {
    paths: Vec<(String, String)>,
    template: String,
}

impl Transformer {
    /// A template in which `<name>` stands for the value at the name's path (`$.a.b`).
    pub fn new(paths: &[(&str, &str)], template: &str) -> Self {
        let owned = |(name, path): &(&str, &str)| ((*name).to_owned(), (*path).to_owned());
        Self { paths: paths.iter().map(owned).collect(), template: template.to_owned() }
    }

    /// The target's input.
    ///
    /// Outside quotes a value stands as JSON, a text with quotes of its own; inside quotes a text
    /// stands bare. A path that leads nowhere leaves nothing.
    pub fn apply(&self, event: &Value) -> String {
        let mut input = String::with_capacity(self.template.len());
        let mut quoted = false;
        let mut rest = self.template.as_str();
        while let Some(next) = rest.chars().next() {
            if let Some((name, after)) = placeholder(rest)
                && let Some((_, path)) = self.paths.iter().find(|(known, _)| known == name)
            {
                if let Some(value) = at(event, path) {
                    input.push_str(&spell(value, quoted));
                }
                rest = after;
                continue;
            }
            let escaped = input.ends_with('\\') && quoted;
            if next == '"' && !escaped {
                quoted = !quoted;
            }
            input.push(next);
            rest = &rest[next.len_utf8()..];
        }
        input
    }
}

fn placeholder(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('<')?.split_once('>')
}

fn at<'a>(event: &'a Value, path: &str) -> Option<&'a Value> {
    let fields = path.strip_prefix('$')?.split('.').filter(|field| !field.is_empty());
    fields.into_iter().try_fold(event, |value, field| value.get(field))
}

fn spell(value: &Value, quoted: bool) -> String {
    let text = value.to_string();
    match value {
        Value::String(_) if quoted => text[1..text.len() - 1].to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_stand_as_json_outside_quotes_and_bare_inside() {
        let event = json!({"id": "i", "time": "t", "detail": {"text": "a \"b\"", "n": 1}});
        let paths = [("id", "$.id"), ("detail", "$.detail"), ("text", "$.detail.text")];
        for (template, expected) in [
            (
                r#"{"id": <id>, "detail": <detail>}"#,
                r#"{"id": "i", "detail": {"text":"a \"b\"","n":1}}"#,
            ),
            (r#"{"said": "<id>: <text>"}"#, r#"{"said": "i: a \"b\""}"#),
            (r#"{"other": <nobody>}"#, r#"{"other": <nobody>}"#),
            (r#""x < y""#, r#""x < y""#),
        ] {
            assert_eq!(Transformer::new(&paths, template).apply(&event), expected);
        }
    }

    #[test]
    fn the_workflow_s_template_gives_its_input() {
        use workflow::rule::{INPUT_PATHS, INPUT_TEMPLATE};
        let event = json!({"id": "i", "time": "t", "source": "s", "detail": {"agent": "a<id>"}});
        let input = Transformer::new(INPUT_PATHS, INPUT_TEMPLATE).apply(&event);
        let input: Value = serde_json::from_str(&input).unwrap();
        assert_eq!(input, json!({"session_id": "i", "time": "t", "detail": {"agent": "a<id>"}}));
    }
    /// An alarm's event becomes the trigger of an incident that the agent reads, under the key that
    /// admission would have found by itself.
    ///
    /// Source of the event's form: AWS, "Alarm events and EventBridge".
    #[test]
    fn an_alarm_s_template_gives_a_trigger_that_the_incident_agent_reads() {
        use workflow::admission::dedupe_key;
        use workflow::rule::{ALARM_INPUT_PATHS, ALARM_INPUT_TEMPLATE};
        use workflow::trigger::Trigger;
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
        let input = Transformer::new(ALARM_INPUT_PATHS, ALARM_INPUT_TEMPLATE).apply(&event);
        let input: Value = serde_json::from_str(&input).unwrap();
        assert_eq!((&input["session_id"], &input["time"]), (&event["id"], &event["time"]));
        let trigger = Trigger::parse(&input["detail"]).unwrap();
        let derived = Trigger { dedupe_key: None, ..trigger.clone() };
        assert_eq!(trigger.agent, "incident");
        assert_eq!(dedupe_key(&trigger), dedupe_key(&derived));
        assert_eq!(dedupe_key(&trigger).unwrap(), "orders-fail@2026-11-21T10:00:00.000+0000");
        let incident = agents::incident::message::Incident::parse(&trigger.input).unwrap();
        assert_eq!(incident.lambda_name, "orders");
    }
}
