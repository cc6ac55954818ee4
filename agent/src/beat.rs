//! The beat: the lease renewed while the task lives, and a heartbeat for the parked workflow.

use aws_sdk_sfn::Client;
use journal::clock::Stamp;
use journal::lease::Lease;
use journal::store::Store;
use workflow::limits::{BEAT, SILENT_AFTER};

use crate::callback;
use crate::session::Session;

/// Why a runner must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silenced {
    /// A later epoch has the lease.
    Fenced,
    /// No beat was written for [`SILENT_AFTER`]: others take this runner for lost.
    Unheard,
}

/// Beats until the runner must stop. Cancel-safe: a beat cut off is a beat not written.
pub async fn beat<S: Store>(session: &Session<S>, callbacks: &Client, first: Lease) -> Silenced {
    let clock = session.hlc.clock().clone();
    let mut lease = first;
    let mut heard_at: Stamp = clock.now();
    loop {
        clock.sleep(BEAT).await;
        lease.beat = lease.beat.wrapping_add(1);
        lease.beat_at = clock.now();
        let author = &session.author;
        let written = lease.write(&session.store, &author.session, author.expires_at);
        match clock.timeout(BEAT, written).await {
            Some(Ok(true)) => heard_at = clock.now(),
            Some(Ok(false)) => return Silenced::Fenced,
            Some(Err(error)) => {
                tracing::warn!(session_id = %author.session, %error, "A beat was not written.");
            }
            None => tracing::warn!(session_id = %author.session, "A beat was not written in time."),
        }
        if clock.now().since(heard_at) >= SILENT_AFTER {
            return Silenced::Unheard;
        }
        // A heartbeat that hangs must not delay the next beat beyond what others tolerate.
        let _ = clock.timeout(BEAT, callback::heartbeat(callbacks, session)).await;
    }
}

/// What becomes of a session whose runner gives its lease up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Somebody has to see to it: to seal it, or to have it resumed.
    ToOthers,
    /// It waits for a person, and costs nothing.
    Waiting,
}

/// Gives the lease up: nobody beats under this epoch any more.
pub async fn release<S: Store>(session: &Session<S>, left: Left) {
    let lease =
        Lease { epoch: session.epoch, runner: None, beat: 1, beat_at: session.hlc.clock().now() };
    let author = &session.author;
    let (store, id, expires_at) = (&session.store, &author.session, author.expires_at);
    let released = match left {
        Left::ToOthers => lease.write(store, id, expires_at).await,
        Left::Waiting => lease.close(store, id, expires_at).await,
    };
    if let Err(error) = released {
        tracing::warn!(session_id = %author.session, %error, "The lease was not released.");
    }
}
