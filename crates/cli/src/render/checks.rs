//! Results of `doctor`: one line per check, with the fix below.

use super::Look;
use super::ending::indented;
use super::ink::Ink;
use super::text::clean;

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Passed, with what was seen.
    Good(String),
    /// Failed.
    Bad { wrong: String, fix: String },
    /// Not determined.
    Unknown { why: String, fix: String },
    /// Nothing to look at: it concerns a stack, and none runs. Neither a pass nor a failure.
    Skipped(String),
}

impl Found {
    pub fn good(seen: impl Into<String>) -> Self {
        Self::Good(seen.into())
    }

    pub fn bad(wrong: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Bad { wrong: wrong.into(), fix: fix.into() }
    }

    pub fn unknown(why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Unknown { why: why.into(), fix: fix.into() }
    }
}

/// The name of a check and its result.
pub type Check = (&'static str, Found);

/// Formats each check on one line, and the fix below.
pub fn checks(look: Look, checks: &[Check]) -> Vec<String> {
    let column = checks.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for (name, found) in checks {
        let (glyph, ink, text, fix) = match found {
            Found::Good(seen) => ("✓", Ink::Good, seen, None),
            Found::Bad { wrong, fix } => ("✗", Ink::Bad, wrong, Some(fix)),
            Found::Unknown { why, fix } => ("?", Ink::Warn, why, Some(fix)),
            Found::Skipped(why) => ("-", Ink::Faint, why, None),
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
