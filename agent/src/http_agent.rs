//! Agents that know nothing of Daybook: HTTP agents as AgentCore runs them, behind a program of our protocol.
//!
//! The host starts this program itself, with [`COMMAND`] as its argument, as it starts every agent that is a program. Its
//! one effect is the invocation: `POST /invocations` with the session's input. Before it, `GET /ping` must say that the
//! agent is healthy; after it, the session ends when the agent is no longer busy.
//!
//! Source: Amazon Bedrock `AgentCore` Developer Guide, "HTTP protocol contract".

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use daybook_kit::{Agent, Context};
use futures_util::StreamExt as _;
use graph::program::{IDLE_S, Launch};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::tool::answer::cut;
use crate::tool::process::Keeper;

/// The argument with which a host starts itself as this program.
pub const COMMAND: &str = "http-agent";

/// The variable of this program's environment with its configuration.
const CONFIG: &str = "DAYBOOK_HTTP_AGENT";

/// The variable with the bearer token.
const BEARER: &str = "DAYBOOK_HTTP_AGENT_BEARER";

/// The session's id, as `AgentCore` passes it on.
const SESSION_HEADER: &str = "x-amzn-bedrock-agentcore-runtime-session-id";

/// How long an agent may take until it is healthy, in seconds.
const START_S: u32 = 30;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const PING_TIMEOUT: Duration = Duration::from_secs(5);
const PING_PAUSE: Duration = Duration::from_millis(100);
/// Between pings of an agent that works in the background.
const BUSY_PAUSE: Duration = Duration::from_secs(1);
/// Pings in a row without an answer, after which an agent that worked counts as gone.
const LOST_PINGS: u32 = 5;

/// Longest answer, in bytes.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Longest quote of an answer in an error, in characters.
const QUOTE_CHARS_MAX: usize = 300;

/// `[agents.NAME]` of an agent that knows nothing of Daybook.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpTable {
    /// Its address, such as `http://127.0.0.1:8080`.
    #[serde(default)]
    url: Option<String>,
    /// The command that starts it, once for each session; `PORT` says where to listen. Instead of `url`.
    #[serde(default)]
    http_command: Option<Vec<String>>,
    /// Variables of its environment.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Headers of each request.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The variable of the host with a token for `Authorization: Bearer`.
    #[serde(default)]
    bearer_env: Option<String>,
    /// Seconds until it must be healthy; 30 by default.
    #[serde(default)]
    start_seconds: Option<u32>,
    /// Whether an invocation that was cut off by a crash is repeated; `ask` by default.
    #[serde(default)]
    repeat: Repeat,
    /// Its version; `1` by default.
    #[serde(default)]
    version: Option<String>,
    /// What it does.
    #[serde(default)]
    summary: Option<String>,
}

/// The keys of the table.
pub const KEYS: [&str; 9] = [
    "url",
    "http_command",
    "env",
    "headers",
    "bearer_env",
    "start_seconds",
    "repeat",
    "version",
    "summary",
];

/// What happens to an invocation whose outcome a crash has lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Repeat {
    /// A person decides.
    #[default]
    Ask,
    /// It is made again.
    Always,
}

/// The configuration of the program.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Config {
    name: String,
    version: String,
    summary: String,
    url: Option<String>,
    command: Vec<String>,
    headers: BTreeMap<String, String>,
    start_seconds: u32,
    repeat: Repeat,
    /// The environment of the command: the program's own has our variables besides.
    environment: BTreeMap<String, String>,
}

