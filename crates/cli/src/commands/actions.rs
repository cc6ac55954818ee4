//! A person's actions on an account's sessions, and changes of its halts, over the URL of the poller's function. Requests are signed, and
//! Lambda passes the signer's ARN on.

use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use aws_config::SdkConfig;
use aws_credential_types::provider::ProvideCredentials as _;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use control::Action;
use control::halt::HaltRequest;
use journal::halt::Change;
use journal::id::SessionId;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::reader;

/// Timeout of a request: the function's own, and some time for the network.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Largest reply that is read, in bytes. A reply of the poller has a few hundred.
const REPLY_BYTES_MAX: usize = 64 * 1024;

/// The service in the signature of a request to a function's URL.
const SERVICE: &str = "lambda";

/// How the account took an action.
#[derive(Clone, Debug, PartialEq)]
pub enum Sent {
    /// It is on the bus.
    Put,
    /// The poller's reply.
    Done(Value),
}

/// The URL of the poller's function.
#[derive(Clone, Debug)]
pub struct ActionsUrl {
    url: String,
    aws: SdkConfig,
}

impl ActionsUrl {
    pub fn new(url: &str, aws: &SdkConfig) -> Self {
        Self { url: url.trim_end_matches('/').to_owned(), aws: aws.clone() }
    }

    /// Sends an action.
    ///
    /// # Errors
    /// When the function cannot be reached, or refuses the action, or something else replies.
    pub async fn send(&self, session: &SessionId, action: &Action) -> Result<Value, Failure> {
        let path = format!("/api/sessions/{session}/{}", action.name());
        let unsure = "the poller may have taken the action; read the session first";
        accepted(session, self.post(&path, action.name(), &action.body(), unsure).await?)
    }

    /// Halts or unhalts agents. The reply has the halts in force.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn change_halts(
        &self,
        change: Change,
        request: &HaltRequest,
    ) -> Result<Value, Failure> {
        let (path, body) = (format!("/api/{}", change.as_str()), json!(request));
        let unsure = "the poller may have made the change; the reply to another one lists the halts in force";
        halts_changed(self.post(&path, change.as_str(), &body, unsure).await?)
    }

    /// Sends a request that is signed with the caller's credentials. `what` names it in errors, and `unsure` is the hint
    /// if the reply is lost.
    async fn post(
        &self,
        path: &str,
        what: &str,
        body: &Value,
        unsure: &str,
    ) -> Result<Value, Failure> {
        if !self.url.starts_with("https://") {
            let problem = format!("ACTIONS_URL is `{}`, expected an https URL", self.url);
            return Err(Failure::usage(problem).hint("set it to the stack's output ActionsUrl"));
        }
        let (url, body) = (format!("{}{path}", self.url), body.to_string());
        // Credentials are for this host alone.
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        let mut request = client.timeout(REQUEST_TIMEOUT).build()?.post(&url);
        let now = Duration::from_nanos(reader::now().nanos().unsigned_abs());
        for (name, value) in self.signature(&url, &body, SystemTime::UNIX_EPOCH + now).await? {
            request = request.header(name, value);
        }
        let response = request.header("content-type", "application/json").body(body).send().await;
        let response = response.map_err(|error| Failure::from(error).hint(unsure))?;
        let status = response.status();
        let reply = read(response).await?;
        if status.is_success() {
            return Ok(reply);
        }
        let said =
            reply["error"].as_str().or(reply["Message"].as_str()).unwrap_or("no reason given");
        let failure = Failure::unknown(format!("{what} was refused ({}): {said}", status.as_u16()));
        Err(match status.as_u16() {
            403 => failure.hint("this requires lambda:InvokeFunctionUrl; see DEPLOYMENT.md"),
            404 if reply["code"] == "NoRoute" => {
                failure.hint("the account's functions may be of an earlier version: deploy again")
            }
            _ => failure,
        })
    }

    /// The headers that sign a request.
    async fn signature(
        &self,
        url: &str,
        body: &str,
        now: SystemTime,
    ) -> anyhow::Result<Vec<(String, String)>> {
        let region = self.aws.region().context("no region is set")?;
        let provider = self.aws.credentials_provider().context("there are no credentials")?;
        let identity = provider.provide_credentials().await.context("there are no credentials")?;
        let identity = identity.into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(region.as_ref())
            .name(SERVICE)
            .time(now)
            .settings(SigningSettings::default())
            .build()?
            .into();
        let bytes = SignableBody::Bytes(body.as_bytes());
        let signable = SignableRequest::new("POST", url, std::iter::empty(), bytes)?;
        let (instructions, _) = sign(signable, &params)?.into_parts();
        let headers = instructions.into_parts().0.into_iter();
        Ok(headers.map(|it| (it.name().to_owned(), it.value().to_owned())).collect())
    }
}

/// The JSON of a reply; null for anything else.
async fn read(mut response: reqwest::Response) -> Result<Value, Failure> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > REPLY_BYTES_MAX {
            return Ok(Value::Null);
        }
    }
    Ok(serde_json::from_slice(&bytes).unwrap_or_default())
}

/// A success is believed only if it names the session, as the poller's does.
fn accepted(session: &SessionId, reply: Value) -> Result<Value, Failure> {
    if reply["session_id"] == session.as_str() {
        return Ok(reply);
    }
    Err(Failure::unknown("ACTIONS_URL replied, but not as the poller does")
        .hint(format!("look at the session: daybook show {session}")))
}

/// A success is believed only if it has the halts in force, as the poller's does.
fn halts_changed(reply: Value) -> Result<Value, Failure> {
    if reply["halts"].is_array() && reply["record"].is_u64() {
        return Ok(reply);
    }
    Err(Failure::unknown("ACTIONS_URL replied, but not as the poller does")
        .hint("check that it is the stack's output ActionsUrl"))
}

#[cfg(test)]
mod tests {
    use journal::halt::Scope;

    use super::*;

    #[tokio::test]
    async fn only_the_pollers_reply_over_tls_is_a_success() {
        let session = SessionId::fresh();
        assert!(accepted(&session, json!({ "session_id": session })).is_ok());
        for other in [Value::Null, json!({}), json!({ "session_id": SessionId::fresh() })] {
            assert!(accepted(&session, other).is_err());
        }
        let aws = super::super::cloud::local("http://127.0.0.1:1");
        let plain = ActionsUrl::new("http://127.0.0.1:1", &aws);
        let refused = plain.send(&session, &Action::Cancel { reason: None }).await.unwrap_err();
        assert!(refused.to_string().contains("expected an https URL"), "{refused}");
        assert!(halts_changed(json!({ "record": 1, "halts": [], "woken": 0 })).is_ok());
        for other in [Value::Null, json!({ "halts": [] }), json!({ "record": 1 })] {
            assert!(halts_changed(other).is_err());
        }
        let halt = HaltRequest { scope: Scope::All, reason: "x".to_owned() };
        let refused = plain.change_halts(Change::Halt, &halt).await.unwrap_err();
        assert!(refused.to_string().contains("expected an https URL"), "{refused}");
    }

    #[tokio::test]
    async fn a_request_is_signed_for_lambda_in_the_accounts_region() {
        let url = ActionsUrl::new(
            "https://x.lambda-url.us-east-1.on.aws/",
            &super::super::cloud::local("http://127.0.0.1:1"),
        );
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000);
        let headers = url.signature(&format!("{}/api", url.url), "{}", now).await.unwrap();
        let authorization = headers.iter().find(|(name, _)| name == "authorization");
        let (_, value) = authorization.unwrap();
        assert!(value.contains("/us-east-1/lambda/aws4_request"), "{value}");
    }
}
