//! The background task of a session: runs the driver beside the heartbeats, then announces the outcome
//! and releases the lease.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use aws_sdk_sfn::Client;
use futures_util::FutureExt as _;
use graph::definition::Finish;
use graph::panics::Panicked;
use journal::chain::{AppendError, Head, append};
use journal::event::Draft;
use journal::lease::Lease;
use journal::read;
use journal::seal::{suspension, task_announcement};
use journal::step::StepBody;
use journal::store::Store;
use workflow::limits::SILENT_AFTER;

use crate::callback;
use crate::driver::{Driven, Driver};
use crate::heartbeat::{Left, LostLease, keep, release};
use crate::session::ClaimedSession;
use crate::trace::flush;

/// Runs a claimed session until it ends, waits for a person, or this runner must stop.
pub async fn work<S: Store>(driver: Driver<S>, callbacks: Client, lease: Lease) {
    let session = driver.session.clone();
    let hands_over = Arc::clone(&driver.hands_over);
    let toolbox = driver.toolbox.clone();
    // Stops at once when other components consider this runner lost: drops the driver at an await. The
    // next claim fences everything that the driver may still have sent.
    let driven = tokio::select! {
        driven = contained(driver) => driven,
        lost = keep(&session, &callbacks, lease) => match lost {
            LostLease::Fenced => Driven::Fenced,
            LostLease::Expired => Driven::Stopped,
        },
    };
    toolbox.close().await;
    flush().await;
    let is_for_next_host = matches!(driven, Driven::Stopped) && hands_over.load(Ordering::Acquire);
    leave(&session, driven, is_for_next_host, &callbacks).await;
}

/// Ends a session that cannot be resumed.
pub async fn fail<S: Store>(session: ClaimedSession<S>, finish: Finish, callbacks: Client) {
    let driven = end(&session, finish).await.unwrap_or_else(Driven::Broken);
    leave(&session, driven, false, &callbacks).await;
}

/// Announces the outcome, releases the lease and wakes the workflow.
async fn leave<S: Store>(
    session: &ClaimedSession<S>,
    driven: Driven,
    is_for_next_host: bool,
    callbacks: &Client,
) {
    let id = &session.author.session;
    let left = match &driven {
        Driven::Suspended { .. } => Left::Waiting,
        Driven::Halted => Left::Halted,
        _ if is_for_next_host => Left::ToNextHost,
        _ => Left::ToOthers,
    };
    match driven {
        Driven::Fenced => {
            tracing::info!(session_id = %id, epoch = session.epoch, "Another runner has the session.");
            return;
        }
        Driven::Ended(end) => {
            if let StepBody::End { ending, error, .. } = &end.body
                && let Some(draft) = task_announcement(end.seq, *ending, error.as_ref())
            {
                announce(session, &draft).await;
            }
        }
        Driven::Suspended { question } => {
            announce(session, &suspension(question)).await;
        }
        Driven::Stopped => {
            tracing::info!(session_id = %id, "The task was stopped; another runner may resume it.");
        }
        Driven::Halted => {
            tracing::info!(session_id = %id, agent = session.agent, "The agent is halted; the session waits.");
        }
        Driven::Broken(error) => {
            tracing::error!(session_id = %id, %error, "The journal refuses the session's next step.");
        }
    }
    release(session, left).await;
    callback::wake(callbacks, session).await;
}

/// Drives the session. A panic ends it: without this, the task would vanish, and the session would be invoked again
/// and again until it counts as lost.
async fn contained<S: Store>(driver: Driver<S>) -> Driven {
    let session = driver.session.clone();
    match AssertUnwindSafe(driver.drive()).catch_unwind().await {
        Ok(driven) => driven,
        Err(payload) => {
            let panicked = Panicked::of("the agent", payload);
            tracing::error!(session_id = %session.author.session, %panicked, "A session's task panicked.");
            end(&session, panicked.finish()).await.unwrap_or_else(Driven::Broken)
        }
    }
}

/// Ends a session after its newest step, unless that shows that this runner must stop.
async fn end<S: Store>(session: &ClaimedSession<S>, finish: Finish) -> Result<Driven, AppendError> {
    let newest = read::newest_step(&session.store, &session.author.session).await?;
    let head = match newest {
        None => Head::genesis(),
        Some(step) if step.epoch != session.epoch => return Ok(Driven::Fenced),
        Some(step) => match &step.body {
            StepBody::End { .. } => {
                let end = read::resolve(&session.store, step).await?;
                return Ok(Driven::Ended(Box::new(end)));
            }
            StepBody::Ask { .. } => return Ok(Driven::Suspended { question: step.seq }),
            _ => Head::after(&step),
        },
    };
    let ClaimedSession { store, hlc, author, epoch, .. } = session;
    match append(store, hlc, author, &head, *epoch, finish.body()).await {
        Ok(end) => Ok(Driven::Ended(Box::new(end))),
        Err(AppendError::Collision(theirs)) if matches!(theirs.body, StepBody::End { .. }) => {
            Ok(Driven::Ended(theirs))
        }
        Err(AppendError::Collision(_)) => Ok(Driven::Fenced),
        Err(error) => Err(error),
    }
}

/// Announces a durable step, with retries until the runner counts as lost. Other components announce a
/// missing event again.
async fn announce<S: Store>(session: &ClaimedSession<S>, draft: &Draft) {
    if let Err(error) = session.announcer().announce_within(draft, SILENT_AFTER).await {
        tracing::warn!(
            session_id = %session.author.session, event = %draft.status, %error,
            "An event was not written; the journal has a gap here."
        );
    }
}