impl HttpTable {
    /// How the host starts the program of this agent. `host` is the host's own executable.
    ///
    /// # Errors
    /// What is wrong with the table.
    pub fn launch(
        &self,
        name: &str,
        host: &Path,
        folder: &Path,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Launch, String> {
        let command = self.http_command.clone().unwrap_or_default();
        match &self.url {
            Some(url) => drop(address(url)?),
            None if command.is_empty() => {
                return Err(
                    "`http_command` is empty; it needs the program and its arguments".into()
                );
            }
            None => {}
        }
        headers(&self.headers)?;
        let config = Config {
            name: name.to_owned(),
            version: self.version.clone().unwrap_or_else(|| "1".to_owned()),
            summary: self.summary.clone().unwrap_or_else(|| "An HTTP agent.".to_owned()),
            url: self.url.clone(),
            command,
            headers: self.headers.clone(),
            start_seconds: self.start_seconds.unwrap_or(START_S),
            repeat: self.repeat,
            environment: self.env.clone(),
        };
        let mut variables = BTreeMap::from([(CONFIG.to_owned(), json!(config).to_string())]);
        if let Some(variable) = &self.bearer_env {
            let token = environment(variable)
                .ok_or_else(|| format!("the variable {variable} of `bearer_env` is not set"))?;
            variables.insert(BEARER.to_owned(), token);
        }
        Ok(Launch {
            command: vec![host.to_string_lossy().into_owned(), COMMAND.to_owned()],
            folder: folder.to_owned(),
            environment: variables,
            idle: Duration::from_secs(IDLE_S.into()),
        })
    }
}

/// Whether this process was started as the program of an HTTP agent.
pub fn is_asked() -> bool {
    std::env::args().nth(1).as_deref() == Some(COMMAND)
}

/// The program. Does not return.
#[expect(clippy::disallowed_methods, reason = "a program of its own, with two variables")]
pub fn main() -> ! {
    let config = std::env::var(CONFIG).unwrap_or_default();
    let bearer = std::env::var(BEARER).ok();
    let started = serde_json::from_str(&config).map_err(|error| error.to_string());
    let started = started.and_then(|config: Config| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok((Http::new(config, bearer)?, runtime.map_err(|error| error.to_string())?))
    });
    match started {
        Ok((http, runtime)) => runtime.block_on(daybook_kit::serve(http.agent())),
        Err(problem) => {
            eprintln!(
                "`{COMMAND}` is started by a host of Daybook, for an agent with `url`: {problem}"
            );
            std::process::exit(64)
        }
    }
}

/// Why an invocation has no answer.
#[derive(Debug)]
struct HttpError(String);

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for HttpError {}

#[derive(Clone, Debug)]
struct Http {
    config: Config,
    client: Client,
}

/// What an agent says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Healthy,
    /// It works in the background.
    Busy,
}

