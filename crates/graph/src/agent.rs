//! Agents: graphs with their state type erased, so that they fit into one registry.

mod hosted;

pub use hosted::{leak, leak_all};

use std::fmt;
use std::sync::Arc;

use journal::step::{Step, StepBody};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::{Budget, Crossed};
use crate::check::{self, InvalidGraph, Names};
use crate::definition::{Attempts, Context, Graph, InputError, Route, Scope};
use crate::effect::{Chat, Effect, Reply};
use crate::error::{FoldError, ResumeError, StartError};
use crate::next::json_of;
use crate::origin::{Rule, Sources};
use crate::outcome::Outcome;
use crate::panics::{Panicked, caught};
use crate::presentation::Presentation;
use crate::profile::Profile;
use crate::program::Hosted;
use crate::run::{Run, Snapshot};

/// A graph with its state type erased.
#[derive(Clone)]
pub struct Agent {
    sheet: Arc<Sheet>,
    init: Arc<Init>,
    restore: Arc<Restore>,
    span_names: SpanNames,
    presentation: Presentation,
    input_schema: Option<Arc<Value>>,
    model: Option<String>,
    profile: &'static Profile,
    /// Each without earlier ones of its own.
    earlier: Vec<Agent>,
}

type Init = dyn Fn(&Value, &Settings) -> Result<Box<dyn Program>, InputError> + Send + Sync;
type Restore = dyn Fn(Value) -> Result<Box<dyn Program>, serde_json::Error> + Send + Sync;

/// The parts of a graph that do not depend on its state type.
#[derive(Clone, Debug)]
pub(crate) struct Sheet {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) start: &'static str,
    pub(crate) nodes: Vec<OutlineNode>,
    pub(crate) on_limit_to: &'static [&'static str],
    pub(crate) budget: Budget,
    pub(crate) scope: Scope,
    pub(crate) attempts: Attempts,
    pub(crate) at_most_once: &'static [&'static str],
    pub(crate) critical: &'static [&'static str],
    pub(crate) servers: &'static [&'static str],
    pub(crate) tool_timeout_s: u32,
    pub(crate) origins: Vec<Rule>,
    /// The program, if the agent is one.
    pub(crate) hosted: Option<Arc<Hosted>>,
    /// Whether its rules can replace a model.
    pub(crate) has_policy: bool,
}

/// Names of the spans of an agent's effects. An agent whose specification fixes these names sets
/// them; others keep the usual ones, such as `chat MODEL` and `execute_tool TOOL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanNames {
    /// The tracer of the spans.
    pub tracer: &'static str,
    /// Nodes whose effects have another span name, with that name.
    pub nodes: &'static [(&'static str, &'static str)],
    /// Prefix of a tool call's span name, if not the usual one.
    pub tool: Option<&'static str>,
}

impl SpanNames {
    /// The tracer of agents that set none.
    pub const TRACER: &'static str = "daybook";

    pub const USUAL: Self = Self { tracer: Self::TRACER, nodes: &[], tool: None };

    /// The span name of a node, if not the usual one.
    pub fn node(&self, node: &str) -> Option<&'static str> {
        self.nodes.iter().find(|(name, _)| *name == node).map(|(_, span)| *span)
    }
}

/// A node in an outline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlineNode {
    pub name: &'static str,
    /// The nodes it may route to.
    pub to: &'static [&'static str],
}

/// The outline of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The start node.
    pub start: &'static str,
    pub nodes: Vec<OutlineNode>,
}

/// A session's settings, from its trigger and the configuration. Journaled with the first claim, so
/// that a resumed session keeps the settings it started with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The model's name; `None` for the policy.
    pub model: Option<String>,
    /// What to do when the model fails permanently.
    pub on_model_failure: OnModelFailure,
    /// Limits that take precedence over those of the agent.
    pub budget: Budget,
    /// Tools that are critical in addition to the agent's own.
    pub critical: Vec<String>,
    /// Tools that are at-most-once in addition to the agent's own.
    pub at_most_once: Vec<String>,
    /// What may feed the arguments of tools, in addition to the agent's own rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<Rule>,
    /// Timeout of a tool call, in seconds; `None` for the agent's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_timeout_s: Option<u32>,
    /// The agent's own options, an object; absent ones have the agent's defaults.
    pub options: Value,
}

