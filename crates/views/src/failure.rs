//! Explains an unsuccessful session: the error, the record where it occurred, and what to do next.

use graph::presentation::Presentation;
use journal::status::Status;
use serde::Serialize;

use crate::line::Tone;
use crate::text::clip;
use crate::waterfall::{Row, Waterfall};

const SENTENCE_CHARS: usize = 600;

/// The facts about a session from which its failure is explained.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    pub status: Status,
    /// The name of its agent.
    pub agent: Option<&'a str>,
    pub presentation: &'a Presentation,
    /// `Type: Code - message`.
    pub error: Option<&'a str>,
    /// The error's category.
    pub category: Option<&'a str>,
    pub waterfall: &'a Waterfall,
}

/// Why a session did not succeed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Failure {
    pub title: &'static str,
    /// Plain if a person ended the session: that is no failure.
    pub tone: Tone,
    pub what: String,
    /// The record of the error.
    pub at: Option<Spot>,
    /// Advice, the most urgent first. Text in backticks is a command.
    pub next: Vec<String>,
    /// A related session: the holder of a duplicate key.
    pub session: Option<String>,
}

/// A record to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Spot {
    pub sk: String,
    pub name: String,
}

impl Failure {
    /// Explains a failure; `None` while the session is open, or if it succeeded.
    pub fn of(known: &Known<'_>) -> Option<Self> {
        match known.status {
            Status::Initiated | Status::Running | Status::Waiting | Status::Succeeded => None,
            Status::Failed | Status::TimedOut | Status::Cancelled | Status::Rejected => {
                Some(failed(known))
            }
        }
    }
}

fn failed(known: &Known<'_>) -> Failure {
    let error = known.error.unwrap_or("The session ended without a result and without an error.");
    if known.status == Status::Cancelled {
        return cancelled(error);
    }
    Failure {
        title: "What went wrong",
        tone: Tone::Bad,
        what: clip(error, SENTENCE_CHARS),
        at: spot(known.waterfall, known.status),
        next: crate::advice::next(known),
        session: crate::advice::holder(error).map(str::to_owned),
    }
}

/// A session that a person cancelled: the reason, and no record to blame.
fn cancelled(error: &str) -> Failure {
    let reason = error.split_once(" - ").map_or(error, |(_, reason)| reason);
    Failure {
        title: "Cancelled by a person",
        tone: Tone::Plain,
        what: clip(reason, SENTENCE_CHARS),
        next: vec!["Run it again if it is still needed.".to_owned()],
        ..Failure::default()
    }
}

/// The record of the error: the last failed effect, else the first record with an error. For an end
/// step it is the last effect or question before it. A timeout ignores failed effects, because the
/// session recovered from them.
fn spot(waterfall: &Waterfall, status: Status) -> Option<Spot> {
    let is_bad = |row: &&Row| row.tone == Tone::Bad;
    let newest_first = || waterfall.rows.iter().rev();
    let failed = newest_first().filter(|row| row.kind == "outcome").find(is_bad);
    let first_bad = || waterfall.rows.iter().find(is_bad);
    let row = match status {
        Status::TimedOut => waterfall.rows.iter().find(|row| row.kind == "end"),
        _ => failed.or_else(first_bad),
    }?;
    let (row, after) = match row.kind {
        "end" => match newest_first().find(|row| matches!(row.kind, "outcome" | "ask"))? {
            last if last.kind == "ask" => (last, "while it waited at "),
            last => (last, "after "),
        },
        _ => (row, ""),
    };
    let name = match row.seq {
        Some(seq) => format!("{after}step {seq}, {}", row.name),
        None => row.name.clone(),
    };
    Some(Spot { sk: row.sk.clone(), name })
}

#[cfg(test)]
mod tests {
    use journal::error_message::ErrorMessage;
    use journal::event::{EventStatus, Writer};
    use journal::step::{EffectKind, Ending, Step, StepBody, Usage};
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{at, claim, effect, end, event, outcome, step};

    fn of(status: Status, error: Option<&str>, category: Option<&str>) -> String {
        let failed =
            json!({"failure": {"kind": "refused", "category": "mcp_connection", "message": "no"}});
        let steps = [
            step(10, 1, claim(0)),
            step(20, 2, outcome("look", EffectKind::Tools, 12, Usage::default(), failed)),
        ];
        let mut refused = event(30, EventStatus::SessionFailed, Writer::Poller);
        refused.error = Some(ErrorMessage::new("McpConnection", "s", "no"));
        let with_calls = steps.iter().map(|step| (step, None));
        let waterfall = Waterfall::of(&[refused], with_calls, false, at(40));
        let agent = Some("mine");
        let presentation = &Presentation::DEFAULT;
        let known = Known { status, agent, presentation, error, category, waterfall: &waterfall };
        let Some(failure) = Failure::of(&known) else { return "nothing".to_owned() };
        let mut lines = vec![failure.what];
        lines.extend(failure.at.map(|spot| format!("at {} ({})", spot.name, spot.sk)));
        lines.extend(failure.next.into_iter().map(|next| format!("> {next}")));
        lines.join("\n")
    }

    #[test]
    fn a_failure_says_what_where_and_what_next() {
        let error = "McpConnection: aws-diagnostics - the server ended";
        let text = of(Status::Failed, Some(error), Some("mcp_connection"));
        insta::assert_snapshot!(text, @r"
        McpConnection: aws-diagnostics - the server ended
        at step 2, look (STEP#00000002)
        > Start the tool server by itself: `daybook tools aws-diagnostics` prints its error.
        > Its command or address is in the file that DAYBOOK_MCP_SERVERS names; without that file, the bundled server is used.
        > Then trigger it again as a new session: a verdict is final.
        ");
        let text = of(Status::Cancelled, Some("Cancelled: CancelRequested - no"), None);
        assert_eq!(text, "no\n> Run it again if it is still needed.");
        assert!(of(Status::Failed, None, None).starts_with("The session ended without"));
        assert_eq!(of(Status::Running, None, None), "nothing");
        assert_eq!(of(Status::Succeeded, None, None), "nothing");
    }

    #[test]
    fn a_timeout_is_located_at_its_last_wait() {
        let refused = json!({"error": "no"});
        let ask = StepBody::Ask {
            effect: effect("confirm", EffectKind::Ask, 0),
            expires_at: at(9_999),
            payload: json!({"question": {"prompt": "Go?", "choices": ["approve"]}}),
        };
        let looked = outcome("look", EffectKind::Tools, 12, Usage::default(), refused);
        let mut steps = vec![step(10, 1, claim(0)), step(20, 2, looked), step(30, 3, ask)];
        let place = |steps: &[Step<Value>]| {
            let waterfall =
                Waterfall::of(&[], steps.iter().map(|step| (step, None)), false, at(90));
            spot(&waterfall, Status::TimedOut).map(|spot| spot.name)
        };
        steps.push(step(40, 4, end(Ending::TimedOut)));
        assert_eq!(place(&steps).unwrap(), "while it waited at step 3, confirm");
        steps.remove(2);
        assert_eq!(place(&steps).unwrap(), "after step 2, look");
        steps.remove(1);
        assert_eq!(place(&steps), None);
    }
}