impl Http {
    fn new(config: Config, bearer: Option<String>) -> Result<Self, String> {
        let mut headers = headers(&config.headers)?;
        if let Some(token) = bearer {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| "the token has a control character".to_owned())?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let client = Client::builder()
            .user_agent(concat!("daybook/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .build();
        Ok(Self { config, client: client.map_err(|error| error.to_string())? })
    }

    fn agent(self) -> Agent {
        let (name, version) = (self.config.name.clone(), self.config.version.clone());
        let summary = self.config.summary.clone();
        let run = move |ctx: Context, input: Value| {
            let http = self.clone();
            async move {
                let session = ctx.session().to_owned();
                let work = async || http.invoke(&session, &input).await;
                let answer: Value = match http.config.repeat {
                    Repeat::Ask => ctx.critical_step("invoke", &input, work).await?,
                    Repeat::Always => ctx.step("invoke", &input, work).await?,
                };
                let answer = if answer.is_object() { answer } else { json!({ "answer": answer }) };
                Ok::<_, daybook_kit::Error>(answer)
            }
        };
        Agent::new(&name, &version, run).summary(&summary)
    }

    /// Starts the agent if it is to be started, and invokes it.
    async fn invoke(&self, session: &str, input: &Value) -> Result<Value, HttpError> {
        let mut child = None;
        let base = match &self.config.url {
            Some(url) => address(url).map_err(HttpError)?,
            None => {
                let port = free_port()?;
                child = Some(self.start(port).await?);
                let url = format!("http://127.0.0.1:{port}");
                address(&url).map_err(HttpError)?
            }
        };
        self.healthy(&base, child.as_mut().map(|(child, _)| child)).await?;
        let request = self.client.post(at(&base, "invocations")).header(SESSION_HEADER, session);
        let response = request.json(input).send().await.map_err(|error| wrong(&base, &error))?;
        let answer = read(&base, response).await?;
        self.until_idle(&base).await?;
        Ok(answer)
    }

    /// It runs in this program's process group, with which the host stops it, and ends with this program if the host is
    /// killed.
    async fn start(&self, port: u16) -> Result<(Child, Keeper), HttpError> {
        let [program, arguments @ ..] = self.config.command.as_slice() else {
            return Err(HttpError("`http_command` is empty".to_owned()));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_remove(CONFIG)
            .env_remove(BEARER)
            .env_remove("DAYBOOK_PROTOCOL");
        command.envs(&self.config.environment).env("PORT", port.to_string());
        command.stdin(Stdio::null()).stdout(std::io::stderr()).kill_on_drop(true);
        let started = Keeper::start(command).await;
        started.map_err(|error| HttpError(format!("cannot start `{program}`: {error}")))
    }

    /// Waits until the agent says that it is healthy.
    async fn healthy(&self, base: &Url, mut child: Option<&mut Child>) -> Result<(), HttpError> {
        let within = Duration::from_secs(self.config.start_seconds.into());
        let mut newest = String::new();
        let waiting = async {
            loop {
                match self.ping(base).await {
                    Ok(_) => return Ok(()),
                    Err(problem) => newest = problem,
                }
                if let Some(Ok(Some(status))) = child.as_mut().map(|child| child.try_wait()) {
                    let text = format!("the agent's program ended before it was healthy: {status}");
                    return Err(HttpError(text));
                }
                tokio::time::sleep(PING_PAUSE).await;
            }
        };
        match tokio::time::timeout(within, waiting).await {
            Ok(healthy) => healthy,
            Err(_) => {
                let seconds = within.as_secs();
                let text = format!(
                    "{base} is not healthy after {seconds} s, nothing was invoked: {newest}"
                );
                Err(HttpError(text))
            }
        }
    }

    /// Waits until the agent has no work in the background.
    async fn until_idle(&self, base: &Url) -> Result<(), HttpError> {
        let mut lost = 0;
        loop {
            match self.ping(base).await {
                Ok(Health::Healthy) => return Ok(()),
                Ok(Health::Busy) => lost = 0,
                Err(problem) if lost + 1 == LOST_PINGS => {
                    let text = format!("{base} stopped answering while it was busy: {problem}");
                    return Err(HttpError(text));
                }
                Err(_) => lost += 1,
            }
            tokio::time::sleep(BUSY_PAUSE).await;
        }
    }

    async fn ping(&self, base: &Url) -> Result<Health, String> {
        let request = self.client.get(at(base, "ping")).timeout(PING_TIMEOUT);
        let response = request.send().await.map_err(|error| wrong(base, &error).0)?;
        let status = response.status();
        if !status.is_success() {
            return Err(format!("GET /ping answers {status}"));
        }
        let body = bytes(base, response).await.map_err(|error| error.0)?;
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        match said["status"].as_str() {
            Some("HealthyBusy") => Ok(Health::Busy),
            // An agent that is no AgentCore agent may say anything with 200.
            Some("Healthy") | None => Ok(Health::Healthy),
            Some(other) => Err(format!("GET /ping says `{}`", quoted(other))),
        }
    }
}

/// The JSON or text of an answer, or the events of a stream.
async fn read(base: &Url, response: Response) -> Result<Value, HttpError> {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
    let body = bytes(base, response).await?;
    let text = String::from_utf8_lossy(&body);
    if !status.is_success() {
        return Err(HttpError(format!("{base} answers {status}: {}", quoted(&text))));
    }
    if !is_stream {
        return Ok(value_of(&text));
    }
    let mut events = events(&text);
    Ok(if events.len() == 1 { events.remove(0) } else { json!({ "events": events }) })
}

/// The data of a stream's events. Source: HTML Living Standard, "Server-sent events".
fn events(text: &str) -> Vec<Value> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let data = text.split("\n\n").filter_map(|event| {
        let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
        let lines: Vec<_> = lines.map(|data| data.strip_prefix(' ').unwrap_or(data)).collect();
        (!lines.is_empty()).then(|| value_of(&lines.join("\n")))
    });
    data.collect()
}

fn value_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

async fn bytes(base: &Url, response: Response) -> Result<Vec<u8>, HttpError> {
    let mut body = Vec::new();
    let mut parts = response.bytes_stream();
    while let Some(part) = parts.next().await {
        body.extend_from_slice(&part.map_err(|error| wrong(base, &error))?);
        if body.len() > BODY_BYTES_MAX {
            return Err(HttpError(format!("{base} answers more than {BODY_BYTES_MAX} bytes")));
        }
    }
    Ok(body)
}

fn address(url: &str) -> Result<Url, String> {
    let expected = || format!("url is `{url}`, expected an address such as http://127.0.0.1:8080");
    let parsed = Url::parse(url).map_err(|_| expected())?;
    if !matches!(parsed.scheme(), "http" | "https") || !parsed.has_host() {
        return Err(expected());
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("url has a user name or a password: use `bearer_env`".to_owned());
    }
    Ok(parsed)
}

/// A path below the agent's address.
fn at(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

fn headers(written: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in written {
        let invalid = || format!("header `{name}` is not valid");
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        headers.insert(key, HeaderValue::from_str(value).map_err(|_| invalid())?);
    }
    Ok(headers)
}

/// A port that is free now. Another program could take it before the agent listens; then the agent fails to start.
fn free_port() -> Result<u16, HttpError> {
    let found = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|it| it.local_addr());
    found.map(|it| it.port()).map_err(|error| HttpError(format!("no port is free: {error}")))
}

fn wrong(base: &Url, error: &reqwest::Error) -> HttpError {
    let mut text = format!("{base}: {}", error.to_string().replace(base.as_str(), ""));
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    HttpError(text)
}

fn quoted(text: &str) -> String {
    cut(text, QUOTE_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> HttpTable {
        toml::from_str(text).unwrap()
    }

    fn launched(text: &str) -> Result<Launch, String> {
        let environment = |name: &str| (name == "TOKEN").then(|| "secret".to_owned());
        table(text).launch("old", Path::new("/bin/daybook"), Path::new("/here"), environment)
    }

    #[test]
    fn a_table_is_checked_before_anything_starts() {
        for (text, problem) in [
            ("url = 'localhost:8080'", "expected an address"),
            ("url = 'http://u:p@h'", "a user name or a password"),
            ("http_command = []", "`http_command` is empty"),
            ("url = 'http://h'\nheaders = { 'a b' = 'c' }", "header `a b` is not valid"),
            ("url = 'http://h'\nbearer_env = 'NONE'", "the variable NONE"),
        ] {
            let found = launched(text).unwrap_err();
            assert!(found.contains(problem), "{text}: {found}");
        }
        let launch = launched("url = 'http://h'\nbearer_env = 'TOKEN'").unwrap();
        assert_eq!(launch.command, ["/bin/daybook", COMMAND]);
        assert!(!launch.environment[CONFIG].contains("secret"));
    }

    #[test]
    fn the_events_of_a_stream_are_read() {
        let text =
            ": hello\r\ndata: {\"a\": 1}\r\n\r\nevent: x\ndata: one\ndata: two\n\n: none\n\n";
        assert_eq!(events(text), [json!({"a": 1}), json!("one\ntwo")]);
    }

    #[test]
    fn paths_are_below_the_address() {
        let url = |text| at(&address(text).unwrap(), "ping").to_string();
        assert_eq!(url("http://127.0.0.1:8080"), "http://127.0.0.1:8080/ping");
        assert_eq!(url("https://a.example/agents/one/"), "https://a.example/agents/one/ping");
    }
}
