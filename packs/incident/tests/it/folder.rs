//! Answers tool calls from the bundled incident folders, like the tool server.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// The server's limits on log events.
const EVENTS_MAX: usize = 100;
const MESSAGE_CHARS_MAX: usize = 1_000;

pub(crate) struct Folder(PathBuf);

impl Folder {
    /// All bundled incidents, by name.
    pub(crate) fn all() -> Vec<(String, Self)> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("incidents");
        let mut folders: Vec<(String, Self)> = fs::read_dir(&root)
            .unwrap_or_else(|error| panic!("{}: {error}", root.display()))
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.path().join("incident.json").is_file())
            .map(|entry| (entry.file_name().into_string().unwrap(), Self(entry.path())))
            .collect();
        folders.sort_by(|a, b| a.0.cmp(&b.0));
        folders
    }

    pub(crate) fn named(name: &str) -> Self {
        Self(Path::new(env!("CARGO_MANIFEST_DIR")).join("incidents").join(name))
    }

    /// The session's input: the incident, with the folder's only function as the hint.
    pub(crate) fn input(&self) -> Value {
        let mut input = self.read("incident.json").unwrap();
        let mut functions = fs::read_dir(self.0.join("functions")).unwrap();
        if let (Some(only), None) = (functions.next(), functions.next())
            && input.get("lambda_name").is_none()
        {
            input["lambda_name"] = only.unwrap().file_name().into_string().unwrap().into();
        }
        input
    }

    /// A tool's result or error.
    pub(crate) fn answer(&self, tool: &str, function: &str) -> Result<Value, String> {
        let at = format!("functions/{function}");
        match tool {
            "get_recent_logs" => self.logs(&at, function),
            "get_iam_state" => self.iam(&at),
            "get_lambda_config" => self.config(&at),
            other => Err(format!("no tool {other}")),
        }
    }

    fn logs(&self, at: &str, function: &str) -> Result<Value, String> {
        let saved = self.read(&format!("{at}/filter-log-events.json"))?;
        let mut events = saved["events"].as_array().unwrap().clone();
        events.sort_by_key(|event| event["timestamp"].as_i64());
        let skipped = events.len().saturating_sub(EVENTS_MAX);
        let events: Vec<Value> = events[skipped..]
            .iter()
            .map(|event| {
                let message = event["message"].as_str().unwrap().trim_end();
                let message: String = message.chars().take(MESSAGE_CHARS_MAX).collect();
                json!({"timestamp": event["timestamp"].to_string(), "message": message})
            })
            .collect();
        Ok(json!({"log_group": format!("/aws/lambda/{function}"), "events": events}))
    }

    fn iam(&self, at: &str) -> Result<Value, String> {
        let role = self.read(&format!("{at}/role/get-role.json"))?;
        let names = self.read(&format!("{at}/role/list-role-policies.json"))?;
        let attached = self.read(&format!("{at}/role/list-attached-role-policies.json"))?;
        let mut policies = Map::new();
        for name in names["PolicyNames"].as_array().unwrap() {
            let name = name.as_str().unwrap();
            let policy = self.read(&format!("{at}/role/get-role-policy/{name}.json"))?;
            policies.insert(name.to_owned(), policy["PolicyDocument"].clone());
        }
        let attached = attached["AttachedPolicies"].as_array().unwrap();
        let attached: Vec<&Value> = attached.iter().map(|policy| &policy["PolicyArn"]).collect();
        Ok(json!({"role_name": role["Role"]["RoleName"], "inline_policies": policies,
                  "attached_policies": attached}))
    }

    fn config(&self, at: &str) -> Result<Value, String> {
        let saved = self.read(&format!("{at}/get-function-configuration.json"))?;
        let concurrency = self.read(&format!("{at}/get-function-concurrency.json"))?;
        let mut answer = Map::new();
        for name in ["FunctionName", "Runtime", "Role", "Timeout", "State", "VpcConfig"] {
            answer.extend(saved.get(name).map(|value| (name.to_owned(), value.clone())));
        }
        let reserved = "ReservedConcurrentExecutions";
        answer.extend(concurrency.get(reserved).map(|value| (reserved.to_owned(), value.clone())));
        Ok(Value::Object(answer))
    }

    fn read(&self, file: &str) -> Result<Value, String> {
        let text = fs::read_to_string(self.0.join(file))
            .map_err(|_| format!("the call failed: {file}: no such file"))?;
        Ok(serde_json::from_str(&text).unwrap())
    }
}
