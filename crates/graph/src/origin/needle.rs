//! Searches the leaves of a call's arguments in a session's sources, and decides on their origins.

use serde_json::Value;

use super::number::{self, Decimal, Spotted};
use super::text::{self, Standing};
use super::{Found, Match, Origin, Source, Traced, bounded, child};

/// Fewest letters and digits of a value that is not found by chance.
const CHARS_MIN: usize = 4;

/// The same for letters alone within a longer text: shorter words are in many texts.
const LETTERS_MIN: usize = 6;

/// The same for a number, in digits.
const DIGITS_MIN: usize = 3;

/// Words that are found by chance, whatever their length.
const COMMON: [&str; 8] = ["true", "false", "null", "none", "yes", "no", "on", "off"];

/// Most leaves and fragments of leaves that are searched at once.
const NEEDLES_MAX: usize = 256;

/// Longest value, in bytes, that is taken for a unit.
const UNIT_BYTES_MAX: usize = 16;

/// The leaves of a value, each with its JSON pointer. An empty object or array is a leaf.
pub(super) fn leaves(value: &Value) -> Vec<(String, &Value)> {
    let mut leaves = Vec::new();
    collect(value, String::new(), &mut leaves);
    leaves
}

fn collect<'a>(value: &'a Value, pointer: String, leaves: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                collect(value, child(&pointer, name), leaves);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, value) in items.iter().enumerate() {
                collect(value, format!("{pointer}/{index}"), leaves);
            }
        }
        leaf => leaves.push((pointer, leaf)),
    }
}

/// Whether two leaves are the same value, in any notation.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => text::fold(one) == text::fold(other),
        (Value::Number(one), Value::Number(other)) => {
            let [one, other] = [one, other].map(|number| Decimal::parse(&number.to_string()));
            one == other
        }
        _ => one == other,
    }
}

#[derive(Default)]
pub(super) struct Needles<'a> {
    has_numbers: bool,
    leaves: Vec<Needle<'a>>,
    /// Fragments of leaves, each with the index of its leaf.
    fragments: Vec<(usize, Needle<'a>)>,
    /// Leaves with more fragments than are searched.
    unsearched: Vec<usize>,
}

/// A value to find.
struct Needle<'a> {
    pointer: &'a str,
    leaf: Option<&'a Value>,
    /// Folded; empty if it is not searched as a text.
    text: String,
    number: Option<Quantity>,
    strong: Evidence,
    weak: Evidence,
}

/// A number, and the units that it may have.
struct Quantity {
    value: Decimal,
    units: Vec<String>,
    /// Whether the unit is part of the value.
    needs_unit: bool,
}

/// The first place of each origin.
#[derive(Default)]
struct Evidence([Option<Found>; Origin::NAMED.len()]);

struct Hit {
    matched: Match,
    is_strong: bool,
}

/// A text of a source, prepared once for all needles.
struct Haystack<'a> {
    raw: &'a str,
    folded: String,
    numbers: Vec<Spotted>,
}

/// A place in a source, rendered only if something is found there.
#[derive(Clone, Copy)]
struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    token: Token<'a>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Value,
    /// The name of an object's member.
    Name,
    /// Within a text that is JSON, to which the path leads.
    Text,
}

