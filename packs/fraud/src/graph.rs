//! The graph: plan, call, plan again, conclude.
//!
//! ```text
//! start → planner ⇄ tool_executor
//!            │        └ after reasoning_tool, with a model that explains → explainer → planner
//!            ├ before recommendation_tool → evidence (a note) → tool_executor
//!            └ COMPLETE, the last step or the time limit → completion (an audit note) → the end
//! ```
//!
//! Version 1 has neither explainer nor evidence, and lets a planner end once reasoning and
//! recommendations were called, whether they answered or not.
//!
//! A tool that fails or times out counts as called: the planner continues without it, and the
//! result says so.

use graph::agent::{OnModelFailure, Settings, SpanNames};
use graph::budget::{Budget, Crossed, Limit};
use graph::definition::{Attempts, Context, Finish, Graph, InputError, Node, Route, Scope};
use graph::effect::{
    Author, Chat, Effect, INPUT_STEP, Message, Reply, ToolCall, ToolChoice, ToolSpec,
};
use graph::outcome::{Outcome, ToolOutcome, ToolResult};
use serde_json::Value;

use super::options::{Options, SECONDS_MAX, TOOL_SECONDS_MAX};
use super::planner::{self, SELECT};
use super::state::{
    Action, Answers, PlannerDecision, State, Status, ToolExecution, ToolStatus, cut, summary,
};
use super::tool::Tool;
use super::{answer, conclusion, explaining, input, prompt};

pub const SERVER: &str = "card-transactions";

/// The planning node. Its outcomes are the planner's decisions.
pub const PLANNER: &str = "planner";

/// The tool node. Its outcomes are the tools' answers.
pub const TOOL_EXECUTOR: &str = "tool_executor";

/// Subject of the note that every finished investigation writes before its end.
pub const AUDIT: &str = "audit";

/// Subject of the note with the evidence, which is written before the recommendations.
pub const EVIDENCE: &str = "evidence";

/// The node in which a model explains the evidence.
pub const EXPLAINER: &str = "explainer";

const START: &str = "start";
const COMPLETION: &str = "completion";

/// Error category when the planner makes an invalid choice and the fixed sequence is switched off.
pub const CATEGORY_PLANNER: &str = "planner";

/// Error category of a model that names only unknown tools.
pub const CATEGORY_MODEL: &str = "model_invalid";

/// A model whose first choices, this many, are unknown tools counts as one that failed.
const UNKNOWN_CHOICES_MAX: u32 = 3;

const MODEL_FAILED: &str = "the model named only tools that do not exist";

/// Longest stored tool error, in characters.
const ERROR_CHARS_MAX: usize = 500;

/// Span names.
///
/// Source: the fraud specification, section 12.
pub const SPAN_NAMES: SpanNames = SpanNames {
    tracer: "fraud-agent",
    nodes: &[(PLANNER, "agent.planner")],
    tool: Some("agent.tool."),
};

pub static GRAPH: Graph<State> = Graph {
    version: "2",
    nodes: &[
        Node { name: START, to: &[PLANNER], ask: |_, _| Effect::Nothing, fold: fold_start },
        Node {
            name: PLANNER,
            to: &[TOOL_EXECUTOR, EVIDENCE, COMPLETION],
            ask: ask_planner,
            fold: fold_decision,
        },
        Node { name: EVIDENCE, to: &[TOOL_EXECUTOR], ask: ask_evidence, fold: fold_evidence },
        Node { name: TOOL_EXECUTOR, to: &[PLANNER, EXPLAINER], ask: ask_tool, fold: fold_answer },
        Node { name: EXPLAINER, to: &[PLANNER], ask: ask_explainer, fold: fold_explanation },
        Node { name: COMPLETION, to: &[], ask: ask_completion, fold: fold_completion },
    ],
    init: |input, settings| Ok(State { version: 2, ..init(input, settings)? }),
    ..GRAPH_1
};

/// For the sessions that began with it.
pub static EARLIER: Graph<State> = GRAPH_1;

