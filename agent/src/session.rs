//! The shared context of one session's run.

use std::sync::Arc;

use journal::announce::Announcer;
use journal::chain::Author;
use journal::clock::Hlc;
use journal::event::Writer;
use journal::store::Store;

/// A session that this runner claimed.
#[derive(Clone, Debug)]
pub struct ClaimedSession<S> {
    pub store: S,
    pub hlc: Arc<Hlc>,
    /// The runner and the session.
    pub author: Author,
    pub epoch: u32,
    /// The agent's name.
    pub agent: &'static str,
}

impl<S: Store> ClaimedSession<S> {
    /// Announces events as the agent.
    pub fn announcer(&self) -> Announcer<'_, S> {
        Announcer {
            store: &self.store,
            hlc: &self.hlc,
            session: &self.author.session,
            writer: Writer::Agent,
            expires_at: self.author.expires_at,
        }
    }
}
