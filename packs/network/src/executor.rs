//! Runs a plan step: a model, or the rules, calls tools until the step is done.

use graph::definition::{Context, Route};
use graph::effect::{
    Author, Chat, Content, Effect, Message, Reply, ToolCall, ToolChoice, ToolSpec,
};
use graph::outcome::{Outcome, ToolResult};
use serde_json::{Value, json};

use super::graph::{ASSESSOR, EXECUTOR, TOOLS, chat, cut};
use super::interpret::{self, Action};
use super::state::{ExecutedToolCall, Finding, State};
use super::{findings, lexicon, prompt};

/// Most replies per step.
const ROUNDS_MAX: u32 = 6;

/// Most calls per reply.
const CALLS_MAX: usize = 64;

pub(super) fn ask_executor(state: &State, _: &Context<'_>) -> Effect {
    let ask = Message::user(state.work.source, prompt::step(state));
    Effect::Chat(Chat {
        system: prompt::executor(),
        messages: [ask].into_iter().chain(state.work.transcript.iter().cloned()).collect(),
        tools: state.work.offered.clone(),
        choice: ToolChoice::Auto,
        ..chat()
    })
}

pub(super) fn fold_executor(state: &mut State, outcome: Outcome) -> Route {
    let seq = outcome.seq;
    let reply = outcome.reply();
    state.work.rounds += 1;
    state.work.transcript.push(Message::assistant(seq, &reply));
    let is_over = reply.calls.is_empty() || state.work.rounds > ROUNDS_MAX;
    if is_over {
        state.work.source = seq;
        if matches!(reply.by, Author::Model(_)) && state.rules_take_over() {
            return Route::To(TOOLS);
        }
        return state.step_ends(reply.text.as_deref());
    }
    for (position, call) in reply.calls.iter().enumerate() {
        let is_this = |tool: &&ToolSpec| {
            tool.name == call.tool
                && call.server.as_ref().is_none_or(|s| Some(s) == tool.server.as_ref())
        };
        let known = state.work.offered.iter().find(is_this).map(|tool| tool.server.clone());
        match known {
            Some(server) if position < CALLS_MAX => {
                let call = interpret::for_device(
                    &ToolCall { server, ..call.clone() },
                    &state.device_name,
                    &state.work.offered,
                );
                match state.answered(&call) {
                    Some(made) => state.share(seq, &call, made),
                    None => state.work.pending.push(call),
                }
            }
            Some(_) => state.answer(seq, call, json!("not called: too many calls at once"), true),
            None => state.answer(seq, call, json!("unknown tool"), true),
        }
    }
    Route::To(if state.work.pending.is_empty() { EXECUTOR } else { TOOLS })
}

pub(super) fn ask_tools(state: &State, _: &Context<'_>) -> Effect {
    Effect::Tools(state.work.pending.clone())
}

pub(super) fn fold_tools(state: &mut State, outcome: Outcome) -> Route {
    state.work.pending.clear();
    for result in outcome.results() {
        state.observe(&result);
    }
    Route::To(EXECUTOR)
}

/// Rules in place of the model.
pub(super) fn execute(state: &State) -> Reply {
    let Some((_, step)) = state.step() else { return Reply::says("There is nothing to do.") };
    if state.work.rounds > 0 {
        return Reply::says("The step is done.");
    }
    match interpret::action_of(step, state.known(), &state.work.offered) {
        Action::Calls(calls) => Reply {
            text: Some("These tools match the step.".to_owned()),
            calls: state.for_each_device(calls),
            by: Author::Policy,
        },
        Action::NotNeeded => Reply::says("Not needed: its condition is not met."),
        Action::Impossible(why) => Reply::says(why),
    }
}

impl State {
    /// The calls for each device that the question is about.
    fn for_each_device(&self, calls: Vec<ToolCall>) -> Vec<ToolCall> {
        let devices: Vec<&str> = self.work.devices.iter().map(String::as_str).collect();
        interpret::for_devices(calls, &devices)
    }

    /// Has the rules choose the calls of a step for which the model called no known tool.
    fn rules_take_over(&mut self) -> bool {
        let Some((index, step)) = self.step() else { return false };
        let action = interpret::action_of(step, self.known(), &self.work.offered);
        let Action::Calls(calls) = action else { return false };
        if !self.work.made.is_empty() || self.work.is_by_rules {
            return false;
        }
        self.work.is_by_rules = true;
        self.work.pending = self.for_each_device(calls);
        self.limited(format!("step {}: the model called no known tool; the rules did", index + 1));
        true
    }

