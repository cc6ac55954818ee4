//! A session's records on one time axis.
//!
//! Times are milliseconds since the session's first record. A step's row spans from the start of its
//! work to its record; an event's row is a point. A [`Wait`] is a time in which no runner works.

use graph::effect::ToolCall;
use journal::clock::Stamp;
use journal::event::{Event, Writer};
use journal::step::{EffectKind, Step, StepBody, Usage};
use serde::Serialize;
use serde_json::Value;

use crate::line::{self, Tone};
use crate::text::{clean, clip};

/// Characters of a row's line; the record itself has the rest.
const LINE_CHARS: usize = 240;

/// Characters of the text below a line, such as an error.
const MORE_CHARS: usize = 2_000;

/// Characters of a lane's name.
const LANE_CHARS: usize = 24;

/// A session's records on one axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waterfall {
    /// The start of the axis; `None` without records.
    pub began: Option<Stamp>,
    /// The length of the axis, in milliseconds: to the last record, or to now while the session is open.
    pub span_ms: u64,
    /// Writers, in order of appearance. Each claim of the agent has its own lane.
    pub lanes: Vec<Lane>,
    /// The records, in the order in which they were written.
    pub rows: Vec<Row>,
    /// When the session waited, and for what.
    pub waits: Vec<Wait>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lane {
    pub name: String,
    /// The claim's epoch, for lanes of the agent.
    pub epoch: Option<u32>,
    /// Time of its first record, in milliseconds.
    pub from_ms: u64,
    pub to_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub sk: String,
    /// The step's number; an event has none.
    pub seq: Option<u32>,
    /// The index of its lane.
    pub lane: usize,
    /// Start of its work, in milliseconds.
    pub from_ms: u64,
    pub to_ms: u64,
    /// The event's name, the step's node, or the step's kind.
    pub name: String,
    /// `event`, or the step's kind.
    pub kind: &'static str,
    pub what: String,
    pub tone: Tone,
    /// Details, such as an error or a question.
    pub more: Option<String>,
    /// Tokens in, out and unsettled.
    pub tokens: u64,
    /// Dollars.
    pub usd: f64,
    /// Whether it ran in parallel with the row before it.
    pub beside: bool,
    /// The skew of its writer's clock against the order of records, in milliseconds, if significant.
    pub skew_ms: Option<i64>,
}

/// A time in which no runner works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// For a person's `answer`, or for a `time`.
    pub of: &'static str,
    pub seq: u32,
    /// Its start, in milliseconds.
    pub from_ms: u64,
    pub to_ms: u64,
    pub is_over: bool,
}

enum Record<'a> {
    Event(&'a Event),
    Step(&'a Step<Value>, Option<ToolCall>),
}

impl Record<'_> {
    fn stamp(&self) -> Stamp {
        match self {
            Self::Event(event) => event.stamp,
            Self::Step(step, _) => step.stamp,
        }
    }
}

impl Waterfall {
    /// Places a session's records: its events in order of time, its steps in sequence with their tool
    /// calls. The axis of an open session extends to `now`.
    pub fn of<'a>(
        events: &'a [Event],
        steps: impl IntoIterator<Item = (&'a Step<Value>, Option<ToolCall>)>,
        is_open: bool,
        now: Stamp,
    ) -> Self {
        let mut records: Vec<_> = events.iter().map(Record::Event).collect();
        records.extend(steps.into_iter().map(|(step, call)| Record::Step(step, call)));
        // Stable: records with equal stamps keep their order.
        records.sort_by_key(Record::stamp);
        let mut made = Self {
            began: records.iter().map(begin).min(),
            span_ms: 0,
            lanes: Vec::new(),
            rows: Vec::new(),
            waits: Vec::new(),
        };
        let Some(began) = made.began else { return made };
        let mut shown_error = None;
        for record in &records {
            let row = made.row(record, began, &mut shown_error);
            made.rows.push(row);
            made.wait(record, began);
        }
        let last = records.last().map_or(began, Record::stamp);
        let end = if is_open { last.max(now) } else { last };
        made.span_ms = since(end, began);
        for wait in made.waits.iter_mut().filter(|wait| !wait.is_over) {
            wait.to_ms = made.span_ms;
            wait.is_over = !is_open;
        }
        made
    }

