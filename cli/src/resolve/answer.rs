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

/// Reads the options of `answer`.
///
/// # Errors
/// When the file of arguments cannot be read, or holds no object.
pub(super) fn decision(answer: args::steer::Answer) -> Result<Decision, Failure> {
    if let Some(file) = answer.edit {
        let arguments = input::json(&file)?;
        if !arguments.is_object() {
            let problem = format!("{} holds no JSON object", file.display());
            return Err(Failure::usage(problem).hint("it holds the tool's arguments, by name"));
        }
        return Ok(Decision::Edit(arguments));
    }
    Ok(match answer.say {
        Some(text) => Decision::Say(text),
        None if answer.approve => Decision::Approve,
        None => Decision::Reject(answer.reason),
    })
}
