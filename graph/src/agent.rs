//! Agents: graphs whose state's type is hidden, so that they fit one registry.

use std::fmt;
use std::sync::Arc;

use journal::step::{Step, StepBody};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::{Budget, Crossed};
use crate::definition::{Attempts, Context, Graph, InputError, Route, Scope};
use crate::effect::{Chat, Effect, Reply};
use crate::error::{FoldError, ResumeError};
use crate::next::json_of;
use crate::outcome::Outcome;
use crate::run::{Run, Snapshot};

/// A graph whose state's type is hidden.
#[derive(Clone)]
pub struct Agent {
    sheet: Arc<Sheet>,
    init: Arc<Init>,
    restore: Arc<Restore>,
    span_names: SpanNames,
    input_schema: Option<Arc<Value>>,
}

type Init = dyn Fn(&Value, &Settings) -> Result<Box<dyn Program>, InputError> + Send + Sync;
type Restore = dyn Fn(Value) -> Result<Box<dyn Program>, serde_json::Error> + Send + Sync;

/// What a graph says of itself apart from its state's type.
#[derive(Debug)]
pub(crate) struct Sheet {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) start: &'static str,
    pub(crate) nodes: Vec<OutlineNode>,
    pub(crate) budget: Budget,
    pub(crate) scope: Scope,
    pub(crate) attempts: Attempts,
    pub(crate) at_most_once: &'static [&'static str],
    pub(crate) critical: &'static [&'static str],
    pub(crate) servers: &'static [&'static str],
    pub(crate) tool_timeout_s: u32,
}

/// What the spans of an agent's effects are called, in the trace that a session leaves. An agent
/// whose specification fixes these names says so; all others keep the field's usual names, such as
/// `chat MODEL` and `execute_tool TOOL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanNames {
    /// The tracer that the spans are of.
    pub tracer: &'static str,
    /// Nodes whose effects have a span of another name: node and name.
    pub nodes: &'static [(&'static str, &'static str)],
    /// What stands before the tool's name in the span of a tool call, if not the usual name.
    pub tool: Option<&'static str>,
}

impl SpanNames {
    /// The tracer of agents that name none.
    pub const TRACER: &'static str = "daybook";

    /// The usual names.
    pub const USUAL: Self = Self { tracer: Self::TRACER, nodes: &[], tool: None };

    /// The name that a node's spans have, if it is not the usual one.
    pub fn node(&self, node: &str) -> Option<&'static str> {
        self.nodes.iter().find(|(name, _)| *name == node).map(|(_, span)| *span)
    }
}

/// A node as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlineNode {
    /// Its name.
    pub name: &'static str,
    /// The nodes that it may route to.
    pub to: &'static [&'static str],
}

/// A graph as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The node where a run starts.
    pub start: &'static str,
    /// The nodes.
    pub nodes: Vec<OutlineNode>,
}

/// What a trigger and the configuration set for one session. Journaled with the first claim, so
/// that a resumed session goes on with the settings that it began with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The model's name; `None` is the policy.
    pub model: Option<String>,
    /// What happens when the model fails for good.
    pub on_model_failure: OnModelFailure,
    /// Where it says something, it stands over the agent's own budget.
    pub budget: Budget,
    /// Tools that are critical besides the agent's own.
    pub critical: Vec<String>,
    /// Tools that are at-most-once besides the agent's own.
    pub at_most_once: Vec<String>,
    /// How long a tool call may take, in seconds; `None` leaves it to the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_timeout_s: Option<u32>,
    /// The agent's own options, an object; what is absent has the agent's default.
    pub options: Value,
}

/// What happens when the model fails for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnModelFailure {
    /// The agent's policy takes over for the rest of the session.
    #[default]
    Policy,
    /// The session fails with the failure's category.
    Fail,
}

/// What the first claim holds: `{"input", "settings"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opening {
    /// The trigger's input.
    pub input: Value,
    /// The settings.
    #[serde(default)]
    pub settings: Settings,
}

impl Opening {
    /// The first claim's payload.
    pub fn payload(&self) -> Value {
        json_of(self)
    }

    /// Reads the first step.
    ///
    /// # Errors
    /// When it is not a claim, or holds something else.
    pub fn of(first: &Step<Value>) -> Result<Self, FoldError> {
        let seq = first.seq;
        match &first.body {
            StepBody::Claim { input: Some(payload), .. } => serde_json::from_value(payload.clone())
                .map_err(|error| FoldError::Malformed { seq, reason: error.to_string() }),
            body => Err(FoldError::Unexpected {
                seq,
                kind: body.kind(),
                why: "the first step is a claim with input and settings",
            }),
        }
    }
}

