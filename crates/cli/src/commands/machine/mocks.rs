//! Test cases of state machines, with mocked tasks.
//!
//! The format is that of AWS Step Functions Local's `MockConfigFile.json`: `StateMachines` with
//! `TestCases`, each of which names a mocked response for each task, and `MockedResponses` with what the
//! n-th invocation returns or throws. A machine has two members more: `Definition`, the file of its
//! definition, and `Expectations`, what a test case starts with and must lead to.
//!
//! Source: AWS, "Testing state machines with Step Functions Local", mocked service integrations.

use std::collections::BTreeMap;
use std::sync::Arc;

use asl::definition::Definition;
use asl::execution::{Execution, Next, Outcome, TaskRequest};
use asl::history::{Event, Failure};
use serde_json::{Map, Value, json};

use super::{BEGIN, start};

/// Most decisions of a test case, so that a machine that loops ends.
const DECISIONS_MAX: usize = 100_000;

/// What one invocation of a mocked task does.
#[derive(Clone, Debug, PartialEq)]
enum Response {
    Return(Value),
    Throw { error: String, cause: String },
}

/// A mocked response: what the invocations of a task do, by their first and last number.
type Responses = Vec<(u64, u64, Response)>;

/// A file of mocks and test cases.
#[derive(Debug)]
pub(super) struct Config {
    machines: Vec<Machine>,
    responses: BTreeMap<String, Responses>,
}

#[derive(Debug)]
struct Machine {
    name: String,
    definition: Option<String>,
    /// The mocked response of each state, by test case.
    cases: Vec<(String, BTreeMap<String, String>)>,
    expectations: Map<String, Value>,
}

/// One test case.
#[derive(Debug)]
pub(super) struct Case<'a> {
    pub(super) machine: &'a str,
    pub(super) name: &'a str,
    /// The file of the machine's definition, relative to the test file.
    pub(super) definition: Option<&'a str>,
    mocks: BTreeMap<&'a str, &'a Responses>,
    expected: &'a Value,
}

/// The members of an expectation.
const EXPECTED: [&str; 7] = ["Input", "Status", "Output", "Error", "Cause", "Path", "States"];

impl Config {
    /// Parses a file.
    ///
    /// # Errors
    /// The first problem, with its place.
    pub(super) fn parse(file: &Value) -> Result<Config, String> {
        let mut responses = BTreeMap::new();
        for (name, by_number) in members(file, "MockedResponses")? {
            let mut parsed = Responses::new();
            for (numbers, response) in object(by_number, &format!("MockedResponses/{name}"))? {
                let place = format!("MockedResponses/{name}/{numbers}");
                let (first, last) = range(numbers)
                    .ok_or_else(|| format!("{place}: expected a number or a range such as 0-2"))?;
                parsed.push((
                    first,
                    last,
                    Response::parse(response).ok_or_else(|| {
                        format!("{place}: expected Return, or Throw with Error and Cause")
                    })?,
                ));
            }
            responses.insert(name.clone(), parsed);
        }
        let machines = members(file, "StateMachines")?.iter();
        let machines = machines.map(|(name, machine)| Machine::parse(name, machine));
        let config = Config { machines: machines.collect::<Result<_, _>>()?, responses };
        config.check()?;
        if config.machines.iter().all(|machine| machine.cases.is_empty()) {
            return Err("it has no test case".to_owned());
        }
        Ok(config)
    }

    /// Checks that every mocked response that a test case names exists.
    fn check(&self) -> Result<(), String> {
        for machine in &self.machines {
            for (case, states) in &machine.cases {
                let unknown = states.values().find(|name| !self.responses.contains_key(*name));
                if let Some(unknown) = unknown {
                    let place = format!("StateMachines/{}/TestCases/{case}", machine.name);
                    return Err(format!("{place}: there is no mocked response {unknown}"));
                }
            }
        }
        Ok(())
    }

    /// The test cases, in the order of the file.
    pub(super) fn cases(&self) -> Vec<Case<'_>> {
        let mut cases = Vec::new();
        for machine in &self.machines {
            for (name, states) in &machine.cases {
                let mocks = states.iter();
                let mocks = mocks
                    .filter_map(|(state, mock)| Some((state.as_str(), self.responses.get(mock)?)));
                cases.push(Case {
                    machine: &machine.name,
                    name,
                    definition: machine.definition.as_deref(),
                    mocks: mocks.collect(),
                    expected: machine.expectations.get(name).unwrap_or(&Value::Null),
                });
            }
        }
        cases
    }
}

