//! Parses the options of `answer` into a decision.

use extension::input;
use serde_json::Value;

use crate::args;
use crate::failure::Failure;

/// A decision on a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    Approve,
    /// With an optional reason.
    Reject(Option<String>),
    /// Approves with edited arguments.
    Edit(Value),
    /// Answers in words.
    Say(String),
}

/// Reads the options of `answer`; `None` if they contain no decision, so that the command prompts for one.
///
/// # Errors
/// When the arguments file cannot be read or is not a JSON object.
pub(super) fn decision(answer: args::steer::Answer) -> Result<Option<Decision>, Failure> {
    if let Some(file) = answer.edit {
        let arguments = input::json(&file)?;
        if !arguments.is_object() {
            let problem = format!("{} is not a JSON object", file.display());
            return Err(Failure::usage(problem)
                .hint("write the tool's arguments by name, such as {\"value\": 80}"));
        }
        return Ok(Some(Decision::Edit(arguments)));
    }
    Ok(match answer.say {
        Some(text) => Some(Decision::Say(text)),
        None if answer.approve => Some(Decision::Approve),
        None if answer.reject => Some(Decision::Reject(answer.reason)),
        None if answer.reason.is_some() => {
            return Err(
                Failure::usage("--reason requires --reject").hint("use --reject --reason TEXT")
            );
        }
        None => None,
    })
}
