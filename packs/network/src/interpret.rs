//! Maps a plan step to tool calls by rules, without a model.
//!
//! Finds the step's subjects in its words and a tool's subjects in its name and description, then
//! calls the best-matching tool for each subject. Arguments come from the tool's schema and the
//! query. No tool is known by name.

use graph::effect::{ToolCall, ToolSpec};
use serde_json::{Map, Value, json};

use super::choices::choices;
use super::lexicon;

/// Weight of a word in a tool's name; in its description or its schema it counts one.
const NAME_WEIGHT: f64 = 3.0;

/// Minimum weight of a matching tool for a step whose subject no tool names.
const WEIGHT_MIN: f64 = 3.0;

/// The subject to search in, whatever the search is for.
const LOGS: &str = "log";

/// Words of tools' names and descriptions that say nothing about their subject.
const GENERIC: &[&str] = &[
    "get",
    "show",
    "list",
    "read",
    "info",
    "information",
    "status",
    "state",
    "detail",
    "device",
    "of",
    "the",
    "a",
    "an",
    "and",
    "or",
    "on",
    "in",
    "for",
    "its",
    "their",
    "with",
    "to",
    "check",
    "fetch",
    "query",
    "name",
    "router",
    "switch",
    "all",
    "one",
    "every",
    "if",
    "is",
    "are",
    "be",
    "should",
    "it",
    "that",
    "by",
    "from",
    "network",
    "data",
    "neighbor",
    "session",
    "table",
    "up",
    "down",
];

/// Known values for arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub device: &'a str,
    pub interface: Option<&'a str>,
    pub vrf: Option<&'a str>,
    pub is_anything_found: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    Calls(Vec<ToolCall>),
    /// The step's condition is not met.
    NotNeeded,
    /// No call is possible, for this reason.
    Impossible(String),
}

pub(super) fn action_of(step: &str, known: Known<'_>, offered: &[ToolSpec]) -> Action {
    let action = match condition(step) {
        Some(_) if !known.is_anything_found => return Action::NotNeeded,
        Some(action) => action,
        None => step,
    };
    let subjects = subjects(action);
    let mut calls: Vec<ToolCall> = Vec::new();
    let mut reasons = Vec::new();
    for subject in &subjects {
        match call(subject, action, known, offered) {
            Ok(call) if calls.iter().any(|made| made.tool == call.tool) => {}
            Ok(call) => calls.push(call),
            Err(reason) => reasons.push(reason),
        }
    }
    if subjects.is_empty() {
        match by_words(action, known, offered) {
            Ok(call) => calls.push(call),
            Err(reason) => reasons.push(reason),
        }
    }
    // The ends of a link between several devices are known by their neighbors.
    if action.contains("both ends")
        && known.device.contains(", ")
        && let Ok(call) = call("lldp", action, known, offered)
        && !calls.is_empty()
        && calls.iter().all(|made| made.tool != call.tool)
    {
        calls.push(call);
    }
    if calls.is_empty() { Action::Impossible(reasons.join("; ")) } else { Action::Calls(calls) }
}

/// For a conditional step ("If …, check …"): the action.
pub(super) fn condition(step: &str) -> Option<&str> {
    let first = step.split_whitespace().next()?;
    if !["if", "when", "where"].contains(&first.to_lowercase().as_str()) {
        return None;
    }
    let verbs = [", check ", ", look ", ", examine ", ", compare ", ", read "];
    let then = verbs.into_iter().filter_map(|verb| step.find(verb)).min();
    Some(then.map_or(step, |at| &step[at + 2..]))
}

/// The subjects of a step's instruction: the text before a colon or full stop, which explanations
/// follow. Falls back to the whole step.
pub(super) fn subjects(action: &str) -> Vec<&'static str> {
    let found = lexicon::subjects(&words(head(action)));
    let found = if found.is_empty() { lexicon::subjects(&words(action)) } else { found };
    if found.contains(&LOGS) { vec![LOGS] } else { found }
}

/// Whether a question asks about a subject, or something of one.
pub(super) fn is_specific(query: &str) -> bool {
    let said = words(query);
    !lexicon::subjects(&said).is_empty() || !lexicon::attributes(&said).is_empty()
}

fn head(action: &str) -> &str {
    action.split([':', ';']).next().and_then(|text| text.split(". ").next()).unwrap_or(action)
}

