//! Reads, runs and compares executions recorded on AWS.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use asl::definition::Definition;
use asl::execution::{Execution, Next, Outcome, Start, TaskRequest};
use asl::history::{Event, Failure};
use asl::time::Timestamp;
use serde_json::{Map, Value, json};

use crate::given::{BEGIN, start};
use crate::masks::difference;

/// Most decisions per recording.
const DECISIONS_MAX: usize = 10_000;

/// The folder of recordings: `CONFORMANCE_DIR`, or else beside the project.
pub fn folder() -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "tests have no config.rs")]
    let named = std::env::var_os("CONFORMANCE_DIR").map(PathBuf::from);
    let folder = named.unwrap_or_else(|| {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance"))
    });
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no recordings in {} (set CONFORMANCE_DIR)", folder.display());
    None
}

/// The records of a file: one per line, or one array.
pub fn records(file: &str) -> Vec<Value> {
    let Some(folder) = folder() else { return Vec::new() };
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    if file.ends_with(".json") {
        return serde_json::from_str(&text).unwrap();
    }
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The masks of a record.
pub fn masks(record: &Value) -> Vec<String> {
    let masks = record["masks"].as_array().into_iter().flatten();
    masks.map(|mask| mask.as_str().unwrap().to_owned()).collect()
}

/// A recording being replayed: each call returns its recorded outcome, and waits end at once.
pub struct Replay<'a> {
    definition: Arc<Definition>,
    start: Start,
    record: &'a Value,
    pub execution: Execution,
    pub history: Vec<Event>,
    now: Timestamp,
    /// Recorded outcomes by the event that scheduled the call.
    given: BTreeMap<u64, usize>,
    /// Calls that have returned and wait for their callback.
    submitted: BTreeSet<u64>,
}

impl<'a> Replay<'a> {
    pub fn new(definition: &Arc<Definition>, record: &'a Value) -> Replay<'a> {
        let start = started(record);
        let execution = Execution::new(Arc::clone(definition), start.clone()).unwrap();
        Replay {
            definition: Arc::clone(definition),
            start,
            record,
            execution,
            history: Vec::new(),
            now: BEGIN,
            given: BTreeMap::new(),
            submitted: BTreeSet::new(),
        }
    }

    /// The same recording after a crash that left this many events.
    pub fn cut(&self, events: usize) -> Replay<'a> {
        let history = self.history[..events].to_vec();
        let definition = Arc::clone(&self.definition);
        let execution = Execution::replay(definition, self.start.clone(), &history)
            .expect("it was recorded so");
        let last = history.last().map_or(0, |event| event.id);
        let known = |id: &u64| *id <= last;
        Replay {
            definition: Arc::clone(&self.definition),
            start: self.start.clone(),
            record: self.record,
            execution,
            now: history.last().map_or(BEGIN, |event| event.timestamp),
            history,
            given: self.given.iter().filter(|(id, _)| known(id)).map(|(a, b)| (*a, *b)).collect(),
            submitted: BTreeSet::new(),
        }
    }

    /// Runs to the end; `None` if that takes too many decisions.
    pub fn run(&mut self) -> Option<Outcome> {
        for _ in 0..DECISIONS_MAX {
            let events = match self.execution.next(self.now) {
                Next::Record(events) => events,
                Next::WaitUntil(at) => match self.call_back() {
                    Some(event) => vec![event],
                    None => {
                        self.now = at;
                        continue;
                    }
                },
                Next::RunTasks { requests, wake_at } => {
                    let answer = requests.iter().find_map(|request| self.answer(request));
                    match answer.or_else(|| self.call_back()) {
                        Some(event) => vec![event],
                        None => {
                            self.now = wake_at;
                            continue;
                        }
                    }
                }
                Next::Done(outcome) => return Some(outcome),
            };
            for event in &events {
                self.execution.apply(event).unwrap();
            }
            self.history.extend(events);
        }
        None
    }

