//! Parses text into a validated [`Definition`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::dataset::{reader, writer};
use super::fields::{Fields, Result};
use super::flow::{catchers, passed_on, result, retriers, transition};
use super::json::Unreadable;
use super::resource::resource;
use super::template::accept;
use super::{
    Batcher, DEFINITION_BYTES_MAX, Definition, DefinitionError, Items, Kind, Lens,
    MACHINES_NESTED_MAX, Machine, Map, Problem, Rule, STATE_NAME_CHARS_MAX, Slot, State, Task,
    Transition, Until, Workflow, Yield,
};
use crate::expression::Language;

const SECONDS: &str = "a whole number of seconds, at most 99999999, or an expression";
const LIMIT: &str = "a whole number of seconds from 1 to 99999999, or an expression";
const COUNT: &str = "a whole number or an expression";
const TYPES: &str = "Task, Wait, Pass, Succeed, Fail, Choice, Parallel, Map";

type Checked<T> = std::result::Result<T, Vec<DefinitionError>>;

pub(super) fn definition(text: &str, workflow: Workflow) -> Checked<Definition> {
    let nowhere = |problem| vec![DefinitionError { location: None, problem }];
    if text.len() > DEFINITION_BYTES_MAX {
        return Err(nowhere(Problem::TooLong));
    }
    if text.trim().is_empty() {
        return Err(nowhere(Problem::NotObject));
    }
    let value: Value = serde_json::from_str(text).map_err(|cause| {
        let unreadable = Unreadable::of(text, &cause);
        let location = Some(unreadable.position.clone());
        vec![DefinitionError { location, problem: Problem::NotJson(unreadable) }]
    })?;
    if !value.is_object() {
        return Err(nowhere(Problem::NotObject));
    }
    let (names, errors) = (BTreeSet::new(), Vec::new());
    let mut reader = Reader { workflow, language: Language::JsonPath, names, errors };
    match reader.definition(&value) {
        Ok(definition) if reader.errors.is_empty() => Ok(definition),
        Ok(_) => Err(reader.errors),
        Err(error) => {
            reader.errors.push(error);
            Err(reader.errors)
        }
    }
}

/// Parser state: the context so far, and the problems found.
struct Reader {
    workflow: Workflow,
    /// The query language of states that do not set their own.
    language: Language,
    /// The names of all states; they share one namespace.
    names: BTreeSet<String>,
    errors: Vec<DefinitionError>,
}

impl Reader {
    fn definition(&mut self, value: &Value) -> Result<Definition> {
        let fields = Fields::of(value, String::new(), Language::JsonPath)?;
        self.language = language(&fields)?.unwrap_or(Language::JsonPath);
        if fields.text("Version")?.is_some_and(|version| version != "1.0") {
            return Err(fields.error_at("Version", Problem::Among("1.0")));
        }
        let timeout_s =
            fields.optional("TimeoutSeconds", "a whole number of seconds", accept::limit)?;
        let machine = self.machine(&fields, value, 0)?;
        fields.finish()?;
        Ok(Definition { machine, timeout_s })
    }

    /// Parses a machine. A problem in a state is recorded and the next state is parsed.
    fn machine(
        &mut self,
        fields: &Fields<'_>,
        value: &Value,
        depth: usize,
    ) -> Result<Arc<Machine>> {
        if depth > MACHINES_NESTED_MAX {
            return Err(fields.error(Problem::Value("machines nested at most 16 levels deep")));
        }
        fields.require(&["States", "StartAt"])?;
        let start_at = fields.required_text("StartAt")?.to_owned();
        let known = self.errors.len();
        let mut states = BTreeMap::new();
        let Some(inner) = fields.object("States")? else { unreachable!("it is required above") };
        for (name, state) in value["States"].as_object().into_iter().flatten() {
            let checked =
                self.name(name, &inner).and_then(|()| self.state(state, inner.at(name), depth));
            match checked {
                Ok(state) => {
                    states.insert(name.clone(), state);
                }
                Err(error) => self.errors.push(error),
            }
        }
        if states.is_empty() && self.errors.len() == known {
            return Err(fields.error_at("States", Problem::Empty));
        }
        let machine = Machine { start_at, states };
        // An invalid state has no known successors, so they would be reported as unreachable.
        if self.errors.len() == known {
            check_paths(&machine, fields, &inner)?;
        }
        Ok(Arc::new(machine))
    }

    fn name(&mut self, name: &str, states: &Fields<'_>) -> Result<()> {
        if name.is_empty() || name.chars().count() > STATE_NAME_CHARS_MAX {
            let expected = "a state with a name of 1 to 80 characters";
            return Err(states.error_at(name, Problem::Value(expected)));
        }
        if !self.names.insert(name.to_owned()) {
            return Err(states.error_at(name, Problem::DuplicateState(name.to_owned())));
        }
        Ok(())
    }

