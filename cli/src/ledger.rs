//! The target's journal, read: finding a session by how its id begins, and all that belongs to it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use journal::clock::{Clock, Stamp};
use journal::event::Event;
use journal::id::SessionId;
use journal::sqlite::{OpenError, SqliteStore};
use journal::step::Step;
use journal::{listing, read};
use local::stack::JOURNAL_FILE;
use local::store::Journal;
use local::view::Session;
use serde_json::Value;

use crate::args::Target;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::resolve::Context;

/// The stack's folder when nobody says otherwise.
pub const DEFAULT_FOLDER: &str = ".daybook";

/// Fewest characters that stand for a whole session id.
const PREFIX_CHARS_MIN: usize = 6;

/// How far back a beginning of an id is looked for: as long as records are kept.
const PREFIX_SEARCHED: Duration = Duration::from_secs(workflow::limits::TTL_DAYS as u64 * 86_400);

/// How far ahead of this machine's clock a session may have begun: a stack with `--time-scale` runs
/// into the future.
const AHEAD: Duration = Duration::from_secs(86_400);

/// A journal with what is looked up in it.
#[derive(Debug)]
pub struct Ledger {
    /// The journal.
    pub store: Journal,
}

/// A session with all its records.
#[derive(Debug)]
pub struct Loaded {
    /// Its id.
    pub id: SessionId,
    /// Its events, in order of time.
    pub events: Vec<Event>,
    /// Its steps, in sequence.
    pub steps: Vec<Step<Value>>,
}

impl Loaded {
    /// The execution that the session began with, if its first record is there.
    pub fn execution_arn(&self) -> Option<&str> {
        self.events.iter().find_map(|event| event.execution_arn.as_deref())
    }

    /// What the session looks like.
    pub fn view(&self, now: Stamp) -> Session {
        Session::of(&self.id, &self.events, &self.steps, now)
    }
}

/// The folder of the stack: as said, else as the running stack says, else the usual one.
///
/// # Errors
/// When something else than a stack listens at the endpoint.
pub async fn folder(context: &Context) -> Result<PathBuf, Failure> {
    if let Some(folder) = &context.data {
        return Ok(folder.clone());
    }
    let running = Endpoint::new(context)?.health().await?;
    Ok(running.and_then(|health| health.data).unwrap_or_else(|| PathBuf::from(DEFAULT_FOLDER)))
}

/// What the clock shows.
pub fn now() -> Stamp {
    Clock::system().now()
}

/// The latest time at which a session of this journal may have begun.
pub fn latest() -> Stamp {
    now().after(AHEAD)
}

impl Ledger {
    /// Opens the journal of the commands that read.
    ///
    /// # Errors
    /// When there is none.
    pub async fn open(context: &Context) -> Result<Self, Failure> {
        match context.target {
            Target::Local => Self::open_in(&folder(context).await?),
            Target::Aws => Box::pin(Self::of_account(context)).await,
        }
    }

    #[cfg(feature = "live")]
    async fn of_account(context: &Context) -> Result<Self, Failure> {
        let table = context.cloud.table.as_deref().ok_or_else(|| {
            let problem = format!("{} is not set", workflow::env::JOURNAL_TABLE_NAME);
            Failure::usage(problem).hint("it is an output of the stack: see DEPLOYMENT.md")
        })?;
        let aws = aws_config::load_defaults(aws_config::BehaviorVersion::latest()).await;
        Ok(Self { store: Journal::There(journal::dynamo::DynamoStore::new(&aws, table)) })
    }

    #[cfg(not(feature = "live"))]
    async fn of_account(_: &Context) -> Result<Self, Failure> {
        Err(crate::failure::not_live("the journal of an AWS account"))
    }

    /// Opens the journal in a folder.
    ///
    /// # Errors
    /// When there is none.
    pub fn open_in(folder: &Path) -> Result<Self, Failure> {
        let file = folder.join(JOURNAL_FILE);
        if !file.is_file() {
            return Err(Failure::unknown(format!("there is no journal at {}", file.display())).hint(
                "name the stack's folder with --data, or make a first session: daybook trigger --wait --with-stack",
            ));
        }
        Ok(Self { store: Journal::Here(SqliteStore::open_read_only(&file).map_err(unusable)?) })
    }

    /// The session with this id, or the only recent one whose id begins so.
    ///
    /// # Errors
    /// When there is none, or several.
    pub async fn find(&self, text: &str) -> Result<SessionId, Failure> {
        if let Ok(id) = text.parse() {
            return Ok(id);
        }
        let spelled_well =
            text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if text.len() < PREFIX_CHARS_MIN || !spelled_well {
            let problem = format!(
                "`{text}` is no session id, nor {PREFIX_CHARS_MIN} or more of its first characters"
            );
            return Err(Failure::usage(problem).hint("daybook sessions lists them"));
        }
        let since = now().before(PREFIX_SEARCHED);
        let listed = listing::list(&self.store, since, latest(), listing::CANDIDATES_MAX).await?;
        let mut fitting = listed
            .into_iter()
            .map(|listed| listed.session)
            .filter(|id| id.as_str().starts_with(text));
        match (fitting.next(), fitting.next()) {
            (Some(id), None) => Ok(id),
            (Some(one), Some(other)) => {
                let problem =
                    format!("`{text}` begins several sessions, such as {one} and {other}");
                Err(Failure::unknown(problem).hint("give more characters of the id"))
            }
            (None, _) => Err(no_session(text)),
        }
    }

    /// A session's records.
    ///
    /// # Errors
    /// When there are none, or they cannot be read.
    pub async fn load(&self, text: &str) -> Result<Loaded, Failure> {
        let id = self.find(text).await?;
        let unreadable =
            || format!("session {id} cannot be read; daybook verify {id} names the damage");
        let events = read::events(&self.store, &id).await.with_context(unreadable)?;
        let steps = read::resolved_steps(&self.store, &id).await.with_context(unreadable)?;
        if events.is_empty() && steps.is_empty() {
            return Err(no_session(id.as_str()));
        }
        Ok(Loaded { id, events, steps })
    }
}

/// The failure for a file that cannot be opened as a journal.
pub fn unusable(error: OpenError) -> Failure {
    let hint = unusable_hint(&error);
    Failure::from(error).hint(hint)
}

/// What to do about a file that cannot be opened as a journal.
pub fn unusable_hint(error: &OpenError) -> &'static str {
    match error {
        OpenError::Newer { .. } => {
            "a newer version wrote it: use that one, or name another folder with --data"
        }
        OpenError::Sqlite { .. } | OpenError::Setting { .. } => {
            "name another folder with --data; the file is left as it is"
        }
    }
}

/// The failure for a session that is not in the journal.
pub fn no_session(text: &str) -> Failure {
    Failure::unknown(format!("there is no session `{text}` in this journal"))
        .hint("daybook sessions --since 90d lists what there is; --data names another journal")
}
