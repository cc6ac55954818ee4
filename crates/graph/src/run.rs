//! The run of one session.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use journal::clock::Stamp;
use journal::step::{AnsweredBy, StepBody};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::{Outline, Program, Settings, Sheet, StateError};
use crate::budget::{Budget, Meter, Used};
use crate::definition::{Context, Finish, Route};
use crate::desk::Desk;
use crate::digest;
use crate::effect::{CATALOGUE, CATALOGUE_AT_MOST_ONCE, Chat, Effect, Reply, ToolCall};
use crate::open::{CallState, CallWork, Open, Pending};
use crate::origin::{Rule, Sources, Traced};
use crate::outcome::{Failure, Outcome, OutcomeBody, ToolResult};
use crate::panics::Panicked;
use crate::plan::{CATEGORY_GRAPH, graph_failed};

/// Category of a chat of a session without a model, of an agent without a policy.
pub const CATEGORY_NO_MODEL: &str = "no_model";

const NO_POLICY: &str =
    "the session names no model, and this agent has no rules that could answer instead";

/// Node visits without an effect after which a run fails.
pub const MOVES_MAX: u32 = 100;

/// The run of one session: folds steps and decides what comes next.
pub struct Run {
    pub(crate) sheet: Arc<Sheet>,
    pub(crate) program: Box<dyn Program>,
    pub(crate) settings: Settings,
    /// Tools that need approval, by code and by configuration.
    pub(crate) critical: Vec<String>,
    pub(crate) core: Core,
    pub(crate) phase: Phase,
    /// What arguments can come from. Not in snapshots: it is folded from all steps.
    pub(crate) sources: Sources,
}

/// The state of a run other than the graph's state and the open effect.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Core {
    /// The newest step's number.
    pub(crate) seq: u32,
    /// The newest step's time.
    pub(crate) now: Stamp,
    /// Graph version of the newest claim.
    pub(crate) recorded_version: String,
    /// Snapshots keep the name that the field had in the first version.
    #[serde(rename = "ledger")]
    pub(crate) meter: Meter,
    /// Approved calls that have not been started.
    pub(crate) approvals: Vec<Approval>,
    /// Tools that change the world according to their server, as `server.tool`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) at_most_once: Vec<String>,
    /// Whether the policy has replaced the model.
    pub(crate) fallback: bool,
    /// Who has replied to chats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answered_by: Option<AnsweredBy>,
    /// Tokens of lost chats that were abandoned because of a limit, already counted in the meter. The next chat's
    /// outcome records them, so that the records add up to the meter.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) left_tokens: u32,
}

/// An approved call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "RecordedApproval")]
pub(crate) struct Approval {
    /// Digest of the call.
    pub(crate) call: String,
    /// Hash of the tool that the person was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) schema: Option<String>,
}

/// An approval in a snapshot; earlier versions wrote the digest alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum RecordedApproval {
    Call(String),
    Shown { call: String, schema: Option<String> },
}

impl From<RecordedApproval> for Approval {
    fn from(recorded: RecordedApproval) -> Self {
        match recorded {
            RecordedApproval::Call(call) => Self { call, schema: None },
            RecordedApproval::Shown { call, schema } => Self { call, schema },
        }
    }
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one per run")]
pub(crate) enum Phase {
    Unclaimed,
    Open(Open),
    /// The agent is a program.
    Program(Box<Desk>),
    Over(Finish),
    Closed,
}

/// The snapshot in an ask step, so that newer code need not fold earlier steps.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) core: Core,
    pub(crate) open: Open,
    pub(crate) state: Value,
}

impl Run {
    pub(crate) fn new(sheet: Arc<Sheet>, program: Box<dyn Program>, settings: Settings) -> Self {
        let own = sheet.critical.iter().map(|name| (*name).to_owned());
        let critical = own.chain(settings.critical.iter().cloned()).collect();
        let (core, phase) = (Core::default(), Phase::Unclaimed);
        let sources = Sources::default();
        Self { sheet, program, settings, critical, core, phase, sources }
    }

    pub(crate) fn restored(
        sheet: Arc<Sheet>,
        program: Box<dyn Program>,
        settings: Settings,
        snapshot: Snapshot,
    ) -> Self {
        let Snapshot { core, open, state: _ } = snapshot;
        Self { core, phase: Phase::Open(open), ..Self::new(sheet, program, settings) }
    }

