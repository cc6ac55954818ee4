//! Traces of sessions whose runners die.

use journal::clock::Stamp;
use journal::event::{About, Draft, Event, EventStatus, Writer};
use journal::id::{Runner, SessionId};
use journal::item::Hash;
use journal::step::{EffectKind, EffectRef, Step, StepBody, Usage};
use serde_json::{Value, json};
use telemetry::span::Span;
use workflow::state_machine::TEXT as STATE_MACHINE;
use workflow::trace::effects::{self, Effects};
use workflow::trace::{self, Trace, lifecycle};

fn session() -> SessionId {
    "0af76519-16cd-43dd-8448-eb211c80319c".parse().unwrap()
}

fn at(second: i64) -> Stamp {
    Stamp::from_millis(second * 1_000)
}

fn step(seq: u32, epoch: u32, body: StepBody<Value>) -> Step<Value> {
    Step {
        session: session(),
        seq,
        epoch,
        runner: Runner::named("agent:test"),
        stamp: at(i64::from(seq)),
        expires_at: 0,
        prev_hash: Hash::genesis(),
        hash: Hash::genesis(),
        body,
    }
}

fn claim(seq: u32, epoch: u32) -> Step<Value> {
    let body = StepBody::Claim {
        supersedes: epoch - 1,
        agent: "incident".to_owned(),
        graph_version: "1".to_owned(),
        input: None,
    };
    step(seq, epoch, body)
}

fn effect(call: u32) -> EffectRef {
    EffectRef { node: "n".to_owned(), kind: EffectKind::Tools, digest: Hash::of(b"same"), call }
}

fn outcome(seq: u32, epoch: u32, call: u32) -> Step<Value> {
    let body = StepBody::Outcome {
        effect: effect(call),
        started_at: at(i64::from(seq) - 1),
        usage: Usage::default(),
        request: None,
        payload: Value::Null,
    };
    step(seq, epoch, body)
}

fn event(second: i64, writer: Writer, status: EventStatus, about: About, detail: Value) -> Event {
    let draft = Draft::new(status, about).with_detail(detail);
    let item = draft.to_item(&session(), writer, at(second), None, 0);
    Event::from_item(&item).unwrap()
}

fn names(spans: &[Span]) -> Vec<(&str, bool)> {
    spans.iter().map(|span| (span.name.as_str(), span.failed)).collect()
}

#[test]
fn an_interrupted_attempt_shares_its_successors_span() {
    let (trace, mut effects) = (Trace::of(&session(), None), Effects::default());
    effects.fold(&claim(1, 1));
    let begun = effects::context(&trace, &effect(0), effects.next(&effect(0)));
    effects.fold(&claim(2, 2));
    let again = effects::context(&trace, &effect(0), effects.next(&effect(0)));
    assert_eq!(begun, again);
    let closed = effects.fold(&outcome(3, 2, 0));
    assert_eq!(effects::span(&trace, &closed[0]).context, begun);
    // A repeated effect and a parallel one have spans of their own.
    assert_ne!(effects::context(&trace, &effect(0), effects.next(&effect(0))), begun);
    assert_ne!(effects::context(&trace, &effect(1), effects.next(&effect(1))), begun);
}

#[test]
fn a_lost_at_most_once_call_has_its_own_span() {
    let (trace, mut effects) = (Trace::of(&session(), None), Effects::default());
    let intent = StepBody::Intent { effect: effect(0), payload: json!({}) };
    effects.fold(&claim(1, 1));
    assert!(effects.fold(&step(2, 1, intent)).is_empty());
    let begun = effects::context(&trace, &effect(0), effects.next(&effect(0)));
    let lost = effects.fold(&claim(3, 2));
    assert_eq!(lost.len(), 1);
    let span = effects::span(&trace, &lost[0]);
    assert_eq!((span.context, span.failed), (begun, true));
    // After a person's approval the call is repeated, as another attempt.
    assert_eq!(effects.next(&effect(0)), 2);
}

#[test]
fn the_sealer_exports_the_spans_of_a_lost_runner() {
    use EventStatus as E;
    let started = |second, epoch: u32| {
        let detail = json!({ "agent": "incident", "epoch": epoch });
        event(second, Writer::Agent, E::AgentBackgroundTaskStarted, About::Step(epoch), detail)
    };
    let told = |second, writer, status, about| event(second, writer, status, about, json!({}));
    let mut events = vec![
        told(1, Writer::Invoker, E::AgentInvocationStarted, About::Attempt(6)),
        told(2, Writer::Agent, E::AgentEntrypointStarted, About::Attempt(6)),
        started(3, 1),
        told(4, Writer::Invoker, E::AgentInvocationSucceeded, About::Attempt(6)),
        told(9, Writer::Poller, E::AgentLost, About::Epoch(1)),
        told(10, Writer::Agent, E::AgentEntrypointStarted, About::Attempt(12)),
        started(11, 2),
        told(14, Writer::Agent, E::AgentBackgroundTaskCompleted, About::Step(5)),
        told(15, Writer::Poller, E::SessionSucceeded, About::Step(5)),
    ];
    assert!(lifecycle::wants_steps(&events, 2));
    let trace = Trace::of(&session(), None);
    let steps = [claim(1, 1), outcome(2, 1, 0), claim(3, 2), outcome(4, 2, 1)];
    let spans = lifecycle::spans(&trace, &events, 2, &steps);
    let expected = [
        ("session", false),
        ("invoke_agent", false),
        // Its own start event is missing, but its children must have a parent.
        ("invoke_agent", true),
        ("agent.run", true),
        ("agent.run", false),
        ("execute_tool", false),
    ];
    assert_eq!(names(&spans), expected);
    assert_eq!(spans[4].parent, Some(spans[2].context.span_id));
    assert_eq!(spans[5].parent, Some(trace.run(1).span_id));
    // A run without its start event still has a span.
    events.retain(|event| event.status != E::AgentBackgroundTaskStarted);
    let ids: Vec<_> =
        lifecycle::spans(&trace, &events, 2, &steps).iter().map(|span| span.context).collect();
    assert!(ids.contains(&trace.run(1)) && ids.contains(&trace.run(2)));
}

