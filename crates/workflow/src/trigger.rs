//! The detail of a trigger event.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use telemetry::context::TraceParent;

use crate::limits::DETAIL_BYTES_MAX;
use crate::trace;

/// Longest deduplication key, in bytes. It is part of an item's key.
pub const DEDUPE_KEY_BYTES_MAX: usize = 256;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    pub agent: String,
    /// The agent's input; the agent validates it.
    #[serde(default = "empty_object")]
    pub input: Value,
    /// The model; the agent's default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// The reaction to a model that stays unavailable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_model_failure: Option<OnModelFailure>,
    /// Limits that override the agent's.
    #[serde(default)]
    pub budget: Budget,
    /// At most one session of the agent has this key, unless the previous one did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe_key: Option<String>,
    /// The session's parent span as a W3C `traceparent`. It is in the detail because `EventBridge`'s own
    /// `TraceHeader` is in X-Ray's format and does not reach a target's input.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "trace::read",
        serialize_with = "trace::write"
    )]
    pub traceparent: Option<TraceParent>,
}

/// The model of a session, or its substitute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Model {
    /// The agent's own rules.
    Policy,
    /// A model on Amazon Bedrock, by id.
    Bedrock(String),
    /// A model of an OpenAI-compatible endpoint, by name.
    OpenAi(String),
    /// A recorded transcript, by path.
    Transcript(String),
}

/// The reaction to a model that stays unavailable or throttled, or to a spent budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnModelFailure {
    /// The agent's policy takes over.
    Policy,
    Fail,
}

/// Limits of a session; absent fields have the agent's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Tokens, in and out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u32>,
    /// Calls of a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u32>,
    /// Visits of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits: Option<u32>,
    /// Seconds of running time, waits excluded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u32>,
    /// Dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

/// Why a detail is not a valid trigger.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTrigger {
    /// It is not a JSON object.
    #[error("detail: expected an object, found {found}")]
    NotAnObject { found: &'static str },
    #[error("detail.{field}: {problem}")]
    Field { field: String, problem: String },
    #[error("detail: {bytes} bytes are over the limit of {DETAIL_BYTES_MAX}")]
    TooLarge {
        /// Its length as JSON text.
        bytes: usize,
    },
}

impl InvalidTrigger {
    /// The code in an error message.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAnObject { .. } => "NotAnObject",
            Self::Field { .. } => "InvalidField",
            Self::TooLarge { .. } => "TooLarge",
        }
    }
}

impl Trigger {
    /// Parses and validates a trigger event's detail, which must name its agent.
    ///
    /// # Errors
    /// If the detail is not an object, is too large, or has a missing, unknown or malformed field, which
    /// the error names.
    pub fn parse(detail: &Value) -> Result<Self, InvalidTrigger> {
        Self::parse_or(detail, None)
    }

    /// As [`Self::parse`], with a default for the agent.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_or(detail: &Value, default_agent: Option<&str>) -> Result<Self, InvalidTrigger> {
        let found = match detail {
            Value::Object(_) => None,
            Value::Array(_) => Some("an array"),
            Value::String(_) => Some("a text"),
            Value::Number(_) => Some("a number"),
            Value::Bool(_) => Some("a truth value"),
            Value::Null => Some("nothing"),
        };
        if let Some(found) = found {
            return Err(InvalidTrigger::NotAnObject { found });
        }
        let bytes = detail.to_string().len();
        if bytes > DETAIL_BYTES_MAX {
            return Err(InvalidTrigger::TooLarge { bytes });
        }
        let mut detail = Cow::Borrowed(detail);
        if let Some(agent) = default_agent.filter(|_| detail.get("agent").is_none()) {
            detail.to_mut()["agent"] = Value::from(agent);
        }
        let trigger: Self = serde_path_to_error::deserialize(&*detail).map_err(|error| {
            let problem = error.inner().to_string();
            InvalidTrigger::Field { field: field_of(&error.path().to_string(), &problem), problem }
        })?;
        trigger.check()
    }

    fn check(self) -> Result<Self, InvalidTrigger> {
        let field = |field: &str, problem: &str| {
            Err(InvalidTrigger::Field { field: field.to_owned(), problem: problem.to_owned() })
        };
        if !self.input.is_object() {
            return field("input", "expected an object");
        }
        if self.agent.is_empty() || self.agent.len() > 64 {
            return field("agent", "expected a name of 1 to 64 characters");
        }
        let fits = 1..=DEDUPE_KEY_BYTES_MAX;
        if self.dedupe_key.as_ref().is_some_and(|key| !fits.contains(&key.len())) {
            return field("dedupe_key", "expected 1 to 256 bytes");
        }
        if self.budget.usd.is_some_and(|usd| !(0.0..=4_000.0).contains(&usd)) {
            return field("budget.usd", "expected a number from 0 to 4000");
        }
        Ok(self)
    }
}

