//! One-line error messages of records.

use std::fmt;

use crate::limits::ERROR_MESSAGE_CHARS_MAX;

/// `Type: Code - message`, at most [`ERROR_MESSAGE_CHARS_MAX`] characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ErrorMessage(String);

impl ErrorMessage {
    /// Builds a message from an error's type, code and text.
    ///
    /// Control characters become spaces. A message that is too long is truncated and ends with an
    /// ellipsis.
    pub fn new(kind: &str, code: &str, message: &str) -> Self {
        Self::from_text(&format!("{kind}: {code} - {message}"))
    }

    /// A message that already has this form, read from a record or received from another component.
    pub fn from_text(text: &str) -> Self {
        let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        if clean.chars().count() <= ERROR_MESSAGE_CHARS_MAX {
            return Self(clean);
        }
        let mut cut: String = clean.chars().take(ERROR_MESSAGE_CHARS_MAX - 1).collect();
        cut.push('…');
        Self(cut)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ErrorMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_message_is_one_line_of_at_most_500_characters() {
        let message = ErrorMessage::new("ClientError", "ThrottlingException", "rate\nexceeded");
        assert_eq!(message.as_str(), "ClientError: ThrottlingException - rate exceeded");
        let long = ErrorMessage::new("A", "B", &"ä".repeat(1_000));
        assert_eq!(long.as_str().chars().count(), 500);
        assert!(long.as_str().ends_with('…'));
    }
}
