//! What a person does to a session: the deeds behind `daybook cancel` and `daybook answer`.
//!
//! The endpoint's own functions are bound to the SQLite file and to its executions; these make the
//! same reads, judgements and writes in the same order over any store.

use journal::announce::Announcer;
use journal::chain::{AppendError, Author, Head, append};
use journal::clock::{Clock, Hlc, Stamp};
use journal::event::{About, Draft, Event, EventStatus, Writer};
use journal::id::Runner;
use journal::read;
use journal::status::{admits, status};
use journal::step::{Step, StepBody};
use journal::store::Store;
use journal::wait::Wait;
use serde_json::{Value, json};
use sim::interleave::Gate;

use super::stage::Stage;

/// A person with what they have read of a session.
struct Person<'a, S> {
    stage: &'a Stage<S>,
    gate: &'a Gate<S>,
    clock: Clock,
    events: Vec<Event>,
    steps: Vec<Step<Value>>,
}

/// Asks for the session's end, by a clock that is so many nanoseconds ahead. Answered `asked` or
/// `ended`.
pub async fn cancel<S: Store>(stage: &Stage<S>, gate: &Gate<S>, name: &'static str, ahead_ns: i64) {
    let person = Person::reading(stage, gate, ahead_ns).await;
    if admits(status(&person.events), EventStatus::CancelRequested).is_err() {
        return stage.answer(name, "ended");
    }
    let hlc = person.hlc();
    let draft = Draft::new(EventStatus::CancelRequested, About::Session);
    let draft = draft.with_detail(json!({ "reason": "changed my mind" }));
    person.voice(&hlc).announce_once(&draft).await.unwrap();
    Wait::read(gate, &stage.session).await.unwrap();
    stage.answer(name, "asked");
}

/// Approves the open question. Answered `answered`, `no question` or `closed`.
pub async fn approve<S: Store>(stage: &Stage<S>, gate: &Gate<S>, name: &'static str) {
    let person = Person::reading(stage, gate, 0).await;
    let open = person.steps.last().and_then(|step| match &step.body {
        StepBody::Ask { expires_at, .. } => Some((step, *expires_at)),
        _ => None,
    });
    let Some((ask, expires_at)) = open else { return stage.answer(name, "no question") };
    assert!(person.clock.now() < expires_at, "by the person's clock there is time");
    let hlc = person.hlc();
    let author = Author { runner: Runner::fresh("person"), ..stage.author("person") };
    let payload = json!({ "question_id": ask.seq, "decision": "approve", "reason": name });
    let body = StepBody::Answer { question: ask.seq, payload };
    match append(gate, &hlc, &author, &Head::after(ask), ask.epoch, body).await {
        Ok(step) => {
            let told = Draft::new(EventStatus::InputReceived, About::Step(step.seq));
            person.voice(&hlc).announce_once(&told).await.unwrap();
            Wait::read(gate, &stage.session).await.unwrap();
            stage.answer(name, "answered");
        }
        Err(AppendError::Collision(_)) => stage.answer(name, "closed"),
        Err(error) => panic!("{error}"),
    }
}

impl<'a, S: Store> Person<'a, S> {
    async fn reading(stage: &'a Stage<S>, gate: &'a Gate<S>, ahead_ns: i64) -> Self {
        let clock = stage.clock.ahead_by(ahead_ns);
        let events = read::events(gate, &stage.session).await.unwrap();
        let steps = read::resolved_steps(gate, &stage.session).await.unwrap();
        Self { stage, gate, clock, events, steps }
    }

    /// A clock that has seen all of the session.
    fn hlc(&self) -> Hlc {
        let hlc = Hlc::new(self.clock.clone(), Stamp::default());
        self.events.iter().for_each(|event| hlc.observe(event.stamp));
        self.steps.iter().for_each(|step| hlc.observe(step.stamp));
        hlc
    }

    fn voice<'b>(&'b self, hlc: &'b Hlc) -> Announcer<'b, Gate<S>> {
        let Stage { session, expires_at, .. } = self.stage;
        let expires_at = *expires_at;
        Announcer { store: self.gate, hlc, session, writer: Writer::Person, expires_at }
    }
}
