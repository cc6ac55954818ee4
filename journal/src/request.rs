//! The requests that models were sent, as the steps record them.
//!
//! A note of the subject [`NOTE_REQUEST`] holds texts: system prompts, lists of tools, and what else a request has.
//! Each is journaled once, and records name it by the SHA-256 of its UTF-8 bytes. The outcome of a chat names its
//! request ([`Request`]). `graph::request` writes and reads both.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::item::{self, Hash, Item, ItemError};

pub(crate) const REQUEST: &str = "Request";
pub(crate) const MESSAGES: &str = "Messages";

/// Subject of the notes with the texts of requests; their payload is [`Parts`].
pub const NOTE_REQUEST: &str = "model_request";

/// The field of a reference to a text: `{"sha256": …}`.
pub const SHA256: &str = "sha256";

/// The payload of a note of [`NOTE_REQUEST`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    pub parts: Vec<String>,
}

/// The request that the outcome of a chat belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Hash of the text with everything but the messages. That text refers to others.
    pub frame: Hash,
    /// The messages, as JSON: how many of the previous request's are kept, then one reference for each further message.
    pub messages: String,
}

/// The fields of a frame that are references.
pub const NAMED: [&str; 3] = ["system", "tools", "form"];

/// The hashes of the texts that a frame refers to.
pub fn of_frame(frame: &Value) -> impl Iterator<Item = &str> {
    NAMED.iter().filter_map(|name| frame[*name][SHA256].as_str())
}

/// The hashes of the messages in a list that are texts of their own.
pub fn of_messages(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(|item| item[SHA256].as_str())
}

impl Request {
    /// The attribute with the frame's hash, as 32 bytes: hexadecimal text would be most of what a turn adds.
    pub(crate) fn frame_bytes(&self) -> Vec<u8> {
        hex::decode(self.frame.as_str()).unwrap_or_default()
    }

    /// The request that a step names; `None` if it names none.
    pub(crate) fn read_from(item: &Item) -> Result<Option<Self>, ItemError> {
        let frame = match item.value(REQUEST) {
            None => return Ok(None),
            Some(item::Value::B(bytes)) => frame_of(bytes),
            Some(_) => return Err(item.malformed(REQUEST, "bytes")),
        };
        Ok(Some(Self { frame, messages: item.text(MESSAGES)?.to_owned() }))
    }
}

/// The hash in a frame's attribute.
pub(crate) fn frame_of(bytes: &[u8]) -> Hash {
    Hash::from_record(&hex::encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_survives_its_attribute() {
        let frame = Hash::of(b"a request");
        let request = Request { frame: frame.clone(), messages: "[0]".to_owned() };
        assert_eq!(request.frame_bytes().len(), 32);
        assert_eq!(frame_of(&request.frame_bytes()), frame);
    }
}
