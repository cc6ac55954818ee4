//! Bedrock `AgentCore`'s data plane: `InvokeAgentRuntime` and `StopRuntimeSession`.

use axum::body::{Body, Bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::header::HeaderName;
use axum::http::{HeaderMap, HeaderValue, Response};
use journal::id::SessionId;
use serde_json::{Value, json};

use super::Aws;
use super::wire::{self, Refusal};
use crate::host::{Answer, Unanswered};
use crate::load::{Turn, request_of};
use crate::names;

const SESSION_ID: HeaderName =
    HeaderName::from_static("x-amzn-bedrock-agentcore-runtime-session-id");

/// `POST /runtimes/{arn}/invocations`.
pub(super) async fn invoke(
    State(aws): State<Aws>,
    Path(arn): Path<String>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response<Body> {
    let (session, answered) = match admit(&arn, &headers, body) {
        Ok((session, body)) => {
            let answered = in_turn(&aws, &session, body).await;
            (session, answered)
        }
        Err(refusal) => return wire::rest(Err(refusal)),
    };
    match judge(answered) {
        Ok(body) => {
            let mut response = wire::respond(200, "application/json", body, None);
            if let Ok(value) = HeaderValue::from_str(session.as_str()) {
                response.headers_mut().insert(SESSION_ID, value);
            }
            response
        }
        Err(refusal) => wire::rest(Err(refusal)),
    }
}

/// Invokes the agent, or has the session wait for its turn.
async fn in_turn(aws: &Aws, session: &SessionId, body: Bytes) -> Result<Answer, Unanswered> {
    if let Some(request) = request_of(&body) {
        let turn = aws.load.turn(aws.executions.store(), &request).await;
        match turn.map_err(|error| Unanswered::NotStarted(error.to_string()))? {
            Turn::Begins => {}
            Turn::Waits(reply) => {
                return Ok(Answer { status: 200, body: json!(reply).to_string().into_bytes() });
            }
        }
    }
    let answered = aws.agents.invoke(session, body).await;
    if matches!(answered, Err(Unanswered::Full(_))) {
        aws.agents.stop_idle(|session| aws.load.is_at_work(session));
    }
    answered
}

/// `POST /runtimes/{arn}/stopruntimesession`.
pub(super) async fn stop(
    State(aws): State<Aws>,
    Path(arn): Path<String>,
    headers: HeaderMap,
) -> Response<Body> {
    wire::rest(stop_session(&aws, &arn, &headers).await)
}

async fn stop_session(aws: &Aws, arn: &str, headers: &HeaderMap) -> Result<Value, Refusal> {
    check_runtime(arn)?;
    let session = session(headers)?
        .ok_or_else(|| Refusal::bad("ValidationException", "runtimeSessionId is required"))?;
    if aws.agents.stop(&session).await {
        Ok(json!({ "runtimeSessionId": session, "statusCode": 200 }))
    } else {
        let message = format!("no runtime session {session} is running");
        Err(Refusal::new(404, "ResourceNotFoundException", message))
    }
}

fn admit(
    arn: &str,
    headers: &HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<(SessionId, Bytes), Refusal> {
    check_runtime(arn)?;
    let body = body.map_err(|error| Refusal::bad("ValidationException", error.body_text()))?;
    // A call without an id is a new session.
    Ok((session(headers)?.unwrap_or_else(SessionId::fresh), body))
}

fn check_runtime(arn: &str) -> Result<(), Refusal> {
    if arn == names::RUNTIME_ARN {
        return Ok(());
    }
    let message = format!("no agent runtime {arn} exists");
    Err(Refusal::new(404, "ResourceNotFoundException", message))
}

fn session(headers: &HeaderMap) -> Result<Option<SessionId>, Refusal> {
    let Some(value) = headers.get(SESSION_ID) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    text.parse()
        .map(Some)
        .map_err(|error| Refusal::bad("ValidationException", format!("runtimeSessionId: {error}")))
}

/// Maps the agent's answer to `AgentCore`'s. An agent's error becomes the runtime's error.
fn judge(answered: Result<Answer, Unanswered>) -> Result<Vec<u8>, Refusal> {
    match answered {
        Ok(answer) if (200..300).contains(&answer.status) => Ok(answer.body),
        Ok(answer) => {
            let body = String::from_utf8_lossy(&answer.body);
            let message = format!("Received error ({}) from runtime: {body}", answer.status);
            Err(Refusal::new(424, "RuntimeClientError", message))
        }
        // The agent has not begun: callers retry these two.
        Err(error @ Unanswered::Full(_)) => {
            Err(Refusal::new(429, "ThrottlingException", error.to_string()))
        }
        Err(error @ Unanswered::NotStarted(_)) => {
            Err(Refusal::new(500, "InternalServerException", error.to_string()))
        }
        Err(error @ Unanswered::Lost(_)) => {
            Err(Refusal::new(424, "RuntimeClientError", error.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_error_is_the_runtimes_with_its_text() {
        let answer = |status| Ok(Answer { status, body: br#"{"error":"x"}"#.to_vec() });
        assert_eq!(judge(answer(200)), Ok(br#"{"error":"x"}"#.to_vec()));
        let refusal = judge(answer(400)).unwrap_err();
        assert_eq!((refusal.status, refusal.code.as_str()), (424, "RuntimeClientError"));
        assert_eq!(refusal.message, r#"Received error (400) from runtime: {"error":"x"}"#);
    }
}
