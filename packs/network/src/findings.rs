//! Reads a tool's result by rules over its JSON, for any tool: what is wrong, what is in order, and
//! which parts no rule knows.
//!
//! A bad state is found wherever it is. What is in order counts only under a name that a rule knows.
//! Everything else is reported as unknown, so that nobody takes silence for health.

use serde_json::{Map, Value};

use super::interpret::name_words;
use super::lexicon;
use super::logs;
use super::object::{Location, Object};

/// Maximum depth and number of objects read of one answer.
const DEPTH_MAX: usize = 24;
const OBJECTS_MAX: usize = 20_000;

/// Maximum findings, facts in order, and unknown parts per answer.
const FINDINGS_MAX: usize = 20;
const FINE_MAX: usize = 5_000;
const UNKNOWN_MAX: usize = 8;

/// Longest finding, in characters, since findings quote the server's text.
const TEXT_CHARS_MAX: usize = 240;

/// Something in order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fine {
    pub subjects: Vec<&'static str>,
    pub attribute: &'static str,
    pub number: Option<f64>,
    /// The object's name.
    pub name: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wrong {
    pub subjects: Vec<&'static str>,
    pub text: String,
}

#[derive(Debug, Default)]
pub(super) struct Read {
    pub wrong: Vec<Wrong>,
    pub fine: Vec<Fine>,
    /// Parts that no rule knows, quoted.
    pub unknown: Vec<String>,
    /// Subjects that the device does not have, according to the answer.
    pub absent: Vec<&'static str>,
    /// All words of the answer, for the names that a question mentions.
    pub words: String,
}

/// Reads the answer of a tool about a device.
pub(super) fn read(tool: &str, arguments: &Value, content: &Value) -> Read {
    let parsed = content.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let content = parsed.as_ref().unwrap_or(content);
    let mut said = name_words(tool);
    said.extend(arguments.get("protocol").and_then(Value::as_str).into_iter().flat_map(name_words));
    let mut reader = Reader { read: Read::default(), objects: 0, tool: lexicon::subjects(&said) };
    match content {
        Value::String(text) => reader.text(text),
        _ => reader.value(content, &Location::default()),
    }
    reader.read.words = content.to_string().to_lowercase();
    reader.about(arguments, content);
    reader.read
}

pub(super) struct Reader {
    pub read: Read,
    objects: usize,
    /// The subjects that the tool's name and arguments say.
    tool: Vec<&'static str>,
}

