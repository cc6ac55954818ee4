//! The services that participants of a race use besides the store: they reply at once, without
//! faults.

use std::fmt;
use std::sync::{Arc, Mutex};

use agent::host::Host;
use agentcore::Runtime;
use aws_sdk_sfn::config::{HttpClient, RuntimeComponents};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use journal::store::Store;
use serde_json::json;

use super::gate::lock;
use crate::network::{Answer, Message, callbacks_over, read, respond, runtime_over};

/// An agent runtime with at most one container, and a state machine that is not waiting.
pub struct Cloud<S>(Arc<Mutex<Option<Host<S>>>>);

impl<S: Store> Cloud<S> {
    pub fn empty() -> Self {
        Self(Arc::default())
    }

    /// Replaces the runtime's container.
    #[must_use]
    pub fn with(self, host: Host<S>) -> Self {
        *lock(&self.0) = Some(host);
        self
    }

    pub fn callbacks(&self) -> aws_sdk_sfn::Client {
        callbacks_over(self.clone())
    }

    pub fn runtime(&self) -> Runtime {
        runtime_over(self.clone())
    }

    async fn serve(self, message: Option<Message>) -> Answer {
        let host = lock(&self.0).clone();
        match (message, host) {
            (Some(Message::Invoke { body, .. }), Some(host)) => {
                let response = host.invoke(&body).await;
                match response.status {
                    200 => Answer::ok(response.body),
                    status => {
                        let text =
                            format!("Received error ({status}) from runtime: {}", response.body);
                        Answer::error(424, "RuntimeClientError", &text)
                    }
                }
            }
            (Some(Message::Stop { session }), Some(host)) if host.stop_session(&session) => {
                Answer::ok(json!({ "runtimeSessionId": session, "statusCode": 200 }))
            }
            (Some(Message::Callback { .. }), _) => {
                Answer::error(400, "TaskTimedOut", "the task has ended or timed out")
            }
            _ => Answer::error(404, "ResourceNotFoundException", "no such runtime session"),
        }
    }
}

impl<S> Clone for Cloud<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> fmt::Debug for Cloud<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cloud").finish_non_exhaustive()
    }
}

impl<S: Store> HttpClient for Cloud<S> {
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl<S: Store> HttpConnector for Cloud<S> {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (cloud, message) = (self.clone(), read(&request));
        HttpConnectorFuture::new(async move { Ok(respond(&cloud.serve(message).await)) })
    }
}
