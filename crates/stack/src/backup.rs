//! A journal as one file, with the state of its sessions' MCP servers; and the way back into a data folder.
//!
//! Until it is whole, a file has another name ([`Part`]), so that a crash leaves nothing under its own.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use files::lock::Lock;
use files::{private, read};
use graph::agent::Agent;
use journal::clock::Clock;
use journal::log::walk;
use rusqlite::{Connection, OptionalExtension as _, params};
use tlog::checkpoint::SignedCheckpoint;
use tlog::tree::TreeHead;

use crate::folder::{self, FolderLock};
use crate::keys::Keys;
use crate::stack::{JOURNAL_FILE, StartError, chain};
use crate::store::Database;

/// Largest file of a server's state, in bytes: below SQLite's limit of a value, a billion.
const STATE_FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Most files of servers' states.
const STATE_FILES_MAX: usize = 1_000_000;

/// How deep folders of a server's state are nested at most.
const STATE_DEPTH_MAX: usize = 16;

/// What SQLite has beside a database.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The journal while it is being restored, in the data folder.
const RESTORED: &str = "journal.restored";

/// The servers' states meanwhile, in the data folder.
const RESTORED_STATE: &str = "state.restored";

/// The table of files, which `sqlite3 FILE -A` lists and unpacks.
///
/// Source: SQLite, "SQLite Archive Files". Our data is not compressed, as `sz` says.
const CREATE_FILES: &str = "
CREATE TABLE sqlar (name TEXT PRIMARY KEY, mode INT, mtime INT, sz INT, data BLOB)
";

/// A regular file that its user alone may read, as SQLite's archives say it.
const FILE_MODE: i64 = 0o100_600;

/// Why a backup cannot be written or restored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot use {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} exists", .0.display())]
    Exists(PathBuf),
    #[error("another program writes {}", .0.display())]
    Written(PathBuf),
    #[error("{} has a journal", .0.display())]
    HasJournal(PathBuf),
    #[error("another stack uses the journal {}", .0.display())]
    InUse(PathBuf),
    #[error(transparent)]
    Folder(#[from] StartError),
    #[error("cannot read or write {}", path.display())]
    Sqlite {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("the state of an MCP server is too large: {what} is more than {most}")]
    State { what: String, most: u64 },
    #[error("the backup has {0}, which no backup of Daybook has")]
    Foreign(String),
}

fn of_file(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::File { path: path.to_owned(), source }
}

fn of_sqlite(path: &Path) -> impl Fn(rusqlite::Error) -> Error {
    move |source| Error::Sqlite { path: path.to_owned(), source }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// The folders in a data folder in which the MCP servers of these agents keep state, one for each server.
pub fn state_folders(agents: &[Agent]) -> BTreeSet<&'static str> {
    let servers =
        agents.iter().flat_map(|agent| agent.versions()).flat_map(|agent| agent.profile().servers);
    servers.filter(|server| server.state_option.is_some()).map(|server| server.name).collect()
}

/// A file that is being written under another name, for this user alone. Dropping it removes it.
#[derive(Debug)]
pub struct Part {
    path: PathBuf,
    target: PathBuf,
    /// Keeps others from writing it at the same time.
    lock: Option<Lock>,
}

impl Part {
    /// Begins `target`, as `target.part`. What an interrupted attempt left there is dropped.
    ///
    /// # Errors
    /// The target exists, another program writes it, or its folder cannot be written.
    pub fn begin(target: &Path) -> Result<Self, Error> {
        let path = with_ending(target, ".part");
        Self::at(path, target)
    }

    fn at(path: PathBuf, target: &Path) -> Result<Self, Error> {
        if fs::symlink_metadata(target).is_ok() {
            return Err(Error::Exists(target.to_owned()));
        }
        Self::over(path, target)
    }

    /// Begins a file that may take the place of another.
    fn over(path: PathBuf, target: &Path) -> Result<Self, Error> {
        drop(private::kept(&path).map_err(of_file(&path))?);
        let lock = Lock::take(&path).map_err(of_file(&path))?;
        let lock = lock.ok_or_else(|| Error::Written(path.clone()))?;
        // A journal of an interrupted attempt would be rolled back into this one.
        BESIDE.iter().try_for_each(|ending| remove(&with_ending(&path, ending)))?;
        lock.file().set_len(0).map_err(of_file(&path))?;
        Ok(Self { path, target: target.to_owned(), lock: Some(lock) })
    }

    /// Where it is now.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name, durably. It must not be open in this process.
    ///
    /// # Errors
    /// It cannot be synced or renamed; then it is removed.
    pub fn finish(mut self) -> Result<(), Error> {
        if let Some(lock) = &self.lock {
            lock.file().sync_all().map_err(of_file(&self.path))?;
        }
        fs::rename(&self.path, &self.target).map_err(of_file(&self.target))?;
        self.lock = None;
        let folder = folder_of(&self.target);
        private::sync_folder(folder).map_err(of_file(folder))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.lock.take().is_some() {
            // What cannot be removed now, the next attempt drops.
            let _ = fs::remove_file(&self.path);
            BESIDE.iter().for_each(|ending| drop(remove(&with_ending(&self.path, ending))));
        }
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(of_file(path)(error)),
        _ => Ok(()),
    }
}

