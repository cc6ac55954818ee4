//! The container's program as the host, in front of DynamoDB Local.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use graph::agent::Agent;
use journal::dynamo::DynamoStore;
use journal::id::SessionId;
use serde_json::{Value, json};
use workflow::contract::AgentRequest;

use super::world::{DEADLINE, Hosts, Kit, Suite};

/// The endpoint of DynamoDB Local.
#[expect(clippy::disallowed_methods, reason = "the test runner passes DynamoDB's address")]
pub fn dynamodb() -> Option<String> {
    let endpoint = std::env::var("DAYBOOK_TEST_DYNAMODB").ok();
    if endpoint.is_none() {
        println!("skipped: DAYBOOK_TEST_DYNAMODB names no DynamoDB endpoint");
    }
    endpoint
}

/// A process of the container's program.
pub struct Container {
    process: Mutex<Child>,
    url: String,
    http: reqwest::Client,
}

impl Drop for Container {
    fn drop(&mut self) {
        let process = self.process.get_mut().unwrap();
        let _ = process.kill();
        let _ = process.wait();
    }
}

/// As AgentCore hosts them.
impl Suite for DynamoStore {
    type Host = Container;

    /// Each effect is a round trip to DynamoDB Local, which is the same for all of them.
    fn kits_at_length() -> Vec<Kit> {
        vec![Kit::Python]
    }

    async fn fresh(folder: &Path, kit: Kit, _: &Agent) -> (Self, Container) {
        let endpoint = dynamodb().unwrap();
        let store = Self::fresh_for_tests(&endpoint).await.unwrap();
        let container = Container::start(folder, kit, store.table(), &endpoint).await;
        (store, container)
    }
}

impl Container {
    /// Starts it with a `daybook.toml` that names the kit's program.
    async fn start(folder: &Path, kit: Kit, table: &str, endpoint: &str) -> Self {
        let launch = kit.launch();
        if let Some(script) = launch.command.get(1) {
            fs::copy(launch.folder.join(script), folder.join(script)).unwrap();
        }
        let agent = json!({
            "command": launch.command,
            "env": launch.environment,
            "idle_seconds": launch.idle.as_secs(),
        });
        let file = json!({ "agents": { "it": agent } });
        let config = folder.join("daybook.toml");
        fs::write(&config, toml::to_string(&file).unwrap()).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = fs::File::create(folder.join("container.log")).unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_agent"))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("DAYBOOK_CONFIG", &config)
            .env("DAYBOOK_AGENT_PORT", port.to_string())
            .env("JOURNAL_TABLE_NAME", table)
            .env("AWS_ENDPOINT_URL_DYNAMODB", endpoint)
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "local")
            .env("AWS_SECRET_ACCESS_KEY", "local")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let url = format!("http://127.0.0.1:{port}");
        let container = Self { process: Mutex::new(process), url, http: reqwest::Client::new() };
        let ready = async {
            while container.status().await.is_none() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let ready = tokio::time::timeout(DEADLINE, ready).await;
        let log = || fs::read_to_string(folder.join("container.log")).unwrap_or_default();
        assert!(ready.is_ok(), "the container does not answer: {}", log());
        container
    }

    /// What `/ping` says; `None` without an answer.
    async fn status(&self) -> Option<String> {
        let answer = self.http.get(format!("{}/ping", self.url)).send().await.ok()?;
        let answer: Value = answer.json().await.ok()?;
        Some(answer["status"].as_str()?.to_owned())
    }
}

impl Hosts for Container {
    async fn invoke(&self, request: &AgentRequest) -> (u16, Value) {
        let sent = self.http.post(format!("{}/invocations", self.url)).json(request).send();
        let answer = sent.await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    async fn has(&self, _: &SessionId) -> bool {
        self.status().await.as_deref() == Some("HealthyBusy")
    }

    async fn stop(&self) {
        let process = self.process.lock().unwrap().id().to_string();
        assert!(Command::new("kill").arg(process).status().unwrap().success());
        let gone = async {
            while self.process.lock().unwrap().try_wait().unwrap().is_none() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(DEADLINE, gone).await.unwrap();
    }
}