#[test]
fn spans_of_a_run_with_an_announced_end_are_not_repeated() {
    let detail = json!({ "agent": "incident", "epoch": 1 });
    let events = [
        event(3, Writer::Agent, EventStatus::AgentBackgroundTaskStarted, About::Step(1), detail),
        event(5, Writer::Agent, EventStatus::AgentBackgroundTaskFailed, About::Step(3), json!({})),
    ];
    assert!(!lifecycle::wants_steps(&events, 1));
    // The poller's announcement proves nothing about the agent's spans.
    let detail = json!({ "agent": "incident", "epoch": 1 });
    let events = [
        event(3, Writer::Agent, EventStatus::AgentBackgroundTaskStarted, About::Step(1), detail),
        event(5, Writer::Poller, EventStatus::AgentBackgroundTaskFailed, About::Step(3), json!({})),
    ];
    assert!(lifecycle::wants_steps(&events, 1));
}

fn ask(seq: u32, epoch: u32, kind: EffectKind) -> Step<Value> {
    let effect = EffectRef { kind, ..effect(9) };
    step(seq, epoch, StepBody::Ask { effect, expires_at: at(100), payload: Value::Null })
}

#[test]
fn the_sealer_exports_a_questions_span() {
    use EventStatus as E;
    let told = |second, status, about, detail| event(second, Writer::Agent, status, about, detail);
    let run = |second, status, epoch: u32| {
        told(second, status, About::Step(epoch), json!({ "agent": "assistant", "epoch": epoch }))
    };
    let suspended =
        |second, step| told(second, E::AgentBackgroundTaskSuspended, About::Step(step), json!({}));
    let events = [
        run(1, E::AgentBackgroundTaskStarted, 1),
        suspended(3, 2),
        run(8, E::AgentBackgroundTaskResumed, 2),
        suspended(10, 5),
        event(20, Writer::Poller, E::SessionCancelled, About::Step(6), json!({})),
    ];
    assert!(lifecycle::wants_steps(&events, 2));
    let mut answer =
        step(3, 1, StepBody::Answer { question: 2, principal: None, payload: Value::Null });
    answer.runner = Runner::named("person:test");
    let end = StepBody::End {
        answered_by: None,
        ending: journal::step::Ending::Cancelled,
        error: None,
        category: None,
        payload: Value::Null,
    };
    let steps = [
        claim(1, 1),
        ask(2, 1, EffectKind::Ask),
        answer,
        claim(4, 2),
        ask(5, 2, EffectKind::Sleep),
        step(6, 2, end),
    ];
    let trace = Trace::of(&session(), None);
    let spans = lifecycle::spans(&trace, &events, 2, &steps);
    let expected = [
        ("session", true),
        ("agent.run", false),
        ("agent.run", false),
        ("ask", false),
        // The session ended during the sleep.
        ("sleep", true),
    ];
    assert_eq!(names(&spans), expected);
    for span in &spans[3..] {
        assert_eq!(span.parent, Some(trace.session().span_id));
    }
    let by = ("daybook.closed_by", "person".into());
    assert!(spans[3].attributes.contains(&by), "{:?}", spans[3]);
    assert_eq!((spans[3].start, spans[3].end), (at(2).nanos(), at(3).nanos()));
}

#[test]
fn every_process_accepts_the_same_traceparents() {
    let valid = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let read = |said: Value| trace::of_detail(&json!({ "traceparent": said }));
    assert_eq!(read(json!(valid)).unwrap().unwrap().to_string(), valid);
    assert_eq!((trace::of_detail(&json!({})), read(Value::Null)), (Ok(None), Ok(None)));
    for broken in [json!(1), json!([valid]), json!({}), json!(""), json!("00-broken")] {
        assert!(read(broken.clone()).is_err(), "{broken}");
    }
    // The state machine passes it on, so that poller and invoker accept the same values.
    let kept = telemetry::context::TRACEPARENT_BYTES + 1;
    let cut = format!("$substring($string($states.input.detail.traceparent), 0, {kept})");
    assert_eq!(STATE_MACHINE.matches(&cut).count(), 3);
    for text in [format!("{valid}-more"), valid.replacen("00", "cc", 1) + "-more", valid.into()] {
        let whole = text.parse::<telemetry::context::TraceParent>();
        assert_eq!(text.chars().take(kept).collect::<String>().parse(), whole, "{text}");
    }
}