/// Adds the state of MCP servers to a copy of the journal; returns the number of files. It is read after the journal was
/// copied, so that it has everything that the copied records speak of.
///
/// # Errors
/// A file is too large, or the copy cannot be written.
pub fn add_state(copy: &Path, data: &Path, folders: &BTreeSet<&str>) -> Result<usize, Error> {
    let fail = of_sqlite(copy);
    let mut found = Vec::new();
    for folder in folders {
        list(&data.join(folder), Path::new(folder), 0, &mut found)?;
    }
    if found.is_empty() {
        return Ok(0);
    }
    let mut connection = Connection::open(copy).map_err(&fail)?;
    let transaction = connection.transaction().map_err(&fail)?;
    transaction.execute_batch(CREATE_FILES).map_err(&fail)?;
    let mut added = 0;
    for name in &found {
        let path = data.join(name);
        let bytes = match read::bytes(&path, STATE_FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            // Its server removed it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(of_file(&path)(error)),
        };
        let insert =
            "INSERT INTO sqlar (name, mode, mtime, sz, data) VALUES (?1, ?2, 0, length(?3), ?3)";
        let values = params![name.to_string_lossy(), FILE_MODE, bytes];
        transaction.execute(insert, values).map_err(&fail)?;
        added += 1;
    }
    transaction.commit().map_err(&fail)?;
    connection.close().map_err(|(_, error)| fail(error))?;
    Ok(added)
}

/// The regular files below a folder, by their names in the data folder. No link is followed.
fn list(folder: &Path, name: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    check_state("the depth of a folder", depth as u64, STATE_DEPTH_MAX as u64)?;
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(of_file(folder)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(of_file(folder))?;
        let (path, name) = (entry.path(), name.join(entry.file_name()));
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() {
            list(&path, &name, depth + 1, found)?;
        } else if metadata.is_file() {
            check_state("a file", metadata.len(), STATE_FILE_BYTES_MAX)?;
            found.push(name);
        }
    }
    check_state("the number of files", found.len() as u64, STATE_FILES_MAX as u64)
}

fn check_state(what: &str, found: u64, most: u64) -> Result<(), Error> {
    if found > most { Err(Error::State { what: what.to_owned(), most }) } else { Ok(()) }
}

/// A restored journal before it is in its place.
#[derive(Debug)]
pub struct Restore {
    data: PathBuf,
    part: Part,
    lock: FolderLock,
}

/// The files of a backup beside its journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unpacked {
    pub files: usize,
    /// Of servers that no agent of this program has.
    pub skipped: usize,
}

