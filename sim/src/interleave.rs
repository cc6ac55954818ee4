//! Runs a race in every order of its operations on the store.
//!
//! A race is a few participants that run real code, each over a [`Gate`] to a real store. One
//! operation is let through at a time; which one is the schedule. [`explore`] runs the race once
//! for every schedule, depth first, each time from the beginning over a session of its own, and
//! checks what came of it.
//!
//! Two operations that touch different records, or that both read, may be swapped without anybody
//! noticing; of the schedules that differ only so, one is run (sleep sets, after Godefroid,
//! "Partial-Order Methods for the Verification of Concurrent Systems"). Where even these are too
//! many, [`Limits::preemptions`] bounds how often a participant is interrupted that could have gone
//! on (context bounding, after Musuvathi and Qadeer's CHESS); all schedules within the bound run then.
//!
//! Time is tokio's, paused: it moves by a millisecond a decision, and further only when nobody has
//! an operation to make. The order of operations shows in stamps by as much, and nothing depends
//! on it. That the runtime has moved to the next timer is how a schedule knows that everybody
//! either waits at a gate or is done.

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

/// The time that one decision takes.
const TURN: Duration = Duration::from_millis(1);

/// How long a lost answer is waited out: longer than the pause before what it was is sent again.
const RESENT: Duration = Duration::from_millis(300);

/// How long nobody may have anything to do before the race counts as stuck.
const STUCK: Duration = Duration::from_secs(300);

/// Operations after which a schedule counts as endless.
const OPERATIONS_MAX: usize = 2_000;

/// What is left out, and what goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How often a participant is interrupted that could have gone on, or an operation overtakes
    /// one that its own participant asked for before; `None` for any number.
    pub preemptions: Option<usize>,
    /// How many answers are lost or participants die in one schedule, of those that may.
    pub faults: usize,
    /// Schedules after which it is better to set a bound.
    pub schedules_max: usize,
}

impl Limits {
    /// Every schedule, and nothing goes wrong.
    pub const NONE: Self = Self { preemptions: None, faults: 0, schedules_max: 3_000 };

    /// The same, with so many interruptions at most.
    #[must_use]
    pub const fn interrupted(self, preemptions: usize) -> Self {
        Self { preemptions: Some(preemptions), ..self }
    }

    /// The same, with so many faults at most.
    #[must_use]
    pub const fn faulty(self, faults: usize) -> Self {
        Self { faults, ..self }
    }
}

/// What may go wrong with a participant's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frailty {
    /// Nothing.
    Sound,
    /// An answer may be lost.
    LosesAnswers,
    /// It may die with an operation done and unanswered, and is then begun again from the start.
    Dies,
}

/// What one participant does, over a gate of its own.
type Deed<S> = Box<dyn Fn(Gate<S>) -> BoxFuture<'static, ()> + Send>;

/// Says of a write whether a participant waits for it no longer.
type Cue = Box<dyn Fn(&Item) -> bool + Send>;

struct Participant<S> {
    name: &'static str,
    frailty: Frailty,
    /// What must be written before it begins.
    cue: Option<Cue>,
    deed: Option<Deed<S>>,
    gate: Option<Gate<S>>,
    task: Option<AbortHandle>,
}

/// One run of a race.
pub struct Race<S> {
    open: Gate<S>,
    queue: Arc<Mutex<Queue>>,
    clock: Clock,
    participants: Vec<Participant<S>>,
    tasks: JoinSet<()>,
}

/// What exploring a race came to.
#[derive(Debug, Default)]
pub struct Explored {
    /// How many schedules ran to their end.
    pub schedules: usize,
    /// How many were given up as no different from one that ran.
    pub repeated: usize,
    /// The most operations that one had.
    pub operations_max: usize,
    /// The first schedule after which something did not hold, and what.
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

    /// Runs one schedule; says whether it came to its end or was tried before.
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

    /// The store for what happens before and after the race: it goes on at once.
    pub fn store(&self) -> Gate<S> {
        self.open.clone()
    }

    /// The race's clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Every write that reached the store so far.
    pub fn log(&self) -> Vec<Write> {
        lock(&self.queue).log.clone()
    }

    /// A process that does nothing by itself: what others have it do takes turns as its own.
    pub fn process(&mut self, name: &'static str) -> Gate<S> {
        let gate = self.gate(name, self.participants.len());
        self.participants.push(Participant {
            name,
            frailty: Frailty::Sound,
            cue: None,
            deed: None,
            gate: Some(gate.clone()),
            task: None,
        });
        gate
    }

    /// Has somebody take part from the beginning.
    pub fn enter<F>(
        &mut self,
        name: &'static str,
        frailty: Frailty,
        deed: impl Fn(Gate<S>) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let deed: Deed<S> = Box::new(move |gate| Box::pin(deed(gate)));
        let deed = Some(deed);
        self.participants.push(Participant {
            name,
            frailty,
            cue: None,
            deed,
            gate: None,
            task: None,
        });
    }

    /// Has somebody take part once such a record was written; not at all if none is.
    pub fn enter_after<F>(
        &mut self,
        cue: impl Fn(&Item) -> bool + Send + 'static,
        name: &'static str,
        frailty: Frailty,
        deed: impl Fn(Gate<S>) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.enter(name, frailty, deed);
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
        let Some(deed) = &participant.deed else { return };
        participant.cue = None;
        participant.task = Some(self.tasks.spawn(deed(gate.clone())));
        participant.gate = Some(gate);
    }

    /// Begins those whose time has come: at first those who wait for nothing.
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

    /// Kills a participant and begins it anew.
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

    /// Returns when everybody waits at a gate, waits for time to pass, or is done.
    async fn settle(&mut self, time: Duration) {
        tokio::time::sleep(time).await;
        while let Some(ended) = self.tasks.try_join_next() {
            if let Err(error) = ended
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
        // What nobody waits for any more was never sent.
        lock(&self.queue).waiting.retain(|waiting| waiting.wanted.strong_count() > 0);
    }

    /// Returns with operations to choose from, or with none when the race is over.
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
                return Err("nobody has anything to do, and not everybody is done".to_owned());
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

/// Runs a race in every schedule within the limits, each time prepared anew, and judges what came
/// of each. Stops at the first in which something does not hold.
///
/// `prepare` makes a fresh session and says who takes part; `judge` says what does not hold.
///
/// `paused` makes a current-thread runtime whose time is paused.
///
/// # Panics
/// When a participant panics, when the race is not the same for the same schedule, or when there
/// are more schedules than [`Limits::schedules_max`].
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
            let told = || schedule.describe(|index| race.participants[index].name);
            Some((!broken.is_empty()).then(|| format!("{}\n{}", broken.join("\n"), told())))
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
            "more than {} schedules: bound the interruptions",
            limits.schedules_max
        );
        if explored.broken.is_some() || !schedule.advance() {
            return explored;
        }
    }
}
