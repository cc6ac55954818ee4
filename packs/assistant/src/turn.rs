//! How a turn goes on after a person's words, and what its confirmations say.

use graph::effect::ToolCall;
use serde_json::{Value, json};

use super::state::{AgentState, Plan};
use super::tool;

/// Messages that end a thread.
const FAREWELLS: [&str; 5] = ["bye", "end", "exit", "quit", "/end"];

pub(super) fn is_farewell(text: &str) -> bool {
    FAREWELLS.contains(&text.trim().to_ascii_lowercase().as_str())
}

impl AgentState {
    /// The confirmation of a call, with what the program knows about it.
    pub(super) fn confirmation(&self, call: &ToolCall) -> String {
        let known = self.shown(&call.tool, &call.arguments);
        tool::confirmation(&call.tool, &call.arguments, &known)
    }

    /// The look at the values that a run needs for its confirmation, if they are not known.
    pub(super) fn unknown_values(&self) -> Option<ToolCall> {
        let next = self.plan.as_ref()?.steps.first().filter(|call| call.tool == tool::RUN)?;
        let named = next.arguments.get("simulation_id").and_then(Value::as_str);
        let current =
            self.simulation_context.as_ref().map(|context| context.simulation_id.as_str());
        let id = named.or(current)?;
        let has_looked = self.turn_steps().last().is_some_and(|step| {
            step.tool == tool::LIST_PARAMETERS && step.arguments["simulation_id"] == *id
        });
        let is_offered = self.offered.iter().any(|tool| tool.name == tool::LIST_PARAMETERS);
        let look = || ToolCall::built_in(tool::LIST_PARAMETERS, json!({ "simulation_id": id }));
        (is_offered && !has_looked && self.values(id).is_none()).then(look)
    }

    /// Asks about an edited run again: the regimen that was shown was another one.
    pub(super) fn select_again(&mut self) {
        if let Some(pending) = self.pending_tool_call.take() {
            let plan = self.plan.get_or_insert_with(|| Plan {
                reasoning: pending.justification,
                steps: Vec::new(),
                is_critical: true,
            });
            plan.steps.insert(0, pending.call);
        }
    }

    /// Amends the turn's request with words at a confirmation.
    pub(super) fn amend(&mut self, source: u32, at_ms: i64, words: &str) {
        let before = std::mem::take(&mut self.turn);
        self.begin_turn(source, at_ms, words, words.to_owned());
        let is_read = before.rejected.is_none() && !before.request.is_empty();
        let base = before.base.into_iter().chain(is_read.then_some(before.request));
        self.turn.base = base.collect();
        self.turn.first_step = before.first_step;
        self.turn.began_ms = before.began_ms;
        self.turn.renamed = before.renamed;
        self.turn.amended_at = self.intermediate_steps.len();
    }

    /// Goes on with the turn after an answer to its question.
    pub(super) fn resume_turn(
        &mut self,
        source: u32,
        text: &str,
        request: String,
        base: Vec<String>,
    ) {
        let before = std::mem::take(&mut self.turn);
        self.begin_turn(source, before.began_ms, text, request);
        self.turn.base = base;
        self.turn.first_step = before.first_step;
        self.turn.renamed = before.renamed;
        self.turn.amended_at = self.intermediate_steps.len();
    }

    /// The request whose load a person did not approve: the next message may amend it.
    pub(super) fn refused_load(&self) -> Vec<String> {
        let is_loaded = self.turn_steps().iter().any(|step| step.tool == tool::LOAD);
        if self.turn.rejected.is_none() || is_loaded || self.simulation_context.is_some() {
            return Vec::new();
        }
        self.turn.base.iter().chain([&self.turn.request]).cloned().collect()
    }
}
