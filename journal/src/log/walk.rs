//! Walks through a log from its first leaf to its last.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tlog::hash::Hash;
use tlog::proof::verify_consistency;
use tlog::tree::{Frontier, TreeHead};

use super::{AnyLeaf, Leaf, SessionLog, Shard, ShardHead, Stage, Stored, Tree};
use crate::clock::Stamp;
use crate::id::SessionId;
use crate::limits::DEADLINE_BEFORE_EXPIRY;
use crate::store::Error;

/// Leaves that are read at once.
const LEAVES: usize = 1_000;

/// Most problems that are listed. One leaf that is missing shifts all that follow.
const PROBLEMS_MAX: usize = 100;

/// What a log says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// Number of leaves of sessions.
    pub leaves: u64,
    /// How many of them the signed tree covers.
    pub covered: u64,
    /// All sessions that the log names.
    pub sessions: BTreeSet<SessionId>,
    /// What does not hold, at most a hundred times.
    pub problems: Vec<String>,
    /// Those that started and have no verdict, and when their records expire, in seconds since 1970.
    open: BTreeMap<SessionId, i64>,
    ended: BTreeSet<SessionId>,
}

/// The leaves of a tree, one after the other, and the tree that they make.
struct Leaves<'a, L> {
    log: &'a L,
    tree: Tree,
    computed: Frontier,
    read: VecDeque<Stored>,
}

impl<'a, L: SessionLog> Leaves<'a, L> {
    fn of(log: &'a L, tree: Tree) -> Self {
        Self { log, tree, computed: Frontier::empty(), read: VecDeque::new() }
    }

    async fn next(&mut self) -> Result<Option<Stored>, Error> {
        if self.read.is_empty() {
            self.read = self.log.log_leaves(self.tree, self.computed.size(), LEAVES).await?.into();
        }
        let Some(leaf) = self.read.pop_front() else { return Ok(None) };
        self.computed.append(Hash::leaf(&leaf.bytes))?;
        Ok(Some(leaf))
    }

    /// The name of the tree in a sentence.
    fn name(&self) -> String {
        match self.tree {
            Tree::Signed if self.log.shards().is_empty() => "the log".to_owned(),
            Tree::Signed => "the root log".to_owned(),
            Tree::Shard(shard) => format!("shard {shard}"),
        }
    }
}

/// Reads every leaf of a log, computes its trees from them, and compares these with the stored trees and with what the
/// root log states. `size` is that of the signed tree, as [`SessionLog::log`] says; later leaves of shards are read too.
///
/// # Errors
/// The journal cannot be read.
pub async fn walk<L: SessionLog>(log: &L, size: u64) -> Result<Walk, Error> {
    let mut walk = Walk::default();
    let mut signed = Leaves::of(log, Tree::Signed);
    let shards = log.shards();
    let mut of_shards: Vec<_> =
        shards.iter().map(|shard| Leaves::of(log, Tree::Shard(*shard))).collect();
    while signed.computed.size() < size {
        let expected = signed.computed.size();
        let Some(leaf) = signed.next().await? else {
            say(&mut walk.problems, format!("{} lacks leaf {expected} of {size}", signed.name()));
            break;
        };
        walk.place(&leaf, expected, &signed.name());
        if shards.is_empty() {
            walk.session(&leaf, None, &signed.name());
        } else {
            walk.head(&leaf, &mut of_shards).await?;
        }
    }
    walk.compare(&signed).await?;
    walk.covered = walk.leaves;
    for leaves in &mut of_shards {
        walk.shard(leaves, None).await?;
        walk.compare(leaves).await?;
    }
    Ok(walk)
}

