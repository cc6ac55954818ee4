//! That the policy answered in place of a model.

use graph::budget::CATEGORY_BUDGET;
use journal::step::AnsweredBy;
use serde::Serialize;
use serde_json::Value;

/// The policy replaced the model because it failed, or because its budget was spent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fallback {
    /// The model that the session names.
    pub model: Option<String>,
    /// The failure's category, one word.
    pub category: Option<String>,
    /// What happened, in one sentence.
    pub message: String,
}

impl Fallback {
    /// Reads the note's payload. A damaged note still says that there was a fallback.
    pub(super) fn of(note: &Value, answered_by: Option<AnsweredBy>) -> Self {
        let text = |name: &str| note.get(name).and_then(Value::as_str).map(str::to_owned);
        let (model, category) = (text("model"), text("category"));
        let named = model.as_deref().unwrap_or("the model");
        let why = match category.as_deref() {
            Some(CATEGORY_BUDGET) => format!("the budget of {named} was used up"),
            Some(category) => format!("{named} failed ({category})"),
            None => format!("{named} failed"),
        };
        let replied = match answered_by {
            Some(AnsweredBy::Policy) => "answered by the policy",
            Some(AnsweredBy::Both) => "answered in part by the policy",
            Some(AnsweredBy::Model) | None => "the policy takes over",
        };
        Self { message: format!("{replied}: {why}"), model, category }
    }
}
