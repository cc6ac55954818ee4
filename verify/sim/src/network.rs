//! The network: intercepts requests of the AWS clients before they leave the process, and applies
//! faults.

use std::io;
use std::time::Duration;

use agentcore::Runtime;
use aws_sdk_sfn::config::{BehaviorVersion, Credentials, HttpClient, Region, RuntimeComponents};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use journal::id::SessionId;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::oneshot;

use crate::process::Process;
use crate::world::World;

const RUNTIME_ARN: &str = "arn:aws:bedrock-agentcore:us-east-1:000000000000:runtime/sim";

const SESSION_ID: &str = "x-amzn-bedrock-agentcore-runtime-session-id";

/// An address without a listener; no request gets that far.
const NOWHERE: &str = "http://simulated.invalid";

/// Longest delay of a request or its duplicate.
const LATE: Duration = Duration::from_secs(120);

/// The network as one process uses it.
#[derive(Clone, Debug)]
pub struct Network {
    world: World,
    process: Arc<Process>,
}

/// A request as its receiver reads it.
#[derive(Clone, Debug)]
pub enum Message {
    /// `InvokeAgentRuntime`.
    Invoke { session: SessionId, body: Vec<u8> },
    /// `StopRuntimeSession`.
    Stop { session: SessionId },
    /// `SendTaskSuccess`, or without an output `SendTaskHeartbeat`.
    Callback { token: String, output: Option<Value> },
    /// `DescribeExecution`.
    Describe { arn: String },
}

