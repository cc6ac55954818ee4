//! Encrypted records: their bytes, and what can and cannot be read without the key.

use journal::cipher::{self, ENCRYPTED, SessionKey};
use journal::item::{Hash, Item, Value};
use journal::key;
use journal::payload::{Payload, part_items};
use journal::step::Step;
use journal::store::Key;
use serde_json::json;

use crate::format::is_on_the_page;
use crate::golden::{at, session};

/// The key of the examples on the page: the bytes 0 to 31.
fn root() -> [u8; 32] {
    std::array::from_fn(|n| u8::try_from(n).unwrap())
}

/// A step with contents of each kind.
fn step() -> Item {
    Item::new(key::session(&session()), key::step(2))
        .with("V", 1_u32)
        .with("ExpiresAt", 1_803_033_000_i64)
        .with("Timestamp", at(20).to_string())
        .with("Kind", "outcome")
        .with("Seq", 2_u32)
        .with("Epoch", 1_u32)
        .with("Runner", "agent:one")
        .with("PrevHash", Hash::genesis().as_str())
        .with("Node", "look")
        .with("Effect", "chat")
        .with("Digest", Hash::of(b"a short secret").as_str())
        .with("Call", 0_u32)
        .with("StartedAt", at(10).to_string())
        .with("Request", vec![7_u8; 32])
        .with("Messages", "[0]")
        .with("Payload", r#"{"pin":"4711"}"#)
        .hashed()
}

#[test]
fn the_encrypted_step_of_the_format_is_right() {
    let item = cipher::encrypt(step(), &SessionKey::of(&root()));
    let Some(Value::B(bytes)) = item.attributes.get(ENCRYPTED) else { panic!("{item:?}") };
    is_on_the_page(&format!("`{}`", hex::encode(bytes)));
    is_on_the_page(&format!("`{}`", item.text("Hash").unwrap()));
    let Some(Value::S(digest)) = item.attributes.get("Digest") else { panic!("{item:?}") };
    is_on_the_page(&format!("`{digest}`"));
}

#[test]
fn the_attributes_of_an_encrypted_step_tell_nothing() {
    let (plain, key) = (step(), SessionKey::of(&root()));
    let item = cipher::encrypt(plain.clone(), &key);
    let stored = Item::from_json(&item.to_json()).unwrap();
    assert_eq!(stored.hash(), item.hash());
    for name in ["Payload", "Messages", "Request"] {
        assert!(!stored.attributes.contains_key(name), "{name}");
    }
    assert_ne!(stored.attributes["Digest"], plain.attributes["Digest"]);
    let closed = Step::from_item(&stored).unwrap();
    assert_eq!(closed.body.payload(), Some(&Payload::Encrypted));
    assert!(Payload::Encrypted.decode(&[]).is_err());
    let opened = cipher::open(stored, &key);
    assert_eq!(opened, item);
    let read = Step::from_item(&opened).unwrap();
    assert_eq!(read.body, Step::from_item(&plain).unwrap().body);
    assert_eq!(cipher::encrypt(step(), &key), item, "a repeated write has the same bytes");
}

#[test]
fn contents_decrypt_only_in_their_own_record() {
    let key = SessionKey::of(&root());
    let item = Item::from_json(&cipher::encrypt(step(), &key).to_json()).unwrap();
    assert_eq!(cipher::open(item.clone(), &key).unreadable_reason(), None);
    let moved = Item { sk: key::step(3), ..item.clone() };
    let of_another = Item { pk: item.pk.replace("0190", "0191"), ..item.clone() };
    let Some(Value::B(mut bytes)) = item.attributes.get(ENCRYPTED).cloned() else { panic!() };
    bytes[20] ^= 1;
    let changed = item.clone().with(ENCRYPTED, bytes);
    let cut = item.clone().with(ENCRYPTED, vec![1_u8; 5]);
    for wrong in [moved, of_another, changed, cut] {
        assert!(cipher::open(wrong, &key).unreadable_reason().is_some());
    }
    let other = SessionKey::of(&[9; 32]);
    assert!(cipher::open(item, &other).unreadable_reason().is_some());
}

#[test]
fn parts_of_an_encrypted_payload_need_the_key() {
    let (key, of) = (SessionKey::of(&root()), Key::new("SESSION#s", "STEP#00000001"));
    let mut noise = "secret".to_owned();
    while noise.len() < 1_000_000 {
        noise.push_str(Hash::of(&noise.as_bytes()[noise.len() - 6..]).as_str());
    }
    let json = json!(noise);
    let encoded = Payload::encode_for(&json, Some((&key, &of))).unwrap();
    assert!(matches!(encoded.payload, Payload::Parts { encrypted: Some(_), .. }));
    assert!(encoded.payload.decode(&encoded.parts).is_err());
    assert_eq!(encoded.payload.decode_with(&encoded.parts, Some(&key)), Ok(json));
    let item = encoded.payload.write_to(Item::new("SESSION#s", "STEP#00000001"));
    assert_eq!(Payload::read_from(&item).unwrap().unwrap(), encoded.payload);
    // In another record the same parts do not decrypt.
    let item = encoded.payload.write_to(Item::new("SESSION#s", "STEP#00000002"));
    let moved = Payload::read_from(&item).unwrap().unwrap();
    assert!(moved.decode_with(&encoded.parts, Some(&key)).is_err());
    assert_eq!(part_items(&session(), 1, &encoded).len(), encoded.parts.len());
}
