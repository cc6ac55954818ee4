//! `AWSStepFunctions`: `TestState` runs one state, with a mocked or a real task, and records nothing.
//!
//! The state runs in a machine of its own: a state that sets the variables, the tested one, and an end for each
//! state that may follow. Waits and timeouts pass at once.

use std::sync::Arc;
use std::time::Duration;

use asl::definition::{Definition, Workflow};
use asl::execution::{Execution, Next, Start, TaskRequest};
use asl::history::{Event, EventKind, Failure};
use asl::time::Timestamp;
use serde_json::{Map, Value, json};

use super::step_functions::{optional, required};
use super::wire::Refusal;
use crate::executions::Executions;
use crate::names;

/// The name of a state that is tested alone, as AWS's diagnostics have it.
const ALONE: &str = "StateName";

/// The state that sets the variables.
const VARIABLES: &str = "__variables";

/// Most decisions of a test, so that a `Map` or `Parallel` that loops ends.
const DECISIONS_MAX: usize = 10_000;

/// Longest test, by the machine's clock: its tasks may call functions.
const TEST_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// When the state begins, on the virtual clock.
const BEGIN: Timestamp = Timestamp::from_millis(0);

pub(super) async fn handle(executions: &Executions, body: &Value) -> Result<Value, Refusal> {
    let test = Test::of(body)?;
    let definition = Definition::check(&test.machine().to_string(), Workflow::Standard);
    let definition = definition.map_err(|errors| {
        let said = errors.iter().map(asl::definition::DefinitionError::in_words_of_aws);
        let said = said.collect::<Vec<_>>().join(", ");
        Refusal::bad("InvalidDefinition", format!("Invalid State Machine Definition: '{said}'"))
    })?;
    let start = Start {
        execution_arn: names::execution_arn("TestState", ALONE),
        execution_name: ALONE.to_owned(),
        role_arn: optional(body, "roleArn")?.unwrap_or(names::ROLE_ARN).to_owned(),
        state_machine_arn: names::machine_arn("TestState"),
        state_machine_name: "TestState".to_owned(),
        input: optional(body, "input")?.unwrap_or("{}").to_owned(),
        started_at: BEGIN,
        token_seed: ALONE.to_owned(),
    };
    let execution = Execution::new(Arc::new(definition), start).map_err(|error| {
        let message = format!("Invalid State Machine Execution Input: '{error}'");
        Refusal::bad("InvalidExecutionInput", message)
    })?;
    let running = Running { test: &test, seen: Seen::default() }.run(executions, execution);
    let answer = tokio::time::timeout(TEST_TIMEOUT, running)
        .await
        .map_err(|_| failed(&format!("it did not end within {} s", TEST_TIMEOUT.as_secs())))??;
    let with_data = optional(body, "inspectionLevel")?.is_some_and(|level| level != "INFO");
    Ok(answer.wire(with_data))
}

/// What a task does instead of a call.
#[derive(Clone, Debug)]
enum Mock {
    Result(Value),
    Error(Failure),
}

/// A request.
struct Test {
    name: String,
    state: Value,
    language: Option<Value>,
    variables: Map<String, Value>,
    mock: Option<Mock>,
}

impl Test {
    fn of(body: &Value) -> Result<Self, Refusal> {
        let invalid = |said: String| {
            let message = format!("Invalid State Machine Definition: '{said}'");
            Refusal::bad("InvalidDefinition", message)
        };
        let definition: Value = serde_json::from_str(required(body, "definition")?)
            .map_err(|error| invalid(format!("INVALID_JSON_DESCRIPTION: {error}")))?;
        let variables = match optional(body, "variables")? {
            None => Map::new(),
            Some(text) => serde_json::from_str(text).map_err(|error| {
                Refusal::bad("ValidationException", format!("Invalid variables: {error}"))
            })?,
        };
        let mock = mock(&body["mock"])?;
        let (name, state, language) = match definition.get("States") {
            None => (ALONE.to_owned(), definition, None),
            Some(states) => {
                let name = required(body, "stateName")?;
                let state = states.get(name).cloned().ok_or_else(|| {
                    let message = format!("State not found in definition: {name}");
                    Refusal::bad("ValidationException", message)
                })?;
                (name.to_owned(), state, definition.get("QueryLanguage").cloned())
            }
        };
        Ok(Self { name, state, language, variables, mock })
    }

