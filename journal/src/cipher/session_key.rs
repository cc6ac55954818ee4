//! The keys of one session, and the cipher.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::KEY_BYTES;
use crate::item::Hash;

/// Purposes of the keys that are derived from a session's key.
const CIPHER: &str = "daybook cipher 1";
const NONCE: &str = "daybook nonce 1";
const DIGESTS: &str = "daybook digest 1";

/// The keys of one session.
///
/// AES-256-GCM-SIV, because a nonce that is used twice reveals no more than that two texts are equal. The nonce is an
/// HMAC of text and context, so that a repeated write has the same bytes.
pub struct SessionKey {
    cipher: LessSafeKey,
    nonce: [u8; KEY_BYTES],
    digests: [u8; KEY_BYTES],
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey")
    }
}

impl SessionKey {
    /// The keys derived from the stored one.
    pub fn of(root: &[u8; KEY_BYTES]) -> Self {
        let cipher = UnboundKey::new(&AES_256_GCM_SIV, &derived(root, CIPHER))
            .unwrap_or_else(|_| unreachable!("the key has the cipher's length"));
        Self {
            cipher: LessSafeKey::new(cipher),
            nonce: derived(root, NONCE),
            digests: derived(root, DIGESTS),
        }
    }

    /// Encrypts a text. It can only be decrypted in the same context.
    pub fn encrypt(&self, context: &[&str], text: &[u8]) -> Vec<u8> {
        let context = framed(context);
        let mac = hmac(&self.nonce, &[context.as_bytes(), text]);
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&mac[..NONCE_LEN]);
        let mut encrypted = text.to_vec();
        let sealed = self.cipher.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(context.as_bytes()),
            &mut encrypted,
        );
        // Source: RFC 8452, section 6: at most 2^36 bytes.
        sealed.unwrap_or_else(|_| unreachable!("a text in memory is short enough to encrypt"));
        [&nonce[..], &encrypted].concat()
    }

    /// Decrypts a text; `None` if the bytes, the context or the key are others.
    pub fn decrypt(&self, context: &[&str], bytes: &[u8]) -> Option<Vec<u8>> {
        let context = framed(context);
        let (nonce, encrypted) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = encrypted.to_vec();
        let opened = self.cipher.open_in_place(nonce, Aad::from(context.as_bytes()), &mut text);
        let length = opened.ok()?.len();
        text.truncate(length);
        Some(text)
    }

    /// The digest that stands for another one in a record, so that nobody without the key can check a guess.
    pub fn digest(&self, digest: &str) -> Hash {
        Hash::from_record(&hex::encode(hmac(&self.digests, &[digest.as_bytes()])))
    }
}

/// HKDF-SHA256 with an empty salt and 32 bytes of output. Source: RFC 5869, section 2.
fn derived(root: &[u8], purpose: &str) -> [u8; KEY_BYTES] {
    let extracted = hmac(&[0; KEY_BYTES], &[root]);
    hmac(&extracted, &[purpose.as_bytes(), &[1]])
}

/// HMAC-SHA256 of the parts, one after the other.
pub(crate) fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; KEY_BYTES] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key)
        .unwrap_or_else(|_| unreachable!("HMAC takes a key of any length"));
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// Texts with their lengths, so that no two lists are the same.
fn framed(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{}:{text}", text.len())).collect()
}
