//! In place of the keys, for programs that have none.

use crate::item::Hash;

/// Without the feature `cipher` there is no key.
#[derive(Debug)]
pub enum SessionKey {}

impl SessionKey {
    pub(super) fn encrypt(&self, _context: &[&str], _text: &[u8]) -> Vec<u8> {
        match *self {}
    }

    pub(super) fn decrypt(&self, _context: &[&str], _bytes: &[u8]) -> Option<Vec<u8>> {
        match *self {}
    }

    pub(super) fn digest(&self, _digest: &str) -> Hash {
        match *self {}
    }
}
