//! Lambda's `Invoke` of the functions of `--functions`.

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use super::Aws;
use crate::executions::is_own;
use crate::functions::CallError;

const FUNCTION_ERROR: HeaderName = HeaderName::from_static("x-amz-function-error");
const VERSION: HeaderName = HeaderName::from_static("x-amz-executed-version");
const ERROR_TYPE: HeaderName = HeaderName::from_static("x-amzn-errortype");
const INVOCATION_TYPE: &str = "x-amz-invocation-type";

/// `POST /2015-03-31/functions/{name}/invocations`: waits for the function and returns its reply.
pub(super) async fn invoke(
    State(aws): State<Aws>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    if is_own(&name) {
        let message = format!("the workflow alone calls {name}");
        return refused(StatusCode::FORBIDDEN, "AccessDeniedException", &message);
    }
    match headers.get(INVOCATION_TYPE).and_then(|value| value.to_str().ok()) {
        None | Some("RequestResponse") => {}
        Some("DryRun") if aws.executions.functions().has(&name) => {
            return reply(StatusCode::NO_CONTENT, None, None);
        }
        Some("DryRun") => {
            let message = CallError::NotFound(name).to_string();
            return refused(StatusCode::NOT_FOUND, "ResourceNotFoundException", &message);
        }
        Some(other) => {
            let message = format!("the local stack does not support the invocation type {other}");
            return refused(StatusCode::BAD_REQUEST, "InvalidParameterValueException", &message);
        }
    }
    let payload = match body.is_empty() {
        true => Ok(json!({})),
        false => serde_json::from_slice::<Value>(&body),
    };
    let payload = match payload {
        Ok(payload) => payload,
        Err(error) => {
            let message = format!("Could not parse request body into json: {error}");
            return refused(StatusCode::BAD_REQUEST, "InvalidRequestContentException", &message);
        }
    };
    match aws.executions.functions().call(&name, payload).await {
        Ok(answer) => reply(StatusCode::OK, Some(answer), None),
        Err(CallError::Failed(failed)) => {
            let answer = json!({ "errorType": failed.name, "errorMessage": failed.message });
            reply(StatusCode::OK, Some(answer), Some("Unhandled"))
        }
        Err(error @ CallError::NotFound(_)) => {
            refused(StatusCode::NOT_FOUND, "ResourceNotFoundException", &error.to_string())
        }
        Err(error @ CallError::Throttled) => {
            refused(StatusCode::TOO_MANY_REQUESTS, "TooManyRequestsException", &error.to_string())
        }
        Err(error) => refused(StatusCode::BAD_GATEWAY, "ServiceException", &error.to_string()),
    }
}

fn reply(status: StatusCode, answer: Option<Value>, error: Option<&'static str>) -> Response<Body> {
    let body = answer.map_or_else(Body::empty, |answer| Body::from(answer.to_string()));
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(VERSION, HeaderValue::from_static("$LATEST"));
    if let Some(error) = error {
        response.headers_mut().insert(FUNCTION_ERROR, HeaderValue::from_static(error));
    }
    response
}

fn refused(status: StatusCode, code: &'static str, message: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(json!({ "Message": message }).to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(ERROR_TYPE, HeaderValue::from_static(code));
    response
}
