//! A client at the other end of a pipe, and incident folders to break.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, ErrorData};
use rmcp::service::{RoleClient, RunningService, ServiceError};
use rmcp::{ServerHandler, ServiceExt};
use serde_json::{Map, Value};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// No answer comes later than this, however loaded the machine.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Every tool of `aws-diagnostics`, in the order in which it lists them.
pub const TOOLS: [&str; 3] = ["get_iam_state", "get_lambda_config", "get_recent_logs"];

/// A client and the server that it speaks to.
pub struct Session {
    client: RunningService<RoleClient, ()>,
    server: JoinHandle<()>,
}

impl Session {
    /// Serves a folder and shakes hands with it.
    pub async fn open(folder: &Path) -> Session {
        Self::serve(tools::aws_diagnostics::server(folder.to_owned()).unwrap()).await
    }

    /// Shakes hands with a server.
    pub async fn serve(server: impl ServerHandler) -> Session {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let server = tokio::spawn(async move {
            server.serve(far).await.unwrap().waiting().await.unwrap();
        });
        let client = tokio::time::timeout(DEADLINE, ().serve(near)).await.unwrap().unwrap();
        Session { client, server }
    }

    pub fn client(&self) -> &RunningService<RoleClient, ()> {
        &self.client
    }

    /// What the server answers to a call.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<CallToolResult, ErrorData> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        match tokio::time::timeout(DEADLINE, self.client.call_tool(request)).await.unwrap() {
            Ok(result) => Ok(result),
            Err(ServiceError::McpError(error)) => Err(error),
            Err(error) => panic!("{tool}: {error}"),
        }
    }

    /// A tool's answer about a function, which has to be one.
    pub async fn answer(&self, tool: &str, function: &str) -> Value {
        let result = self.call(tool, named(function)).await.unwrap();
        assert_eq!(result.is_error, Some(false), "{tool}: {:?}", result.content);
        let structured = result.structured_content.clone().unwrap();
        let said: Value = serde_json::from_str(&text(&result)).unwrap();
        assert_eq!(said, structured, "the text and the structured content say the same");
        structured
    }

    /// A tool's refusal about a function, which has to be one.
    pub async fn refusal(&self, tool: &str, function: &str) -> String {
        let result = self.call(tool, named(function)).await.unwrap();
        assert_eq!(result.is_error, Some(true), "{tool}: {:?}", result.content);
        assert_eq!(result.structured_content, None, "a refusal does not look like data");
        text(&result)
    }

    /// Closes the pipe and waits until the server has noticed.
    pub async fn close(self) {
        self.client.cancel().await.unwrap();
        tokio::time::timeout(DEADLINE, self.server).await.unwrap().unwrap();
    }
}

/// The one argument of every tool.
pub fn named(function: &str) -> Value {
    serde_json::json!({ "lambda_name": function })
}

/// The one text of a result.
pub fn text(result: &CallToolResult) -> String {
    match &result.content[..] {
        [ContentBlock::Text(text)] => text.text.clone(),
        other => panic!("one text expected, not {other:?}"),
    }
}

/// The incidents that ship.
pub fn incidents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../incidents")
}

/// One of the incidents that ship.
pub fn incident(name: &str) -> PathBuf {
    incidents().join(name)
}

/// A copy of `network-blocked`, to be broken.
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

    /// What each tool says about the function: its refusal, or `answered`.
    pub async fn said(&self) -> String {
        let session = Session::open(self.folder()).await;
        let mut said = String::new();
        for tool in TOOLS {
            let result = session.call(tool, named(FUNCTION)).await.unwrap();
            let line =
                if result.is_error == Some(true) { text(&result) } else { "answered".into() };
            said.push_str(&format!("{tool}: {line}\n"));
        }
        session.close().await;
        said
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
