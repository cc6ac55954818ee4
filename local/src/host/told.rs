//! What an isolated agent tells of its running tools, passed on as if it ran in this process.

use std::convert::Infallible;

use agent::progress::{Broadcast, Progress};
use journal::id::SessionId;

/// Longest report, in bytes: what is longer is none of an agent's.
const REPORT_BYTES_MAX: usize = 16 * 1024;

/// Passes reports on until the agent tells no more, and waits then for ever: whoever keeps the agent
/// knows when it has ended.
pub(super) async fn pass_on(
    http: &reqwest::Client,
    port: u16,
    session: &SessionId,
    progress: &Broadcast,
) -> Infallible {
    if let Ok(reports) = http.get(format!("http://127.0.0.1:{port}/progress")).send().await
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
            // A process has one session; what it says of another is not believed.
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
