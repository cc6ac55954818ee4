//! Colours by meaning.

use owo_colors::Style;
use views::line::Tone;

use super::Look;

/// The meaning of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    Plain,
    /// Secondary: times, writers, units.
    Faint,
    Strong,
    /// An identifier or a command.
    Name,
    Good,
    Bad,
    Warn,
}

impl Ink {
    /// The ink of a tone.
    pub fn of_tone(tone: Tone) -> Self {
        match tone {
            Tone::Plain => Self::Plain,
            Tone::Begun => Self::Name,
            Tone::Good => Self::Good,
            Tone::Bad => Self::Bad,
            Tone::Warn => Self::Warn,
        }
    }
}

impl Look {
    /// Colours the text, if colour is enabled.
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
