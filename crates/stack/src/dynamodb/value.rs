//! Attribute values of every DynamoDB type. Items of the journal use three types; a request may use any.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use journal::item::Value;
use serde_json::Value as Json;

use super::number::{Number, NumberError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    S(String),
    N(Number),
    B(Vec<u8>),
    Bool(bool),
    /// Null.
    Null,
    L(Vec<AttributeValue>),
    M(BTreeMap<String, AttributeValue>),
    Ss(BTreeSet<String>),
    Ns(BTreeSet<Number>),
    Bs(BTreeSet<Vec<u8>>),
}

/// All type names, in the order of DynamoDB's message.
pub const TYPE_NAMES: [&str; 10] = ["B", "NULL", "SS", "BOOL", "L", "BS", "N", "NS", "S", "M"];

/// Why JSON is not a value: the rest of DynamoDB's sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Not a type of DynamoDB, or JSON that does not fit the type.
    #[error(
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
    )]
    Empty,
    #[error(
        "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the \
         supported datatypes"
    )]
    Several,
    /// `{"NULL": false}`.
    #[error(
        "One or more parameter values were invalid: Null attribute value types must have the \
         value of true"
    )]
    Null,
    /// An empty set.
    #[error("One or more parameter values were invalid: An {0} set  may not be empty")]
    EmptySet(&'static str),
    /// A set with duplicates.
    #[error("One or more parameter values were invalid: Input collection contains duplicates")]
    Duplicates,
    #[error(transparent)]
    Number(#[from] NumberError),
    /// Not base64.
    #[error("Invalid Base64 data")]
    Base64,
}

impl AttributeValue {
    /// Parses DynamoDB's JSON.
    pub fn from_json(json: &Json) -> Result<Self, ValueError> {
        let object = json.as_object().ok_or(ValueError::Empty)?;
        let mut members = object.iter().filter(|(_, value)| !value.is_null());
        let (name, value) = members.next().ok_or(ValueError::Empty)?;
        if members.next().is_some() {
            return Err(ValueError::Several);
        }
        match name.as_str() {
            "S" => Ok(Self::S(text(value)?)),
            "N" => Ok(Self::N(number(value)?)),
            "B" => Ok(Self::B(bytes(value)?)),
            "BOOL" => Ok(Self::Bool(value.as_bool().ok_or(ValueError::Empty)?)),
            "NULL" if value.as_bool() == Some(true) => Ok(Self::Null),
            "NULL" => Err(ValueError::Null),
            "L" => array(value)?.iter().map(Self::from_json).collect::<Result<_, _>>().map(Self::L),
            "M" => value
                .as_object()
                .ok_or(ValueError::Empty)?
                .iter()
                .map(|(name, value)| Ok((name.clone(), Self::from_json(value)?)))
                .collect::<Result<_, ValueError>>()
                .map(Self::M),
            "SS" => set(value, "string", text).map(Self::Ss),
            "NS" => set(value, "number", number).map(Self::Ns),
            "BS" => set(value, "binary", bytes).map(Self::Bs),
            _ => Err(ValueError::Empty),
        }
    }

    /// The type's name.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::S(_) => "S",
            Self::N(_) => "N",
            Self::B(_) => "B",
            Self::Bool(_) => "BOOL",
            Self::Null => "NULL",
            Self::L(_) => "L",
            Self::M(_) => "M",
            Self::Ss(_) => "SS",
            Self::Ns(_) => "NS",
            Self::Bs(_) => "BS",
        }
    }

    /// Compares two values; `None` for different types and for types without an order.
    pub fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::S(left), Self::S(right)) => Some(left.cmp(right)),
            (Self::N(left), Self::N(right)) => Some(left.cmp(right)),
            (Self::B(left), Self::B(right)) => Some(left.cmp(right)),
            _ => None,
        }
    }

    /// The result of the function `size`: UTF-16 units of a text, as DynamoDB counts them, bytes, or
    /// elements.
    pub fn size(&self) -> Option<usize> {
        match self {
            Self::S(text) => Some(text.encode_utf16().count()),
            Self::B(bytes) => Some(bytes.len()),
            Self::L(list) => Some(list.len()),
            Self::M(map) => Some(map.len()),
            Self::Ss(set) => Some(set.len()),
            Self::Ns(set) => Some(set.len()),
            Self::Bs(set) => Some(set.len()),
            Self::N(_) | Self::Bool(_) | Self::Null => None,
        }
    }

    /// Converts the value to the journal's types, if possible.
    pub fn stored(&self) -> Option<Value> {
        match self {
            Self::S(text) => Some(Value::S(text.clone())),
            Self::N(number) => number.whole().map(Value::N),
            Self::B(bytes) => Some(Value::B(bytes.clone())),
            _ => None,
        }
    }

    /// The value as DynamoDB's messages show it.
    pub fn in_message(&self) -> String {
        match self {
            Self::S(text) => format!("AttributeValue: {{S:{text}}}"),
            Self::N(number) => format!("AttributeValue: {{N:{number}}}"),
            Self::B(bytes) => format!("AttributeValue: {{B:{}}}", BASE64.encode(bytes)),
            other => format!("AttributeValue: {{{}}}", other.type_name()),
        }
    }
}

impl From<Value> for AttributeValue {
    fn from(value: Value) -> Self {
        match value {
            Value::S(text) => Self::S(text),
            Value::N(number) => Self::N(Number::from(number)),
            Value::B(bytes) => Self::B(bytes),
        }
    }
}

fn text(value: &Json) -> Result<String, ValueError> {
    Ok(value.as_str().ok_or(ValueError::Empty)?.to_owned())
}

fn number(value: &Json) -> Result<Number, ValueError> {
    Ok(Number::parse(value.as_str().ok_or(ValueError::Empty)?)?)
}

fn bytes(value: &Json) -> Result<Vec<u8>, ValueError> {
    let text = value.as_str().ok_or(ValueError::Empty)?;
    BASE64.decode(text).map_err(|_| ValueError::Base64)
}

fn array(value: &Json) -> Result<&[Json], ValueError> {
    Ok(value.as_array().ok_or(ValueError::Empty)?)
}

fn set<T: Ord>(
    value: &Json,
    of: &'static str,
    read: impl Fn(&Json) -> Result<T, ValueError>,
) -> Result<BTreeSet<T>, ValueError> {
    let members = array(value)?;
    if members.is_empty() {
        return Err(ValueError::EmptySet(of));
    }
    let set: BTreeSet<T> = members.iter().map(read).collect::<Result<_, _>>()?;
    if set.len() < members.len() {
        return Err(ValueError::Duplicates);
    }
    Ok(set)
}
