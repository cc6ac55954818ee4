//! A local AWS account (moto, an independent implementation), and clients of the diagnostics server
//! over it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, ContentBlock};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};

use crate::harness::{DEADLINE, daybook, tool};

/// The function of the incident specification.
pub const FUNCTION: &str = "data-processor";

/// The tools of the diagnostics server.
pub const TOOLS: [&str; 3] = ["get_iam_state", "get_lambda_config", "get_recent_logs"];

/// The actions that a policy of `packs/incident/iam` allows, in order.
pub fn allowed(policy: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs/incident/iam").join(policy);
    let policy: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut actions: Vec<String> = Vec::new();
    for statement in policy["Statement"].as_array().unwrap() {
        match &statement["Action"] {
            Value::String(action) => actions.push(action.clone()),
            listed => {
                actions.extend(serde_json::from_value::<Vec<String>>(listed.clone()).unwrap())
            }
        }
    }
    actions.sort();
    actions
}

/// An empty account; stopped on drop.
pub struct Account {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    pub endpoint: String,
}

impl Account {
    /// Starts an account, if moto is available.
    pub fn open() -> Option<Self> {
        let python = tool("DAYBOOK_TEST_MOTO")?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/moto-account.py");
        let mut child = Command::new(python)
            .arg(script)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        stdout.read_line(&mut ready).unwrap();
        let endpoint = ready.strip_prefix("ready ").unwrap_or_else(|| panic!("{ready:?}"));
        let endpoint = endpoint.trim().to_owned();
        Some(Self { child, stdin, stdout, endpoint })
    }

    /// Runs a verb of `scripts/moto-account.py` with arguments.
    pub fn ask(&mut self, request: Value) -> Value {
        writeln!(self.stdin, "{request}").unwrap();
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{request} was not understood"))
    }

    /// Environment variables for access to the account.
    pub fn environment(&self) -> Vec<(String, String)> {
        [
            ("AWS_ENDPOINT_URL", self.endpoint.as_str()),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    /// `daybook` with access to the account.
    pub fn daybook(&self, folder: &Path) -> Command {
        let mut command = daybook(folder);
        command.envs(self.environment());
        command
    }

    /// The diagnostics server over the account, with further arguments.
    pub async fn server(&self, folder: &Path, arguments: &[&str]) -> Server {
        let mut command = self.daybook(folder);
        command.args(["mcp", "aws-diagnostics"]).args(arguments);
        Server::start(command).await
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of the diagnostics server, which is its child.
pub struct Server {
    client: RunningService<RoleClient, ()>,
}

impl Server {
    pub async fn start(command: Command) -> Self {
        let transport = TokioChildProcess::new(tokio::process::Command::from(command)).unwrap();
        let client = tokio::time::timeout(DEADLINE, ().serve(transport)).await.unwrap().unwrap();
        Self { client }
    }

    /// A tool's result for a function, or the text of its error.
    pub async fn call(&self, tool: &str, function: &str) -> Result<Value, String> {
        let arguments = json!({ "lambda_name": function }).as_object().unwrap().clone();
        let call = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let call = tokio::time::timeout(DEADLINE, self.client.call_tool(call));
        let result = call.await.unwrap().unwrap();
        match &result.content[..] {
            [ContentBlock::Text(text)] if result.is_error == Some(true) => Err(text.text.clone()),
            _ => Ok(result.structured_content.unwrap()),
        }
    }

    /// The results of all tools for a function.
    pub async fn answers(&self, function: &str) -> Vec<Result<Value, String>> {
        let mut answers = Vec::new();
        for tool in TOOLS {
            answers.push(self.call(tool, function).await);
        }
        answers
    }

    pub async fn close(self) {
        self.client.cancel().await.unwrap();
    }
}