impl Machine {
    fn parse(name: &str, machine: &Value) -> Result<Machine, String> {
        let place = format!("StateMachines/{name}");
        let mut cases = Vec::new();
        for (case, states) in members(machine, "TestCases").map_err(|e| format!("{place}: {e}"))? {
            let states = object(states, &format!("{place}/TestCases/{case}"))?.iter();
            let states = states.map(|(state, mock)| {
                let mock = mock.as_str().map(str::to_owned);
                let problem = || format!("{place}/TestCases/{case}/{state}: expected a name");
                Ok((state.clone(), mock.ok_or_else(problem)?))
            });
            cases.push((case.clone(), states.collect::<Result<_, String>>()?));
        }
        let expectations = match &machine["Expectations"] {
            Value::Null => Map::new(),
            expectations => object(expectations, &format!("{place}/Expectations"))?.clone(),
        };
        for (case, expected) in &expectations {
            let place = format!("{place}/Expectations/{case}");
            if !cases.iter().any(|(known, _)| known == case) {
                return Err(format!("{place}: there is no test case of this name"));
            }
            let members = object(expected, &place)?;
            if let Some(unknown) = members.keys().find(|name| !EXPECTED.contains(&name.as_str())) {
                return Err(format!("{place}: unknown member {unknown}"));
            }
            if let Some(states) = members.get("States") {
                object(states, &format!("{place}/States"))?;
            }
        }
        let definition = match &machine["Definition"] {
            Value::Null => None,
            Value::String(path) => Some(path.clone()),
            _ => return Err(format!("{place}/Definition: expected the path of a file")),
        };
        Ok(Machine { name: name.to_owned(), definition, cases, expectations })
    }
}

impl Response {
    fn parse(response: &Value) -> Option<Response> {
        if let Some(output) = response.get("Return") {
            return Some(Response::Return(output.clone()));
        }
        let thrown = response.get("Throw")?;
        let text = |name: &str| Some(thrown.get(name)?.as_str()?.to_owned());
        Some(Response::Throw { error: text("Error")?, cause: text("Cause").unwrap_or_default() })
    }
}

/// The members of a value that must be an object. What is of another type would be left out, and its test would pass.
fn object<'a>(value: &'a Value, place: &str) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{place}: expected an object"))
}

/// The members of a required object.
fn members<'a>(object: &'a Value, name: &str) -> Result<&'a Map<String, Value>, String> {
    object[name].as_object().ok_or_else(|| format!("expected an object {name}"))
}

/// `3`, or `0-2`.
fn range(numbers: &str) -> Option<(u64, u64)> {
    let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last).then_some((first, last))
}

