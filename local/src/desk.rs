//! The page over a journal whose sessions run elsewhere, served on this machine.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use agent::progress::Broadcast;
use graph::agent::Agent;
use journal::clock::Clock;
use journal::sqlite::{Durability, SqliteStore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use workflow::admission::Limits;

use crate::bus::Bus;
use crate::endpoint::{Endpoint, Guard, Streams, Tell, elsewhere};
use crate::executions::Executions;
use crate::functions::Functions;
use crate::host::{Agents, Isolated, Settings};
use crate::stack::{JOURNAL_FILE, StartError, listen, serve};
use crate::store::Journal;

/// A state machine that does nothing: none is run.
const NOTHING: &str = r#"{"StartAt": "Nothing", "States": {"Nothing": {"Type": "Succeed"}}}"#;

/// What is served, and where.
pub struct Desk {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The token, which is wanted beyond loopback.
    pub token: Option<String>,
    /// The journal.
    pub journal: Journal,
    /// The agents whose graphs are drawn.
    pub agents: Arc<[Agent]>,
    /// Tells a session something.
    pub tell: Tell,
    /// An empty folder. What the stack's endpoint keeps beside a journal is none here: nothing is
    /// executed, and what asks for an execution finds that it is not known.
    pub scratch: PathBuf,
}

/// A page that is being served.
pub struct Serving {
    address: SocketAddr,
    stop: CancellationToken,
    servers: JoinSet<()>,
}

impl Desk {
    /// Serves the page.
    ///
    /// # Errors
    /// When the address cannot be listened on, or the folder cannot be used.
    pub async fn serve(self) -> Result<Serving, StartError> {
        let guard = Guard::new(self.listen.ip(), self.token.as_deref())?;
        let (listener, address) = listen(self.listen).await?;
        let clock = Clock::system();
        let store = SqliteStore::open(&self.scratch.join(JOURNAL_FILE), Durability::Relaxed)?;
        let executions =
            Executions::open(store, clock.clone(), NOTHING, Functions::default()).await?;
        executions.begin_stop();
        let stop = CancellationToken::new();
        let settings = Settings {
            program: self.scratch.clone(),
            environment: Vec::new(),
            clock: clock.clone(),
            time_scale: 1,
            progress: Broadcast::default(),
        };
        let endpoint = Endpoint {
            store: self.journal,
            bus: Bus::new(executions.clone(), Functions::default(), clock.clone())?,
            executions,
            agents: Agents::Isolated(Isolated::new(settings)?),
            graphs: self.agents,
            // What an account has set instead, its functions know alone.
            admission: Limits::default(),
            streams: Streams::new(Broadcast::default(), stop.clone()),
            shelf: Arc::default(),
            data: self.scratch,
            clock,
        };
        let mut servers = JoinSet::new();
        servers.spawn(serve(listener, elsewhere::router(endpoint, self.tell, guard), stop.clone()));
        Ok(Serving { address, stop, servers })
    }
}

impl Serving {
    /// Its address, `http://HOST:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops it. Streams that are open are cut off: their clients ask again, and find nobody.
    pub async fn stop(mut self) {
        self.stop.cancel();
        self.servers.shutdown().await;
    }
}
