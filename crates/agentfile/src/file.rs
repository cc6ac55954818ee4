//! The file: its keys, and the checks that a run would fail by.

use std::collections::{BTreeMap, BTreeSet};

use graph::agent::Agent;
use graph::budget::Budget;
use graph::check::nearest;
use graph::digest;
use graph::presentation::fields;
use graph::schema::Schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use workflow::trigger::Model;

use crate::looped;

/// Longest name of an agent.
pub const NAME_CHARACTERS_MAX: usize = 64;
/// Largest prompt.
pub const PROMPT_BYTES_MAX: usize = 64 * 1024;
/// Largest file.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;
/// Digits of the file's digest that name its version.
const VERSION_DIGITS: usize = 16;

/// An agent without code. `agent.yaml` holds one; so does a table `[agents.NAME]` with a `prompt` in `daybook.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentFile {
    /// 1 to 64 lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// What the agent does, in one sentence.
    #[serde(default)]
    pub summary: Option<String>,
    /// The system prompt.
    pub prompt: String,
    /// The fields of the input and their types: `string`, `integer`, `number`, `boolean`, `object`, `array`. A `?` behind the
    /// type makes a field optional. Instead of `input_schema`.
    #[serde(default)]
    pub input: Option<BTreeMap<String, String>>,
    /// The JSON schema of the input.
    #[serde(default)]
    pub input_schema: Option<Value>,
    /// The fields of the result and their types, as in `input`. Without it and without `result_schema` the result is
    /// `{"report": TEXT}`.
    #[serde(default)]
    pub result: Option<BTreeMap<String, String>>,
    /// The JSON schema of the result, an object.
    #[serde(default)]
    pub result_schema: Option<Value>,
    /// The MCP servers whose tools the model may call.
    #[serde(default)]
    pub servers: Vec<String>,
    /// The tools that the model may call, as `tool` or `server.tool`; all tools of the servers by default.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// The tools that need a person's approval for each call.
    #[serde(default)]
    pub critical: Vec<String>,
    /// The tools that change the world and are called at most once.
    #[serde(default)]
    pub at_most_once: Vec<String>,
    /// Limits; a trigger may set others.
    #[serde(default)]
    pub budget: Limits,
    /// The model of sessions whose trigger names none: `bedrock:ID`, `openai:NAME` or `transcript:FILE`.
    #[serde(default)]
    pub model: Option<String>,
    /// The title of a session, in which `{field}` is replaced by that field of the input.
    #[serde(default)]
    pub title: Option<String>,
}

/// Limits of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Tokens sent and received; 100,000 by default.
    #[serde(default)]
    pub tokens: Option<u32>,
    /// Calls of the model; 40 by default.
    #[serde(default)]
    pub calls: Option<u32>,
    /// Seconds of running; waiting does not count.
    #[serde(default)]
    pub seconds: Option<u32>,
    /// Dollars.
    #[serde(default)]
    pub usd: Option<f64>,
}

/// The limits of a file that names none.
pub const TOKENS: u64 = 100_000;
pub const CALLS: u64 = 40;

/// A file that cannot be used, with every reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", problems.join("; "))]
pub struct Invalid {
    /// At least one.
    pub problems: Vec<String>,
}

/// A file that was checked, with what the loop needs of it.
#[derive(Debug)]
pub struct Checked {
    pub file: AgentFile,
    pub(crate) input: Option<(Schema, Value)>,
    pub(crate) result: Option<(Schema, Value)>,
    version: String,
}

impl Checked {
    /// Reads the text of an `agent.yaml`. JSON is YAML.
    ///
    /// # Errors
    /// See [`Invalid`]: all problems at once, except that a file that is not YAML has only that one.
    pub fn of_yaml(text: &str) -> Result<Self, Invalid> {
        if text.len() > FILE_BYTES_MAX {
            return Err(Invalid::one(format!(
                "the file has {} bytes; at most {FILE_BYTES_MAX} are possible",
                text.len()
            )));
        }
        // The library bounds aliases and depth by itself.
        let value: Value = serde_saphyr::from_str(text)
            .map_err(|error| Invalid::one(error.to_string().trim().replace('\n', " ")))?;
        Self::of_value(value)
    }

    /// Reads a file that another format held.
    ///
    /// # Errors
    /// See [`Invalid`].
    pub fn of_value(value: Value) -> Result<Self, Invalid> {
        let Value::Object(keys) = &value else {
            return Err(Invalid::one("an agent's file is a mapping of keys to values".to_owned()));
        };
        let unknown = unknown_keys(keys.keys());
        if !unknown.is_empty() {
            return Err(Invalid { problems: unknown });
        }
        let file: AgentFile =
            serde_json::from_value(value).map_err(|error| Invalid::one(error.to_string()))?;
        Self::of_file(file)
    }