const GRAPH_1: Graph<State> = Graph {
    name: "fraud",
    version: "1",
    summary: "Investigates a card payment: likelihood of fraud and evidence.",
    start: START,
    nodes: &[
        Node { name: START, to: &[PLANNER], ask: |_, _| Effect::Nothing, fold: fold_start },
        Node {
            name: PLANNER,
            to: &[TOOL_EXECUTOR, COMPLETION],
            ask: ask_planner,
            fold: fold_decision,
        },
        Node { name: TOOL_EXECUTOR, to: &[PLANNER], ask: ask_tool, fold: fold_answer },
        Node { name: COMPLETION, to: &[], ask: ask_completion, fold: fold_completion },
    ],
    init,
    budget: Budget { seconds: Some(SECONDS_MAX), ..Budget::UNLIMITED },
    scope: Scope::Session,
    on_limit,
    on_limit_to: &[],
    policy: |state, chat| match &chat.choice {
        ToolChoice::Only(form) if form == explaining::EXPLAIN => Reply::says(""),
        _ => planner::reply(state),
    },
    // No retries: the fixed sequence replaces a failed planner at once, and a failed tool is
    // skipped.
    attempts: Attempts { chat: 1, tool: 1 },
    at_most_once: &[],
    critical: &[],
    servers: &[SERVER],
    tool_timeout_s: TOOL_SECONDS_MAX,
};

fn init(input: &Value, settings: &Settings) -> Result<State, InputError> {
    Ok(State {
        transaction_id: input::transaction_id(input)?,
        options: Options::of(settings)?,
        timeout_seconds: settings.budget.seconds.unwrap_or(SECONDS_MAX),
        has_model: settings.model.is_some(),
        on_model_failure: settings.on_model_failure,
        version: 1,
        unknown_choices: Some(0),
        model_failed: None,
        explanation: None,
        answers: Answers::default(),
        status: Status::Pending,
        completed_steps: vec![],
        next_action: None,
        step_count: 0,
        started_at: String::new(),
        completed_at: None,
        planner_decisions: vec![],
        tool_executions: vec![],
        is_unanswered: false,
        error: None,
        newest: INPUT_STEP,
    })
}

fn fold_start(state: &mut State, outcome: Outcome) -> Route {
    state.status = Status::InProgress;
    state.started_at = outcome.at.to_string();
    Route::To(PLANNER)
}

fn ask_planner(state: &State, _: &Context<'_>) -> Effect {
    let options = &state.options;
    if state.model_failed.is_some() {
        return Effect::Nothing;
    }
    Effect::Chat(Chat {
        system: prompt::SYSTEM.to_owned(),
        messages: vec![Message::user(state.newest, prompt::standing(state))],
        tools: vec![ToolSpec {
            server: None,
            name: SELECT.to_owned(),
            description: prompt::SELECT_DESCRIPTION.to_owned(),
            input_schema: planner::schema(),
        }],
        choice: ToolChoice::Only(SELECT.to_owned()),
        max_output_tokens: options.planner_max_tokens,
        temperature_percent: Some(options.planner_temperature_percent),
        timeout_s: Some(options.planner_timeout_seconds),
        form: None,
    })
}

