//! A function that is a URL: the payload is the request's body, the response's body is the answer.
//!
//! This is the part of Lambda's `Invoke` that every emulator offers, such as `cargo lambda watch` or a
//! container with the runtime interface emulator.

use std::fmt;

use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use serde_json::Value;

use super::{ANSWER_BYTES_MAX, CallError, FunctionError};

/// The header that marks an error body.
///
/// Source: AWS Lambda, `Invoke`, response headers.
const FUNCTION_ERROR: &str = "x-amz-function-error";

/// A function's URL.
pub(super) struct Address {
    url: Url,
    client: Client,
}

impl fmt::Debug for Address {
    /// The host alone: a path, a query and a user may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}

impl Address {
    /// Parses an HTTP or HTTPS URL; `None` for any other text.
    pub(super) fn new(url: &str) -> Option<Self> {
        let url = Url::parse(url).ok().filter(|url| ["http", "https"].contains(&url.scheme()))?;
        // A redirect or a proxy would send the payload to another host.
        let client = Client::builder().redirect(Policy::none()).no_proxy().build().ok()?;
        Some(Self { url, client })
    }

    pub(super) async fn call(&self, payload: &Value) -> Result<Value, CallError> {
        let lost = |error: reqwest::Error| CallError::Unreachable(error.without_url().to_string());
        let response =
            self.client.post(self.url.clone()).json(payload).send().await.map_err(lost)?;
        let status = response.status();
        let has_failed = response.headers().contains_key(FUNCTION_ERROR);
        let body = bounded(response).await.map_err(lost)?.ok_or_else(FunctionError::too_large)?;
        if status.is_success() && !has_failed {
            return Ok(FunctionError::unless_json(&body)?);
        }
        let said = serde_json::from_slice(&body).ok();
        Err(said.as_ref().and_then(FunctionError::said).map_or_else(
            || {
                let message = format!("the function's URL answered with status {status}");
                FunctionError::new("Lambda.Unknown", message).into()
            },
            CallError::Failed,
        ))
    }
}

/// Reads the body; `None` if it is too large.
async fn bounded(mut response: Response) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() > ANSWER_BYTES_MAX {
            return Ok(None);
        }
    }
    Ok(Some(body))
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::StatusCode;
    use axum::routing::post;
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_url_responds_and_fails_as_a_lambda_function_does() {
        let error = r#"{"errorType": "NoStock", "errorMessage": "sold out"}"#;
        let router = Router::new()
            .route("/echo", post(|body: String| async { body }))
            .route("/null", post(|| async { "" }))
            .route("/text", post(|| async { "hello" }))
            .route("/failed", post(move || async move { ([(FUNCTION_ERROR, "Unhandled")], error) }))
            .route("/broken", post(|| async { (StatusCode::INTERNAL_SERVER_ERROR, "oh") }))
            .route("/moved", post(|| async { axum::response::Redirect::temporary("/echo") }))
            .route("/large", post(|| async { vec![b' '; ANSWER_BYTES_MAX + 1] }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let mut server = tokio::task::JoinSet::new();
        server.spawn(async move { axum::serve(listener, router).await.unwrap() });
        for (path, expected) in [
            ("echo", Ok(json!({"a": 1}))),
            ("null", Ok(Value::Null)),
            ("text", Err("Runtime.MarshalError")),
            ("failed", Err("NoStock")),
            ("broken", Err("Lambda.Unknown")),
            ("moved", Err("Lambda.Unknown")),
            ("large", Err("Function.ResponseSizeTooLarge")),
        ] {
            let address = Address::new(&format!("http://{at}/{path}")).unwrap();
            let answer = address.call(&json!({"a": 1})).await;
            let named = answer.map_err(|error| match error {
                CallError::Failed(error) => error.name,
                other => panic!("{path}: {other}"),
            });
            assert_eq!(named, expected.map_err(str::to_owned), "{path}");
        }
        server.shutdown().await;
        let gone = Address::new(&format!("http://{at}/echo")).unwrap().call(&json!({})).await;
        assert!(matches!(gone, Err(CallError::Unreachable(_))), "{gone:?}");
    }
}
