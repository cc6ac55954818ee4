//! Signs checkpoints of the log of sessions, and compares the log with those that were signed.

mod cosign;

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use journal::id::SessionId;
use journal::log::{Extract, Leaf, Trust};
use journal::sqlite::log::{State, Stored};
use serde_json::{Value, json};
use tlog::checkpoint::{Checkpoint, SignedCheckpoint};
use tlog::hash::Hash;
use tlog::key::{SignerKey, Verifier as _};
use tlog::proof::verify_consistency;
use tlog::tree::{Frontier, TreeHead};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::keys::Keys;
use crate::stack::chain;
use crate::store::Database;

use cosign::keep_cosigning;
pub use cosign::{InvalidWitness, Witness};

/// Shortest time between two checkpoints. A leaf that was added meanwhile waits for the next one.
const PAUSE: Duration = Duration::from_millis(100);

/// How often a reader looks for a signature that is due.
const SETTLING_POLLS: u32 = 5;

/// Leaves that are read at once.
const LEAVES: usize = 10_000;

/// Signs the log of a running stack, and has witnesses cosign it.
#[derive(Debug)]
pub(crate) struct Signer {
    /// In the order in which they stop: what was signed last is cosigned, too.
    tasks: Vec<(CancellationToken, JoinSet<()>)>,
}

