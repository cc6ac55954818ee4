//! What a person does to a session, by `daybook cancel` and `daybook answer`.

use control::{Control, Error, Refused, Workflow};
use journal::principal::Principal;
use journal::store::Store;
use serde_json::json;
use sim::interleave::Gate;

use super::stage::Stage;

/// A race ends without its workflow: nothing is parked.
struct Unparked;

impl Workflow for Unparked {
    async fn wake(&self, _token: &str) -> Result<bool, Error> {
        Ok(false)
    }
}

fn control<S: Store>(
    stage: &Stage<S>,
    gate: &Gate<S>,
    ahead_ns: i64,
) -> Control<Gate<S>, Unparked> {
    let clock = stage.clock.ahead_by(ahead_ns);
    Control { store: gate.clone(), clock, executions: Unparked }
}

/// Cancels the session, with a clock that is this many nanoseconds ahead. The answer is `asked` or
/// `ended`.
pub async fn cancel<S: Store>(stage: &Stage<S>, gate: &Gate<S>, name: &'static str, ahead_ns: i64) {
    let control = control(stage, gate, ahead_ns);
    match control.cancel(&stage.session, Some("changed my mind"), &Principal::Unknown).await {
        Ok(_) => stage.answer(name, "asked"),
        Err(Error::Refused(Refused::Ended(_))) => stage.answer(name, "ended"),
        Err(error) => panic!("{error}"),
    }
}

/// Approves a question. Answered `answered`, `no question` or `closed`.
pub async fn approve<S: Store>(
    stage: &Stage<S>,
    gate: &Gate<S>,
    name: &'static str,
    question: u32,
) {
    let said = json!({ "question_id": question, "decision": "approve", "reason": name });
    match control(stage, gate, 0).answer(&stage.session, &said, &Principal::Unknown).await {
        Ok(_) => stage.answer(name, "answered"),
        Err(Error::Refused(Refused::NoQuestion)) => stage.answer(name, "no question"),
        Err(Error::Refused(Refused::Closed)) => stage.answer(name, "closed"),
        Err(error) => panic!("{error}"),
    }
}