    fn row(&mut self, record: &Record<'_>, began: Stamp, shown_error: &mut Option<String>) -> Row {
        let to_ms = since(record.stamp(), began);
        let from_ms = since(begin(record), began);
        match record {
            Record::Event(event) => {
                let (_, tone) = line::mark(event.status);
                let error = event.error.as_ref().map(ToString::to_string);
                // Show an error only once, although several writers record it.
                let again = error.is_some() && *shown_error == error;
                let more = error.clone().filter(|_| !again).map(|text| clip(&text, MORE_CHARS));
                *shown_error = error.or_else(|| shown_error.take());
                // The lane names the writer.
                let note = line::note(event, again);
                let note = note.strip_prefix(event.writer.as_str()).unwrap_or(&note);
                Row {
                    sk: event.sk.clone(),
                    seq: None,
                    lane: self.lane(event.writer.as_str(), None, from_ms, to_ms),
                    from_ms,
                    to_ms,
                    name: event.status.as_str().to_owned(),
                    kind: "event",
                    what: clip(note.trim_start_matches(" · "), LINE_CHARS),
                    tone,
                    more,
                    tokens: 0,
                    usd: 0.0,
                    beside: false,
                    skew_ms: event.skewed_clock().map(|wall| wall.millis() - event.stamp.millis()),
                }
            }
            Record::Step(step, call) => {
                let described = line::step(step, call.as_ref());
                let used = usage(step);
                let writer = writer(step);
                let epoch = (writer == Writer::Agent.as_str()).then_some(step.epoch);
                let more = described.more.first().map(|text| clip(text, MORE_CHARS));
                Row {
                    sk: journal::key::step(step.seq),
                    seq: Some(step.seq),
                    lane: self.lane(&writer, epoch, from_ms, to_ms),
                    from_ms,
                    to_ms,
                    name: clean(step.body.effect().map_or(step.body.kind().as_str(), |e| &e.node)),
                    kind: step.body.kind().as_str(),
                    what: clip(&described.what, LINE_CHARS),
                    tone: described.tone,
                    more: more.or_else(|| ended(step, shown_error)),
                    tokens: u64::from(used.input_tokens)
                        + u64::from(used.output_tokens)
                        + u64::from(used.unsettled_tokens),
                    usd: f64::from(used.micro_usd) / 1e6,
                    beside: self.is_beside(from_ms, to_ms, step),
                    skew_ms: None,
                }
            }
        }
    }

    /// The index of this writer's lane, extended to this record.
    fn lane(&mut self, name: &str, epoch: Option<u32>, from_ms: u64, to_ms: u64) -> usize {
        let found = self.lanes.iter().position(|lane| lane.name == name && lane.epoch == epoch);
        let place = found.unwrap_or_else(|| {
            self.lanes.push(Lane { name: name.to_owned(), epoch, from_ms, to_ms });
            self.lanes.len() - 1
        });
        let lane = &mut self.lanes[place];
        lane.from_ms = lane.from_ms.min(from_ms);
        lane.to_ms = lane.to_ms.max(to_ms);
        place
    }

    /// Whether this tool call overlaps with the one in the row before.
    fn is_beside(&self, from_ms: u64, to_ms: u64, step: &Step<Value>) -> bool {
        let is_call = step.body.effect().is_some_and(|effect| effect.kind == EffectKind::Tools);
        let before = self.rows.last().filter(|row| row.kind == "outcome");
        is_call
            && to_ms > from_ms
            && before.is_some_and(|row| row.from_ms < to_ms && from_ms < row.to_ms)
    }

    /// A question or sleep opens a wait; the next step closes it.
    fn wait(&mut self, record: &Record<'_>, began: Stamp) {
        let Record::Step(step, _) = record else { return };
        let at = since(step.stamp, began);
        if let Some(open) = self.waits.last_mut().filter(|wait| !wait.is_over) {
            open.to_ms = at;
            open.is_over = true;
        }
        if let StepBody::Ask { effect, .. } = &step.body {
            let of = if effect.kind == EffectKind::Sleep { "time" } else { "answer" };
            let seq = step.seq;
            self.waits.push(Wait { of, seq, from_ms: at, to_ms: at, is_over: false });
        }
    }
}