/// The words of a text in lower case, without plurals.
pub(super) fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace("is-is", "isis");
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(stem).collect()
}

/// The words of a tool's or an argument's name, in camel case, snake case or kebab case.
pub(super) fn name_words(name: &str) -> Vec<String> {
    let mut separated = String::new();
    let mut was_small = false;
    for c in name.chars() {
        if c.is_uppercase() && was_small {
            separated.push(' ');
        }
        was_small = c.is_lowercase();
        separated.push(c);
    }
    words(&separated)
}

pub(super) fn stem(word: &str) -> String {
    match word.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None if ["xes", "ches", "shes", "sses"].iter().any(|end| word.ends_with(end)) => {
            word[..word.len() - 2].to_owned()
        }
        None if word.len() > 3 && !word.ends_with("ss") && !word.ends_with("is") => {
            word.strip_suffix('s').unwrap_or(word).to_owned()
        }
        None => word.to_owned(),
    }
}

/// How well a tool matches a subject: its name, else its description and its schema.
fn weight(tool: &ToolSpec, subject: &str) -> f64 {
    let name = name_words(&tool.name);
    let is_about = |said: &[String]| lexicon::subjects(said).contains(&subject);
    let only = |said: &[String]| if lexicon::subjects(said).len() == 1 { 0.5 } else { 0.0 };
    let by_name = if is_about(&name) { NAME_WEIGHT + only(&name) } else { 0.0 };
    let description = words(&tool.description);
    let by_description = if is_about(&description) { 1.0 + only(&description) } else { 0.0 };
    let schema = words(&choices_of(tool).join(" "));
    by_name + by_description + if is_about(&schema) { 1.0 } else { 0.0 }
}

/// The values that a tool's arguments accept.
fn choices_of(tool: &ToolSpec) -> Vec<&str> {
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    let of = |property| choices(property, &tool.input_schema);
    properties.into_iter().flat_map(serde_json::Map::values).flat_map(of).collect()
}

/// The call for a subject, or why there is none.
fn call(
    subject: &str,
    action: &str,
    known: Known<'_>,
    offered: &[ToolSpec],
) -> Result<ToolCall, String> {
    let weighed = offered.iter().map(|tool| (weight(tool, subject), tool));
    let matching = weighed.filter(|(weight, _)| *weight >= 1.0).collect();
    let reason = format!("no available tool covers {subject}");
    best(matching, action, known, reason.clone()).or_else(|error| {
        let words =
            FAMILIES.iter().find(|(names, _)| names.contains(&subject)).map(|(_, words)| words);
        let of_word = |word: &&str| {
            offered
                .iter()
                .filter(|tool| name_words(&tool.name).iter().any(|w| w == word))
                .collect::<Vec<_>>()
        };
        let of_family = words.into_iter().flat_map(|words| words.iter().flat_map(of_word));
        let weighed = of_family.zip((1..).map(f64::from)).map(|(tool, at)| (-at, tool)).collect();
        best(weighed, action, known, error)
    })
}

/// Subjects, and words of the names of the tools that show them if no tool claims them.
const FAMILIES: &[(&[&str], &[&str])] = &[
    (&["fhrp"], &["routing", "switching", "interface"]),
    (&["bfd", "eigrp", "rip", "multicast", "route"], &["routing"]),
    (&["stp", "vlan", "mac"], &["switching"]),
    (&["optics", "lag", "tunnel"], &["interface"]),
    (&["environment", "ha", "ntp", "cpu", "memory"], &["system"]),
];

/// The call of the tool whose words match the step's, the rare ones more than the common ones.
fn by_words(action: &str, known: Known<'_>, offered: &[ToolSpec]) -> Result<ToolCall, String> {
    let documents: Vec<Vec<String>> = offered
        .iter()
        .map(|tool| [name_words(&tool.name), words(&tool.description)].concat())
        .collect();
    let of_names: Vec<Vec<String>> = offered.iter().map(|tool| name_words(&tool.name)).collect();
    let mut said = words(action);
    said.sort();
    said.dedup();
    said.retain(|word| !GENERIC.contains(&word.as_str()));
    #[expect(clippy::cast_precision_loss, reason = "at most 64 tools")]
    let weight = |at: usize| -> f64 {
        let rarity = |word: &String| {
            let having = documents.iter().filter(|document| document.contains(word)).count();
            1.0 + (documents.len() as f64 / having.max(1) as f64).ln()
        };
        let shared = said.iter().filter(|word| documents[at].contains(word));
        shared
            .map(|word| rarity(word) * if of_names[at].contains(word) { NAME_WEIGHT } else { 1.0 })
            .sum()
    };
    let weighed = offered.iter().enumerate().map(|(at, tool)| (weight(at), tool));
    let matching = weighed.filter(|(weight, _)| *weight >= WEIGHT_MIN).collect();
    best(matching, action, known, "no available tool matches its words".to_owned())
}

