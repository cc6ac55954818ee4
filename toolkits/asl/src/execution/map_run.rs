//! Runs of distributed `Map` states whose iterations are executions of their own.
//!
//! The caller starts an execution of [`MapRun::definition`] for each input and says how the run ended. The
//! history has no more of it than AWS's: `MapRunStarted` and its end.

use serde_json::Value;

use super::decide::{Result, Stopped};
use super::distributed::{Run, label};
use super::fork::{Fork, tolerances, whole};
use super::inputs::{TaskClosed, payload};
use super::output::{effective, filled, sentence};
use super::thread::{Item, Position, Stage, Thread, View};
use super::{Execution, Phase};
use crate::definition::{Kind, Map};
use crate::history::{Event, EventKind, Failure};
use crate::time::Timestamp;

/// A run that the caller performs.
#[derive(Clone, Debug, PartialEq)]
pub struct MapRun {
    pub arn: String,
    /// Names the state machine of the child executions.
    pub label: String,
    /// Their definition, JSON text.
    pub definition: String,
    pub source: Source,
    /// `None` if the definition sets no limit.
    pub max_concurrency: Option<usize>,
    pub tolerated_count: Option<usize>,
    /// In per cent.
    pub tolerated_percentage: Option<f64>,
    pub writer: Option<Writing>,
    /// Its failed executions run again.
    pub redriven: bool,
}

/// Where the items of a run come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    Items(Vec<Value>),
    Reader(Reading),
}

/// `ItemReader`, evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    pub resource: String,
    pub arguments: Value,
    pub max_items: Option<usize>,
    /// `ReaderConfig`.
    pub config: Value,
}

/// `ResultWriter`, evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct Writing {
    pub resource: Option<String>,
    pub arguments: Value,
    /// `WriterConfig`.
    pub config: Value,
}

/// An open run: its thread, its state's data, and its fork.
struct Open<'a> {
    view: View<'a>,
    fork: &'a Fork,
    map: &'a Map,
    run: &'a Run,
    at: Timestamp,
}

impl Execution {
    /// The runs in progress, by the id of the event that started or redrove them.
    pub fn open_map_runs(&self) -> Vec<u64> {
        if !self.has_children {
            return Vec::new();
        }
        let mut ids = Vec::new();
        self.visit_runs(&mut |open| ids.push(open.run.event_id));
        ids
    }

    /// What a run in progress is to do.
    ///
    /// # Errors
    /// `None` if it is not in progress; a failure ends it.
    pub fn map_run(&self, event_id: u64) -> Option<std::result::Result<MapRun, Failure>> {
        let open = self.open_run(event_id)?;
        Some(self.described(&open).map_err(|stopped| failure(&open, stopped)))
    }

    /// The inputs of a run's executions, each with the number of items in it.
    ///
    /// # Errors
    /// `None` if the run is not in progress; a failure ends it.
    pub fn map_run_inputs(
        &self,
        event_id: u64,
        items: Vec<Value>,
    ) -> Option<std::result::Result<Vec<(Value, usize)>, Failure>> {
        let open = self.open_run(event_id)?;
        Some(self.inputs(&open, items).map_err(|stopped| failure(&open, stopped)))
    }

    /// A run has succeeded with this result of its state.
    ///
    /// # Errors
    /// The run is not in progress.
    pub fn map_run_succeeded(
        &self,
        event_id: u64,
        output: &Value,
        now: Timestamp,
    ) -> std::result::Result<Event, TaskClosed> {
        let open = self.open_run(event_id).ok_or(TaskClosed(event_id))?;
        let kind = match payload(output, &open.view.visit.state) {
            Ok(text) => EventKind::MapRunSucceeded { output: Some(text) },
            Err(failure) => EventKind::MapRunFailed(failure),
        };
        Ok(self.proposal(open.fork.last, kind, now))
    }