    pub fn agent(&self) -> &'static str {
        self.sheet.name
    }

    /// The session's options for its agent.
    pub fn options(&self) -> &Value {
        &self.settings.options
    }

    /// The model named by the session, even if the policy has replaced it.
    pub fn named_model(&self) -> Option<&str> {
        self.settings.model.as_deref()
    }

    /// Who has replied, if the policy has done so in place of a failed model.
    pub fn fell_back_to(&self) -> Option<AnsweredBy> {
        let replied = self.core.answered_by.filter(|_| self.core.fallback);
        replied.filter(|by| *by != AnsweredBy::Model)
    }

    /// The end step of this run. It says whether the policy replaced the model.
    pub fn end(&self, finish: Finish) -> StepBody<Value> {
        let mut body = finish.body();
        if let StepBody::End { answered_by, .. } = &mut body {
            *answered_by = self.fell_back_to();
        }
        body
    }

    /// The policy's reply to a chat.
    ///
    /// # Errors
    /// If the agent has no policy, or the policy panics. Journaled as the chat's outcome, the failure ends the session.
    pub fn policy(&self, chat: &Chat) -> Result<Reply, Failure> {
        if !self.sheet.has_policy {
            return Err(Failure::refused(CATEGORY_NO_MODEL, NO_POLICY));
        }
        let panicked = |panicked: Panicked| Failure::refused(CATEGORY_GRAPH, panicked.to_string());
        self.program.policy(chat).map_err(panicked)
    }

    pub fn outline(&self) -> Outline {
        Outline { start: self.sheet.start, nodes: self.sheet.nodes.clone() }
    }

    /// The node with the open effect; `None` before the first claim and after the last effect.
    pub fn node(&self) -> Option<&str> {
        self.open().map(|open| open.node.as_str())
    }

    /// The graph's state.
    ///
    /// # Errors
    /// It cannot be serialised, which is a bug in the graph.
    pub fn state_json(&self) -> Result<Value, StateError> {
        self.program.state()
    }

    pub fn usage(&self) -> Used {
        self.core.meter.total()
    }

    pub fn budget(&self) -> Budget {
        self.settings.budget.or(self.sheet.budget)
    }

    /// Timeout of a tool call, in seconds.
    pub fn tool_timeout_s(&self) -> u32 {
        self.settings.tool_timeout_s.unwrap_or(self.sheet.tool_timeout_s)
    }

    /// Time left at `now`; `None` without a limit, or when the limit was reached and the run is about to end.
    pub fn time_left(&self, now: Stamp) -> Option<Duration> {
        self.core.meter.time_left(&self.budget(), now)
    }

    /// Number of the newest folded step.
    pub fn seq(&self) -> u32 {
        self.core.seq
    }

    pub(crate) fn open(&self) -> Option<&Open> {
        match &self.phase {
            Phase::Open(open) => Some(open),
            Phase::Unclaimed | Phase::Program(_) | Phase::Over(_) | Phase::Closed => None,
        }
    }

    /// When every call has its result, in any order of arrival, the node folds them all.
    pub(crate) fn complete_tools(&mut self) {
        let Phase::Open(Open { pending: Pending::Tools(calls), .. }) = &self.phase else { return };
        let results: Option<Vec<_>> = calls.iter().map(CallWork::result).collect();
        if let Some(results) = results {
            self.complete(OutcomeBody::Results(results));
        }
    }

    /// Has the node fold the outcome, and follows its route.
    pub(crate) fn complete(&mut self, body: OutcomeBody) {
        let Some(node) = self.open().map(|open| open.node.clone()) else { return };
        let route = self.folded(&node, body);
        self.go(route);
    }

    fn folded(&mut self, node: &str, body: OutcomeBody) -> Route {
        let outcome = Outcome { seq: self.core.seq, at: self.core.now, body };
        let route = match self.program.fold(node, outcome) {
            Ok(route) => route,
            Err(panicked) => return Route::End(panicked.finish()),
        };
        let declared =
            self.sheet.nodes.iter().find(|known| known.name == node).map(|known| known.to);
        match (route, declared) {
            (Some(Route::To(to)), Some(declared)) if !declared.contains(&to) => Route::End(
                graph_failed("UndeclaredRoute", &format!("node `{node}` does not route to `{to}`")),
            ),
            (Some(route), _) => route,
            (None, _) => Route::End(no_such_node(node)),
        }
    }

    /// Follows a route to the next effect or the end.
    pub(crate) fn go(&mut self, mut route: Route) {
        for _ in 0..=MOVES_MAX {
            let node = match route {
                Route::To(node) => node,
                Route::End(finish) => {
                    self.phase = Phase::Over(finish);
                    return;
                }
            };
            self.core.meter.visit();
            let effect = match self.program.ask(node, &self.context()) {
                Ok(Some(effect)) => effect,
                Ok(None) => {
                    self.phase = Phase::Over(no_such_node(node));
                    return;
                }
                Err(panicked) => {
                    self.phase = Phase::Over(panicked.finish());
                    return;
                }
            };
            let body = match &effect {
                Effect::Tools(_) => OutcomeBody::Results(Vec::new()),
                _ => OutcomeBody::Nothing,
            };
            if let Some(open) = self.opened(node, effect) {
                self.phase = Phase::Open(open);
                return;
            }
            route = self.folded(node, body);
        }
        let message = format!("more than {MOVES_MAX} moves without an effect");
        self.phase = Phase::Over(graph_failed("TooManyMoves", &message));
    }

    /// What may feed arguments, by code and by configuration.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &Rule> {
        rules(&self.sheet, &self.settings)
    }

    fn context(&self) -> Context<'_> {
        Context {
            now: self.core.now,
            seq: self.core.seq,
            used: self.core.meter.scoped(),
            budget: self.budget(),
            critical: &self.critical,
        }
    }

    /// A call, and whether it needs a person's approval.
    pub(crate) fn call_work(&mut self, call: ToolCall) -> CallWork {
        let Self { sheet, settings, critical, core, sources, .. } = self;
        call_work(sheet, settings, critical, core, sources, call)
    }

    fn opened(&mut self, node: &str, effect: Effect) -> Option<Open> {
        let Self { sheet, settings, critical, core, sources, .. } = self;
        Open::new(node, effect, |call| call_work(sheet, settings, critical, core, sources, call))
            .map(|mut open| {
                if let Pending::Chat(work) = &mut open.pending {
                    work.unsettled_tokens = std::mem::take(&mut self.core.left_tokens);
                }
                open
            })
    }
}

