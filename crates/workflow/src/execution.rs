//! Names of a session's executions. They are computed from the session's id, so that all programs
//! find and start the same executions.

use journal::id::SessionId;
use journal::item::Hash;

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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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
    fn the_first_execution_is_named_as_its_session() {
        let id: SessionId = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap();
        assert_eq!(name(&id, 0), id.as_str());
        assert_eq!(name(&id, 2), "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f-resume-2");
    }
}