    fn state(&mut self, value: &Value, location: String, depth: usize) -> Result<State> {
        let whole = self.language;
        let fields = Fields::of(value, location, whole)?;
        fields.require(&["Type"])?;
        let state_type = fields.required_text("Type")?;
        let fields = match (language(&fields)?, whole) {
            (Some(Language::JsonPath), Language::Jsonata) => {
                return Err(fields.error(Problem::Conflict(
                    "'QueryLanguage' can not be 'JSONPath' if set to 'JSONata' for whole state machine",
                )));
            }
            (own, whole) => fields.speaking(own.unwrap_or(whole)),
        };
        let state = match state_type {
            "Task" => task(&fields, self.workflow)?,
            "Choice" => choice(&fields)?,
            "Wait" => plain(&fields, Kind::Wait(until(&fields)?), transition(&fields)?)?,
            "Pass" => pass(&fields)?,
            "Succeed" => plain(&fields, Kind::Succeed, Transition::End)?,
            "Fail" => fail(&fields)?,
            "Parallel" => self.parallel(&fields, depth)?,
            "Map" => self.map(&fields, depth)?,
            _ => return Err(fields.error_at("Type", Problem::OneOf("Type", TYPES))),
        };
        fields.finish()?;
        Ok(state)
    }

    fn parallel(&mut self, fields: &Fields<'_>, depth: usize) -> Result<State> {
        fields.require(&["Branches"])?;
        let mut branches = Vec::new();
        let values = fields.take("Branches").and_then(Value::as_array);
        for (branch, value) in
            fields.objects("Branches")?.into_iter().zip(values.into_iter().flatten())
        {
            branches.push(self.machine(&branch, value, depth + 1)?);
            branch.finish()?;
        }
        if branches.is_empty() {
            return Err(fields.error_at("Branches", Problem::Empty));
        }
        let kind = Kind::Parallel { branches, arguments: arguments(fields)? };
        worker(fields, kind)
    }

    fn map(&mut self, fields: &Fields<'_>, depth: usize) -> Result<State> {
        let name = match (fields.has("ItemProcessor"), fields.has("Iterator")) {
            (true, false) => "ItemProcessor",
            (false, true) => "Iterator",
            (false, false) => return Err(fields.error(Problem::NoneOf("ItemProcessor, Iterator"))),
            (true, true) => {
                let both = "ItemProcessor, Iterator".to_owned();
                return Err(fields.error(Problem::Exclusive(both)));
            }
        };
        let Some(inner) = fields.object(name)? else { unreachable!("it is present") };
        let value = fields.take(name).unwrap_or(&Value::Null);
        let processor = self.machine(&inner, value, depth + 1)?;
        let distributed = processor_config(&inner, self.workflow)?;
        inner.finish()?;
        let jsonata = fields.language() == Language::Jsonata;
        let items = match jsonata {
            true => fields.template("Items")?.map_or(Items::Input, Items::Template),
            false if fields.has("ItemsPath") => Items::Path(fields.reference("ItemsPath")?),
            false => Items::Input,
        };
        let mut selector = fields.template("ItemSelector")?;
        if selector.is_none() && !jsonata {
            selector = fields.template("Parameters")?;
        }
        let child = match distributed {
            true => child_definition(value, self.language),
            false => String::new(),
        };
        let count = |name, path| fields.slot(name, path, COUNT, accept::whole);
        let kind = Kind::Map(Box::new(Map {
            processor,
            distributed,
            items,
            selector,
            batcher: batcher(fields)?,
            max_concurrency: count("MaxConcurrency", "MaxConcurrencyPath")?,
            tolerated_count: count("ToleratedFailureCount", "ToleratedFailureCountPath")?,
            tolerated_percentage: fields.slot(
                "ToleratedFailurePercentage",
                "ToleratedFailurePercentagePath",
                "a number from 0 to 100 or an expression",
                accept::percentage,
            )?,
            reader: reader(fields)?,
            writer: writer(fields)?,
            label: fields.text("Label")?.map(str::to_owned),
            child,
        }));
        worker(fields, kind)
    }
}

/// The object's `QueryLanguage`; `None` if absent.
fn language(fields: &Fields<'_>) -> Result<Option<Language>> {
    Ok(match fields.text("QueryLanguage")? {
        None => None,
        Some("JSONata") => Some(Language::Jsonata),
        Some("JSONPath") => Some(Language::JsonPath),
        Some(_) => {
            return Err(fields.error_at("QueryLanguage", Problem::Among("JSONPath, JSONata")));
        }
    })
}