fn call_work(
    sheet: &Sheet,
    settings: &Settings,
    critical: &[String],
    core: &mut Core,
    sources: &Sources,
    call: ToolCall,
) -> CallWork {
    let is_critical = call.is_in(critical);
    let needs_approval = is_critical || is_breach(rules(sheet, settings), sources, &call);
    let at_most_once = needs_approval
        || call.is_in(sheet.at_most_once)
        || call.is_in(&settings.at_most_once)
        || call.is_in(&core.at_most_once);
    let approval = core.use_approval(&call);
    let state = if needs_approval && approval.is_none() {
        CallState::Unapproved
    } else {
        CallState::Ready { not_before: None }
    };
    let schema = approval.and_then(|approval| approval.schema);
    CallWork { call, at_most_once, failed: 0, state, schema }
}

fn rules<'a>(sheet: &'a Sheet, settings: &'a Settings) -> impl Iterator<Item = &'a Rule> {
    sheet.origins.iter().chain(&settings.origins)
}

/// Whether the call has an argument whose origin a rule does not permit.
fn is_breach<'a>(
    rules: impl Iterator<Item = &'a Rule>,
    sources: &Sources,
    call: &ToolCall,
) -> bool {
    let rules: Vec<_> = rules.filter(|rule| rule.is_about(call)).collect();
    let traced = || Traced::judged(sources, rules.iter().copied(), call);
    !rules.is_empty() && traced().iter().any(|leaf| !leaf.is_permitted())
}

impl Core {
    /// Adopts a server's own list of tools that change the world.
    pub(crate) fn heed(&mut self, result: &ToolResult) {
        let (Some(server), Some(content)) = (&result.call.server, result.ok()) else { return };
        if result.call.tool != CATALOGUE {
            return;
        }
        let named = content.get(CATALOGUE_AT_MOST_ONCE).and_then(Value::as_array);
        for name in named.into_iter().flatten().filter_map(Value::as_str) {
            let name = format!("{server}.{name}");
            if !self.at_most_once.contains(&name) {
                self.at_most_once.push(name);
            }
        }
    }

    /// An approval covers one call: it is used up when the call is started.
    fn use_approval(&mut self, call: &ToolCall) -> Option<Approval> {
        let digest = digest::call(call);
        let place = self.approvals.iter().position(|approved| approved.call == digest.as_str())?;
        Some(self.approvals.remove(place))
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("core", &self.core)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn no_such_node(node: &str) -> Finish {
    graph_failed("UnknownNode", &format!("there is no node `{node}`"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn approvals_of_earlier_snapshots_are_read() {
        let recorded = json!(["ab", {"call": "cd"}, {"call": "ef", "schema": "12"}]);
        let approvals: Vec<Approval> = serde_json::from_value(recorded).unwrap();
        let read: Vec<_> = approvals.iter().map(|it| (&*it.call, it.schema.as_deref())).collect();
        assert_eq!(read, [("ab", None), ("cd", None), ("ef", Some("12"))]);
        assert_eq!(json!(approvals[2]), json!({"call": "ef", "schema": "12"}));
    }
}