impl Case<'_> {
    /// Runs the machine with mocked tasks; returns what differs from the expectation.
    pub(super) fn problems(&self, definition: Definition) -> Vec<String> {
        let input = self.expected.get("Input").cloned().unwrap_or_else(|| json!({}));
        match self.run(definition, &input) {
            Ok((history, outcome)) => self.compare(&history, &outcome),
            Err(problem) => vec![problem],
        }
    }

    fn run(&self, definition: Definition, input: &Value) -> Result<(Vec<Value>, Outcome), String> {
        let started = Execution::new(Arc::new(definition), start(input));
        let mut execution = started.map_err(|error| error.to_string())?;
        let (mut history, mut now) = (Vec::new(), BEGIN);
        let mut invocations: BTreeMap<String, u64> = BTreeMap::new();
        for _ in 0..DECISIONS_MAX {
            let events = match execution.next(now) {
                Next::Record(events) => events,
                Next::WaitUntil(at) => {
                    now = at;
                    continue;
                }
                Next::RunTasks { requests, .. } => {
                    let Some(request) = requests.into_iter().next() else {
                        return Err("the state machine requested no task".to_owned());
                    };
                    let count = invocations.entry(request.state.clone()).or_default();
                    let response = self.response(&request, *count)?;
                    *count += 1;
                    vec![answered(&execution, &request, response, now)?]
                }
                Next::Done(outcome) => return Ok((history, outcome)),
            };
            for event in &events {
                execution.apply(event).map_err(|error| error.to_string())?;
                history.push(serde_json::to_value(event).map_err(|error| error.to_string())?);
            }
        }
        Err(format!("the state machine did not end within {DECISIONS_MAX} decisions"))
    }

    fn response(&self, request: &TaskRequest, number: u64) -> Result<&Response, String> {
        let state = &request.state;
        let Some(responses) = self.mocks.get(state.as_str()) else {
            return Err(format!("the state {state} calls {} and has no mock", request.resource));
        };
        let fits = |(first, last, _): &&(u64, u64, Response)| (*first..=*last).contains(&number);
        let found = responses.iter().find(fits).map(|(_, _, response)| response);
        found.ok_or_else(|| format!("the state {state} has no mock for invocation {number}"))
    }

    fn compare(&self, history: &[Value], outcome: &Outcome) -> Vec<String> {
        let mut problems = Vec::new();
        let mut check = |what: &str, actual: Value| {
            if let Some(expected) = self.expected.get(what).filter(|expected| **expected != actual)
            {
                problems.push(format!("{what}: expected {expected}, got {actual}"));
            }
        };
        let (output, failure) = match outcome {
            Outcome::Succeeded(output) => (serde_json::from_str(output).unwrap_or_default(), None),
            Outcome::Failed(failure) | Outcome::Aborted(failure) => (Value::Null, Some(failure)),
            Outcome::TimedOut => (Value::Null, None),
        };
        let text = |text: Option<&String>| text.map_or(Value::Null, |text| json!(text));
        check("Status", json!(outcome.status()));
        check("Output", output);
        check("Error", text(failure.and_then(|failure| failure.error.as_ref())));
        check("Cause", text(failure.and_then(|failure| failure.cause.as_ref())));
        check("Path", entered(history).map(|(name, _)| json!(name)).collect());
        if self.expected.get("Status").is_none() && !matches!(outcome, Outcome::Succeeded(_)) {
            let text = |text: Option<&String>| text.cloned().unwrap_or_default();
            let error = text(failure.and_then(|failure| failure.error.as_ref()));
            let cause = text(failure.and_then(|failure| failure.cause.as_ref()));
            let status = outcome.status();
            problems.push(format!("Status: expected SUCCEEDED, got {status} {error} {cause}"));
        }
        for (state, expected) in self.expected["States"].as_object().into_iter().flatten() {
            problems.extend(compare_state(history, state, expected));
        }
        problems
    }
}

/// The event of a mocked response.
fn answered(
    execution: &Execution,
    request: &TaskRequest,
    response: &Response,
    now: asl::time::Timestamp,
) -> Result<Event, String> {
    let id = request.event_id;
    match (response, &request.token) {
        (Response::Return(output), None) => {
            execution.task_succeeded(id, output, now).map_err(|error| error.to_string())
        }
        (Response::Return(output), Some(token)) => {
            execution.callback_succeeded(token, output, now).map_err(|error| error.to_string())
        }
        (Response::Throw { error, cause }, _) => {
            let failure = Failure::new(error, Some(cause.clone()));
            execution.task_failed(id, failure, now).map_err(|error| error.to_string())
        }
    }
}

/// The states that were entered, with their inputs.
fn entered(history: &[Value]) -> impl Iterator<Item = (&str, Value)> {
    details(history, "stateEnteredEventDetails", "input")
}

fn details<'a>(
    history: &'a [Value],
    details: &'static str,
    payload: &'static str,
) -> impl Iterator<Item = (&'a str, Value)> {
    history.iter().filter_map(move |event| {
        let details = event.get(details)?;
        let text = details.get(payload).and_then(Value::as_str).unwrap_or_default();
        Some((details.get("name")?.as_str()?, serde_json::from_str(text).unwrap_or_default()))
    })
}

