//! The AWS usage of a session, and its cost.
//!
//! [`planned`] estimates the usage from a session's length; callers with a real run count it instead.
//! [`Counters::bill`] converts usage into dollars with the table in [`prices`]. The simulator compares
//! the estimate with real runs.

pub mod prices;

use std::ops::Add;
use std::time::Duration;

use serde::Serialize;

use crate::limits::{
    HAND_OVER_AFTER, HEARTBEAT_INTERVAL, PARK_LONGEST, POLL_FACTOR_PERCENT, POLL_FIRST,
    POLL_LONGEST,
};

/// Usage, in the units that AWS bills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Checks of the journal by the poller.
    pub polls: u64,
    /// State transitions of the workflow.
    pub transitions: u64,
    /// Events in the execution's history, which takes 25,000.
    pub history_events: u64,
    /// Calls of Lambda functions.
    pub calls: u64,
    /// Total duration of these calls, in milliseconds.
    pub call_ms: u64,
    /// Write units of the table and its indexes: a kibibyte each, or a part of it.
    pub write_units: u64,
    /// Read units: four kibibytes each, or a part of it, read consistently.
    pub read_units: u64,
    /// Lifetime of the agent's runtime session, in seconds.
    pub runtime_s: u64,
    /// Processor time of that session, in milliseconds.
    pub processor_ms: u64,
}

impl Add for Counters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            polls: self.polls + other.polls,
            transitions: self.transitions + other.transitions,
            history_events: self.history_events + other.history_events,
            calls: self.calls + other.calls,
            call_ms: self.call_ms + other.call_ms,
            write_units: self.write_units + other.write_units,
            read_units: self.read_units + other.read_units,
            runtime_s: self.runtime_s + other.runtime_s,
            processor_ms: self.processor_ms + other.processor_ms,
        }
    }
}

/// Cost of a session, in dollars, without the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bill {
    /// The trigger event.
    pub event_bus: f64,
    pub workflow: f64,
    pub functions: f64,
    /// The journal's writes and reads.
    pub journal: f64,
    pub runtime: f64,
}

impl Bill {
    pub fn total(&self) -> f64 {
        self.event_bus + self.workflow + self.functions + self.journal + self.runtime
    }
}

impl Counters {
    /// The cost of this usage.
    #[expect(clippy::cast_precision_loss, reason = "no count comes near 2^53")]
    pub fn bill(&self) -> Bill {
        let function_gib_s = self.call_ms as f64 / 1e3 * FUNCTION_GIB;
        let runtime_hours = self.runtime_s as f64 / 3_600.0;
        let processor_hours = self.processor_ms as f64 / 3.6e6;
        Bill {
            event_bus: prices::EVENT,
            workflow: self.transitions as f64 * prices::TRANSITION,
            functions: self.calls as f64 * prices::FUNCTION_CALL
                + function_gib_s * prices::FUNCTION_GIB_SECOND,
            journal: self.write_units as f64 * prices::WRITE_UNIT
                + self.read_units as f64 * prices::READ_UNIT,
            runtime: processor_hours * prices::RUNTIME_VCPU_HOUR
                + runtime_hours * RUNTIME_GB * prices::RUNTIME_GB_HOUR,
        }
    }
}

/// Memory of a function, in gibibytes: the stack's default.
pub const FUNCTION_GIB: f64 = 0.25;

/// Assumed resident memory of an agent's runtime session, in gigabytes: the host with three tool
/// servers.
pub const RUNTIME_GB: f64 = 0.25;

/// A planned session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Effects of its agent: each is one step.
    pub effects: u32,
    /// Size of an outcome's item in the journal, in bytes, attributes included.
    pub outcome_bytes: u32,
    /// The agent's running time.
    pub running: Duration,
    /// The part of it in which the agent itself computes, rather than waits for a model or a tool.
    pub busy: Duration,
    pub questions: u32,
    /// How long each is open.
    pub waiting: Duration,
    /// How the workflow monitors it.
    pub polling: Polling,
}

/// How a workflow monitors its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polling {
    /// As Daybook does: parked on a callback, with checks at growing intervals.
    Parked,
    /// One check per interval; the agent keeps running while it waits for a person.
    Fixed(Duration),
}

/// States that are entered once: begin, initialise, invoke, the last check with its judgement, success.
const TRANSITIONS_ONCE: u64 = 6;

/// States of a round: check, judge, wait.
const TRANSITIONS_A_ROUND: u64 = 3;

/// Events of a round in the history: five of each of two tasks, two of the choice, and the timeout's own.
const HISTORY_A_ROUND: u64 = 13;

