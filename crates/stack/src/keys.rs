//! The key that signs the log of sessions of one journal. It is outside the journal's folder: whoever can write the
//! journal cannot sign.
//!
//! Each journal has a folder of its own here, named by a hash of the journal's path, with the signing key, the public
//! keys (newest first) and a copy of the newest checkpoint. The copy shows when a journal is set back.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use journal::item::Hash;
use journal::log::LeafKey;
use tlog::key::{KeyName, SignerKey, Verifier as _, VerifierKey};

use crate::checkpoints::Signing;

/// The signing key: readable by this user alone.
const SIGNING_KEY: &str = "signing.key";

/// The secret that marks leaves, in hexadecimal. It stays when the signing key is replaced, and is replaced with
/// the log.
const LEAF_KEY: &str = "leaf.key";

/// The public keys, newest first, one a line.
const PUBLIC_KEYS: &str = "public.keys";

/// The newest checkpoint.
const CHECKPOINT: &str = "checkpoint";

/// The path of the journal's folder.
const JOURNAL: &str = "journal";

/// Characters of a hash that name a journal: 64 bits.
const NAME_CHARS: usize = 16;

/// Largest file that is read here, in bytes: a checkpoint with its cosignatures, or a hundred keys.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Most public keys of a journal. `rotate` refuses to add another.
pub const KEYS_MAX: usize = 100;

/// The keys of one journal.
#[derive(Clone, Debug)]
pub struct Keys {
    folder: PathBuf,
    journal: PathBuf,
}

/// Why the keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot use {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is not a signing key", .0.display())]
    NotAKey(PathBuf),
    #[error("{}: {source}", path.display())]
    NotKeys {
        path: PathBuf,
        #[source]
        source: InvalidKeys,
    },
    /// Others could have read or replaced the key.
    #[error("{} is accessible to other users; make it private with: chmod 600", .0.display())]
    Exposed(PathBuf),
    #[error("{} already has {KEYS_MAX} keys", .0.display())]
    TooMany(PathBuf),
    /// The operating system has no random numbers.
    #[error("cannot draw a random key: {0}")]
    Random(getrandom::Error),
}

/// A text that is not a list of public keys.
#[derive(Debug, thiserror::Error)]
pub enum InvalidKeys {
    #[error("it has no key")]
    Empty,
    #[error("line {line} is not a public key")]
    Line {
        /// From 1.
        line: usize,
    },
}

/// Reads public keys, one a line.
///
/// # Errors
/// A line is not a key, or there is none.
pub fn verifiers(text: &str) -> Result<Vec<VerifierKey>, InvalidKeys> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let key = |(at, line): (usize, &str)| {
        line.trim().parse().map_err(|_| InvalidKeys::Line { line: at + 1 })
    };
    let keys = lines.take(KEYS_MAX).map(key).collect::<Result<Vec<_>, _>>()?;
    if keys.is_empty() { Err(InvalidKeys::Empty) } else { Ok(keys) }
}

