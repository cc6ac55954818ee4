//! Chooses the next operation, and remembers which were tried.

use std::fmt;

use super::gate::{Access, Fate, Waiting};
use super::{Frailty, Limits};

/// A possible next operation.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) participant: usize,
    pub(super) number: u32,
    pub(super) fate: Fate,
    access: Access,
}

/// A decision point of a schedule.
#[derive(Debug)]
struct Decision {
    choices: Vec<Choice>,
    /// Index of the current choice; those before it are done.
    taken: usize,
    /// Choices that need not be tried here, because an equivalent order was tried.
    asleep: Vec<Choice>,
    /// The participant that could continue without an interruption.
    current: Option<usize>,
    /// Operations that are not their participant's oldest.
    young: Vec<(usize, u32)>,
}

/// The current schedule, and which ones were tried.
#[derive(Debug)]
pub(super) struct Schedule {
    limits: Limits,
    decisions: Vec<Decision>,
}

impl Choice {
    /// A waiting operation without a fault.
    pub(super) fn of(waiting: &Waiting) -> Self {
        let (participant, number) = (waiting.participant, waiting.number);
        Self { participant, number, fate: Fate::Served, access: waiting.access.clone() }
    }

    pub(super) fn is(&self, waiting: &Waiting) -> bool {
        self.participant == waiting.participant && self.number == waiting.number
    }

    fn is_same_operation(&self, other: &Self) -> bool {
        self.participant == other.participant && self.number == other.number
    }

    fn is_same(&self, other: &Self) -> bool {
        self.is_same_operation(other) && self.fate == other.fate
    }

    /// Whether the order of the two matters. If the number of faults is limited, two faults exclude
    /// each other.
    fn depends_on(&self, other: &Self) -> bool {
        self.participant == other.participant
            || (self.fate != Fate::Served && other.fate != Fate::Served)
            || self.access.conflicts(&other.access)
    }
}

impl Decision {
    fn chosen(&self) -> &Choice {
        &self.choices[self.taken]
    }

    /// Each schedule has its own session, so the same operations touch other records.
    fn place(&mut self, waiting: &[Choice]) {
        for choice in self.choices.iter_mut().chain(&mut self.asleep) {
            let now = waiting.iter().find(|now| now.is_same_operation(choice));
            let now = now.unwrap_or_else(|| panic!("not deterministic: {choice} does not wait"));
            choice.access.clone_from(&now.access);
        }
    }

    fn interrupts(&self) -> bool {
        let chosen = self.chosen();
        self.current.is_some_and(|current| current != chosen.participant)
            || self.young.contains(&(chosen.participant, chosen.number))
    }
}

impl Schedule {
    pub(super) fn first(limits: Limits) -> Self {
        Self { limits, decisions: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.decisions.len()
    }

    /// The choice at a decision point: the previous one, or else the first possible one; `None` if
    /// all possible ones were tried elsewhere.
    pub(super) fn choose(
        &mut self,
        depth: usize,
        waiting: Vec<Choice>,
        frailty: impl Fn(usize) -> Frailty,
    ) -> Option<Choice> {
        if let Some(again) = self.decisions.get_mut(depth) {
            again.place(&waiting);
        } else {
            let decision = self.decide(waiting, frailty);
            if decision.choices.is_empty() {
                return None;
            }
            self.decisions.push(decision);
        }
        Some(self.decisions[depth].chosen().clone())
    }

    /// Advances to the next schedule; returns whether there is one.
    pub(super) fn advance(&mut self) -> bool {
        while let Some(decision) = self.decisions.last_mut() {
            decision.taken += 1;
            if decision.taken < decision.choices.len() {
                return true;
            }
            self.decisions.pop();
        }
        false
    }

    fn decide(&self, waiting: Vec<Choice>, frailty: impl Fn(usize) -> Frailty) -> Decision {
        let before = self.decisions.last().map(|before| before.chosen().participant);
        let current = before.filter(|before| waiting.iter().any(|c| c.participant == *before));
        let young = young(&waiting);
        let asleep = self.asleep();
        let tried = |choice: &Choice| asleep.iter().any(|asleep| asleep.is_same(choice));
        let mut choices = self.candidates(waiting, current, &young, frailty);
        choices.retain(|choice| !tried(choice));
        Decision { choices, taken: 0, asleep, current, young }
    }

    /// The sleep set after the newest decision: choices that slept or were tried there and are
    /// independent of the chosen one. With limited interruptions it is empty, because the
    /// equivalent order may exceed the limit.
    fn asleep(&self) -> Vec<Choice> {
        match self.decisions.last() {
            Some(before) if self.limits.preemptions.is_none() => {
                let known = before.asleep.iter().chain(&before.choices[..before.taken]);
                known.filter(|choice| !choice.depends_on(before.chosen())).cloned().collect()
            }
            _ => Vec::new(),
        }
    }

    /// All possible next choices, the current participant's first.
    fn candidates(
        &self,
        mut waiting: Vec<Choice>,
        current: Option<usize>,
        young: &[(usize, u32)],
        frailty: impl Fn(usize) -> Frailty,
    ) -> Vec<Choice> {
        let goes_on = |choice: &Choice| Some(choice.participant) == current;
        let spent = self.decisions.iter().filter(|decision| decision.interrupts()).count();
        if self.limits.preemptions.is_some_and(|most| spent >= most) {
            waiting.retain(|choice| current.is_none() || goes_on(choice));
            waiting.retain(|choice| !young.contains(&(choice.participant, choice.number)));
        }
        waiting.sort_by_key(|choice| !goes_on(choice));
        let faults = self.decisions.iter().filter(|d| d.chosen().fate != Fate::Served).count();
        let mut candidates = Vec::new();
        for choice in waiting {
            let fate = match frailty(choice.participant) {
                // A lost read has no effect, and dying from it equals dying a little earlier.
                _ if !choice.access.is_write() || faults >= self.limits.faults => None,
                Frailty::Sound => None,
                Frailty::LosesAnswers => Some(Fate::Unanswered),
                Frailty::Dies => Some(Fate::Dies),
            };
            let wrong = fate.map(|fate| Choice { fate, ..choice.clone() });
            candidates.push(choice);
            candidates.extend(wrong);
        }
        candidates
    }

    /// The operations in order, with their participants' names.
    pub(super) fn describe(&self, name: impl Fn(usize) -> &'static str) -> String {
        let line = |decision: &Decision| {
            let choice = decision.chosen();
            format!("  {} {choice}\n", name(choice.participant))
        };
        self.decisions.iter().map(line).collect()
    }
}

/// Operations with an older one of the same participant, which may make several at once.
fn young(waiting: &[Choice]) -> Vec<(usize, u32)> {
    let is_behind = |choice: &&Choice| {
        let before = |other: &Choice| {
            other.participant == choice.participant && other.number < choice.number
        };
        waiting.iter().any(before)
    };
    waiting.iter().filter(is_behind).map(|choice| (choice.participant, choice.number)).collect()
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.access.label())?;
        match self.fate {
            Fate::Served => Ok(()),
            Fate::Unanswered => f.write_str(", the answer is lost"),
            Fate::Dies => f.write_str(", and dies"),
        }
    }
}
