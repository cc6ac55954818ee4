//! The decision about a session, from its records and the poller's memory ([`Watch`]).
//!
//! This module performs no IO. If the newest step and the events differ, the step is right.

use std::time::Duration;

use journal::chain::End;
use journal::clock::Stamp;
use journal::error_message::ErrorMessage;
use journal::event::EventStatus;
use journal::lease::{Holder, HostEnd, HowHostEnded};
use journal::limits::{DEADLINE_BEFORE_EXPIRY, SKEW_NOTED};
use journal::step::{Ending, Step, StepBody};
use journal::version;
use serde_json::Value;
use workflow::contract::{CheckRequest, Failure, Judgement, Watch, Woken};
use workflow::error_name;
use workflow::limits::{
    HOST_PAUSE_FIRST, HOST_PAUSE_LONGEST, INVOCATIONS_MAX, LOST_WITHOUT_OUTCOME_MAX, PARK_LONGEST,
    POLL_FACTOR_PERCENT, POLL_FIRST, POLL_LONGEST, RESTARTS_WITHOUT_OUTCOME_MAX,
    RESTARTS_WITHOUT_PAUSE, RUNNING_MAX, SILENCE_CONFIRMED_AFTER, SILENT_AFTER, START_GRACE,
};

use crate::capacity;
use crate::observe::{Held, Observed};

/// How much later than planned a check may come, and count as running: the poller was retried, or an
/// invocation came between.
const CHECK_LATE_MAX: Duration = Duration::from_secs(600);

/// Shortest wait of the state machine, in seconds: its heartbeat must be shorter.
const TIMEOUT_S_MIN: u32 = 2;

#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// The session has ended by this step: seal it.
    Ended(Box<Step>),
    /// End the session now.
    End(End),
    /// Wait: the agent runs, or the session waits.
    Wait(Judgement),
    /// The open question has expired: close it and invoke the agent again.
    Expire { question: u32 },
    /// The question was answered: invoke the agent again.
    Resume,
    /// The runtime had no place for the agent: ask again.
    AskAgain,
    /// The agent stopped responding: announce the loss and invoke it again.
    Lost {
        /// The lost epoch, 0 if the agent never claimed.
        epoch: u32,
        why: &'static str,
    },
}

/// The judgement for an ending.
pub const fn judgement_of(ending: Ending) -> Judgement {
    match ending {
        Ending::Completed => Judgement::Completed,
        Ending::Failed => Judgement::Failed,
        Ending::Cancelled => Judgement::Cancelled,
        Ending::TimedOut => Judgement::TimedOut,
        Ending::Rejected => Judgement::Rejected,
    }
}

/// Returns the decision and the new memory.
///
/// All times are those of the state machine's clock, in the request, which runs evenly. A question's
/// expiry is a duration, too: a step of the wall clock takes no time from the person.
pub fn judge(observed: &Observed, request: &CheckRequest) -> (Decision, Watch) {
    let mut watch = clocked(request);
    watch.seq = observed.seq();
    if waits_otherwise(observed, &watch) {
        forget_place(&mut watch);
    }
    let decision = decide(observed, request, &mut watch);
    watch.running = matches!(decision, Decision::Wait(Judgement::Busy));
    (decision, watch)
}

/// Whether the session waits for something else than a place in the agent runtime.
fn waits_otherwise(observed: &Observed, watch: &Watch) -> bool {
    let asks = observed.step.as_ref().is_some_and(|it| matches!(it.body, StepBody::Ask { .. }));
    let is_held = observed.held(watch).is_some_and(|held| held != Held::Capacity);
    asks || is_held || observed.lacks_version()
}

/// The wait for a place is over: a later one begins anew.
fn forget_place(watch: &mut Watch) {
    (watch.capacity_since, watch.capacity_asks) = (None, 0);
}