    /// The next recorded outcome of a call's state.
    fn outcome(&mut self, event_id: u64, state: &str) -> Option<&'a Value> {
        let outcomes = self.record["tasks"]["outcomes"].as_array()?;
        if let Some(index) = self.given.get(&event_id) {
            return outcomes.get(*index);
        }
        let taken: BTreeSet<usize> = self.given.values().copied().collect();
        let index = (0..outcomes.len())
            .find(|index| !taken.contains(index) && outcomes[*index]["state"] == state)?;
        self.given.insert(event_id, index);
        outcomes.get(index)
    }

    /// The result of a call; `None` if it times out.
    fn answer(&mut self, request: &TaskRequest) -> Option<Event> {
        let Some(outcome) = self.outcome(request.event_id, &request.state) else {
            return self.behave(request);
        };
        let result = &outcome["result"];
        if result["event"].as_str().unwrap().ends_with("TimedOut") {
            return None;
        }
        let (id, now) = (request.event_id, self.now);
        if request.token.is_some() {
            let submissions = self.record["history"].as_array().into_iter().flatten();
            let mut submissions = submissions.filter(|event| event["type"] == "TaskSubmitted");
            let nth = self.given[&id];
            let recorded = submissions.nth(nth).or_else(|| submissions.next());
            let output = recorded.map(|event| event["taskSubmittedEventDetails"]["output"].clone());
            return self.execution.task_succeeded(id, &output.unwrap_or_default(), now).ok();
        }
        match result.get("output") {
            Some(output) => self.execution.task_succeeded(id, output, now).ok(),
            None => self.execution.task_failed(id, failure(result), now).ok(),
        }
    }

    /// The behaviour of a function without a recorded outcome.
    fn behave(&self, request: &TaskRequest) -> Option<Event> {
        let functions = self.record["tasks"]["functions"].as_array().into_iter().flatten();
        let behaviour = functions
            .filter(|function| {
                let named = &request.arguments["FunctionName"];
                request.resource == function["arn"]
                    || *named == function["arn"]
                    || *named == function["name"]
            })
            .map(|function| &function["behaviour"])
            .next()?;
        let (id, now) = (request.event_id, self.now);
        let service = request.resource.starts_with("arn:aws:states:::lambda:invoke");
        if let Some(output) = output(behaviour, request, now, service) {
            return self.execution.task_succeeded(id, &output, now).ok();
        }
        let error = behaviour["errorType"].as_str()?;
        let cause = json!({
            "errorMessage": behaviour["errorMessage"], "errorType": error,
            "requestId": "none", "stackTrace": [],
        });
        let failure = Failure::new(error, Some(cause.to_string()));
        self.execution.task_failed(id, failure, now).ok()
    }

    /// The callback of a task that was submitted.
    fn call_back(&mut self) -> Option<Event> {
        let tokens = self.execution.open_tokens();
        let token = tokens.first()?.to_string();
        let id = asl::token::locate(&token)?.event_id;
        let index = *self.given.get(&id)?;
        let result = &self.record["tasks"]["outcomes"][index]["result"];
        if result["event"].as_str()?.ends_with("TimedOut") || !self.submitted.insert(id) {
            return None;
        }
        match result.get("output") {
            Some(output) => self.execution.callback_succeeded(&token, output, self.now).ok(),
            None => self.execution.callback_failed(&token, failure(result), self.now).ok(),
        }
    }
}

/// The result of a function that returns one; `None` if it raises an error or sleeps too long.
fn output(
    behaviour: &Value,
    request: &TaskRequest,
    now: Timestamp,
    service: bool,
) -> Option<Value> {
    let given = if service { &request.arguments["Payload"] } else { &request.arguments };
    let payload = match behaviour["kind"].as_str()? {
        "echo" => given.clone(),
        "constant" => behaviour["output"].clone(),
        "sleep-then-echo" => {
            let seconds = behaviour["seconds"].as_u64()?;
            (now.plus_seconds(seconds) < request.timeout_at).then(|| given.clone())?
        }
        _ => return None,
    };
    Some(if service { invoked(payload) } else { payload })
}

