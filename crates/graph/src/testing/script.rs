//! Scripted outcomes for tests of an agent.
//!
//! ```
//! use graph::agent::{Agent, Settings};
//! use graph::definition::{Context, Finish, Graph, InputError, Node, Route};
//! use graph::effect::{Chat, Effect, Reply, ToolCall};
//! use graph::outcome::Outcome;
//! use graph::testing::script::Script;
//! use serde_json::{Value, json};
//!
//! // An agent that looks a name up and greets it.
//! static GREETER: Graph<String> = Graph::new("greeter", "Greets.", &NODES, init, policy);
//! static NODES: [Node<String>; 1] = [Node { name: "look_up", to: &[], ask, fold }];
//! fn init(input: &Value, _: &Settings) -> Result<String, InputError> {
//!     InputError::read(input)
//! }
//! fn ask(user: &String, _: &Context<'_>) -> Effect {
//!     Effect::Tools(vec![ToolCall::new("people", "name_of", json!({ "user": user }))])
//! }
//! fn fold(_: &mut String, outcome: Outcome) -> Route {
//!     let name = outcome.results()[0].ok().cloned();
//!     Route::End(Finish::Completed(json!({ "greeted": name })))
//! }
//! fn policy(_: &String, _: &Chat) -> Reply {
//!     Reply::says("")
//! }
//!
//! let (agent, input) = (Agent::of(&GREETER), json!("u7"));
//! let script = Script::new().tool("name_of", json!("Ada"));
//! assert_eq!(script.play(&agent, &input), Finish::Completed(json!({"greeted": "Ada"})));
//! script.every_prefix(&agent, &input);
//! script.every_budget(&agent, &input);
//! ```

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use journal::step::{EffectKind, Step, StepBody, Usage};
use serde_json::Value;

use super::{TestSession, World, every_prefix_after};
use crate::agent::{Agent, Settings};
use crate::budget::{Budget, Limit};
use crate::definition::Finish;
use crate::effect::{Author, Chat, Reply, ToolCall};
use crate::next::NOTE_BUDGET;
use crate::outcome::Brought;
use crate::question::{Answer, Decision, OpenQuestion};

/// Usage of each scripted reply of a model.
pub const REPLY_USAGE: Usage = Usage {
    input_tokens: 100,
    output_tokens: 20,
    unsettled_tokens: 0,
    micro_usd: 300,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    unpriced_tokens: 0,
};

/// Most allowances per limit that [`Script::every_budget`] tries, spread evenly.
pub const ALLOWANCES_MAX: u64 = 64;

/// The model in the settings of a session whose script has replies.
const MODEL: &str = "scripted";

/// Scripted outcomes of tools, a model and people, in the order of the requests.
///
/// Each tool has its own sequence, and so have the model and the people. The test fails if a
/// session requests something without a scripted outcome, or ends before all outcomes are used.
#[derive(Clone, Debug, Default)]
pub struct Script {
    tools: VecDeque<(String, Brought)>,
    replies: VecDeque<Brought>,
    answers: VecDeque<Answer>,
    settings: Settings,
}

/// An end caused by a budget.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    pub limit: Limit,
    pub allowed: u64,
    pub finish: Finish,
}

impl Script {
    /// A script without tools or model: the agent's policy replies to its chats.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next call of this tool, named `tool` or `server.tool`, returns this content.
    #[must_use]
    pub fn tool(self, name: &str, content: Value) -> Self {
        self.brings(name, Brought::Ok(content))
    }

    /// The next call of this tool has this outcome: an error, or a failure, which may be retried.
    #[must_use]
    pub fn brings(mut self, tool: &str, brought: Brought) -> Self {
        self.tools.push_back((tool.to_owned(), brought));
        self
    }

    /// The model's next reply, with the usage [`REPLY_USAGE`].
    #[must_use]
    pub fn model(mut self, reply: Reply) -> Self {
        self.settings.model.get_or_insert_with(|| MODEL.to_owned());
        self.replies.push_back(Brought::Reply(reply));
        self
    }

    /// The decision on the next question.
    #[must_use]
    pub fn person(self, decision: Decision) -> Self {
        self.answer(Answer::new(0, decision))
    }

    /// The answer to the next question, whatever its number.
    #[must_use]
    pub fn answer(mut self, answer: Answer) -> Self {
        self.answers.push_back(answer);
        self
    }

    /// Sets the session's settings.
    #[must_use]
    pub fn settings(self, settings: Settings) -> Self {
        let model = settings.model.or(self.settings.model);
        Self { settings: Settings { model, ..settings }, ..self }
    }

