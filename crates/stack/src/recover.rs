//! Takes sessions from runners that are certainly dead, so that none waits for their silence, which takes a minute.
//!
//! One stack uses a data folder at a time, and only its own runners write to the journal. Their token ends with the
//! stack. So when a stack starts, no runner is alive that the journal names, nor one that was invoked and has not claimed
//! its session yet. While it runs, it knows when the process of an isolated agent exits.

use aws_sdk_sfn::Client;
use futures_util::{StreamExt as _, stream};
use journal::clock::{Clock, Stamp};
use journal::id::SessionId;
use journal::key;
use journal::lease::{self, HostEnd, HowHostEnded};
use journal::read::newest_step;
use journal::step::StepBody;
use journal::store::{Error, Query, Store, query_all};
use journal::wait::Wait;
use workflow::limits::ANNOUNCE_TIMEOUT;

use crate::store::Database;

/// Sessions at once, so that their writes share a commit.
const AT_ONCE: usize = 64;

/// Records in each open lease that its host has ended. Returns the tokens of the workflows that wait for a runner.
///
/// Must complete before anything can invoke an agent. A session that cannot be read or written is taken up when its
/// silence is noticed.
pub(crate) async fn end_former_runners<S: Store>(store: &S, now: Stamp) -> Vec<String> {
    let end = HostEnd { how: HowHostEnded::Restarted, at: now };
    let sessions = match open_sessions(store).await {
        Ok(sessions) => sessions,
        Err(error) => {
            tracing::warn!(%error, "Cannot read the open leases; their sessions resume in about a minute.");
            return Vec::new();
        }
    };
    let tokens = stream::iter(sessions).map(async |session| {
        end_runner(store, &session, end).await.unwrap_or_else(|error| {
            tracing::warn!(session_id = %session, %error, "Cannot end a lease; its session resumes in about a minute.");
            None
        })
    });
    tokens.buffer_unordered(AT_ONCE).filter_map(async |token| token).collect().await
}

async fn open_sessions<S: Store>(store: &S) -> Result<Vec<SessionId>, Error> {
    let mut sessions = Vec::new();
    for digit in key::SHARDS.chars() {
        let open = query_all(store, Query::open(lease::shard(digit))).await?;
        sessions.extend(open.iter().filter_map(|item| key::session_of(&item.pk)));
    }
    Ok(sessions)
}

/// Returns the token of the workflow if it should look at the session.
async fn end_runner<S: Store>(
    store: &S,
    session: &SessionId,
    end: HostEnd,
) -> Result<Option<String>, Error> {
    let newest = newest_step(store, session).await?;
    let is_due = match &newest {
        Some(step) if matches!(step.body, StepBody::End { .. }) => true,
        step => {
            let claimed = step.as_ref().map_or(0, |step| step.epoch);
            let is_open = lease::end_host(store, session, claimed, end).await?;
            let asks = step.as_ref().is_some_and(|it| matches!(it.body, StepBody::Ask { .. }));
            // After a restart, `catch_up` looks at sessions that wait for a person.
            is_open && (!asks || end.how == HowHostEnded::Exited)
        }
    };
    let wait = if is_due { Wait::read(store, session).await? } else { None };
    Ok(wait.map(|wait| wait.token))
}

/// Takes sessions from the processes of isolated agents that exited.
#[derive(Clone, Debug)]
pub struct Exits {
    pub store: Database,
    /// Wakes the workflows.
    pub callbacks: Client,
    pub clock: Clock,
}

impl Exits {
    /// Records that the session's process has exited. Must complete before the session gets another process.
    pub(crate) async fn record(&self, session: &SessionId) {
        let end = HostEnd { how: HowHostEnded::Exited, at: self.clock.now() };
        let ended = self.clock.timeout(ANNOUNCE_TIMEOUT, end_runner(&self.store, session, end));
        let token = match ended.await {
            Some(Ok(token)) => token,
            Some(Err(error)) => {
                tracing::warn!(session_id = %session, %error, "Cannot record that an agent's process exited.");
                return;
            }
            None => {
                tracing::warn!(session_id = %session, "Recording that an agent's process exited timed out.");
                return;
            }
        };
        let Some(token) = token else { return };
        let sent = self.callbacks.send_task_success().task_token(token).output("{}").send().await;
        if let Err(error) = sent {
            // The workflow is at work; then it checks by itself.
            tracing::debug!(session_id = %session, ?error, "The workflow did not accept the callback.");
        }
    }
}