/// An unknown or missing field is reported at its parent's path: its name is in the message.
fn field_of(path: &str, problem: &str) -> String {
    let named = ["unknown field `", "missing field `"]
        .into_iter()
        .find_map(|prefix| problem.strip_prefix(prefix));
    let unknown = named.and_then(|rest| rest.split('`').next());
    match (path, unknown) {
        (".", Some(unknown)) => unknown.to_owned(),
        (path, Some(unknown)) if !path.ends_with(unknown) => format!("{path}.{unknown}"),
        (path, _) => path.to_owned(),
    }
}

impl TryFrom<String> for Model {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let named = |rest: &str| (!rest.is_empty()).then(|| rest.to_owned());
        let model = match text.split_once(':') {
            None if text == "policy" => Some(Self::Policy),
            Some(("bedrock", id)) => named(id).map(Self::Bedrock),
            Some(("openai", name)) => named(name).map(Self::OpenAi),
            Some(("transcript", file)) => named(file).map(Self::Transcript),
            _ => None,
        };
        model.ok_or_else(|| {
            format!("expected policy, bedrock:ID, openai:NAME or transcript:FILE, found `{text}`")
        })
    }
}

impl From<Model> for String {
    fn from(model: Model) -> Self {
        match model {
            Model::Policy => "policy".to_owned(),
            Model::Bedrock(id) => format!("bedrock:{id}"),
            Model::OpenAi(name) => format!("openai:{name}"),
            Model::Transcript(file) => format!("transcript:{file}"),
        }
    }
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_empty_detail_asks_for_the_default_agent() {
        let trigger = Trigger::parse_or(&json!({}), Some("own")).unwrap();
        assert_eq!(trigger.agent, "own");
        assert_eq!(trigger.input, json!({}));
        let named = Trigger::parse_or(&json!({"agent": "other"}), Some("own")).unwrap();
        assert_eq!(named.agent, "other");
    }

    #[test]
    fn every_field_of_the_interface_is_read() {
        let detail = json!({
            "agent": "incident", "input": {"lambda_name": "f"}, "model": "bedrock:eu.x:0",
            "on_model_failure": "fail", "dedupe_key": "k",
            "budget": {"tokens": 100000, "calls": 40, "visits": 12, "seconds": 300, "usd": 1.0},
        });
        let trigger = Trigger::parse(&detail).unwrap();
        assert_eq!(trigger.model, Some(Model::Bedrock("eu.x:0".to_owned())));
        assert_eq!(serde_json::to_value(&trigger).unwrap(), detail);
    }

    #[test]
    fn a_malformed_detail_is_refused_naming_its_field() {
        for (detail, expected) in [
            (json!([]), "detail: expected an object, found an array"),
            (json!({"agnet": "x"}), "detail.agnet: unknown field"),
            (json!({"budget": {"token": 1}}), "detail.budget.token: unknown field"),
            (json!({"budget": {"tokens": -1}}), "detail.budget.tokens: invalid value"),
            (json!({"agent": 7}), "detail.agent: invalid type"),
            (json!({"input": "x"}), "detail.input: expected an object"),
            (json!({"model": "gpt"}), "detail.model: expected policy, bedrock:ID"),
            (json!({"on_model_failure": "panic"}), "detail.on_model_failure: unknown variant"),
            (json!({"agent": ""}), "detail.agent: expected a name"),
            (json!({"input": {"x": "y".repeat(100_000)}}), "detail: 100018 bytes are over"),
        ] {
            let refusal = Trigger::parse_or(&detail, Some("own")).unwrap_err().to_string();
            assert!(refusal.starts_with(expected), "{refusal}");
        }
        let refusal = Trigger::parse(&json!({})).unwrap_err().to_string();
        assert_eq!(refusal, "detail.agent: missing field `agent`");
    }
}
