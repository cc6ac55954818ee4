//! What every part of one session's work shares.

use std::sync::Arc;

use journal::announce::Announcer;
use journal::chain::Author;
use journal::clock::Hlc;
use journal::event::Writer;
use journal::store::Store;

/// One session in the hands of one runner.
#[derive(Clone, Debug)]
pub struct Session<S> {
    /// Where the records go.
    pub store: S,
    /// The session's clock.
    pub hlc: Arc<Hlc>,
    /// Who writes, and for which session.
    pub author: Author,
    /// The epoch that this runner claimed.
    pub epoch: u32,
}

impl<S: Store> Session<S> {
    /// The agent's voice in this session.
    pub fn voice(&self) -> Announcer<'_, S> {
        Announcer {
            store: &self.store,
            hlc: &self.hlc,
            session: &self.author.session,
            writer: Writer::Agent,
            expires_at: self.author.expires_at,
        }
    }
}