    fn of_file(file: AgentFile) -> Result<Self, Invalid> {
        let mut problems = problems_of(&file);
        let mut schema_of =
            |key: &str, fields: &Option<BTreeMap<String, String>>, schema: &Option<Value>| {
                self::schema(key, fields, schema.as_ref()).unwrap_or_else(|problem| {
                    problems.push(problem);
                    None
                })
            };
        let input = schema_of("input", &file.input, &file.input_schema);
        let result = schema_of("result", &file.result, &file.result_schema);
        if let Some((_, schema)) = &input {
            problems.extend(title_problems(&file, schema));
        }
        if let Some((_, schema)) = &result
            && schema.get("type").is_some_and(|kind| kind != "object")
        {
            problems.push("`result_schema`: the type of a result is `object`".to_owned());
        }
        if !problems.is_empty() {
            return Err(Invalid { problems });
        }
        let version = hex::encode(Sha256::digest(digest::canonical(&json!(file))))
            [..VERSION_DIGITS]
            .to_owned();
        Ok(Self { file, input, result, version })
    }

    /// The start of the SHA-256 of the file's content. Comments, order and layout of the file do not count.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The agent.
    pub fn agent(self) -> Agent {
        looped::agent(self)
    }

    pub(crate) fn budget(&self) -> Budget {
        let Limits { tokens, calls, seconds, usd } = self.file.budget;
        Budget {
            tokens: Some(tokens.map_or(TOKENS, u64::from)),
            calls: Some(calls.map_or(CALLS, u64::from)),
            seconds: seconds.map(u64::from),
            micro_usd: usd.map(micro_usd),
            ..Budget::UNLIMITED
        }
    }
}

/// The JSON schema of the file, for editors.
pub fn schema_of_files() -> Value {
    schemars::schema_for!(AgentFile).to_value()
}

impl Invalid {
    fn one(problem: String) -> Self {
        Self { problems: vec![problem] }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked: 0 to 1,000,000 dollars"
)]
fn micro_usd(usd: f64) -> u64 {
    (usd * 1e6).round() as u64
}

fn unknown_keys<'a>(keys: impl Iterator<Item = &'a String>) -> Vec<String> {
    let schema = schema_of_files();
    let known: Vec<&str> = schema["properties"]
        .as_object()
        .map(|properties| properties.keys().map(String::as_str).collect())
        .unwrap_or_default();
    keys.filter(|key| !known.contains(&key.as_str()))
        .map(|key| match nearest(key, known.iter().copied()) {
            Some(near) => format!("unknown key `{key}` (did you mean `{near}`?)"),
            None => format!("unknown key `{key}`; there are {}", known.join(", ")),
        })
        .collect()
}

fn problems_of(file: &AgentFile) -> Vec<String> {
    let mut problems = Vec::new();
    let is_named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if file.name.is_empty()
        || file.name.len() > NAME_CHARACTERS_MAX
        || !file.name.chars().all(is_named)
    {
        problems.push(format!(
            "`name` is `{}`, expected 1 to {NAME_CHARACTERS_MAX} lower-case letters, digits, `-` and `_`",
            file.name
        ));
    }
    if file.prompt.trim().is_empty() {
        problems.push("`prompt` is empty".to_owned());
    }
    if file.prompt.len() > PROMPT_BYTES_MAX {
        let bytes = file.prompt.len();
        problems
            .push(format!("`prompt` has {bytes} bytes; at most {PROMPT_BYTES_MAX} are possible"));
    }
    match file.model.clone().map(Model::try_from) {
        Some(Err(problem)) => problems.push(format!("`model`: {problem}")),
        Some(Ok(Model::Policy)) => {
            problems
                .push("`model` is `policy`, but a file has no rules that could answer".to_owned());
        }
        _ => {}
    }
    if let Some(usd) = file.budget.usd
        && !(usd > 0.0 && usd <= 1e6)
    {
        problems.push(format!("`budget.usd` is {usd}, expected more than 0 and at most 1000000"));
    }
    for (name, limit) in [
        ("tokens", file.budget.tokens),
        ("calls", file.budget.calls),
        ("seconds", file.budget.seconds),
    ] {
        if limit == Some(0) {
            problems.push(format!("`budget.{name}` is 0, expected at least 1"));
        }
    }
    problems.extend(tool_problems(file));
    problems
}

/// A tool that names another server than those of the file protects nothing.
fn tool_problems(file: &AgentFile) -> Vec<String> {
    let mut problems = Vec::new();
    let servers: BTreeSet<&str> = file.servers.iter().map(String::as_str).collect();
    if servers.len() < file.servers.len() {
        problems.push("`servers` names a server twice".to_owned());
    }
    let lists = [
        ("tools", file.tools.as_deref().unwrap_or_default()),
        ("critical", &file.critical),
        ("at_most_once", &file.at_most_once),
    ];
    for (key, names) in lists {
        for name in names {
            let server = name.split_once('.').map(|(server, _)| server);
            if let Some(server) = server.filter(|server| !servers.contains(server)) {
                let near = nearest(server, servers.iter().copied())
                    .map(|near| format!(" (did you mean `{near}`?)"))
                    .unwrap_or_default();
                problems
                    .push(format!("`{key}` names `{name}`, but `servers` has no `{server}`{near}"));
            }
            if name.is_empty() || name.ends_with('.') {
                problems.push(format!("`{key}` names `{name}`, expected `tool` or `server.tool`"));
            }
        }
    }
    problems
}

