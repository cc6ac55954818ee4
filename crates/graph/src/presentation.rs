//! How an agent's sessions are shown.
//!
//! Viewers (the terminal, the page, the session's JSON) use only this interface. Advice and the words of a status are
//! data. A panic in one of the two functions falls back to the default and never breaks a viewer; viewers call them with
//! a time limit.

use std::ptr::fn_addr_eq;

use journal::status::Status;
use serde_json::Value;

use crate::agent::Agent;
use crate::conclusion::{Conclusion, clip, generic};
use crate::panics;

/// Longest title of a session, in characters.
pub const TITLE_CHARS_MAX: usize = 120;

/// Advice by the error's code or category.
pub type Advice = &'static [(&'static str, &'static [&'static str])];

/// The presentation of an agent's sessions. All functions are pure.
#[derive(Clone, Copy, Debug)]
pub struct Presentation {
    /// The title of a session with this input, such as `inventory-sync · ETIMEDOUT`.
    pub title: fn(input: &Value) -> Option<String>,
    /// The conclusion of a result; `None` for the generic one.
    pub conclude: fn(result: &Value) -> Option<Conclusion>,
    /// Advice on a failure; may be empty. Text in backticks is a command.
    pub advice: Advice,
    /// The agent's own field in the session's JSON.
    pub state: Option<StateField>,
    /// A title in which `{field}` stands for a field of the input; used if `title` gives none.
    pub template: Option<&'static str>,
}

/// A field in the session's JSON with the agent's own word for its status.
#[derive(Clone, Copy, Debug)]
pub struct StateField {
    pub name: &'static str,
    /// The first that fits counts.
    pub words: &'static [Word],
}

/// A word for some statuses.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    pub word: &'static str,
    pub stages: &'static [Stage],
    /// `None` for either.
    pub has_run: Option<bool>,
    pub category: Categories,
}

/// The categories of errors for which a word is.
#[derive(Clone, Copy, Debug)]
pub enum Categories {
    /// Any, or none.
    Any,
    /// An error without a category, or no error.
    None,
    These(&'static [&'static str]),
}

impl Word {
    fn fits(&self, standing: &Standing<'_>) -> bool {
        let of_category = match self.category {
            Categories::Any => true,
            Categories::None => standing.category.is_none(),
            Categories::These(these) => standing.category.is_some_and(|it| these.contains(&it)),
        };
        of_category
            && self.stages.contains(&standing.stage)
            && self.has_run.is_none_or(|has_run| has_run == standing.has_run)
    }
}

/// A session's status, for which a [`Word`] is looked up.
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
        Self { title: |_| None, conclude: |_| None, advice: &[], state: None, template: None };

    /// Whether both functions are known to be the default ones.
    pub fn has_default_functions(&self) -> bool {
        fn_addr_eq(self.title, Self::DEFAULT.title)
            && fn_addr_eq(self.conclude, Self::DEFAULT.conclude)
    }

    /// The presentation of the agent with this name.
    pub fn among(agents: &[Agent], name: Option<&str>) -> Self {
        let agent = agents.iter().find(|agent| Some(agent.name()) == name);
        agent.map_or(Self::DEFAULT, Agent::presentation)
    }

    /// The title of a session with this input.
    pub fn title_of(&self, input: &Value) -> Option<String> {
        let own = caught(|| (self.title)(input)).flatten();
        let own = own.or_else(|| Some(filled(self.template?, input)))?;
        let mut title = own.trim().to_owned();
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
        let found = self.advice.iter().find(|(of, _)| *of == code_or_category);
        found.map(|(_, advice)| *advice).unwrap_or_default()
    }

    /// The agent's own field in the session's JSON: its name and its word.
    pub fn state_of(&self, standing: &Standing<'_>) -> Option<(&'static str, &'static str)> {
        let field = self.state?;
        let word = field.words.iter().find(|word| word.fits(standing))?;
        Some((field.name, word.word))
    }
}

/// The fields of an input that a template names, in order. A brace without a partner is a text.
pub fn fields(template: &str) -> Vec<&str> {
    let mut fields = Vec::new();
    let mut rest = template;
    while let Some((_, behind)) = rest.split_once('{') {
        let Some((field, after)) = behind.split_once('}') else { break };
        fields.push(field);
        rest = after;
    }
    fields
}

/// Fills the fields of an input into a template.
fn filled(template: &str, input: &Value) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            text.push('{');
            rest = after;
            continue;
        };
        match &input[name] {
            Value::String(value) => text.push_str(value),
            Value::Null => {}
            other => text.push_str(&other.to_string()),
        }
        rest = after;
    }
    text + rest
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
            ..Presentation::DEFAULT
        };
        let result = json!({"a": 1});
        assert_eq!(broken.title_of(&result), None);
        assert_eq!(broken.conclusion_of(&result), Presentation::DEFAULT.conclusion_of(&result));
    }

    #[test]
    fn a_template_is_filled_from_the_input() {
        let template = Some("Notes since {since} for {n} {none}{open");
        let with = Presentation { template, ..Presentation::DEFAULT };
        let title = with.title_of(&json!({"since": "v1", "n": 2}));
        assert_eq!(title.as_deref(), Some("Notes since v1 for 2 {open"));
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
