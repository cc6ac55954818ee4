//! From text to a checked [`Definition`].

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::fields::{Fields, error};
use super::template::accept;
use super::{
    Catcher, Choice, Definition, DefinitionError, Problem, Resource, Retrier, Rule,
    STATE_NAME_CHARS_MAX, State, Task, Template, Transition, Until, VARIABLE_NAME_CHARS_MAX, Yield,
};
use crate::error_name;

const SECONDS: &str = "a whole number of seconds, at most 99999999, or an expression";
const LIMIT: &str = "a whole number of seconds from 1 to 99999999, or an expression";

type Result<T> = std::result::Result<T, DefinitionError>;

pub(super) fn definition(text: &str) -> Result<Definition> {
    let value: Value = serde_json::from_str(text)
        .map_err(|cause| error("", Problem::NotJson(cause.to_string())))?;
    let fields = Fields::of(&value, String::new())?;
    let jsonata = is_jsonata(&fields)?.unwrap_or(false);
    let states = Fields::of(fields.required("States")?, "/States".to_owned())?;
    let start_at = fields.required_text("StartAt")?.to_owned();
    fields.text("Version")?;
    let timeout_s =
        fields.optional("TimeoutSeconds", "a whole number of seconds", accept::limit)?;
    fields.finish()?;
    let mut parsed = BTreeMap::new();
    for (name, state) in value["States"].as_object().into_iter().flatten() {
        if name.is_empty() || name.chars().count() > STATE_NAME_CHARS_MAX {
            return Err(
                states.error_at(name, Problem::Value("a state with a name of 1 to 80 characters"))
            );
        }
        parsed.insert(name.clone(), state_of(state, states.at(name), jsonata)?);
    }
    let definition = Definition { start_at, timeout_s, states: parsed };
    check_paths(&definition, &states)?;
    Ok(definition)
}

/// Whether the object asks for JSONata; `None` if it does not say.
fn is_jsonata(fields: &Fields<'_>) -> Result<Option<bool>> {
    Ok(match fields.text("QueryLanguage")? {
        None => None,
        Some("JSONata") => Some(true),
        Some("JSONPath") => Some(false),
        Some(_) => {
            return Err(fields.error_at("QueryLanguage", Problem::Value("'JSONata' or 'JSONPath'")));
        }
    })
}

fn check_paths(definition: &Definition, states: &Fields<'_>) -> Result<()> {
    if !definition.states.contains_key(&definition.start_at) {
        return Err(error("/StartAt", Problem::UnknownState(definition.start_at.clone())));
    }
    for (name, state) in &definition.states {
        if let Some(next) =
            state.successors().into_iter().find(|next| !definition.states.contains_key(*next))
        {
            return Err(states.error_at(name, Problem::UnknownState(next.to_owned())));
        }
    }
    let mut reached = BTreeSet::new();
    let mut open = vec![definition.start_at.as_str()];
    while let Some(name) = open.pop() {
        if reached.insert(name) {
            open.extend(definition.states[name].successors());
        }
    }
    if let Some(name) = definition.states.keys().find(|name| !reached.contains(name.as_str())) {
        return Err(states.error_at(name, Problem::Unreachable));
    }
    if !definition.states.values().any(State::is_terminal) {
        return Err(error("/States", Problem::Conflict("no state ends the execution")));
    }
    Ok(())
}

fn state_of(value: &Value, location: String, jsonata: bool) -> Result<State> {
    let fields = Fields::of(value, location)?;
    let state_type = fields.required_text("Type")?;
    match is_jsonata(&fields)? {
        Some(false) if jsonata => {
            return Err(
                fields.error(Problem::Conflict("a state of a JSONata machine cannot be JSONPath"))
            );
        }
        own if !own.unwrap_or(jsonata) => {
            return Err(fields.error_at(
                "QueryLanguage",
                Problem::Unsupported("query language JSONPath".to_owned()),
            ));
        }
        _ => {}
    }
    let state = match state_type {
        "Task" => State::Task(Box::new(task(&fields)?)),
        "Choice" => State::Choice(choice(&fields)?),
        "Wait" => State::Wait {
            until: until(&fields)?,
            result: yield_of(&fields)?,
            next: transition(&fields)?,
        },
        "Pass" => State::Pass { result: yield_of(&fields)?, next: transition(&fields)? },
        "Succeed" => State::Succeed {
            result: Yield { assign: Vec::new(), output: fields.template("Output")? },
        },
        "Fail" => State::Fail {
            error: fields.slot("Error", "a string", accept::text)?,
            cause: fields.slot("Cause", "a string", accept::text)?,
        },
        "Parallel" | "Map" => {
            return Err(
                fields.error_at("Type", Problem::Unsupported(format!("state type {state_type}")))
            );
        }
        _ => {
            let types = "one of Task, Wait, Pass, Succeed, Fail, Choice, Parallel, Map";
            return Err(fields.error_at("Type", Problem::Value(types)));
        }
    };
    fields.finish()?;
    Ok(state)
}

