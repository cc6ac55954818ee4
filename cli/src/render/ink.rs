//! Colours, by what they stand for.

use owo_colors::Style;
use timeline::told::Tone;

use super::Look;

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Nothing special.
    Plain,
    /// Of less weight: times, writers, units.
    Faint,
    /// A heading.
    Strong,
    /// A name that something can be found by.
    Name,
    /// It went well.
    Good,
    /// It went wrong.
    Bad,
    /// It deserves a look.
    Warn,
}

impl Ink {
    /// What a line of this tone is drawn in.
    pub fn of_tone(tone: Tone) -> Self {
        match tone {
            Tone::Plain => Self::Plain,
            Tone::Begun => Self::Name,
            Tone::Good => Self::Good,
            Tone::Bad => Self::Bad,
            Tone::Warn => Self::Warn,
        }
    }

    /// What deserves attention by its severity, however an agent spells that.
    pub fn of_severity(severity: &str) -> Self {
        match severity.to_ascii_lowercase().as_str() {
            "critical" | "high" => Self::Bad,
            "medium" => Self::Warn,
            _ => Self::Plain,
        }
    }
}

impl Look {
    /// The text in its colour, if there are colours.
    pub fn ink(&self, ink: Ink, text: &str) -> String {
        let style = match ink {
            Ink::Plain => return text.to_owned(),
            Ink::Faint => Style::new().dimmed(),
            Ink::Strong => Style::new().bold(),
            Ink::Name => Style::new().cyan(),
            Ink::Good => Style::new().green(),
            Ink::Bad => Style::new().red(),
            Ink::Warn => Style::new().yellow(),
        };
        if self.colour && !text.is_empty() {
            style.style(text).to_string()
        } else {
            text.to_owned()
        }
    }
}
