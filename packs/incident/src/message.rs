//! Parses a session's input into an [`Incident`].
//!
//! The input is one of
//! - an incident message, `{"incident_id"?, "lambda_name", "error_type"?, "error_message"?,
//!   "timestamp"?}`;
//! - an SNS envelope around any of the others (`Records[0].Sns.Message`, or a notification in a queue,
//!   `Records[0].body`, also in one another);
//! - a CloudWatch alarm as SNS sends it (`AlarmName`, `NewStateReason`, `Trigger`);
//! - the EventBridge event of an alarm (`detail.configuration.metrics`).
//!
//! Any of them may also have `snapshot`, the folder that the host starts the tool server on, and
//! `lambda_name`, the host's hint for a message that names no function, such as an alarm on a log
//! group: the only function of the incident folder.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The schema of the input, as text.
pub const INPUT_SCHEMA: &str = include_str!("input.schema.json");

/// Free text of a message is cut to this length, in characters.
const TEXT_CHARS_MAX: usize = 2_000;

/// Longest function name, in characters.
///
/// Source: AWS Lambda API reference, `CreateFunction`, FunctionName.
const FUNCTION_NAME_CHARS_MAX: usize = 64;

/// Most nested envelopes. SNS adds one; a topic that forwards to a queue or a topic adds another.
const ENVELOPES_MAX: usize = 6;

/// Lambda's metric of throttled invocations.
///
/// Source: AWS Lambda Developer Guide, "Types of metrics for Lambda functions".
const THROTTLES_METRIC: &str = "Throttles";

/// A reported incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// The message's own id, else the SNS MessageId, else the alarm's name and the time of its
    /// state change. Repeated reports have the same id.
    pub incident_id: Option<String>,
    /// The function that fails, without its ARN.
    pub lambda_name: String,
    /// The error's type as the reporter spells it; `Throttling` for an alarm on throttles.
    pub error_type: Option<String>,
    /// The error's text, or the alarm's reason.
    pub error_message: Option<String>,
    /// When it happened, in the reporter's format.
    pub timestamp: Option<String>,
    /// The incident folder that the host serves the tools from. Not read here.
    pub snapshot: Option<String>,
}

