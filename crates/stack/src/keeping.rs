//! Holds, releases and prunes sessions, and removes what has expired.
//!
//! A prune removes a whole, sealed session that verifies, its executions and its payloads, and journals that it did in
//! the log of sessions, in one commit. A session that is held, damaged or at work stays, with the reason.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use files::lock::Lock;
use journal::cipher::{KeyChange, KeyState};
use journal::clock::{Clock, Stamp};
use journal::event::Writer;
use journal::id::SessionId;
use journal::log::{Decision, Label, REASON_CHARS_MAX, Retention, Trust};
use journal::principal::Principal;
use journal::read;
use journal::sqlite::{Durability, Pruning};
use journal::store::{Error, Store as _};
use journal::verify::{Outcome, State};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use workflow::execution::{self, RESUMES_MAX};

use crate::checkpoints::{Signer, Signing};
use crate::executions::{self, ExecutionStore as _};
use crate::folder::{self, FolderLock};
use crate::keys::Keys;
use crate::names;
use crate::stack::{JOURNAL_FILE, StartError};
use crate::store::Database;
use crate::verifier::Verifier;

/// Most sessions of one request to prune.
pub const PRUNE_MAX: usize = 25;

/// How often expired sessions are looked for, and how many are removed each time.
const EXPIRE_EVERY: Duration = Duration::from_secs(60);
const EXPIRED_AT_ONCE: usize = 100;

/// Expired sessions that are looked at each time: held and damaged ones stay, and come first if they are older.
const EXPIRED_SEEN_MAX: usize = 10_000;

/// The reason in the leaf of a session that has expired.
const EXPIRED: &str = "its records have expired";

/// How long an execution that has ended is kept.
///
/// Source: AWS, "Service quotas for Step Functions", execution history retention.
pub const EXECUTION_DAYS: u32 = 90;

/// Executions that one commit removes.
const EXECUTIONS_AT_ONCE: usize = 50;

/// The journal of a stack, and who keeps it.
#[derive(Clone, Debug)]
pub struct Keeper {
    pub store: Database,
    pub keys: Option<Keys>,
    pub clock: Clock,
}

/// Why a hold, a release or a prune was not journaled.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    #[error("there is no session {0}")]
    NoSession(SessionId),
    #[error("session {session} is not held under the label `{label}`")]
    NotHeld { session: SessionId, label: Label },
    /// A leaf may be of somebody else, also one that ends a hold.
    #[error(
        "the log of sessions is not what this stack has written, so its holds are unknown: {0}"
    )]
    Log(String),
    #[error("the reason is empty or has more than {REASON_CHARS_MAX} characters")]
    Reason,
    #[error(transparent)]
    Store(#[from] Error),
    #[error(transparent)]
    Keys(#[from] crate::keys::Error),
}

/// What became of a session that was to be pruned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Pruned,
    /// It stays, for this reason.
    Kept(String),
}

/// Whether this stack runs, or has run, a session.
///
/// # Errors
/// The file cannot be read.
pub async fn has_execution(store: &Database, session: &SessionId) -> Result<bool, Error> {
    let arns = arns(store, session).await?;
    if arns.is_empty() {
        return Ok(false);
    }
    let sql =
        "SELECT EXISTS (SELECT 1 FROM execution WHERE arn IN (SELECT value FROM json_each(?)))";
    store.read(move |file| Ok(file.query_row(sql, [arns], |row| row.get(0))?)).await
}

/// The ARNs of all executions of a session, as a JSON array; empty in a file without executions.
async fn arns(store: &Database, session: &SessionId) -> Result<String, Error> {
    if !store.holds_executions().await? {
        return Ok(String::new());
    }
    let mut arns = executions::named(store, session).await?;
    let arn = |n| names::execution_arn(names::STATE_MACHINE, &execution::name(session, n));
    arns.extend((0..=RESUMES_MAX).map(arn));
    Ok(json!(arns).to_string())
}

impl Keeper {
    /// Journals that a session is held, or released.
    ///
    /// # Errors
    /// See [`KeepError`].
    pub async fn decide(
        &self,
        session: &SessionId,
        decision: Decision,
        by: &Principal,
        reason: &str,
    ) -> Result<(), KeepError> {
        let keeping = self.store.keeping(session).await?;
        let is_here = !read::events(&self.store, session).await?.is_empty();
        if !is_here || keeping.pruned.is_some() {
            return Err(KeepError::NoSession(session.clone()));
        }
        let leaf = self.leaf(session, decision.clone(), by, reason)?;
        // The key is held before the log says so, and released after.
        match decision {
            Decision::Hold(label) => {
                let reason = format!("{label}: {reason}");
                self.change_key(session, KeyChange::Hold { reason }).await?;
                self.store.hold(leaf).await?;
            }
            Decision::Release(label) => {
                let is_held = keeping.held.contains(&label);
                if is_held {
                    self.store.hold(leaf).await?;
                }
                // Even if the log has no hold: a kill may have come between the two.
                let is_last = keeping.held.iter().all(|held| *held == label);
                let was_held = is_last && self.change_key(session, KeyChange::Release).await?;
                if !is_held && !was_held {
                    return Err(KeepError::NotHeld { session: session.clone(), label });
                }
            }
            Decision::Prune(_) => self.store.hold(leaf).await?,
        }
        Ok(())
    }