#[derive(Clone, Copy)]
enum Token<'a> {
    Root(&'a str),
    Inside,
    Name(&'a str),
    Index(usize),
}

impl<'a> Needles<'a> {
    pub(super) fn of(arguments: &'a Value, leaves: &'a [(String, &'a Value)]) -> Self {
        let mut needles = Self::default();
        for (index, (pointer, leaf)) in leaves.iter().enumerate() {
            let needle = Needle::of(arguments, pointer, leaf);
            needles.has_numbers |= needle.number.is_some();
            needles.leaves.push(needle);
            let Value::String(text) = leaf else { continue };
            for fragment in text::fragments(text) {
                if leaves.len() + needles.fragments.len() >= NEEDLES_MAX {
                    needles.unsearched.push(index);
                    break;
                }
                needles.fragments.push((index, Needle::fragment(pointer, fragment)));
            }
        }
        needles
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Needle<'a>> {
        self.leaves.iter_mut().chain(self.fragments.iter_mut().map(|(_, needle)| needle))
    }

    pub(super) fn search(&mut self, source: &Source) {
        let root = Path { parent: None, token: Token::Root(&source.base), kind: Kind::Value };
        self.walk(source, &source.value, &root);
    }

    fn walk(&mut self, source: &Source, value: &Value, path: &Path<'_>) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    let path = path.to(Token::Name(name));
                    let kind = if path.kind == Kind::Value { Kind::Name } else { path.kind };
                    self.look(source, &Value::from(name.as_str()), &Path { kind, ..path });
                    self.walk(source, value, &path);
                }
            }
            Value::Array(items) => {
                for (index, value) in items.iter().enumerate() {
                    self.walk(source, value, &path.to(Token::Index(index)));
                }
            }
            leaf => {
                self.look(source, leaf, path);
                // Text can be JSON, in which escapes hide a value.
                let text = leaf.as_str().filter(|text| text.trim_start().starts_with(['{', '[']));
                let parsed = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
                if let Some(parsed) = parsed {
                    self.walk(
                        source,
                        &parsed,
                        &Path { kind: Kind::Text, ..path.to(Token::Inside) },
                    );
                }
            }
        }
    }

    fn look(&mut self, source: &Source, value: &Value, path: &Path<'_>) {
        let has_numbers = self.has_numbers;
        let haystack = match value {
            Value::Null => return,
            Value::String(raw) => Some(Haystack {
                raw,
                folded: text::fold(raw),
                numbers: if has_numbers { number::numbers(raw) } else { Vec::new() },
            }),
            _ => None,
        };
        let number = match value {
            Value::Number(number) if has_numbers => Decimal::parse(&number.to_string()),
            _ => None,
        };
        for needle in self.all() {
            let hit = match &haystack {
                Some(haystack) => needle.in_text(haystack, source.origin),
                None => needle.in_value(value, number.as_ref()),
            };
            let Some(mut hit) = hit else { continue };
            let place = path.render();
            match path.kind {
                // In a tool's answer a name can be data. In the input it is the form of the data.
                Kind::Name => hit.is_strong &= !source.origin.is_trusted(),
                Kind::Text => hit.matched = hit.matched.max(Match::Part),
                Kind::Value => {}
            }
            let is_whole = path.kind == Kind::Value && hit.matched < Match::Part;
            hit.is_strong |= source.origin == Origin::Input
                && is_whole
                && place.strip_prefix(&source.base) == Some(needle.pointer);
            needle.keep(source, place, &hit);
        }
    }

    /// The origin of each leaf.
    pub(super) fn decide(self, has_model: bool, left_out: Option<u32>) -> Vec<Traced> {
        let Self { leaves, fragments, unsearched, .. } = self;
        let mut traced: Vec<Traced> = leaves
            .into_iter()
            .map(|needle| needle.decide(has_model).searched_until(left_out))
            .collect();
        let is_made = |traced: &Traced| {
            matches!(traced.origin, Origin::Model | Origin::Program)
                || (traced.origin == Origin::Undetermined && traced.matched == Match::None)
        };
        for index in unsearched {
            if is_made(&traced[index]) {
                let pointer = std::mem::take(&mut traced[index].pointer);
                traced[index] = Traced::undetermined(pointer, Match::NotSearched);
            }
        }
        for (index, fragment) in fragments {
            let leaf = &mut traced[index];
            let Traced { origin, step, place, .. } = fragment.decide(has_model);
            if let (true, Origin::Tool, Some(step), Some(place)) =
                (is_made(leaf), origin, step, place)
                && !leaf.also.iter().any(|found| (found.step, &found.place) == (step, &place))
            {
                leaf.also.push(Found { origin, step, place, matched: Match::Contains });
            }
        }
        traced
    }
}

