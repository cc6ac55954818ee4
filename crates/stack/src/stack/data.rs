//! The data folder of a stack: its lock, its journal, and how both are left.

use std::path::PathBuf;

use files::lock::Lock;
use journal::clock::Clock;
use journal::sqlite::OpenError;
use tokio_util::sync::CancellationToken;

use super::{Config, Isolation, JOURNAL_FILE, StartError, chain};
use crate::checkpoints::Signing;
use crate::folder::{self, FolderLock, Missing};
use crate::keys::Keys;
use crate::store::Database;

/// The data folder of a stack, and its locks.
#[derive(Debug)]
pub(super) struct Data {
    /// An absolute path.
    pub(super) folder: PathBuf,
    lock: FolderLock,
    _file: Lock,
}

impl Data {
    /// Opens the journal, and the keys of its log of sessions.
    ///
    /// # Errors
    /// Another stack uses the folder or the file, or the journal cannot be opened or is missing.
    pub(super) async fn open(
        config: &Config,
        signing: &Signing,
    ) -> Result<(Self, Database, Option<Keys>), StartError> {
        let (folder, lock) = folder::take(&config.data)?;
        folder::remove_expired(&folder, config.ttl_days);
        let keys = Keys::usable(config.keys.as_deref(), &folder, signing);
        let leaf_key = keys.as_ref().and_then(|keys| keys.leaf_key().ok().flatten());
        let journal = folder.join(JOURNAL_FILE);
        let is_signed = keys.as_ref().is_some_and(|keys| matches!(keys.checkpoint(), Ok(Some(_))));
        question(lock.missing_file(&journal, is_signed), config)?;
        let (store, file) = Database::open_alone(&journal, config.durability, leaf_key)?;
        question(lock.missing_end(&store).await, config)?;
        if config.encrypt {
            store.encrypt_new_sessions().map_err(OpenError::Keys)?;
        }
        if store.has_keys() && matches!(config.isolation, Isolation::Processes { .. }) {
            return Err(StartError::EncryptedIsolation);
        }
        Ok((Self { folder, lock, _file: file }, store, keys))
    }

    /// Journals destroyed keys that a former stack did not, and destroys those that an older file of keys has brought
    /// back.
    pub(super) async fn finish_erasures(
        &self,
        store: &Database,
        clock: &Clock,
    ) -> Result<(), StartError> {
        if !store.has_keys() {
            return Ok(());
        }
        if !store.encrypts() {
            tracing::warn!("This folder has encrypted sessions, but new ones are not encrypted.");
        }
        let fail = |source| StartError::Folder { path: self.folder.clone(), source };
        for (session, erasure) in store.unjournaled()? {
            folder::remove_state(&self.folder, &session).map_err(fail)?;
            store.release_deduplication(&session).await?;
            control::erase::journal(store, clock, &session, &erasure).await?;
        }
        for session in control::erase::destroy_again(store).await? {
            tracing::warn!(session_id = %session, "Destroyed the key of an erased session again.");
        }
        Ok(())
    }

    /// Notes again and again how much the journal holds, until `stop`.
    pub(super) fn noting(
        &self,
        store: &Database,
        stop: &CancellationToken,
    ) -> impl Future<Output = ()> + use<> {
        let noting = folder::keep_noting(self.lock.keeper(), store.clone());
        let noting = stop.clone().run_until_cancelled_owned(noting);
        async move {
            let _ = noting.await;
        }
    }

    /// Puts the write-ahead log into the file, so that a copy of the file alone is whole, and notes it.
    pub(super) async fn close(&self, store: &Database) {
        match store.empty_log().await {
            Ok(true) => {
                if let Err(error) = self.lock.is_stopped() {
                    tracing::warn!(%error, "The data folder's lock file cannot be written.");
                }
            }
            Ok(false) => tracing::warn!(
                "Another program reads the journal, so its newest records stay in its write-ahead log; copy both."
            ),
            Err(error) => {
                tracing::warn!(error = %chain(&error), "The write-ahead log was not emptied.");
            }
        }
    }
}

/// Asks before a start without a journal that there was: unless the loss is accepted, it is an error.
fn question(missing: Option<Missing>, config: &Config) -> Result<(), Missing> {
    match missing {
        Some(missing) if config.accepts_loss => {
            tracing::warn!(%missing, "The stack starts all the same.");
            Ok(())
        }
        Some(missing) => Err(missing),
        None => Ok(()),
    }
}
