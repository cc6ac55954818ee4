//! Words, numbers, units and times at a place in the text.

use super::Model;
use super::quantity::{Dimension, Quantity, Unit, in_words, quotient, unit};
use super::token::{Kind, Token, tokens};

pub(super) struct Reader<'a> {
    pub text: &'a str,
    pub tokens: Vec<Token>,
    pub models: &'a [Model],
}

impl Reader<'_> {
    /// The text of these tokens.
    pub(super) fn slice(&self, start: usize, end: usize) -> &str {
        match (self.tokens.get(start), self.tokens.get(end.wrapping_sub(1))) {
            (Some(first), Some(last)) if end > start => &self.text[first.start..last.end],
            _ => "",
        }
    }

    pub(super) fn word(&self, at: usize) -> &str {
        self.tokens.get(at).and_then(|token| token.kind.word()).unwrap_or_default()
    }

    pub(super) fn symbol(&self, at: usize) -> Option<char> {
        match self.tokens.get(at)?.kind {
            Kind::Symbol(symbol) => Some(symbol),
            _ => None,
        }
    }

    pub(super) fn is_symbol(&self, at: usize, symbols: &[char]) -> bool {
        self.symbol(at).is_some_and(|symbol| symbols.contains(&symbol))
    }

    /// Whether no white space is between this token and the one before.
    pub(super) fn is_joined(&self, at: usize) -> bool {
        match (self.tokens.get(at.wrapping_sub(1)), self.tokens.get(at)) {
            (Some(before), Some(token)) if at > 0 => before.end == token.start,
            _ => false,
        }
    }

    /// Length of a hyphen within a compound such as `250-mg`, or 0.
    pub(super) fn hyphen(&self, at: usize) -> usize {
        let is_one = self.is_symbol(at, &['-', '\u{2010}', '\u{2011}']);
        usize::from(is_one && self.is_joined(at) && self.is_joined(at + 1))
    }

    /// Length of this phrase, or `None`. A hyphen may stand for a blank.
    pub(super) fn phrase(&self, at: usize, phrase: &str) -> Option<usize> {
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

    pub(super) fn one_of(&self, at: usize, phrases: &[&str]) -> Option<usize> {
        phrases.iter().find_map(|phrase| self.phrase(at, phrase))
    }

    /// Tokens of these words from here.
    pub(super) fn skip(&self, at: usize, words: &[&str]) -> usize {
        (at..self.tokens.len()).take_while(|at| words.contains(&self.word(*at))).count()
    }

    /// A number in digits or words.
    pub(super) fn number(&self, at: usize) -> Option<(f64, usize)> {
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
    pub(super) fn unit(&self, at: usize) -> Option<(Unit, usize)> {
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
    pub(super) fn divisor(&self, at: usize) -> Option<(Option<Unit>, usize)> {
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
    pub(super) fn quantity(&self, at: usize) -> Option<(Quantity, usize)> {
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

    pub(super) fn quantity_of(&self, at: usize, dimension: Dimension) -> Option<(Quantity, usize)> {
        self.quantity(at).filter(|(quantity, _)| quantity.is(dimension))
    }

    /// A time in hours: `1 h 30 min`, `a week`, `half an hour`, `an hour and a half`.
    pub(super) fn time(&self, at: usize) -> Option<(f64, usize)> {
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
        let is_of_other = |end: usize| {
            const OTHERS: [&str; 7] =
                ["infusion", "infusions", "apart", "interval", "intervals", "lag", "later"];
            OTHERS.contains(&self.word(end + self.hyphen(end)))
        };
        match self.plain_time(at + used + and) {
            // "for 3 days and 1 hour infusion" has two times.
            Some((_, length, _)) if is_of_other(at + used + and + length) => Some((hours, used)),
            Some((more, length, smaller)) if smaller < unit_hours && self.number(at).is_some() => {
                Some((hours + more, used + and + length))
            }
            _ => Some((hours, used)),
        }
    }

    /// Hours, length, and the hours of its unit.
    pub(super) fn plain_time(&self, at: usize) -> Option<(f64, usize, f64)> {
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
}