/// Checks that the heads that a root log states continue one another, from the stored nodes and without reading the
/// leaves of sessions. Returns what does not hold. For logs that are too long for [`walk`].
///
/// # Errors
/// The journal cannot be read.
pub async fn heads<L: SessionLog>(log: &L, size: u64) -> Result<Vec<String>, Error> {
    let mut last = BTreeMap::<Shard, TreeHead>::new();
    let mut problems = Vec::new();
    let mut signed = Leaves::of(log, Tree::Signed);
    while signed.computed.size() < size && !log.shards().is_empty() {
        let Some(leaf) = signed.next().await? else {
            say(
                &mut problems,
                format!("the root log lacks leaf {} of {size}", signed.computed.size()),
            );
            break;
        };
        let Some(stated) = ShardHead::parse(&leaf.bytes) else {
            say(
                &mut problems,
                format!("leaf {} of the root log is not a shard's head", leaf.index),
            );
            continue;
        };
        let old = last.insert(stated.shard, stated.head).unwrap_or_else(TreeHead::empty);
        if let Some(problem) = shard_continues(log, stated.shard, &old, &stated.head).await? {
            say(&mut problems, format!("leaf {} of the root log: {problem}", leaf.index));
        }
    }
    for (shard, old) in last {
        let new = log.log_size(Tree::Shard(shard)).await?;
        if new < old.size {
            say(&mut problems, set_back(shard, old.size, new));
        }
    }
    Ok(problems)
}

/// What is wrong with the head of the signed tree if it follows an older one, which was signed.
///
/// # Errors
/// The journal cannot be read.
pub async fn continues<L: SessionLog>(
    log: &L,
    old: &TreeHead,
    new: &TreeHead,
) -> Result<Option<String>, Error> {
    let (size, leaves) = (old.size, new.size);
    if size > leaves {
        return Ok(Some(format!(
            "it was set back: it has {leaves} leaves, but {size} were signed"
        )));
    }
    let proof = match log.log_consistency(Tree::Signed, size, leaves).await {
        Err(Error::Corrupt(problem)) => return Ok(Some(problem.to_string())),
        proof => proof?,
    };
    Ok(verify_consistency(old, new, &proof).err().map(|error| {
        format!("it has another history than when its first {size} leaves were signed: {error}")
    }))
}

/// Adds a problem to a list of at most a hundred; a last one says that there are more.
pub fn say(problems: &mut Vec<String>, problem: String) {
    match problems.len() {
        ..PROBLEMS_MAX => problems.push(problem),
        PROBLEMS_MAX => problems.push("further problems are not listed".to_owned()),
        _ => {}
    }
}

/// What is wrong with a head that follows another one.
async fn shard_continues<L: SessionLog>(
    log: &L,
    shard: Shard,
    old: &TreeHead,
    new: &TreeHead,
) -> Result<Option<String>, Error> {
    if new.size <= old.size {
        return Ok(Some(set_back(shard, old.size, new.size)));
    }
    let proof = match log.log_consistency(Tree::Shard(shard), old.size, new.size).await {
        Err(Error::Corrupt(problem)) => return Ok(Some(problem.to_string())),
        proof => proof?,
    };
    let verified = match old.size {
        // A proof from nothing proves nothing: compare the root.
        0 => match log.log_head(Tree::Shard(shard), new.size).await {
            Err(Error::Corrupt(problem)) => return Ok(Some(problem.to_string())),
            head => return Ok((head? != *new).then(|| format!("shard {shard} has another tree"))),
        },
        _ => verify_consistency(old, new, &proof),
    };
    Ok(verified.err().map(|error| format!("shard {shard} has another history: {error}")))
}

fn set_back(shard: Shard, old: u64, new: u64) -> String {
    format!("shard {shard} was set back from {old} leaves to {new}")
}

impl Walk {
    /// The sessions whose records expire soon or have expired, and that never ended.
    pub fn never_ended(&self, now: Stamp) -> impl Iterator<Item = &SessionId> {
        let soon = now.after(DEADLINE_BEFORE_EXPIRY).seconds();
        self.open.iter().filter(move |(_, at)| **at <= soon).map(|(session, _)| session)
    }

    /// The sessions that have a leaf of their start and none of a verdict.
    pub fn open(&self) -> impl Iterator<Item = &SessionId> {
        self.open.keys()
    }

    fn place(&mut self, leaf: &Stored, expected: u64, tree: &str) {
        if leaf.index != expected {
            let index = leaf.index;
            say(&mut self.problems, format!("{tree} has leaf {index} in the place of {expected}"));
        }
    }