fn transition(fields: &Fields<'_>) -> Result<Transition> {
    let end = fields.optional("End", "true or false", Value::as_bool)?.unwrap_or(false);
    match (fields.text("Next")?, end) {
        (Some(next), false) => Ok(Transition::Next(next.to_owned())),
        (None, true) => Ok(Transition::End),
        (Some(_), true) => {
            Err(fields.error(Problem::Conflict("'Next' and 'End' exclude each other")))
        }
        (None, false) => {
            Err(fields.error(Problem::Conflict("one of 'Next' and 'End' is required")))
        }
    }
}

fn yield_of(fields: &Fields<'_>) -> Result<Yield> {
    let output = fields.template("Output")?;
    let Some(assign) = fields.optional("Assign", "an object", Value::as_object)? else {
        return Ok(Yield { assign: Vec::new(), output });
    };
    let location = fields.at("Assign");
    if let Some(name) = assign.keys().find(|name| !is_variable_name(name)) {
        let location = format!("{location}/{name}");
        return Err(error(
            &location,
            Problem::Value("a variable: an identifier of at most 80 characters, not 'states'"),
        ));
    }
    Ok(Yield { assign: Template::compile_fields(assign, &location)?, output })
}

/// Source: AWS, "Passing data between states with variables", names (Unicode identifiers).
fn is_variable_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && chars.all(|char| char.is_alphanumeric() || char == '_')
        && name.chars().count() <= VARIABLE_NAME_CHARS_MAX
        && name != "states"
}

fn until(fields: &Fields<'_>) -> Result<Until> {
    let seconds = fields.slot("Seconds", SECONDS, accept::seconds)?;
    let timestamp = fields.slot("Timestamp", "an RFC 3339 time or an expression", accept::time)?;
    match (seconds, timestamp) {
        (Some(seconds), None) => Ok(Until::Seconds(seconds)),
        (None, Some(timestamp)) => Ok(Until::Timestamp(timestamp)),
        _ => {
            Err(fields
                .error(Problem::Conflict("exactly one of 'Seconds' and 'Timestamp' is required")))
        }
    }
}

fn choice(fields: &Fields<'_>) -> Result<Choice> {
    let rules = fields.objects("Choices")?;
    if rules.is_empty() {
        return Err(fields.error_at("Choices", Problem::Value("an array that is not empty")));
    }
    let rules = rules.into_iter().map(rule).collect::<Result<Vec<_>>>()?;
    Ok(Choice {
        rules,
        result: yield_of(fields)?,
        default: fields.text("Default")?.map(str::to_owned),
    })
}

fn rule(fields: Fields<'_>) -> Result<Rule> {
    let condition = fields.slot("Condition", "a boolean or an expression", accept::boolean)?;
    let condition = condition.ok_or_else(|| fields.error(Problem::Required("Condition")))?;
    let rule = Rule {
        condition,
        result: yield_of(&fields)?,
        next: fields.required_text("Next")?.to_owned(),
    };
    fields.finish()?;
    Ok(rule)
}

fn task(fields: &Fields<'_>) -> Result<Task> {
    if fields.take("Credentials").is_some() {
        return Err(fields
            .error_at("Credentials", Problem::Unsupported("a role of a task's own".to_owned())));
    }
    let timeout = fields.slot("TimeoutSeconds", LIMIT, accept::limit)?;
    let heartbeat = fields.slot("HeartbeatSeconds", LIMIT, accept::limit)?;
    if let (Some(super::Slot::Literal(timeout)), Some(super::Slot::Literal(heartbeat))) =
        (&timeout, &heartbeat)
        && accept::limit(heartbeat) >= accept::limit(timeout)
    {
        return Err(fields
            .error(Problem::Conflict("'HeartbeatSeconds' must be smaller than 'TimeoutSeconds'")));
    }
    let retry = fields.objects("Retry")?;
    let catch = fields.objects("Catch")?;
    let (retriers, catchers) = (retry.len(), catch.len());
    Ok(Task {
        resource: resource(fields)?,
        arguments: fields.template("Arguments")?,
        timeout,
        heartbeat,
        result: yield_of(fields)?,
        next: transition(fields)?,
        retry: numbered(retry)
            .map(|(at, item)| retrier(item, at == retriers))
            .collect::<Result<_>>()?,
        catch: numbered(catch)
            .map(|(at, item)| catcher(item, at == catchers))
            .collect::<Result<_>>()?,
    })
}

