//! The keys of the table and of its index.

use journal::item::{Item, Value};
use journal::key::attribute::{DAY, TIMESTAMP};
use journal::store::Key;
use serde_json::{Map, Value as Json, json};

use super::error::ApiError;
use super::expression::ast::Path;
use super::request::Request;
use super::value::AttributeValue;
use super::{INDEX_NAME, TABLE_NAME};

/// The table's partition key.
pub(super) const PK: &str = "PK";

/// The table's sort key.
pub(super) const SK: &str = "SK";

/// Longest partition key, in bytes.
///
/// Source: AWS, "Quotas in Amazon DynamoDB", partition keys and sort keys.
const PK_BYTES_MAX: usize = 2048;

/// Longest sort key, in bytes.
///
/// Source: as [`PK_BYTES_MAX`].
const SK_BYTES_MAX: usize = 1024;

/// The table or its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schema {
    Table,
    ByDay,
}

impl Schema {
    /// Parses `IndexName`.
    pub(super) fn read(request: &Request) -> Result<Self, ApiError> {
        match request.text("IndexName")? {
            None => Ok(Self::Table),
            Some(INDEX_NAME) => Ok(Self::ByDay),
            Some(other) => Err(ApiError::validation(format!(
                "The table does not have the specified index: {other}"
            ))),
        }
    }

    /// The name of the partition key.
    pub(super) const fn hash(self) -> &'static str {
        match self {
            Self::Table => PK,
            Self::ByDay => DAY,
        }
    }

    /// The name of the sort key.
    pub(super) const fn range(self) -> &'static str {
        match self {
            Self::Table => SK,
            Self::ByDay => TIMESTAMP,
        }
    }

    /// Whether the index contains the item.
    pub(super) fn holds(self, item: &Item) -> bool {
        match self {
            Self::Table => true,
            Self::ByDay => item.text_opt(DAY).is_some() && item.text_opt(TIMESTAMP).is_some(),
        }
    }

    /// `LastEvaluatedKey`: where a page ended.
    pub(super) fn last_key(self, item: &Item) -> Json {
        let mut key = json!({ PK: { "S": item.pk }, SK: { "S": item.sk } });
        if self == Self::ByDay {
            for name in [DAY, TIMESTAMP] {
                key[name] = json!({ "S": item.text_opt(name).unwrap_or_default() });
            }
        }
        key
    }

    /// `ExclusiveStartKey`: where the caller continues.
    pub(super) fn start(self, request: &Request) -> Result<Option<Start>, ApiError> {
        let Some(object) = request.object("ExclusiveStartKey")? else { return Ok(None) };
        let invalid = || ApiError::validation("The provided starting key is invalid");
        let text = |name: &str| match object.get(name).map(AttributeValue::from_json) {
            Some(Ok(AttributeValue::S(text))) if !text.is_empty() => Ok(text),
            _ => Err(invalid()),
        };
        let key = Key::new(text(PK)?, text(SK)?);
        let start = match self {
            Self::Table if object.len() == 2 => {
                let (hash, range) = (key.pk.clone(), key.sk.clone());
                Start { key, hash, range }
            }
            Self::ByDay if object.len() == 4 => {
                Start { key, hash: text(DAY)?, range: text(TIMESTAMP)? }
            }
            _ => return Err(invalid()),
        };
        Ok(Some(start))
    }
}

/// The start of a page, exclusive.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) key: Key,
    /// Its partition in the table or index.
    pub(super) hash: String,
    /// Its sort key there.
    pub(super) range: String,
}

/// Parses a request's `Key`.
pub(super) fn key(request: &Request) -> Result<Key, ApiError> {
    let object = request.object("Key")?.ok_or_else(|| {
        ApiError::validation(
            "1 validation error detected: Value null at 'key' failed to satisfy constraint: \
             Member must not be null",
        )
    })?;
    let mismatch = || ApiError::validation("The provided key element does not match the schema");
    let text = |name: &str| match object.get(name).map(value).transpose()? {
        Some(AttributeValue::S(text)) => Ok(text),
        _ => Err(mismatch()),
    };
    let key = Key::new(text(PK)?, text(SK)?);
    if object.len() != 2 {
        return Err(mismatch());
    }
    check(&key)?;
    Ok(key)
}

