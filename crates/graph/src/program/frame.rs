//! The frames between a program and its host.

use std::time::Duration;

use journal::id::SessionId;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answered, Asked, Description, Given, LINE_CHARS_MAX, NAME_CHARS_MAX, PROTOCOL, Probe};
use crate::effect::{
    Chat, Content, Form, INPUT_STEP, Message, OUTPUT_TOKENS, ToolCall, ToolChoice, ToolSpec,
};
use crate::outcome::{CATEGORY_EXPIRED, CATEGORY_REJECTED, Failure, FailureKind};
use crate::question::{Decision, Question};

/// Longest sleep, in seconds.
const SLEEP_S_MAX: f64 = 31_536_000.0;

/// A frame of the program.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    Hello {
        protocol: u32,
    },
    Description(Box<Description>),
    Effect {
        ordinal: u32,
        asked: Asked,
        line: Option<String>,
    },
    /// The outcome of the program's own work.
    Performed {
        ordinal: u32,
        outcome: Result<Value, Raised>,
    },
    End(Result<Value, Raised>),
}

/// An error that the program's code raised.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Raised {
    #[serde(rename = "type", default = "error")]
    pub kind: String,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub at: Option<String>,
}

fn error() -> String {
    "Error".to_owned()
}

#[derive(Deserialize)]
struct Outcome {
    ordinal: u32,
    #[serde(default)]
    error: Option<Raised>,
}

#[derive(Deserialize)]
struct Ended {
    #[serde(default)]
    error: Option<Raised>,
}

#[derive(Deserialize)]
struct Hello {
    protocol: u32,
}

#[derive(Deserialize)]
struct EffectHead {
    ordinal: u32,
    kind: String,
    #[serde(default)]
    at: Option<String>,
}

#[derive(Deserialize)]
struct StepFields {
    name: String,
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    critical: bool,
}

#[derive(Deserialize)]
struct ToolFields {
    server: String,
    tool: String,
    #[serde(default)]
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct ChatFields {
    #[serde(default)]
    system: String,
    messages: Vec<Value>,
    #[serde(default)]
    tools: Vec<ToolSpec>,
    #[serde(default)]
    choice: Option<String>,
    #[serde(default)]
    max_output_tokens: Option<u32>,
    #[serde(default)]
    temperature_percent: Option<u32>,
    #[serde(default)]
    timeout_seconds: Option<u32>,
    #[serde(default)]
    schema: Option<Value>,
    #[serde(default)]
    policy: bool,
}

#[derive(Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum MessageFields {
    User {
        text: String,
    },
    Assistant {
        #[serde(default)]
        text: Option<String>,
        #[serde(default)]
        calls: Vec<ToolCall>,
    },
    Tool {
        id: String,
        tool: String,
        content: Value,
        #[serde(default)]
        is_error: bool,
    },
}

#[derive(Deserialize)]
struct AskFields {
    question: String,
    #[serde(default)]
    server: Option<String>,
    #[serde(default)]
    tool: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
    #[serde(default)]
    schema: Option<Value>,
    #[serde(default)]
    choices: Option<Vec<Decision>>,
    #[serde(default)]
    expires_seconds: Option<f64>,
}

#[derive(Deserialize)]
struct SleepFields {
    seconds: Value,
}

#[derive(Deserialize)]
struct NoteFields {
    text: String,
    #[serde(default)]
    data: Value,
}

/// Why a line is no frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