impl Reader {
    pub(super) fn wrong(&mut self, subjects: &[&'static str], text: String) {
        let text: String = text.chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect();
        let is_new = self.read.wrong.iter().all(|known| known.text != text);
        if is_new && self.read.wrong.len() < FINDINGS_MAX {
            self.read.wrong.push(Wrong { subjects: subjects.to_vec(), text });
        }
    }

    pub(super) fn fine(
        &mut self,
        subjects: &[&'static str],
        attribute: &'static str,
        number: Option<f64>,
        name: &str,
    ) {
        if self.read.fine.len() < FINE_MAX {
            let name = name.to_owned();
            self.read.fine.push(Fine { subjects: subjects.to_vec(), attribute, number, name });
        }
    }

    pub(super) fn unknown(&mut self, what: String) {
        let what: String = what.chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect();
        if !self.read.unknown.contains(&what) && self.read.unknown.len() < UNKNOWN_MAX {
            self.read.unknown.push(what);
        }
    }

    /// Checks that the answer is about the device of the call.
    fn about(&mut self, arguments: &Value, content: &Value) {
        let names = ["device_name", "device", "hostname", "host", "router", "switch", "node"];
        let of = |value: &Value| {
            names.iter().find_map(|name| value.get(*name)?.as_str().map(str::to_lowercase))
        };
        let (Some(asked), Some(told)) = (of(arguments), of(content)) else { return };
        let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        if asked != told && short(&asked) != short(&told) {
            self.unknown(format!("the answer is about {told}, not {asked}"));
        }
    }

    /// An answer in prose, or what a device printed: only what is bad in it is judged.
    fn text(&mut self, text: &str) {
        let subjects = self.tool.clone();
        for line in text.lines() {
            if logs::is_bad(line) {
                self.wrong(&subjects, format!("shown: {}", line.trim()));
            }
        }
        let first = text.lines().next().unwrap_or_default();
        self.unknown(format!("an answer in prose: \"{first}\""));
    }

    fn subjects(&self, object: &Object<'_>, location: &Location) -> Vec<&'static str> {
        let of = |text: &str| lexicon::subjects(&name_words(text));
        let kind = ["protocol", "type", "kind"].iter().find_map(|name| object.get(name)?.as_str());
        let mut found: Vec<&'static str> = location.path.iter().flat_map(|name| of(name)).collect();
        found.extend(kind.filter(|kind| kind.len() < 24).into_iter().flat_map(of));
        // A VRF or an interface around an object does not say what the tool reads.
        if found.iter().all(|subject| ["vpn", "interface"].contains(subject)) {
            found.extend(&self.tool);
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn value(&mut self, value: &Value, location: &Location) {
        if location.path.len() >= DEPTH_MAX {
            return self.unknown("an answer that is nested too deeply".to_owned());
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.value(item, location)),
            Value::Object(members) => {
                self.objects += 1;
                if self.objects <= OBJECTS_MAX {
                    self.object(members, location);
                } else {
                    self.unknown("an answer with too many objects".to_owned());
                }
            }
            Value::Null => {}
            leaf => {
                let name = location.path.last().map_or("answer", String::as_str);
                let object = Object(Vec::new());
                let subjects = self.subjects(&object, location);
                self.leaf(name, leaf, &object, location, &subjects);
            }
        }
    }

    fn object(&mut self, members: &Map<String, Value>, location: &Location) {
        let object = Object::of(members);
        let subjects = self.subjects(&object, location);
        if let Some(message) =
            ["message", "msg", "text"].iter().find_map(|m| object.get(m)?.as_str())
            && ["severity", "timestamp", "time", "level"].iter().any(|m| object.get(m).is_some())
        {
            return self.log_entry(&object, message);
        }
        if object.get("configured") == Some(&Value::Bool(false)) {
            self.read.absent.extend(subjects);
            return;
        }
        if subjects.contains(&"lldp")
            && location.path.last().is_some_and(|name| name.starts_with("neighbor"))
        {
            self.fine(&subjects, "state", None, &object.name());
        }
        self.pairs(&object, location, &subjects);
        let before = self.read.wrong.len();
        let leaves = object.0.iter().filter(|(_, value)| !value.is_array() && !value.is_object());
        for (name, value) in leaves {
            self.leaf(name, value, &object, location, &subjects);
        }
        let own = object.name();
        let is_vrf = location.path.last().is_some_and(|member| member == "vrfs");
        let inner = Location {
            path: location.path.clone(),
            vrf: if is_vrf { Some(own.clone()) } else { location.vrf.clone() },
            is_down: self.read.wrong.len() > before || object.is_switched_off(),
            owner: if own.is_empty() { location.owner.clone() } else { own },
        };
        for (name, value) in object.0.iter().filter(|(_, v)| v.is_array() || v.is_object()) {
            let mut inner = inner.clone();
            // Members such as counters belong to their parent object.
            match value {
                Value::Object(members) if name == "counters" => {
                    let mut joined = members.clone();
                    joined.entry("name").or_insert_with(|| object.name().into());
                    self.object(&joined, &inner);
                    continue;
                }
                Value::Array(items) => self.list(name, items, &object, location, &subjects),
                _ => {}
            }
            inner.path.push(name.clone());
            self.value(value, &inner);
        }
    }

    pub(super) fn log_entry(&mut self, object: &Object<'_>, message: &str) {
        let severity = object.get("severity").or_else(|| object.get("level"));
        let mnemonic = object.get("mnemonic").and_then(Value::as_str).unwrap_or("message");
        if logs::is_severe(severity) || logs::is_bad(message) {
            self.wrong(&["log"], format!("logged: {mnemonic}: {message}"));
        } else {
            self.fine(&["log"], "state", None, "");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_of_any_depth_and_length_ends() {
        let read = |content: &Value| read("get_interfaces", &json!({}), content);
        let mut deep = json!({"state": "up"});
        for _ in 0..60 {
            deep = json!({"in": deep});
        }
        assert_eq!(read(&deep).unknown, ["an answer that is nested too deeply"]);
        let wide: Vec<Value> =
            (0..5_000).map(|n| json!({"name": n.to_string(), "state": "down"})).collect();
        assert_eq!(read(&json!(wide)).wrong.len(), FINDINGS_MAX);
        let long = json!({"state": "down", "name": "x".repeat(10_000)});
        assert_eq!(read(&long).wrong[0].text.chars().count(), TEXT_CHARS_MAX);
        let many: Vec<Value> = (0..=OBJECTS_MAX).map(|_| json!({"state": "up"})).collect();
        assert_eq!(read(&json!(many)).unknown, ["an answer with too many objects"]);
    }

    #[test]
    fn an_answer_about_another_device_is_said() {
        let read = read("get_ospf", &json!({"device_name": "r1"}), &json!({"hostname": "r2"}));
        assert_eq!(read.unknown, ["the answer is about r2, not r1"]);
        let read =
            super::read("get_ospf", &json!({"host": "r1"}), &json!({"host": "r1.example.net"}));
        assert!(read.unknown.is_empty());
    }
}