/// Parses an item of a request.
pub(super) fn item(object: &Map<String, Json>) -> Result<Item, ApiError> {
    let mut item = Item::new("", "");
    for (name, json) in object {
        if name.is_empty() {
            return Err(ApiError::validation("Empty attribute name"));
        }
        item.attributes.insert(name.clone(), stored(name, &value(json)?)?);
    }
    let mut take = |name: &str| match item.attributes.remove(name) {
        Some(Value::S(text)) => Ok(text),
        None => Err(ApiError::validation(format!(
            "One or more parameter values were invalid: Missing the key {name} in the item"
        ))),
        Some(_) => Err(ApiError::validation(format!(
            "One or more parameter values were invalid: Type mismatch for key {name} expected: S"
        ))),
    };
    let key = Key::new(take(PK)?, take(SK)?);
    check(&key)?;
    (item.pk, item.sk) = (key.pk, key.sk);
    Ok(item)
}

/// Converts a value to the journal's types.
pub(super) fn stored(name: &str, value: &AttributeValue) -> Result<Value, ApiError> {
    let stored = value.stored().ok_or_else(|| {
        ApiError::validation(format!(
            "the journal holds text (S), whole numbers of 64 bits (N) and bytes (B) only: \
             attribute {name} is {}",
            value.type_name()
        ))
    })?;
    match (name, &stored) {
        (DAY | TIMESTAMP, Value::S(text)) if text.is_empty() => Err(ApiError::validation(format!(
            "One or more parameter values are not valid. A value specified for a secondary \
                 index key is not supported. The AttributeValue for a key attribute cannot \
                 contain an empty string value. IndexName: {INDEX_NAME}, IndexKey: {name}"
        ))),
        (DAY | TIMESTAMP, Value::N(_) | Value::B(_)) => Err(ApiError::validation(format!(
            "One or more parameter values were invalid: Type mismatch for Index Key {name} \
             Expected: S Actual: {} IndexName: {INDEX_NAME}",
            value.type_name()
        ))),
        _ => Ok(stored),
    }
}

/// Refuses an empty key with DynamoDB's message.
pub(super) fn not_empty(name: &str, text: &str) -> Result<(), ApiError> {
    if !text.is_empty() {
        return Ok(());
    }
    Err(ApiError::validation(format!(
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot \
         contain an empty string value. Key: {name}"
    )))
}

/// Refuses paths into a key: keys are not documents.
pub(super) fn scalar_keys<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<(), ApiError> {
    for path in paths {
        let kind = match path.name.as_str() {
            PK | SK => "Key",
            DAY | TIMESTAMP => "IndexKey",
            _ => continue,
        };
        if !path.inner.is_empty() {
            return Err(ApiError::validation(format!(
                "Key attributes must be scalars; list random access '[]' and map lookup '.' are \
                 not allowed: {kind}: {}",
                path.name
            )));
        }
    }
    Ok(())
}

fn check(key: &Key) -> Result<(), ApiError> {
    not_empty(PK, &key.pk)?;
    not_empty(SK, &key.sk)?;
    if key.pk.len() > PK_BYTES_MAX {
        return Err(ApiError::validation(format!(
            "One or more parameter values were invalid: Size of hashkey has exceeded the maximum \
             size limit of{PK_BYTES_MAX} bytes"
        )));
    }
    if key.sk.len() > SK_BYTES_MAX {
        return Err(ApiError::validation(format!(
            "One or more parameter values were invalid: Aggregated size of all range keys has \
             exceeded the size limit of {SK_BYTES_MAX} bytes"
        )));
    }
    Ok(())
}

fn value(json: &Json) -> Result<AttributeValue, ApiError> {
    AttributeValue::from_json(json).map_err(|error| ApiError::validation(error.to_string()))
}

/// The table's ARN on a local stack.
pub(super) fn table_arn() -> String {
    format!("arn:aws:dynamodb:us-east-1:000000000000:table/{TABLE_NAME}")
}
