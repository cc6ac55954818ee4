//! `Parallel` and `Map`: threads that run at once, and their combined result.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use super::Execution;
use super::decide::{Result, Step, Stopped};
use super::distributed::{Results, Run};
use super::output::{effective, filled};
use super::thread::{Failed, Item, Position, Thread, View};
use crate::definition::{Batcher, Items, Kind, Map, Slot, accept};
use crate::error_name;
use crate::expression::{Fault, Scope};
use crate::history::{EventKind, Failure, Moment};
use crate::time::Timestamp;

/// Most concurrent iterations of an inline `Map`.
///
/// Source: AWS, "Map state processing modes", inline mode.
pub const CONCURRENCY_MAX: usize = 40;

/// The branches or iterations of one attempt of a `Parallel` or `Map`.
#[derive(Clone, Debug)]
pub(super) struct Fork {
    /// The items to iterate over, batched; empty for a `Parallel`.
    pub(super) items: Arc<Vec<Value>>,
    /// Number of iterations started.
    pub(super) begun: usize,
    /// `previousEventId` of the next iterations, one each.
    pub(super) free: VecDeque<u64>,
    pub(super) running: BTreeMap<usize, Arc<Thread>>,
    /// Results so far; `None` for a running iteration and for a tolerated failure.
    pub(super) results: Results,
    pub(super) ended: usize,
    /// The iterations that failed, for a redrive.
    pub(super) failed: BTreeMap<usize, Arc<Thread>>,
    /// Iterations that a redrive continues as soon as others have ended.
    pub(super) waiting: BTreeMap<usize, Arc<Thread>>,
    /// The most threads that run at once.
    pub(super) slots: usize,
    /// The newest event that ended a thread, or the one that started the fork.
    pub(super) last: u64,
    pub(super) tolerated: Result<usize>,
    pub(super) run: Option<Run>,
}

impl Execution {
    /// The first event of a `Parallel` or `Map` after its entry.
    pub(super) fn fork_started(&self, view: View<'_>, now: Timestamp) -> Result<EventKind> {
        Ok(match &view.state.kind {
            Kind::Map(map) => {
                self.concurrency(view, map, now)?;
                if let (false, Some(field)) = (self.has_children, reads_or_writes(map)) {
                    let cause = format!("The field '{field}' of a Map needs a running stack.");
                    return Err(Fault::runtime(cause).into());
                }
                let items = self.items(view, map, now)?;
                EventKind::MapStateStarted { length: items.len() as u64 }
            }
            _ => {
                // The inputs of the branches must evaluate before the branches start.
                self.fork(view, now, view.last)?;
                EventKind::ParallelStateStarted
            }
        })
    }

    /// What follows the failure of a fork: another attempt, or the failure event. `more` is the
    /// number of failures not yet counted in the visit.
    pub(super) fn broken(
        &self,
        view: View<'_>,
        failed: &Failed,
        more: u64,
        last: u64,
        now: Timestamp,
    ) -> Result<Step> {
        let kind = match self.retry_at(view, failed, more) {
            Some(retry_at) if now < retry_at => return Ok(Step::Wait(retry_at)),
            Some(_) => self.fork_started(view, now)?,
            None => EventKind::ForkFailed(view.state.kind.state_type()),
        };
        Ok(Step::Record { previous_event_id: last, kind })
    }

    /// The threads of an attempt that starts after the event `base`.
    pub(super) fn fork(&self, view: View<'_>, now: Timestamp, base: u64) -> Result<Fork> {
        let mut fork = Fork {
            items: Arc::default(),
            begun: 0,
            free: VecDeque::new(),
            running: BTreeMap::new(),
            results: Arc::default(),
            ended: 0,
            failed: BTreeMap::new(),
            waiting: BTreeMap::new(),
            slots: usize::MAX,
            last: base,
            tolerated: Ok(0),
            run: None,
        };
        let context = || self.context(view, None, None);
        let mut scope = self.scope(view, &context, now, &view.visit.entered_event_id.to_string());
        match &view.state.kind {
            Kind::Parallel { branches, arguments } => {
                let input = filled(view, &mut scope, arguments.as_ref(), "Arguments")?;
                let input = Arc::new(input.into_owned());
                for (index, branch) in branches.iter().enumerate() {
                    let mut thread = Thread::begin(branch, Arc::clone(&input), base, now);
                    thread.variables = Arc::clone(view.variables);
                    fork.running.insert(index, Arc::new(thread));
                }
                fork.results = Arc::new(vec![None; branches.len()]);
            }
            Kind::Map(map) => {
                let items = self.items(view, map, now)?;
                let concurrency = self.concurrency(view, map, now)?;
                fork.tolerated = tolerated(view, &mut scope, map, items.len());
                if map.distributed {
                    fork.run = Some(Run::default());
                }
                fork.results = Arc::new(vec![None; items.len()]);
                fork.slots = concurrency;
                fork.free = vec![base; concurrency.min(items.len())].into();
                fork.items = Arc::new(items);
            }
            _ => unreachable!("nothing else forks"),
        }
        Ok(fork)
    }