fn fold_decision(state: &mut State, outcome: Outcome) -> Route {
    let (seq, at) = (outcome.seq, outcome.at.to_string());
    let reply = match &state.model_failed {
        Some(_) => planner::reply(state),
        None => outcome.reply(),
    };
    let choice = planner::read(&reply)
        .and_then(|choice| planner::check(state, choice.action).map(|()| choice));
    if let Some(route) = state.count_unknown(&reply, choice.as_ref().err()) {
        return route;
    }
    let (choice, rejected) = match choice {
        Ok(choice) => (choice, None),
        Err(problem) if state.options.planner_fallback => {
            let action = planner::next_of_sequence(state);
            let reason =
                "invalid choice of the planner: next tool of the fixed sequence".to_owned();
            (planner::Choice { action, reason, confidence_permille: 1_000 }, Some(problem))
        }
        Err(problem) => return state.failed_planning(&problem, at),
    };
    state.newest = seq;
    state.step_count += 1;
    state.next_action = Some(choice.action);
    state.planner_decisions.push(PlannerDecision {
        step: state.step_count,
        selected: choice.action,
        reason: choice.reason,
        confidence_permille: choice.confidence_permille,
        timestamp: at,
        used_fallback: rejected.is_some() || reply.by == Author::Policy,
        rejected,
    });
    match choice.action {
        Action::Call(tool) if state.step_count < state.options.max_steps => {
            let is_noted = state.version >= 2 && tool == Tool::Recommendation;
            Route::To(if is_noted { EVIDENCE } else { TOOL_EXECUTOR })
        }
        Action::Call(_) => {
            let most = state.options.max_steps;
            state.error = Some(format!("the limit of {most} steps was reached"));
            state.conclude()
        }
        Action::Complete => state.conclude(),
    }
}

/// The record before the recommendations.
fn ask_evidence(state: &State, _: &Context<'_>) -> Effect {
    Effect::Note { subject: EVIDENCE.to_owned(), payload: conclusion::insights(state) }
}

fn fold_evidence(_: &mut State, _: Outcome) -> Route {
    Route::To(TOOL_EXECUTOR)
}

fn ask_explainer(state: &State, _: &Context<'_>) -> Effect {
    Effect::Chat(explaining::chat(state))
}

fn fold_explanation(state: &mut State, outcome: Outcome) -> Route {
    state.newest = outcome.seq;
    state.explanation = explaining::read(state, &outcome.reply());
    Route::To(PLANNER)
}

fn ask_tool(state: &State, _: &Context<'_>) -> Effect {
    match state.next_action {
        Some(Action::Call(tool)) => {
            Effect::Tools(vec![ToolCall::new(SERVER, tool.name(), state.arguments(tool))])
        }
        Some(Action::Complete) | None => Effect::Nothing,
    }
}

fn fold_answer(state: &mut State, outcome: Outcome) -> Route {
    state.newest = outcome.seq;
    let Some(Action::Call(tool)) = state.next_action else { return Route::To(PLANNER) };
    for result in outcome.results() {
        let judged = match &result.outcome {
            ToolOutcome::Ok(content) => {
                answer::check(tool, &state.transaction_id, content).map(|()| content.clone())
            }
            ToolOutcome::Error(text) => Err(text.clone()),
            ToolOutcome::Failed(failure) => Err(failure.to_string()),
        };
        let timeout_ms = u64::from(state.options.tool_timeout_seconds) * 1_000;
        let (status, error_message, output) = match judged {
            Ok(content) => (ToolStatus::Success, None, content),
            Err(_) if has_no_answer(&result) && result.elapsed_ms >= timeout_ms => {
                let seconds = state.options.tool_timeout_seconds;
                let message = format!("the tool did not answer within {seconds} s");
                (ToolStatus::TimedOut, Some(message), Value::Null)
            }
            Err(text) => (ToolStatus::Failed, Some(cut(&text, ERROR_CHARS_MAX)), Value::Null),
        };
        state.is_unanswered = has_no_answer(&result);
        state.tool_executions.push(ToolExecution {
            tool_name: tool,
            input_summary: summary(&result.call.arguments),
            output_summary: summary(&output),
            execution_time_ms: result.elapsed_ms,
            status,
            error_message,
            timestamp: result.at.to_string(),
        });
        state.answers.set(tool, output);
    }
    state.completed_steps.push(tool);
    let is_explained = tool == Tool::Reasoning && state.is_explained_by_a_model();
    Route::To(if is_explained { EXPLAINER } else { PLANNER })
}

fn has_no_answer(result: &ToolResult) -> bool {
    matches!(result.outcome, ToolOutcome::Failed(_))
}