/// What to do when the model fails permanently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnModelFailure {
    /// The agent's policy takes over for the rest of the session.
    #[default]
    Policy,
    /// The session fails with the failure's category.
    Fail,
}

/// The payload of the first claim: `{"input", "settings"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opening {
    pub input: Value,
    #[serde(default)]
    pub settings: Settings,
}

impl Opening {
    pub fn payload(&self) -> Value {
        json_of(self)
    }

    /// Reads the first step.
    ///
    /// # Errors
    /// The step is not a claim, or has another payload.
    pub fn of(first: &Step<Value>) -> Result<Self, FoldError> {
        let seq = first.seq;
        match &first.body {
            StepBody::Claim { input: Some(payload), .. } => serde_json::from_value(payload.clone())
                .map_err(|error| FoldError::Malformed { seq, reason: error.to_string() }),
            body => Err(FoldError::Unexpected {
                seq,
                kind: body.kind(),
                why: "the first step must be a claim with input and settings",
            }),
        }
    }
}

impl Agent {
    pub fn of<S>(graph: &'static Graph<S>) -> Self
    where
        S: Clone + fmt::Debug + Send + Sync + Serialize + DeserializeOwned + 'static,
    {
        Self::from_parts(graph, graph.init, serde_json::from_value)
    }

    /// An agent whose states need more than an input or a snapshot: `init` replaces the graph's, and `restore` reads a
    /// state from a snapshot. Both must be pure.
    pub fn from_parts<S>(
        graph: &'static Graph<S>,
        init: impl Fn(&Value, &Settings) -> Result<S, InputError> + Send + Sync + 'static,
        restore: impl Fn(Value) -> Result<S, serde_json::Error> + Send + Sync + 'static,
    ) -> Self
    where
        S: Clone + fmt::Debug + Send + Sync + Serialize + 'static,
    {
        let nodes = graph.nodes.iter().map(|node| OutlineNode { name: node.name, to: node.to });
        let sheet = Sheet {
            name: graph.name,
            version: graph.version,
            summary: graph.summary,
            start: graph.start,
            nodes: nodes.collect(),
            on_limit_to: graph.on_limit_to,
            budget: graph.budget,
            scope: graph.scope,
            attempts: graph.attempts,
            at_most_once: graph.at_most_once,
            critical: graph.critical,
            servers: graph.servers,
            tool_timeout_s: graph.tool_timeout_s,
            origins: Vec::new(),
            hosted: None,
            has_policy: true,
        };
        Self {
            sheet: Arc::new(sheet),
            span_names: SpanNames::USUAL,
            presentation: Presentation::DEFAULT,
            init: Arc::new(move |input, settings| {
                Ok(Box::new(Loaded { graph, state: init(input, settings)? }))
            }),
            restore: Arc::new(move |state| Ok(Box::new(Loaded { graph, state: restore(state)? }))),
            input_schema: None,
            model: None,
            profile: &Profile::PLAIN,
            earlier: Vec::new(),
        }
    }

    /// An agent without rules: sessions without a model, or whose model fails, fail.
    #[must_use]
    pub fn without_policy(mut self) -> Self {
        Arc::make_mut(&mut self.sheet).has_policy = false;
        self
    }

    /// Sets the model of sessions whose trigger names none, as a trigger names it.
    #[must_use]
    pub fn with_model(self, model: Option<String>) -> Self {
        Self { model, ..self }
    }

    /// The model of sessions whose trigger names none.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Keeps another version of this agent, for the sessions that began with it. New sessions begin with `self`.
    #[must_use]
    pub fn with_earlier(mut self, mut earlier: Self) -> Self {
        let others = std::mem::take(&mut earlier.earlier);
        self.earlier.push(earlier);
        self.earlier.extend(others);
        self
    }

    /// All versions of this agent, the one for new sessions first.
    pub fn versions(&self) -> impl DoubleEndedIterator<Item = &Self> {
        std::iter::once(self).chain(&self.earlier)
    }

    /// The agent in this version.
    pub fn at(&self, version: &str) -> Option<&Self> {
        self.versions().find(|agent| agent.version() == version)
    }

    /// Sets the span names.
    #[must_use]
    pub fn with_span_names(self, span_names: SpanNames) -> Self {
        Self { span_names, ..self }
    }

    pub fn span_names(&self) -> SpanNames {
        self.span_names
    }

    /// Sets how the agent's sessions are shown.
    #[must_use]
    pub fn with_presentation(self, presentation: Presentation) -> Self {
        Self { presentation, ..self }
    }

    pub fn presentation(&self) -> Presentation {
        self.presentation
    }

    /// Sets the JSON schema of the input, for people and editors. Inputs are validated by
    /// [`Graph::init`](crate::definition::Graph::init).
    #[must_use]
    pub fn with_input_schema(self, schema: Value) -> Self {
        Self { input_schema: Some(Arc::new(schema)), ..self }
    }

    /// Sets the agent's profile.
    #[must_use]
    pub fn with_profile(self, profile: &'static Profile) -> Self {
        Self { profile, ..self }
    }

    pub fn profile(&self) -> &'static Profile {
        self.profile
    }

