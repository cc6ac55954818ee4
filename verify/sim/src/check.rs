//! The invariants of a session that has ended, whatever faults occurred.
//!
//! The table checks what is visible at a single write: no record is overwritten, steps are dense, no step follows the
//! end, and a runner that knows that it is fenced does not write.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use asl::execution::Outcome;
use journal::event::{About, Event, EventStatus};
use journal::item::Item;
use journal::key;
use journal::read::{check_chain, in_order};
use journal::seal::verdict as verdict_of;
use journal::status::status;
use journal::step::{Step, StepBody};
use journal::verify::{Anchors, Damage, State, verify};
use serde_json::Value;
use workflow::limits::{INVOCATIONS_MAX, RETRIES_MAX};

use crate::session::Report;
use crate::world::ORIGIN;

/// Most attempts of an effect; every shipped agent makes fewer.
const OUTCOMES_MAX: usize = 3;

/// Adds violations to a report, and the verdict.
pub fn check(report: &mut Report) {
    let partition = key::session(&report.session);
    let records = |prefix: &str| -> Vec<Item> {
        let of_session = report.items.iter().filter(|item| item.pk == partition);
        of_session.filter(|item| item.sk.starts_with(prefix)).cloned().collect()
    };
    let (steps, events) = (records(key::STEP_PREFIX), records(key::EVENT_PREFIX));
    let mut broken = Vec::new();
    let steps: Vec<Step> = match steps.iter().map(Step::from_item).collect() {
        Ok(steps) => steps,
        Err(error) => return report.broken.push(format!("a step cannot be read: {error}")),
    };
    let events = match in_order(events.iter()) {
        Ok(events) => events,
        Err(error) => return report.broken.push(format!("an event cannot be read: {error}")),
    };
    chain(&steps, &mut broken);
    effects(&steps, &mut broken);
    order(&events, &mut broken);
    let verdict = verdict(&steps, &events, &mut broken);
    if let Some(verdict) = &verdict {
        sealed(report, verdict, &mut broken);
        // A stopped execution has no result to compare with the verdict.
        if report.faults.abandon == 0 {
            executions(report, verdict, &mut broken);
        }
    }
    report.verdict = verdict.map(|verdict| verdict.status);
    report.broken.extend(broken);
}

/// Steps form a chain; only the runner of the newest claim adds outcomes; there is one end.
pub fn chain(steps: &[Step], broken: &mut Vec<String>) {
    if let Err(damage) = check_chain(steps) {
        broken.push(damage.to_string());
    }
    let (mut epoch, mut runner) = (0, None);
    for step in steps {
        match &step.body {
            StepBody::Claim { supersedes, .. } => {
                if *supersedes != epoch || step.epoch != epoch + 1 {
                    broken.push(format!("step {} claims {} over {epoch}", step.seq, step.epoch));
                }
                (epoch, runner) = (step.epoch, Some(&step.runner));
            }
            _ if step.epoch != epoch => {
                broken.push(format!("step {} is of epoch {}, not {epoch}", step.seq, step.epoch));
            }
            _ if step.runner.as_str().starts_with("agent") && runner != Some(&step.runner) => {
                broken.push(format!("step {} is of a runner that was superseded", step.seq));
            }
            _ => {}
        }
    }
    let ends = steps.iter().filter(|step| matches!(step.body, StepBody::End { .. })).count();
    if ends != 1 {
        broken.push(format!("{ends} end steps"));
    }
}

/// No effect has two outcomes, and attempts are limited. After an effect whose outcome is unknown, an agent may look
/// again at what it saw before.
pub fn effects(steps: &[Step], broken: &mut Vec<String>) {
    // Each outcome with the number of unknown ones before it.
    let mut outcomes: BTreeMap<String, Vec<(usize, Value)>> = BTreeMap::new();
    let (mut unknown, mut is_open) = (0, false);
    for step in steps {
        match &step.body {
            StepBody::Intent { .. } => is_open = true,
            // The runner died between a call's intent and its outcome.
            StepBody::Claim { .. } => unknown += usize::from(std::mem::take(&mut is_open)),
            StepBody::Outcome { effect, payload, .. } => {
                is_open = false;
                let name = format!("{} {} {}", effect.node, effect.digest, effect.call);
                let outcome = payload.decode(&[]).unwrap_or_default();
                outcomes.entry(name).or_default().push((unknown, outcome));
            }
            _ => {}
        }
    }
    for (effect, outcomes) in outcomes {
        let mut learned: Vec<usize> = Vec::new();
        learned
            .extend(outcomes.iter().filter(|(_, it)| it.get("failure").is_none()).map(|it| it.0));
        learned.sort_unstable();
        let looks = learned.chunk_by(|one, other| one == other).map(<[usize]>::len);
        let learned = looks.max().unwrap_or(0);
        if learned > 1 || outcomes.len() > OUTCOMES_MAX {
            broken.push(format!("{effect} has {} outcomes, {learned} learned", outcomes.len()));
        }
    }
}

