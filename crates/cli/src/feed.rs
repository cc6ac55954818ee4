//! Follows a session: its records as they are appended, and the view model so far.

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
use serde_json::Value;
use stack::store::Journal;
use stack::view::{Calls, Session};

use crate::failure::Failure;

/// A followed session.
pub struct Feed {
    store: Journal,
    id: SessionId,
    follow: Follow<Journal>,
    calls: Calls,
    events: Vec<Event>,
    steps: Vec<Step<Value>>,
    agents: Arc<[Agent]>,
}

/// A new record.
#[derive(Clone, Debug)]
pub enum Item {
    Event(Box<Event>),
    /// A step and its tool call, if it is about one.
    Step(Box<Step<Value>>, Option<ToolCall>),
}

impl Feed {
    /// Follows a session from its first record.
    pub fn new(store: Journal, id: SessionId, agents: Arc<[Agent]>) -> Self {
        let follow = Follow::new(store.clone(), id.clone());
        let calls = Calls::new(Arc::clone(&agents));
        Self { store, id, follow, calls, events: Vec::new(), steps: Vec::new(), agents }
    }

    /// The records since the last call; waits up to `timeout` for the first one.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn next(&mut self, timeout: Duration) -> Result<Vec<Item>, Failure> {
        let mut items = Vec::new();
        for record in self.follow.next(timeout).await? {
            match record {
                Record::Event(event) => {
                    self.events.push(event.clone());
                    items.push(Item::Event(Box::new(event)));
                }
                Record::Step(step) => {
                    let step = read::shown(&self.store, step).await?;
                    let call = self.calls.of(&step);
                    self.steps.push(step.clone());
                    items.push(Item::Step(Box::new(step), call));
                }
            }
        }
        // A late event can have an earlier time than those already read.
        self.events.sort_by(|a, b| (a.stamp, &a.sk).cmp(&(b.stamp, &b.sk)));
        Ok(items)
    }

    /// The session's view model so far.
    pub fn view(&self, now: Stamp) -> Session {
        Session::of(&self.id, &self.events, &self.steps, &self.agents, now)
    }

    /// The session's first execution, once its first record has been read.
    pub fn execution_arn(&self) -> Option<&str> {
        self.events.iter().find_map(|event| event.execution_arn.as_deref())
    }

    /// Whether an invocation has started and its result is not yet in the journal.
    pub fn awaits_the_invoker(&self) -> bool {
        let invocation = lanes(&self.events).invocation;
        invocation.is_some_and(|(_, status)| status == EventStatus::AgentInvocationStarted)
    }

    /// Whether the newest step is still the last one read, so the question is open. Consumes no records.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn is_asking(&self) -> Result<bool, Failure> {
        let newest = read::newest_step(&self.store, &self.id).await?;
        Ok(newest.map(|step| step.seq) == self.steps.last().map(|step| step.seq))
    }
}
