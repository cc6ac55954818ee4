//! Attempts to deliver a notice, each an immutable record.
//!
//! They are not part of the session's chain: a session is sealed before anybody is told of it, and an event after the
//! verdict would be unsealed. They have a partition of their own beside it.

use std::time::Duration;

use journal::chain::put_until_known;
use journal::clock::{Hlc, Stamp};
use journal::event::Event;
use journal::id::SessionId;
use journal::item::{Item, ItemError};
use journal::key::{self, attribute};
use journal::store::{Condition, Error, Query, Store, query_all};
use serde_json::{Value, json};

/// The schema version of a record.
const VERSION: i64 = 1;

const EVENT: &str = "Event";
const TARGET: &str = "Target";
const ATTEMPT: &str = "Attempt";
const OUTCOME: &str = "Outcome";
const REASON: &str = "Reason";

/// Longest reason, in characters.
const REASON_CHARS_MAX: usize = 300;

/// The pauses after the attempts that failed.
const PAUSES: [Duration; 8] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(2 * 60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(60 * 60),
    Duration::from_secs(2 * 60 * 60),
    Duration::from_secs(4 * 60 * 60),
];

/// Most attempts of a local stack for one notice and one target, over eight hours.
pub const ATTEMPTS_MAX: u32 = 9;

/// How long after its event a notice is news. What is older, because the stack did not run, is not sent.
pub const NEWS_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// What became of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The target accepted it.
    Delivered,
    /// It failed, and is tried again.
    Failed(String),
    /// It failed, and is not tried again.
    Undelivered(String),
    /// The question was answered before the target could be told of it.
    Over,
}

impl Outcome {
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Failed(_) => "failed",
            Self::Undelivered(_) => "undelivered",
            Self::Over => "over",
        }
    }

    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Failed(why) | Self::Undelivered(why) => Some(why),
            Self::Delivered | Self::Over => None,
        }
    }

    /// Whether nothing more is to be done.
    pub const fn is_final(&self) -> bool {
        !matches!(self, Self::Failed(_))
    }

    /// What a failure of this attempt means: the last one gives up.
    pub fn of_failure(attempt: u32, attempts_max: u32, why: &str) -> Self {
        let why: String = why.chars().take(REASON_CHARS_MAX).collect();
        if attempt < attempts_max { Self::Failed(why) } else { Self::Undelivered(why) }
    }
}

/// One attempt, or the decision to make none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub session: SessionId,
    /// The sort key of the event that is told.
    pub event: String,
    /// The target's name.
    pub target: String,
    /// From 1.
    pub attempt: u32,
    pub at: Stamp,
    pub outcome: Outcome,
    /// When the record expires, in seconds since 1970.
    pub expires_at: i64,
}

impl Delivery {
    /// An attempt to tell a target of an event.
    pub fn of(event: &Event, target: &str, attempt: u32, at: Stamp, outcome: Outcome) -> Self {
        Self {
            session: event.session.clone(),
            event: event.sk.clone(),
            target: target.to_owned(),
            attempt,
            at,
            outcome,
            expires_at: event.expires_at,
        }
    }

    pub fn to_item(&self) -> Item {
        let sk = format!("{}#{}#{:04}", self.event, self.target, self.attempt);
        Item::new(key::notices(&self.session), sk)
            .with(attribute::VERSION, VERSION)
            .with(attribute::TIMESTAMP, self.at.to_string())
            .with(attribute::EXPIRES_AT, self.expires_at)
            .with(EVENT, self.event.as_str())
            .with(TARGET, self.target.as_str())
            .with(ATTEMPT, self.attempt)
            .with(OUTCOME, self.outcome.as_str())
            .with_some(REASON, self.outcome.reason())
            .hashed()
    }

    /// # Errors
    /// The item is none of these records.
    pub fn from_item(item: &Item) -> Result<Self, ItemError> {
        let session = key::session_of_notices(&item.pk);
        let reason = || item.text_opt(REASON).unwrap_or_default().to_owned();
        let outcome = match item.text(OUTCOME)? {
            "delivered" => Outcome::Delivered,
            "failed" => Outcome::Failed(reason()),
            "undelivered" => Outcome::Undelivered(reason()),
            "over" => Outcome::Over,
            _ => return Err(item.malformed(OUTCOME, "an outcome")),
        };
        let at = Stamp::parse(item.text(attribute::TIMESTAMP)?);
        let attempt = u32::try_from(item.number(ATTEMPT)?);
        Ok(Self {
            session: session.ok_or_else(|| item.malformed("PK", "a partition of notices"))?,
            event: item.text(EVENT)?.to_owned(),
            target: item.text(TARGET)?.to_owned(),
            attempt: attempt.map_err(|_| item.malformed(ATTEMPT, "a number of an attempt"))?,
            at: at.map_err(|_| item.malformed(attribute::TIMESTAMP, "a time"))?,
            outcome,
            expires_at: item.number(attribute::EXPIRES_AT).unwrap_or(0),
        })
    }

