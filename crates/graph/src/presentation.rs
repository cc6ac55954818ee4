//! How an agent's sessions are shown.
//!
//! Viewers (the terminal, the page, the session's JSON) use only this interface. A panic in the agent's
//! code falls back to the default and never breaks a viewer.

use journal::status::Status;
use serde_json::Value;

use crate::agent::Agent;
use crate::conclusion::{Conclusion, clip, generic};
use crate::panics;

/// Longest title of a session, in characters.
pub const TITLE_CHARS_MAX: usize = 120;

/// The presentation of an agent's sessions. All functions are pure.
#[derive(Clone, Copy, Debug)]
pub struct Presentation {
    /// The title of a session with this input, such as `inventory-sync · ETIMEDOUT`.
    pub title: fn(input: &Value) -> Option<String>,
    /// The conclusion of a result; `None` for the generic one.
    pub conclude: fn(result: &Value) -> Option<Conclusion>,
    /// Advice on a failure, by the error's code or category; may be empty. Text in backticks is a
    /// command.
    pub advice: fn(code_or_category: &str) -> &'static [&'static str],
    /// The agent's own field in the session's JSON.
    pub state: Option<StateField>,
}

/// A field in the session's JSON with the agent's own word for its status.
#[derive(Clone, Copy, Debug)]
pub struct StateField {
    pub name: &'static str,
    pub word: fn(&Standing<'_>) -> &'static str,
}

/// A session's status, as [`StateField::word`] gets it.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    pub stage: Stage,
    /// The category of its error.
    pub category: Option<&'a str>,
    /// Whether the agent's background task ever began.
    pub has_run: bool,
}

/// A session's progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// No verdict yet.
    Open,
    Succeeded,
    Failed,
    /// Cancelled or timed out.
    Stopped,
    /// Rejected by admission.
    Rejected,
}

impl From<Status> for Stage {
    fn from(status: Status) -> Self {
        match status {
            Status::Initiated | Status::Running | Status::Waiting => Self::Open,
            Status::Succeeded => Self::Succeeded,
            Status::Failed => Self::Failed,
            Status::TimedOut | Status::Cancelled => Self::Stopped,
            Status::Rejected => Self::Rejected,
        }
    }
}

impl Default for Presentation {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Presentation {
    /// The presentation of agents that set none and of unregistered agents.
    pub const DEFAULT: Self =
        Self { title: |_| None, conclude: |_| None, advice: |_| &[], state: None };

    /// The presentation of the agent with this name.
    pub fn among(agents: &[Agent], name: Option<&str>) -> Self {
        let agent = agents.iter().find(|agent| Some(agent.name()) == name);
        agent.map_or(Self::DEFAULT, Agent::presentation)
    }

    /// The title of a session with this input.
    pub fn title_of(&self, input: &Value) -> Option<String> {
        let mut title = caught(|| (self.title)(input)).flatten()?.trim().to_owned();
        clip(&mut title, TITLE_CHARS_MAX);
        (!title.is_empty()).then_some(title)
    }

    /// The conclusion of a session with this result; `None` without a result.
    pub fn conclusion_of(&self, result: &Value) -> Option<Conclusion> {
        if result.is_null() {
            return None;
        }
        let own = caught(|| (self.conclude)(result)).flatten();
        Some(own.unwrap_or_else(|| generic::conclude(result)).bounded())
    }

    /// Advice on a failure.
    pub fn advice_on(&self, code_or_category: &str) -> &'static [&'static str] {
        caught(|| (self.advice)(code_or_category)).unwrap_or_default()
    }

    /// The agent's own field in the session's JSON: its name and its word.
    pub fn state_of(&self, standing: &Standing<'_>) -> Option<(&'static str, &'static str)> {
        let field = self.state?;
        Some((field.name, caught(|| (field.word)(standing))?))
    }
}

/// The result of the agent's code; `None` if it panics.
fn caught<T>(ask: impl FnOnce() -> T) -> Option<T> {
    panics::caught("the presentation", ask).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_panic_in_a_presentation_falls_back_to_the_default() {
        let broken = Presentation {
            title: |input| Some(input["a"]["b"].as_str().unwrap().to_owned()),
            conclude: |result| panic!("no result like {result}"),
            advice: |_| panic!("no advice"),
            state: Some(StateField { name: "state", word: |_| panic!("no state") }),
        };
        let result = json!({"a": 1});
        assert_eq!(broken.title_of(&result), None);
        assert_eq!(broken.conclusion_of(&result), Presentation::DEFAULT.conclusion_of(&result));
        assert!(broken.advice_on("timeout").is_empty());
        let standing = Standing { stage: Stage::Failed, category: None, has_run: true };
        assert_eq!(broken.state_of(&standing), None);
    }

    #[test]
    fn a_title_is_trimmed_and_bounded() {
        let echo = Presentation {
            title: |input| input.as_str().map(str::to_owned),
            ..Presentation::DEFAULT
        };
        assert_eq!(echo.title_of(&json!("  a title ")).as_deref(), Some("a title"));
        assert_eq!(echo.title_of(&json!("  ")), None);
        let long = echo.title_of(&json!("x".repeat(500))).unwrap();
        assert_eq!(long.chars().count(), TITLE_CHARS_MAX);
        assert_eq!(Presentation::DEFAULT.conclusion_of(&Value::Null), None);
    }
}
