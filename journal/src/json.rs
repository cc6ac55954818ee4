//! JSON in which no object has two members of one name: readers differ in which of them counts.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Starts the message of a duplicate member; serde has no error of our own type.
const DUPLICATE: &str = "duplicate member `";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// Two members have this name.
    Duplicate(String),
    NotJson,
}

/// Parses JSON without duplicate members, at any depth.
pub(crate) fn strict(bytes: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(bytes).map(|Strict(value)| value).map_err(|error| {
        let text = error.to_string();
        let name = text.strip_prefix(DUPLICATE).and_then(|text| Some(text.rsplit_once('`')?.0));
        name.map_or(Error::NotJson, |name| Error::Duplicate(name.to_owned()))
    })
}

/// A map without duplicate names.
pub(crate) struct Unique<V>(pub BTreeMap<String, V>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Unique<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members(PhantomData))
    }
}

struct Members<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for Members<V> {
    type Value = Unique<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut unique = BTreeMap::new();
        while let Some((name, value)) = members.next_entry::<String, V>()? {
            if unique.contains_key(&name) {
                return Err(A::Error::custom(format_args!("{DUPLICATE}{name}`")));
            }
            unique.insert(name, value);
        }
        Ok(Unique(unique))
    }
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any).map(Self)
    }
}

struct Any;

impl<'de> DeserializeSeed<'de> for Any {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = elements.next_element_seed(Self)? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Value, A::Error> {
        let Unique(members) = Members::<Strict>(PhantomData).visit_map(members)?;
        let members = members.into_iter().map(|(name, Strict(value))| (name, value));
        Ok(Value::Object(members.collect::<Map<_, _>>()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicate_members_are_refused_at_any_depth() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"\u0061":2}}]"#] {
            assert_eq!(strict(text.as_bytes()), Err(Error::Duplicate("a".to_owned())), "{text}");
        }
        let text = br#"{"a":[1,-2,1.5,"x",null,true],"b":{"a":{}}}"#;
        let expected = json!({"a": [1, -2, 1.5, "x", null, true], "b": {"a": {}}});
        assert_eq!(strict(text), Ok(expected));
        assert_eq!(strict(b"{} {}"), Err(Error::NotJson));
    }
}
