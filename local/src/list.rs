//! A list of sessions as people see it: what a filter admits, newest first, a page at a time.

use std::str::FromStr;
use std::time::Duration;

use journal::clock::Stamp;
use journal::listing::{Filter, Place, Search, Shelf, Summary};
use journal::payload::Payload;
use journal::read;
use journal::store::{Error, Store};
use journal::tally::{Asked, Ended, Tally};
use serde_json::Value;

use crate::view::Session;

/// Largest result that a list over HTTP shows, in bytes of its JSON text; the session has it whole.
pub const RESULT_BYTES_MAX: usize = 16 * 1024;

/// What is to be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Which sessions.
    pub filter: Filter,
    /// Of those, the ones whose id, agent, error or open question has this text in it, in any case.
    pub text: Option<String>,
    /// At most so many.
    pub limit: usize,
    /// The largest result that is shown, in bytes of its JSON text. Of a larger one the size is.
    pub result_bytes_max: usize,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// The sessions that fit, newest first.
    pub sessions: Vec<Session>,
    /// How many were looked at for that.
    pub searched: usize,
    /// Where the next page begins: behind this place. `None` if there is nothing there.
    pub more: Option<Place>,
}

/// A time: an instant, or how long ago it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// An instant.
    At(Stamp),
    /// So long ago.
    Ago(Duration),
}

/// A text that is no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a number and one of s, m, h, d, such as 24h, or a time such as 2026-11-22T08:00:00Z"
)]
pub struct InvalidTime;

impl When {
    /// The instant, seen from `now`.
    pub fn stamp(self, now: Stamp) -> Stamp {
        match self {
            Self::At(at) => at,
            Self::Ago(age) => now.before(age),
        }
    }
}

impl FromStr for When {
    type Err = InvalidTime;

    /// Reads `90s`, `30m`, `24h`, `7d`, or RFC 3339.
    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        if let Ok(at) = Stamp::parse(text) {
            return Ok(Self::At(at));
        }
        let unit = text.chars().last().ok_or(InvalidTime)?;
        let seconds: u64 = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return Err(InvalidTime),
        };
        let number: u64 = text[..text.len() - 1].parse().map_err(|_| InvalidTime)?;
        Ok(Self::Ago(Duration::from_secs(number.checked_mul(seconds).ok_or(InvalidTime)?)))
    }
}

/// Lists at most so many sessions, and looks at no more than one [`Search`] does.
///
/// # Errors
/// When the store cannot be read.
pub async fn list<S: Store>(
    store: &S,
    shelf: &Shelf,
    wish: &Wish,
    now: Stamp,
) -> Result<List, Error> {
    let text = wish.text.as_deref().map(str::to_lowercase);
    let mut search = Search::new(store, shelf, &wish.filter, now);
    let mut sessions = Vec::new();
    while sessions.len() < wish.limit
        && let Some(summary) = search.next().await?
    {
        let session = session(store, &summary, wish.result_bytes_max, now).await?;
        if text.as_deref().is_none_or(|text| mentions(&session, text)) {
            sessions.push(session);
        }
    }
    Ok(List { sessions, searched: search.searched(), more: search.more() })
}

/// A session of a list, with its question and its result read.
async fn session<S: Store>(
    store: &S,
    summary: &Summary,
    result_bytes_max: usize,
    now: Stamp,
) -> Result<Session, Error> {
    let Summary { session: id, told, tally } = summary;
    let ask = match tally.ask.as_ref().filter(|_| !told.status.is_terminal()) {
        Some(Asked { seq, expires_at, payload }) => {
            let payload = readable(read::payload(store, id, payload).await)?;
            Some(Asked { seq: *seq, expires_at: *expires_at, payload })
        }
        None => None,
    };
    let is_large = |payload: &Payload| payload.text_bytes() > result_bytes_max;
    let mut left_out = None;
    let end = match &tally.end {
        Some(Ended { error, error_category, payload }) => {
            left_out = is_large(payload).then(|| payload.text_bytes());
            let payload = match left_out {
                Some(_) => Value::Null,
                None => readable(read::payload(store, id, payload).await)?,
            };
            let (error, error_category) = (error.clone(), error_category.clone());
            Some(Ended { error, error_category, payload })
        }
        None => None,
    };
    let Tally { steps, spent, .. } = *tally;
    let tally = Tally { steps, agent: tally.agent.clone(), spent, ask, end };
    Ok(Session { result_bytes: left_out, ..Session::adding_up(id, told, &tally, now) })
}

/// A damaged payload is told of by whoever reads the session; in a list it is only missing.
fn readable(payload: Result<Value, Error>) -> Result<Value, Error> {
    match payload {
        Err(Error::Corrupt(_)) => Ok(Value::Null),
        other => other,
    }
}

/// Whether a text, in small letters, is in what a list shows of a session.
fn mentions(session: &Session, text: &str) -> bool {
    let prompt = session.open_question.as_ref().map(|question| question.prompt.as_str());
    let words = [
        Some(session.session_id.as_str()),
        session.agent.as_deref(),
        session.error.as_deref(),
        prompt,
    ];
    words.into_iter().flatten().any(|words| words.to_lowercase().contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_an_instant_or_how_long_ago() {
        for (text, seconds) in [("90s", 90), ("30m", 1_800), ("24h", 86_400), ("7d", 604_800)] {
            assert_eq!(text.parse(), Ok(When::Ago(Duration::from_secs(seconds))), "{text}");
        }
        let at = "2026-11-22T08:00:00+01:00".parse::<When>().unwrap().stamp(Stamp::default());
        assert_eq!(at.to_string(), "2026-11-22T07:00:00.000000000Z");
        let now = Stamp::from_millis(100_000);
        assert_eq!("90s".parse::<When>().unwrap().stamp(now), Stamp::from_millis(10_000));
        for text in ["", "24", "h", "-1h", "1.5h", "999999999999999999999d", "5ä", "yesterday"] {
            assert_eq!(text.parse::<When>(), Err(InvalidTime), "{text}");
        }
    }
}
