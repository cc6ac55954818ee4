//! The log of sessions in the journal's file. Its tree is stored node by node and never computed from all leaves.

mod checkpoints;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, params};
use tlog::hash::Hash;
use tlog::tree::{self, Frontier, NodeId, OutOfRange, TreeHead};

use self::checkpoints::{checkpoint, checkpoint_row, cosigned, put_checkpoint};
use super::SqliteStore;
use crate::halt::HaltLeaf;
use crate::id::SessionId;
use crate::item::Item;
use crate::key;
use crate::log::{
    Decision, ENTRIES_MAX, Entry, Extract, Leaf, LeafKey, Proof, Retention, SessionLog, Shard,
    Tree, too_many,
};
use crate::store::Error;

pub use crate::log::{State, Stored};

pub(super) const CREATE: &str = "
CREATE TABLE IF NOT EXISTS log_leaf (
    n INTEGER PRIMARY KEY, session TEXT NOT NULL, leaf BLOB NOT NULL, mark BLOB
);
CREATE INDEX IF NOT EXISTS log_leaf_by_session ON log_leaf(session);
CREATE TABLE IF NOT EXISTS log_node (
    level INTEGER NOT NULL, i INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (level, i)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log_checkpoint (size INTEGER PRIMARY KEY, note TEXT NOT NULL);
";

/// Why the tree cannot be read.
#[derive(Debug, thiserror::Error)]
enum Damaged {
    #[error("the log of sessions lacks node {} of level {}", .0.index, .0.level)]
    Lacks(NodeId),
    #[error("the log of sessions has a node of another form: {} of level {}", .0.index, .0.level)]
    Malformed(NodeId),
    #[error("the log of sessions has a number that is none")]
    Size,
}

/// Failures of reading the tree.
enum Failure {
    Sqlite(rusqlite::Error),
    Damaged(Damaged),
    OutOfRange(OutOfRange),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<OutOfRange> for Failure {
    fn from(error: OutOfRange) -> Self {
        Self::OutOfRange(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Sqlite(error) => error.into(),
            Failure::Damaged(damaged) => Self::Corrupt(damaged.into()),
            Failure::OutOfRange(error) => Self::Corrupt(error.into()),
        }
    }
}

impl SqliteStore {
    /// The state of the log of sessions; `None` in a file of a version without one.
    ///
    /// # Errors
    /// The file cannot be read, or its log is damaged.
    pub async fn log(&self) -> Result<Option<State>, Error> {
        self.read_log(state).await
    }

    /// A session's leaves with their proofs; `None` in a file of a version without a log.
    ///
    /// # Errors
    /// As [`Self::log`].
    pub async fn log_of(&self, session: &SessionId) -> Result<Option<Extract>, Error> {
        let session = session.clone();
        self.read_log(move |connection| extract(connection, &session)).await
    }

    /// Leaves from an index on, in order.
    ///
    /// # Errors
    /// As [`Self::log`].
    pub async fn log_leaves(&self, from: u64, limit: usize) -> Result<Vec<Stored>, Error> {
        let leaves = self.read_log(move |connection| leaves(connection, from, limit)).await?;
        Ok(leaves.unwrap_or_default())
    }

    /// The first of these nodes that the log lacks, or stores with another hash.
    ///
    /// # Errors
    /// As [`Self::log`].
    pub async fn log_differs(&self, nodes: Vec<(NodeId, Hash)>) -> Result<Option<NodeId>, Error> {
        let differs = self.read_log(move |connection| Ok(differs(connection, &nodes)?)).await?;
        Ok(differs.flatten())
    }

    /// All checkpoints, each with the size that it is stored under, newest first.
    ///
    /// # Errors
    /// As [`Self::log`].
    pub async fn log_checkpoints(&self) -> Result<Vec<(Option<u64>, String)>, Error> {
        let read = |connection: &Connection| -> rusqlite::Result<Vec<_>> {
            let sql = "SELECT size, note FROM log_checkpoint ORDER BY size DESC";
            connection.prepare_cached(sql)?.query_map([], checkpoint_row)?.collect()
        };
        Ok(self.read_log(move |connection| Ok(read(connection)?)).await?.unwrap_or_default())
    }

    /// How many rows of the tree are none of its nodes: before its first leaf, or with a node that no leaf completes.
    ///
    /// # Errors
    /// As [`Self::log`].
    pub async fn log_strays(&self) -> Result<u64, Error> {
        Ok(self.read_log(|connection| Ok(strays(connection)?)).await?.unwrap_or_default())
    }

    /// The head of the log when it had this many leaves.
    ///
    /// # Errors
    /// As [`Self::log`], or if the log has fewer.
    pub async fn log_head(&self, size: u64) -> Result<Option<TreeHead>, Error> {
        self.read_log(move |connection| head_at(connection, size)).await
    }

    /// The proof that the log of `new` leaves continues that of `old`.
    ///
    /// # Errors
    /// As [`Self::log_head`].
    pub async fn log_consistency(&self, old: u64, new: u64) -> Result<Vec<Hash>, Error> {
        let proof = self.read_log(move |connection| consistency(connection, old, new)).await?;
        Ok(proof.unwrap_or_default())
    }

    /// Stores a checkpoint of the log, in place of one of the same size.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn put_checkpoint(&self, size: u64, note: String) -> Result<(), Error> {
        self.transact(move |connection| put_checkpoint(connection, size, &note)).await
    }

    async fn read_log<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<Option<T>, Error> {
        self.read(|connection| {
            let there = "SELECT 1 FROM sqlite_master WHERE name = 'log_leaf'";
            let there = connection.prepare_cached(there)?.exists([])?;
            there.then(|| work(connection)).transpose()
        })
        .await
    }
}

/// The file's one tree is the signed one, and it has no shards.
impl SessionLog for SqliteStore {
    fn shards(&self) -> &'static [Shard] {
        &[]
    }

    async fn log(&self) -> Result<Option<State>, Error> {
        Self::log(self).await
    }

    async fn log_of(&self, session: &SessionId) -> Result<Option<Extract>, Error> {
        Self::log_of(self, session).await
    }

    async fn log_leaves(&self, tree: Tree, from: u64, limit: usize) -> Result<Vec<Stored>, Error> {
        match tree {
            Tree::Signed => Self::log_leaves(self, from, limit).await,
            Tree::Shard(_) => Ok(Vec::new()),
        }
    }

    async fn log_size(&self, tree: Tree) -> Result<u64, Error> {
        match tree {
            Tree::Signed => {
                Ok(self.read_log(|connection| Ok(size(connection)?)).await?.unwrap_or_default())
            }
            Tree::Shard(_) => Ok(0),
        }
    }

    async fn log_head(&self, tree: Tree, size: u64) -> Result<TreeHead, Error> {
        let head = match tree {
            Tree::Signed => Self::log_head(self, size).await?,
            Tree::Shard(_) => None,
        };
        match head {
            None if size > 0 => Err(OutOfRange::Older { old: size, new: 0 }.into()),
            head => Ok(head.unwrap_or_else(TreeHead::empty)),
        }
    }

    async fn log_consistency(&self, tree: Tree, old: u64, new: u64) -> Result<Vec<Hash>, Error> {
        match tree {
            Tree::Signed => Self::log_consistency(self, old, new).await,
            Tree::Shard(_) if new == 0 => Ok(Vec::new()),
            Tree::Shard(_) => Err(OutOfRange::Older { old: new, new: 0 }.into()),
        }
    }

    async fn put_checkpoint(&self, size: u64, note: String) -> Result<(), Error> {
        Self::put_checkpoint(self, size, note).await
    }
}

