//! Explores a race: runs it in every relevant order of its store operations.
//!
//! A race has a few participants that run real code, each over a [`Gate`] to a real store. One
//! operation proceeds at a time; their order is the schedule. [`explore`] runs the race once per
//! schedule, depth first, each time from the start with a new session, and checks the result.
//!
//! Two operations that touch different records, or that both read, can be swapped without effect.
//! Of schedules that differ only in such swaps, one is run (sleep sets, after Godefroid,
//! "Partial-Order Methods for the Verification of Concurrent Systems"). If there are still too
//! many, [`Limits::preemptions`] limits how often a participant that could continue is interrupted
//! (context bounding, after Musuvathi and Qadeer's CHESS); then all schedules within the limit are
//! run.
//!
//! Time is tokio's, paused. It advances by a millisecond per decision, and further only if no
//! participant has an operation to make. Timestamps show the order of operations, and nothing
//! depends on it. When the runtime advances to the next timer, every participant is either waiting
//! at a gate or done.

mod cloud;
mod gate;
mod schedule;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use journal::clock::Clock;
use journal::item::Item;
use journal::store::Store;
use tokio::runtime::Runtime;
use tokio::task::{AbortHandle, JoinSet};

use crate::process::Process;
use crate::world::ORIGIN;
pub use cloud::Cloud;
use gate::{Fate, Queue, lock, overwritten};
pub use gate::{Gate, Io, Write};
use schedule::{Choice, Schedule};

/// Time per decision.
const TURN: Duration = Duration::from_millis(1);

/// Delay until a lost reply counts as lost: longer than the pause before the operation is repeated.
const RESENT: Duration = Duration::from_millis(300);

/// Time without any operation after which the race counts as stuck.
const STUCK: Duration = Duration::from_secs(300);

/// Operations after which a schedule counts as endless.
const OPERATIONS_MAX: usize = 2_000;

/// Limits of the exploration, and its faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How often a participant that could continue is interrupted, or an operation overtakes an
    /// earlier one of the same participant; `None` for no limit.
    pub preemptions: Option<usize>,
    /// Most lost replies and deaths in one schedule.
    pub faults: usize,
    /// Schedules after which a limit is needed.
    pub schedules_max: usize,
}

impl Limits {
    /// All schedules, without faults.
    pub const NONE: Self = Self { preemptions: None, faults: 0, schedules_max: 3_000 };

    /// With at most this many interruptions.
    #[must_use]
    pub const fn interrupted(self, preemptions: usize) -> Self {
        Self { preemptions: Some(preemptions), ..self }
    }

    /// With at most this many faults.
    #[must_use]
    pub const fn faulty(self, faults: usize) -> Self {
        Self { faults, ..self }
    }
}

/// The faults of a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frailty {
    Sound,
    /// Replies may be lost.
    LosesAnswers,
    /// It may die after an operation and before the reply, and is then restarted.
    Dies,
}

/// A participant's action, over a gate of its own.
type Action<S> = Box<dyn Fn(Gate<S>) -> BoxFuture<'static, ()> + Send>;

/// Whether this write starts a waiting participant.
type Cue = Box<dyn Fn(&Item) -> bool + Send>;

struct Participant<S> {
    name: &'static str,
    frailty: Frailty,
    /// The write after which it starts.
    cue: Option<Cue>,
    action: Option<Action<S>>,
    gate: Option<Gate<S>>,
    task: Option<AbortHandle>,
}

/// A run of a race.
pub struct Race<S> {
    open: Gate<S>,
    queue: Arc<Mutex<Queue>>,
    clock: Clock,
    participants: Vec<Participant<S>>,
    tasks: JoinSet<()>,
}

/// The result of an exploration.
#[derive(Debug, Default)]
pub struct Explored {
    /// Schedules that ran to their end.
    pub schedules: usize,
    /// Schedules that were abandoned because an equivalent one had run.
    pub repeated: usize,
    /// Most operations of a schedule.
    pub operations_max: usize,
    /// The first schedule with a violation, and the violation.
    pub broken: Option<String>,
}