    /// Runs a session and returns its end.
    ///
    /// ```
    /// # mod greeter { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/testing/greeter.rs")); }
    /// # use {graph::definition::Finish, greeter::greeter, serde_json::json};
    /// # use graph::testing::script::Script;
    /// let script = Script::new().brings("name_of", graph::outcome::Brought::Error("gone".into()));
    /// let finish = script.play(&greeter(), &json!("u7"));
    /// assert_eq!(finish, Finish::Completed(json!({ "greeted": null })));
    /// ```
    ///
    /// # Panics
    /// The input is invalid, a request has no scripted outcome, or an outcome is unused.
    pub fn play(&self, agent: &Agent, input: &Value) -> Finish {
        let (_, finish, rest) = self.run(agent, input, &self.settings);
        rest.assert_nothing_left();
        finish
    }

    /// Runs a session, then resumes it from every prefix of its steps, as if its runner had been
    /// lost after each. Each run must reach the same end and repeat no journaled effect. Returns the
    /// steps of the first run.
    ///
    /// ```
    /// # mod greeter { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/testing/greeter.rs")); }
    /// # use {greeter::greeter, serde_json::json};
    /// # use graph::testing::script::Script;
    /// let script = Script::new().tool("name_of", json!("Ada"));
    /// let steps = script.every_prefix(&greeter(), &json!("u7"));
    /// assert_eq!(steps.len(), 3, "a claim, the tool's outcome, the end");
    /// ```
    ///
    /// A result that contains times or step numbers differs after a resume; use
    /// [`every_prefix_by`](super::every_prefix_by) to compare a view of it.
    ///
    /// # Panics
    /// As [`Self::play`] and [`every_prefix`](super::every_prefix).
    pub fn every_prefix(&self, agent: &Agent, input: &Value) -> Vec<Step<Value>> {
        let mut whole: Option<Rc<RefCell<Lines>>> = None;
        let world = |prefix: &[Step<Value>]| {
            let said = whole.as_ref().map(|lines| lines.borrow().said.clone()).unwrap_or_default();
            let lines = Rc::new(RefCell::new(Lines::of(self).after(prefix, &said)));
            whole.get_or_insert_with(|| Rc::clone(&lines));
            world_of(&lines)
        };
        every_prefix_after(agent, input, &self.settings, world, Clone::clone)
    }

    /// Runs a session, then runs it again with every smaller allowance of each limit that it uses.
    /// Each run must end normally or by the agent's own rule
    /// ([`Graph::on_limit`](crate::definition::Graph::on_limit)), never by the second bound. Returns
    /// the sessions that reached a limit, at least one.
    ///
    /// ```
    /// # mod greeter { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/testing/greeter.rs")); }
    /// # use {graph::definition::Finish, greeter::greeter, serde_json::json};
    /// # use graph::budget::Limit;
    /// # use graph::testing::script::Script;
    /// let script = Script::new().tool("name_of", json!("Ada"));
    /// let cuts = script.every_budget(&greeter(), &json!("u7"));
    /// assert_eq!((cuts[0].limit, cuts[0].allowed), (Limit::Visits, 0));
    /// let Finish::Failed { category, .. } = &cuts[0].finish else { panic!("{cuts:?}") };
    /// assert_eq!(category, "budget");
    /// ```
    ///
    /// # Panics
    /// A session ends differently, or a request has no scripted outcome.
    pub fn every_budget(&self, agent: &Agent, input: &Value) -> Vec<Cut> {
        let (whole, _, _) = self.run(agent, input, &self.settings);
        let used = whole.run().usage();
        let mut cuts = Vec::new();
        for limit in Limit::ALL {
            for allowed in allowances(used.of(limit)) {
                let budget = allowing(limit, allowed).or(self.settings.budget);
                let settings = Settings { budget, ..self.settings.clone() };
                let (session, finish, _) = self.run(agent, input, &settings);
                if session.steps().iter().any(|step| notes(step, limit)) {
                    assert_own_end(&finish, limit, allowed);
                    cuts.push(Cut { limit, allowed, finish });
                }
            }
        }
        assert!(!cuts.is_empty(), "no budget limit stops this session");
        cuts
    }

    fn run(
        &self,
        agent: &Agent,
        input: &Value,
        settings: &Settings,
    ) -> (TestSession, Finish, Lines) {
        let started = TestSession::start(agent, input.clone(), settings.clone());
        let mut session = started.unwrap_or_else(|error| panic!("{error}"));
        let lines = Rc::new(RefCell::new(Lines::of(self)));
        let finish = session.drive(&mut world_of(&lines));
        let rest = lines.borrow().clone();
        (session, finish, rest)
    }
}

/// The unused outcomes.
#[derive(Clone, Debug)]
struct Lines {
    script: Script,
    /// The tools that were called, as the script names them.
    said: Vec<String>,
}

impl Lines {
    fn of(script: &Script) -> Self {
        Self { script: script.clone(), said: Vec::new() }
    }

