//! Maps a plan step to tool calls by rules, without a model.
//!
//! Finds the step's subjects in its words and a tool's subjects in its name and description, then
//! calls the best-matching tool for each subject. Arguments come from the tool's schema and the
//! query. No tool is known by name.

use graph::effect::{ToolCall, ToolSpec};
use serde_json::{Map, Value, json};

use super::choices::choices;

/// Subjects of network checks and their keywords.
const SUBJECTS: &[(&str, &[&str])] = &[
    ("routing", &["routing", "route", "bgp", "isis", "ospf", "adjacency"]),
    ("interfaces", &["interface", "port", "mtu", "carrier", "optic"]),
    ("labels", &["mpls", "ldp", "label", "segment", "sid", "lsp"]),
    ("VPNs", &["vpn", "vrf", "l3vpn", "vpnv4"]),
    ("logs", &["log", "syslog"]),
    ("the system", &["system", "cpu", "memory", "uptime"]),
    ("the topology", &["topology", "lldp", "cdp"]),
];

/// The subject to search in, whatever the search is for.
const LOGS: &str = "logs";

/// Keywords that count in a tool's name but are too general in a sentence.
const ONLY_IN_NAMES: &[&str] = &["route"];

/// Weight of a hit in a tool's name; a hit in its description counts one.
const NAME_WEIGHT: usize = 3;

/// Minimum score of a matching tool: one hit in its name, or two in its description.
const WEIGHT_MIN: usize = 2;

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
    if subjects.is_empty() {
        return Action::Impossible("no rule matches its words".to_owned());
    }
    let mut calls: Vec<ToolCall> = Vec::new();
    let mut reasons = Vec::new();
    for subject in subjects {
        match call(subject, action, known, offered) {
            Ok(call) if calls.iter().any(|made| made.tool == call.tool) => {}
            Ok(call) => calls.push(call),
            Err(reason) => reasons.push(reason),
        }
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
fn subjects(action: &str) -> Vec<&'static str> {
    let found = of(head(action));
    let found = if found.is_empty() { of(action) } else { found };
    if found.contains(&LOGS) { vec![LOGS] } else { found }
}

fn head(action: &str) -> &str {
    action.split([':', ';']).next().and_then(|text| text.split(". ").next()).unwrap_or(action)
}

fn of(text: &str) -> Vec<&'static str> {
    let words = words(text);
    let says = |word: &&str| !ONLY_IN_NAMES.contains(word) && words.contains(&stem(word));
    let about = SUBJECTS.iter().filter(|(_, keywords)| keywords.iter().any(says));
    about.map(|(subject, _)| *subject).collect()
}

/// The words of a text in lower case, without plurals.
fn words(text: &str) -> Vec<String> {
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

fn stem(word: &str) -> String {
    match word.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None if word.len() > 3 && !word.ends_with("ss") && !word.ends_with("is") => {
            word.strip_suffix('s').unwrap_or(word).to_owned()
        }
        None => word.to_owned(),
    }
}

/// How well a tool matches a subject.
fn weight(tool: &ToolSpec, keywords: &[&str]) -> usize {
    let (name, description) = (name_words(&tool.name), words(&tool.description));
    let hits = |said: &[String]| keywords.iter().filter(|word| said.contains(&stem(word))).count();
    NAME_WEIGHT * hits(&name) + hits(&description)
}

/// The call for a subject, or why there is none.
fn call(
    subject: &str,
    action: &str,
    known: Known<'_>,
    offered: &[ToolSpec],
) -> Result<ToolCall, String> {
    let keywords = SUBJECTS.iter().find(|(name, _)| *name == subject).map_or(&[][..], |s| s.1);
    let mut matching: Vec<(usize, &ToolSpec)> = offered
        .iter()
        .map(|tool| (weight(tool, keywords), tool))
        .filter(|(weight, _)| *weight >= WEIGHT_MIN)
        .collect();
    // Stable sort: among equals, the first tool offered wins.
    matching.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let mut reason = format!("no available tool covers {subject}");
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

fn argument(
    name: &str,
    choices: &[&str],
    is_required: bool,
    action: &str,
    known: Known<'_>,
) -> Option<Value> {
    let name = name_words(name);
    let is = |words: &[&str]| name.iter().any(|word| words.contains(&word.as_str()));
    if is(&["device", "host", "hostname", "router", "node", "target"]) {
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
        check("Check the LDP sessions.", false, "impossible: no available tool covers labels");
        check("Check MPLS: no BGP.", false, "impossible: no available tool covers labels");
        check("Taste the coffee.", false, "impossible: no rule matches its words");
        check(
            "Check the memory.",
            false,
            "impossible: get_memory_pages needs `page`, which the query does not name",
        );
    }
}