impl<S: Store> Race<S> {
    fn new(io: Io, store: S) -> Self {
        let queue = Arc::new(Mutex::new(Queue::default()));
        Self {
            open: Gate::open(store, io, Arc::clone(&queue)),
            queue,
            clock: Clock::scaled(ORIGIN, 1),
            participants: Vec::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Runs one schedule; returns whether it ended, and false if an equivalent one was run before.
    async fn run(&mut self, schedule: &mut Schedule) -> Result<bool, String> {
        self.begin_after(None);
        for depth in 0..OPERATIONS_MAX {
            let waiting = self.settled().await?;
            if waiting.is_empty() {
                return Ok(true);
            }
            let frailty = |index: usize| self.participants[index].frailty;
            let Some(choice) = schedule.choose(depth, waiting, frailty) else {
                return Ok(false);
            };
            self.perform(&choice).await;
        }
        Err(format!("more than {OPERATIONS_MAX} operations"))
    }

    /// The store before and after the race: its operations do not wait.
    pub fn store(&self) -> Gate<S> {
        self.open.clone()
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    pub fn log(&self) -> Vec<Write> {
        lock(&self.queue).log.clone()
    }

    /// A process without actions of its own: operations that others make through it are scheduled
    /// as its own.
    pub fn process(&mut self, name: &'static str) -> Gate<S> {
        let gate = self.gate(name, self.participants.len());
        self.participants.push(Participant {
            name,
            frailty: Frailty::Sound,
            cue: None,
            action: None,
            gate: Some(gate.clone()),
            task: None,
        });
        gate
    }

    /// Adds a participant that starts at once.
    pub fn enter<F>(
        &mut self,
        name: &'static str,
        frailty: Frailty,
        action: impl Fn(Gate<S>) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let action: Action<S> = Box::new(move |gate| Box::pin(action(gate)));
        let action = Some(action);
        self.participants.push(Participant {
            name,
            frailty,
            cue: None,
            action,
            gate: None,
            task: None,
        });
    }

    /// Adds a participant that starts after such a write, if there is one.
    pub fn enter_after<F>(
        &mut self,
        cue: impl Fn(&Item) -> bool + Send + 'static,
        name: &'static str,
        frailty: Frailty,
        action: impl Fn(Gate<S>) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.enter(name, frailty, action);
        if let Some(participant) = self.participants.last_mut() {
            participant.cue = Some(Box::new(cue));
        }
    }

    fn gate(&self, name: &str, participant: usize) -> Gate<S> {
        self.open.of(Process::new(name.to_owned(), self.clock.clone()), participant)
    }

    fn begin(&mut self, index: usize) {
        let gate = self.gate(self.participants[index].name, index);
        let participant = &mut self.participants[index];
        let Some(action) = &participant.action else { return };
        participant.cue = None;
        participant.task = Some(self.tasks.spawn(action(gate.clone())));
        participant.gate = Some(gate);
    }

    /// Starts the participants that waited for this write, or at first those that wait for none.
    fn begin_after(&mut self, written: Option<&Item>) {
        for index in 0..self.participants.len() {
            let participant = &self.participants[index];
            let due = match (&participant.cue, written) {
                (None, None) => true,
                (Some(cue), Some(item)) => cue(item),
                _ => false,
            };
            if due && participant.task.is_none() {
                self.begin(index);
            }
        }
    }

    /// Kills and restarts a participant.
    fn restart(&mut self, index: usize) {
        let participant = &mut self.participants[index];
        if let Some(gate) = &participant.gate {
            gate.process().kill();
        }
        if let Some(task) = &participant.task {
            task.abort();
        }
        lock(&self.queue).waiting.retain(|waiting| waiting.participant != index);
        self.begin(index);
    }

    /// Returns when every participant waits at a gate, waits for time to pass, or is done.
    async fn settle(&mut self, time: Duration) {
        tokio::time::sleep(time).await;
        while let Some(ended) = self.tasks.try_join_next() {
            if let Err(error) = ended
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
        // An operation whose caller is gone was never sent.
        lock(&self.queue).waiting.retain(|waiting| waiting.wanted.strong_count() > 0);
    }

    /// Returns the operations to choose from; empty when the race is over.
    async fn settled(&mut self) -> Result<Vec<Choice>, String> {
        let mut idle = Duration::ZERO;
        self.settle(TURN).await;
        loop {
            let mut choices: Vec<_> = lock(&self.queue).waiting.iter().map(Choice::of).collect();
            choices.sort_by_key(|choice| (choice.participant, choice.number));
            if !choices.is_empty() || self.tasks.is_empty() {
                return Ok(choices);
            }
            if idle > STUCK {
                return Err("no participant can continue, and not all are done".to_owned());
            }
            self.settle(TURN * 10).await;
            idle += TURN * 10;
        }
    }

    async fn perform(&mut self, choice: &Choice) {
        let waiting = {
            let mut queue = lock(&self.queue);
            let place = queue.waiting.iter().position(|waiting| choice.is(waiting));
            place.map(|place| queue.waiting.remove(place))
        };
        let Some(waiting) = waiting else {
            panic!("the race is not deterministic: {choice} does not wait");
        };
        let write = (waiting.perform)(choice.fate);
        lock(&self.queue).log.extend(write.clone());
        if let Some(write) = write.filter(|write| write.landed) {
            self.begin_after(Some(&write.item));
        }
        match choice.fate {
            Fate::Served => {}
            Fate::Unanswered => self.settle(RESENT).await,
            Fate::Dies => self.restart(choice.participant),
        }
    }
}

/// Runs a race in all schedules within the limits, each time prepared again, and checks each
/// result. Stops at the first violation.
///
/// `prepare` creates a session and adds the participants; `judge` returns violations.
///
/// `paused` creates a current-thread runtime with paused time.
///
/// # Panics
/// A participant panics, the race is not deterministic, or there are more schedules than
/// [`Limits::schedules_max`].
pub fn explore<S: Store, T>(
    io: &Io,
    paused: fn() -> Runtime,
    store: &S,
    limits: Limits,
    prepare: impl AsyncFn(&mut Race<S>) -> T,
    judge: impl AsyncFn(&Race<S>, T) -> Vec<String>,
) -> Explored {
    let mut explored = Explored::default();
    let mut schedule = Schedule::first(limits);
    loop {
        let ran = paused().block_on(async {
            let mut race = Race::new(io.clone(), store.clone());
            let prepared = prepare(&mut race).await;
            let mut broken = match race.run(&mut schedule).await {
                Ok(true) => judge(&race, prepared).await,
                Ok(false) => return None,
                Err(stuck) => vec![stuck],
            };
            let queue = std::mem::take(&mut *lock(&race.queue));
            broken.extend(queue.broken);
            broken.extend(overwritten(&queue.log));
            let trace = || schedule.describe(|index| race.participants[index].name);
            Some((!broken.is_empty()).then(|| format!("{}\n{}", broken.join("\n"), trace())))
        });
        match ran {
            None => explored.repeated += 1,
            Some(broken) => {
                explored.schedules += 1;
                explored.operations_max = explored.operations_max.max(schedule.len());
                explored.broken = broken;
            }
        }
        assert!(
            explored.schedules + explored.repeated <= limits.schedules_max,
            "more than {} schedules: set a limit on interruptions",
            limits.schedules_max
        );
        if explored.broken.is_some() || !schedule.advance() {
            return explored;
        }
    }
}