impl<'a> Needle<'a> {
    fn of(arguments: &'a Value, pointer: &'a str, leaf: &'a Value) -> Self {
        let parent = pointer.rsplit_once('/').and_then(|(parent, _)| arguments.pointer(parent));
        let siblings = parent.and_then(Value::as_object).into_iter().flatten();
        let units = siblings.filter_map(|(_, value)| value.as_str());
        let units: Vec<String> = units
            .filter(|unit| !unit.is_empty() && unit.len() <= UNIT_BYTES_MAX)
            .map(str::to_owned)
            .collect();
        let number =
            match leaf {
                Value::Number(number) => Decimal::parse(&number.to_string())
                    .map(|value| Quantity { value, units, needs_unit: false }),
                Value::String(text) => number::quantity(text).map(|(value, unit)| {
                    let needs_unit = !unit.is_empty();
                    let units = if needs_unit { vec![unit] } else { units };
                    Quantity { value, units, needs_unit }
                }),
                _ => None,
            };
        let text = match leaf {
            Value::String(text) => text::fold(text),
            Value::Bool(is_true) => is_true.to_string(),
            _ => String::new(),
        };
        let (strong, weak) = (Evidence::default(), Evidence::default());
        Self { pointer, leaf: Some(leaf), text, number, strong, weak }
    }

    fn fragment(pointer: &'a str, fragment: &str) -> Self {
        let (strong, weak) = (Evidence::default(), Evidence::default());
        Self { pointer, leaf: None, text: text::fold(fragment), number: None, strong, weak }
    }

    fn in_text(&self, haystack: &Haystack<'_>, origin: Origin) -> Option<Hit> {
        let by_number = self.number.as_ref().and_then(|number| number.within(haystack, origin));
        let mut by_text = self.as_text(haystack, origin);
        // Units differ by case: only the number's notation decides.
        let has_unit = self.number.as_ref().is_some_and(|number| number.needs_unit);
        if let Some(hit) = by_text.as_mut().filter(|hit| has_unit && hit.matched > Match::Exact) {
            hit.is_strong = false;
        }
        match (by_text, by_number) {
            (Some(text), Some(number)) => Some(Hit {
                matched: text.matched.min(number.matched),
                is_strong: text.is_strong || number.is_strong,
            }),
            (text, number) => text.or(number),
        }
    }

    fn as_text(&self, haystack: &Haystack<'_>, origin: Origin) -> Option<Hit> {
        if self.text.is_empty() {
            return None;
        }
        if haystack.folded == self.text {
            let is_same = self.leaf.and_then(Value::as_str) == Some(haystack.raw);
            let matched = if is_same { Match::Exact } else { Match::Normalized };
            return Some(Hit { matched, is_strong: self.is_long(CHARS_MIN) });
        }
        let standing = text::standing(&haystack.folded, &self.text)?;
        let is_word = standing == Standing::Words || !origin.is_trusted();
        Some(Hit { matched: Match::Part, is_strong: is_word && self.is_long(LETTERS_MIN) })
    }

    /// Whether the text is too long to be found by chance. Letters alone need `letters_min` of them.
    fn is_long(&self, letters_min: usize) -> bool {
        if matches!(self.leaf, Some(Value::Bool(_))) || COMMON.contains(&self.text.as_str()) {
            return false;
        }
        let is_prose = self.text.chars().all(|c| c.is_alphabetic() || c == ' ');
        let least = if is_prose { letters_min } else { CHARS_MIN };
        text::alphanumerics(&self.text) >= least
    }

    fn in_value(&self, value: &Value, number: Option<&Decimal>) -> Option<Hit> {
        let is_same = self.leaf == Some(value);
        if let (Some(own), Some(number)) = (&self.number, number) {
            let matched = if is_same { Match::Exact } else { Match::Normalized };
            let is_strong = own.value.digit_count() >= DIGITS_MIN;
            return (own.value == *number && !own.needs_unit).then_some(Hit { matched, is_strong });
        }
        (is_same && value.is_boolean()).then_some(Hit { matched: Match::Exact, is_strong: false })
    }

    fn keep(&mut self, source: &Source, place: String, hit: &Hit) {
        let (origin, step, matched) = (source.origin, source.step, hit.matched);
        let evidence = if hit.is_strong { &mut self.strong } else { &mut self.weak };
        let kept = &mut evidence.0[origin as usize];
        let is_better = |kept: &Found| kept.step == step && matched < kept.matched;
        if kept.as_ref().is_none_or(is_better) {
            *kept = Some(Found { origin, step, place: bounded(place), matched });
        }
    }

