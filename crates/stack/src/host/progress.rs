//! Forwards the tool progress that an isolated agent reports.

use std::convert::Infallible;

use agent::progress::{Broadcast, Progress};
use journal::id::SessionId;

/// Longest report, in bytes. A longer one does not come from an agent.
const REPORT_BYTES_MAX: usize = 16 * 1024;

/// Forwards reports until the agent closes the connection, then waits forever: the caller watches the
/// process itself.
pub(super) async fn pass_on(
    request: reqwest::RequestBuilder,
    session: &SessionId,
    progress: &Broadcast,
) -> Infallible {
    if let Ok(reports) = request.send().await
        && reports.status().is_success()
    {
        follow(reports, session, progress).await;
    }
    std::future::pending().await
}

async fn follow(mut reports: reqwest::Response, session: &SessionId, progress: &Broadcast) {
    let mut unread = Vec::new();
    while let Ok(Some(bytes)) = reports.chunk().await {
        unread.extend_from_slice(&bytes);
        while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = unread.drain(..=end).collect();
            // A process has one session. Reports about another one are dropped.
            match serde_json::from_slice::<Progress>(&line) {
                Ok(report) if report.session_id == *session => progress.tell(report),
                _ => {}
            }
        }
        if unread.len() > REPORT_BYTES_MAX {
            return;
        }
    }
}
