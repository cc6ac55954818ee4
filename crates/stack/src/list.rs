//! A list of sessions: those that match a filter, newest first, one page at a time.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use graph::agent::Agent;
use journal::clock::Stamp;
use journal::id::SessionId;
use journal::listing::{Filter, ListCursor, Search, Summary, SummaryCache};
use journal::payload::Payload;
use journal::read;
use journal::store::{Error, Store};
use journal::tally::{Asked, Ended, Tally};
use serde_json::Value;

use crate::view::{Calls, Session};

/// Largest result that a list reads to show its verdict, in bytes of its JSON text.
const CONCLUDED_BYTES_MAX: usize = 256 * 1024;

/// Largest result in a list over HTTP, in bytes of its JSON text. The session has it whole.
pub const RESULT_BYTES_MAX: usize = 16 * 1024;

/// Most sessions that a page reads whole to find the calls of a tool. It then returns a cursor.
pub const READ_WHOLE_MAX: usize = 200;

/// A list request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    pub filter: Filter,
    /// Only sessions with this text in the id, title, agent, input, verdict, summary, error or open question,
    /// case-insensitively.
    pub text: Option<String>,
    /// Only sessions with this verdict of their agent, case-insensitively.
    pub verdict: Option<String>,
    /// Only sessions that called a tool with this text in its name or arguments, case-insensitively. Each
    /// examined session is read whole, so a page examines at most [`READ_WHOLE_MAX`].
    pub tool: Option<String>,
    /// Only sessions whose agent has this word for their status, case-insensitively.
    pub state: Option<String>,
    /// Most sessions per page.
    pub limit: usize,
    /// The largest result to include, in bytes of its JSON text. For a larger one, only its size.
    pub result_bytes_max: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// The matching sessions, newest first.
    pub sessions: Vec<Session>,
    /// Number of sessions examined for this page.
    pub searched: usize,
    /// The cursor of the next page; `None` on the last page.
    pub more: Option<ListCursor>,
}

/// A point in time, absolute or relative to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    At(Stamp),
    /// This long ago.
    Ago(Duration),
}

/// A text that is not a [`When`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a number and one of s, m, h, d, such as 24h, or a time such as 2026-11-22T08:00:00Z"
)]
pub struct InvalidTime;

impl When {
    /// The absolute time, given `now`.
    pub fn stamp(self, now: Stamp) -> Stamp {
        match self {
            Self::At(at) => at,
            Self::Ago(age) => now.before(age),
        }
    }
}

impl FromStr for When {
    type Err = InvalidTime;

