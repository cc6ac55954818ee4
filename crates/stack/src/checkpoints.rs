//! Signs checkpoints of the log of sessions, and compares the log with those that were signed.

mod audit;
mod cosign;
mod holds;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use journal::export;
use journal::id::SessionId;
use journal::item::Item;
use journal::log::{Extract, SessionLog, Stored, walk};
use journal::store::{Error, Store};
use tlog::checkpoint::{Checkpoint, SignedCheckpoint};
use tlog::key::{SignerKey, Verifier as _};
use tlog::tree::TreeHead;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::keys::Keys;
use crate::restart::after_panics;
use crate::stack::chain;
use crate::store::Database;

pub use audit::Audit;
use cosign::keep_cosigning;
pub use cosign::{InvalidWitness, Witness};
/// The key of an account's log.
#[cfg(feature = "dynamodb")]
pub use poller::{checkpoint::LogKey, kms::KmsKey};

/// Shortest time between two checkpoints. A leaf that was added meanwhile waits for the next one.
const PAUSE: Duration = Duration::from_millis(100);

/// How often the stack looks for leaves of sessions that another process has imported, which sends no notification.
const GUESTS_INTERVAL: Duration = Duration::from_secs(5);

/// How often a reader looks for a signature that is due, every [`PAUSE`]. A slow disk takes most of a second to sign.
const SETTLING_POLLS: u32 = 20;

/// Leaves that are read at once.
const LEAVES: usize = 10_000;

/// Most times that a session is read anew because a leaf was added meanwhile. It gets a leaf when it starts and one for
/// each verdict, of which there is one, or rarely two.
const READS_MAX: u32 = 10;

/// Why the running stack does not sign the log of sessions, if it does not.
#[derive(Clone, Debug, Default)]
pub struct Signing(Arc<Mutex<Option<String>>>);