/// A leaf to append.
#[derive(Clone, Debug)]
pub(super) struct NewLeaf {
    /// Under what it is found: a session, or the partition of halts.
    place: String,
    bytes: Vec<u8>,
}

impl NewLeaf {
    /// The leaf of a record; `None` if the log has none for records of its kind.
    pub(super) fn of(item: &Item) -> Option<Self> {
        let of_halts = || {
            let bytes = HaltLeaf::of(item)?.to_bytes();
            Some(Self { place: key::HALTS.to_owned(), bytes })
        };
        Leaf::of(item).as_ref().map(Self::from).or_else(of_halts)
    }
}

impl From<&Leaf> for NewLeaf {
    fn from(leaf: &Leaf) -> Self {
        Self { place: leaf.session.as_str().to_owned(), bytes: leaf.to_bytes() }
    }
}

/// Appends a leaf, unless the log has it.
pub(super) fn append(
    connection: &Connection,
    leaf: &NewLeaf,
    key: Option<&LeafKey>,
) -> Result<(), Error> {
    Ok(try_append(connection, leaf, key)?)
}

fn try_append(
    connection: &Connection,
    NewLeaf { place, bytes }: &NewLeaf,
    key: Option<&LeafKey>,
) -> Result<(), Failure> {
    if is_known(connection, place, bytes)? {
        return Ok(());
    }
    push(connection, place, bytes, key)
}