    /// Holds or releases a session's key, if it has one. Returns whether that changed something.
    async fn change_key(&self, session: &SessionId, change: KeyChange) -> Result<bool, Error> {
        let KeyState::Usable { hold, .. } = self.store.session_key(session).await? else {
            return Ok(false);
        };
        if hold.is_none() && matches!(change, KeyChange::Release) {
            return Ok(false);
        }
        self.store.change_key(session, change).await?;
        Ok(true)
    }

    /// Prunes sessions, unless they have one of the labels in `keep`.
    ///
    /// # Errors
    /// See [`KeepError`].
    pub async fn prune(
        &self,
        sessions: &[SessionId],
        keep: &BTreeSet<Label>,
        by: &Principal,
        reason: &str,
    ) -> Result<Vec<(SessionId, Fate)>, KeepError> {
        let (store, keys) = (self.store.clone(), self.keys.as_ref());
        if let Some(keys) = keys {
            keys.check_log(&store).await.map_err(KeepError::Log)?;
        }
        if let Some(problem) = store.hidden().await?.first() {
            return Err(KeepError::Log(problem.clone()));
        }
        let verifier = Verifier::new(store, keys, Trust::default(), None).await?;
        let mut fates = Vec::new();
        for session in sessions {
            let fate = self.prune_one(&verifier, session, keep, by, reason).await?;
            fates.push((session.clone(), fate));
        }
        self.give_back().await?;
        Ok(fates)
    }

