//! A person's action, or a change of the halts, over the function's URL: the routes and replies of a local stack's API.
//!
//! The URL requires IAM authorisation: Lambda checks the request's signature, and states the caller's
//! ARN in the request's context. Nothing in the body or the headers changes it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use control::halt::HaltRequest;
use control::{Action, Control, Error};
use journal::halt::Change;
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

/// What a request asks for.
enum Requested {
    Action(SessionId, Action),
    Halts(Change, HaltRequest),
}

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
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let control = Control { store, clock, executions: &self.cloud };
        let done = match requested(request) {
            Ok(Requested::Action(session, action)) => {
                control.act(&session, &action, &by).await.map(|done| json!(done))
            }
            Ok(Requested::Halts(change, request)) => {
                let known: Vec<&str> = self.agents.iter().map(String::as_str).collect();
                let changed = control.change_halts(change, &request, &by, &known).await;
                changed.map(|changed| json!(changed))
            }
            Err(refused) => return refused,
        };
        match done {
            Ok(done) => (202, Ok(done)),
            Err(error) => {
                if !matches!(error, Error::Refused(_)) {
                    let path = request["rawPath"].as_str();
                    tracing::error!(path, %error, "A person's action failed.");
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

fn refused(status: u16, code: &'static str, why: impl ToString) -> Reply {
    (status, Err((code, why.to_string())))
}

/// Reads `POST /api/halt`, `POST /api/unhalt` or `POST /api/sessions/{id}/{action}`.
fn requested(request: &Value) -> Result<Requested, Reply> {
    let expected = "expected POST /api/sessions/ID/ACTION, /api/halt or /api/unhalt";
    let unknown = || refused(404, "NoRoute", expected);
    let path = request["rawPath"].as_str().unwrap_or_default();
    let is_post = request.pointer("/requestContext/http/method").is_some_and(|it| it == "POST");
    let route = path.strip_prefix("/api/").filter(|_| is_post).ok_or_else(unknown)?;
    let change = [Change::Halt, Change::Unhalt].into_iter().find(|it| it.as_str() == route);
    if let Some(change) = change {
        let halts = serde_json::from_slice(&body_of(request)?);
        let halts = halts.map_err(|error| refused(400, "InvalidBody", error))?;
        return Ok(Requested::Halts(change, halts));
    }
    let route = route.strip_prefix("sessions/").and_then(|route| route.split_once('/'));
    let (id, name) = route.ok_or_else(unknown)?;
    let id = id.parse().map_err(|error| refused(400, "InvalidSessionId", error))?;
    let action = Action::of_request(name, &body_of(request)?);
    let action = action.map_err(|error| refused(400, "InvalidBody", error))?;
    Ok(Requested::Action(id, action.ok_or_else(unknown)?))
}

fn body_of(request: &Value) -> Result<Vec<u8>, Reply> {
    let text = request["body"].as_str().unwrap_or_default();
    match request["isBase64Encoded"].as_bool() {
        Some(true) => BASE64.decode(text).map_err(|error| refused(400, "InvalidBody", error)),
        _ => Ok(text.as_bytes().to_vec()),
    }
}
