//! What a session is about: the agent, what it is asked for, its tools and its people.

use std::sync::Arc;

use graph::agent::Agent;
use serde_json::{Value, json};

use crate::person::Person;
use crate::tools::ToolServer;

/// A session to be simulated. Any agent will do: see [`Scenario::new`].
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The agents that hosts know.
    pub agents: Arc<[Agent]>,
    /// The trigger's detail.
    pub detail: Value,
    /// The MCP servers that sessions have.
    pub servers: Vec<ToolServer>,
    /// Who answers questions. Of several, each answers each, as far as it is still open.
    pub people: Vec<Person>,
    /// What of a session's result must be the same however often it was disturbed; all of it unless
    /// the result tells of times.
    pub view: fn(&Value) -> Value,
}

impl Scenario {
    /// An agent that is asked for something, without tools and without people.
    pub fn new(agent: Agent, input: Value) -> Self {
        Self {
            detail: json!({ "agent": agent.name(), "input": input }),
            agents: Arc::new([agent]),
            servers: Vec::new(),
            people: Vec::new(),
            view: Value::clone,
        }
    }

    /// The shipped agents, asked for what `detail` says.
    pub fn of_detail(detail: Value) -> Self {
        let (servers, people) = (Vec::new(), Vec::new());
        Self { agents: agents::all().into(), detail, servers, people, view: Value::clone }
    }

    /// The agent that is asked.
    pub(crate) fn agent(&self) -> Option<&Agent> {
        let name = self.detail["agent"].as_str().unwrap_or("checkup");
        self.agents.iter().find(|agent| agent.name() == name)
    }
}
