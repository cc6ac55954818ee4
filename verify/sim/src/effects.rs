//! The invariants of a session's tool calls.

use std::collections::BTreeMap;

use graph::digest::{self, canonical};
use graph::effect::ToolCall;
use graph::next::{Intent, Next, Work};
use graph::question::{Answer, Question};
use journal::key;
use journal::step::{Step, StepBody};
use serde_json::{Value, json};

use crate::scenario::Scenario;
use crate::session::Report;
use crate::table::{Call, Write, read_step};

/// The tool of `checkup` that writes a record of its own.
const PROBE: &str = graph::built_in::JOURNAL_PROBE;

/// Adds violations to a report. When a call was performed, the journal requested it, with an intent
/// if it is mutating, and had no outcome of it. No such call was performed twice. A person approved
/// each critical one with exactly these arguments.
pub(crate) fn check(scenario: &Scenario, report: &mut Report) {
    let Some(agent) = scenario.agent() else { return };
    let mut broken = Vec::new();
    let mut once: BTreeMap<String, u32> = BTreeMap::new();
    for call in performed(report) {
        let name = name(&call);
        let steps = match steps_of(report, call.after) {
            Ok(steps) => steps,
            Err(error) => return report.broken.push(format!("a step cannot be read: {error}")),
        };
        let asked = match agent.resume(&steps).map(|run| run.next()) {
            Ok(Next::Perform(requests)) => requests,
            other => {
                broken.push(format!("{name} was performed although the run was at {other:?}"));
                continue;
            }
        };
        let request = asked.iter().find_map(|request| match &request.work {
            Work::Tool { call: asked, intent, .. } if is(asked, &call) => Some(*intent),
            _ => None,
        });
        match request {
            None => {
                broken.push(format!("{name} was performed although it was no longer requested"))
            }
            Some(Intent::Needed) => broken.push(format!("{name} was performed without an intent")),
            Some(Intent::NotNeeded) => {}
            Some(Intent::Written) => *once.entry(name.clone()).or_default() += 1,
        }
        if as_asked(&call).is_in(agent.critical()) && !was_approved(&steps, &call) {
            broken.push(format!("{name} was performed without approval"));
        }
    }
    let twice = once.iter().filter(|(_, count)| **count > 1);
    broken.extend(twice.map(|(name, count)| format!("{name} was performed {count} times")));
    report.broken.extend(broken);
}

/// Number of occurrences of each call.
pub(crate) fn counts(report: &Report) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for call in performed(report) {
        *counts.entry(name(&call)).or_default() += 1;
    }
    counts
}

/// Calls of servers' tools, and of the built-in tool that writes a record.
fn performed(report: &Report) -> Vec<Call> {
    let mut calls = report.calls.clone();
    let mut keys = Vec::new();
    for (after, write) in report.log.iter().enumerate() {
        let key = (&write.item.pk, &write.item.sk);
        if write.landed && write.item.pk.starts_with("PROBE#") && !keys.contains(&key) {
            keys.push(key);
            calls.push(probe(write, after));
        }
    }
    calls
}

fn probe(write: &Write, after: usize) -> Call {
    Call {
        at: write.at,
        process: write.process.clone(),
        after,
        server: String::new(),
        tool: PROBE.to_owned(),
        arguments: json!({}),
    }
}

fn is(asked: &ToolCall, call: &Call) -> bool {
    asked.server.as_deref().unwrap_or_default() == call.server
        && asked.tool == call.tool
        && asked.arguments == call.arguments
}

fn as_asked(call: &Call) -> ToolCall {
    ToolCall::new(&call.server, &call.tool, call.arguments.clone())
}

/// Whether a person approved exactly this call, or gave these arguments.
fn was_approved(steps: &[Step<Value>], call: &Call) -> bool {
    steps.windows(2).any(|pair| {
        let (StepBody::Ask { payload, .. }, StepBody::Answer { payload: answer, .. }) =
            (&pair[0].body, &pair[1].body)
        else {
            return false;
        };
        let question = serde_json::from_value::<Question>(payload["question"].clone());
        let answer = serde_json::from_value::<Answer>(answer.clone());
        let (Ok(question), Ok(answer)) = (question, answer) else { return false };
        question.allowed(&answer) == Some(digest::call(&as_asked(call)))
    })
}

fn name(call: &Call) -> String {
    format!("{}.{} {}", call.server, call.tool, canonical(&call.arguments))
}

/// The steps written when the log had this many entries.
fn steps_of(report: &Report, entries: usize) -> Result<Vec<Step<Value>>, String> {
    let partition = key::session(&report.session);
    let log = report.log.iter().take(entries);
    let steps = log.filter(|write| {
        write.landed && write.item.pk == partition && write.item.sk.starts_with(key::STEP_PREFIX)
    });
    steps.map(|write| read_step(&write.item)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash_points::{SEED, simulate};
    use crate::faults::Faults;
    use crate::payment_agent;
    use crate::session::Staged;
    use crate::world::Setup;

    /// The violations of the payment agent's session with one additional call, after the call
    /// `like` or at the end.
    fn with_one_more(like: &str, at_end: bool) -> Vec<String> {
        let scenario = payment_agent::scenario();
        let mut report = simulate(Staged::new(Setup::new(SEED, Faults::NONE, scenario.clone())));
        assert_eq!(report.broken, Vec::<String>::new());
        let mut more = report.calls.iter().find(|call| call.tool == like).unwrap().clone();
        more.after = if at_end { report.log.len() } else { more.after };
        report.calls.push(more);
        check(&scenario, &mut report);
        report.broken
    }

    #[test]
    fn a_repeated_call_is_detected() {
        assert_eq!(
            with_one_more("pay", false),
            [r#"payments.pay {"amount":40,"to":"theirs"} was performed 2 times"#]
        );
        assert_eq!(with_one_more("balance", false), Vec::<String>::new());
        let [late] = &with_one_more("balance", true)[..] else { panic!("one is found") };
        assert!(late.contains("was performed although the run was at Ok(Closed)"), "{late}");
    }
}