    /// Sets what may feed the arguments of its tools. Configuration can add rules and remove none.
    #[must_use]
    pub fn with_origins(mut self, rules: Vec<Rule>) -> Self {
        Arc::make_mut(&mut self.sheet).origins = rules;
        self
    }

    /// What may feed the arguments of its tools.
    pub fn origins(&self) -> &[Rule] {
        &self.sheet.origins
    }

    pub fn name(&self) -> &'static str {
        self.sheet.name
    }

    pub fn version(&self) -> &'static str {
        self.sheet.version
    }

    pub fn summary(&self) -> &'static str {
        self.sheet.summary
    }

    /// The JSON schema of its input, if set.
    pub fn input_schema(&self) -> Option<&Value> {
        self.input_schema.as_deref()
    }

    pub fn servers(&self) -> &'static [&'static str] {
        self.sheet.servers
    }

    /// Its at-most-once tools.
    pub fn at_most_once(&self) -> &'static [&'static str] {
        self.sheet.at_most_once
    }

    /// Its tools that need a person's approval.
    pub fn critical(&self) -> &'static [&'static str] {
        self.sheet.critical
    }

    pub fn budget(&self) -> Budget {
        self.sheet.budget
    }

    /// Timeout of a tool call, in seconds.
    pub fn tool_timeout_s(&self) -> u32 {
        self.sheet.tool_timeout_s
    }

    /// Validates the graph's names. Programs check each registered agent.
    ///
    /// # Errors
    /// If a route, the start or `on_limit_to` does not name a node, two nodes have the same name, or a node
    /// is unreachable. Also if a version has the name of another agent, or no name of its own.
    pub fn check(&self) -> Result<(), InvalidGraph> {
        let agent = self.name();
        let mut problems = check::versions(self);
        for version in self.versions() {
            let Sheet { start, nodes, on_limit_to, .. } = &*version.sheet;
            problems.extend(Names { start, nodes, on_limit_to }.problems());
        }
        if problems.is_empty() { Ok(()) } else { Err(InvalidGraph { agent, problems }) }
    }

    /// The graph, for display.
    pub fn outline(&self) -> Outline {
        Outline { start: self.sheet.start, nodes: self.sheet.nodes.clone() }
    }

    /// A run before its first step. Fold the first claim next.
    ///
    /// # Errors
    /// See [`StartError`]. End the session with [`StartError::finish`].
    pub fn start(&self, input: &Value, settings: &Settings) -> Result<Run, StartError> {
        let program = caught("the start of the graph", || (self.init)(input, settings))??;
        Ok(Run::new(self.sheet.clone(), program, settings.clone()))
    }

    /// A run after `steps`, which start with the session's first. Steps before the newest question
    /// come from that question's snapshot and are not folded again.
    ///
    /// # Errors
    /// The input is invalid or a step cannot be folded. End the session with
    /// [`ResumeError::finish`].
    pub fn resume(&self, steps: &[Step<Value>]) -> Result<Run, ResumeError> {
        let Some(first) = steps.first() else {
            return Err(FoldError::OutOfSequence { expected: 1, found: 0 }.into());
        };
        let opening = Opening::of(first)?;
        // A program replays all of its steps.
        let is_asked = |step: &Step<Value>| matches!(step.body, StepBody::Ask { .. });
        let asked = steps.iter().rposition(|it| self.hosted().is_none() && is_asked(it));
        let (mut run, rest) = match asked {
            Some(index) => {
                let mut run = self.restore(&steps[index], opening.settings)?;
                run.sources = Sources::of(&steps[..index]);
                (run, &steps[index..])
            }
            None => (self.start(&opening.input, &opening.settings)?, steps),
        };
        rest.iter().try_for_each(|step| run.fold(step))?;
        Ok(run)
    }

    fn restore(&self, ask: &Step<Value>, settings: Settings) -> Result<Run, FoldError> {
        let malformed = |error: serde_json::Error| FoldError::Malformed {
            seq: ask.seq,
            reason: format!("invalid snapshot for this graph: {error}"),
        };
        let snapshot = ask.body.payload().and_then(|payload| payload.get("snapshot"));
        let snapshot: Snapshot =
            serde_json::from_value(snapshot.cloned().unwrap_or_default()).map_err(malformed)?;
        let state = snapshot.state.clone();
        let program = caught("the reading of the state", || (self.restore)(state))
            .map_err(|panicked| FoldError::Panicked { seq: ask.seq, panicked })?
            .map_err(malformed)?;
        Ok(Run::restored(self.sheet.clone(), program, settings, snapshot))
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Agent").field(&self.sheet.name).field(&self.sheet.version).finish()
    }
}

