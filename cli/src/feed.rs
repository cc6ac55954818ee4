//! A session's records as they come, with what they add up to so far.

use std::sync::Arc;
use std::time::Duration;

use graph::agent::Agent;
use graph::effect::ToolCall;
use journal::clock::Stamp;
use journal::event::{Event, EventStatus};
use journal::follow::{Follow, Record};
use journal::id::SessionId;
use journal::read;
use journal::status::lanes;
use journal::step::Step;
use local::store::Journal;
use local::view::{Calls, Session};
use serde_json::Value;

use crate::failure::Failure;

/// A session that is being followed.
pub struct Feed {
    store: Journal,
    id: SessionId,
    follow: Follow<Journal>,
    calls: Calls,
    events: Vec<Event>,
    steps: Vec<Step<Value>>,
}

/// A record that has come.
#[derive(Clone, Debug)]
pub enum Item {
    /// An event.
    Event(Event),
    /// A step, and the tool call that it is about.
    Step(Box<Step<Value>>, Option<ToolCall>),
}

impl Feed {
    /// Follows a session from its first record.
    pub fn new(store: Journal, id: SessionId, agents: Arc<[Agent]>) -> Self {
        let follow = Follow::new(store.clone(), id.clone());
        let calls = Calls::new(agents);
        Self { store, id, follow, calls, events: Vec::new(), steps: Vec::new() }
    }

    /// What has come since the last call; waits for a while if that is nothing.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn next(&mut self, patience: Duration) -> Result<Vec<Item>, Failure> {
        let mut items = Vec::new();
        for record in self.follow.next(patience).await? {
            match record {
                Record::Event(event) => {
                    self.events.push(event.clone());
                    items.push(Item::Event(event));
                }
                Record::Step(step) => {
                    let step = read::resolve(&self.store, step).await?;
                    let call = self.calls.of(&step);
                    self.steps.push(step.clone());
                    items.push(Item::Step(Box::new(step), call));
                }
            }
        }
        // A late event may be earlier than what was shown before it.
        self.events.sort_by(|a, b| (a.stamp, &a.sk).cmp(&(b.stamp, &b.sk)));
        Ok(items)
    }

    /// What has come so far, added up.
    pub fn view(&self, now: Stamp) -> Session {
        Session::of(&self.id, &self.events, &self.steps, now)
    }

    /// The execution that the session began with, once its first record has come.
    pub fn execution_arn(&self) -> Option<&str> {
        self.events.iter().find_map(|event| event.execution_arn.as_deref())
    }

    /// Whether an invocation has begun of which the journal does not say how it went.
    pub fn awaits_the_invoker(&self) -> bool {
        let invocation = lanes(&self.events).invocation;
        invocation.is_some_and(|(_, status)| status == EventStatus::AgentInvocationStarted)
    }

    /// Whether the newest step is still the question that was shown. Takes nothing from the feed.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn is_asking(&self) -> Result<bool, Failure> {
        let newest = read::newest_step(&self.store, &self.id).await?;
        Ok(newest.map(|step| step.seq) == self.steps.last().map(|step| step.seq))
    }
}
