//! Items: named attributes under a partition and a sort key, their canonical bytes and their hash.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use sha2::{Digest as _, Sha256};

/// The attribute with a record's hash, the only one that the hash does not cover.
pub const HASH: &str = "Hash";

/// The only attribute of an item whose stored bytes are not an item's: why not. No writer uses it.
const UNREADABLE: &str = "Unreadable";

/// An attribute's value, of the types that the journal uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    S(String),
    N(i64),
    B(Vec<u8>),
}

/// An item of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The partition key, `PK`.
    pub pk: String,
    /// The sort key, `SK`.
    pub sk: String,
    /// All other attributes, in byte order of name, the order of hashing.
    pub attributes: BTreeMap<String, Value>,
    /// The decrypted contents of a record that is encrypted. Readers prefer them to the attributes; they are neither
    /// hashed nor stored nor exported.
    pub opened: BTreeMap<String, Value>,
}

/// SHA-256, written as 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash(String);

impl Hash {
    /// The previous hash of the first step.
    pub fn genesis() -> Self {
        Self("0".repeat(64))
    }

    pub fn of(bytes: &[u8]) -> Self {
        Self(hex::encode(Sha256::digest(bytes)))
    }

    /// A hash read from a record.
    pub fn from_record(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    #[error("{sk}: attribute `{name}` is missing")]
    Missing { sk: String, name: String },
    /// An attribute has the wrong type or form.
    #[error("{sk}: attribute `{name}` is not {expected}")]
    Malformed {
        sk: String,
        name: String,
        /// The expected type or form.
        expected: &'static str,
    },
    #[error("{sk}: {reason}")]
    Unreadable { sk: String, reason: String },
    #[error("not an item: {0}")]
    NotAnItem(String),
}

impl Item {
    pub fn new(pk: impl Into<String>, sk: impl Into<String>) -> Self {
        Self::of(pk.into(), sk.into(), BTreeMap::new())
    }

    pub(crate) fn of(pk: String, sk: String, attributes: BTreeMap<String, Value>) -> Self {
        Self { pk, sk, attributes, opened: BTreeMap::new() }
    }

    /// Stands for a stored item that cannot be read, so that it hides no other.
    pub fn unreadable(pk: impl Into<String>, sk: impl Into<String>, reason: &str) -> Self {
        Self::new(pk, sk).with(UNREADABLE, reason.to_owned())
    }

    /// Why the stored item cannot be read, if it cannot.
    pub fn unreadable_reason(&self) -> Option<&str> {
        self.text_opt(UNREADABLE)
    }

    /// Adds an attribute.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.attributes.insert(name.to_owned(), value.into());
        self
    }

    /// Adds an attribute if there is a value for it.
    #[must_use]
    pub fn with_some(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// An attribute's value; the keys count as attributes.
    pub fn get(&self, name: &str) -> Option<Value> {
        match name {
            "PK" => Some(Value::S(self.pk.clone())),
            "SK" => Some(Value::S(self.sk.clone())),
            _ => self.value(name).cloned(),
        }
    }

    /// An attribute but the keys, decrypted if it was encrypted.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.opened.get(name).or_else(|| self.attributes.get(name))
    }

    /// A string attribute.
    ///
    /// # Errors
    /// The attribute is missing or not a string.
    pub fn text(&self, name: &str) -> Result<&str, ItemError> {
        match self.value(name) {
            Some(Value::S(text)) => Ok(text),
            Some(_) => Err(self.malformed(name, "text")),
            None => Err(self.missing(name)),
        }
    }

    /// An optional string attribute; one of another type counts as absent.
    pub fn text_opt(&self, name: &str) -> Option<&str> {
        match self.value(name) {
            Some(Value::S(text)) => Some(text),
            _ => None,
        }
    }

    /// A number attribute.
    ///
    /// # Errors
    /// The attribute is missing or not a number.
    pub fn number(&self, name: &str) -> Result<i64, ItemError> {
        match self.value(name) {
            Some(Value::N(number)) => Ok(*number),
            Some(_) => Err(self.malformed(name, "a whole number")),
            None => Err(self.missing(name)),
        }
    }