    /// Adds a step that reads the log, if something was found and no step has read it.
    fn explain(&mut self) {
        const STEP: &str = "Check the logs for messages about what was found.";
        let is_log = |tool: &str| lexicon::subjects(&interpret::name_words(tool)).contains(&"log");
        let results = self.execution_results.iter().flat_map(|result| &result.executed_calls);
        let is_read = results.map(|call| &call.function).any(|function| is_log(function));
        let is_offered = self.work.offered.iter().any(|tool| is_log(&tool.name));
        let is_new = self.working_plan_steps.iter().all(|step| step != STEP);
        if !self.work.findings.is_empty() && !is_read && is_offered && is_new {
            self.work.agenda.push(self.working_plan_steps.len());
            self.working_plan_steps.push(STEP.to_owned());
        }
    }

    /// Ends the current step with this text.
    fn step_ends(&mut self, said: Option<&str>) -> Route {
        if let Some((index, step)) = self.step()
            && self.work.made.is_empty()
            && interpret::condition(step).is_none()
        {
            let why = cut(said.unwrap_or("no tool was called"));
            self.work.not_done.insert(index, why.clone());
            self.limited(format!("step {}: {why}", index + 1));
        }
        self.step_is_done();
        if self.work.agenda.is_empty() {
            self.explain();
        }
        Route::To(if self.work.agenda.is_empty() { ASSESSOR } else { EXECUTOR })
    }

    /// Records a call's result and its findings.
    fn observe(&mut self, result: &ToolResult) {
        let Some((index, _)) = self.step() else { return };
        let function = result.call.tool.clone();
        let error = result.error().map(|error| cut(&error));
        let mut content = result.ok().cloned();
        match (&content, &error) {
            (Some(answer), _) => {
                let read = findings::read(&function, &result.call.arguments, answer);
                let label = self.label(&result.call.arguments);
                for wrong in read.wrong {
                    self.found(Finding {
                        step_index: index,
                        function: function.clone(),
                        finding: format!("{label}{}", wrong.text),
                        subjects: wrong.subjects.iter().map(|name| (*name).to_owned()).collect(),
                    });
                }
            }
            (None, Some(error)) => {
                self.limited(format!("step {}: {function} failed: {error}", index + 1));
            }
            (None, None) => {}
        }
        let shown = content.as_ref().map(shown).or_else(|| error.as_ref().map(|e| json!(e)));
        let is_error = content.is_none();
        self.answer(result.seq, &result.call, shown.unwrap_or_default(), is_error);
        let params = result.call.arguments.clone();
        if content == Some(Value::Null) {
            content = Some(json!({}));
        }
        self.work.made.push(ExecutedToolCall { function, params, result: content, error });
    }

    /// The device before a finding, if the question is not about it alone.
    fn label(&self, arguments: &Value) -> String {
        let asked = interpret::device_of(arguments).unwrap_or_default();
        let is_only = asked.is_empty() || self.work.devices.len() < 2 && asked == self.device_name;
        if is_only { String::new() } else { format!("{asked}: ") }
    }

    /// A repeated call shares the earlier answer.
    fn share(&mut self, source: u32, call: &ToolCall, made: ExecutedToolCall) {
        self.answer(source, call, made.result.as_ref().map(shown).unwrap_or_default(), false);
        self.work.made.push(made);
    }

    fn answer(&mut self, source: u32, call: &ToolCall, content: Value, is_error: bool) {
        let content = Content::Result {
            id: call.id.clone().unwrap_or_default(),
            tool: call.tool.clone(),
            content,
            is_error,
        };
        self.work.transcript.push(Message { source, content });
    }
}

/// The excerpt of an answer that a model sees.
fn shown(content: &Value) -> Value {
    let text = content.to_string();
    if text.len() <= prompt::ANSWER_CHARS_MAX {
        return content.clone();
    }
    let cut: String = text.chars().take(prompt::ANSWER_CHARS_MAX).collect();
    json!({"beginning": cut, "note": "the answer is cut to fit"})
}