impl From<serde_json::Error> for Malformed {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

/// Reads a frame of the program.
///
/// # Errors
/// The line is no frame, or breaks a rule of the protocol.
pub fn read(line: &str) -> Result<Said, Malformed> {
    let frame: Value = serde_json::from_str(line)?;
    match frame["type"].as_str() {
        Some("hello") => {
            Ok(Said::Hello { protocol: serde_json::from_value::<Hello>(frame)?.protocol })
        }
        Some("description") => Ok(Said::Description(Box::new(serde_json::from_value(frame)?))),
        Some("effect") => effect(frame),
        Some("performed") => {
            let value = frame.get("ok").cloned();
            let Outcome { ordinal, error } = serde_json::from_value(frame)?;
            Ok(Said::Performed { ordinal, outcome: one_of("ok", value, error)? })
        }
        Some("end") => {
            let value = frame.get("result").cloned();
            let Ended { error } = serde_json::from_value(frame)?;
            Ok(Said::End(one_of("result", value, error)?))
        }
        Some(other) => Err(Malformed(format!("unknown type `{other}`"))),
        None => Err(Malformed("the frame has no `type`".to_owned())),
    }
}

fn one_of(
    name: &str,
    value: Option<Value>,
    error: Option<Raised>,
) -> Result<Result<Value, Raised>, Malformed> {
    match (value, error) {
        (Some(value), None) => Ok(Ok(value)),
        (None, Some(error)) => Ok(Err(error)),
        _ => Err(Malformed(format!("the frame needs one of `{name}` and `error`"))),
    }
}

fn effect(frame: Value) -> Result<Said, Malformed> {
    let EffectHead { ordinal, kind, at } = EffectHead::deserialize(&frame)?;
    let line = at.map(|line| line.chars().take(LINE_CHARS_MAX).collect());
    let asked = match kind.as_str() {
        "step" => step(serde_json::from_value(frame)?)?,
        "tool" => {
            let ToolFields { server, tool, arguments } = serde_json::from_value(frame)?;
            let arguments = arguments.unwrap_or_else(|| json!({}));
            if !arguments.is_object() {
                return Err(Malformed("the arguments of a tool are an object".to_owned()));
            }
            Asked::Tool(ToolCall::new(&server, &tool, arguments))
        }
        "chat" => chat(serde_json::from_value(frame)?)?,
        "ask" => ask(serde_json::from_value(frame)?)?,
        "sleep" => {
            let SleepFields { seconds } = serde_json::from_value(frame)?;
            Asked::Sleep { duration: duration(&seconds)?, seconds }
        }
        "note" => {
            let NoteFields { text, data } = serde_json::from_value(frame)?;
            Asked::Note { text, data }
        }
        "now" => Asked::Probe(Probe::Now),
        "random" => Asked::Probe(Probe::Random),
        "uuid" => Asked::Probe(Probe::Uuid),
        other => return Err(Malformed(format!("unknown kind `{other}`"))),
    };
    Ok(Said::Effect { ordinal, asked, line })
}

fn step(fields: StepFields) -> Result<Asked, Malformed> {
    let StepFields { name, arguments, critical } = fields;
    let characters = name.chars().count();
    if !(1..=NAME_CHARS_MAX).contains(&characters) || name.chars().any(char::is_control) {
        let problem = format!("the name of a step has 1 to {NAME_CHARS_MAX} printable characters");
        return Err(Malformed(problem));
    }
    Ok(Asked::Step { name, arguments, critical })
}

fn chat(fields: ChatFields) -> Result<Asked, Malformed> {
    let origin = |message: &Value| message["from"].as_u64().and_then(|it| u32::try_from(it).ok());
    let origins = fields.messages.iter().map(|it| origin(it).unwrap_or(0)).collect();
    let messages = fields.messages.into_iter().map(|message| {
        let content = match serde_json::from_value(message)? {
            MessageFields::User { text } => Content::User(text),
            MessageFields::Assistant { text, calls } => Content::Assistant { text, calls },
            MessageFields::Tool { id, tool, content, is_error } => {
                Content::Result { id, tool, content, is_error }
            }
        };
        Ok(Message { source: INPUT_STEP, content })
    });
    let messages = messages.collect::<Result<Vec<_>, Malformed>>()?;
    if messages.is_empty() {
        return Err(Malformed("a chat needs a message".to_owned()));
    }
    let choice = match fields.choice.as_deref() {
        None | Some("auto") => ToolChoice::Auto,
        Some("any") => ToolChoice::Any,
        Some(tool) => ToolChoice::Only(tool.to_owned()),
    };
    let schema = fields.schema.filter(|schema| !schema.is_null());
    let max_output_tokens = fields.max_output_tokens.unwrap_or(OUTPUT_TOKENS);
    if !(1..=65_536).contains(&max_output_tokens) {
        return Err(Malformed("`max_output_tokens` is from 1 to 65536".to_owned()));
    }
    let chat = Chat {
        system: fields.system,
        messages,
        tools: fields.tools,
        choice,
        max_output_tokens,
        temperature_percent: fields.temperature_percent,
        timeout_s: fields.timeout_seconds,
        form: schema.map(|schema| Form { name: "reply".to_owned(), schema }),
    };
    Ok(Asked::Chat { chat: Box::new(chat), has_policy: fields.policy, origins })
}

fn ask(fields: AskFields) -> Result<Asked, Malformed> {
    let mut question = match fields.tool {
        Some(tool) => {
            let arguments = fields.arguments.unwrap_or_else(|| json!({}));
            let call = ToolCall { server: fields.server, ..ToolCall::built_in(&tool, arguments) };
            Question {
                arguments_schema: fields.schema,
                ..Question::approval(&call, fields.question)
            }
        }
        None => Question::open(fields.question),
    };
    if let Some(choices) = fields.choices {
        if choices.is_empty() || choices.contains(&Decision::Expired) {
            return Err(Malformed("`choices` are of approve, reject, edit and say".to_owned()));
        }
        question.choices = choices;
    }
    let expires = fields.expires_seconds.map(|seconds| duration(&json!(seconds))).transpose()?;
    Ok(Asked::Ask { question: Box::new(question), expires })
}

fn duration(seconds: &Value) -> Result<Duration, Malformed> {
    let number = seconds.as_f64().filter(|it| (0.0..=SLEEP_S_MAX).contains(it));
    let number = number.ok_or_else(|| {
        Malformed(format!("{seconds} seconds: expected a number from 0 to 31536000"))
    })?;
    Ok(Duration::from_secs_f64(number))
}

/// `describe`.
pub fn describe() -> Value {
    json!({"type": "describe", "protocol": PROTOCOL})
}

/// `start`. `replay` is the highest ordinal in the journal.
pub fn start(session: &SessionId, agent: &str, version: &str, input: &Value, replay: u32) -> Value {
    json!({"type": "start", "protocol": PROTOCOL, "session": session.as_str(), "agent": agent,
        "version": version, "input": input, "replay": replay})
}

/// `run`.
pub fn run(ordinal: u32) -> Value {
    json!({"type": "run", "ordinal": ordinal})
}

/// `result`.
pub fn result(answered: &Answered) -> Value {
    let ordinal = answered.ordinal;
    let ok = |value: Value| json!({"type": "result", "ordinal": ordinal, "ok": value});
    let error = |kind: &str, category: &str, message: &str| {
        let error = json!({"kind": kind, "category": category, "message": message});
        json!({"type": "result", "ordinal": ordinal, "error": error})
    };
    match &answered.outcome {
        Given::Value(value) => ok(value.clone()),
        Given::ToolError(text) => error("tool", "tool", text),
        Given::StepError(text) => {
            let (kind, message) = text.split_once(": ").unwrap_or(("Error", text));
            error("step", kind, message)
        }
        Given::Failure(failure) => error(kind(failure), &failure.category, &failure.message),
        Given::Reply { json: Some(Err(problem)), .. } => error("invalid_reply", "schema", problem),
        Given::Reply { reply, json } => {
            let mut value = json!({"calls": reply.calls, "by": reply.by});
            if let Some(text) = &reply.text {
                value["text"] = json!(text);
            }
            if let Some(Ok(json)) = json {
                value["json"] = json.clone();
            }
            ok(value)
        }
        Given::Answer(answer) => {
            let mut value = json!({"decision": answer.decision});
            for (name, text) in [("text", &answer.text), ("reason", &answer.reason)] {
                if let Some(text) = text {
                    value[name] = json!(text);
                }
            }
            if let Some(arguments) = &answer.arguments {
                value["arguments"] = arguments.clone();
            }
            ok(value)
        }
    }
}

fn kind(failure: &Failure) -> &'static str {
    match (failure.kind, failure.category.as_str()) {
        (FailureKind::Refused, CATEGORY_REJECTED) => "rejected",
        (FailureKind::Refused, CATEGORY_EXPIRED) => "expired",
        (FailureKind::Refused, _) => "refused",
        (FailureKind::NotSent, _) => "not_sent",
        (FailureKind::Unknown, _) => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_frame_says_what_is_wrong() {
        for (line, problem) in [
            ("hello", "expected value"),
            ("{}", "has no `type`"),
            (r#"{"type":"nonsense"}"#, "unknown type `nonsense`"),
            (r#"{"type":"effect","ordinal":1,"kind":"dance"}"#, "unknown kind `dance`"),
            (r#"{"type":"effect","kind":"now"}"#, "missing field `ordinal`"),
            (r#"{"type":"effect","ordinal":1,"kind":"step","name":""}"#, "the name of a step"),
            (r#"{"type":"effect","ordinal":1,"kind":"sleep","seconds":-1}"#, "-1 seconds"),
            (
                r#"{"type":"effect","ordinal":1,"kind":"tool","server":"a","tool":"b","arguments":[]}"#,
                "an object",
            ),
            (r#"{"type":"performed","ordinal":1}"#, "one of `ok` and `error`"),
            (r#"{"type":"end"}"#, "one of `result` and `error`"),
        ] {
            let found = read(line).unwrap_err().to_string();
            assert!(found.contains(problem), "{line}: {found}");
        }
        assert_eq!(read(r#"{"type":"end","result":null,"new":1}"#), Ok(Said::End(Ok(Value::Null))));
    }

    #[test]
    fn an_error_of_a_step_keeps_its_type() {
        let outcome = Given::StepError("ValueError: no: such".to_owned());
        let frame = result(&Answered { ordinal: 2, outcome });
        let error = json!({"kind": "step", "category": "ValueError", "message": "no: such"});
        assert_eq!(frame["error"], error);
    }
}
