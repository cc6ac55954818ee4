//! A session's agent, input, tools and people.

use std::sync::Arc;

use graph::agent::Agent;
use serde_json::{Value, json};

use crate::person::Person;
use crate::tools::ToolServer;

/// A session to simulate, of any agent: see [`Scenario::new`].
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The agents known to the hosts.
    pub agents: Arc<[Agent]>,
    pub detail: Value,
    /// The MCP servers.
    pub servers: Vec<ToolServer>,
    /// The people who answer questions. Each of several answers every question that is still open.
    pub people: Vec<Person>,
    /// The part of the result that faults must not change; all of it unless the result contains
    /// times.
    pub view: fn(&Value) -> Value,
}

impl Scenario {
    /// A scenario without tools and people.
    pub fn new(agent: Agent, input: Value) -> Self {
        Self {
            detail: json!({ "agent": agent.name(), "input": input }),
            agents: Arc::new([agent]),
            servers: Vec::new(),
            people: Vec::new(),
            view: Value::clone,
        }
    }

    /// A scenario of the shipped agents, with this trigger detail.
    pub fn of_detail(detail: Value) -> Self {
        let (servers, people) = (Vec::new(), Vec::new());
        Self { agents: packs::all().into(), detail, servers, people, view: Value::clone }
    }

    pub(crate) fn agent(&self) -> Option<&Agent> {
        let name = self.detail["agent"].as_str().unwrap_or("checkup");
        self.agents.iter().find(|agent| agent.name() == name)
    }
}