    /// Removes the rows of pruned sessions, in bounded commits, and shortens the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn give_back(&self) -> Result<(), Error> {
        while self.store.remove_pruned().await? {}
        while self.store.shrink().await? {}
        self.store.checkpoint().await
    }

    /// Why a session may not be pruned.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn kept(
        &self,
        verifier: &Verifier,
        session: &SessionId,
        keep: &BTreeSet<Label>,
    ) -> Result<Option<String>, Error> {
        let keeping = self.store.keeping(session).await?;
        if let Some(label) = keeping.held.first() {
            return Ok(Some(format!("`{label}` holds it")));
        }
        if let Some(label) = keeping.labels.intersection(keep).next() {
            return Ok(Some(format!("it has the label `{label}`")));
        }
        let Some(verified) = verifier.report(session, &[], self.clock.now()).await? else {
            return Ok(Some("there is no such session".to_owned()));
        };
        let is_damaged = verified.report.outcome() == Outcome::Damaged;
        Ok(match verified.report.state {
            _ if is_damaged => Some(format!("it is damaged; see: daybook verify {session}")),
            State::Pruned { .. } => Some("it was pruned before".to_owned()),
            State::Open => Some("it has not ended".to_owned()),
            State::Sealed { .. } | State::Expired => {
                let is_running = self.is_running(session).await?;
                is_running.then(|| "its execution still runs".to_owned())
            }
        })
    }

    async fn prune_one(
        &self,
        verifier: &Verifier,
        session: &SessionId,
        keep: &BTreeSet<Label>,
        by: &Principal,
        reason: &str,
    ) -> Result<Fate, KeepError> {
        if let Some(why) = self.kept(verifier, session, keep).await? {
            return Ok(Fate::Kept(why));
        }
        let events = read::events(&self.store, session).await?;
        let Some(verdict) = events.iter().find(|event| event.status.is_verdict()) else {
            return Ok(Fate::Kept("it has no verdict".to_owned()));
        };
        let leaf = self.leaf(session, Decision::Prune(verdict.hash.clone()), by, reason)?;
        let arns = arns(&self.store, session).await?;
        let pruned = self.store.prune(leaf, move |connection| remove_executions(connection, &arns));
        Ok(match pruned.await? {
            Pruning::Done => Fate::Pruned,
            Pruning::Held(label) => Fate::Kept(format!("`{label}` holds it")),
            Pruning::Unknown => {
                Fate::Kept("the log of sessions has no leaf of its verdict".to_owned())
            }
        })
    }

    fn leaf(
        &self,
        session: &SessionId,
        decision: Decision,
        by: &Principal,
        reason: &str,
    ) -> Result<Retention, KeepError> {
        let chars = reason.chars().count();
        if reason.trim().is_empty() || chars > REASON_CHARS_MAX {
            return Err(KeepError::Reason);
        }
        let (session, reason) = (session.clone(), reason.to_owned());
        Ok(Retention { session, decision, at: self.clock.now(), by: by.clone(), reason })
    }

    async fn is_running(&self, session: &SessionId) -> Result<bool, Error> {
        let arns = arns(&self.store, session).await?;
        if arns.is_empty() {
            return Ok(false);
        }
        let sql = "SELECT EXISTS (SELECT 1 FROM execution WHERE status = 'RUNNING' \
                   AND arn IN (SELECT value FROM json_each(?)))";
        self.store.read(move |file| Ok(file.query_row(sql, [arns], |row| row.get(0))?)).await
    }

    /// Prunes sessions that have expired, about a hundred at most, and drops old executions.
    async fn expire(&self, now: Stamp) -> Result<(), KeepError> {
        let by = Principal::service(Writer::Watchdog);
        let mut pruned = 0;
        for some in self.store.expired(now, EXPIRED_SEEN_MAX).await?.chunks(PRUNE_MAX) {
            let fates = self.prune(some, &BTreeSet::new(), &by, EXPIRED).await?;
            pruned += fates.iter().filter(|(_, fate)| *fate == Fate::Pruned).count();
            if pruned >= EXPIRED_AT_ONCE {
                break;
            }
        }
        let mut after = Some(0);
        while let Some(id) = after {
            after = self.drop_executions(now, id).await?;
        }
        Ok(self.give_back().await?)
    }

    /// Removes executions that ended long ago, except those of held sessions, from an id on. Returns the last id, if
    /// there may be more.
    async fn drop_executions(&self, now: Stamp, after: i64) -> Result<Option<i64>, Error> {
        if !self.store.holds_executions().await? {
            return Ok(None);
        }
        let kept = Duration::from_secs(u64::from(EXECUTION_DAYS) * 86_400);
        let before = now.before(kept).millis();
        let limit = i64::try_from(EXECUTIONS_AT_ONCE).unwrap_or(i64::MAX);
        let sql = "SELECT id, arn, name FROM execution WHERE id > ? AND status <> 'RUNNING' \
                   AND stopped_ms < ? ORDER BY id LIMIT ?";
        let old = self.store.read(move |file| {
            let mut statement = file.prepare_cached(sql)?;
            // A damaged execution stays, and keeps no other.
            let row = |row: &rusqlite::Row<'_>| {
                Ok((row.get(0)?, row.get::<_, String>(1).ok().zip(row.get::<_, String>(2).ok())))
            };
            let rows = statement.query_map([after, before, limit], row)?;
            Ok(rows.collect::<rusqlite::Result<Vec<(i64, _)>>>()?)
        });
        let old = old.await?;
        let mut arns = Vec::new();
        for (arn, name) in old.iter().filter_map(|(_, named)| named.as_ref()) {
            let session = name.split("-resume-").next().and_then(|id| id.parse().ok());
            let is_held = match session {
                Some(session) => !self.store.keeping(&session).await?.held.is_empty(),
                None => false,
            };
            if !is_held {
                arns.push(arn);
            }
        }
        if !arns.is_empty() {
            let arns = json!(arns).to_string();
            self.store.transact(move |file| remove_executions(file, &arns)).await?;
        }
        Ok(old.last().filter(|_| old.len() == EXECUTIONS_AT_ONCE).map(|(id, _)| *id))
    }
}

/// Removes ended executions with these ARNs, and their histories.
fn remove_executions(file: &rusqlite::Connection, arns: &str) -> rusqlite::Result<()> {
    if arns.is_empty() {
        return Ok(());
    }
    let mut ended = "status <> 'RUNNING' AND arn IN (SELECT value FROM json_each(?))".to_owned();
    let has_children = file.table_exists(None, "map_run_child")?;
    if has_children {
        // A run in progress reads the outputs of its executions.
        ended.push_str(
            " AND id NOT IN (SELECT map_run_child.execution FROM map_run_child JOIN user_resource \
             ON kind = 'map run' AND user_resource.name = run \
             WHERE map_run_child.execution IS NOT NULL AND json_extract(body, '$.status') = 'RUNNING')",
        );
    }
    let of_ended = format!("execution IN (SELECT id FROM execution WHERE {ended})");
    file.execute(&format!("DELETE FROM execution_event WHERE {of_ended}"), [arns])?;
    if file.table_exists(None, "execution_redrive")? {
        file.execute(&format!("DELETE FROM execution_redrive WHERE {of_ended}"), [arns])?;
    }
    file.execute(&format!("DELETE FROM execution WHERE {ended}"), [arns])?;
    if has_children {
        file.execute(
            "DELETE FROM user_resource WHERE kind = 'map run' \
             AND json_extract(body, '$.status') <> 'RUNNING' \
             AND json_extract(body, '$.execution_arn') IN (SELECT value FROM json_each(?))",
            [arns],
        )?;
        file.execute(
            "DELETE FROM map_run_child \
             WHERE run NOT IN (SELECT name FROM user_resource WHERE kind = 'map run')",
            [],
        )?;
    }
    Ok(())
}