/// A cause is listed before its effects.
pub fn order(events: &[Event], broken: &mut Vec<String>) {
    use EventStatus as E;
    let place = |status: E, about: Option<About>| {
        events.iter().position(|e| e.status == status && about.is_none_or(|a| e.about == a))
    };
    let mut before = |cause: (E, Option<About>), effect: (E, Option<About>)| {
        if let (Some(earlier), Some(later)) = (place(cause.0, cause.1), place(effect.0, effect.1))
            && earlier > later
        {
            broken.push(format!("{effect:?} is listed before {cause:?}"));
        }
    };
    for event in events {
        let about = Some(event.about);
        if event.status != E::SessionInitiated {
            before((E::SessionInitiated, None), (event.status, about));
        }
        if event.status == E::AgentEntrypointStarted {
            before((E::AgentInvocationStarted, about), (event.status, about));
        }
        // An invocation that waits for its turn began nothing; another delivery of it may begin the agent later.
        let outcome = event.detail.as_ref().and_then(|detail| detail["outcome"].as_str());
        let waits = matches!(outcome, Some("queued" | "halted"));
        if event.status == E::AgentInvocationSucceeded && !waits {
            before((E::AgentEntrypointStarted, about), (event.status, about));
        }
    }
    before((E::AgentEntrypointStarted, None), (E::AgentBackgroundTaskStarted, None));
    before((E::AgentBackgroundTaskStarted, None), (E::AgentBackgroundTaskCompleted, None));
    let attempts = events.iter().filter_map(|event| match event.about {
        About::Attempt(attempt) => Some(attempt),
        _ => None,
    });
    if attempts.max().unwrap_or(0) >= (INVOCATIONS_MAX + 1) * RETRIES_MAX {
        broken.push("the agent was invoked too often".to_owned());
    }
}

/// There is one verdict; it matches the end step and the fold of the events.
pub fn verdict(steps: &[Step], events: &[Event], broken: &mut Vec<String>) -> Option<Event> {
    let verdicts: Vec<_> = events.iter().filter(|event| event.status.is_verdict()).collect();
    let [verdict] = verdicts.as_slice() else {
        broken.push(format!("{} verdicts", verdicts.len()));
        return None;
    };
    let ending = steps.last().and_then(|step| match &step.body {
        StepBody::End { ending, .. } => Some(*ending),
        _ => None,
    });
    if ending.map(verdict_of) != Some(verdict.status) {
        broken.push(format!("the verdict is {}, the end is {ending:?}", verdict.status));
    }
    let (forwards, backwards) = (status(events), status(events.iter().rev()));
    let named = verdict.status.as_str().trim_start_matches("SESSION_");
    if forwards != backwards || forwards.as_str() != named {
        broken.push(format!("the events add up to {forwards} and {backwards}, not {named}"));
    }
    Some((*verdict).clone())
}

/// The journal verifies, whatever was written concurrently with the verdict.
fn sealed(report: &mut Report, verdict: &Event, broken: &mut Vec<String>) {
    let partition = key::session(&report.session);
    let blobs = key::blob(&report.session, "");
    let of_session = |item: &&Item| item.pk == partition || item.pk.starts_with(&blobs);
    let items: Vec<Item> = report.items.iter().filter(of_session).cloned().collect();
    let anchors = Anchors::of(Some(verdict.hash.clone()));
    let now = ORIGIN.after(report.took + Duration::from_secs(600));
    let verified = verify(&report.session, &items, &anchors, now);
    let late = after_the_end(report);
    let honest =
        |damage: &&Damage| matches!(damage, Damage::Added { place, .. } if late.contains(place));
    let damage = verified.damage.iter().filter(|damage| !honest(damage));
    broken.extend(damage.map(|damage| format!("verifying: {damage}")));
    if !matches!(verified.state, State::Sealed { .. }) {
        broken.push(format!("verifying: {}", verified.state));
    }
}

/// Events written after the end step that announce no step.
///
/// If such an event has a timestamp before the verdict, verification reports it as added: the journal cannot
/// distinguish a slow honest writer from a forger. The simulator has seen the writes, so it accepts exactly these.
fn after_the_end(report: &Report) -> BTreeSet<String> {
    let partition = key::session(&report.session);
    let writes = report.log.iter().filter(|write| write.landed && write.item.pk == partition);
    let after = writes.skip_while(|write| write.item.text_opt("Kind") != Some("end"));
    let events = after.filter_map(|write| Event::from_item(&write.item).ok());
    events.filter(|event| !event.status.announces_a_step()).map(|event| event.sk).collect()
}

/// Every execution has ended with the journal's result, unless it was a duplicate.
fn executions(report: &Report, verdict: &Event, broken: &mut Vec<String>) {
    let succeeds =
        !matches!(verdict.status, EventStatus::SessionFailed | EventStatus::SessionTimedOut);
    let mut own = 0;
    for (number, ended) in report.executions.iter().enumerate() {
        let agrees = match &ended.outcome {
            Some(Outcome::Succeeded(output)) if output.contains("duplicate_of") => continue,
            Some(Outcome::Succeeded(output)) => succeeds && output.contains(verdict.hash.as_str()),
            Some(Outcome::Failed(failure)) => {
                let cause = failure.cause.as_deref().unwrap_or_default();
                !succeeds && cause.contains(verdict.hash.as_str())
            }
            _ => false,
        };
        own += 1;
        if !agrees {
            broken.push(format!(
                "execution {number} ended as {:?}, the verdict is {} {}",
                ended.outcome, verdict.status, verdict.hash
            ));
        }
    }
    if own != 1 {
        broken.push(format!("{own} executions that are no duplicates"));
    }
}
