//! Sends one notice to one target.

use std::fmt::Write as _;
use std::time::Duration;

use journal::clock::Clock;
use journal::principal::Principal;
use notify::delivery::{ATTEMPTS_MAX, Outcome};
use notify::notice::{Notice, SOURCE};
use notify::signature::Secret;
use notify::target::{Kind, Target};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use serde_json::json;

use crate::bus::Bus;
use crate::names;

/// Timeout of a request.
///
/// Source: Standard Webhooks, "Deliverability and reliability": 15 to 30 seconds.
const TIMEOUT: Duration = Duration::from_secs(15);

#[derive(Clone)]
pub(super) struct Sender {
    http: reqwest::Client,
    bus: Bus,
    clock: Clock,
}

impl Sender {
    pub(super) fn new(bus: Bus, clock: Clock) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT)
            .user_agent(concat!("daybook/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { http, bus, clock })
    }

    pub(super) async fn send(&self, target: &Target, notice: &Notice, attempt: u32) -> Outcome {
        match &target.kind {
            Kind::Webhook { url, secret } => self.post(url, secret, notice, attempt).await,
            Kind::EventBridge => self.put(notice, attempt).await,
        }
    }

    async fn post(&self, url: &str, secret: &Secret, notice: &Notice, attempt: u32) -> Outcome {
        let (body, at) = (notice.body(), self.clock.now().seconds());
        let request = self
            .http
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", &notice.id)
            .header("webhook-timestamp", at.to_string())
            .header("webhook-signature", secret.sign(&notice.id, at, &body))
            .body(body);
        let reply = match request.send().await {
            Ok(reply) => reply,
            // The URL may hold a secret.
            Err(error) => return failed(attempt, &cause(&error.without_url())),
        };
        let status = reply.status();
        if status.is_success() {
            Outcome::Delivered
        } else if status == StatusCode::GONE {
            Outcome::Undelivered("it replied 410: it wants no more notices".to_owned())
        } else if status.is_redirection() {
            let to = reply.headers().get(LOCATION).and_then(|place| place.to_str().ok());
            let host = to.and_then(|place| reqwest::Url::parse(place).ok());
            let host = host.as_ref().and_then(|place| place.host_str()).unwrap_or("another path");
            let why =
                format!("it replied {} to {host}; redirects are not followed", status.as_u16());
            failed(attempt, &why)
        } else {
            failed(attempt, &format!("it replied {}", status.as_u16()))
        }
    }

    async fn put(&self, notice: &Notice, attempt: u32) -> Outcome {
        let entry = json!({
            "Source": SOURCE, "DetailType": notice.why.detail_type(),
            "Detail": notice.bus_detail(), "EventBusName": names::EVENT_BUS,
        });
        let put = self.bus.put_events(&json!({ "Entries": [entry] }), &Principal::Unknown).await;
        match put {
            Ok(reply) if reply["FailedEntryCount"] == 0 => Outcome::Delivered,
            Ok(reply) => {
                let why = reply["Entries"][0]["ErrorMessage"].as_str().unwrap_or("it was refused");
                failed(attempt, why)
            }
            Err(error) => failed(attempt, &error.to_string()),
        }
    }
}

fn failed(attempt: u32, why: &str) -> Outcome {
    Outcome::of_failure(attempt, ATTEMPTS_MAX, why)
}

fn cause(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut inner = error.source();
    while let Some(error) = inner {
        let _ = write!(text, ": {error}");
        inner = error.source();
    }
    text
}
