//! AWS clients for the stack's own parts. They use the endpoint's routes as any client does, but call
//! them in memory instead of through a socket.
//!
//! Source: measured with ten thousand sessions that come to wait. Over loopback, some 250 connections
//! were open at a time, and their buffers were the largest part of the stack's memory.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use axum::Router;
use axum::body::Body;
use futures_util::FutureExt as _;
use tower::ServiceExt as _;

use crate::names;

/// Default timeout of the stack's own clients, by the machine's clock.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// An address that the guard accepts as local. Nothing resolves it, and nothing listens on it.
const ADDRESS: &str = "http://127.0.0.1";

/// The in-memory connection from the stack's own clients to its endpoint.
///
/// The endpoint is built after the clients and holds them, so this keeps only a weak reference to it.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    routes: Arc<OnceLock<Weak<Router>>>,
}

/// Why a request did not reach the endpoint.
#[derive(Debug, thiserror::Error)]
enum Unreached {
    #[error("the stack has not started, or has stopped")]
    NoEndpoint,
    #[error("the endpoint panicked")]
    Panicked,
}

impl Wire {
    /// The SDK configuration of all of the stack's own clients. Each request is sent once, so that the
    /// stack knows of every attempt.
    pub fn config(&self) -> SdkConfig {
        let credentials = Credentials::new("local", "local", None, None, "daybook");
        SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(names::REGION))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .endpoint_url(ADDRESS)
            .retry_config(RetryConfig::disabled())
            .timeout_config(TimeoutConfig::builder().operation_timeout(RESPONSE_TIMEOUT).build())
            // A response in memory does not stall.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .http_client(self.clone())
            .build()
    }

    /// Connects to an endpoint, for as long as the caller keeps it. Only the first call counts.
    pub fn lead_to(&self, routes: &Arc<Router>) {
        let _ = self.routes.set(Arc::downgrade(routes));
    }

    async fn carry(&self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let routes = self.routes.get().and_then(Weak::upgrade);
        let routes = routes.ok_or_else(|| ConnectorError::io(Unreached::NoEndpoint.into()))?;
        let request =
            request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
        // A panic of the endpoint must not spread to the caller.
        let answering = AssertUnwindSafe(Router::clone(&routes).oneshot(request.map(Body::new)));
        let answer = answering.catch_unwind().await;
        let Ok(answer) = answer else {
            return Err(ConnectorError::io(Unreached::Panicked.into()));
        };
        let answer = answer.unwrap_or_else(|never| match never {});
        let (head, body) = answer.into_parts();
        // All responses to AWS clients are already in memory.
        let body = axum::body::to_bytes(body, usize::MAX).await;
        let body = SdkBody::from(body.map_err(|error| ConnectorError::io(error.into()))?);
        let answer = HttpResponse::try_from(axum::http::Response::from_parts(head, body));
        answer.map_err(|error| ConnectorError::io(error.into()))
    }
}

impl HttpConnector for Wire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let wire = self.clone();
        HttpConnectorFuture::new(async move { wire.carry(request).await })
    }
}

impl HttpClient for Wire {
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::routing::post;

    use super::*;

    async fn response_to_a_call(wire: &Wire) -> String {
        let client = aws_sdk_sfn::Client::new(&wire.config());
        let call = client.send_task_heartbeat().task_token("token").send().await;
        match call {
            Ok(_) => "heard".to_owned(),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                let causes = std::iter::successors(Some(error), |error| error.source());
                causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
            }
        }
    }

    #[tokio::test]
    async fn calls_reach_the_routes_while_they_are_kept() {
        let wire = Wire::default();
        assert!(response_to_a_call(&wire).await.ends_with(&Unreached::NoEndpoint.to_string()));
        let routes = Arc::new(Router::new().route("/", post(async || "{}")));
        wire.lead_to(&routes);
        assert_eq!(response_to_a_call(&wire).await, "heard");
        drop(routes);
        assert!(response_to_a_call(&wire).await.ends_with(&Unreached::NoEndpoint.to_string()));
    }

    #[tokio::test]
    async fn a_panic_of_the_endpoint_fails_the_call() {
        let wire = Wire::default();
        let panics = async || -> StatusCode { panic!("on purpose, caught on the way") };
        let routes = Arc::new(Router::new().route("/", post(panics)));
        wire.lead_to(&routes);
        assert!(response_to_a_call(&wire).await.ends_with(&Unreached::Panicked.to_string()));
    }
}