/// The watch, with the time since the previous check added to the running time. What exceeds the wait by
/// more than [`CHECK_LATE_MAX`] was no running: the state machine was down, or its clock was set.
fn clocked(request: &CheckRequest) -> Watch {
    let mut watch = request.watch.clone();
    if let (true, Some(before)) = (watch.running, watch.checked_at) {
        let longest = Duration::from_secs(u64::from(watch.timeout_s)) + CHECK_LATE_MAX;
        let ran = request.now.since(before).min(longest).as_millis();
        watch.running_ms = watch.running_ms.saturating_add(u64::try_from(ran).unwrap_or(u64::MAX));
    }
    watch.checked_at = Some(request.now);
    watch
}

/// How far the clock of a question's agent is ahead of the state machine's. An agent that is invoked after the clock was set
/// forward, or after the machine slept, stamps by the new time, while the state machine counts on by the one before. Such a
/// question seems to be asked in the future. After a restart of the stack, both clocks show the new time.
fn ahead(step: &Step, observed: &Observed, request: &CheckRequest, watch: &mut Watch) -> Duration {
    let Some(wall) = observed.wall else { return Duration::ZERO };
    if step.stamp.since(request.now) > SKEW_NOTED {
        watch.asked_ahead = step.seq;
    }
    let apart = wall.since(request.now);
    if watch.asked_ahead == step.seq && apart > SKEW_NOTED { apart } else { Duration::ZERO }
}

fn decide(observed: &Observed, request: &CheckRequest, watch: &mut Watch) -> Decision {
    let body = observed.step.as_ref().map(|step| &step.body);
    if let (Some(step), Some(StepBody::End { .. })) = (&observed.step, body) {
        return Decision::Ended(Box::new(step.clone()));
    }
    if let Some(cancel) =
        observed.events.iter().find(|event| event.status == EventStatus::CancelRequested)
    {
        let reason = cancel.detail.as_ref().and_then(|detail| detail["reason"].as_str());
        return Decision::End(End {
            ending: Ending::Cancelled,
            error: Some(ErrorMessage::new(
                "Cancelled",
                "CancelRequested",
                reason.unwrap_or("by request"),
            )),
            category: None,
            result: Value::Null,
        });
    }
    if let Some(end) = deadline(request, watch) {
        return Decision::End(end);
    }
    if observed.lacks_version() {
        return wait_for_version(observed, request, watch);
    }
    if let (Some(step), Some(StepBody::Ask { expires_at, .. })) = (&observed.step, body) {
        let expires_at = expires_at.before(ahead(step, observed, request, watch));
        if request.now >= expires_at {
            return again(watch, observed, || Decision::Expire { question: observed.seq() });
        }
        wait_for(watch, expires_at.since(request.now).min(PARK_LONGEST), PARK_LONGEST);
        return Decision::Wait(Judgement::Waiting);
    }
    if let Some(held) = observed.held(watch) {
        return wait_while_held(held, observed, request, watch);
    }
    match body {
        Some(StepBody::Answer { .. }) if !is_held(observed) => {
            again(watch, observed, || Decision::Resume)
        }
        _ if observed.step.as_ref().is_some_and(version::is_move) => {
            again(watch, observed, || Decision::Resume)
        }
        _ => liveness(observed, request, watch),
    }
}

/// The agent lacks the session's graph version: only a person knows when to try again. The limit of invocations ends
/// the attempts, not the session.
fn wait_for_version(observed: &Observed, request: &CheckRequest, watch: &mut Watch) -> Decision {
    if request.woken == Woken::Callback && invocations(watch) < INVOCATIONS_MAX {
        return again(watch, observed, || Decision::Resume);
    }
    wait_for(watch, POLL_LONGEST, POLL_LONGEST);
    Decision::Wait(Judgement::Waiting)
}