/// Length of a value's JSON text as the recorded functions, in Python, write it: with a space after each
/// colon and comma.
fn spaced(value: &Value) -> usize {
    let commas = |count: usize| 2 * count.saturating_sub(1);
    match value {
        Value::Object(fields) => {
            let name = |name: &String| json!(name).to_string().len() + 2;
            let members = fields.iter().map(|(key, value)| name(key) + spaced(value));
            2 + commas(fields.len()) + members.sum::<usize>()
        }
        Value::Array(items) => 2 + commas(items.len()) + items.iter().map(spaced).sum::<usize>(),
        other => other.to_string().len(),
    }
}

/// What the optimised integration returns for a function's result.
fn invoked(payload: Value) -> Value {
    let length = spaced(&payload).to_string();
    json!({
        "ExecutedVersion": "$LATEST",
        "Payload": payload,
        "SdkHttpMetadata": {
            "AllHttpHeaders": {
                "X-Amz-Executed-Version": ["$LATEST"],
                "x-amzn-Remapped-Content-Length": ["0"],
                "Connection": ["keep-alive"],
                "x-amzn-RequestId": "x-amzn-RequestId",
                "Content-Length": [length],
                "Date": "date",
                "X-Amzn-Trace-Id": "X-Amzn-Trace-Id",
                "Content-Type": ["application/json"],
            },
            "HttpHeaders": {
                "Connection": "keep-alive",
                "Content-Length": length,
                "Content-Type": "application/json",
                "Date": "date",
                "X-Amz-Executed-Version": "$LATEST",
                "x-amzn-Remapped-Content-Length": "0",
                "x-amzn-RequestId": "x-amzn-RequestId",
                "X-Amzn-Trace-Id": "X-Amzn-Trace-Id",
            },
            "HttpStatusCode": 200,
        },
        "SdkResponseMetadata": {"RequestId": "RequestId"},
        "StatusCode": 200,
    })
}

/// The start of a recorded execution; an express execution's ARN has another format.
fn started(record: &Value) -> Start {
    let start = start(&record["input"]);
    if record["type"] != "EXPRESS" {
        return start;
    }
    let execution_arn = start.execution_arn.replacen(":execution:", ":express:", 1) + ":two";
    Start { execution_arn, ..start }
}

fn failure(result: &Value) -> Failure {
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    Failure { error: text(&result["error"]), cause: text(&result["cause"]) }
}

/// An event in the recordings' format: payloads parsed, times and truncation flags removed.
fn as_recorded(event: &Event) -> Value {
    let mut json = serde_json::to_value(event).unwrap();
    let members = json.as_object_mut().unwrap();
    members.remove("timestamp");
    for details in members.values_mut().filter_map(Value::as_object_mut) {
        parse_payloads(details);
    }
    json
}

fn parse_payloads(details: &mut Map<String, Value>) {
    details.retain(|name, _| {
        !matches!(name.as_str(), "inputDetails" | "outputDetails" | "assignedVariablesDetails")
    });
    let parsed = |value: &Value| value.as_str().map(|text| serde_json::from_str(text).unwrap());
    for name in ["input", "output", "parameters"] {
        if let Some(value) = details.get(name).and_then(parsed) {
            details.insert(name.to_owned(), value);
        }
    }
    for variable in
        details.get_mut("assignedVariables").and_then(Value::as_object_mut).into_iter().flatten()
    {
        *variable.1 = parsed(variable.1).unwrap();
    }
    let cause: Option<Value> = details
        .get("cause")
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str(text).ok());
    if let Some(cause) = cause.filter(Value::is_object) {
        details.insert("cause".to_owned(), cause);
    }
}

/// Differences from a recorded execution, by level: 1 status, output and error; 2 cause; 3 history.
#[derive(Debug, Default)]
pub struct Differences(pub [Option<String>; 3]);

impl Differences {
    /// Whether everything up to a level agrees.
    pub fn agrees(&self, level: usize) -> bool {
        self.0[..level].iter().all(Option::is_none)
    }

