//! Heartbeats: renew the lease while the task runs, and keep the parked workflow from timing out.

use aws_sdk_sfn::Client;
use journal::clock::Stamp;
use journal::lease::{Hold, Holder, HostEnd, HowHostEnded, Lease, WhyHeld};
use journal::store::Store;
use workflow::limits::{HEARTBEAT_INTERVAL, SILENT_AFTER};

use crate::callback;
use crate::session::ClaimedSession;

/// Every second heartbeat is also sent to Step Functions, which still gets three within its timeout. A region accepts 500
/// a second, and 5,000 agents that sent each one would use them all.
///
/// Source: AWS Step Functions Developer Guide, "Quotas", API action throttling, `SendTaskHeartbeat`.
const HEARTBEATS_PER_CALLBACK: u32 = 2;

/// Why a runner lost its lease and must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostLease {
    /// A later epoch holds it.
    Fenced,
    /// No heartbeat was written for [`SILENT_AFTER`]: other components consider this runner lost.
    Expired,
}

/// Renews the lease until it is lost. Cancel-safe: a cancelled heartbeat is not written.
pub async fn keep<S: Store>(
    session: &ClaimedSession<S>,
    callbacks: &Client,
    first: Lease,
) -> LostLease {
    let clock = session.hlc.clock().clone();
    let mut lease = first;
    let mut renewed_at: Stamp = clock.now();
    loop {
        clock.sleep(HEARTBEAT_INTERVAL).await;
        lease.heartbeat = lease.heartbeat.wrapping_add(1);
        lease.heartbeat_at = clock.wall();
        let author = &session.author;
        let written = lease.write(&session.store, &author.session, author.expires_at);
        match clock.timeout(HEARTBEAT_INTERVAL, written).await {
            Some(Ok(true)) => renewed_at = clock.now(),
            Some(Ok(false)) => return LostLease::Fenced,
            Some(Err(error)) => {
                tracing::warn!(session_id = %author.session, %error, "Cannot write a heartbeat.");
            }
            None => tracing::warn!(session_id = %author.session, "Writing a heartbeat timed out."),
        }
        if clock.now().since(renewed_at) >= SILENT_AFTER {
            return LostLease::Expired;
        }
        if !lease.heartbeat.is_multiple_of(HEARTBEATS_PER_CALLBACK) {
            continue;
        }
        // A callback that hangs must not delay the next heartbeat beyond its deadline.
        let _ = clock.timeout(HEARTBEAT_INTERVAL, callback::heartbeat(callbacks, session)).await;
    }
}

/// The state in which a runner leaves its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Other components have to seal it or resume it.
    ToOthers,
    /// Paused for input, at no cost.
    Waiting,
    /// Paused until a halt ends.
    Halted,
    /// To the next host, because this one comes near the end of its lifetime.
    ToNextHost,
}

/// Releases the lease: no heartbeat follows in this epoch.
pub async fn release<S: Store>(session: &ClaimedSession<S>, left: Left) {
    let hold = Hold { why: WhyHeld::Halted, agent: session.agent.to_owned(), invocation: None };
    let end = HostEnd { how: HowHostEnded::HandedOver, at: session.hlc.now() };
    let holder = match left {
        Left::Halted => Holder::Held(hold),
        Left::ToNextHost => Holder::Ended(end),
        Left::ToOthers | Left::Waiting => Holder::None,
    };
    let lease = Lease {
        epoch: session.epoch,
        holder,
        heartbeat: 1,
        heartbeat_at: session.hlc.clock().wall(),
    };
    let author = &session.author;
    let (store, id, expires_at) = (&session.store, &author.session, author.expires_at);
    let released = match left {
        Left::ToOthers | Left::Halted | Left::ToNextHost => {
            lease.write(store, id, expires_at).await
        }
        Left::Waiting => lease.close(store, id, expires_at).await,
    };
    if let Err(error) = released {
        tracing::warn!(session_id = %author.session, %error, "Cannot release the lease.");
    }
}