/// The start of the work whose end the record is.
fn begin(record: &Record<'_>) -> Stamp {
    match record {
        Record::Step(Step { body: StepBody::Outcome { started_at, .. }, stamp, .. }, _) => {
            (*started_at).min(*stamp)
        }
        Record::Event(event) => event.begun_at(),
        other => other.stamp(),
    }
}

/// A step's writer: the role of its runner.
fn writer(step: &Step<Value>) -> String {
    let runner = step.runner.as_str();
    clip(runner.split(':').next().unwrap_or(runner), LANE_CHARS)
}

fn ended(step: &Step<Value>, shown_error: &mut Option<String>) -> Option<String> {
    let StepBody::End { error: Some(error), .. } = &step.body else { return None };
    let error = error.to_string();
    if shown_error.as_deref() == Some(error.as_str()) {
        return None;
    }
    *shown_error = Some(error.clone());
    Some(clip(&error, MORE_CHARS))
}

fn usage(step: &Step<Value>) -> Usage {
    match &step.body {
        StepBody::Outcome { usage, .. } => *usage,
        _ => Usage::default(),
    }
}

fn since(later: Stamp, earlier: Stamp) -> u64 {
    u64::try_from(later.since(earlier).as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use journal::error_message::ErrorMessage;
    use journal::event::EventStatus;
    use journal::step::Ending;
    use serde_json::json;

    use super::*;
    use crate::testing::{at, by, claim, effect, event};

    fn step(ms: i64, seq: u32, epoch: u32, runner: &str, body: StepBody<Value>) -> Step<Value> {
        by(&format!("{runner}:1"), epoch, ms, seq, body)
    }

    fn outcome(from: i64, call: u32, tokens: u32) -> StepBody<Value> {
        StepBody::Outcome {
            effect: effect("gather", EffectKind::Tools, call),
            started_at: at(from),
            usage: Usage { input_tokens: tokens, micro_usd: 4_800, ..Usage::default() },
            request: None,
            payload: json!({"ok": {"events": [1, 2]}}),
        }
    }

    /// One line per row, as the page draws it.
    fn drawn(waterfall: &Waterfall) -> String {
        let mut text = String::new();
        for row in &waterfall.rows {
            let lane = &waterfall.lanes[row.lane];
            let epoch = lane.epoch.map(|epoch| epoch.to_string()).unwrap_or_default();
            let (from, to, name, what) = (row.from_ms, row.to_ms, &row.name, &row.what);
            let beside = if row.beside { " beside" } else { "" };
            let more = row.more.as_deref().map(|more| format!(" | {more}")).unwrap_or_default();
            let skew = row.skew_ms.map(|skew| format!(" skew {skew}")).unwrap_or_default();
            let tone = row.tone;
            let lane = format!("{}{epoch}", lane.name);
            let line = format!("{lane} {from}..{to} {name} {tone:?}{beside}{skew}: {what}{more}");
            writeln!(text, "{}", line.trim_end()).unwrap();
        }
        for wait in &waterfall.waits {
            let Wait { of, seq, from_ms, to_ms, is_over } = wait;
            writeln!(text, "waits {from_ms}..{to_ms} for {of} of {seq}, over: {is_over}").unwrap();
        }
        writeln!(text, "{} ms", waterfall.span_ms).unwrap();
        text
    }

    /// A session that lost an agent, gathered side by side, and asks.
    fn asking() -> (Vec<Event>, Vec<Step<Value>>) {
        use EventStatus as E;
        let mut late = event(40, E::AgentLost, Writer::Poller);
        late.wall = Some(at(-5_000));
        let events = vec![
            event(0, E::SessionInitiated, Writer::StateMachine),
            late,
            event(310, E::AgentBackgroundTaskSuspended, Writer::Agent),
        ];
        let question = json!({"question": {"prompt": "Go?", "choices": ["approve"]}});
        let ask = StepBody::Ask {
            effect: effect("confirm", EffectKind::Ask, 0),
            expires_at: at(9_999),
            payload: question,
        };
        let steps = vec![
            step(10, 1, 1, "agent", claim(0)),
            step(50, 2, 2, "agent", claim(1)),
            step(200, 3, 2, "agent", outcome(60, 0, 1_200)),
            step(260, 4, 2, "agent", outcome(61, 1, 0)),
            step(300, 5, 2, "agent", ask),
        ];
        (events, steps)
    }

    fn waterfall(events: &[Event], steps: &[Step<Value>], is_open: bool, now: i64) -> Waterfall {
        Waterfall::of(events, steps.iter().map(|step| (step, None)), is_open, at(now))
    }

    #[test]
    fn records_are_placed_on_one_axis_with_lanes_and_waits() {
        let (events, steps) = asking();
        insta::assert_snapshot!(drawn(&waterfall(&events, &steps, true, 1_000)), @r"
        state-machine 0..0 SESSION_INITIATED Begun:
        agent1 10..10 claim Plain: epoch 1: assistant, graph 1
        poller 40..40 AGENT_LOST Warn skew -5040:
        agent2 50..50 claim Plain: epoch 2, after epoch 1: assistant, graph 1
        agent2 60..200 gather Plain: 2 events
        agent2 61..260 gather Plain beside: 2 events
        agent2 300..300 confirm Warn: asks a person | Go?
        agent 310..310 AGENT_BACKGROUND_TASK_SUSPENDED Warn:
        waits 300..1000 for answer of 5, over: false
        1000 ms
        ");
    }

    #[test]
    fn an_answer_ends_a_wait_and_an_end_the_axis() {
        let (mut events, mut steps) = asking();
        let error = Some(ErrorMessage::new("Input", "Rejected", "no"));
        let answer = json!({"question_id": 5, "decision": "reject", "reason": "no"});
        let answered = StepBody::Answer { question: 5, principal: None, payload: answer };
        steps.push(step(800, 6, 2, "person", answered));
        let category = Some("rejected".to_owned());
        let end = StepBody::End {
            answered_by: None,
            ending: Ending::Failed,
            error: error.clone(),
            category,
            payload: Value::Null,
        };
        steps.push(step(900, 7, 3, "agent", end));
        let mut verdict = event(950, EventStatus::SessionFailed, Writer::Poller);
        verdict.error = error;
        events.push(verdict);
        insta::assert_snapshot!(drawn(&waterfall(&events, &steps, false, 60_000)), @r"
        state-machine 0..0 SESSION_INITIATED Begun:
        agent1 10..10 claim Plain: epoch 1: assistant, graph 1
        poller 40..40 AGENT_LOST Warn skew -5040:
        agent2 50..50 claim Plain: epoch 2, after epoch 1: assistant, graph 1
        agent2 60..200 gather Plain: 2 events
        agent2 61..260 gather Plain beside: 2 events
        agent2 300..300 confirm Warn: asks a person | Go?
        agent 310..310 AGENT_BACKGROUND_TASK_SUSPENDED Warn:
        person 800..800 answer Warn: answer to #5: reject, no
        agent3 900..900 end Bad: failed [rejected] | Input: Rejected - no
        poller 950..950 SESSION_FAILED Bad: the same error
        waits 300..800 for answer of 5, over: true
        950 ms
        ");
    }

    #[test]
    fn nothing_written_is_nothing_drawn() {
        let empty = waterfall(&[], &[], true, 5);
        assert_eq!((empty.began, empty.span_ms, empty.rows.len()), (None, 0, 0));
    }

    #[test]
    fn a_clock_that_ran_backwards_moves_no_row_before_the_axis() {
        let body = outcome(900, 0, 0);
        let steps = [step(100, 1, 1, "agent", claim(0)), step(150, 2, 1, "agent", body)];
        let rows = waterfall(&[], &steps, false, 0).rows;
        assert!(rows.iter().all(|row| row.from_ms <= row.to_ms), "{rows:#?}");
    }
}
