//! The poller's decisions, case by case.

use std::time::Duration;

use journal::clock::{Clock, Hlc, Stamp};
use journal::error_message::ErrorMessage;
use journal::event::{About, Draft, Event, EventStatus, Writer};
use journal::id::{Runner, SessionId};
use journal::item::Hash;
use journal::lease::{Hold, Holder, HostEnd, HowHostEnded, Lease, WhyHeld};
use journal::payload::Payload;
use journal::step::{EffectKind, EffectRef, Ending, Step, StepBody, Usage};
use poller::judge::{Decision, judge};
use poller::observe::Observed;
use serde_json::Value;
use workflow::contract::{CheckRequest, Failure, Judgement, Mode, Watch, Woken};
use workflow::limits::{INVOCATIONS_MAX, POLL_LONGEST, RESTARTS_WITHOUT_OUTCOME_MAX, RUNNING_MAX};

fn session() -> SessionId {
    "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap()
}

fn at(seconds: u64) -> Stamp {
    Stamp::parse("2026-11-21T10:00:00Z").unwrap().after(Duration::from_secs(seconds))
}

fn request(now: u64, watch: Watch) -> CheckRequest {
    CheckRequest {
        mode: Mode::Check,
        traceparent: None,
        session_id: session(),
        execution_arn: "arn".to_owned(),
        expires_at: at(90 * 86_400).seconds(),
        seen: at(0),
        now: at(now),
        watch,
        woken: Woken::Not,
        callback: Value::Null,
        retry: 0,
        token: None,
        failure: None,
    }
}

fn invoked() -> Watch {
    Watch { invocation: 1, invoked_at: Some(at(0).to_string()), ..Watch::default() }
}

fn step(seq: u32, epoch: u32, body: StepBody<Payload>) -> Option<Step> {
    Some(Step {
        session: session(),
        seq,
        epoch,
        runner: Runner::named("agent:1"),
        stamp: at(1),
        expires_at: 0,
        prev_hash: Hash::genesis(),
        hash: Hash::genesis(),
        body,
    })
}

fn json() -> Payload {
    Payload::Text("null".to_owned())
}

fn claim() -> StepBody<Payload> {
    StepBody::Claim {
        supersedes: 0,
        agent: "a".to_owned(),
        graph_version: "1".to_owned(),
        input: None,
    }
}

fn effect(kind: EffectKind) -> EffectRef {
    EffectRef { node: "n".to_owned(), kind, digest: Hash::genesis(), call: 0 }
}

fn outcome() -> StepBody<Payload> {
    let effect = effect(EffectKind::Tools);
    let usage = Usage::default();
    StepBody::Outcome { effect, started_at: at(1), usage, request: None, payload: json() }
}

fn ask(expires_at: Stamp) -> StepBody<Payload> {
    StepBody::Ask { effect: effect(EffectKind::Ask), expires_at, payload: json() }
}

fn lease(epoch: u32, heartbeat: u32) -> Option<Lease> {
    let holder = Holder::Runner(Runner::named("agent:1"));
    Some(Lease { epoch, holder, heartbeat, heartbeat_at: at(0) })
}

fn event(draft: Draft) -> Event {
    let hlc = Hlc::new(Clock::fixed(at(2)), at(0));
    Event::from_item(&draft.to_item(&session(), Writer::Invoker, hlc.tick(), None, 0)).unwrap()
}

