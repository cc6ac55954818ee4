//! How a turn goes on after a person's words, and what its confirmations say.

use graph::definition::{Finish, Route};
use graph::effect::ToolCall;
use serde_json::{Value, json};

use super::state::{AgentState, Plan};
use super::tool;

/// Messages that end a thread.
const FAREWELLS: [&str; 5] = ["bye", "end", "exit", "quit", "/end"];

pub(super) fn is_farewell(text: &str) -> bool {
    FAREWELLS.contains(&text.trim().to_ascii_lowercase().as_str())
}

/// Words with which people begin a change at a confirmation. They say only that the call is not approved as it stands.
const LEADS: [&str; 21] = [
    "no", "nope", "yes", "ok", "okay", "wait", "hold on", "sorry", "actually", "oops", "but",
    "same", "i meant", "i mean", "please", "no wait", "instead", "rather", "and", "hm", "hmm",
];

/// Those that lead whatever follows them. After the others stand a comma or another lead.
const PLAIN_LEADS: [&str; 10] =
    ["yes", "ok", "okay", "same", "but", "sorry", "i meant", "i mean", "actually", "please"];

const VERBS: [&str; 4] = ["make", "set", "use", "give"];

/// A change without the words that lead to it: `no, wait, make it 300` is `make it 300`. Words that could say more, as in
/// `no infusion`, stay.
fn without_lead(text: &str) -> &str {
    let mut rest = text.trim();
    loop {
        let lower = rest.to_ascii_lowercase();
        let found = LEADS.iter().filter_map(|lead| {
            let after = lower.strip_prefix(lead)?;
            let trimmed = after.trim_start_matches([',', ';', ':', '.', '!', '-', ' ', '\u{2014}']);
            let is_cut = after.starts_with([',', ';', ':', '.', '!', '\u{2014}']);
            let begins = |next: &&str| {
                let rest = trimmed.strip_prefix(*next);
                rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
            };
            let leads_on = PLAIN_LEADS.contains(lead) || LEADS.iter().chain(&VERBS).any(begins);
            let is_lead = is_cut || (after.starts_with(' ') && leads_on);
            (!trimmed.is_empty() && is_lead).then_some(rest.len() - trimmed.len())
        });
        match found.max() {
            Some(cut) => rest = &rest[cut..],
            None => return rest,
        }
    }
}

impl AgentState {
    /// Ends the thread.
    pub(super) fn end(&self, why: &str) -> Route {
        Route::End(Finish::Completed(json!({
            "reply": self.reply,
            "thread": self.thread,
            "ended": why,
            "last_turn": self.outcome(),
            "intermediate_steps": self.intermediate_steps,
        })))
    }

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
        self.begin_turn(source, at_ms, words, without_lead(words).to_owned());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_lead_to_a_change_are_left_out() {
        for (text, expected) in [
            ("no, make it 1.25 g q8h", "make it 1.25 g q8h"),
            ("No wait, make it 300", "make it 300"),
            ("yes but with 6 doses", "with 6 doses"),
            ("Yes, but over 2 hours", "over 2 hours"),
            ("same but over 2 hours", "over 2 hours"),
            ("wait, q24h instead", "q24h instead"),
            ("no, I meant theophylline 200 mg", "theophylline 200 mg"),
            ("ok make it 300", "make it 300"),
            ("no infusion", "no infusion"),
            ("no", "no"),
            ("stop after 3 doses", "stop after 3 doses"),
            ("no, not 300 mg", "not 300 mg"),
            ("notably 300", "notably 300"),
        ] {
            assert_eq!(without_lead(text), expected, "{text}");
        }
    }
}