/// Whether the log has a leaf. Records that are written again after the prune of their session get new leaves.
fn is_known(connection: &Connection, place: &str, leaf: &[u8]) -> rusqlite::Result<bool> {
    let newest_first = "SELECT leaf FROM log_leaf WHERE session = ? ORDER BY n DESC";
    let mut statement = connection.prepare_cached(newest_first)?;
    let mut rows = statement.query([place])?;
    while let Some(row) = rows.next()? {
        let found = bytes(row.get_ref(0)?);
        let is_prune = || {
            let said = Retention::parse(found);
            said.is_some_and(|said| matches!(said.decision, Decision::Prune(_)))
        };
        if found == leaf || is_prune() {
            return Ok(found == leaf);
        }
    }
    Ok(false)
}

/// Appends a leaf of any kind.
pub(super) fn append_bytes(
    connection: &Connection,
    session: &SessionId,
    leaf: &[u8],
    key: Option<&LeafKey>,
) -> Result<(), Error> {
    Ok(push(connection, session.as_str(), leaf, key)?)
}

fn push(
    connection: &Connection,
    place: &str,
    bytes: &[u8],
    key: Option<&LeafKey>,
) -> Result<(), Failure> {
    let mut tree = Frontier::read(size(connection)?, |id| node(connection, id))?;
    let index = tree.size();
    let mark = key.map(|key| key.mark(index, bytes));
    let insert = "INSERT INTO log_leaf (n, session, leaf, mark) VALUES (?, ?, ?, ?)";
    connection.prepare_cached(insert)?.execute(params![number(index), place, bytes, mark])?;
    // A node that is there already is of no leaf. Were it in the way, no session could start.
    let insert = "INSERT INTO log_node (level, i, hash) VALUES (?, ?, ?) \
                  ON CONFLICT (level, i) DO UPDATE SET hash = excluded.hash";
    let mut insert = connection.prepare_cached(insert)?;
    for (id, hash) in tree.append(Hash::leaf(bytes))? {
        insert.execute(params![id.level, number(id.index), hash.as_bytes()])?;
    }
    Ok(())
}

fn state(connection: &Connection) -> Result<State, Error> {
    // The checkpoint first: a leaf is there before its checkpoint.
    let checkpoint = checkpoint(connection)?;
    Ok(State { head: head(connection, size(connection)?)?, checkpoint })
}

/// The root of the log when it had this many leaves.
fn head_at(connection: &Connection, size: u64) -> Result<TreeHead, Error> {
    Ok(head(connection, size)?)
}

fn head(connection: &Connection, size: u64) -> Result<TreeHead, Failure> {
    Ok(TreeHead { size, root: tree::root(size, |id| node(connection, id))? })
}

/// A session's leaves, proven in the tree of the newest checkpoint.
fn extract(connection: &Connection, session: &SessionId) -> Result<Extract, Error> {
    let newest = "SELECT max(n) FROM log_leaf WHERE session = ?";
    let newest: Option<i64> =
        connection.prepare_cached(newest)?.query_row([session.as_str()], |row| row.get(0))?;
    let checkpoint = match cosigned(connection, newest.unwrap_or(i64::MAX))? {
        Some(note) => Some(note),
        None => checkpoint(connection)?,
    };
    let size = checkpoint.as_deref().and_then(Extract::size_of).unwrap_or(0);
    let found = leaves_of(connection, session)?;
    if found.len() > ENTRIES_MAX {
        return Err(too_many(session));
    }
    let entries = prove(connection, found, size)?;
    Ok(Extract { checkpoint, entries })
}

/// A session's leaves, in the order of the log; at most one more than are allowed.
fn leaves_of(
    connection: &Connection,
    session: &SessionId,
) -> rusqlite::Result<Vec<(i64, Vec<u8>)>> {
    let limit = ENTRIES_MAX + 1;
    let sql = format!("SELECT n, leaf FROM log_leaf WHERE session = ? ORDER BY n LIMIT {limit}");
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement
        .query_map([session.as_str()], |row| Ok((row.get(0)?, bytes(row.get_ref(1)?).to_vec())))?;
    found.collect()
}