    /// The most iterations of a `Map` that run at once.
    ///
    /// AWS evaluates it with the state's entry, before the items, but what is tolerated only after
    /// the start.
    fn concurrency(&self, view: View<'_>, map: &Map, now: Timestamp) -> Result<usize> {
        let context = || self.context(view, None, None);
        let mut scope = self.scope(view, &context, now, &view.visit.entered_event_id.to_string());
        Ok(match whole(view, &mut scope, &map.max_concurrency)?.unwrap_or_default() {
            0 => CONCURRENCY_MAX,
            given => given.min(CONCURRENCY_MAX),
        })
    }

    /// The items of a `Map`, in batches if it has a batcher. They are not known here if a reader reads them.
    fn items(&self, view: View<'_>, map: &Map, now: Timestamp) -> Result<Vec<Value>> {
        if map.reader.is_some() {
            return Ok(Vec::new());
        }
        let items = self.single_items(view, map, now)?;
        match &map.batcher {
            None => Ok(items),
            Some(batcher) => self.batches(view, map, batcher, items, now),
        }
    }

    /// Batches of items, each as the selector has it.
    pub(super) fn batches(
        &self,
        view: View<'_>,
        map: &Map,
        batcher: &Batcher,
        items: Vec<Value>,
        now: Timestamp,
    ) -> Result<Vec<Value>> {
        let select = |(index, value)| self.selected(view, map, &Item { index, value }, now);
        let items = items.into_iter().enumerate().map(select).collect::<Result<Vec<_>>>()?;
        let context = || self.context(view, None, None);
        let mut scope = self.scope(view, &context, now, &view.visit.entered_event_id.to_string());
        let input = effective(view, &scope)?;
        batched(batcher, items, &mut scope, &input)
    }

    pub(super) fn single_items(
        &self,
        view: View<'_>,
        map: &Map,
        now: Timestamp,
    ) -> Result<Vec<Value>> {
        let context = || self.context(view, None, None);
        let mut scope = self.scope(view, &context, now, &view.visit.entered_event_id.to_string());
        let input = effective(view, &scope)?;
        Ok(match &map.items {
            Items::Input => match input.as_array() {
                Some(items) => items.clone(),
                None => return Err(no_array(view, &input)),
            },
            Items::Path(reference) => {
                let found = scope.require(reference, &input)?;
                match found {
                    Value::Array(items) => items,
                    _ => {
                        let cause =
                            format!("Reference path \"{}\" must point to array.", reference.text);
                        return Err(Fault::runtime(cause).into());
                    }
                }
            }
            Items::Template(template) => match template.evaluate(&mut scope, &input, "Items")? {
                Value::Array(items) => items,
                other => return Err(template.wrong_type("Items", "array", &other).into()),
            },
        })
    }

    /// The input of an iteration.
    pub(super) fn iteration_input(
        &self,
        view: View<'_>,
        map: &Map,
        item: &Item,
        now: Timestamp,
    ) -> Result<Value> {
        // The selector has seen the items of a batch.
        if map.batcher.is_some() {
            Ok(item.value.clone())
        } else {
            self.selected(view, map, item, now)
        }
    }

    fn selected(&self, view: View<'_>, map: &Map, item: &Item, now: Timestamp) -> Result<Value> {
        let Some(selector) = &map.selector else { return Ok(item.value.clone()) };
        let context = || self.context(view, Some(item), None);
        let moment = format!("{}/{}", view.last, item.index);
        let mut scope = self.scope(view, &context, now, &moment);
        let input = effective(view, &scope)?;
        Ok(selector.evaluate(&mut scope, &input, "ItemSelector")?)
    }

