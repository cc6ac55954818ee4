//! Reads the target's journal: finds a session by id prefix and loads its records.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use graph::agent::Agent;
use journal::clock::{Clock, Stamp};
use journal::event::Event;
use journal::id::SessionId;
use journal::sqlite::OpenError;
use journal::step::Step;
use journal::{listing, read};
use serde_json::Value;
use stack::executions::{ExecutionStore as _, RUNNING};
use stack::names;
use stack::stack::JOURNAL_FILE;
use stack::store::{Database, Journal};
use stack::view::Session;

use crate::args::Target;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::resolve::Context;

/// The default folder of the local stack.
pub const DEFAULT_FOLDER: &str = ".daybook";

/// How often at most a session is read until its first record is there: for ten seconds, on a busy machine.
const BEGUN_POLLS_MAX: u32 = 500;

/// How often a session that has just started is read until its first record is there.
const BEGUN_POLL: Duration = Duration::from_millis(20);

/// Shortest id prefix that is accepted, in characters.
const PREFIX_CHARS_MIN: usize = 6;

/// How far back an id prefix is searched: the retention of records.
pub const PREFIX_SEARCHED: Duration =
    Duration::from_secs(workflow::limits::TTL_DAYS as u64 * 86_400);

/// How far in the future a session may have started: a stack with `--time-scale` runs ahead of this
/// machine's clock.
const AHEAD: Duration = Duration::from_secs(86_400);

/// A journal opened for reading.
#[derive(Debug)]
pub struct Reader {
    pub store: Journal,
    /// Agents, which define how their sessions are presented.
    pub agents: Arc<[Agent]>,
}

/// A session with all its records.
#[derive(Debug)]
pub struct Loaded {
    pub id: SessionId,
    /// Ordered by time.
    pub events: Vec<Event>,
    /// Ordered by sequence number.
    pub steps: Vec<Step<Value>>,
    agents: Arc<[Agent]>,
}

impl Loaded {
    /// The session's first execution, if its first record is present.
    pub fn execution_arn(&self) -> Option<&str> {
        self.events.iter().find_map(|event| event.execution_arn.as_deref())
    }

    /// The session's view model.
    pub fn view(&self, now: Stamp) -> Session {
        Session::of(&self.id, &self.events, &self.steps, &self.agents, now)
    }
}

/// The stack's folder: `--data`, else that of the running stack, else the default.
///
/// # Errors
/// When another program listens at the endpoint, or nothing listens at one that the user named.
pub async fn folder(context: &Context) -> Result<PathBuf, Failure> {
    if let Some(folder) = &context.data {
        return Ok(folder.clone());
    }
    let endpoint = Endpoint::new(context)?;
    let running = endpoint.health().await?;
    if running.is_none() && context.is_endpoint_named {
        let hint =
            "start the stack with: daybook dev; or pass the folder of its journal with --data";
        return Err(endpoint.nothing_listens().hint(hint));
    }
    Ok(running.and_then(|health| health.data).unwrap_or_else(|| PathBuf::from(DEFAULT_FOLDER)))
}

/// The current time.
pub fn now() -> Stamp {
    Clock::system().now()
}

/// The latest time at which a session may have started.
pub fn latest() -> Stamp {
    now().after(AHEAD)
}

impl Reader {
    /// Opens the target's journal for reading.
    ///
    /// # Errors
    /// When there is none.
    pub async fn open(context: &Context) -> Result<Self, Failure> {
        match context.target {
            Target::Local => Self::open_in(context, &folder(context).await?),
            Target::Aws => Box::pin(Self::of_account(context)).await,
        }
    }

    #[cfg(feature = "live")]
    async fn of_account(context: &Context) -> Result<Self, Failure> {
        let table = context.cloud.table.as_deref().ok_or_else(|| {
            let problem = format!("{} is not set", workflow::env::JOURNAL_TABLE_NAME);
            Failure::usage(problem).hint("set it from the outputs of the stack: see DEPLOYMENT.md")
        })?;
        let aws = aws_config::load_defaults(aws_config::BehaviorVersion::latest()).await;
        let store = Journal::There(journal::dynamo::DynamoStore::new(&aws, table));
        Ok(Self { store, agents: Arc::clone(&context.agents) })
    }

    #[cfg(not(feature = "live"))]
    async fn of_account(_: &Context) -> Result<Self, Failure> {
        Err(Failure::not_live("the journal of an AWS account"))
    }