/// Waits while a halt or a queue holds the session back. That is no loss, and the next invocation does not count.
fn wait_while_held(
    held: Held,
    observed: &Observed,
    request: &CheckRequest,
    watch: &mut Watch,
) -> Decision {
    // A queue exists only in the memory of the stack: whatever else wakes the workflow, it asks again.
    let is_due = match held {
        Held::Nothing => true,
        Held::Queue => request.woken != Woken::Not,
        Held::Halt => false,
        Held::Capacity => return capacity::wait(observed, request, watch),
    };
    if is_due {
        return again_uncounted(watch, observed, || Decision::Resume);
    }
    wait_for(watch, POLL_LONGEST, POLL_LONGEST);
    Decision::Wait(Judgement::Waiting)
}

/// Whether a runner holds the lease under the newest epoch.
fn is_held(observed: &Observed) -> bool {
    let lease = observed.lease.as_ref();
    lease.is_some_and(|lease| lease.runner().is_some() && lease.epoch >= observed.epoch())
}

fn deadline(request: &CheckRequest, watch: &Watch) -> Option<End> {
    let records_end = Stamp::from_millis(request.expires_at.saturating_mul(1_000));
    let ran_too_long = Duration::from_millis(watch.running_ms) > RUNNING_MAX;
    let expires = request.now > records_end.before(DEADLINE_BEFORE_EXPIRY);
    let (code, why) = match (ran_too_long, expires) {
        (false, false) => return None,
        (true, _) => {
            ("RunningTime", format!("the session ran for more than {} s", RUNNING_MAX.as_secs()))
        }
        (_, true) => ("Retention", "the session's records are about to expire".to_owned()),
    };
    Some(End {
        ending: Ending::TimedOut,
        error: Some(ErrorMessage::new("SessionTimedOut", code, &why)),
        category: Some("timeout".to_owned()),
        result: Value::Null,
    })
}

/// The invocations that count.
fn invocations(watch: &Watch) -> u32 {
    watch.invocation.saturating_sub(watch.after_restart)
}

/// Invokes the agent again. That does not count towards the limit.
pub(crate) fn again_uncounted(
    watch: &mut Watch,
    observed: &Observed,
    decision: impl FnOnce() -> Decision,
) -> Decision {
    watch.after_restart = watch.after_restart.saturating_add(1);
    again(watch, observed, decision)
}

/// Invokes the agent again, up to the limit.
fn again(watch: &mut Watch, observed: &Observed, decision: impl FnOnce() -> Decision) -> Decision {
    if invocations(watch) >= INVOCATIONS_MAX {
        return Decision::End(failed(
            "Invocations",
            &format!("the agent was invoked {INVOCATIONS_MAX} times"),
        ));
    }
    watch.invocation += 1;
    watch.epoch = observed.epoch();
    watch.pulse = String::new();
    watch.pulse_at = None;
    watch.invoked_at = None;
    watch.silent = false;
    watch.poll_ms = 0;
    decision()
}

fn liveness(observed: &Observed, request: &CheckRequest, watch: &mut Watch) -> Decision {
    let begun = observed.lease.as_ref().filter(|lease| lease.epoch > watch.epoch);
    if let (None, Some(end)) = (begun, invocation_failed(observed, request)) {
        return Decision::End(end);
    }
    if let Some(end) = host_end(observed, watch) {
        return after_host_end(observed, request, watch, end);
    }
    let Some(lease) = begun else {
        let invoked_at = watch.invoked_at.as_deref().and_then(|text| Stamp::parse(text).ok());
        let waited = request.now.since(invoked_at.unwrap_or(request.now));
        if waited >= START_GRACE {
            return lost(observed, watch, "no heartbeat appeared after the invocation");
        }
        poll(watch, Some(START_GRACE.saturating_sub(waited)));
        return Decision::Wait(Judgement::Busy);
    };
    forget_place(watch);
    if lease.runner().is_none() {
        return lost(observed, watch, "the agent was stopped");
    }
    let pulse = lease.pulse();
    if pulse != watch.pulse {
        watch.pulse = pulse;
        watch.pulse_at = Some(request.now);
        watch.silent = false;
    }
    let heard_for_a_minute =
        Duration::from_secs(u64::from(request.watch.heartbeat_s)) >= SILENT_AFTER;
    if request.woken == Woken::Silence && heard_for_a_minute {
        watch.silent = true;
    }
    let silence = request.now.since(watch.pulse_at.unwrap_or(request.now));
    if silence >= SILENT_AFTER || (watch.silent && silence >= SILENCE_CONFIRMED_AFTER) {
        return lost(observed, watch, "its heartbeat stopped");
    }
    let until_lost = match (watch.silent, silence.is_zero()) {
        (true, _) => Some(SILENCE_CONFIRMED_AFTER.saturating_sub(silence)),
        // No heartbeat since the previous check: the next one is not later than the loss.
        (false, false) => Some(SILENT_AFTER.saturating_sub(silence)),
        (false, true) => None,
    };
    poll(watch, until_lost);
    Decision::Wait(Judgement::Busy)
}

