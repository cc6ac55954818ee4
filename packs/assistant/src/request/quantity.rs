//! Numbers with units.

use serde::{Deserialize, Serialize};

/// What a unit measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Dimension {
    Mass,
    Volume,
    Time,
    Clearance,
    Rate,
    Fraction,
    Count,
    Concentration,
    Weight,
    /// Mass for each kilogram of body weight.
    MassPerWeight,
    MassPerDay,
    MassPerWeightAndDay,
    /// A unit that no rule can use, such as mg/h or IU.
    Other,
}

impl Dimension {
    /// The canonical unit, as the tools spell it.
    pub(crate) const fn canonical(self) -> &'static str {
        match self {
            Self::Mass => "mg",
            Self::Volume => "L",
            Self::Time => "h",
            Self::Clearance => "L/h",
            Self::Rate => "1/h",
            Self::Fraction => "fraction",
            Self::Count => "count",
            Self::Concentration => "mg/L",
            Self::Weight => "kg",
            Self::MassPerWeight => "mg/kg",
            Self::MassPerDay => "mg/day",
            Self::MassPerWeightAndDay => "mg/kg/day",
            Self::Other => "",
        }
    }
}

/// A unit: a fraction of two integers times the canonical one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unit {
    pub dimension: Dimension,
    pub times: f64,
    pub over: f64,
}

impl Unit {
    pub(crate) const fn new(dimension: Dimension, times: f64, over: f64) -> Self {
        Self { dimension, times, over }
    }

    pub(crate) const fn of(dimension: Dimension) -> Self {
        Self::new(dimension, 1.0, 1.0)
    }

    /// This unit for each of another one.
    pub(super) const fn per(self, other: Self, dimension: Dimension) -> Self {
        Self::new(dimension, self.times * other.over, self.over * other.times)
    }
}

/// A number as it was written, and its unit if one was written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Quantity {
    pub value: f64,
    pub unit: Option<Unit>,
}

impl Quantity {
    pub(crate) const fn of(value: f64, dimension: Dimension) -> Self {
        Self { value, unit: Some(Unit::of(dimension)) }
    }

    /// The value in the canonical unit.
    pub(crate) fn canonical(self) -> f64 {
        self.unit.map_or(self.value, |unit| self.value * unit.times / unit.over)
    }

    pub(crate) fn dimension(self) -> Option<Dimension> {
        self.unit.map(|unit| unit.dimension)
    }

    pub(crate) fn is(self, dimension: Dimension) -> bool {
        self.dimension() == Some(dimension)
    }
}

/// Units of one word.
const UNITS: &[(&[&str], Unit)] = &[
    (&["mg", "mgs", "milligram", "milligrams"], Unit::of(Dimension::Mass)),
    (&["g", "gm", "gram", "grams"], Unit::new(Dimension::Mass, 1e3, 1.0)),
    (
        &["ug", "mcg", "\u{b5}g", "\u{3bc}g", "microgram", "micrograms"],
        Unit::new(Dimension::Mass, 1.0, 1e3),
    ),
    (&["ng", "nanogram", "nanograms"], Unit::new(Dimension::Mass, 1.0, 1e6)),
    (&["kg", "kgs", "kilogram", "kilograms", "kilo", "kilos"], Unit::of(Dimension::Weight)),
    (&["l", "liter", "liters", "litre", "litres"], Unit::of(Dimension::Volume)),
    (&["dl"], Unit::new(Dimension::Volume, 1.0, 10.0)),
    (
        &["ml", "milliliter", "milliliters", "millilitre", "millilitres", "cc"],
        Unit::new(Dimension::Volume, 1.0, 1e3),
    ),
    (&["h", "hr", "hrs", "hour", "hours"], Unit::of(Dimension::Time)),
    (&["min", "mins", "minute", "minutes"], Unit::new(Dimension::Time, 1.0, 60.0)),
    (&["s", "sec", "secs", "second", "seconds"], Unit::new(Dimension::Time, 1.0, 3600.0)),
    (&["d", "day", "days"], Unit::new(Dimension::Time, 24.0, 1.0)),
    (&["wk", "wks", "week", "weeks"], Unit::new(Dimension::Time, 168.0, 1.0)),
    (&["percent", "pct"], Unit::new(Dimension::Fraction, 1.0, 100.0)),
    (&["fraction"], Unit::of(Dimension::Fraction)),
    (&["iu", "ius", "units", "unit", "mmol", "mol", "meq"], Unit::of(Dimension::Other)),
];

