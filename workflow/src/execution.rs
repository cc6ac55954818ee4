//! What a session's executions are called. Everybody who looks for one, or starts another, computes
//! the same names.

use journal::id::SessionId;
use journal::item::Hash;

/// A session is resumed at most this often.
pub const RESUMES_MAX: u32 = 99;

/// Longest name of an execution, in characters.
///
/// Source: AWS, `StartExecution`, `name`.
pub const NAME_CHARS_MAX: usize = 80;

/// Longest part of a resuming execution's name that stands for its session; `-resume-99` follows.
const SESSION_CHARS_MAX: usize = 70;

/// How much of a longer id's hash stands in for its end.
const HASH_CHARS: usize = 32;

/// The name of the execution that a session was resumed with for the n-th time; 0 is the one that
/// it began with.
pub fn name(session: &SessionId, resumes: u32) -> String {
    if resumes == 0 {
        return session.to_string();
    }
    let id = session.as_str();
    if id.len() <= SESSION_CHARS_MAX {
        return format!("{id}-resume-{resumes}");
    }
    // Two ids may differ in their ends only.
    let (hash, kept) = (Hash::of(id.as_bytes()), SESSION_CHARS_MAX - HASH_CHARS - 1);
    format!("{}-{}-resume-{resumes}", &id[..kept], &hash.as_str()[..HASH_CHARS])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_session_and_every_resume_has_a_name_of_its_own_that_fits() {
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