/// The end of the agent's host, unless the agent was invoked again because of it.
fn host_end(observed: &Observed, watch: &Watch) -> Option<HostEnd> {
    match observed.lease.as_ref()?.holder {
        Holder::Ended(end) if watch.host_ended_at != Some(end.at) => Some(end),
        Holder::Ended(_) | Holder::None | Holder::Runner(_) | Holder::Held(_) => None,
    }
}

/// Invokes the agent again, at once the first time. If the host ends repeatedly without a new outcome, pauses.
fn after_host_end(
    observed: &Observed,
    request: &CheckRequest,
    watch: &mut Watch,
    end: HostEnd,
) -> Decision {
    reset_if_learned(observed, watch);
    let repeated = match end.how {
        HowHostEnded::Exited => watch.lost,
        HowHostEnded::Restarted => watch.restarted.saturating_sub(RESTARTS_WITHOUT_PAUSE),
        HowHostEnded::HandedOver => 0,
    };
    let left = pause_after(repeated).saturating_sub(request.now.since(end.at));
    // An end in the future is of another clock, by which no pause can be measured.
    if !left.is_zero() && end.at <= request.now {
        poll(watch, Some(left));
        return Decision::Wait(Judgement::Busy);
    }
    watch.host_ended_at = Some(end.at);
    match end.how {
        HowHostEnded::Exited => lost(observed, watch, "its process exited"),
        HowHostEnded::Restarted => restarted(observed, watch),
        // Nothing was lost, and a host lives for hours.
        HowHostEnded::HandedOver => again(watch, observed, || Decision::Resume),
    }
}

fn pause_after(repeated: u32) -> Duration {
    match repeated.checked_sub(1) {
        None => Duration::ZERO,
        Some(doublings) => {
            let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
            HOST_PAUSE_FIRST.saturating_mul(factor).min(HOST_PAUSE_LONGEST)
        }
    }
}

/// A restart of the host says nothing about the agent, unless it happens again and again without an outcome.
fn restarted(observed: &Observed, watch: &mut Watch) -> Decision {
    watch.restarted += 1;
    if watch.restarted > RESTARTS_WITHOUT_OUTCOME_MAX {
        let restarts = format!(
            "its host was restarted {} times without a new outcome; the agent may have ended the host each time",
            watch.restarted
        );
        return Decision::End(failed("Restarts", &restarts));
    }
    watch.after_restart += 1;
    again(watch, observed, || Decision::Lost {
        epoch: observed.epoch(),
        why: "its host was restarted",
    })
}

/// Forgets earlier losses and restarts if the session has a new outcome.
fn reset_if_learned(observed: &Observed, watch: &mut Watch) {
    let learned = observed.step.as_ref().is_some_and(|step| {
        let brought = matches!(
            step.body,
            StepBody::Outcome { .. } | StepBody::Answer { .. } | StepBody::Note { .. }
        );
        brought && step.seq > watch.lost_at_seq
    });
    if learned {
        (watch.lost, watch.restarted, watch.lost_at_seq) = (0, 0, observed.seq());
    }
}

