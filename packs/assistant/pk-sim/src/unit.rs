//! Units: which are accepted, and how they are converted.
//!
//! Internally, every value is in the canonical unit of its dimension: mg, L, h, L/h, 1/h.

/// Dimension of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dimension {
    Mass,
    Volume,
    Time,
    /// Volume cleared per time.
    Clearance,
    /// First-order rate constant.
    Rate,
    Fraction,
    /// A count.
    Count,
}

/// A factor as a fraction of two integers, so that 90 mL/min becomes 5.4 L/h and not
/// 5.3999999999999995.
type Factor = (f64, f64);

const MASSES: &[(&str, Factor)] = &[
    ("kg", (1e6, 1.0)),
    ("g", (1e3, 1.0)),
    ("mg", (1.0, 1.0)),
    ("ug", (1.0, 1e3)),
    ("mcg", (1.0, 1e3)),
    // The micro sign and the Greek letter mu look the same.
    ("\u{b5}g", (1.0, 1e3)),
    ("\u{3bc}g", (1.0, 1e3)),
    ("ng", (1.0, 1e6)),
];

const VOLUMES: &[(&str, Factor)] = &[
    ("L", (1.0, 1.0)),
    ("l", (1.0, 1.0)),
    ("dL", (1.0, 10.0)),
    ("dl", (1.0, 10.0)),
    ("mL", (1.0, 1e3)),
    ("ml", (1.0, 1e3)),
];

const TIMES: &[(&str, Factor)] = &[
    ("d", (24.0, 1.0)),
    ("day", (24.0, 1.0)),
    ("days", (24.0, 1.0)),
    ("h", (1.0, 1.0)),
    ("hour", (1.0, 1.0)),
    ("hours", (1.0, 1.0)),
    ("min", (1.0, 60.0)),
    ("minute", (1.0, 60.0)),
    ("minutes", (1.0, 60.0)),
    ("s", (1.0, 3600.0)),
    ("second", (1.0, 3600.0)),
    ("seconds", (1.0, 3600.0)),
];

const FRACTIONS: &[(&str, Factor)] = &[("fraction", (1.0, 1.0)), ("%", (1.0, 100.0))];

const COUNTS: &[(&str, Factor)] = &[("count", (1.0, 1.0))];

impl Dimension {
    /// The canonical unit, also used in results.
    pub(super) const fn canonical(self) -> &'static str {
        match self {
            Self::Mass => "mg",
            Self::Volume => "L",
            Self::Time => "h",
            Self::Clearance => "L/h",
            Self::Rate => "1/h",
            Self::Fraction => "fraction",
            Self::Count => "count",
        }
    }

    /// The accepted units, for messages.
    pub(super) const fn accepted(self) -> &'static str {
        match self {
            Self::Mass => "kg, g, mg, ug (mcg, \u{b5}g) or ng",
            Self::Volume => "L, dL or mL",
            Self::Time => "d, h, min or s",
            Self::Clearance => "a volume (L, dL, mL) over a time (d, h, min, s), such as L/h",
            Self::Rate => "1 over a time (d, h, min, s), such as 1/h",
            Self::Fraction => "fraction or %",
            Self::Count => "count",
        }
    }

    /// Converts a value in this unit to the canonical one; `None` if the unit does not fit the
    /// dimension.
    pub(super) fn convert(self, value: f64, unit: &str) -> Option<f64> {
        let (times, over) = self.factor(unit.trim())?;
        Some(value * times / over)
    }

    fn factor(self, unit: &str) -> Option<Factor> {
        match self {
            Self::Mass => find(MASSES, unit),
            Self::Volume => find(VOLUMES, unit),
            Self::Time => find(TIMES, unit),
            Self::Fraction => find(FRACTIONS, unit),
            Self::Count => find(COUNTS, unit),
            Self::Clearance => {
                let (volume, time) = unit.split_once('/')?;
                Some(over(find(VOLUMES, volume)?, find(TIMES, time)?))
            }
            Self::Rate => {
                let time = unit.strip_prefix("1/").or_else(|| unit.strip_prefix('/'))?;
                Some(over((1.0, 1.0), find(TIMES, time)?))
            }
        }
    }
}

fn find(units: &[(&str, Factor)], unit: &str) -> Option<Factor> {
    units.iter().find(|(name, _)| *name == unit.trim()).map(|(_, factor)| *factor)
}

fn over(dividend: Factor, divisor: Factor) -> Factor {
    (dividend.0 * divisor.1, dividend.1 * divisor.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_converted_to_the_canonical_unit() {
        for (dimension, value, unit, expected) in [
            (Dimension::Mass, 0.32, "g", Some(320.0)),
            (Dimension::Mass, 250.0, "\u{b5}g", Some(0.25)),
            (Dimension::Mass, 250.0, "\u{3bc}g", Some(0.25)),
            (Dimension::Mass, 1.0, "L", None),
            (Dimension::Mass, 1.0, "mG", None),
            (Dimension::Volume, 1470.0, "mL", Some(1.47)),
            (Dimension::Time, 90.0, " min ", Some(1.5)),
            (Dimension::Time, 2.0, "d", Some(48.0)),
            (Dimension::Clearance, 90.0, "mL/min", Some(5.4)),
            (Dimension::Clearance, 24.0, "L/d", Some(1.0)),
            (Dimension::Clearance, 1.0, "L", None),
            (Dimension::Clearance, 1.0, "h/L", None),
            (Dimension::Clearance, 1.0, "L/h/kg", None),
            (Dimension::Rate, 0.025, "1/min", Some(1.5)),
            (Dimension::Rate, 1.5, "/h", Some(1.5)),
            (Dimension::Rate, 1.5, "h", None),
            (Dimension::Fraction, 70.0, "%", Some(0.7)),
            (Dimension::Fraction, 70.0, "", None),
            (Dimension::Count, 7.0, "count", Some(7.0)),
        ] {
            assert_eq!(dimension.convert(value, unit), expected, "{value} {unit}");
        }
    }

    #[test]
    fn the_canonical_unit_changes_nothing() {
        for dimension in [
            Dimension::Mass,
            Dimension::Volume,
            Dimension::Time,
            Dimension::Clearance,
            Dimension::Rate,
            Dimension::Fraction,
            Dimension::Count,
        ] {
            assert_eq!(dimension.convert(1.25, dimension.canonical()), Some(1.25), "{dimension:?}");
        }
    }
}