impl Keys {
    /// The keys of the journal in the folder `journal`, in the folder `keys` of all keys. Reads nothing.
    pub fn of(keys: &Path, journal: &Path) -> Self {
        let journal = journal.canonicalize().unwrap_or_else(|_| journal.to_owned());
        let name = Hash::of(journal.as_os_str().as_encoded_bytes());
        Self { folder: keys.join(&name.as_str()[..NAME_CHARS]), journal }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The key that signs; `None` if there is none yet.
    ///
    /// # Errors
    /// The key cannot be read, or is exposed.
    pub fn signer(&self) -> Result<Option<SignerKey>, Error> {
        let path = self.folder.join(SIGNING_KEY);
        let Some(text) = read_private(&path)? else { return Ok(None) };
        text.trim().parse().map(Some).map_err(|_| Error::NotAKey(path))
    }

    /// The key that signs, made now if there is none. A secret that marks leaves is made, too: if it was lost, leaves
    /// that are not yet signed stay so.
    ///
    /// # Errors
    /// As [`Self::signer`], or the key cannot be written.
    pub fn signer_or_new(&self) -> Result<SignerKey, Error> {
        match self.signer()? {
            Some(key) => {
                self.have_leaf_key()?;
                Ok(key)
            }
            None => self.make(self.fresh_name()?),
        }
    }

    fn fresh_name(&self) -> Result<KeyName, Error> {
        let name = format!("daybook.local/{}", hex::encode(random::<8>()?));
        name.parse().map_err(|_| Error::NotAKey(self.folder.clone()))
    }

    /// Begins a log under a new name, with a key of its own, for a journal that no longer continues what was signed here.
    /// Removes the former signing key from this machine; a copy of it can still sign. Its public keys stay, and so does its
    /// newest checkpoint, under another name. No stack may run: it would mark leaves with the former secret.
    ///
    /// # Errors
    /// As [`Self::rotate`].
    pub fn begin_log(&self) -> Result<SignerKey, Error> {
        // Leaves of the former log are marked for the same places, and must not be taken for those of this one.
        let leaf_key = self.folder.join(LEAF_KEY);
        match fs::remove_file(&leaf_key) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(Error::File { path: leaf_key, source });
            }
            _ => {}
        }
        let key = self.make(self.fresh_name()?)?;
        let checkpoint = self.folder.join(CHECKPOINT);
        // With a crash before this, the stack signs nothing, and this can be done again.
        if let Some(note) = self.checkpoint()? {
            let name =
                format!("{CHECKPOINT}.{}", &Hash::of(note.as_bytes()).as_str()[..NAME_CHARS]);
            let former = self.folder.join(name);
            fs::rename(&checkpoint, &former)
                .map_err(|source| Error::File { path: former, source })?;
        }
        Ok(key)
    }

    /// The keys of the journal in the folder `journal`, if there is a signing key or one can be made. Without one,
    /// sessions run all the same, and the log says that it is not signed.
    pub(crate) fn usable(keys: Option<&Path>, journal: &Path, signing: &Signing) -> Option<Self> {
        let Some(keys) = keys else {
            signing.set(Some("no folder for its key is set".to_owned()));
            return None;
        };
        let keys = Self::of(keys, journal);
        match keys.signer_or_new() {
            Ok(_) => Some(keys),
            Err(error) => {
                let error = crate::stack::chain(&error);
                tracing::warn!(%error, "The log of sessions is not signed: its key cannot be used.");
                signing.set(Some(error));
                None
            }
        }
    }

    /// The secret that marks leaves; `None` if there is none yet.
    ///
    /// # Errors
    /// As [`Self::signer`].
    pub fn leaf_key(&self) -> Result<Option<LeafKey>, Error> {
        let path = self.folder.join(LEAF_KEY);
        let Some(text) = read_private(&path)? else { return Ok(None) };
        let secret = hex::decode(text.trim()).ok().and_then(|bytes| bytes.try_into().ok());
        secret.map(|secret| Some(LeafKey::new(secret))).ok_or(Error::NotAKey(path))
    }

    /// Replaces the signing key. The public keys of all earlier ones stay, so that earlier checkpoints still verify.
    ///
    /// # Errors
    /// As [`Self::signer_or_new`], or if there are [`KEYS_MAX`] keys.
    pub fn rotate(&self) -> Result<SignerKey, Error> {
        match self.signer()? {
            Some(key) => self.make(key.verifier().name().clone()),
            None => self.signer_or_new(),
        }
    }

    /// The public keys, newest first; none if there is no key yet.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn verifiers(&self) -> Result<Vec<VerifierKey>, Error> {
        let path = self.folder.join(PUBLIC_KEYS);
        let Some(text) = read(&path)? else { return Ok(Vec::new()) };
        verifiers(&text).map_err(|source| Error::NotKeys { path, source })
    }

    /// The newest checkpoint that was signed on this machine.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn checkpoint(&self) -> Result<Option<String>, Error> {
        read(&self.folder.join(CHECKPOINT))
    }

    /// Keeps a checkpoint.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&self, note: &str) -> Result<(), Error> {
        replace(&self.folder.join(CHECKPOINT), note)
    }

    fn make(&self, name: KeyName) -> Result<SignerKey, Error> {
        let known = self.verifiers()?;
        if known.len() >= KEYS_MAX {
            return Err(Error::TooMany(self.folder.clone()));
        }
        let key = SignerKey::from_seed(name, &random()?);
        let public: Vec<_> =
            std::iter::once(key.verifier()).chain(&known).map(ToString::to_string).collect();
        private_folder(&self.folder)?;
        self.have_leaf_key()?;
        replace(&self.folder.join(JOURNAL), &format!("{}\n", self.journal.display()))?;
        // Before the signing key: a signature by a key that nobody knows would look forged.
        replace(&self.folder.join(PUBLIC_KEYS), &format!("{}\n", public.join("\n")))?;
        replace(&self.folder.join(SIGNING_KEY), &format!("{}\n", key.to_secret_text()))?;
        Ok(key)
    }

    fn have_leaf_key(&self) -> Result<(), Error> {
        if self.leaf_key()?.is_some() {
            return Ok(());
        }
        let secret = hex::encode(random::<32>()?);
        replace(&self.folder.join(LEAF_KEY), &format!("{secret}\n"))
    }
}

/// Reads a small file; `None` if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Error> {
    let fail = |source| Error::File { path: path.to_owned(), source };
    match fs::metadata(path) {
        Ok(found) if found.is_file() && found.len() <= FILE_BYTES_MAX => {
            fs::read_to_string(path).map(Some).map_err(fail)
        }
        Ok(_) => Err(fail(io::Error::other("it is no file, or larger than any of its kind"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fail(error)),
    }
}

/// Reads a secret, which no other user may be able to read.
pub(crate) fn read_private(path: &Path) -> Result<Option<String>, Error> {
    let text = read(path)?;
    if text.is_some() && is_exposed(path)? {
        return Err(Error::Exposed(path.to_owned()));
    }
    Ok(text)
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(Error::Random)?;
    Ok(bytes)
}

pub(crate) fn private_folder(folder: &Path) -> Result<(), Error> {
    files::private::folder(folder).map_err(|source| Error::File { path: folder.to_owned(), source })
}

/// Replaces a file by one that only this user can read. A crash leaves the old file or the new one.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let fail = |source| Error::File { path: path.to_owned(), source };
    let beside = path.with_extension("new");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside).map_err(fail)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(fail)?;
    fs::rename(&beside, path).map_err(fail)
}

#[cfg(unix)]
fn is_exposed(path: &Path) -> Result<bool, Error> {
    use std::os::unix::fs::PermissionsExt as _;
    let found =
        fs::metadata(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
    Ok(found.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_exposed(_: &Path) -> Result<bool, Error> {
    Ok(false)
}