    /// Journals it, unless this attempt is journaled.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn write<S: Store>(&self, store: &S, hlc: &Hlc) -> Result<(), Error> {
        put_until_known(store, hlc, &self.to_item(), &Condition::Absent).await.map(drop)
    }

    /// As the API shows it.
    pub fn to_json(&self) -> Value {
        json!({
            "session_id": self.session, "event": self.event, "target": self.target,
            "attempt": self.attempt, "at": self.at.to_string(),
            "outcome": self.outcome.as_str(), "reason": self.outcome.reason(),
        })
    }
}

/// The deliveries of a session, by event, target and attempt. Unreadable records are left out: a notice is rather sent
/// twice than not at all.
///
/// # Errors
/// The store cannot be read.
pub async fn of_session<S: Store>(store: &S, session: &SessionId) -> Result<Vec<Delivery>, Error> {
    let items = query_all(store, Query::all(key::notices(session))).await?;
    Ok(items.iter().filter_map(|item| Delivery::from_item(item).ok()).collect())
}

/// What is left to do for an event and a target, after these attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This attempt, not before this time.
    Attempt(u32, Stamp),
    Nothing,
}

/// The next attempt to tell a target of an event. `told` are deliveries of the session.
pub fn next(told: &[Delivery], event: &Event, target: &str) -> Next {
    let of_both = |it: &&Delivery| it.event == event.sk && it.target == target;
    let newest = told.iter().filter(of_both).max_by_key(|delivery| delivery.attempt);
    match newest {
        None => Next::Attempt(1, event.stamp),
        Some(newest) if newest.outcome.is_final() => Next::Nothing,
        Some(newest) => Next::Attempt(newest.attempt + 1, newest.at.after(pause(newest.attempt))),
    }
}

/// The pause after an attempt that failed.
pub fn pause(attempt: u32) -> Duration {
    let place = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
    PAUSES[place.min(PAUSES.len() - 1)]
}

#[cfg(test)]
mod tests {
    use journal::event::{About, Draft, EventStatus, Writer};

    use super::*;

    fn delivery(attempt: u32, ms: i64, outcome: Outcome) -> Delivery {
        Delivery {
            session: "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap(),
            event: "EVENT#1".to_owned(),
            target: "pager".to_owned(),
            attempt,
            at: Stamp::from_millis(ms),
            outcome,
            expires_at: 7,
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        for outcome in [
            Outcome::Delivered,
            Outcome::Failed("it replied 503".to_owned()),
            Outcome::Undelivered("it replied 410".to_owned()),
            Outcome::Over,
        ] {
            let written = delivery(3, 1_000, outcome);
            assert_eq!(Delivery::from_item(&written.to_item()).as_ref(), Ok(&written));
        }
    }

    #[test]
    fn attempts_follow_each_other_with_longer_pauses_up_to_a_bound() {
        let session = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap();
        let draft = Draft::new(EventStatus::SessionSucceeded, About::Step(4));
        let item = draft.to_item(&session, Writer::Poller, Stamp::from_millis(0), None, 7);
        let event = Event::from_item(&item).unwrap();
        assert_eq!(next(&[], &event, "pager"), Next::Attempt(1, event.stamp));
        let mut told = Vec::new();
        let mut before = Duration::ZERO;
        for attempt in 1..ATTEMPTS_MAX {
            let failed = Outcome::of_failure(attempt, ATTEMPTS_MAX, "it replied 503");
            told.push(Delivery::of(&event, "pager", attempt, event.stamp, failed));
            let Next::Attempt(number, at) = next(&told, &event, "pager") else {
                panic!("{attempt}")
            };
            let pause = at.since(event.stamp);
            assert!(number == attempt + 1 && pause > before, "{number} {pause:?}");
            before = pause;
        }
        let last = Outcome::of_failure(ATTEMPTS_MAX, ATTEMPTS_MAX, "it replied 503");
        told.push(Delivery::of(&event, "pager", ATTEMPTS_MAX, event.stamp, last));
        assert_eq!(next(&told, &event, "pager"), Next::Nothing);
        assert_eq!(next(&told, &event, "bus"), Next::Attempt(1, event.stamp));
    }
}
