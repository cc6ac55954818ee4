//! The encrypted contents of sessions in a journal's file.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::SqliteStore;
use super::session_keys::{KeysError, SessionKeys, beside};
use crate::cipher::{self, KeyRefused, KeyState, SessionKey, Unjournaled};
use crate::id::SessionId;
use crate::item::Item;
use crate::key;
use crate::store::Error;

/// Starts a text that [`SqliteStore::encrypt_text`] encrypted; no JSON starts so.
const TEXT: &str = "encrypted 1 ";

/// The context of such a text, before its place.
const CONTEXT: &str = "daybook text 1";

const UNENCRYPTED: &str = "this session is encrypted, but the record is not";

impl SqliteStore {
    /// Gives a key to every session that starts from now on. Creates the file of keys beside the journal.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn encrypt_new_sessions(&self) -> Result<(), KeysError> {
        if self.shared.keys.get().is_none() {
            let keys = SessionKeys::create(&beside(&self.shared.path))?;
            let _ = self.shared.keys.set(keys);
        }
        let _ = self.shared.encrypts.set(());
        Ok(())
    }

    /// Whether sessions that start get a key.
    pub fn encrypts(&self) -> bool {
        self.shared.encrypts.get().is_some()
    }

    /// Creates the keys of sessions that are about to start, if they get one. Durable on return.
    ///
    /// # Errors
    /// The file of keys cannot be written.
    pub fn create_keys(&self, sessions: &[SessionId]) -> Result<(), Error> {
        match self.keys()?.filter(|_| self.encrypts() && !sessions.is_empty()) {
            Some(keys) => keys.create_keys(sessions),
            None => Ok(()),
        }
    }

    /// The destroyed keys of which the journal may not tell yet.
    ///
    /// # Errors
    /// The file of keys cannot be read.
    pub fn unjournaled(&self) -> Result<Vec<Unjournaled>, Error> {
        self.keys()?.map_or_else(|| Ok(Vec::new()), SessionKeys::unjournaled)
    }

    /// The key of a session's contents.
    ///
    /// # Errors
    /// The file of keys cannot be read.
    pub fn key_state(&self, session: &SessionId) -> Result<KeyState, Error> {
        self.keys()?.map_or(Ok(KeyState::None), |keys| keys.state(session))
    }

    /// Opens the file of keys for writing, if there is one.
    pub(super) fn find_keys(&self) -> Result<(), KeysError> {
        if beside(&self.shared.path).exists() {
            let keys = SessionKeys::create(&beside(&self.shared.path))?;
            let _ = self.shared.keys.set(keys);
        }
        Ok(())
    }

    /// The file of keys; `None` if there is none. Beside a journal that is opened read-only, a stack may create it later.
    pub(super) fn keys(&self) -> Result<Option<&SessionKeys>, Error> {
        let path = beside(&self.shared.path);
        if self.shared.keys.get().is_none() && self.shared.writer.is_none() && path.exists() {
            let keys = SessionKeys::read_only(&path);
            let _ = self.shared.keys.set(keys.map_err(|error| Error::Unavailable(error.into()))?);
        }
        Ok(self.shared.keys.get())
    }

    /// Whether the journal has a file of keys.
    pub fn has_keys(&self) -> bool {
        self.shared.keys.get().is_some()
    }

    /// Refuses a record with readable contents in a session whose contents are encrypted: its writer has no key.
    pub(super) fn check_encrypted(&self, item: &Item) -> Result<(), Error> {
        let Some(keys) = self.shared.keys.get().filter(|_| cipher::has_contents(item)) else {
            return Ok(());
        };
        let Some(session) = key::session_of(&item.pk) else { return Ok(()) };
        match keys.state(&session)? {
            KeyState::None => Ok(()),
            KeyState::Usable { .. } => Err(Error::Refused(UNENCRYPTED.into())),
            KeyState::Erased(erasure) => Err(KeyRefused::Erased(erasure).into()),
        }
    }

    /// Shows the contents of encrypted items whose keys are here.
    pub(super) fn open_items<'a>(
        &self,
        items: impl IntoIterator<Item = &'a mut Item>,
    ) -> Result<(), Error> {
        let mut known: BTreeMap<SessionId, Option<SessionKey>> = BTreeMap::new();
        for item in items {
            if !cipher::is_encrypted(item) {
                continue;
            }
            let Some(session) = key::session_of(&item.pk) else { continue };
            if !known.contains_key(&session) {
                known.insert(session.clone(), self.key_state(&session)?.to_read());
            }
            if let Some(Some(key)) = known.get(&session) {
                let closed = std::mem::replace(item, Item::new("", ""));
                *item = cipher::open(closed, key);
            }
        }
        Ok(())
    }

    /// Encrypts a text that belongs to a session but is no record, if the session has a key. `place` says where it is.
    ///
    /// # Errors
    /// The key was destroyed or cannot be read.
    pub fn encrypt_text(
        &self,
        session: &SessionId,
        place: &str,
        text: &str,
    ) -> Result<String, Error> {
        let Some(key) = self.key_state(session)?.to_write()? else { return Ok(text.to_owned()) };
        let bytes = key.encrypt(&[CONTEXT, session.as_str(), place], text.as_bytes());
        Ok(format!("{TEXT}{session} {}", hex::encode(bytes)))
    }

    /// Decrypts a text that [`Self::encrypt_text`] encrypted, and returns any other unchanged. `None` if the session's
    /// key was destroyed or is not here.
    ///
    /// # Errors
    /// The bytes are others than those that were encrypted, or the file of keys cannot be read.
    pub fn decrypt_text(&self, place: &str, text: String) -> Result<Option<String>, Error> {
        let Some(session) = session_of_text(&text) else { return Ok(Some(text)) };
        let Some(key) = self.key_state(&session)?.to_read() else { return Ok(None) };
        let encrypted = text.rsplit_once(' ').and_then(|(_, hex)| hex::decode(hex).ok());
        let bytes = encrypted
            .and_then(|bytes| key.decrypt(&[CONTEXT, session.as_str(), place], &bytes))
            .and_then(|bytes| String::from_utf8(bytes).ok());
        let changed = || Error::Corrupt(format!("{place} does not decrypt").into());
        bytes.map(Some).ok_or_else(changed)
    }

    /// Removes what a session holds in the deduplication of its agent, with the bytes that it took.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub async fn release_deduplication(&self, session: &SessionId) -> Result<(), Error> {
        let held = session.to_string();
        let delete = move |connection: &Connection| {
            connection.pragma_update_and_check(None, "secure_delete", "on", |_| Ok(()))?;
            let sql = "SELECT id FROM partition WHERE pk > 'DEDUPE#' AND pk < 'DEDUPE$' AND id IN \
                       (SELECT partition FROM item WHERE item.partition = partition.id \
                        AND json_extract(body, '$.Session.S') = ?)";
            let mut statement = connection.prepare(sql)?;
            let ids = statement.query_map([&held], |row| row.get::<_, i64>(0))?;
            for id in ids.collect::<rusqlite::Result<Vec<_>>>()? {
                connection.execute("DELETE FROM item WHERE partition = ?", [id])?;
                connection.execute("DELETE FROM partition WHERE id = ?", [id])?;
            }
            Ok(())
        };
        self.transact(delete).await
    }
}

/// The session of an encrypted text; `None` for any other text.
pub fn session_of_text(text: &str) -> Option<SessionId> {
    text.strip_prefix(TEXT)?.split(' ').next()?.parse().ok()
}