/// Compares the last visit to a state with what is expected of it.
fn compare_state(history: &[Value], state: &str, expected: &Value) -> Vec<String> {
    let visits = entered(history).filter(|(name, _)| *name == state).count();
    let last = |kind, payload| {
        let found = details(history, kind, payload).filter(|(name, _)| *name == state).last();
        found.map(|(_, value)| value)
    };
    let mut problems = Vec::new();
    for (what, expected) in expected.as_object().into_iter().flatten() {
        let actual = match what.as_str() {
            "Visits" => Some(json!(visits)),
            "Input" => last("stateEnteredEventDetails", "input"),
            "Output" => last("stateExitedEventDetails", "output"),
            _ => {
                problems.push(format!("States/{state}: unknown member {what}"));
                continue;
            }
        };
        if actual.as_ref() != Some(expected) {
            let actual = actual.map_or_else(|| "nothing".to_owned(), |actual| actual.to_string());
            problems.push(format!("States/{state}/{what}: expected {expected}, got {actual}"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of AWS's page, shortened, with a machine that retries and catches.
    fn file() -> Value {
        json!({
            "StateMachines": {"Send": {
                "TestCases": {
                    "HappyPath": {"Call": "Success"},
                    "RetryPath": {"Call": "Retry"},
                    "CatchPath": {"Call": "Failure"},
                },
                "Expectations": {
                    "HappyPath": {"Output": {"ok": 1}, "Path": ["Call"]},
                    "RetryPath": {"Output": {"ok": 2}, "States": {"Call": {"Visits": 1}}},
                    "CatchPath": {
                        "Input": {"n": 1}, "Status": "FAILED", "Error": "Gone", "Path": ["Call", "Gone"],
                    },
                },
            }},
            "MockedResponses": {
                "Success": {"0": {"Return": {"ok": 1}}},
                "Retry": {
                    "0-1": {"Throw": {"Error": "Busy", "Cause": "later"}},
                    "2": {"Return": {"ok": 2}},
                },
                "Failure": {"0": {"Throw": {"Error": "Other", "Cause": "never"}}},
            },
        })
    }

    fn machine() -> Definition {
        let text = json!({"StartAt": "Call", "States": {
            "Call": {
                "Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {},
                "Retry": [{"ErrorEquals": ["Busy"]}],
                "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Gone"}], "End": true,
            },
            "Gone": {"Type": "Fail", "Error": "Gone"},
        }});
        Definition::parse(&text.to_string()).unwrap()
    }

    fn problems(file: &Value) -> Vec<Vec<String>> {
        let config = Config::parse(file).unwrap();
        config.cases().iter().map(|case| case.problems(machine())).collect()
    }

    #[test]
    fn mocked_tasks_return_and_throw_by_invocation() {
        assert_eq!(problems(&file()), [[""; 0]; 3]);
    }

    #[test]
    fn a_failed_expectation_says_what_differs() {
        let mut file = file();
        file["StateMachines"]["Send"]["Expectations"]["HappyPath"] = json!({
            "Status": "FAILED", "Path": ["Gone"], "States": {"Call": {"Visits": 2}},
        });
        file["MockedResponses"]["Retry"].as_object_mut().unwrap().remove("2");
        let problems = problems(&file);
        assert_eq!(
            problems[0],
            [
                r#"Status: expected "FAILED", got "SUCCEEDED""#,
                r#"Path: expected ["Gone"], got ["Call"]"#,
                "States/Call/Visits: expected 2, got 1",
            ]
        );
        assert_eq!(problems[1], ["the state Call has no mock for invocation 2"]);
    }

    #[test]
    fn an_invalid_test_file_names_the_place() {
        let of = |machine: Value| json!({"StateMachines": {"M": machine}, "MockedResponses": {}});
        for (file, problem) in [
            (json!({}), "expected an object MockedResponses"),
            (
                json!({"StateMachines": {}, "MockedResponses": {"A": {"x": {"Return": 1}}}}),
                "MockedResponses/A/x: expected a number or a range such as 0-2",
            ),
            (
                json!({"StateMachines": {"M": {"TestCases": {"T": {"S": "A"}}}}, "MockedResponses": {}}),
                "StateMachines/M/TestCases/T: there is no mocked response A",
            ),
            (json!({"StateMachines": {}, "MockedResponses": {}}), "it has no test case"),
            (of(json!({"TestCases": {"T": 7}})), "StateMachines/M/TestCases/T: expected an object"),
            (
                of(json!({"TestCases": {"T": {}}, "Expectations": []})),
                "StateMachines/M/Expectations: expected an object",
            ),
            (
                of(json!({"TestCases": {"T": {}}, "Expectations": {"T": {"States": []}}})),
                "StateMachines/M/Expectations/T/States: expected an object",
            ),
            (
                of(json!({"TestCases": {"T": {}}, "Definition": 7})),
                "StateMachines/M/Definition: expected the path of a file",
            ),
        ] {
            assert_eq!(Config::parse(&file).unwrap_err(), problem);
        }
    }
}
