//! Payloads: JSON that is too variable or too large for attributes of its own.
//!
//! A small payload is stored as text and a larger one compressed. The largest are split into
//! content-addressed parts. The hash of a payload covers the stored bytes.

use crate::cipher::{self, SessionKey};
use crate::id::SessionId;
use crate::item::{Hash, Item, ItemError, Value};
use crate::key;
use crate::limits::{COMPRESS_BYTES_MIN, INLINE_BYTES_MAX, PART_BYTES_MAX, PAYLOAD_BYTES_MAX};
use crate::store::Key;

pub(crate) const PAYLOAD: &str = "Payload";
const ENCODING: &str = "PayloadEncoding";
const RAW_BYTES: &str = "PayloadBytes";
const SHA256: &str = "PayloadSha256";
const PARTS: &str = "PayloadParts";

/// The attributes of a payload that is stored in its record.
pub(crate) const INLINE: [&str; 3] = [PAYLOAD, ENCODING, RAW_BYTES];

/// Compressed.
const ZSTD: &str = "zstd";

/// Compressed, then encrypted, as one text; only for parts.
const ENCRYPTED_ZSTD: &str = "encrypted-zstd";

const ZSTD_LEVEL: i32 = 3;

/// A payload as its record stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// JSON text, readable in the table.
    Text(String),
    /// JSON text compressed with zstd.
    Zstd { bytes: Vec<u8>, raw_bytes: u32 },
    /// Compressed JSON text in separate parts.
    Parts {
        /// Hash of the stored bytes, which is also the address of the parts.
        sha256: Hash,
        raw_bytes: u32,
        parts: u32,
        /// The record that names them, if they are encrypted.
        encrypted: Option<Key>,
    },
    /// Encrypted in its record, and the session's key is not here.
    Encrypted,
}

/// An encoded payload. Write its parts before the record that names them.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// What the record holds.
    pub payload: Payload,
    /// The parts in order; empty for an inline payload.
    pub parts: Vec<Vec<u8>>,
}

/// The payload exceeds the limit. Permanent: retrying does not help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the payload of {bytes} bytes exceeds the limit of {PAYLOAD_BYTES_MAX}")]
pub struct TooLarge {
    /// Length of the JSON text.
    pub bytes: usize,
}

/// Why stored bytes are not a valid payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("the stored bytes hash to {found}, but the record names {expected}")]
    Changed { expected: Hash, found: Hash },
    #[error("the stored bytes do not decompress to {raw_bytes} bytes")]
    Compression { raw_bytes: u32 },
    #[error("the payload is not JSON")]
    NotJson,
    #[error("the payload is encrypted, and the session's key was destroyed or is not here")]
    Encrypted,
    #[error("the payload does not decrypt under the session's key")]
    Cipher,
    #[error("part {number} is missing")]
    PartMissing {
        /// From 0.
        number: u32,
    },
}

impl Payload {
    /// Encodes a JSON value.
    ///
    /// # Errors
    /// Its text is longer than [`PAYLOAD_BYTES_MAX`].
    pub fn encode(json: &serde_json::Value) -> Result<Encoded, TooLarge> {
        Self::encode_for(json, None)
    }