/// Whether iterations are child executions.
fn processor_config(fields: &Fields<'_>, workflow: Workflow) -> Result<bool> {
    let Some(config) = fields.object("ProcessorConfig")? else { return Ok(false) };
    let distributed = match config.text("Mode")?.unwrap_or("INLINE") {
        "INLINE" => false,
        "DISTRIBUTED" => true,
        _ => return Err(config.error_at("Mode", Problem::OneOf("Mode", "INLINE, DISTRIBUTED"))),
    };
    match config.text("ExecutionType")? {
        None | Some("STANDARD" | "EXPRESS") => {}
        Some(_) => {
            return Err(config.error_at("ExecutionType", Problem::Among("STANDARD, EXPRESS")));
        }
    }
    if distributed {
        config.require(&["ExecutionType"])?;
        if workflow == Workflow::Express {
            let problem = "The field 'Mode' with value 'DISTRIBUTED' is not supported inside 'EXPRESS' state machines";
            return Err(config.error_at("Mode", Problem::Conflict(problem)));
        }
    }
    config.finish()?;
    Ok(distributed)
}

/// The processor of a distributed `Map` as the definition of its child executions.
fn child_definition(processor: &Value, language: Language) -> String {
    let mut definition = processor.clone();
    if let Some(fields) = definition.as_object_mut() {
        fields.remove("ProcessorConfig");
        let language = match language {
            Language::Jsonata => "JSONata",
            Language::JsonPath => "JSONPath",
        };
        fields.insert("QueryLanguage".to_owned(), language.into());
    }
    definition.to_string()
}

fn batcher(fields: &Fields<'_>) -> Result<Option<Batcher>> {
    let Some(fields) = fields.object("ItemBatcher")? else { return Ok(None) };
    let count = |name, path| fields.slot(name, path, COUNT, accept::limit);
    let batcher = Batcher {
        items_max: count("MaxItemsPerBatch", "MaxItemsPerBatchPath")?,
        bytes_max: count("MaxInputBytesPerBatch", "MaxInputBytesPerBatchPath")?,
        input: fields.template("BatchInput")?,
    };
    fields.finish()?;
    Ok(Some(batcher))
}