    /// The machine around the state.
    fn machine(&self) -> Value {
        let mut states = Map::new();
        for next in self.followers() {
            states.insert(next.to_owned(), json!({ "Type": "Succeed" }));
        }
        let mut state = self.state.clone();
        if let (Some(state), Some(language)) = (state.as_object_mut(), &self.language) {
            state.entry("QueryLanguage").or_insert_with(|| language.clone());
        }
        states.insert(self.name.clone(), state);
        if self.variables.is_empty() {
            return json!({ "StartAt": self.name, "States": states });
        }
        let set = json!({ "Type": "Pass", "Assign": self.variables, "Next": self.name });
        states.insert(VARIABLES.to_owned(), set);
        json!({ "StartAt": VARIABLES, "States": states })
    }

    /// The states that may follow.
    fn followers(&self) -> Vec<&str> {
        let listed = ["Choices", "Catch"].into_iter();
        let listed = listed.flat_map(|name| self.state[name].as_array().into_iter().flatten());
        let of = listed.map(|each| &each["Next"]);
        let of = of.chain([&self.state["Next"], &self.state["Default"]]);
        of.filter_map(Value::as_str).collect()
    }
}

fn mock(mock: &Value) -> Result<Option<Mock>, Refusal> {
    if mock.is_null() {
        return Ok(None);
    }
    if let Some(result) = optional(mock, "result")? {
        let result = serde_json::from_str(result).map_err(|error| {
            Refusal::bad(
                "ValidationException",
                format!("the mocked result is not valid JSON: {error}"),
            )
        })?;
        return Ok(Some(Mock::Result(result)));
    }
    let failure = &mock["errorOutput"];
    if failure.is_null() {
        let message = "A mock has a result or an errorOutput";
        return Err(Refusal::bad("ValidationException", message));
    }
    let text = |name| Ok::<_, Refusal>(optional(failure, name)?.map(str::to_owned));
    Ok(Some(Mock::Error(Failure { error: text("error")?, cause: text("cause")? })))
}

/// What the events have shown so far.
#[derive(Default)]
struct Seen {
    input: Option<String>,
    arguments: Option<Value>,
    result: Option<Value>,
    /// The newest failure of the state's own call.
    failure: Option<Failure>,
    exited: Option<String>,
}

/// The outcome of a test.
struct Answer {
    status: &'static str,
    next: Option<String>,
    seen: Seen,
}

struct Running<'a> {
    test: &'a Test,
    seen: Seen,
}

fn without_end() -> Refusal {
    failed("it ended without leaving the state")
}

