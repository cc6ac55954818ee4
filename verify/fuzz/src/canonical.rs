//! Canonical bytes: each item has unique bytes, independent of insertion order, and a hash that a
//! few lines of code can recompute.
//!
//! An input is read as choices that build an item, and a second one that differs in one place.

use std::collections::BTreeMap;

use journal::item::{HASH, Item, Value};
use serde_json::Map;
use sha2::{Digest as _, Sha256};

use crate::cursor::Cursor;

/// Checks the item built from the bytes.
///
/// # Panics
/// A promise is broken.
pub fn check(bytes: &[u8]) {
    let mut cursor = Cursor::new(bytes);
    let item = item(&mut cursor);
    let canonical = item.canonical_bytes();
    assert_eq!(canonical, recomputed(&item), "the layout is the documented one");
    assert_eq!(item.hash().as_str(), hex(&Sha256::digest(&canonical)));
    assert_eq!(read(&canonical), Some(covered(&item)), "what was hashed can be read back");

    assert_eq!(rebuilt_backwards(&item), item);
    let backwards: Map<_, _> =
        item.to_json().as_object().into_iter().flatten().rev().map(own).collect();
    let shuffled = Item::from_json(&backwards.into()).expect("an item's JSON in another order");
    assert_eq!(shuffled.canonical_bytes(), canonical, "the order of insertion does not count");
    assert_eq!(item.clone().hashed().hash(), item.hash(), "the hash does not cover itself");

    let other = changed(item.clone(), &mut cursor);
    let differs = covered(&other) != covered(&item);
    assert_eq!(other.canonical_bytes() != canonical, differs, "{item:?}\n{other:?}");
    assert_eq!(other.hash() != item.hash(), differs, "{item:?}\n{other:?}");
}

/// Items whose names and values look like the surrounding layout.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        Vec::new(),
        (0..=255).collect(),
        (0..=255).rev().collect(),
        b"3:abcS1:x2:PKS0:".repeat(8),
        vec![7; 64],
        vec![255; 64],
    ]
}

fn item(cursor: &mut Cursor<'_>) -> Item {
    let mut item = Item::new(cursor.text(12), cursor.text(12));
    for _ in 0..cursor.below(8) {
        let (name, value) = (name(cursor), value(cursor));
        item.attributes.insert(name, value);
    }
    item
}

/// No attribute has a key's name: reading never creates such an item.
fn name(cursor: &mut Cursor<'_>) -> String {
    match cursor.below(4) {
        0 => HASH.to_owned(),
        1 => "Status".to_owned(),
        _ => format!("{}!", cursor.text(8)),
    }
}

fn value(cursor: &mut Cursor<'_>) -> Value {
    match cursor.below(3) {
        0 => Value::S(cursor.text(16)),
        1 => Value::N(cursor.whole()),
        _ => Value::B(cursor.bytes(16)),
    }
}

/// The item with one change, which may leave it equal.
fn changed(mut item: Item, cursor: &mut Cursor<'_>) -> Item {
    match cursor.below(6) {
        0 => item.pk = cursor.text(12),
        1 => item.sk = cursor.text(12),
        // Move the border between two neighbours.
        2 => {
            if let Some(last) = item.pk.pop() {
                item.sk.insert(0, last);
            }
        }
        3 => {
            let (name, value) = (name(cursor), value(cursor));
            item.attributes.insert(name, value);
        }
        4 => {
            let place = cursor.below(item.attributes.len().max(1));
            let Some(name) = item.attributes.keys().nth(place).cloned() else { return item };
            item.attributes.remove(&name);
        }
        // The same bytes with another type.
        _ => {
            let place = cursor.below(item.attributes.len().max(1));
            if let Some(value) = item.attributes.values_mut().nth(place) {
                *value = match value {
                    Value::S(text) => Value::B(text.clone().into_bytes()),
                    Value::N(number) => Value::S(number.to_string()),
                    Value::B(bytes) => Value::S(String::from_utf8_lossy(bytes).into_owned()),
                };
            }
        }
    }
    item
}

fn own((name, value): (&String, &serde_json::Value)) -> (String, serde_json::Value) {
    (name.clone(), value.clone())
}

fn rebuilt_backwards(item: &Item) -> Item {
    let attributes = item.attributes.iter().rev();
    attributes.fold(Item::new(item.pk.as_str(), item.sk.as_str()), |rebuilt, (name, value)| {
        rebuilt.with(name, value.clone())
    })
}

/// Everything that the hash covers: by name, the type's letter and the value's bytes.
type Covered = BTreeMap<String, (u8, Vec<u8>)>;

fn covered(item: &Item) -> Covered {
    let spelled = |value: &Value| match value {
        Value::S(text) => (b'S', text.clone().into_bytes()),
        Value::N(number) => (b'N', number.to_string().into_bytes()),
        Value::B(bytes) => (b'B', bytes.clone()),
    };
    let mut all: Covered =
        item.attributes.iter().map(|(name, value)| (name.clone(), spelled(value))).collect();
    all.remove(HASH);
    all.insert("PK".to_owned(), (b'S', item.pk.clone().into_bytes()));
    all.insert("SK".to_owned(), (b'S', item.sk.clone().into_bytes()));
    all
}

/// A second implementation of the documented layout.
fn recomputed(item: &Item) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, (letter, value)) in covered(item) {
        let letter = char::from(letter);
        bytes.extend(format!("{}:{name}{letter}{}:", name.len(), value.len()).into_bytes());
        bytes.extend(value);
    }
    bytes
}

/// Parses the layout. Because this is possible, no two items share their bytes.
fn read(mut bytes: &[u8]) -> Option<Covered> {
    fn counted<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
        let colon = bytes.iter().position(|byte| *byte == b':')?;
        let length: usize = std::str::from_utf8(&bytes[..colon]).ok()?.parse().ok()?;
        let (counted, rest) = bytes[colon + 1..].split_at_checked(length)?;
        *bytes = rest;
        Some(counted)
    }
    let mut all = Covered::new();
    while !bytes.is_empty() {
        let name = String::from_utf8(counted(&mut bytes)?.to_vec()).ok()?;
        let (letter, rest) = bytes.split_first()?;
        bytes = rest;
        all.insert(name, (*letter, counted(&mut bytes)?.to_vec()));
    }
    Some(all)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