    fn decide(self, has_model: bool) -> Traced {
        let pointer = self.pointer.to_owned();
        let Self { mut strong, mut weak, .. } = self;
        if self.text.is_empty() && self.number.is_none() {
            return Traced::undetermined(pointer, Match::Ambiguous);
        }
        for origin in [Origin::Person, Origin::Input] {
            if let Some(found) = strong.take(origin) {
                return Traced { also: strong.listed(), ..Traced::at(pointer, found) };
            }
        }
        // What a model invents can come back in a tool's answer: the earliest holds the origin.
        let made = |evidence: &mut Evidence, origins: &[Origin]| {
            let earliest = origins.iter().filter_map(|origin| evidence.get(*origin));
            let origin = earliest.min_by_key(|found| (found.step, found.origin))?.origin;
            evidence.take(origin)
        };
        match made(&mut strong, &[Origin::Program, Origin::Tool, Origin::Model]) {
            Some(found) if found.origin == Origin::Tool || !weak.casts_doubt(found.step) => {
                Traced { also: strong.listed(), ..Traced::at(pointer, found) }
            }
            None if weak.listed().is_empty() => {
                match made(&mut weak, &[Origin::Program, Origin::Model]) {
                    Some(found) => Traced::at(pointer, found),
                    None if has_model => Traced::undetermined(pointer, Match::None),
                    None => Traced::unplaced(pointer, Origin::Program, Match::None),
                }
            }
            _ => {
                let mut also = strong.listed();
                also.extend(weak.listed());
                Traced { also, ..Traced::undetermined(pointer, Match::Ambiguous) }
            }
        }
    }
}

impl Evidence {
    fn get(&self, origin: Origin) -> Option<&Found> {
        self.0[origin as usize].as_ref()
    }

    fn take(&mut self, origin: Origin) -> Option<Found> {
        self.0[origin as usize].take()
    }

    /// The places that a reader should know. A reply holds each argument of its own call.
    fn listed(&self) -> Vec<Found> {
        let listed = [Origin::Person, Origin::Input, Origin::Tool];
        listed.iter().filter_map(|origin| self.get(*origin).cloned()).collect()
    }

    /// Whether a value that a reply of this step holds may come from elsewhere.
    fn casts_doubt(&self, step: u32) -> bool {
        self.listed().iter().any(|found| found.origin.is_trusted() || found.step < step)
    }
}

impl Quantity {
    fn within(&self, haystack: &Haystack<'_>, origin: Origin) -> Option<Hit> {
        let is_whole = number::quantity(haystack.raw).is_some();
        let hits = haystack.numbers.iter().filter(|spotted| spotted.value == self.value);
        let hits = hits.filter_map(|spotted| {
            let agrees = self.units.contains(&spotted.unit);
            if self.needs_unit && !agrees {
                return None;
            }
            let is_long = agrees || self.value.digit_count() >= DIGITS_MIN;
            let matched = if is_whole { Match::Normalized } else { Match::Part };
            let is_strong = is_long && (spotted.is_word || !origin.is_trusted());
            Some(Hit { matched, is_strong })
        });
        hits.max_by_key(|hit| hit.is_strong)
    }
}

impl Traced {
    /// Without the values of step `left_out` and later ones, only an earlier place is certain.
    fn searched_until(self, left_out: Option<u32>) -> Self {
        let Some(left_out) = left_out else { return self };
        let is_certain = self.origin.is_trusted() || self.step.is_some_and(|step| step < left_out);
        if is_certain { self } else { Self::undetermined(self.pointer, Match::NotSearched) }
    }
}

impl<'a> Path<'a> {
    fn to(&'a self, token: Token<'a>) -> Self {
        let token = if self.kind == Kind::Text { Token::Inside } else { token };
        Path { parent: Some(self), token, kind: self.kind }
    }

    fn render(&self) -> String {
        let parent = self.parent.map(Path::render).unwrap_or_default();
        match self.token {
            Token::Root(base) => base.to_owned(),
            Token::Inside => parent,
            Token::Name(name) => child(&parent, name),
            Token::Index(index) => format!("{parent}/{index}"),
        }
    }
}