    /// A number attribute, converted to the requested type.
    ///
    /// # Errors
    /// The attribute is missing, not a number, or out of range.
    pub fn small<T: TryFrom<i64>>(&self, name: &str) -> Result<T, ItemError> {
        T::try_from(self.number(name)?).map_err(|_| self.malformed(name, "in range"))
    }

    pub fn malformed(&self, name: &str, expected: &'static str) -> ItemError {
        ItemError::Malformed { sk: self.sk.clone(), name: name.to_owned(), expected }
    }

    fn missing(&self, name: &str) -> ItemError {
        if let Some(reason) = self.unreadable_reason() {
            return ItemError::Unreadable { sk: self.sk.clone(), reason: reason.to_owned() };
        }
        ItemError::Missing { sk: self.sk.clone(), name: name.to_owned() }
    }

    /// The bytes that are hashed: for every attribute but [`HASH`], keys included, in byte order of name, `{length of
    /// name}:{name}{type letter}{length of value}:{value}`, lengths in bytes and decimal, numbers in decimal. `printf`
    /// and `sha256sum` can recompute it.
    pub fn canonical_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.canonical(|part| bytes.extend_from_slice(part));
        bytes
    }

    /// The SHA-256 of [`Self::canonical_bytes`].
    pub fn hash(&self) -> Hash {
        let mut digest = Sha256::new();
        self.canonical(|part| digest.update(part));
        Hash(hex::encode(digest.finalize()))
    }

    /// Produces the canonical bytes in parts: every read of an event hashes them, so they are not collected.
    fn canonical(&self, mut give: impl FnMut(&[u8])) {
        let mut attribute = |name: &str, letter: &[u8], value: &[u8]| {
            let mut decimal = itoa::Buffer::new();
            give(decimal.format(name.len()).as_bytes());
            give(b":");
            give(name.as_bytes());
            give(letter);
            give(decimal.format(value.len()).as_bytes());
            give(b":");
            give(value);
        };
        let mut keys = [("PK", &self.pk), ("SK", &self.sk)].into_iter().peekable();
        for (name, value) in self.attributes.iter().filter(|(name, _)| *name != HASH) {
            while let Some((key, text)) = keys.next_if(|(key, _)| *key < name.as_str()) {
                attribute(key, b"S", text.as_bytes());
            }
            match value {
                Value::S(text) => attribute(name, b"S", text.as_bytes()),
                Value::N(number) => {
                    attribute(name, b"N", itoa::Buffer::new().format(*number).as_bytes());
                }
                Value::B(bytes) => attribute(name, b"B", bytes),
            }
        }
        keys.for_each(|(key, text)| attribute(key, b"S", text.as_bytes()));
    }

    /// Adds the item's own hash.
    #[must_use]
    pub fn hashed(self) -> Self {
        let hash = self.hash();
        self.with(HASH, hash.0)
    }

    /// The item's approximate size as DynamoDB counts it, for rejecting items that are too large.
    pub fn size_bytes(&self) -> usize {
        let keys = "PK".len() + self.pk.len() + "SK".len() + self.sk.len();
        self.attributes.iter().map(|(name, value)| name.len() + value.size_bytes()).sum::<usize>()
            + keys
    }

    /// The item in DynamoDB's JSON, `{"PK": {"S": …}, …}`.
    pub fn to_json(&self) -> serde_json::Value {
        let mut object = serde_json::Map::new();
        object.insert("PK".to_owned(), json!({ "S": self.pk }));
        object.insert("SK".to_owned(), json!({ "S": self.sk }));
        for (name, value) in &self.attributes {
            object.insert(name.clone(), value.to_json());
        }
        serde_json::Value::Object(object)
    }

    /// Parses DynamoDB's JSON.
    ///
    /// # Errors
    /// A key is missing, or a value has a type that the journal does not write.
    pub fn from_json(json: &serde_json::Value) -> Result<Self, ItemError> {
        let object =
            json.as_object().ok_or_else(|| ItemError::NotAnItem("not an object".to_owned()))?;
        let mut attributes = BTreeMap::new();
        for (name, value) in object {
            let value = Value::from_json(value).ok_or_else(|| {
                ItemError::NotAnItem(format!("attribute `{name}` is not S, N or B"))
            })?;
            attributes.insert(name.clone(), value);
        }
        let mut key = |name: &str| match attributes.remove(name) {
            Some(Value::S(text)) => Ok(text),
            _ => Err(ItemError::NotAnItem(format!("`{name}` is not a string"))),
        };
        let (pk, sk) = (key("PK")?, key("SK")?);
        Ok(Self::of(pk, sk, attributes))
    }
}

