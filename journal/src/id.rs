//! Ids, validated on construction.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A session's id, which is also the id of the trigger event, the execution's name and the runtime
/// session's id.
///
/// 33 to 100 characters of `[A-Za-z0-9][A-Za-z0-9-_]*`, which `AgentCore` accepts in requests and
/// in replies. A hyphenated UUID fits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid session id `{text}`: expected 33 to 100 letters, digits, hyphens or underscores, starting with a letter or digit"
)]
pub struct InvalidSessionId {
    text: String,
}

impl SessionId {
    /// A random id, as EventBridge assigns to an event.
    pub fn fresh() -> Self {
        Self(Uuid::new_v4().to_string())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id's first hexadecimal digit, which distributes a day's sessions over partitions; `0` if
    /// the id starts otherwise.
    pub fn shard(&self) -> char {
        self.0.chars().next().filter(|first| matches!(first, '0'..='9' | 'a'..='f')).unwrap_or('0')
    }
}

impl TryFrom<String> for SessionId {
    type Error = InvalidSessionId;

    fn try_from(text: String) -> Result<Self, InvalidSessionId> {
        let starts_well = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        let spelled_well =
            text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if (33..=100).contains(&text.len()) && starts_well && spelled_well {
            Ok(Self(text))
        } else {
            Err(InvalidSessionId { text: text.chars().take(120).collect() })
        }
    }
}

impl FromStr for SessionId {
    type Err = InvalidSessionId;

    fn from_str(text: &str) -> Result<Self, InvalidSessionId> {
        Self::try_from(text.to_owned())
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> String {
        id.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An event's identity: independent of who noticed it and when. Two records with one id report the
/// same fact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(String);

impl EventId {
    /// The id of SESSION_INITIATED, which the state machine writes and cannot compute.
    pub fn initiated() -> Self {
        Self("initiated".to_owned())
    }

    /// The UUID (version 5) of a fact in a session.
    ///
    /// `ordinal` is the attempt, epoch or step number of the event.
    pub fn of(session: &SessionId, writer: &str, what: &str, ordinal: u64) -> Self {
        let name = format!("{session}/{writer}/{what}/{ordinal}");
        Self(Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).to_string())
    }

    /// An id read from a record.
    pub fn from_record(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A process that works on a session; part of each step that it writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Runner(String);

impl Runner {
    /// A runner with the given role (`agent`, `poller` …) and a random id.
    pub fn fresh(role: &str) -> Self {
        Self(format!("{role}:{}", Uuid::new_v4()))
    }

    /// A runner read from a record, or named by a test.
    pub fn named(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_what_agentcore_accepts() {
        for (text, fits) in [
            ("0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f", true),
            ("01J2JBRFQ5M4V6C1B1TQJ7Y8ZK", false),
            ("-190a5c4-7b1e-7cc3-98c4-dc0c0c07398f", false),
            ("0190a5c4-7b1e-7cc3-98c4-dc0c0c07398/", false),
            ("", false),
        ] {
            assert_eq!(text.parse::<SessionId>().is_ok(), fits, "{text}");
        }
        assert!("a".repeat(33).parse::<SessionId>().is_ok());
        assert!("a".repeat(101).parse::<SessionId>().is_err());
    }

    #[test]
    fn an_event_id_is_a_function_of_what_happened() {
        let session: SessionId = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap();
        let id = EventId::of(&session, "invoker", "AGENT_INVOCATION_STARTED", 1);
        assert_eq!(id, EventId::of(&session, "invoker", "AGENT_INVOCATION_STARTED", 1));
        assert_ne!(id, EventId::of(&session, "invoker", "AGENT_INVOCATION_STARTED", 2));
    }
}
