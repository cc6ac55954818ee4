//! Counts the recordings that agree, by feature.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Value, json};

use asl::definition::{Definition, Workflow};
use asl::rule::{Origin, Pattern, Transformer, input_at};

use crate::masks::difference;
use crate::recorded::{differences, masks, records};

/// The difference from a recording, if any.
type Differs = fn(&Value) -> Option<String>;

/// The features that a recording covers.
type Features = fn(&Value) -> BTreeSet<String>;

/// Number of cases, and of those that agree at each level.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub total: usize,
    pub levels: [usize; 3],
}

#[derive(Debug, Default)]
pub struct Table {
    pub features: BTreeMap<String, Tally>,
    /// The kinds of execution, and the recordings of each.
    pub classes: BTreeMap<String, Tally>,
    pub whole: Tally,
    /// The differences, one per line.
    pub differences: Vec<String>,
}

impl Tally {
    fn count(&mut self, agrees: [bool; 3]) {
        self.total += 1;
        for (level, agrees) in self.levels.iter_mut().zip(agrees) {
            *level += usize::from(agrees);
        }
    }

    pub fn passed(&self) -> usize {
        self.levels[2]
    }
}

impl Table {
    /// Runs all recordings.
    pub fn of_all() -> Table {
        let mut table = Table::default();
        for record in records("asl_executions.jsonl") {
            let found = differences(&record);
            let agrees = [found.agrees(1), found.agrees(2), found.agrees(3)];
            let tags = record["features"].as_array().into_iter().flatten();
            for tag in tags.filter_map(Value::as_str) {
                table.features.entry(tag.to_owned()).or_default().count(agrees);
            }
            let class = record["class"].as_str().unwrap().to_owned();
            table.classes.entry(class).or_default().count(agrees);
            table.whole.count(agrees);
            if let Some((level, text)) = found.first() {
                let name = record["name"].as_str().unwrap();
                table.differences.push(format!("{name}: level {level}: {text}"));
            }
        }
        let patterns = (pattern_difference as Differs, pattern_features as Features);
        table.judge("event patterns", "eventbridge_patterns.json", patterns);
        let transformers = (transformer_difference as Differs, transformer_features as Features);
        table.judge("input transformers", "input_transformers.json", transformers);
        let validations = (validation_difference as Differs, validation_features as Features);
        table.judge("validations", "asl_validation.jsonl", validations);
        table
    }

    /// Recordings of a single reply, which agrees or does not.
    fn judge(&mut self, class: &str, file: &str, (differs, features): (Differs, Features)) {
        for record in records(file) {
            let found = differs(&record);
            for feature in features(&record) {
                let line = self.features.entry(format!("{class}, {feature}")).or_default();
                line.count([found.is_none(); 3]);
            }
            self.classes.entry(class.to_owned()).or_default().count([found.is_none(); 3]);
            self.whole.count([found.is_none(); 3]);
            if let Some(found) = found {
                let name = record["name"].as_str().unwrap();
                self.differences.push(format!("{name}: {found}"));
            }
        }
    }
}

/// The operators in a pattern; "not JSON" for one that is not.
fn pattern_features(record: &Value) -> BTreeSet<String> {
    const FILTERS: [&str; 9] = [
        "anything-but",
        "cidr",
        "equals-ignore-case",
        "exists",
        "numeric",
        "prefix",
        "suffix",
        "wildcard",
        "$or",
    ];
    fn collect(value: &Value, features: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => members.iter().for_each(|(name, value)| {
                features.extend(FILTERS.contains(&name.as_str()).then(|| name.clone()));
                collect(value, features);
            }),
            Value::Array(items) => items.iter().for_each(|item| collect(item, features)),
            _ => {
                features.insert("exact".to_owned());
            }
        }
    }
    let mut features = BTreeSet::new();
    if record["pattern_is_raw"] == true {
        features.insert("text".to_owned());
    } else {
        collect(&record["pattern"], &mut features);
    }
    features
}

fn transformer_features(record: &Value) -> BTreeSet<String> {
    let with = if record["input_path"].is_string() { "path" } else { "template" };
    BTreeSet::from([with.to_owned()])
}

