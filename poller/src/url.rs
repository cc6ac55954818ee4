//! A person's action over the function's URL: the routes and replies of a local stack's API.
//!
//! The URL requires IAM authorisation: Lambda checks the request's signature, and states the caller's
//! ARN in the request's context. Nothing in the body or the headers changes it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use control::{Action, Control, Error};
use journal::id::SessionId;
use journal::principal::Principal;
use journal::store::Store;
use serde_json::{Value, json};

use crate::Poller;

/// Where Lambda states the caller of a function URL with IAM authorisation.
///
/// Source: AWS Lambda Developer Guide, "Invoking Lambda function URLs", request payload format.
const CALLER: &str = "/requestContext/authorizer/iam/userArn";

/// A reply's status, and its body or the code and the message of an error.
type Reply = (u16, Result<Value, (&'static str, String)>);

/// Whether the payload is a request to a function URL.
pub(crate) fn is_request(payload: &Value) -> bool {
    payload.pointer("/requestContext/http").is_some()
}

impl<S: Store> Poller<S> {
    /// Performs the action of a request to the function's URL.
    pub(crate) async fn respond(&self, request: &Value) -> Value {
        let (status, body) = self.perform(request).await;
        let body = body.unwrap_or_else(|(code, error)| json!({ "error": error, "code": code }));
        json!({
            "statusCode": status,
            "headers": { "content-type": "application/json" },
            "body": body.to_string(),
        })
    }

    async fn perform(&self, request: &Value) -> Reply {
        let Some(by) = caller(request) else {
            let why = "the request has no caller: the function's URL must use AWS_IAM";
            return (403, Err(("Forbidden", why.to_owned())));
        };
        let (session, action) = match requested(request) {
            Ok(requested) => requested,
            Err(refused) => return refused,
        };
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let control = Control { store, clock, executions: &self.cloud };
        match control.act(&session, &action, &by).await {
            Ok(done) => (202, Ok(json!(done))),
            Err(error) => {
                if !matches!(error, Error::Refused(_)) {
                    tracing::error!(session_id = %session, %error, "A person's action failed.");
                }
                let (status, code) = error.http();
                (status, Err((code, error.to_string())))
            }
        }
    }
}

fn caller(request: &Value) -> Option<Principal> {
    let arn = request.pointer(CALLER)?.as_str()?.parse().ok()?;
    Some(Principal::AwsArn(arn))
}

/// The session and the action of `POST /api/sessions/{id}/{action}`.
fn requested(request: &Value) -> Result<(SessionId, Action), Reply> {
    let refused = |status, code, why: String| (status, Err((code, why)));
    let unknown = || refused(404, "NoRoute", "expected POST /api/sessions/ID/ACTION".to_owned());
    let path = request["rawPath"].as_str().unwrap_or_default();
    let is_post = request.pointer("/requestContext/http/method").is_some_and(|it| it == "POST");
    let route = path.strip_prefix("/api/sessions/").filter(|_| is_post);
    let (id, name) = route.and_then(|route| route.split_once('/')).ok_or_else(unknown)?;
    let id = id.parse().map_err(|error| refused(400, "InvalidSessionId", format!("{error}")))?;
    let invalid = |why: String| refused(400, "InvalidBody", why);
    let text = request["body"].as_str().unwrap_or_default();
    let body = match request["isBase64Encoded"].as_bool() {
        Some(true) => BASE64.decode(text).map_err(|error| invalid(error.to_string()))?,
        _ => text.as_bytes().to_vec(),
    };
    let action = Action::of_request(name, &body).map_err(|error| invalid(error.to_string()))?;
    Ok((id, action.ok_or_else(unknown)?))
}