fn ended(decision: &Decision) -> String {
    match decision {
        Decision::End(end) => end.error.clone().unwrap().to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_end_step_takes_precedence_over_every_event() {
    let end = StepBody::End {
        ending: Ending::Completed,
        error: None,
        category: None,
        answered_by: None,
        payload: json(),
    };
    let cancel = event(Draft::new(EventStatus::CancelRequested, About::Session));
    let observed = Observed {
        step: step(9, 1, end),
        events: vec![cancel],
        lease: lease(1, 7),
        ..Observed::default()
    };
    let (decision, _) = judge(&observed, &request(500_000, invoked()));
    assert!(matches!(decision, Decision::Ended(step) if step.seq == 9));
}

#[test]
fn a_request_to_cancel_ends_a_session_that_has_not_ended() {
    let cancel = Draft::new(EventStatus::CancelRequested, About::Session);
    let cancel = event(cancel.with_detail(serde_json::json!({ "reason": "wrong account" })));
    let observed = Observed {
        step: step(2, 1, outcome()),
        events: vec![cancel],
        lease: lease(1, 7),
        ..Observed::default()
    };
    let (decision, _) = judge(&observed, &request(10, invoked()));
    assert_eq!(ended(&decision), "Cancelled: CancelRequested - wrong account");
}

#[test]
fn waits_grow_by_a_quarter_up_to_twenty_minutes() {
    let observed = |heartbeat| Observed {
        step: step(1, 1, claim()),
        lease: lease(1, heartbeat),
        ..Observed::default()
    };
    let (mut watch, mut now, mut waits) = (invoked(), 0, Vec::new());
    for heartbeat in 0..46 {
        let (decision, next) = judge(&observed(heartbeat), &request(now, watch));
        assert_eq!(decision, Decision::Wait(Judgement::Busy));
        assert!(next.heartbeat_s < next.timeout_s);
        waits.push(next.timeout_s);
        now += u64::from(next.timeout_s);
        watch = Watch { running_ms: 0, ..next };
    }
    assert_eq!(waits[..5], [5, 7, 8, 10, 13]);
    assert_eq!(u64::from(*waits.last().unwrap()), POLL_LONGEST.as_secs());
    // Eight hours stay far below the limit of history events.
    assert!(waits.len() < 60 && now > 8 * 3_600, "{now}");
}

#[test]
fn an_agent_without_a_heartbeat_is_lost_after_its_grace() {
    let (decision, watch) = judge(&Observed::default(), &request(80, invoked()));
    assert_eq!(decision, Decision::Wait(Judgement::Busy));
    assert!(watch.timeout_s <= 10, "the next check is due when the grace ends");
    let (decision, watch) = judge(&Observed::default(), &request(90, watch));
    assert!(matches!(decision, Decision::Lost { epoch: 0, .. }));
    assert_eq!((watch.invocation, watch.epoch), (2, 0));
}

#[test]
fn a_heartbeat_older_than_a_minute_is_a_loss() {
    let observed =
        Observed { step: step(3, 1, outcome()), lease: lease(1, 7), ..Observed::default() };
    let (decision, watch) = judge(&observed, &request(100, invoked()));
    assert_eq!(decision, Decision::Wait(Judgement::Busy));
    let (decision, _) = judge(&observed, &request(159, watch.clone()));
    assert_eq!(decision, Decision::Wait(Judgement::Busy));
    let (decision, watch) = judge(&observed, &request(160, watch));
    assert!(matches!(decision, Decision::Lost { epoch: 1, .. }));
    assert_eq!((watch.invocation, watch.epoch), (2, 1));
}

#[test]
fn a_missed_heartbeat_is_confirmed_by_the_lease() {
    let observed = |heartbeat| Observed {
        step: step(3, 1, outcome()),
        lease: lease(1, heartbeat),
        ..Observed::default()
    };
    let parked =
        Watch { heartbeat_s: 60, poll_ms: 100_000, pulse: "older".to_owned(), ..invoked() };
    let mut silent = request(1_000, parked);
    silent.woken = Woken::Silence;
    let (decision, watch) = judge(&observed(7), &silent);
    assert_eq!((decision, watch.timeout_s), (Decision::Wait(Judgement::Busy), 15));
    let (revived, _) = judge(&observed(8), &request(1_015, watch.clone()));
    assert_eq!(revived, Decision::Wait(Judgement::Busy));
    let (confirmed, _) = judge(&observed(7), &request(1_015, watch));
    assert!(matches!(confirmed, Decision::Lost { .. }));
}

#[test]
fn losses_without_a_new_outcome_are_bounded() {
    let silent = |body, seq| Observed {
        step: step(seq, 1, body),
        lease: lease(1, 7),
        ..Observed::default()
    };
    let lose = |observed: &Observed, watch: Watch| {
        let still =
            Watch { pulse: lease(1, 7).unwrap().pulse(), pulse_at: Some(at(0)), epoch: 0, ..watch };
        judge(observed, &request(60, still))
    };
    let mut watch = invoked();
    for _ in 0..3 {
        let (decision, next) = lose(&silent(claim(), 5), watch);
        assert!(matches!(decision, Decision::Lost { .. }));
        watch = next;
    }
    let (decision, _) = lose(&silent(claim(), 5), watch.clone());
    assert!(
        ended(&decision).starts_with("AgentLost: Silent - the agent stopped responding 4 times")
    );
    let Decision::End(end) = &decision else { panic!("{decision:?}") };
    assert_eq!(end.category.as_deref(), Some("agent_lost"));
    let (decision, next) = lose(&silent(outcome(), 6), watch.clone());
    assert!(matches!(decision, Decision::Lost { .. }));
    assert_eq!(next.lost, 1);
    let (decision, _) = lose(&silent(outcome(), 6), Watch { invocation: INVOCATIONS_MAX, ..watch });
    assert!(ended(&decision).starts_with("AgentLost: Invocations"));
}

#[test]
fn an_agent_that_released_its_lease_is_invoked_at_once() {
    let released = Some(Lease { heartbeat: 1, ..Lease::unclaimed(1, at(0)) });
    let observed = Observed { step: step(3, 1, outcome()), lease: released, ..Observed::default() };
    let (decision, _) = judge(&observed, &request(5, invoked()));
    assert!(matches!(decision, Decision::Lost { why: "the agent was stopped", .. }));
}

#[test]
fn a_silence_is_checked_again_when_it_is_a_minute_old() {
    let observed =
        Observed { step: step(2, 1, claim()), lease: lease(1, 7), ..Observed::default() };
    let watch = Watch { poll_ms: 40_000, ..invoked() };
    let (_, seen) = judge(&observed, &request(100, watch));
    assert_eq!(seen.timeout_s, 50, "a new heartbeat");
    let (_, unchanged) = judge(&observed, &request(150, seen));
    assert_eq!(unchanged.timeout_s, 10, "no heartbeat for 50 s");
    let (decision, _) = judge(&observed, &request(160, unchanged));
    assert!(matches!(decision, Decision::Lost { .. }));
}

/// A session whose host has ended after these steps.
fn host_ended(how: HowHostEnded, second: u64, step: Option<Step>) -> Observed {
    let holder = Holder::Ended(HostEnd { how, at: at(second) });
    let epoch = step.as_ref().map_or(0, |step| step.epoch);
    let lease = Some(Lease { holder, ..Lease::unclaimed(epoch, at(0)) });
    Observed { step, lease, ..Observed::default() }
}

#[test]
fn the_runner_of_an_ended_host_is_replaced_at_once() {
    for how in [HowHostEnded::Exited, HowHostEnded::Restarted] {
        for (newest, epoch) in [(step(3, 1, outcome()), 1), (step(1, 1, claim()), 1), (None, 0)] {
            let observed = host_ended(how, 5, newest);
            let (decision, watch) = judge(&observed, &request(5, invoked()));
            assert!(matches!(decision, Decision::Lost { epoch: lost, .. } if lost == epoch));
            // The same end is no reason to invoke the agent a third time.
            let again = Watch { invoked_at: Some(at(5).to_string()), ..watch };
            let (decision, _) = judge(&observed, &request(6, again));
            assert_eq!(decision, Decision::Wait(Judgement::Busy));
        }
    }
}

#[test]
fn a_session_that_was_handed_over_goes_on_at_once_and_counts_no_loss() {
    let mut watch = invoked();
    for n in 1..20 {
        let observed = host_ended(HowHostEnded::HandedOver, 600 * n, step(3, 1, outcome()));
        let (decision, next) = judge(&observed, &request(600 * n, watch));
        assert_eq!(decision, Decision::Resume);
        assert_eq!((next.lost, next.restarted, next.epoch), (0, 0, 1));
        watch = Watch { invoked_at: Some(at(600 * n).to_string()), ..next };
    }
    let observed = host_ended(HowHostEnded::HandedOver, 600 * 19, step(3, 1, outcome()));
    let (decision, _) = judge(&observed, &request(600 * 19 + 1, watch));
    assert_eq!(decision, Decision::Wait(Judgement::Busy), "the same hand-over counts once");
}

#[test]
fn an_ended_host_leaves_questions_and_ends_as_they_are() {
    for how in [HowHostEnded::Exited, HowHostEnded::Restarted] {
        let asked = host_ended(how, 5, step(4, 1, ask(at(1_000))));
        let (decision, _) = judge(&asked, &request(6, invoked()));
        assert_eq!(decision, Decision::Wait(Judgement::Waiting));
    }
}

/// Ends the host every ten minutes without a new outcome. Returns the ends until the session ends, and its error.
fn ends_until_the_end(how: HowHostEnded) -> (u64, String) {
    let mut watch = invoked();
    for n in 1.. {
        let observed = host_ended(how, 600 * n, step(1, 1, claim()));
        let (decision, next) = judge(&observed, &request(600 * n + 60, watch));
        let Decision::Lost { .. } = decision else { return (n, ended(&decision)) };
        watch = next;
    }
    unreachable!("there is a limit")
}

#[test]
fn a_hundred_restarts_end_no_session_and_a_limit_does() {
    let (restarts, error) = ends_until_the_end(HowHostEnded::Restarted);
    assert_eq!(restarts, u64::from(RESTARTS_WITHOUT_OUTCOME_MAX) + 1);
    assert!(restarts > 100 && error.starts_with("AgentLost: Restarts"), "{restarts} {error}");
    let (exits, error) = ends_until_the_end(HowHostEnded::Exited);
    assert!(exits == 4 && error.starts_with("AgentLost: Silent"), "{exits} {error}");
}

#[test]
fn restarts_with_new_outcomes_in_between_end_no_session() {
    let mut watch = invoked();
    for n in 1..1_000 {
        let newest = step(u32::try_from(n).unwrap(), 1, outcome());
        let observed = host_ended(HowHostEnded::Restarted, n, newest);
        let (decision, next) = judge(&observed, &request(n, watch));
        assert!(matches!(decision, Decision::Lost { .. }), "{n}: {decision:?}");
        watch = next;
    }
    assert_eq!(watch.restarted, 1);
}

#[test]
fn repeated_ends_of_a_host_are_followed_by_a_pause() {
    for (how, free, first_s) in [(HowHostEnded::Exited, 1, 2), (HowHostEnded::Restarted, 4, 2)] {
        let mut watch = invoked();
        for n in 1..=free {
            let observed = host_ended(how, 10 * n, step(1, 1, claim()));
            let (decision, next) = judge(&observed, &request(10 * n, watch));
            assert!(matches!(decision, Decision::Lost { .. }), "{how:?} {n}: {decision:?}");
            watch = next;
        }
        let observed = host_ended(how, 100, step(1, 1, claim()));
        let (decision, paused) = judge(&observed, &request(100, watch));
        assert_eq!((decision, paused.timeout_s), (Decision::Wait(Judgement::Busy), first_s));
        let (decision, _) = judge(&observed, &request(102, paused));
        assert!(matches!(decision, Decision::Lost { .. }), "{how:?}: {decision:?}");
    }
}

#[test]
fn an_open_question_waits_until_it_expires() {
    let observed = Observed { step: step(4, 1, ask(at(1_000))), ..Observed::default() };
    let (decision, watch) = judge(&observed, &request(10, invoked()));
    assert_eq!((decision, watch.timeout_s), (Decision::Wait(Judgement::Waiting), 990));
    assert_eq!(
        watch.heartbeat_s, 989,
        "no runner sends heartbeats while the session waits for a person"
    );
    let (decision, watch) = judge(&observed, &request(1_000, watch));
    assert_eq!(decision, Decision::Expire { question: 4 });
    assert_eq!((watch.invocation, watch.epoch), (2, 1));
}

#[test]
fn an_answered_question_has_the_agent_invoked_again() {
    let answer = StepBody::Answer { question: 4, principal: None, payload: json() };
    let released = Some(Lease { heartbeat: 1, ..Lease::unclaimed(1, at(0)) });
    let observed = Observed { step: step(5, 1, answer), lease: released, ..Observed::default() };
    let (decision, watch) = judge(&observed, &request(10, invoked()));
    assert_eq!((decision, watch.epoch), (Decision::Resume, 1));
}

#[test]
fn time_in_which_the_stack_was_down_is_no_running_time() {
    let busy = |heartbeat| Observed {
        step: step(6, 2, claim()),
        lease: lease(2, heartbeat),
        ..Observed::default()
    };
    let (_, watch) = judge(&busy(1), &request(10, invoked()));
    let (decision, watch) = judge(&busy(2), &request(10 + 10 * 3_600, watch));
    assert_eq!(decision, Decision::Wait(Judgement::Busy));
    assert!(watch.running_ms < 700_000, "{}", watch.running_ms);
}

#[test]
fn waiting_does_not_count_as_running() {
    let asked = Observed { step: step(4, 1, ask(at(10_000_000))), ..Observed::default() };
    let (_, watch) = judge(&asked, &request(10, invoked()));
    let (_, watch) = judge(&asked, &request(300_000, watch));
    assert_eq!(watch.running_ms, 0);
    let busy = |heartbeat| Observed {
        step: step(6, 2, claim()),
        lease: lease(2, heartbeat),
        ..Observed::default()
    };
    let (_, watch) = judge(&busy(1), &request(300_010, watch));
    let (_, watch) = judge(&busy(2), &request(300_040, watch));
    assert_eq!(watch.running_ms, 30_000);
    let almost =
        Watch { running_ms: u64::try_from(RUNNING_MAX.as_millis()).unwrap() - 1_000, ..watch };
    let (decision, watch) = judge(&busy(3), &request(300_040, almost));
    assert_eq!((decision, watch.timeout_s), (Decision::Wait(Judgement::Busy), 2));
    let (decision, _) = judge(&busy(3), &request(300_042, watch));
    assert!(ended(&decision).starts_with("SessionTimedOut: RunningTime"));
}

#[test]
fn a_session_ends_two_days_before_its_records_expire() {
    let (decision, _) = judge(&Observed::default(), &request(88 * 86_400 + 1, invoked()));
    assert!(ended(&decision).starts_with("SessionTimedOut: Retention"));
}

#[test]
fn a_certain_refusal_fails_with_the_journaled_error() {
    let told = Draft::new(EventStatus::AgentInvocationFailed, About::Attempt(10))
        .with_error(Some(ErrorMessage::new("InvalidTrigger", "UnknownAgent", "no such agent")));
    let observed = Observed { events: vec![event(told)], ..Observed::default() };
    for (name, fails) in [
        ("InvocationFailed", true),
        ("InvalidTrigger", true),
        ("InvocationThrottled", true),
        ("InvocationUnknown", false),
        ("Lambda.Unknown", false),
        ("States.Timeout", false),
    ] {
        let failure = Failure { error: name.to_owned(), cause: String::new() };
        let refused = CheckRequest { failure: Some(failure), ..request(1, invoked()) };
        let (decision, _) = judge(&observed, &refused);
        if fails {
            assert_eq!(ended(&decision), "InvalidTrigger: UnknownAgent - no such agent", "{name}");
        } else {
            assert_eq!(decision, Decision::Wait(Judgement::Busy), "{name} may have begun");
        }
    }
}

#[test]
fn a_lambda_error_is_used_if_the_journal_has_none() {
    let cause = r#"{"errorMessage":"connection refused","errorType":"InvocationThrottled"}"#;
    let failure = Failure { error: "InvocationThrottled".to_owned(), cause: cause.to_owned() };
    let refused = CheckRequest { failure: Some(failure), ..request(1, invoked()) };
    let (decision, _) = judge(&Observed::default(), &refused);
    assert_eq!(ended(&decision), "InvocationError: InvocationThrottled - connection refused");
}

fn missing(attempt: u32, step: u32) -> Event {
    let detail =
        serde_json::json!({ "agent": "a", "needs": "1", "registered": ["2"], "step": step });
    let draft = Draft::new(EventStatus::AgentVersionMissing, About::Attempt(attempt));
    event(draft.with_detail(detail))
}

#[test]
fn a_session_without_its_version_waits_until_it_is_called() {
    let answer = StepBody::Answer { question: 4, principal: None, payload: json() };
    let dead = [answer, claim(), outcome()];
    for body in dead {
        let events = vec![missing(20, 5)];
        let observed =
            Observed { step: step(5, 1, body), events, lease: lease(1, 7), ..Observed::default() };
        let mut watch = invoked();
        for now in [10, 100, 1_000, 100_000] {
            let (decision, next) = judge(&observed, &request(now, watch));
            assert_eq!(decision, Decision::Wait(Judgement::Waiting), "after {now} s");
            assert_eq!((next.timeout_s, next.invocation, next.running_ms), (1_200, 1, 0));
            watch = next;
        }
        let called = CheckRequest { woken: Woken::Callback, ..request(100_001, watch.clone()) };
        let (decision, next) = judge(&observed, &called);
        assert_eq!((decision, next.invocation, next.epoch), (Decision::Resume, 2, 1));
        let spent = Watch { invocation: INVOCATIONS_MAX, ..watch };
        let called = CheckRequest { woken: Woken::Callback, ..request(100_002, spent) };
        assert_eq!(judge(&observed, &called).0, Decision::Wait(Judgement::Waiting));
    }
}

#[test]
fn a_session_that_was_moved_to_a_version_is_resumed() {
    let subject = journal::version::NOTE_VERSION.to_owned();
    let moved = StepBody::Note { subject, principal: None, payload: json() };
    let events = vec![missing(20, 5)];
    let observed =
        Observed { step: step(6, 1, moved), events, lease: lease(1, 7), ..Observed::default() };
    let (decision, watch) = judge(&observed, &request(10, invoked()));
    assert_eq!((decision, watch.epoch), (Decision::Resume, 1));
}

#[test]
fn a_newer_invocation_ends_the_wait_for_a_version() {
    let started = event(Draft::new(EventStatus::AgentEntrypointStarted, About::Attempt(30)));
    let events = vec![missing(20, 5), started];
    let observed =
        Observed { step: step(5, 1, claim()), events, lease: lease(1, 7), ..Observed::default() };
    let (decision, _) = judge(&observed, &request(10, invoked()));
    assert_eq!(decision, Decision::Wait(Judgement::Busy));
}

/// A session that was held back in this invocation, or by its runner if there is none.
fn held(why: WhyHeld, epoch: u32, invocation: Option<u32>, is_halted: bool) -> Observed {
    let holder = Holder::Held(Hold { why, agent: "a".to_owned(), invocation });
    let lease = Some(Lease { holder, ..Lease::unclaimed(epoch, at(0)) });
    let step = (epoch > 0).then(|| step(1, epoch, claim())).flatten();
    Observed { step, lease, is_halted, ..Observed::default() }
}

#[test]
fn a_halted_session_waits_and_counts_nothing() {
    for (epoch, invocation) in [(0, Some(1)), (1, None)] {
        let mut watch = invoked();
        for n in 0..1_000 {
            let halted = held(WhyHeld::Halted, epoch, invocation, true);
            let woken = if n % 2 == 0 { Woken::Timeout } else { Woken::Callback };
            let asked = CheckRequest { woken, ..request(1_200 * n, watch) };
            let (decision, next) = judge(&halted, &asked);
            assert_eq!(decision, Decision::Wait(Judgement::Waiting));
            watch = next;
        }
        assert_eq!((watch.invocation, watch.lost, watch.running_ms), (1, 0, 0));
        let free = held(WhyHeld::Halted, epoch, invocation, false);
        let (decision, watch) = judge(&free, &request(1_200_000, watch));
        assert_eq!(decision, Decision::Resume);
        assert_eq!((watch.invocation, watch.after_restart), (2, 1));
        // The same hold is no reason to invoke the agent a third time.
        let again = Watch { invoked_at: Some(at(1_200_000).to_string()), ..watch };
        let (decision, _) = judge(&free, &request(1_200_001, again));
        assert_eq!(decision, Decision::Wait(Judgement::Busy));
    }
}

#[test]
fn a_queued_session_asks_again_when_it_is_woken() {
    let queued = held(WhyHeld::Queued, 0, Some(1), false);
    let (decision, watch) = judge(&queued, &request(1, invoked()));
    assert_eq!(decision, Decision::Wait(Judgement::Waiting));
    let woken = CheckRequest { woken: Woken::Callback, ..request(2, watch) };
    assert_eq!(judge(&queued, &woken).0, Decision::Resume);
    let released = held(WhyHeld::Released, 0, Some(1), false);
    assert_eq!(judge(&released, &request(2, invoked())).0, Decision::Resume);
}

/// The checks of a session that finds no place, until it ends: when it asked, and how it ended.
fn asks_without_a_place() -> (Vec<u64>, String) {
    let (mut now, mut watch, mut asks) = (0, invoked(), vec![]);
    loop {
        let waits = held(WhyHeld::Capacity, 0, Some(watch.invocation), false);
        let (decision, next) = judge(&waits, &request(now, watch));
        if let Decision::End(end) = &decision {
            assert_eq!(end.category.as_deref(), Some("capacity"));
            return (asks, ended(&decision));
        }
        assert_eq!(decision, Decision::Wait(Judgement::Waiting));
        now += u64::from(next.timeout_s);
        let asked = CheckRequest { woken: Woken::Timeout, ..request(now, next) };
        let (decision, next) = judge(&waits, &asked);
        if matches!(decision, Decision::End(_)) {
            return (asks, ended(&decision));
        }
        assert_eq!(decision, Decision::AskAgain);
        asks.push(now);
        watch = next;
    }
}

#[test]
fn a_session_without_a_place_asks_for_hours_then_ends_by_name() {
    let (asks, error) = asks_without_a_place();
    assert_eq!(
        error,
        "NoCapacity: WaitedTooLong - the agent runtime had no place for this session for 6 hours"
    );
    assert!(asks[0] <= 15, "{asks:?}");
    assert!(asks.windows(2).all(|pair| pair[1] - pair[0] <= 600), "{asks:?}");
    assert!((30..=100).contains(&asks.len()), "{asks:?}");
    // Far fewer events than a session may have: two with each ask.
    assert!(*asks.last().unwrap() > 5 * 3_600, "{asks:?}");
}

#[test]
fn a_place_that_is_offered_is_asked_for_at_once() {
    let waits = held(WhyHeld::Capacity, 0, Some(1), false);
    let (_, watch) = judge(&waits, &request(1, invoked()));
    let woken = CheckRequest { woken: Woken::Callback, ..request(2, watch) };
    let (decision, watch) = judge(&waits, &woken);
    assert_eq!(decision, Decision::AskAgain);
    assert_eq!((watch.invocation, watch.after_restart, watch.running_ms), (2, 1, 0));
    // Once the agent is at work, the wait is forgotten.
    let begun = Observed { step: step(1, 1, claim()), lease: lease(1, 7), ..Observed::default() };
    let (_, watch) = judge(&begun, &request(9, watch));
    assert_eq!((watch.capacity_since, watch.capacity_asks), (None, 0));
}

/// The agent got a place and asked before the next check, so that no check saw it at work.
#[test]
fn a_wait_for_a_place_ends_with_a_question_or_a_halt() {
    const LATER: u64 = 7 * 3_600;
    let halted = held(WhyHeld::Halted, 0, Some(1), true);
    let asked = Observed {
        step: step(2, 1, ask(at(2 * LATER))),
        lease: lease(1, 7),
        ..Observed::default()
    };
    for other in [halted, asked] {
        let waits = held(WhyHeld::Capacity, 0, Some(1), false);
        let (_, watch) = judge(&waits, &request(1, invoked()));
        assert!(watch.capacity_since.is_some());
        let (decision, watch) = judge(&other, &request(2, watch));
        assert_eq!(decision, Decision::Wait(Judgement::Waiting));
        let (decision, _) = judge(&waits, &request(LATER, watch));
        assert_eq!(decision, Decision::Wait(Judgement::Waiting), "it waits from now on");
    }
}

#[test]
fn a_halted_question_keeps_its_expiry() {
    let halted = held(WhyHeld::Halted, 1, None, true);
    let asked = Observed { step: step(2, 1, ask(at(100))), ..halted };
    let (decision, _) = judge(&asked, &request(99, invoked()));
    assert_eq!(decision, Decision::Wait(Judgement::Waiting));
    let (decision, _) = judge(&asked, &request(100, invoked()));
    assert_eq!(decision, Decision::Expire { question: 2 });
}

#[test]
fn a_question_of_a_later_clock_expires_no_later() {
    const STEP: u64 = 10_800;
    // Asked at second 100 of the state machine, after the clock was set forward by three hours.
    let asked = Step { stamp: at(100 + STEP), ..step(2, 1, ask(at(700 + STEP))).unwrap() };
    let seen =
        |wall: Option<Stamp>| Observed { step: Some(asked.clone()), wall, ..Observed::default() };
    let (decision, watch) = judge(&seen(Some(at(101 + STEP))), &request(101, invoked()));
    assert_eq!((decision, watch.timeout_s), (Decision::Wait(Judgement::Waiting), 599));
    let due = |wall, now| judge(&seen(wall), &request(now, watch.clone())).0;
    let waits = Decision::Wait(Judgement::Waiting);
    assert_eq!(due(Some(at(699 + STEP)), 699), waits);
    assert_eq!(due(Some(at(700 + STEP)), 700), Decision::Expire { question: 2 });
    // After a restart of the stack, both clocks show the new time.
    assert_eq!(due(Some(at(600 + STEP)), 600 + STEP), waits);
    // A question from before the step, and a state machine that follows the wall clock, are as they were.
    let before = Observed { step: step(2, 1, ask(at(700))), ..seen(Some(at(600 + STEP))) };
    assert_eq!(judge(&before, &request(600, invoked())).0, waits);
    assert_eq!(due(None, 700), waits);
}
