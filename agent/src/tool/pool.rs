//! Servers that keep nothing between calls, so that several sessions share one process.
//!
//! MCP's handshake opens a session of its own, and a server may keep state in it. So a server is shared
//! only if it is known to keep none: one of ours without state and without a source that a session's
//! input names, or one from the file with `"shared": true`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::holder::Holder;
use super::launch::Identity;

/// Most sessions of one process, as long as fewer than [`PROCESSES_MAX`] run.
pub const SESSIONS_PER_PROCESS: usize = 32;

/// Most processes of one server. Further sessions join the process with the fewest.
pub const PROCESSES_MAX: usize = 16;

/// How long a process without a session is kept, by the machine's clock.
pub const IDLE_MAX: Duration = Duration::from_secs(30);

/// The running servers that sessions share. Clones are one pool. Dropping the last one kills the servers.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool(Arc<Mutex<Members>>);

type Members = HashMap<Identity, Vec<Member>>;

#[derive(Debug)]
struct Member {
    holder: Arc<Holder>,
    sessions: usize,
    /// Counts the sessions that this process had.
    joined: u64,
}

/// A session's place at a shared server. Dropping it gives the place back.
#[derive(Debug)]
pub(super) struct Place {
    pool: Pool,
    server: Identity,
    holder: Arc<Holder>,
}

impl Pool {
    /// A place at this server, which `create` describes if no process has room.
    pub(super) fn join(&self, server: &Identity, create: impl FnOnce() -> Holder) -> Place {
        let mut members = self.members();
        let members = members.entry(server.clone()).or_default();
        let has_room = members.iter().position(|member| member.sessions < SESSIONS_PER_PROCESS);
        let index = match has_room {
            Some(index) => index,
            None if members.len() < PROCESSES_MAX => {
                members.push(Member { holder: Arc::new(create()), sessions: 0, joined: 0 });
                members.len() - 1
            }
            None => (0..members.len()).min_by_key(|index| members[*index].sessions).unwrap_or(0),
        };
        let member = &mut members[index];
        member.sessions += 1;
        member.joined += 1;
        let holder = Arc::clone(&member.holder);
        Place { pool: self.clone(), server: server.clone(), holder }
    }

    /// Counts one session less. Returns what [`Self::take_idle`] needs if it was the last one.
    fn leave(&self, place: &Place) -> Option<u64> {
        let mut members = self.members();
        let member = members
            .get_mut(&place.server)?
            .iter_mut()
            .find(|member| Arc::ptr_eq(&member.holder, &place.holder))?;
        member.sessions -= 1;
        (member.sessions == 0).then_some(member.joined)
    }

    /// Removes the process if no session has joined it since.
    fn take_idle(&self, server: &Identity, holder: &Arc<Holder>, joined: u64) -> bool {
        let mut all = self.members();
        let Some(members) = all.get_mut(server) else { return false };
        let before = members.len();
        members.retain(|member| {
            !Arc::ptr_eq(&member.holder, holder) || member.sessions > 0 || member.joined != joined
        });
        let taken = members.len() < before;
        if members.is_empty() {
            all.remove(server);
        }
        taken
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    pub(super) fn holder(&self) -> &Arc<Holder> {
        &self.holder
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(joined) = self.pool.leave(self) else { return };
        // Without a runtime this process ends, and its servers with it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (members, server) = (Arc::downgrade(&self.pool.0), self.server.clone());
        let holder = Arc::downgrade(&self.holder);
        runtime.spawn(async move {
            tokio::time::sleep(IDLE_MAX).await;
            let (Some(members), Some(holder)) = (members.upgrade(), holder.upgrade()) else {
                return;
            };
            if Pool(members).take_idle(&server, &holder, joined) {
                holder.close().await;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use journal::clock::Clock;
    use rmcp::model::ClientConfig;

    use super::super::catalogue::Readers;
    use super::super::connection::Target;
    use super::super::launch::{Launch, Program};
    use super::super::text::Text;
    use super::super::{Timeouts, pool::*};
    use crate::progress::{Broadcast, Listener};

    fn holder() -> Holder {
        let target = Target {
            name: "s".to_owned(),
            launch: Launch::Program(Program::new(Text::plain("/nonexistent"))),
            readers: Readers::Annotated,
            clock: Clock::system(),
            listener: Listener::new("s", &Broadcast::default(), ClientConfig::default()),
        };
        Holder::new(target, Timeouts { connect: IDLE_MAX, init: IDLE_MAX })
    }

    fn processes(pool: &Pool) -> usize {
        pool.members().values().map(Vec::len).sum()
    }

    #[test]
    fn processes_follow_the_sessions_within_bounds() {
        let (pool, server) = (Pool::default(), Identity::default());
        let room = SESSIONS_PER_PROCESS * PROCESSES_MAX;
        let mut places: Vec<Place> = (0..room).map(|_| pool.join(&server, holder)).collect();
        assert_eq!(processes(&pool), PROCESSES_MAX);
        // Beyond the bound, sessions are spread over the same processes.
        places.extend((0..PROCESSES_MAX).map(|_| pool.join(&server, holder)));
        assert_eq!(processes(&pool), PROCESSES_MAX);
        let fullest = pool.members()[&server].iter().map(|member| member.sessions).max();
        assert_eq!(fullest, Some(SESSIONS_PER_PROCESS + 1));
    }

    #[test]
    fn only_a_process_that_stayed_idle_is_stopped() {
        let (pool, server) = (Pool::default(), Identity::default());
        let (first, second) = (pool.join(&server, holder), pool.join(&server, holder));
        let process = Arc::clone(first.holder());
        drop(first);
        assert!(!pool.take_idle(&server, &process, 2), "it has a session");
        drop(second);
        // A session joined and left while the process was idle: that session's end counts.
        drop(pool.join(&server, || unreachable!("the idle process has room")));
        assert!(!pool.take_idle(&server, &process, 2));
        assert!(pool.take_idle(&server, &process, 3));
        assert_eq!(processes(&pool), 0);
    }
}