pub(super) fn unit(word: &str) -> Option<Unit> {
    UNITS.iter().find(|(words, _)| words.contains(&word)).map(|(_, unit)| *unit)
}

/// The unit of one for each of the other: mg/kg, L/h, mg/L.
pub(super) fn quotient(of: Unit, by: Unit) -> Unit {
    use Dimension as D;
    let dimension = match (of.dimension, by.dimension) {
        (D::Mass, D::Volume) => D::Concentration,
        (D::Mass, D::Weight) => D::MassPerWeight,
        (D::Mass, D::Time) if is_day(by) => return Unit { dimension: D::MassPerDay, ..of },
        (D::MassPerWeight, D::Time) if is_day(by) => {
            return Unit { dimension: D::MassPerWeightAndDay, ..of };
        }
        (D::Volume, D::Time) => D::Clearance,
        (D::Count, D::Time) => D::Rate,
        _ => D::Other,
    };
    of.per(by, dimension)
}

fn is_day(unit: Unit) -> bool {
    unit.dimension == Dimension::Time && unit.times.to_bits() == 24.0_f64.to_bits()
}

/// Numbers in words.
const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 8] =
    ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// A number in words from the start of the list, and how many words it takes: "two hundred and
/// fifty".
pub(super) fn in_words(words: &[&str]) -> Option<(f64, usize)> {
    let (mut total, mut group, mut used) = (0_u32, None::<u32>, 0);
    while let Some(word) = words.get(used) {
        let small = |word: &str| {
            let place = SMALL.iter().position(|small| *small == word);
            place.and_then(|place| u32::try_from(place).ok())
        };
        let tens = |word: &str| {
            let place = TENS.iter().position(|tens| *tens == word);
            place.and_then(|place| u32::try_from((place + 2) * 10).ok())
        };
        let fits = |limit: u32| group.is_none_or(|group| group > 0 && group % limit == 0);
        let next = match *word {
            "hundred" if group.is_some_and(|group| (1..10).contains(&group)) => {
                group.map(|group| group * 100)
            }
            "thousand" if total == 0 && group.is_some_and(|group| group > 0) => {
                total = group.unwrap_or(0) * 1000;
                Some(0)
            }
            "and" if group.is_some_and(|group| group > 0 && group % 100 == 0) => {
                let continues = |word: &&&str| small(word).or_else(|| tens(word)).is_some();
                if words.get(used + 1).filter(continues).is_none() {
                    break;
                }
                group
            }
            word => match (small(word), tens(word)) {
                (Some(value), _) if fits(if value < 10 { 10 } else { 100 }) || group == Some(0) => {
                    Some(group.unwrap_or(0) + value)
                }
                (_, Some(value)) if fits(100) || group == Some(0) => {
                    Some(group.unwrap_or(0) + value)
                }
                _ => break,
            },
        };
        if next.is_none() {
            break;
        }
        group = next;
        used += 1;
    }
    group.map(|group| (f64::from(total + group), used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_words_are_read_whole() {
        for (text, expected) in [
            ("two tablets", Some((2.0, 1))),
            ("two hundred and fifty mg", Some((250.0, 4))),
            ("one thousand five hundred mg", Some((1500.0, 4))),
            ("twenty four hours", Some((24.0, 2))),
            ("fifteen hundred", Some((15.0, 1))),
            ("five and", Some((5.0, 1))),
            ("one hundred and then", Some((100.0, 2))),
            ("five six", Some((5.0, 1))),
            ("hundred", None),
            ("mg", None),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(in_words(&words), expected, "{text}");
        }
    }
}
