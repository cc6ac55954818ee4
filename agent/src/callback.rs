//! Callbacks to the parked workflow: heartbeats, and the wake-up when the session's state changed.
//!
//! The poller writes the callback's token to the wait item. A lost callback only delays: the workflow's
//! own timeout wakes it.

use std::time::Duration;

use aws_sdk_sfn::Client;
use aws_sdk_sfn::config::retry::RetryConfig;
use aws_sdk_sfn::config::timeout::TimeoutConfig;
use aws_sdk_sfn::config::{Builder, Config};
use journal::store::Store;
use journal::wait::Wait;

use crate::session::ClaimedSession;

const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends a heartbeat with the token, if the workflow is parked.
pub async fn heartbeat<S: Store>(callbacks: &Client, session: &ClaimedSession<S>) {
    let Some(wait) = token(session).await else { return };
    let request = callbacks.send_task_heartbeat().task_token(wait.token);
    let sent = request.customize().config_override(once()).send().await;
    if let Err(error) = sent {
        // Usual cause: the token was just used, or has timed out.
        tracing::debug!(session_id = %session.author.session, ?error, "The workflow did not accept a heartbeat.");
    }
}

/// Sends the token, if the workflow is parked.
pub async fn wake<S: Store>(callbacks: &Client, session: &ClaimedSession<S>) {
    let Some(wait) = token(session).await else { return };
    let request = callbacks.send_task_success().task_token(wait.token).output("{}");
    let settings = settings().retry_config(RetryConfig::standard());
    let sent = request.customize().config_override(settings).send().await;
    if let Err(error) = sent {
        tracing::debug!(session_id = %session.author.session, ?error, "The workflow did not accept the callback.");
    }
}

async fn token<S: Store>(session: &ClaimedSession<S>) -> Option<Wait> {
    match Wait::read(&session.store, &session.author.session).await {
        Ok(wait) => wait,
        Err(error) => {
            tracing::warn!(session_id = %session.author.session, %error, "Cannot read the wait item.");
            None
        }
    }
}

fn settings() -> Builder {
    Config::builder()
        .timeout_config(TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build())
}

fn once() -> Builder {
    settings().retry_config(RetryConfig::disabled())
}