fn lost(observed: &Observed, watch: &mut Watch, why: &'static str) -> Decision {
    reset_if_learned(observed, watch);
    watch.lost += 1;
    if watch.lost > LOST_WITHOUT_OUTCOME_MAX {
        let silences = format!(
            "the agent stopped responding {} times without a new outcome: {why}",
            watch.lost
        );
        return Decision::End(failed("Silent", &silences));
    }
    again(watch, observed, || Decision::Lost { epoch: observed.epoch(), why })
}

/// The category of a session whose agent stopped responding. It ran, so it is no error of the
/// infrastructure that kept it from running.
const CATEGORY_LOST: &str = "agent_lost";

fn failed(code: &str, why: &str) -> End {
    End {
        ending: Ending::Failed,
        error: Some(ErrorMessage::new("AgentLost", code, why)),
        category: Some(CATEGORY_LOST.to_owned()),
        result: Value::Null,
    }
}

/// The failure of an invocation that certainly did not start. If it may have started, the lease
/// shows.
fn invocation_failed(observed: &Observed, request: &CheckRequest) -> Option<End> {
    let failure = request.failure.as_ref()?;
    let certain = [
        error_name::INVOCATION_THROTTLED,
        error_name::INVOCATION_FAILED,
        error_name::INVALID_TRIGGER,
        error_name::INVALID_REQUEST,
    ];
    if !certain.contains(&failure.error.as_str()) {
        return None;
    }
    let told = observed.events.iter().find(|event| {
        matches!(
            event.status,
            EventStatus::AgentInvocationFailed | EventStatus::AgentEntrypointFailed
        )
    });
    let error = told.and_then(|event| event.error.clone()).unwrap_or_else(|| message_of(failure));
    // A bug in the agent has the same category wherever it shows.
    let category = if error.as_str().starts_with("GraphError:") { "graph" } else { "unknown" };
    Some(End {
        ending: Ending::Failed,
        error: Some(error),
        category: Some(category.to_owned()),
        result: Value::Null,
    })
}

/// Parses a Lambda function's error, which is JSON in the cause.
fn message_of(failure: &Failure) -> ErrorMessage {
    let cause: Option<Value> = serde_json::from_str(&failure.cause).ok();
    let said = cause.as_ref().and_then(|cause| cause["errorMessage"].as_str());
    ErrorMessage::new("InvocationError", &failure.error, said.unwrap_or(&failure.cause))
}

/// Sets the next wait: a quarter longer than the previous one, but at most the given time.
fn poll(watch: &mut Watch, at_most: Option<Duration>) {
    let longest = u64::try_from(POLL_LONGEST.as_millis()).unwrap_or(u64::MAX);
    let first = u64::try_from(POLL_FIRST.as_millis()).unwrap_or(u64::MAX);
    let grown = watch.poll_ms.saturating_mul(u64::from(POLL_FACTOR_PERCENT)) / 100;
    watch.poll_ms = grown.clamp(first, longest);
    let until_deadline = RUNNING_MAX.saturating_sub(Duration::from_millis(watch.running_ms));
    let next = Duration::from_millis(watch.poll_ms).min(until_deadline);
    wait_for(watch, at_most.map_or(next, |limit| next.min(limit)), SILENT_AFTER);
}

/// The state machine takes whole seconds, and a heartbeat shorter than the timeout.
pub(crate) fn wait_for(watch: &mut Watch, wait: Duration, silence: Duration) {
    let seconds = |duration: Duration| {
        u32::try_from(duration.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX)
    };
    watch.timeout_s = seconds(wait).max(TIMEOUT_S_MIN);
    watch.heartbeat_s = seconds(silence).min(watch.timeout_s - 1);
}