impl Agent {
    /// The agent of a graph.
    pub fn of<S>(graph: &'static Graph<S>) -> Self
    where
        S: Clone + fmt::Debug + Send + Sync + Serialize + DeserializeOwned + 'static,
    {
        let nodes = graph.nodes.iter().map(|node| OutlineNode { name: node.name, to: node.to });
        let sheet = Sheet {
            name: graph.name,
            version: graph.version,
            summary: graph.summary,
            start: graph.start,
            nodes: nodes.collect(),
            budget: graph.budget,
            scope: graph.scope,
            attempts: graph.attempts,
            at_most_once: graph.at_most_once,
            critical: graph.critical,
            servers: graph.servers,
            tool_timeout_s: graph.tool_timeout_s,
        };
        Self {
            sheet: Arc::new(sheet),
            span_names: SpanNames::USUAL,
            init: Arc::new(move |input, settings| {
                Ok(Box::new(Loaded { graph, state: (graph.init)(input, settings)? }))
            }),
            restore: Arc::new(move |state| {
                Ok(Box::new(Loaded { graph, state: serde_json::from_value(state)? }))
            }),
            input_schema: None,
        }
    }

    /// The same agent, whose spans are called so.
    #[must_use]
    pub fn with_span_names(self, span_names: SpanNames) -> Self {
        Self { span_names, ..self }
    }

    /// What its spans are called.
    pub fn span_names(&self) -> SpanNames {
        self.span_names
    }

    /// The same agent with the JSON schema of its input, for people and for editors; what judges an
    /// input is [`Graph::init`](crate::definition::Graph::init).
    #[must_use]
    pub fn with_input_schema(self, schema: Value) -> Self {
        Self { input_schema: Some(Arc::new(schema)), ..self }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.sheet.name
    }

    /// Its graph's version.
    pub fn version(&self) -> &'static str {
        self.sheet.version
    }

    /// What it does.
    pub fn summary(&self) -> &'static str {
        self.sheet.summary
    }

    /// The JSON schema of its input, if it was given one.
    pub fn input_schema(&self) -> Option<&Value> {
        self.input_schema.as_deref()
    }

    /// The MCP servers that it wants.
    pub fn servers(&self) -> &'static [&'static str] {
        self.sheet.servers
    }

    /// Its tools that change the world.
    pub fn at_most_once(&self) -> &'static [&'static str] {
        self.sheet.at_most_once
    }

    /// Its tools that a person must approve.
    pub fn critical(&self) -> &'static [&'static str] {
        self.sheet.critical
    }

    /// Its own budget.
    pub fn budget(&self) -> Budget {
        self.sheet.budget
    }

    /// How long a tool call may take, in seconds.
    pub fn tool_timeout_s(&self) -> u32 {
        self.sheet.tool_timeout_s
    }

    /// The graph, for display.
    pub fn outline(&self) -> Outline {
        Outline { start: self.sheet.start, nodes: self.sheet.nodes.clone() }
    }

    /// A run before its first step. Fold the first claim next.
    ///
    /// # Errors
    /// When the input is not one of this agent's. The session ends with [`InputError::finish`].
    pub fn start(&self, input: &Value, settings: &Settings) -> Result<Run, InputError> {
        let program = (self.init)(input, settings)?;
        Ok(Run::new(self.sheet.clone(), program, settings.clone()))
    }

    /// A run after `steps`, which are the session's from the first on. What came before the newest
    /// question is taken from that question's snapshot and not folded again.
    ///
    /// # Errors
    /// When the input does not fit or a step cannot be folded. The session ends with
    /// [`ResumeError::finish`].
    pub fn resume(&self, steps: &[Step<Value>]) -> Result<Run, ResumeError> {
        let Some(first) = steps.first() else {
            return Err(FoldError::OutOfSequence { expected: 1, found: 0 }.into());
        };
        let opening = Opening::of(first)?;
        let asked = steps.iter().rposition(|step| matches!(step.body, StepBody::Ask { .. }));
        let (mut run, rest) = match asked {
            Some(index) => (self.restore(&steps[index], opening.settings)?, &steps[index..]),
            None => (self.start(&opening.input, &opening.settings)?, steps),
        };
        rest.iter().try_for_each(|step| run.fold(step))?;
        Ok(run)
    }

    fn restore(&self, ask: &Step<Value>, settings: Settings) -> Result<Run, FoldError> {
        let malformed = |error: serde_json::Error| FoldError::Malformed {
            seq: ask.seq,
            reason: format!("no snapshot of this graph: {error}"),
        };
        let snapshot = ask.body.payload().and_then(|payload| payload.get("snapshot"));
        let snapshot: Snapshot =
            serde_json::from_value(snapshot.cloned().unwrap_or_default()).map_err(malformed)?;
        let program = (self.restore)(snapshot.state.clone()).map_err(malformed)?;
        Ok(Run::restored(self.sheet.clone(), program, settings, snapshot))
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Agent").field(&self.sheet.name).field(&self.sheet.version).finish()
    }
}

/// A graph together with its state: all that depends on the state's type.
pub(crate) trait Program: Send + Sync {
    /// What the node asks for; `None` if there is no such node.
    fn ask(&self, node: &str, context: &Context<'_>) -> Option<Effect>;
    /// Lets the node fold what came. The node exists, for its effect was asked for.
    fn fold(&mut self, node: &str, outcome: Outcome) -> Option<Route>;
    fn on_limit(&mut self, crossed: Crossed) -> Route;
    fn policy(&self, chat: &Chat) -> Reply;
    fn state(&self) -> Result<Value, serde_json::Error>;
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
    fn ask(&self, node: &str, context: &Context<'_>) -> Option<Effect> {
        self.node(node).map(|node| (node.ask)(&self.state, context))
    }

    fn fold(&mut self, node: &str, outcome: Outcome) -> Option<Route> {
        self.node(node).map(|node| (node.fold)(&mut self.state, outcome))
    }

    fn on_limit(&mut self, crossed: Crossed) -> Route {
        (self.graph.on_limit)(&mut self.state, crossed)
    }

    fn policy(&self, chat: &Chat) -> Reply {
        (self.graph.policy)(&self.state, chat)
    }

    fn state(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(&self.state)
    }
}
