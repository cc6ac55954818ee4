//! The rules. Each reads one phrase from a place in the text, and none reads part of a number or a word.

use super::dosing::{ABOVE, WEIGHTS};
use super::lexicon::{
    ASKED, CHANGE, FACTORS, FIGURES, FILLERS, LISTINGS, LOWER, NOT_RUNNING, PARAMETERS,
    PUNCTUATION, RAISE, ROUTES, RUN, SIMULATE,
};
use super::quantity::{Dimension, Quantity};
use super::reader::Reader;
use super::token::{Kind, tokens};
use super::{Amount, Figure, Listing, Model, Route, number, path};

/// Shortest beginning of a drug's name that stands for it, in characters.
const SHORT_CHARS_MIN: usize = 4;

/// A phrase's meaning.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    Filler,
    Simulate,
    Load,
    Change,
    Run(bool),
    Drug(String),
    Model(String),
    /// A dose, and how it was computed from what was said.
    Dose(Quantity, Option<String>),
    Set(&'static str, Amount),
    /// The value that a change starts from, according to the request.
    Before(Option<&'static str>, Quantity),
    /// A relative change without a parameter.
    Relative(Amount),
    /// A parameter without a value.
    Parameter(&'static str),
    Divided,
    Route(Route),
    Weight(Quantity),
    /// A number without a role.
    Bare(Quantity),
    Figure(Figure),
    Listing(Listing),
}

/// A phrase: its meaning or what to ask, and its tokens.
#[derive(Clone, Debug)]
pub(super) struct Phrase {
    pub item: Option<Result<Item, String>>,
    pub start: usize,
    pub end: usize,
}

/// A rule's result: the meaning or what to ask, and the number of tokens.
pub(super) type Match = Option<(Result<Item, String>, usize)>;

/// Reads the whole text. A phrase without an item was not understood.
pub(super) fn phrases<'a>(text: &'a str, models: &'a [Model]) -> (Reader<'a>, Vec<Phrase>) {
    let reader = Reader { text, tokens: tokens(text), models };
    let mut found = Vec::new();
    let mut at = 0;
    while at < reader.tokens.len() {
        let matched = Reader::RULES.iter().find_map(|rule| rule(&reader, at));
        let (item, length) = matched.map_or((None, 1), |(item, length)| (Some(item), length));
        found.push(Phrase { item, start: at, end: at + length });
        at += length;
    }
    (reader, found)
}

pub(super) fn said(item: Item, length: usize) -> Match {
    Some((Ok(item), length))
}

pub(super) fn ask(words: impl Into<String>, length: usize) -> Match {
    Some((Err(words.into()), length))
}

pub(super) fn set(path: &'static str, value: f64, dimension: Dimension, length: usize) -> Match {
    said(Item::Set(path, Amount::To(Quantity::of(value, dimension))), length)
}

impl<'a> Reader<'a> {
    /// The rules in the order in which they are tried.
    const RULES: &'a [fn(&Self, usize) -> Match] = &[
        Self::drug,
        Self::not_running,
        Self::range,
        Self::instead,
        Self::frequency,
        Self::clock,
        Self::relative,
        Self::parameter,
        Self::tablets,
        Self::count,
        Self::infusion,
        Self::time_figure,
        Self::duration,
        Self::route,
        Self::figure,
        Self::loading,
        Self::quantity_alone,
        Self::verb,
        Self::shortened,
        Self::asked,
        Self::filler,
    ];

    pub(super) fn drug(&self, at: usize) -> Match {
        let start = self.tokens[at].start;
        let rest = &self.text[start..];
        let length = |name: &str| {
            let same = rest.get(..name.len())?.eq_ignore_ascii_case(name);
            let end = start + name.len();
            let count = self.tokens[at..].iter().take_while(|token| token.end <= end).count();
            let ends = self.tokens.get(at + count.checked_sub(1)?)?.end == end;
            (same && ends).then_some(count)
        };
        let paths = self.models.iter().map(|model| (&model.path, Item::Model(model.path.clone())));
        let drugs = self.models.iter().map(|model| (&model.drug, Item::Drug(model.drug.clone())));
        let found = paths.chain(drugs).filter_map(|(name, item)| Some((length(name)?, item)));
        let (length, item) = found.max_by_key(|(length, _)| *length)?;
        said(item, length)
    }

    /// `vanc`, `gent`: the beginning of one drug's name, and of no other.
    pub(super) fn shortened(&self, at: usize) -> Match {
        let word = self.word(at);
        if word.len() < SHORT_CHARS_MIN || !word.chars().all(|c| c.is_ascii_alphabetic()) {
            return None;
        }
        let begins = |drug: &&str| drug.to_lowercase().starts_with(word);
        let drugs = self.models.iter().map(|model| model.drug.as_str());
        let mut found: Vec<&str> = drugs.filter(begins).collect();
        found.dedup();
        match found.as_slice() {
            [drug] => said(Item::Drug((*drug).to_owned()), 1),
            _ => None,
        }
    }

    pub(super) fn not_running(&self, at: usize) -> Match {
        said(Item::Run(false), self.one_of(at, NOT_RUNNING)?)
    }

    /// Two numbers of which one is meant: 100-200 mg, 6 to 8 h, 250 or 500 mg.
    pub(super) fn range(&self, at: usize) -> Match {
        let is_minus = self.is_symbol(at, &['-', '\u{2212}']) && self.is_joined(at + 1);
        if is_minus && self.number(at + 1).is_some() && !self.is_joined(at) {
            let length = 1 + self.quantity(at + 1)?.1;
            return ask("a negative number has no meaning here.", length);
        }
        let start = usize::from(["q", "every"].contains(&self.word(at)));
        let (first, used) = self.quantity(at + start)?;
        let next = at + start + used;
        let is_dash = self.is_symbol(next, &['-', '\u{2013}', '\u{2014}', '/', '\u{2192}']);
        let is_word = ["to", "or"].contains(&self.word(next));
        if !is_dash && !is_word {
            return None;
        }
        let (second, more) = self.quantity(next + 1)?;
        let same = first.unit.is_none()
            || second.unit.is_none()
            || first.dimension() == second.dimension();
        let is_slash_time = self.symbol(next) == Some('/') && first.unit.is_some();
        if !same || is_slash_time {
            return None;
        }
        ask("a range or alternatives: which one value", start + used + 1 + more)
    }

    /// `instead of 250 mg`, `rather than 250 mg`, `from 250 mg` before `to`.
    pub(super) fn instead(&self, at: usize) -> Match {
        if let Some(used) = self.one_of(at, &["instead of", "rather than"]) {
            let skipped = self.skip(at + used, &["the", "current"]);
            let (quantity, length) = self.quantity(at + used + skipped)?;
            return said(Item::Before(None, quantity), used + skipped + length);
        }
        let used = self.one_of(at, &["from"])?;
        let (quantity, length) = self.quantity(at + used)?;
        (self.word(at + used + length) == "to")
            .then_some((Ok(Item::Before(None, quantity)), used + length))
    }

    /// `increase the dose by 50 mg`, `reduce clearance by 20 %`, `double it`.
    pub(super) fn relative(&self, at: usize) -> Match {
        const FILL: &[&str] = &["the", "it", "its", "current", "that", "this", "my"];
        let word = self.word(at);
        if let Some((_, factor)) = FACTORS.iter().find(|(name, _)| *name == word) {
            let skipped = self.skip(at + 1, FILL);
            let amount = Amount::Times(*factor);
            return match self.named(at + 1 + skipped) {
                Some((path, length)) => said(Item::Set(path, amount), 1 + skipped + length),
                None if skipped > 0 || !["half", "twice"].contains(&word) => {
                    said(Item::Relative(amount), 1 + skipped)
                }
                None => None,
            };
        }
        let sign = match word {
            word if RAISE.contains(&word) => 1.0,
            word if LOWER.contains(&word) => -1.0,
            _ => return None,
        };
        let mut used = 1 + self.skip(at + 1, FILL);
        let parameter = self.named(at + used);
        used += parameter.map_or(0, |(_, length)| length);
        if self.word(at + used) == "from"
            && let Some((before, length)) = self.quantity(at + used + 1)
            && self.word(at + used + 1 + length) == "to"
            && let Some((after, more)) = self.quantity(at + used + length + 2)
        {
            let path = parameter.map_or(path::DOSE, |(path, _)| path);
            return said(Item::Set(path, Amount::FromTo(before, after)), used + length + 2 + more);
        }
        let of = |amount| match parameter {
            Some((path, _)) => Item::Set(path, amount),
            None => Item::Relative(amount),
        };
        for (phrase, factor) in [
            ("by half", 0.5),
            ("in half", 0.5),
            ("by a quarter", 0.25),
            ("by one quarter", 0.25),
            ("by a third", 1.0 / 3.0),
            ("by one third", 1.0 / 3.0),
        ] {
            if let Some(length) = self.phrase(at + used, phrase) {
                let factor = if sign > 0.0 { 1.0 + factor } else { 1.0 - factor };
                return said(of(Amount::Times(factor)), used + length);
            }
        }
        let preposition = self.word(at + used);
        let by = usize::from(["by", "to"].contains(&preposition));
        let Some((quantity, length)) = self.quantity(at + used + by) else {
            return ask("by how much? Such as: increase the dose by 50 mg.", used + by);
        };
        let total = used + by + length;
        match (preposition, quantity.dimension()) {
            ("to", _) => said(of(Amount::Toward(sign, quantity)), total),
            (_, Some(Dimension::Fraction)) => {
                said(of(Amount::Times(1.0 + sign * quantity.canonical())), total)
            }
            ("by", Some(_)) => said(of(Amount::By(sign, quantity)), total),
            ("by", None) => {
                let value = number(quantity.value);
                ask(
                    format!("{value} of what? State the unit, such as {value} mg or {value} %."),
                    total,
                )
            }
            _ => ask("by this much, or to this value", total),
        }
    }

    pub(super) fn named(&self, at: usize) -> Option<(&'static str, usize)> {
        let found =
            PARAMETERS.iter().filter_map(|(name, path)| Some((*path, self.phrase(at, name)?)));
        found.max_by_key(|(_, length)| *length)
    }

    /// `clearance of 4 L/h`, `V = 30 L`, `dose to 300 mg`; a name alone is asked about or read.
    pub(super) fn parameter(&self, at: usize) -> Match {
        const LINKS: &[&str] = &["of", "to", "is", "at", "be", "was", "should", "equal", "equals"];
        let (path, used) = self.named(at)?;
        let mut next = at + used;
        let mut value_at = next;
        loop {
            let is_link =
                LINKS.contains(&self.word(value_at)) || self.is_symbol(value_at, &['=', ':']);
            if !is_link {
                break;
            }
            value_at += 1;
        }
        let mut before = None;
        if self.word(value_at) == "from"
            && let Some((quantity, length)) = self.quantity(value_at + 1)
            && self.word(value_at + 1 + length) == "to"
        {
            before = Some(quantity);
            value_at += length + 2;
        }
        let counts = path == path::DOSES && self.word(at) == "doses" && value_at == next;
        let is_figure = [path::HALF_LIFE].contains(&path);
        let range = self.range(value_at);
        if let (Some((Err(words), length)), false) = (range, counts) {
            return ask(words, value_at + length - at);
        }
        match self.quantity(value_at).filter(|_| !counts) {
            // "a dose q8h" and "dose 3 times daily" have no value here.
            Some((quantity, _))
                if quantity.unit.is_none()
                    && (self.frequency(value_at).is_some() || self.tablets(value_at).is_some()) =>
            {
                said(Item::Parameter(path), used)
            }
            Some((quantity, length)) => {
                next = value_at + length;
                let item = match (path, before) {
                    (path::DOSE, None) if quantity.unit.is_some() => {
                        return self.dose(quantity, at, next);
                    }
                    (path::HALF_LIFE, _) => {
                        return ask(
                            "the half-life follows from clearance and volume (0.693 · V / CL). \
                             State one of these.",
                            next - at,
                        );
                    }
                    (path::ELIMINATION, _) => {
                        return ask(
                            "the rate of elimination follows from clearance and volume (CL / V). \
                             State one of these.",
                            next - at,
                        );
                    }
                    (path::APPARENT, _) => {
                        return ask("state CL, V and F on their own.", next - at);
                    }
                    (_, None) => Item::Set(path, Amount::To(quantity)),
                    (_, Some(before)) => Item::Set(path, Amount::FromTo(before, quantity)),
                };
                said(item, next - at)
            }
            None if is_figure => said(Item::Figure(Figure::HalfLife), used),
            None if path == path::APPARENT || path == path::ELIMINATION => None,
            None => said(Item::Parameter(path), used),
        }
    }

    pub(super) fn route(&self, at: usize) -> Match {
        let found =
            ROUTES.iter().filter_map(|(name, route)| Some((*route, self.phrase(at, name)?)));
        let (route, length) = found.max_by_key(|(_, length)| *length)?;
        match route {
            Route::Unknown => ask("no model has this route.", length),
            route => said(Item::Route(route), length),
        }
    }

    pub(super) fn figure(&self, at: usize) -> Match {
        let found =
            FIGURES.iter().filter_map(|(name, figure)| Some((figure, self.phrase(at, name)?)));
        if let Some((figure, length)) = found.max_by_key(|(_, length)| *length) {
            return said(Item::Figure(figure.clone()), length);
        }
        let (_, listing) = LISTINGS.iter().find(|(name, _)| self.word(at) == *name)?;
        said(Item::Listing(*listing), 1)
    }

    /// `time above 10 mg/L`, `concentration at 24 h`, `C(24)`.
    pub(super) fn time_figure(&self, at: usize) -> Match {
        const AT: &[&str] = &[
            "concentrations at",
            "concentration at",
            "levels at",
            "level at",
            "conc at",
            "c at",
            "concentration is at",
            "plasma level at",
            "serum level at",
            "plasma concentration at",
        ];
        if let Some(used) = self.one_of(at, ABOVE) {
            let used =
                used + self.skip(at + used, &["the", "a", "mic", "level", "of", "threshold"]);
            return match self.quantity(at + used) {
                Some((quantity, length)) if quantity.is(Dimension::Concentration) => {
                    said(Item::Figure(Figure::Above(quantity.canonical())), used + length)
                }
                Some((_, length)) => {
                    ask("above which concentration, such as 10 mg/L", used + length)
                }
                None => ask("above which concentration, such as 10 mg/L", used),
            };
        }
        let is_call = self.word(at) == "c" && self.symbol(at + 1) == Some('(');
        if is_call && let Some((quantity, length)) = self.quantity(at + 2) {
            let is_time = quantity.unit.is_none() || quantity.is(Dimension::Time);
            let is_closed = self.symbol(at + 2 + length) == Some(')');
            let time = Item::Figure(Figure::At(vec![quantity.canonical()]));
            return (is_time && is_closed).then_some((Ok(time), 3 + length));
        }
        let mut used = self.one_of(at, AT)?;
        let mut times = Vec::new();
        // "at 6, 12 and 24 h": a number without a unit has that of the last one.
        while let Some((quantity, length)) = self.quantity(at + used) {
            if !(quantity.unit.is_none() || quantity.is(Dimension::Time)) {
                return None;
            }
            times.push(quantity);
            used += length;
            let and = usize::from(self.symbol(at + used) == Some(','));
            let and = and + usize::from(self.word(at + used + and) == "and");
            if and == 0 || self.quantity(at + used + and).is_none() {
                break;
            }
            used += and;
        }
        match times.last()?.unit {
            None => ask("at which time? State the unit, such as 24 h.", used),
            unit => {
                let hours = times.iter().map(|time| Quantity { unit: time.unit.or(unit), ..*time });
                said(Item::Figure(Figure::At(hours.map(Quantity::canonical).collect())), used)
            }
        }
    }

    /// A loading dose, and `load` as a command.
    pub(super) fn loading(&self, at: usize) -> Match {
        if let Some(length) = self.one_of(at, &["load with", "loaded with", "load of"])
            && let Some((_, more)) = self.quantity(at + length)
        {
            return ask(LOADING, length + more);
        }
        (self.word(at) == "load").then_some((Ok(Item::Load), 1))
    }

    /// A quantity with no words that say what it is for.
    pub(super) fn quantity_alone(&self, at: usize) -> Match {
        if let Some(used) = self.one_of(at, WEIGHTS) {
            let sign = usize::from(self.is_symbol(at + used, &['=', ':']));
            let (quantity, length) = self.quantity_of(at + used + sign, Dimension::Weight)?;
            return said(Item::Weight(quantity), used + sign + length);
        }
        let (quantity, used) = self.quantity(at)?;
        if ["load", "loading"].contains(&self.word(at + used)) {
            let more = 1 + usize::from(self.word(at + used + 1) == "dose");
            return ask(LOADING, used + more);
        }
        match quantity.dimension() {
            Some(Dimension::Weight) => said(Item::Weight(quantity), used),
            Some(
                Dimension::Mass
                | Dimension::MassPerWeight
                | Dimension::MassPerDay
                | Dimension::MassPerWeightAndDay
                | Dimension::Volume
                | Dimension::Other,
            ) => self.dose(quantity, at, at + used),
            _ if used == 1 && quantity.unit.is_none() && self.word(at) == "one" => None,
            _ => said(Item::Bare(quantity), used),
        }
    }

    pub(super) fn verb(&self, at: usize) -> Match {
        if let Some(length) = self.one_of(at, &["in divided doses", "divided", "split", "equal"]) {
            let into = self.one_of(at + length, &["into", "in"]).unwrap_or(0);
            return said(Item::Divided, length + into);
        }
        if let Some(length) = self.one_of(at, &["go ahead", "run again"]) {
            return said(Item::Run(true), length);
        }
        let word = self.word(at);
        let item = match word {
            word if SIMULATE.contains(&word) => Item::Simulate,
            word if CHANGE.contains(&word) => Item::Change,
            word if RUN.contains(&word) => {
                let again = usize::from(self.word(at + 1) == "it");
                let more = usize::from(self.word(at + 1 + again) == "again");
                return said(Item::Run(true), 1 + again * more + more);
            }
            "again" => Item::Run(true),
            _ => return None,
        };
        said(item, 1)
    }

    /// A word of which only the person knows what it means here.
    pub(super) fn asked(&self, at: usize) -> Match {
        let word = self.word(at);
        if self.tokens[at].kind == Kind::Unclear {
            let unit = self.unit(at + 1).map_or(0, |(_, length)| length);
            return ask(
                "I can read this number in two ways. Write 0.5 for a half and 1,200 or 1200 for \
                 thousands.",
                1 + unit,
            );
        }
        if self.is_symbol(at, &['~', '\u{2248}', '<', '>', '\u{2264}', '\u{2265}', '\u{b1}']) {
            return ask("I need one number. State it exactly.", 1);
        }
        let (_, words) = ASKED.iter().find(|(words, _)| words.contains(&word))?;
        ask(*words, 1)
    }

    pub(super) fn filler(&self, at: usize) -> Match {
        let is_dash = self.is_symbol(at, &['-', '\u{2013}', '\u{2014}'])
            && (self.number(at + 1).is_none() || !self.is_joined(at + 1));
        let is_filler = FILLERS.contains(&self.word(at)) || self.is_symbol(at, PUNCTUATION);
        (is_filler || is_dash).then_some((Ok(Item::Filler), 1))
    }
}

const LOADING: &str = "a loading dose? The models have equal doses. Simulate it as a single dose, and \
                       the maintenance dose on its own.";
