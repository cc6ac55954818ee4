//! The rules. Each reads one phrase from a place in the text, and none reads part of a number or a word.

use super::lexicon::{
    ASKED, CHANGE, COUNTED, FACTORS, FIGURES, FILLERS, FREQUENCIES, LISTINGS, LOWER, NOT_RUNNING,
    PARAMETERS, PUNCTUATION, RAISE, ROUTES, RUN, SIMULATE, TABLETS,
};
use super::quantity::{Dimension, Quantity, Unit, in_words, quotient, unit};
use super::token::{Kind, Token, tokens};
use super::{Amount, Figure, Listing, Model, Route, number, path};

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
type Match = Option<(Result<Item, String>, usize)>;

pub(super) struct Reader<'a> {
    pub text: &'a str,
    pub tokens: Vec<Token>,
    models: &'a [Model],
}

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

fn said(item: Item, length: usize) -> Match {
    Some((Ok(item), length))
}

fn ask(words: impl Into<String>, length: usize) -> Match {
    Some((Err(words.into()), length))
}

fn set(path: &'static str, value: f64, dimension: Dimension, length: usize) -> Match {
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
        Self::asked,
        Self::filler,
    ];

    /// The text of these tokens.
    pub(super) fn slice(&self, start: usize, end: usize) -> &str {
        match (self.tokens.get(start), self.tokens.get(end.wrapping_sub(1))) {
            (Some(first), Some(last)) if end > start => &self.text[first.start..last.end],
            _ => "",
        }
    }

    fn word(&self, at: usize) -> &str {
        self.tokens.get(at).and_then(|token| token.kind.word()).unwrap_or_default()
    }

    fn symbol(&self, at: usize) -> Option<char> {
        match self.tokens.get(at)?.kind {
            Kind::Symbol(symbol) => Some(symbol),
            _ => None,
        }
    }

    fn is_symbol(&self, at: usize, symbols: &[char]) -> bool {
        self.symbol(at).is_some_and(|symbol| symbols.contains(&symbol))
    }

    /// Whether no white space is between this token and the one before.
    fn is_joined(&self, at: usize) -> bool {
        match (self.tokens.get(at.wrapping_sub(1)), self.tokens.get(at)) {
            (Some(before), Some(token)) if at > 0 => before.end == token.start,
            _ => false,
        }
    }

    /// Length of a hyphen within a compound such as `250-mg`, or 0.
    fn hyphen(&self, at: usize) -> usize {
        let is_one = self.is_symbol(at, &['-', '\u{2010}', '\u{2011}']);
        usize::from(is_one && self.is_joined(at) && self.is_joined(at + 1))
    }

    /// Length of this phrase, or `None`. A hyphen may stand for a blank.
    fn phrase(&self, at: usize, phrase: &str) -> Option<usize> {
        let mut used = 0;
        for (index, part) in phrase.split(' ').enumerate() {
            if index > 0 {
                used += self.hyphen(at + used);
            }
            if self.word(at + used) == part {
                used += 1;
                continue;
            }
            let expected = tokens(part);
            for token in &expected {
                if self.tokens.get(at + used)?.kind != token.kind {
                    return None;
                }
                used += 1;
            }
        }
        Some(used)
    }

    fn one_of(&self, at: usize, phrases: &[&str]) -> Option<usize> {
        phrases.iter().find_map(|phrase| self.phrase(at, phrase))
    }

    /// Tokens of these words from here.
    fn skip(&self, at: usize, words: &[&str]) -> usize {
        (at..self.tokens.len()).take_while(|at| words.contains(&self.word(*at))).count()
    }

    /// A number in digits or words.
    fn number(&self, at: usize) -> Option<(f64, usize)> {
        let (value, used) = match self.tokens.get(at)?.kind {
            Kind::Number(value) => (value, 1),
            Kind::Word(_) => {
                let words: Vec<&str> = (at..at + 8).map(|at| self.word(at)).collect();
                in_words(&words)?
            }
            _ => return None,
        };
        match self.phrase(at + used, "and a half") {
            Some(half) => Some((value + 0.5, used + half)),
            None => Some((value, used)),
        }
    }

    /// A unit, such as mg, mg/kg, L/h, `mg per kg` or `1/h`.
    fn unit(&self, at: usize) -> Option<(Unit, usize)> {
        let count = Unit::of(Dimension::Count);
        if self.symbol(at) == Some('%') {
            return Some((Unit::new(Dimension::Fraction, 1.0, 100.0), 1));
        }
        let is_one = self.tokens.get(at)?.kind == Kind::Number(1.0);
        let (mut found, mut used) = match (unit(self.word(at)), self.symbol(at)) {
            (Some(found), _) => (found, 1),
            (None, Some('/')) => (count, 0),
            _ if is_one && self.symbol(at + 1) == Some('/') => (count, 1),
            _ => match self.one_of(at, &["per"]) {
                Some(_) => (count, 0),
                None => return None,
            },
        };
        let is_inverse = |at| {
            let used = usize::from(self.symbol(at) == Some('^'));
            let one = self.tokens.get(at + used + 1).map(|token| &token.kind);
            (self.symbol(at + used) == Some('-')
                && self.is_joined(at + used)
                && one == Some(&Kind::Number(1.0)))
            .then_some(used + 2)
        };
        if found.dimension == Dimension::Time
            && let Some(inverse) = is_inverse(at + used)
        {
            return Some((quotient(count, found), used + inverse));
        }
        while let Some((by, more)) = self.divisor(at + used) {
            found = by.map_or(found, |by| quotient(found, by));
            used += more;
        }
        (used > 0 && found.dimension != Dimension::Count).then_some((found, used))
    }

    /// The rest of a unit after `/`, `per`, `a` or `each`; `None` for a dose, as in mg/dose.
    fn divisor(&self, at: usize) -> Option<(Option<Unit>, usize)> {
        let word = self.word(at);
        let is_sign = self.symbol(at) == Some('/');
        if !is_sign && !["per", "a", "each"].contains(&word) {
            return None;
        }
        let of = self.word(at + 1);
        match of {
            "dose" if is_sign || word == "per" => Some((None, 2)),
            "day" | "d" if is_sign || of == "day" => Some((unit(of), 2)),
            _ if is_sign || word == "per" => unit(of).map(|by| (Some(by), 2)),
            _ => None,
        }
    }

    /// A number with its unit, if it has one.
    fn quantity(&self, at: usize) -> Option<(Quantity, usize)> {
        let (value, mut used) = self.number(at)?;
        let hyphen = self.hyphen(at + used);
        let unit =
            self.unit(at + used + hyphen).filter(|(unit, _)| unit.dimension != Dimension::Count);
        let unit = unit.map(|(unit, length)| {
            used += hyphen + length;
            unit
        });
        Some((Quantity { value, unit }, used))
    }

    fn quantity_of(&self, at: usize, dimension: Dimension) -> Option<(Quantity, usize)> {
        self.quantity(at).filter(|(quantity, _)| quantity.is(dimension))
    }

    /// A time in hours: `1 h 30 min`, `a week`, `half an hour`, `an hour and a half`.
    fn time(&self, at: usize) -> Option<(f64, usize)> {
        for (phrase, value) in [("half an hour", 0.5), ("half a day", 12.0), ("half hour", 0.5)] {
            if let Some(used) = self.phrase(at, phrase) {
                return Some((value, used));
            }
        }
        let (hours, used, unit_hours) = self.plain_time(at)?;
        if let Some(half) = self.phrase(at + used, "and a half") {
            return Some((hours + unit_hours / 2.0, used + half));
        }
        let and = usize::from(self.word(at + used) == "and");
        match self.plain_time(at + used + and) {
            Some((more, length, smaller)) if smaller < unit_hours && self.number(at).is_some() => {
                Some((hours + more, used + and + length))
            }
            _ => Some((hours, used)),
        }
    }

    /// Hours, length, and the hours of its unit.
    fn plain_time(&self, at: usize) -> Option<(f64, usize, f64)> {
        let one = |unit: Unit| Quantity { value: 1.0, unit: Some(unit) }.canonical();
        if let Some((quantity, used)) = self.quantity(at) {
            let unit = quantity.unit.filter(|unit| unit.dimension == Dimension::Time)?;
            return Some((quantity.canonical(), used, one(unit)));
        }
        if !["a", "an"].contains(&self.word(at)) || self.word(at + 1).len() == 1 {
            return None;
        }
        let unit = unit(self.word(at + 1)).filter(|unit| unit.dimension == Dimension::Time)?;
        Some((one(unit), 2, one(unit)))
    }

    fn drug(&self, at: usize) -> Match {
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

    fn not_running(&self, at: usize) -> Match {
        said(Item::Run(false), self.one_of(at, NOT_RUNNING)?)
    }

    /// Two numbers of which one is meant: 100-200 mg, 6 to 8 h, 250 or 500 mg.
    fn range(&self, at: usize) -> Match {
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
    fn instead(&self, at: usize) -> Match {
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

    /// `q8h`, `every 8 hours`, `8 hourly`, `3 times a day`, `bid`.
    fn frequency(&self, at: usize) -> Match {
        let interval = |hours, length| set(path::INTERVAL, hours, Dimension::Time, length);
        if let Some(found) = self.every(at) {
            return found;
        }
        for (phrase, hours) in FREQUENCIES {
            if let Some(length) = self.phrase(at, phrase) {
                return interval(*hours, length);
            }
        }
        if self.symbol(at) == Some('/')
            && at > 0
            && let Some((quantity, length)) = self.quantity_of(at + 1, Dimension::Time)
        {
            return interval(quantity.canonical(), 1 + length);
        }
        if self.word(at) == "in"
            && let Some((value, used)) = self.number(at + 1)
            && ["divided", "equal"].contains(&self.word(at + 1 + used))
        {
            return interval(24.0 / value.max(1.0), 1 + used);
        }
        let (value, used) = self.number(at)?;
        let hyphen = self.hyphen(at + used);
        if self.word(at + used + hyphen) == "hourly" {
            return interval(value, used + hyphen + 1);
        }
        let x = usize::from(["x", "times", "doses", "dose"].contains(&self.word(at + used)));
        let x = x.max(usize::from(self.symbol(at + used) == Some('\u{d7}')));
        let day =
            ["a day", "per day", "each day", "every day", "daily", "in 24 hours", "/ day", "/ d"];
        let day = if x == 1 { self.one_of(at + used + x, &day)? } else { return None };
        match value.fract() == 0.0 && (1.0..=24.0).contains(&value) {
            true => interval(24.0 / value, used + x + day),
            false => ask("how often a day", used + x + day),
        }
    }

    /// `q8h`, `q 12`, `every 8 h`, `every eight hours`.
    fn every(&self, at: usize) -> Option<Match> {
        let word = self.word(at);
        if !["q", "every", "each"].contains(&word) {
            return None;
        }
        let (value, used) = self.number(at + 1)?;
        let hyphen = self.hyphen(at + 1 + used);
        let length = 1 + used + hyphen;
        let short = match self.word(at + length) {
            "w" if word == "q" => Some(168.0),
            unit_word => unit(unit_word)
                .filter(|unit| unit.dimension == Dimension::Time)
                .map(|unit| unit.times / unit.over),
        };
        Some(match short {
            Some(hours) => set(path::INTERVAL, value * hours, Dimension::Time, length + 1),
            None if word == "q" && hyphen == 0 => {
                set(path::INTERVAL, value, Dimension::Time, length)
            }
            None => return None,
        })
    }

    /// `at 8 and 20`, `at 8:00, 14:00 and 20:00`: even times are an interval.
    fn clock(&self, at: usize) -> Match {
        let mut used = self.one_of(at, &["at"])?;
        let mut times = Vec::new();
        while let Some((hour, length)) = self.clock_time(at + used) {
            times.push(hour);
            used += length;
            let and = usize::from(self.symbol(at + used) == Some(','));
            let and = and + usize::from(["and"].contains(&self.word(at + used + and)));
            if and == 0 || self.clock_time(at + used + and).is_none() {
                break;
            }
            used += and;
        }
        let (first, count) = (*times.first()?, times.len());
        let is_clock = count > 1 || used > 2;
        if !is_clock {
            return None;
        }
        let next = times.iter().skip(1).chain([&first]);
        let gaps: Vec<f64> =
            times.iter().zip(next).map(|(a, b)| (b - a).rem_euclid(24.0)).collect();
        match gaps.as_slice() {
            [gap, rest @ ..]
                if count > 1
                    && *gap > 0.0
                    && rest.iter().all(|other| other == gap)
                    && (gap * f64::from(u32::try_from(count).unwrap_or(0)) - 24.0).abs() < 1e-9 =>
            {
                set(path::INTERVAL, *gap, Dimension::Time, used)
            }
            [_] => ask("a clock time. State the interval, such as every 24 h.", used),
            _ => ask("uneven times. The models have equal intervals: which one, in hours", used),
        }
    }

    /// An hour of the day: `8`, `08:00`, `8 am`, `20 h`. A number with another unit is none.
    fn clock_time(&self, at: usize) -> Option<(f64, usize)> {
        let Kind::Number(hour) = self.tokens.get(at)?.kind else { return None };
        let mut used = 1;
        let mut time = hour;
        if self.symbol(at + 1) == Some(':')
            && let Some(Kind::Number(minutes)) =
                self.tokens.get(at + 2).map(|token| token.kind.clone())
        {
            time += minutes / 60.0;
            used += 2;
        }
        match self.word(at + used) {
            "am" => {
                used += 1;
                time = if hour >= 12.0 { time - 12.0 } else { time };
            }
            "pm" => {
                used += 1;
                time = if hour < 12.0 { time + 12.0 } else { time };
            }
            "" => {}
            other if unit(other).is_some() || other == "x" => return None,
            _ => {}
        }
        if self.symbol(at + used) == Some('%') || self.symbol(at + used) == Some('/') {
            return None;
        }
        (0.0..24.0).contains(&time).then_some((time, used))
    }

    /// `increase the dose by 50 mg`, `reduce clearance by 20 %`, `double it`.
    fn relative(&self, at: usize) -> Match {
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
        for (phrase, factor) in [("by half", 0.5), ("in half", 0.5)] {
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

    /// A parameter's name.
    fn named(&self, at: usize) -> Option<(&'static str, usize)> {
        let found =
            PARAMETERS.iter().filter_map(|(name, path)| Some((*path, self.phrase(at, name)?)));
        found.max_by_key(|(_, length)| *length)
    }

    /// `clearance of 4 L/h`, `V = 30 L`, `dose to 300 mg`; a name alone is asked about or read.
    fn parameter(&self, at: usize) -> Match {
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

    /// A dose, or why it is none.
    fn dose(&self, quantity: Quantity, at: usize, end: usize) -> Match {
        let length = end - at;
        match quantity.dimension() {
            Some(
                Dimension::Mass
                | Dimension::MassPerWeight
                | Dimension::MassPerDay
                | Dimension::MassPerWeightAndDay,
            ) => said(Item::Dose(quantity, None), length),
            Some(Dimension::Volume) => {
                ask("a volume. State the dose in mg, or the strength.", length)
            }
            Some(Dimension::Other) => {
                ask("the models need the dose as a mass, such as mg.", length)
            }
            _ => ask("this unit fits no dose.", length),
        }
    }

    /// `two 250 mg tablets`, `2 tablets of 250 mg`, `a 250 mg tablet`.
    fn tablets(&self, at: usize) -> Match {
        let is_tablet = |at: usize| TABLETS.contains(&self.word(at));
        let is_many = |at: usize| is_tablet(at) && self.word(at).ends_with('s');
        let dose = |count: f64, of: Quantity, length| {
            let value = Quantity { value: count * of.value, ..of };
            let shown = format!("{} × {} mg", number(count), number(of.canonical()));
            said(Item::Dose(value, Some(shown)), length)
        };
        if let Some((of, used)) = self.quantity_of(at, Dimension::Mass)
            && is_tablet(at + used + self.hyphen(at + used))
        {
            let length = used + self.hyphen(at + used) + 1;
            return match is_many(at + length - 1) {
                true => ask("how many tablets", length),
                false => said(Item::Dose(of, None), length),
            };
        }
        let (count, used) = self.number(at).or_else(|| {
            let one = ["a", "an"].contains(&self.word(at)).then_some((1.0, 1));
            one.filter(|(_, used)| is_tablet(at + used))
        })?;
        let x =
            usize::from(self.word(at + used) == "x" || self.symbol(at + used) == Some('\u{d7}'));
        if let Some((of, more)) = self.quantity_of(at + used + x, Dimension::Mass) {
            let end = at + used + x + more;
            let end = end + self.hyphen(end);
            if is_tablet(end) {
                return dose(count, of, end + 1 - at);
            }
            if x == 1 {
                return ask("that many doses, or so many tablets for one dose", end - at);
            }
            return None;
        }
        if !is_tablet(at + used) {
            return None;
        }
        let of_at = at + used + 1;
        let of_at = of_at + usize::from(self.word(of_at) == "of");
        let open = usize::from(self.symbol(of_at) == Some('('));
        match self.quantity_of(of_at + open, Dimension::Mass) {
            Some((of, more)) => dose(count, of, of_at + open + more - at),
            None => ask("what strength has a tablet, in mg", used + 1),
        }
    }

    /// `x 6`, `6 doses`, `single dose`, `once`; `x 5 days` is a duration.
    fn count(&self, at: usize) -> Match {
        let doses = |value: f64, length| set(path::DOSES, value, Dimension::Count, length);
        let repeats = ["every", "each", "q"].contains(&self.word(at + 1));
        if self.word(at) == "once" && repeats {
            return said(Item::Filler, 1);
        }
        for phrase in [
            "single dose",
            "one dose",
            "single doses",
            "one time only",
            "one time",
            "single",
            "once",
            "one-off",
        ] {
            if let Some(length) = self.phrase(at, phrase) {
                return doses(1.0, length);
            }
        }
        let is_times = self.word(at) == "x" || self.is_symbol(at, &['\u{d7}', '*']);
        if is_times && at > 0 {
            if let Some((hours, length)) = self.time(at + 1) {
                return set(path::DURATION, hours, Dimension::Time, 1 + length);
            }
            let (quantity, length) = self.quantity(at + 1)?;
            let counted = usize::from(COUNTED.contains(&self.word(at + 1 + length)));
            return match quantity.unit {
                None => doses(quantity.value, 1 + length + counted),
                Some(_) => ask("so many doses of which amount", 1 + length),
            };
        }
        let (value, used) = self.number(at)?;
        let is_x = self.word(at + used) == "x" || self.symbol(at + used) == Some('\u{d7}');
        if is_x && self.number(at + used + 1).is_none() {
            return doses(value, used + 1);
        }
        let route = self.route(at + used).map_or(0, |(_, length)| length);
        let word = self.word(at + used + route);
        if !COUNTED.contains(&word) {
            return None;
        }
        let next = self.word(at + used + route + 1);
        let a_week = ["a", "per", "each", "weekly", "monthly", "yearly", "in", "within"];
        let is_rate = a_week.contains(&next) || (word == "times" && next == "every");
        if is_rate || self.symbol(at + used + route + 1) == Some('/') {
            return ask("how often, as an interval in hours or days", used + route + 2);
        }
        // The route has its own rule.
        doses(value, used + usize::from(route == 0))
    }

    /// `over 90 minutes`, `as a 1-h infusion`, `infused for 2 h`.
    fn infusion(&self, at: usize) -> Match {
        const OVER: &[&str] = &[
            "infusion over",
            "infused over",
            "infuse over",
            "given over",
            "infusion of",
            "infused in",
            "infusion for",
            "infused for",
            "infusion lasting",
            "over the course of",
            "over",
        ];
        if let Some(used) = self.one_of(at, OVER) {
            let used = used + self.skip(at + used, &["the"]);
            if let Some((Err(words), length)) = self.range(at + used) {
                return ask(words, used + length);
            }
            let (hours, length) = self.time(at + used)?;
            let is_infusion = self.word(at).starts_with("infus") || self.word(at) == "given";
            let after = self.route(at + used + length).map_or(0, |(_, length)| length);
            return match hours {
                hours if hours < OVER_HOURS || is_infusion => {
                    set(path::INFUSION, hours, Dimension::Time, used + length)
                }
                hours if hours > 24.0 => set(path::DURATION, hours, Dimension::Time, used + length),
                _ => ask(
                    "each infusion takes this long, or the simulation does? Say `infused over` or \
                     `simulate for`.",
                    used + length + after,
                ),
            };
        }
        let (hours, used) = self.time(at)?;
        let hyphen = self.hyphen(at + used);
        let words =
            ["iv infusions", "iv infusion", "intravenous infusion", "infusions", "infusion"];
        let length = self.one_of(at + used + hyphen, &words)?;
        set(path::INFUSION, hours, Dimension::Time, used + hyphen + length)
    }

    /// `for 3 days`, `a 5-day course`, `until day 3`.
    fn duration(&self, at: usize) -> Match {
        let duration = |hours, length| set(path::DURATION, hours, Dimension::Time, length);
        if let Some(used) =
            self.one_of(at, &["until day", "through day", "until the end of day", "to day"])
            && let Some((day, length)) = self.number(at + used)
        {
            let words = format!(
                "the simulated time is then {} h or {} h?",
                number((day - 1.0) * 24.0),
                number(day * 24.0)
            );
            return ask(words, used + length);
        }
        let lead = [
            "for a total of",
            "for the next",
            "for up to",
            "for",
            "lasting",
            "during",
            "simulate",
            "until",
        ];
        if let Some(used) = self.one_of(at, &lead) {
            if let Some((Err(words), length)) = self.range(at + used) {
                return ask(words, used + length);
            }
            if let Some((hours, length)) = self.time(at + used) {
                let hyphen = self.hyphen(at + used + length);
                return match self.word(at + used + length + hyphen) {
                    // "simulate a 5-day course": the rest of the phrase has its own rule.
                    "infusion" | "infusions" => None,
                    _ if self.phrase(at, "for up to").is_some() => {
                        ask("exactly how long", used + length)
                    }
                    _ => duration(hours, used + length),
                };
            }
            return None;
        }
        let (hours, used) = self.time(at)?;
        let hyphen = self.hyphen(at + used);
        let of =
            ["course", "of therapy", "of treatment", "of dosing", "regimen", "simulation", "long"];
        let length = self.one_of(at + used + hyphen, &of)?;
        duration(hours, used + hyphen + length)
    }

    fn route(&self, at: usize) -> Match {
        let found =
            ROUTES.iter().filter_map(|(name, route)| Some((*route, self.phrase(at, name)?)));
        let (route, length) = found.max_by_key(|(_, length)| *length)?;
        match route {
            Route::Unknown => ask("no model has this route.", length),
            route => said(Item::Route(route), length),
        }
    }

    fn figure(&self, at: usize) -> Match {
        let found =
            FIGURES.iter().filter_map(|(name, figure)| Some((figure, self.phrase(at, name)?)));
        if let Some((figure, length)) = found.max_by_key(|(_, length)| *length) {
            return said(Item::Figure(figure.clone()), length);
        }
        let (_, listing) = LISTINGS.iter().find(|(name, _)| self.word(at) == *name)?;
        said(Item::Listing(*listing), 1)
    }

    /// `time above 10 mg/L`, `concentration at 24 h`, `C(24)`.
    fn time_figure(&self, at: usize) -> Match {
        const ABOVE: &[&str] =
            &["time above", "time over", "hours above", "time is above", "time spent above"];
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
    fn loading(&self, at: usize) -> Match {
        if let Some(length) = self.one_of(at, &["load with", "loaded with", "load of"])
            && let Some((_, more)) = self.quantity(at + length)
        {
            return ask(LOADING, length + more);
        }
        (self.word(at) == "load").then_some((Ok(Item::Load), 1))
    }

    /// A quantity with no words that say what it is for.
    fn quantity_alone(&self, at: usize) -> Match {
        if let Some(used) = self.one_of(
            at,
            &["weighing", "weight of", "weight is", "weight", "body weight of", "body weight"],
        ) {
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

    fn verb(&self, at: usize) -> Match {
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
    fn asked(&self, at: usize) -> Match {
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

    fn filler(&self, at: usize) -> Match {
        let is_dash = self.is_symbol(at, &['-', '\u{2013}', '\u{2014}'])
            && (self.number(at + 1).is_none() || !self.is_joined(at + 1));
        let is_filler = FILLERS.contains(&self.word(at)) || self.is_symbol(at, PUNCTUATION);
        (is_filler || is_dash).then_some((Ok(Item::Filler), 1))
    }
}

const LOADING: &str = "a loading dose? The models have equal doses. Simulate it as a single dose, and \
                       the maintenance dose on its own.";

/// From this many hours on, "over" can also mean the simulated time.
const OVER_HOURS: f64 = 12.0;
