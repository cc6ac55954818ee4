//! Where each argument of a call came from.
//!
//! [`Sources`] folds a session's steps into the texts and values that an argument can come from: the
//! session's input, a person's answers, tool results, and replies. [`Sources::trace`] finds each leaf
//! of a call's arguments in them. Agents label nothing, so an injected order in a tool's result cannot
//! pass as a person's words.
//!
//! A trusted origin needs strong evidence: the whole value, or a whole word of a text, that is too
//! long to be found by chance. Weaker evidence gives [`Origin::Undetermined`] with the places.

mod needle;
mod number;
mod rule;
mod text;

use std::fmt;

use journal::step::{EffectKind, Step, StepBody};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::needle::Needles;
pub use self::rule::Rule;
pub(crate) use self::rule::breaches;
use crate::effect::Author;
use crate::next::json_of;
use crate::outcome::Brought;
use crate::question::{Answer, Decision};

/// Most bytes of a session that are searched. Values of later steps are not searched, and what they
/// may hold is undetermined.
pub const SOURCE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Most arguments of a call, leaf by leaf, that are traced. The others are undetermined.
pub const LEAVES_MAX: usize = 64;

/// Longest place in a record, in bytes. A longer one is cut at an ancestor.
const PLACE_BYTES_MAX: usize = 256;

/// What a value came from, the most trustworthy first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A person's answer in this session.
    Person,
    /// The trigger's input.
    Input,
    /// The agent's code, rules or configuration.
    Program,
    /// A tool's result or error.
    Tool,
    /// A model's reply, and nothing before it.
    Model,
    /// The evidence fits several origins or none.
    Undetermined,
}

/// How a value was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// The same value.
    Exact,
    /// The same value in another notation: case, whitespace, quotes, number format, unit.
    Normalized,
    /// Within a longer text.
    Part,
    /// The argument is longer, and contains a value of this place.
    Contains,
    /// Found, but too short, cut out of a longer word, or as a name in the input: not enough to say that
    /// it came from there.
    Ambiguous,
    /// Not found.
    None,
    /// A limit was reached, so the search is incomplete.
    NotSearched,
}

/// A place that holds a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    pub origin: Origin,
    /// Number of the step.
    pub step: u32,
    /// JSON pointer into that step's payload.
    pub place: String,
    #[serde(rename = "match")]
    pub matched: Match,
}

/// One leaf of a call's arguments, and where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traced {
    /// JSON pointer into the arguments; empty for those beyond [`LEAVES_MAX`].
    pub pointer: String,
    pub origin: Origin,
    /// The step that holds it, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// JSON pointer into that step's payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    #[serde(rename = "match")]
    pub matched: Match,
    /// Other origins that hold the value, or a part of it, the first place of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Found>,
    /// The permitted origins, if a rule does not permit this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<Origin>,
}

/// The texts and values of a session, in the order of its steps.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    held: Vec<Source>,
    bytes: usize,
    /// The first step with a value that is not held because of [`SOURCE_BYTES_MAX`].
    left_out: Option<u32>,
    /// Whether a model has replied. Without a model, only the program can invent a value.
    has_model: bool,
    /// The arguments in the newest question.
    asked: Value,
}

#[derive(Clone, Debug)]
struct Source {
    step: u32,
    origin: Origin,
    /// JSON pointer to the value in the step's payload.
    base: String,
    value: Value,
}