    /// Adds a leaf of a session. `shard` is where it was read.
    fn session(&mut self, stored: &Stored, shard: Option<Shard>, tree: &str) {
        self.leaves += 1;
        let index = stored.index;
        let Some(leaf) = AnyLeaf::parse(&stored.bytes) else {
            say(&mut self.problems, format!("leaf {index} of {tree} is not that of a record"));
            return;
        };
        if leaf.session().as_str() != stored.session {
            let found = match stored.session.as_str() {
                "" => "is not found under it".to_owned(),
                other => format!("is filed under {other}"),
            };
            say(
                &mut self.problems,
                format!("leaf {index} of {tree}, of {}, {found}", leaf.session()),
            );
        }
        let own = Shard::of(leaf.session());
        if shard.is_some_and(|shard| shard != own) {
            let session = leaf.session();
            say(
                &mut self.problems,
                format!("leaf {index} of {tree} belongs to shard {own}: {session}"),
            );
        }
        let session = leaf.session().clone();
        if let AnyLeaf::Record(leaf) = leaf {
            self.record(&leaf);
        }
        self.sessions.insert(session);
    }

    /// Adds the leaf of a record.
    fn record(&mut self, leaf: &Leaf) {
        match leaf.stage() {
            Stage::Started if !self.ended.contains(&leaf.session) => {
                // A start without a time after it never was one of a trigger: it is due at once.
                self.open.insert(leaf.session.clone(), leaf.expiry().unwrap_or(i64::MIN));
            }
            Stage::Started => {}
            Stage::Ended => {
                self.open.remove(&leaf.session);
                self.ended.insert(leaf.session.clone());
            }
        }
    }

    /// Follows a leaf of the root log: reads the shard up to the size that it states.
    async fn head<L: SessionLog>(
        &mut self,
        stored: &Stored,
        shards: &mut [Leaves<'_, L>],
    ) -> Result<(), Error> {
        let index = stored.index;
        let Some(stated) = ShardHead::parse(&stored.bytes) else {
            say(&mut self.problems, format!("leaf {index} of the root log is not a shard's head"));
            return Ok(());
        };
        let shard = stated.shard;
        if stored.session != shard.to_string() {
            say(
                &mut self.problems,
                format!("leaf {index} of the root log is not found under {shard}"),
            );
        }
        let Some(leaves) = shards.get_mut(shard.number()) else { return Ok(()) };
        let (old, new) = (leaves.computed.size(), stated.head.size);
        if new <= old {
            let problem = format!("leaf {index} of the root log: {}", set_back(shard, old, new));
            say(&mut self.problems, problem);
            return Ok(());
        }
        self.shard(leaves, Some(new)).await?;
        if leaves.computed.size() < new {
            let (has, root) = (leaves.computed.size(), "the root log states");
            say(&mut self.problems, format!("shard {shard} has {has} leaves, but {root} {new}"));
        } else if leaves.computed.root() != stated.head.root {
            let problem =
                format!("shard {shard} has other leaves than leaf {index} of the root log");
            say(&mut self.problems, problem);
        }
        Ok(())
    }

    /// Reads a shard up to a size, or to its end.
    async fn shard<L: SessionLog>(
        &mut self,
        leaves: &mut Leaves<'_, L>,
        size: Option<u64>,
    ) -> Result<(), Error> {
        let Tree::Shard(shard) = leaves.tree else { return Ok(()) };
        while size.is_none_or(|size| leaves.computed.size() < size) {
            let expected = leaves.computed.size();
            let Some(leaf) = leaves.next().await? else { break };
            self.place(&leaf, expected, &leaves.name());
            self.session(&leaf, Some(shard), &leaves.name());
        }
        Ok(())
    }

    /// Compares the stored tree with the one that the leaves make.
    async fn compare<L: SessionLog>(&mut self, leaves: &Leaves<'_, L>) -> Result<(), Error> {
        match leaves.log.log_head(leaves.tree, leaves.computed.size()).await {
            Ok(head) if head == leaves.computed.head() => {}
            Ok(_) => {
                say(&mut self.problems, format!("{} is not that of its leaves", leaves.name()))
            }
            Err(Error::Corrupt(problem)) => say(&mut self.problems, problem.to_string()),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
