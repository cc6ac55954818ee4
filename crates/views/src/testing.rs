//! Records for this crate's tests.

use journal::clock::Stamp;
use journal::event::{About, Event, EventStatus, Writer};
use journal::id::{EventId, Runner, SessionId};
use journal::item::Hash;
use journal::step::{EffectKind, EffectRef, Ending, Step, StepBody, Usage};
use serde_json::Value;

pub(crate) fn id() -> SessionId {
    "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap()
}

pub(crate) fn at(ms: i64) -> Stamp {
    Stamp::from_millis(1_795_000_000_000 + ms)
}

pub(crate) fn event(ms: i64, status: EventStatus, writer: Writer) -> Event {
    Event {
        id: EventId::of(&id(), writer.as_str(), status.as_str(), 1),
        session: id(),
        stamp: at(ms),
        sk: journal::key::event(at(ms)),
        status,
        about: About::Session,
        writer,
        error: None,
        detail: None,
        wall: None,
        expires_at: 0,
        seal: None,
        execution_arn: None,
        principal: None,
        hash: Hash::genesis(),
    }
}

/// A step of the first claim.
pub(crate) fn step(ms: i64, seq: u32, body: StepBody<Value>) -> Step<Value> {
    by("agent:1", 1, ms, seq, body)
}

pub(crate) fn by(
    runner: &str,
    epoch: u32,
    ms: i64,
    seq: u32,
    body: StepBody<Value>,
) -> Step<Value> {
    Step {
        session: id(),
        seq,
        epoch,
        runner: Runner::named(runner),
        stamp: at(ms),
        expires_at: 0,
        prev_hash: Hash::genesis(),
        hash: Hash::genesis(),
        body,
    }
}

pub(crate) fn effect(node: &str, kind: EffectKind, call: u32) -> EffectRef {
    EffectRef { node: node.to_owned(), kind, digest: Hash::genesis(), call }
}

pub(crate) fn claim(supersedes: u32) -> StepBody<Value> {
    let (agent, graph_version) = ("assistant".to_owned(), "1".to_owned());
    StepBody::Claim { supersedes, agent, graph_version, input: None }
}

pub(crate) fn outcome(
    node: &str,
    kind: EffectKind,
    from: i64,
    usage: Usage,
    payload: Value,
) -> StepBody<Value> {
    let (effect, started_at) = (effect(node, kind, 0), at(from));
    StepBody::Outcome { effect, started_at, usage, request: None, payload }
}

pub(crate) fn end(ending: Ending) -> StepBody<Value> {
    StepBody::End { ending, error: None, category: None, answered_by: None, payload: Value::Null }
}
