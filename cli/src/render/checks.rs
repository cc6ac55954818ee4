//! What the doctor found, a line each, and below it what to do.

use super::Look;
use super::ending::indented;
use super::ink::Ink;
use super::text::clean;

/// How one thing was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// As it must be; what was seen.
    Good(String),
    /// Not so: what is wrong, and what mends it.
    Bad {
        /// What is wrong.
        wrong: String,
        /// What mends it.
        fix: String,
    },
    /// It could not be found out: why, and how it could.
    Unknown {
        /// Why.
        why: String,
        /// How it could.
        fix: String,
    },
}

impl Found {
    /// As it must be.
    pub fn good(seen: impl Into<String>) -> Self {
        Self::Good(seen.into())
    }

    /// Wrong, with what mends it.
    pub fn bad(wrong: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Bad { wrong: wrong.into(), fix: fix.into() }
    }

    #[cfg_attr(not(feature = "live"), expect(dead_code, reason = "on this machine all is known"))]
    /// Not to be found out, with how it could.
    pub fn unknown(why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Unknown { why: why.into(), fix: fix.into() }
    }
}

/// What was looked at, and how it was found.
pub type Check = (&'static str, Found);

/// A line for each, and how to mend what is wrong.
pub fn checks(look: Look, checks: &[Check]) -> Vec<String> {
    let column = checks.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for (name, found) in checks {
        let (glyph, ink, text, fix) = match found {
            Found::Good(seen) => ("✓", Ink::Good, seen, None),
            Found::Bad { wrong, fix } => ("✗", Ink::Bad, wrong, Some(fix)),
            Found::Unknown { why, fix } => ("?", Ink::Warn, why, Some(fix)),
        };
        let name = format!("{name:<column$}");
        let head = format!("{} {}", look.ink(ink, glyph), look.ink(Ink::Name, &name));
        let indent = " ".repeat(column + 4);
        let mut texts = indented(look, Ink::Plain, &indent, &clean(text)).into_iter();
        let first = texts.next().unwrap_or_default();
        lines.push(format!("{head}  {}", first.trim_start()).trim_end().to_owned());
        lines.extend(texts);
        if let Some(fix) = fix {
            lines.extend(indented(look, Ink::Faint, &indent, fix));
        }
    }
    lines
}
