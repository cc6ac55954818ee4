//! The background task of a session: runs the driver beside the heartbeats, then announces the outcome
//! and releases the lease.

use aws_sdk_sfn::Client;
use journal::event::Draft;
use journal::lease::Lease;
use journal::seal::{suspension, task_announcement};
use journal::step::StepBody;
use journal::store::Store;
use workflow::limits::SILENT_AFTER;

use crate::callback;
use crate::driver::{Driven, Driver};
use crate::heartbeat::{Left, LostLease, keep, release};
use crate::trace::flush;

/// Runs a claimed session until it ends, waits for a person, or this runner must stop.
pub async fn work<S: Store>(driver: Driver<S>, callbacks: Client, lease: Lease) {
    let session = driver.session.clone();
    let toolbox = driver.toolbox.clone();
    let id = session.author.session.clone();
    // Stops at once when other components consider this runner lost: drops the driver at an await. The
    // next claim fences everything that the driver may still have sent.
    let driven = tokio::select! {
        driven = driver.drive() => driven,
        lost = keep(&session, &callbacks, lease) => match lost {
            LostLease::Fenced => Driven::Fenced,
            LostLease::Expired => Driven::Stopped,
        },
    };
    toolbox.close().await;
    flush().await;
    let left =
        if matches!(driven, Driven::Suspended { .. }) { Left::Waiting } else { Left::ToOthers };
    match driven {
        Driven::Fenced => {
            tracing::info!(session_id = %id, epoch = session.epoch, "Another runner has the session.");
            return;
        }
        Driven::Ended(end) => {
            if let StepBody::End { ending, error, .. } = &end.body
                && let Some(draft) = task_announcement(end.seq, *ending, error.as_ref())
            {
                announce(&session, &draft).await;
            }
        }
        Driven::Suspended { question } => {
            announce(&session, &suspension(question)).await;
        }
        Driven::Stopped => {
            tracing::info!(session_id = %id, "The task was stopped; another runner may resume it.");
        }
        Driven::Broken(error) => {
            tracing::error!(session_id = %id, %error, "The journal refuses the session's next step.");
        }
    }
    release(&session, left).await;
    callback::wake(&callbacks, &session).await;
}

/// Announces a durable step, with retries until the runner counts as lost. Other components announce a
/// missing event again.
async fn announce<S: Store>(session: &crate::session::Session<S>, draft: &Draft) {
    if let Err(error) = session.announcer().announce_within(draft, SILENT_AFTER).await {
        tracing::warn!(
            session_id = %session.author.session, event = %draft.status, %error,
            "An event was not written; the journal has a gap here."
        );
    }
}

/// Ends a session that cannot be resumed, and announces the end.
pub async fn fail<S: Store>(
    session: crate::session::Session<S>,
    head: journal::chain::Head,
    finish: graph::definition::Finish,
    callbacks: Client,
) {
    let id = session.author.session.clone();
    let appended = journal::chain::append(
        &session.store,
        &session.hlc,
        &session.author,
        &head,
        session.epoch,
        finish.body(),
    )
    .await;
    match appended {
        Ok(end) => {
            if let StepBody::End { ending, error, .. } = &end.body
                && let Some(draft) = task_announcement(end.seq, *ending, error.as_ref())
            {
                announce(&session, &draft).await;
            }
        }
        Err(error) => {
            tracing::error!(session_id = %id, %error, "Cannot end a session that cannot be resumed.")
        }
    }
    release(&session, Left::ToOthers).await;
    callback::wake(&callbacks, &session).await;
}