/// A graph together with its state: everything that depends on the state type. A panic of the agent's
/// code is an error.
pub(crate) trait Program: Send + Sync {
    /// The node's effect; `None` if the node does not exist.
    fn ask(&self, node: &str, context: &Context<'_>) -> Result<Option<Effect>, Panicked>;
    /// Has the node fold the outcome. The node exists, because it requested the effect.
    fn fold(&mut self, node: &str, outcome: Outcome) -> Result<Option<Route>, Panicked>;
    fn on_limit(&mut self, crossed: Crossed) -> Result<Route, Panicked>;
    fn policy(&self, chat: &Chat) -> Result<Reply, Panicked>;
    fn state(&self) -> Result<Value, StateError>;
}

/// Why a state cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error(transparent)]
    NotSerialisable(#[from] serde_json::Error),
    #[error(transparent)]
    Panicked(#[from] Panicked),
}

struct Loaded<S: 'static> {
    graph: &'static Graph<S>,
    state: S,
}

impl<S> Loaded<S> {
    fn node(&self, name: &str) -> Option<&'static crate::definition::Node<S>> {
        self.graph.nodes.iter().find(|node| node.name == name)
    }
}

impl<S: Send + Sync + Serialize + 'static> Program for Loaded<S> {
    fn ask(&self, node: &str, context: &Context<'_>) -> Result<Option<Effect>, Panicked> {
        let Some(node) = self.node(node) else { return Ok(None) };
        let function = format!("the request of node `{}`", node.name);
        caught(&function, || (node.ask)(&self.state, context)).map(Some)
    }

    fn fold(&mut self, node: &str, outcome: Outcome) -> Result<Option<Route>, Panicked> {
        let Some(node) = self.node(node) else { return Ok(None) };
        let function = format!("the fold of node `{}`", node.name);
        caught(&function, || (node.fold)(&mut self.state, outcome)).map(Some)
    }

    fn on_limit(&mut self, crossed: Crossed) -> Result<Route, Panicked> {
        caught("the reaction to a limit", || (self.graph.on_limit)(&mut self.state, crossed))
    }

    fn policy(&self, chat: &Chat) -> Result<Reply, Panicked> {
        caught("the policy", || (self.graph.policy)(&self.state, chat))
    }

    fn state(&self) -> Result<Value, StateError> {
        Ok(caught("the writing of the state", || serde_json::to_value(&self.state))??)
    }
}