    /// Encodes a JSON value for a record, with the key of its session if that has one. Only parts are encrypted here;
    /// the record encrypts what it holds itself.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn encode_for(
        json: &serde_json::Value,
        key: Option<(&SessionKey, &Key)>,
    ) -> Result<Encoded, TooLarge> {
        let text = json.to_string();
        if text.len() > PAYLOAD_BYTES_MAX {
            return Err(TooLarge { bytes: text.len() });
        }
        if text.len() <= COMPRESS_BYTES_MIN {
            return Ok(Encoded { payload: Self::Text(text), parts: Vec::new() });
        }
        let raw_bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
        let bytes = zstd::bulk::compress(text.as_bytes(), ZSTD_LEVEL)
            .unwrap_or_else(|_| unreachable!("compressing memory into memory cannot fail"));
        if bytes.len() <= INLINE_BYTES_MAX {
            return Ok(Encoded { payload: Self::Zstd { bytes, raw_bytes }, parts: Vec::new() });
        }
        let bytes = key.map_or_else(|| bytes.clone(), |(key, of)| key.encrypt_payload(of, &bytes));
        let encrypted = key.map(|(_, of)| of.clone());
        let sha256 = Hash::of(&bytes);
        let parts: Vec<_> = bytes.chunks(PART_BYTES_MAX).map(<[u8]>::to_vec).collect();
        let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        Ok(Encoded { payload: Self::Parts { sha256, raw_bytes, parts: count, encrypted }, parts })
    }

    /// Length of the JSON text in bytes.
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Zstd { raw_bytes, .. } | Self::Parts { raw_bytes, .. } => {
                usize::try_from(*raw_bytes).unwrap_or(usize::MAX)
            }
            Self::Encrypted => 0,
        }
    }

    /// Decodes the JSON value, given the parts (none for an inline payload).
    ///
    /// # Errors
    /// The bytes differ from those that were stored, or are encrypted.
    pub fn decode(&self, parts: &[Vec<u8>]) -> Result<serde_json::Value, DecodeError> {
        self.decode_with(parts, None)
    }

    /// Decodes the JSON value with the session's key.
    ///
    /// # Errors
    /// As [`Self::decode`]; without a key, encrypted parts are an error.
    pub fn decode_with(
        &self,
        parts: &[Vec<u8>],
        key: Option<&SessionKey>,
    ) -> Result<serde_json::Value, DecodeError> {
        let text = match self {
            Self::Text(text) => text.clone().into_bytes(),
            Self::Zstd { bytes, raw_bytes } => decompress(bytes, *raw_bytes)?,
            Self::Parts { sha256, raw_bytes, encrypted, .. } => {
                let stored = parts.concat();
                let found = Hash::of(&stored);
                if found != *sha256 {
                    return Err(DecodeError::Changed { expected: sha256.clone(), found });
                }
                let compressed = match encrypted {
                    None => stored,
                    Some(of) => {
                        let key = key.ok_or(DecodeError::Encrypted)?;
                        key.decrypt_payload(of, &stored).ok_or(DecodeError::Cipher)?
                    }
                };
                decompress(&compressed, *raw_bytes)?
            }
            Self::Encrypted => return Err(DecodeError::Encrypted),
        };
        serde_json::from_slice(&text).map_err(|_| DecodeError::NotJson)
    }

    /// Adds the payload's attributes to a record.
    #[must_use]
    pub fn write_to(&self, item: Item) -> Item {
        match self {
            Self::Text(text) => item.with(PAYLOAD, text.as_str()),
            Self::Zstd { bytes, raw_bytes } => {
                item.with(PAYLOAD, bytes.clone()).with(ENCODING, ZSTD).with(RAW_BYTES, *raw_bytes)
            }
            Self::Encrypted => item,
            Self::Parts { sha256, raw_bytes, parts, encrypted } => item
                .with(SHA256, sha256.as_str())
                .with(ENCODING, if encrypted.is_some() { ENCRYPTED_ZSTD } else { ZSTD })
                .with(RAW_BYTES, *raw_bytes)
                .with(PARTS, *parts),
        }
    }

    /// Reads a record's payload attributes, if any.
    ///
    /// # Errors
    /// The attributes are invalid.
    pub fn read_from(item: &Item) -> Result<Option<Self>, ItemError> {
        match item.value(PAYLOAD) {
            Some(Value::S(_)) if item.value(ENCODING).is_some() => {
                return Err(item.malformed(ENCODING, "absent beside a payload of text"));
            }
            Some(Value::S(text)) => return Ok(Some(Self::Text(text.clone()))),
            Some(Value::B(bytes)) => {
                check_encoding(item)?;
                let raw_bytes = item.small(RAW_BYTES)?;
                return Ok(Some(Self::Zstd { bytes: bytes.clone(), raw_bytes }));
            }
            Some(Value::N(_)) => return Err(item.malformed(PAYLOAD, "text or bytes")),
            None => {}
        }
        match item.text_opt(SHA256) {
            None if cipher::is_encrypted(item) && item.opened.is_empty() => {
                Ok(Some(Self::Encrypted))
            }
            None => Ok(None),
            Some(sha256) => {
                let is_encrypted = item.text(ENCODING)? == ENCRYPTED_ZSTD;
                if !is_encrypted {
                    check_encoding(item)?;
                }
                let of = || Key::new(item.pk.as_str(), item.sk.as_str());
                Ok(Some(Self::Parts {
                    encrypted: is_encrypted.then(of),
                    sha256: Hash::from_record(sha256),
                    raw_bytes: item.small(RAW_BYTES)?,
                    parts: item.small(PARTS)?,
                }))
            }
        }
    }

    /// Whether an attribute is one of a payload.
    pub(crate) fn has_attribute(name: &str) -> bool {
        [PAYLOAD, ENCODING, RAW_BYTES, SHA256, PARTS].contains(&name)
    }
}

