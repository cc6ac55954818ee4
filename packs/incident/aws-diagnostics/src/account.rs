//! An AWS account, or a fake of one on this machine.
//!
//! The caller chooses an endpoint on this machine or the account of the current credentials. With an
//! endpoint on this machine, nothing else is contacted, not even for credentials or a region.

use std::time::Duration;

use aws_config::environment::{
    EnvironmentVariableCredentialsProvider, EnvironmentVariableRegionProvider,
};
use aws_config::meta::region::ProvideRegion;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use serde_json::Value;

use crate::destination::Destination;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Timeout of one attempt of a call.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(6);

/// Timeout of a call, all attempts together. It is below the agent's tool timeout of 30 s, so that the
/// agent gets a result or an error.
const CALL_TIMEOUT: Duration = Duration::from_secs(12);

/// Default region of an endpoint on this machine.
const LOCAL_REGION: &str = "us-east-1";

/// An account and how to reach it.
#[derive(Debug, Clone)]
pub struct Account {
    /// The configuration of every client.
    pub config: SdkConfig,
    destination: Destination,
}

impl Account {
    /// Reads credentials and region; only from the environment for an endpoint on this machine.
    /// Sends no request to the account.
    pub async fn open(destination: Destination) -> Self {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .operation_attempt_timeout(ATTEMPT_TIMEOUT)
            .operation_timeout(CALL_TIMEOUT)
            .build();
        let config = match &destination {
            Destination::Aws => {
                let loader = aws_config::defaults(BehaviorVersion::latest());
                loader.timeout_config(timeouts).load().await
            }
            Destination::Loopback(endpoint) => {
                let region = EnvironmentVariableRegionProvider::new().region().await;
                SdkConfig::builder()
                    .behavior_version(BehaviorVersion::latest())
                    .endpoint_url(endpoint.as_str())
                    .region(region.unwrap_or(Region::from_static(LOCAL_REGION)))
                    .credentials_provider(local_credentials().await)
                    .retry_config(RetryConfig::standard())
                    .timeout_config(timeouts)
                    .build()
            }
        };
        Self { config, destination }
    }

    pub fn destination(&self) -> &Destination {
        &self.destination
    }
}

/// The credentials of the environment, or placeholders: a fake does not check them.
async fn local_credentials() -> SharedCredentialsProvider {
    match EnvironmentVariableCredentialsProvider::new().provide_credentials().await {
        Ok(credentials) => SharedCredentialsProvider::new(credentials),
        Err(_) => {
            SharedCredentialsProvider::new(Credentials::new("local", "local", None, None, "local"))
        }
    }
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// AWS refused the call. A retry would fail, too.
    #[error("An error occurred ({code}) when calling the {operation} operation: {message}")]
    Refused { operation: &'static str, code: String, message: String },
    /// No response, or a retryable error.
    #[error("no answer to {operation}: {cause}")]
    Unanswered { operation: &'static str, cause: String },
}

impl CallError {
    /// Converts a client's error of this operation.
    pub fn of<E>(operation: &'static str, error: &SdkError<E, HttpResponse>) -> Self
    where
        E: std::error::Error + ProvideErrorMetadata + 'static,
    {
        if let (SdkError::ServiceError(refusal), Some(code)) = (error, error.code()) {
            let status = refusal.raw().status();
            let message = error.message().unwrap_or("no reason given").to_owned();
            return Self::answered(operation, status.as_u16(), code, message);
        }
        Self::Unanswered { operation, cause: causes(error) }
    }

    /// Classifies a service's error response.
    pub fn answered(operation: &'static str, status: u16, code: &str, message: String) -> Self {
        let is_retryable = status >= 500
            || status == 429
            || ["Throttl", "TooManyRequests", "RequestLimitExceeded", "SlowDown"]
                .iter()
                .any(|word| code.contains(word));
        if is_retryable {
            return Self::Unanswered { operation, cause: format!("{code}: {message}") };
        }
        Self::Refused { operation, code: code.to_owned(), message }
    }

    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            Self::Unanswered { .. } => None,
        }
    }
}

/// IAM returns policy documents percent-encoded; the AWS CLI prints them decoded. Invalid JSON stays a
/// string.
///
/// Source: IAM API reference, `GetRolePolicy`, PolicyDocument.
pub fn policy_document(encoded: &str) -> Value {
    let decoded = percent_encoding::percent_decode_str(encoded).decode_utf8_lossy();
    serde_json::from_str(&decoded).unwrap_or_else(|_| decoded.into_owned().into())
}

/// The chain of causes without the first, which only names their kind.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !texts.iter().any(|known| known.contains(&text)) {
            texts.push(text);
        }
        cause = error.source();
    }
    if texts.is_empty() { error.to_string() } else { texts.join(": ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_document_is_decoded() {
        let encoded = "%7B%22Statement%22%3A%20%5B%22a%2Bb+c%25%22%5D%7D";
        assert_eq!(policy_document(encoded), json!({"Statement": ["a+b+c%"]}));
        assert_eq!(policy_document("no json"), json!("no json"));
    }

    #[test]
    fn refusals_and_retryable_errors_differ() {
        let refused =
            CallError::answered("GetRole", 403, "AccessDenied", "no identity policy".into());
        assert_eq!(
            refused.to_string(),
            "An error occurred (AccessDenied) when calling the GetRole operation: no identity policy"
        );
        for (status, code) in [(400, "Throttling"), (429, "TooManyRequestsException"), (503, "X")] {
            let error = CallError::answered("GetRole", status, code, String::new());
            assert!(matches!(error, CallError::Unanswered { .. }), "{status} {code}");
        }
    }
}
