//! A person who answers questions, as the command line does for them.

use std::sync::Arc;
use std::time::Duration;

use graph::question::{Answer, Decision, OpenQuestion};
use journal::id::SessionId;
use journal::wait::Wait;
use poller::answer::answer;
use serde_json::json;

use crate::store::SimStore;
use crate::table::Call;
use crate::world::World;

/// One answer of so many is sent with the workflow's token, which may be an old one.
const BY_TOKEN_EACH: u64 = 3;

/// Before looking again after an answer, taken or not.
const PAUSE: Duration = Duration::from_secs(1);

/// Somebody who answers every question.
#[derive(Clone, Copy, Debug)]
pub struct Person {
    /// How long they take at least.
    pub earliest: Duration,
    /// And at most.
    pub latest: Duration,
    /// What they say, from the question and from what the session's tools have done so far.
    pub answer: fn(&OpenQuestion, &[Call]) -> Answer,
}

impl Person {
    /// Approves whatever may be approved, and says `yes` where words are asked for. Of a call that
    /// is in doubt they look whether it was made, and say so.
    pub const CAREFUL: Self = Self::taking(Duration::from_secs(7), Duration::from_secs(7));

    /// The same person, who takes between so long and so long.
    pub const fn taking(earliest: Duration, latest: Duration) -> Self {
        Self { earliest, latest, answer: careful }
    }
}

/// What [`Person::CAREFUL`] says.
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

/// Has a person answer the session's questions for as long as the world goes on.
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

/// One answer, by a process of its own, which may die over it.
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
        // Whatever it is refused for shows in the next question.
        if answer(&store, &process.clock, session, said).await.is_err() {
            return;
        }
        if let Ok(Some(wait)) = Wait::read(&store, session).await {
            world.callback(wait.token, Some(json!({}))).await;
        }
    };
    tokio::select! {
        biased;
        () = process.death() => {}
        () = saying => {}
    }
}