    /// The next event of any thread, or of the fork itself.
    pub(super) fn run_fork(&self, view: View<'_>, fork: &Fork, now: Timestamp) -> Result<Step> {
        let state_type = view.state.kind.state_type();
        let ends = |kind| Step::Record { previous_event_id: fork.last, kind };
        fork.tolerated.clone()?;
        if let (Some(run), Kind::Map(map)) = (&fork.run, &view.state.kind)
            && !run.ended
            && (run.arn.is_some() || self.has_children || map.processor.only_computes())
        {
            return self.run_distributed(view, map, fork, run, now);
        }
        if fork.ended == fork.results.len() {
            return Ok(ends(EventKind::ForkSucceeded(state_type)));
        }
        if let Kind::Map(map) = &view.state.kind
            && let (Some(value), Some(base)) = (fork.items.get(fork.begun), fork.free.front())
        {
            let item = Item { index: fork.begun, value: value.clone() };
            self.iteration_input(view, map, &item, now)?;
            let kind = iteration(view, Moment::Started, fork.begun);
            return Ok(Step::Record { previous_event_id: *base, kind });
        }
        self.advance(view, fork, now)
    }

    /// The next event of the thread that has been idle longest and has one.
    fn advance(&self, view: View<'_>, fork: &Fork, now: Timestamp) -> Result<Step> {
        let is_map = matches!(view.state.kind, Kind::Map(_));
        // An iteration of a distributed `Map` fails alone.
        let is_apart = matches!(&view.state.kind, Kind::Map(map) if map.distributed);
        let mut wake_at = None;
        for (index, thread) in fork.in_turn() {
            let kind = match self.step(thread, now) {
                Step::Record { previous_event_id, kind } => {
                    return Ok(Step::Record { previous_event_id, kind });
                }
                Step::Wait(at) => {
                    wake_at = Some(wake_at.map_or(at, |known: Timestamp| known.min(at)));
                    continue;
                }
                Step::Finish(_) => iteration(view, Moment::Succeeded, index),
                // Nothing catches it, so the execution fails at once, as measured on AWS.
                Step::Fail(failure) if is_fatal(&failure) && !is_apart => {
                    EventKind::ExecutionFailed(failure)
                }
                Step::Fail(_) if is_map => iteration(view, Moment::Failed, index),
                Step::Fail(failure) => {
                    let failed = thread.failed(failure);
                    return self.broken(view, &failed, 1, thread.last, now);
                }
            };
            return Ok(Step::Record { previous_event_id: thread.last, kind });
        }
        Ok(Step::Wait(wake_at.expect("a fork without threads has ended")))
    }
}

impl Fork {
    /// The running threads, the one that has been idle longest first.
    pub(super) fn in_turn(&self) -> Vec<(usize, &Arc<Thread>)> {
        let mut threads: Vec<(usize, &Arc<Thread>)> =
            self.running.iter().map(|(index, thread)| (*index, thread)).collect();
        threads.sort_by_key(|(index, thread)| (thread.newest(), *index));
        threads
    }

    /// The results in order, without tolerated failures.
    pub(super) fn output(&self) -> Value {
        if let Some(output) = self.run.as_ref().and_then(|run| run.output.as_ref()) {
            return Value::clone(output);
        }
        self.results.iter().flatten().map(|result| Value::clone(result)).collect()
    }

    /// Stores the result of a thread.
    pub(super) fn succeed(&mut self, index: usize, value: &Arc<Value>) {
        self.running.remove(&index);
        Arc::make_mut(&mut self.results)[index] = Some(Arc::clone(value));
        self.ended += 1;
    }

    /// Records a failed iteration; returns the fork's failure if too many failed.
    pub(super) fn fail(&mut self, index: usize, failure: Failure) -> Option<Failure> {
        let thread = self.running.remove(&index);
        self.failed.extend(thread.map(|thread| (index, thread)));
        self.ended += 1;
        let tolerated = self.tolerated();
        (self.failed.len() > tolerated).then(|| exceeded(tolerated, failure))
    }

    pub(super) fn tolerated(&self) -> usize {
        self.tolerated.as_ref().copied().unwrap_or_default()
    }
}

impl Thread {
    /// A failure that no catcher of the thread matched.
    pub(super) fn failed(&self, failure: Failure) -> Failed {
        Failed { event_id: self.last, failure, at: self.at, while_catching: false, fork: None }
    }

    /// The newest event of the thread and its descendants.
    fn newest(&self) -> u64 {
        match &self.position {
            Position::In(_, super::thread::Stage::Forked(fork)) => {
                let below = fork.running.values().map(|thread| thread.newest()).min();
                below.unwrap_or(fork.last)
            }
            _ => self.last,
        }
    }
}

