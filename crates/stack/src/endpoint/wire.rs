//! Response formats: the AWS JSON protocol, REST, and Daybook's own JSON.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Response, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::dynamodb::ApiError;
use crate::load::NotAdmitted;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amzn-requestid");
const ERROR_TYPE: HeaderName = HeaderName::from_static("x-amzn-errortype");

/// The content types of the AWS JSON protocol.
const JSON_1_0: &str = "application/x-amz-json-1.0";
const JSON_1_1: &str = "application/x-amz-json-1.1";

/// A decoded query parameter.
pub(super) fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// Longest name of an action that a message repeats, in characters.
const ACTION_CHARS_MAX: usize = 100;

/// Why an action is refused that AWS may have.
pub(crate) fn unsupported(action: &str) -> String {
    let action: String = action.chars().take(ACTION_CHARS_MAX).collect();
    let action = if action.is_empty() { "a request without X-Amz-Target" } else { &action };
    format!("the local stack does not support {action}; LOCAL_DEVELOPMENT.md lists its AWS actions")
}

/// An error response, as the called API words it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    /// The error code, with or without its namespace.
    pub(super) code: String,
    pub(super) message: String,
    /// The whole body, if it has more than code and message.
    pub(super) body: Option<Box<Value>>,
}

impl Refusal {
    pub(super) fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self { status, code: code.to_owned(), message: message.into(), body: None }
    }

    /// Status 400.
    pub(super) fn bad(code: &str, message: impl Into<String>) -> Self {
        Self::new(400, code, message)
    }

    /// A request member violates a constraint of the API.
    pub(super) fn constraint(value: &str, member: &str, rule: &str) -> Self {
        Self::bad(
            "ValidationException",
            format!(
                "1 validation error detected: Value {value} at '{member}' failed to satisfy \
                 constraint: {rule}"
            ),
        )
    }

    /// The action is not supported.
    pub(super) fn unknown_operation(action: &str) -> Self {
        let message = unsupported(action);
        Self::bad("com.amazon.coral.service#UnknownOperationException", message)
    }

    /// A journal error. The log gets the cause, the caller one sentence.
    pub(super) fn journal(error: &journal::store::Error) -> Self {
        let cause = std::error::Error::source(error).map(ToString::to_string);
        tracing::error!(%error, cause, "A request failed because of the journal.");
        match error.retry() {
            // Clients retry both. If a conditional write had landed, its retry is refused.
            journal::store::Retry::After(_) | journal::store::Retry::Unknown(_) => {
                Self::new(503, "ServiceUnavailable", error.to_string())
            }
            journal::store::Retry::Never => Self::new(500, "InternalFailure", error.to_string()),
        }
    }

    /// A new session is not admitted now.
    pub(super) fn not_admitted(why: NotAdmitted) -> Self {
        let (status, code) = why.http();
        Self::new(status, code, why.to_string())
    }

    fn short_code(&self) -> &str {
        self.code.rsplit('#').next().unwrap_or(&self.code)
    }
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        if let Some(cause) = &error.cause {
            tracing::warn!(%error, %cause, "The table refused a request.");
        }
        let body = Some(Box::new(error.body()));
        Self { status: error.status, code: error.kind.to_owned(), message: error.message, body }
    }
}

/// The content type of the response: that of the request.
pub(super) fn protocol(headers: &HeaderMap) -> &'static str {
    match headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) {
        Some(asked) if asked.starts_with(JSON_1_1) => JSON_1_1,
        _ => JSON_1_0,
    }
}

/// A response in the AWS JSON protocol.
pub(super) fn aws(answer: Result<Value, Refusal>, protocol: &'static str) -> Response<Body> {
    match answer {
        Ok(body) => respond(200, protocol, body.to_string(), None),
        Err(refusal) => {
            let plain = || json!({ "__type": refusal.code, "message": refusal.message });
            let body = refusal.body.as_deref().cloned().unwrap_or_else(plain);
            let code = refusal.short_code().to_owned();
            respond(refusal.status, protocol, body.to_string(), Some(&code))
        }
    }
}

/// A response of a REST service, which names the error in a header.
pub(super) fn rest(answer: Result<Value, Refusal>) -> Response<Body> {
    match answer {
        Ok(body) => respond(200, "application/json", body.to_string(), None),
        Err(refusal) => {
            let body = json!({ "message": refusal.message });
            let code = refusal.short_code().to_owned();
            respond(refusal.status, "application/json", body.to_string(), Some(&code))
        }
    }
}

/// A response of Daybook's own API. An error is one sentence and a code.
pub(super) fn api(answer: Result<(u16, Value), Refusal>) -> Response<Body> {
    match answer {
        Ok((status, body)) => respond(status, "application/json", body.to_string(), None),
        Err(refusal) => {
            let body = json!({ "error": refusal.message, "code": refusal.short_code() });
            respond(refusal.status, "application/json", body.to_string(), None)
        }
    }
}

/// A response with a fresh request id.
pub(super) fn respond(
    status: u16,
    content_type: &str,
    body: impl Into<Body>,
    error_type: Option<&str>,
) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    let header = |text: &str| HeaderValue::from_str(text).ok();
    headers.extend(header(content_type).map(|value| (CONTENT_TYPE, value)));
    headers.extend(header(&Uuid::new_v4().to_string()).map(|value| (REQUEST_ID, value)));
    headers.extend(error_type.and_then(header).map(|value| (ERROR_TYPE, value)));
    response
}
