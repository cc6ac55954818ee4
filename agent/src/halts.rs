//! Whether a runner may begin its next effect: no halt keeps it from it, and a model's provider has room.

use std::time::Duration;

use graph::next::{Request, Work};
use journal::halt::Halts;
use journal::store::Store;
use tokio_util::sync::CancellationToken;

use crate::model::Models;
use crate::model::turns::Turn;
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

/// Waits for the turn of a call of a model. `None` if the runner was asked to stop, or a halt began meanwhile.
pub async fn turn<S: Store>(
    models: &Models,
    request: &Request,
    session: &ClaimedSession<S>,
    stop: &CancellationToken,
) -> Option<Turn> {
    let Work::Model { model, .. } = &request.work else { return Some(Turn::unbounded()) };
    // A turn that is not taken passes on.
    let turn = tokio::select! {
        turn = models.turn(model, &session.author.session) => turn,
        () = stop.cancelled() => return None,
    };
    (!turn.has_waited() || may_begin(session, stop).await).then_some(turn)
}
