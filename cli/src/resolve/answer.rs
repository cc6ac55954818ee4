//! From what was typed to what a question is answered with.

use serde_json::Value;

use crate::args;
use crate::failure::Failure;
use crate::input;

/// What a question is answered with.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Yes, exactly this.
    Approve,
    /// No, and perhaps why.
    Reject(Option<String>),
    /// Yes, with other arguments.
    Edit(Value),
    /// Something in words.
    Say(String),
}

/// Reads the options of `answer`; `None` if they say nothing, so that the person is to be asked.
///
/// # Errors
/// When the file of arguments cannot be read, or holds no object.
pub(super) fn decision(answer: args::steer::Answer) -> Result<Option<Decision>, Failure> {
    if let Some(file) = answer.edit {
        let arguments = input::json(&file)?;
        if !arguments.is_object() {
            let problem = format!("{} holds no JSON object", file.display());
            return Err(Failure::usage(problem).hint("it holds the tool's arguments, by name"));
        }
        return Ok(Some(Decision::Edit(arguments)));
    }
    Ok(match answer.say {
        Some(text) => Some(Decision::Say(text)),
        None if answer.approve => Some(Decision::Approve),
        None if answer.reject => Some(Decision::Reject(answer.reason)),
        None if answer.reason.is_some() => {
            return Err(Failure::usage("--reason is why something is rejected")
                .hint("say it with --reject --reason TEXT"));
        }
        None => None,
    })
}
