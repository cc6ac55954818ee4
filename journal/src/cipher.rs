//! Encrypts what a session's records say, under a key of its own, so that destroying the key erases it everywhere.
//!
//! [`encrypt`] moves the attributes that hold contents into one, [`ENCRYPTED`], and replaces the digest of an effect by
//! an HMAC. Hashes cover the encrypted bytes. [`open`] shows an item's contents to readers that have the key; it does
//! not change the item's attributes, so hashing, verifying and exporting need no key.

#[cfg(not(feature = "cipher"))]
mod absent;
#[cfg(feature = "cipher")]
mod session_key;

use std::collections::BTreeMap;

use crate::clock::Stamp;
use crate::event::{DETAIL, ERROR_MESSAGE, EventStatus};
use crate::id::SessionId;
use crate::item::{Item, Value};
use crate::key::attribute::STATUS;
use crate::key::{EVENT_PREFIX, STEP_PREFIX};
use crate::payload;
use crate::principal::Principal;
use crate::request::{MESSAGES, REQUEST};
use crate::step::{CATEGORY, DIGEST};
use crate::store::{self, Key};

#[cfg(not(feature = "cipher"))]
pub use absent::SessionKey;
#[cfg(feature = "cipher")]
pub use session_key::SessionKey;
#[cfg(feature = "sqlite")]
pub(crate) use session_key::hmac;

/// The attribute with the encrypted contents of a record.
pub const ENCRYPTED: &str = "Encrypted";

/// Length of a session's key, in bytes.
pub const KEY_BYTES: usize = 32;

/// The context of a record's attribute [`ENCRYPTED`], before its key.
const RECORD: &str = "daybook record 1";

/// The context of the parts of a payload, before the key of the record that names them.
const PAYLOAD: &str = "daybook payload 1";

/// The contents of a step. The names of a payload in parts stay: they say nothing of it but its size.
const OF_STEPS: [&str; 4] = [REQUEST, MESSAGES, ERROR_MESSAGE, CATEGORY];

/// The contents of an event. The list of events that a verdict seals stays readable.
const OF_EVENTS: [&str; 2] = [DETAIL, ERROR_MESSAGE];

impl SessionKey {
    /// Encrypts the bytes of a payload that is stored in parts.
    pub(crate) fn encrypt_payload(&self, of: &Key, bytes: &[u8]) -> Vec<u8> {
        self.encrypt(&[PAYLOAD, &of.pk, &of.sk], bytes)
    }

    pub(crate) fn decrypt_payload(&self, of: &Key, bytes: &[u8]) -> Option<Vec<u8>> {
        self.decrypt(&[PAYLOAD, &of.pk, &of.sk], bytes)
    }
}

/// Encrypts a record's contents and states its new hash. A record without contents stays as it is.
#[must_use]
pub fn encrypt(mut item: Item, key: &SessionKey) -> Item {
    let mut contents = BTreeMap::new();
    for name in contents_of(&item) {
        contents.extend(item.attributes.remove_entry(name));
    }
    if let Some(Value::S(digest)) = item.attributes.get(DIGEST).filter(|_| is_step(&item)) {
        let keyed = Value::S(key.digest(digest).as_str().to_owned());
        contents.extend(
            item.attributes.insert(DIGEST.to_owned(), keyed).map(|it| (DIGEST.to_owned(), it)),
        );
    }
    if contents.is_empty() {
        return item;
    }
    let text = serde_json::to_vec(&contents)
        .unwrap_or_else(|error| unreachable!("texts and numbers are JSON: {error}"));
    let bytes = key.encrypt(&[RECORD, &item.pk, &item.sk], &text);
    let mut item = item.with(ENCRYPTED, bytes).hashed();
    item.opened = contents;
    item
}

/// Shows the contents of an encrypted record to readers. A record whose bytes are not those that were encrypted becomes
/// unreadable.
#[must_use]
pub fn open(mut item: Item, key: &SessionKey) -> Item {
    let Some(Value::B(bytes)) = item.attributes.get(ENCRYPTED) else { return item };
    let text = key.decrypt(&[RECORD, &item.pk, &item.sk], bytes);
    match text.and_then(|text| serde_json::from_slice(&text).ok()) {
        Some(contents) => item.opened = contents,
        None => item.opened = Item::unreadable("", "", CHANGED).attributes,
    }
    item
}

const CHANGED: &str = "its encrypted contents were changed, or belong to another record or key";

/// Whether a record's contents are encrypted.
pub fn is_encrypted(item: &Item) -> bool {
    matches!(item.attributes.get(ENCRYPTED), Some(Value::B(_)))
}

/// Whether a record shows contents that [`encrypt`] would hide. The record of an erasure does, on purpose.
pub fn has_contents(item: &Item) -> bool {
    let is_erasure = item.text_opt(STATUS) == Some(EventStatus::SessionErased.as_str());
    !is_erasure && contents_of(item).iter().any(|name| item.attributes.contains_key(*name))
}

fn is_step(item: &Item) -> bool {
    item.sk.starts_with(STEP_PREFIX)
}

fn contents_of(item: &Item) -> Vec<&'static str> {
    if is_step(item) {
        let inline = item.attributes.contains_key(payload::PAYLOAD);
        let payload = payload::INLINE.into_iter().filter(|_| inline);
        OF_STEPS.into_iter().chain(payload).collect()
    } else if item.sk.starts_with(EVENT_PREFIX) {
        OF_EVENTS.to_vec()
    } else {
        Vec::new()
    }
}

/// The destruction of a session's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erasure {
    pub at: Stamp,
    pub by: Principal,
    pub reason: String,
}

/// Why a session's key was not destroyed, held or released.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyRefused {
    #[error(
        "the contents of this session are not encrypted: it has no key that could be destroyed"
    )]
    NotEncrypted,
    #[error("a hold forbids it: {reason}")]
    Held {
        /// Why the session is held.
        reason: String,
    },
    #[error("the key of this session was destroyed at {}", .0.at)]
    Erased(Erasure),
    #[error("this journal keeps no keys of sessions: only a local stack does")]
    Unsupported,
}

impl From<KeyRefused> for store::Error {
    fn from(refused: KeyRefused) -> Self {
        Self::Refused(refused.into())
    }
}

/// A session's key, as the store of keys has it.
#[derive(Debug)]
pub enum KeyState {
    /// The session's contents are not encrypted.
    None,
    Usable {
        key: SessionKey,
        /// Why the key must not be destroyed.
        hold: Option<String>,
    },
    /// Destroyed; nothing more can be written to the session.
    Erased(Erasure),
}

impl KeyState {
    /// The key to write with.
    ///
    /// # Errors
    /// The key was destroyed.
    pub fn to_write(self) -> Result<Option<SessionKey>, store::Error> {
        match self {
            Self::None => Ok(None),
            Self::Usable { key, .. } => Ok(Some(key)),
            Self::Erased(erasure) => Err(KeyRefused::Erased(erasure).into()),
        }
    }

    /// The key to read with, if it is there.
    pub fn to_read(self) -> Option<SessionKey> {
        match self {
            Self::Usable { key, .. } => Some(key),
            Self::None | Self::Erased(_) => None,
        }
    }
}

/// A change of a session's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// Forbids the key's destruction.
    Hold {
        reason: String,
    },
    Release,
    Destroy(Erasure),
}

/// A destruction that its journal may not show yet.
pub type Unjournaled = (SessionId, Erasure);