    /// Opens the journal in a folder.
    ///
    /// # Errors
    /// When there is none.
    pub fn open_in(context: &Context, folder: &Path) -> Result<Self, Failure> {
        let file = folder.join(JOURNAL_FILE);
        if !file.is_file() {
            return Err(no_journal(&file));
        }
        let store = Journal::Here(Database::open_read_only(&file).map_err(unusable)?);
        Ok(Self { store, agents: Arc::clone(&context.agents) })
    }

    /// Finds a session by its id or a unique prefix of it.
    ///
    /// # Errors
    /// When no session or several sessions match.
    pub async fn find(&self, text: &str) -> Result<SessionId, Failure> {
        if let Ok(id) = text.parse() {
            return Ok(id);
        }
        let spelled_well =
            text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if text.len() < PREFIX_CHARS_MIN || !spelled_well {
            let problem = format!("invalid session id `{text}`");
            return Err(Failure::usage(problem).hint(format!(
                "pass the id or its first {PREFIX_CHARS_MIN} or more characters; `daybook sessions` lists ids"
            )));
        }
        let since = now().before(PREFIX_SEARCHED);
        let listed = listing::list(&self.store, since, latest(), listing::CANDIDATES_MAX).await?;
        // A forged second start of a session does not make its prefix ambiguous.
        let fitting: BTreeSet<_> = listed
            .into_iter()
            .map(|listed| listed.session)
            .filter(|id| id.as_str().starts_with(text))
            .collect();
        let mut fitting = fitting.into_iter();
        match (fitting.next(), fitting.next()) {
            (Some(id), None) => Ok(id),
            (Some(one), Some(other)) => {
                let problem = format!("session id `{text}` is ambiguous: {one}, {other}");
                Err(Failure::unknown(problem).hint("pass more characters of the id"))
            }
            (None, _) => Err(no_session(text)),
        }
    }

    /// Loads a session's records.
    ///
    /// # Errors
    /// When there are none, or they cannot be read.
    pub async fn load(&self, text: &str) -> Result<Loaded, Failure> {
        let id = self.find(text).await?;
        let unreadable =
            || format!("cannot read session {id}; `daybook verify {id}` reports the damage");
        let mut events = read::events(&self.store, &id).await.with_context(unreadable)?;
        for _ in 0..BEGUN_POLLS_MAX {
            if !events.is_empty() || !self.has_begun(&id).await? {
                break;
            }
            tokio::time::sleep(BEGUN_POLL).await;
            events = read::events(&self.store, &id).await.with_context(unreadable)?;
        }
        let steps = read::shown_steps(&self.store, &id).await.with_context(unreadable)?;
        if events.is_empty() && steps.is_empty() {
            return Err(no_session(id.as_str()));
        }
        Ok(Loaded { id, events, steps, agents: Arc::clone(&self.agents) })
    }

    /// Whether the session's execution has started: its first record follows.
    async fn has_begun(&self, id: &SessionId) -> Result<bool, Failure> {
        let Some(database) = self.store.here() else { return Ok(false) };
        let arn = names::execution_arn(names::STATE_MACHINE, id.as_str());
        let execution = database.find(&arn).await.context("cannot read the executions")?;
        Ok(execution.is_some_and(|execution| execution.status == RUNNING))
    }
}

/// The failure for a journal that is not there.
pub fn no_journal(file: &Path) -> Failure {
    Failure::unknown(format!("no journal at {}", file.display())).hint(
        "pass the stack's folder with --data, or run a first session: daybook trigger --wait --with-stack",
    )
}

/// The failure for a file that cannot be opened as a journal.
pub fn unusable(error: OpenError) -> Failure {
    let hint = unusable_hint(&error);
    Failure::from(error).hint(hint)
}

/// The hint for a file that cannot be opened as a journal.
pub fn unusable_hint(error: &OpenError) -> &'static str {
    match error {
        OpenError::Newer { .. } => {
            "a newer version of Daybook wrote it: use that version, or pass another folder with --data"
        }
        OpenError::InUse(_) => {
            "that stack may use another path to the same file; stop it, or pass another folder with --data"
        }
        OpenError::Empty(_) => {
            "restore a backup: daybook restore FILE --replace; or pass another folder with --data"
        }
        OpenError::Private { .. } => {
            "the file must belong to this user; or pass another folder with --data"
        }
        OpenError::Keys(_) => "the file of keys must be readable and belong to this user",
        OpenError::Sqlite { .. } | OpenError::Log { .. } | OpenError::Setting { .. } => {
            "pass another folder with --data; the file is unchanged"
        }
    }
}

/// The failure for a session that is not in the journal.
pub fn no_session(text: &str) -> Failure {
    Failure::unknown(format!("no session `{text}` in this journal"))
        .hint("list sessions with: daybook sessions --since 90d; --data selects another journal")
}