    /// The lowest level that differs, with its difference.
    pub fn first(&self) -> Option<(usize, &str)> {
        let levels = (1..).zip(&self.0);
        levels.filter_map(|(level, found)| Some((level, found.as_deref()?))).next()
    }
}

/// Runs a recording and compares.
pub fn differences(record: &Value) -> Differences {
    let all = |text: String| Differences([Some(text), None, None]);
    let definition = match Definition::parse(&record["definition"].to_string()) {
        Ok(definition) => Arc::new(definition),
        Err(error) => return all(format!("refused: {error}")),
    };
    let mut replay = Replay::new(&definition, record);
    match replay.run() {
        Some(outcome) => compare(record, &outcome, &replay.history),
        None => all("it did not end".to_owned()),
    }
}

fn compare(record: &Value, outcome: &Outcome, history: &[Event]) -> Differences {
    let (masks, expect) = (masks(record), &record["expect"]);
    let (output, failure) = match outcome {
        Outcome::Succeeded(text) => (serde_json::from_str(text).unwrap(), Failure::default()),
        Outcome::Failed(failure) | Outcome::Aborted(failure) => (Value::Null, failure.clone()),
        Outcome::TimedOut => (Value::Null, Failure::default()),
    };
    let differ =
        |recorded: &Value, actual: &Value, path| difference(recorded, actual, &masks, path);
    let level_1 = differ(&expect["status"], &outcome.status().into(), "status")
        .or_else(|| differ(&expect["output"], &output, "output"))
        .or_else(|| differ(&expect["error"], &failure.error.into(), "error"));
    let cause = failure.cause.unwrap_or_default();
    let level_2 = match expect.get("cause_json") {
        Some(recorded) => {
            differ(recorded, &serde_json::from_str(&cause).unwrap_or_default(), "cause")
        }
        None => {
            differ(&expect["cause"].as_str().unwrap_or_default().into(), &cause.into(), "cause")
        }
    };
    let level_3 = match record["compare_history"].as_str() {
        _ if record["normalized"]
            .as_array()
            .is_some_and(|how| how.iter().any(|how| how == "GenericTransformer")) =>
        {
            None
        }
        Some("none") => None,
        Some("ordered") => {
            let actual: Value = history.iter().map(as_recorded).collect();
            differ(&record["history"], &actual, "history")
        }
        _ => unordered(record, history, &masks),
    };
    Differences([level_1, level_2, level_3])
}

/// Matches each recorded event with an actual one. The recorder removed ids where it sorted events;
/// concurrent iterations keep the order in which they came.
fn unordered(record: &Value, history: &[Event], masks: &[String]) -> Option<String> {
    let recorded = record["history"].as_array().unwrap();
    let mut actual: Vec<Value> = history.iter().map(as_recorded).collect();
    if record["normalized"].is_array() || record["normalized"].is_string() {
        // The recorder omitted this event when it sorted those before it; the ids show the gap.
        actual.retain(|event| event["type"] != "ParallelStateSucceeded");
    }
    if recorded.len() != actual.len() {
        return Some(format!("history: recorded {}, actual {}", recorded.len(), actual.len()));
    }
    for event in recorded {
        let mut event = event.clone();
        let members = event.as_object_mut().unwrap();
        let bare = members["id"].is_null();
        let parallel = !record["normalized"].is_null();
        let found = actual.iter().position(|actual| {
            let mut actual = actual.clone();
            let fields = actual.as_object_mut().unwrap();
            for name in ["id", "previousEventId"] {
                if bare || !parallel {
                    fields.insert(name.to_owned(), Value::Null);
                }
            }
            let mut event = Value::Object(members.clone());
            if !parallel {
                event["id"] = Value::Null;
                event["previousEventId"] = Value::Null;
            }
            difference(&event, &actual, masks, "").is_none()
        });
        match found {
            Some(index) => {
                actual.remove(index);
            }
            None => {
                return Some(format!("history: recorded {event}not found"));
            }
        }
    }
    None
}