/// Invalid input. Every variant names the field to fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A required field is missing.
    #[error("{field} is missing: {hint}")]
    Missing { field: String, hint: &'static str },
    /// A field has an invalid value.
    #[error("{field} must be {expected}")]
    Unusable { field: String, expected: &'static str },
}

impl Error {
    pub fn field(&self) -> &str {
        match self {
            Self::Missing { field, .. } | Self::Unusable { field, .. } => field,
        }
    }

    /// The accepted values of the field.
    pub fn expected(&self) -> String {
        match self {
            Self::Missing { hint, .. } => format!("a value: {hint}"),
            Self::Unusable { expected, .. } => (*expected).to_owned(),
        }
    }
}

/// An incident that may still lack its function.
#[derive(Default)]
struct Draft {
    incident_id: Option<String>,
    lambda_name: Option<(String, String)>,
    error_type: Option<String>,
    error_message: Option<String>,
    timestamp: Option<String>,
}

impl Incident {
    /// Reads an incident from a session's input.
    ///
    /// # Errors
    ///
    /// When a field has the wrong type or no function is named. The caller ends the session.
    pub fn parse(input: &Value) -> Result<Self, Error> {
        let top = Fields { value: input, path: String::new() };
        top.object()?;
        let snapshot = top.text("snapshot")?;
        let draft = read(input, "", ENVELOPES_MAX)?;
        let hint = top.text("lambda_name")?.map(|name| (name, "lambda_name".to_owned()));
        let (name, field) = draft.lambda_name.or(hint).ok_or(Error::Missing {
            field: "lambda_name".to_owned(),
            hint: "neither the message nor an alarm's FunctionName dimension names a function",
        })?;
        Ok(Self {
            incident_id: draft.incident_id,
            lambda_name: function_name(&name).ok_or(Error::Unusable {
                field,
                expected: "a function name (1 to 64 letters, digits, - or _) or a function ARN",
            })?,
            error_type: draft.error_type.map(shortened),
            error_message: draft.error_message.map(shortened),
            timestamp: draft.timestamp,
            snapshot,
        })
    }
}

/// The message in all its envelopes, and the id of the innermost one.
pub(super) fn unwrapped(input: &Value) -> (Value, Option<String>) {
    let (mut message, mut id) = (input.clone(), None);
    for _ in 0..ENVELOPES_MAX {
        let record = &message["Records"][0];
        let (text, of) = if record["body"].is_string() {
            (&record["body"], &record["messageId"])
        } else if message["Type"] == "Notification" {
            (&message["Message"], &message["MessageId"])
        } else {
            (&record["Sns"]["Message"], &record["Sns"]["MessageId"])
        };
        let inner = text.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let Some(inner @ Value::Object(_)) = inner else { break };
        id = of.as_str().map(str::to_owned).or(id);
        message = inner;
    }
    (message, id)
}

fn read(input: &Value, path: &str, envelopes: usize) -> Result<Draft, Error> {
    let fields = Fields { value: input, path: path.to_owned() };
    fields.object()?;
    if input.get("Records").is_some() {
        let record = fields.member("Records")?.first()?;
        return match record.optional("body") {
            // SQS's record of a message.
            Some(body) => opened(&record, &body, "messageId", envelopes),
            None => {
                let sns = record.member("Sns")?;
                let message = sns.member("Message")?;
                opened(&sns, &message, "MessageId", envelopes)
            }
        };
    }
    // SNS's notification to a queue or a URL.
    if input.get("Type").is_some_and(|kind| kind == "Notification")
        && let Some(message) = fields.optional("Message")
    {
        return opened(&fields, &message, "MessageId", envelopes);
    }
    if input.get("AlarmName").is_some() || input.get("Trigger").is_some() {
        return alarm(&fields);
    }
    if input.get("detail").is_some() {
        return alarm_event(&fields);
    }
    Ok(Draft {
        incident_id: fields.text("incident_id")?,
        lambda_name: fields.text("lambda_name")?.map(|name| (name, fields.field("lambda_name"))),
        error_type: fields.text("error_type")?,
        error_message: fields.text("error_message")?,
        timestamp: fields.text("timestamp")?,
    })
}

/// An envelope holds the message as JSON text. The innermost id is the incident's.
fn opened(
    envelope: &Fields<'_>,
    message: &Fields<'_>,
    id: &str,
    envelopes: usize,
) -> Result<Draft, Error> {
    let unusable = Error::Unusable {
        field: message.path.clone(),
        expected: "an incident message or an alarm as JSON text",
    };
    let Some(envelopes) = envelopes.checked_sub(1) else { return Err(unusable) };
    let parsed = message.value.as_str().map(serde_json::from_str::<Value>);
    let Some(Ok(inner @ Value::Object(_))) = parsed else { return Err(unusable) };
    let mut draft = read(&inner, &message.path, envelopes)?;
    if draft.incident_id.is_none() {
        draft.incident_id = envelope.text(id)?;
    }
    if draft.timestamp.is_none() {
        draft.timestamp = envelope.text("Timestamp")?;
    }
    Ok(draft)
}

fn alarm(fields: &Fields<'_>) -> Result<Draft, Error> {
    let name = fields.text("AlarmName")?;
    let changed_at = fields.text("StateChangeTime")?;
    let mut draft = Draft {
        incident_id: alarm_id(name.as_deref(), changed_at.as_deref()),
        error_message: alarm_text(fields.text("NewStateReason")?, fields.text("AlarmDescription")?),
        timestamp: changed_at,
        ..Draft::default()
    };
    let Some(trigger) = fields.optional("Trigger") else { return Ok(draft) };
    let mut metric_names = vec![trigger.text("MetricName")?];
    let mut dimensions = vec![trigger.optional("Dimensions")];
    // An alarm on an expression lists its metrics one by one.
    for metric in trigger.optional("Metrics").map_or(Ok(vec![]), |metrics| metrics.elements())? {
        let metric = metric.optional("MetricStat").and_then(|stat| stat.optional("Metric"));
        let Some(metric) = metric else { continue };
        metric_names.push(metric.text("MetricName")?);
        dimensions.push(metric.optional("Dimensions"));
    }
    draft.error_type = throttling(&metric_names);
    for dimensions in dimensions.into_iter().flatten() {
        for dimension in dimensions.elements()? {
            let name = dimension.text("name")?.or(dimension.text("Name")?);
            let value = dimension.text("value")?.or(dimension.text("Value")?);
            draft.dimension(name.as_deref(), value, &dimension.path);
        }
    }
    Ok(draft)
}

fn alarm_event(fields: &Fields<'_>) -> Result<Draft, Error> {
    let detail = fields.member("detail")?;
    detail.object()?;
    let state = detail.optional("state");
    let of_state = |name: &str| state.as_ref().map_or(Ok(None), |state| state.text(name));
    let changed_at = of_state("timestamp")?;
    let configuration = detail.optional("configuration");
    let description =
        configuration.as_ref().map_or(Ok(None), |configuration| configuration.text("description"));
    let mut draft = Draft {
        incident_id: alarm_id(detail.text("alarmName")?.as_deref(), changed_at.as_deref()),
        error_message: alarm_text(of_state("reason")?, description?),
        timestamp: changed_at.or(fields.text("time")?),
        ..Draft::default()
    };
    let metrics = configuration.and_then(|configuration| configuration.optional("metrics"));
    let mut metric_names = Vec::new();
    for metric in metrics.map_or(Ok(vec![]), |metrics| metrics.elements())? {
        let metric = metric.optional("metricStat").and_then(|stat| stat.optional("metric"));
        let Some(metric) = metric else { continue };
        metric_names.push(metric.text("name")?);
        let Some(dimensions) = metric.optional("dimensions") else { continue };
        for name in [FUNCTION_DIMENSION, LOG_GROUP_DIMENSION] {
            draft.dimension(Some(name), dimensions.text(name)?, &dimensions.path);
        }
    }
    draft.error_type = throttling(&metric_names);
    Ok(draft)
}

/// The dimension of Lambda's metrics that names the function.
const FUNCTION_DIMENSION: &str = "FunctionName";

/// The dimension of CloudWatch Logs' metrics.
const LOG_GROUP_DIMENSION: &str = "LogGroupName";

impl Draft {
    /// Takes the function from a dimension. `FunctionName` takes precedence over the log group.
    fn dimension(&mut self, name: Option<&str>, value: Option<String>, path: &str) {
        let Some(value) = value else { return };
        match name {
            Some(FUNCTION_DIMENSION) => self.lambda_name = Some((value, path.to_owned())),
            Some(LOG_GROUP_DIMENSION) if self.lambda_name.is_none() => {
                let function = value.strip_prefix("/aws/lambda/");
                self.lambda_name = function.map(|name| (name.to_owned(), path.to_owned()));
            }
            _ => {}
        }
    }
}

fn alarm_id(name: Option<&str>, changed_at: Option<&str>) -> Option<String> {
    let name = name?;
    Some(changed_at.map_or_else(|| name.to_owned(), |at| format!("{name} {at}")))
}

/// The reason names the crossed threshold, the description its meaning.
fn alarm_text(reason: Option<String>, description: Option<String>) -> Option<String> {
    match (reason, description) {
        (Some(reason), Some(description)) => Some(format!("{reason} ({description})")),
        (reason, description) => reason.or(description),
    }
}

fn throttling(metric_names: &[Option<String>]) -> Option<String> {
    let throttles = metric_names.iter().flatten().any(|name| name == THROTTLES_METRIC);
    throttles.then(|| "Throttling".to_owned())
}

/// The name in `NAME` or `arn:aws:lambda:REGION:ACCOUNT:function:NAME[:QUALIFIER]`.
fn function_name(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split(':').collect();
    let name = match parts[..] {
        [name] => name,
        ["arn", _, "lambda", _, _, "function", name] => name,
        ["arn", _, "lambda", _, _, "function", name, _] => name,
        _ => return None,
    };
    let is_valid = (1..=FUNCTION_NAME_CHARS_MAX).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    is_valid.then(|| name.to_owned())
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        None => text,
        Some((end, _)) => text[..end].to_owned(),
    }
}