/// A field of a `Map` that reads or writes files.
fn reads_or_writes(map: &Map) -> Option<&'static str> {
    let reader = map.reader.as_ref().map(|_| "ItemReader");
    reader.or(map.writer.as_ref().map(|_| "ResultWriter"))
}

fn is_fatal(failure: &Failure) -> bool {
    failure.error.as_deref() == Some(error_name::RUNTIME)
}

/// A run of a distributed `Map` does not tell which failure was one too many.
pub(super) fn exceeded_of_run() -> Failure {
    let cause = "The specified tolerated failure threshold was exceeded".to_owned();
    Failure::new(error_name::TOLERATED_FAILURES_EXCEEDED, Some(cause))
}

/// If no failure is tolerated, the `Map` fails with the iteration's own error.
pub(super) fn exceeded(tolerated: usize, failure: Failure) -> Failure {
    if tolerated == 0 {
        return failure;
    }
    exceeded_of_run()
}

pub(super) fn iteration(view: View<'_>, moment: Moment, index: usize) -> EventKind {
    EventKind::MapIteration { moment, name: view.visit.state.clone(), index: index as u64 }
}

fn no_array(view: View<'_>, input: &Value) -> Stopped {
    let cause = format!("Map state input must be an array but was: {input}");
    let error = match view.state.language {
        crate::expression::Language::Jsonata => error_name::QUERY_EVALUATION_ERROR,
        crate::expression::Language::JsonPath => error_name::RUNTIME,
    };
    Stopped::Fault(Fault { error, location: None, cause })
}

/// A number in the state, a whole one.
pub(super) fn whole(
    view: View<'_>,
    scope: &mut Scope<'_>,
    slot: &Option<Slot>,
) -> Result<Option<usize>> {
    let Some(slot) = slot else { return Ok(None) };
    let input = effective(view, scope)?;
    let value = slot.evaluate(scope, &input, "", "number", accept::whole_or_text)?;
    Ok(Some(usize::try_from(value).unwrap_or(usize::MAX)))
}

/// The number of failed iterations that a `Map` tolerates.
fn tolerated(view: View<'_>, scope: &mut Scope<'_>, map: &Map, items: usize) -> Result<usize> {
    let (count, share) = tolerances(view, scope, map)?;
    let share = share.map(|share| (share * items as f64 / 100.0) as usize);
    Ok([count, share].into_iter().flatten().min().unwrap_or_default())
}

/// The number and the percentage of failed iterations that a `Map` tolerates.
pub(super) fn tolerances(
    view: View<'_>,
    scope: &mut Scope<'_>,
    map: &Map,
) -> Result<(Option<usize>, Option<f64>)> {
    let count = whole(view, scope, &map.tolerated_count)?;
    let input = effective(view, scope)?;
    let percentage = map
        .tolerated_percentage
        .as_ref()
        .map(|slot| slot.evaluate(scope, &input, "", "number", accept::percentage_or_text));
    Ok((count, percentage.transpose()?))
}

/// Groups items into batches, each with `BatchInput`.
fn batched(
    batcher: &Batcher,
    items: Vec<Value>,
    scope: &mut Scope<'_>,
    input: &Value,
) -> Result<Vec<Value>> {
    let mut limit = |slot: &Option<Slot>| {
        let limit = slot
            .as_ref()
            .map(|slot| slot.evaluate(scope, input, "ItemBatcher/", "number", accept::limit));
        limit.transpose().map(|limit| limit.map_or(usize::MAX, |limit| limit as usize))
    };
    let (items_max, bytes_max) = (limit(&batcher.items_max)?, limit(&batcher.bytes_max)?);
    let shared = match &batcher.input {
        Some(template) => template.evaluate(scope, input, "ItemBatcher/BatchInput")?,
        None => Value::Null,
    };
    let (mut batches, mut batch, mut bytes) = (Vec::new(), Vec::new(), 0);
    let close = |batch: Vec<Value>| match &batcher.input {
        Some(_) => json!({"BatchInput": shared, "Items": batch}),
        None => json!({"Items": batch}),
    };
    for item in items {
        let size = item.to_string().len();
        if !batch.is_empty() && (batch.len() >= items_max || bytes + size > bytes_max) {
            batches.push(close(std::mem::take(&mut batch)));
            bytes = 0;
        }
        bytes += size;
        batch.push(item);
    }
    if !batch.is_empty() {
        batches.push(close(batch));
    }
    Ok(batches)
}
