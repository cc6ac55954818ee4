//! Errors of effects, and of an agent's function.

use std::fmt;

use serde::Deserialize;

/// What an agent's function may fail with.
pub type Error = Box<dyn std::error::Error>;

/// Why an effect has no value. The same error comes again in a replay, so an agent may catch it and go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectError {
    pub kind: Kind,
    /// One word, such as `mcp_connection`; the type of the error if a step failed.
    pub category: String,
    pub message: String,
    /// The line that asked for the effect.
    pub(crate) at: String,
}

/// What may have happened although there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The tool reported an error, or its arguments did not match its schema.
    Tool,
    /// The function of the step failed.
    Step,
    /// A person rejected the call.
    Rejected,
    /// The question about the call expired.
    Expired,
    /// Nothing happened.
    NotSent,
    /// Nothing happened, and another attempt would not help.
    Refused,
    /// It may have happened; the reply was lost.
    Unknown,
    /// The model's reply does not match the schema of the chat.
    InvalidReply,
    /// The value is not of the type that the agent reads it as.
    Value,
    /// The arguments cannot be sent: too large, or no JSON.
    Arguments,
}

impl fmt::Display for EffectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Step => write!(f, "{}: {}", self.category, self.message),
            _ => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for EffectError {}

/// The frame's form of an error.
#[derive(Deserialize)]
pub(crate) struct ErrorFrame {
    kind: Kind,
    #[serde(default)]
    category: String,
    #[serde(default)]
    message: String,
}

impl ErrorFrame {
    pub(crate) fn at(self, at: &str) -> EffectError {
        let Self { kind, category, message } = self;
        EffectError { kind, category, message, at: at.to_owned() }
    }
}

/// The name of an error's type, for people: `NoCommits` of `app::NoCommits`.
pub(crate) fn type_name<E: ?Sized>() -> String {
    let whole = std::any::type_name::<E>();
    if whole.contains("dyn ") {
        return "Error".to_owned();
    }
    let plain = whole.split('<').next().unwrap_or(whole);
    plain.rsplit("::").next().unwrap_or(plain).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_name_of_its_type() {
        assert_eq!(type_name::<std::num::ParseIntError>(), "ParseIntError");
        assert_eq!(type_name::<Error>(), "Error");
        assert_eq!(type_name::<String>(), "String");
    }
}