impl Sources {
    /// The sources of a session with these steps.
    pub fn of<'a>(steps: impl IntoIterator<Item = &'a Step<Value>>) -> Self {
        let mut sources = Self::default();
        steps.into_iter().for_each(|step| sources.fold(step));
        sources
    }

    /// Adds what a step holds.
    pub fn fold(&mut self, step: &Step<Value>) {
        let seq = step.seq;
        match &step.body {
            StepBody::Claim { input: Some(opening), .. } => {
                self.hold(seq, Origin::Input, "/input", &opening["input"]);
                let options = &opening["settings"]["options"];
                self.hold(seq, Origin::Program, "/settings/options", options);
            }
            StepBody::Outcome { effect, payload, .. } => self.outcome(seq, effect.kind, payload),
            StepBody::Ask { payload, .. } => {
                self.asked = payload.pointer("/question/arguments").cloned().unwrap_or_default();
            }
            StepBody::Answer { payload, .. } => self.answer(seq, payload),
            _ => {}
        }
    }

    fn outcome(&mut self, seq: u32, kind: EffectKind, payload: &Value) {
        if kind == EffectKind::Tools {
            for base in ["/ok", "/error", "/failure/message"] {
                self.hold(seq, Origin::Tool, base, payload.pointer(base).unwrap_or(&Value::Null));
            }
            return;
        }
        let Ok(Brought::Reply(reply)) = Brought::deserialize(payload) else { return };
        let origin = match reply.by {
            Author::Policy => Origin::Program,
            Author::Model(_) => Origin::Model,
        };
        self.has_model |= origin == Origin::Model;
        for (index, call) in reply.calls.iter().enumerate() {
            let base = format!("/reply/calls/{index}/arguments");
            self.hold(seq, origin, &base, &call.arguments);
        }
        self.hold(seq, origin, "/reply/text", &Value::from(reply.text));
    }

    /// A person's words. Of edited arguments, only the values that the question did not propose.
    fn answer(&mut self, seq: u32, payload: &Value) {
        let proposed = std::mem::take(&mut self.asked);
        let Ok(answer) = Answer::deserialize(payload) else { return };
        if answer.decision == Decision::Expired {
            return;
        }
        self.hold(seq, Origin::Person, "/text", &Value::from(answer.text));
        self.hold(seq, Origin::Person, "/reason", &Value::from(answer.reason));
        if let Some(mut edited) = answer.arguments {
            let known = needle::leaves(&proposed);
            clear(&mut edited, &|leaf| known.iter().any(|(_, value)| needle::is_same(value, leaf)));
            self.hold(seq, Origin::Person, "/arguments", &edited);
        }
    }

    fn hold(&mut self, step: u32, origin: Origin, base: &str, value: &Value) {
        let bytes = bytes(value);
        if bytes == 0 {
            return;
        }
        if self.bytes.saturating_add(bytes) > SOURCE_BYTES_MAX {
            self.left_out.get_or_insert(step);
            return;
        }
        self.bytes += bytes;
        let (base, value) = (base.to_owned(), value.clone());
        self.held.push(Source { step, origin, base, value });
    }

    /// The origin of each leaf of these arguments, in their order.
    pub fn trace(&self, arguments: &Value) -> Vec<Traced> {
        if arguments.as_object().is_some_and(serde_json::Map::is_empty) {
            return Vec::new();
        }
        let leaves = needle::leaves(arguments);
        let mut needles = Needles::of(arguments, &leaves[..leaves.len().min(LEAVES_MAX)]);
        for source in &self.held {
            needles.search(source);
        }
        let mut traced = needles.decide(self.has_model, self.left_out);
        if leaves.len() > LEAVES_MAX {
            traced.push(Traced::undetermined(String::new(), Match::NotSearched));
        }
        traced
    }
}

/// Replaces leaves by null.
fn clear(value: &mut Value, is_known: &dyn Fn(&Value) -> bool) {
    match value {
        Value::Object(members) => members.values_mut().for_each(|value| clear(value, is_known)),
        Value::Array(items) => items.iter_mut().for_each(|value| clear(value, is_known)),
        leaf if is_known(leaf) => *leaf = Value::Null,
        _ => {}
    }
}

/// Bytes to search: names and values. 0 if there is nothing to find.
fn bytes(value: &Value) -> usize {
    match value {
        Value::Null => 0,
        Value::Bool(_) | Value::Number(_) => size_of::<Value>(),
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() + bytes(value)).sum()
        }
    }
}

