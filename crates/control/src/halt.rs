//! Halting agents: the change is journaled first, then the workflows that it lets go on are woken.

use graph::check::nearest;
use journal::halt::{self, Change, ChangeError, Halt, Halts, Scope, Wanted};
use journal::id::SessionId;
use journal::key;
use journal::lease::{self, Lease, WhyHeld};
use journal::principal::Principal;
use journal::store::{Query, Store, query_all};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Refused};
use crate::{Control, Workflow};

/// A request to halt or unhalt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HaltRequest {
    /// `all`, or `agent:NAME`.
    pub scope: Scope,
    /// Required to halt.
    #[serde(default)]
    pub reason: String,
}

/// A change of the halts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HaltsChanged {
    /// The number of its record.
    pub record: u32,
    /// The halts in force after it.
    pub halts: Vec<Halt>,
    /// Sessions whose workflows were woken.
    pub woken: usize,
}

impl<S: Store, E: Workflow> Control<S, E> {
    /// Halts or unhalts agents. `known` are the registered ones.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn change_halts(
        &self,
        change: Change,
        request: &HaltRequest,
        by: &Principal,
        known: &[&str],
    ) -> Result<HaltsChanged, Error> {
        if let (Change::Halt, Scope::Agent(name)) = (change, &request.scope)
            && !known.contains(&name.as_str())
        {
            let nearest = nearest(name, known.iter().copied()).map(str::to_owned);
            return Err(Refused::NoAgent { name: name.clone(), nearest }.into());
        }
        let wanted = Wanted {
            change,
            scope: request.scope.clone(),
            by: by.clone(),
            reason: request.reason.clone(),
            at: self.clock.wall(),
        };
        let changed = halt::change(&self.store, &wanted).await.map_err(|error| match error {
            ChangeError::Refused(refused) => Refused::Halt(refused).into(),
            ChangeError::Store(error) => Error::Journal(error),
        })?;
        let woken = match change {
            Change::Halt => 0,
            Change::Unhalt => self.wake_halted().await,
        };
        Ok(HaltsChanged { record: changed.number, halts: changed.in_force, woken })
    }

    /// Wakes the workflows of sessions that no halt holds back any more. One that cannot be woken looks by itself
    /// within [`POLL_LONGEST`](workflow::limits::POLL_LONGEST).
    async fn wake_halted(&self) -> usize {
        let mut woken = 0;
        for digit in key::SHARDS.chars() {
            match self.wake_shard(digit).await {
                Ok(of_shard) => woken += of_shard,
                Err(error) => tracing::warn!(%error, "Some halted sessions were not woken."),
            }
        }
        woken
    }

    async fn wake_shard(&self, digit: char) -> Result<usize, Error> {
        let halts = Halts::read(&self.store).await?;
        let open = query_all(&self.store, Query::open(lease::shard(digit))).await?;
        let is_free = |lease: &Lease| {
            lease.hold().is_some_and(|it| it.why == WhyHeld::Halted && !halts.covers(&it.agent))
        };
        let free = open.iter().filter(|item| Lease::from_item(item).is_ok_and(|it| is_free(&it)));
        let sessions: Vec<SessionId> = free.filter_map(|item| key::session_of(&item.pk)).collect();
        let mut woken = 0;
        for session in sessions {
            match self.wake(&session).await {
                Ok(was_parked) => woken += usize::from(was_parked),
                Err(error) => {
                    tracing::warn!(session_id = %session, %error, "A halted session was not woken.");
                }
            }
        }
        Ok(woken)
    }
}