    /// A run has failed.
    ///
    /// # Errors
    /// The run is not in progress.
    pub fn map_run_failed(
        &self,
        event_id: u64,
        failure: Failure,
        now: Timestamp,
    ) -> std::result::Result<Event, TaskClosed> {
        let open = self.open_run(event_id).ok_or(TaskClosed(event_id))?;
        Ok(self.proposal(open.fork.last, EventKind::MapRunFailed(failure), now))
    }

    fn visit_runs<'a>(&'a self, visit: &mut dyn FnMut(Open<'a>)) {
        let Phase::Running(whole) = &self.phase else { return };
        whole.visit_all(&mut |thread| visit_run(thread, visit));
    }

    fn open_run(&self, event_id: u64) -> Option<Open<'_>> {
        let mut found = None;
        self.visit_runs(&mut |open| {
            if open.run.event_id == event_id {
                found = Some(open);
            }
        });
        found
    }

    fn described(&self, open: &Open<'_>) -> Result<MapRun> {
        let Open { view, map, run, at, .. } = *open;
        let context = || self.context(view, None, None);
        let mut scope = self.scope(view, &context, at, &view.visit.entered_event_id.to_string());
        let input = effective(view, &scope)?.into_owned();
        let source = match &map.reader {
            None => Source::Items(self.single_items(view, map, at)?),
            Some(reader) => Source::Reader(Reading {
                resource: reader.resource.clone(),
                arguments: filled(view, &mut scope, reader.arguments.as_ref(), "Arguments")?
                    .into_owned(),
                max_items: whole(view, &mut scope, &reader.max_items)?,
                config: reader.config.clone(),
            }),
        };
        let writer = match &map.writer {
            None => None,
            Some(writer) => Some(Writing {
                resource: writer.resource.clone(),
                arguments: match &writer.arguments {
                    None => Value::Null,
                    Some(template) => template.evaluate(&mut scope, &input, "Arguments")?,
                },
                config: writer.config.clone(),
            }),
        };
        let (tolerated_count, tolerated_percentage) = tolerances(view, &mut scope, map)?;
        let max_concurrency = whole(view, &mut scope, &map.max_concurrency)?;
        Ok(MapRun {
            arn: run.arn.as_deref().unwrap_or_default().to_owned(),
            label: label(view, map),
            definition: map.child.clone(),
            source,
            max_concurrency: max_concurrency.filter(|most| *most > 0),
            tolerated_count,
            tolerated_percentage,
            writer,
            redriven: run.was_redriven,
        })
    }

    fn inputs(&self, open: &Open<'_>, items: Vec<Value>) -> Result<Vec<(Value, usize)>> {
        let Open { view, map, at, .. } = *open;
        let count = |batch: &Value| batch["Items"].as_array().map_or(1, Vec::len);
        if let Some(batcher) = &map.batcher {
            let batches = self.batches(view, map, batcher, items, at)?;
            return Ok(batches.into_iter().map(|batch| (batch.clone(), count(&batch))).collect());
        }
        let items = items.into_iter().enumerate();
        let input =
            |(index, value)| Ok((self.iteration_input(view, map, &Item { index, value }, at)?, 1));
        items.map(input).collect()
    }
}

fn visit_run<'a>(thread: &'a Thread, visit: &mut dyn FnMut(Open<'a>)) {
    let Position::In(at, Stage::Forked(fork)) = &thread.position else { return };
    let view = thread.view(at);
    let (Kind::Map(map), Some(run)) = (&view.state.kind, &fork.run) else { return };
    if run.arn.is_some() && !run.ended && !run.redriven {
        visit(Open { view, fork, map, run, at: thread.at });
    }
}

fn failure(open: &Open<'_>, stopped: Stopped) -> Failure {
    match stopped {
        Stopped::Fatal(failure) => failure,
        Stopped::Fault(fault) => Failure::new(fault.error, Some(sentence(open.view, &fault.cause))),
    }
}