fn on_limit(state: &mut State, crossed: Crossed) -> Route {
    let Crossed { limit, allowed, node, .. } = crossed;
    if limit == Limit::Seconds {
        state.status = Status::TimedOut;
        // The deadline of the investigation stopped the tool; the tool itself did not fail.
        if node == PLANNER && state.is_unanswered {
            state.cut_off_last();
        }
    }
    state.error = Some(format!("the limit of {allowed} {} was reached", limit.as_str()));
    state.next_action = Some(Action::Complete);
    state.conclude()
}

/// The last record before the end: the decisions, who made them, and the conclusion.
fn ask_completion(state: &State, _: &Context<'_>) -> Effect {
    Effect::Note { subject: AUDIT.to_owned(), payload: conclusion::audit(state) }
}

fn fold_completion(state: &mut State, outcome: Outcome) -> Route {
    state.completed_at = Some(outcome.at.to_string());
    Route::End(conclusion::finish(state))
}

impl State {
    /// Sets the final status.
    fn conclude(&mut self) -> Route {
        if self.status == Status::TimedOut {
            return Route::To(COMPLETION);
        }
        self.status = Status::Completed;
        if let Err(missing) = conclusion::sufficient(self)
            && self.version >= 2
        {
            self.error.get_or_insert(missing);
        }
        if !conclusion::has_evidence(self) {
            self.status = Status::Failed;
            let first = self.tool_executions.iter().find_map(|done| done.error_message.clone());
            self.error = first.or_else(|| self.error.take());
        }
        Route::To(COMPLETION)
    }

    fn cut_off_last(&mut self) {
        if let Some(last) = self.tool_executions.last_mut() {
            last.status = ToolStatus::TimedOut;
            let ms = last.execution_time_ms;
            last.error_message = Some(format!(
                "the tool had not answered after {ms} ms, when the investigation's time was up"
            ));
        }
    }

    fn is_explained_by_a_model(&self) -> bool {
        self.version >= 2
            && self.has_model
            && self.options.reasoning_llm
            && self.model_failed.is_none()
            && self.answers.has(Tool::Reasoning)
    }

    /// Counts the model's unknown tools until it makes a valid choice. A model that names nothing else has
    /// failed: the fixed sequence goes on without it, or the session fails.
    fn count_unknown(&mut self, reply: &Reply, problem: Option<&String>) -> Option<Route> {
        if self.version < 2 || reply.by == Author::Policy {
            return None;
        }
        let is_unknown = problem.is_some_and(|problem| planner::is_unknown(problem));
        self.unknown_choices = match self.unknown_choices {
            Some(unknown) if is_unknown => Some(unknown + 1),
            _ => None,
        };
        if self.unknown_choices.unwrap_or_default() < UNKNOWN_CHOICES_MAX {
            return None;
        }
        self.model_failed = Some(MODEL_FAILED.to_owned());
        if self.on_model_failure == OnModelFailure::Policy {
            return None;
        }
        self.status = Status::Failed;
        self.error = Some(MODEL_FAILED.to_owned());
        let failed = Finish::failed("ModelError", "UnknownTools", MODEL_FAILED, CATEGORY_MODEL);
        Some(self.failed_with(failed))
    }

    fn failed_with(&self, failed: Finish) -> Route {
        Route::End(match failed {
            Finish::Failed { error, category, .. } => {
                Finish::Failed { error, category, result: conclusion::result(self) }
            }
            completed @ Finish::Completed(_) => completed,
        })
    }

    fn failed_planning(&mut self, problem: &str, at: String) -> Route {
        self.status = Status::Failed;
        self.completed_at = Some(at);
        self.error = Some(format!("the planner failed: {problem}"));
        let failed = Finish::failed("PlannerError", "InvalidChoice", problem, CATEGORY_PLANNER);
        self.failed_with(failed)
    }
}

/// The state of a run, for observers.
pub fn of_json(state: &Value) -> Option<State> {
    serde_json::from_value(state.clone()).ok()
}