fn check_encoding(item: &Item) -> Result<(), ItemError> {
    if item.text(ENCODING)? == ZSTD { Ok(()) } else { Err(item.malformed(ENCODING, "`zstd`")) }
}

/// The items of a payload's parts, each with its own hash, so that a changed part can be named.
pub fn part_items(session: &SessionId, expires_at: i64, encoded: &Encoded) -> Vec<Item> {
    let Payload::Parts { sha256, .. } = &encoded.payload else { return Vec::new() };
    let pk = key::blob(session, sha256.as_str());
    (0_u32..)
        .zip(&encoded.parts)
        .map(|(number, bytes)| {
            Item::new(pk.clone(), key::part(number))
                .with("Bytes", bytes.clone())
                .with(key::attribute::EXPIRES_AT, expires_at)
                .hashed()
        })
        .collect()
}

/// The bytes of parts that were read, in order.
///
/// # Errors
/// One of the `count` parts is missing.
pub fn part_bytes(items: &[Item], count: u32) -> Result<Vec<Vec<u8>>, DecodeError> {
    (0..count)
        .map(|number| {
            let sk = key::part(number);
            let part = items.iter().find(|item| item.sk == sk);
            match part.and_then(|item| item.attributes.get("Bytes")) {
                Some(Value::B(bytes)) => Ok(bytes.clone()),
                _ => Err(DecodeError::PartMissing { number }),
            }
        })
        .collect()
}

/// Decompresses to exactly the length that the record names, so that a forged frame cannot allocate
/// more than the limit.
fn decompress(bytes: &[u8], raw_bytes: u32) -> Result<Vec<u8>, DecodeError> {
    let error = DecodeError::Compression { raw_bytes };
    let capacity = usize::try_from(raw_bytes).unwrap_or(usize::MAX);
    if capacity > PAYLOAD_BYTES_MAX {
        return Err(error);
    }
    match zstd::bulk::decompress(bytes, capacity) {
        Ok(text) if text.len() == capacity => Ok(text),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Text that does not compress: the bytes of a hash chain in hexadecimal.
    fn noise(bytes: usize) -> serde_json::Value {
        let mut text = String::new();
        let mut hash = Hash::genesis();
        while text.len() < bytes {
            hash = Hash::of(hash.as_str().as_bytes());
            text.push_str(hash.as_str());
        }
        text.truncate(bytes);
        json!(text)
    }

    #[test]
    fn a_payload_of_any_size_survives_its_item() {
        for (bytes, form) in [
            (10, "text"),
            (4_094, "text"),
            (4_095, "zstd"),
            (150_000, "zstd"),
            (2_000_000, "parts"),
        ] {
            let json = noise(bytes);
            let encoded = Payload::encode(&json).unwrap();
            let found = match &encoded.payload {
                Payload::Text(_) => "text",
                Payload::Zstd { .. } => "zstd",
                Payload::Parts { .. } => "parts",
                Payload::Encrypted => "encrypted",
            };
            assert_eq!(found, form, "{bytes} bytes");
            let item = encoded.payload.write_to(Item::new("p", "s"));
            assert!(item.size_bytes() < crate::limits::ITEM_BYTES_MAX);
            let read = Payload::read_from(&item).unwrap().unwrap();
            assert_eq!(read, encoded.payload);
            assert_eq!(read.decode(&encoded.parts).unwrap(), json);
        }
    }

    #[test]
    fn an_oversized_payload_is_rejected_before_any_write() {
        assert!(Payload::encode(&noise(PAYLOAD_BYTES_MAX - 2)).is_ok());
        assert!(Payload::encode(&noise(PAYLOAD_BYTES_MAX)).is_err());
    }

    #[test]
    fn changed_parts_are_found() {
        let encoded = Payload::encode(&noise(1_000_000)).unwrap();
        let mut parts = encoded.parts.clone();
        parts[1][7] ^= 1;
        assert!(matches!(encoded.payload.decode(&parts), Err(DecodeError::Changed { .. })));
    }

    #[test]
    fn a_forged_length_allocates_no_memory() {
        let bytes = zstd::bulk::compress(&vec![b' '; 50_000_000], 1).unwrap();
        let forged = Payload::Zstd { bytes, raw_bytes: 50_000_000 };
        assert!(matches!(forged.decode(&[]), Err(DecodeError::Compression { .. })));
    }
}
