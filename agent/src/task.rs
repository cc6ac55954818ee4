//! The background task of a session: drive, beat, and say how it ended.

use aws_sdk_sfn::Client;
use journal::event::Draft;
use journal::lease::Lease;
use journal::seal::{suspension, task_announcement};
use journal::step::StepBody;
use journal::store::Store;
use workflow::limits::SILENT_AFTER;

use crate::beat::{Left, Silenced, beat, release};
use crate::callback;
use crate::driver::{Driven, Driver};
use crate::trace::told;

/// Works on a claimed session until there is nothing more for this runner to do.
pub async fn work<S: Store>(driver: Driver<S>, callbacks: Client, first_beat: Lease) {
    let session = driver.session.clone();
    let toolbox = driver.toolbox.clone();
    let id = session.author.session.clone();
    // A runner that others take for lost stops at once: the drive is dropped at an await, and what
    // it may still have sent is fenced by the claim that follows.
    let driven = tokio::select! {
        driven = driver.drive() => driven,
        silenced = beat(&session, &callbacks, first_beat) => match silenced {
            Silenced::Fenced => Driven::Fenced,
            Silenced::Unheard => Driven::Stopped,
        },
    };
    toolbox.close().await;
    told().await;
    let left =
        if matches!(driven, Driven::Suspended { .. }) { Left::Waiting } else { Left::ToOthers };
    match driven {
        Driven::Fenced => {
            tracing::info!(session_id = %id, epoch = session.epoch, "Another runner has the session.");
            return;
        }
        Driven::Ended(end) => {
            if let StepBody::End { ending, error, .. } = &end.body
                && let Some(told) = task_announcement(end.seq, *ending, error.as_ref())
            {
                tell(&session, &told).await;
            }
        }
        Driven::Suspended { question } => {
            tell(&session, &suspension(question)).await;
        }
        Driven::Stopped => {
            tracing::info!(session_id = %id, "The task was stopped; another runner may go on.");
        }
        Driven::Broken(error) => {
            tracing::error!(session_id = %id, %error, "The journal refuses the session's next step.");
        }
    }
    release(&session, left).await;
    callback::wake(&callbacks, &session).await;
}

/// Announces a durable step; goes on trying as long as anybody would wait for it. Whoever finds it
/// missing writes it again.
async fn tell<S: Store>(session: &crate::session::Session<S>, draft: &Draft) {
    if let Err(error) = session.voice().announce_within(draft, SILENT_AFTER).await {
        tracing::warn!(
            session_id = %session.author.session, event = %draft.status, %error,
            "An event was not written; the journal has a gap here."
        );
    }
}

/// Ends a session that cannot be resumed, and says so.
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
                && let Some(told) = task_announcement(end.seq, *ending, error.as_ref())
            {
                tell(&session, &told).await;
            }
        }
        Err(error) => {
            tracing::error!(session_id = %id, %error, "A session that cannot go on was not ended.")
        }
    }
    release(&session, Left::ToOthers).await;
    callback::wake(&callbacks, &session).await;
}
