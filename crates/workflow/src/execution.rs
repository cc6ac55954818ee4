//! Names of a session's executions, computed from the session's id, so that all programs find and start the same
//! executions; and the verdict's hash in what an execution has recorded.

use std::collections::BTreeMap;

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

/// The ARN of a state machine's execution; `None` if `machine` is not the ARN of a state machine.
pub fn arn(machine: &str, execution: &str) -> Option<String> {
    let (before, name) = machine.split_once(":stateMachine:")?;
    Some(format!("{before}:execution:{name}:{execution}"))
}

/// The states whose task is the poller, which writes the verdict: their replies hold its hash.
const SEALING: [&str; 2] = ["CheckStatus", "CloseSession"];

/// An event of an execution's history, as far as heads need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    pub id: i64,
    /// The event that led to it.
    pub previous: i64,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A state was entered, by name.
    Entered(String),
    /// A task succeeded, with this output.
    Succeeded(String),
    Other,
}

/// The hash of the session's verdict in an execution's output.
pub fn head_in_output(session: &SessionId, output: &Value) -> Option<Hash> {
    let text = |name: &str| output.get(name).and_then(Value::as_str);
    let head = text("head").filter(|_| text("session_id") == Some(session.as_str()))?;
    let is_digit = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    (head.len() == 64 && head.bytes().all(is_digit)).then(|| Hash::from_record(head))
}

/// The hashes of the session's verdict in the replies of the poller: a failed execution has no output. Other events hold
/// what callers and agents have sent, and do not count.
pub fn heads_in_history(session: &SessionId, history: &[Past]) -> Vec<Hash> {
    let by_id: BTreeMap<_, _> = history.iter().map(|event| (event.id, event)).collect();
    let is_of_poller = |event: &Past| {
        let before = |event: &&Past| by_id.get(&event.previous).copied();
        let mut cause = std::iter::successors(Some(event), before).take(history.len());
        cause.find_map(|event| match &event.what {
            What::Entered(state) => Some(SEALING.contains(&state.as_str())),
            _ => None,
        })
    };
    let replies = history.iter().filter_map(|event| match &event.what {
        What::Succeeded(output) if is_of_poller(event) == Some(true) => Some(output),
        _ => None,
    });
    let verdicts = replies.filter_map(|reply| {
        let reply: Value = serde_json::from_str(reply).ok()?;
        head_in_output(session, reply.pointer("/Payload/verdict")?)
    });
    verdicts.collect()
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

    fn id() -> SessionId {
        "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap()
    }

    fn verdict(head: &str) -> Value {
        json!({"session_id": id().as_str(), "head": head})
    }

    #[test]
    fn a_head_in_an_output_has_one_form() {
        let head = "a".repeat(64);
        assert_eq!(head_in_output(&id(), &verdict(&head)), Some(Hash::from_record(&head)));
        let other: SessionId = "0190a5c4-7b1e-7cc3-98c4-dc0c0c073990".parse().unwrap();
        assert_eq!(head_in_output(&other, &verdict(&head)), None);
        for none in [verdict("short"), verdict(&"A".repeat(64)), json!({"in": verdict(&head)})] {
            assert_eq!(head_in_output(&id(), &none), None, "{none}");
        }
    }

    #[test]
    fn only_replies_of_the_poller_hold_heads() {
        let reply = json!({"Payload": {"verdict": verdict(&"a".repeat(64))}}).to_string();
        let history = |state: &str| {
            [What::Entered(state.to_owned()), What::Other, What::Succeeded(reply.clone())]
        };
        let heads = |what: [What; 3]| {
            let past = |(id, what)| Past { id, previous: id - 1, what };
            heads_in_history(&id(), &(1..).zip(what).map(past).collect::<Vec<_>>())
        };
        for state in ["CheckStatus", "CloseSession"] {
            assert_eq!(heads(history(state)), [Hash::from_record(&"a".repeat(64))]);
        }
        // The agent's reply, and what a caller sent to a waiting execution.
        for state in ["InvokeAgent", "WaitForCompletion"] {
            assert_eq!(heads(history(state)), []);
        }
        let loop_of_one = Past { id: 1, previous: 1, what: What::Succeeded(reply.clone()) };
        assert_eq!(heads_in_history(&id(), &[loop_of_one]), []);
    }

    #[test]
    fn the_first_execution_is_named_as_its_session() {
        let id: SessionId = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap();
        assert_eq!(name(&id, 0), id.as_str());
        assert_eq!(name(&id, 2), "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f-resume-2");
    }
}