fn title_problems(file: &AgentFile, input: &Value) -> Vec<String> {
    let Some(title) = &file.title else { return Vec::new() };
    let Some(properties) = input.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let unknown = fields(title).into_iter().filter(|field| !properties.contains_key(*field));
    unknown
        .map(|field| format!("`title` names `{{{field}}}`, which the input does not have"))
        .collect()
}

/// The schema of `input` or `result`, compiled.
fn schema(
    key: &str,
    fields: &Option<BTreeMap<String, String>>,
    schema: Option<&Value>,
) -> Result<Option<(Schema, Value)>, String> {
    let value = match (fields, schema) {
        (Some(_), Some(_)) => {
            return Err(format!("`{key}` and `{key}_schema` are both there; keep one"));
        }
        (Some(fields), None) => of_fields(key, fields)?,
        (None, Some(schema)) => schema.clone(),
        (None, None) => return Ok(None),
    };
    match Schema::compile(&value) {
        Ok(compiled) => Ok(Some((compiled, value))),
        Err(error) => Err(format!("`{key}_schema`: {error}")),
    }
}

const TYPES: [&str; 6] = ["string", "integer", "number", "boolean", "object", "array"];

fn of_fields(key: &str, fields: &BTreeMap<String, String>) -> Result<Value, String> {
    let mut properties = serde_json::Map::new();
    let mut required = Vec::new();
    for (field, written) in fields {
        let kind = written.strip_suffix('?').unwrap_or(written);
        if !TYPES.contains(&kind) {
            let all = TYPES.join(", ");
            return Err(format!(
                "`{key}.{field}` is `{written}`, expected one of {all}, or `{key}_schema`"
            ));
        }
        properties.insert(field.clone(), json!({ "type": kind }));
        if kind == written {
            required.push(field);
        }
    }
    Ok(json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const JANITOR: &str = r#"
name: janitor
summary: Keeps a folder small; asks before deleting.
prompt: |
  Delete the largest file while the folder holds more than the limit, then report.
input: { folder: string, bytes_max: integer, why: string? }
servers: [files]
critical: [files.delete_file]
budget: { calls: 20, tokens: 50000 }
title: "{folder} below {bytes_max} bytes"
"#;

    fn problems(text: &str) -> Vec<String> {
        Checked::of_yaml(text).unwrap_err().problems
    }

    #[test]
    fn a_file_is_an_agent() {
        let checked = Checked::of_yaml(JANITOR).unwrap();
        let (_, input) = checked.input.as_ref().unwrap();
        assert_eq!(input["required"], json!(["bytes_max", "folder"]));
        assert_eq!(checked.version().len(), VERSION_DIGITS);
        let agent = checked.agent();
        assert_eq!((agent.name(), agent.critical()), ("janitor", &["files.delete_file"][..]));
        assert_eq!(agent.budget().calls, Some(20));
        agent.check().unwrap();
    }

    #[test]
    fn the_version_follows_the_content_and_not_the_layout() {
        let version = |text: &str| Checked::of_yaml(text).unwrap().version().to_owned();
        let same = "# a comment\n".to_owned()
            + &JANITOR.replace("calls: 20, tokens: 50000", "tokens: 50000, calls: 20");
        assert_eq!(version(JANITOR), version(&same));
        assert_ne!(version(JANITOR), version(&JANITOR.replace("largest", "oldest")));
        let as_json = serde_json::to_string(&Checked::of_yaml(JANITOR).unwrap().file).unwrap();
        assert_eq!(version(JANITOR), version(&as_json));
    }

    #[test]
    fn every_problem_is_named_at_once() {
        let text = r#"
name: Janitor
prompt: " "
input: { folder: text }
servers: [files, files]
critical: [file.delete_file]
model: gpt
budget: { calls: 0, usd: -1 }
"#;
        insta::assert_snapshot!(problems(text).join("\n"));
    }

    #[test]
    fn an_unknown_key_has_a_suggestion() {
        assert_eq!(
            problems("name: a\nprompt: b\ncritcal: []"),
            ["unknown key `critcal` (did you mean `critical`?)"]
        );
    }

    #[test]
    fn a_title_names_fields_of_the_input() {
        let text = JANITOR.replace("{bytes_max} bytes", "{bytes} bytes");
        assert_eq!(problems(&text), ["`title` names `{bytes}`, which the input does not have"]);
    }

    #[test]
    fn hostile_files_are_refused_in_bounded_time() {
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]";
        for text in [
            bomb,
            &"[".repeat(100_000),
            "- a\n- b",
            "name: [",
            "\u{0}",
            "name: a\nname: b\nprompt: c",
        ] {
            assert!(!problems(text).is_empty());
        }
    }
}