/// A JSON value and its path in the input.
struct Fields<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> Fields<'a> {
    fn field(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn object(&self) -> Result<(), Error> {
        if self.value.is_object() {
            return Ok(());
        }
        let field = if self.path.is_empty() { "input".to_owned() } else { self.path.clone() };
        Err(Error::Unusable { field, expected: "a JSON object" })
    }

    /// A member, unless missing or null.
    fn optional(&self, name: &str) -> Option<Fields<'a>> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        Some(Fields { value, path: self.field(name) })
    }

    fn member(&self, name: &str) -> Result<Fields<'a>, Error> {
        self.optional(name)
            .ok_or_else(|| Error::Missing { field: self.field(name), hint: "the message needs it" })
    }

    /// A string, unless missing, null or blank.
    fn text(&self, name: &str) -> Result<Option<String>, Error> {
        match self.optional(name) {
            None => Ok(None),
            Some(Fields { value: Value::String(text), .. }) => {
                Ok((!text.trim().is_empty()).then(|| text.clone()))
            }
            Some(field) => Err(Error::Unusable { field: field.path, expected: "a text" }),
        }
    }

    fn elements(&self) -> Result<Vec<Fields<'a>>, Error> {
        let elements = self
            .value
            .as_array()
            .ok_or_else(|| Error::Unusable { field: self.path.clone(), expected: "an array" })?;
        let fields = elements.iter().enumerate();
        Ok(fields.map(|(i, value)| Fields { value, path: format!("{}[{i}]", self.path) }).collect())
    }

    fn first(&self) -> Result<Fields<'a>, Error> {
        let first = self.elements()?.into_iter().next();
        first.ok_or_else(|| Error::Missing {
            field: format!("{}[0]", self.path),
            hint: "the envelope is empty",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(input: Value) -> Incident {
        Incident::parse(&input).unwrap()
    }

    fn refused(input: Value) -> String {
        Incident::parse(&input).unwrap_err().to_string()
    }

    #[test]
    fn a_plain_message_is_read() {
        let incident = parse(json!({
            "incident_id": "i-1", "lambda_name": "data-processor", "error_type": "AccessDenied",
            "error_message": "no", "timestamp": "2026-09-14T09:44:02Z", "snapshot": "incidents/x",
            "region": "ca-central-1"
        }));
        assert_eq!(incident.incident_id.as_deref(), Some("i-1"));
        assert_eq!(incident.lambda_name, "data-processor");
        assert_eq!(incident.error_type.as_deref(), Some("AccessDenied"));
        assert_eq!(incident.snapshot.as_deref(), Some("incidents/x"));
    }

    #[test]
    fn an_sns_envelope_is_opened() {
        let message = json!({"lambda_name": "f", "error_message": "boom"}).to_string();
        let incident = parse(json!({"Records": [{"Sns": {
            "MessageId": "m-1", "Message": message, "Timestamp": "2026-01-01T00:00:00Z"}}]}));
        assert_eq!(incident.incident_id.as_deref(), Some("m-1"));
        assert_eq!(incident.lambda_name, "f");
        assert_eq!(incident.timestamp.as_deref(), Some("2026-01-01T00:00:00Z"));
    }

    #[test]
    fn an_alarm_in_an_envelope_is_read() {
        let alarm = json!({
            "AlarmName": "f-throttles", "NewStateReason": "Threshold Crossed",
            "StateChangeTime": "2026-10-06T13:14:21.503+0000",
            "Trigger": {"MetricName": "Throttles", "Unit": null,
                        "Dimensions": [{"value": "f", "name": "FunctionName"}]}
        });
        let incident = parse(json!({"Records": [{"Sns": {"Message": alarm.to_string()}}]}));
        assert_eq!(incident.lambda_name, "f");
        assert_eq!(incident.error_type.as_deref(), Some("Throttling"));
        assert_eq!(
            incident.incident_id.as_deref(),
            Some("f-throttles 2026-10-06T13:14:21.503+0000")
        );
    }

    #[test]
    fn an_alarm_on_an_expression_is_read() {
        let incident = parse(json!({"AlarmName": "a", "Trigger": {"Metrics": [
            {"Id": "rate", "Expression": "errors / invocations"},
            {"MetricStat": {"Metric": {"MetricName": "Errors",
                "Dimensions": [{"name": "FunctionName", "value": "f"}]}}}]}}));
        assert_eq!(incident.lambda_name, "f");
        assert_eq!(incident.error_type, None);
    }

    #[test]
    fn an_alarm_event_is_read() {
        let event = |name: &str, dimensions: Value| {
            json!({"detail-type": "CloudWatch Alarm State Change", "time": "2026-10-12T22:41:50Z",
                "detail": {"alarmName": "a", "state": {"value": "ALARM", "reason": "crossed"},
                    "configuration": {"metrics": [{"metricStat": {"metric":
                        {"name": name, "dimensions": dimensions}}}]}}})
        };
        let incident = parse(event("Errors", json!({"FunctionName": "f"})));
        assert_eq!(incident.lambda_name, "f");
        assert_eq!(incident.error_message.as_deref(), Some("crossed"));
        assert_eq!(incident.timestamp.as_deref(), Some("2026-10-12T22:41:50Z"));
        let incident = parse(event("IncomingLogEvents", json!({"LogGroupName": "/aws/lambda/g"})));
        assert_eq!(incident.lambda_name, "g");
    }

    #[test]
    fn a_message_without_a_function_uses_the_hint() {
        let mut input = json!({"AlarmName": "a", "Trigger": {"Dimensions": []}});
        assert!(refused(input.clone()).starts_with("lambda_name is missing"));
        input["lambda_name"] = "only-one".into();
        assert_eq!(parse(input).lambda_name, "only-one");
    }

    #[test]
    fn the_alarms_function_takes_precedence() {
        let input = json!({"AlarmName": "a", "lambda_name": "hint",
            "Trigger": {"Dimensions": [{"name": "FunctionName", "value": "f"}]}});
        assert_eq!(parse(input).lambda_name, "f");
    }

    #[test]
    fn an_arn_names_its_function() {
        let arn = "arn:aws:lambda:us-east-1:123456789012:function:f:live";
        assert_eq!(parse(json!({ "lambda_name": arn })).lambda_name, "f");
    }

    #[test]
    fn an_invalid_input_is_refused_with_its_field() {
        let table = [
            json!([]),
            json!({}),
            json!({"lambda_name": 7}),
            json!({"lambda_name": ""}),
            json!({"lambda_name": "../etc"}),
            json!({"lambda_name": "f", "error_type": {}}),
            json!({"lambda_name": "f", "snapshot": 1}),
            json!({"Records": []}),
            json!({"Records": [{"Sns": {}}]}),
            json!({"Records": [{"Sns": {"Message": "it broke"}}]}),
            json!({"Records": [{"Sns": {"Message": "{\"lambda_name\": 1}"}}]}),
            json!({"detail": 1}),
            json!({"detail": {"configuration": {"metrics": {}}}}),
            json!({"AlarmName": "a", "Trigger": {"Dimensions": "f"}}),
        ];
        insta::assert_snapshot!(table.map(refused).join("\n"), @r"
        input must be a JSON object
        lambda_name is missing: neither the message nor an alarm's FunctionName dimension names a function
        lambda_name must be a text
        lambda_name is missing: neither the message nor an alarm's FunctionName dimension names a function
        lambda_name must be a function name (1 to 64 letters, digits, - or _) or a function ARN
        error_type must be a text
        snapshot must be a text
        Records[0] is missing: the envelope is empty
        Records[0].Sns.Message is missing: the message needs it
        Records[0].Sns.Message must be an incident message or an alarm as JSON text
        Records[0].Sns.Message.lambda_name must be a text
        detail must be a JSON object
        detail.configuration.metrics must be an array
        Trigger.Dimensions must be an array
        ");
    }

    #[test]
    fn deeply_nested_envelopes_are_refused() {
        let mut message = json!({"lambda_name": "f"});
        for _ in 0..=ENVELOPES_MAX {
            message = json!({"Records": [{"Sns": {"Message": message.to_string()}}]});
        }
        assert!(refused(message).contains("Sns.Message must be"));
    }
}