/// The call of the best matching tool whose arguments are known.
fn best(
    mut matching: Vec<(f64, &ToolSpec)>,
    action: &str,
    known: Known<'_>,
    mut reason: String,
) -> Result<ToolCall, String> {
    // Stable sort: among equals, the first tool offered wins.
    matching.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    for (_, tool) in matching {
        match arguments(tool, action, known) {
            Ok(arguments) => {
                return Ok(ToolCall {
                    id: None,
                    server: tool.server.clone(),
                    tool: tool.name.clone(),
                    arguments,
                });
            }
            Err(missing) => {
                reason = format!("{} needs `{missing}`, which the query does not name", tool.name);
            }
        }
    }
    Err(reason)
}

/// A tool's arguments, or the first required one that is unknown.
fn arguments(tool: &ToolSpec, action: &str, known: Known<'_>) -> Result<Value, String> {
    let schema = &tool.input_schema;
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required = schema.get("required").and_then(Value::as_array);
    let mut arguments = Map::new();
    for (name, property) in properties {
        let is_required = required.is_some_and(|names| names.iter().any(|n| n == name));
        let choices = choices(property, schema);
        match argument(name, &choices, is_required, action, known) {
            Some(value) => {
                arguments.insert(name.clone(), value);
            }
            None if is_required => return Err(name.clone()),
            None => {}
        }
    }
    Ok(Value::Object(arguments))
}

const DEVICE_WORDS: &[&str] = &["device", "host", "hostname", "router", "switch", "node", "target"];

fn is_device_argument(name: &str) -> bool {
    name_words(name).iter().any(|word| DEVICE_WORDS.contains(&word.as_str()))
}

/// The device that a call is about.
pub(super) fn device_of(arguments: &Value) -> Option<&str> {
    let mut all = arguments.as_object()?.iter();
    all.find(|(name, _)| is_device_argument(name)).and_then(|(_, value)| value.as_str())
}

/// A model's call, with the device of the question if it names none.
pub(super) fn for_device(call: &ToolCall, device: &str, offered: &[ToolSpec]) -> ToolCall {
    let mut call = call.clone();
    let schema = offered.iter().find(|tool| tool.name == call.tool).map(|tool| &tool.input_schema);
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    let argument = properties.and_then(|all| all.keys().find(|name| is_device_argument(name)));
    if let (Some(name), Some(arguments)) = (argument, call.arguments.as_object_mut()) {
        arguments.entry(name.clone()).or_insert_with(|| json!(device));
    }
    call
}

/// The same calls for each of these devices.
pub(super) fn for_devices(calls: Vec<ToolCall>, devices: &[&str]) -> Vec<ToolCall> {
    let one = |call: &ToolCall, device: &str| {
        let mut call = call.clone();
        for (name, value) in call.arguments.as_object_mut().into_iter().flatten() {
            if is_device_argument(name) {
                *value = json!(device);
            }
        }
        call
    };
    let mut all: Vec<ToolCall> = Vec::new();
    for call in calls {
        let of_devices: Vec<ToolCall> = devices.iter().map(|device| one(&call, device)).collect();
        let of_devices = if of_devices.is_empty() { vec![call] } else { of_devices };
        all.extend(of_devices.into_iter().filter(|call| !all.contains(call)).collect::<Vec<_>>());
    }
    all
}

