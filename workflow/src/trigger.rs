//! What a trigger event may ask for.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use telemetry::context::TraceParent;

use crate::limits::DETAIL_BYTES_MAX;
use crate::trace;

/// The agent that runs when a trigger names none.
pub const DEFAULT_AGENT: &str = "checkup";

/// Longest key by which triggers are told to be the same, in bytes. It is part of an item's key.
pub const DEDUPE_KEY_BYTES_MAX: usize = 256;

/// A trigger's detail, checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    /// The agent's name.
    #[serde(default = "default_agent")]
    pub agent: String,
    /// What the agent is to work on; the agent checks it.
    #[serde(default = "empty_object")]
    pub input: Value,
    /// The model; the agent's own default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// What happens when the model stays down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_model_failure: Option<OnModelFailure>,
    /// Bounds other than the agent's own.
    #[serde(default)]
    pub budget: Budget,
    /// At most one session of the agent with this key, unless the one before did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe_key: Option<String>,
    /// The span that the session is a part of, as W3C writes it. `EventBridge` carries it in the
    /// detail, since its own `TraceHeader` is X-Ray's and reaches no target's input.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "trace::read",
        serialize_with = "trace::write"
    )]
    pub traceparent: Option<TraceParent>,
}

/// Who answers the agent's questions to a model.
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

/// What happens when a model stays down, is throttled, or the budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnModelFailure {
    /// The agent's policy takes over.
    Policy,
    /// The session fails.
    Fail,
}

/// Bounds of a session; an absent one is the agent's own.
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
    /// Seconds of running; waiting does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u32>,
    /// Dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

/// Why a detail is no trigger.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTrigger {
    /// It is no JSON object.
    #[error("detail: expected an object, found {found}")]
    NotAnObject {
        /// What it is.
        found: &'static str,
    },
    /// A field is wrong.
    #[error("detail.{field}: {problem}")]
    Field {
        /// The field's path.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// It is too large.
    #[error("detail: {bytes} bytes are over the limit of {DETAIL_BYTES_MAX}")]
    TooLarge {
        /// Its length as JSON text.
        bytes: usize,
    },
}

impl InvalidTrigger {
    /// The code that stands in an error message.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAnObject { .. } => "NotAnObject",
            Self::Field { .. } => "InvalidField",
            Self::TooLarge { .. } => "TooLarge",
        }
    }
}

impl Trigger {
    /// Judges a trigger event's detail.
    ///
    /// # Errors
    /// When it is no object, too large, or a field is unknown or malformed; the error names it.
    pub fn parse(detail: &Value) -> Result<Self, InvalidTrigger> {
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
        let trigger: Self = serde_path_to_error::deserialize(detail).map_err(|error| {
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

/// An unknown field is reported at its parent's path: its name is in the message.
fn field_of(path: &str, problem: &str) -> String {
    let unknown = problem.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
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
            format!("`{text}` is none of policy, bedrock:ID, openai:NAME, transcript:FILE")
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

fn default_agent() -> String {
    DEFAULT_AGENT.to_owned()
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_empty_detail_asks_for_a_checkup() {
        let trigger = Trigger::parse(&json!({})).unwrap();
        assert_eq!(trigger.agent, "checkup");
        assert_eq!(trigger.input, json!({}));
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
    fn a_malformed_detail_is_refused_by_the_name_of_its_field() {
        for (detail, expected) in [
            (json!([]), "detail: expected an object, found an array"),
            (json!({"agnet": "x"}), "detail.agnet: unknown field"),
            (json!({"budget": {"token": 1}}), "detail.budget.token: unknown field"),
            (json!({"budget": {"tokens": -1}}), "detail.budget.tokens: invalid value"),
            (json!({"agent": 7}), "detail.agent: invalid type"),
            (json!({"input": "x"}), "detail.input: expected an object"),
            (json!({"model": "gpt"}), "detail.model: `gpt` is none of"),
            (json!({"on_model_failure": "panic"}), "detail.on_model_failure: unknown variant"),
            (json!({"agent": ""}), "detail.agent: expected a name"),
            (json!({"input": {"x": "y".repeat(100_000)}}), "detail: 100018 bytes are over"),
        ] {
            let refusal = Trigger::parse(&detail).unwrap_err().to_string();
            assert!(refusal.starts_with(expected), "{refusal}");
        }
    }
}