impl Origin {
    /// The words of the configuration, in their order.
    pub const NAMED: [Self; 5] =
        [Self::Person, Self::Input, Self::Program, Self::Tool, Self::Model];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Input => "input",
            Self::Program => "program",
            Self::Tool => "tool",
            Self::Model => "model",
            Self::Undetermined => "undetermined",
        }
    }

    /// The origin with this name; undetermined has none, because no rule can permit it.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|origin| origin.as_str() == name)
    }

    fn is_trusted(self) -> bool {
        matches!(self, Self::Person | Self::Input)
    }

    fn words(self) -> &'static str {
        match self {
            Self::Person => "a person's words",
            Self::Input => "the session's input",
            Self::Program => "the program",
            Self::Tool => "a tool's answer",
            Self::Model => "the model's invention",
            Self::Undetermined => "not determined",
        }
    }
}

impl Traced {
    fn undetermined(pointer: String, matched: Match) -> Self {
        Self::unplaced(pointer, Origin::Undetermined, matched)
    }

    fn unplaced(pointer: String, origin: Origin, matched: Match) -> Self {
        let (also, allowed) = (Vec::new(), Vec::new());
        Self { pointer, origin, step: None, place: None, matched, also, allowed }
    }

    fn at(pointer: String, found: Found) -> Self {
        let Found { origin, step, place, matched } = found;
        let (step, place) = (Some(step), Some(place));
        Self { step, place, ..Self::unplaced(pointer, origin, matched) }
    }

    /// The recorded origins of an ask step's payload; `None` if it has none that can be read.
    pub fn recorded(payload: &Value) -> Option<Vec<Self>> {
        Vec::deserialize(payload.get("origins")?).ok()
    }

    /// Whether no rule forbids this origin.
    pub fn is_permitted(&self) -> bool {
        self.allowed.is_empty()
    }

    /// All origins that the value has or contains.
    fn origins(&self) -> impl Iterator<Item = Origin> {
        let contained = self.also.iter().filter(|found| found.matched == Match::Contains);
        [self.origin].into_iter().chain(contained.map(|found| found.origin))
    }
}

/// The origins as JSON, for records.
pub(crate) fn recorded(traced: &[Traced]) -> Value {
    json_of(&traced)
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (step {}, {})", self.origin.words(), self.step, plain(&self.place))
    }
}

/// One line for people: the argument, its origin and the other places.
impl fmt::Display for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = if self.pointer.is_empty() { "other arguments" } else { &self.pointer };
        write!(f, "{}: {}", plain(pointer), self.origin.words())?;
        if let (Some(step), Some(place)) = (self.step, &self.place) {
            write!(f, " (step {step}, {})", plain(place))?;
        }
        let why = match self.matched {
            Match::Ambiguous => ", too weak a match to tell",
            Match::None if self.origin == Origin::Program => ", which set or computed it",
            Match::None => ", found nowhere in the session",
            Match::NotSearched => ", too much to search",
            Match::Exact | Match::Normalized | Match::Part | Match::Contains => "",
        };
        f.write_str(why)?;
        for found in &self.also {
            let how = if found.matched == Match::Contains { "contains" } else { "also in" };
            write!(f, "; {how} {found}")?;
        }
        if self.allowed.is_empty() {
            return Ok(());
        }
        let allowed: Vec<&str> = self.allowed.iter().map(|origin| origin.as_str()).collect();
        write!(f, "; NOT PERMITTED, only from: {}", allowed.join(", "))
    }
}

/// Escapes characters that could forge a line: names in a tool's answer are not trusted.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric() {
            plain.push(c);
        } else {
            plain.extend(c.escape_unicode());
        }
    }
    plain
}

/// Appends a token to a JSON pointer.
fn child(pointer: &str, token: &str) -> String {
    let token = token.replace('~', "~0").replace('/', "~1");
    format!("{pointer}/{token}")
}

/// A place of bounded length: the nearest ancestor that fits.
fn bounded(mut place: String) -> String {
    while place.len() > PLACE_BYTES_MAX {
        let cut = place.rfind('/').unwrap_or_default();
        place.truncate(cut);
    }
    place
}