/// The state types in a definition, whether it is valid, and its query language.
fn validation_features(record: &Value) -> BTreeSet<String> {
    fn collect(value: &Value, features: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => members.iter().for_each(|(name, value)| {
                if let ("Type" | "QueryLanguage", Some(text)) = (name.as_str(), value.as_str()) {
                    features.insert(text.to_owned());
                }
                collect(value, features);
            }),
            Value::Array(items) => items.iter().for_each(|item| collect(item, features)),
            _ => {}
        }
    }
    let answer = if record["accept"] == true { "accepted" } else { "refused" };
    let mut features = BTreeSet::from([answer.to_owned()]);
    collect(&record["definition"], &mut features);
    features
}

fn pattern_difference(record: &Value) -> Option<String> {
    let text = match &record["pattern"] {
        Value::String(text) if record["pattern_is_raw"] == true => text.clone(),
        other => other.to_string(),
    };
    let (said, reason) = match Pattern::parse(&text) {
        Ok(pattern) if pattern.matches(&record["event"]) => ("match", None),
        Ok(_) => ("no-match", None),
        Err(error) => ("invalid-pattern", Some(error.to_string())),
    };
    let recorded = (record["expect"].as_str(), record["reason"].as_str());
    let agrees = recorded.0 == Some(said) && (reason.is_none() || recorded.1 == reason.as_deref());
    (!agrees).then(|| format!("recorded {recorded:?}, actual {said} {reason:?}"))
}

fn transformer_difference(record: &Value) -> Option<String> {
    let event = &record["event"];
    let delivered = match record["input_path"].as_str() {
        Some(path) => input_at(path, event).map(|value| value.to_string()),
        None => {
            let paths = record["input_paths_map"].as_object().into_iter().flatten();
            let paths: Vec<(&str, &str)> =
                paths.filter_map(|(name, path)| Some((name.as_str(), path.as_str()?))).collect();
            let template = record["input_template"].as_str().unwrap_or_default();
            match Transformer::new(&paths, template) {
                Ok(transformer) => transformer.apply(event, Origin::default()),
                Err(error) => return Some(error.to_string()),
            }
        }
    };
    let expected = &record["expect_output"];
    match (record["expect"].as_str(), delivered) {
        (Some("no-delivery"), None) => None,
        (Some("delivered"), Some(body)) => {
            let body = match record["expect_output_kind"].as_str() {
                Some("text") => Value::String(body),
                _ => serde_json::from_str(&body).unwrap_or(Value::String(body)),
            };
            difference(expected, &body, &masks(record), "input")
        }
        (_, delivered) => Some(format!("actual {delivered:?}")),
    }
}

/// The difference between a definition's validation and AWS's.
pub fn validation_difference(record: &Value) -> Option<String> {
    let text = match &record["definition"] {
        Value::String(text) => text.clone(),
        // A state that was tested alone is wrapped in a machine.
        state if state.get("States").is_none() && record["api"] == "TestState" => {
            json!({"StartAt": "StateName", "States": {"StateName": state}}).to_string()
        }
        other => other.to_string(),
    };
    let workflow = match record["type"].as_str() {
        Some("EXPRESS") => Workflow::Express,
        _ => Workflow::Standard,
    };
    let errors = Definition::check(&text, workflow).err().unwrap_or_default();
    let said = errors.iter().map(|error| {
        let (code, message) = (error.problem.code(), error.problem.to_string());
        let mut said = json!({"code": code, "message": message, "severity": "ERROR"});
        if let Some(location) = &error.location {
            said["location"] = location.as_str().into();
        }
        said
    });
    difference(&record["diagnostics"], &said.collect(), &masks(record), "diagnostics")
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passed, [one, two, three]) = (self.passed(), self.levels);
        let failed = self.total - passed;
        write!(
            formatter,
            "{passed} passed, {failed} failed, {} in all (level 1: {one}, 2: {two}, 3: {three})",
            self.total
        )
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.features.iter().chain(&self.classes);
        for (name, tally) in lines {
            writeln!(formatter, "{name}: {tally}")?;
        }
        let passed = self.whole.passed();
        writeln!(formatter, "{passed} passed, {} failed", self.whole.total - passed)
    }
}
