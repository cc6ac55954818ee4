//! How the stack's own parts reach its endpoint: with the AWS clients, as they would reach AWS.

use std::net::SocketAddr;
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::http::SharedHttpClient;

use crate::names;

/// How long the stack's own clients wait for a connection, and for an answer where they do not say
/// otherwise, by the machine's clock.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// Connections that the stack's own parts keep for their next calls, and how long. A burst of sessions
/// opens hundreds; those that wait for a person afterwards need none.
const IDLE_CONNECTIONS_MAX: usize = 64;
const IDLE_WITHIN: Duration = Duration::from_secs(5);

/// For all of them. Each request is made once, so that every attempt is one that we know of.
pub fn config(address: SocketAddr) -> SdkConfig {
    let credentials = Credentials::new("local", "local", None, None, "daybook");
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT_WITHIN)
        .operation_timeout(ANSWER_WITHIN)
        .build();
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(names::REGION))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .endpoint_url(format!("http://{address}"))
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts)
        .http_client(http_client())
        .build()
}

/// One pool for all parts, without TLS: the endpoint is this process.
fn http_client() -> SharedHttpClient {
    aws_smithy_http_client::Builder::new()
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .pool_idle_timeout(IDLE_WITHIN)
        .build_http()
}
