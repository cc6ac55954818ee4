//! Names of a session's executions, computed from the session's id, so that all programs find and start the same
//! executions; and the verdict's hash in what an execution has recorded.

use journal::id::SessionId;
use journal::item::Hash;
use serde_json::Value;

/// Maximum number of resumes of a session.
pub const RESUMES_MAX: u32 = 99;

/// Longest name of an execution, in characters.
///
/// Source: AWS, `StartExecution`, `name`.
pub const NAME_CHARS_MAX: usize = 80;

/// Longest session part of a resuming execution's name; `-resume-99` follows it.
const SESSION_CHARS_MAX: usize = 70;

/// Characters of the hash that replaces the end of a longer id.
const HASH_CHARS: usize = 32;

/// The name of the execution of a session's n-th resume; 0 is its first execution.
pub fn name(session: &SessionId, resumes: u32) -> String {
    if resumes == 0 {
        return session.to_string();
    }
    let id = session.as_str();
    if id.len() <= SESSION_CHARS_MAX {
        return format!("{id}-resume-{resumes}");
    }
    // Two ids may differ only at the end.
    let (hash, kept) = (Hash::of(id.as_bytes()), SESSION_CHARS_MAX - HASH_CHARS - 1);
    format!("{}-{}-resume-{resumes}", &id[..kept], &hash.as_str()[..HASH_CHARS])
}

/// How deep JSON in JSON is searched: an event's details hold an output as text, which holds a payload.
const DEPTH_MAX: u32 = 8;

/// The hash of the session's verdict in an execution's output, or in an event of its history. A failed execution has no
/// output, but its history has the poller's reply.
pub fn head_in(session: &SessionId, recorded: &Value) -> Option<Hash> {
    search(session, recorded, DEPTH_MAX)
}

fn search(session: &SessionId, recorded: &Value, depth: u32) -> Option<Hash> {
    let depth = depth.checked_sub(1)?;
    match recorded {
        Value::Object(members) => {
            let text = |name: &str| members.get(name).and_then(Value::as_str);
            let is_hash =
                |head: &&str| head.len() == 64 && head.bytes().all(|b| b.is_ascii_hexdigit());
            match text("head").filter(is_hash) {
                Some(head) if text("session_id") == Some(session.as_str()) => {
                    Some(Hash::from_record(head))
                }
                _ => members.values().find_map(|member| search(session, member, depth)),
            }
        }
        Value::Array(values) => values.iter().find_map(|value| search(session, value, depth)),
        Value::String(text) if text.starts_with('{') => {
            search(session, &serde_json::from_str(text).ok()?, depth)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn every_execution_name_is_unique_and_within_the_limit() {
        let mut names = BTreeSet::new();
        for length in [33, 36, 69, 70, 71, 80, 99, 100] {
            for end in ["a", "b"] {
                let id = format!("{}{end}", "s".repeat(length - 1)).parse().unwrap();
                for resumes in [1, 9, 10, RESUMES_MAX] {
                    let name = name(&id, resumes);
                    assert!(name.len() <= NAME_CHARS_MAX, "{name}");
                    assert!(names.insert(name.clone()), "{name}");
                }
            }
        }
    }

    #[test]
    fn a_head_is_found_in_an_output_and_in_a_history_event() {
        let id: SessionId = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap();
        let other: SessionId = "0190a5c4-7b1e-7cc3-98c4-dc0c0c073990".parse().unwrap();
        let verdict = json!({"session_id": id.as_str(), "head": "a".repeat(64)});
        let event = json!({"details": {"output": json!({"Payload": verdict}).to_string()}});
        for recorded in [verdict, event] {
            assert_eq!(head_in(&id, &recorded), Some(Hash::from_record(&"a".repeat(64))));
            assert_eq!(head_in(&other, &recorded), None);
        }
        assert_eq!(head_in(&id, &json!({"session_id": id.as_str(), "head": "short"})), None);
    }

    #[test]
    fn the_first_execution_is_named_as_its_session() {
        let id: SessionId = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap();
        assert_eq!(name(&id, 0), id.as_str());
        assert_eq!(name(&id, 2), "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f-resume-2");
    }
}
