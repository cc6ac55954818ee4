//! HTTP client of the local stack: health, answers, cancellations, resumptions and progress.

use std::path::PathBuf;
use std::time::Duration;

use journal::clock::Stamp;
use journal::id::SessionId;
use journal::principal::Name;
use reqwest::{Client, RequestBuilder, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use workflow::contract::USER_HEADER;

use crate::failure::Failure;
use crate::resolve::Context;
use crate::user;

/// Timeout of a connection, on this machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest duration of a stream.
const STREAM_TIMEOUT: Duration = Duration::from_secs(86_400);

/// A client of the local stack.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The URL, without a trailing slash.
    pub address: String,
    client: Client,
    token: Option<String>,
    user: Option<Name>,
}

/// The health response of a running stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    pub data: Option<PathBuf>,
    /// Whether the stack signs the log of sessions, or why not; `None` if it does not say.
    pub signing: Option<Result<(), String>>,
    /// The agents that a trigger may name; `None` if the stack does not say.
    pub agents: Option<Vec<String>>,
    /// The steps of the machine's clock; `None` if the stack does not say.
    pub clock: Option<Clock>,
    /// The settings that the stack was started with; `None` if it does not say.
    pub settings: Option<Settings>,
    /// What it stores, in bytes; `None` if it does not say.
    pub storage: Option<Storage>,
    /// Why sessions do not go on as they should, by what is concerned.
    pub problems: Map<String, Value>,
    /// The halts in force; null if the stack cannot read them.
    pub halts: Value,
    /// What is known of notices; null without targets.
    pub notices: Option<Notices>,
    /// The sessions at work and in the queue; `None` if the stack does not say.
    pub load: Option<Load>,
}

/// What a running stack knows of notices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Notices {
    pub targets: Vec<String>,
    pub failing: Vec<FailingTarget>,
    pub undelivered: Vec<Undelivered>,
}

/// A target whose notices fail, and are tried again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FailingTarget {
    pub target: String,
    pub notices: usize,
    pub reason: String,
}

/// A notice that was given up.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Undelivered {
    pub session_id: String,
    pub target: String,
    pub reason: String,
}

/// The load of a running stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Load {
    pub at_work: usize,
    pub at_work_max: usize,
    pub queued: usize,
    pub queue_max: usize,
    pub draining: bool,
}

/// The settings of a running stack.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Settings {
    pub model: String,
    /// The names of its MCP servers.
    pub servers: Vec<String>,
    pub ttl_days: u32,
    pub durability: String,
    pub isolation: String,
    pub time_scale: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Storage {
    pub journal_bytes: Option<u64>,
    pub log_bytes: u64,
    pub disk_left_bytes: Option<u64>,
    /// Used of the disk budget, and the budget; `None` without one.
    pub used_bytes: Option<u64>,
    pub used_bytes_max: Option<u64>,
}

/// The steps of the machine's clock since the stack began.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Clock {
    pub steps: u64,
    pub newest: Option<ClockStep>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct ClockStep {
    /// What the clock showed after it.
    pub at: Stamp,
    /// In milliseconds; negative if the clock went back.
    pub by_ms: i64,
}

impl Endpoint {
    /// Creates the client; sends nothing.
    ///
    /// # Errors
    /// When the HTTP client cannot be created.
    pub fn new(context: &Context) -> Result<Self, Failure> {
        let client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .build()?;
        let address = context.endpoint.as_str().trim_end_matches('/').to_owned();
        Ok(Self { address, client, token: context.token.clone(), user: user::name() })
    }

    /// The address of a session's page.
    pub fn page_of(&self, id: &SessionId) -> String {
        format!("{}/#/session/{}", self.address, id.as_str())
    }

