//! A ministack process that runs our state machine; the test answers its function calls.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use axum::extract::{Path as UrlPath, State};
use axum::routing::post;
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use stack::functions::{CallError, Functions};
use stack::{dynamodb, names};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::Comes;
use crate::world::{Calls, Script, TIME, TIMEOUT, scripted};

const ROLE: &str = "arn:aws:iam::000000000000:role/test";

/// The credentials that select account and region. Ministack does not verify them.
const AUTHORIZATION: &str = "AWS4-HMAC-SHA256 Credential=000000000000/20261121/us-east-1/any/aws4_request, SignedHeaders=host, Signature=0";

/// A ministack process; killed on drop.
pub struct Ministack {
    /// The function calls so far.
    pub calls: Calls,
    process: Process,
    url: String,
    client: reqwest::Client,
    _folder: TempDir,
    _functions: JoinSet<()>,
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Ministack {
    /// Starts ministack with this definition and scripted functions, if this run has it.
    pub async fn start(text: &str, script: Script) -> Option<Self> {
        let python = python()?;
        let folder = tempfile::tempdir().unwrap();
        let calls = Calls::default();
        let mut functions = JoinSet::new();
        let functions_url = answer(&mut functions, scripted(script, &calls)).await;
        let port = free_port();
        let process = Command::new(&python)
            .args(["-m", "ministack"])
            .current_dir(folder.path())
            .env_clear()
            .env("HOME", folder.path())
            .env("TMPDIR", folder.path())
            // Its default is all interfaces.
            .env("BIND_HOST", "127.0.0.1")
            .env("GATEWAY_PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let ministack = Self {
            calls,
            process: Process(process),
            url: format!("http://127.0.0.1:{port}"),
            client: reqwest::Client::new(),
            _folder: folder,
            _functions: functions,
        };
        Some(ministack.furnished(&python, text, &functions_url).await)
    }

    async fn furnished(mut self, python: &Path, text: &str, functions_url: &str) -> Self {
        self.ready().await;
        let key = |name, kind| json!({ "AttributeName": name, "KeyType": kind });
        let attribute = |name| json!({ "AttributeName": name, "AttributeType": "S" });
        let table = json!({
            "TableName": dynamodb::TABLE_NAME,
            "KeySchema": [key("PK", "HASH"), key("SK", "RANGE")],
            "AttributeDefinitions": [attribute("PK"), attribute("SK")],
            "BillingMode": "PAY_PER_REQUEST",
        });
        self.ask("DynamoDB_20120810.CreateTable", &table).await.unwrap();
        let code = BASE64_STANDARD.encode(zipped(python, self._folder.path()));
        for arn in [names::INVOKER_ARN, names::POLLER_ARN] {
            let function = json!({
                "FunctionName": arn.rsplit(':').next(),
                "Runtime": "provided.al2023",
                "Handler": "bootstrap",
                "Role": ROLE,
                "Timeout": 60,
                "Code": { "ZipFile": code },
                "Environment": { "Variables": { "TEST_URL": functions_url } },
            });
            self.post("/2015-03-31/functions", None, &function).await.unwrap();
        }
        let machine = json!({ "name": names::STATE_MACHINE, "definition": text, "roleArn": ROLE });
        let made = self.ask("AWSStepFunctions.CreateStateMachine", &machine).await.unwrap();
        assert_eq!(made["stateMachineArn"], names::STATE_MACHINE_ARN);
        self
    }

    async fn ready(&mut self) {
        let waiting = async {
            while self.client.get(&self.url).send().await.is_err() {
                let ended = self.process.0.try_wait().unwrap();
                assert_eq!(ended, None, "ministack does not start");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, waiting).await.expect("ministack listens");
    }

    /// Starts a session's execution.
    pub async fn begin(&self, session: &str) -> String {
        let input = json!({ "session_id": session, "time": TIME, "detail": {} }).to_string();
        let request =
            json!({ "stateMachineArn": names::STATE_MACHINE_ARN, "name": session, "input": input });
        let started = self.ask("AWSStepFunctions.StartExecution", &request).await.unwrap();
        started["executionArn"].as_str().unwrap().to_owned()
    }

    /// Sends a parked workflow what the scenario says.
    pub async fn send(&self, token: &str, comes: Comes) {
        match comes {
            Comes::Success => {
                let success = json!({ "taskToken": token, "output": "{}" });
                self.ask("AWSStepFunctions.SendTaskSuccess", &success).await.unwrap();
            }
            // Ministack does not detect a missing heartbeat, so the test reports it.
            Comes::Nothing => {
                let missed = json!({ "taskToken": token, "error": "States.HeartbeatTimeout" });
                self.ask("AWSStepFunctions.SendTaskFailure", &missed).await.unwrap();
            }
            Comes::Heartbeats => {
                let heartbeat = json!({ "taskToken": token });
                while self.ask("AWSStepFunctions.SendTaskHeartbeat", &heartbeat).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    /// An execution's history after its end.
    pub async fn history_at_its_end(&self, arn: &str) -> Vec<Value> {
        let request = json!({ "executionArn": arn, "maxResults": 1_000 });
        let waiting = async {
            loop {
                let described = self.ask("AWSStepFunctions.DescribeExecution", &request).await;
                if described.unwrap()["status"] != "RUNNING" {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, waiting).await.expect("the execution ends on ministack");
        let history = self.ask("AWSStepFunctions.GetExecutionHistory", &request).await.unwrap();
        assert!(history["nextToken"].is_null(), "the history is whole");
        history["events"].as_array().unwrap().clone()
    }

    /// One request of the AWS JSON protocol. The error is the body of a response without success.
    pub async fn ask(&self, target: &str, body: &Value) -> Result<Value, String> {
        self.post("/", Some(target), body).await
    }

    async fn post(&self, path: &str, target: Option<&str>, body: &Value) -> Result<Value, String> {
        let request = self
            .client
            .post(format!("{}{path}", self.url))
            .timeout(TIMEOUT)
            .header("Authorization", AUTHORIZATION)
            .header("Content-Type", "application/x-amz-json-1.0");
        let request = target
            .into_iter()
            .fold(request, |request, target| request.header("X-Amz-Target", target));
        let response = request.body(body.to_string()).send().await.unwrap();
        let succeeded = response.status().is_success();
        let text = response.text().await.unwrap();
        if succeeded { Ok(serde_json::from_str(&text).unwrap()) } else { Err(text) }
    }
}

#[expect(clippy::disallowed_methods, reason = "how the test runner says where it is")]
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("DAYBOOK_TEST_MINISTACK").map(PathBuf::from);
    if python.is_none() {
        eprintln!("skipped: DAYBOOK_TEST_MINISTACK is not set (`make verify` sets it)");
    }
    python
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// Answers ministack's function calls. Returns the address.
async fn answer(tasks: &mut JoinSet<()>, functions: Functions) -> String {
    async fn called(
        State(functions): State<Functions>,
        UrlPath(function): UrlPath<String>,
        Json(payload): Json<Value>,
    ) -> Json<Value> {
        Json(match functions.call(&function, payload).await {
            Ok(answer) => json!({ "answer": answer }),
            Err(CallError::Failed(error)) => {
                json!({ "errorType": error.name, "errorMessage": error.message })
            }
            Err(error) => json!({ "errorType": "Test", "errorMessage": error.to_string() }),
        })
    }
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/{function}", post(called)).with_state(functions);
    tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
    format!("http://{address}")
}

/// The function's code in Lambda's format.
fn zipped(python: &Path, folder: &Path) -> Vec<u8> {
    let bootstrap = format!("#!{}\n{}", python.display(), include_str!("bootstrap.py"));
    std::fs::write(folder.join("bootstrap"), bootstrap).unwrap();
    let mut zip = Command::new(python);
    zip.args(["-m", "zipfile", "-c", "function.zip", "bootstrap"]).current_dir(folder);
    assert!(zip.status().unwrap().success());
    std::fs::read(folder.join("function.zip")).unwrap()
}