    /// What is left after these steps, of a session that called the tools in `said`.
    fn after(mut self, steps: &[Step<Value>], said: &[String]) -> Self {
        for tool in said.iter().take(count(steps, is_tools_outcome)) {
            let place = self.script.tools.iter().position(|(name, _)| name == tool);
            place.and_then(|place| self.script.tools.remove(place));
        }
        let replied = count(steps, is_models_outcome).min(self.script.replies.len());
        self.script.replies.drain(..replied);
        let answered = count(steps, is_scripted_answer(steps)).min(self.script.answers.len());
        self.script.answers.drain(..answered);
        self
    }

    fn tool(&mut self, call: &ToolCall) -> Brought {
        let place = self.script.tools.iter().position(|(name, _)| call.is_in(&[name]));
        let line = place.and_then(|place| self.script.tools.remove(place));
        let (name, brought) = line
            .unwrap_or_else(|| panic!("no scripted outcome for {} {}", call.tool, call.arguments));
        self.said.push(name);
        brought
    }

    fn model(&mut self, chat: &Chat) -> (Brought, Usage) {
        let reply = self.script.replies.pop_front();
        let reply =
            reply.unwrap_or_else(|| panic!("no scripted reply for a chat: {:?}", chat.messages));
        (reply, REPLY_USAGE)
    }

    fn person(&mut self, open: &OpenQuestion) -> Answer {
        let answer = self.script.answers.pop_front();
        let answer =
            answer.unwrap_or_else(|| panic!("no scripted answer to `{}`", open.question.prompt));
        Answer { question_id: open.question_id, ..answer }
    }

    fn assert_nothing_left(&self) {
        let Script { tools, replies, answers, .. } = &self.script;
        assert!(tools.is_empty(), "unused tool outcomes: {tools:?}");
        assert!(replies.is_empty(), "unused replies: {replies:?}");
        assert!(answers.is_empty(), "unused answers: {answers:?}");
    }
}

fn world_of<'a>(lines: &Rc<RefCell<Lines>>) -> World<'a> {
    let (tools, models, people) = (Rc::clone(lines), Rc::clone(lines), Rc::clone(lines));
    World::new(move |call| tools.borrow_mut().tool(call))
        .models(move |chat| models.borrow_mut().model(chat))
        .people(move |open| people.borrow_mut().person(open))
}

fn count(steps: &[Step<Value>], is: impl Fn(&Step<Value>) -> bool) -> usize {
    steps.iter().filter(|step| is(step)).count()
}

fn is_tools_outcome(step: &Step<Value>) -> bool {
    matches!(&step.body, StepBody::Outcome { effect, .. } if effect.kind == EffectKind::Tools)
}

/// Whether a model was asked: the policy needs no scripted reply.
fn is_models_outcome(step: &Step<Value>) -> bool {
    let StepBody::Outcome { effect, payload, .. } = &step.body else { return false };
    let brought: Option<Brought> = serde_json::from_value(payload.clone()).ok();
    let by_policy =
        |brought: &Brought| matches!(brought, Brought::Reply(r) if r.by == Author::Policy);
    effect.kind == EffectKind::Chat && brought.is_some_and(|brought| !by_policy(&brought))
}

/// A call with an unknown outcome is repeated without asking the test's people.
fn is_scripted_answer(steps: &[Step<Value>]) -> impl Fn(&Step<Value>) -> bool {
    let about = |question: u32| {
        let ask = steps.iter().find(|step| step.seq == question)?;
        ask.body.payload()?["about"].as_str()
    };
    move |step| match &step.body {
        StepBody::Answer { question, .. } => about(*question) != Some("doubt"),
        _ => false,
    }
}

fn notes(step: &Step<Value>, limit: Limit) -> bool {
    match &step.body {
        StepBody::Note { subject, payload, .. } => {
            subject == NOTE_BUDGET && payload["limit"] == limit.as_str()
        }
        _ => false,
    }
}

fn assert_own_end(finish: &Finish, limit: Limit, allowed: u64) {
    let Finish::Failed { error, .. } = finish else { return };
    let line = error.to_string();
    let is_bound =
        ["BudgetError: Exhausted", "GraphError:"].iter().any(|end| line.starts_with(end));
    assert!(
        !is_bound,
        "with {allowed} {} the agent does not end by its own rule: {line}",
        limit.as_str()
    );
}

/// Numbers below `used`, at most [`ALLOWANCES_MAX`], none if it is 0.
fn allowances(used: u64) -> impl Iterator<Item = u64> {
    let count = used.min(ALLOWANCES_MAX);
    (0..count).map(move |index| index * used / count)
}

fn allowing(limit: Limit, allowed: u64) -> Budget {
    let mut budget = Budget::UNLIMITED;
    let field = match limit {
        Limit::Tokens => &mut budget.tokens,
        Limit::Calls => &mut budget.calls,
        Limit::Visits => &mut budget.visits,
        Limit::Seconds => &mut budget.seconds,
        Limit::MicroUsd => &mut budget.micro_usd,
    };
    *field = Some(allowed);
    budget
}