fn argument(
    name: &str,
    choices: &[&str],
    is_required: bool,
    action: &str,
    known: Known<'_>,
) -> Option<Value> {
    let name = name_words(name);
    let is = |words: &[&str]| name.iter().any(|word| words.contains(&word.as_str()));
    if is(&["device", "host", "hostname", "router", "switch", "node", "target"]) {
        return Some(json!(known.device));
    }
    if is(&["interface", "port"]) {
        return known.interface.map(Value::from);
    }
    if is(&["vrf", "vpn"]) {
        return known.vrf.map(Value::from);
    }
    let said = words(head(action));
    let mut values = choices.iter().copied();
    let all = values.clone().find(|value| *value == "all");
    let named: Vec<&str> =
        values.clone().filter(|value| said.contains(&value.to_lowercase())).collect();
    match named[..] {
        [one] => Some(json!(one)),
        _ if is_required => all.or_else(|| values.next()).map(Value::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str, schema: Value) -> ToolSpec {
        ToolSpec {
            server: Some("s".to_owned()),
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: schema,
        }
    }

    fn offered() -> Vec<ToolSpec> {
        let device = |more: Value| {
            let mut schema = json!({
                "required": ["device_name"], "properties": {"device_name": {"type": "string"}},
            });
            schema["properties"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            schema
        };
        vec![
            tool(
                "get_routing_info",
                "Read BGP and IS-IS.",
                device(json!({"protocol": {"enum": ["bgp", "isis", "all"]}})),
            ),
            tool("get_interface_info", "Read interfaces.", device(json!({"interface": {}}))),
            tool("get_vpn_info", "Read VRFs: routes, interfaces.", device(json!({"vrf": {}}))),
            tool("get_logs", "Read the log.", device(json!({"keywords": {}, "minutes": {}}))),
            tool(
                "show_lldp",
                "Who is next.",
                json!({"required": ["hostname"], "properties": {"hostname": {}}}),
            ),
            tool(
                "get_memory_pages",
                "Pages.",
                json!({"required": ["page"], "properties": {"page": {}}}),
            ),
        ]
    }

    #[track_caller]
    fn check(step: &str, is_anything_found: bool, expected: &str) {
        let known =
            Known { device: "pe1", interface: Some("Hu0/0/0/1"), vrf: None, is_anything_found };
        let said = match action_of(step, known, &offered()) {
            Action::Calls(calls) => {
                let said = calls.iter().map(|call| format!("{} {}", call.tool, call.arguments));
                said.collect::<Vec<_>>().join("; ")
            }
            Action::NotNeeded => "not needed".to_owned(),
            Action::Impossible(why) => format!("impossible: {why}"),
        };
        assert_eq!(said, expected, "{step}");
    }

    #[test]
    fn both_ends_of_several_devices_need_their_neighbors() {
        let of = |device: &str| {
            let known = Known { device, interface: None, vrf: None, is_anything_found: false };
            match action_of("Compare the BGP timers at both ends.", known, &offered()) {
                Action::Calls(calls) => calls.into_iter().map(|call| call.tool).collect::<Vec<_>>(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(of("pe1, pe2"), ["get_routing_info", "show_lldp"]);
        assert_eq!(of("pe1"), ["get_routing_info"]);
    }

    #[test]
    fn a_step_calls_the_tools_of_its_subjects() {
        let bgp = r#"get_routing_info {"device_name":"pe1","protocol":"bgp"}"#;
        let logs = r#"get_logs {"device_name":"pe1"}"#;
        check("Check the state of every BGP neighbor. Idle is bad.", false, bgp);
        check(
            "Check the routing protocols: IS-IS and BGP.",
            false,
            r#"get_routing_info {"device_name":"pe1"}"#,
        );
        check(
            "Examine the error counters of the interfaces.",
            false,
            r#"get_interface_info {"device_name":"pe1","interface":"Hu0/0/0/1"}"#,
        );
        check(
            "Compare the route targets of the VRF.",
            false,
            r#"get_vpn_info {"device_name":"pe1"}"#,
        );
        check("Check over LLDP who is heard.", false, r#"show_lldp {"hostname":"pe1"}"#);
        check("Check the logs of the last hour for BGP.", false, logs);
        check("If any neighbor is down, check the logs for BGP.", false, "not needed");
        check("If any neighbor is down, check the logs for BGP.", true, logs);
    }

    #[test]
    fn an_impossible_step_has_a_reason() {
        check("Check the LDP sessions.", false, "impossible: no available tool covers ldp");
        check("Check MPLS: no BGP.", false, "impossible: no available tool covers mpls");
        check("Taste the coffee.", false, "impossible: no available tool matches its words");
        check(
            "Check the memory.",
            false,
            "impossible: get_memory_pages needs `page`, which the query does not name",
        );
    }
}