/// Removes what has expired, until `stop`. Time counts on the even clock: a clock that jumps forward removes nothing
/// early.
pub(crate) async fn expire(keeper: Keeper, stop: CancellationToken) {
    let even = keeper.clock.even();
    loop {
        let now = even.now().min(keeper.clock.now());
        match stop.run_until_cancelled(keeper.expire(now)).await {
            None => return,
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::warn!(%error, "Cannot remove what has expired."),
        }
        if stop.run_until_cancelled(keeper.clock.sleep(EXPIRE_EVERY)).await.is_none() {
            return;
        }
    }
}

/// The folder of a stack that does not run.
#[derive(Debug)]
pub struct Stopped {
    pub keeper: Keeper,
    _lock: FolderLock,
    _file: Lock,
}

impl Stopped {
    /// Takes the folder.
    ///
    /// # Errors
    /// A stack uses the folder, it is unusable, or its journal is missing.
    pub async fn open(data: &Path, keys: Option<&Path>) -> Result<Self, StartError> {
        let (data, lock) = folder::take(data)?;
        let keys = Keys::usable(keys, &data, &Signing::default());
        let leaf_key = keys.as_ref().and_then(|keys| keys.leaf_key().ok().flatten());
        let journal = data.join(JOURNAL_FILE);
        let is_signed = keys.as_ref().is_some_and(|keys| matches!(keys.checkpoint(), Ok(Some(_))));
        if let Some(missing) = lock.missing_file(&journal, is_signed) {
            return Err(missing.into());
        }
        let (store, file) = Database::open_alone(&journal, Durability::Fsync, leaf_key)?;
        if let Some(missing) = lock.missing_end(&store).await {
            return Err(missing.into());
        }
        let keeper = Keeper { store, keys, clock: Clock::system() };
        Ok(Self { keeper, _lock: lock, _file: file })
    }

    /// Signs the log.
    pub async fn sign(&self) {
        let Keeper { store, keys, .. } = &self.keeper;
        Signer::start(store, keys.clone(), Signing::default(), Vec::new()).finish().await;
    }

    /// Signs the log, and shortens the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn close(self) -> Result<(), Error> {
        self.sign().await;
        self.keeper.store.compact().await
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn an_old_execution_takes_its_map_run_along_but_none_of_a_running_one() {
        let file = Connection::open_in_memory().unwrap();
        file.execute_batch(
            r#"CREATE TABLE execution (id INTEGER PRIMARY KEY, arn TEXT, status TEXT);
            CREATE TABLE execution_event (execution INTEGER);
            CREATE TABLE execution_redrive (execution INTEGER);
            CREATE TABLE user_resource (kind TEXT, name TEXT, body TEXT);
            CREATE TABLE map_run_child (run TEXT, execution INTEGER);
            INSERT INTO execution VALUES (1, 'old', 'FAILED'), (2, 'child of old', 'FAILED'),
                (3, 'busy', 'RUNNING'), (4, 'child of busy', 'SUCCEEDED');
            INSERT INTO execution_redrive VALUES (1), (4);
            INSERT INTO user_resource VALUES
                ('map run', 'r1', '{"status":"FAILED","execution_arn":"old"}'),
                ('map run', 'r2', '{"status":"RUNNING","execution_arn":"busy"}');
            INSERT INTO map_run_child VALUES ('r1', 2), ('r1', NULL), ('r2', 4), ('r2', NULL);"#,
        )
        .unwrap();
        remove_executions(&file, r#"["old", "child of old", "busy", "child of busy"]"#).unwrap();
        let left = |sql: &str| {
            let mut statement = file.prepare(sql).unwrap();
            let rows = statement.query_map([], |row| row.get(0)).unwrap();
            rows.collect::<Result<Vec<String>, _>>().unwrap()
        };
        assert_eq!(left("SELECT arn FROM execution ORDER BY id"), ["busy", "child of busy"]);
        assert_eq!(left("SELECT name FROM user_resource"), ["r2"]);
        assert_eq!(left("SELECT run FROM map_run_child"), ["r2", "r2"]);
        assert_eq!(left("SELECT CAST(execution AS TEXT) FROM execution_redrive"), ["4"]);
    }
}