    /// The stack's health; `None` when nothing listens.
    ///
    /// # Errors
    /// When another program listens there, or the request times out.
    pub async fn health(&self) -> Result<Option<Health>, Failure> {
        let answer = match self.send(self.client.get(self.url("/healthz"))).await {
            Ok(answer) => answer,
            Err(error) if error.is_connect() => return Ok(None),
            Err(error) => {
                let problem =
                    anyhow::Error::new(error).context(format!("{} does not answer", self.address));
                return Err(problem.into());
            }
        };
        let status = answer.status();
        if status == StatusCode::UNAUTHORIZED {
            let problem = format!("the stack at {} requires a token", self.address);
            return Err(Failure::unknown(problem).hint("set DAYBOOK_TOKEN to the stack's token"));
        }
        let body: Option<Value> = answer.json().await.ok();
        let is_stack = |body: &Value| status.is_success() || body["status"] == "failing";
        let Some(body) = body.filter(|body| body.is_object() && is_stack(body)) else {
            let problem = format!("another program listens at {}", self.address);
            return Err(Failure::unknown(problem).hint("pass another port with --endpoint"));
        };
        let data = body.get("data").and_then(Value::as_str).map(PathBuf::from);
        let signing = body.get("log_problem").map(|problem| match problem.as_str() {
            Some(problem) => Err(problem.to_owned()),
            None => Ok(()),
        });
        let problems = body.get("problems").and_then(Value::as_object).cloned();
        let read = |name: &str| body.get(name).cloned().unwrap_or_default();
        let agents = serde_json::from_value(read("agents")).ok();
        let clock = serde_json::from_value(read("clock")).ok();
        let settings = serde_json::from_value(read("settings")).ok();
        let storage = serde_json::from_value(read("storage")).ok();
        let load = serde_json::from_value(read("load")).ok();
        let notices = serde_json::from_value(read("notices")).ok();
        let (halts, problems) = (read("halts"), problems.unwrap_or_default());
        let of_load = Health { load, halts, notices, ..Health::default() };
        Ok(Some(Health { data, signing, agents, clock, settings, storage, problems, ..of_load }))
    }

    /// Gets a route of the stack's API; `None` when nothing listens.
    ///
    /// # Errors
    /// When the stack does not answer, or with something else.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Failure> {
        match self.send(self.client.get(self.url(path))).await {
            Ok(answer) => Ok(Some(answer.error_for_status()?.json().await?)),
            Err(error) if error.is_connect() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a session an answer, a cancellation or a resumption.
    ///
    /// # Errors
    /// When nothing listens, or the stack refuses it; the failure has its reason.
    pub async fn post(&self, id: &SessionId, what: &str, body: &Value) -> Result<Value, Failure> {
        self.post_to(&format!("/api/sessions/{id}/{what}"), body).await
    }

    /// Posts to a route of the stack's API.
    ///
    /// # Errors
    /// As [`Self::post`].
    pub async fn post_to(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        let what = path.rsplit('/').next().unwrap_or(path);
        let answer = match self.send(self.client.post(self.url(path)).json(body)).await {
            Ok(answer) => answer,
            Err(error) if error.is_connect() => return Err(self.nothing_listens()),
            Err(error) => return Err(error.into()),
        };
        let status = answer.status();
        let text = answer.text().await?;
        let json: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        if status.is_success() {
            return Ok(json);
        }
        let said =
            ["error", "message", "reason"].iter().find_map(|field| json.get(field)?.as_str());
        let said = said.map_or_else(|| text.chars().take(300).collect(), str::to_owned);
        Err(Failure::unknown(format!("{what} was refused ({}): {said}", status.as_u16())))
    }

    /// Streams a session's progress; `None` once the session has ended.
    ///
    /// # Errors
    /// When nothing listens, or the session does not exist yet.
    pub async fn progress(&self, id: &SessionId) -> reqwest::Result<Option<reqwest::Response>> {
        let url = self.url(&format!("/api/sessions/{id}/events?only=progress"));
        // The stream ends with the session.
        let request = self.client.get(url).timeout(STREAM_TIMEOUT);
        let answer = self.send(request).await?.error_for_status()?;
        Ok(Some(answer).filter(|answer| answer.status() == StatusCode::OK))
    }

    /// The failure when nothing listens.
    pub fn nothing_listens(&self) -> Failure {
        Failure::unknown(format!("nothing listens at {}", self.address))
            .hint("start the local stack with: daybook dev")
    }

    async fn send(&self, request: RequestBuilder) -> reqwest::Result<reqwest::Response> {
        let request = match &self.user {
            Some(user) => request.header(USER_HEADER, user.as_str()),
            None => request,
        };
        match &self.token {
            Some(token) => request.bearer_auth(token).send().await,
            None => request.send().await,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }
}

/// The host and port that a stack at this address listens on.
pub fn listen_address(endpoint: &Url) -> Option<String> {
    Some(format!("{}:{}", endpoint.host_str()?, endpoint.port_or_known_default()?))
}
