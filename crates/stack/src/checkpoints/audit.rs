//! Compares a log with its checkpoints, and reads all of it.

use std::collections::BTreeSet;
use std::fmt;

use journal::halt::HaltLeaf;
use journal::id::SessionId;
use journal::key;
use journal::log::{AnyLeaf, Extract, SessionLog, State, Stored, Trust, walk};
use journal::store::Error;
use serde_json::{Value, json};
use tlog::hash::Hash;
use tlog::tree::{Frontier, NodeId};

use super::holds::Holds;
use super::{LEAVES, continues, parse, text};
use crate::keys::Keys;
use crate::stack::chain;
use crate::store::Database;

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
    /// The leaves of halts, if all leaves were read.
    pub halts: Vec<HaltLeaf>,
    /// What does not hold.
    pub problems: Vec<String>,
    holds: Holds,
}

impl Audit {
    /// Compares a log with its newest checkpoint, with the copy that `keys` has, and with an older one.
    pub async fn of<L: SessionLog>(
        store: &L,
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

    async fn compare<L: SessionLog>(
        &mut self,
        store: &L,
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
        let size = signed.checkpoint().head().size;
        self.signed = Some(size);
        if let Some(kept) = kept.as_deref().and_then(Extract::size_of).filter(|kept| *kept > size) {
            self.say(format!(
                "its newest checkpoint has {size} leaves, but one of {kept} was signed"
            ));
        }
        if !trust.log.is_empty() {
            let by = signed.note().verify(&trust.log).map_err(|error| {
                format!("its newest checkpoint is not signed by its key: {error}")
            })?;
            self.signed_by = by.first().map(|by| by.name.to_string());
        }
        if let Some(older) = older
            && !trust.log.is_empty()
        {
            let signed = parse(older)?;
            signed.note().verify(&trust.log).map_err(|error| {
                format!("the checkpoint that was given is not signed by its key: {error}")
            })?;
        }
        Ok(())
    }

    /// Reads every checkpoint of a file: only one of the log itself, under its own size, may be there.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn read_checkpoints(&mut self, store: &Database) -> Result<(), Error> {
        // Before the head: a leaf is there before its checkpoint.
        let checkpoints = store.log_checkpoints().await?;
        let Some(State { head, .. }) = store.log().await? else { return Ok(()) };
        for (size, note) in checkpoints {
            let size_of = || size.map_or_else(|| "no number".to_owned(), |size| size.to_string());
            match parse(&note).map(|note| note.checkpoint().head()) {
                Err(problem) => self.say(format!("of {} leaves, {problem}", size_of())),
                Ok(signed) if Some(signed.size) != size => self.say(format!(
                    "a checkpoint of {} leaves is stored as one of {}",
                    signed.size,
                    size_of()
                )),
                Ok(signed) => {
                    if let Err(problem) = continues(store, &signed, &head).await {
                        self.say(problem);
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads every leaf of a log, and computes its trees from them. For logs whose nodes are in the leaves' items: an item
    /// that was changed gives another tree.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn walk<L: SessionLog>(&mut self, log: &L) -> Result<(), Error> {
        let Some(size) = self.leaves else { return Ok(()) };
        let walk = walk::walk(log, size).await?;
        self.leaves = Some(walk.leaves);
        self.signed = self.signed.map(|_| walk.covered);
        self.problems.extend(walk.problems);
        self.sessions = walk.sessions;
        Ok(())
    }

    /// Reads every leaf of a file's log, computes the tree from them, and compares each stored node.
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
                self.say(format!("it lacks leaf {} of {size}", tree.size()));
                return Ok(());
            }
            let nodes = leaves.iter().flat_map(|leaf| self.add(leaf, &mut tree)).collect();
            if let Some(id) = store.log_differs(nodes).await? {
                let (level, index) = (id.level, id.index);
                self.say(format!(
                    "node {index} of level {level} of its tree is not what its leaves give"
                ));
            }
        }
        match store.log_head(size).await {
            Ok(Some(head)) if head == tree.head() => {}
            Ok(_) => self.say("its tree is not that of its leaves".to_owned()),
            Err(error) => self.say(chain(&error)),
        }
        let strays = store.log_strays().await?;
        if strays > 0 {
            self.say(format!(
                "{strays} rows of its tables are neither a leaf nor given by its leaves"
            ));
        }
        Ok(())
    }

    /// Returns the nodes that the leaf completes.
    fn add(&mut self, stored: &Stored, tree: &mut Frontier) -> Vec<(NodeId, Hash)> {
        let expected = tree.size();
        if stored.index != expected {
            self.say(format!("it has leaf {} in the place of {expected}", stored.index));
        }
        // The size was checked against the limit when the log was read.
        let nodes = tree.append(Hash::leaf(&stored.bytes)).unwrap_or_default();
        match AnyLeaf::parse(&stored.bytes) {
            None => match HaltLeaf::parse(&stored.bytes) {
                Some(leaf) if stored.session == key::HALTS => self.halts.push(leaf),
                Some(_) => self.say(format!("its leaf {} of halts is not found", stored.index)),
                None => self.say(format!("its leaf {} is not that of a record", stored.index)),
            },
            Some(leaf) => {
                let of = leaf.session();
                if of.as_str() != stored.session {
                    let (index, session) = (stored.index, &stored.session);
                    let found = format!("its leaf {index} of {of} is filed under {session}");
                    self.say(found);
                }
                self.sessions.insert(of.clone());
                if let AnyLeaf::Retention(leaf) = &leaf {
                    let problem = self.holds.add(stored.index, leaf);
                    problem.into_iter().for_each(|problem| self.say(problem));
                }
            }
        }
        nodes
    }

    /// Adds a problem, up to a bound: one leaf that is missing shifts all that follow.
    fn say(&mut self, problem: String) {
        walk::say(&mut self.problems, problem);
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