impl Message {
    /// The IAM action, and the kind of resource.
    fn kind(&self) -> (&'static str, &'static str) {
        match self {
            Self::Invoke { .. } => ("bedrock-agentcore:InvokeAgentRuntime", "runtime"),
            Self::Stop { .. } => ("bedrock-agentcore:StopRuntimeSession", "runtime"),
            Self::Callback { output: Some(_), .. } => ("states:SendTaskSuccess", "machine"),
            Self::Callback { output: None, .. } => ("states:SendTaskHeartbeat", "machine"),
            Self::Describe { .. } => ("states:DescribeExecution", "execution"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    /// The error's name, if it is one.
    pub error: Option<&'static str>,
    pub body: Value,
}

impl Answer {
    pub fn ok(body: Value) -> Self {
        Self { status: 200, error: None, body }
    }

    pub fn error(status: u16, error: &'static str, message: &str) -> Self {
        Self { status, error: Some(error), body: json!({ "__type": error, "message": message }) }
    }
}

impl Network {
    pub fn new(world: World, process: Arc<Process>) -> Self {
        Self { world, process }
    }

    pub fn callbacks(&self) -> aws_sdk_sfn::Client {
        callbacks_over(self.clone())
    }

    pub fn runtime(&self) -> Runtime {
        runtime_over(self.clone())
    }

    async fn send(self, message: Message) -> Result<HttpResponse, ConnectorError> {
        let world = &self.world;
        let (chance, faults) = (world.chance(), world.faults());
        self.process.reach().await;
        let (action, about) = message.kind();
        world.disk().table().asked(&self.process, action, about);
        if chance.happens(faults.net_refused) {
            return Err(ConnectorError::io(
                io::Error::from(io::ErrorKind::ConnectionRefused).into(),
            ));
        }
        if chance.happens(faults.net_throttled) {
            return Ok(respond(&Answer::error(429, "ThrottlingException", "simulated")));
        }
        if chance.happens(faults.net_lost) {
            // The caller's timeout ends this.
            return std::future::pending().await;
        }
        let failed = chance.happens(faults.net_failed);
        if failed && chance.happens(500) {
            return Ok(respond(&Answer::error(500, "InternalServerException", "simulated")));
        }
        let late = chance.happens(faults.net_delayed);
        let most = if late { LATE } else { Duration::from_millis(40) };
        let delay = chance.between(Duration::from_millis(1), most);
        if chance.happens(faults.net_doubled) {
            let again = delay + chance.between(Duration::ZERO, LATE);
            drop(self.deliver(message.clone(), again));
        }
        let Ok(answer) = self.deliver(message, delay).await else {
            return Err(reset());
        };
        let unanswered = chance.happens(faults.net_unanswered);
        if unanswered && chance.happens(500) {
            return std::future::pending().await;
        }
        if unanswered {
            return Err(reset());
        }
        tokio::time::sleep(chance.between(Duration::from_millis(1), Duration::from_millis(40)))
            .await;
        self.process.reach().await;
        if failed {
            return Ok(respond(&Answer::error(500, "InternalServerException", "simulated")));
        }
        Ok(respond(&answer))
    }

    /// Has the receiver process a message, whatever happens to the sender.
    fn deliver(&self, message: Message, delay: Duration) -> oneshot::Receiver<Answer> {
        let (reply, answered) = oneshot::channel();
        let world = self.world.clone();
        self.world.tasks().spawn(async move {
            tokio::time::sleep(delay).await;
            // The sender may be gone.
            let _ = reply.send(world.serve(message).await);
        });
        answered
    }
}

/// A client of the state machine's callbacks whose requests are intercepted.
pub(crate) fn callbacks_over(http: impl HttpClient + 'static) -> aws_sdk_sfn::Client {
    let config = aws_sdk_sfn::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("sim", "sim", None, None, "sim"))
        .endpoint_url(NOWHERE)
        .http_client(http);
    aws_sdk_sfn::Client::from_conf(config.build())
}

/// A client of the agent runtime whose requests are intercepted.
pub(crate) fn runtime_over(http: impl HttpClient + 'static) -> Runtime {
    let config = aws_sdk_bedrockagentcore::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("sim", "sim", None, None, "sim"))
        .endpoint_url(NOWHERE)
        .http_client(http);
    let client = aws_sdk_bedrockagentcore::Client::from_conf(config.build());
    Runtime { client, arn: RUNTIME_ARN.to_owned(), qualifier: None }
}

impl HttpClient for Network {
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Network {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let network = self.clone();
        let message = read(&request);
        HttpConnectorFuture::new(async move {
            match message {
                Some(message) => network.send(message).await,
                None => Ok(respond(&Answer::error(404, "UnknownOperationException", "simulated"))),
            }
        })
    }
}

pub(crate) fn read(request: &HttpRequest) -> Option<Message> {
    let body = request.body().bytes().unwrap_or_default();
    if let Some(target) = request.headers().get("x-amz-target") {
        let body: Value = serde_json::from_slice(body).ok()?;
        if target.ends_with("DescribeExecution") {
            return Some(Message::Describe { arn: body["executionArn"].as_str()?.to_owned() });
        }
        let token = body["taskToken"].as_str()?.to_owned();
        let output = match target.rsplit('.').next()? {
            "SendTaskSuccess" => Some(serde_json::from_str(body["output"].as_str()?).ok()?),
            "SendTaskHeartbeat" => None,
            _ => return None,
        };
        return Some(Message::Callback { token, output });
    }
    let session = request.headers().get(SESSION_ID)?.parse().ok()?;
    let path = request.uri().split('?').next()?;
    match path.rsplit('/').next()? {
        "invocations" => Some(Message::Invoke { session, body: body.to_vec() }),
        "stopruntimesession" => Some(Message::Stop { session }),
        _ => None,
    }
}

pub(crate) fn respond(answer: &Answer) -> HttpResponse {
    let status = StatusCode::try_from(answer.status).unwrap_or_else(|_| unreachable!("a status"));
    let mut response = HttpResponse::new(status, SdkBody::from(answer.body.to_string()));
    response.headers_mut().insert("content-type", "application/json");
    if let Some(error) = answer.error {
        response.headers_mut().insert("x-amzn-errortype", error);
    }
    response
}

fn reset() -> ConnectorError {
    ConnectorError::io(io::Error::from(io::ErrorKind::ConnectionReset).into())
}
