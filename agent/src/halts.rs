//! Whether a halt keeps a runner from beginning its next effect.

use std::time::Duration;

use journal::halt::Halts;
use journal::store::Store;
use tokio_util::sync::CancellationToken;

use crate::session::ClaimedSession;

/// Pause between attempts to read the halts while the journal is unavailable. Meanwhile nothing begins.
const READ_PAUSE: Duration = Duration::from_secs(1);

/// Reads whether the session's agent is halted. `false` if it is, or if the runner was asked to stop first.
pub async fn may_begin<S: Store>(session: &ClaimedSession<S>, stop: &CancellationToken) -> bool {
    while !stop.is_cancelled() {
        match Halts::read(&session.store).await {
            Ok(halts) => return !halts.covers(session.agent),
            Err(error) => {
                let session_id = &session.author.session;
                tracing::warn!(%session_id, %error, "Cannot read the halts; retrying.");
                session.hlc.clock().sleep(READ_PAUSE).await;
            }
        }
    }
    false
}