impl Running<'_> {
    async fn run(
        mut self,
        executions: &Executions,
        mut execution: Execution,
    ) -> Result<Answer, Refusal> {
        let mut now = BEGIN;
        for _ in 0..DECISIONS_MAX {
            let events = match execution.next(now) {
                Next::Record(events) => events,
                // The wait before a retry. Inside of a `Map` or `Parallel` the retry is made.
                Next::WaitUntil(_) if self.seen.failure.is_some() && self.is_task() => {
                    return Ok(self.ends("RETRIABLE", None));
                }
                Next::WaitUntil(at) => {
                    now = at;
                    continue;
                }
                Next::RunTasks { requests, .. } => {
                    let Some(request) = requests.into_iter().next() else {
                        return Err(without_end());
                    };
                    vec![self.answered(executions, &execution, &request, now).await?]
                }
                Next::Done(_) => return Err(without_end()),
            };
            for event in &events {
                if let Some((status, next)) = self.see(event) {
                    return Ok(self.ends(status, next));
                }
                execution.apply(event).map_err(|error| failed(&error.to_string()))?;
            }
        }
        Err(failed(&format!("it did not end within {DECISIONS_MAX} decisions")))
    }

    fn is_task(&self) -> bool {
        self.test.state["Type"] == "Task"
    }

    fn ends(self, status: &'static str, next: Option<String>) -> Answer {
        Answer { status, next, seen: self.seen }
    }

    /// Takes note of an event; returns the status and the next state once the state has ended.
    fn see(&mut self, event: &Event) -> Option<(&'static str, Option<String>)> {
        let left = |seen: &Seen| if seen.failure.is_some() { "CAUGHT_ERROR" } else { "SUCCEEDED" };
        match &event.kind {
            EventKind::StateEntered { name, .. } if self.seen.exited.is_some() => {
                return Some((left(&self.seen), Some(name.clone())));
            }
            EventKind::StateEntered { name, input, .. } if *name == self.test.name => {
                self.seen.input.get_or_insert_with(|| input.clone());
            }
            EventKind::StateExited { name, output, .. } if *name == self.test.name => {
                self.seen.exited = Some(output.clone());
            }
            EventKind::ExecutionSucceeded { .. } => return Some((left(&self.seen), None)),
            EventKind::ExecutionFailed(failure) => {
                self.seen.failure = Some(failure.clone());
                return Some(("FAILED", None));
            }
            EventKind::TaskFailed(_, failure)
            | EventKind::TaskTimedOut(_, failure)
            | EventKind::EvaluationFailed { failure, .. }
                if self.is_task() =>
            {
                self.seen.failure = Some(failure.clone());
            }
            _ => {}
        }
        None
    }

    /// The event of a task's result: the mocked one, or that of the call.
    async fn answered(
        &mut self,
        executions: &Executions,
        execution: &Execution,
        request: &TaskRequest,
        now: Timestamp,
    ) -> Result<Event, Refusal> {
        self.seen.arguments = Some(request.arguments.clone());
        let result = match (&self.test.mock, &request.token) {
            (Some(Mock::Result(result)), _) => Ok(result.clone()),
            (Some(Mock::Error(failure)), _) => Err(failure.clone()),
            (None, Some(_)) => {
                let message = "TestState cannot wait for a task token: pass a mock";
                return Err(Refusal::bad("ValidationException", message));
            }
            (None, None) => executions.call(&request.resource, request.arguments.clone()).await,
        };
        let event = match (result, &request.token) {
            (Ok(result), token) => {
                self.seen.result = Some(result.clone());
                match token {
                    None => execution.task_succeeded(request.event_id, &result, now).ok(),
                    Some(token) => execution.callback_succeeded(token, &result, now).ok(),
                }
            }
            (Err(failure), _) => execution.task_failed(request.event_id, failure, now).ok(),
        };
        event.ok_or_else(|| failed("its task has ended already"))
    }
}

impl Answer {
    fn wire(self, with_data: bool) -> Value {
        let Self { status, next, seen } = self;
        let mut answer = json!({ "status": status });
        let mut add = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                answer[name] = value;
            }
        };
        let is_error = seen.failure.is_some();
        let failure = seen.failure.unwrap_or_default();
        add("output", seen.exited.map(Value::from).filter(|_| status != "FAILED"));
        add("error", failure.error.filter(|_| is_error).map(Value::from));
        add("cause", failure.cause.filter(|_| is_error).map(Value::from));
        add("nextState", next.map(Value::from));
        if with_data {
            let text = |value: Option<Value>| value.map(|value| value.to_string());
            let data = [
                ("input", seen.input),
                ("afterArguments", text(seen.arguments)),
                ("result", text(seen.result)),
            ];
            let data: Map<String, Value> = data
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
                .collect();
            add("inspectionData", Some(data.into()));
        }
        answer
    }
}

fn failed(why: &str) -> Refusal {
    Refusal::bad("ValidationException", format!("the state cannot be tested: {why}"))
}