impl Value {
    fn size_bytes(&self) -> usize {
        match self {
            Self::S(text) => text.len(),
            Self::N(_) => 21,
            Self::B(bytes) => bytes.len(),
        }
    }

    /// The value in DynamoDB's JSON, such as `{"S": "text"}`.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::S(text) => json!({ "S": text }),
            Self::N(number) => json!({ "N": number.to_string() }),
            Self::B(bytes) => json!({ "B": BASE64.encode(bytes) }),
        }
    }

    /// Parses DynamoDB's JSON; `None` for a type that the journal does not write.
    pub fn from_json(json: &serde_json::Value) -> Option<Self> {
        let object = json.as_object().filter(|object| object.len() == 1)?;
        let (letter, value) = object.iter().next()?;
        let text = value.as_str()?;
        match letter.as_str() {
            "S" => Some(Self::S(text.to_owned())),
            "N" => number(text).map(Self::N),
            "B" => BASE64.decode(text).ok().map(Self::B),
            _ => None,
        }
    }
}

/// A number has one encoding, so that stored bytes do not change without a trace.
fn number(text: &str) -> Option<i64> {
    let number: i64 = text.parse().ok()?;
    (itoa::Buffer::new().format(number) == text).then_some(number)
}

/// As DynamoDB's JSON; see [`Value::to_json`].
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(1))?;
        match self {
            Self::S(text) => object.serialize_entry("S", text)?,
            Self::N(number) => object.serialize_entry("N", &number.to_string())?,
            Self::B(bytes) => object.serialize_entry("B", &BASE64.encode(bytes))?,
        }
        object.end()
    }
}

/// From DynamoDB's JSON; see [`Value::from_json`].
impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        enum Typed {
            S(String),
            N(String),
            B(String),
        }
        let not = || serde::de::Error::custom("a value is not S, N or B");
        Ok(match Typed::deserialize(deserializer)? {
            Typed::S(text) => Self::S(text),
            Typed::N(text) => Self::N(number(&text).ok_or_else(not)?),
            Typed::B(text) => Self::B(BASE64.decode(text).map_err(|_| not())?),
        })
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::S(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::S(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::N(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::N(i64::from(number))
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::B(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Item {
        Item::new("SESSION#abc", "EVENT#1")
            .with("Status", "DONE")
            .with("V", 1_i64)
            .with("Data", vec![0xff])
    }

    #[test]
    fn canonical_bytes_can_be_written_by_hand() {
        let expected = b"4:DataB1:\xff2:PKS11:SESSION#abc2:SKS7:EVENT#16:StatusS4:DONE1:VN1:1";
        assert_eq!(sample().canonical_bytes(), expected);
    }

    /// `printf '4:DataB1:\xff2:PKS11:SESSION#abc2:SKS7:EVENT#16:StatusS4:DONE1:VN1:1' | sha256sum`
    #[test]
    fn a_hash_can_be_recomputed_with_standard_tools() {
        assert_eq!(
            sample().hash().as_str(),
            "f0cf5bee2718bcb8722a27dc9196dc6b59494891a676071fdda4daeb12d0aa7e"
        );
    }

    #[test]
    fn the_hash_does_not_cover_itself() {
        assert_eq!(sample().hashed().hash(), sample().hash());
        assert_eq!(sample().hashed().hashed(), sample().hashed());
    }

    #[test]
    fn an_item_survives_dynamodb_json() {
        assert_eq!(Item::from_json(&sample().to_json()).unwrap(), sample());
        assert!(Item::from_json(&serde_json::json!({"PK": {"S": "a"}})).is_err());
    }
}
