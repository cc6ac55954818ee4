//! How the stack's own parts reach its endpoint: with the AWS clients, as they would reach AWS, and
//! through the same routes as everybody; only the socket between the two is left out.
//!
//! Source: measured, ten thousand sessions that come to wait. Over loopback connections, some 250 were
//! open at a time, whose buffers were the largest part of what the stack held.

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

/// How long the stack's own clients wait for an answer where they do not say otherwise, by the
/// machine's clock.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// The guard takes it for ours. No name is looked up, and no port listens.
const ADDRESS: &str = "http://127.0.0.1";

/// The way from the stack's own clients to its endpoint, which is put together after them.
///
/// It does not keep the endpoint: that holds the clients.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    routes: Arc<OnceLock<Weak<Router>>>,
}

/// Why a request reached nobody.
#[derive(Debug, thiserror::Error)]
enum Unreached {
    #[error("the stack has not started, or has stopped")]
    NoEndpoint,
    #[error("the endpoint panicked")]
    Panicked,
}

impl Wire {
    /// A configuration for all of the stack's own clients. Each request is made once, so that every
    /// attempt is one that we know of.
    pub fn config(&self) -> SdkConfig {
        let credentials = Credentials::new("local", "local", None, None, "daybook");
        SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(names::REGION))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .endpoint_url(ADDRESS)
            .retry_config(RetryConfig::disabled())
            .timeout_config(TimeoutConfig::builder().operation_timeout(ANSWER_WITHIN).build())
            // An answer that is in memory does not stall.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .http_client(self.clone())
            .build()
    }

    /// Leads to an endpoint from now on, for as long as it is kept elsewhere. Only the first counts.
    pub fn lead_to(&self, routes: &Arc<Router>) {
        let _ = self.routes.set(Arc::downgrade(routes));
    }

    async fn carry(&self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let routes = self.routes.get().and_then(Weak::upgrade);
        let routes = routes.ok_or_else(|| ConnectorError::io(Unreached::NoEndpoint.into()))?;
        let request =
            request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
        // A panic there is the endpoint's, and not the caller's.
        let answering = AssertUnwindSafe(Router::clone(&routes).oneshot(request.map(Body::new)));
        let answer = answering.catch_unwind().await;
        let Ok(answer) = answer else {
            return Err(ConnectorError::io(Unreached::Panicked.into()));
        };
        let answer = answer.unwrap_or_else(|never| match never {});
        let (head, body) = answer.into_parts();
        // All of its answers to AWS's clients are in memory already.
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

    async fn told_of_a_call(wire: &Wire) -> String {
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
    async fn a_call_is_answered_by_the_routes_for_as_long_as_they_are_kept() {
        let wire = Wire::default();
        assert!(told_of_a_call(&wire).await.ends_with(&Unreached::NoEndpoint.to_string()));
        let routes = Arc::new(Router::new().route("/", post(async || "{}")));
        wire.lead_to(&routes);
        assert_eq!(told_of_a_call(&wire).await, "heard");
        drop(routes);
        assert!(told_of_a_call(&wire).await.ends_with(&Unreached::NoEndpoint.to_string()));
    }

    #[tokio::test]
    async fn a_panic_of_the_endpoint_is_an_error_of_the_call() {
        let wire = Wire::default();
        let panics = async || -> StatusCode { panic!("on purpose, caught on the way") };
        let routes = Arc::new(Router::new().route("/", post(panics)));
        wire.lead_to(&routes);
        assert!(told_of_a_call(&wire).await.ends_with(&Unreached::Panicked.to_string()));
    }
}
