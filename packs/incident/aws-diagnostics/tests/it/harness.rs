//! An MCP client over a pipe, and incident folders to damage.

use std::fs;
use std::path::{Path, PathBuf};

use mcp::testing::{Connection, text};
use serde_json::{Map, Value};
use tempfile::TempDir;

/// The tools of the incident specification.
pub const TOOLS: [&str; 3] = ["get_iam_state", "get_lambda_config", "get_recent_logs"];

/// All tools of `aws-diagnostics`, in the order of its listing.
pub const ALL_TOOLS: [&str; 5] = [
    "get_iam_state",
    "get_lambda_config",
    "get_recent_changes",
    "get_recent_logs",
    "get_security_group_rules",
];

/// Serves a folder and connects to the server.
pub async fn open(folder: &Path) -> Connection {
    Connection::serve(aws_diagnostics::server(folder.to_owned()).unwrap()).await
}

/// The result of a tool call that must succeed.
pub async fn answer(connection: &Connection, tool: &str, function: &str) -> Value {
    let result = connection.call(tool, named(function)).await.unwrap();
    assert_eq!(result.is_error, Some(false), "{tool}: {:?}", result.content);
    let structured = result.structured_content.clone().unwrap();
    let content: Value = serde_json::from_str(&text(&result)).unwrap();
    assert_eq!(content, structured, "the text and the structured content say the same");
    structured
}

/// The error of a tool call that must fail.
pub async fn refusal(connection: &Connection, tool: &str, function: &str) -> String {
    let result = connection.call(tool, named(function)).await.unwrap();
    assert_eq!(result.is_error, Some(true), "{tool}: {:?}", result.content);
    assert_eq!(result.structured_content, None, "a refusal does not look like data");
    text(&result)
}

pub fn named(function: &str) -> Value {
    serde_json::json!({ "lambda_name": function })
}

pub fn incidents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../incidents")
}

pub fn incident(name: &str) -> PathBuf {
    incidents().join(name)
}

/// A copy of `network-blocked`, to be damaged.
pub struct Copy {
    folder: TempDir,
}

/// The function of [`Copy`].
pub const FUNCTION: &str = "inventory-sync";

impl Copy {
    pub fn new() -> Copy {
        let folder = TempDir::new().unwrap();
        copy(&incident("network-blocked"), folder.path());
        Copy { folder }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file of the function.
    pub fn file(&self, file: &str) -> PathBuf {
        self.folder().join("functions").join(FUNCTION).join(file)
    }

    pub fn remove(&self, file: &str) {
        fs::remove_file(self.file(file)).unwrap();
    }

    pub fn write(&self, file: &str, content: impl AsRef<[u8]>) {
        fs::write(self.file(file), content).unwrap();
    }

    /// Changes a file's JSON object.
    pub fn edit(&self, file: &str, change: impl FnOnce(&mut Map<String, Value>)) {
        let text = fs::read_to_string(self.file(file)).unwrap();
        let mut content: Map<String, Value> = serde_json::from_str(&text).unwrap();
        change(&mut content);
        self.write(file, Value::Object(content).to_string());
    }

    /// Each tool's error, or `answered` and what is missing.
    pub async fn outcomes(&self) -> String {
        let connection = open(self.folder()).await;
        let mut outcomes = String::new();
        for tool in TOOLS {
            let result = connection.call(tool, named(FUNCTION)).await.unwrap();
            let gap =
                result.structured_content.as_ref().and_then(|answer| answer["error"].as_str());
            let line = match gap {
                _ if result.is_error == Some(true) => text(&result),
                Some(gap) => format!("answered in part: {gap}"),
                None => "answered".to_owned(),
            };
            outcomes.push_str(&format!("{tool}: {line}\n"));
        }
        connection.close().await;
        outcomes
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}
