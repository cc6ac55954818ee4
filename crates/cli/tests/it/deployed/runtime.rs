//! AgentCore's part: its data plane on loopback, over our agent's own program. Each session has a
//! process of its own, which the host of the local stack keeps; a model's endpoint beside it answers as
//! it is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::response::IntoResponse as _;
use axum::routing::{any, post};
use journal::clock::{Clock, Stamp};
use serde_json::Value;
use stack::host::{Agents, Isolated, Settings};
use tokio::net::TcpListener;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use super::account::{REGION, RUNTIME_ARN, SCALE, built, kept};
use crate::page::root;

/// The name of the model that is asked.
pub const MODEL: &str = "openai:any";

/// How many of the model's requests are never answered; the others are refused.
#[derive(Clone, Copy, Debug)]
pub enum Model {
    /// None.
    Refuses,
    /// The first.
    HangsOnce,
    /// All.
    Hangs,
}

/// The runtime, before and after its agents are known.
pub struct Runtime {
    pub endpoint: String,
    agents: Arc<OnceCell<Agents>>,
    asked: Arc<AtomicUsize>,
    model: String,
    _serving: JoinSet<()>,
}

impl Runtime {
    /// Listens; nobody calls before the agents are there.
    pub async fn start(model: Model) -> Self {
        let (agents, asked) = (Arc::<OnceCell<Agents>>::default(), Arc::<AtomicUsize>::default());
        let mut serving = JoinSet::new();
        let router = Router::new()
            .route("/runtimes/{arn}/invocations", post(invoke))
            .route("/runtimes/{arn}/stopruntimesession", post(stop))
            .with_state(Arc::clone(&agents));
        let endpoint = serve(&mut serving, router).await;
        let count = Arc::clone(&asked);
        let answers = any(async move || {
            let before = count.fetch_add(1, Ordering::AcqRel);
            match model {
                Model::HangsOnce if before == 0 => std::future::pending().await,
                Model::Hangs => std::future::pending().await,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            }
        });
        let model = serve(&mut serving, Router::new().fallback(answers)).await;
        Self { endpoint, agents, asked, model, _serving: serving }
    }

    /// Starts agents from now on, with the variables of the image and the template. What is added leads to the
    /// account, as AWS itself does, and to the model.
    pub fn host(&self, account: &[(String, String)], origin: Stamp) -> Option<()> {
        let mut environment = account.to_vec();
        // The template sets it.
        environment.retain(|(name, _)| name != "AWS_REGION");
        environment.extend(image());
        environment.extend(variables_of(&kept()));
        environment.extend(
            [
                ("OPENAI_BASE_URL", self.model.as_str()),
                // By the scaled clock, and processes start by the machine's.
                ("MCP_CONNECT_TIMEOUT", "300"),
                ("MCP_INIT_TIMEOUT", "300"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let settings = Settings {
            program: built("agent")?,
            arguments: Vec::new(),
            environment,
            clock: Clock::scaled(origin, SCALE),
            time_scale: SCALE,
            token: guard::Secret::new(&"7".repeat(64)),
            progress: agent::progress::Broadcast::default(),
            exits: None,
        };
        self.agents.set(Agents::Isolated(Isolated::new(settings).unwrap())).ok()
    }

    /// How often the model was asked.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Acquire)
    }

    pub async fn shutdown(self) {
        if let Some(agents) = self.agents.get() {
            agents.shutdown().await;
        }
    }
}

/// The variables that a template sets for the agent, in the region of the tests.
pub fn variables_of(template: &Value) -> Vec<(String, String)> {
    let mut resources = template["Resources"].as_object().unwrap().values();
    let runtime = resources.find(|it| it["Type"] == "AWS::BedrockAgentCore::Runtime").unwrap();
    let variables = runtime["Properties"]["EnvironmentVariables"].as_object().unwrap();
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        of_the_region => {
            assert_eq!(*of_the_region, serde_json::json!({ "Ref": "AWS::Region" }));
            REGION.to_owned()
        }
    };
    variables.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

/// What the agents' image sets, but for the files that it has.
fn image() -> Vec<(String, String)> {
    let file = std::fs::read_to_string(root().join("infra/image/Dockerfile")).unwrap();
    let set =
        file.lines().filter_map(|line| line.strip_prefix("ENV ")).flat_map(str::split_whitespace);
    let set: Vec<_> = (set.map(|pair| pair.split_once('=').unwrap()))
        .filter(|(_, value)| !value.starts_with('/'))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    assert!(!set.is_empty(), "{file}");
    set
}

async fn serve(serving: &mut JoinSet<()>, router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
    format!("http://{address}")
}

fn session(arn: &str, headers: &HeaderMap) -> journal::id::SessionId {
    assert_eq!(arn, RUNTIME_ARN);
    headers["x-amzn-bedrock-agentcore-runtime-session-id"].to_str().unwrap().parse().unwrap()
}

async fn invoke(
    State(agents): State<Arc<OnceCell<Agents>>>,
    Path(arn): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let session = session(&arn, &headers);
    match agents.get().unwrap().invoke(&session, body).await {
        Ok(answer) if answer.status == 200 => (StatusCode::OK, answer.body).into_response(),
        Ok(answer) => {
            let said = String::from_utf8(answer.body).unwrap();
            let text = format!("Received error ({}) from runtime: {said}", answer.status);
            refusal(StatusCode::FAILED_DEPENDENCY, "RuntimeClientError", &text)
        }
        Err(error) => {
            let code = StatusCode::INTERNAL_SERVER_ERROR;
            refusal(code, "InternalServerException", &error.to_string())
        }
    }
}

async fn stop(
    State(agents): State<Arc<OnceCell<Agents>>>,
    Path(arn): Path<String>,
    headers: HeaderMap,
) -> Response<Body> {
    if agents.get().unwrap().stop(&session(&arn, &headers)).await {
        return (StatusCode::OK, "{}").into_response();
    }
    refusal(StatusCode::NOT_FOUND, "ResourceNotFoundException", "no such session")
}

fn refusal(status: StatusCode, code: &'static str, message: &str) -> Response<Body> {
    let body = serde_json::json!({ "message": message }).to_string();
    (status, [("x-amzn-errortype", code)], body).into_response()
}