fn numbered<'a>(items: Vec<Fields<'a>>) -> impl Iterator<Item = (usize, Fields<'a>)> {
    (1..).zip(items)
}

fn resource(fields: &Fields<'_>) -> Result<Resource> {
    let arn = fields.required_text("Resource")?;
    let wrong = || {
        fields.error_at(
            "Resource",
            Problem::Value("the ARN of a function or of a service integration"),
        )
    };
    let unsupported =
        |what: &str| Err(fields.error_at("Resource", Problem::Unsupported(what.to_owned())));
    let parts: Vec<&str> = arn.split(':').collect();
    match parts.as_slice() {
        ["arn", _, "lambda", _, _, "function", ..] => {
            Ok(Resource::Function { arn: arn.to_owned() })
        }
        ["arn", _, "states", _, _, "activity", ..] => unsupported("an activity"),
        // Before the general case, because `.sync:2` is cut by its colon.
        ["arn", _, "states", ..] if arn.contains(".sync") => unsupported("'.sync'"),
        ["arn", _, "states", "", "", service @ .., resource] if !service.is_empty() => {
            let (_, pattern) = resource.split_once('.').unwrap_or((resource, ""));
            let waits_for_token = match pattern {
                "" => false,
                "waitForTaskToken" => true,
                _ => return Err(wrong()),
            };
            let resource_type = service.join(":");
            Ok(Resource::Service {
                arn: arn.to_owned(),
                resource_type,
                resource: (*resource).to_owned(),
                waits_for_token,
            })
        }
        _ => Err(wrong()),
    }
}

fn error_equals(fields: &Fields<'_>, last: bool) -> Result<Vec<String>> {
    const NAMES: &str = "an array of error names that is not empty";
    let items = fields.optional("ErrorEquals", NAMES, Value::as_array)?;
    let items = items.ok_or_else(|| fields.error(Problem::Required("ErrorEquals")))?;
    let names: Option<Vec<String>> =
        items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
    let names = names.filter(|names| !names.is_empty());
    let names = names.ok_or_else(|| fields.error_at("ErrorEquals", Problem::Value(NAMES)))?;
    if names.iter().any(|name| name == error_name::ALL) && !(names.len() == 1 && last) {
        let problem = Problem::Conflict("'States.ALL' must stand alone and last");
        return Err(fields.error_at("ErrorEquals", problem));
    }
    Ok(names)
}

fn retrier(fields: Fields<'_>, last: bool) -> Result<Retrier> {
    let jitter = fields.text("JitterStrategy")?.unwrap_or("NONE");
    if !matches!(jitter, "FULL" | "NONE") {
        return Err(fields.error_at("JitterStrategy", Problem::Value("'FULL' or 'NONE'")));
    }
    let rate = |value: &Value| value.as_f64().filter(|rate| *rate >= 1.0);
    let retrier = Retrier {
        error_equals: error_equals(&fields, last)?,
        interval_s: fields
            .optional("IntervalSeconds", "a positive whole number", accept::limit)?
            .unwrap_or(1),
        max_attempts: fields
            .optional("MaxAttempts", "a whole number", accept::seconds)?
            .unwrap_or(3),
        backoff_rate: fields.optional("BackoffRate", "a number, at least 1", rate)?.unwrap_or(2.0),
        max_delay_s: fields.optional(
            "MaxDelaySeconds",
            "a positive whole number",
            accept::limit,
        )?,
        full_jitter: jitter == "FULL",
    };
    if retrier.max_delay_s.is_some_and(|max| max <= retrier.interval_s) {
        return Err(fields
            .error(Problem::Conflict("'MaxDelaySeconds' must be greater than 'IntervalSeconds'")));
    }
    fields.finish()?;
    Ok(retrier)
}

fn catcher(fields: Fields<'_>, last: bool) -> Result<Catcher> {
    let catcher = Catcher {
        error_equals: error_equals(&fields, last)?,
        result: yield_of(&fields)?,
        next: fields.required_text("Next")?.to_owned(),
    };
    fields.finish()?;
    Ok(catcher)
}
