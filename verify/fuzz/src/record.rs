//! Records: what parses as a record is written back unchanged, and no stored bytes allocate more
//! memory than the journal allows.
//!
//! An input that starts with `{` is an item in DynamoDB's JSON. Any other is a compressed payload:
//! four bytes for the length that its record states, then the frame.

use journal::clock::Stamp;
use journal::error_message::ErrorMessage;
use journal::event::{Draft, Event};
use journal::id::SessionId;
use journal::item::{HASH, Item};
use journal::key;
use journal::lease::Lease;
use journal::limits::{ERROR_MESSAGE_CHARS_MAX, PAYLOAD_BYTES_MAX};
use journal::payload::Payload;
use journal::step::Step;
use serde_json::{Value, json};

/// Longest part of an error message other than quoted input, in bytes.
const ERROR_WORDS_BYTES_MAX: usize = 200;

/// Checks an item's JSON, or a compressed payload.
///
/// # Panics
/// A promise is broken.
pub fn check(bytes: &[u8]) {
    match bytes.split_first_chunk() {
        Some((stated, frame)) if bytes[0] != b'{' => {
            let raw_bytes = u32::from_le_bytes(*stated);
            payload(&Payload::Zstd { bytes: frame.to_vec(), raw_bytes });
        }
        _ => {
            if let Ok(json) = serde_json::from_slice(bytes) {
                item(&json, bytes.len());
            }
        }
    }
}

/// The golden records, records with extreme keys, and frames that state too large a length.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<_> =
        crate::golden_records().iter().map(|record| record.to_string().into_bytes()).collect();
    let session = "SESSION#0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f";
    for record in [
        json!({"PK": {"S": session}, "SK": {"S": "LEASE"}, "Epoch": {"N": "1"}, "Beat": {"N": "7"},
            "BeatAt": {"S": "2026-11-21T10:30:00Z"}, "Runner": {"S": "agent:1"}}),
        json!({"PK": {"S": session}, "SK": {"S": "EVENT#2261-01-01T00:00:60.999999999+23:59"},
            "Status": {"S": "SESSION_FAILED"}, "Step": {"N": "4294967295"}, "EndHash": {"S": ""},
            "Payload": {"B": "KLUv/SAAAQAA"}, "PayloadBytes": {"N": "4194304"}}),
        json!({"PK": {"S": ""}, "SK": {"S": ""}, "": {"N": "-9223372036854775808"}}),
    ] {
        seeds.push(record.to_string().into_bytes());
    }
    for (json, stated) in [(json!("a".repeat(5_000)), 5_002_u32), (json!(vec![0; 9_000]), u32::MAX)]
    {
        let encoded = Payload::encode(&json).expect("a small payload");
        if let Payload::Zstd { bytes, .. } = encoded.payload {
            seeds.push([&stated.to_le_bytes()[..], &bytes].concat());
        }
    }
    seeds
}

fn item(json: &Value, input_bytes: usize) {
    let bounded = |error: &dyn std::error::Error| {
        assert!(error.to_string().len() <= input_bytes + ERROR_WORDS_BYTES_MAX, "{error}");
    };
    let item = match Item::from_json(json) {
        Ok(item) => item,
        Err(error) => return bounded(&error),
    };
    let written = item.to_json();
    let again = Item::from_json(&written).expect("what was written reads as an item");
    assert_eq!(again, item);
    assert_eq!(again.to_json().to_string(), written.to_string());
    assert_eq!(again.hash(), item.hash());
    assert_eq!(item.clone().hashed().hash(), item.hash(), "the hash does not cover itself");
    assert_eq!(item.clone().hashed().text_opt(HASH), Some(item.hash().as_str()));
    match Event::from_item(&item) {
        Ok(found) => event(&item, &found),
        Err(error) => bounded(&error),
    }
    match Step::from_item(&item) {
        Ok(found) => step(&item, &found),
        Err(error) => bounded(&error),
    }
    match Lease::from_item(&item) {
        Ok(lease) => {
            assert_eq!(Lease::from_item(&lease.to_item(&a_session(), 0)), Ok(lease));
        }
        Err(error) => bounded(&error),
    }
    match Payload::read_from(&item) {
        Ok(found) => found.iter().for_each(payload),
        Err(error) => bounded(&error),
    }
}

fn event(item: &Item, event: &Event) {
    assert_eq!(event.hash, item.hash());
    assert_eq!(key::session(&event.session), item.pk);
    assert_eq!(Stamp::parse(&event.stamp.to_string()), Ok(event.stamp));
    error_message(event.error.as_ref());
    let rewrite = |event: &Event| {
        let draft = Draft {
            status: event.status,
            about: event.about,
            error: event.error.clone(),
            detail: event.detail.clone(),
            principal: event.principal.clone(),
            seal: event.seal.clone(),
        };
        let (stamp, wall) = (event.stamp, event.wall);
        draft.to_item(&event.session, event.writer, stamp, wall, event.expires_at)
    };
    let written = rewrite(event);
    let again = Event::from_item(&written).expect("a written event reads as one");
    // Fields that only the first writer decides are ignored: the key's spelling, the id, the
    // execution.
    let expected = Event {
        sk: written.sk.clone(),
        id: again.id.clone(),
        execution_arn: None,
        hash: written.hash(),
        ..event.clone()
    };
    assert_eq!(again, expected);
    assert_eq!(rewrite(&again), written);
}

fn step(item: &Item, step: &Step) {
    assert_eq!(step.hash, item.hash());
    assert_eq!(key::session(&step.session), item.pk);
    assert_eq!(key::step(step.seq), item.sk);
    let written = step.to_item();
    let again = Step::from_item(&written).expect("a written step reads as one");
    assert_eq!(again, Step { hash: written.hash(), ..step.clone() });
    assert_eq!(again.to_item(), written);
}

fn error_message(message: Option<&ErrorMessage>) {
    if let Some(text) = message.map(ErrorMessage::as_str) {
        assert!(text.chars().count() <= ERROR_MESSAGE_CHARS_MAX);
        assert!(!text.contains(char::is_control));
    }
}

fn payload(payload: &Payload) {
    let stored = payload.write_to(Item::new("p", "s"));
    assert_eq!(Payload::read_from(&stored), Ok(Some(payload.clone())));
    let decoded = payload.decode(&[]);
    assert_eq!(decoded, payload.decode(&[]));
    let Ok(json) = decoded else { return };
    if let Payload::Zstd { raw_bytes, .. } | Payload::Parts { raw_bytes, .. } = payload {
        assert!(usize::try_from(*raw_bytes).is_ok_and(|bytes| bytes <= PAYLOAD_BYTES_MAX));
    }
    match Payload::encode(&json) {
        Ok(encoded) => assert_eq!(encoded.payload.decode(&encoded.parts), Ok(json)),
        Err(too_large) => assert!(too_large.bytes > PAYLOAD_BYTES_MAX),
    }
}

fn a_session() -> SessionId {
    "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().expect("a session id")
}
