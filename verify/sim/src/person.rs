//! A person who answers questions through the same code as the command line.

use std::sync::Arc;
use std::time::Duration;

use control::{Control, Workflow};
use graph::question::{Answer, Decision, OpenQuestion};
use journal::id::SessionId;
use journal::principal::Principal;
use journal::wait::Wait;
use serde_json::json;

use crate::store::SimStore;
use crate::table::Call;
use crate::world::World;

/// One of this many answers is sent with the workflow's token, which may be outdated.
const BY_TOKEN_EACH: u64 = 3;

/// Pause after an answer, accepted or not.
const PAUSE: Duration = Duration::from_secs(1);

/// A person who answers every question.
#[derive(Clone, Copy, Debug)]
pub struct Person {
    /// Shortest time to an answer.
    pub earliest: Duration,
    /// Longest time to an answer.
    pub latest: Duration,
    /// The answer, computed from the question and the tool calls so far.
    pub answer: fn(&OpenQuestion, &[Call]) -> Answer,
}

impl Person {
    /// Approves everything, and answers `yes` to a question for text. For a call in doubt, checks
    /// whether it was made and answers accordingly.
    pub const CAREFUL: Self = Self::taking(Duration::from_secs(7), Duration::from_secs(7));

    /// The same person, with these times to an answer.
    pub const fn taking(earliest: Duration, latest: Duration) -> Self {
        Self { earliest, latest, answer: careful }
    }
}

/// The answer of [`Person::CAREFUL`].
pub fn careful(open: &OpenQuestion, calls: &[Call]) -> Answer {
    let question = &open.question;
    let offers = |decision| question.choices.contains(&decision);
    let of_question = |call: &&Call| {
        question.server.as_ref() == Some(&call.server)
            && question.tool.as_ref() == Some(&call.tool)
            && question.arguments.as_ref() == Some(&call.arguments)
    };
    let answer = |decision| Answer::new(open.question_id, decision);
    let say = |text: &str| Answer { text: Some(text.to_owned()), ..answer(Decision::Say) };
    if offers(Decision::Approve) && !calls.iter().any(|call| of_question(&call)) {
        answer(Decision::Approve)
    } else if question.tool.is_some() {
        say("it was made")
    } else {
        say("yes")
    }
}

/// Has a person answer the session's questions until the world ends.
pub(crate) fn attend(world: &World, session: &SessionId, person: Person) {
    let answering = answering(world.clone(), session.clone(), person);
    world.tasks().spawn(answering);
}

async fn answering(world: World, session: SessionId, person: Person) {
    loop {
        let changed = world.disk().change();
        let open = world.disk().table().open_question(&session);
        let Some(open) = open else {
            changed.await;
            continue;
        };
        tokio::time::sleep(world.chance().between(person.earliest, person.latest)).await;
        let said = (person.answer)(&open, world.disk().table().calls());
        say(&world, &session, said).await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// One answer, by a process of its own, which may die.
async fn say(world: &World, session: &SessionId, said: Answer) {
    let process = world.process("person");
    let store = SimStore::new(Arc::clone(world.disk()), Arc::clone(&process));
    let by_token = world.chance().below(BY_TOKEN_EACH) == 0;
    let saying = async {
        if by_token {
            if let Ok(Some(wait)) = Wait::read(&store, session).await {
                world.callback(wait.token, Some(json!(said))).await;
            }
            return;
        }
        let executions = Callbacks(world.clone());
        let control = Control { store, clock: process.clock.clone(), executions };
        // Why it is refused shows in the next question.
        let _ = control.answer(session, &json!(said), &Principal::Unknown).await;
    };
    tokio::select! {
        biased;
        () = process.death() => {}
        () = saying => {}
    }
}

/// The callbacks of a simulated state machine.
struct Callbacks(World);

impl Workflow for Callbacks {
    async fn wake(&self, token: &str) -> Result<bool, control::Error> {
        self.0.callback(token.to_owned(), Some(json!({}))).await;
        Ok(true)
    }
}
