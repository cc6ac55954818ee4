//! A simulated environment: a clock that jumps, scripted tasks, an append-only history.

use std::collections::BTreeSet;
use std::sync::Arc;

use asl::definition::Definition;
use asl::execution::{Execution, Next, Outcome};
use asl::history::{Event, EventKind, Failure};
use asl::time::Timestamp;
use serde_json::Value;

use crate::given::{BEGIN, start};

/// An event in an attempt of a task, with its delay in milliseconds.
#[derive(Clone, Debug)]
pub enum Happening {
    Answer(Value),
    Fail(&'static str, &'static str),
    CallbackSuccess(Value),
    CallbackFailure(&'static str, &'static str),
    Heartbeat,
    Abort,
}

pub type Happenings = Vec<(i64, Happening)>;

/// What happens to attempt n (from 0) in a state.
pub type Script<'a> = dyn Fn(&str, usize) -> Happenings + 'a;

pub struct Run<'a> {
    pub execution: Execution,
    pub history: Vec<Event>,
    pub now: Timestamp,
    script: &'a Script<'a>,
    delivered: BTreeSet<(u64, usize)>,
}

pub fn definition(text: &str) -> Arc<Definition> {
    Arc::new(Definition::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}")))
}

/// Runs a machine to its end; its tasks follow the script.
pub fn run<'a>(definition: &Arc<Definition>, input: &Value, script: &'a Script<'a>) -> Run<'a> {
    let mut run = Run::resume(definition, input, script, &[]);
    run.run_to_end();
    run
}

impl<'a> Run<'a> {
    /// Resumes after a crash: the history so far, and the clock at its last event.
    pub fn resume(
        definition: &Arc<Definition>,
        input: &Value,
        script: &'a Script<'a>,
        history: &[Event],
    ) -> Run<'a> {
        let execution = Execution::replay(Arc::clone(definition), start(input), history).unwrap();
        let now = history.last().map_or(BEGIN, |event| event.timestamp);
        let mut run =
            Run { execution, history: history.to_vec(), now, script, delivered: BTreeSet::new() };
        run.tell_stored_heartbeats();
        run
    }

    pub fn run_to_end(&mut self) -> &Outcome {
        for _ in 0..10_000 {
            match self.execution.next(self.now) {
                Next::Record(events) => self.record(events),
                Next::RunTasks { wake_at, .. } => self.advance(true, wake_at),
                Next::WaitUntil(at) => self.advance(false, at),
                Next::Done(_) => return self.execution.outcome().unwrap(),
            }
        }
        panic!("execution does not end: {:?}", self.types());
    }

    /// Records events until there is something to wait for.
    pub fn settle(&mut self) -> Next {
        loop {
            match self.execution.next(self.now) {
                Next::Record(events) => self.record(events),
                next => return next,
            }
        }
    }

    pub fn record(&mut self, events: Vec<Event>) {
        for event in events {
            // The stored form is JSON.
            let stored = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<Event>(&stored).unwrap(), event);
            self.execution.apply(&event).unwrap();
            self.history.push(event);
        }
    }

    pub fn types(&self) -> Vec<String> {
        self.history.iter().map(|event| event.kind.type_name()).collect()
    }

    pub fn output(&self) -> Value {
        match self.execution.outcome() {
            Some(Outcome::Succeeded(text)) => serde_json::from_str(text).unwrap(),
            other => panic!("{other:?} after {:?}", self.types()),
        }
    }

    pub fn failure(&self) -> (String, String) {
        match self.execution.outcome() {
            Some(Outcome::Failed(failure) | Outcome::Aborted(failure)) => (
                failure.error.clone().unwrap_or_default(),
                failure.cause.clone().unwrap_or_default(),
            ),
            other => panic!("{other:?} after {:?}", self.types()),
        }
    }

    /// Milliseconds from the start to each event of a type.
    pub fn millis_of(&self, event_type: &str) -> Vec<i64> {
        let events = self.history.iter().filter(|event| event.kind.type_name() == event_type);
        events.map(|event| event.timestamp.as_millis() - BEGIN.as_millis()).collect()
    }

    fn open(&self) -> Option<(u64, Timestamp, Happenings)> {
        let scheduled = |event: &&Event| {
            matches!(
                event.kind,
                EventKind::TaskScheduled(_) | EventKind::LambdaFunctionScheduled { .. }
            )
        };
        let event = self.history.iter().rev().find(scheduled)?;
        let state = *self.execution.states().last()?;
        let entered = self.history.iter().filter_map(|event| match &event.kind {
            EventKind::StateEntered { name, .. } => Some((event.id, name)),
            _ => None,
        });
        // Attempt n of this state in the whole execution, so that scripts need not count visits.
        let visits: Vec<(u64, &String)> = entered.collect();
        let of_state = |id: u64| {
            visits
                .iter()
                .rev()
                .find(|(entered, _)| *entered < id)
                .is_some_and(|(_, at)| *at == state)
        };
        let attempt = self
            .history
            .iter()
            .filter(scheduled)
            .filter(|event| of_state(event.id))
            .count()
            .checked_sub(1)?;
        Some((event.id, event.timestamp, (self.script)(state, attempt)))
    }

    fn tell_stored_heartbeats(&mut self) {
        let (Some((id, at, happenings)), Some(token)) =
            (self.open(), self.execution.open_tokens().first().map(|token| (*token).to_owned()))
        else {
            return;
        };
        for (index, (millis, happening)) in happenings.iter().enumerate() {
            let time = at.plus_millis(*millis);
            if matches!(happening, Happening::Heartbeat) && time <= self.now {
                self.execution.heartbeat(&token, time).unwrap();
                self.delivered.insert((id, index));
            }
        }
    }

    /// Advances to the next scripted event or deadline.
    fn advance(&mut self, in_flight: bool, wake_at: Timestamp) {
        assert!(wake_at > self.now, "asked to wait for the past");
        let Some((id, at, happenings)) = self.open() else {
            self.now = wake_at;
            return;
        };
        let due = happenings
            .into_iter()
            .enumerate()
            .map(|(index, (millis, happening))| {
                (at.plus_millis(millis).max(self.now), index, happening)
            })
            .filter(|(time, index, happening)| {
                let answer = matches!(happening, Happening::Answer(_) | Happening::Fail(..));
                *time < wake_at && !self.delivered.contains(&(id, *index)) && (in_flight || !answer)
            })
            .min_by_key(|(time, index, _)| (*time, *index));
        let Some((time, index, happening)) = due else {
            self.now = wake_at;
            return;
        };
        self.now = time;
        self.delivered.insert((id, index));
        self.deliver(id, happening);
    }

    fn deliver(&mut self, id: u64, happening: Happening) {
        let (execution, now) = (&mut self.execution, self.now);
        let token = execution.open_tokens().first().copied().unwrap_or_default().to_owned();
        let failure = |error: &str, cause: &str| Failure::new(error, Some(cause.to_owned()));
        let event = match happening {
            Happening::Answer(output) => execution.task_succeeded(id, &output, now).ok(),
            Happening::Fail(error, cause) => {
                execution.task_failed(id, failure(error, cause), now).ok()
            }
            Happening::CallbackSuccess(output) => {
                execution.callback_succeeded(&token, &output, now).ok()
            }
            Happening::CallbackFailure(error, cause) => {
                execution.callback_failed(&token, failure(error, cause), now).ok()
            }
            Happening::Heartbeat => {
                execution.heartbeat(&token, now).ok();
                None
            }
            Happening::Abort => execution.abort(failure("Stop", "by hand"), now).ok(),
        };
        self.record(event.into_iter().collect());
    }
}