/// Events outside of rounds, and those of states that are entered once.
const HISTORY_ONCE: u64 = 22;

/// Assumed duration of a warm function call, in milliseconds.
const CALL_MS: u64 = 30;

/// Reads of a check: the newest step, and the newest events with the lease.
const READ_UNITS_A_CHECK: u64 = 4;

/// Writes of a heartbeat: the lease, and its entry in the index of open leases removed and added.
const WRITE_UNITS_A_HEARTBEAT: u64 = 3;

/// Reads of a heartbeat: the token.
const READ_UNITS_A_HEARTBEAT: u64 = 1;

/// Lifecycle events of a successful invocation.
const EVENTS_AN_INVOCATION: u64 = 5;

/// Writes at the begin and the end of a session: the first event and the verdict, each with its entry in
/// the by-day index; the lease when it is created and closed; the end step.
const WRITE_UNITS_ONCE: u64 = 9;

/// Estimates the usage of a successful session without losses and rejections.
pub fn planned(plan: &Plan) -> Counters {
    let handed_over = plan.running.as_secs() / HAND_OVER_AFTER.as_secs();
    let invocations = u64::from(plan.questions) + handed_over + 1;
    let (rounds, kept_waiting) = match plan.polling {
        Polling::Parked => {
            let asleep = plan.waiting.as_secs().div_ceil(PARK_LONGEST.as_secs());
            let rest = Duration::from_secs(plan.running.as_secs() % HAND_OVER_AFTER.as_secs());
            // The work after a question is short compared with the work before it.
            let running = handed_over * rounds_of(HAND_OVER_AFTER) + rounds_of(rest);
            (running + u64::from(plan.questions) * (asleep + 1), Duration::ZERO)
        }
        Polling::Fixed(interval) => {
            let waiting = plan.waiting * plan.questions;
            let all = (plan.running + waiting).as_millis() / interval.as_millis().max(1);
            (u64::try_from(all).unwrap_or(u64::MAX), waiting)
        }
    };
    let polls = rounds + invocations;
    // Each round is a check and a parking; a fixed wait calls no function.
    let waits = if plan.polling == Polling::Parked { rounds } else { 0 };
    let calls = invocations + polls + waits;
    let outcome_units = u64::from(plan.outcome_bytes.div_ceil(1_024).max(1));
    let steps = u64::from(plan.effects) * outcome_units + 3 * u64::from(plan.questions) + 1;
    let kept = plan.running + kept_waiting;
    let beating = if plan.polling == Polling::Parked { plan.running } else { Duration::ZERO };
    let counted = Counters {
        polls,
        transitions: TRANSITIONS_ONCE
            + 2 * (u64::from(plan.questions) + handed_over)
            + TRANSITIONS_A_ROUND * rounds,
        history_events: HISTORY_ONCE
            + 14 * (u64::from(plan.questions) + handed_over)
            + HISTORY_A_ROUND * rounds,
        calls,
        call_ms: calls * CALL_MS,
        write_units: WRITE_UNITS_ONCE + steps + EVENTS_AN_INVOCATION * invocations + waits,
        read_units: 0,
        runtime_s: kept.as_secs(),
        processor_ms: u64::try_from(plan.busy.as_millis()).unwrap_or(u64::MAX),
    };
    counted + of_heartbeats(beating) + of_checks(polls + waits)
}

/// Usage of writing these items, given by their size in bytes and whether they are in the index by day.
pub fn of_items(items: impl IntoIterator<Item = (usize, bool)>) -> Counters {
    let units = |bytes: usize| bytes.div_ceil(1_024).max(1) as u64;
    let write_units =
        items.into_iter().map(|(bytes, by_day)| units(bytes) * (1 + u64::from(by_day))).sum();
    Counters { write_units, ..Counters::default() }
}

/// Usage of the heartbeats of an agent with this running time.
pub fn of_heartbeats(running: Duration) -> Counters {
    let heartbeats = running.as_secs() / HEARTBEAT_INTERVAL.as_secs();
    Counters {
        write_units: WRITE_UNITS_A_HEARTBEAT * heartbeats,
        read_units: READ_UNITS_A_HEARTBEAT * heartbeats,
        ..Counters::default()
    }
}

/// Journal reads of this many function calls.
pub fn of_checks(calls: u64) -> Counters {
    Counters { read_units: READ_UNITS_A_CHECK * calls, ..Counters::default() }
}