impl Signer {
    /// Without keys, nothing is signed.
    pub(crate) fn start(store: &Database, keys: Option<Keys>, witnesses: Vec<Witness>) -> Self {
        let Some(keys) = keys else { return Self { tasks: Vec::new() } };
        let stop = CancellationToken::new();
        let signing = keep_signing(store.clone(), keys, stop.clone());
        let mut tasks = vec![(stop, JoinSet::from_iter([signing]))];
        if !witnesses.is_empty() {
            let stop = CancellationToken::new();
            let mut cosigning = JoinSet::new();
            cosigning.spawn(keep_cosigning(store.clone(), witnesses, stop.clone()));
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
async fn keep_signing(store: Database, keys: Keys, stop: CancellationToken) {
    let mut changes = store.changes();
    loop {
        changes.mark_unchanged();
        let pause = if keys.sign_and_log(&store).await { PAUSE } else { Duration::ZERO };
        let next = async {
            tokio::time::sleep(pause).await;
            // The store outlives the loop.
            let _ = changes.changed().await;
        };
        if stop.run_until_cancelled(next).await.is_none() {
            keys.sign_and_log(&store).await;
            return;
        }
    }
}

impl Keys {
    /// Returns whether there is a new checkpoint.
    async fn sign_and_log(&self, store: &Database) -> bool {
        let signed = self.sign(store).await;
        signed.unwrap_or_else(|problem| {
            tracing::error!(%problem, "The log of sessions was not signed.");
            false
        })
    }

    /// Signs the log, if it has grown and continues what was signed before.
    async fn sign(&self, store: &Database) -> Result<bool, String> {
        let state = store.log().await.map_err(text)?.ok_or("the journal has no log")?;
        let kept = self.checkpoint().map_err(text)?;
        let kept = kept.as_deref().map(parse).transpose()?;
        let kept = kept.map(|kept| kept.checkpoint().head());
        if kept == Some(state.head) || state.head.size == 0 {
            return Ok(false);
        }
        if let Some(kept) = &kept {
            continues(store, kept, &state.head).await?;
            self.check_marks(store, kept.size).await?;
        }
        let key = self.signer().map_err(text)?.ok_or("the signing key is gone")?;
        let note = sign(&key, state.head)?;
        store.put_checkpoint(state.head.size, note.clone()).await.map_err(text)?;
        self.keep(&note).map_err(text)?;
        Ok(true)
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
async fn continues(store: &Database, old: &TreeHead, new: &TreeHead) -> Result<(), String> {
    if old.size > new.size {
        let (old, new) = (old.size, new.size);
        return Err(format!("it was set back: it has {new} leaves, but {old} were signed"));
    }
    let proof = store.log_consistency(old.size, new.size).await.map_err(text)?;
    verify_consistency(old, new, &proof).map_err(|error| {
        let size = old.size;
        format!("it has another history than when its first {size} leaves were signed: {error}")
    })
}

/// An error with its causes.
fn text(error: impl std::error::Error) -> String {
    chain(&error)
}

/// A session's leaves; a running stack is given a moment to sign those that it has just written.
///
/// # Errors
/// The journal cannot be read.
pub async fn settled(
    store: &Database,
    session: &SessionId,
) -> Result<Option<Extract>, journal::store::Error> {
    for _ in 0..SETTLING_POLLS {
        let extract = store.log_of(session).await?;
        let is_waiting = |log: &Extract| {
            log.checkpoint.is_some() && log.entries.iter().any(|entry| entry.proof.is_none())
        };
        if !extract.as_ref().is_some_and(is_waiting) {
            return Ok(extract);
        }
        tokio::time::sleep(PAUSE).await;
    }
    store.log_of(session).await
}

/// The result of comparing a log with its checkpoints.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// Number of leaves; `None` if the journal has no log, or it cannot be read.
    pub leaves: Option<u64>,
    /// Number of leaves that the newest checkpoint covers.
    pub signed: Option<u64>,
    /// The log's name, if a trusted key signed the newest checkpoint.
    pub signed_by: Option<String>,
    /// The sessions that the log names, if all leaves were read.
    pub sessions: BTreeSet<SessionId>,
    /// What does not hold.
    pub problems: Vec<String>,
}

impl Audit {
    /// Compares a log with its newest checkpoint, with the copy that `keys` has, and with an older one.
    pub async fn of(
        store: &Database,
        keys: Option<&Keys>,
        older: Option<&str>,
        trust: &Trust,
    ) -> Self {
        let mut audit = Self::default();
        if let Err(problem) = audit.compare(store, keys, older, trust).await {
            audit.problems.push(problem);
        }
        audit
    }

    async fn compare(
        &mut self,
        store: &Database,
        keys: Option<&Keys>,
        older: Option<&str>,
        trust: &Trust,
    ) -> Result<(), String> {
        let kept = keys.map(Keys::checkpoint).transpose().map_err(text)?.flatten();
        let Some(State { head, checkpoint }) = store.log().await.map_err(text)? else {
            let known =
                kept.as_deref().or(older).map(|_| "it is gone, but a checkpoint was signed");
            return known.map_or(Ok(()), |problem| Err(problem.to_owned()));
        };
        self.leaves = Some(head.size);
        for note in [checkpoint.as_deref(), kept.as_deref(), older].into_iter().flatten() {
            let signed = parse(note)?;
            continues(store, &signed.checkpoint().head(), &head).await?;
        }
        let Some(newest) = checkpoint.as_deref() else {
            let known = kept.map(|_| "its checkpoints are gone, but one was signed".to_owned());
            return known.map_or(Ok(()), Err);
        };
        let signed = parse(newest)?;
        self.signed = Some(signed.checkpoint().head().size);
        if !trust.log.is_empty() {
            let by = signed.note().verify(&trust.log).map_err(|error| {
                format!("its newest checkpoint is not signed by its key: {error}")
            })?;
            self.signed_by = by.first().map(|by| by.name.to_string());
        }
        Ok(())
    }

    /// Reads every leaf, and computes the tree from them.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn read_leaves(&mut self, store: &Database) -> Result<(), journal::store::Error> {
        let Some(size) = self.leaves else { return Ok(()) };
        let mut tree = Frontier::empty();
        while tree.size() < size {
            let left = usize::try_from(size - tree.size()).unwrap_or(LEAVES);
            let leaves = store.log_leaves(tree.size(), LEAVES.min(left)).await?;
            if leaves.is_empty() {
                self.problems.push(format!("it lacks leaf {} of {size}", tree.size()));
                return Ok(());
            }
            for leaf in leaves {
                self.add(&leaf, &mut tree);
            }
        }
        match store.log_head(size).await {
            Ok(Some(head)) if head == tree.head() => {}
            Ok(_) => self.problems.push("its tree is not that of its leaves".to_owned()),
            Err(error) => self.problems.push(chain(&error)),
        }
        Ok(())
    }

    fn add(&mut self, stored: &Stored, tree: &mut Frontier) {
        let expected = tree.size();
        if stored.index != expected {
            self.problems.push(format!("it has leaf {} in the place of {expected}", stored.index));
        }
        // The size was checked against the limit when the log was read.
        let _ = tree.append(Hash::leaf(&stored.bytes));
        match Leaf::parse(&stored.bytes) {
            None => {
                self.problems.push(format!("its leaf {} is not that of a record", stored.index))
            }
            Some(leaf) => {
                if leaf.session.as_str() != stored.session {
                    let (index, session) = (stored.index, &stored.session);
                    let found =
                        format!("its leaf {index} of {} is filed under {session}", leaf.session);
                    self.problems.push(found);
                }
                self.sessions.insert(leaf.session);
            }
        }
    }

    pub fn to_json(&self) -> Value {
        json!({
            "leaves": self.leaves, "signed": self.signed, "signed_by": self.signed_by,
            "problems": self.problems,
        })
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.leaves, self.signed, &self.signed_by) {
            (None, _, _) => f.write_str("no log of sessions: a removed session leaves no trace"),
            (Some(leaves), None, _) => {
                write!(
                    f,
                    "log of sessions: {leaves} leaves, no checkpoint: who writes the file can rewrite it"
                )
            }
            (Some(leaves), Some(signed), Some(by)) => {
                write!(f, "log of sessions: {leaves} leaves, {signed} of them signed by {by}")
            }
            (Some(leaves), Some(signed), None) => write!(
                f,
                "log of sessions: {leaves} leaves, {signed} of them in a checkpoint whose key is unknown here; pass --key"
            ),
        }
    }
}

impl Keys {
    /// Checks that this machine wrote the leaves from an index on.
    async fn check_marks(&self, store: &Database, from: u64) -> Result<(), String> {
        let Some(key) = self.leaf_key().map_err(text)? else { return Ok(()) };
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