/// Every possible successor of a state, with the field that names it.
fn successors(state: &State) -> Vec<(&'static str, &str)> {
    let mut names: Vec<(&'static str, &str)> = Vec::new();
    if let Kind::Choice { rules, default } = &state.kind {
        names.extend(rules.iter().map(|rule| ("Next", rule.next.as_str())));
        names.extend(default.iter().map(|default| ("Default", default.as_str())));
    } else if let Transition::Next(name) = &state.next {
        names.push(("Next", name));
    }
    names.extend(state.catch.iter().map(|catcher| ("Next", catcher.next.as_str())));
    names
}

fn check_paths(machine: &Machine, fields: &Fields<'_>, states: &Fields<'_>) -> Result<()> {
    if !machine.states.contains_key(&machine.start_at) {
        let problem = Problem::UnknownState("StartAt", machine.start_at.clone());
        return Err(fields.error_at("StartAt", problem));
    }
    for (name, state) in &machine.states {
        let unknown =
            successors(state).into_iter().find(|(_, to)| !machine.states.contains_key(*to));
        if let Some((field, to)) = unknown {
            return Err(states.error_at(name, Problem::UnknownState(field, to.to_owned())));
        }
    }
    let mut reached = BTreeSet::new();
    let mut open = vec![machine.start_at.as_str()];
    while let Some(name) = open.pop() {
        if reached.insert(name) {
            open.extend(successors(&machine.states[name]).into_iter().map(|(_, to)| to));
        }
    }
    if let Some(name) = machine.states.keys().find(|name| !reached.contains(name.as_str())) {
        return Err(states.error_at(name, Problem::Unreachable(name.clone())));
    }
    let ends =
        |state: &State| state.next == Transition::End && !matches!(state.kind, Kind::Choice { .. });
    if !machine.states.values().any(ends) {
        return Err(fields.error_at("States", Problem::NoEnd));
    }
    Ok(())
}

/// Parses a state without a result.
fn plain(fields: &Fields<'_>, kind: Kind, next: Transition) -> Result<State> {
    state(fields, kind, passed_on(fields)?, next)
}

/// Parses a state that computes a result and may fail.
fn worker(fields: &Fields<'_>, kind: Kind) -> Result<State> {
    let state = state(fields, kind, result(fields, true)?, transition(fields)?)?;
    Ok(State { retry: retriers(fields)?, catch: catchers(fields)?, ..state })
}

fn state(fields: &Fields<'_>, kind: Kind, result: Yield, next: Transition) -> Result<State> {
    let (language, input) = (fields.language(), fields.lens("InputPath")?);
    Ok(State { language, input, kind, result, next, retry: Vec::new(), catch: Vec::new() })
}

fn pass(fields: &Fields<'_>) -> Result<State> {
    let (mut parameters, mut literal) = (None, None);
    if fields.language() == Language::JsonPath {
        parameters = fields.template("Parameters")?;
        literal = fields.take("Result").cloned();
    }
    let kind = Kind::Pass { parameters, result: literal };
    state(fields, kind, result(fields, false)?, transition(fields)?)
}

fn fail(fields: &Fields<'_>) -> Result<State> {
    let text = "a string or an expression";
    let kind = Kind::Fail {
        error: fields.slot("Error", "ErrorPath", text, accept::text)?,
        cause: fields.slot("Cause", "CausePath", text, accept::text)?,
    };
    let (language, input) = (fields.language(), Lens::Whole);
    let (result, next) = (Yield::default(), Transition::End);
    Ok(State { language, input, kind, result, next, retry: Vec::new(), catch: Vec::new() })
}

fn until(fields: &Fields<'_>) -> Result<Until> {
    const FIELDS: [&str; 4] = ["SecondsPath", "Seconds", "TimestampPath", "Timestamp"];
    let time = "an RFC 3339 time or an expression";
    match FIELDS.iter().filter(|name| fields.has(name)).count() {
        0 => {
            let none = "SecondsPath, Seconds, TimestampPath, Timestamp";
            return Err(fields.error(Problem::NoneOf(none)));
        }
        1 => {}
        _ => return Err(fields.error(Problem::Exclusive(FIELDS.join(", ")))),
    }
    let seconds = fields.slot("Seconds", "SecondsPath", SECONDS, accept::seconds)?;
    let timestamp = fields.slot("Timestamp", "TimestampPath", time, accept::time)?;
    match (seconds, timestamp) {
        (Some(seconds), None) => Ok(Until::Seconds(seconds)),
        (None, Some(timestamp)) => Ok(Until::Timestamp(timestamp)),
        // One of the other language's fields.
        _ => {
            let field = FIELDS.iter().find(|name| fields.has(name)).unwrap_or(&"Seconds");
            Err(fields.error(fields.unexpected(field)))
        }
    }
}

fn choice(fields: &Fields<'_>) -> Result<State> {
    fields.require(&["Choices"])?;
    let rules = fields.objects("Choices")?;
    if rules.is_empty() {
        return Err(fields.error_at("Choices", Problem::Empty));
    }
    let rules = rules.into_iter().map(Rule::parse).collect::<Result<Vec<_>>>()?;
    let default = fields.text("Default")?.map(str::to_owned);
    plain(fields, Kind::Choice { rules, default }, Transition::End)
}

/// `Arguments`, or `Parameters` in JSONPath.
fn arguments(fields: &Fields<'_>) -> Result<Option<super::Template>> {
    fields.template(match fields.language() {
        Language::Jsonata => "Arguments",
        Language::JsonPath => "Parameters",
    })
}

/// `Credentials` select a role. This engine has no roles, so they are only checked.
fn credentials(fields: &Fields<'_>) -> Result<()> {
    let Some(value) = fields.take("Credentials") else { return Ok(()) };
    let resource = fields.take("Resource").and_then(Value::as_str).unwrap_or_default();
    if resource.contains(":activity:") {
        let problem = "The field 'Credentials' is not supported for activities";
        return Err(fields.error_at("Credentials", Problem::Conflict(problem)));
    }
    match value.as_object() {
        Some(members) if members.contains_key("RoleArn") || members.contains_key("RoleArn.$") => {
            Ok(())
        }
        Some(_) => Err(fields.error_at("Credentials", Problem::Missing("RoleArn"))),
        None => Ok(()),
    }
}

fn task(fields: &Fields<'_>, workflow: Workflow) -> Result<State> {
    fields.require(&["Resource"])?;
    credentials(fields)?;
    let seconds = |name, path| fields.slot(name, path, LIMIT, accept::limit);
    let timeout = seconds("TimeoutSeconds", "TimeoutSecondsPath")?;
    let heartbeat = seconds("HeartbeatSeconds", "HeartbeatSecondsPath")?;
    if let (Some(Slot::Literal(timeout)), Some(Slot::Literal(heartbeat))) = (&timeout, &heartbeat)
        && accept::limit(heartbeat) >= accept::limit(timeout)
    {
        let problem = "'HeartbeatSeconds' must be smaller than 'TimeoutSeconds'";
        return Err(fields.error(Problem::Conflict(problem)));
    }
    let resource = resource(fields, workflow)?;
    let arguments = arguments(fields)?;
    worker(fields, Kind::Task(Box::new(Task { resource, arguments, timeout, heartbeat })))
}