impl Signing {
    /// Returns whether that is news.
    pub(crate) fn set(&self, problem: Option<String>) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *known != problem;
        *known = problem;
        is_new
    }

    pub fn problem(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Signs the log of a running stack, and has witnesses cosign it.
#[derive(Debug)]
pub(crate) struct Signer {
    /// In the order in which they stop: what was signed last is cosigned, too.
    tasks: Vec<(CancellationToken, JoinSet<()>)>,
}

impl Signer {
    /// Without keys, nothing is signed.
    pub(crate) fn start(
        store: &Database,
        keys: Option<Keys>,
        signing: Signing,
        witnesses: Vec<Witness>,
    ) -> Self {
        let Some(keys) = keys else { return Self { tasks: Vec::new() } };
        let stop = CancellationToken::new();
        let (signed, stopping) = (store.clone(), stop.clone());
        let keep_signing =
            move || keep_signing(signed.clone(), keys.clone(), signing.clone(), stopping.clone());
        let keep_signing = after_panics("the signer", stop.clone(), keep_signing);
        let mut tasks = vec![(stop, JoinSet::from_iter([keep_signing]))];
        if !witnesses.is_empty() {
            let stop = CancellationToken::new();
            let mut cosigning = JoinSet::new();
            let (signed, stopping) = (store.clone(), stop.clone());
            let keep_cosigning =
                move || keep_cosigning(signed.clone(), witnesses.clone(), stopping.clone());
            cosigning.spawn(after_panics("the cosigner", stop.clone(), keep_cosigning));
            tasks.push((stop, cosigning));
        }
        Self { tasks }
    }

    /// Signs what is left, and stops.
    pub(crate) async fn finish(self) {
        for (stop, mut tasks) in self.tasks {
            stop.cancel();
            while tasks.join_next().await.is_some() {}
        }
    }
}

/// Signs the log each time that it has grown, until `stop`; then once more.
async fn keep_signing(store: Database, keys: Keys, signing: Signing, stop: CancellationToken) {
    let mut changes = store.changes();
    loop {
        changes.mark_unchanged();
        let pause = if keys.sign_and_say(&store, &signing).await { PAUSE } else { Duration::ZERO };
        let next = async {
            tokio::time::sleep(pause).await;
            // The store outlives the loop.
            let _ = tokio::time::timeout(GUESTS_INTERVAL, changes.changed()).await;
        };
        if stop.run_until_cancelled(next).await.is_none() {
            keys.sign_and_say(&store, &signing).await;
            return;
        }
    }
}

impl Keys {
    /// Returns whether there is a new checkpoint.
    async fn sign_and_say(&self, store: &Database, signing: &Signing) -> bool {
        let signed = self.sign(store).await;
        let problem = signed.as_ref().err().cloned();
        if signing.set(problem.clone())
            && let Some(problem) = problem
        {
            tracing::error!(
                %problem,
                "The log of sessions is not signed. If the data folder or the journal was replaced on purpose, stop the \
                 stack and begin a log under a new name: daybook keys rotate --new-log"
            );
        }
        signed.unwrap_or(false)
    }

    /// Signs the log, if it has grown and continues what was signed before. Returns whether there is a new checkpoint.
    ///
    /// # Errors
    /// Why it is not signed.
    pub async fn sign(&self, store: &Database) -> Result<bool, String> {
        let state = store.log().await.map_err(text)?.ok_or("the journal has no log")?;
        let note = self.checkpoint().map_err(text)?;
        let kept = note.as_deref().map(parse).transpose()?;
        let kept = kept.map(|kept| kept.checkpoint().head());
        if kept.is_none() && state.head.size == 0 {
            return Ok(false);
        }
        if let Some(note) = note
            && kept == Some(state.head)
        {
            // A backup may be older than the signature of its last leaf.
            let stored = state.checkpoint.as_deref().and_then(Extract::size_of);
            if stored != Some(state.head.size) {
                store.put_checkpoint(state.head.size, note).await.map_err(text)?;
            }
            return Ok(false);
        }
        if let Some(kept) = &kept {
            self.check(store, kept, &state.head).await?;
        }
        let key = self.signer().map_err(text)?.ok_or("the signing key is gone")?;
        let note = sign(&key, state.head)?;
        store.put_checkpoint(state.head.size, note.clone()).await.map_err(text)?;
        self.keep(&note).map_err(text)?;
        Ok(true)
    }
}

impl Keys {
    /// Checks that the log continues what was signed before, and that this machine wrote all that it was not.
    ///
    /// # Errors
    /// Why the log would not be signed.
    pub(crate) async fn check_log(&self, store: &Database) -> Result<(), String> {
        let Some(state) = store.log().await.map_err(text)? else { return Ok(()) };
        let kept = self.checkpoint().map_err(text)?;
        match kept.as_deref().map(parse).transpose()? {
            Some(kept) => self.check(store, &kept.checkpoint().head(), &state.head).await,
            None => Ok(()),
        }
    }

    async fn check(&self, store: &Database, old: &TreeHead, new: &TreeHead) -> Result<(), String> {
        continues(store, old, new).await?;
        self.check_marks(store, old.size).await
    }
}

fn sign(key: &SignerKey, head: TreeHead) -> Result<String, String> {
    let origin = key.verifier().name().as_str().parse().map_err(text)?;
    let checkpoint = Checkpoint::new(origin, head);
    let signature = key.sign(&checkpoint.to_string());
    Ok(SignedCheckpoint::new(checkpoint, signature).map_err(text)?.to_string())
}

fn parse(note: &str) -> Result<SignedCheckpoint, String> {
    let unlike = |error| format!("a checkpoint cannot be read: {error}");
    SignedCheckpoint::parse(note.as_bytes()).map_err(unlike)
}

/// Checks that a log continues an older one.
async fn continues<L: SessionLog>(log: &L, old: &TreeHead, new: &TreeHead) -> Result<(), String> {
    match walk::continues(log, old, new).await.map_err(text)? {
        Some(problem) => Err(problem),
        None => Ok(()),
    }
}

/// An error with its causes.
fn text(error: impl std::error::Error) -> String {
    chain(&error)
}

/// What a journal holds of a session at one moment.
#[derive(Debug)]
pub struct Read {
    pub records: Vec<Item>,
    /// The session's leaves; `None` in a file of a version without a log of sessions.
    pub log: Result<Option<Extract>, Error>,
}

impl Read {
    /// Reads a session's records and leaves, from a store and its log. A session that ends meanwhile is read again: what is returned never has a
    /// verdict without its leaf, nor a leaf without its record, unless the journal has.
    ///
    /// # Errors
    /// The records cannot be read, or leaves were added all the time.
    pub async fn of<S: Store, L: SessionLog>(
        store: &S,
        log_of_store: &L,
        session: &SessionId,
    ) -> Result<Self, Error> {
        let mut log = log_of_store.log_of(session).await;
        for _ in 0..READS_MAX {
            let records = export::records(store, session).await?;
            let again = log_of_store.log_of(session).await;
            if log.is_err() || leaves(&log) == leaves(&again) {
                return Ok(Self { records, log: again });
            }
            log = again;
        }
        let problem = format!("session {session} got a new leaf in each of {READS_MAX} reads");
        Err(Error::Unavailable(problem.into()))
    }
}

/// Gives a running stack a moment to sign the leaves of a session that it has just written.
pub async fn settle(store: &Database, session: &SessionId) {
    for _ in 0..SETTLING_POLLS {
        if !is_waiting(&store.log_of(session).await) {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Gives a running stack a moment to sign the leaves that the log has now.
///
/// # Errors
/// The log cannot be read.
pub async fn settle_all(store: &Database) -> Result<(), Error> {
    let Some(due) = store.log().await?.map(|log| log.head.size) else { return Ok(()) };
    for _ in 0..SETTLING_POLLS {
        let newest = store.log().await?.and_then(|log| log.checkpoint);
        let signed = newest.map(|note| parse(&note).map(|note| note.checkpoint().head().size));
        // Without a checkpoint nothing signs; one that cannot be read is for the verification to name.
        let Some(Ok(signed)) = signed else { return Ok(()) };
        if signed >= due {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// The places and contents of the leaves that were read.
fn leaves(log: &Result<Option<Extract>, Error>) -> Vec<(u64, &[u8])> {
    let entries = log.as_ref().ok().and_then(Option::as_ref).map(|log| &log.entries);
    entries.into_iter().flatten().map(|entry| (entry.index, entry.leaf.as_slice())).collect()
}

fn is_waiting(log: &Result<Option<Extract>, Error>) -> bool {
    log.as_ref().ok().and_then(Option::as_ref).is_some_and(|log| {
        log.checkpoint.is_some() && log.entries.iter().any(|entry| entry.proof.is_none())
    })
}

impl Keys {
    /// Checks that this machine wrote the leaves from an index on.
    async fn check_marks(&self, store: &Database, from: u64) -> Result<(), String> {
        let key = self.leaf_key().map_err(text)?;
        let key =
            key.ok_or("the key that marks leaves is gone, so it is not known who wrote them")?;
        let mut next = from;
        loop {
            let leaves = store.log_leaves(next, LEAVES).await.map_err(text)?;
            let Some(last) = leaves.last() else { return Ok(()) };
            next = last.index + 1;
            let foreign = |leaf: &&Stored| !key.has_marked(leaf.index, &leaf.bytes, &leaf.mark);
            if let Some(leaf) = leaves.iter().find(foreign) {
                return Err(format!(
                    "its leaf {} was not written by a stack of this machine",
                    leaf.index
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use journal::clock::Clock;
    use journal::event::EventStatus;
    use journal::key::{self, attribute};
    use journal::log::{Decision, ENTRIES_MAX, Leaf, Retention, Trust};
    use journal::principal::Principal;
    use journal::store::Condition;

    use super::*;
    use crate::verifier::Verifier;

    fn record(session: &SessionId, second: u32, status: EventStatus) -> Item {
        let sk = format!("EVENT#2026-01-01T00:00:{second:02}.000000000Z");
        Item::new(key::session(session), sk).with(attribute::STATUS, status.as_str())
    }

    /// The verdicts among records, and among leaves.
    fn verdicts(read: &Read) -> (usize, usize) {
        let is_verdict = |leaf: Option<Leaf>| leaf.is_some_and(|leaf| leaf.status.is_verdict());
        let log = read.log.as_ref().unwrap().as_ref().unwrap();
        (
            read.records.iter().filter(|item| is_verdict(Leaf::of(item))).count(),
            log.entries.iter().filter(|entry| is_verdict(Leaf::parse(&entry.leaf))).count(),
        )
    }

    /// A BLOB of the same bytes equals no text, so no query for the session finds the leaf of its hold.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_leaf_that_its_session_does_not_find_is_named() {
        for change in ["CAST(session AS BLOB)", "session || 'x'", "7"] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("journal.db");
            let store = Database::open(&file, journal::sqlite::Durability::Relaxed).unwrap();
            let session = SessionId::fresh();
            let start = record(&session, 0, EventStatus::SessionInitiated);
            store.put(start, Condition::Absent).await.unwrap();
            let hold = Retention {
                session: session.clone(),
                decision: Decision::Hold("case-7".parse().unwrap()),
                at: Clock::system().now(),
                by: Principal::Unknown,
                reason: "a case".to_owned(),
            };
            store.hold(hold).await.unwrap();
            assert_eq!(store.hidden().await.unwrap(), Vec::<String>::new());
            let sql = format!("UPDATE log_leaf SET session = {change} WHERE n = 1");
            let sql = move |file: &rusqlite::Connection| file.execute(&sql, []);
            assert_eq!(store.transact(sql).await.unwrap(), 1);
            let hidden = store.hidden().await.unwrap();
            assert_eq!(hidden, ["its leaf 1 is not filed under its session"], "{change}");
            let mut audit = Audit::of(&store, None, None, &Trust::default()).await;
            audit.read_leaves(&store).await.unwrap();
            let found = |problem: &String| problem.contains("is filed under");
            assert!(audit.problems.iter().any(found), "{change}: {:?}", audit.problems);
        }
    }

    /// An attacker may add leaves, and a person holds; neither may hide what follows.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_session_with_too_many_leaves_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal.db");
        let store = Database::open(&file, journal::sqlite::Durability::Relaxed).unwrap();
        let (many, held) = (SessionId::fresh(), SessionId::fresh());
        for n in 0..=ENTRIES_MAX {
            let sk = format!("EVENT#2026-01-01T00:00:00.{n:09}Z");
            let item = Item::new(key::session(&many), sk)
                .with(attribute::STATUS, EventStatus::SessionInitiated.as_str());
            store.put(item, Condition::Absent).await.unwrap();
        }
        let start = record(&held, 0, EventStatus::SessionInitiated);
        store.put(start, Condition::Absent).await.unwrap();
        let hold = |label: usize| Retention {
            session: held.clone(),
            decision: Decision::Hold(format!("case-{label}").parse().unwrap()),
            at: Clock::system().now(),
            by: Principal::Unknown,
            reason: "a case".to_owned(),
        };
        let mut holds = 0;
        while store.hold(hold(holds)).await.is_ok() {
            holds += 1;
        }
        assert!((1..ENTRIES_MAX / 2).contains(&holds), "{holds}");
        let verifier = Verifier::new(store.clone(), None, Trust::default(), None).await;
        let mut verifier = verifier.unwrap();
        assert_eq!(verifier.read_all().await.unwrap().sessions.len(), 2);
        let problems = async |session| {
            let found = verifier.report(session, &[], Clock::system().now()).await.unwrap();
            format!("{:?}", found.unwrap().report.damage)
        };
        assert!(problems(&many).await.contains("more than 1000 leaves"));
        assert!(!problems(&held).await.contains("more than 1000 leaves"));
        assert!(Read::of(&store, &store, &many).await.unwrap().log.is_err());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_session_that_ends_while_it_is_read_is_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal.db");
        let store = Database::open(&file, journal::sqlite::Durability::Relaxed).unwrap();
        for _ in 0..300 {
            let session = SessionId::fresh();
            let start = record(&session, 0, EventStatus::SessionInitiated);
            store.put(start, Condition::Absent).await.unwrap();
            let (writer, verdict) =
                (store.clone(), record(&session, 1, EventStatus::SessionFailed));
            let ended = tokio::spawn(async move { writer.put(verdict, Condition::Absent).await });
            loop {
                let (records, leaves) =
                    verdicts(&Read::of(&store, &store, &session).await.unwrap());
                assert_eq!(records, leaves);
                if records == 1 {
                    break;
                }
            }
            ended.await.unwrap().unwrap();
        }
    }
}