    /// Parses `90s`, `30m`, `24h`, `7d`, or RFC 3339.
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

/// Lists one page of sessions. Examines no more sessions than one [`Search`] does.
///
/// # Errors
/// If the store cannot be read.
pub async fn list<S: Store>(
    store: &S,
    summary_cache: &SummaryCache,
    wish: &Wish,
    agents: &[Agent],
    now: Stamp,
) -> Result<List, Error> {
    let text = wish.text.as_deref().map(str::to_lowercase);
    let verdict = wish.verdict.as_deref().map(str::to_lowercase);
    let tool = wish.tool.as_deref().map(|tool| (tool.to_lowercase(), Arc::from(agents)));
    let mut read_whole = 0;
    let mut search = Search::new(store, summary_cache, &wish.filter, now);
    let mut sessions = Vec::new();
    while sessions.len() < wish.limit
        && read_whole < READ_WHOLE_MAX
        && let Some(summary) = search.next().await?
    {
        let (session, input) = session(store, &summary, wish.result_bytes_max, agents, now).await?;
        let is_listed = text.as_deref().is_none_or(|text| mentions(&session, &input, text))
            && wish.state.as_deref().is_none_or(|word| is_in_state(&session, word))
            && verdict.as_deref().is_none_or(|verdict| has_verdict(&session, verdict));
        if !is_listed {
            continue;
        }
        if let Some((tool, agents)) = &tool {
            read_whole += 1;
            if !has_called(store, &session.session_id, tool, agents).await? {
                continue;
            }
        }
        sessions.push(session);
    }
    Ok(List { sessions, searched: search.searched(), more: search.more() })
}

/// A listed session, with its question and result read, and its input.
async fn session<S: Store>(
    store: &S,
    summary: &Summary,
    result_bytes_max: usize,
    agents: &[Agent],
    now: Stamp,
) -> Result<(Session, Value), Error> {
    let Summary { session: id, reported, tally, .. } = summary;
    let ask = match tally.ask.as_ref().filter(|_| !reported.status.is_terminal()) {
        Some(Asked { seq, expires_at, payload }) => {
            let payload = readable(read::shown_payload(store, id, payload).await)?;
            Some(Asked { seq: *seq, expires_at: *expires_at, payload })
        }
        None => None,
    };
    let is_large = |payload: &Payload| payload.text_bytes() > result_bytes_max;
    let is_read =
        |payload: &Payload| !is_large(payload) || payload.text_bytes() <= CONCLUDED_BYTES_MAX;
    let mut left_out = None;
    let end = match &tally.end {
        Some(ended @ Ended { ending, error, error_category, payload }) => {
            let is_result = ended.result().is_some();
            left_out = (is_result && is_large(payload)).then(|| payload.text_bytes());
            let payload = if is_result && is_read(payload) {
                readable(read::shown_payload(store, id, payload).await)?
            } else {
                Value::Null
            };
            let (error, error_category) = (error.clone(), error_category.clone());
            Some(Ended { ending: *ending, error, error_category, payload })
        }
        None => None,
    };
    let opening = match &tally.opening {
        Some(payload) => Some(readable(read::shown_payload(store, id, payload).await)?),
        None => None,
    };
    let fallback = match &tally.fallback {
        Some(payload) => Some(readable(read::shown_payload(store, id, payload).await)?),
        None => None,
    };
    let input = opening.as_ref().map(|opening: &Value| opening["input"].clone());
    let Tally { steps, spent, answered_by, .. } = *tally;
    let (agent, version) = (tally.agent.clone(), tally.version.clone());
    let tally = Tally { steps, agent, version, opening, spent, answered_by, fallback, ask, end };
    let session = Session::adding_up(id, reported, &tally, agents, now);
    let result = session.result.filter(|_| left_out.is_none());
    Ok((Session { result, result_bytes: left_out, ..session }, input.unwrap_or_default()))
}

/// A damaged payload is reported where the session is read; a list omits it.
fn readable(payload: Result<Value, Error>) -> Result<Value, Error> {
    match payload {
        Err(Error::Corrupt(_)) => Ok(Value::Null),
        other => other,
    }
}

/// Whether a word, in any case, is the agent's own for the session's status.
fn is_in_state(session: &Session, word: &str) -> bool {
    session.agent_state.is_some_and(|state| state.word.eq_ignore_ascii_case(word))
}

fn has_verdict(session: &Session, verdict: &str) -> bool {
    session.verdict.as_deref().is_some_and(|word| word.to_lowercase() == verdict)
}

/// Whether the session called a tool with this text, in lower case, in its name or arguments.
async fn has_called<S: Store>(
    store: &S,
    session: &SessionId,
    text: &str,
    agents: &Arc<[Agent]>,
) -> Result<bool, Error> {
    let steps = match read::shown_steps(store, session).await {
        // It is reported where the session is read.
        Err(Error::Corrupt(_)) => return Ok(false),
        steps => steps?,
    };
    let mut calls = Calls::new(Arc::clone(agents));
    Ok(steps.iter().filter_map(|step| calls.of(step)).any(|call| {
        call.tool.to_lowercase().contains(text)
            || call.arguments.to_string().to_lowercase().contains(text)
    }))
}

/// Whether the text, in lower case, is in the session's input or in what a list shows of it.
fn mentions(session: &Session, input: &Value, text: &str) -> bool {
    let is_in_input = || !input.is_null() && input.to_string().to_lowercase().contains(text);
    let prompt = session.open_question.as_ref().map(|question| question.prompt.as_str());
    let words = [
        Some(session.session_id.as_str()),
        session.title.as_deref(),
        session.agent.as_deref(),
        session.verdict.as_deref(),
        session.summary.as_deref(),
        session.error.as_deref(),
        prompt,
    ];
    words.into_iter().flatten().any(|words| words.to_lowercase().contains(text)) || is_in_input()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_absolute_or_relative_to_now() {
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