/// Checks of an agent with this running time and no event in between: each wait is longer than the
/// previous one.
fn rounds_of(running: Duration) -> u64 {
    let (mut rounds, mut wait, mut waited) = (1, POLL_FIRST, POLL_FIRST);
    while waited < running {
        wait = (wait * POLL_FACTOR_PERCENT / 100).min(POLL_LONGEST);
        waited += wait;
        rounds += 1;
    }
    rounds
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    /// The sessions that the page shows.
    fn shown() -> Vec<(&'static str, Plan)> {
        let of = |effects, running: Duration, questions, waiting| Plan {
            effects,
            outcome_bytes: 2_048,
            running,
            busy: running / 20,
            questions,
            waiting,
            polling: Polling::Parked,
        };
        vec![
            ("10 steps, 1 minute", of(10, HOUR / 60, 0, Duration::ZERO)),
            ("50 steps, 10 minutes", of(50, HOUR / 6, 0, Duration::ZERO)),
            ("100 steps, 1 hour", of(100, HOUR, 0, Duration::ZERO)),
            ("500 steps, 8 hours", of(500, 8 * HOUR, 0, Duration::ZERO)),
            (
                "1,500 steps, 24 hours, handed over three times",
                of(1_500, 24 * HOUR, 0, Duration::ZERO),
            ),
            ("20 steps, 5 minutes, a person takes 3 days", of(20, HOUR / 12, 1, 72 * HOUR)),
        ]
    }

    fn tables() -> String {
        let mut text = String::from(
            "| session | polls | transitions | history events | calls | writes | reads | runtime |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for (name, plan) in shown() {
            let c = planned(&plan);
            text += &format!(
                "| {name} | {} | {} | {} | {} | {} | {} | {} s |\n",
                c.polls,
                c.transitions,
                c.history_events,
                c.calls,
                c.write_units,
                c.read_units,
                c.runtime_s,
            );
        }
        text += "\n| a thousand of them, in dollars | workflow | functions | journal | runtime | in all | polling each 10 s |\n\
                 |---|---:|---:|---:|---:|---:|---:|\n";
        for (name, plan) in shown() {
            let bill = planned(&plan).bill();
            let fixed = Plan { polling: Polling::Fixed(Duration::from_secs(10)), ..plan };
            let fixed = planned(&fixed);
            let beyond =
                if fixed.history_events > prices::HISTORY_EVENTS_MAX { " †" } else { "" };
            text += &format!(
                "| {name} | {:.2} | {:.2} | {:.2} | {:.2} | **{:.2}** | {:.2}{beyond} |\n",
                bill.workflow * 1e3,
                bill.functions * 1e3,
                bill.journal * 1e3,
                bill.runtime * 1e3,
                bill.total() * 1e3,
                fixed.bill().total() * 1e3,
            );
        }
        text
    }

    #[expect(clippy::disallowed_methods, reason = "the switch that insta has for the same")]
    fn updates() -> bool {
        std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always")
    }

    #[test]
    fn the_page_on_costs_matches_the_prices() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cost.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once("<!-- computed -->\n").unwrap();
        let (kept, after) = rest.split_once("<!-- /computed -->").unwrap();
        if updates() {
            let tables = tables();
            let page = format!("{before}<!-- computed -->\n{tables}<!-- /computed -->{after}");
            std::fs::write(&path, page).unwrap();
        } else {
            assert_eq!(kept, tables(), "`INSTA_UPDATE=always` computes it anew");
        }
        assert!(page.contains(prices::AS_OF), "the page names the day of the prices");
    }

    #[test]
    fn a_bill_is_the_sum_of_usage_times_prices() {
        let counted = Counters {
            transitions: 1_000,
            calls: 1_000_000,
            call_ms: 4_000,
            write_units: 1_000_000,
            read_units: 8_000_000,
            runtime_s: 3_600 * 4,
            processor_ms: 3_600_000,
            ..Counters::default()
        };
        let bill = counted.bill();
        for (part, dollars) in [
            (bill.workflow, 0.025),
            (bill.functions, 0.20 + 0.000_013_333_4),
            (bill.journal, 0.625 + 1.0),
            (bill.runtime, 0.0895 + 0.00945),
        ] {
            assert!((part - dollars).abs() < 1e-9, "{part} is not {dollars}");
        }
    }

    #[test]
    fn a_day_of_ten_second_polls_exceeds_the_history_limit() {
        let (_, long) = shown()[3];
        let fixed = planned(&Plan { polling: Polling::Fixed(Duration::from_secs(10)), ..long });
        assert!(fixed.history_events > prices::HISTORY_EVENTS_MAX);
        assert!(planned(&long).history_events < 1_000);
    }
}