fn prove(
    connection: &Connection,
    found: Vec<(i64, Vec<u8>)>,
    size: u64,
) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    for (n, leaf) in found {
        let index = u64::try_from(n).map_err(|_| Failure::Damaged(Damaged::Size))?;
        let prove = || tree::inclusion_proof(index, size, |id| node(connection, id));
        let path = (index < size).then(prove).transpose()?;
        entries.push(Entry { index, leaf, proof: path.map(Proof::Signed) });
    }
    Ok(entries)
}

/// The proof that the log of `new` leaves continues that of `old`.
fn consistency(connection: &Connection, old: u64, new: u64) -> Result<Vec<Hash>, Error> {
    let proof: Result<_, Failure> = tree::consistency_proof(old, new, |id| node(connection, id));
    Ok(proof?)
}

/// Leaves from an index on.
fn leaves(connection: &Connection, from: u64, limit: usize) -> Result<Vec<Stored>, Error> {
    let sql = "SELECT n, session, leaf, mark FROM log_leaf WHERE n >= ? ORDER BY n LIMIT ?";
    let read = || -> rusqlite::Result<Vec<Stored>> {
        let mut statement = connection.prepare_cached(sql)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![number(from), limit], |row| {
            let index = u64::try_from(row.get::<_, i64>(0)?).unwrap_or(u64::MAX);
            // Only a text is found by the session's queries.
            let session = row.get_ref(1)?.as_str().unwrap_or_default().to_owned();
            let (leaf, mark) = (bytes(row.get_ref(2)?).to_vec(), bytes(row.get_ref(3)?).to_vec());
            Ok(Stored { index, session, bytes: leaf, mark })
        })?;
        rows.collect()
    };
    Ok(read()?)
}

/// The number of leaves.
fn size(connection: &Connection) -> Result<u64, Failure> {
    let newest: Option<i64> = connection
        .prepare_cached("SELECT max(n) FROM log_leaf")?
        .query_row([], |row| row.get(0))?;
    let size = newest.map_or(Some(0), |newest| newest.checked_add(1));
    size.and_then(|size| u64::try_from(size).ok()).ok_or(Failure::Damaged(Damaged::Size))
}

/// Counts what the leaves do not give. The nodes of a level have indexes from 0 on.
fn strays(connection: &Connection) -> Result<u64, Failure> {
    // All counts are of one moment.
    let connection = connection.unchecked_transaction()?;
    let size = size(&connection)?;
    let before: i64 =
        connection.query_row("SELECT count(*) FROM log_leaf WHERE n < 0", [], |row| row.get(0))?;
    let mut statement = connection.prepare(
        "SELECT level, count(*), sum(typeof(i) <> 'integer' OR i < 0 OR i >= (?1 >> level)) \
         FROM log_node WHERE typeof(level) = 'integer' AND level BETWEEN 0 AND 62 GROUP BY level",
    )?;
    let levels = statement
        .query_map([number(size)], |row| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)))?;
    let (mut on_levels, mut strays) = (0, before);
    for level in levels {
        let (nodes, beyond) = level?;
        on_levels += nodes;
        strays += beyond;
    }
    let nodes: i64 = connection.query_row("SELECT count(*) FROM log_node", [], |row| row.get(0))?;
    Ok(u64::try_from(strays + nodes - on_levels).unwrap_or(u64::MAX))
}

fn differs(connection: &Connection, nodes: &[(NodeId, Hash)]) -> rusqlite::Result<Option<NodeId>> {
    let sql = "SELECT 1 FROM log_node WHERE level = ? AND i = ? AND hash = ?";
    let mut statement = connection.prepare_cached(sql)?;
    for (id, hash) in nodes {
        if !statement.exists(params![id.level, number(id.index), hash.as_bytes()])? {
            return Ok(Some(*id));
        }
    }
    Ok(None)
}

fn node(connection: &Connection, id: NodeId) -> Result<Hash, Failure> {
    let sql = "SELECT hash FROM log_node WHERE level = ? AND i = ?";
    let found: Option<Vec<u8>> = connection
        .prepare_cached(sql)?
        .query_row(params![id.level, number(id.index)], |row| Ok(bytes(row.get_ref(0)?).to_vec()))
        .optional()?;
    let bytes = found.ok_or(Failure::Damaged(Damaged::Lacks(id)))?;
    Hash::from_slice(&bytes).map_err(|_| Failure::Damaged(Damaged::Malformed(id)))
}

/// The bytes of a column, whatever its type: a damaged log is read as far as it can be.
pub(super) fn bytes(column: ValueRef<'_>) -> &[u8] {
    match column {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        _ => &[],
    }
}

/// A number in SQLite; the tree has at most as many leaves as fit.
fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