impl Restore {
    /// Creates and locks the data folder.
    ///
    /// # Errors
    /// A stack uses it, or it has a journal that is not to be replaced.
    pub fn begin(data: &Path, is_replacing: bool) -> Result<Self, Error> {
        let (data, lock) = folder::take(data)?;
        let journal = data.join(JOURNAL_FILE);
        if !is_replacing && fs::symlink_metadata(&journal).is_ok() {
            return Err(Error::HasJournal(data));
        }
        let part = Part::over(data.join(RESTORED), &journal)?;
        let state = data.join(RESTORED_STATE);
        match fs::remove_dir_all(&state) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(of_file(&state)(error));
            }
            _ => Ok(Self { data, part, lock }),
        }
    }

    /// The journal's file for now.
    pub fn journal(&self) -> &Path {
        self.part.path()
    }

    /// The data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Takes the servers' states out of the copied journal, and refuses what no backup has.
    ///
    /// # Errors
    /// The file is not a backup, or the folder cannot be written.
    pub fn unpack(&self, folders: &BTreeSet<&str>) -> Result<Unpacked, Error> {
        let fail = of_sqlite(self.journal());
        let connection = Connection::open(self.journal()).map_err(&fail)?;
        let trigger = "SELECT name FROM sqlite_master WHERE type = 'trigger'";
        let trigger: Option<String> =
            connection.query_row(trigger, [], |row| row.get(0)).optional().map_err(&fail)?;
        if let Some(name) = trigger {
            return Err(Error::Foreign(format!("the trigger {name}")));
        }
        let mut unpacked = Unpacked::default();
        if connection.table_exists(None, "sqlar").map_err(&fail)? {
            unpacked = self.unpack_all(&connection, folders)?;
            connection.execute_batch("DROP TABLE sqlar").map_err(&fail)?;
        }
        connection.close().map_err(|(_, error)| fail(error))?;
        Ok(unpacked)
    }

    fn unpack_all(
        &self,
        connection: &Connection,
        folders: &BTreeSet<&str>,
    ) -> Result<Unpacked, Error> {
        let fail = of_sqlite(self.journal());
        let mut statement = connection.prepare("SELECT name, data FROM sqlar").map_err(&fail)?;
        let mut rows = statement.query([]).map_err(&fail)?;
        let mut unpacked = Unpacked::default();
        while let Some(row) = rows.next().map_err(&fail)? {
            let name: String = row.get(0).map_err(&fail)?;
            let bytes: Vec<u8> = row.get(1).map_err(&fail)?;
            match self.unpack_one(&name, &bytes, folders)? {
                true => unpacked.files += 1,
                false => unpacked.skipped += 1,
            }
        }
        Ok(unpacked)
    }

    /// Returns whether it belongs to one of the folders.
    fn unpack_one(
        &self,
        name: &str,
        bytes: &[u8],
        folders: &BTreeSet<&str>,
    ) -> Result<bool, Error> {
        let path = Path::new(name);
        let mut parts = path.components().map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        });
        let first = parts.next().flatten();
        if first.is_none() || !parts.all(|part| part.is_some()) || path.components().count() < 2 {
            return Err(Error::Foreign(format!("the file {name:?}")));
        }
        if !first.is_some_and(|first| folders.contains(first)) {
            return Ok(false);
        }
        let path = self.data.join(RESTORED_STATE).join(path);
        let folder = folder_of(&path);
        private::folder(folder).map_err(of_file(folder))?;
        private::write(&path, bytes).map_err(of_file(&path))?;
        Ok(true)
    }

    /// Puts everything in its place. Returns where the journal is that was there before.
    ///
    /// # Errors
    /// A stack uses the journal by another path, or the folder cannot be written.
    pub fn finish(self) -> Result<Option<PathBuf>, Error> {
        let Self { data, part, lock } = self;
        let journal = data.join(JOURNAL_FILE);
        let ending = format!(".replaced-{}", Clock::system().now().seconds());
        let former = fs::symlink_metadata(&journal).is_ok();
        let former = former.then(|| set_aside(&journal, &ending)).transpose()?;
        for folder in fs::read_dir(data.join(RESTORED_STATE)).into_iter().flatten().flatten() {
            let place = data.join(folder.file_name());
            if fs::symlink_metadata(&place).is_ok() {
                let aside = with_ending(&place, &ending);
                fs::rename(&place, &aside).map_err(of_file(&place))?;
            }
            fs::rename(folder.path(), &place).map_err(of_file(&place))?;
        }
        // Nothing is in it now.
        let _ = fs::remove_dir(data.join(RESTORED_STATE));
        part.finish()?;
        lock.is_stopped().map_err(of_file(&data))?;
        Ok(former)
    }
}

/// Gives a journal a second name, and takes what is beside it to that name: SQLite would put the write-ahead log of one
/// database into another that has its name. The journal is in its place all the time.
fn set_aside(journal: &Path, ending: &str) -> Result<PathBuf, Error> {
    let lock = Lock::take(journal).map_err(of_file(journal))?;
    let _lock = lock.ok_or_else(|| Error::InUse(journal.to_owned()))?;
    // A damaged one keeps its write-ahead log; of an empty one, SQLite would remove it.
    let is_empty = fs::metadata(journal).is_ok_and(|found| found.len() == 0);
    if !is_empty && let Ok(connection) = Connection::open(journal) {
        let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
    let aside = second_name(journal, ending)?;
    for beside in BESIDE {
        match fs::rename(with_ending(journal, beside), with_ending(&aside, beside)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(of_file(journal)(error));
            }
            _ => {}
        }
    }
    Ok(aside)
}

/// Most names that are tried, if restores follow one another within a second.
const NAMES_MAX: u32 = 100;

fn second_name(journal: &Path, ending: &str) -> Result<PathBuf, Error> {
    let mut aside = with_ending(journal, ending);
    for n in 2..=NAMES_MAX {
        match fs::hard_link(journal, &aside) {
            Ok(()) => return Ok(aside),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                aside = with_ending(journal, &format!("{ending}-{n}"));
            }
            Err(error) => return Err(of_file(&aside)(error)),
        }
    }
    Err(Error::Exists(aside))
}

/// How the log of a journal stands to the newest checkpoint that was signed for its folder on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum History {
    /// None was signed.
    Unsigned,
    /// It continues it.
    Continued,
    /// It does not, because of this. A stack signs it no more.
    Broken(String),
}

impl History {
    /// Compares a journal with the checkpoint that the keys of its folder have.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub async fn of(keys: &Keys, store: &Database) -> Result<Self, String> {
        let Some(kept) = keys.checkpoint().map_err(|error| chain(&error))? else {
            return Ok(Self::Unsigned);
        };
        let kept = SignedCheckpoint::parse(kept.as_bytes()).map_err(|error| chain(&error))?;
        let now = store.log().await.map_err(|error| chain(&error))?;
        let now = now.map_or_else(TreeHead::empty, |state| state.head);
        let old = kept.checkpoint().head();
        match walk::continues(store, &old, &now).await.map_err(|error| chain(&error))? {
            None => Ok(Self::Continued),
            Some(problem) => Ok(Self::Broken(problem)),
        }
    }
}
